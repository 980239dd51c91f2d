#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One seed of some cases of daemon.py, for `make check`: every fault is told, and nothing else."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import daemon  # noqa: E402

sys.argv = [sys.argv[0], "--seeds", "1", "--seed", "4", "stopped", "host dies", "transfer stands",
            "other order", "late", "slow link", "mixed", "alien flow", "lossy link", "slow pair from flows alone",
            "transfer stands, clocks apart", "host dies, clocks apart",
            "fabric, healthy", "healthy", "healthy, one rank saves"]
sys.exit(daemon.main())
