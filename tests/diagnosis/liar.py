#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""fabrictraced against a job that lies beside an honest one (daemon.py), in virtual time.

usage: liar.py [--seeds N] [--seed FIRST] [CASE...]     in the build folder

What a process writes into the memory that it shares is its own affair: names of jobs, communicators, ranks,
numbers, times. Host and process are the agent's word, and so are true. Each honest job is told of alone, and
then with the lie beside it: what is said of the honest job has to be the same, and nothing that is said of
the liar may name a rank, a process or a host of the honest job. A run that fails is named with its seed.
"""
import collections
import json
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import daemon  # noqa: E402
from daemon import COLLECTIVE, PROGRESS, Reports, comm_id  # noqa: E402
from job import MS  # noqa: E402
from tables import options  # noqa: E402

COMMUNICATOR = "fabrictrace.communicator.v1"
LIARS = 4            # processes, on hosts of their own
MANY = 1_000_000     # ranks that a communicator may say it has
EVERY_MS = 150       # an operation of each
SAID = ("syndrome", "job", "communicator", "rank", "host", "pid", "peer", "peer_host", "operation", "sequence")


class Lie:
    """Records of processes that say what they like, over the time of an honest job."""

    def __init__(self, seed, reports):
        self.random = random.Random(f"lie{seed}")
        self.honest = reports
        self.records = []
        times = [t for t, _ in reports.records]
        self.begins, self.ends = min(times) + 500, max(times)
        self.middle = (self.begins + self.ends) // 2

    def who(self, i, host=None, pid=None):
        return {"host": host or f"liar{i % 2}", "pid": pid or 5000 + i}

    def own(self, i, name="own"):
        """A rank of a communicator of the liars' own."""
        return {"job": "88", "comm_id": comm_id(f"liar {name}"), "rank": i, "ranks": LIARS}

    def theirs(self, i, name=None, rank=None, ranks=None):
        """A rank of a communicator of the honest job."""
        names = sorted(self.honest.members)
        name = name or names[i % len(names)]
        members = self.honest.members[name]
        return {"job": "88", "comm_id": comm_id(name), "rank": i % len(members) if rank is None else rank,
                "ranks": ranks or len(members)}

    def ended(self, ms, number, of, took_ms=5, **more):
        start = ms - took_ms
        self.records.append((ms, {
            "schema": COLLECTIVE, "time_ms": ms, "start_ms": start, "duration_us": took_ms * 1000,
            "started_ns": start * MS - self.honest.job.base + 10 ** 12, "operations": 1, "op": "AllReduce",
            "bytes": 4 << 20, "number": number, "sequence": number - 1,
            "peers": [{"peer": (of["rank"] + 1) % of["ranks"], "channel": 0, "sent_bytes": 1, "sent_messages": 1}],
            **of, **more}))

    def stands(self, ms, number, of, since_ms, state="in_flight", **more):
        flies = {"op": "AllReduce", "bytes": 4 << 20, "number": number, "sequence": number - 1,
                 "start_ms": since_ms} if state == "in_flight" else {}
        self.records.append((ms, {
            "schema": PROGRESS, "time_ms": ms, "standing": True, "moved_ms": since_ms, "process": "running",
            "begun": number, "finished": number - 1 if flies else number, "state": state, **flies, **of, **more}))

    def works(self, of, until=None, every=EVERY_MS):
        """Its operations until then; returns the number of the last."""
        number = 0
        for ms in range(self.begins, until or self.ends, every):
            number += 1
            self.ended(ms, number, of)
        return number

    def stays(self, of, number, since_ms, state="in_flight", **more):
        for ms in range(since_ms + 2000, self.ends, 2000):
            self.stands(ms, number, of, since_ms, state, **more)


def same_name(lie):
    """Another job of the same name, one rank of which stays away."""
    for i in range(LIARS):
        of = {**lie.who(i), **lie.own(i)}
        number = lie.works(of, lie.middle)
        if i == 0:
            lie.stays(of, number, lie.middle, "finished")
        else:
            lie.stays(of, number + 1, lie.middle)


def silent(lie):
    """Another job of the same name that falls silent in the middle."""
    for i in range(LIARS):
        lie.works({**lie.who(i), **lie.own(i)}, lie.middle)


def sums(lie):
    """Another job of the same name, so many of whose operations end that agents add them up."""
    for i in range(LIARS):
        of = {**lie.who(i), **lie.own(i)}
        for n, ms in enumerate(range(lie.begins, lie.ends, 1000)):
            lie.ended(ms, 1 + 500 * n, of, took_ms=900, operations=500)


def ranks_taken(lie):
    """Says that it is ranks of the honest job's communicators, does what it likes and stands then."""
    for i in range(LIARS):
        of = {**lie.who(i), **lie.theirs(i)}
        number = lie.works(of, lie.middle, 40)
        lie.stays(of, number + 1000, lie.middle)


def ranks_gone(lie):
    """The same, and its processes die: ranks of the honest job would be gone."""
    for i in range(LIARS):
        of = {**lie.who(i), **lie.theirs(i, rank=i)}
        lie.stands(lie.middle, 7, of, lie.middle - 5000, process="gone")


def ranks_closed(lie):
    """Its processes, one with the number of an honest one, leave communicators of the honest job in order."""
    names = sorted(lie.honest.members)
    for name in names:
        for rank, of in enumerate(lie.honest.members[name]):
            lie.records.append((lie.middle, {
                "schema": COMMUNICATOR, "time_ms": lie.middle, "since_ms": lie.begins, "nodes": 1, "closed": True,
                **lie.who(0, pid=1000 + of), **lie.theirs(0, name, rank)}))


def ranks_more(lie):
    """Ranks that the honest communicators do not have; they stand, or stay away."""
    for i in range(LIARS):
        name = sorted(lie.honest.members)[i % len(lie.honest.members)]
        ranks = len(lie.honest.members[name])
        of = {**lie.who(i), **lie.theirs(i, name, ranks + i, ranks + LIARS)}
        lie.works(of, lie.middle)
        lie.stays(of, 5 + i, lie.middle, ("in_flight", "finished")[i % 2])


def a_million(lie):
    """A communicator of a million ranks, those of the honest job among them, whose peers do not exist."""
    for i in range(LIARS):
        for name in sorted(lie.honest.members):
            of = {**lie.who(i), **lie.theirs(i, name, MANY - 1 - i, MANY)}
            for ms in range(lie.begins, lie.ends, 1000):
                lie.ended(ms, lie.random.randrange(1, 1 << 40), of, peers=[
                    {"peer": lie.random.randrange(1 << 31), "channel": 0, "sent_bytes": 1 << 40,
                     "sent_messages": 1, "step_min_ns": 1, "step_median_ns": 10 ** 12, "step_max_ns": 10 ** 12} for _ in range(4)])
            lie.stays(of, 9, lie.middle)


def goes_back(lie):
    """Numbers, times and progress that go back and forth, in communicators of its own and of the honest job."""
    for i in range(LIARS):
        for of in ({**lie.who(i), **lie.own(i)}, {**lie.who(i), **lie.theirs(i, rank=0)}):
            for ms in range(lie.begins, lie.ends, 200):
                start = lie.random.choice((1, ms - 3600_000, ms - 1, ms + 10_000))
                lie.ended(ms, lie.random.randrange(1, 1 << 50), of, start_ms=start,
                          duration_us=lie.random.randrange(1 << 40), started_ns=lie.random.randrange(1 << 62))
                if lie.random.random() < 0.2:
                    lie.stands(ms, lie.random.randrange(1, 1 << 50), of, start,
                               finished=lie.random.randrange(1 << 50), begun=lie.random.randrange(1 << 50))


def own_and_theirs(lie):
    """Works honestly in a communicator of its own, and holds the first rank of one of the honest job's as well:
    so its own ranks seem to be of that job."""
    for i in range(LIARS):
        own = {**lie.who(i), **lie.own(i)}
        number = lie.works(own, lie.middle)
        lie.stays(own, number + (i > 0), lie.middle, "in_flight" if i else "finished")
        of = {**lie.who(i), **lie.theirs(i, rank=0)}
        lie.works(of, lie.middle, 1000)
        lie.stays(of, 3, lie.middle, transfers=[{
            "peer": 1, "channel": 0, "send": True, "state": "send_wait", "since_ms": lie.middle, "steps_done": 1,
            "steps": 8, "number": 3}])


def many_comms(lie):
    """As many communicators as it can name, and more."""
    for n in range(3000):
        i = n % LIARS
        ms = lie.begins + n * (lie.ends - lie.begins) // 3000
        lie.ended(ms, 1, {**lie.who(i), **lie.own(0, f"{n}"), "job": "88" if n % 2 else f"j{n}"})


LIES = [same_name, silent, sums, ranks_taken, ranks_gone, ranks_closed, ranks_more, a_million, goes_back,
        own_and_theirs, many_comms]
FAULTS = ("healthy", "stopped", "transfer stands", "late", "other order")
CASES = {f"{fault}, {lie.__name__.replace('_', ' ')}": (fault, lie) for fault in FAULTS for lie in LIES}
_alone = {}


def honest(fault, seed):
    """The reports of a job, and what is said of it alone."""
    make, syndrome, _ = daemon.CASES[fault]
    job = make(seed)
    reports = Reports(job, job.run())
    if syndrome in ("noncomm_hang", "comm_hang", "mismatch"):
        reports.stop()
    if (fault, seed) not in _alone:
        _alone[fault, seed] = diagnoses(reports, [])
    return reports, _alone[fault, seed]


def diagnoses(reports, lies):
    timed = [(reports.sent(entry), json.dumps(entry[1])) for entry in reports.records]
    timed += [(ms, json.dumps(r)) for ms, r in lies]
    found = daemon.replay([line for _, line in sorted(timed, key=lambda x: x[0])])
    return [r for r in found if r["schema"] == "fabrictrace.diagnosis.v1" and not r.get("cleared")]


OWN = {comm_id(f"liar {n}") for n in ["own", *map(str, range(3000))]}


def is_liars(record):
    """Whether it is of a communicator of the liars, or of their hosts alone."""
    named = [record[k] for k in ("host", "peer_host") if k in record]
    return record.get("communicator") in OWN or (bool(named) and all(h.startswith("liar") for h in named))


def said(records):
    return collections.Counter(tuple(r.get(k) for k in SAID) for r in records)


def run_one(name, seed):
    """What is wrong with a run, in words; and how much of the honest job was said."""
    fault, tell = CASES[name]
    reports, alone = honest(fault, seed)
    lie = Lie(seed, reports)
    tell(lie)
    found = diagnoses(reports, lie.records)
    beside = [r for r in found if not is_liars(r)]
    wrong = []
    hosts = {f"gpu{reports.job.host(r):02}" for r in range(reports.job.ranks)}
    for r in found:
        if is_liars(r) and hosts & {r.get("host"), r.get("peer_host")}:
            wrong.append(("of the liars, names the honest", r))
    for r, n in (said(alone) - said(beside)).items():
        wrong.append(("not said beside the lie", r))
    for r, n in (said(beside) - said(alone)).items():
        wrong.append(("said beside the lie alone", r))
    return wrong, len(alone)


def main():
    args = options(CASES)
    failed = 0
    print(f"seeds {args.seed} to {args.seed + args.seeds - 1}")
    print(f"{'case':34} {'runs':>4} {'said':>4} {'wrong':>5}")
    for name in args.cases or CASES:
        told = bad = 0
        for seed in range(args.seed, args.seed + args.seeds):
            wrong, count = run_one(name, seed)
            told += count
            bad += len(wrong)
            # Of a fault that is not told at all nothing could change.
            failed += bool(wrong) or (count == 0 and CASES[name][0] != "healthy")
            for what, record in wrong[:4]:
                print(f"  seed {seed}: {what}: {record}")
        print(f"{name:34} {args.seeds:4} {told:4} {bad:5}", flush=True)
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
