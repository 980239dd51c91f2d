# SPDX-License-Identifier: Apache-2.0
"""Exporters that do not exist, by the hundred thousand: sFlow has no authentication, so that a datagram
each in the name of ever another switch costs its sender nothing. Thousands had been tried.

The poller has a list of its switches, as security(7) asks for: all else is refused, and counted.

First no faster than the poller takes them: those of honest exporters are all there. Then while the
poller stands still: what the kernel drops then, by the kernel's own count, is in the poller's account.
FT_SPOOFED is another number of them, 1000000 for what is measured in README.md; run.py --for lets more of
them come for so long."""
import signal
import socket
import struct
import time
from pathlib import Path

import honest
import judged
import rig
from honest import sflow
from kit import check, equal, until

MANY = 200_000
FLOOD = 20_000
BURST = 250  # datagrams, after which the socket's queue is looked at
AGENT_AT = 8  # bytes, of the agent's address in a datagram
FIRST = 0x64400000  # 100.64.0.0
LISTED = "172.31.1.0/24"
SHARE_OF_BUFFER = 0.25
PAUSE_S = 0.002


def queue_of(port):
    """(bytes that wait, datagrams dropped) of the socket, by the kernel."""
    for line in Path("/proc/net/udp").read_text().splitlines()[1:]:
        fields = line.split()
        if int(fields[1].rsplit(":", 1)[1], 16) == port:
            return int(fields[4].rsplit(":", 1)[1], 16), int(fields[-1])
    raise RuntimeError("the poller's socket is gone")


class Forger:
    def __init__(self, poller):
        self.port, self.sent = poller.port, 0
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.connect(("127.0.0.1", poller.port))
        self.room = SHARE_OF_BUFFER * poller.metric("fabrictrace_switchpoll_receive_buffer_bytes")
        self.datagram = bytearray(sflow.datagram("100.64.0.0", 1, 1000, [sflow.flow_sample(
            1, (0, 1), 1, 2, [sflow.roce("10.9.0.1", "10.9.0.2", 50000)])]))

    def send(self, count, paced):
        """Each of an exporter that there was not before."""
        for i in range(self.sent, self.sent + count):
            struct.pack_into(">I", self.datagram, AGENT_AT, FIRST + i)
            self.socket.send(self.datagram)
            if paced and i % BURST == 0:
                while queue_of(self.port)[0] > self.room:
                    time.sleep(PAUSE_S)
        self.sent += count


def datagrams(programs):
    return {fate: int(programs.poller.metric(f"fabrictrace_switchpoll_datagrams_{fate}_total"))
            for fate in ("received", "processed", "dropped")}


def told(program, series):
    """What is not 0 of a series, by its label."""
    lines = [line.rsplit(None, 1) for line in program.get("/metrics").splitlines() if line.startswith(series)]
    return {name.split('"')[1]: int(float(value)) for name, value in lines if float(value)}


def exporters_heard(programs, work):
    """What it knows of each honest one: {address: (datagrams, missing)}"""
    text = programs.poller.get("/metrics").splitlines()
    heard = {}
    for exporter in work.exporters:
        of = [line for line in text if f'agent="{exporter.address}"' in line]
        heard[exporter.address] = tuple(
            int(float(line.split()[-1])) for name in ("datagrams", "datagrams_missing") for line in of
            if line.startswith(f"fabrictrace_switchpoll_exporter_{name}_total{{"))
    return heard


def judge(programs, work, calls):
    sent = work.sent
    records = judged.Records(sent, programs.job.pid).read(programs.daemon.out)
    equal("numbered records that are not there once", [
        n for n in range(1, sent.numbered + 1) if records.numbered[n] != 1][:5], [])
    equal("calls of NCCL in collective records", records.events, calls)
    records.check_paths()
    records.longest_outage()
    records.check_accounts()
    judged.check_memory(programs.peaks)


def run(folder):
    honest.own_network()
    rng = honest.new_rng()
    programs, work = honest.Programs(folder, "path_refresh: 2s\n"), None
    programs.config(programs.poller, "source_id: golden\n", f"source_id: golden\nexporters: [{LISTED}]\n")
    try:
        programs.start()
        programs.start_job()
        work = honest.Work(programs, rng)
        until("each honest exporter is known", lambda: all(exporters_heard(programs, work).values()))
        forger = Forger(programs.poller)
        ends = time.monotonic() + honest.asked("FT_SIEGE_SECONDS", 0)
        forger.send(int(honest.asked("FT_SPOOFED", MANY)), True)
        while time.monotonic() < ends:
            forger.send(FLOOD, True)
        want = {e.address: (e.sequence, 0) for e in work.exporters}
        until("of the honest all came", lambda: all(
            heard[0] >= want[address][0] and heard[1] == 0
            for address, heard in exporters_heard(programs, work).items()))
        print("samples:", told(programs.poller, "fabrictrace_switchpoll_samples_dropped_total{"),
              "records:", told(programs.daemon, "fabrictraced_records_total{"))
        work.stop()
        stopped = programs.poller.process
        stopped.send_signal(signal.SIGSTOP)
        forger.send(FLOOD, False)
        stopped.send_signal(signal.SIGCONT)
        total = forger.sent + sum(e.sequence for e in work.exporters)
        until("all is taken", lambda: datagrams(programs)["received"] == total)
        dropped = queue_of(forger.port)[1]
        check(f"{dropped} datagrams were dropped by the kernel", dropped > 0)
        equal("all others that nobody listed, and those alone, are refused",
              told(programs.poller, "fabrictrace_switchpoll_datagrams_dropped_total{"),
              {"kernel_buffer": dropped, "unlisted": forger.sent - dropped})
        equal("the honest ones are processed", datagrams(programs)["processed"], total - forger.sent)
        calls = programs.end_job()
        programs.settle()
        programs.stop()
        account = rig.last_stages(programs.daemon.records(), "fabrictrace-switchpoll")["datagrams"]
        equal("its account has the same", {reason: n for reason, n in rig.drops(account).items() if n},
              {"kernel_buffer": dropped, "unlisted": forger.sent - dropped})
        judge(programs, work, calls)
    finally:
        if work:
            work.over.set()
        programs.kill()
