# SPDX-License-Identifier: Apache-2.0
"""Queue pairs, processes and devices that come and go: what the agents said, against what churn.c
wrote down of itself, the rdma tool, /proc/TID/status and the bonding driver's own words."""
import bisect
import collections
import json
import os
import pathlib

import vm
from judging import Tally

HERE = pathlib.Path(__file__).resolve().parent

# Who lived through so many of the agent's ticks was seen.
TICKS_SEEN = 3
RSS_GROWTH_KIB = 1024
PTRACE = "CAP_SYS_PTRACE"
ADDRESS = {"rxe_h1": "10.1.0.1", "rxe_h2": "10.2.0.1", "rxe_h3": "10.3.0.1", "rxe_b8": "10.8.0.1",
           "rxe_b9": "10.9.0.1"}
DEVICES = {"steady": "rxe_h1", "fleeting": "rxe_h1", "brief": "rxe_h2", "lost": "rxe_h3", "again": "rxe_h3",
           "sixteen": "rxe_b8", "backup": "rxe_b9"}


def prepare(share, build):
    vm.compile_for_guest(share / "churn", HERE / "churn.c")


class Process:
    """A process of churn.c, from what it wrote."""

    def __init__(self, path):
        name, self.job = path.name.split("-")
        self.device = DEVICES[name.rstrip("0123456789")]
        self.pairs = {}  # (lqpn, rqpn): [made, not yet destroyed, destroyed]
        self.pid = self.tid = self.comm = self.end = None
        self.seconds = collections.Counter()
        for line in path.read_text().splitlines():
            words = line.split()
            if words[0] == "process":
                self.pid, self.tid, self.comm = int(words[1]), int(words[2]), words[3]
            elif words[0] == "made" and len(words) == 4:
                self.pairs[int(words[1]), int(words[2])] = [int(words[3]), None, None]
            elif words[0] == "gone" and len(words) == 5:
                self.pairs[int(words[1]), int(words[2])][1:] = [int(words[3]), int(words[4])]
            elif words[0] == "second" and len(words) == 3:
                self.seconds[int(words[1])] += int(words[2])
            elif words[0] == "end" and self.end is None:
                self.end = int(words[1])
        for times in self.pairs.values():
            times[1:] = [t or self.end for t in times[1:]]

    @property
    def address(self):
        return ADDRESS[self.device]


def load(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


class Judge(Tally):
    def __init__(self, out):
        super().__init__()
        self.out = out
        self.processes = [Process(path) for path in sorted((out / "truth").iterdir())]
        self.truth = {(p.address, *pair): (p, *times) for p in self.processes for pair, times in p.pairs.items()}
        self.records = {name: load(out / f"{name}.ndjson") for name in ("asking", "modest")}
        # When ticks of the agent began, as far as it had something to report in them. A machine under
        # load stands still at times, and the agent with it.
        self.ticks = sorted({r["time_ms"] for r in self.records["asking"]})

    def flows(self, name="asking"):
        return [r for r in self.records[name] if r["schema"] == "fabrictrace.flow.v1"]

    def statuses(self, name):
        return [r for r in self.records[name] if r["schema"] == "fabrictrace.host_status.v1"]

    def known(self, flow):
        """(process, made, not yet destroyed, destroyed) of the queue pair that a report names, or None."""
        own = flow["flow"]["src" if flow["direction"] == "tx" else "dst"]
        return self.truth.get((own, flow["qp"]["local"], flow["qp"]["remote"])) if "qp" in flow else None

    def invented(self):
        """Queue pairs that never were, or to somewhere else; or reported outside their lives."""
        wrong = []
        for r in self.flows():
            if "qp" not in r:
                continue
            found = self.known(r)
            if not found:
                wrong.append(f"no such queue pair: {r}")
                continue
            _, made, _, gone = found
            peer = r["flow"]["dst" if r["direction"] == "tx" else "src"]
            if not peer.endswith(f".{128 + r['qp']['remote'] % 64}"):
                wrong.append(f"sends elsewhere: {r}")
            # Within a tick the list is read, at the latest in the one before that of the report.
            at = bisect.bisect_left(self.ticks, r["time_ms"])
            begin = self.ticks[at - 1] if at > 0 else 0
            end = self.ticks[at + 1] if at + 1 < len(self.ticks) else gone
            if made > end or gone < begin and not r.get("ended"):
                wrong.append(f"between {begin} and {end}, not within {made} and {gone}: {r}")
        return wrong

    def owners(self):
        """Stale or foreign owners: a report names its own process, or none."""
        wrong, named = [], collections.Counter()
        for r in self.flows():
            found = self.known(r)
            if not found:
                continue
            process = found[0]
            if "pid" not in r:
                named["none", bool(r.get("ended"))] += 1
                if "comm" in r or "job" in r:
                    wrong.append(f"an owner without a number: {r}")
                continue
            named["named", bool(r.get("ended"))] += 1
            if (r["pid"], r.get("comm"), r.get("job")) != (process.pid, process.comm, process.job):
                wrong.append(f"{r['pid']} {r.get('comm')} {r.get('job')}, not {process.pid} {process.comm} "
                             f"{process.job}: {r}")
        if named["named", False] < 20 * named["none", False]:
            wrong.append(f"too few owners: {dict(named)}")
        return wrong, named

    def seen(self):
        """Who lived long enough was reported, in both directions and with an owner, while it lived."""
        got = collections.defaultdict(set)
        for r in self.flows():
            found = self.known(r)
            if found and "pid" in r:
                got[id(found[0]), r["qp"]["local"], r["qp"]["remote"]].add(r["direction"])
        wrong, count = [], 0
        for (_, lqpn, rqpn), (process, made, gone, _) in self.truth.items():
            if not self.must_see(made, gone):
                continue
            count += 1
            if got[id(process), lqpn, rqpn] != {"tx", "rx"}:
                wrong.append(f"{process.comm}: queue pair {lqpn} > {rqpn}, alive for {gone - made} ms")
        return (wrong if len(wrong) > self.shared() else []), count

    def ended(self):
        """Each flow that was reported ended once, as its last word."""
        last, ends = {}, collections.Counter()
        for r in self.flows():
            key = (*r["flow"].values(), r["direction"])
            last[key] = r
            ends[key] += bool(r.get("ended"))
        return [f"{key}: {last[key]}" for key in last if not last[key].get("ended")]

    def snapshot(self):
        """What the rdma tool listed in between, of the processes that /proc named for its threads, or that
        made them: the number of a thread that ended may be another's by the time /proc is read."""
        rows = [r for r in json.loads((self.out / "qp.json").read_text())
                if r.get("type") == "RC" and r.get("rqpn") and r["ifname"] in ADDRESS]
        owner = dict(tuple(map(int, line.split())) for line in (self.out / "threads").read_text().splitlines())
        said = {}
        for r in self.flows():
            if "qp" in r and "pid" in r:
                own = r["flow"]["src" if r["direction"] == "tx" else "dst"]
                said[own, r["qp"]["local"], r["qp"]["remote"]] = r["pid"]
        wrong, missed, count = [], [], 0
        for row in rows:
            key = ADDRESS[row["ifname"]], row["lqpn"], row["rqpn"]
            if key not in self.truth:
                wrong.append(f"churn.c did not write down {row}")
                continue
            process, made, gone, _ = self.truth[key]
            if key not in said:
                missed += [f"{key}: not reported"] if self.must_see(made, gone) else []
            elif said[key] not in (owner.get(row.get("pid")), process.pid):
                wrong.append(f"{key}: {said[key]}, not {process.pid}; {row}")
            else:
                count += 1
        threads = sum(tid != pid for tid, pid in owner.items())
        if count < 100 or not threads:
            wrong.append(f"{count} of {len(rows)} queue pairs, {threads} threads that are no process")
        return wrong + (missed if len(missed) > self.shared() else []), count

    def must_see(self, made, gone):
        return bisect.bisect_left(self.ticks, gone) - bisect.bisect_right(self.ticks, made) >= TICKS_SEEN

    def shared(self):
        """Of a tuple that several queue pairs share no report names one."""
        return sum("qp" not in r for r in self.flows())

    def balance(self, name):
        wrong = []
        last = [r for r in self.records[name] if r["schema"] == "fabrictrace.loss.v1"][-1]
        for stage in last["stages"]:
            dropped = sum(d.get("count", 0) for d in stage.get("drops", []))
            if stage.get("received", 0) != stage.get("processed", 0) + stage.get("pending", 0) + dropped or dropped:
                wrong.append(stage)
        if {s["name"] for s in last["stages"]} < {"rdma_messages", "rdma_rows", "output"}:
            wrong.append(last)
        return wrong

    def steady(self, name):
        """Memory and descriptors, from the height of the churn to the end."""
        rows = [line.split() for line in (self.out / "usage").read_text().splitlines()]
        rss = {row[0]: int(row[2]) for row in rows if row[1] == name}
        files = {row[0]: int(row[3]) for row in rows if row[1] == name}
        wrong = []
        if max(rss["later"], rss["end"]) - rss["full"] > RSS_GROWTH_KIB:
            wrong.append(f"KiB resident: {rss}")
        # A look has a file of /proc or a process open.
        if files["end"] != files["start"] or max(files.values()) > files["start"] + 3:
            wrong.append(f"descriptors: {files}")
        return wrong, rss, files

    def reused(self):
        """The numbers were used anew indeed, or nothing was shown."""
        pids = [line.split()[1] for line in (self.out / "reused").read_text().splitlines()]
        anew = sum(one == other for one, other in zip(pids, pids[1:]))
        return ([] if anew >= 4 else [f"process numbers {pids}"]), anew

    def rate(self):
        seconds = sum((p.seconds for p in self.processes if p.comm in ("steady", "fleeting")), collections.Counter())
        made, best = sum(seconds.values()), max(seconds.values())
        average = made / (max(seconds) - min(seconds) + 1)
        text = f"{made} queue pairs made and destroyed, {average:.0f} a second and up to {best}"
        # The part of this machine that the guest could get, where others want it too.
        part = min(1.0, (os.cpu_count() or 1) / os.getloadavg()[0])
        if part < 1:
            text += f" on {part:.0%} of a machine"
        return ([] if best >= 1000 * part else [f"not {1000 * part:.0f} a second"]), text

    def modest(self):
        """Without any privilege: no flow, but the truth about it."""
        wrong = [r for r in self.flows("modest")]
        statuses = self.statuses("modest")
        for s in statuses:
            if s.get("capabilities") or s["user"] != "nobody":
                wrong.append(f"may do {s.get('capabilities')} as {s['user']}")
            parts = [s[k] for k in ("resolved", "unconnected", "no_destination", "no_source_port", "refused")]
            if s["queue_pairs"] != sum(parts):
                wrong.append(f"{s['queue_pairs']} queue pairs, not {parts}")
            lacks = {(lack["what"], lack.get("capability"), lack.get("setting")) for lack in s.get("missing_capabilities", [])}
            if ("destinations", PTRACE, "rdma.query") not in lacks:
                wrong.append(f"lacks {lacks}")
        if max(s["no_destination"] for s in statuses) < 500 or max(s["unconnected"] for s in statuses) < 100:
            wrong.append("saw but a few queue pairs")
        return wrong

    def asking(self):
        wrong = []
        for s in self.statuses("asking"):
            if set(s["capabilities"]) != {PTRACE, "CAP_NET_ADMIN"} or s["user"] != "nobody":
                wrong.append(f"may do {s.get('capabilities')} as {s['user']}")
            # Those of threads that died a moment ago apart.
            if [lack for lack in s.get("missing_capabilities", []) if lack["what"] != "owners"]:
                wrong.append(s["missing_capabilities"])
        return wrong

    def members(self):
        """Members by the bonding driver's own words, before and after one went down."""
        truth = collections.defaultdict(list)
        times = {}
        for line in (self.out / "bonds").read_text().splitlines():
            when, ms, bond, member, mii, active = line.split()
            truth[when, bond].append((member, mii, active))
            times[when] = int(ms)
        wrong, seen = [], collections.Counter()
        spans = {"both": (times["both"] + 500, times["before"]), "after": (times["down"] + 3000, times["after"])}
        for when, (begin, end) in spans.items():
            for bond, only_active in (("b8", False), ("b9", True)):
                up = {m for m, mii, _ in truth[when, bond] if mii == "up"}
                tx = {m for m, mii, active in truth[when, bond] if mii == "up" and (active == "active" or not only_active)}
                for r in self.flows():
                    if not begin <= r["time_ms"] <= end or r.get("ended") or not self.is_on(r, bond):
                        continue
                    want = tx if r["direction"] == "tx" else up
                    seen[when, bond, r["direction"]] += 1
                    if set(r.get("members", [])) != want or r.get("interface") != bond:
                        wrong.append(f"{when} {bond}: {r.get('interface')} {r.get('members')}, not {want}: {r}")
        if len(seen) != 8:
            wrong.append(f"too little was seen: {dict(seen)}")
        if any("members" in r for r in self.flows() if not self.is_on(r, "b8") and not self.is_on(r, "b9")):
            wrong.append("members of an interface that is no bond")
        return wrong

    def is_on(self, r, bond):
        return r["flow"]["src" if r["direction"] == "tx" else "dst"] == ADDRESS[f"rxe_{bond}"]


def judge(out, build):
    j = Judge(out)
    wrong, text = j.rate()
    j.check(text, wrong)
    wrong, anew = j.reused()
    j.check(f"{anew} numbers of processes were given to the next one at once", wrong)
    j.check("every queue pair that was reported was there, and sent there", j.invented())
    wrong, named = j.owners()
    j.check(f"no stale owner in {sum(named.values())} reports, {named['named', False] + named['named', True]} with one",
            wrong)
    wrong, count = j.seen()
    j.check(f"{count} queue pairs that lived for {TICKS_SEEN} ticks were seen, with their owners", wrong)
    wrong, count = j.snapshot()
    j.check(f"{count} queue pairs of the rdma tool are reported, of the process that /proc names", wrong)
    j.check("every flow ended", j.ended())
    for name in ("asking", "modest"):
        wrong, rss, files = j.steady(name)
        j.check(f"agent '{name}': memory {rss} KiB and descriptors {files} are steady", wrong)
        j.check(f"agent '{name}': the accounts balance, nothing was dropped", j.balance(name))
    j.check("an agent without privilege says what it lacks", j.modest())
    j.check("an agent of its own user with CAP_SYS_PTRACE lacks nothing", j.asking())
    j.check("flows over bonds name their members", j.members())
    return j.passed, j.failed
