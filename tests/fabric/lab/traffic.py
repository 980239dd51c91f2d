# SPDX-License-Identifier: Apache-2.0
"""RoCEv2 flows between the hosts of a lab: which ones, and the generators that drive them."""
import json
import signal
import subprocess
from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from itertools import zip_longest

import speed

from .fabric import LabError

SPORTS = range(0xC000, 0x10000)  # what the kernel gives queue pairs


@dataclass(frozen=True)
class Flow:
    """The data direction of a queue pair; `key` is what identifies it in records and counters."""
    src: str
    dst: str
    sport: int

    @property
    def key(self):
        return self.src, self.dst, self.sport

    @property
    def reverse(self):
        """Its acknowledgements: same source port, addresses changed over."""
        return Flow(self.dst, self.src, self.sport)

    def __str__(self):
        form = "[{}]:{}-[{}]" if ":" in self.src else "{}:{}-{}"
        return form.format(self.src, self.sport, self.dst)


@dataclass(frozen=True)
class Load:
    """What a flow sends. bits per second count the whole Ethernet frame without its FCS."""
    payload_bytes: int
    pps: float
    message_packets: int = 8

    @classmethod
    def of_rate(cls, payload_bytes, bps):
        return cls(payload_bytes, bps / (8 * (payload_bytes + 14 + 20 + 8 + 12 + 4)))


ELEPHANT = Load.of_rate(1024, 12_000_000)
MOUSE = Load(256, 100)
SPARSE_PPS = 2


def plan(layout, count, elephants, rng, used_sports=()):
    """{Flow: Load} of count flows: both families, every pair of leaves, leaf-local pairs too; the
    elephants cross a spine. Source ports are fresh: none of used_sports, none twice."""
    classes = defaultdict(list)
    for src in layout.hosts:
        for dst in layout.hosts:
            if src is not dst:
                classes[src.leaf, dst.leaf].append((src, dst))
    for pairs in classes.values():
        rng.shuffle(pairs)
    order = list(classes)
    rng.shuffle(order)
    rounds = zip_longest(*(classes[name] for name in order))
    pairs = [pair for row in rounds for pair in row if pair]
    ports = rng.sample(sorted(set(SPORTS) - set(used_sports)), count)
    flows = {}
    crossing = []
    for index, sport in enumerate(ports):
        lap, place = divmod(index, len(pairs))
        src, dst = pairs[place]
        family = 4 if (place + lap) % 2 == 0 else 6
        flow = Flow(src.address(family), dst.address(family), sport)
        flows[flow] = MOUSE
        if src.leaf != dst.leaf:
            crossing.append(flow)
    for flow in rng.sample(crossing, min(elephants, len(crossing))):
        flows[flow] = ELEPHANT
    return flows


def sparse(flows, rng):
    """The same flows, each acknowledged SPARSE_PPS times a second, a third of the mice slowed down to
    that rate."""
    mice = [flow for flow, load in flows.items() if load is MOUSE]
    slow = set(rng.sample(mice, len(mice) // 3))
    return {flow: replace(load, pps=SPARSE_PPS, message_packets=1) if flow in slow
            else replace(load, message_packets=round(load.pps / SPARSE_PPS))
            for flow, load in flows.items()}


class Traffic:
    """Generators and responders of a lab. Responders start at once and stay."""

    def __init__(self, fabric, rocegen):
        self.fabric = fabric
        self.rocegen = rocegen
        self.senders = {}
        self.responders = {
            host.name: self._spawn(host.name, "respond", host.ip4, host.ip6)
            for host in fabric.layout.hosts
        }
        self._await_ready(self.responders)

    def _spawn(self, node, verb, *args):
        return self.fabric.spawn(node, f"rocegen-{verb}-{node}", self.rocegen, verb, *args,
                                 stdout=subprocess.PIPE)

    @staticmethod
    def _await_ready(processes):
        for node, process in processes.items():
            if process.stdout.readline() != "ready\n":
                raise LabError(f"{node}: rocegen did not start")

    def start(self, flows, seconds=0):
        """Drives flows ({Flow: Load}) until stop(), or for seconds."""
        owner = self.fabric.layout.owner
        lines = defaultdict(list)
        for flow, load in flows.items():
            qp = flow.sport % 4096 + 17
            lines[owner[flow.src].name].append(
                f"{flow.src} {flow.sport} {flow.dst} {qp} {load.pps:.3f} {load.payload_bytes} "
                f"{load.message_packets}\n")
        for node, text in lines.items():
            path = self.fabric.dir / f"flows-{node}"
            path.write_text("".join(text))
            self.senders[node] = self._spawn(node, "send", path, seconds)
        self._await_ready(self.senders)

    def stop(self):
        """Ends the senders. Returns packets sent by Flow."""
        sent = Counter()
        for node, process in self.senders.items():
            for flow in self._finish(node, process)["flows"]:
                sent[Flow(flow["src"], flow["dst"], flow["sport"])] += flow["packets"]
        self.senders = {}
        return sent

    def close(self):
        """Ends the responders too. Returns the sum of their counters."""
        self.stop()
        total = Counter()
        for node, process in self.responders.items():
            total.update(self._finish(node, process))
        self.responders = {}
        return total

    @staticmethod
    def _finish(node, process):
        process.send_signal(signal.SIGTERM)
        report, _ = process.communicate(timeout=speed.limit(90))
        if process.returncode:
            raise LabError(f"{node}: rocegen ended with {process.returncode}: {report.strip()}")
        return json.loads(report)
