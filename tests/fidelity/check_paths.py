#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The daemon judged on a few generated fabrics: one small run of each case. What must hold stands in
paper/limits.py; run.py says more of what does not."""
import sys

sys.dont_write_bytecode = True
import run  # noqa: E402

FLOWS, SECONDS = "100", "100"

if __name__ == "__main__":
    sys.exit(run.main(["--build", ".", "--check", "--flows", FLOWS, "--seconds", SECONDS,
                       "--seed", "2", "--explain", "1", "--only", "wrong"]))
