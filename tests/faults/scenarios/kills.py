# SPDX-License-Identifier: Apache-2.0
"""kill -9 of each program under load, at moments that are drawn: what a program had in memory is lost
then, and nothing may be told wrong, told twice or counted twice afterwards. That had been tried of the
agent with a job alone.

Each program is killed three times, or as often as run.py --kills says; else as long as --for says."""
import math
import os
import time
from collections import Counter

import honest
import judged
import kit
from kit import check, equal, until

KILLS = 3
PAUSE_S = 2.5  # at most, from a start to the next kill
MICE = 100     # a tick of half a second
JOB_US = 5000  # between operations
# By when paths are there again: the window of a start is partial, and one more may miss a sample.
AGAIN_S = 6


class Lives:
    """Kills and starts again; keeps what each daemon left."""

    def __init__(self, programs):
        self.programs, self.outs, self.killed = programs, [], Counter()

    def end(self, program):
        self.programs.note_peaks()
        program.kill()
        self.killed[program.name] += 1
        if program is self.programs.daemon:
            self.keep()
        program.start()

    def keep(self):
        """The next life begins a file of its own, for this one may have ended within a line."""
        out = self.programs.daemon.out
        if out.exists():
            self.outs.append(out.rename(out.with_suffix(f".{len(self.outs)}")))


def turns(programs, rng):
    """Whom to kill, fabrictraced last: as often as --kills says, else as long as --for does."""
    ends = time.monotonic() + (0 if "FT_SIEGE_KILLS" in os.environ else honest.asked("FT_SIEGE_SECONDS", 0))
    kills = int(honest.asked("FT_SIEGE_KILLS", KILLS))
    while True:
        some = programs.all * kills
        some.remove(programs.daemon)
        rng.shuffle(some)
        yield from some
        yield programs.daemon
        if time.monotonic() >= ends:
            return


def told_again(programs, since_ms):
    """{elephant: the first window since then in which its path is known}"""
    first = {}
    for r in programs.daemon.records():
        if r["schema"] == "fabrictrace.path.v1" and r["state"] == "resolved" and r["window_start_ms"] >= since_ms:
            flow = r["flow"]
            first.setdefault((flow["src"], flow["dst"], flow["sport"]), r["window_start_ms"])
    return first


def outage(programs, work):
    """After the last kill, when all are there again."""
    work.renews = False
    since_ms = time.time() * 1000
    want = {flow.key for flow in list(work.alive.values())}
    until(f"{len(want)} paths are told again", lambda: want and want <= set(told_again(programs, since_ms)))
    first = told_again(programs, since_ms)
    took_s = max(first.get(key, math.inf) - since_ms for key in want) / 1000
    check(f"{len(want)} elephants have a path {took_s:.1f} s after the last kill at the latest",
          took_s < kit.rig.speed.limit(AGAIN_S))


def judge(programs, work, lives, calls):
    records = judged.Records(work.sent, programs.job.pid)
    for out in lives.outs:
        records.read(out)
    judged.check_memory(programs.peaks)
    records.check_paths()
    records.longest_outage()
    records.check_accounts()
    lost = records.lost_mice()
    check(f"{len(work.sent.mice) - lost} of {len(work.sent.mice)} mice came through",
          lost < len(work.sent.mice))
    twice = [r for r, n in records.operations.items() if n > 1]
    equal("collective records twice", twice[:2], [])
    check(f"{records.events} of {calls} calls of NCCL are in collective records",
          0 < records.events <= calls)


def run(folder):
    honest.own_network()
    rng = honest.new_rng()
    # Bytes that came twice would show in whichever window.
    programs = honest.Programs(folder, "path_refresh: 2s\n")
    work, lives = None, Lives(programs)
    try:
        programs.start()
        programs.start_job(JOB_US)
        work = honest.Work(programs, rng, numbered=False, mice=MICE)
        for program in turns(programs, rng):
            time.sleep(rng.random() * PAUSE_S)
            lives.end(program)
        programs.connected()
        outage(programs, work)
        work.stop()
        calls = programs.end_job()
        programs.settle()
        programs.stop()
        lives.keep()
        check(f"each was killed {len(lives.outs) - 1} times", set(lives.killed.values()) == {len(lives.outs) - 1}
              and len(lives.killed) == len(programs.all), lives.killed)
        judge(programs, work, lives, calls)
    finally:
        if work:
            work.over.set()
        programs.kill()
