#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tables of stranger.py on which somebody was named wrongly, or nobody though it showed."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import stranger  # noqa: E402

WELL = (("levels", "rank 0 saves", 1), ("sharded", "hosts save", 1), ("one", "rank 0 saves once", 1),
        ("one pipeline", "long tails", 1))
FAULTS = (("late", "sends alone", "plain", 1), ("late", "ring alone", "all save", 1),
          ("late", "one pipeline", "last stage", 2), ("late once", "ring", "plain", 1),
          ("late once", "sends alone", "rank 0 saves", 1), ("never enters", "sharded", "hosts save", 1),
          ("never enters", "one pipeline", "long tails", 1), ("collective stands", "piped", "plain", 1))


def main():
    failed = 0
    for case in [("well", *c) for c in WELL] + list(FAULTS):
        told, bad, about, _ = stranger.run_one(*case)
        print(f"{', '.join(map(str, case))}: {about}{'' if told or case[0] == 'well' else ': not told'}"
              + "".join(f"\n    wrong: {r['syndrome']} {r.get('rank')} {r['evidence_for']}" for r in bad))
        failed += bool(bad) or not (told or case[0] == "well")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
