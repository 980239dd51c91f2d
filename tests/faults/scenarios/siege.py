# SPDX-License-Identifier: Apache-2.0
"""Hostile records, frames, datagrams, memfds and HTTP at once, while honest peers work. Nobody had ever
tried all together: each fault that the other scenarios stand for was found alone.

Half a minute, or as long as run.py --for says. All together use a fifth of a processor (FT_SIEGE_SHARE),
in a network namespace of their own."""
import time
import urllib.error

import hostile
import honest
import judged
import kit
from kit import check, equal, until

SECONDS = 30
SHARE = 0.2
# Of one thing on a loop, without what its threads waited for a processor. Four hours at load 5 to 29 had 0.15 s at
# most (README.md); a step as long as a fold or a look of the doctor's would be a fault.
STEP_S = 0.5
# By when what has a cap is full, so that memory stays as it is: by as much it may grow in a quarter of the time.
FULL_S = 480
GROWTH = 1.1
GROWTH_BYTES = 8 << 20


def exporters(programs, work):
    """What the poller heard of each honest exporter. Hostile readers may hold the memory of its
    answers for a while: then it refuses others, and says so."""
    try:
        text = programs.poller.get("/metrics").splitlines()
    except urllib.error.HTTPError as refusal:
        if refusal.code != 503:
            raise
        return "the poller refuses another reader for now"
    for exporter in work.exporters:
        for name, want in (("datagrams", exporter.sequence), ("datagrams_missing", 0)):
            line = [x for x in text if x.startswith(
                f"fabrictrace_switchpoll_exporter_{name}_total{{")
                and f'agent="{exporter.address}"' in x]
            if len(line) != 1 or float(line[0].split()[-1]) != want:
                return f"{exporter.address}: {name}: {line}, want {want}"
    return ""


def late(programs):
    """Records that the daemon counts as late since it stood still itself: where others take the
    processors for seconds, that is no loss unless it is not told."""
    name = 'fabrictraced_records_total{fate="late_after_pause"} '
    return sum(int(line.split()[-1]) for line in programs.daemon.get("/metrics").splitlines()
               if line.startswith(name))


def judge(programs, work, steps, calls, late_ones):
    sent = work.sent
    for name, (own, told) in steps.items():
        check(f"longest step of {name}'s loop: {own:.3f} s ({told:.3f} with waits)",
              0 < told and own < STEP_S)
    judged.check_memory(programs.peaks)
    records = judged.Records(sent, programs.job.pid).read(programs.daemon.out)
    print(f"{records.lines} records out; in: {sent.samples} samples, {sent.numbered} numbered "
          f"records, {sent.wire_packets} packets, {calls} calls of NCCL")
    equal("numbered records that are not there once", [
        (n, records.numbered[n]) for n in range(1, sent.numbered + 1)
        if records.numbered[n] != 1][:5], [])
    equal("calls of NCCL in collective records", records.events, calls)
    equal("collective records twice",
          [r for r, n in records.operations.items() if n > 1][:2], [])
    lost = records.lost_mice()
    check(f"{lost} of {len(sent.mice)} mice lack the bytes of their sample; {late_ones} records are told "
          "as late after a pause", lost <= late_ones)
    equal("flows that the agent alone saw", sorted(records.wires), list(honest.WIRE_SPORTS))
    records.check_paths()
    records.check_accounts()
    equal("honest readers without an answer", sent.unread[:5], [])
    print(f"{sent.reads} honest reads over HTTP, the slowest took {sent.slowest_read_s:.2f} s")


def check_flat(steps, seconds):
    """Of a long siege."""
    for name, (before, after) in steps.halves().items():
        check(f"memory of {name} in the third quarter and in the last: {before / 2**20:.1f} and {after / 2**20:.1f} MiB",
              before > 0 and (seconds < FULL_S or after < before * GROWTH + GROWTH_BYTES))


def run(folder):
    honest.own_network()
    rng = honest.new_rng()
    seconds = honest.asked("FT_SIEGE_SECONDS", SECONDS)
    programs = honest.Programs(folder)
    programs.config(programs.daemon, "window: 2s\ngrace: 1s\n", "window: 3s\ngrace: 2s\n")
    work = siege = steps = None
    try:
        programs.start()
        programs.start_job()
        siege = hostile.Siege(programs, rng.getrandbits(32), seconds,
                              honest.asked("FT_SIEGE_SHARE", SHARE))
        work = honest.Work(programs, rng)
        steps = honest.Steps(programs)
        begun = time.monotonic()
        told = siege.join()
        check("the hostile come to their end", told)
        portions, errors = told
        print(f"hostile for {time.monotonic() - begun:.0f} s: {sum(portions.values())} portions: "
              f"{portions}; cut off: {errors}")
        until("the agent counts what no job can have done", lambda: programs.agent.metric(
            "fabrictrace_agent_nccl_implausible_total") > 0)
        work.stop()
        calls = programs.end_job()
        until("each honest datagram is counted", lambda: not exporters(programs, work), 20)
        equal("datagrams of honest exporters", exporters(programs, work), "")
        programs.settle()
        worst = steps.stop()
        check_flat(steps, seconds)
        late_ones = late(programs)
        print("processor time:", ", ".join(
            f"{p.name} {honest.processor_s(p.process.pid):.1f} s" for p in programs.all))
        programs.stop()
        judge(programs, work, worst, calls, late_ones)
    finally:
        if siege:
            siege.end()
        if work:
            work.over.set()
        if steps:
            steps.over.set()
        programs.kill()
