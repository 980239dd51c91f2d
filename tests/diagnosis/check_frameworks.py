#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tables of frameworks.py on which somebody was named wrongly, and faults beside them that are told."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import frameworks  # noqa: E402

WELL = (("snapshots", "sharded", 2), ("snapshots", "buckets", 1), ("snapshots", "megatron", 3),
        ("snapshots", "interleaved", 3), ("snapshots", "interleaved", 12), ("snapshots", "experts", 3),
        ("snapshots", "expert sends", 1), ("all pause", "megatron", 1), ("all pause", "megatron", 3),
        ("all pause", "megatron", 22), ("several", "expert sends", 1), ("several", "interleaved", 11),
        ("cut", "zero", 1), ("tails lost", "buckets", 2))
FAULTS = (("stopped", "megatron", 1), ("stopped", "experts", 2), ("slow rank", "hybrid", 1),
          ("late once", "hybrid", 2), ("late once", "expert sends", 3), ("late once", "experts", 31),
          ("swapped order", "sharded", 2), ("other bytes", "experts", 1))


def main():
    failed = 0
    for case in WELL + FAULTS:
        told, bad, _, about, _ = frameworks.run_one(*case)
        untold = case in FAULTS and not told
        print(f"{', '.join(map(str, case))}: {about}{': not told' if untold else ''}"
              + "".join(f"\n    wrong: {r['syndrome']} {r.get('rank')} {r['evidence_for']}" for r in bad[:3]))
        failed += bool(bad) or untold
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
