#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Jobs in the order in which frameworks communicate: PyTorch's FSDP2, in full and hybrid; Megatron, with one 1F1B
schedule and the interleaved one; DeepSpeed's ZeRO-3; experts whose tokens are exchanged by collectives or by sends; and
data parallel copies with many buckets in several communicators. It was written from the manual's text of a table, and
shares nothing with the other generators but tables.py.

usage: frameworks.py [--seeds N] [--seed FIRST] [--write FILE] [CASE...]     in the build folder

Each case is drawn for each kind of job: 8 to 64 ranks, 10 to 40 steps. *told* counts runs with a record of the fault's
kind and rank (of a pair either end), *wrong* the records that name anything else, *maybe* those of tables that end
while the job runs, which have a confidence of at most 0.7."""
import random
import sys

from engines import MS, SECOND, Pause
from orders import FAULTS, KINDS, WELL
from tables import COLUMNS, csv_of, diagnose, options

CASES = WELL + tuple(FAULTS)


def length_of(kind, case, seed):
    """How long a step takes, about."""
    probe = KINDS[kind](case, kind, seed, 2)
    probe.habits, probe.case = set(), "well"
    return probe.run() / 2


def rows_of(job, chance, long):
    """Lines of the table, by true times, then as the clocks of hosts say."""
    end = long
    hosts = range((job.ranks - 1) // job.gpus + 1)
    ends = {h: end for h in hosts}
    begin = 0
    lost = set()
    if job.case not in WELL:
        # A table ends when nobody continues, and some time later.
        hangs = FAULTS[job.case] in ("noncomm_hang", "mismatch")
        ends = {h: end + (chance.uniform(5, 30) * SECOND if hangs else 0) for h in hosts}
    if job.habits & {"cut", "tails lost", "snapshots"}:
        ends = {h: long * chance.uniform(0.6, 0.95) for h in hosts[:1]}
        ends = {h: ends[0] + (chance.uniform(0, 2) * SECOND if "snapshots" in job.habits else 0) for h in hosts}
    if "head lost" in job.habits:
        begin = long * chance.uniform(0.1, 0.4)
    if "ranks missing" in job.habits:
        lost = set(range(job.gpus)) if chance.random() < 0.3 and job.ranks > 2 * job.gpus else set(
            chance.sample(range(job.ranks), chance.choice((1, 2, 3))))
    tails = {r: long * chance.uniform(0, 0.02) if "tails lost" in job.habits else 0 for r in range(job.ranks)}
    apart = 3 * SECOND if "clocks apart" in job.habits else chance.choice((0, 0.05, 1, 20)) * MS
    base = chance.choice((0, 10 * SECOND, 1_700_000_000_123_456_789))
    clock = {h: base + round(chance.uniform(0, 2) * apart) for h in hosts}
    by_function, first = chance.random() < 0.5, chance.choice((0, 1))
    counts = {}
    found = sorted(job.machine.rows(job.starts != "begun"), key=lambda row: row[1])
    for rank, start, stop, row in found:
        key = (rank, row["communicator"], by_function and row["function"])
        number = counts[key] = counts.get(key, first - 1) + 1
        host = job.host(rank)
        if start < begin or start > ends[host] or rank in lost:
            continue
        if stop is None or stop > ends[host]:
            if tails[rank] or "tails lost" in job.habits:
                continue
            stop = None
        elif stop > ends[host] - tails[rank]:
            continue
        yield {"rank": rank, "host": f"gpu-{host:03d}", "sequence": number, "peer": "", **row,
               "start_ns": clock[host] + round(start), "end_ns": "" if stop is None else clock[host] + round(stop)}


def text_of(job, long):
    chance = random.Random(f"text {job.name}")
    rows, columns = list(rows_of(job, chance, long)), list(COLUMNS)
    chance.shuffle(columns)
    order = chance.choice(("rank", "end", "mixed"))
    if order == "rank":
        rows.sort(key=lambda row: row["rank"])
    elif order == "end":
        rows.sort(key=lambda row: row["end_ns"] or 1 << 63)
    else:
        chance.shuffle(rows)
    return csv_of(columns, rows, "\n")


def make(case, kind, seed):
    """The job after it has run, and its table; None: the kind has no such fault."""
    job = KINDS[kind](case, kind, seed)
    if (case == "slow pair" and not job.pairs) or (case == "swapped order" and not job.own_order):
        return None
    if "all pause" in job.habits:
        step = length_of(kind, case, seed)
        for _ in range(job.chance.choice((1, 2, 3))):
            ns = job.chance.uniform(5, 60) * SECOND
            job.machine.pauses.append(Pause(job.chance.uniform(0.15, 0.95) * step * job.steps, [
                ns + job.chance.uniform(0, 50) * MS for _ in range(job.ranks)]))
    long = job.run()
    if case == "slow pair" and not job.pair or FAULTS.get(case) in ("mismatch", "noncomm_hang") and not job.spoilt:
        return None
    return job, text_of(job, long)


def judge(job, records):
    """Whether the fault was told, the records that are wrong, and those that may be."""
    told, wrong, maybe = False, [], []
    cut = job.habits & {"cut", "tails lost", "snapshots"}
    for record in records:
        rank, same = record.get("rank"), record["syndrome"] == FAULTS.get(job.case)
        if job.case == "slow pair":
            good = same and {record[k] for k in ("rank", "peer") if k in record} <= set(job.pair)
        elif job.case in FAULTS:
            good = same and rank == job.fault and not record.get("others")
        else:
            good = False
        told |= good
        if not good:
            (maybe if cut and record["confidence"] <= 0.7 else wrong).append(record)
    return told, wrong, maybe


def run_one(case, kind, seed):
    done = make(case, kind, seed)
    if not done:
        return None
    job, text = done
    return (*judge(job, diagnose(text)), f"{job.ranks} ranks, {job.steps} steps, starts as {job.starts}"
            + (f", {', '.join(sorted(job.habits))}" if case == "several" else "")
            + (f", rank {job.fault} from step {job.since}" if case in FAULTS else "")
            + (f", pair {job.pair}" if job.pair else ""), text)


def main(argv=None):
    args = options(CASES, argv, __doc__)
    fail = 0
    print(f"{'case':22} {'runs':>5} {'told':>5} {'wrong':>5} {'maybe':>5}")
    for case in args.cases or CASES:
        runs = told = wrong = maybe = 0
        for kind in KINDS:
            for seed in range(args.seed, args.seed + args.seeds):
                done = run_one(case, kind, seed)
                if not done:
                    continue
                runs, told, wrong, maybe = runs + 1, told + done[0], wrong + len(done[1]), maybe + len(done[2])
                if done[1] or case in FAULTS and not done[0]:
                    print(f"  {kind}, seed {seed}: {done[3]}" + "".join(
                        f"\n    {r['syndrome']} {r.get('rank')} {r.get('peer', '')} {r.get('communicator')} "
                        f"{r['confidence']} {r['evidence_for']}" for r in done[1][:4]), flush=True)
                if args.write:
                    with open(args.write, "w", encoding="utf-8") as file:
                        file.write(done[4])
        fail |= bool(wrong)
        print(f"{case:22} {runs:5} {told if case in FAULTS else '':5} {wrong:5} {maybe:5}", flush=True)
    return fail


if __name__ == "__main__":
    sys.exit(main())
