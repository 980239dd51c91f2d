#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Mutants of lib/fabric that no test kills: changes one operator or constant at a time and runs the unit
tests of it. A mutant that lives is a missing test, or is none: those of `equivalent`, with a reason.

usage: run.py --build DIR [--each N] [--seed S] [--far] [--list] [FILE...] [--tests TEST...]

The build folder is one of its own, configured with CFLAGS='-O1 -fPIC' (./check mutation makes it):
the tests are linked against a shared object, so that a mutant costs one compilation. N mutants of each
file are drawn (all: 0). Those that live run against the tests of programs that use the library, too.
"""

import argparse
import concurrent.futures
import os
import random
import re
import resource
import shlex
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

sys.dont_write_bytecode = True
from mutants import mutants  # noqa: E402

HERE = Path(__file__).resolve().parent
SRCDIR = HERE.parents[1]
LIBRARY = "lib/fabric/libftfabric.a"
BASE = "lib/base/libftbase.a"
MEMORY_BYTES = 4 << 30  # of a mutant that allocates without end
HOOK = """
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
#define HOOK __attribute__((no_instrument_function)) void
HOOK __cyg_profile_func_enter(void *function, void *caller);
HOOK __cyg_profile_func_exit(void *function, void *caller);
HOOK __cyg_profile_func_enter(void *function, void *caller)
{
    static int reached;

    (void)function, (void)caller;
    if (!reached && getenv("FT_REACHED")) {
        int file = open(getenv("FT_REACHED"), O_WRONLY | O_APPEND);

        reached = 1;
        if (file >= 0 && write(file, "STEM ", sizeof("STEM ") - 1) < 0)
            abort();
        close(file);
    }
}
HOOK __cyg_profile_func_exit(void *function, void *caller) { (void)function, (void)caller; }
"""
SLOWER = 10  # times the unchanged library's, and a loop has no end


@dataclass
class Result:
    killed: int = 0
    same: int = 0  # the compiler makes the same code of it
    broken: int = 0  # does not compile
    known: int = 0  # equivalent, as the list says
    lives: list = field(default_factory=list)


def run(command, **more):
    return subprocess.run(command, capture_output=True, text=True, check=False, **more)


def make(build, *words):
    done = run(["make", "-C", build, "-s", *words])
    if done.returncode:
        sys.exit(f"FAIL make {' '.join(words)}:\n{done.stderr[-2000:]}")
    return done.stdout


def commands_for(build, targets):
    """{target: the command by which make would make it}, with nothing in front of it."""
    for target in targets:
        (build / target).unlink(missing_ok=True)
    text = run(["make", "-C", build, "-n", "V=1", *targets]).stdout.replace("\\\n", " ")
    found = {}
    for line in text.splitlines():
        for part in re.split(r";|&&", line):
            made = re.search(r" -o (\S+)", part)
            if made and made[1] in targets:
                found[made[1]] = part.strip()
    missing = set(targets) - set(found)
    if missing:
        sys.exit(f"FAIL make does not say how it makes {', '.join(sorted(missing))}")
    return found


class Bench:
    """The library as a shared object, and the tests linked against it."""

    def __init__(self, build, workers, tests):
        self.build = build
        self.folder = build / "mutation"
        make(build, "-j2", LIBRARY, BASE)
        self.sources = sorted(path for path in (SRCDIR / "lib/fabric").glob("*.c"))
        self.compiler = self.compilers()
        self.workers = [self.folder / f"worker{i}" for i in range(workers)]
        for worker in self.workers:
            worker.mkdir(parents=True, exist_ok=True)
        self.share(self.workers[0], None, None)
        self.near, self.far = self.names_of_tests()
        self.took = {}  # [s] by test, unchanged
        self.near = [name for name in self.near if not tests or name in tests]
        self.link(self.near)
        self.reached = self.reach()

    def compilers(self):
        """{source: how it is compiled}, without names of files."""
        objects = {f"lib/fabric/{path.stem}.o": path.stem for path in self.sources}
        found = {}
        for target, command in commands_for(self.build, list(objects)).items():
            text = re.sub(r" -M[TF] \S+| -M\w+| -c | -o \S+| \S+\.c$", " ", command)
            found[objects[target]] = shlex.split(text)
        make(self.build, "-j2", LIBRARY)
        return found

    def names_of_tests(self):
        """Unit tests of the library, and those of others that are linked with it."""
        text = (SRCDIR / "tests/unit/fabric.mk").read_text()
        near = sorted(set(re.findall(r"tests/unit/(check_\w+)(?=\s|$)", text)))
        far = set()
        for path in (SRCDIR / "tests/unit").glob("*.mk"):
            joined = path.read_text().replace("\\\n", " ")
            for name, libraries in re.findall(r"^tests_unit_(check_\w+)_LDADD = (.*)$", joined, re.M):
                if name not in near and ("libftfabric.a" in libraries or "daemon" in libraries):
                    far.add(name)
        return near, sorted(far)

    def link(self, names):
        """The tests with the shared object in the library's stead."""
        targets = {f"tests/unit/{name}": name for name in names}
        make(self.build, "-j2", *targets)
        for target, command in commands_for(self.build, list(targets)).items():
            name = targets[target]
            text = command.replace(LIBRARY, f"-L{self.workers[0]} -lftmutant")
            done = run(["sh", "-c", text.replace(f"-o {target}", f"-o {self.folder / name}", 1)], cwd=self.build)
            if done.returncode:
                sys.exit(f"FAIL {name} does not link:\n{done.stderr[-2000:]}")

    def share(self, worker, stem, changed):
        """The library with the object of one source changed."""
        objects = [str(changed) if path.stem == stem else f"lib/fabric/{path.stem}.o" for path in self.sources]
        return run(["gcc", "-shared", "-o", str(worker / "libftmutant.so"), *objects, BASE, "-lm", "-lxxhash"],
                   cwd=self.build).returncode

    def compile(self, worker, stem, text, name="mutant", *more):
        path = worker / f"{name}.c"
        path.write_text(text)
        words = [*self.compiler[stem], "-w", *more, f"-I{SRCDIR}/lib/fabric", "-c", "-o", str(worker / f"{name}.o"),
                 str(path)]
        done = run(words, cwd=self.build, env={**os.environ, "CCACHE_DISABLE": "1"})
        return (worker / f"{name}.o") if done.returncode == 0 else None

    def code(self, path):
        """What the processor runs of an object, for comparison."""
        plain = path.with_suffix(".bin")
        run(["objcopy", "-g", "--remove-section=.comment", str(path), str(plain)])
        return re.sub(r"^.*file format.*$", "", run(["objdump", "-drs", str(plain)]).stdout, flags=re.M)

    def passes(self, worker, name, **more):
        """Its processor time is limited, for the machine may be busy."""
        seconds = int(SLOWER * self.took.get(name, 30)) + 3
        environment = {**os.environ, "LD_LIBRARY_PATH": str(worker), "srcdir": str(SRCDIR), "CK_FORK": "no",
                       **more}
        done = subprocess.run(["prlimit", f"--cpu={seconds}", f"--as={MEMORY_BYTES}", "--core=0",
                               str(self.folder / name)], cwd=worker, env=environment, check=False,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return done.returncode == 0

    def reach(self):
        """{source: tests that call a function of it}: each function of the library says its source."""
        worker, log = self.workers[0], self.folder / "reached"
        objects = []
        for path in self.sources:
            hooked = self.compile(worker, path.stem, path.read_text() + HOOK.replace("STEM", path.stem),
                                  f"hooked_{path.stem}", "-finstrument-functions")
            run(["objcopy", "-L", "__cyg_profile_func_enter", "-L", "__cyg_profile_func_exit", str(hooked)])
            objects.append(str(hooked))
        run(["gcc", "-shared", "-o", str(worker / "libftmutant.so"), *objects, BASE, "-lm", "-lxxhash"],
            cwd=self.build)
        found = {path.stem: [] for path in self.sources}
        for name in self.near:
            log.write_text("")
            if not self.passes(worker, name, FT_REACHED=str(log)):
                sys.exit(f"FAIL {name} fails with functions that say their source")
            for stem in set(log.read_text().split()):
                found[stem].append(name)
        return found

    def measure(self, names):
        """How long they take where nothing is changed: all pass then."""
        self.share(self.workers[0], None, None)
        for name in names:
            if name in self.took:
                continue
            begin = resource.getrusage(resource.RUSAGE_CHILDREN)
            if not self.passes(self.workers[0], name):
                sys.exit(f"FAIL {name} fails with nothing changed")
            end = resource.getrusage(resource.RUSAGE_CHILDREN)
            self.took[name] = end.ru_utime + end.ru_stime - begin.ru_utime - begin.ru_stime


def equivalents():
    """Lines "FILE | before | after | why" of mutants that no test can tell from the source."""
    known = set()
    for line in (HERE / "equivalent").read_text().splitlines():
        if line and not line.startswith("#"):
            file, before, after, why = (part.strip() for part in line.split(" @ "))
            assert why, line
            known.add((file, before, after))
    return known


class Judge:
    """What becomes of the mutants of one file."""

    def __init__(self, bench, path):
        self.bench, self.path = bench, path
        self.source = path.read_text()
        self.kills = {}
        self.near = bench.reached[path.stem]
        bench.measure(self.near)
        original = bench.compile(bench.workers[0], path.stem, self.source, "original")
        self.original = bench.code(original)

    def fate(self, worker, mutant):
        changed = self.bench.compile(worker, self.path.stem, mutant.apply(self.source))
        if changed is None:
            return "broken"
        if self.bench.code(changed) == self.original:
            return "same"
        if self.bench.share(worker, self.path.stem, changed):
            return "broken"
        for name in sorted(self.near, key=lambda n: (-self.kills.get(n, 0), self.bench.took[n])):
            if not self.bench.passes(worker, name):
                self.kills[name] = self.kills.get(name, 0) + 1
                return name
        return "lives"

    def far_fate(self, worker, mutant):
        changed = self.bench.compile(worker, self.path.stem, mutant.apply(self.source))
        self.bench.share(worker, self.path.stem, changed)
        for name in sorted(self.bench.far, key=self.bench.took.get):
            if not self.bench.passes(worker, name):
                return name
        return "lives"


def over(bench, mutants_, fate):
    """Each mutant's fate, by all workers."""
    free = list(bench.workers)

    def one(mutant):
        worker = free.pop()
        try:
            return fate(worker, mutant)
        finally:
            free.append(worker)

    with concurrent.futures.ThreadPoolExecutor(len(bench.workers)) as pool:
        return list(zip(mutants_, pool.map(one, mutants_)))


def judge_file(bench, path, options, known):
    judge = Judge(bench, path)
    chosen = mutants(judge.source)
    if options.each and len(chosen) > options.each:
        draw = random.Random(f"{options.seed} {path.name}")
        chosen = sorted(draw.sample(chosen, options.each), key=lambda m: m.start)
    result = Result()
    alive = []
    for mutant, fate in over(bench, chosen, judge.fate):
        if fate in ("broken", "same"):
            setattr(result, fate, getattr(result, fate) + 1)
        elif fate != "lives":
            result.killed += 1
        elif (path.name, *mutant.lines(judge.source)) in known:
            result.known += 1
        else:
            alive.append(mutant)
    if alive and options.far:
        for mutant, fate in over(bench, alive, judge.far_fate):
            if fate == "lives":
                result.lives.append(mutant)
            else:
                result.killed += 1
    else:
        result.lives = alive
    print(f"{path.name:22} {result.killed} killed, {len(result.lives)} live, {result.known} equivalent, "
          f"{result.same} the same code, {result.broken} do not compile", flush=True)
    for mutant in result.lives:
        before, after = mutant.lines(judge.source)
        print(f"FAIL {path.name}:{mutant.line(judge.source)}\n     - {before}\n     + {after}", flush=True)
    return result


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--each", type=int, default=40, help="mutants of each file; 0: all")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--tests", nargs="+", default=[], help="these alone: check_judge ...")
    parser.add_argument("--far", action="store_true", help="tests of the programs, too")
    parser.add_argument("--list", action="store_true", help="how many there are")
    parser.add_argument("files", nargs="*")
    options = parser.parse_args()
    paths = [SRCDIR / "lib/fabric" / name for name in options.files] or sorted((SRCDIR / "lib/fabric").glob("*.c"))
    if options.list:
        for path in paths:
            print(f"{path.name:22} {len(mutants(path.read_text()))}")
        return 0
    print(f"seed {options.seed}", flush=True)
    bench = Bench(options.build.resolve(), options.jobs, options.tests)
    if options.far:
        bench.link(bench.far)
        bench.measure(bench.far)
    known = equivalents()
    results = [judge_file(bench, path, options, known) for path in paths]
    killed, lives = sum(r.killed for r in results), sum(len(r.lives) for r in results)
    print(f"{100 * killed / max(1, killed + lives):.1f} % of {killed + lives} mutants are killed; "
          f"{sum(r.known for r in results)} are equivalent")
    print(f"{killed} passed, {lives} failed, 0 skipped")
    return 1 if lives or not killed else 0


if __name__ == "__main__":
    sys.exit(main())
