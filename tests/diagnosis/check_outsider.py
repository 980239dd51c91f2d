#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One seed of each case of outsider.py, and those on which somebody who was well was once named; and tables of
which a line is spoiled: none is read in part."""
import pathlib
import random
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import outsider  # noqa: E402
from tables import PROGRAM  # noqa: E402

JUNK = ("x", "-1", "1e400", "nan", '"', "0x10", "18446744073709551616", "1.5", "\0")


def spoil(rng, text):
    """The table with one number that is none, or a line that ends early."""
    lines = text.splitlines()
    at = rng.randrange(1, len(lines))
    fields = lines[at].split(",")
    column = rng.choice([i for i, name in enumerate(lines[0].split(",")) if name in ("rank", "bytes", "start_ns")])
    fields = fields[:max(1, column)] if rng.random() < 0.2 else [*fields[:column], rng.choice(JUNK), *fields[column + 1:]]
    lines[at] = ",".join(fields)
    return "\n".join(lines) + "\n"


def spoiled(seeds):
    """How many of them are not refused."""
    wrong = 0
    for seed in range(seeds):
        rng = random.Random(f"spoiled{seed}")
        table = outsider.draw(seed, ("never enters",), (outsider.World,), steps=6)
        text = spoil(rng, outsider.text_of(table, table.run(), seed))
        done = subprocess.run([PROGRAM, "diagnose", "--operations", "-", "--json"], input=text.encode(),
                              capture_output=True, check=False)
        if done.returncode != 65 or done.stdout or b"standard input:" not in done.stderr:
            wrong += 1
            print(f"spoiled, seed {seed}: exit {done.returncode}, {done.stdout[:200]!r}, {done.stderr[:200]!r}")
    print(f"spoiled: {seeds} tables, {wrong} not refused")
    return wrong


def main():
    failed = spoiled(25)
    for arguments in (["--seed", "4"], ["--seed", "9", "well, uneven lengths"],
                      ["--seed", "10", "slow to send"], ["--seed", "14", "slow in rings"]):
        failed += outsider.main(["--seeds", "1", *arguments])
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
