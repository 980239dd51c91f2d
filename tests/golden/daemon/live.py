#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The daemon and the poller as they run, on loopback: reload, broken input from the network, and a
daemon that goes and comes back. FT_WRAP puts a command before both programs (valgrind)."""
import json
import os
import random
import signal
import socket
import struct
import sys
import threading
import time

sys.dont_write_bytecode = True
import rig  # noqa: E402
import sflow  # noqa: E402
from rig import check, equal, of_kind, until  # noqa: E402

TOPOLOGY = (rig.LAB / "topology.yaml").read_text()
HELLO, WELCOME, DATA, ACK, REFUSE = 1, 2, 3, 4, 5
VERSION = 1
RECORD_LOSS, LOSS_SOURCE, LOSS_PROGRAM = 4, 2, 3  # field numbers of fabrictrace.proto


def real_datagram():
    """(payload, its samples) of one with several samples whose end is not padding."""
    for _, payload in sflow.datagrams((rig.LAB / "sflow.pcap").read_bytes()):
        _, samples = sflow.samples_in(payload)
        if len(samples) >= 3 and all(form == sflow.FLOW_SAMPLE for form, _ in samples):
            return payload, len(samples)
    raise ValueError("no such datagram in the capture")


def numbered(payload, number):
    """The datagram as the exporter's number-th, so that it is no repetition."""
    return payload[:16] + struct.pack(">II", number, 1000 * number) + payload[24:]


def test_reload(folder):
    daemon = rig.Daemon(folder, TOPOLOGY).start()
    try:
        before = daemon.get("/api/v1/topology")
        equal("topology served", json.loads(before)["fabric"], "capture")
        config = daemon.config.read_text()
        link = "  - {a: leaf1, a_port: Ethernet51, b: spine1, b_port: Ethernet1}\nhosts:\n"
        refused = 0
        for what, topology, text in (
                ("a duplicate link", TOPOLOGY.replace("hosts:\n", link), config),
                ("a topology that is no YAML", "fabric: [\n", config),
                ("an unknown key", TOPOLOGY.replace("capture", "other"), config + "windw: 1s\n"),
                ("a contradiction", TOPOLOGY.replace("capture", "other"),
                 config.replace("grace: 1s", "grace: 3s")),
                ("an absent topology", TOPOLOGY, config.replace("topology.yaml", "none.yaml"))):
            daemon.topology.write_text(topology)
            daemon.config.write_text(text)
            daemon.hang_up()
            refused += 1
            daemon.log_says("reload failed", refused)
            check(f"{what}: the old topology stays", daemon.get("/api/v1/topology") == before)
        # Who rotates files has no part in that.
        rotated = daemon.out.with_suffix(".0")
        daemon.out.rename(rotated)
        daemon.hang_up()
        daemon.log_says("reload failed", refused + 1)
        until("a reload that fails opens the sink's file anew", daemon.out.exists)
        rotated.unlink()
        check("the reason is told", ": the link from 'leaf1' Ethernet51 to 'spine1' Ethernet1 is "
              "defined twice" in daemon.log.read_text(), daemon.log.read_text())
        daemon.config.write_text(config)
        for number, name in enumerate(("first", "second", "third"), 1):
            daemon.topology.write_text(TOPOLOGY.replace("fabric: capture", f"fabric: {name}"))
            daemon.hang_up()
            daemon.log_says("reloaded the topology", number)
            equal(f"{name}: taken over", json.loads(daemon.get("/api/v1/topology"))["fabric"], name)
        check("metrics after all that", "fabrictraced_flows 0\n" in daemon.get("/metrics"))
        daemon.out.rename(daemon.out.with_suffix(".1"))
        daemon.out.mkdir()
        daemon.hang_up()
        daemon.log_says(f"sink 'file:{daemon.out}': Is a directory")
        daemon.out.rmdir()
        daemon.hang_up()
        until("the sink's file is there again", lambda: of_kind(daemon.records(), "loss"))
        daemon.stop()
        equal("the last accounting's source", of_kind(daemon.records(), "loss")[-1]["source"],
              "golden")
    finally:
        daemon.kill()


def test_metrics(folder):
    """Two files are two sinks; Prometheus refuses a page that names one series twice."""
    daemon = rig.Daemon(folder, TOPOLOGY)
    second = folder / 'second "copy".ndjson'
    config = daemon.config.read_text()
    daemon.config.write_text(config.replace("sinks: [", f"sinks: ['file:{second}', "))
    daemon.start()
    try:
        until("both are written", lambda: second.exists() and of_kind(daemon.records(), "loss"))
        series = [line.rsplit(" ", 1)[0] for line in daemon.get("/metrics").splitlines()
                  if not line.startswith("#")]
        equal("series that are there twice", sorted({s for s in series if series.count(s) > 1}), [])
        name = str(second).replace('"', '\\"')
        check("each sink by its name", f'fabrictraced_sink_pending{{sink="file:{name}"}}' in series
              and f'fabrictraced_sink_pending{{sink="file:{daemon.out}"}}' in series,
              [s for s in series if "sink" in s])
        daemon.stop()
    finally:
        daemon.kill()


def bad_datagrams(good):
    """Cut at every byte, and garbage."""
    rng = random.Random(1)
    yield from (good[:length] for length in range(len(good)))
    yield from (rng.randbytes(rng.randrange(1, 1400)) for _ in range(100))
    yield struct.pack(">I", 4) + good[4:]
    yield good[:4] + struct.pack(">I", 3) + good[8:]
    yield good[:24] + struct.pack(">I", 0xFFFFFFFF) + good[28:]


def test_bad_datagrams(folder):
    poller = rig.Poller(folder).start()
    prefix = "fabrictrace_switchpoll_"
    try:
        good, samples = real_datagram()
        sent = 0
        for datagram in bad_datagrams(good):
            poller.send(datagram)
            sent += 1
            if sent % 50 == 0:  # no more at once than a small socket buffer takes
                until("datagrams are read", lambda: poller.metric(
                    f"{prefix}datagrams_received_total") >= sent)
        poller.send(good)
        until("the good one's observations", lambda: of_kind(poller.records(), "observation"))
        poller.stop()
        records = poller.records()
        rig.check_balance("bad datagrams", records)
        stages = rig.last_stages(records, "fabrictrace-switchpoll")
        drops = rig.drops(stages["datagrams"])
        equal("bad datagrams: all told from the good one",
              (stages["datagrams"]["received"], stages["datagrams"]["processed"],
               sum(drops.values())), (sent + 1, 1, sent))
        equal("bad datagrams: reasons", sorted(drops), ["malformed", "not_sflow_v5", "truncated"])
        equal("bad datagrams: no sample of theirs, each of the good one's",
              (stages["samples"]["received"],
               sum(r["samples"] for r in of_kind(records, "observation"))), (samples, samples))
    finally:
        poller.kill()


def frame(kind, body):
    return struct.pack(">IB", 1 + len(body), kind) + body


class Peer:
    """Speaks the transport by hand."""

    def __init__(self, port, boot_id):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=rig.WAIT_S)
        name = b"test"
        self.socket.sendall(frame(HELLO, struct.pack(">BQB", VERSION, boot_id, len(name)) + name
                                  + b"by-hand"))
        kind, body = self.receive()
        self.applied = struct.unpack(">BQ", body)[1] if kind == WELCOME else None

    def receive(self):
        """(type, body), or None at the end."""
        with_length = self.exactly(4)
        if with_length is None:
            return None
        body = self.exactly(struct.unpack(">I", with_length)[0])
        return body[0], body[1:]

    def exactly(self, count):
        data = b""
        while len(data) < count:
            part = self.socket.recv(count - len(data))
            if not part:
                return None
            data += part
        return data

    def data(self, sequence, payload):
        """The answer to a payload."""
        self.socket.sendall(frame(DATA, struct.pack(">Q", sequence) + payload))
        return self.receive()


def field(number, data):
    return bytes([number << 3 | 2, len(data)]) + data


def test_bad_batches(folder):
    daemon = rig.Daemon(folder, TOPOLOGY).start()
    try:
        for garbage in (b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 100, bytes(100),
                        frame(DATA, bytes(9))):
            with socket.create_connection(("127.0.0.1", daemon.port), timeout=rig.WAIT_S) as s:
                s.sendall(garbage)
                s.shutdown(socket.SHUT_WR)
                while s.recv(4096):
                    pass
        # A Loss record: time_ms 1, source, program.
        loss = b"\x08\x01" + field(LOSS_SOURCE, b"by-hand") + field(LOSS_PROGRAM, b"test")
        good = field(1, field(RECORD_LOSS, loss))
        sequence = 0
        for length in range(1, len(good)):
            peer = Peer(daemon.port, 7)
            if peer.applied != sequence:
                check("the payload before is not asked for again", False, peer.applied)
            sequence += 1
            answer = peer.data(sequence, good[:length])
            if not answer or answer[0] != REFUSE:
                check(f"a batch cut at byte {length} is refused", False, answer)
            peer.socket.close()
        peer = Peer(daemon.port, 7)
        equal("a good batch is acknowledged", peer.data(sequence + 1, good),
              (ACK, struct.pack(">Q", sequence + 1)))
        peer.socket.sendall(frame(DATA, struct.pack(">Q", sequence + 1) + good))
        equal("a batch behind one that comes again", peer.data(sequence + 2, b""),
              (ACK, struct.pack(">Q", sequence + 2)))
        sources = [r["source"] for r in json.loads(daemon.get("/api/v1/loss"))["records"]]
        check("the good record arrived", "by-hand" in sources, sources)
        daemon.stop()
        stage = rig.last_stages(daemon.records(), "fabrictraced")["transport"]
        equal("batches: received, applied, refused",
              (stage["received"], stage["processed"], rig.drops(stage)),
              (sequence + 3, 2, {"refused": sequence, "duplicate": 1}))
        rig.check_balance("bad batches", daemon.records())
    finally:
        daemon.kill()


class Sender(threading.Thread):
    """Sends a hundred times a second, until stop()."""

    def __init__(self, send):
        super().__init__(daemon=True)
        self.send, self.sent, self.over = send, 0, False

    def run(self):
        while not self.over:
            self.sent += 1
            self.send(self.sent)
            time.sleep(0.01)

    def stop(self):
        self.over = True
        self.join()


def delivered(poller):
    return poller.metric("fabrictrace_switchpoll_records_delivered_total")


def restart(folder, number, code):
    """A daemon that ends by a signal while records come, and its successor. Returns the records of
    both, what the poller had acknowledged when the first was gone, and the datagrams sent."""
    payload, _ = real_datagram()
    daemon = rig.Daemon(folder, TOPOLOGY).start()
    poller = rig.Poller(folder, daemon).start()
    sender = Sender(lambda number: poller.send(numbered(payload, number)))
    try:
        sender.start()
        until("paths come", lambda: json.loads(daemon.get("/api/v1/paths"))["total"])
        until("records come in batch after batch", lambda: delivered(poller) >= 100)
        daemon.stop(number, code)
        # Once it has seen the end it has read every acknowledgement before it.
        until("the poller sees the end", lambda: not poller.metric(
            "fabrictrace_switchpoll_daemon_connected"))
        until("records wait while the daemon is away", lambda: poller.metric(
            "fabrictrace_switchpoll_records_pending") > 10)
        acknowledged = delivered(poller)
        first = daemon.take_records()
        daemon.start()
        until("what waited is delivered", lambda: delivered(poller) > acknowledged + 10)
        until("paths come again", lambda: json.loads(daemon.get("/api/v1/paths"))["total"])
        again = delivered(poller)
        until("and new records with them", lambda: delivered(poller) >= again + 50)
        sender.stop()
        poller.stop()
        daemon.stop()
        return first, daemon.records(), acknowledged, sender.sent
    finally:
        sender.over = True
        poller.kill()
        daemon.kill()


def check_restart(second, before, sent):
    """before: records that the first daemon has acknowledged."""
    rig.check_balance("restart", second)
    polled = rig.last_stages(second, "fabrictrace-switchpoll")
    equal("restart: datagrams sent and processed",
          (polled["datagrams"]["received"], polled["datagrams"]["processed"]), (sent, sent))
    equal("restart: samples in observations", (polled["samples"]["processed"],
          polled["samples"]["pending"]), (sent * real_datagram()[1], 0))
    equal("restart: no record dropped on the way", rig.drops(polled["transport"]), {})
    after = rig.last_stages(second, "fabrictraced")["records"]
    # The last accounting of the poller is itself one more record.
    equal("restart: each record was taken over by one daemon, once",
          before + after["received"], polled["transport"]["received"] + 1)
    print(f"   {before:.0f} records to the first daemon, {after['received']} to the second, of "
          f"these late: {rig.drops(after).get('late', 0)}")


def test_restart(folder):
    first, second, acknowledged, sent = restart(folder, signal.SIGTERM, 0)
    check_restart(second, acknowledged, sent)
    equal("restart: all that the first received is acknowledged",
          rig.last_stages(first, "fabrictraced")["records"]["received"], acknowledged)


def test_kill(folder):
    _, second, acknowledged, sent = restart(folder, signal.SIGKILL, -signal.SIGKILL)
    check_restart(second, acknowledged, sent)


def test_agent(folder):
    """The agent's records find their way, also to a daemon that was away."""
    if os.geteuid():
        print("skipped: capturing on the loopback interface needs root")
        return
    daemon = rig.Daemon(folder, TOPOLOGY)
    agent = rig.Agent(folder, daemon).start()
    write = struct.pack(">BBHII", 0x0A, 0, 0xFFFF, 17, 0) + bytes(100)
    packets = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    packets.bind(("127.0.0.9", 0))
    sport = packets.getsockname()[1]
    sender = Sender(lambda _: packets.sendto(write, ("127.0.0.1", 4791)))
    try:
        sender.start()
        until("the agent sees packets", lambda: agent.metric(
            "fabrictrace_agent_processed_total") >= 50)
        until("reports wait for the daemon", lambda: agent.metric(
            "fabrictrace_agent_flow_reports_total") >= 2)
        daemon.start()
        until("the flow is published", lambda: [
            r for r in of_kind(daemon.records(), "path") if r["flow"]["sport"] == sport])
        sender.stop()
        agent.stop()
        daemon.stop()
        records = daemon.records()
        rig.check_balance("agent", records)
        path = [r for r in of_kind(records, "path") if r["flow"]["sport"] == sport][-1]
        equal("agent: the flow's path", (path["state"], path.get("role")), ("unresolved", "data"))
        equal("agent: each record reached the daemon, once",
              rig.last_stages(records, "fabrictraced")["records"]["received"],
              rig.last_stages(records, "fabrictrace-agent")["transport"]["received"] + 1)
    finally:
        sender.over = True
        agent.kill()
        daemon.kill()


if __name__ == "__main__":
    sys.exit(rig.run_tests(test_reload, test_metrics, test_bad_datagrams, test_bad_batches,
                           test_restart, test_kill, test_agent))
