# SPDX-License-Identifier: Apache-2.0
"""kill -9 of each program under load, at moments that are drawn: what a program had in memory is lost
then, and nothing may be told wrong, told twice or counted twice afterwards. That had been tried of the
agent with a job alone.

Each program is killed three times, or as often as run.py --kills says."""
import time

import honest
import judged
import kit
from kit import check, equal, until

KILLS = 3
PAUSE_S = 2.5  # at most, from a start to the next kill
MICE = 100     # a tick of half a second
JOB_US = 5000  # between operations


class Lives:
    """Kills and starts again; keeps what each daemon left."""

    def __init__(self, programs):
        self.programs, self.outs = programs, []

    def end(self, program):
        self.programs.note_peaks()
        program.kill()
        if program is self.programs.daemon:
            self.keep()
        program.start()

    def keep(self):
        """The next life begins a file of its own, for this one may have ended within a line."""
        out = self.programs.daemon.out
        if out.exists():
            self.outs.append(out.rename(out.with_suffix(f".{len(self.outs)}")))


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
    kills = int(honest.asked("FT_SIEGE_KILLS", KILLS))
    # Bytes that came twice would show in whichever window.
    programs = honest.Programs(folder, "path_refresh: 2s\n")
    work, lives = None, Lives(programs)
    try:
        programs.start()
        programs.start_job(JOB_US)
        work = honest.Work(programs, rng, numbered=False, mice=MICE)
        turns = programs.all * kills
        rng.shuffle(turns)
        for program in turns:
            time.sleep(rng.random() * PAUSE_S)
            lives.end(program)
        programs.connected()
        time.sleep(PAUSE_S)
        work.stop()
        calls = programs.end_job()
        programs.settle()
        programs.stop()
        lives.keep()
        equal("kills", len(lives.outs), kills + 1)
        judge(programs, work, lives, calls)
    finally:
        if work:
            work.over.set()
        programs.kill()
