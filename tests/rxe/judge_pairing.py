# SPDX-License-Identifier: Apache-2.0
"""Agents that see the kernel's lists alone: what the daemon found of the destinations of queue pairs.

The truth is which end the rdma tool shows at the address where tcpdump saw the packets go, on the
spines' links.
"""
import json

import guestfabric
import judge_fabric
from fabricwire import FabricJudge

PROGRAMS = guestfabric.PROGRAMS
machines = judge_fabric.machines
# Of 1 in 2 at three switches: packets with which an end was surely sampled.
SURE = 8


def prepare(share, _):
    plan = judge_fabric.the_plan()
    guestfabric.write(share, plan)
    for host in plan.layout.hosts:
        path = share / "plan" / f"{host.name}.yaml"
        asking = path.read_text()
        assert "query: true" in asking
        path.write_text(asking.replace("query: true", "query: false"))
    (share / "plan" / "victim").write_text(f"{plan.pairs[0][0].name}\n")


class Judge(FabricJudge):
    def rows(self, name):
        """{(host, number): row} of connected ends, by the rdma tool."""
        return {(self.host[row["ifname"]].name, row["lqpn"]): row
                for row in json.loads((self.out / name).read_text())
                if row.get("type") == "RC" and row.get("state") in ("RTR", "RTS")}

    def said(self, name):
        return [json.loads(line) for line in (self.out / name).read_text().splitlines()]

    def listed(self, name):
        return {(r["host"], r["local"]): r for r in self.said(name)}

    def lists(self):
        """Every end that the rdma tool shows is listed, with its peer's number and its process."""
        rows, listed = self.rows("qp-later.json"), self.listed("qps.json")
        wrong = [f"{end}: not listed" for end in rows.keys() - listed.keys()]
        wrong += [f"{end}: listed, and not there" for end in listed.keys() - rows.keys()]
        wrong += [f"{end}: {r}" for end, r in listed.items() if end in rows and
                  (r["remote"], r["pid"], r["comm"], r["device"]) !=
                  (rows[end]["rqpn"], rows[end]["pid"], rows[end]["comm"], rows[end]["ifname"])]
        return wrong

    def pairs(self):
        """Every pair that was found is the wire's; those with packets enough were found. Returns texts,
        and how many were."""
        listed, found = self.listed("qps.json"), 0
        wrong = []
        for end in self.ends:
            r = listed.get((end.host.name, end.row["lqpn"]), {"state": "not listed"})
            if r["state"] == "paired":
                found += 1
                flow = r["flow"]
                told = flow["src"], flow["dst"], flow["sport"], r["peer_host"], r["by"]
                true = end.here, end.there, end.flow and end.flow.sport, \
                    self.layout.owner[end.there].name, "both_hosts"
                if told != true:
                    wrong.append(f"{end}: {told}, not {true}")
            elif "flow" in r or (end.flow and self.wire.came[end.flow].total() >= SURE):
                wrong.append(f"{end}: {r}, {self.wire.came[end.flow].total()} packets")
        return wrong, found

    def owners(self):
        """No path ever named a wrong queue pair, process or host. Returns texts, and how many named
        one."""
        true, wrong, told = {}, [], 0
        for end in self.ends:
            if end.flow:
                true[end.flow] = {
                    "qp": {"local": end.row["lqpn"], "remote": end.row["rqpn"]},
                    "pid": end.row["pid"], "comm": end.row["comm"], "src_host": end.host.name,
                    "dst_host": self.layout.owner[end.there].name}
        for seen in self.records.of("path"):
            pairing = seen.record.get("pairing", {})
            if "by" not in pairing:
                wrong += [f"{seen.flow}: {seen.record}" for _ in [0] if "pid" in seen.record]
                continue
            told += 1
            wrong += [f"{seen.flow}: {key} {seen.record.get(key)}, not {value}" for key, value in
                      true.get(seen.flow, {"flow": "on the wire"}).items()
                      if seen.record.get(key) != value]
        return wrong if told else ["no path has a pairing"], told

    def withdrawn(self):
        return [f"{seen.flow}: {seen.record['pairing']}" for seen in self.records.of("path")
                if seen.record.get("pairing", {}).get("withdrawn")]

    def doctor(self):
        """Each host lacks destinations; the doctor says so, and what adds them."""
        lacks = {r["host"] for r in self.said("doctor.json") if "host" in r and
                 "rdma.query" in r["text"] and "the destinations of queue pairs" in r["text"]}
        return [f"{host.name}: nothing is said" for host in self.layout.hosts
                if host.name not in lacks]

    def killed(self):
        """The killed writer's queue pairs are not listed any more, and what sent to them is no
        pair."""
        victim = self.plan.pairs[0][0].name
        rows, listed = self.rows("qp-killed.json"), self.listed("qps-killed.json")
        gone = {(end.host.name, end.row["lqpn"]) for end in self.ends} - rows.keys()
        wrong = [f"{end}: still listed" for end in gone & listed.keys()]
        if sum(host == victim for host, _ in gone) < self.plan.qps:
            wrong.append(f"{victim}: only {sorted(gone)} are gone")
        for end in self.ends:
            r = listed.get((end.host.name, end.row["lqpn"]), {"state": "not listed"})
            peer = self.layout.owner[end.there].name, end.row["rqpn"]
            if r["state"] == "paired" and peer in gone:
                wrong.append(f"{end}: still paired, its peer is gone")
        return wrong


def judge(out, _):
    j = Judge(out, judge_fabric.the_plan())
    numbers = {end.row["lqpn"] for end in j.ends}
    j.check("no capture dropped a packet", j.captures())
    j.check(f"{len(j.ends)} ends of queue pairs on {len(j.host)} hosts, {len(numbers)} numbers",
            j.queue_pairs())
    j.check("all are listed, with the peer's number, process and device", j.lists())
    wrong, found = j.pairs()
    j.check(f"{found} ends are paired, each with the wire's, and all with packets enough", wrong)
    wrong, told = j.owners()
    j.check(f"{told} records of paths name the other end and the owner, all rightly", wrong)
    j.check("no flow is reported that was not on the wire", j.invented())
    j.check("nothing had to be withdrawn", j.withdrawn())
    j.check("the doctor says what each agent lacks", j.doctor())
    j.check("what sent to a killed writer is no pair", j.killed())
    return j.passed, j.failed
