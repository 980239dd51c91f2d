# SPDX-License-Identifier: Apache-2.0
"""How long programs waited for this machine, so that a limit in seconds holds them to what they do
and not to what they were not let do."""
from bisect import bisect_left, bisect_right
from pathlib import Path

PRESSURE = Path("/proc/pressure")


def total_s():
    """Since boot, how long some program wanted a processor and had none; 0 where the kernel does not
    tell."""
    try:
        some = (PRESSURE / "cpu").read_text().splitlines()[0]
        return int(some.rpartition("total=")[2]) / 1e6
    except (OSError, ValueError, IndexError):
        return 0.0


class Waited:
    """Looks at it again and again, to tell of any time between two looks."""

    def __init__(self):
        self.at_ms = []
        self.total_s = []

    def look(self, now_ms):
        self.at_ms.append(now_ms)
        self.total_s.append(total_s())

    def seconds(self, from_ms, to_ms):
        """Of the looks around this time."""
        if not self.at_ms:
            return 0.0
        first = max(bisect_right(self.at_ms, from_ms) - 1, 0)
        last = min(bisect_left(self.at_ms, to_ms), len(self.at_ms) - 1)
        return self.total_s[last] - self.total_s[first]
