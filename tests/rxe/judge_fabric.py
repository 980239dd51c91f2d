# SPDX-License-Identifier: Apache-2.0
"""A whole fabric in one guest: 16 hosts, 256 ends of queue pairs, then a link that loses packets.

What the daemon published is compared with what tcpdump saw on the spines' links, with the queue
pairs and counters that the rdma tool showed, and with netem's own count of what it lost.
"""
import collections
import ipaddress
import json

import guestfabric
import vm
from guestfabric import Layout
from judging import ACKS, Tally, packets
from lab import judge as paths  # noqa: E402
from lab.records import RecordFile
from lab.traffic import Flow

PROGRAMS = ("agent/fabrictrace-agent", "daemon/fabrictraced", "switchpoll/fabrictrace-switchpoll",
            "cli/fabrictrace", "/usr/sbin/uacctd", "/usr/sbin/nft")
SPINES, LEAVES, HOSTS, QPS = 2, 4, 4, 8
SAMPLING = 2
WINDOW_S = 4
FIRST_PORT = 20001
LOSSY = ("spine1", "Ethernet3")
EDGE_MS = 1500  # by which a sample may come into the next window
SURE = 5  # packets, each with three chances to be sampled
LOST_LEAST = 20  # packets of data, with which a host's counters cannot stay where they are
RAISED_LEAST = 10  # growth that is told from none; in one report it is congestion
GUILTY_LEAST = 37  # growth of which one of four reports must have RAISED_LEAST
SIGNS = {  # counters of Soft-RoCE that tell of lost packets, at the receiver and at the sender
    "receiver": ("out_of_seq_request",),
    "sender": ("rcvd_seq_err", "completer_retry_err"),
}


def machines(_):
    return (vm.Machine(memory_mib=704),)


def gid(address):
    ip = ipaddress.ip_address(address)
    return ipaddress.ip_address(f"::ffff:{ip}" if ip.version == 4 else ip).exploded


def pairs(layout):
    """(client, server, IP version): each host writes to one under the next leaf, so that the hosts
    of one leaf have nothing to do with a link between two others."""
    for number, host in enumerate(layout.hosts):
        to = ((host.leaf + 1) % LEAVES) * HOSTS + (host.slot + 1) % HOSTS
        yield host, layout.hosts[to], 6 if number % 2 else 4


def job(host):
    return f"job-{host.name}"


def prepare(share, _):
    layout = Layout(SPINES, LEAVES, HOSTS)
    guestfabric.write(share / "plan", layout, SAMPLING, WINDOW_S)
    for name in ("guestfabric.sh",):
        (share / name).write_text((vm.HERE / name).read_text())
    lines = [
        f"{port} {QPS} {guestfabric.device(server)} {gid(server.address(version))} "
        f"{guestfabric.device(client)} {gid(client.address(version))} {job(client)}\n"
        for port, (client, server, version) in enumerate(pairs(layout), FIRST_PORT)
    ]
    (share / "plan" / "pairs").write_text("".join(lines))
    (share / "plan" / "ends").write_text(str(2 * QPS * len(lines)))
    # By which much goes: those under the leaf before.
    senders = [client.name for client, server, _ in pairs(layout)
               if layout.peer[LOSSY].node == layout.leaves[server.leaf]]
    (share / "plan" / "lossy").write_text(" ".join(LOSSY) + "\n")
    (share / "plan" / "senders").write_text("".join(f"{name}\n" for name in senders))


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


class Judge(Tally):
    def __init__(self, out):
        super().__init__()
        self.out = out
        self.layout = Layout(SPINES, LEAVES, HOSTS)
        self.wire = Wire(out, self.layout)
        self.paths = self.wire.paths()
        self.records = RecordFile(out / "records.ndjson").poll()
        self.host = {guestfabric.device(host): host for host in self.layout.hosts}
        self.peer = {}
        for client, server, version in pairs(self.layout):
            self.peer[client.name, "client"] = server, version
            self.peer[server.name, "server"] = client, version

    def moment(self, name):
        return int((self.out / name).read_text())

    def captures(self):
        wrong = []
        for spine in self.layout.spines:
            said = (self.out / f"tcpdump-{spine}.log").read_text()
            if "\n0 packets dropped by kernel" not in said:
                wrong.append(f"{spine}: {said.splitlines()[-1:]}")
        return wrong

    def ends(self):
        """(row of the rdma tool, host, address, the peer's address) of each connected end."""
        for row in json.loads((self.out / "qp.json").read_text()):
            if row.get("type") != "RC" or row.get("state") not in ("RTR", "RTS"):
                continue
            host = self.host[row["ifname"]]
            client = row["pid"] in self.clients
            peer, version = self.peer[host.name, "client" if client else "server"]
            yield row, host, host.address(version), peer.address(version)

    @property
    def clients(self):
        return set(map(int, (self.out / "clients").read_text().split()))

    def queue_pairs(self, ends):
        count = collections.Counter(row["ifname"] for row, *_ in ends)
        return [f"{device}: {count[device]} ends" for device in self.host
                if count[device] != 2 * QPS]

    def tuples(self, ends):
        """Each end sends with the source port that was on the wire; its record names it rightly."""
        wrong = []
        known = collections.defaultdict(list)
        for seen in self.records.of("path"):
            known[seen.flow].append(seen.record)
        for row, host, here, there in ends:
            where = f"{host.name} qp {row['lqpn']}>{row['rqpn']}"
            sports = self.wire.sports[here, there, row["rqpn"]]
            if len(sports) != 1:
                wrong.append(f"{where}: source ports on the wire {sorted(sports)}")
                continue
            flow = Flow(here, there, min(sports))
            client = row["pid"] in self.clients
            true = {"qp": {"local": row["lqpn"], "remote": row["rqpn"]}, "pid": row["pid"],
                    "comm": row["comm"], "job": job(host) if client else None,
                    "src_host": host.name, "dst_host": self.layout.owner[there].name,
                    "role": "data" if client else "ack"}
            if not known[flow]:
                wrong.append(f"{where}: no record of {flow}")
            for r in known[flow]:
                # What an earlier record does not know yet it leaves out.
                said = true if r is known[flow][-1] else \
                    [key for key in true if key in r and r[key] != "unknown"]
                wrong += [f"{where}, {flow}: {key} {r.get(key)}, not {true[key]}"
                          for key in said if r.get(key) != true[key]]
                if r["tuple_source"] not in (["observed"] if r.get("hops") else ["computed"]):
                    wrong.append(f"{where}, {flow}: {r['tuple_source']}, {len(r['hops'])} hops")
        return wrong

    def invented(self):
        return [f"{flow}: never on the wire" for flow in
                sorted({seen.flow for seen in self.records.of("path")} - set(self.paths), key=str)]

    def one_path(self):
        return [f"{flow}: came by {dict(self.wire.came[flow])}, left by {dict(self.wire.left[flow])}"
                for flow, path in self.paths.items() if path is None]

    def sent_in(self, start_ms, end_ms):
        """Flows with data on the wire then. None when one had too little to be surely sampled, or
        at the edges alone: which window its samples are in is not for us to say."""
        sent = set()
        for flow, times in self.wire.times.items():
            around = sum(start_ms - EDGE_MS <= at < end_ms + EDGE_MS for at in times)
            surely = sum(start_ms <= at < end_ms - EDGE_MS for at in times)
            if around and surely < SURE:
                return None
            if around:
                sent.add(flow)
        return sent

    def imbalance(self):
        """Returns texts, and in how many windows how many groups were compared."""
        wrong, windows = [], 0
        for start_ms, records in paths.full_windows(self.records, self.moment("start"),
                                                    self.moment("stop")):
            sent = self.sent_in(start_ms, start_ms + 1000 * WINDOW_S)
            if sent is None:
                continue
            windows += 1
            wrong += paths.wrong_imbalance((start_ms, records), self.layout,
                                           {flow: self.paths[flow] for flow in sent})
        return wrong if windows else ["no window to compare"], windows

    def growth(self):
        """{(device, counter): growth} while the link lost packets, and before."""
        shots = [{row["ifname"]: row for row in
                  json.loads((self.out / f"statistic-{n}.json").read_text())} for n in range(3)]
        return [{(device, name): b[device][name] - a[device][name]
                 for device in a for name in a[device] if isinstance(a[device][name], int)}
                for a, b in zip(shots, shots[1:])]

    def lost_at(self):
        """Lost packets of data by (host, side), and hosts that lost anything at all."""
        count = collections.Counter()
        touched = set()
        for flow, lost in self.wire.lost().items():
            if lost <= 0:
                continue
            src, dst = (self.layout.owner[ip].name for ip in (flow.src, flow.dst))
            touched |= {src, dst}
            if self.wire.data[flow]:
                count[src, "sender"] += lost
                count[dst, "receiver"] += lost
        return count, touched

    def counters(self, count, touched):
        """The counters of the device itself, by the rdma tool: that the fault is one."""
        _, while_lossy = self.growth()
        wrong = []
        for host in self.layout.hosts:
            for side, names in SIGNS.items():
                grown = sum(while_lossy[guestfabric.device(host), name] for name in names)
                if count[host.name, side] >= LOST_LEAST and grown < RAISED_LEAST:
                    wrong.append(f"{host.name}: {count[host.name, side]} packets lost as {side}, "
                                 f"{names} grew by {grown}")
                if host.name not in touched and grown >= RAISED_LEAST:
                    wrong.append(f"{host.name}: nothing lost, {names} grew by {grown}")
        return wrong

    def reported(self):
        """The daemon's records of the counters grew as the rdma tool says, late reports aside."""
        _, while_lossy = self.growth()
        wrong = []
        for host in self.layout.hosts:
            device = guestfabric.device(host)
            totals = collections.defaultdict(list)
            for seen in self.records.of("host"):
                if seen.record["host"] != host.name:
                    continue
                if seen.record["device"] != device:
                    wrong.append(f"{host.name}: reports of {seen.record['device']}")
                for counter in seen.record["counters"]:
                    totals[counter["name"]].append(counter["total"])
            for names in SIGNS.values():
                for name in names:
                    true = while_lossy[device, name]
                    if not totals[name] or totals[name] != sorted(totals[name]):
                        wrong.append(f"{host.name} {name}: {totals[name]}")
                    elif true >= RAISED_LEAST and totals[name][-1] < true // 2:
                        wrong.append(f"{host.name} {name}: {totals[name][-1]}, not {true}")
        return wrong

    def congestion(self, count, touched):
        """Hosts that lost much are named, those that lost nothing are not."""
        lossy = self.moment("lossy")
        before, while_lossy = self.growth()
        named = collections.defaultdict(list)
        wrong = []
        for seen in self.records.of("event"):
            if seen.record["kind"] != "congestion" or seen.record.get("cleared"):
                continue
            host, device, _ = seen.record["subject"].split("/")
            if seen.record["time_ms"] >= lossy:
                named[host].append(seen.record["message"])
            # A machine that is too slow makes timers fire, which the device counts.
            elif sum(before[device, name] for names in SIGNS.values() for name in names) < RAISED_LEAST:
                wrong.append(f"before anything was lost: {seen.record['message']}")
            if seen.record["evidence"]["host"] != host or device != f"rxe_{host}":
                wrong.append(f"names {seen.record['evidence']} as {seen.record['subject']}")
        guilty = {host for (host, side), lost in count.items() if lost >= LOST_LEAST and sum(
            while_lossy[f"rxe_{host}", name] for name in SIGNS[side]) >= GUILTY_LEAST}
        wrong += [f"{host}: {[count[host, side] for side in SIGNS]} packets lost, no event"
                  for host in sorted(guilty - set(named))]
        wrong += [f"{host} lost nothing: {named[host]}" for host in sorted(set(named) - touched)]
        innocent = {host.name for host in self.layout.hosts} - touched
        if not guilty or not innocent:
            wrong.append(f"too little variety: {len(guilty)} hosts lost much, "
                         f"{len(innocent)} nothing")
        return wrong, len(guilty), len(innocent)


def judge(out, _):
    j = Judge(out)
    ends = list(j.ends())
    j.check("no capture dropped a packet", j.captures())
    j.check(f"{len(ends)} ends of queue pairs on {len(j.host)} hosts", j.queue_pairs(ends))
    j.check(f"each of the {len(j.paths)} tuples on the wire has one path", j.one_path())
    j.check(f"{len(ends)} tuples are those on the wire, with queue pair, owner, job and role",
            j.tuples(ends))
    j.check("no flow is reported that was not on the wire", j.invented())
    j.check(f"{len(j.paths)} flows are resolved to the uplink that tcpdump saw",
            paths.unresolved(j.records, j.paths, dict.fromkeys(j.paths, 1)))
    j.check("no record ever told another path",
            paths.ever_wrong(j.records, {flow: [path] for flow, path in j.paths.items()}))
    wrong, windows = j.imbalance()
    j.check(f"FIM of each ECMP group is the capture's in {windows} windows", wrong)
    count, touched = j.lost_at()
    j.check("counters grew on the hosts whose packets were lost and on no other",
            j.counters(count, touched))
    j.check("the daemon's counters are the devices'", j.reported())
    wrong, guilty, innocent = j.congestion(count, touched)
    j.check(f"congestion names {guilty} hosts behind the lossy link, none of {innocent} innocent",
            wrong)
    return j.passed, j.failed
