#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""fabrictrace diagnose --operations against jobs that shard their layers, whose operations run beside the work; it
shares nothing with job.py and outsider.py, and knows nothing of how they are diagnosed.

usage: fsdp.py [--seeds N] [--seed FIRST] [--write FILE] [CASE...]     in the build folder

A step goes forward through the layers and back. A layer is computed when its shards have been gathered; the gathering
of the next one or two is called when its computation begins. Backward, gradients are reduced when they are computed
(ReduceScatter), and with hybrid sharding summed with the copies on other hosts (AllReduce), each in a queue
beside the work. A step ends when all queues are empty, and perhaps with a sum of all ranks, for which all wait. An
operation of a communicator begins when the one before has ended; its start is written down then, or when it was called.
It ends for all members when the last one has entered, and what it transfers is through. 8 to 64 ranks, shards of all
ranks or of a host's; prefetch, length of the work, share of the network, noise, clocks, steps, and which start is
written follow from the seed. Prints a line a case: runs, how many were told right, how many records named anything
else. A run that fails is named with its seed."""
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from tables import csv_of, diagnose, options  # noqa: E402
from tables import COLUMNS as ALL_COLUMNS  # noqa: E402

COLUMNS = tuple(c for c in ALL_COLUMNS if c != "peer")
MS = 1_000_000


class Fault:
    """What is wrong: kind, with whom, from which step on; by what factor."""

    def __init__(self, kind="", rank=-1, step=0, factor=1.0):
        self.kind, self.rank, self.step, self.factor = kind, rank, step, factor


class Queue:
    """The operations of a rank in a communicator, one after the other."""

    def __init__(self):
        self.free, self.count = 0.0, 0


class Job:
    """The operations of a job; members of a communicator call them in the same order."""

    def __init__(self, seed, name, kind="", hybrid=None, ranks=None, **habits):
        rng = self.rng = random.Random(f"{name}{seed}")
        self.hybrid = rng.random() < 0.6 if hybrid is None else hybrid
        self.ranks = ranks or rng.choice((8, 16, 16, 32, 32, 64))
        self.gpus = 4 if self.ranks == 8 else rng.choice((4, 8))
        self.layers, self.steps = rng.randint(3, 8), rng.randint(60, 120)
        if self.ranks == 64:
            self.steps = 60
        self.depth = rng.choice((1, 2))
        self.called = rng.random() < 0.5  # the start that is written is when it was called
        self.noise = habits.get("noise", rng.uniform(0.01, 0.05))
        self.forward_ns = rng.uniform(2, 20) * MS
        # What a gathering takes, by what computing a layer forward does.
        self.share = habits.get("share", rng.choice((0.1, 0.3, 0.6, 0.9, 1.3)))
        self.ends_together = rng.random() < 0.5
        self.own_reduce = rng.random() < 0.5  # gradients are reduced in a communicator of their own
        self.optimizer = rng.uniform(0.2, 1)
        self.bytes = rng.choice((8 << 20, 50_000_000, 200 << 20))
        self.base = rng.choice((0, 5 * MS, 1_700_000_000_123_456_789))
        apart = rng.choice((0, 1, 1, 50))
        hosts = self.ranks // self.gpus
        self.clock = [round(rng.uniform(0, 2 * apart) * MS) for _ in range(hosts)]
        self.fault = Fault(kind, rng.randrange(self.ranks), rng.randrange(self.steps // 4, self.steps // 2),
                           rng.uniform(*habits.get("factor", (1.2, 2))))
        self.work = [0.0] * self.ranks  # until when each computes
        self.queues = [{} for _ in range(self.ranks)]
        self.rows = []

    def __str__(self):
        f = self.fault
        return (f"{'hybrid' if self.hybrid else 'full'} {self.ranks} ranks of {self.gpus}, {self.layers} layers, depth "
                f"{self.depth}, share {self.share}, noise {self.noise:.3f}, {'called' if self.called else 'begun'}, "
                f"{self.steps} steps, {f.kind or 'well'}"
                + (f" rank {f.rank} from step {f.step}, {f.factor:.2f}" if f.kind else ""))

    def host(self, rank):
        return rank // self.gpus

    def compute(self, rank, step, share, after):
        """Computes when what is before it and `after` are over."""
        f, ns = self.fault, self.forward_ns * share
        noise = self.noise
        if f.kind == "noisy rank" and rank == f.rank:
            noise = max(5 * noise, 0.1)
        ns *= max(0.3, self.rng.gauss(1, noise))
        if step >= f.step and (rank == f.rank and f.kind in ("late", "drifts") or
                               f.kind == "host late" and self.host(rank) == self.host(f.rank)):
            ns *= 1 + (f.factor - 1) * (min(1, (step - f.step) / 20) if f.kind == "drifts" else 1)
        self.work[rank] = max(self.work[rank], after) + ns

    def took(self, members, step, share):
        """A ring is as slow as its slowest transfer."""
        f, factor = self.fault, 1.0
        if f.kind == "slow host" and step >= f.step and len({self.host(r) for r in members}) > 1 and \
                any(self.host(r) == self.host(f.rank) for r in members):
            factor = f.factor
        if f.kind == "slow card" and step >= f.step and len(members) > 1 and f.rank in members:
            factor = f.factor
        return (20_000 + self.forward_ns * self.share * share * factor) * max(0.5, self.rng.gauss(1, 0.03))

    def together(self, members, comm, function, called, step, share):
        """An operation that each member called at its time; when it was over for each."""
        began = []
        for rank in members:
            queue = self.queues[rank].setdefault(comm, Queue())
            began.append(max(called[rank], queue.free))
        end = max(began) + self.took(members, step, share)
        ends = {}
        for rank, at in zip(members, began):
            queue = self.queues[rank][comm]
            ends[rank] = queue.free = end + (self.rng.uniform(0, 20_000) if self.ends_together else
                                             self.rng.uniform(0, 0.02) * self.forward_ns * self.share)
            queue.count += 1
            clock = self.base + self.clock[self.host(rank)]
            self.rows.append({"rank": rank, "host": f"node{self.host(rank)}", "communicator": comm,
                              "function": function, "sequence": queue.count,
                              "bytes": self.bytes if share > 0.01 else 4,
                              "start_ns": clock + round(called[rank] if self.called else at),
                              "end_ns": clock + round(ends[rank])})
        return ends

    def sharded(self, function, called, step, share):
        """By all ranks, or by those of each host."""
        own = self.own_reduce and function == "ReduceScatter"
        if not self.hybrid:
            return self.together(range(self.ranks), "grads" if own else "all", function, called, step, share)
        ends = {}
        for first in range(0, self.ranks, self.gpus):
            name = f"{'grads' if own else 'shards'}{first // self.gpus}"
            ends.update(self.together(range(first, first + self.gpus), name, function, called, step, share))
        return ends

    def copies(self, called, step):
        ends = {}
        for shard in range(self.gpus):
            members = range(shard, self.ranks, self.gpus)
            ends.update(self.together(members, f"copies{shard}", "AllReduce", called, step, 1))
        return ends

    def now(self):
        return dict(enumerate(self.work))

    def sweep(self, order, step, share, each):
        """Computes layers in an order, each when it is gathered; `each` is called after each."""
        gathered, last = {}, self.now()
        for i in range(len(order)):
            for ahead in range(i, min(i + self.depth + 1, len(order))):
                if ahead not in gathered:
                    # The first ones before the work begins, the others when that of a layer does.
                    gathered[ahead] = self.sharded("AllGather", last, step, 1)
                if ahead == i:
                    last = {rank: max(at, gathered[i][rank]) for rank, at in self.now().items()}
            for rank in range(self.ranks):
                self.compute(rank, step, share, gathered[i][rank])
            if each:
                each()

    def run(self):
        summed = self.rng.random() < 0.5
        for step in range(self.steps):
            over = []

            def reduce():
                over.append(self.sharded("ReduceScatter", self.now(), step, 1))
                if self.hybrid:
                    over.append(self.copies(over[-1], step))

            self.sweep(list(range(self.layers)), step, 1, None)
            self.sweep(list(reversed(range(self.layers))), step, 2, reduce)
            self.work = [max([at] + [ends[rank] for ends in over]) for rank, at in enumerate(self.work)]
            if summed:
                ends = self.together(range(self.ranks), "all" if not self.hybrid else "world", "AllReduce", self.now(),
                                     step, 0.001)
                self.work = [max(at, ends[rank]) for rank, at in enumerate(self.work)]
            for rank in range(self.ranks):
                self.compute(rank, step, self.optimizer, 0)
        return self.rows


def case(kind="", **habits):
    return lambda name, seed: Job(seed, name, kind, **habits)


CASES = {
    # name: (job, whether a rank or its host is to be named)
    "well": (case(), False),
    "well, noisy": (case(noise=0.1), False),
    "noisy rank": (case("noisy rank"), False),
    "late": (case("late"), True),
    "late, all sharded": (case("late", hybrid=False), True),
    "late, hybrid": (case("late", hybrid=True), True),
    "late, little work": (case("late", share=1.3), True),
    "drifts": (case("drifts", factor=(1.4, 2)), True),
    "host late": (case("host late"), True),
    "slow host": (case("slow host", factor=(1.5, 4)), False),
    "slow card": (case("slow card", factor=(1.5, 4)), False),
}


def text_of(job, seed):
    rng = random.Random(f"text{seed}")
    columns, rows = list(COLUMNS), job.rows[:]
    rng.shuffle(columns)
    rng.shuffle(rows)
    return csv_of(columns, rows)


def right(record, job):
    """Whether a record names what is wrong, or a part of it."""
    f, slow = job.fault, record["syndrome"] in ("noncomm_slow", "mixed")
    if f.kind in ("late", "drifts", "noisy rank"):
        return slow and record.get("rank") == f.rank and not record.get("others")
    if f.kind == "host late":
        return slow and record.get("host") == f"node{job.host(f.rank)}"
    if f.kind in ("slow host", "slow card"):
        return record["syndrome"] == "comm_slow" and (
            record.get("rank") is None or job.host(record["rank"]) == job.host(f.rank))
    return False


def run_one(name, seed):
    job = CASES[name][0](name, seed)
    job.run()
    text = text_of(job, seed)
    records = diagnose(text)
    good = [r for r in records if right(r, job)]
    return job, text, good, [r for r in records if r not in good]


def main(argv=None):
    args = options(CASES, argv, __doc__)
    failed = 0
    print(f"seeds {args.seed} to {args.seed + args.seeds - 1}")
    print(f"{'case':24} {'runs':>4} {'told':>4} {'wrong':>5}")
    for name in args.cases or CASES:
        told = wrong = 0
        for seed in range(args.seed, args.seed + args.seeds):
            job, text, good, bad = run_one(name, seed)
            if args.write:
                pathlib.Path(args.write).write_text(text)
            told += bool(good)
            wrong += len(bad)
            if bad or (CASES[name][1] and not good):
                failed += bool(bad)
                print(f"  seed {seed}: {job}{'' if good or not CASES[name][1] else ': not told'}"
                      + "".join(f"\n    wrong: {r['syndrome']} {r.get('rank')} {r.get('communicator')} "
                                f"{r.get('slowdown')} {r['evidence_for']}" for r in bad[:3]))
        print(f"{name:24} {args.seeds:4} {told:4} {wrong:5}", flush=True)
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
