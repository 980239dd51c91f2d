# SPDX-License-Identifier: Apache-2.0
"""Ends of queue pairs that only their communicators tell apart: jobs of ranks.c, whose queue pairs have
the same numbers, and agents that see the kernel's lists alone.

The truth is what the rdma tool lists, and where tcpdump on the spines saw the packets go.
"""
import collections
import json
import math
import pathlib
from dataclasses import dataclass

import guestfabric
import vm
from fabricwire import FabricJudge
from guestfabric import Layout
from lab.records import flow_of
from lab.traffic import Flow

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PLUGIN = "agent/nccl/libnccl-profiler-fabrictrace.so"
PROGRAMS = guestfabric.PROGRAMS
CHANNELS = 2
KILLED = "two", 3
SWEEP_MS = 1000  # ends are judged so often, and one record may pass another
ANOTHER = 0x100  # of its number a job's second communicator is further


@dataclass(frozen=True)
class Job:
    """Ranks in a ring, each under the other leaf than the next, so that all they send crosses a spine.
    The numbers of a rank's queue pairs count from first + rank * step. A wave starts after the one
    before it. comm is None without the plugin; told: its ends are unique in the communicator."""
    name: str
    wave: int
    comm: str | None
    first: int
    step: int
    hosts: tuple
    told: bool

    @property
    def shared(self):
        """Two queue pairs have each tuple: their numbers are the same two, the other way round. So no
        sample tells which one sent it."""
        return self.step == 0 and len(self.hosts) == 2

    def peer(self, rank, by):
        return (rank + by) % len(self.hosts)


JOBS = (
    Job("one", 1, "00000000000a0001", 32, 16, ("gpu01", "gpu05", "gpu02", "gpu06"), True),
    Job("two", 1, "00000000000a0002", 32, 16, ("gpu03", "gpu07", "gpu04", "gpu08"), True),
    Job("bare1", 2, None, 112, 16, ("gpu01", "gpu05"), False),
    Job("bare2", 2, None, 112, 16, ("gpu03", "gpu07"), False),
    # Each rank has the same numbers as the others: there are three that each may be connected to.
    Job("alike", 3, "00000000000a0003", 160, 0, ("gpu01", "gpu05", "gpu02", "gpu06"), False),
    # With two ranks it is the only other one. What they send either way has one port.
    Job("both", 3, "00000000000a0004", 160, 0, ("gpu03", "gpu07"), True),
)
JOB = {job.name: job for job in JOBS}


def machines(_):
    return (vm.Machine(memory_mib=704),)


def the_plan():
    return guestfabric.Plan(Layout(spines=2, leaves=2, hosts=4), (), qps=0, sampling=1, window_s=4)


def due():
    """Ends that are found by communicator, their flows, those of which ranks are told, ends that lose
    theirs by the kill, and ends that samples show after it."""
    ends = {job: 2 * CHANNELS * len(job.hosts) for job in JOBS}
    told = [job for job in JOBS if job.told]
    bereft = 2 * CHANNELS
    return sum(ends[job] for job in told), sum(ends[job] // (1 + job.shared) for job in told), \
        sum(ends[job] // 2 for job in told), \
        bereft, sum(n for job, n in ends.items() if not job.shared) - 2 * bereft


def prepare(share, build):
    plan = the_plan()
    plugin = build / PLUGIN
    if not plugin.exists():
        raise vm.Lacks(f"{PLUGIN} is not built")
    vm.compile_for_guest(share / "ranks", "-I", build, "-I", ROOT, HERE / "ranks.c",
                         ROOT / "tests/nccl/driver.c")
    (share / plugin.name).write_bytes(plugin.read_bytes())
    guestfabric.write(share, plan)
    folder = share / "plan"
    # As training fabrics are: NCCL takes one kind of address, and hosts have no other.
    hosts = folder / "hosts.batch"
    hosts.write_text("".join(line for line in hosts.read_text().splitlines(True) if "fd00:" not in line) +
                     # By which a queue pair is connected to itself.
                     "".join(f"route add local {host.ip4} dev {host.name} table {table}\n"
                             for table, host in enumerate(plan.layout.hosts, guestfabric.FIRST_TABLE)))
    for host in plan.layout.hosts:
        path = folder / f"{host.name}.yaml"
        asking = path.read_text()
        assert "query: true" in asking
        path.write_text(asking.replace("query: true", "query: false") +
                        f"refresh_interval: 2s\nnccl:\n  socket: /tmp/{host.name}.sock\n")
    with open(folder / "fabrictraced.yaml", "a", encoding="utf-8") as config:
        config.write(f"path_refresh: {plan.window_s}s\n")
    (folder / "jobs").write_text("".join(
        f"{job.wave} {job.name} {'/tmp/' + plugin.name if job.comm else '-'} {job.comm or 0} {job.first} {job.step} "
        f"{' '.join(job.hosts)}\n" for job in JOBS))
    (folder / "victim").write_text("{} {}\n".format(*KILLED))
    (folder / "another").write_text(f"0 {len(JOBS[0].hosts)} {int(JOBS[0].comm, 16) + ANOTHER:016x}\n")
    (folder / "due").write_text("{} {} {} {} {}\n".format(*due()))


@dataclass(frozen=True)
class End:
    """An end as its rank made it and the rdma tool lists it. what: send, receive or flush. there and
    flow are the wire's: None for what was not seen, or not on its way to one place."""
    job: Job
    rank: int
    pid: int
    what: str
    row: dict
    host: object
    there: str | None
    flow: Flow | None

    @property
    def key(self):
        return self.host.name, self.row["lqpn"]

    @property
    def peer(self):
        return self.job.peer(self.rank, {"send": 1, "receive": -1, "flush": 0}[self.what])

    @property
    def killed(self):
        return (self.job.name, self.rank) == KILLED

    @property
    def bereft(self):
        """Its peer is of the killed rank."""
        return not self.killed and self.what != "flush" and (self.job.name, self.peer) == KILLED

    def ranks(self):
        """What a path says of it. Who receives sends nothing but acknowledgements, unless another one sends
        data by the same tuple."""
        known = self.job.comm and (self.what == "send" or self.job.shared)
        return {"comm_id": self.job.comm, "src_rank": self.rank, "dst_rank": self.peer} if known else {}

    def __str__(self):
        return f"{self.job.name} rank {self.rank} {self.what}, {self.host.name} qp " \
               f"{self.row['lqpn']}>{self.row['rqpn']}, {self.flow}"


class Judge(FabricJudge):
    def _ends(self):
        rows = {(row["ifname"], row["lqpn"]): row for row in json.loads((self.out / "qp.json").read_text())
                if row.get("type") == "RC"}
        self.unknown = set(rows)
        hosts = {host.name: host for host in self.layout.hosts}
        seen = collections.defaultdict(set)
        for (src, dst, number), sports in self.wire.sports.items():
            seen[src, number] |= {(dst, sport) for sport in sports}
        for job in JOBS:
            lines = [line.split() for line in (self.out / f"ranks-{job.name}").read_text().splitlines()]
            pids = {int(words[1]): int(words[2]) for words in lines if words[0] == "rank"}
            for _, rank, what, _, local, _ in (words for words in lines if words[0] == "qp"):
                host = hosts[job.hosts[int(rank)]]
                name = guestfabric.device(host), int(local)
                row = rows.get(name, {"lqpn": int(local), "rqpn": None, "pid": None})
                self.unknown.discard(name)
                went = seen[host.ip4, row["rqpn"]] if what != "flush" else ()
                there, sport = next(iter(went)) if len(went) == 1 else (None, None)
                yield End(job, int(rank), pids[int(rank)], what, row, host, there,
                          Flow(host.ip4, there, sport) if there else None)

    def peer_of(self, end):
        return self.layout.owner[end.there].name if end.there else None

    def made(self):
        """What the rdma tool lists is what the ranks made, and went where they sent it to."""
        owner = dict(map(int, line.split()) for line in (self.out / "threads").read_text().splitlines())
        there = {end.key: end for end in self.ends}
        wrong = [f"{name}: of no job" for name in self.unknown]
        for end in self.ends:
            if owner.get(end.row["pid"]) != end.pid:
                wrong.append(f"{end}: of {end.row['pid']}, not of {end.pid}")
            if end.what == "flush":
                wrong += [f"{end}: is connected to another" for _ in [0] if end.row["lqpn"] != end.row["rqpn"]]
            elif self.peer_of(end) != end.job.hosts[end.peer]:
                wrong.append(f"{end}: packets went to {self.peer_of(end)}")
            elif there[self.peer_of(end), end.row["rqpn"]].row["rqpn"] != end.row["lqpn"]:
                wrong.append(f"{end}: its peer names another")
        tuples = collections.Counter(end.flow for end in self.data())
        wrong += [f"{end}: {tuples[end.flow]} have its tuple" for end in self.data()
                  if tuples[end.flow] != 1 + end.job.shared]
        return wrong

    def data(self):
        return [end for end in self.ends if end.what != "flush"]

    def alike(self):
        """The numbers tell nothing: every pair of them that a job without a step or another job may have
        is there as often. Returns texts, and how many ends share theirs with another."""
        count = collections.Counter((end.row["lqpn"], end.row["rqpn"]) for end in self.ends)
        wrong = [f"{end}: nobody else has its numbers" for end in self.ends
                 if count[end.row["lqpn"], end.row["rqpn"]] < 2]
        return wrong, sum(n for n in count.values() if n > 1)

    def listed(self, name):
        return {(r["host"], r["local"]): r for r in map(json.loads, (self.out / name).read_text().splitlines())}

    def lists(self):
        listed = self.listed("qps-named.json")
        wrong = [f"{key}: listed, and not there" for key in listed.keys() - {end.key for end in self.ends}]
        for end in self.ends:
            r = listed.get(end.key, {})
            told = tuple(r.get(key) for key in ("device", "remote", "pid", "comm", "job"))
            true = end.row.get("ifname"), end.row["rqpn"], end.pid, "ranks", None
            if told != true:
                wrong.append(f"{end}: {told}, not {true}")
        return wrong

    def not_found(self, end, r, by):
        """Empty when an end is paired as the wire shows, and this is how it was found."""
        flow = r.get("flow", {})
        told = r.get("state"), r.get("by"), r.get("peer_host"), r.get("peer_device"), flow.get("src"), \
            flow.get("dst"), flow.get("sport"), r.get("comm_id"), r.get("tuple_source")
        sampled = by == "both_hosts"
        true = "paired", by, self.peer_of(end), f"rxe_{self.peer_of(end)}", end.host.ip4, end.there, \
            end.flow and end.flow.sport, None if sampled else end.job.comm, "observed" if sampled else "computed"
        return [] if told == true else [f"{end}: {told}, not {true}"]

    def named(self):
        """Each end that is unique in its communicator has the wire's other end."""
        listed = self.listed("qps-named.json")
        return [text for end in self.data() if end.job.told
                for text in self.not_found(end, listed.get(end.key, {}), "communicator")]

    def not_paired(self, name, ends, state):
        """No end of these has a pair, for this reason."""
        listed = self.listed(name)
        return [f"{end}: {listed.get(end.key)}" for end in ends
                if (r := listed.get(end.key, {})).get("state") != state or
                r.keys() & {"flow", "peer_host", "peer_device", "by", "comm_id"}]

    def truth_of(self, end):
        """What a path record may say of what an end sends. The agents may not read who belongs to which
        job, but the plugin tells it of traffic from rank to rank."""
        ranks = end.ranks()
        return {"qp": {"local": end.row["lqpn"], "remote": end.row["rqpn"]}, "pid": end.pid, "comm": "ranks",
                "src_host": end.host.name, "dst_host": self.peer_of(end), **ranks,
                **({"job": end.job.name} if ranks else {})}

    def ever_wrong_owner(self):
        """Whatever a path record ever said of queue pairs, processes, jobs and ranks is so. Returns texts,
        and how many said something."""
        truth, wrong, told = collections.defaultdict(list), [], 0
        for end in self.data():
            truth[end.flow].append(self.truth_of(end))
        keys = {key for trues in truth.values() for true in trues for key in true}
        for seen in self.records.of("path"):
            r, trues = seen.record, truth[seen.flow]
            told += "pid" in r
            wrong += [f"{seen.flow}: {key} {r[key]}, not {[true.get(key) for true in trues]}"
                      for key in keys & r.keys() if r[key] not in [true.get(key) for true in trues]]
            p = r.get("pairing", {})
            peers = [(true["dst_host"], f"rxe_{true['dst_host']}", true["qp"]["remote"]) for true in trues]
            peers += [(host, device, None) for host, device, _ in peers]
            if "by" in p and (p["by"] not in ("communicator", "fabric", "both_hosts") or
                              (p.get("host"), p.get("device"), p.get("qp")) not in peers):
                wrong.append(f"{seen.flow}: {p}")
        return wrong, told

    def told_by_communicator(self):
        """Without one sample there were paths of all these ends, complete but for the hops, and for the
        queue pair where two have the same tuple."""
        wrong = []
        for end in (end for end in self.data() if end.job.told):
            want = {**self.truth_of(end), "tuple_source": "computed"}
            if end.job.shared:
                want["qp"] = None
            said = [{key: r.get(key) for key in want} for r in self.of_flow[end.flow]
                    if r.get("pairing", {}).get("by") == "communicator" and
                    r["pairing"].get("comm_id") == end.job.comm and not r.get("hops")]
            if want not in said:
                wrong.append(f"{end}: {said[-1:]}, not {want}")
        return wrong

    def only_by_samples(self):
        """No path names an end of the others before a sample showed it, or all ends but its own and its
        peer's of these numbers, in its communicator or anywhere: then these two are left."""
        first = {flow: min((r["time_ms"] for r in self.of_flow[flow]
                            if r.get("pairing", {}).get("by") == "both_hosts"), default=math.inf)
                 for flow in {end.flow for end in self.data()}}
        bare = [job for job in JOBS if not job.comm]
        wrong = []
        for end in (end for end in self.data() if not end.job.told):
            told = [r for r in self.of_flow[end.flow] if r.get("pairing", {}).get("by", "both_hosts") != "both_hosts"]
            numbers = {end.row["lqpn"], end.row["rqpn"]}
            shown = max((first[other.flow] for other in self.data()
                         if end.job in (other.job, *bare) and {other.row["lqpn"], other.row["rqpn"]} == numbers and
                         {other.host.name, self.peer_of(other)} != {end.host.name, self.peer_of(end)}),
                        default=math.inf)
            wrong += [f"{end}: {r['pairing']}" for r in told if r["time_ms"] + SWEEP_MS < shown]
        return wrong

    def withdrawn(self):
        """What two share is taken back when one of them ends, and said anew of the other."""
        shared = {end.flow for end in self.data() if end.job.shared}
        return [f"{seen.flow}: {seen.record['pairing']}" for seen in self.records.of("path")
                if seen.record.get("pairing", {}).get("withdrawn") and seen.flow not in shared]

    def after_kill(self):
        """The ends of a killed rank are not listed any more, what sent to them is no pair, and the others
        are what they were."""
        before, after = self.listed("qps-named.json"), self.listed("qps-killed.json")
        wrong = [f"{end}: still listed" for end in self.ends if end.killed and end.key in after]
        wrong += self.not_paired("qps-killed.json", [end for end in self.ends if end.bereft], "peer_gone")
        same = ("state", "by", "flow", "peer_host", "comm_id")
        return wrong + [f"{end}: {after.get(end.key)}, was {before.get(end.key)}" for end in self.ends
                        if not end.killed and not end.bereft and
                        [after.get(end.key, {}).get(k) for k in same] != [before.get(end.key, {}).get(k) for k in same]]

    def sampled(self):
        """Samples show every other end, and confirm what communicators told. Where two share a tuple it
        stands, whatever a sample happened to show."""
        listed, wrong = self.listed("qps-sampled.json"), []
        for end in self.data():
            r = listed.get(end.key, {})
            if end.job.shared:
                told = r.get("state"), r.get("peer_host"), "flow" in r and flow_of(r)
                wrong += [f"{end}: {r}" for _ in [0] if told != ("paired", self.peer_of(end), end.flow)]
            elif not end.killed and not end.bereft:
                wrong += self.not_found(end, r, "both_hosts")
        return wrong

    def resolved(self):
        return self.unresolved([end.flow for end in self.data() if not end.killed and not end.bereft])


def judge(out, _):
    j = Judge(out, the_plan())
    by_job = collections.defaultdict(list)
    for end in j.data():
        by_job[end.job.name].append(end)
    j.check("no capture dropped a packet", j.captures())
    j.check(f"{len(j.ends)} ends of {len(JOBS)} jobs, by the rdma tool and the wire", j.made())
    wrong, alike = j.alike()
    j.check(f"{alike} of them have numbers that others have too", wrong)
    j.check("all are listed, with number, process, device and job", j.lists())
    named, *_ = due()
    j.check(f"{named} ends are paired by communicator, each with the wire's, before any sample", j.named())
    bare = by_job["bare1"] + by_job["bare2"]
    j.check(f"{len(bare)} ends of the jobs without the plugin are not: several peers",
            j.not_paired("qps-named.json", bare, "several_peers"))
    j.check(f"nor {len(by_job['alike'])} ends that are alike inside one communicator",
            j.not_paired("qps-named.json", by_job["alike"], "several_peers"))
    flush = [end for end in j.ends if end.what == "flush"]
    j.check(f"nor {len(flush)} ends that are connected to themselves", j.not_paired("qps-named.json", flush, "itself"))
    j.check("paths of the paired name owner, job, communicator and ranks, without any sample", j.told_by_communicator())
    j.check("another communicator changes nothing; the ends of a killed rank go, and nothing else", j.after_kill())
    j.check("samples confirm them, and show the others", j.sampled())
    j.check("those others were never told before, but by having shown the rest", j.only_by_samples())
    wrong, told = j.ever_wrong_owner()
    j.check(f"{told} records of paths name an owner, never a wrong one", wrong)
    j.check("nothing was ever withdrawn", j.withdrawn())
    j.check(f"each of the {len(j.paths)} tuples on the wire has one path", j.one_path())
    j.check("every flow is resolved to the uplink that tcpdump saw", j.resolved())
    j.check("no record ever told another path", j.ever_wrong())
    j.check("no flow is reported that was not on the wire", j.invented())
    j.check("when the jobs have ended nothing is listed",
            [text for text in (out / "qps-ended.json").read_text().splitlines()])
    return j.passed, j.failed
