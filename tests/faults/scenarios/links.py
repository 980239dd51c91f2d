# SPDX-License-Identifier: Apache-2.0
"""Packets between live programs that vanish, come late or overtake each other, and a link that carries
nothing for a while. Each had been tried alone, most with a peer that was made up.

The agent and the poller reach the daemon, and switches the poller, over wire.py, which knows what it did
not carry: what is counted as missing has to be that, and all that TCP carries has to come once."""
import re
import socket
import struct
from collections import Counter

import honest
import judged
import kit
import wire
from kit import check, equal, until

MICE = 20       # a tick of half a second
JOB_US = 20000  # between operations
REPLACED = "window: 2s\ngrace: 1s\n"
PHASES = (  # name, seconds, what the wire does
    ("late", 4, {"delay_s": 0.15, "tcp_s": 0.05}),
    ("lost, and overtaken", 6, {"loss": 0.08, "delay_s": 0.01, "tcp_s": 0.03, "udp_s": 0.9}),
    ("cut", 2.5, {"cut": True}),
    ("as it should be", 4, {}),
)


def over_the_wire(folder):
    """The three, each reached at the wire's other side."""
    # What a cut and TCP's next attempt after it delay is still in time.
    programs = honest.Programs(folder, "path_refresh: 2s\n", wire.FAR)
    programs.config(programs.daemon, REPLACED, "window: 5s\ngrace: 4s\n")
    for program in (programs.daemon, programs.poller):
        programs.config(program, f"listen: 127.0.0.1:{program.port}", f"listen: :{program.port}")
    poller = programs.poller
    poller.send = lambda datagram: poller.socket.sendto(datagram, (wire.FAR, poller.port))
    return programs


def exporter_series(programs, name):
    """{exporter's address: value}"""
    found = re.findall(rf'^fabrictrace_switchpoll_exporter_{name}_total\{{agent="([^"]+)".*\}} (\d+)$',
                       programs.poller.get("/metrics"), re.M)
    return {agent: int(value) for agent, value in found}


def agent_of(payload):
    return socket.inet_ntoa(payload[8:12])


def carried(flow, payloads):
    """Whether none of these has the packet that was sampled of it."""
    src, dst, sport = flow.key
    key = socket.inet_aton(src) + socket.inet_aton(dst) + struct.pack(">H", sport)
    return not any(key in payload for payload in payloads)


def late(programs):
    """Records that the daemon says came after their window closed."""
    return sum(int(line.split()[-1]) for line in programs.daemon.get("/metrics").splitlines()
               if line.startswith('fabrictraced_records_total{fate="late'))


def bend(programs, link, seconds):
    """Through all phases, as often as that many seconds hold: {phase: {fate: packets}}."""
    told = {name: Counter() for name, _, _ in PHASES}
    for _ in range(max(1, int(seconds / sum(length for _, length, _ in PHASES)))):
        for name, length, how in PHASES:
            before = Counter(link.count)
            link.bend(**how)
            link.over.wait(length)
            told[name] += link.count - before
    programs.connected()
    return told


def judge_datagrams(programs, work, link):
    """By exporter: all that was sent, less what the wire did not carry, which is counted as missing."""
    lost = Counter(agent_of(p) for p in link.lost)
    sent = {e.address: e.sequence for e in work.exporters}
    want = {a: n - lost[a] for a, n in sent.items()}
    until("each datagram that was carried is counted", lambda: exporter_series(programs, "datagrams") == want)
    equal("datagrams by exporter", exporter_series(programs, "datagrams"), want)
    missing = exporter_series(programs, "datagrams_missing")
    equal("missing by exporter, as the wire knows", missing, {a: lost[a] for a in sent})
    overtaken = sum(exporter_series(programs, "datagrams_reordered").values())
    check(f"{overtaken} of {sum(sent.values())} datagrams were overtaken", overtaken > 0)


def judge(programs, work, link, calls, late_ones):
    records = judged.Records(work.sent, programs.job.pid).read(programs.daemon.out)
    equal("calls of NCCL in collective records", records.events, calls)
    equal("collective records twice", [r for r, n in records.operations.items() if n > 1][:2], [])
    gone = sum(not carried(flow, link.lost) for flow in work.sent.mice.values())
    lost = records.lost_mice()
    check(f"{lost} of {len(work.sent.mice)} mice lack the bytes of their sample, {gone} by the wire; "
          f"{late_ones} records are told as late", gone <= lost <= gone + late_ones)
    records.check_paths()
    records.longest_outage()
    records.check_accounts()
    judged.check_memory(programs.peaks)


def run(folder):
    honest.own_network()
    rng = honest.new_rng()
    link = wire.Wire(rng)
    programs, work = over_the_wire(folder), None
    try:
        programs.start()
        programs.start_job(JOB_US)
        work = honest.Work(programs, rng, numbered=False, mice=MICE)
        told = bend(programs, link, honest.asked("FT_SIEGE_SECONDS", 0))
        work.stop()
        print("packets:", {name: dict(fates) for name, fates in told.items()})
        check("each phase did what it is for", told["lost, and overtaken"]["lost"] and told["cut"]["cut"]
              and not told["cut"]["carried"], told)
        for exporter in work.exporters:  # a last one, by which what is missing before it shows
            programs.poller.send(exporter.next())
        judge_datagrams(programs, work, link)
        calls = programs.end_job()
        programs.settle(2)  # of 5 s each
        late_ones = late(programs)
        programs.stop()
        judge(programs, work, link, calls, late_ones)
    finally:
        if work:
            work.over.set()
        programs.kill()
        link.end()
