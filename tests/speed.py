#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How slow this machine is just now, so that what a wait allows follows from it: neighbours that take
the processors make a test late, not wrong.

Limits are written in the seconds that an idle machine of the ordinary kind is given; here they become
those of this one. A wait ends at its state all the same: only a failure takes as long as its limit.
Run as a program it prints the slowness; ./check does so before each step and hands it on in
FT_SLOWNESS."""
import os
import time

VARIABLE = "FT_SLOWNESS"
WORK = 1_500_000
WORK_S = 0.2  # on that machine, on all processors at once
ROUNDS = 2
MOST = 10.0  # beyond that nothing that is about time can be told


def _work_s():
    """How long a piece of work takes while every processor is given one."""
    begun = time.monotonic()
    workers = []
    for _ in range(os.cpu_count() or 1):
        pid = os.fork()
        if not pid:
            total = 0
            for i in range(WORK):
                total += i
            os._exit(0)
        workers.append(pid)
    for pid in workers:
        os.waitpid(pid, 0)
    return time.monotonic() - begun


def measured():
    """By which factor this machine is slower now, 1 at least: the slower of some looks, for a limit
    that is too long costs nothing."""
    return min(MOST, max(1.0, max(_work_s() for _ in range(ROUNDS)) / WORK_S))


def measure_anew():
    """Whoever we start knows it too."""
    os.environ[VARIABLE] = f"{measured():.2f}"
    return float(os.environ[VARIABLE])


def slowness():
    """As measured at the start."""
    try:
        return min(MOST, max(1.0, float(os.environ[VARIABLE])))
    except (KeyError, ValueError):
        return measure_anew()


def limit(seconds):
    """What a limit of so many seconds is here."""
    return seconds * slowness()


def often(times, sanitized):
    """How often a case is drawn for the sake of statistics: less often where sanitizers make programs
    several times slower. They find what a line does wrong the first time it runs."""
    return sanitized if os.environ.get("FT_SANITIZED") == "1" else times


class Deadline:
    """The end of a wait. When it comes, the machine is measured once more: neighbours that came later
    count too."""

    def __init__(self, seconds):
        self.idle_s = seconds
        self.seconds = limit(seconds)
        self.begun = time.monotonic()

    def passed(self):
        if time.monotonic() - self.begun < self.seconds:
            return False
        self.seconds = max(self.seconds, self.idle_s * measured())
        return time.monotonic() - self.begun >= self.seconds


def wait(condition, seconds, pause_s=0.05):
    """Polls a condition until it holds or the time is over. Returns its last value."""
    deadline = Deadline(seconds)
    while not (value := condition()) and not deadline.passed():
        time.sleep(pause_s)
    return value


if __name__ == "__main__":
    print(f"{measured():.2f}")
