#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Attacks, limits and kills, each a scenario with the real programs on loopback.

usage: run.py [--build FOLDER] [--for TIME] [--kills N] [--seed N] [SCENARIO...]   these, or all
       run.py --list                   what there is, and what each fault did before

--for (90s, 10m, 1h) is the length of the scenarios siege, links, reloads and spoofed, and of kills where
--kills does not say how often each program is killed there; what they draw follows from the seed that they
print.

A scenario is a file in scenarios/, named as the scenario, and in local.mk. The head of its text says
what the fault did before it was mended; run(folder) gets an empty folder and judges by check(),
equal() and until() of kit.py, or raises kit.Skipped. Each runs in a process of its own. Most wait more
than they compute and run beside each other, LANES at a time; those that measure time or load, ALONE, one
after another before them. Behind each verdict are its seconds, and those of processor."""
import argparse
import importlib
import os
import re
import resource
import subprocess
import sys
import tempfile
import textwrap
import time
import traceback
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

HERE = Path(__file__).resolve().parent
SCENARIOS = HERE / "scenarios"
LIMIT_S = 600  # for a scenario that hangs: no slow machine takes that long
KILL_S = 20    # more for each kill
LONG = ("siege", "kills", "crowd", "links", "clocks", "spoofed")  # whose figures are of interest though all is well
ALONE = ("crowd", "loss_sources", "no_descriptors")
LANES = 4
# The longest, so that nobody waits for them at the end.
FIRST = ("clocks", "drips", "siege", "kills", "connections", "filled", "links", "reloads")
UNITS = {"s": 1, "m": 60, "h": 3600}
SKIPPED = 77
USED = "seconds of processor: "  # the last line of a scenario

sys.dont_write_bytecode = True
sys.path[:0] = [str(HERE), str(SCENARIOS)]


def names():
    return sorted(p.stem for p in SCENARIOS.glob("*.py"))


def processor_s():
    """Of this process and of those that it waited for."""
    return sum(u.ru_utime + u.ru_stime for u in map(resource.getrusage, (resource.RUSAGE_SELF,
                                                                       resource.RUSAGE_CHILDREN)))


def run_one(name):
    """Here and now; the exit code."""
    code = run_here(name)
    print(f"{USED}{processor_s():.1f}")
    return code


def run_here(name):
    import kit
    try:
        with tempfile.TemporaryDirectory() as folder:
            importlib.import_module(name).run(Path(folder))
    except kit.Skipped as lack:
        print(f"skipped: {name}: {lack}")
        return SKIPPED
    except Exception:
        kit.check(f"{name} comes to its end", False, traceback.format_exc())
    return 1 if kit.failures else 0


def limit_s():
    """With what the long runs were told."""
    return (LIMIT_S + 2 * float(os.environ.get("FT_SIEGE_SECONDS") or 0)
            + KILL_S * 3 * float(os.environ.get("FT_SIEGE_KILLS") or 0))


def run_apart(name):
    """(name, exit code, seconds, of processor, output)"""
    start = time.monotonic()
    try:
        done = subprocess.run([sys.executable, __file__, "--one", name], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=limit_s())
        code, output = done.returncode, done.stdout
    except subprocess.TimeoutExpired as late:
        code, output = 1, f"{(late.stdout or b'').decode()}\nnot over after {limit_s():.0f} s\n"
    used = re.search(rf"^{USED}([\d.]+)\n\Z", output, re.M)
    return name, code, time.monotonic() - start, used and float(used[1]), output[:used.start()] if used else output


def side_by_side(chosen):
    """What run_apart says of each, as they end."""
    for name in chosen:
        if name in ALONE:
            yield run_apart(name)
    rest = [name for name in chosen if name not in ALONE]
    rest.sort(key=lambda name: FIRST.index(name) if name in FIRST else len(FIRST))
    with ThreadPoolExecutor(LANES) as pool:
        for done in as_completed(pool.submit(run_apart, name) for name in rest):
            yield done.result()


def figures(output):
    """What a scenario tells of itself and the verdicts with numbers in them."""
    return "".join(f"{line}\n" for line in output.splitlines()
                   if not line.startswith("ok: ") or any(c.isdigit() for c in line))


def seconds_of(text):
    if text[-1:] not in UNITS or not text[:-1].isdecimal():
        raise argparse.ArgumentTypeError(f"'{text}' is no time such as 90s, 10m or 1h")
    return int(text[:-1]) * UNITS[text[-1]]


def run_all(chosen):
    counts = {"ok": 0, "FAIL": 0, "skipped": 0}
    for name, code, seconds, used, output in side_by_side(chosen):
        word = {0: "ok", SKIPPED: "skipped"}.get(code, "FAIL")
        counts[word] += 1
        took = f"{seconds:.1f} s" + (f", {used:.1f} of processor" if used else "")
        if word == "ok":
            print(f"ok: {name} ({took})")
            if name in LONG:
                print(textwrap.indent(figures(output), "    "), end="")
        else:
            print(f"{word}: {name} ({took})\n{textwrap.indent(output, '    ')}")
        sys.stdout.flush()
    print(f"{counts['ok']} passed, {counts['FAIL']} failed, {counts['skipped']} skipped")
    return 1 if counts["FAIL"] else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--build", type=Path, default=".", help="build folder")
    parser.add_argument("--list", action="store_true", help="what there is")
    parser.add_argument("--for", type=seconds_of, dest="seconds", help="length of siege, kills and others")
    parser.add_argument("--kills", type=int, help="of each program")
    parser.add_argument("--seed", type=int, help="of siege and kills")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("scenario", nargs="*")
    args = parser.parse_args()
    os.chdir(args.build)
    for name, value in (("SECONDS", args.seconds), ("KILLS", args.kills), ("SEED", args.seed)):
        if value is not None:
            os.environ[f"FT_SIEGE_{name}"] = str(value)
    unknown = set(args.scenario) - set(names())
    if unknown:
        parser.error(f"there is no scenario {', '.join(sorted(unknown))}; --list names them")
    if args.list:
        for name in names():
            print(f"{name}\n{textwrap.indent(importlib.import_module(name).__doc__.strip(), '    ')}")
        return 0
    return run_one(args.one) if args.one else run_all(args.scenario or names())


if __name__ == "__main__":
    sys.exit(main())
