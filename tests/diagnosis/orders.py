# SPDX-License-Identifier: Apache-2.0
"""What each rank of a framework's job does, in its order, for frameworks.py: programs of engines.py."""
import random

from engines import MS, SECOND, Machine

WELL = ("well", "jitter", "uneven lengths", "checkpoints", "all pause", "evaluation", "clocks apart", "cut",
        "tails lost", "snapshots", "head lost", "ranks missing", "several")
FAULTS = {"stopped": "noncomm_hang", "slow rank": "noncomm_slow", "late once": "noncomm_slow",
          "late once, all pause": "noncomm_slow", "swapped order": "mismatch", "other bytes": "mismatch",
          "slow pair": "comm_slow"}


class Job:
    """What all kinds have in common: chance, habits, faults, and what happens between steps."""

    pairs = False  # whether ranks send to each other
    own_order = False  # whether two operations of a communicator follow each other

    def __init__(self, case, kind, seed, steps=None):
        self.name = f"{case} {kind} {seed}"
        chance = self.chance = random.Random(self.name)
        self.case = case
        self.ranks = chance.choice((8, 16, 16, 16, 32, 32, 64))
        self.gpus = 4 if self.ranks == 8 else 8
        self.steps = min(chance.choice((10, 16, 24, 40)), {16: 24, 32: 16, 64: 10}.get(self.ranks, 40))
        self.unit = chance.uniform(1, 15) * MS  # what a layer computes
        self.share = chance.choice((0.05, 0.2, 0.5, 0.9))  # what it transfers, by that
        self.size = chance.choice((4 << 20, 32 << 20, 100_000_000))
        habits = [case] if case != "several" else chance.sample(
            ("jitter", "uneven lengths", "checkpoints", "all pause", "evaluation", "clocks apart", "cut",
             "head lost"), 4)
        self.habits = set(habits) | ({"all pause"} if case.endswith("all pause") else set())
        self.noise = chance.uniform(0.08, 0.2) if "jitter" in habits else chance.uniform(0.005, 0.04)
        self.starts = chance.choice(("begun", "begun", "begun", "called", "ahead"))
        self.evaluates = chance.randint(3, 6)
        self.saves = chance.randint(3, 8)
        self.barrier = chance.random() < 0.5
        self.setup(chance)
        self.fault = chance.randrange(self.ranks)
        self.since = max(3, self.steps // 3) if case == "slow rank" else self.steps * 2 // 3
        self.where = chance.random()  # in that step
        self.factor = chance.uniform(1.4, 2.5)
        self.away = chance.uniform(2, 20) * SECOND
        self.pair = None
        self.step = [0] * self.ranks
        self.seen = [0] * self.ranks  # calls and pieces of work in this step
        self.usual = [0] * self.ranks  # and in the step before
        self.spoilt = False
        self.steps = steps or self.steps
        self.of_rank = [random.Random(f"{self.name} {r}") for r in range(self.ranks)]
        self.machine = Machine(self.ranks, 0.15 if self.starts == "ahead" else 0)

    def setup(self, chance):
        """Sizes that a kind has of its own."""

    def host(self, rank):
        return rank // self.gpus

    def time_of(self, key):
        """Chance of one operation, whichever rank is the first to call it."""
        return max(0.3, random.Random(f"{self.name} {key}").gauss(1, 0.05 + self.noise / 2))

    def took(self, members, share, key):
        ns = self.unit * self.share * share * (3 if len({self.host(r) for r in members}) > 1 else 1)
        return (15_000 + ns) * self.time_of(key)

    def due(self, rank):
        """Whether the fault is to happen here."""
        self.seen[rank] += 1
        return (not self.spoilt and rank == self.fault and self.step[rank] >= self.since
                and self.seen[rank] >= self.where * self.usual[rank])

    def batch(self, rank, micro):
        """How long the sequences are that a rank works on; ranks of one model share them."""
        return (self.step[rank], self.copy(rank), micro)

    def copy(self, rank):
        return rank

    def work(self, rank, share, micro=0):
        ns = self.unit * share * self.of_rank[rank].lognormvariate(0, self.noise)
        if "uneven lengths" in self.habits:
            ns *= random.Random(f"{self.name} {self.batch(rank, micro)}").uniform(0.6, 1.5)
        if "jitter" in self.habits and self.of_rank[rank].random() < 0.01:
            ns += self.unit * self.of_rank[rank].expovariate(0.5)
        if rank == self.fault and self.case == "slow rank" and self.step[rank] >= self.since:
            ns *= self.factor
        if self.case in ("stopped", "late once", "late once, all pause") and self.due(rank):
            self.spoilt = True
            if self.case == "stopped":
                self.machine.stops[rank] = 0
            ns += self.away
        yield "work", ns

    def sum(self, rank, comm, members, function, share, after=()):
        """The operation; to be called by whoever asked for it."""
        members = tuple(members)
        size = max(4, int(self.size * share)) // 4 * 4
        key = (comm, self.machine.counts[comm, rank])
        takes, sign = self.took(members, share, key), None
        if self.case == "other bytes" and len(members) > 2 and self.due(rank):
            self.spoilt = True
            size += 4096
        return self.machine.sum(rank, comm, members, function, size, takes, after, sign)

    def call_both(self, rank, first, second):
        """Two collectives of one communicator after each other, given as arguments of sum(); which they became."""
        swap = self.case == "swapped order" and len(first[1]) > 2 and self.due(rank)
        self.spoilt |= swap
        ops = [self.sum(rank, *one) for one in ((second, first) if swap else (first, second))]
        for op in ops:
            yield "call", op
        return ops[::-1] if swap else ops

    def pass_on(self, rank, source, target, comm, share):
        """The operation of either end."""
        key = (comm, source, target, self.machine.counts[comm, source, target, rank])
        takes, size = self.took((source, target), share, key), max(4, int(self.size * share)) // 4 * 4
        if self.case == "slow pair":
            self.pair = self.pair or ((source, target) if self.step[rank] >= self.since // 2 and
                                      self.host(source) != self.host(target) else None)
            if self.pair == (source, target):
                takes = takes * self.factor + 0.3 * self.unit
        if rank == source:
            return self.machine.send(rank, target, comm, size, takes)
        return self.machine.receive(rank, source, comm, size, takes)

    def forward_only(self, rank):
        """A pass of an evaluation."""
        yield from self.work(rank, 1)

    def between(self, rank, step):
        everyone = tuple(range(self.ranks))
        if "evaluation" in self.habits and step % self.evaluates == self.evaluates - 1:
            for _ in range(3):
                yield from self.forward_only(rank)
            op = self.sum(rank, "world", everyone, "AllReduce", 0)
            yield "call", op
            yield "wait", op
            yield ("sync",)
        if "checkpoints" in self.habits and step % self.saves == self.saves - 1:
            ns = random.Random(f"{self.name} save {step}").uniform(5, 60) * SECOND
            yield ("sync",)
            yield "work", ns + self.of_rank[rank].uniform(0, 50) * MS
            if self.barrier:
                op = self.sum(rank, "world", everyone, "AllReduce", 0)
                yield "call", op
                yield "wait", op

    def program(self, rank):
        for step in range(self.steps):
            self.usual[rank], self.seen[rank], self.step[rank] = self.seen[rank], 0, step
            yield from self.train(rank)
            yield ("sync",)
            yield from self.between(rank, step)

    def train(self, rank):
        """A step."""
        raise NotImplementedError

    def run(self):
        self.machine.run(self.program)
        return max(self.machine.gpu)


class Sharded(Job):
    """FSDP2: the next layer is gathered while one is computed; gradients are scattered in the same communicator, and
    with hybrid sharding summed with the copies on other hosts."""

    own_order = True
    hybrid = False

    def setup(self, chance):
        self.layers = chance.randint(4, 10)
        self.micros = chance.choice((1, 1, 2))
        self.each_clips = chance.random() < 0.7

    def shards(self, rank):
        first = self.host(rank) * self.gpus
        return (f"shard{self.host(rank)}", range(first, first + self.gpus)) if self.hybrid else (
            "shard", range(self.ranks))

    def gather(self, rank):
        return (*self.shards(rank), "AllGather", 1)

    def forward(self, rank, micro=0):
        ahead = self.sum(rank, *self.gather(rank))
        yield "call", ahead
        for layer in range(self.layers):
            op = ahead
            if layer + 1 < self.layers:
                ahead = self.sum(rank, *self.gather(rank))
                yield "call", ahead
            yield "wait", op
            yield from self.work(rank, 1, micro)

    def forward_only(self, rank):
        yield from self.forward(rank)

    def train(self, rank):
        summed = []
        for micro in range(self.micros):
            last = micro == self.micros - 1
            yield from self.forward(rank, micro)
            op = self.sum(rank, *self.gather(rank))
            yield "call", op
            for layer in reversed(range(self.layers)):
                yield "wait", op
                yield from self.work(rank, 2, micro)
                scatter = (*self.shards(rank), "ReduceScatter", 1)
                if layer and last:
                    scattered, op = yield from self.call_both(rank, scatter, self.gather(rank))
                elif layer:
                    op = self.sum(rank, *self.gather(rank))
                    yield "call", op
                elif last:
                    scattered = self.sum(rank, *scatter)
                    yield "call", scattered
                if last:
                    if self.hybrid:
                        lane = rank % self.gpus
                        scattered = self.sum(rank, f"copies{lane}", range(lane, self.ranks, self.gpus), "AllReduce",
                                             0.125, (scattered,))
                        yield "call", scattered
                    summed.append(scattered)
        for op in summed:
            yield "wait", op
        if self.each_clips:
            op = self.sum(rank, *self.shards(rank), "AllReduce", 0)
            yield "call", op
            yield "wait", op
        yield from self.work(rank, 0.5)


class Hybrid(Sharded):
    """The same within hosts."""

    hybrid = True


class Zero(Job):
    """DeepSpeed's ZeRO-3: groups of parameters are gathered some ahead, gradients are scattered when a bucket is full,
    which is at no layer's end; at the end two small sums, of overflows and of norms."""

    own_order = True

    def setup(self, chance):
        self.groups = chance.randint(5, 12)
        self.ahead = chance.randint(1, 3)
        self.bucket = chance.choice((1.5, 2.5, 3.3))

    def walk(self, rank, order, share, after_each):
        ops = []
        for i, _ in enumerate(order):
            for _ in range(len(ops), min(len(order), i + 1 + self.ahead)):
                ops.append(self.sum(rank, "world", range(self.ranks), "AllGather", 0.5))
                yield "call", ops[-1]
            yield "wait", ops[i]
            yield from self.work(rank, share)
            yield from after_each()

    def train(self, rank):
        full, pending = [0.0], []

        def nothing():
            return iter(())

        def scatter():
            full[0] += 1
            while full[0] >= self.bucket:
                full[0] -= self.bucket
                pending.append(self.sum(rank, "world", range(self.ranks), "ReduceScatter", self.bucket / 2))
                yield "call", pending[-1]

        yield from self.walk(rank, range(self.groups), 1, nothing)
        yield from self.walk(rank, range(self.groups), 2, scatter)
        if full[0] > 0.01:
            pending.append(self.sum(rank, "world", range(self.ranks), "ReduceScatter", full[0] / 2))
            yield "call", pending[-1]
        for op in pending:
            yield "wait", op
        world = ("world", range(self.ranks))
        ops = yield from self.call_both(rank, (*world, "AllReduce", 0), (*world, "AllReduce", 4e-6))
        for op in ops:
            yield "wait", op
        yield ("sync",)
        yield from self.work(rank, 1)

    def forward_only(self, rank):
        yield from self.walk(rank, range(self.groups), 1, lambda: iter(()))


class Buckets(Job):
    """Copies of several models, whose gradients are summed in buckets in communicators of their own while others are
    computed: many are in flight, and only the end of the step waits for them."""

    own_order = True

    def setup(self, chance):
        self.comms = chance.randint(2, 5)
        self.buckets = chance.randint(3, 8)
        self.halves = chance.random() < 0.3  # every second communicator is of every second rank
        self.broadcasts = chance.random() < 0.4

    def comm(self, rank, number):
        if self.halves and number % 2:
            return f"model{number}.{rank % 2}", range(rank % 2, self.ranks, 2)
        return f"model{number}", range(self.ranks)

    def train(self, rank):
        if self.broadcasts:
            op = self.sum(rank, *self.comm(rank, 0), "Broadcast", 0.01)
            yield "call", op
            yield "wait", op
        yield from self.work(rank, 2)
        ops = []
        for bucket in range(self.buckets):
            yield from self.work(rank, 1)
            for number in range(self.comms):
                yield from self.work(rank, 0.2)
                if number == 0 and bucket + 1 < self.buckets:
                    ops += yield from self.call_both(rank, (*self.comm(rank, 0), "AllReduce", 0.5),
                                                     (*self.comm(rank, 0), "AllReduce", 0.25))
                else:
                    ops.append(self.sum(rank, *self.comm(rank, number), "AllReduce", 0.6))
                    yield "call", ops[-1]
        for op in ops:
            yield "wait", op
        yield from self.work(rank, 0.5)


class Megatron(Job):
    """Tensor, pipeline and data parallel, with 1F1B."""

    pairs = True
    chunks = 1

    def setup(self, chance):
        self.tensor = chance.choice((2, 4)) if self.ranks > 8 else 2
        self.stages = 2 if self.ranks == 8 else 4
        if self.ranks == 64:
            self.tensor = 4
        self.width = self.ranks // self.stages  # ranks of a stage
        self.micros = self.stages * (chance.choice((1, 2)) if self.ranks < 32 else 1)
        self.steps = min(self.steps, 16 if self.ranks < 32 else 10 if self.ranks < 64 else 6)
        self.sequence = chance.random() < 0.5  # gathers and scatters instead of sums
        self.sharded = chance.random() < 0.5  # a distributed optimizer
        self.tied = chance.random() < 0.5  # first and last stage sum their embeddings

    def copy(self, rank):
        return rank % self.width // self.tensor

    def work(self, rank, share, micro=0):
        yield from super().work(rank, share, micro)

    def layer(self, rank, share, micro):
        """A piece of work and what the tensor parallel ranks exchange."""
        first = rank // self.tensor * self.tensor
        group = (f"tp{first}", range(first, first + self.tensor))
        if self.sequence:
            op = self.sum(rank, *group, "AllGather", 0.1)
            yield "call", op
            yield "wait", op
        yield from self.work(rank, share, micro)
        op = self.sum(rank, *group, "ReduceScatter" if self.sequence else "AllReduce", 0.1)
        yield "call", op
        yield "wait", op

    def plan(self, stage):
        """("F" or "B", chunk, micro batch) in the order of Megatron's schedules."""
        total, group = self.micros * self.chunks, self.stages * self.chunks

        def unit(kind, k):
            chunk = k % group // self.stages
            micro = k // group * self.stages + k % self.stages
            return kind, chunk if kind == "F" else self.chunks - 1 - chunk, micro

        if self.chunks == 1:
            warm = min(self.stages - stage - 1, total)
        else:
            warm = min((self.stages - stage - 1) * 2 + (self.chunks - 1) * self.stages, total)
        plan = [unit("F", k) for k in range(warm)]
        for k in range(total - warm):
            plan += [unit("F", warm + k), unit("B", k)]
        return plan + [unit("B", k) for k in range(total - warm, total)]

    def from_and_to(self, rank, what):
        """The ranks that its input comes from and its output goes to, or None."""
        kind, chunk, _ = what
        stage, step = rank // self.width, 1 if kind == "F" else -1
        ends = {"F": (0, self.stages - 1), "B": (self.stages - 1, 0)}[kind]
        outer = (0, self.chunks - 1) if kind == "F" else (self.chunks - 1, 0)

        def of(other):
            return other % self.stages * self.width + rank % self.width

        source = None if stage == ends[0] and chunk == outer[0] else of(stage - step)
        target = None if stage == ends[1] and chunk == outer[1] else of(stage + step)
        return source, target

    def train(self, rank):
        stage, lane = rank // self.width, rank % self.width
        column = lane % self.tensor
        copies = (f"dp{stage}.{column}", range(stage * self.width + column, (stage + 1) * self.width, self.tensor))
        pipe = f"pp{lane}"
        plan, sums = self.plan(stage), []
        gathered = []
        if self.sharded and self.step[rank]:
            for _ in range(self.chunks):
                gathered.append(self.sum(rank, *copies, "AllGather", 0.6))
                yield "call", gathered[-1]
        left = [self.micros] * self.chunks
        source = self.from_and_to(rank, plan[0])[0]
        awaited = source is not None and self.pass_on(rank, source, rank, pipe, 0.2)
        if awaited:
            yield "call", awaited
        for i, (kind, chunk, micro) in enumerate(plan):
            if awaited:
                yield "wait", awaited
            if kind == "F" and gathered and micro == 0:
                yield "wait", gathered[chunk]
            for _ in range(2):
                yield from self.layer(rank, 1 if kind == "F" else 2, micro)
            if kind == "B":
                left[chunk] -= 1
                if not left[chunk]:
                    sums.append(self.sum(rank, *copies, "ReduceScatter" if self.sharded else "AllReduce", 1))
                    yield "call", sums[-1]
            target = self.from_and_to(rank, plan[i])[1]
            if target is not None:
                yield "call", self.pass_on(rank, rank, target, pipe, 0.2)
            source = self.from_and_to(rank, plan[i + 1])[0] if i + 1 < len(plan) else None
            awaited = source is not None and self.pass_on(rank, source, rank, pipe, 0.2)
            if awaited:
                yield "call", awaited
        for op in sums:
            yield "wait", op
        if self.tied and stage in (0, self.stages - 1):
            op = self.sum(rank, f"embed{lane}", (lane, (self.stages - 1) * self.width + lane), "AllReduce", 0.5)
            yield "call", op
            yield "wait", op
        op = self.sum(rank, "world", range(self.ranks), "AllReduce", 0)
        yield "call", op
        yield "wait", op
        yield ("sync",)
        yield from self.work(rank, 0.5)

    def forward_only(self, rank):
        pipe, stage = f"eval{rank % self.width}", rank // self.width
        source, target = rank - self.width, rank + self.width
        if stage:
            op = self.pass_on(rank, source, rank, pipe, 0.2)
            yield "call", op
            yield "wait", op
        for _ in range(2):
            yield from self.layer(rank, 1, 0)
        if stage < self.stages - 1:
            yield "call", self.pass_on(rank, rank, target, pipe, 0.2)


class Interleaved(Megatron):
    """The same with two or three pieces of the model on each stage, whose last one sends to the first."""

    def setup(self, chance):
        if self.ranks == 8:
            self.ranks = 16
        super().setup(chance)
        self.chunks = chance.choice((2, 2, 3))


class Experts(Job):
    """Tokens go to their experts and back, in groups of a host or of all; work and bytes differ with their number."""

    by_sends = False

    def setup(self, chance):
        self.layers = chance.randint(2, 5)
        self.group = chance.choice((4, 8)) if self.by_sends else chance.choice((4, 8, self.ranks))
        self.group = min(self.group, self.ranks)
        self.spread = chance.random() < 0.5 and self.group < self.ranks  # a group has ranks of several hosts
        self.skew = chance.choice((0.05, 0.2, 0.5))
        if self.by_sends:
            self.pairs = True
            self.steps = min(self.steps, 12 if self.ranks < 32 else 6)
            self.layers = min(self.layers, 3)

    def peers(self, rank):
        groups = self.ranks // self.group
        number = rank % groups if self.spread else rank // self.group
        return number, tuple(range(number, self.ranks, groups) if self.spread else
                             range(number * self.group, (number + 1) * self.group))

    def tokens(self, *key):
        return random.Random(f"{self.name} tokens {key}").lognormvariate(0, self.skew)

    def exchange(self, rank, layer):
        number, members = self.peers(rank)
        comm = f"ep{number}"
        if not self.by_sends:
            op = self.sum(rank, comm, members, "AllToAll", 0.5)
            yield "call", op
            yield "wait", op
            return
        ops = []
        for other in members:
            if other != rank:
                for source, target in ((rank, other), (other, rank)):
                    share = 0.5 / len(members) * self.tokens(self.step[rank], layer, source, target)
                    ops.append(self.pass_on(rank, source, target, comm, share))
                    yield "call", ops[-1]
        for op in ops:
            yield "wait", op

    def block(self, rank, layer, share):
        yield from self.work(rank, share)
        yield from self.exchange(rank, layer)
        yield from self.work(rank, share * self.tokens(self.step[rank], layer, rank))
        yield from self.exchange(rank, -layer - 1)

    def train(self, rank):
        for layer in range(self.layers):
            yield from self.block(rank, layer, 1)
        number, members = self.peers(rank)
        lane, ops = members.index(rank), []
        copies = [r for r in range(self.ranks) if self.peers(r)[1].index(r) == lane]
        for layer in reversed(range(self.layers)):
            yield from self.block(rank, layer, 2)
            ops.append(self.sum(rank, "dense", range(self.ranks), "AllReduce", 0.3))
            yield "call", ops[-1]
            if len(copies) > 1:
                ops.append(self.sum(rank, f"edp{lane}", copies, "AllReduce", 0.5))
                yield "call", ops[-1]
        for op in ops:
            yield "wait", op
        yield from self.work(rank, 0.5)

    def forward_only(self, rank):
        for layer in range(self.layers):
            yield from self.block(rank, layer, 1)


class ExpertSends(Experts):
    """The same by sends to each of the group."""

    by_sends = True


KINDS = {"sharded": Sharded, "hybrid": Hybrid, "zero": Zero, "buckets": Buckets, "megatron": Megatron,
         "interleaved": Interleaved, "experts": Experts, "expert sends": ExpertSends}
