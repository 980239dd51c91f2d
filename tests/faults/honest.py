# SPDX-License-Identifier: Apache-2.0
"""The three programs on loopback and who works with them honestly, so that what comes out can be held
against what went in: switches that sample flows whose paths are known, a training job, packets on
the wire, a peer that numbers its records, and somebody who reads over HTTP.

Flows are elephants, sampled at each of their hops for as long as they live, and mice, of one sample
ever: what is lost or doubled anywhere shows in the bytes of a mouse. Each link between switches has
an elephant at any time, so that all are confirmed."""
import ctypes
import json
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import kit
import rig
from certificates import Authority
from kit import check, until

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "golden" / "switchpoll"), str(TESTS / "fabric")]
import make_captures as sflow  # noqa: E402
from lab import waited  # noqa: E402

JOB = Path("tests/nccl/job").resolve()
PLUGIN = Path("agent/nccl/libnccl-profiler-fabrictrace.so").resolve()
CLONE_NEWNET = 0x40000000
LEAVES = SPINES = 4
RATE = 1000
FRAME_BYTES = len(sflow.ethernet(sflow.udp("10.0.0.1", "10.0.0.2", 1, sflow.bth(10, 1)
                                           + bytes(1000)))) + 4
ONE_SAMPLE_BYTES = RATE * FRAME_BYTES
TICK_S = 0.5
MICE = 2             # a tick
WINDOWS = 4          # that hold what comes late, too
ELEPHANT_S = 30      # the life of one
MOUSE_SPORTS = range(1024, 40000)
WIRE_SPORTS = range(60000, 60004)  # of packets that the agent sees; no switch samples them
INVENTORY = "badpoll=198.51.100.0/24"  # the switches of a poller that is hostile
WIRE_BYTES = 14 + 20 + 8 + 12 + 1000
HOST, OTHER_HOST = "gpu01", "gpu03"
HOST_ADDRESS, PEER_ADDRESS = "10.0.1.2", "10.0.1.6"
PREFIX = {"fabrictraced": "fabrictraced", "fabrictrace-agent": "fabrictrace_agent",
          "fabrictrace-switchpoll": "fabrictrace_switchpoll"}


def own_network():
    """A network namespace with a loopback device that has the addresses of two hosts."""
    if os.geteuid() != 0:
        raise kit.Skipped("needs root")
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "no network namespace can be made")
    for words in ("link set lo up", f"addr add {HOST_ADDRESS}/32 dev lo",
                  f"addr add {PEER_ADDRESS}/32 dev lo"):
        subprocess.run(["ip", *words.split()], check=True)


def processor_s(pid):
    """What a process has used."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@dataclass
class Flow:
    """From port to port of the capture's fabric (golden/daemon/lab), by one spine."""
    source: tuple  # leaf, port
    target: tuple
    spine: int
    sport: int
    born_s: float = 0.0

    @staticmethod
    def address(leaf, port):
        return f"10.0.{leaf}.{4 * port - 2}"

    @property
    def key(self):
        return self.address(*self.source), self.address(*self.target), self.sport

    def hops(self):
        """[(exporter, port in, port out)] by numbers: leaves are 1 to 4, spines 5 to 8."""
        (leaf, port), (last, out) = self.source, self.target
        up, down = 1050 + self.spine, 1050 + self.spine
        return [(leaf, 1000 + port, up), (LEAVES + self.spine, 3000 + leaf, 3000 + last),
                (last, down, 1000 + out)]

    def path(self):
        """As a path record has it."""
        (leaf, port), (last, out) = self.source, self.target
        up = f"Ethernet{50 + self.spine}"
        return [(f"leaf{leaf}", f"Ethernet{port}", up),
                (f"spine{self.spine}", f"Ethernet{leaf}", f"Ethernet{last}"),
                (f"leaf{last}", up, f"Ethernet{out}")]


class Exporter:
    def __init__(self, number):
        self.address, self.begun = f"172.31.1.{number}", time.monotonic()
        self.sequence, self.samples, self.waiting = 0, {}, []

    def sample(self, flow, port_in, port_out):
        n = self.samples[port_in] = self.samples.get(port_in, 0) + 1
        self.waiting.append(sflow.flow_sample(n, (0, port_in), port_in, port_out,
                                              [sflow.roce(*flow.key)], rate=RATE))

    def datagram(self):
        """Of what waits; None: nothing does."""
        return self.next() if self.waiting else None

    def next(self):
        """With what waits, be it nothing."""
        self.sequence += 1
        uptime = int((time.monotonic() - self.begun) * 1000)
        payload = sflow.datagram(self.address, self.sequence, uptime, self.waiting)
        self.waiting = []
        return payload


@dataclass
class Sent:
    """The truth."""
    elephants: dict = field(default_factory=dict)  # {key: Flow}
    mice: dict = field(default_factory=dict)
    numbered: int = 0
    wire_packets: int = 0
    samples: int = 0
    reads: int = 0
    unread: list = field(default_factory=list)
    slowest_read_s: float = 0.0


class Work:
    """A thread that does the honest work until stop()."""

    def __init__(self, programs, rng, numbered=True, mice=MICE):
        self.programs, self.rng, self.sent, self.mice = programs, rng, Sent(), mice
        self.exporters = [Exporter(n + 1) for n in range(LEAVES + SPINES)]
        self.alive, self.renews = {}, True  # elephants; whether others follow them
        self.sports = iter(range(40000, 60000))
        self.over, self.error = threading.Event(), None
        self.peer = programs.peer(OTHER_HOST) if numbered else None
        self.wire = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.wires = []
        for sport in WIRE_SPORTS:
            s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            s.bind((HOST_ADDRESS, sport))
            self.wires.append(s)
        self.sink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.sink.bind((PEER_ADDRESS, 4791))
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        tick = 0
        due = time.monotonic()
        try:
            while not self.over.is_set():
                self.tick(tick)
                tick += 1
                due = max(due + TICK_S, time.monotonic())
                self.over.wait(max(0, due - time.monotonic()))
        except Exception as error:  # told by stop()
            self.error = error

    def tick(self, number):
        self.flows()
        for flow in self.alive.values():
            for exporter, port_in, port_out in flow.hops():
                for _ in range(self.rng.choice((0, 1, 2))):
                    self.sampled(exporter, flow, port_in, port_out)
        for _ in range(self.mice):
            flow = self.mouse(len(self.sent.mice))
            self.sent.mice[flow.key] = flow
            self.sampled(*self.middle(flow))
        for exporter in self.exporters:
            if payload := exporter.datagram():
                self.programs.poller.send(payload)
        for s in self.wires:
            s.sendto(sflow.bth(10, 7) + bytes(1000), (PEER_ADDRESS, 4791))
            self.sent.wire_packets += 1
        if self.peer and number % 2 == 0:
            self.number()
        if number % 8 == 0:
            self.read()

    def sampled(self, exporter, flow, port_in, port_out):
        self.exporters[exporter - 1].sample(flow, port_in, port_out)
        self.sent.samples += 1

    @staticmethod
    def middle(flow):
        exporter, port_in, port_out = flow.hops()[1]
        return exporter, flow, port_in, port_out

    def mouse(self, n):
        """The n-th: no two have the same tuple."""
        places = LEAVES * 2 * (LEAVES - 1) * 2
        sport, place = MOUSE_SPORTS[n // places], n % places
        leaf, rest = place // (2 * (LEAVES - 1) * 2), place % (2 * (LEAVES - 1) * 2)
        other = [x for x in range(1, LEAVES + 1) if x != leaf + 1][rest // 4]
        return Flow((leaf + 1, 1 + rest // 2 % 2), (other, 1 + rest % 2),
                    self.rng.randint(1, SPINES), sport)

    def flows(self):
        """One for each uplink, which is a downlink of another leaf's too."""
        now = time.monotonic()
        for slot in range(LEAVES * SPINES):
            flow = self.alive.get(slot)
            if flow and (not self.renews or now - flow.born_s < ELEPHANT_S):
                continue
            leaf, spine = slot // SPINES + 1, slot % SPINES + 1
            flow = Flow((leaf, self.rng.randint(1, 2)), (leaf % LEAVES + 1, self.rng.randint(1, 2)),
                        spine, next(self.sports), now - (0 if flow else self.rng.random() * 15))
            self.alive[slot] = self.sent.elephants[flow.key] = flow

    def number(self):
        self.sent.numbered += 1
        now = int(time.time() * 1000)
        self.peer.send(kit.record(kit.COLLECTIVE, b"".join((
            kit.number(1, now), kit.number(2, now - 1), kit.number(3, 1000),
            kit.data(4, OTHER_HOST), kit.number(5, 7), kit.data(7, "00000000000000aa"),
            kit.number(8, 0), kit.number(9, 2), kit.data(10, "AllReduce"),
            kit.number(11, self.sent.numbered)))))
        if not self.peer.settled():
            raise RuntimeError("the honest peer's record was not acknowledged")

    def read(self):
        """What somebody looks at."""
        for program, path in ((self.programs.daemon, "/api/v1/imbalance"),
                              (self.programs.agent, "/healthz"), (self.programs.poller, "/healthz")):
            begun = time.monotonic()
            self.sent.reads += 1
            try:
                program.get(path)
            except OSError as error:  # HTTPError is one: the answer is that something is wrong
                if getattr(error, "code", 0) != 503 or path != "/healthz":
                    self.sent.unread.append(f"{program.name}: {error}")
            self.sent.slowest_read_s = max(self.sent.slowest_read_s, time.monotonic() - begun)

    def stop(self):
        self.over.set()
        self.thread.join()
        check("the honest go on to the end", not self.error, repr(self.error))


class Programs:
    """The three, with certificates; .job is a rank of a training job. The daemon is reached at `host`."""

    def __init__(self, folder, settings="", host="localhost"):
        folder.chmod(0o711)  # other users reach the agent's socket
        self.folder, self.authority = folder, Authority(folder)
        at = () if host == "localhost" else (f"IP:{host}",)
        self.daemon = kit.daemon(folder, self.tls("fabrictraced", "DNS:localhost", *at)
                                 + f'  inventory: ["{INVENTORY}"]\nflow_idle: 20s\n{settings}')
        self.config(self.daemon, "source_id: golden\n", "source_id: main\n")
        self.poller = rig.Poller(folder, self.daemon)
        self.agent = rig.Agent(folder, self.daemon)
        self.socket = folder / "nccl.sock"
        for program, kind, source in ((self.poller, "switchpoll", "golden"),
                                      (self.agent, "agent", HOST)):
            cert, key = self.authority.make(program.name, f"URI:fabrictrace://{kind}/{source}")
            self.config(program, f'endpoint: "127.0.0.1:{self.daemon.port}"',
                        f'endpoint: "{host}:{self.daemon.port}", cert: {cert}, key: {key}, '
                        f"ca: {self.authority.ca}")
        self.config(self.agent, "host: golden\n", f"host: {HOST}\nsource_id: {HOST}\n"
                    f"nccl: {{socket: {self.socket}}}\nrdma: {{enabled: false}}\n")
        self.all = [self.daemon, self.poller, self.agent]
        self.peaks, self.job = {}, None

    @staticmethod
    def config(program, old, new):
        text = program.config.read_text()
        assert old in text, (old, text)
        program.config.write_text(text.replace(old, new))

    def tls(self, name, *names):
        cert, key = self.authority.make(name, *names)
        return f"tls:\n  cert: {cert}\n  key: {key}\n  ca: {self.authority.ca}\n"

    def start(self):
        for program in self.all:
            program.start()
        until("the agent listens to jobs", self.socket.exists)
        self.connected()
        return self

    def connected(self):
        until("both are connected", lambda: self.poller.metric(
            "fabrictrace_switchpoll_daemon_connected") + self.agent.metric(
                "fabrictrace_agent_connected") == 2)

    def settle(self, windows=WINDOWS):
        """Until windows have closed over the last samples."""
        name = "fabrictraced_windows_total"
        last = self.daemon.metric(name) + windows
        until("windows close", lambda: self.daemon.metric(name) >= last)

    def start_job(self, pause_us=200000):
        self.job = subprocess.Popen(
            [JOB, PLUGIN, "0", "2", "1000000", str(pause_us)], stdout=subprocess.PIPE, text=True,
            env={**os.environ, "FABRICTRACE_SOCKET": str(self.socket), "FABRICTRACE_JOB": "88"})

    def end_job(self):
        """Calls that it made."""
        self.job.send_signal(signal.SIGTERM)
        return json.loads(self.job.communicate(timeout=rig.WAIT_S)[0])["calls"]

    def context(self, kind, source):
        """For TLS as that peer, certified."""
        import ssl
        cert, key = self.authority.make(f"{kind}-{source}", f"URI:fabrictrace://{kind}/{source}")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(self.authority.ca)
        context.load_cert_chain(cert, key)
        return context

    def peer(self, host):
        context = self.context("agent", host)
        return Peer(self.daemon.port, host, "fabrictrace-agent", 1, context)

    def note_peaks(self):
        for program in self.all:
            self.peaks[program.name] = max(self.peaks.get(program.name, 0), kit.peak_bytes(program))

    def stop(self):
        """In the order in which nothing is left on the way."""
        self.note_peaks()
        for program in (self.agent, self.poller, self.daemon):
            program.stop()

    def kill(self):
        if self.job:
            self.job.kill()
        for program in self.all:
            program.kill()


class Peer(kit.Peer):
    """The same over TLS."""

    def __init__(self, port, source, program, boot_id, context):
        self.context = context
        super().__init__(port, source, program, boot_id)

    def connected(self, port):
        return self.context.wrap_socket(super().connected(port), server_hostname="localhost")


class Steps(threading.Thread):
    """Asks again and again for the longest step of each program's loop, and for its memory. What its threads
    waited for a processor meanwhile is not held against it."""
    LOOK_S = 2

    def __init__(self, programs):
        super().__init__()
        self.programs, self.over = programs, threading.Event()
        self.seen = {p.name: 0.0 for p in programs.all}
        self.worst = {p.name: (0.0, 0.0) for p in programs.all}  # (own, as told)
        self.waits = {}
        self.memory = {p.name: [] for p in programs.all}  # resident, bytes
        self.start()

    def look(self, program):
        self.memory[program.name].append(kit.resident(program))
        try:
            told = program.metric(f"{PREFIX[program.name]}_loop_longest_step_seconds")
        except OSError:
            return  # honest readers are counted elsewhere
        before, now = self.waits.get(program.name, 0.0), waited.of_process(program.process.pid)
        self.waits[program.name] = now
        if told > self.seen[program.name]:
            self.seen[program.name] = told
            self.worst[program.name] = max(self.worst[program.name],
                                           (max(0.0, told - (now - before)), told))

    def run(self):
        while not self.over.wait(self.LOOK_S):
            for program in self.programs.all:
                self.look(program)

    def stop(self):
        self.over.set()
        self.join()
        return self.worst

    def halves(self):
        """{program: (the most memory in the third quarter of the time, in the last one)}"""
        return {name: tuple(max(looks[len(looks) * k // 4:len(looks) * (k + 1) // 4], default=0) for k in (2, 3))
                for name, looks in self.memory.items()}


def new_rng():
    """Of the run's seed, which is printed."""
    seed = os.environ.get("FT_SIEGE_SEED") or str(random.SystemRandom().randrange(1 << 32))
    print(f"seed {seed}", flush=True)
    return random.Random(int(seed))


def asked(variable, standard):
    return float(os.environ.get(variable) or standard)
