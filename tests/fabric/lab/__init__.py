# SPDX-License-Identifier: Apache-2.0
"""A leaf-spine of network namespaces: its layout, its life, its traffic and the truth about it."""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # what all tests share
