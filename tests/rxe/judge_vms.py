# SPDX-License-Identifier: Apache-2.0
"""A virtual machine for each host, as in life: its own agents, its own process numbers, and the
network between it and the daemon. The truth is tcpdump's on the router and the rdma tool's on each
host."""
import collections
import json

import guestfabric  # noqa: F401, its search path
import vm
from judging import Tally, packets
from lab.records import RecordFile
from lab.traffic import Flow

PROGRAMS = ("agent/fabrictrace-agent", "daemon/fabrictraced")
ADDRESS = {"host1": "10.0.1.1", "host2": "10.0.2.1"}
PEER = {"host1": "host2", "host2": "host1"}
WRITERS = {"host1": 4, "host2": 3}  # queue pairs of each host's own ib_write_bw
ENDS = sum(WRITERS.values())  # at each host


def machines(share):
    """The hosts' one network interface ends in the router."""
    def nic(host, number, server):
        path = share / f"{host}.sock"
        return ("-netdev", f"stream,id={host},server={server},addr.type=unix,addr.path={path}",
                "-device", f"virtio-net-pci,netdev={host},mac=52:54:00:00:0{number}:"
                + ("01" if server == "on" else "02"))
    return (
        vm.Machine("router", 384, 1, nic("host1", 1, "on") + nic("host2", 2, "on")),
        vm.Machine("host1", 384, 1, nic("host1", 1, "off"), (share / "host1.sock",)),
        vm.Machine("host2", 384, 1, nic("host2", 2, "off"), (share / "host2.sock",)),
    )


def prepare(share, _):
    """That there are no other hosts makes ends unique that name each other."""
    lines = ["fabric: vms", "switches:", "  - {name: router, tier: leaf}", "hosts:"]
    for number, (host, address) in enumerate(ADDRESS.items()):
        lines += [f"  - name: {host}", "    nics:",
                  f"      - {{addresses: [{address}], attach: [{{switch: router, port: eth{number}}}]}}"]
    (share / "topology.yaml").write_text("\n".join(lines) + "\n")


class Judge(Tally):
    def __init__(self, out):
        super().__init__()
        self.sports = collections.defaultdict(set)
        self.on_wire = set()
        for name in ("r1", "r2"):
            for p in packets(out / f"{name}.pcap"):
                self.sports[p.src, p.dst, p.qp].add(p.sport)
                self.on_wire.add(Flow(p.src, p.dst, p.sport))
        self.rows = [(host, row) for host in ADDRESS
                     for row in json.loads((out / f"qp-{host}.json").read_text())
                     if row.get("type") == "RC" and row.get("state") in ("RTR", "RTS")]
        self.records = {name: RecordFile(out / f"{name}.ndjson").poll()
                        for name in ("asking", "lists")}

    def ends(self):
        count = collections.Counter(host for host, _ in self.rows)
        same = [row for _, row in self.rows if row["lqpn"] == row["rqpn"]]
        wrong = [f"{host}: {count[host]} ends, not {ENDS}" for host in ADDRESS
                 if count[host] != ENDS]
        return wrong + (["all ends have their peers' numbers"] if len(same) == len(self.rows) else [])

    def tuples(self, name):
        """Each end's flow is the wire's, told by both hosts, with its owner. Only writers have jobs."""
        last = {seen.flow: seen.record for seen in self.records[name].of("path")}
        ever = collections.defaultdict(list)
        for seen in self.records[name].of("path"):
            ever[seen.flow].append(seen.record)
        wrong = []
        for host, row in self.rows:
            here, there = ADDRESS[host], ADDRESS[PEER[host]]
            sports = self.sports[here, there, row["rqpn"]]
            where = f"{host} qp {row['lqpn']}>{row['rqpn']}"
            if len(sports) != 1:
                wrong.append(f"{where}: source ports on the wire {sorted(sports)}")
                continue
            flow = Flow(here, there, min(sports))
            # Whoever only answers has no job. An agent that does not ask keeps no capability to read it.
            writer = name == "asking" and sum(r["pid"] == row["pid"] for h, r in self.rows if h == host) == WRITERS[host]
            true = {"qp": {"local": row["lqpn"], "remote": row["rqpn"]}, "pid": row["pid"],
                    "comm": row["comm"], "src_host": host, "dst_host": PEER[host],
                    "job": f"job-{host}" if writer else None, "tuple_source": "computed"}
            # By the lists an end that names its own number may be connected to itself.
            if flow not in last and name == "lists" and row["lqpn"] == row["rqpn"]:
                continue
            if flow not in last:
                wrong.append(f"{where}, {flow}: no record")
                continue
            for key, value in true.items():
                said = {json.dumps(r[key], sort_keys=True) for r in ever[flow] if key in r}
                if said != ({json.dumps(value, sort_keys=True)} if value else set()):
                    wrong.append(f"{where}, {flow}: {key} {sorted(said)}, not {value}")
        return wrong

    def invented(self, name):
        return [f"{flow}: never on the wire" for flow in
                sorted({seen.flow for seen in self.records[name].of("path")} - self.on_wire, key=str)
                # What a host sends to itself is on no wire.
                if flow.src != flow.dst]


def judge(out, _):
    j = Judge(out)
    j.check(f"{len(j.rows)} ends of queue pairs on two hosts, their numbers differ", j.ends())
    j.check("asking: each end's tuple is the wire's, told by both hosts, with its owner",
            j.tuples("asking"))
    j.check("asking: no flow is reported that was not on the wire", j.invented("asking"))
    j.check("lists alone: no flow is reported that was not on the wire", j.invented("lists"))
    j.check("lists alone: the daemon pairs all ends, rightly", j.tuples("lists"))
    return j.passed, j.failed
