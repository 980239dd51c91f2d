#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""fabrictrace diagnose --operations against jobs on paper (job.py), whose faults are known.

usage: run.py [--seeds N] [--seed FIRST] [--write FILE] [CASE...]     in the build folder

Each case runs with as many seeds; each seed draws another job of at least 64 ranks. Prints a line a
case: how many runs were told right, with the right rank; how many gave anything that is wrong; and
how long after the fault began the records were enough. A run that fails is named with its seed.
"""
import collections
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from job import MS, Fault, Job, cut  # noqa: E402
from tables import COLUMNS, csv_of, options  # noqa: E402
from tables import diagnose as diagnose_text  # noqa: E402

SHAPES = ((4, 4, 4), (8, 8, 1), (8, 2, 4), (2, 8, 4), (16, 4, 1), (4, 8, 2), (16, 1, 4), (64, 1, 1))


def diagnose(rows, seed):
    """The records for these rows; their columns in an order that follows from the seed."""
    columns = list(COLUMNS)
    random.Random(seed).shuffle(columns)
    return diagnose_text(csv_of(columns, rows))


def shape_of(rng, pipelines=None):
    return rng.choice([s for s in SHAPES if pipelines is None or (s[2] > 1) == pipelines])


def other_host(job, rng, rank):
    """A neighbour in rank's pipeline on another host, and whether rank sends to it; None."""
    t, d, p = job.coordinates(rank)
    near = [job.rank_of(t, d, q) for q in (p - 1, p + 1) if 0 <= q < job.pp]
    near = [r for r in near if job.host(r) != job.host(rank)]
    return rng.choice(near) if near else None


def faulty(seed, kind, pipelines=None, **options):
    """A job with a fault of this kind at a rank that it can show at."""
    rng = random.Random(f"{kind}{seed}")
    while True:
        dp, tp, pp = shape_of(rng, pipelines)
        fault = Fault(kind, rank=rng.randrange(dp * tp * pp), step=rng.randrange(12, 24),
                      factor=rng.uniform(1.3, 3))
        job = Job(seed, dp, tp, pp, fault=fault, **options)
        if kind in ("pair", "pair_hang", "sender", "receiver", "mixed"):
            fault.factor = rng.uniform(1.8, 4)
            fault.peer = other_host(job, rng, fault.rank)
            if fault.peer is None:
                continue
        if kind in ("order", "size") and tp == 1:
            continue
        if kind == "group_hang" and dp == job.ranks:
            continue
        return job


def healthy(seed, **options):
    rng = random.Random(f"healthy{seed}")
    return Job(seed, *shape_of(rng), **options)


CASES = {
    # name: (job of a seed, syndrome, whether the rank is known)
    "stopped": (lambda s: faulty(s, "noncomm_hang"), "noncomm_hang", True),
    "host dies": (lambda s: faulty(s, "killed"), "noncomm_hang", "host"),
    "transfer stands": (lambda s: faulty(s, "pair_hang", True), "comm_hang", True),
    "collective stands": (lambda s: faulty(s, "group_hang"), "comm_hang", False),
    "other order": (lambda s: faulty(s, "order"), "mismatch", True),
    "other order, numbers by function":
        (lambda s: faulty(s, "order", by_function=True), "mismatch", True),
    "other size": (lambda s: faulty(s, "size"), "mismatch", True),
    "late": (lambda s: faulty(s, "noncomm_slow"), "noncomm_slow", True),
    "drifts": (lambda s: faulty(s, "drift"), "noncomm_slow", True),
    "host late": (lambda s: faulty(s, "host_slow"), "noncomm_slow", "host"),
    "slow to send": (lambda s: faulty(s, "sender", True), "comm_slow", True),
    "slow to receive": (lambda s: faulty(s, "receiver", True), "comm_slow", True),
    "slow pair": (lambda s: faulty(s, "pair", True), "comm_slow", True),
    "mixed": (lambda s: faulty(s, "mixed", True), "mixed", True),
    "healthy": (healthy, None, False),
    "healthy, uneven lengths": (lambda s: healthy(s, uneven=0.25), None, False),
    "healthy, pauses": (lambda s: healthy(s, pause_every=10, pause=4000 * MS), None, False),
    "healthy, one rank saves":
        (lambda s: healthy(s, pause_every=10, pause=4000 * MS, pause_rank=0), None, False),
    "healthy, evaluation": (lambda s: healthy(s, evaluate_every=12), None, False),
    "healthy, long last stage": (lambda s: healthy(s, last_stage=1.6), None, False),
    "healthy, noisy": (lambda s: healthy(s, jitter=0.2, stagger=0.1), None, False),
    "healthy, all wander by 10 %": (lambda s: healthy(s, wander=0.1, steps=120), None, False),
    "healthy, all wander by 20 %": (lambda s: healthy(s, wander=0.2, steps=120), None, False),
    "healthy, cut short": (healthy, None, False),
}


def right(record, job, syndrome, known):
    """Whether a record names the fault of a job."""
    fault = job.fault
    if record["syndrome"] != syndrome:
        return False
    if known == "host":
        return record.get("host") == f"gpu{job.host(fault.rank):02}"
    if not known:
        return True
    named = {record.get("rank"), record.get("peer")}
    if fault.kind in ("pair", "pair_hang"):
        return named == {fault.rank, fault.peer}
    if fault.kind in ("sender", "receiver", "order", "size"):
        return fault.rank in named
    return record.get("rank") == fault.rank


def run_one(name, seed):
    """(job, rows of its operations, right records, wrong ones) of a run."""
    make, syndrome, known = CASES[name]
    job = make(seed)
    rows = job.run()
    if name == "healthy, cut short":
        newest = max(r["end_ns"] for r in rows)
        oldest = min(r["start_ns"] for r in rows)
        rows = cut(rows, random.Random(seed).randrange((oldest + newest) // 2, newest))
    records = diagnose(rows, seed)
    good = [r for r in records if right(r, job, syndrome, known)] if syndrome else []
    bad = [r for r in records if r not in good]
    return job, rows, good, bad


def print_failed(seed, job, told, bad):
    f = job.fault
    print(f"  seed {seed}: dp {job.dp} tp {job.tp} pp {job.pp}, {f.kind} rank {f.rank} peer "
          f"{f.peer} factor {f.factor:.2f} step {f.step}: {'' if told else 'not told'}"
          f"{['', ' wrong: '][bool(bad)]}" + "; ".join(
              f"{r['syndrome']} {r.get('rank')} {r.get('peer')}: {r['evidence_for']}" for r in bad))


def main():
    args = options(CASES)
    failed = 0
    print(f"seeds {args.seed} to {args.seed + args.seeds - 1}")
    print(f"{'case':34} {'runs':>4} {'told':>4} {'wrong':>5}")
    for name in args.cases or CASES:
        counts = collections.Counter()
        for seed in range(args.seed, args.seed + args.seeds):
            job, rows, good, bad = run_one(name, seed)
            told = bool(good) or CASES[name][1] is None
            counts["told"] += told
            counts["wrong"] += len(bad)
            if bad or not told:
                failed += 1
                print_failed(seed, job, told, bad)
        print(f"{name:34} {args.seeds:4} {counts['told']:4} {counts['wrong']:5}", flush=True)
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
