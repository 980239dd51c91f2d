# SPDX-License-Identifier: Apache-2.0
"""The job of lab.py: its processes, the memory that they share (trainer.h), its queue pairs and the paths
that the kernel gives them; and who says whose queue pairs they are."""
import mmap
import os
import struct
import sys
import threading
import time
from collections import defaultdict
from ipaddress import IPv4Address
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "faults"))
import kit  # noqa: E402
from lab.fabric import COLLECTOR_IP, LabError, in_netns  # noqa: E402
from lab.pipeline import INGEST  # noqa: E402
from lab.traffic import Flow  # noqa: E402
from lab.truth import kernel_paths  # noqa: E402

RANKS, GPUS, HOSTS, REPLICAS, SLOTS = 64, 8, 8, 4, 4
WORDS = LATE_US, ONCE_MS, PROXY, ORDER, SEND, RECEIVE, DRIFT_US, PAUSE_MS = range(8)
SPORT_FIRST, QP_FIRST = 0xc100, 1000
SHARED_BYTES = 1 << 16
STEPS_AT = 4 * RANKS * len(WORDS)
REPEAT_S = 5
FLOW_TX, TUPLE_OBSERVED = 1, 1


def program(build, name):
    path = Path(build) / name
    if not path.exists():
        raise LabError(f"not built: {path}")
    return path


def host_of(rank):
    return rank // GPUS


def peer_of(rank, slot):
    """As pair_peer() of trainer.h."""
    gpu, host = rank % GPUS, rank // GPUS
    stage, replica = divmod(host, REPLICAS)
    if slot < 2:
        return (stage * REPLICAS + (replica + (1, -1)[slot]) % REPLICAS) * GPUS + gpu
    if slot == 2:
        return ((1 - stage) * REPLICAS + replica) * GPUS + gpu
    return (host + 1) % HOSTS * GPUS + gpu


def number_of(rank, slot):
    return rank * SLOTS + slot


class Peer(kit.Peer):
    """An agent's connection, from within its host's namespace."""

    def __init__(self, fabric, host):
        self.fabric, self.host = fabric, host
        super().__init__(int(INGEST.rpartition(":")[2]), f"{host}-rdma", "fabrictrace-agent", time.time_ns())

    def connected(self, port):
        def connect():
            s = kit.socket.socket()
            s.settimeout(60)
            s.connect((COLLECTOR_IP, port))
            return s
        return in_netns(self.fabric.netns(self.host), connect)


class Owners:
    """Says every few seconds of each queue pair whose process it is and its numbers: what agents read from
    the kernel's list of queue pairs where there are RDMA devices."""

    def __init__(self, fabric):
        self.fabric, self.job = fabric, None
        self.peers = [Peer(fabric, host.name) for host in fabric.layout.hosts]
        self.over = threading.Event()
        self.lock = threading.Lock()
        self.thread = threading.Thread(target=self._work, daemon=True)
        self.thread.start()

    def say(self, job):
        with self.lock:
            self.job = job
            self._send()

    def _work(self):
        while not self.over.wait(REPEAT_S):
            with self.lock:
                try:
                    self._send()
                except OSError as error:
                    print(f"owners: {error}", flush=True)
                    return

    def _send(self):
        if not self.job:
            return
        now = time.time_ns() // 1_000_000
        for index, peer in enumerate(self.peers):
            records = [kit.record(kit.FLOW, self._flow(rank, slot, now)) for rank in range(RANKS)
                       if host_of(rank) == index for slot in range(SLOTS)]
            peer.send(b"".join(records))
            if not peer.settled():
                raise OSError(f"{peer.host}: not acknowledged")

    def _flow(self, rank, slot, now):
        job = self.job
        flow = job.flow(rank, slot)
        qp = QP_FIRST + number_of(rank, slot)
        tuple_ = (kit.data(1, IPv4Address(flow.src).packed) + kit.data(2, IPv4Address(flow.dst).packed)
                  + kit.number(3, flow.sport) + kit.number(4, 4791) + kit.number(5, 17))
        return (kit.number(1, now) + kit.number(2, REPEAT_S * 1000) + kit.number(3, job.begun_ms)
                + kit.data(4, job.layout.hosts[host_of(rank)].name) + kit.data(6, tuple_)
                + kit.number(7, FLOW_TX) + kit.number(8, TUPLE_OBSERVED)
                + kit.data(14, kit.number(1, qp) + kit.number(2, qp))
                + kit.number(15, job.pid(rank)) + kit.data(16, "trainer") + kit.data(17, job.name))

    def close(self):
        self.over.set()
        self.thread.join()
        for peer in self.peers:
            peer.close()


class Job:
    """64 ranks and 8 cards, which run."""

    def __init__(self, lab, name, seed, compute, jitter, uneven=0.0, evaluate=0, last_stage=1.0):
        self.fabric, self.layout, self.name = lab.fabric, lab.fabric.layout, name
        self.owners = lab.owners
        self.begun_ms = time.time_ns() // 1_000_000
        shared = self.fabric.dir / f"job-{name}"
        shared.write_bytes(bytes(SHARED_BYTES))
        with open(shared, "r+b") as file:
            self.memory = mmap.mmap(file.fileno(), SHARED_BYTES)
        addresses = [host.ip4 for host in self.layout.hosts]
        self.cards = [self.fabric.spawn(host.name, f"card-{host.name}", program(
            lab.build, "tests/diagnosis/card"), shared, i, *addresses) for i, host in enumerate(self.layout.hosts)]
        trainer = program(lab.build, "tests/diagnosis/trainer")
        self.ranks = []
        for rank in range(RANKS):
            host = self.layout.hosts[host_of(rank)].name
            self.ranks.append(self.fabric.spawn(
                host, f"trainer-{rank}", trainer, lab.plugin, shared, rank, seed, compute, jitter, uneven,
                evaluate, last_stage, env={**os.environ, "FABRICTRACE_JOB": name,
                                           "FABRICTRACE_SOCKET": f"{self.fabric.dir}/{host}.sock"}))
        self.gone = set()
        self.owners.say(self)

    def pid(self, rank):
        # nsenter becomes the program, and is no other process.
        return self.ranks[rank].pid

    def flow(self, rank, slot):
        hosts = self.layout.hosts
        return Flow(hosts[host_of(rank)].ip4, hosts[host_of(peer_of(rank, slot))].ip4,
                    SPORT_FIRST + number_of(rank, slot))

    def set(self, rank, word, value):
        struct.pack_into("i", self.memory, 4 * (rank * len(WORDS) + word), value)

    def steps(self):
        return struct.unpack_from(f"{RANKS}I", self.memory, STEPS_AT)

    def crossings(self, answers=False):
        """{(switch, port): [(from, to, slot)]} of the links between switches, as the kernel routes now; with
        answers, of the acknowledgements of what the one sends the other."""
        flows = {self.flow(rank, slot): (rank, peer_of(rank, slot), slot) for rank in range(RANKS)
                 for slot in range(SLOTS)}
        if answers:
            flows = {flow.reverse: pair for flow, pair in flows.items()}
        found = defaultdict(list)
        for flow, path in kernel_paths(self.fabric, flows).items():
            for switch, _, out in path[:-1]:
                found[switch, out].append(flows[flow])
        return found

    def check_alive(self):
        for rank, process in enumerate(self.ranks):
            if process.poll() is not None and rank not in self.gone:
                raise LabError(f"rank {rank} ended with {process.returncode}: " + (
                    self.fabric.dir / f"trainer-{rank}.log").read_text()[-500:])
        for card in self.cards:
            if card.poll() is not None:
                raise LabError(f"a card ended with {card.returncode}")

    def end(self):
        with self.owners.lock:
            self.owners.job = None
        for process in self.ranks:
            process.send_signal(18)  # SIGCONT
            process.terminate()
        for process in self.ranks:
            process.wait()
        for card in self.cards:
            card.terminate()
        for card in self.cards:
            card.wait()
        self.memory.close()
