# SPDX-License-Identifier: Apache-2.0
"""Compares what the agents reported with what was on the wire and what the rdma tool said."""
import collections
import json
import subprocess

import numbered
from judging import ACKS, Tally, packets

ADDRESS = {"rxe_h1": "10.1.0.1", "rxe_h2": "10.2.0.1"}
PEER = {"rxe_h1": "rxe_h2", "rxe_h2": "rxe_h1"}


class Wire:
    """Queue pairs 0 and 1 are the kernel's own, shared by all (IBTA volume 1, section 3.5.10)."""

    def __init__(self, out):
        self.sports = collections.defaultdict(set)
        self.roles = collections.defaultdict(collections.Counter)
        for name in ("r1", "r2"):
            for p in packets(out / f"{name}.pcap"):
                if p.qp > 1:
                    self.sports[p.src, p.dst, p.qp].add(p.sport)
                role = "ack" if p.opcode in ACKS else "data"
                self.roles[p.src, p.dst, p.sport][role] += 1


def queue_pairs(out):
    """What iproute2 says of connected queue pairs, by phase."""
    for phase in ("write", "read", "rping"):
        for row in json.loads((out / f"qp-{phase}.json").read_text()):
            if row.get("type") == "RC" and row.get("rqpn") and row["ifname"] in ADDRESS:
                yield phase, row


def reports(out, name):
    flows = collections.defaultdict(list)
    hosts = []
    for line in (out / f"{name}.ndjson").read_text().splitlines():
        record = json.loads(line)
        if record["schema"] == "fabrictrace.flow.v1":
            flow = record["flow"]
            flows[flow["src"], flow["dst"], flow["sport"], record["direction"]].append(record)
        elif record["schema"] == "fabrictrace.host.v1":
            hosts.append(record)
    return flows, hosts


class Judge(Tally):
    def __init__(self, out):
        super().__init__()
        self.out = out
        self.wire = Wire(out)
        self.qps = list(queue_pairs(out))

    def ends(self, phases):
        """(row, source, destination, direction, source port on the wire) of each queue pair."""
        for phase, row in self.qps:
            if phase not in phases:
                continue
            here, there = ADDRESS[row["ifname"]], ADDRESS[PEER[row["ifname"]]]
            for direction, src, dst, qp in (("tx", here, there, row["rqpn"]),
                                            ("rx", there, here, row["lqpn"])):
                yield row, src, dst, direction, self.wire.sports.get((src, dst, qp), set())

    def tuples(self, name, phases, source):
        flows, _ = reports(self.out, name)
        wrong, good = [], 0
        for row, src, dst, direction, sports in self.ends(phases):
            where = f"{row['ifname']} qp {row['lqpn']}>{row['rqpn']} {direction}"
            if len(sports) != 1:
                wrong.append(f"{where}: on the wire {sorted(sports)}")
                continue
            known = [r for r in flows.get((src, dst, next(iter(sports)), direction), [])
                     if r.get("qp") == {"local": row["lqpn"], "remote": row["rqpn"]}]
            if not known:
                wrong.append(f"{where}: no report of {src}:{sports}>{dst}")
                continue
            # A process that has ended is nobody's owner any more.
            owners = [r for r in known if "pid" in r or "comm" in r]
            if not owners:
                wrong.append(f"{where}: no owner")
            for r in owners:
                if (r.get("pid"), r.get("comm")) != (row["pid"], row["comm"]):
                    wrong.append(f"{where}: {r.get('comm')} {r.get('pid')}, not {row['comm']} {row['pid']}")
            wrong += [f"{where}: {r['tuple_source']}" for r in known if r["tuple_source"] not in source]
            good += 1
        if good == 0 and not wrong:
            wrong.append("no queue pair")
        return wrong, good

    def invented(self, name):
        """Tuples that were never on the wire."""
        flows, _ = reports(self.out, name)
        return [key for key in flows if key[:3] not in self.wire.roles]

    def twice(self, name):
        flows, _ = reports(self.out, name)
        wrong = []
        for key, records in flows.items():
            times = [r["time_ms"] for r in records]
            if len(times) != len(set(times)):
                wrong.append(key)
        return wrong

    def roles(self):
        flows, _ = reports(self.out, "packets")
        wrong, seen = [], set()
        for (src, dst, sport, direction), records in flows.items():
            data = sum(r.get("data_packets", 0) for r in records)
            ack = sum(r.get("ack_packets", 0) for r in records)
            on_wire = self.wire.roles[src, dst, sport]
            if (data > 0, ack > 0) != (on_wire["data"] > 0, on_wire["ack"] > 0):
                wrong.append(f"{src}:{sport}>{dst} {direction}: {data} data, {ack} acks, not {on_wire}")
            seen.add((data > 0, ack > 0))
        if {(True, False), (False, True)} - seen:
            wrong.append(f"too little variety: {seen}")
        return wrong

    def jobs(self, name):
        """The clients' job is in their environment, the servers have none."""
        flows, _ = reports(self.out, name)
        wrong, seen = [], set()
        for row, src, dst, direction, sports in self.ends(("write", "read")):
            for r in flows.get((src, dst, min(sports, default=0), direction), []):
                if r.get("pid") != row["pid"]:
                    continue
                job = "4711" if row["ifname"] == "rxe_h1" else None
                seen.add(job)
                if r.get("job") != job:
                    wrong.append(f"{row['ifname']} pid {row['pid']}: job {r.get('job')}")
        return wrong or ([] if seen == {"4711", None} else [f"only {seen}"])

    def ended(self, name):
        """Queue pairs that are gone were reported as such."""
        flows, _ = reports(self.out, name)
        return [key for key, records in flows.items() if not records[-1].get("ended")]

    def counters(self, name):
        """The last totals are those that the rdma tool shows, or a little before them."""
        _, hosts = reports(self.out, name)
        wrong = []
        for row in json.loads((self.out / "stat.json").read_text()):
            last = [h for h in hosts if h["device"] == row["ifname"]][-1:]
            if not last:
                wrong.append(f"{row['ifname']}: no report")
                continue
            totals = {c["name"]: c["total"] for c in last[0]["counters"]}
            for key, value in row.items():
                if key not in ("ifname", "port") and not totals.get(key, -1) <= value:
                    wrong.append(f"{row['ifname']} {key}: {totals.get(key)}, not {value}")
            if last[0].get("driver") != "rxe" or totals.get("sent_pkts", 0) < row["sent_pkts"] // 2:
                wrong.append(f"{row['ifname']}: {last[0]}")
            if last[0].get("interface") != row["ifname"].replace("rxe_", ""):
                wrong.append(f"{row['ifname']}: interface {last[0].get('interface')}")
        return wrong

    def daemon(self, build, name):
        """Status and records of the daemon when it reads what an agent reported."""
        topology = self.out / "topology.yaml"
        topology.write_text("fabric: rxe\nswitches:\n  - {name: router, tier: leaf}\n")
        done = subprocess.run(
            [build / "daemon" / "fabrictraced", "--topology", topology, "--set", "window=2s", "--set", "grace=500ms",
             "--replay", self.out / f"{name}.ndjson", "--sink", "file:-"],
            stdout=subprocess.PIPE, text=True, check=False)
        return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]

    def paths(self, build):
        """Both ends' reports of a flow make one record, seen from its source."""
        code, records = self.daemon(build, "asking")
        wrong = [] if code == 0 else [f"daemon: {code}"]
        for row, src, dst, direction, sports in self.ends(("write", "read", "rping")):
            if direction == "rx":
                continue
            key = {"src": src, "dst": dst, "sport": min(sports, default=0), "dport": 4791, "proto": 17}
            known = [r for r in records if r["schema"] == "fabrictrace.path.v1" and r["flow"] == key
                     and r.get("qp") == {"local": row["lqpn"], "remote": row["rqpn"]}
                     and (r.get("pid"), r.get("comm")) == (row["pid"], row["comm"])]
            if not known or any(r["tuple_source"] != "computed" for r in known):
                wrong.append(f"{row['ifname']} qp {row['lqpn']}>{row['rqpn']}: {known}")
        return wrong

    def congestion(self, build):
        """What the daemon makes of the counters: packets were lost on the way from h1 to h2."""
        code, records = self.daemon(build, "modest")
        hosts = sum(r["schema"] == "fabrictrace.host.v1" for r in records)
        lossy = int((self.out / "lossy").read_text())
        events = [r for r in records if r.get("kind") == "congestion" and not r.get("cleared")]
        wrong = [] if code == 0 and hosts else [f"daemon: {code}, {hosts} host records"]
        if not {e["subject"] for e in events if e["time_ms"] >= lossy} & {"guest/rxe_h1/1", "guest/rxe_h2/1"}:
            wrong.append(f"no event of the lossy path: {events}")
        # On a slow machine timers fire: then the device itself has counted them, and it is so.
        skew = {row["ifname"]: row for row in json.loads((self.out / "stat-skew.json").read_text())}
        signs = sum(skew["rxe_h3"][name] for name in ("completer_retry_err", "out_of_seq_request"))
        wrong += [f"{e['message']}: the device counted {signs}" for e in events
                  if "rxe_h3" in e["subject"] and e["evidence"]["count"] > signs]
        for device, names in (("rxe_h1", ("rcvd_seq_err", "completer_retry_err")),
                              ("rxe_h2", ("out_of_seq_request",))):
            grown = sum(c.get("growth", 0) for r in records
                        if r.get("device") == device and r["time_ms"] > lossy
                        for c in r["counters"] if c["name"] in names)
            if grown < 10:
                wrong.append(f"{device}: {names} grew by {grown}")
        return wrong


def judge(out, build):
    j = Judge(out)
    count = collections.Counter(phase for phase, _ in j.qps)
    j.check(f"queue pairs at both ends: {dict(count)}",
            [] if (count["write"], count["read"], count["rping"]) == (16, 8, 2) else [dict(count)])
    j.check("numbers of queue pairs differ at both ends",
            [row for _, row in j.qps if row["lqpn"] == row["rqpn"]])
    for phases, title in ((("write",), "ib_write_bw"), (("read",), "ib_read_bw"),
                          (("rping",), "rping, by RDMA-CM")):
        wrong, good = j.tuples("asking", phases, ("computed",))
        j.check(f"{title}: {good} tuples computed without a packet are those on the wire, owners right",
                wrong)
        wrong, good = j.tuples("packets", phases, ("computed", "observed"))
        j.check(f"{title}: {good} tuples captured have their queue pairs and owners", wrong)
    wrong, good = j.tuples("modest", ("rping",), ("computed",))
    j.check(f"without asking the connection manager's {good} tuples are known", wrong)
    flows, _ = reports(out, "modest")
    rping = {p for row, src, dst, d, sports in j.ends(("rping",)) for p in [(src, dst, *sports)]}
    j.check("without asking the others stay unknown", [k for k in flows if k[:3] not in rping])
    for name in ("asking", "packets", "modest"):
        j.check(f"agent '{name}' reports nothing that was not on the wire", j.invented(name))
        j.check(f"agent '{name}' reports no flow twice at a time", j.twice(name))
    j.check("roles are those of the packets on the wire", j.roles())
    j.check("jobs are those of the processes", j.jobs("asking"))
    j.check("queue pairs that are gone ended", j.ended("asking"))
    j.check("counters are the device's", j.counters("modest"))
    said = (out / "sniffer.log").read_text()
    j.check("capture on an RDMA device says what it needs", [] if "rdmasniff" in said else [said])
    by = {name: (out / f"{name}.log").read_text().count(f"addresses by {how}")
          for name, how in (("asking", "libibverbs"), ("modest", "sysfs"))}
    j.check("who may open a device reads its addresses by libibverbs, who may not by sysfs",
            [] if all(by.values()) else [str(by)])
    j.check("the daemon names queue pairs and owners of each flow", j.paths(build))
    j.check("lost packets are congestion of the hosts on their way", j.congestion(build))
    numbered.judge(j, out, build, "rxe_h1", ADDRESS["rxe_h1"], out / "r1.pcap")
    return j.passed, j.failed
