# SPDX-License-Identifier: Apache-2.0
"""A training job on paper: ranks with clocks of their own, communicators, and what goes wrong.

A rank is a program of computation and operations. An operation that needs others goes on when all of
them are in it; what it takes then follows from bytes, the speed of its links and chance. So waiting
spreads as it does in a job: nothing here knows what a detector looks at. Times are nanoseconds.
"""
import collections
import functools
import gc
import math
import random

MS = 1_000_000


class Fault:
    """What is wrong from one step on: no more than one of these each."""

    def __init__(self, kind=None, rank=None, peer=None, step=0, factor=1.0, until=1 << 60):
        self.kind, self.rank, self.peer = kind, rank, peer
        self.step, self.factor, self.until = step, factor, until
        self.crosses = None  # of kind "link": whether what one rank sends another crosses it
        self.also = []       # further faults of transfers

    def at(self, step):
        return self.step <= step < self.until


class Job:
    """dp x tp x pp ranks; tp is innermost, so that it stays on one host, pp outermost."""

    def __init__(self, seed, dp=4, tp=4, pp=4, steps=40, fault=None, gpus=8, **options):
        self.random = random.Random(seed)
        self.dp, self.tp, self.pp, self.steps = dp, tp, pp, steps
        self.ranks = dp * tp * pp
        self.fault = fault or Fault()
        self.gpus = gpus
        self.micro = options.get("micro", self.random.choice((2, 3, 4)))
        self.layers = options.get("layers", self.random.choice((1, 2)))
        self.buckets = options.get("buckets", self.random.choice((1, 2, 4)))
        self.compute = options.get("compute", self.random.uniform(3, 12) * MS)
        self.jitter = options.get("jitter", self.random.uniform(0.01, 0.06))
        self.uneven = options.get("uneven", 0.0)  # sequence lengths: of a replica's step
        self.last_stage = options.get("last_stage", 1.0)
        self.pause_every = options.get("pause_every", 0)
        self.pause = options.get("pause", 0)
        self.pause_rank = options.get("pause_rank")  # None: all together
        self.evaluate_every = options.get("evaluate_every", 0)
        self.skew = options.get("skew", 2 * MS)  # of hosts' clocks, either way
        self.by_function = options.get("by_function", False)
        self.stagger = options.get("stagger", 0.02)  # ranks leave an operation within this share
        self.wander = options.get("wander", 0.0)  # how far each rank's pace goes up and down by itself, slowly
        self.starved = options.get("starved", 0.0)  # how much hosts without time delay transfers, now and then
        self.delays = {}
        self.base = 1_760_000_000_000_000_000 + self.random.randrange(10 ** 15)
        hosts = (self.ranks + gpus - 1) // gpus
        self.clock = [round(self.random.uniform(-self.skew, self.skew)) for _ in range(hosts)]
        self.sizes = {"tp": 4 << 20, "pp": 8 << 20, "dp": 64 << 20, "world": 8}
        self.now = [0.0] * self.ranks
        self.rows = []
        self.open = {}  # operation to {rank: (arrival, row)}, and what they call
        # They are asked for at each operation, and stay.
        self.members, self.name = functools.cache(self.members), functools.cache(self.name)
        self.posted = collections.defaultdict(collections.deque)
        self.count = collections.Counter()
        self.length = {}
        self.paces = [self.pace_of() for _ in range(self.ranks)] if self.wander else []

    def pace_of(self):
        """Of a rank, what its computation takes from step to step: a sine, or a walk that turns at its ends."""
        if self.random.random() < 0.5:
            period, phase = self.random.uniform(15, 120), self.random.random()
            return [1 + self.wander * math.sin(2 * math.pi * (s / period + phase)) for s in range(self.steps)]
        pace, stride = [self.random.uniform(-1, 1)], self.random.uniform(0.04, 0.2)
        for _ in range(self.steps):
            pace.append(max(-1, min(1, pace[-1] + self.random.gauss(0, stride))))
        return [1 + self.wander * p for p in pace]

    # Who is where.
    def coordinates(self, rank):
        return rank % self.tp, rank // self.tp % self.dp, rank // (self.tp * self.dp)

    def rank_of(self, t, d, p):
        return (p * self.dp + d) * self.tp + t

    def host(self, rank):
        return rank // self.gpus

    def members(self, kind, rank):
        t, d, p = self.coordinates(rank)
        if kind == "tp":
            return [self.rank_of(i, d, p) for i in range(self.tp)]
        if kind == "dp":
            return [self.rank_of(t, i, p) for i in range(self.dp)]
        return list(range(self.ranks))

    def name(self, kind, rank):
        t, d, p = self.coordinates(rank)
        return {"tp": f"tp-{p}-{d}", "dp": f"dp-{p}-{t}", "pp": f"pp-{d}-{t}", "world": "world"}[kind]

    # What a rank does.
    def work(self, rank, step, share=1.0):
        t, d, p = self.coordinates(rank)
        f = self.fault
        ns = self.compute * share * max(0.2, self.random.gauss(1, self.jitter))
        if self.uneven:
            ns *= self.length.setdefault((step, d), self.random.lognormvariate(0, self.uneven))
        if self.paces:
            ns *= self.paces[rank][step]
        if p == self.pp - 1:
            ns *= self.last_stage
        if f.kind in ("noncomm_slow", "mixed") and rank == f.rank and f.at(step):
            ns *= f.factor
        if f.kind == "drift" and rank == f.rank and f.at(step):
            ns *= 1 + (f.factor - 1) * min(1, (step - f.step + 1) / 10)
        if f.kind == "host_slow" and self.host(rank) == self.host(f.rank) and f.at(step):
            ns *= f.factor
        return ("work", ns)

    def program(self, rank):
        t, d, p = self.coordinates(rank)
        f = self.fault
        for step in range(self.steps):
            if self.pause_every and step % self.pause_every == self.pause_every - 1 and \
                    self.pause_rank in (None, rank):
                yield ("work", self.pause * self.random.uniform(0.9, 1.1))
            evaluate = self.evaluate_every and step % self.evaluate_every >= self.evaluate_every - 3
            for phase in ("forward",) if evaluate else ("forward", "backward"):
                ahead, behind = (p + 1, p - 1) if phase == "forward" else (p - 1, p + 1)
                for micro in range(self.micro):
                    if 0 <= behind < self.pp:
                        yield ("recv", self.rank_of(t, d, behind), step)
                    for layer in range(self.layers):
                        yield self.work(rank, step, 1.0 if phase == "forward" else 1.8)
                        if f.kind in ("noncomm_hang", "killed") and rank == f.rank and \
                                step == f.step and micro == self.micro - 1 and layer == 0:
                            return
                        if f.kind == "killed" and self.host(rank) == self.host(f.rank) and \
                                step == f.step and micro == self.micro - 1 and layer == 0:
                            return
                        if self.tp > 1:
                            yield from self.collectives(rank, step, "tp", phase == "forward")
                    if 0 <= ahead < self.pp:
                        yield ("send", self.rank_of(t, d, ahead), step)
            if self.dp > 1 and not evaluate:
                for bucket in range(self.buckets):
                    yield ("work", 0.05 * MS)
                    yield ("together", "dp", "ReduceScatter" if bucket else "AllReduce",
                           self.sizes["dp"], step)
            yield self.work(rank, step, 0.1)
            yield ("together", "world", "AllReduce", self.sizes["world"], step)

    def collectives(self, rank, step, kind, forward):
        f = self.fault
        size = self.sizes[kind]
        if self.uneven:
            d = self.coordinates(rank)[1]
            size = int(size * self.length.setdefault((step, d), self.random.lognormvariate(0, self.uneven)))
        calls = [("AllGather", size // 2), ("ReduceScatter", size)] if forward else [("AllReduce", size)]
        if f.kind == "order" and rank == f.rank and step == f.step and forward:
            calls.reverse()
        for function, count in calls:
            if f.kind == "size" and rank == f.rank and step == f.step and function == "ReduceScatter":
                count *= 2
            yield ("together", kind, function, count, step)

    # What operations take.
    def speed(self, kind, members):
        hosts = {self.host(r) for r in members}
        return 150.0 if len(hosts) == 1 else 20.0  # bytes a nanosecond within a host; between hosts

    def slow_edge(self, source, target, step):
        return self.starve(source, target, step) * max(
            self.slowed(f, source, target, step) for f in (self.fault, *self.fault.also))

    def starve(self, source, target, step):
        """What processes that wait for a processor add to a transfer: from step to step much the same."""
        if not self.starved or self.host(source) == self.host(target):
            return 1.0
        at, state = self.delays.get((source, target), (step, self.random.gauss(0, 1)))
        for _ in range(at, step):
            state = 0.9 * state + self.random.gauss(0, 0.19 ** 0.5)
        self.delays[source, target] = step, state
        return 1 + self.starved * math.exp(state) if step >= self.steps // 3 else 1.0

    def slowed(self, f, source, target, step):
        if not f.at(step) or self.host(source) == self.host(target):
            return 1.0
        if f.kind in ("sender", "mixed") and source == f.rank:
            return f.factor
        if f.kind == "receiver" and target == f.rank:
            return f.factor
        if f.kind == "link" and f.crosses(source, target):
            return f.factor
        if f.kind == "pair" and (source, target) == (f.rank, f.peer):
            return f.factor
        return 1.0

    def transfer(self, kind, members, size, step):
        n = len(members)
        worst = max(self.slow_edge(members[i], members[(i + 1) % n], step) for i in range(n))
        ns = 15_000 + 2 * size * (n - 1) / n / self.speed(kind, members) * worst
        return ns * max(0.5, self.random.gauss(1, 0.03))

    def row(self, rank, comm, function, size, step, peer=None):
        key = (rank, comm, function if self.by_function else None)
        if peer is not None:
            key = (rank, comm, "p2p", peer, function)
        sequence = self.count[key]
        self.count[key] += 1
        row = {"rank": rank, "host": f"gpu{self.host(rank):02}", "communicator": comm,
               "function": function, "sequence": sequence, "bytes": size,
               "start_ns": self.stamp(rank, self.now[rank]), "end_ns": "",
               "peer": "" if peer is None else peer, "step": step}
        self.rows.append(row)
        return row

    def stamp(self, rank, ns):
        return self.base + self.clock[self.host(rank)] + round(ns)

    def enter(self, rank, action):
        """Enters an operation; the ranks that can go on now."""
        if action[0] == "together":
            _, kind, function, size, step = action
            comm = self.name(kind, rank)
            members = self.members(kind, rank)
            row = self.row(rank, comm, function, size, step)
            waiting, calls = self.open.setdefault((comm, self.count[rank, comm, "entered"]), ({}, set()))
            self.count[rank, comm, "entered"] += 1
            waiting[rank] = (self.now[rank], row)
            calls.add((row["function"], row["bytes"]))
            if len(waiting) < len(members) or len(calls) > 1:
                return []
            if self.fault.kind == "group_hang" and self.fault.step == step and kind == "dp" and \
                    self.fault.rank in members:
                return []
            start = max(arrival for arrival, _ in waiting.values())
            took = self.transfer(kind, members, size, step)
            for r, (_, its) in waiting.items():
                self.now[r] = start + took * (1 + self.random.uniform(0, self.stagger))
                its["end_ns"] = self.stamp(r, self.now[r])
            return list(waiting)
        way, peer, step = action
        source, target = (rank, peer) if way == "send" else (peer, rank)
        comm = self.name("pp", rank)
        row = self.row(rank, comm, "Send" if way == "send" else "Recv", self.sizes["pp"], step, peer)
        mine = self.posted[source, target, way]
        theirs = self.posted[source, target, "recv" if way == "send" else "send"]
        if not theirs:
            mine.append((rank, self.now[rank], row))
            return []
        if self.fault.kind == "pair_hang" and (source, target) == (self.fault.rank, self.fault.peer) \
                and self.fault.step == step:
            theirs.popleft()
            return []
        other, arrival, its = theirs.popleft()
        start = max(arrival, self.now[rank])
        took = (10_000 + self.sizes["pp"] / self.speed("pp", [source, target])
                * self.slow_edge(source, target, step)) * max(0.5, self.random.gauss(1, 0.03))
        for r, what in ((rank, row), (other, its)):
            self.now[r] = start + took * (1 + self.random.uniform(0, self.stagger))
            what["end_ns"] = self.stamp(r, self.now[r])
        return [rank, other]

    def run(self):
        programs = [self.program(r) for r in range(self.ranks)]
        ready = collections.deque(range(self.ranks))
        gc.disable()  # all that comes is kept
        while ready:
            rank = ready.popleft()
            for action in programs[rank]:
                if action[0] == "work":
                    self.now[rank] += action[1]
                    continue
                freed = self.enter(rank, action)
                if rank not in freed:
                    ready.extend(freed)
                    break
                ready.extend(r for r in freed if r != rank)
        gc.enable()
        return self.rows


def cut(rows, when):
    """The rows as they were at a moment: what ended later has not ended."""
    kept = []
    for row in rows:
        if row["start_ns"] <= when:
            kept.append({**row, "end_ns": row["end_ns"] if row["end_ns"] != "" and
                         row["end_ns"] <= when else ""})
    return kept
