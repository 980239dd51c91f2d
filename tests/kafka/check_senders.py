#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A real agent and a real poller that send over a real broker, which is killed (-9) and comes back in
the middle. Every packet that the kernel was given is in the agent's messages once, as kcat reads them
and a decoder of its own; every record that the poller made the daemon has; nothing is dropped, and
what each of the three says of itself adds up. With a spool that holds over restarts: while the broker
is away the agent is ended with SIGTERM and the poller killed with -9. Needs root, for the capture.
usage: check_senders.py (in the build folder)"""
import os
import socket
import struct
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

sys.dont_write_bytecode = True
TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "golden" / "daemon"), str(TESTS / "kafka")]
import broker  # noqa: E402
from live import numbered  # noqa: E402
from rig import (LAB, Agent, Daemon, Poller, check, check_balance, equal, failures,  # noqa: E402
                 drops, last_stages, run_tests, until)
from sflow import datagrams  # noqa: E402

WAIT_S = 240  # on an idle machine
PARTITIONS = 3
FLOWS, PACKETS = 20, 50  # of a flow, in each of two halves
ROCE = 4791
WRITE_ONLY = 10
CAPTURED = 'fabrictrace_agent_processed_total{stage="packets",unit="packets"}'
# Of fabrictrace.proto.
PROGRAM, BOOT, SEQUENCE, COUNT = 1, 3, 4, 6
BATCH, RECORDS, FLOW, TUPLE, SPORT, DIRECTION, DATA_PACKETS, TX = 8, 1, 2, 6, 3, 7, 9, 1


def fields(data):
    """(number, value) of a protobuf message: no code of ours."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
    while at < len(data):
        tag = varint()
        if tag & 7 == 0:
            yield tag >> 3, varint()
            continue
        size = {1: 8, 5: 4}.get(tag & 7) or varint()
        yield tag >> 3, data[at:at + size]
        at += size


def packets_in(envelope):
    """{(port, direction): packets} of the reports of flows."""
    found = Counter()
    for batch in (v for n, v in fields(envelope) if n == BATCH):
        for record in (v for n, v in fields(batch) if n == RECORDS):
            for report in (dict(fields(v)) for n, v in fields(record) if n == FLOW):
                port = dict(fields(report[TUPLE]))[SPORT]
                found[port, report[DIRECTION]] += report.get(DATA_PACKETS, 0)
    return found


def envelopes(endpoint, topic):
    """(partition, envelope) of each message, in its order."""
    text = subprocess.run(["kcat", "-C", "-q", "-e", "-b", endpoint, "-t", f"fabrictrace.ingest.{topic}",
                           "-o", "beginning", "-m", "60", "-f", "%p %R%s"], capture_output=True).stdout
    at = 0
    while at < len(text):
        space = text.index(b" ", at)
        size, = struct.unpack_from(">i", text, space + 1)
        yield int(text[at:space]), text[space + 5:space + 5 + size]
        at = space + 5 + size


def captured(endpoint, repeated):
    """repeated: what is there twice, byte for byte, counts once."""
    found = Counter()
    sent = [one for _, one in envelopes(endpoint, "flows")]
    for one in set(sent) if repeated else sent:
        found.update(packets_in(one))
    return found


class Traffic:
    """Packets of RoCEv2's form, sent by the kernel's own stack, and a fabric's sampled ones."""

    def __init__(self, poller):
        self.poller, self.sent, self.packets = poller, 0, 0
        self.payloads = [p for _, p in datagrams((LAB / "sflow.pcap").read_bytes())]
        self.sockets = []
        for _ in range(FLOWS):
            s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            s.bind(("127.0.0.1", 0))
            self.sockets.append(s)

    def arrived(self, endpoint, repeated=False):
        """Whether each packet is in the topic, once. Others may send on this host, too."""
        found = captured(endpoint, repeated)
        # Of what a host sends to itself the capture has one side.
        return all(found[s.getsockname()[1], TX] == self.packets for s in self.sockets)

    def send(self):
        frame = struct.pack(">BBHII", WRITE_ONLY, 0, 0xffff, 17, 0) + bytes(100)
        for _ in range(PACKETS):
            for s in self.sockets:
                s.sendto(frame, ("127.0.0.1", ROCE))
            time.sleep(0.01)
        self.packets += PACKETS
        for payload in self.payloads[:500]:
            self.poller.send(numbered(payload, self.sent))
            self.sent += 1
            if self.sent % 50 == 0:
                until("datagrams are read", lambda: self.poller.metric(
                    "fabrictrace_switchpoll_datagrams_received_total") >= self.sent)

    def close(self):
        for s in self.sockets:
            s.close()


def over_kafka(program, endpoint, more="message_timeout: 1h"):
    text = program.config.read_text()
    program.config.write_text(text[:text.index("daemon:")] +
                              f"kafka: {{brokers: \"{endpoint}\", partitions: {PARTITIONS}, "
                              f"{more}}}\n")
    return program


def transport(program, name):
    """Of its records: (came in, processed, waiting, dropped)."""
    def value(what):
        return sum(float(line.rsplit(None, 1)[1]) for line in program.get("/metrics").splitlines()
                   if line.startswith(f"{name}_{what}{{stage=\"transport\"") and
                   'unit="records"' in line)
    return tuple(int(value(what)) for what in ("received_total", "processed_total", "pending"))


def test_senders(folder):
    kafka = folder / "kafka"
    broker.start(kafka)
    endpoint = broker.address(kafka)
    daemon = agent = poller = traffic = None
    try:
        daemon = Daemon(folder, (LAB / "topology.yaml").read_text())
        daemon.config.write_text(daemon.config.read_text() + "kafka: {ingest: yes, partitions: "
                                 f"{PARTITIONS}, brokers: \"{endpoint}\"}}\n")
        daemon.start()
        poller = over_kafka(Poller(folder, daemon), endpoint)
        agent = over_kafka(Agent(folder, daemon), endpoint)
        agent.config.write_text(agent.config.read_text() + f"filter: udp dst port {ROCE}\n"
                                "report_interval: 1s\nrdma: {enabled: false}\n")
        poller.start()
        agent.start()
        traffic = Traffic(poller)
        agent.log_says("capturing on")
        traffic.send()
        until("all packets are in the topic", lambda: traffic.arrived(endpoint), WAIT_S)
        broker.end(kafka, 9, 60)
        traffic.send()
        for program, name in ((agent, "fabrictrace_agent"), (poller, "fabrictrace_switchpoll")):
            until(f"{program.name}: records wait while the broker is away",
                  lambda: transport(program, name)[2] > 0, WAIT_S)
        broker.start(kafka)
        until("all packets of both halves are in the topic", lambda: traffic.arrived(endpoint), WAIT_S)
        agent.stop()
        poller.stop()
        traffic.close()
        judge(daemon, endpoint)
    finally:
        for program in (agent, poller, daemon):
            if program:
                program.kill()
        broker.end(kafka, 15, 60)


def spooled_bytes(folder):
    return sum(f.stat().st_size for f in folder.glob("*")) if folder.exists() else 0


def records_by_start(endpoint, program):
    """{start of the program: records} of what it put into the topics, by its numbers: none is missing.
    Who is ended may leave messages in the spool that did arrive; the next start sends these once more."""
    found, seen = Counter(), {}
    for topic in ("flows", "state", "reports"):
        for partition, one in envelopes(endpoint, topic):
            e = {n: v for n, v in fields(one) if n != BATCH}
            if e[PROGRAM] != program.encode():
                continue
            numbers = seen.setdefault((topic, partition, e[BOOT]), {})
            if numbers.setdefault(e[SEQUENCE], one) is one:
                found[e[BOOT]] += e[COUNT]
            elif numbers[e[SEQUENCE]] != one:
                check(f"{program}: two messages of one number are the same", False, (topic, e[SEQUENCE]))
    gaps = {k[:2]: sorted(n) for k, n in seen.items() if sorted(n) != list(range(1, len(n) + 1))}
    equal(f"{program}: no number is missing", gaps, {})
    return found


def test_spool(folder):
    """The broker is away over the end of both: nothing that was in a spool is lost."""
    kafka = folder / "kafka"
    broker.start(kafka)
    endpoint = broker.address(kafka)
    agent = poller = traffic = None
    try:
        tcp = Daemon(folder, (LAB / "topology.yaml").read_text())  # never started: its port alone
        poller, agent = (over_kafka(p, endpoint, f"spool: {folder / p.name}.spool, spool_after: 100ms")
                         for p in (Poller(folder, tcp), Agent(folder, tcp)))
        agent.config.write_text(agent.config.read_text() + f"filter: udp dst port {ROCE}\n"
                                "report_interval: 1s\nrdma: {enabled: false}\n")
        spools = {p: folder / f"{p.name}.spool" for p in (agent, poller)}
        names = {agent: "fabrictrace_agent", poller: "fabrictrace_switchpoll"}
        for p in names:
            p.start()
        traffic = Traffic(poller)
        agent.log_says("capturing on")
        traffic.send()
        until("all packets are in the topic", lambda: traffic.arrived(endpoint), WAIT_S)
        broker.end(kafka, 9, 60)
        before = agent.metric(CAPTURED)
        empty = {p: spooled_bytes(s) for p, s in spools.items()}
        traffic.send()
        for p in names:
            until(f"{p.name}: its spool takes over", lambda: spooled_bytes(spools[p]) > empty[p] + 1000,
                  WAIT_S)
        traffic.send()
        until("the poller has made more", lambda: transport(poller, names[poller])[2] > 0, WAIT_S)
        received, sent, waiting = transport(poller, names[poller])
        equal("the poller drops nothing", received, sent + waiting)
        poller.kill()
        until("the agent has all packets", lambda: agent.metric(CAPTURED) >= before + 2 * FLOWS * PACKETS,
              WAIT_S)
        agent.stop()
        for p in names:
            p.start()
        traffic.sent = 0
        agent.log_says("capturing on", 2)
        traffic.send()
        broker.start(kafka)
        until("all packets are in the topic, of both starts", lambda: traffic.arrived(
            endpoint, repeated=True), WAIT_S)
        for p in names:
            until(f"{p.name}: nothing waits", lambda: transport(p, names[p])[2] == 0, WAIT_S)
            now = transport(p, names[p])
            equal(f"{p.name}: nothing is dropped", now[0], now[1])
        records_by_start(endpoint, agent.name)
        starts = records_by_start(endpoint, poller.name)
        check("of the start that was killed all is there that was in its account",
              any(n >= received for n in starts.values()), (received, starts))
    finally:
        if traffic:
            traffic.close()
        for program in (agent, poller):
            if program:
                program.kill()
        broker.end(kafka, 15, 60)


def messages(endpoint, topic):
    """How many are in it."""
    text = subprocess.run(["kcat", "-C", "-q", "-e", "-b", endpoint, "-t", topic, "-o", "beginning",
                           "-m", "60", "-f", "%p\\n"], capture_output=True, text=True).stdout
    return len(text.splitlines())


def judge(daemon, endpoint):
    """What the senders made is what the daemon has, by their own numbers of what they sent."""
    def sent():
        records = [r for r in daemon.records() if r["schema"] == "fabrictrace.loss.v1"]
        last = {r["program"]: {s["name"]: s for s in r["stages"]} for r in records}
        return {p: last.get(p, {}).get("transport", {}).get("received", 0)
                for p in ("fabrictrace-agent", "fabrictrace-switchpoll")}

    there = sum(messages(endpoint, f"fabrictrace.ingest.{t}") for t in ("flows", "state", "reports"))
    until(f"the daemon has read all {there} messages", lambda: daemon.metric(
        'fabrictraced_processed_total{stage="messages",unit="messages"}') >= there, WAIT_S)
    daemon.stop()
    records = daemon.records()
    stages = last_stages(records, "fabrictraced")
    print(f"sent: {sent()}; the daemon: {stages['topics']}, {stages['messages']}", flush=True)
    equal("nothing came over TCP", stages["peers"]["received"], 0)
    equal("the senders dropped nothing", stages["topics"]["received"], stages["topics"]["processed"])
    # Their last loss records tell of all before them, not of themselves.
    equal("the daemon has what both say that they sent, and what says so",
          stages["topics"]["processed"], sum(sent().values()) + len(sent()))
    check_balance("all three", records)
    for program in ("fabrictrace-agent", "fabrictrace-switchpoll"):
        equal(f"{program}: dropped on the way to the broker", sum(drops(
            last_stages(records, program)["transport"]).values()), 0)


if __name__ == "__main__":
    if os.geteuid() != 0:
        sys.exit("FAIL: the agent's capture needs root")
    try:
        broker.fetch()
    except broker.Lacking as lack:
        sys.exit(f"FAIL: no Kafka broker: {lack}")
    code = run_tests(test_senders, test_spool)
    print(f"{'FAIL' if failures else 'PASS'}: agent and poller lose nothing while the broker is away")
    sys.exit(code)
