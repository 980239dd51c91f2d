#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Judges the daemon on generated fabrics whose every true path is known at every moment.

    tests/fidelity/run.py --build build                  every case, one seed
    tests/fidelity/run.py --build build moves3 --seeds 10
    tests/fidelity/run.py --build build double --seed 3 --explain 5      why records are wrong
    tests/fidelity/run.py --build build moves2 --explain 3 --only outside
    tests/fidelity/run.py --build build sparse --seed 3 --keep /tmp/kept  the files of the run
    tests/fidelity/run.py --list

A run is made from its case, seed, flows and seconds alone; --keep leaves topology.yaml,
observations.ndjson and records.ndjson in FOLDER/CASE-SEED. What right, stale and wrong mean says
paper/judge.py. Columns:
  RECORDS  path records; RIGHT, STALE, WRONG of those resolved; NEVER of the wrong: such a path
           never was; NOSAMPL resolved without one sample; MULTI multipath of flows that are not
           sprayed; SINGLE resolved of flows that are
  OUTSIDE  path_since_ms after the window, or time_ms not in it; P.WRONG a certain hop is not so
  RIGHT%   of the time in which flows send, how long what was last said is right; OLD% resolved, and
           not so (any more); PARTIAL%, and for flows of 20 samples/s and more (DENSE), of 1 and
           more (USUAL), of less (SPARSE)
  90% S    seconds after the last fault of a group until 90 %, ALL of the moved flows are right for
           good, and all dense ones; NOT YET: moved flows that were not within 20 s and more
  PHANTOM  link records with bytes on links that carried none in the window; BYTES% error of the
           bytes of links in windows with moves, beside what sampling alone would make of it"""
import argparse
import json
import sys
from multiprocessing import Pool
from pathlib import Path

sys.dont_write_bytecode = True
from paper import report  # noqa: E402
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
    parser.add_argument("--jobs", type=int, default=2, help="runs at once")
    parser.add_argument("--keep", metavar="FOLDER", help="leave the files of the runs there")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE",
                        help="of the daemon's configuration")
    parser.add_argument("--explain", type=int, default=0, metavar="N",
                        help="print why, for the first N findings of each run")
    parser.add_argument("--only", action="append", metavar="VERDICT", default=[],
                        help="explain these: wrong, no_samples, unsprayed, outside, partial_wrong")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--list", action="store_true", help="list the cases")
    args = parser.parse_args(arguments)
    for name in args.cases:
        if name not in CASES:
            parser.error(f"there is no case '{name}': {', '.join(CASES)}")
    return args


def tasks(args, daemon):
    keep = str(Path(args.keep).resolve()) if args.keep else None
    explain = {"most": args.explain, "only": args.only} if args.explain else None
    for name in args.cases or CASES:
        for seed in range(args.seed, args.seed + args.seeds):
            yield {"name": name, "seed": seed, "flows": args.flows, "seconds": args.seconds,
                   "daemon": str(daemon), "settings": args.set, "keep": keep, "explain": explain}


def main(arguments=None):
    args = parse(arguments)
    if args.list:
        print("\n".join(CASES))
        return 0
    todo = list(tasks(args, find_daemon(args.build)))
    tallies = {task["name"]: report.Tally() for task in todo}
    with Pool(min(args.jobs, len(todo))) as pool:
        for done, (name, tally, texts) in enumerate(pool.imap_unordered(one_run, todo), 1):
            tallies[name].add(tally)
            for text in texts:
                print(text + "\n", flush=True)
            if sys.stderr.isatty():
                print(f"\r{done} of {len(todo)} runs", end="\r", file=sys.stderr, flush=True)
    if args.json:
        print(json.dumps({name: tally.as_json() for name, tally in tallies.items()}, indent=1))
    else:
        print(report.whole_text(tallies))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except DaemonError as error:
        sys.exit(f"run.py: {error}")
