# SPDX-License-Identifier: Apache-2.0
"""Eight sparse sealed memfds of any local user killed the agent at its 256 MiB: their rings said that they are
full, and reading the holes in them gave the agent pages of its own.

They come from a process without rights. A job that is as it should be is followed meanwhile."""
import os
import signal
import socket
import struct

import honest
import judged
import kit
import rig
from hostile import NOBODY
from kit import check, until
from segment import Layout

MEMFDS = 8
GROWN_BYTES = 64 << 20


def full(layout):
    """All of it holes, but for what says that every ring is full of records."""
    fd = layout.memory([])
    for ring in range(layout.rings):
        os.pwrite(fd, struct.pack("<QQ", layout.slots, layout.slots), layout.ring_at + ring * layout.ring_bytes)
    return fd


def hand_over(path, layout, told):
    """In a process of nobody's, which holds them until it is killed."""
    pid = os.fork()
    if pid:
        return pid
    try:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        held = []
        for _ in range(MEMFDS):
            s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            s.connect(os.fspath(path))
            fd = full(layout)
            socket.send_fds(s, [layout.hello()], [fd])
            held += [s, fd]
        os.write(told, b"1")
        signal.pause()
    finally:
        os._exit(1)


def run(folder):
    honest.own_network()
    programs, layout, pid = honest.Programs(folder), Layout(), 0
    told, tell = os.pipe()
    try:
        programs.start()
        programs.start_job(20000)
        until("the honest job is followed", lambda: programs.agent.metric("fabrictrace_agent_nccl_jobs") == 1)
        before = kit.resident(programs.agent)
        pid = hand_over(programs.socket, layout, tell)
        check("all are handed over", os.read(told, 1) == b"1")
        until("and followed", lambda: programs.agent.metric("fabrictrace_agent_nccl_jobs") == 1 + MEMFDS)

        def records():
            of = [r for r in rig.of_kind(programs.daemon.records(), "loss") if r["program"] == "fabrictrace-agent"]
            return sum(s["received"] for s in of[-1]["stages"] if s["name"] == "nccl") if of else 0

        size = MEMFDS * layout.rings * layout.slots
        until(f"their {size} records are in the account", lambda: records() >= size)
        grown, peak = kit.resident(programs.agent) - before, kit.peak_bytes(programs.agent)
        check(f"{MEMFDS} memfds of {layout.bytes >> 20} MiB took {grown / 2**20:.1f} MiB of the agent's memory",
              grown < GROWN_BYTES < MEMFDS * layout.bytes, (before, grown))
        programs.note_peaks()
        judged.check_memory({programs.agent.name: peak})
        calls = programs.end_job()
        programs.settle()
        programs.stop()
        records = judged.Records(honest.Sent(), programs.job.pid).read(programs.daemon.out)
        kit.equal("calls of the honest job in collective records", records.events, calls)
        records.check_accounts()
    finally:
        if pid:
            os.kill(pid, 9)
            os.waitpid(pid, 0)
        programs.kill()
