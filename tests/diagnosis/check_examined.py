#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Some seeds of the cases of examined.py: those on which queues of operations were once taken for slow
communication, or a rank that waits for a late one for that one, and faults that are told."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import examined  # noqa: E402

ONCE_WRONG = (("well, calls", 4), ("well, uneven lengths", 3), ("well, stalls", 4), ("late", 1), ("late", 4),
              ("host dies", 3), ("late, little work", 2), ("late, 1.3 start", 4),
              ("late, calls", 101), ("late, calls", 7), ("well, clocks apart, cut at once", 6))
TOLD = (("stopped", 2), ("host dies", 2), ("size", 1), ("function", 1), ("late", 2), ("late", 9), ("late, begun", 1))


def main():
    failed = 0
    for name, seed in ONCE_WRONG + TOLD:
        job, _, _, bad, told, of = examined.run_one(name, seed)
        told = told == of or (name, seed) not in TOLD
        print(f"{name}, seed {seed}: {examined.describe(job)}{'' if told else ': not told'}"
              + "".join(f"\n    wrong: {r['syndrome']} {r.get('rank')} {r['evidence_for']}" for r in bad))
        failed += bool(bad) or not told
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
