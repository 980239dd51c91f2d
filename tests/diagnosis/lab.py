#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A training job of 64 ranks over the fabric of namespaces, with the real plugin in each rank, an agent
on each of its 8 hosts, poller and daemon; each run has a fault, or none, and what is diagnosed is judged
by it. Needs root; runs in the build folder.

usage: lab.py [--fault KIND]... [--runs N] [--seed FIRST] [--out FILE] [--build FOLDER] [--short]
       lab.py --table FILE...

A table a kind: in how many runs the right syndrome, rank and link were named, how many diagnoses named
anything else, seconds from the fault to the first right one. --out appends a line of JSON for each run,
of which --table makes the table of several portions. --short is for ./check diagnosis: a job that is well, has a
rank that is stopped, then a slow link.

Namespaces have no RDMA devices: whose process a queue pair is, which an agent reads from the kernel's
list, is sent in its place by a connection of its own (owners.py). Steps of the network are real packets
over the switches' queues; cards (card.c) resend and acknowledge. Of hosts that share a leaf no flow
crosses a link of the fabric."""
import argparse
import json
import random
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "fabric"), str(HERE)]
import speed  # noqa: E402
from lab.agents import Agents  # noqa: E402
from lab.fabric import Fabric, LabError, end_tidily  # noqa: E402
from lab.layout import Layout  # noqa: E402
from lab.pipeline import Pipeline, find_programs  # noqa: E402
from lab.records import RecordFile  # noqa: E402
from labfaults import CASES, HEALTHY  # noqa: E402
from labjob import Job, Owners, program  # noqa: E402

POLL_S = 10          # of the switches' SNMP agents
CALM_STEPS = 40      # before the fault
HEALTHY_STEPS = 90   # of a job without one
AWAITED_S = 60       # until the right diagnosis
AFTER_S = 12         # after it, for wrong ones
LINK_S = 45          # after it, until its link, of which a later look knows more
SHORT_STEPS = 25
MARKS = ("syndrome", "rank", "link")


class Lab:
    """The programs over a fabric that is up; one job at a time."""

    def __init__(self, fabric, build):
        self.fabric, self.build = fabric, Path(build).resolve()
        switches = fabric.dir / "switches.yaml"
        agents = Agents(fabric)
        agents.config(switches)
        for switch in fabric.layout.switches:
            agents.set_cache_seconds(switch, 1)
        self.pipeline = Pipeline(
            fabric, find_programs(build), 10, agent=f"nccl:\n  socket: {fabric.dir}/{{host}}.sock\n",
            poller=f"snmp:\n  switches: {switches}\n  interval: {POLL_S}s\n")
        self.records = RecordFile(self.pipeline.records)
        self.rocegen = self.pipeline.programs["rocegen"]
        self.plugin = program(self.build, "agent/nccl/libnccl-profiler-fabrictrace.so")
        self.owners = Owners(fabric)

    def diagnoses(self, job):
        return [s for s in self.records.poll().of("diagnosis")
                if s.record.get("job") == job and not s.record.get("cleared")]

    def wait_steps(self, job, count):
        """Until each rank has done so many steps of training."""
        deadline = speed.Deadline(60 + 3 * count)
        while min(job.steps()) < count:
            if deadline.passed():
                raise LabError(f"{job.name}: steps {sorted(job.steps())[:4]} ... of {count}")
            self.records.follow(0.2)
            job.check_alive()
        self.pipeline.check_alive()


def judge(found, case, begun_ms):
    """Who of the diagnoses is right: {what: the first one's seconds, None}, and texts of wrong ones."""
    took = dict.fromkeys(MARKS)
    wrong = []
    for seen in found:
        marks = case.right(seen.record)
        if not any(marks.values()):
            r = seen.record
            wrong.append(f"{r['syndrome']} rank {r.get('rank')} on {r.get('host')} peer {r.get('peer')} "
                         f"{r.get('switch', '')} {r.get('port', '')} {r.get('side', '')} "
                         f"{r.get('evidence_for', [''])[:2]}")
            continue
        for what in MARKS:
            if marks[what] and took[what] is None:
                took[what] = (seen.at_ms - begun_ms) / 1000
    return took, wrong


def run_one(lab, kind, seed):
    rng = random.Random(f"{kind}{seed}")
    options = {"compute": rng.uniform(50, 90), "jitter": rng.uniform(0.01, 0.05)}
    job = Job(lab, f"{kind}-{seed}", rng.randrange(1 << 32), **{**options, **HEALTHY.get(kind, {})})
    case = CASES[kind](lab, job, rng)
    row = {"kind": kind, "seed": seed, "fault": str(case), "knows_link": case.link is not None}
    try:
        lab.wait_steps(job, CALM_STEPS)
        before = lab.diagnoses(job.name)
        took, wrong = judge(before, CASES["healthy"](lab, job, rng), 0)
        row["early"] = len(wrong)
        begun_ms = time.time() * 1000
        case.begin()
        if kind in HEALTHY:
            lab.wait_steps(job, HEALTHY_STEPS)
        else:
            def await_mark(mark, at_most):
                deadline = time.monotonic() + speed.limit(at_most)
                while time.monotonic() < deadline and judge(
                        [s for s in lab.diagnoses(job.name) if s not in before], case, begun_ms)[0][mark] is None:
                    lab.records.follow(0.25)

            await_mark("rank", AWAITED_S)
            lab.records.follow(AFTER_S)
            if case.link:
                await_mark("link", LINK_S - AFTER_S)
        found = [s for s in lab.diagnoses(job.name) if s not in before]
        took, more = judge(found, case, begun_ms)
        row.update(took=took, wrong=wrong + more, told=len(before) + len(found),
                   seconds=time.time() - begun_ms / 1000, steps=min(job.steps()))
    finally:
        case.end()
        job.end()
    return row


def short(lab, seed):
    """One job for ./check: nothing is said while it is well, a rank that is stopped is named, then a slow link.
    Prints a line each; whether all was so."""
    rng = random.Random(seed)
    job = Job(lab, f"short-{seed}", rng.randrange(1 << 32), compute=60, jitter=0.02)
    verdicts = []
    try:
        lab.wait_steps(job, SHORT_STEPS)
        said = lab.diagnoses(job.name)
        print(f"{'FAIL' if said else 'ok'}: a job of 64 ranks that is well: nothing is diagnosed"
              + "".join(f"\n   {s.record['message']}" for s in said), flush=True)
        verdicts.append(not said)
        for kind, mark in (("stop", "rank"), ("rate", "link")):
            case = CASES[kind](lab, job, rng)
            before = lab.diagnoses(job.name)
            begun_ms = time.time() * 1000
            case.begin()
            deadline = time.monotonic() + speed.limit(120)
            took = {mark: None}
            while took[mark] is None and time.monotonic() < deadline:
                lab.records.follow(0.25)
                found = [s for s in lab.diagnoses(job.name) if s not in before]
                took, wrong = judge(found, case, begun_ms)
            case.end()
            right = took[mark] is not None and took["syndrome"] is not None and not wrong
            print(f"{'ok' if right else 'FAIL'}: {case}: {took}" + "".join(f"\n   {w}" for w in wrong), flush=True)
            verdicts.append(right)
        lab.pipeline.check_alive()
    finally:
        job.end()
    print(f"{sum(verdicts)} passed, {len(verdicts) - sum(verdicts)} failed, 0 skipped")
    return all(verdicts)


def percent(part, whole):
    return f"{100 * part / whole:.1f}" if whole else "-"


def seconds(times):
    return f"{times[len(times) // 2]:8.1f} {times[-1]:9.1f}" if times else f"{'':8} {'':9}"


def table(rows):
    """Prints it; whether all was right."""
    good = True
    print(f"{'fault':12} {'runs':>4} {'syndrome':>8} {'rank':>5} {'link':>7} {'wrong':>5} {'precision':>9} "
          f"{'recall':>6} {'median s':>8} {'longest s':>9}")
    for kind in CASES:
        its = [r for r in rows if r["kind"] == kind]
        if not its:
            continue
        count = {what: sum(r["took"][what] is not None for r in its) for what in MARKS}
        times = sorted(min(t for t in (r["took"]["rank"], r["took"]["link"]) if t is not None)
                       for r in its if r["took"]["rank"] or r["took"]["link"])
        wrong, told = sum(len(r["wrong"]) for r in its), sum(r["told"] for r in its)
        links = sum(r["knows_link"] for r in its)
        link = f"{count['link']} of {links}" if links else ""
        marks = f"{'':8} {'':5} {'':7}" if kind in HEALTHY else (
            f"{count['syndrome']:8} {count['rank']:5} {link:>7}")
        good = good and not wrong and (kind in HEALTHY or count["syndrome"] == len(its))
        print(f"{kind:12} {len(its):4} {marks} {wrong:5} {percent(told - wrong, told):>9} "
              f"{'' if kind in HEALTHY else percent(len(times), len(its)):>6} {seconds(times)}", flush=True)
    return good


def work(args):
    rows = []
    layout = Layout(spines=4, leaves=4, hosts=2)
    with Fabric(f"run{time.monotonic_ns() % 10**9}", layout, sampling=args.sampling, seed=args.seed) as fabric:
        lab = Lab(fabric, args.build)
        try:
            if args.short:
                rows = short(lab, args.seed)
            for kind in [] if args.short else args.fault:
                for seed in range(args.seed, args.seed + args.runs):
                    row = run_one(lab, kind, seed)
                    rows.append(row)
                    print(f"{kind} seed {seed}: {row['fault']}: {row['took']} "
                          f"wrong {len(row['wrong'])}, {row['steps']} steps", flush=True)
                    for text in row["wrong"]:
                        print(f"   WRONG {text}", flush=True)
                    if args.out:
                        with open(args.out, "a") as out:
                            out.write(json.dumps(row) + "\n")
        finally:
            lab.owners.close()
            if args.keep:
                Path(args.keep).write_bytes(lab.pipeline.records.read_bytes())
            if args.incident:
                lab.pipeline.tool("record", "--last", "30m", "--output", Path(args.incident).resolve())
        for text in lab.pipeline.stop():
            raise LabError(text)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fault", action="append", choices=list(CASES), help="default: each")
    parser.add_argument("--runs", type=int, default=1, help="of each fault")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sampling", type=int, default=20)
    parser.add_argument("--build", default=".")
    parser.add_argument("--out")
    parser.add_argument("--keep", help="a file for the daemon's records")
    parser.add_argument("--incident", help="a file for what the daemon was given: fabrictraced --incident")
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--table", nargs="+")
    args = parser.parse_args()
    if args.table:
        return 0 if table([json.loads(line) for name in args.table for line in open(name)]) else 1
    args.fault = args.fault or list(CASES)
    end_tidily()
    try:
        done = work(args)
        good = done if args.short else table(done)
    except LabError as error:
        sys.exit(f"lab: {error}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
