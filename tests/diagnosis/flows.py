# SPDX-License-Identifier: Apache-2.0
"""Jobs on paper of which no plugin reports: hosts that compute, and then all send to all others, over a
fabric (fabric.py) that divides every port fairly among the flows that want it. What is limited, and from
when on, is known here alone; switches take samples at random of what crosses them. Shares nothing with
job.py, whose operations nobody sees here."""
import json
import random

from fabric import Fabric
from job import Fault

PACKET = 4170
MS = 1000.0


class Hosts:
    """Its ranks are its hosts, with a card each."""

    def __init__(self, seed, hosts=8, fault=None, seconds=1500, **options):
        self.random = random.Random(f"flows{seed}")
        self.ranks, self.gpus, self.seconds = hosts, 1, seconds
        self.fault = fault or Fault()
        self.dp, self.tp, self.pp = hosts, 1, 1  # for who prints them
        self.fabric = Fabric(seed, self)
        rng = self.random
        self.period_s = options.get("period", rng.uniform(5, 9))
        self.share = rng.uniform(0.3, 0.5)  # of the period, without a fault
        self.jitter = options.get("jitter", rng.uniform(0.02, 0.15))
        self.shuffle = options.get("shuffle", rng.uniform(0, 0.15))
        self.samples = options.get("samples", rng.uniform(12, 30))  # a second and pair, at each leaf
        self.pause_every_s = options.get("pause_every", 0)
        self.evaluate_every = options.get("evaluate_every", 0)
        self.pairs = [(a, b) for a in range(hosts) for b in range(hosts) if a != b]
        self.ways = {p: (("out", p[0]), *self.fabric.path(*p)) for p in self.pairs}
        uneven = options.get("uneven", rng.uniform(0, 0.3))
        self.sizes = {p: rng.uniform(1 - uneven, 1 + uneven) for p in self.pairs}
        self.fault_ms = None
        # A burst of them, in seconds at speeds of 1.
        self.burst = self.exchange(self.sizes, False)[-1][1]
        self.scale = self.period_s * self.share / self.burst

    def host(self, rank):
        return rank

    def name(self, rank):
        return f"gpu{rank:02}"

    def limits(self, faulty):
        """What a port can carry, other than 1; and a pair, whatever else there is."""
        f = self.fault
        if not faulty or f.kind is None:
            return {}, {}
        if f.kind == "pair":
            return {}, {(f.rank, f.peer): 1 / (self.ranks - 1) / f.factor}
        if f.kind == "sender":
            return {("out", f.rank): 1 / f.factor}, {}
        return {self.fabric.path((f.rank + 1) % self.ranks, f.rank)[-1]: 1 / f.factor}, {}

    def rates(self, left, ports, caps):
        """Fair shares: the port that gives the least is full first."""
        rates, room, users = {}, {}, {}
        for pair in left:
            ways = self.ways[pair] + ((pair,) if pair in caps else ())
            for port in ways:
                room.setdefault(port, ports.get(port, caps.get(port, 1.0)))
                users.setdefault(port, set()).add(pair)
        while users:
            port = min(users, key=lambda p: room[p] / len(users[p]))
            share = room[port] / len(users[port])
            for pair in list(users[port]):
                rates[pair] = share
                for other in self.ways[pair] + ((pair,) if pair in caps else ()):
                    if other in users:
                        users[other].discard(pair)
                        room[other] -= share
                        if not users[other]:
                            del users[other]
        return rates

    def exchange(self, sizes, faulty):
        """Stretches of time (begin, end, rates), from 0."""
        ports, caps = self.limits(faulty)
        left, t, out = dict(sizes), 0.0, []
        while left:
            rates = self.rates(left, ports, caps)
            step = 1.02 * min(left[p] / rates[p] for p in left)
            out.append((t, t + step, rates))
            t += step
            left = {p: left[p] - rates[p] * step for p in left if left[p] > rates[p] * step}
        return out

    def sends(self):
        """(pair, from, until, samples a second at a leaf) in order of time."""
        rng, t, step = self.random, 0.0, 0
        pause_s = self.pause_every_s
        while t < self.seconds:
            evaluates = self.evaluate_every and step % self.evaluate_every > self.evaluate_every * 0.75
            part = 0.4 if evaluates else 1
            t += part * self.period_s * (1 - self.share) * rng.uniform(1 - self.jitter, 1 + self.jitter)
            if self.pause_every_s and t > pause_s:
                t += 20 * rng.uniform(0.7, 1.3)
                pause_s = t + self.pause_every_s
            faulty = self.fault.kind and step >= self.fault.step
            if faulty and self.fault_ms is None:
                self.fault_ms = int(t * MS)
            long = part * rng.uniform(1 - self.jitter, 1 + self.jitter)
            sizes = {p: s * long * rng.uniform(1 - self.shuffle, 1 + self.shuffle)
                     for p, s in self.sizes.items()}
            end = 0.0
            for begin, end, rates in self.exchange(sizes, faulty):
                for pair, rate in rates.items():
                    yield (pair, t + begin * self.scale, t + end * self.scale,
                           self.samples * rate * (self.ranks - 1))
            t += end * self.scale
            step += 1

    def flow(self, a, b):
        return {"src": self.fabric.address(a), "dst": self.fabric.address(b), "sport": 40000 + 50 * a + b,
                "dport": 4791, "proto": 17}

    def seen(self, pair):
        """Leaves that sample it, with its ports there."""
        a, b = pair
        way = self.fabric.path(a, b)
        out = int(way[0][1][8:])
        yield f"192.0.2.{1 + self.fabric.leaf(a)}", self.fabric.card(a), out
        if len(way) > 1:
            yield (f"192.0.2.{1 + self.fabric.leaf(b)}", 100 + self.fabric.spine(a, b), self.fabric.card(b))

    def records(self, base_ms=1700000000000):
        folded = {}
        for pair, begin, end, rate in self.sends():
            for leaf in self.seen(pair):
                t = begin
                while (t := t + self.random.expovariate(rate)) < end:
                    folded.setdefault((int(t), pair, leaf), []).append(int(t * MS))
        out = []
        for (second, pair, (agent, entry, leaves)), at in folded.items():
            out.append((1000 * (second + 1), {
                "schema": "fabrictrace.observation.v1", "time_ms": base_ms + 1000 * second,
                "interval_ms": 1000, "first_ms": base_ms + min(at), "last_ms": base_ms + max(at), "agent": agent,
                "flow": self.flow(*pair), "in_ifindex": entry, "out_ifindex": leaves, "samples": len(at),
                "packets": 2000 * len(at), "bytes": 2000 * PACKET * len(at), "data_samples": len(at)}))
        for second in range(0, int(self.seconds), 10):
            out += [(1000 * second, {
                "schema": "fabrictrace.flow.v1", "time_ms": base_ms + 1000 * second, "interval_ms": 1000,
                "host": self.name(a), "direction": "tx", "flow": self.flow(a, b), "pid": 100 + a, "job": "88"})
                for a, b in self.pairs]
        if self.fault_ms is not None:
            self.fault_ms += base_ms
        return [json.dumps(r) for _, r in sorted(out, key=lambda x: x[0])]


def is_right(record, job):
    """Both ends of a pair, or the end that is slow, and what it is slow in."""
    fault = job.fault
    if record.get("source") != "flows" or record["time_ms"] < (job.fault_ms or 0):
        return False
    named = (record.get("host"), record.get("peer_host"))
    if fault.kind == "pair":
        return named == (job.name(fault.rank), job.name(fault.peer))
    return named == (job.name(fault.rank), None) and record["side"] == fault.kind
