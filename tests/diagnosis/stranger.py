#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Jobs as a stranger who has read only what a table has to look like might write them.

Each rank is a program of integer microseconds: it runs, calls collectives, or launches sends and receives.
Communicators are named by hashes, functions as NCCL, PyTorch or a GPU's kernels name them; numbers count by
communicator, function or the whole rank; times are those of an epoch, of a clock of 1 us or coarser; lines come by
end, by rank or in no order. Shares nothing with the other generators but tables.py.

    cd build && ../tests/diagnosis/stranger.py --seeds 4 [CASE...]
"""
import hashlib
import random
import sys

from tables import COLUMNS, csv_of, diagnose, options

NAMES = ({}, {"AllReduce": "all_reduce", "AllGather": "all_gather", "ReduceScatter": "reduce_scatter",
              "Broadcast": "broadcast", "AllToAll": "all_to_all", "Barrier": "barrier", "Send": "send", "Recv": "recv"},
         {"AllReduce": "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
          "AllGather": "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
          "ReduceScatter": "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
          "Broadcast": "ncclDevKernel_Broadcast_RING_LL(ncclDevKernelArgsStorage<4096ul>)"},
         {"AllReduce": "ncclAllReduce", "AllGather": "ncclAllGather", "ReduceScatter": "ncclReduceScatter",
          "Broadcast": "ncclBroadcast", "AllToAll": "ncclAlltoAll", "Send": "ncclSend", "Recv": "ncclRecv"},
         {"AllReduce": "allreduce", "AllGather": "allgather", "ReduceScatter": "reducescatter",
          "AllToAll": "alltoall", "Barrier": "barrier", "Broadcast": "bcast", "Send": "isend", "Recv": "irecv"})


class Job:
    """Programs of ranks, and what becomes of them."""

    def __init__(self, rng, world, gpus):
        self.rng, self.world, self.gpus = rng, world, gpus
        self.code = [[] for _ in range(world)]
        self.members, self.counts, self.rows = {}, {}, []
        self.jitter = rng.choice((0, 1, 3, 8))          # [percent] of what a rank runs, evenly
        self.wire = rng.choice((1, 4, 10))              # [percent] of what a transfer takes
        self.leave = rng.choice((0, 2, 20))             # [us] between ends of one collective
        self.step = 0
        self.scale = {}                                 # of steps: percent
        self.slow_run = self.slow_wire = lambda *_: 1.0
        self.stands, self.stops = None, None            # what never ends; (rank, operation) never entered
        self.inner = rng.choice((1, 4))                 # as fast within a host

    def run(self, rank, us):
        us = us * self.scale.get(self.step, 100) // 100
        us += us * self.rng.randint(-self.jitter, self.jitter) // 100
        self.code[rank].append(("run", self.step, max(1, us)))

    def together(self, members, function, size, us):
        key = (tuple(members), function == "group")
        count = self.counts[key] = self.counts.get(key, -1) + 1
        for rank in members:
            self.code[rank].append(("all", self.step, key[0], function, size, us, (key, count)))

    def launch(self, rank, comm, parts):
        """Sends and receives of (direction, peer, size, us) at once."""
        made = []
        for way, peer, size, us in parts:
            ends = (rank, peer) if way == "Send" else (peer, rank)
            key = (comm, ends, way)
            count = self.counts[key] = self.counts.get(key, -1) + 1
            made.append((way, peer, size, us, (comm, ends, count)))
        self.code[rank].append(("pair", self.step, comm, made))

    def takes(self, us, ranks, step):
        if len({r // self.gpus for r in ranks}) == 1:
            us //= self.inner
        us += us * self.rng.randint(-self.wire, self.wire) // 100
        return max(1, int(us * self.slow_wire(ranks, step)))

    def play(self):
        at, now = [0] * self.world, [self.rng.randint(0, 900) for _ in range(self.world)]
        came, sides, placed = {}, {}, {}
        todo = list(range(self.world))
        while todo:
            rank = todo.pop()
            while at[rank] < len(self.code[rank]):
                if self.stops == (rank, at[rank]):
                    break
                op = self.code[rank][at[rank]]
                if op[0] == "run":
                    now[rank] += int(op[2] * self.slow_run(rank, op[1]))
                    at[rank] += 1
                elif op[0] == "all":
                    if not self.gather(op, rank, at, now, came, todo):
                        break
                elif not self.exchange(op, rank, at, now, sides, placed, todo):
                    break
        return self

    def row(self, rank, comm, function, size, count, start, peer=""):
        row = {"rank": rank, "comm": comm, "function": function, "count": count, "bytes": size, "start": start,
               "end": None, "peer": peer}
        self.rows.append(row)
        return row

    def gather(self, op, rank, at, now, came, todo):
        _, step, members, function, size, us, key = op
        here = came.setdefault(key, {})
        if rank not in here:
            here[rank] = self.row(rank, members, function, size, key[1], now[rank])
        if len(here) < len(members) or key == self.stands:
            return False
        done = max(r["start"] for r in here.values()) + self.takes(us, members, step)
        for other, row in here.items():
            row["end"] = now[other] = done + self.rng.randint(0, self.leave)
            at[other] += 1
            if other != rank:
                todo.append(other)
        return True

    def exchange(self, op, rank, at, now, sides, placed, todo):
        _, step, comm, parts = op
        if (rank, at[rank]) not in placed:
            placed[rank, at[rank]] = mine = []
            for way, peer, size, us, key in parts:
                mine.append(self.row(rank, comm, way, size, key[2], now[rank], peer))
                both = sides.setdefault(key, [])
                both.append(mine[-1])
                if len(both) == 2 and key != self.stands:
                    done = max(r["start"] for r in both) + self.takes(us, key[1], step)
                    for side in both:
                        side["end"] = done + self.rng.randint(0, self.leave)
                    todo.append(peer)
        mine = placed[rank, at[rank]]
        if any(r["end"] is None for r in mine):
            return False
        now[rank] = max(r["end"] for r in mine)
        at[rank] += 1
        return True


def buckets(job, p, steps):
    sizes = [1 << job.rng.randint(22, 28) for _ in range(p["buckets"])]
    for job.step in range(steps):
        p["before"](job)
        everyone = range(job.world)
        for size in sizes:
            for rank in everyone:
                job.run(rank, p["length"](job, rank, p["us"]) // len(sizes))
            job.together(everyone, "AllReduce", size, 300 + size // 40000)


def sharded(job, p, steps):
    everyone, size = range(job.world), 1 << job.rng.randint(22, 26)
    for job.step in range(steps):
        p["before"](job)
        for function, us in [("AllGather", 1)] * p["layers"] + [("AllGather", 2), ("ReduceScatter", 0)] * p["layers"]:
            job.together(everyone, function, size, 200 + size // 60000)
            for rank in everyone:
                if us:
                    job.run(rank, p["length"](job, rank, p["us"] * us) // (3 * p["layers"]))


def tensor(job, p, steps):
    tp = job.gpus
    for job.step in range(steps):
        p["before"](job)
        for _ in range(p["layers"]):
            for first in range(0, job.world, tp):
                us = p["length"](job, first, p["us"]) // p["layers"]
                for rank in range(first, first + tp):
                    job.run(rank, us)
                job.together(range(first, first + tp), "AllReduce", 1 << 24, us // 5)
        for k in range(tp):
            job.together(range(k, job.world, tp), "AllReduce", 1 << 27, p["us"] // 3)


def piped(job, p, steps):
    """Stages by turns: forward all, then backward all; sums of copies where there are any, and no other collective."""
    stages, per = p["stages"], job.world // p["stages"]

    def turn(copy, stage, other, size, us):
        rank = stage * per + copy
        if 0 <= other < stages:
            job.launch(rank, "pp", [("Recv", other * per + copy, size, 600)])
        scale = p.get("last", 100) if stage == stages - 1 else 100
        job.run(rank, p["length"](job, rank, us * scale // 100))
        other = 2 * stage - other
        if 0 <= other < stages:
            job.launch(rank, "pp", [("Send", other * per + copy, size, 600)])

    for job.step in range(steps):
        p["before"](job)
        for copy in range(per):
            for _ in range(p["micro"]):
                for stage in range(stages):
                    turn(copy, stage, stage - 1, 1 << 24, p["us"] // (3 * p["micro"]))
            for _ in range(p["micro"]):
                for stage in reversed(range(stages)):
                    turn(copy, stage, stage + 1, 1 << 24, 2 * p["us"] // (3 * p["micro"]))
        if per > 1 and p.get("sums", True):
            for stage in range(stages):
                job.together(range(stage * per, stage * per + per), "AllReduce", 1 << 27, p["us"] // 5)


def experts(job, p, steps):
    """Groups of ranks one to a host, or all, give each other tokens before and after the experts' work."""
    groups = [list(range(k, job.world, job.gpus)) for k in range(job.gpus)] if p["apart"] else [list(range(job.world))]
    for job.step in range(steps):
        p["before"](job)
        for _ in range(p["layers"]):
            for half in (2, 1):
                for rank in range(job.world):
                    job.run(rank, p["length"](job, rank, p["us"] * half) // (3 * p["layers"]))
                for members in groups:
                    if p["calls"]:
                        job.together(members, "AllToAll", 1 << 25, p["us"] // (8 * p["layers"]))
                        continue
                    for i, rank in enumerate(members):
                        peers = [members[(i + k) % len(members)] for k in range(1, len(members))]
                        sizes = [job.rng.randint(1 << 20, 1 << 22) if p["uneven"] else 1 << 21 for _ in peers]
                        us = p["us"] // (8 * p["layers"])
                        job.launch(rank, "ep", [x for q, size in zip(peers, sizes) for x in (
                            ("Send", q, size, us * size >> 21), ("Recv", q, size, us))])
        job.together(range(job.world), "AllReduce", 1 << 26, p["us"] // 6)


def around(job, p, steps):
    """Keys and values run round while each rank works on what it has."""
    everyone = range(job.world)
    for job.step in range(steps):
        p["before"](job)
        for _ in range(p["layers"]):
            for rank in everyone:
                job.run(rank, p["length"](job, rank, p["us"]) // p["layers"])
                job.launch(rank, "cp", [("Send", (rank + 1) % job.world, 1 << 23, p["us"] // 12),
                                        ("Recv", (rank - 1) % job.world, 1 << 23, p["us"] // 12)])
        if p.get("sums", True):
            job.together(everyone, "AllReduce", 1 << 25, p["us"] // 8)


def rooted(job, p, steps):
    everyone = range(job.world)
    for job.step in range(steps):
        p["before"](job)
        job.together(everyone, "Broadcast", 1 << 20, 400)
        for rank in everyone:
            job.run(rank, p["length"](job, rank, p["us"]))
        job.together(everyone, "AllReduce", 1 << 26, p["us"] // 5)
        job.together(everyone, "Barrier", 0, 60)


def levels(job, p, steps):
    hosts = [range(h, h + job.gpus) for h in range(0, job.world, job.gpus)]
    for job.step in range(steps):
        p["before"](job)
        for rank in range(job.world):
            job.run(rank, p["length"](job, rank, p["us"]))
        for host in hosts:
            job.together(host, "ReduceScatter", 1 << 27, p["us"] // 10)
        for k in range(job.gpus):
            job.together(range(k, job.world, job.gpus), "AllReduce", 1 << 24, p["us"] // 6)
        for host in hosts:
            job.together(host, "AllGather", 1 << 27, p["us"] // 10)


def solid(job, p, steps):
    """Tensor within a host, stages, copies; the last stage has the vocabulary, too."""
    tp, stages = job.gpus, p["stages"]
    copies = job.world // (tp * stages)

    def base(stage, copy):
        return (stage * copies + copy) * tp

    for job.step in range(steps):
        p["before"](job)
        for copy in range(copies):
            for back in (0, 1):
                for _ in range(p["micro"]):
                    for stage in (reversed(range(stages)) if back else range(stages)):
                        ahead, behind = (stage - 1, stage + 1) if back else (stage + 1, stage - 1)
                        first = base(stage, copy)
                        us = p["length"](job, first, p["us"] * (1 + back)) // (3 * p["micro"])
                        last = p.get("last", 100) if stage == stages - 1 else 100
                        for k in range(tp):
                            if 0 <= behind < stages:
                                job.launch(first + k, "pp", [("Recv", base(behind, copy) + k, 1 << 23, 500)])
                            job.run(first + k, us * last // 100)
                        job.together(range(first, first + tp), "AllReduce", 1 << 24, us // 8)
                        for k in range(tp):
                            if 0 <= ahead < stages:
                                job.launch(first + k, "pp", [("Send", base(ahead, copy) + k, 1 << 23, 500)])
        for stage in range(stages):
            for k in range(tp):
                job.together(range(base(stage, 0) + k, base(stage, 0) + copies * tp, tp), "AllReduce", 1 << 26,
                             p["us"] // 5)


KINDS = {
    "one": (buckets, {"buckets": 1}, ((8, 8), (32, 8), (16, 4))),
    "buckets": (buckets, {"buckets": 4}, ((8, 4), (64, 8))),
    "large": (buckets, {"buckets": 2}, ((256, 8),)),
    "sharded": (sharded, {"layers": 4}, ((16, 8), (32, 8))),
    "tensor": (tensor, {"layers": 4}, ((16, 4), (64, 8))),
    "piped": (piped, {"stages": 4, "micro": 4}, ((16, 4), (32, 4), (64, 8))),
    "sends alone": (piped, {"stages": 4, "micro": 4, "sums": False}, ((16, 4), (32, 4))),
    "one pipeline": (piped, {"stages": 8, "micro": 6, "sums": False}, ((8, 4), (8, 8))),
    "experts": (experts, {"layers": 2, "apart": True, "calls": True, "uneven": False}, ((32, 8), (64, 8))),
    "experts send": (experts, {"layers": 2, "apart": True, "calls": False, "uneven": False}, ((32, 8), (32, 4))),
    "experts send all": (experts, {"layers": 1, "apart": False, "calls": False, "uneven": True}, ((8, 4), (16, 4))),
    "ring": (around, {"layers": 3}, ((8, 4), (16, 8))),
    "ring alone": (around, {"layers": 4, "sums": False}, ((8, 4), (16, 4))),
    "rooted": (rooted, {}, ((16, 8), (32, 8))),
    "levels": (levels, {}, ((16, 8), (64, 8))),
    "solid": (solid, {"stages": 4, "micro": 4}, ((64, 4), (64, 8), (32, 4))),
}


def pauses(who, us, every):
    def before(job):
        if job.step and job.step % every == 0:
            for rank in who(job):
                job.run(rank, us)
    return before


def evaluates(job):
    if job.step and job.step % 15 == 0:
        for _ in range(job.rng.randint(4, 8)):
            for rank in range(job.world):
                job.run(rank, 9000)
        job.together(range(job.world), "AllGather", 4096, 90)


def texture(rng, name):
    p = {"before": lambda job: None, "length": lambda job, rank, us: us, "us": rng.randint(20, 400) * 1000, "last": 100}
    second = 1000000
    if name == "rank 0 saves":
        p["before"] = pauses(lambda job: [0], rng.randint(1, 20) * second, rng.choice((8, 12, 25)))
    elif name == "rank 0 saves once":
        p["before"] = pauses(lambda job: [0], rng.randint(1, 20) * second, 40)
    elif name == "all save":
        p["before"] = pauses(lambda job: range(job.world), rng.randint(1, 20) * second, rng.choice((8, 12, 25)))
    elif name == "hosts save":
        p["before"] = pauses(lambda job: range(0, job.world, job.gpus), rng.randint(1, 20) * second, 20)
    elif name == "evaluates":
        p["before"] = evaluates
    elif name == "uneven":
        spread = rng.choice((10, 25, 40))
        p["length"] = lambda job, rank, us: us * (100 + job.rng.randint(-spread, spread)) // 100
    elif name == "long tails":
        p["length"] = lambda job, rank, us: us * job.rng.choice((100,) * 40 + (130, 200, 300)) // 100
    elif name == "last stage":
        p["last"] = rng.choice((130, 180))
    return p


TEXTURES = ("plain", "rank 0 saves", "rank 0 saves once", "all save", "hosts save", "evaluates", "uneven", "long tails",
            "last stage", "calls")


def text_of(job, rng, calls):
    names, coarse = rng.choice(NAMES), rng.choice((1000, 1000, 1, 10000))
    number, first = rng.choice(("comm", "function", "rank")), rng.choice((0, 1, 17))
    apart = rng.choice((0, 0, 300, 2000000))  # [us] clocks of hosts
    off = [rng.randint(-apart, apart) for _ in range(job.world)]
    epoch = 1764000000 * 10**9 + rng.randint(0, 10**9)
    rows = sorted(job.rows, key=lambda r: (r["rank"], r["start"]))
    counts, line, calls_at = {}, [], {}
    for row in rows:
        comm = row["comm"] if isinstance(row["comm"], str) else ",".join(map(str, row["comm"]))
        function = names.get(row["function"], row["function"])
        key = {"comm": (row["rank"], comm), "function": (row["rank"], comm, function), "rank": row["rank"]}[number]
        if number == "rank" and row["peer"] == "":
            key = (row["rank"], comm)
        elif row["peer"] != "" and number != "function":
            key = (row["rank"], comm, row["peer"], function)
        counts[key] = counts.get(key, first - 1) + 1
        start = row["start"]
        if calls:  # the host has called six operations ahead
            past = calls_at.setdefault(row["rank"], [])
            lead = past[-6] if len(past) >= 6 else -5000
            start = min(start, lead + 40 + len(past) % 6) if lead is not None else start
            past.append(row["end"])
        shift = off[row["rank"] // job.gpus * job.gpus] * 1000 + epoch

        def ns(us):
            return (us * 1000 + shift) // coarse * coarse

        line.append({"rank": row["rank"], "host": f"ip-10-0-{row['rank'] // job.gpus}-17", "function": function,
                     "communicator": "0x" + hashlib.sha1(comm.encode()).hexdigest()[:16], "sequence": counts[key],
                     "bytes": row["bytes"], "start_ns": ns(start), "peer": row["peer"],
                     "end_ns": "" if row["end"] is None else ns(row["end"])})
    order = rng.choice(("rank", "end", "mixed"))
    if order == "end":
        line.sort(key=lambda r: r["end_ns"] or 1 << 62)
    elif order == "mixed":
        rng.shuffle(line)
    columns = list(COLUMNS)
    rng.shuffle(columns)
    return csv_of(columns, line, "\n")


def some(job, kinds, low=0.3, high=0.9):
    """An operation of a rank, somewhere in the middle of its program."""
    for _ in range(200):
        rank = job.rng.randrange(job.world)
        code = job.code[rank]
        at = job.rng.randrange(int(len(code) * low), max(1, int(len(code) * high)))
        if code[at][0] in kinds:
            return rank, at
    return None


def harm(job, fault, steps):
    """What is right to say then: syndromes, ranks of which one is named; None: there is no such fault here."""
    rng, begin = job.rng, job.rng.choice((0, steps // 4, steps // 2))
    much = rng.uniform(1.4, 3)
    job.info = f"x{much:.2f} from {begin}"
    pairs = sorted({key[1] for code in job.code for op in code if op[0] == "pair" for *_, key in op[3]})
    kinds = {"collective stands": ("all",), "order": ("all",), "transfer stands": ("pair",)}
    where = some(job, kinds.get(fault, ("all", "pair")))
    if not where or (fault in ("sender", "receiver", "pair") and not pairs):
        return None
    rank, at = where
    op = job.code[rank][at]
    if fault == "never enters":
        job.stops = where
        return ("noncomm_hang",), {rank}, {rank}
    if fault == "collective stands":
        job.stands = op[6]
        return ("comm_hang",), set(op[2]), None
    if fault == "transfer stands":
        job.stands = rng.choice(op[3])[4]
        return ("comm_hang",), set(job.stands[1]), set(job.stands[1])
    if fault == "order":
        if len(op[2]) < 3:
            return None
        job.code[rank][at] = op[:3] + ("AllGather" if op[3] != "AllGather" else "AllReduce",) + op[4:]
        job.stands = op[6]
        return ("mismatch",), {rank}, {rank}
    if fault == "late":
        job.slow_run = lambda r, step: much if r == rank and step >= begin else 1
        return ("noncomm_slow",), {rank}, {rank}
    if fault == "late once":
        job.code[rank].insert(at, ("run", op[1], rng.randint(3, 60) * 1000000))
        return ("noncomm_slow",), {rank}, {rank}
    if fault == "drifts":
        job.slow_run = lambda r, step: 1 + much * step / steps if r == rank else 1
        return ("noncomm_slow",), {rank}, {rank}
    if fault == "communicator":
        members = rng.choice(sorted({op[2] for code in job.code for op in code if op[0] == "all"} or {None}))
        job.slow_wire = lambda ranks, step: much if ranks == members and step >= max(begin, 8) else 1
        return (("comm_slow",), set(members), None) if members else None
    ends = rng.choice(pairs)
    if fault == "sender":
        job.slow_wire = lambda ranks, step: much if ranks in pairs and ranks[0] == ends[0] and step >= begin else 1
        return ("comm_slow", "mixed"), {ends[0]}, {ends[0]}
    if fault == "receiver":
        job.slow_wire = lambda ranks, step: much if ranks in pairs and ranks[1] == ends[1] and step >= begin else 1
        return ("comm_slow", "mixed"), {ends[1]}, {ends[1]}
    job.slow_wire = lambda ranks, step: much if ranks == ends and step >= begin else 1
    return ("comm_slow",), set(ends), set(ends)


FAULTS = ("never enters", "collective stands", "transfer stands", "order", "late", "late once", "drifts", "sender",
          "receiver", "pair", "communicator")


def run_one(fault, kind, look, seed):
    """Told or not, and the records that are wrong; None where the fault is not possible."""
    rng = random.Random(f"{fault}/{kind}/{look}/{seed}")
    build, more, shapes = KINDS[kind]
    job = Job(rng, *rng.choice(shapes))
    steps = rng.choice((30, 50)) if job.world > 64 else rng.choice((50, 80))
    p = texture(rng, look) | more
    if rng.random() < 0.5:
        job.scale = {step: rng.randint(200, 900) for step in range(5)}
    build(job, p, steps)
    expected = None
    if fault != "well":
        expected = harm(job, fault, steps)
        if not expected:
            return None
    job.play()
    text = text_of(job, rng, look == "calls")
    told, bad = False, []
    for record in diagnose(text):
        named = {r for r in (record.get("rank"), record.get("peer")) if r is not None}
        right = expected and record["syndrome"] in expected[0] and (
            named & expected[1] if named or expected[2] else True)
        told = told or bool(right)
        if not right:
            bad.append(record)
    about = (f"{getattr(job, 'info', 'well')}, {job.world} ranks, {job.gpus} a host, {steps} steps, "
             f"work {p['us'] // 1000} ms +- {job.jitter} %")
    return told, bad, about + (f", right: {sorted(expected[1])[:4]}" if expected else ""), text


CASES = {f"{fault}; {kind}; {look}": (fault, kind, look)
         for fault in ("well",) + FAULTS for kind in KINDS for look in TEXTURES}
WORDS = ("well",) + FAULTS + tuple(KINDS) + TEXTURES


def main(argv=None):
    args = options(WORDS, argv, __doc__)
    fail = 0
    sums = {}
    for name, case in CASES.items():
        if args.cases and not all(c in case for c in args.cases):
            continue
        for seed in range(args.seed, args.seed + args.seeds):
            done = run_one(*case, seed)
            if not done:
                continue
            told, bad, about, text = done
            if args.write:
                with open(args.write, "w", encoding="utf-8") as file:
                    file.write(text)
            for key in ((case[0], "all"), (case[0], case[1]), (case[0], case[2])):
                total = sums.setdefault(key, [0, 0, 0])
                total[0] += 1
                total[1] += told
                total[2] += len(bad)
            fail |= bool(bad)
            if bad or (case[0] != "well" and not told):
                print(f"{name}, seed {seed}: {'told' if told else 'not told'}; {about}" + "".join(
                    f"\n    {r['syndrome']} {r.get('rank')} {r.get('peer')} {r.get('confidence')} {r['evidence_for']}"
                    for r in bad), flush=True)
    for (fault, what), (runs, told, wrong) in sums.items():
        print(f"{fault:18} {what:18} {runs:5} {told:5} {wrong:5}")
    return fail


if __name__ == "__main__":
    sys.exit(main())
