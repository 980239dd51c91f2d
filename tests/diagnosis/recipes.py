# SPDX-License-Identifier: Apache-2.0
"""Jobs as Megatron, DeepSpeed and NeMo run them, on the cluster of streams.py: pipelines with 1F1B and interleaved
schedules, shards of optimizers, buckets of gradients, rings of context parallel ranks, experts with exchanges of
uneven sizes, sums in two levels; with a fault or none. Shares nothing with job.py, outsider.py and fsdp.py.

A fault is a dictionary: its kind, the rank, pair, host or communicator, its factor, and the step or moment it begins.
"""
import collections
import random

from streams import MS, NEVER, S, US, Cluster, Comm

SPELLINGS = (
    {},
    {"AllReduce": "all_reduce", "ReduceScatter": "_reduce_scatter_base", "AllGather": "_all_gather_base",
     "AllToAll": "all_to_all", "Broadcast": "broadcast", "Send": "send", "Recv": "recv"},
    {f: f"nccl{f}" for f in ("AllReduce", "ReduceScatter", "AllGather", "AllToAll", "Broadcast", "Send", "Recv")},
    {f: f"nccl:{s}" for f, s in (("AllReduce", "all_reduce"), ("ReduceScatter", "reduce_scatter"), ("AllGather", "all_gather"),
     ("AllToAll", "all_to_all"), ("Broadcast", "broadcast"), ("Send", "send"), ("Recv", "recv"))},
)


class Shape:
    def __init__(self, tp, cp, dp, pp, per_host):
        self.tp, self.cp, self.dp, self.pp, self.per_host = tp, cp, dp, pp, per_host
        self.ranks = tp * cp * dp * pp

    def of(self, rank):
        t = rank % self.tp
        c = rank // self.tp % self.cp
        d = rank // self.tp // self.cp % self.dp
        return t, c, d, rank // self.tp // self.cp // self.dp

    def rank(self, t, c, d, p):
        return t + self.tp * (c + self.cp * (d + self.dp * p))


class Job:
    def __init__(self, seed, kind, fault=None, **given):
        rng = self.rng = random.Random(f"{seed}{kind}")
        self.seed, self.kind, self.fault = seed, kind, fault or {}
        big = rng.random() < given.get("big", 0.15)
        m = 4 if big else 1
        shapes = {
            "1f1b": ((2, 1, 4 * m, 4, 8), (4, 1, 4 * m, 2, 8), (4, 1, 2, 4 * m, 8), (8, 1, 2, 4, 8), (1, 1, 4, 4 * m, 4)),
            "interleaved": ((2, 1, 4 * m, 4, 8), (4, 1, 4 * m, 2, 4), (4, 1, 2, 4, 8), (1, 1, 8, 4, 8)),
            "zero": ((1, 1, 16 * m, 1, 8), (1, 1, 32 * m, 1, 8), (1, 1, 16, 1, 4), (1, 1, 64, 1, 8)),
            "ddp": ((1, 1, 16 * m, 1, 8), (1, 1, 32, 1, 4), (1, 1, 16, 1, 1), (1, 1, 24, 1, 8)),
            "cp": ((2, 4, 2 * m, 1, 4), (1, 4, 4 * m, 1, 4), (4, 4, 2, 1, 8), (1, 8, 2 * m, 1, 4)),
            "moe": ((1, 1, 16, 1, 4), (1, 1, 32, 1, 8), (2, 1, 16 * m, 1, 8)),
            "hier": ((1, 1, 16 * m, 1, 4), (1, 1, 32, 1, 8), (1, 1, 64, 1, 8)),
        }
        self.shape = sh = Shape(*rng.choice(shapes[kind]))
        self.ranks = sh.ranks
        self.steps = given.get("steps", 30 if big else rng.choice((30, 40, 60)))
        self.micro = rng.choice((4, 6, 8)) if sh.pp > 1 else rng.choice((1, 2, 4))
        if sh.pp > 1:
            self.micro = max(self.micro, sh.pp)
            if kind == "interleaved":
                self.micro = sh.pp * rng.choice((1, 2))
        self.piece = rng.uniform(8, 40) * MS
        self.jitter = given.get("jitter", rng.choice((0.005, 0.01, 0.02, 0.03)))
        self.net = rng.uniform(*given.get("net", (0.05, 0.4)))   # a transfer by a piece of work
        self.uneven = given.get("uneven", 0)
        self.warm = rng.choice((0, 2, 3)) if given.get("warm", True) else 0
        self.calls = given.get("calls", rng.random() < 0.5)
        self.offset = given.get("offset", rng.choice((0, 2 * MS, 5 * MS)))
        self.offsets = [rng.uniform(-self.offset, self.offset) for _ in range(self.ranks)]
        self.drifts = [rng.uniform(-20e-6, 20e-6) for _ in range(self.ranks)]
        self.numbering = given.get("numbering", rng.choice(("comm", "function")))
        self.spelling = rng.choice(SPELLINGS)
        self.pairs_of_two = rng.random() < 0.3      # a communicator of each two neighbours in a pipeline
        self.evaluate = given.get("evaluate", 0)
        self.save = given.get("save", 0)
        self.gc = given.get("gc", 0)
        self.stalls = given.get("stalls", 0)
        self.warm_hosts = [1 + (given.get("hosts", 0) * rng.random()) for _ in range(self.ranks)]
        self.bubble_sync = rng.random() < 0.3
        self.last_stage = rng.choice((1.0, 1.0, 1.15)) if sh.pp > 1 else 1.0
        self.noise = [random.Random(f"{seed}noise{r}") for r in range(self.ranks)]
        self.cost_noise = random.Random(f"{seed}cost")
        self.stall_at = collections.defaultdict(dict)
        few = rng.sample(range(self.ranks), min(self.ranks, 6))
        for i in range(self.stalls):
            self.stall_at[few[i % len(few)]][rng.randrange(3, self.steps)] = rng.uniform(0.3, 3) * S
        self.make_comms()

    def host(self, rank):
        return rank // self.shape.per_host

    def make_comms(self):
        sh, self.comms = self.shape, {}
        prefix = self.rng.choice(("", "0x7f3a9c00", "pg/", "grp "))
        def add(name, ranks, **more):
            c = Comm(prefix + name, ranks, **more)
            self.comms[name] = c
            return c
        for r in range(sh.ranks):
            t, c, d, p = sh.of(r)
            if r == sh.rank(0, c, d, p):
                add(f"tp{c}.{d}.{p}", [sh.rank(x, c, d, p) for x in range(sh.tp)])
            if r == sh.rank(t, 0, 0, p):
                add(f"dp{t}.{p}", [sh.rank(t, y, x, p) for x in range(sh.dp) for y in range(sh.cp)])
            if r == sh.rank(t, 0, d, p):
                add(f"cp{t}.{d}.{p}", [sh.rank(t, x, d, p) for x in range(sh.cp)], serial=False)
            if r == sh.rank(t, c, d, 0):
                add(f"pp{t}.{c}.{d}", [sh.rank(t, c, d, x) for x in range(sh.pp)], serial=self.kind == "1f1b")
                if sh.pp > 1:
                    add(f"emb{t}.{c}.{d}", [sh.rank(t, c, d, 0), sh.rank(t, c, d, sh.pp - 1)])
        self.world = add("world", range(sh.ranks))
        for h in range((sh.ranks + sh.per_host - 1) // sh.per_host):
            add(f"host{h}", [r for r in range(sh.ranks) if self.host(r) == h])
        for i in range(sh.per_host):
            add(f"rail{i}", [r for r in range(sh.ranks) if r % sh.per_host == i])
        if self.kind == "moe":
            n = self.rng.choice((8, 16))
            for e in range(0, sh.ranks, n):
                add(f"ep{e // n}", range(e, min(e + n, sh.ranks)))

    def cost(self, op, begins):
        f = self.fault
        comm, parts = op.comm, op.parts
        start = max(begins.values())
        any_part = next(iter(parts.values()))
        if self.hangs(op, any_part, start):
            return None
        noise = self.cost_noise
        if any_part.peer is not None:
            src, dst = (any_part.rank, any_part.peer) if any_part.function == "Send" else (any_part.peer, any_part.rank)
            took = self.hop(src, dst, any_part.bytes, start)
            end = start + took * noise.uniform(0.97, 1.05) + 15 * US
            return {src: end, dst: end + noise.uniform(0, 20) * US}
        function, ranks = any_part.function, comm.ranks
        n = len(ranks)
        if n == 1:
            return {r: begins[r] + 10 * US for r in ranks}
        if function == "AllToAll":
            return {r: start + max(self.exchange(r, ranks, parts, start), 30 * US) * noise.uniform(0.97, 1.08) for r in ranks}
        if function == "Broadcast":
            root = ranks[0]
            took = max(self.hop(a, b, any_part.bytes, start) for a, b in zip(ranks, ranks[1:]))
            return {r: (begins[root] if r == root else max(begins[root], begins[r])) + took + 20 * US for r in ranks}
        size = any_part.bytes * (n - 1) / n * (2 if function == "AllReduce" else 1)
        took = max(self.hop(a, b, size, start) for a, b in zip(ranks, (*ranks[1:], ranks[0])))
        end = start + took * noise.uniform(0.97, 1.06) + 10 * US * n
        return {r: end + noise.uniform(0, 30) * US for r in ranks}

    def hop(self, src, dst, size, now):
        """What it takes to send from one rank to another."""
        if self.host(src) == self.host(dst):
            return size / 150                     # bytes a nanosecond
        return size / 25 * self.slow(src, dst, now)

    def slow(self, src, dst, now):
        factor = 1.0
        for f in (self.fault, self.fault.get("also", {})):
            if not f or now < f.get("since", NEVER):
                continue
            if f.get("sometimes") and self.cost_noise.random() > f["sometimes"]:
                continue
            if f["kind"] == "sender" and src == f["rank"] or f["kind"] == "receiver" and dst == f["rank"] \
                    or f["kind"] == "card" and f["rank"] in (src, dst) \
                    or f["kind"] == "hosts" and {self.host(src), self.host(dst)} == f["pair"] \
                    or f["kind"] == "pair" and (src, dst) == f["pair"]:
                factor *= f["factor"]
        return factor

    def exchange(self, rank, ranks, parts, now):
        n = len(ranks)
        out = sum(self.hop(rank, r, parts[rank].bytes / n, now) for r in ranks if r != rank)
        into = sum(self.hop(r, rank, parts[r].bytes / n, now) for r in ranks if r != rank)
        return max(out, into)

    def hangs(self, op, part, start):
        f = self.fault
        if f.get("kind") == "transfer stands" and start >= f["since"] and part.peer is not None:
            return set(op.parts) == set(f["pair"])
        if f.get("kind") == "collective stands" and start >= f["since"] and part.peer is None:
            return op.comm.name == f["comm"]
        return False

    def work(self, rank, step, scale=1.0, backward=False):
        n = self.noise[rank]
        ns = self.piece * scale * (2 if backward else 1) * n.lognormvariate(0, self.jitter)
        ns *= self.warm_hosts[self.host(rank)]
        if step < self.warm:
            ns *= 4 / (step + 1)
        t, c, d, p = self.shape.of(rank)
        if p == self.shape.pp - 1:
            ns *= self.last_stage
        for f in (self.fault, self.fault.get("also", {})):
            if f and f.get("rank") == rank:
                if f["kind"] == "late" and step >= f["step"]:
                    ns *= f["factor"]
                elif f["kind"] == "drifts" and step >= f["step"]:
                    ns *= 1 + (f["factor"] - 1) * (step - f["step"] + 1) / (self.steps - f["step"])
            if f and f["kind"] == "host late" and f["host"] == self.host(rank) and step >= f["step"]:
                ns *= f["factor"]
        return ns

    def length(self, d, step, m):
        if not self.uneven:
            return 1.0
        return random.Random(f"{self.seed}/{d}/{step}/{m}").uniform(1 - self.uneven, 1 + self.uneven)

    def bytes_of(self, scale=1.0):
        """Bytes that take scale pieces of work on the network, through a ring."""
        return int(self.piece * self.net * 25 * scale) // 512 * 512

    def program(self, rank):
        f = self.fault
        for step in range(self.steps):
            # data, garbage collection, saving: the host's
            stall = self.stall_at[rank].get(step)
            if stall:
                yield ("host", stall)
            if step == 0 and self.warm:
                yield ("host", self.rng.uniform(2, 8) * S if rank == 0 else 3 * S)
            if self.gc and self.noise[rank].random() < self.gc:
                yield ("host", self.noise[rank].uniform(50, 300) * MS)
            if f.get("kind") == "late once" and f["rank"] == rank and f["step"] == step:
                yield ("host", f["pause"])
            yield from getattr(self, "step_" + self.kind.replace("1f1b", "pipeline"))(rank, step, False)
            yield ("sync",)
            if self.evaluate and step % self.evaluate == self.evaluate - 1:
                for _ in range(3):
                    yield from getattr(self, "step_" + self.kind.replace("1f1b", "pipeline"))(rank, step, True)
                yield ("sync",)
            if self.save and step % self.save == self.save - 1:
                pause = 1.5 * S * self.noise[rank].uniform(0.8, 1.3)
                if f.get("kind") == "save stalls" and f["rank"] == rank and step >= f["step"]:
                    pause += f["pause"]
                yield ("host", pause)
                if self.save % 2:
                    yield ("wait", (yield ("call", self.world, "AllReduce", 4)))
                    yield ("sync",)

    def tensor(self, rank, step, scale, backward=False):
        sh = self.shape
        t, c, d, p = sh.of(rank)
        comm = self.comms[f"tp{c}.{d}.{p}"]
        for _ in range(2 if sh.tp > 1 else 1):
            yield ("work", self.work(rank, step, scale / (2 if sh.tp > 1 else 1), backward))
            if sh.tp > 1:
                h = yield ("call", comm, "AllReduce", int(self.bytes_of(0.3) * scale))
                yield ("wait", h)

    def pp_comm(self, rank, q):
        sh = self.shape
        t, c, d, p = sh.of(rank)
        if self.pairs_of_two:
            a, b = min(p, q), max(p, q)
            key = f"pp{t}.{c}.{d}:{a}-{b}"
            if key not in self.comms:
                self.comms[key] = Comm(self.comms[f"pp{t}.{c}.{d}"].name + f":{a}-{b}",
                                       [sh.rank(t, c, d, a), sh.rank(t, c, d, b)], self.kind == "1f1b")
            return self.comms[key]
        return self.comms[f"pp{t}.{c}.{d}"]

    def exchange_p2p(self, rank, moves):
        """moves: (kind, stage); a launch for each communicator."""
        t, c, d, p = self.shape.of(rank)
        by = {}
        for kind, q, size in moves:
            comm = self.pp_comm(rank, q)
            by.setdefault(comm.name, (comm, []))[1].append((kind, self.shape.rank(t, c, d, q), size))
        handles = []
        for comm, list_ in by.values():
            handles += yield ("p2p", comm, tuple(list_))
        yield ("wait", handles)
        if self.bubble_sync:
            yield ("sync",)

    def step_pipeline(self, rank, step, evaluate):
        sh = self.shape
        t, c, d, p = sh.of(rank)
        P, M = sh.pp, self.micro
        def size(m):
            return int(self.bytes_of(0.5) * (self.length(d, step, m)))
        warm = min(P - p - 1, M)
        first, last = p == 0, p == P - 1
        def fwd(m):
            return self.tensor(rank, step, self.length(d, step, m))
        def bwd(m):
            return self.tensor(rank, step, self.length(d, step, m), True)
        if evaluate:
            for m in range(M):
                if not first:
                    yield from self.exchange_p2p(rank, [("Recv", p - 1, size(m))])
                yield from fwd(m)
                if not last:
                    yield from self.exchange_p2p(rank, [("Send", p + 1, size(m))])
        else:
            for m in range(warm):
                if not first:
                    yield from self.exchange_p2p(rank, [("Recv", p - 1, size(m))])
                yield from fwd(m)
                yield from self.exchange_p2p(rank, [("Send", p + 1, size(m))])
            rest = M - warm
            if rest and not first:
                yield from self.exchange_p2p(rank, [("Recv", p - 1, size(warm))])
            for i in range(rest):
                m = warm + i
                yield from fwd(m)
                if not last:
                    yield from self.exchange_p2p(rank, [("Send", p + 1, size(m)), ("Recv", p + 1, size(i))])
                yield from bwd(i)
                if i == rest - 1:
                    if not first:
                        yield from self.exchange_p2p(rank, [("Send", p - 1, size(i))])
                elif not first:
                    yield from self.exchange_p2p(rank, [("Send", p - 1, size(i)), ("Recv", p - 1, size(m + 1))])
            for m in range(rest, M):
                yield from self.exchange_p2p(rank, [("Recv", p + 1, size(m))])
                yield from bwd(m)
                if not first:
                    yield from self.exchange_p2p(rank, [("Send", p - 1, size(m))])
        yield from self.finish(rank, step, evaluate)

    def finish(self, rank, step, evaluate, overlapped=()):
        sh = self.shape
        t, c, d, p = sh.of(rank)
        if evaluate:
            h = yield ("call", self.world, "AllReduce", 8)
            yield ("wait", h)
            return
        if overlapped:
            yield ("wait", list(overlapped))
        elif sh.dp * sh.cp > 1:
            h = yield ("call", self.comms[f"dp{t}.{p}"], "ReduceScatter", self.bytes_of(2))
            yield ("wait", h)
        if sh.pp > 1 and p in (0, sh.pp - 1):
            h = yield ("call", self.comms[f"emb{t}.{c}.{d}"], "AllReduce", self.bytes_of(0.4))
            yield ("wait", h)
        h = yield ("call", self.world, "AllReduce", 8)
        yield ("wait", h)
        yield ("work", self.work(rank, step, 0.5))
        if sh.dp * sh.cp > 1 and not overlapped:
            h = yield ("call", self.comms[f"dp{t}.{p}"], "AllGather", self.bytes_of(2))
            yield ("wait", h)

    def step_interleaved(self, rank, step, evaluate):
        sh = self.shape
        t, c, d, p = sh.of(rank)
        P, V = sh.pp, 2
        total = self.micro * V
        warm = total if evaluate else min((P - p - 1) * 2 + (V - 1) * P, total)
        nxt, prv = (p + 1) % P, (p - 1) % P
        size = self.bytes_of(0.3)
        sends = []
        def chunk(i, forward):
            v = i % (P * V) // P
            return v if forward else V - 1 - v
        def micro(i):
            return i // (P * V) * P + i % P

        def peer(q):
            return sh.rank(t, c, d, q)

        def forward(i):
            v = chunk(i, True)
            if not (p == 0 and v == 0):
                yield ("wait", (yield ("p2p", self.pp_comm(rank, prv), (("Recv", peer(prv), size),))))
            yield from self.tensor(rank, step, self.length(d, step, micro(i)) / V)
            if not (p == P - 1 and v == V - 1):
                sends.extend((yield ("p2p", self.pp_comm(rank, nxt), (("Send", peer(nxt), size),))))
        def backward(i):
            v = chunk(i, False)
            if not (p == P - 1 and v == V - 1):
                yield ("wait", (yield ("p2p", self.pp_comm(rank, nxt), (("Recv", peer(nxt), size),))))
            yield from self.tensor(rank, step, self.length(d, step, micro(i)) / V, True)
            if not (p == 0 and v == 0):
                sends.extend((yield ("p2p", self.pp_comm(rank, prv), (("Send", peer(prv), size),))))
        for i in range(warm):
            yield from forward(i)
        grads = []
        if not evaluate:
            for i in range(warm, total):
                yield from forward(i)
                yield from backward(i - warm)
            for i in range(total - warm, total):
                yield from backward(i)
                if i == total - 1 - P and sh.dp > 1:
                    grads = yield ("call", self.comms[f"dp{t}.{p}"], "ReduceScatter", self.bytes_of(1))
        yield ("wait", sends)
        if grads:
            grads += yield ("call", self.comms[f"dp{t}.{p}"], "ReduceScatter", self.bytes_of(1))
        yield from self.finish(rank, step, evaluate, grads)

    def step_zero(self, rank, step, evaluate):
        comm, handles = self.comms["dp0.0"], []
        for m in range(self.micro):
            length = self.length(rank, step, m)
            for _ in range(2):
                yield ("work", self.work(rank, step, length))
            if evaluate:
                continue
            for bucket in range(4):
                yield ("work", self.work(rank, step, length / 2, True))
                if m == self.micro - 1 or self.micro == 2:
                    handles += yield ("call", comm, "ReduceScatter", self.bytes_of(1))
        if evaluate:
            yield ("wait", (yield ("call", self.world, "AllReduce", 8)))
            return
        yield ("wait", handles)
        yield ("wait", (yield ("call", self.world, "AllReduce", 4)))
        yield ("work", self.work(rank, step, 0.3))
        for bucket in range(2):
            h = yield ("call", comm, "AllGather", self.bytes_of(2))
        yield ("wait", h)

    def step_ddp(self, rank, step, evaluate):
        comm, handles = self.world, []
        yield ("work", self.work(rank, step, 3 * self.length(rank, step, 0)))
        if evaluate:
            yield ("wait", (yield ("call", comm, "AllGather", 64 * 512)))
            return
        for bucket in range(5):
            yield ("work", self.work(rank, step, self.length(rank, step, 0) / 2, True))
            handles += yield ("call", comm, "AllReduce", self.bytes_of(0.5 if bucket else 0.1))
        yield ("wait", handles)
        yield ("work", self.work(rank, step, 0.3))

    def step_cp(self, rank, step, evaluate):
        sh = self.shape
        t, c, d, p = sh.of(rank)
        comm = self.comms[f"cp{t}.{d}.{p}"]
        nxt, prv = sh.rank(t, (c + 1) % sh.cp, d, p), sh.rank(t, (c - 1) % sh.cp, d, p)
        for m in range(self.micro):
            length = self.length(d, step, m)
            for back in (False,) if evaluate else (False, True):
                for layer in range(2):
                    for i in range(sh.cp - 1):
                        size = int(self.bytes_of(0.3) * length)
                        h = yield ("p2p", comm, (("Send", nxt, size), ("Recv", prv, size)))
                        yield ("work", self.work(rank, step, length / sh.cp, back))
                        yield ("wait", h)
                    yield from self.tensor(rank, step, length / sh.cp, back)
        yield from self.finish(rank, step, evaluate)

    def step_moe(self, rank, step, evaluate):
        sh = self.shape
        t, c, d, p = sh.of(rank)
        comm = next(x for n, x in self.comms.items() if n.startswith("ep") and rank in x.ranks)
        for m in range(self.micro):
            for back in (False,) if evaluate else (False, True):
                for layer in range(3):
                    yield from self.tensor(rank, step, 0.6, back)
                    size = int(self.bytes_of(0.5) * self.noise[rank].uniform(0.6, 1.4))
                    yield ("wait", (yield ("call", comm, "AllToAll", size)))
                    # experts are loaded unevenly
                    yield ("work", self.work(rank, step, 0.5 * self.noise[rank].uniform(0.7, 1.3), back))
                    size = int(self.bytes_of(0.5) * self.noise[rank].uniform(0.6, 1.4))
                    yield ("wait", (yield ("call", comm, "AllToAll", size)))
        yield from self.finish(rank, step, evaluate)

    def step_hier(self, rank, step, evaluate):
        inside, rail = self.comms[f"host{self.host(rank)}"], self.comms[f"rail{rank % self.shape.per_host}"]
        for m in range(self.micro):
            length = self.length(rank, step, m)
            yield ("work", self.work(rank, step, length))
            if not evaluate:
                yield ("work", self.work(rank, step, length, True))
        if evaluate:
            yield ("wait", (yield ("call", self.world, "AllReduce", 8)))
            return
        for bucket in range(3):
            n = self.bytes_of(1)
            yield ("wait", (yield ("call", inside, "ReduceScatter", n * self.shape.per_host)))
            yield ("wait", (yield ("call", rail, "AllReduce", n)))
            yield ("wait", (yield ("call", inside, "AllGather", n * self.shape.per_host)))
        yield ("work", self.work(rank, step, 0.3))

    def clock(self, host, moment):
        return int(1764000000 * S + moment * (1 + self.drifts[host]) + self.offsets[host])

    def run(self):
        f = self.fault
        stop = None
        if f.get("kind") == "stopped":
            def stop(rank, calls):
                return rank == f["rank"] and calls >= f["calls"]

        dead = {r: f["since"] for r in range(self.ranks) if self.host(r) == f["host"]} if f.get("kind") == "host dies" else {}
        if f.get("kind") == "died":
            dead = {f["rank"]: f["since"]}
        self.cluster = Cluster(self.seed, self.ranks, self.shape.per_host, self.program, self.cost, stop, dead)
        parts = self.cluster.run(self.calls)
        rows, counts = [], collections.Counter()
        for part in parts:
            r, begin = part.rank, part.begin()
            begins = part.called if self.calls else begin
            key = (r, part.comm.name) if self.numbering == "comm" else \
                (r, part.comm.name, part.function) if self.numbering == "function" else \
                (r, part.comm.name, part.function, part.peer)
            n = counts[key]
            counts[key] += 1
            if begins is None or (dead.get(r, NEVER) < begins):
                continue
            h = self.host(r)
            rows.append({"rank": r, "host": f"node{h:03}", "communicator": part.comm.name,
                         "function": self.spelling.get(part.function, part.function), "sequence": n, "bytes": part.bytes,
                         "start_ns": self.clock(h, begins), "end_ns": "" if part.end is None else self.clock(h, part.end),
                         "peer": "" if part.peer is None else part.peer,
                         "_true": part})
        if f.get("kind") in ("size", "function"):
            mismatch(self, rows)
        return rows


def mismatch(job, rows):
    """Other size or function: a call of one rank is changed, and nothing ends after that."""
    f = job.fault
    plain = {"AllReduce", "ReduceScatter", "AllGather"}
    own = [x for x in rows if x["rank"] == f["rank"] and x["_true"].function in plain and len(x["_true"].comm.ranks) > 2
           and x["_true"].called > f["since"] and x["bytes"] > 4096]
    one = own[0]
    f["comm"] = one["_true"].comm.name
    since = max(p.begin() or 0 for p in one["_true"].op.parts.values())
    if f["kind"] == "size":
        one["bytes"] = one["bytes"] // 2
    elif f["kind"] == "function":
        other = "AllGather" if one["_true"].function == "AllReduce" else "AllReduce"
        one["function"] = job.spelling.get(other, other)
    stop(rows, since, one["_true"].op)


def stop(rows, since, op):
    """What comes after an operation that stands: its ranks begin nothing more, and who waits for them stands."""
    blocked = {r: since for r in op.parts}
    changed = True
    while changed:
        changed = False
        for x in rows:
            part = x["_true"]
            b = part.begin()
            for r, q in list(part.op.parts.items()):
                if r in blocked and (q.begin() or NEVER) > blocked[r] and part.op is not op:
                    if b is not None and b < blocked.get(x["rank"], NEVER):
                        blocked[x["rank"]] = b
                        changed = True
    keep = []
    for x in rows:
        part = x["_true"]
        b, at = part.begin(), blocked.get(x["rank"], NEVER)
        if part.op is op:
            x["end_ns"] = ""
        elif b is None or b > at:
            continue
        elif any((q.begin() or NEVER) > blocked.get(r, NEVER) for r, q in part.op.parts.items()):
            x["end_ns"] = ""
        keep.append(x)
    rows[:] = keep
