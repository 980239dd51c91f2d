# SPDX-License-Identifier: Apache-2.0
"""Holds the source ports that queue pairs had on the wire against those of the plan, and where there was
no plan, against the kernel's formula."""
import collections
import json

from judging import Tally, packets

PROGRAMS = ("agent/fabrictrace-agent", "agent/shim/libibverbs.so")
H1, H2 = "10.1.0.1", "10.2.0.1"
ADDRESS = {"rxe_h1": H1, "rxe_h2": H2}
# As many as perftest has queue pairs; a label of 0 means none, so that the first is a case of its own.
PORTS = {(H1, H2): {0xc000, 0xd5a1, 0xe777, 0xffff}, (H2, H1): {0xc5e3, 0xcafe, 0xdead, 0xfffe}}


def prepare(share, _):
    moves = [{"flow": {"src": src, "dst": dst, "sport": 0xc001, "dport": 4791, "proto": 17},
              "sport": port, "hops": [{"switch": "router", "in": "r1", "out": "r2"}]}
             for (src, dst), ports in PORTS.items() for port in sorted(ports)]
    (share / "plan.json").write_text(json.dumps(
        {"schema": "fabrictrace.plan.v1", "time_ms": 1700000000000, "job": "planned",
         "moves": moves}) + "\n")


def formula(local, remote):
    """rdma_get_udp_sport() of Linux, of a flow label of 0 (include/rdma/ib_verbs.h)."""
    v = local * remote
    v ^= v >> 20
    v ^= v >> 40
    label = v & 0xfffff
    return (label & 0x3fff ^ (label & 0xfc000) >> 14) | 0xc000


class Judge(Tally):
    def __init__(self, out):
        super().__init__()
        self.out = out

    def wire(self, name):
        """Ports by source, destination and destination queue pair."""
        found = collections.defaultdict(set)
        for p in packets(self.out / f"{name}.pcap"):
            if p.qp > 1:
                found[p.src, p.dst, p.qp].add(p.sport)
        return found

    def queue_pairs(self, name):
        """(source, destination, its number, the peer's) of each end, as the rdma tool said."""
        for row in json.loads((self.out / f"qp-{name}.json").read_text()):
            if row.get("type") == "RC" and row.get("rqpn") and row["ifname"] in ADDRESS:
                src = ADDRESS[row["ifname"]]
                yield src, H1 if src == H2 else H2, row["lqpn"], row["rqpn"]

    def planned(self, name):
        """Every queue pair has one port, of the plan, and no two between the same addresses have
        the same."""
        wire, used, wrong = self.wire(name), collections.defaultdict(list), []
        for src, dst, _, remote in self.queue_pairs(name):
            ports = wire.get((src, dst, remote), set())
            if len(ports) != 1 or not ports <= PORTS[src, dst]:
                wrong.append(f"{src} > {dst} qp {remote}: {sorted(ports)}")
            used[src, dst] += ports
        for pair, ports in PORTS.items():
            if sorted(used[pair]) != sorted(ports):
                wrong.append(f"{pair}: {sorted(used[pair])}, planned {sorted(ports)}")
        return wrong

    def formula(self, name):
        wire, wrong, count = self.wire(name), [], 0
        for src, dst, local, remote in self.queue_pairs(name):
            ports = wire.get((src, dst, remote), set())
            count += 1
            if ports != {formula(local, remote)}:
                wrong.append(f"{src} > {dst} qp {local} > {remote}: {sorted(ports)}, "
                             f"by the formula {formula(local, remote)}")
        return wrong or ([] if count == 8 else [f"{count} ends of queue pairs"])

    def status(self, name):
        text = (self.out / f"{name}-status").read_text().strip()
        return [] if text == "0" else [text, (self.out / f"{name}-client.log").read_text()]

    def reported(self):
        """The agent reports each, with the numbers of the rdma tool and the port of the wire."""
        wire, told = self.wire("planned"), set()
        for line in (self.out / "agent-first.ndjson").read_text().splitlines():
            r = json.loads(line)
            if r["schema"] == "fabrictrace.plan_port.v1" and r["outcome"] == "label":
                told.add((r["flow"]["src"], r["flow"]["dst"], r["qp"]["local"], r["qp"]["remote"],
                          r["flow"]["sport"]))
        return [f"{src} > {dst} qp {local}: not reported" for src, dst, local, remote in
                self.queue_pairs("planned")
                if (src, dst, local, remote, min(wire[src, dst, remote], default=0)) not in told]


def judge(out, _):
    j = Judge(out)
    for name in ("planned", "killed", "alone", "withdrawn"):
        j.check(f"{name}: perftest ran to its end", j.status(name))
    j.check("planned: 8 ends of queue pairs have the ports of the plan on the wire", j.planned("planned"))
    j.check("planned: the agent reports each with its numbers and port", j.reported())
    j.check("killed: the agent died, their ports are the plan's still", j.planned("killed"))
    j.check("alone: without an agent ports are the kernel's", j.formula("alone"))
    j.check("withdrawn: with an agent and no plan ports are the kernel's", j.formula("withdrawn"))
    return j.passed, j.failed
