#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""fabrictraced against jobs on paper (job.py): what agents would report of them, in virtual time.

usage: daemon.py [--seeds N] [--seed FIRST] [CASE...]     in the build folder

Operations that end become fabrictrace.collective.v1 records; of ranks that stand there are
fabrictrace.progress.v1 records every two seconds, as agents send them. Prints a line a case: in how many
runs the fault was told, how many diagnoses named anything else, how long after the job felt the fault
the right one came, and in how many it was over when the fault was. A run that fails is named with its seed.
"""
import collections
import json
import pathlib
import random
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import flows  # noqa: E402
from fabric import Fabric, name_of  # noqa: E402
from job import MS, Fault, Job  # noqa: E402
from run import print_failed  # noqa: E402
from tables import options  # noqa: E402

SOURCE = pathlib.Path(__file__).resolve().parents[2]
DAEMON = pathlib.Path("daemon/fabrictraced").resolve()
TOPOLOGY = SOURCE / "packaging/examples/topology.yaml"
COLLECTIVE, PROGRESS = "fabrictrace.collective.v1", "fabrictrace.progress.v1"
APART = 4000 * MS  # clocks of hosts, either way
STANDS_S = 40  # of a job that hangs, as long as it is looked at
REPORT_MS = 2000
HOLD_MS = 300  # from the end of an operation until its record
FABRIC_SHAPES = ((8, 2, 1), (4, 2, 2), (4, 1, 4), (8, 1, 2), (16, 1, 1))
SHAPES = ((8, 1, 2), (4, 2, 4), (16, 1, 1), (8, 2, 1), (4, 1, 4))


def comm_id(name):
    return f"{sum(ord(c) * 131 ** i for i, c in enumerate(name)) % (1 << 64):016x}"


class Reports:
    """What the agents of a job's hosts send."""

    def __init__(self, job, rows):
        self.job = job
        self.fabric = getattr(job, "fabric", None)
        self.members = collections.defaultdict(list)  # communicator: global ranks
        self.records = []
        self.number = collections.Counter()
        self.sequence = collections.Counter()
        for row in rows:
            if row["rank"] not in self.members[row["communicator"]]:
                self.members[row["communicator"]].append(row["rank"])
        for ranks in self.members.values():
            ranks.sort()
        self.begun = {}  # (rank, communicator): its newest number
        self.open = {}  # (rank, communicator): the oldest row that did not end, as begun
        self.finished = collections.Counter()
        if self.fabric:
            self.fabric.fault_ms = min(r["start_ns"] for r in rows if r["step"] >= job.fault.step) // MS \
                if job.fault.kind else 0
        for row in sorted(rows, key=lambda r: (r["start_ns"], r["rank"])):
            self.take(row)

    def base(self, row):
        name, rank = row["communicator"], row["rank"]
        return {"host": row["host"], "pid": 1000 + rank, "job": "88", "comm_id": comm_id(name),
                "rank": self.members[name].index(rank), "ranks": len(self.members[name]),
                "op": row["function"], "bytes": row["bytes"]}

    def take(self, row):
        key = row["rank"], row["communicator"]
        self.number[key] += 1
        out = {**self.base(row), "number": self.number[key]}
        if row["peer"] != "":
            out["peer"] = self.members[row["communicator"]].index(row["peer"])
        else:
            out["sequence"] = self.sequence[key, row["function"]]
            self.sequence[key, row["function"]] += 1
        if row["end_ns"] == "":
            self.open.setdefault(key, (row, out))
            return
        self.finished[key] = out["number"]
        # Every agent of NCCL's transfers sees some of each operation.
        peer = out.get("peer", (out["rank"] + 1) % out["ranks"])
        peers = [{"peer": peer, "channel": 0, "sent_bytes": 1, "sent_messages": 1}]
        if self.fabric:
            peers = self.fabric.peers(row, self.members[row["communicator"]], out["rank"])
        self.records.append((row["end_ns"] // MS + HOLD_MS, {
            "schema": COLLECTIVE, "time_ms": row["end_ns"] // MS,
            "start_ms": row["start_ns"] // MS, "duration_us": (row["end_ns"] - row["start_ns"]) // 1000,
            "started_ns": row["start_ns"] - self.job.base + 10 ** 12, "operations": 1, **out,
            "peers": peers}))

    def stand(self, row, out, since_ms, until_ms, **more):
        for t in range(since_ms + REPORT_MS, until_ms, REPORT_MS):
            self.records.append((t, {"schema": PROGRESS, "time_ms": t, "standing": True,
                                     "moved_ms": since_ms, "process": "running", **out, **more}))

    def stop(self, dead=()):
        """The job hangs: what its ranks are in, or not in, is said for a while. Hosts in dead say nothing."""
        newest = max(t for t, _ in self.records)
        last = {}
        for t, r in self.records:
            last[r["pid"] - 1000, r["comm_id"]] = (t, r)
        for key in {(r, c) for c, ranks in self.members.items() for r in ranks}:
            rank, name = key
            if self.job.host(rank) in dead:
                continue
            if key in self.open:
                row, out = self.open[key]
                ms = row["start_ns"] // MS
                self.stand(row, out, ms, newest + STANDS_S * 1000, state="in_flight", start_ms=ms,
                           begun=out["number"], finished=out["number"] - 1)
                continue
            base = {"host": f"gpu{self.job.host(rank):02}", "pid": 1000 + rank, "job": "88",
                    "comm_id": comm_id(name), "rank": self.members[name].index(rank),
                    "ranks": len(self.members[name])}
            since = last.get((rank, comm_id(name)), (newest, None))[0]
            self.stand(None, base, since, newest + STANDS_S * 1000, state="finished",
                       begun=self.finished[key], finished=self.finished[key])

    def lines(self):
        if self.fabric:
            times = [t for t, _ in self.records]
            self.records += self.fabric.reports(self.members, comm_id, min(times) - 1000, max(times))
        return [json.dumps(r) for _, r in sorted(self.records, key=self.sent)]

    def sent(self, timed):
        """When a record was sent: by no host's clock, which may be apart."""
        ms, record = timed
        host = record.get("host") if record["schema"] in (COLLECTIVE, PROGRESS) else None
        return ms - self.job.clock[int(host[3:])] // MS if host else ms


def replay(lines, fabric=None):
    with tempfile.NamedTemporaryFile("w", suffix=".ndjson") as file, \
            tempfile.NamedTemporaryFile("w", suffix=".yaml") as topology:
        file.write("\n".join(lines) + "\n")
        file.flush()
        topology.write(fabric.topology() if fabric else TOPOLOGY.read_text())
        topology.flush()
        done = subprocess.run([DAEMON, "--topology", topology.name, "--set", "verify_topology=false", "--replay",
                               file.name, "--sink", "file:-"], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"exit {done.returncode}: {done.stderr}")
    records = [json.loads(line) for line in done.stdout.splitlines()]
    return [r for r in records if r["schema"] in ("fabrictrace.diagnosis.v1", "fabrictrace.event.v1")]


def faulty(seed, kind, steps, **options):
    rng = random.Random(f"{kind}{seed}")
    while True:
        shape = rng.choice(SHAPES)
        ranks = shape[0] * shape[1] * shape[2]
        fault = Fault(kind, rank=rng.randrange(ranks), step=rng.randrange(30, 40), factor=rng.uniform(1.5, 3))
        job = Job(seed, *shape, steps=steps, fault=fault, gpus=4, **options)
        if kind == "pair_hang":
            near = [job.rank_of(*c) for c in near_of(job, fault.rank) if job.host(job.rank_of(*c)) !=
                    job.host(fault.rank)]
            if not near:
                continue
            fault.peer = rng.choice(near)
        if kind in ("order", "size") and shape[1] == 1:
            continue
        if kind == "group_hang" and (shape[0] == 1 or shape[0] == ranks):
            continue
        return job


def of_two(seed, kind=None, steps=300, **options):
    """Two ranks on two hosts, in a ring or in a pipeline."""
    rng = random.Random(f"two{kind}{seed}")
    shape = ((2, 1, 1), (1, 1, 2))[seed % 2]
    fault = Fault(kind, rank=rng.randrange(2), step=rng.randrange(120, 140), factor=rng.uniform(1.8, 3))
    job = Job(seed, *shape, steps=steps, gpus=1, compute=rng.uniform(20, 60) * MS, **options)
    fault.peer = 1 - fault.rank
    job.fault = fault
    return job


def near_of(job, rank):
    t, d, p = job.coordinates(rank)
    return [(t, d, q) for q in (p - 1, p + 1) if 0 <= q < job.pp]


def healthy(seed, **options):
    rng = random.Random(f"healthy{seed}")
    return Job(seed, *rng.choice(SHAPES), gpus=4, **{"steps": 120, **options})


def on_fabric(seed, kind=None, shape=None, **options):
    """A job whose ranks have cards of their own, and a fault of their transfers after a minute or so."""
    rng = random.Random(f"fabric{kind}{seed}")
    while True:
        job = Job(seed, *(shape or rng.choice(FABRIC_SHAPES)), steps=200, gpus=2, compute=rng.uniform(20, 60) * MS,
                  micro=2, layers=1, **{k: v for k, v in options.items() if k != "noise"})
        job.fabric = Fabric(seed, job, noise=options.get("noise", 0.08))
        fault = job.fault = Fault(kind, rank=rng.randrange(job.ranks), step=100, factor=rng.uniform(2, 4))
        if kind is None:
            return job
        edges = edges_of(job)
        if kind in ("sender", "receiver", "pair", "mixed"):
            fault.rank, fault.peer = rng.choice(edges)
            if kind == "receiver":
                fault.rank, fault.peer = fault.peer, fault.rank
            return job
        by_link = collections.defaultdict(list)
        for edge in edges:
            for link in job.fabric.path(*edge)[:-1]:
                by_link[link].append(edge)
        shared = [link for link, its in sorted(by_link.items())
                  if len({a for a, _ in its}) > 1 and len({b for _, b in its}) > 1]
        if shared:
            break
    # What crosses this link, and whether other links carry just the same.
    fault.kind, fault.link = "link", rng.choice(shared)
    fault.same = {name_of(link) for link, its in by_link.items() if its == by_link[fault.link]}
    fault.edges = by_link[fault.link]
    fault.rank, fault.peer = fault.edges[0]
    fault.crosses = lambda a, b: fault.link in job.fabric.path(a, b)
    if kind == "alien":
        job.fabric.wrong[fault.link] = {"out_bytes": 49.5e9, "out_discards": 500}
    if kind in WITNESSES:
        fault.witness = kind
    if kind == "lossy":
        # The far end counts damaged frames; those who send over the link do so again, and feel the rest.
        fault.far = far_end(fault.link, job.fabric)
        job.fabric.wrong[fault.far] = {"in_errors": 700}
        for a, b in fault.edges:
            job.fabric.felt[f"gpu{job.host(a):02}"] = {"retransmissions": 40, "timeouts": 3, "cnp_handled": 25,
                                                       "rx_rnr_nak": 30}
        for a, b in fault.edges:
            job.fabric.felt.setdefault(f"gpu{job.host(b):02}", {})["out_of_sequence"] = 60
    if kind == "two":
        others = [e for e in edges if e not in fault.edges]
        second = Fault("sender", rank=rng.choice(others)[0], step=100, factor=rng.uniform(2, 4))
        fault.also = [second]
    return job


def far_end(link, fabric):
    """The port at the other side of one between a leaf and a spine."""
    number = int(link[1][8:])
    if link[0].startswith("leaf"):
        return f"spine{number - 100}", f"Ethernet{1 + int(link[0][4:])}"
    return f"leaf{number - 1}", f"Ethernet{100 + int(link[0][5:])}"


# What has to be said for a diagnosis of a link, of what its switches counted and of what the hosts of
# its pair did; and which figures its links have to bear.
WITNESSES = {
    "alien": (("dropped frames in the last window", " is full: "), ("discards", "load")),
    "lossy": (("damaged and 0 dropped frames in the last window", "packets are lost: ", "again and timed out",
               "came out of sequence", "congestion on the way: ", "receivers were not ready: "), ("errors",)),
}


def unwitnessed(record, kind):
    """What the record of a link lacks of this."""
    texts, figures = WITNESSES[kind]
    said = "; ".join(record["evidence_for"])
    own = [l for l in record.get("links", []) if (l["switch"], l["port"]) == (record.get("switch"), record.get("port"))]
    return [text for text in texts if text not in said] + [
        figure for figure in figures if not any(l.get(figure) and l.get("suspect") for l in own)]


def edges_of(job):
    """Who sends whom through the network: neighbours in rings and pipelines."""
    edges = set()
    for rank in range(job.ranks):
        for kind in ("dp", "tp"):
            members = job.members(kind, rank)
            edges.add((rank, members[(members.index(rank) + 1) % len(members)]))
        edges |= {(rank, job.rank_of(*c)) for c in near_of(job, rank)}
    return sorted(e for e in edges if job.host(e[0]) != job.host(e[1]))


def of_flows(seed, kind=None, **options):
    """Hosts without the plugin; after ten to fifteen minutes something of them is slow."""
    rng = random.Random(f"flows{kind}{seed}")
    if kind is None:
        return flows.Hosts(seed, seconds=3600, **options)
    rank, peer = rng.sample(range(8), 2)
    return flows.Hosts(seed, fault=Fault(kind, rank, peer, step=100, factor=rng.uniform(2, 4)), **options)


CASES = {
    # name: (job of a seed, syndrome, whether the rank is known)
    "stopped": (lambda s: faulty(s, "noncomm_hang", 60), "noncomm_hang", True),
    "host dies": (lambda s: faulty(s, "killed", 60), "noncomm_hang", "host"),
    "transfer stands": (lambda s: faulty(s, "pair_hang", 60), "comm_hang", True),
    "collective stands": (lambda s: faulty(s, "group_hang", 60), "comm_hang", False),
    "other order": (lambda s: faulty(s, "order", 60), "mismatch", True),
    "late": (lambda s: faulty(s, "noncomm_slow", 150), "noncomm_slow", True),
    "slow link": (lambda s: on_fabric(s, "link"), "comm_slow", "link"),
    "slow to send": (lambda s: on_fabric(s, "sender"), "comm_slow", True),
    "slow to receive": (lambda s: on_fabric(s, "receiver"), "comm_slow", True),
    "slow pair": (lambda s: on_fabric(s, "pair"), "comm_slow", True),
    "mixed": (lambda s: on_fabric(s, "mixed"), "mixed", True),
    "alien flow": (lambda s: on_fabric(s, "alien"), "comm_slow", "link"),
    "lossy link": (lambda s: on_fabric(s, "lossy"), "comm_slow", "link"),
    "slow link and slow to send": (lambda s: on_fabric(s, "two"), "comm_slow", "link"),
    "slow pair from flows alone": (lambda s: of_flows(s, "pair"), "comm_slow", "flows"),
    "slow to receive from flows alone": (lambda s: of_flows(s, "receiver"), "comm_slow", "flows"),
    "slow to send from flows alone": (lambda s: of_flows(s, "sender"), "comm_slow", "flows"),
    "flows alone, healthy": (of_flows, None, False),
    "flows alone, healthy, pauses": (lambda s: of_flows(s, pause_every=600), None, False),
    "flows alone, healthy, evaluation": (lambda s: of_flows(s, evaluate_every=20), None, False),
    "fabric, healthy": (on_fabric, None, False),
    "fabric, healthy, noisy": (lambda s: on_fabric(s, noise=0.35, jitter=0.2), None, False),
    "fabric, healthy, starved": (lambda s: on_fabric(s, starved=0.3), None, False),
    "fabric, healthy, uneven lengths": (lambda s: on_fabric(s, uneven=0.25), None, False),
    "fabric, healthy, pauses": (lambda s: on_fabric(s, pause_every=20, pause=4000 * MS), None, False),
    "fabric, healthy, evaluation": (lambda s: on_fabric(s, evaluate_every=24), None, False),
    "two ranks, stopped": (lambda s: of_two(s, "noncomm_hang"), "noncomm_hang", True),
    "two ranks, late": (lambda s: of_two(s, "noncomm_slow"), "noncomm_slow", True),
    "two ranks, slow transfers": (lambda s: of_two(s, "pair"), "comm_slow", False),
    "two ranks, healthy": (of_two, None, False),
    "two ranks, healthy, uneven lengths": (lambda s: of_two(s, uneven=0.25), None, False),
    "two ranks, healthy, evaluation": (lambda s: of_two(s, evaluate_every=24), None, False),
    "two ranks, healthy, pauses": (lambda s: of_two(s, pause_every=20, pause=4000 * MS), None, False),
    "stopped, clocks apart": (lambda s: faulty(s, "noncomm_hang", 60, skew=APART), "noncomm_hang", True),
    "host dies, clocks apart": (lambda s: faulty(s, "killed", 60, skew=APART), "noncomm_hang", "host"),
    "transfer stands, clocks apart": (lambda s: faulty(s, "pair_hang", 60, skew=APART), "comm_hang", True),
    "late, clocks apart": (lambda s: faulty(s, "noncomm_slow", 150, skew=APART), "noncomm_slow", True),
    "healthy, clocks apart": (lambda s: healthy(s, skew=APART), None, False),
    "healthy": (healthy, None, False),
    "healthy, pauses": (lambda s: healthy(s, pause_every=20, pause=4000 * MS), None, False),
    "healthy, one rank saves":
        (lambda s: healthy(s, pause_every=20, pause=4000 * MS, pause_rank=0), None, False),
    "healthy, uneven lengths": (lambda s: healthy(s, uneven=0.25), None, False),
    "healthy, long last stage": (lambda s: healthy(s, last_stage=1.6), None, False),
    "healthy, all wander": (lambda s: healthy(s, wander=0.2, steps=400), None, False),
}


def is_of_link(record, fault):
    """Names the slow link, or one that carries just the same, or without any a pair over it; of two faults
    the other one is right as well."""
    named = (record.get("rank"), record.get("peer"))
    if any(f.rank in named for f in fault.also):
        return True
    if "port" in record:
        return f"{record['switch']} {record['port']}" in fault.same
    return named in fault.edges or named[::-1] in fault.edges


def right(record, job, syndrome, known):
    fault = job.fault
    if record["syndrome"] != syndrome:
        return False
    if known == "flows":
        return flows.is_right(record, job)
    if known == "host":
        return record.get("host") == f"gpu{job.host(fault.rank):02}"
    if not known:
        return True
    if known == "link":
        return is_of_link(record, fault)
    named = {record.get("rank"), record.get("peer")}
    if fault.kind in ("pair_hang", "pair"):
        return named == {fault.rank, fault.peer}
    if fault.kind in ("order", "sender", "receiver"):
        return fault.rank in named
    return record.get("rank") == fault.rank


def run_one(name, seed):
    make, syndrome, known = CASES[name]
    job = make(seed)
    if isinstance(job, flows.Hosts):
        found = replay(job.records(), job.fabric)
    else:
        reports = Reports(job, job.run())
        hangs = syndrome is not None and syndrome != "mixed" and not syndrome.endswith("slow")
        if hangs:
            reports.stop({job.host(job.fault.rank)} if job.fault.kind == "killed" else ())
        found = replay(reports.lines(), reports.fabric)
    raised = [r for r in found if r["schema"] == "fabrictrace.diagnosis.v1" and not r.get("cleared")]
    if known == "flows":  # and the job's steps are longer, which is said as well, of no host
        raised = [r for r in raised if r["syndrome"] != "slowdown" or r["time_ms"] < job.fault_ms]
    events = [r for r in found if r["schema"] == "fabrictrace.event.v1" and not r.get("cleared")
              and r["kind"] in ("noncomm_hang", "comm_hang", "mismatch", "noncomm_slow", "comm_slow",
                                "mixed_slow")]
    good = [r for r in raised if syndrome and right(r, job, syndrome, known)]
    bad = [r for r in raised if r not in good]
    kind = getattr(job.fault, "witness", None)
    if kind and good and all(unwitnessed(r, kind) for r in good):
        bad.append({"syndrome": "witnesses", "evidence_for": [
            f"lacks {unwitnessed(r, kind)}: {r.get('switch')} {r.get('port')} {r['evidence_for']} "
            f"{r.get('links')}" for r in good]})
    if len(events) != len(raised):
        bad.append({"syndrome": "events", "evidence_for": [e["message"] for e in events]})
    since_ms = job.fault_ms if known == "flows" else good[0]["since_ms"] if good else None
    took = (good[0]["time_ms"] - since_ms) / 1000 if good else None
    return job, good, bad, took


def main():
    args = options(CASES)
    failed = 0
    print(f"seeds {args.seed} to {args.seed + args.seeds - 1}")
    print(f"{'case':34} {'runs':>4} {'told':>4} {'wrong':>5} {'median s':>9} {'longest s':>9}")
    for name in args.cases or CASES:
        told, wrong, times = 0, 0, []
        for seed in range(args.seed, args.seed + args.seeds):
            job, good, bad, took = run_one(name, seed)
            ok = bool(good) or CASES[name][1] is None
            told += ok
            wrong += len(bad)
            times += [took] if good else []
            if bad or not ok:
                failed += 1
                print_failed(seed, job, ok, bad)
        times.sort()
        spent = f"{times[len(times) // 2]:9.1f} {times[-1]:9.1f}" if times else ""
        print(f"{name:34} {args.seeds:4} {told:4} {wrong:5} {spent}", flush=True)
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
