#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What comes late to one member of a group, over a real broker, is missing in the figures of the group as
in those of one daemon, and they say so: observations of one partition come again two windows later, to
one daemon over TCP and to a group of two members and an aggregator.
usage: check_late.py [--seconds N] [--flows N] [--keep FOLDER] (in the build folder)"""
import argparse
import json
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
import broker  # noqa: E402
import check_group  # noqa: E402
from check_group import WINDOW_MS, Rig  # noqa: E402
from check_transactions import LATE, in_one_of  # noqa: E402
from group import partition_of, same  # noqa: E402
from rig import check, equal, failures, run_tests  # noqa: E402
from sharing import by_name, published  # noqa: E402

PARTITION = 0
AT_MS = 8000  # in the window: the one before is closed, and this one is not yet
CLOSE = 0.03  # records of the second in which a window is closed count for it, or for the next one


def delay_some(traffic):
    """Puts observations of the second window once more into the fourth. Returns how many."""
    first = traffic.span[0] + WINDOW_MS
    at = first + 2 * WINDOW_MS + AT_MS
    rows = [json.loads(line) for line in traffic.file.read_text(encoding="utf-8").splitlines()]
    again = [dict(r, time_ms=at) for r in rows
             if first <= r["first_ms"] and r["last_ms"] < first + WINDOW_MS
             and partition_of(r["flow"]) == PARTITION]
    rows = sorted(rows + again, key=lambda r: r["time_ms"])
    traffic.file.write_text("".join(json.dumps(r) + "\n" for r in rows), encoding="utf-8")
    traffic.count = len(rows)
    return len(again)


def without_share(r):
    return {k: v for k, v in r.items() if k != "seen_share"}


def compare(rig, group):
    one, whole = (by_name(published(d, "imbalance", shift)) for d, shift in
                  ((rig.alone, rig.alone.shift_ms), (group.aggregator, group.shift_ms)))
    within = [k for k in one if rig.traffic.span[0] <= k[0] <= rig.traffic.span[1]]
    check(f"{len(within)} imbalance records, the same figures", within and all(
        k in whole and same(without_share(one[k]), without_share(whole[k])) for k in within),
          [(one[k], whole.get(k)) for k in within
           if k not in whole or not same(without_share(one[k]), without_share(whole[k]))][:1])
    marked, shares = ({k[0]: r["seen_share"] for k, r in found.items() if "seen_share" in r}
                      for found in (one, whole))
    print(f"seen_share of one daemon {marked}, of the group {shares}", flush=True)
    check("the window in which they came says so, and no other", marked.keys() == shares.keys()
          == {rig.traffic.span[0] + 3 * WINDOW_MS}, (marked, shares))
    check("as one daemon does", all(abs(marked[w] - shares.get(w, 1)) < CLOSE and marked[w] < 0.97
                                    for w in marked), (marked, shares))


def compare_sums(group, count, late):
    """By the partial loads: each observation is counted once, and those that were late at one member."""
    parts = [list(published(m, "partial")) for m in group.members]
    came = [sum(r.get("observations", 0) for r in said) for said in parts]
    taken = [sum(r.get("observations_taken", 0) for r in said) for said in parts]
    equal("members say how many observations came", sum(came), count)
    equal("and how many were not taken in, one of them", sorted(c - t for c, t in zip(came, taken)),
          [0, late])


def attempt(folder):
    rig = Rig(folder)
    try:
        late = delay_some(rig.traffic)
        check("some come late", late > 50, late)
        rig.alone.start()
        group = rig.group("two", 2)
        rig.feed([group], rig.alone)
        dropped = rig.alone.metric(LATE)
        print(f"{late} of {rig.traffic.count} observations come late; {dropped:.0f} did to the daemon over "
              "TCP", flush=True)
        if dropped != late:
            return False
        rig.alone.stop()
        group.stop()
        compare(rig, group)
        compare_sums(group, rig.traffic.count, late)
        return True
    finally:
        rig.end()


def test_late(folder):
    in_one_of(folder, attempt)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=int, default=50)
    parser.add_argument("--flows", type=int, default=300)
    parser.add_argument("--keep", type=Path, help="records and logs")
    args = parser.parse_args()
    check_group.seconds, check_group.flows, check_group.keep = args.seconds, args.flows, args.keep
    try:
        broker.fetch()
    except broker.Lacking as lack:
        sys.exit(f"FAIL: no Kafka broker: {lack}")
    code = run_tests(test_late)
    print(f"{'FAIL' if failures else 'PASS'}: a group says what came late to a member")
    sys.exit(code)
