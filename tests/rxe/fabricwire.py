# SPDX-License-Identifier: Apache-2.0
"""Compares what the daemon published of a fabric in a guest with what tcpdump saw on the links of the
spines, and with the queue pairs that the rdma tool showed. Used by judge_fabric.py and demo.py."""
import collections
import json
from dataclasses import dataclass

import guestfabric
from judging import ACKS, Tally, packets
from lab import judge as paths
from lab import truth
from lab.records import RecordFile
from lab.traffic import Flow

EDGE_MS = 1500  # by which a sample may come into the next window


class Wire:
    """What tcpdump saw on the links of the spines."""

    def __init__(self, out, layout):
        self.layout = layout
        self.sports = collections.defaultdict(set)
        self.data = collections.Counter()
        self.acks = collections.Counter()
        self.came = collections.defaultdict(collections.Counter)
        self.left = collections.defaultdict(collections.Counter)
        self.times = collections.defaultdict(list)
        for spine in layout.spines:
            ports = {port.ifindex: port.name for port in layout.ports(spine)}
            for p in packets(out / f"{spine}.pcap"):
                flow = Flow(p.src, p.dst, p.sport)
                place = spine, ports[p.ifindex]
                if p.leaves:
                    self.left[flow][place] += 1
                    continue
                self.came[flow][place] += 1
                self.sports[p.src, p.dst, p.qp].add(p.sport)
                if p.opcode in ACKS:
                    self.acks[flow] += 1
                else:
                    self.data[flow] += 1
                    self.times[flow].append(p.time_ms)

    def path(self, flow):
        """The flow's path, None when it took none or several."""
        owner, peer = self.layout.owner, self.layout.peer
        came, left = self.came[flow], self.left[flow]
        if len(came) != 1 or len(left) != 1:
            return None
        (spine, inp), (spine2, outp) = next(iter(came)), next(iter(left))
        up, down = peer[spine, inp], peer[spine, outp]
        src, dst = (self.layout.host_port(owner[ip]) for ip in (flow.src, flow.dst))
        if spine != spine2 or (up.node, down.node) != (src.node, dst.node):
            return None
        return ((up.node, src.name, up.name), (spine, inp, outp), (down.node, down.name, dst.name))

    def paths(self):
        return {flow: self.path(flow) for flow in self.came}

    def lost(self):
        """{Flow: packets that came to a spine and did not leave it}."""
        return {flow: self.came[flow].total() - self.left[flow].total() for flow in self.came}


@dataclass(frozen=True)
class End:
    """An end of a connected queue pair, by the rdma tool, and the flow that it sends, by tcpdump: None
    when it was not seen with one source port."""
    row: dict
    host: object
    client: bool
    here: str
    there: str
    flow: Flow | None

    def __str__(self):
        return f"{self.host.name} qp {self.row['lqpn']}>{self.row['rqpn']}, {self.flow}"


class FabricJudge(Tally):
    def __init__(self, out, plan):
        super().__init__()
        self.out = out
        self.plan = plan
        self.layout = plan.layout
        self.topology_ms = 0  # when it was known
        self.wire = Wire(out, self.layout)
        self.paths = self.wire.paths()
        self.records = RecordFile(out / "records.ndjson").poll()
        self.of_flow = collections.defaultdict(list)
        for seen in self.records.of("path"):
            self.of_flow[seen.flow].append(seen.record)
        self.host = {guestfabric.device(host): host for host in self.layout.hosts}
        self.ends = list(self._ends())

    def moment(self, name):
        return int((self.out / name).read_text())

    def _ends(self):
        started = {}
        for line in (self.out / "tests").read_text().splitlines():
            pid, side, port = line.split()
            started[int(pid)] = side, self.plan.pairs[int(port) - guestfabric.FIRST_PORT]
        for row in json.loads((self.out / "qp.json").read_text()):
            # A writer's peer stays ready to receive.
            if row.get("type") != "RC" or row.get("state") not in ("RTR", "RTS"):
                continue
            side, (client, server, version) = started[row["pid"]]
            host, peer = (client, server) if side == "client" else (server, client)
            here, there = host.address(version), peer.address(version)
            sports = self.wire.sports[here, there, row["rqpn"]]
            flow = Flow(here, there, min(sports)) if len(sports) == 1 else None
            yield End(row, self.host[row["ifname"]], host is client, here, there, flow)

    def captures(self):
        wrong = []
        for spine in self.layout.spines:
            said = (self.out / f"tcpdump-{spine}.log").read_text()
            if "\n0 packets dropped by kernel" not in said:
                wrong.append(f"{spine}: {said.splitlines()[-1:]}")
        return wrong

    def queue_pairs(self):
        count = collections.Counter(end.host.name for end in self.ends)
        due = collections.Counter(host.name for client, server, _ in self.plan.pairs
                                  for host in (client, server))
        return [f"{name}: {count[name]} ends, not {due[name] * self.plan.qps}" for name in due
                if count[name] != due[name] * self.plan.qps]

    def wrong_end(self, end):
        """An end sends with the source port that was on the wire; its records name it rightly."""
        if not end.flow:
            return [f"{end}: source ports on the wire "
                    f"{sorted(self.wire.sports[end.here, end.there, end.row['rqpn']])}"]
        true = {"qp": {"local": end.row["lqpn"], "remote": end.row["rqpn"]},
                "pid": end.row["pid"], "comm": end.row["comm"],
                "job": guestfabric.job(end.host) if end.client else None,
                "src_host": end.host.name, "dst_host": self.layout.owner[end.there].name,
                "role": "data" if end.client else "ack"}
        records = self.of_flow[end.flow]
        wrong = [] if records else [f"{end}: no record"]
        for r in records:
            # What an earlier record does not know yet it leaves out.
            said = true if r is records[-1] else \
                [key for key in true if key in r and r[key] != "unknown"]
            wrong += [f"{end}: {key} {r.get(key)}, not {true[key]}" for key in said
                      if r.get(key) != true[key]]
            # A sample is a packet: it shows the tuple, and the path once the topology is known.
            # A record of samples says of which moment it is: its window may end later.
            early = r.get("time_ms", r["window_end_ms"]) <= self.topology_ms
            if r["tuple_source"] != ("observed" if r.get("hops") else "computed") and not early:
                wrong.append(f"{end}: {r['tuple_source']}, hops {r.get('hops')}")
        return wrong

    def tuples(self):
        return [text for end in self.ends for text in self.wrong_end(end)]

    def unresolved(self, flows=None):
        """Flows (all on the wire) whose last record has another path than the wire, or none."""
        true = {flow: self.paths.get(flow) for flow in flows or self.paths}
        return paths.unresolved(self.records, true, dict.fromkeys(true, 1))

    def ever_wrong(self):
        return paths.ever_wrong(self.records, {f: [path] for f, path in self.paths.items()})

    def invented(self):
        return [f"{flow}: never on the wire" for flow in
                sorted({seen.flow for seen in self.records.of("path")} - set(self.paths), key=str)]

    def one_path(self):
        return [f"{flow}: came by {dict(self.wire.came[flow])}, left by {dict(self.wire.left[flow])}"
                for flow, path in self.paths.items() if path is None]

    def sent_in(self, start_ms, end_ms):
        """Flows with data on the wire then; and those with some at the edges alone: which window its
        samples are in is not for us to say. Every packet is sampled."""
        sent, unsure = set(), set()
        for flow, times in self.wire.times.items():
            around = any(start_ms - EDGE_MS <= at < end_ms + EDGE_MS for at in times)
            surely = any(start_ms <= at < end_ms - EDGE_MS for at in times)
            if around:
                (sent if surely else unsure).add(flow)
        return sent, unsure

    def late(self):
        """[(begin_ms, end_ms)] in which the daemon says that samples came after their window."""
        spans, since, known = [], 0, 0
        for seen in self.records.of("loss"):
            record = seen.record
            if record["program"] == "fabrictraced":
                count = sum(drop["count"] for stage in record["stages"]
                            for drop in stage.get("drops", ()) if drop["reason"] == "late")
                if count > known:
                    spans.append((since, record["time_ms"]))
                since, known = record["time_ms"], count
        return spans

    def whole_windows(self):
        """Windows while all flows ran, without those of which samples may have been late: as soon as the
        window's end, or while the next one was open."""
        late = self.late()
        windows = [(start_ms, records[0]["window_end_ms"], records) for start_ms, records in
                   paths.full_windows(self.records, self.moment("start"), self.moment("stop"))]
        return [(start_ms, end_ms, records) for start_ms, end_ms, records in windows
                if not any(begin < start_ms + 3 * (end_ms - start_ms) and end > end_ms
                           for begin, end in late)]

    def imbalance(self):
        """Returns texts, and how many ECMP groups were compared in how many windows. A group with a
        flow that is not sure is left out; each must have been compared once."""
        wrong, compared = [], collections.Counter()
        windows = self.whole_windows()
        for start_ms, end_ms, records in windows:
            sent, unsure = self.sent_in(start_ms, end_ms)
            loads = truth.loads(self.layout, {flow: self.paths[flow] for flow in unsure})
            sure = {name for name, values in loads.items() if not sum(values)}
            compared.update(sure)
            some = [r for r in records if r["scope"] != "group" or r["name"] in sure]
            left_out = tuple(f"window {start_ms}, {name}: no record" for name in set(loads) - sure)
            wrong += [text for text in paths.wrong_imbalance(
                (start_ms, some), self.layout, {flow: self.paths[flow] for flow in sent})
                if text not in left_out]
        wrong += [f"{name}: in no window" for name in truth.groups(self.layout)
                  if not compared[name]]
        return wrong, f"{compared.total()} times in {len(windows)} windows"

    def check_paths(self):
        """What holds for a fabric whose every packet is sampled."""
        self.check("no capture dropped a packet", self.captures())
        self.check(f"{len(self.ends)} ends of queue pairs on {len(self.host)} hosts",
                   self.queue_pairs())
        self.check(f"each of the {len(self.paths)} tuples on the wire has one path", self.one_path())
        self.check(f"{len(self.ends)} tuples are those on the wire, with queue pair, owner, job and "
                   "role", self.tuples())
        self.check("no flow is reported that was not on the wire", self.invented())
        self.check(f"{len(self.paths)} flows are resolved to the uplink that tcpdump saw",
                   self.unresolved())
        self.check("no record ever told another path", self.ever_wrong())
        wrong, times = self.imbalance()
        self.check(f"FIM of each ECMP group is the capture's, {times}", wrong)
