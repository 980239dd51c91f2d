#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Judges the daemon on generated fabrics whose every true path is known at every moment.

    tests/fidelity/run.py --build build                  every case, one seed
    tests/fidelity/run.py --build build moves3 --seeds 10
    tests/fidelity/run.py --build build double --seed 3 --explain 5      why records are wrong
    tests/fidelity/run.py --build build moves2 --explain 3 --only outside
    tests/fidelity/run.py --build build bounce --explain 3 --only slow
    tests/fidelity/run.py --build build sparse --seed 3 --keep /tmp/kept  the files of the run
    tests/fidelity/run.py --build build --long 1000000   all cases, until so many path records
    tests/fidelity/run.py --build build --seeds 5 --save a.json     what it found out, for later
    tests/fidelity/run.py --build build --seed 6 --seeds 5 --save b.json
    tests/fidelity/run.py --sum a.json b.json --check    one table of both
    tests/fidelity/run.py --list

With --check, and with --long, what paper/limits.py says must hold; a case each is passed or failed.
A run is made from its case, seed, flows and seconds alone; --keep leaves topology.yaml,
observations.ndjson and records.ndjson in FOLDER/CASE-SEED. What right, stale and wrong mean says
paper/judge.py. Columns:
  RECORDS  path records; RIGHT, STALE, WRONG of those resolved; NEVER of the wrong: such a path
           never was; NOSAMPL resolved without one sample; MULTI multipath of flows that are not
           sprayed; SINGLE resolved of flows that are
  OUTSIDE  path_since_ms after the window, or time_ms not in it; SINCE path_since_ms is not when
           the path began (paper/judge.py); P.WRONG a certain hop is not so
  RIGHT%   of the time in which flows send, how long what was last said is right; CALM% the same,
           without the time just after a flow began or moved; OLD% resolved, and not so (any more);
           PARTIAL%, and for flows of 20 samples/s and more (DENSE), of 1 and
           more (USUAL), of less (SPARSE)
  90% S    seconds after the last fault of a group until 90 %, ALL of the moved flows are right for
           good, and all dense ones; NOT YET: moved flows that were not within 20 s and more
  PHANTOM  link records with bytes on links that carried none in the window; BYTES% error of the
           bytes of links in windows with moves, SAMPLES that of the links' own samples"""
import argparse
import json
import sys
import time
from itertools import count
from multiprocessing import Pool
from pathlib import Path

sys.dont_write_bytecode = True
from paper import limits, report  # noqa: E402
from paper.cases import CASES  # noqa: E402
from paper.replay import DaemonError, find_daemon  # noqa: E402
from paper.single import one_run  # noqa: E402


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE", help="default: all")
    parser.add_argument("--build", default=".", help="build folder with daemon/fabrictraced")
    parser.add_argument("--seed", type=int, default=1, help="the first one")
    parser.add_argument("--seeds", type=int, default=1, help="runs a case")
    parser.add_argument("--flows", type=int, default=200)
    parser.add_argument("--seconds", type=int, default=150)
    parser.add_argument("--delay", type=float, default=0.5, metavar="S",
                        help="most that an exporter holds a sample back; below 1")
    parser.add_argument("--fold", type=int, default=1, choices=(1, 2, 5, 10), metavar="S",
                        help="seconds that samples are folded over")
    parser.add_argument("--jobs", type=int, default=2, help="runs at once")
    parser.add_argument("--keep", metavar="FOLDER", help="leave the files of the runs there")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE",
                        help="of the daemon's configuration")
    parser.add_argument("--explain", type=int, default=0, metavar="N",
                        help="print why, for the first N findings of each run")
    parser.add_argument("--only", action="append", metavar="VERDICT", default=[],
                        help="explain these alone: wrong, no_samples, unsprayed, bad_shares, "
                        "wrong_share, partial_wrong, outside, since_wrong, since_late, "
                        "single, slow (flows that are not right again soon after moves), phantom (links "
                        "with bytes that carried none)")
    parser.add_argument("--check", action="store_true", help="fail where a limit is broken")
    parser.add_argument("--long", type=int, metavar="RECORDS",
                        help="seed after seed, until there are so many path records")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--save", metavar="FILE", help="write there what the runs gave, for --sum")
    parser.add_argument("--sum", action="append", nargs="+", metavar="FILE", default=[],
                        help="run nothing, and add up what was saved")
    parser.add_argument("--list", action="store_true", help="list the cases")
    args = parser.parse_args(arguments)
    if args.save and (args.long or args.sum):
        parser.error("--save goes with --seeds: it says which seeds were run")
    for name in args.cases:
        if name not in CASES:
            parser.error(f"there is no case '{name}': {', '.join(CASES)}")
    return args


def tasks(args, daemon, seed):
    keep = str(Path(args.keep).resolve()) if args.keep else None
    explain = {"most": args.explain, "only": args.only} if args.explain else None
    return [{"name": name, "seed": seed, "flows": args.flows, "seconds": args.seconds,
             "delay": args.delay, "fold": args.fold, "daemon": str(daemon), "settings": args.set, "keep": keep,
             "explain": explain}
            for name in args.cases or CASES]


class Progress:
    """A line that is written over and over, on the terminal alone. A long run that is part of
    ./check has its output in a file: it looks for the terminal itself."""

    def __init__(self, long):
        self.begin, self.out = time.monotonic(), None
        if sys.stderr.isatty():
            self.out = sys.stderr
        elif long:
            try:
                self.out = open("/dev/tty", "w", encoding="utf-8")
            except OSError:
                pass

    def show(self, text):
        if self.out:
            # Saves the cursor's place, writes, erases what is left of the line, and goes back.
            print(f"\0337{text}, {time.monotonic() - self.begin:.0f} s\033[K\0338", end="",
                  file=self.out, flush=True)

    def end(self):
        if self.out:
            print("\033[K", end="", file=self.out, flush=True)


def rounds(args, daemon):
    """The tasks, a list for each seed. Endless for a long run."""
    for seed in count(args.seed) if args.long else range(args.seed, args.seed + args.seeds):
        yield tasks(args, daemon, seed)


def results(args, daemon):
    """What the runs give, one after the other; of a long run endlessly."""
    # A worker is replaced now and then, so that none keeps what many runs took.
    with Pool(args.jobs, maxtasksperchild=20) as pool:
        seeds = rounds(args, daemon)
        for todo in seeds if args.long else [sum(seeds, [])]:
            yield from pool.imap_unordered(one_run, todo)


def measure(args, daemon):
    """{case: Tally} of all runs."""
    tallies = {name: report.Tally() for name in args.cases or CASES}
    progress, records, wrong = Progress(args.long), 0, 0
    for runs, (name, tally, texts) in enumerate(results(args, daemon), 1):
        tallies[name].add(tally)
        records, wrong = records + tally.counts["records"], wrong + tally.counts["wrong"]
        for text in texts:
            print(text + "\n", flush=True)
        progress.show(f"{runs} runs, {records:,} path records"
                      f"{f' of {args.long:,}' if args.long else ''}, {wrong} wrong")
        if args.long and records >= args.long:
            break
    progress.end()
    return tallies


def save(tallies, seeds, path):
    """seeds: (first, how many)."""
    plain = {"seeds": seeds, "tallies": {name: tally.plain() for name, tally in tallies.items()}}
    Path(path).write_text(json.dumps(plain), encoding="utf-8")


def saved(paths):
    """{case: Tally} of several files. Runs that are in two of them would count twice."""
    tallies, seen = {}, set()
    for path in paths:
        plain = json.loads(Path(path).read_text(encoding="utf-8"))
        first, many = plain["seeds"]
        for name, tally in plain["tallies"].items():
            runs = {(name, seed) for seed in range(first, first + many)}
            if runs & seen:
                sys.exit(f"run.py: {path}: seeds of {name} that another file has")
            seen |= runs
            tallies.setdefault(name, report.Tally()).add(report.Tally.of_plain(tally))
    return {name: tallies[name] for name in CASES if name in tallies}


def verdicts(tallies):
    """Prints what must hold and does not. Returns the exit code."""
    skipped = [name for name, tally in tallies.items() if not tally.counts["runs"]]
    passed = failed = 0
    for name, tally in tallies.items():
        if name in skipped:
            continue
        texts = limits.broken(name, tally)
        passed, failed = passed + (not texts), failed + bool(texts)
        print(f"{'FAIL' if texts else 'ok'}: {name}, {tally.counts['records']} path records")
        for text in texts:
            print(f"    {text}")
    if skipped:
        print(f"skipped: {', '.join(skipped)}: there were path records enough before")
    print(f"{passed} passed, {failed} failed, {len(skipped)} skipped")
    return 1 if failed else 0


def main(arguments=None):
    args = parse(arguments)
    if args.list:
        print("\n".join(CASES))
        return 0
    paths = sum(args.sum, [])
    tallies = saved(paths) if paths else measure(args, find_daemon(args.build))
    if args.save:
        save(tallies, (args.seed, args.seeds), args.save)
    if args.json:
        print(json.dumps({name: tally.as_json() for name, tally in tallies.items()}, indent=1))
    else:
        print(report.whole_text(tallies), flush=True)
    return verdicts(tallies) if args.check or args.long else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except DaemonError as error:
        sys.exit(f"run.py: {error}")
