# SPDX-License-Identifier: Apache-2.0
"""A wall clock that jumps by an hour, there and back, under a program that runs: ahead and back for each
of the three, in an order that is drawn. That had been tried in virtual time alone.

libfaketime changes what a program takes for Unix time, by a file that it reads again and again; what is
monotonic stays. Records of times that cannot be are refused and counted; nothing is told wrong, twice
or without an account, and what is measured after the clocks are right again is as before."""
import random
import sys
import time
from pathlib import Path

import honest
import judged
from kit import check, equal, until

LIBRARY = next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), None)
JUMPS_S = (3600, -3600)
NEAR_S = 60
MICE = 10


class Clock:
    """Of one program, before it is started."""

    def __init__(self, program, folder):
        self.program, self.file = program, folder / f"{program.name}.clock"
        self.turn(0)
        self.file.chmod(0o644)  # of programs that give up root, too
        program.command = [
            "env", f"LD_PRELOAD={LIBRARY}", f"FAKETIME_TIMESTAMP_FILE={self.file}",
            "FAKETIME_CACHE_DURATION=1", "FAKETIME_DONT_FAKE_MONOTONIC=1", *program.command]

    def turn(self, seconds):
        self.file.write_text(f"{seconds:+d}\n")

    def seen(self, programs, seconds):
        """Whether the daemon shows that this clock is so far ahead: by its windows, or by an event. None
        stands where all are right."""
        skewed = programs.daemon.get("/api/v1/events?kind=clock_skew")
        if self.program is programs.daemon:
            end_s = self.program.metric("fabrictraced_window_end_timestamp_seconds")
            return abs(end_s - time.time() - seconds) < NEAR_S and (seconds or "subject" not in skewed)
        return f'"{self.program.name}/' in skewed if seconds else "subject" not in skewed


def fates(programs):
    return {line.split('"')[1]: int(line.split()[-1]) for line in programs.daemon.get("/metrics").splitlines()
            if line.startswith("fabrictraced_records_total{")}


def are_resolved_since(programs, work, moment_ms):
    """Whether each flow in the second half of its life has a path in a window that began after that."""
    born_s = time.monotonic() - honest.ELEPHANT_S / 2
    want = {flow.key for flow in list(work.alive.values()) if flow.born_s < born_s}
    return want and want <= {
        (r["flow"]["src"], r["flow"]["dst"], r["flow"]["sport"]) for r in programs.daemon.records()
        if r["schema"] == "fabrictrace.path.v1" and r["state"] == "resolved" and r["window_start_ms"] > moment_ms}


def judge(programs, work, calls):
    records = judged.Records(work.sent, programs.job.pid).read(programs.daemon.out)
    check(f"{records.events} of {calls} calls of NCCL are in collective records", 0 < records.events <= calls)
    equal("numbered records that are there twice", [n for n, k in records.numbered.items() if k > 1][:5], [])
    equal("collective records twice", [r for r, n in records.operations.items() if n > 1][:2], [])
    print(f"{records.lost_mice()} of {len(work.sent.mice)} mice lack the bytes of their sample")
    records.check_paths()
    records.check_accounts()
    judged.check_memory(programs.peaks)


def run(folder):
    if not LIBRARY:
        sys.exit("libfaketime is not installed: packaging/install-deps test")
    honest.own_network()
    rng = honest.new_rng()
    programs, work = honest.Programs(folder, "path_refresh: 2s\n"), None
    clocks = [Clock(program, folder) for program in programs.all]
    try:
        programs.start()
        programs.start_job()
        work = honest.Work(programs, rng, mice=MICE)
        turns = [(clock, seconds) for clock in clocks for seconds in JUMPS_S]
        random.Random(rng.getrandbits(32)).shuffle(turns)
        for clock, seconds in turns:
            for ahead_s in (seconds, 0):
                clock.turn(ahead_s)
                until(f"the clock of {clock.program.name} is seen at {ahead_s:+d} s",
                      lambda c=clock, s=ahead_s: c.seen(programs, s))
            print(f"{clock.program.name} by {seconds:+d} s: {fates(programs)}")
        right_ms = time.time() * 1000
        programs.connected()
        until("paths are told again", lambda: are_resolved_since(programs, work, right_ms))
        work.stop()
        calls = programs.end_job()
        programs.settle()
        programs.stop()
        judge(programs, work, calls)
    finally:
        if work:
            work.over.set()
        programs.kill()
