#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One seed of some cases of liar.py, for `make check`: a job that lies changes nothing of an honest one's."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import liar  # noqa: E402

sys.argv = [sys.argv[0], "--seeds", "1", "--seed", "4", "healthy, goes back", "stopped, same name", "stopped, silent",
            "stopped, many comms", "transfer stands, ranks taken", "transfer stands, ranks closed",
            "late, own and theirs", "late, sums", "other order, a million"]
sys.exit(liar.main())
