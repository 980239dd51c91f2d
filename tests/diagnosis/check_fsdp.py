#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A seed of each case of fsdp.py, among them those on which ranks that waited for the late one were once named."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import fsdp  # noqa: E402

TOLD = (("late, hybrid", 11), ("late, little work", 9), ("drifts", 3), ("drifts", 4), ("late, all sharded", 3),
        ("host late", 5), ("slow card", 14))
OTHERS = (("well", 5), ("well, noisy", 5), ("noisy rank", 5), ("slow host", 5), ("slow card", 8), ("slow card", 501),
          ("slow card", 502))


def main():
    failed = 0
    for name, seed in TOLD + OTHERS:
        job, _, good, bad = fsdp.run_one(name, seed)
        told = good or (name, seed) not in TOLD
        print(f"{name}, seed {seed}: {job}{'' if told else ': not told'}"
              + "".join(f"\n    wrong: {r['syndrome']} {r.get('rank')} {r['evidence_for']}" for r in bad))
        failed += bool(bad) or not told
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
