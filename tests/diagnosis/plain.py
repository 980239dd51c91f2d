#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plain tables: jobs of 2 to 64 ranks and 5 to 40 steps, computation that varies by 1 to 5 %, clocks that agree, and
one fault or none. A rank does one thing after the other; an operation ends when all of its ranks have entered and it
has taken its time. A table ends when nobody goes on.

    cd build && ../tests/diagnosis/plain.py --seeds 10 [CASE...]

Each case is drawn for each kind of job. *told* counts runs with a record of the fault's kind and rank (of a host one of
its ranks, of a pair both), *wrong* records that name anything else."""
import collections
import random
import sys

from tables import COLUMNS, csv_of, diagnose, options

MS = 1_000_000
# ranks, ranks of a tensor communicator, stages, and the operations that sum gradients
KINDS = {
    "two": ((2,), 1, 1, ("AllReduce",) * 2),
    "one communicator": ((4, 8, 16, 64), 1, 1, ("AllReduce",)),
    "buckets": ((4, 8, 16, 32), 1, 1, ("AllReduce",) * 3),
    "sharded": ((4, 8, 16, 32), 1, 1, ("ReduceScatter", "AllGather")),
    "tensor": ((4, 8, 16, 32), 2, 1, ("AllReduce",) * 2),
    "one pipeline": ((2, 4), 1, (2, 4), ()),
    "pipelines": ((8, 16, 32), 1, 2, ("AllReduce",)),
    "all three": ((16, 32, 64), 4, 2, ("ReduceScatter", "AllGather")),
}
HANGS = ("stopped", "host dies", "collective stands", "transfer stands", "other function", "other size")
CASES = ("well", "well, all pause", "well, uneven lengths", *HANGS, "late", "late from then on", "late once", "slow pair")
SYNDROMES = {"stopped": "noncomm_hang", "host dies": "noncomm_hang", "collective stands": "comm_hang",
             "transfer stands": "comm_hang", "other function": "mismatch", "other size": "mismatch",
             "slow pair": "comm_slow"}


class Job:
    """Who is in which communicator, and what each rank does: lists of what begins with "work", "sum" or "pass"."""

    def __init__(self, chance, kind):
        sizes, self.tensor, stages, self.sums = KINDS[kind]
        self.chance = chance
        self.ranks = chance.choice(sizes)
        self.stages = self.ranks if isinstance(stages, tuple) else stages
        self.steps = chance.choice((5, 8, 12, 20, 40))
        self.when = max(2, self.steps * 3 // 4)
        self.jitter = chance.choice((0.01, 0.02, 0.05))
        self.hosts = [r // (8 if self.ranks > 8 else max(1, self.ranks // 2)) for r in range(self.ranks)]
        self.work, self.takes = chance.uniform(5, 20) * MS, chance.uniform(0.5, 4) * MS
        self.members = collections.defaultdict(list)
        width = self.ranks // self.stages
        self.row = [r % width for r in range(self.ranks)]
        self.stage = [r // width for r in range(self.ranks)]
        for r in range(self.ranks):
            for name in self.names(r):
                self.members[name].append(r)

    def names(self, rank):
        """Its tensor communicator and that of its copies; "" where it would be alone."""
        stage, tensor = self.stage[rank], self.row[rank] // self.tensor
        return (f"tp{stage}.{tensor}" if self.tensor > 1 else "",
                f"dp{stage}.{rank % self.tensor}" if self.sums else "")

    def step(self, rank):
        """Forward and backward, with what is sent between stages, and the gradients."""
        tensor, data = self.names(rank)
        width = self.ranks // self.stages
        for back in (False, True):
            before, after = (rank + width, rank - width) if back else (rank - width, rank + width)
            if 0 <= before < self.ranks:
                yield ["pass", before, rank, self.takes]
            for _ in range(2):
                yield ["work", self.work * (1 + back)]
                if tensor:
                    yield ["sum", tensor, "AllReduce", 1 << 22, self.takes]
            if 0 <= after < self.ranks:
                yield ["pass", rank, after, self.takes]
        for function in self.sums:
            yield ["sum", data, function, 1 << 25, 4 * self.takes]

    def programs(self):
        return [[list(self.step(r)) for _ in range(self.steps)] for r in range(self.ranks)]


def run(job, programs, stands):
    """The rows of a job. stands: the operation that does not end, as it is counted."""
    chance, rows, met = job.chance, [], {}
    counts = [collections.Counter() for _ in programs]
    now = [chance.uniform(0, MS) for _ in programs]
    coming = [iter([what for step in program for what in step]) for program in programs]
    ready = list(range(job.ranks))
    while ready:
        rank = ready.pop()
        for what in coming[rank]:
            if what[0] == "work":
                now[rank] += what[1] * max(0.3, chance.gauss(1, job.jitter))
                continue
            passes = what[0] == "pass"
            where = tuple(what[1:3]) if passes else what[1]
            number = counts[rank][where]
            counts[rank][where] += 1
            row = {"rank": rank, "host": f"node-{job.hosts[rank]}", "communicator": "pp" if passes else where,
                   "function": ("Send" if rank == what[1] else "Recv") if passes else what[2],
                   "sequence": number, "bytes": 1 << 21 if passes else what[3], "start_ns": int(now[rank]), "end_ns": "",
                   "peer": what[2 if rank == what[1] else 1] if passes else ""}
            rows.append(row)
            there = met.setdefault((where, number), [])
            there.append(row)
            if len(there) < (2 if passes else len(job.members[where])):
                break
            same = passes or len({(r["function"], r["bytes"]) for r in there}) == 1
            if (where, number) == stands or not same:
                break
            end = max(r["start_ns"] for r in there) + what[-1] * max(0.3, chance.gauss(1, job.jitter))
            for r in there:
                r["end_ns"] = int(end + chance.uniform(0, 20_000))
                now[r["rank"]] = r["end_ns"]
                if r["rank"] != rank:
                    ready.append(r["rank"])
    return sorted(rows, key=lambda r: r["start_ns"])


def scale(step, factor):
    """A rank's own work of a step takes so many times as long."""
    for what in step:
        if what[0] == "work":
            what[1] *= factor


def late(job, case, programs, rank):
    first = job.steps // 3 if case == "late from then on" else 0
    if case == "late once":
        programs[rank][job.when].insert(0, ["work", 20 * job.work + 100 * MS])
    else:
        factor = job.chance.uniform(1.5, 3)
        for step in programs[rank][first:]:
            scale(step, factor)


def stop(job, case, programs, rank):
    """The rank, or its host, does not do what comes after some operation."""
    at = job.chance.randrange(len(programs[rank][job.when]) - 1)
    gone = [r for r in range(job.ranks) if r == rank or case == "host dies" and job.hosts[r] == job.hosts[rank]]
    for r in gone:
        programs[r][job.when:] = [programs[r][job.when][:at]]
    return gone


def spoil(job, case, programs):
    """Puts the fault there; whom it has to be said of, all of them of a pair, and what does not end. None: the kind has
    no such fault."""
    chance = job.chance
    alone = job.stages == job.ranks
    rank = chance.randrange(1, job.ranks)
    sums = [w for w in programs[rank][job.when] if w[0] == "sum"]
    passes = [w for w in programs[rank][job.when] if w[0] == "pass"]
    if case.startswith("late") and alone or case == "host dies" and (job.tensor > 1 or job.stages > 1 or job.ranks < 4):
        return None
    if case.startswith("late"):
        late(job, case, programs, rank)
    elif case in ("stopped", "host dies"):
        return stop(job, case, programs, rank), None
    elif case in ("transfer stands", "slow pair"):
        if not passes or case == "slow pair" and job.ranks < 8:
            return None
        sender, receiver = chance.choice(passes)[1:3]
        for what in (w for p in programs for step in p for w in step) if case == "slow pair" else ():
            if what[:3] == ["pass", sender, receiver]:
                what[3] *= 8
        return [sender, receiver], ((sender, receiver), job.when) if case == "transfer stands" else None
    else:
        if case != "collective stands":  # of two ranks that differ either may be wrong
            sums = [w for w in sums if len(job.members[w[1]]) > 2]
        if not sums:
            return None
        what = chance.choice(sums)
        if case == "collective stands":
            a_step = len([w for w in sums if w[1] == what[1]])
            return job.members[what[1]], (what[1], job.when * a_step)
        what[2:4] = ("Broadcast", what[3]) if case == "other function" else (what[2], what[3] // 2)
    return [rank], None


def change(job, case, programs):
    """What happens to jobs that are well."""
    for k in range(job.steps):
        for r, program in enumerate(programs):
            if case == "well, all pause" and k % 4 == 3:
                program[k].insert(0, ["work", 800 * MS])
            if case == "well, uneven lengths":
                copy = random.Random(f"{job.steps} {job.work} {k} {job.row[r] // job.tensor}")
                scale(program[k], copy.uniform(0.8, 1.25))


def judge(case, job, right, records):
    told, wrong = False, []
    for record in records:
        named = {record[k] for k in ("rank", "peer") if k in record}
        good = right and record["syndrome"] == SYNDROMES.get(case, "noncomm_slow") and (
            named == set(right) if case in ("transfer stands", "slow pair") else
            record.get("rank", right[0]) in right and (case == "collective stands" or "rank" in record))
        if good and case != "host dies" and record.get("others"):
            good = False
        told = told or bool(good)
        if not good:
            wrong.append(record)
    return told, wrong


def run_one(case, kind, seed):
    """Whether it was told, and the records that are wrong; None: the kind has no such fault. And the table."""
    job = Job(random.Random(f"{case} {kind} {seed}"), kind)
    programs = job.programs()
    if case.startswith("well"):
        change(job, case, programs)
    fault = ((), None) if case.startswith("well") else spoil(job, case, programs)
    if fault is None:
        return None
    text = csv_of(COLUMNS, run(job, programs, fault[1]), "\n")
    return *judge(case, job, fault[0], diagnose(text)), f"{job.ranks} ranks, {job.steps} steps", text


def main(argv=None):
    args = options(CASES, argv, __doc__)
    fail = 0
    print(f"{'case':22} {'runs':>5} {'told':>5} {'wrong':>5}")
    for case in args.cases or CASES:
        runs = told = wrong = 0
        for kind in KINDS:
            for seed in range(args.seed, args.seed + args.seeds):
                done = run_one(case, kind, seed)
                if not done:
                    continue
                runs, told, wrong = runs + 1, told + done[0], wrong + len(done[1])
                if done[1] or not done[0] and not case.startswith("well"):
                    print(f"  {kind}, seed {seed}: {done[2]}" + "".join(
                        f"\n    {r['syndrome']} {r.get('rank')} {r['evidence_for'][0]}" for r in done[1]), flush=True)
                if args.write:
                    with open(args.write, "w", encoding="utf-8") as file:
                        file.write(done[3])
        fail |= bool(wrong)
        print(f"{case:22} {runs:5} {'' if case.startswith('well') else told:5} {wrong:5}", flush=True)
    return fail


if __name__ == "__main__":
    sys.exit(main())
