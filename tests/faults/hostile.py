# SPDX-License-Identifier: Apache-2.0
"""Everything hostile at once, from a process of its own without rights: records that a certified host
and a certified poller make up, broken frames, datagrams, memory handed to the agent, HTTP, packets.

Attacks are methods of Hostile named attack_..., each a small portion; which comes next is drawn. They
never claim to be one of the honest by name or exporter's address, which certificates and the network
keep from them; anything else may come. The programs' processor time, the honest ones' and this one's
together are kept to a share of one processor."""
import fcntl
import os
import random
import socket
import ssl
import struct
import sys
import time
from collections import Counter, deque
from pathlib import Path

import honest
import kit
from kit import data, number
from madeup import EXTREMES, MadeUp
from make_captures import bth, datagram, flow_sample, roce, udp
from segment import F_ADD_SEALS, SHRINK_GROW, Layout

CORPUS = Path(__file__).resolve().parents[1] / "fuzz" / "corpus"
NOBODY = 65534
HELD = 200            # connections and memory that are kept, the oldest goes
PATIENCE_S = 0.5      # for an answer
REST_S = 5.0          # at most after a portion
EVIL_HOST, EVIL_POLLER = "evil", "badpoll"
EVIL_PORTS = 3000     # source ports of made-up flows: they would fill the disk with path records
SWITCHES = "198.51.100."
AGENTS_KINDS = ("flow", "loss", "host", "communicator", "collective", "progress", "host_status",
                "queue_pairs")
POLLERS_KINDS = ("observation", "observation", "counters", "switch_report", "loss", "processor")


def mutated(rng, blob):
    """A few bytes changed, cut out or doubled."""
    out = bytearray(blob)
    for _ in range(rng.randint(0, 6)):
        if not out:
            break
        at = rng.randrange(len(out))
        kind = rng.random()
        if kind < 0.5:
            out[at] = rng.choice((0, 0x7f, 0x80, 0xff, rng.randrange(256)))
        elif kind < 0.65:
            out[at:at + 8] = struct.pack(">Q", rng.choice(EXTREMES))
        elif kind < 0.8:
            del out[at:at + rng.randint(1, 16)]
        else:
            out[at:at] = out[at:at + rng.randint(1, 64)]
    return bytes(out)


class Hostile:
    def __init__(self, programs, rng, contexts):
        self.rng, self.contexts, self.layout = rng, contexts, Layout()
        self.ingest = programs.daemon.port
        self.http = [p.http for p in programs.all]
        self.sflow, self.job_socket = programs.poller.port, os.fspath(programs.socket)
        self.held, self.count, self.errors = deque(), Counter(), Counter()
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.seeds = {name: [p.read_bytes() for p in sorted((CORPUS / name).iterdir())]
                      for name in ("batch", "sflow", "frame", "packet")}
        self.links = {}
        self.of_agent = self.made_up({"host": EVIL_HOST, "source": EVIL_HOST,
                                      "program": "fabrictrace-agent"})
        self.of_poller = self.made_up({"agent": self.switch, "source": EVIL_POLLER,
                                       "program": "fabrictrace-switchpoll"})
        self.of_anybody = self.made_up({})
        self.attacks = [getattr(self, name) for name in sorted(dir(self))
                        if name.startswith("attack_")]

    def hold(self, thing):
        self.held.append(thing)
        while len(self.held) > HELD:
            self.held.popleft().close()

    def connect(self, port):
        return socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)

    def link(self, kind, source):
        """A connection as that peer, the one there was or a new one."""
        link = self.links.get((kind, source))
        if not link:
            program = {"agent": "fabrictrace-agent", "switchpoll": "fabrictrace-switchpoll"}[kind]
            link = self.links[kind, source] = honest.Peer(self.ingest, source, program,
                                                          self.rng.getrandbits(63),
                                                          self.contexts[kind])
            link.socket.settimeout(PATIENCE_S)
            if not link.answer or link.answer[0] != kit.WELCOME:
                raise OSError("not welcome")
        return link

    def deliver(self, kind, source, payload):
        try:
            link = self.link(kind, source)
            link.send(payload)
            if not link.settled():
                raise OSError("refused")
        except (OSError, struct.error):
            # Cut off, as it should be now and then.
            link = self.links.pop((kind, source), None)
            if link:
                link.close()
            raise

    # Made-up records

    def flow(self):
        src, dst = (struct.pack(">I", 0x0A090000 + self.rng.randrange(8)) for _ in range(2))
        return (data(1, src) + data(2, dst) + number(3, self.rng.randrange(EVIL_PORTS))
                + number(4, 4791) + number(5, 17))

    def switch(self):
        return socket.inet_aton(SWITCHES + str(self.rng.randrange(256)))

    def made_up(self, own):
        """Other values may be those of the honest."""
        leaf = f"172.31.1.{self.rng.randint(1, 4)}"
        return MadeUp(self.rng, {"flow": self.flow, **own},
                      ("gpu01", "gpu03", "leaf1", "spine1", "Ethernet1", EVIL_HOST),
                      (self.switch(), *map(socket.inet_aton, (leaf, "10.0.1.2", "10.9.0.1"))))

    def attack_records_of_an_agent(self):
        rng = self.rng
        self.deliver("agent", EVIL_HOST, b"".join(
            self.of_agent.record(rng.choice(AGENTS_KINDS))
            for _ in range(rng.choice((1, 20, 200)))))

    def attack_records_of_a_poller(self):
        rng = self.rng
        self.deliver("switchpoll", EVIL_POLLER, b"".join(
            self.of_poller.record(rng.choice(POLLERS_KINDS))
            for _ in range(rng.choice((1, 20, 200)))))

    def attack_records_of_others(self):
        """That no certificate allows, or no program sends."""
        kind, source, made = self.rng.choice((("agent", EVIL_HOST, self.of_anybody),
                                              ("switchpoll", EVIL_POLLER, self.of_anybody)))
        self.deliver(kind, source, b"".join(
            made.record(self.rng.choice(sorted(made.kinds))) for _ in range(20)))

    def attack_broken_batches(self):
        kind, source = self.rng.choice((("agent", EVIL_HOST), ("switchpoll", EVIL_POLLER)))
        self.deliver(kind, source, mutated(self.rng, self.rng.choice(self.seeds["batch"])))

    def attack_long_records(self):
        long = self.rng.choice((
            kit.record(kit.LOSS, number(1, 1) + data(2, EVIL_HOST) + data(3, "fabrictrace-agent")
                       + data(4, data(1, b"x" * 4000000))),
            kit.record(kit.HOST_STATUS, number(2, 1000) + data(3, EVIL_HOST) + data(4, EVIL_HOST)
                       + data(6, b"x" * 100) * 20000)))
        self.deliver("agent", EVIL_HOST, long)

    # Frames

    def attack_frames_without_a_certificate(self):
        s = self.connect(self.ingest)
        s.sendall(self.rng.choice((
            b"", b"\x16\x03\x01", self.rng.randbytes(300), b"GET / HTTP/1.1\r\n\r\n",
            mutated(self.rng, self.rng.choice(self.seeds["frame"])))))
        self.hold(s)

    def attack_half_frames(self):
        """Of a certified host; its newer connection replaces the older."""
        peer = honest.Peer(self.ingest, EVIL_HOST, "fabrictrace-agent", 1, self.contexts["agent"])
        self.links.pop(("agent", EVIL_HOST), None)
        self.hold(peer)
        peer.socket.settimeout(PATIENCE_S)
        rng = self.rng
        peer.socket.sendall(rng.choice((
            struct.pack(">IBQ", kit.FRAME_MAX - 4, kit.DATA, 1) + bytes(rng.randrange(1 << 20)),
            struct.pack(">IB", 0xFFFFFFFF, kit.DATA), struct.pack(">I", 0),
            kit.frame(rng.randrange(256), rng.randbytes(rng.randrange(40))),
            kit.frame(kit.DATA, struct.pack(">Q", rng.choice(EXTREMES)) + b"\x0a\x00") * 3,
            kit.frame(kit.HELLO, rng.randbytes(30)),
            mutated(rng, rng.choice(self.seeds["frame"])))))

    # Datagrams and packets

    def attack_datagrams(self):
        for _ in range(20):
            self.udp.sendto(mutated(self.rng, self.rng.choice(self.seeds["sflow"]))[:60000],
                            ("127.0.0.1", self.sflow))

    def attack_exporters(self):
        """Whole datagrams of ever new exporters, with numbers that make no sense."""
        rng = self.rng
        for _ in range(10):
            samples = [flow_sample(rng.choice(EXTREMES) % 2**32, (rng.randrange(3), 1),
                                   rng.randrange(2**32), rng.randrange(2**30),
                                   [roce("10.9.0.1", "10.9.0.2", rng.randrange(EVIL_PORTS))],
                                   rate=rng.choice((0, 1, 1000, 2**32 - 1)),
                                   drops=rng.randrange(2**32)) for _ in range(rng.randint(1, 5))]
            agent = f"100.{rng.randrange(64, 128)}.{rng.randrange(256)}.{rng.randrange(256)}"
            self.udp.sendto(datagram(agent, rng.choice(EXTREMES) % 2**32, rng.randrange(2**32),
                                     samples), ("127.0.0.1", self.sflow))

    def attack_packets(self):
        """Of RoCEv2 on the interface that the agent captures from."""
        for _ in range(20):
            body = bth(self.rng.randrange(256), self.rng.randrange(2**24))
            self.udp.sendto(mutated(self.rng, body + self.rng.randbytes(60)), (
                f"127.0.{self.rng.randrange(4)}.{self.rng.randrange(1, 200)}", 4791))

    # Memory for the agent

    def segment(self):
        """What looks like a job's memory, and is not."""
        rng, layout = self.rng, self.layout
        fd = os.memfd_create("evil", os.MFD_ALLOW_SEALING)
        os.ftruncate(fd, rng.choice((0, 4096, layout.bytes, layout.bytes, layout.bytes,
                                     layout.bytes + 4096, 1 << 40)))
        head = layout.head()
        if rng.random() < 0.3:
            head = mutated(rng, head)
        try:
            os.pwrite(fd, head, 0)
            if os.fstat(fd).st_size == layout.bytes:
                self.scribble(fd)
            if rng.random() < 0.8:
                fcntl.fcntl(fd, F_ADD_SEALS, rng.choice((SHRINK_GROW, SHRINK_GROW, 2, 15)))
        except OSError:
            pass  # what could be made is handed over
        return fd

    def scribble(self, fd):
        """Counters, records and what is in flight."""
        rng, layout = self.rng, self.layout
        for ring in range(rng.randint(0, layout.rings)):
            at = layout.ring_at + ring * layout.ring_bytes
            os.pwrite(fd, struct.pack("<QQ", *(rng.choice(
                (5, layout.slots, *EXTREMES)) for _ in range(2))), at)
            os.pwrite(fd, rng.randbytes(64), at + layout.open_at)
            os.pwrite(fd, rng.randbytes(512),
                      layout.record_at + ring * layout.slots * layout.record_bytes)
            for flight in range(4):
                body = struct.pack("<IHH", 2, rng.choice((3, 4, 9)), rng.randrange(16))
                body += rng.randbytes(layout.flight_bytes - len(body))
                os.pwrite(fd, body, layout.flight_at + layout.flight_bytes * (
                    ring * layout.open + flight))
        os.pwrite(fd, rng.randbytes(2000), layout.counters_at)

    def lying_job(self):
        """A job all of whose counters are garbage, for certain."""
        fd = self.layout.memory([])
        os.pwrite(fd, b"\xfd" * 128, self.layout.ring_at)
        s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.hold(s)
        s.connect(self.job_socket)
        socket.send_fds(s, [self.layout.hello()], [fd])
        os.close(fd)

    def attack_memory(self):
        s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        s.settimeout(PATIENCE_S)
        self.hold(s)
        s.connect(self.job_socket)
        hello = self.layout.hello()
        kind = self.rng.random()
        if kind < 0.15:
            return  # silent
        if kind < 0.3:
            s.sendall(mutated(self.rng, hello) or b"x")
            return
        fds = [self.segment() for _ in range(self.rng.choice((1, 1, 1, 1, 5)))]
        try:
            socket.send_fds(s, [hello], fds)
        finally:
            for fd in fds:
                os.close(fd)

    # HTTP

    def attack_http(self):
        rng = self.rng
        s = self.connect(rng.choice(self.http))
        self.hold(s)
        path = rng.choice(("/api/v1/paths", "/api/v1/matrix", "/api/v1/loss", "/api/v1/links",
                           "/api/v1/events", "/api/v1/doctor", "/api/v1/topology", "/metrics",
                           "/healthz", "/", "/%00", "/../../etc/passwd", "/" + "a" * 20000,
                           "/api/v1/paths?host=" + "%ff" * 200, "/api/v1/explain?flow=::-::",
                           "/api/v1/events?kind=\x1b[2J"))
        host = rng.choice(("127.0.0.1", "localhost", "evil.example", "x" * 9000, "\x00"))
        lines = f"{rng.choice(('GET', 'GET', 'GET', 'POST', 'BREW'))} {path} HTTP/1.{rng.randrange(3)}" \
                f"\r\nHost: {host}\r\n".encode()
        s.sendall(rng.choice((lines + b"\r\n", (lines + b"\r\n") * 5, lines,
                              lines + b"Content-Length: 99999999999\r\n\r\n",
                              lines + b"A: b\r\n" * 3000, rng.randbytes(2000),
                              mutated(rng, lines + b"\r\n"))))
        if rng.random() < 0.5:
            s.recv(65536)  # others do not read

    def attack_silence(self):
        """Connections that say nothing."""
        for port in (self.ingest, *self.http):
            self.hold(self.connect(port))

    def go_on(self, ends, used_s, share):
        """Until that moment; used_s() is the processor time of all."""
        begun, before = time.monotonic(), used_s()
        while (now := time.monotonic()) < ends:
            attack = self.rng.choice(self.attacks)
            self.count[attack.__name__[7:]] += 1
            try:
                attack()
            except (OSError, ssl.SSLError, struct.error) as error:
                self.errors[f"{attack.__name__[7:]}: {type(error).__name__}"] += 1
            ahead = (used_s() - before) / share - (time.monotonic() - begun)
            time.sleep(min(max(0.0, ahead), REST_S, max(0.0, ends - now)))


class Siege:
    """The process. join() gives the portions of each attack."""

    def __init__(self, programs, seed, seconds, share):
        contexts = {"agent": programs.context("agent", EVIL_HOST),
                    "switchpoll": programs.context("switchpoll", EVIL_POLLER)}
        pids = [p.process.pid for p in programs.all] + [os.getpid()]
        hostile = Hostile(programs, random.Random(seed), contexts)
        self.told, tell = os.pipe()
        self.pid = os.fork()
        if self.pid:
            os.close(tell)
            return
        code = 1
        try:
            os.nice(10)
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            pids.append(os.getpid())
            hostile.lying_job()
            hostile.go_on(time.monotonic() + seconds,
                          lambda: sum(map(honest.processor_s, pids)), share)
            os.write(tell, repr((dict(hostile.count), dict(hostile.errors))).encode())
            code = 0
        except BaseException as error:
            print(f"hostile: {error!r}", file=sys.stderr, flush=True)
        finally:
            os._exit(code)

    def join(self):
        _, status = os.waitpid(self.pid, 0)
        self.pid = 0
        with open(self.told) as told:
            text = told.read()
        import ast
        return ast.literal_eval(text) if status == 0 else None

    def end(self):
        if self.pid:
            os.kill(self.pid, 9)
            os.waitpid(self.pid, 0)
            self.pid = 0
