#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""fabrictrace diagnose --operations against the jobs of recipes.py, whose faults are known.

usage: examined.py [--seeds N] [--seed FIRST] [--write FILE] [CASE...]     in the build folder

Each case runs with as many seeds. Prints a line a case: how many of its faults were told, and how many records name
anything else. A run that is wrong or silent is named with its seed.
"""
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from recipes import Job  # noqa: E402
from streams import S  # noqa: E402
from tables import COLUMNS, csv_of, diagnose, options  # noqa: E402

KINDS = ("1f1b", "interleaved", "zero", "ddp", "cp", "moe", "hier")


def text_of(rows, seed):
    rng = random.Random(f"columns{seed}")
    columns = list(COLUMNS)
    rng.shuffle(columns)
    if not any(r["peer"] != "" for r in rows):
        columns.remove("peer")
    if rng.random() < 0.5:
        rows = sorted(rows, key=lambda r: r["start_ns"])
    return csv_of(columns, rows)


def cut(rows, seed, both):
    rng = random.Random(f"cut{seed}")
    begins, ends = min(r["start_ns"] for r in rows), max(r["start_ns"] for r in rows)
    first = begins + (ends - begins) * rng.uniform(0.05, 0.2) if both else 0
    last = begins + (ends - begins) * rng.uniform(0.7, 0.95)
    out = []
    for r in rows:
        if r["start_ns"] > last or r["end_ns"] != "" and r["end_ns"] < first:
            continue
        r = dict(r)
        if r["end_ns"] != "" and r["end_ns"] > last:
            r["end_ns"] = ""
        out.append(r)
    return out


def cut_at_once(job, rows, seed):
    """All hosts' rows end at one moment, whatever their clocks show."""
    rng = random.Random(f"cut{seed}")

    def begin(r):
        return r["_true"].called if job.calls else r["_true"].begin()
    begins, ends = min(map(begin, rows)), max(map(begin, rows))
    last = begins + (ends - begins) * rng.uniform(0.5, 0.95)
    return [dict(r, end_ns="") if r["_true"].end is None or r["_true"].end > last else r
            for r in rows if begin(r) <= last]


def make(seed, case):
    """A job with the fault of a case. One without is run first, so that the fault begins where it can be seen."""
    rng = random.Random(f"{case}/{seed}")
    name, _, variant = case.partition(", ")
    given = {}
    kinds = KINDS
    if variant == "calls":
        given["calls"] = True
    if variant == "begun":
        given["calls"] = False
    if "little work" in variant:
        given["net"] = (0.6, 1.5)
    if "clocks apart" in variant:
        given["offset"] = 3 * S
    if name == "well":
        given.update({
            "uneven lengths": {"uneven": 0.3}, "stalls": {"stalls": 8}, "gc": {"gc": 0.05},
            "saves": {"save": 7}, "saves and waits": {"save": 10}, "evaluation": {"evaluate": 8},
            "warm hosts": {"hosts": 0.03}, "noisy": {"jitter": 0.1},
            "all at once": {"uneven": 0.2, "stalls": 5, "gc": 0.02, "save": 9, "evaluate": 7, "hosts": 0.03},
        }.get(variant, {}))
        return Job(seed, rng.choice(kinds), None, **given)
    while True:
        kind = rng.choice(kinds)
        probe = Job(seed, kind, None, **given)
        rank = rng.randrange(probe.ranks)
        step = rng.randrange(probe.steps // 3, probe.steps // 2)
        f = {"rank": rank, "step": step}
        if name in ("stopped", "died", "host dies", "transfer stands", "collective stands", "size", "function",
                    "sender", "receiver", "card", "hosts", "pair", "two"):
            probe.run()
            top = max(p.called for p in probe.cluster.rows)
            f["since"] = top * rng.uniform(0.35, 0.6)
        if name in ("late", "drifts"):
            f.update(kind=name, factor=float(variant.split()[0]) if variant[:1].isdigit() else rng.uniform(1.3, 2.2))
            if "start" in variant:
                f["step"] = 0
        elif name == "host late":
            f.update(kind="host late", host=probe.host(rank), factor=rng.uniform(1.3, 2))
        elif name == "late once":
            f.update(kind=name, pause=rng.uniform(1, 10) * S)
        elif name == "save stalls":
            f.update(kind=name, pause=rng.uniform(3, 10) * S)
            given["save"] = rng.choice((5, 6))
        elif name == "stopped":
            total = sum(1 for p in probe.cluster.rows if p.rank == rank)
            f.update(kind=name, calls=int(total * rng.uniform(0.35, 0.6)))
        elif name in ("died", "host dies"):
            f.update(kind=name, host=probe.host(rank))
            if name == "host dies" and probe.ranks <= probe.shape.per_host:
                continue
        elif name == "transfer stands":
            pairs = {(p.rank, p.peer) for p in probe.cluster.rows if p.peer is not None}
            if not pairs:
                continue
            f.update(kind=name, pair=rng.choice(sorted(pairs)))
        elif name == "collective stands":
            comms = sorted({p.comm.name for p in probe.cluster.rows if p.peer is None and len(p.comm.ranks) > 1})
            f.update(kind=name, comm=rng.choice(comms))
        elif name in ("sender", "receiver", "card"):
            f.update(kind=name, factor=rng.uniform(1.6, 4))
            if "sometimes" in variant:
                f["sometimes"] = 0.3
        elif name == "hosts":
            hosts = (probe.ranks - 1) // probe.shape.per_host + 1
            a = probe.host(rank)
            f.update(kind=name, pair={a, (a + 1) % hosts}, factor=rng.uniform(1.6, 4))
        elif name == "pair":
            pair = sorted({(p.rank, p.peer) for p in probe.cluster.rows if p.function == "Send" and
                           probe.host(p.rank) != probe.host(p.peer)})
            if not pair:
                continue
            f.update(kind=name, pair=rng.choice(pair), factor=rng.uniform(1.6, 4))
        elif name in ("size", "function"):
            f["kind"] = name
            given["calls"] = False
        elif name == "two":
            if variant == "late":
                f.update(kind="late", factor=rng.uniform(1.4, 2))
                f["also"] = dict(f, rank=rng.choice([r for r in range(probe.ranks) if probe.host(r) != probe.host(rank)]),
                                 factor=rng.uniform(1.4, 2))
            else:
                f.update(kind="late", factor=rng.uniform(1.4, 2))
                f["also"] = {"kind": "sender", "since": f["since"], "factor": rng.uniform(2, 4),
                             "rank": rng.choice([r for r in range(probe.ranks) if probe.host(r) != probe.host(rank)])}
        return Job(seed, kind, f, **given)


def right(job, r, f):
    """Whether a record names a fault."""
    kind, syndrome = f["kind"], r["syndrome"]
    rank, peer = r.get("rank"), r.get("peer")
    if kind in ("late", "drifts", "late once", "save stalls"):
        return syndrome == "noncomm_slow" and rank == f["rank"] and not r.get("others")
    if kind == "host late":
        return syndrome == "noncomm_slow" and rank is not None and job.host(rank) == f["host"]
    if kind == "stopped":
        return syndrome == "noncomm_hang" and rank == f["rank"]
    if kind == "died":
        return (syndrome == "noncomm_hang" and rank == f["rank"]) or \
            syndrome == "comm_hang" and (rank in (None, f["rank"]) or peer == f["rank"])
    if kind == "host dies":
        return (syndrome == "noncomm_hang" and rank is not None and job.host(rank) == f["host"]) or \
            syndrome == "comm_hang" and (rank is None or f["host"] in (job.host(rank), job.host(peer if peer is not None else rank)))
    if kind == "transfer stands":
        return syndrome == "comm_hang" and {rank, peer} == set(f["pair"])
    if kind == "collective stands":
        return syndrome == "comm_hang" and r.get("communicator") == f["comm"]
    if kind in ("size", "function"):
        return syndrome == "mismatch" and f["rank"] in (rank, peer)
    if kind in ("sender", "receiver", "card", "hosts", "pair"):
        if syndrome != "comm_slow":
            return False
        ranks = {f["rank"]} if kind in ("sender", "receiver", "card") else None
        if rank is None:
            comm = next((c for c in job.comms.values() if c.name == r.get("communicator")), None)
            if comm is None:
                return False
            if ranks:
                return f["rank"] in comm.ranks
            if kind == "pair":
                return set(f["pair"]) <= set(comm.ranks)
            return f["pair"] <= {job.host(x) for x in comm.ranks}
        if ranks:
            return f["rank"] in (rank, peer)
        if kind == "pair":
            return {rank, peer} == set(f["pair"])
        return peer is not None and {job.host(rank), job.host(peer)} == f["pair"]
    return False


def run_one(case, seed):
    """(job, text, right records, wrong ones, faults that were told, faults)"""
    job = make(seed, case)
    rows = job.run()
    if "cut at once" in case:
        rows = cut_at_once(job, rows, seed)
    elif "cut" in case:
        rows = cut(rows, seed, "both" in case)
    text = text_of(rows, seed)
    records = diagnose(text)
    faults = [f for f in (job.fault, job.fault.get("also")) if f]
    good = [r for r in records if any(right(job, r, f) for f in faults)]
    bad = [r for r in records if r not in good]
    if "cut" in case:
        # Of a table that ends while one rank is still at work, nobody knows whether it comes: that is said.
        bad = [r for r in bad if not (r["syndrome"].endswith("hang") and r.get("confidence", 1) <= 0.7)]
    told = sum(any(right(job, r, f) for r in records) for f in faults)
    return job, text, good, bad, told, len(faults)


WELL = tuple(f"well, {v}" for v in ("plain", "calls", "begun", "uneven lengths", "stalls", "gc", "saves", "saves and waits",
                                    "evaluation", "warm hosts", "noisy", "all at once", "little work", "clocks apart",
                                    "cut", "cut both", "clocks apart, cut at once"))
FAULTS = ("stopped", "died", "host dies", "transfer stands", "collective stands", "size", "function", "late",
          "late, begun", "late, calls", "late, 1.15", "late, 1.3 start", "late, little work", "late, clocks apart",
          "drifts", "host late", "late once", "save stalls", "sender", "sender, begun", "receiver", "card", "hosts",
          "pair", "sender, sometimes", "card, little work", "two, late", "two")


def describe(job):
    s = job.shape
    return (f"{job.kind} tp {s.tp} cp {s.cp} dp {s.dp} pp {s.pp}, {s.per_host} a host, {job.micro} micro-batches, "
            f"{job.steps} steps, net {job.net:.2f}, jitter {job.jitter}, {'calls' if job.calls else 'begun'}, "
            f"by {job.numbering}, {job.fault or 'well'}")


def main(argv=None):
    args = options(WELL + FAULTS, argv, __doc__)
    failed = 0
    print(f"seeds {args.seed} to {args.seed + args.seeds - 1}")
    print(f"{'case':24} {'faults':>6} {'told':>4} {'wrong':>5}")
    for name in args.cases or WELL + FAULTS:
        told = wrong = faults = 0
        for seed in range(args.seed, args.seed + args.seeds):
            job, text, _, bad, known, of = run_one(name, seed)
            told, faults, wrong = told + known, faults + of, wrong + len(bad)
            failed += bool(bad)
            if args.write:
                pathlib.Path(args.write).write_text(text)
            if bad or known < of:
                print(f"  seed {seed}: {describe(job)}{'' if known == of else ': not told'}"
                      + "".join(f"\n    wrong: {r['syndrome']} {r.get('rank')} {r.get('peer')} {r.get('side')} "
                                f"{r.get('communicator')} {r['evidence_for']}" for r in bad[:3]))
        print(f"{name:24} {faults:6} {told:4} {wrong:5}", flush=True)
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
