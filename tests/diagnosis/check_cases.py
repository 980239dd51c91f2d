#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One seed of each case of run.py, for `make check`: every fault is told, and nothing else."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import run  # noqa: E402

sys.argv = [sys.argv[0], "--seeds", "1", "--seed", "4"]
sys.exit(run.main())
