# SPDX-License-Identifier: Apache-2.0
"""How long programs waited for this machine, so that a limit in seconds holds them to what they do
and not to what they were not let do."""
from bisect import bisect_left, bisect_right
from pathlib import Path

PRESSURE = Path("/proc/pressure")
LOOK_MS = 500


def total_s():
    """Since boot, how long some program wanted a processor and had none; 0 where the kernel does not
    tell."""
    try:
        some = (PRESSURE / "cpu").read_text().splitlines()[0]
        return int(some.rpartition("total=")[2]) / 1e6
    except (OSError, ValueError, IndexError):
        return 0.0


def of_process(pid):
    """How long the threads of a process and of its children, seconds, stood in a run queue so far."""
    total_ns = 0
    for child in (pid, *_children(pid)):
        for file in Path(f"/proc/{child}/task").glob("*/schedstat"):
            try:
                total_ns += int(file.read_text().split()[1])
            except (OSError, ValueError, IndexError):
                pass
    return total_ns / 1e9


def _children(pid):
    try:
        return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []


class Waited:
    """Looks at it again and again, to tell of any time between two looks."""

    def __init__(self):
        self.at_ms = []
        self.total_s = []

    def look(self, now_ms):
        self.at_ms.append(now_ms)
        self.total_s.append(self._total())

    @staticmethod
    def _total():
        return total_s()

    @staticmethod
    def _between(first, last):
        return last - first

    def seconds(self, from_ms, to_ms):
        """Of the looks around this time."""
        if not self.at_ms:
            return 0.0
        first = max(bisect_right(self.at_ms, from_ms) - 1, 0)
        last = min(bisect_left(self.at_ms, to_ms), len(self.at_ms) - 1)
        return self._between(self.total_s[first], self.total_s[last])


class WaitedOnTheWay(Waited):
    """The same of the programs that a sample passes alone: one of the exporters, then the rest. pids:
    gives both lists."""

    def __init__(self, pids):
        super().__init__()
        self.pids = pids

    def look(self, now_ms):
        # Every look reads some files of each process.
        if not self.at_ms or now_ms >= self.at_ms[-1] + LOOK_MS:
            super().look(now_ms)

    def _total(self):
        return [{pid: of_process(pid) for pid in some} for some in self.pids()]

    @staticmethod
    def _between(first, last):
        (exporters, rest), (exporters_last, rest_last) = first, last
        return max((total - exporters.get(pid, 0) for pid, total in exporters_last.items()),
                   default=0) + sum(total - rest.get(pid, 0) for pid, total in rest_last.items())
