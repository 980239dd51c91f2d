# SPDX-License-Identifier: Apache-2.0
"""Aggregates of the kernel's bonding driver, one by LACP, whose exporters name no member.

What the poller and the daemon make of the exporters' datagrams is compared with what tcpdump saw on
each member: where the far side names the port that a packet came by, the member has to be known,
and the right one; where it names its own aggregate, no member may be, and none may carry anything.
"""
import collections
import json
import pathlib
import struct
import subprocess
import tempfile

from judging import Tally, packets

PROGRAMS = ("tests/fabric/rocegen", "/usr/sbin/uacctd", "/usr/sbin/nft")
SRC, DST, FLOWS = "10.0.1.1", "10.0.2.1", 48
# The last samples wait in an exporter's buffer of 2 KiB when it ends; a flow has 30.
BUFFERED, FRAME_BYTES = 12, 330
MEMBERS = {"a1": "spine1", "a2": "spine1", "b1": "spine2", "b2": "spine2"}
TOPOLOGY = f"""
fabric: aggregates
speed_bps: 10000000000
switches:
  - name: leaf1
    addresses: [172.31.0.1]
    ports: [{{name: host, ifindex: 101}}, {{name: a1, ifindex: 111}}, {{name: a2, ifindex: 112}},
            {{name: b1, ifindex: 121}}, {{name: b2, ifindex: 122}}]
    lags: [{{name: po1, ifindex: 201, members: [a1, a2]}},
           {{name: po2, ifindex: 202, members: [b1, b2]}}]
  - name: leaf2
    addresses: [172.31.0.2]
    ports: [{{name: host, ifindex: 101}}, {{name: c, ifindex: 131}}, {{name: d, ifindex: 141}}]
  - name: spine1
    addresses: [172.31.0.11]
    ports: [{{name: a1, ifindex: 111}}, {{name: a2, ifindex: 112}}, {{name: c, ifindex: 131}}]
    lags: [{{name: po9, ifindex: 209, members: [a1, a2]}}]
  - name: spine2
    addresses: [172.31.0.12]
    ports: [{{name: b1, ifindex: 121}}, {{name: b2, ifindex: 122}}, {{name: d, ifindex: 141}}]
links:
  - {{a: leaf1, a_port: a1, b: spine1, b_port: a1}}
  - {{a: leaf1, a_port: a2, b: spine1, b_port: a2}}
  - {{a: leaf1, a_port: b1, b: spine2, b_port: b1}}
  - {{a: leaf1, a_port: b2, b: spine2, b_port: b2}}
  - {{a: leaf2, a_port: c, b: spine1, b_port: c}}
  - {{a: leaf2, a_port: d, b: spine2, b_port: d}}
hosts:
  - {{name: gpu1, nics: [{{addresses: [{SRC}], attach: [{{switch: leaf1, port: host}}]}}]}}
  - {{name: gpu2, nics: [{{addresses: [{DST}], attach: [{{switch: leaf2, port: host}}]}}]}}
"""


def prepare(share, _):
    (share / "flows.txt").write_text("".join(
        f"{SRC} {49152 + 37 * i} {DST} {100 + i} 5 256 4\n" for i in range(FLOWS)))


def chain(out, build):
    """(what the poller made of the datagrams, what the daemon published)."""
    poller = subprocess.run([build / "switchpoll/fabrictrace-switchpoll", "-c", "/dev/null", "--replay",
                             out / "sflow.pcap", "--output", "-"], capture_output=True, check=True)
    with tempfile.TemporaryDirectory() as folder:
        topology = pathlib.Path(folder) / "topology.yaml"
        topology.write_text(TOPOLOGY)
        daemon = subprocess.run([build / "daemon/fabrictraced", "-c", "/dev/null", "--set", "window=1h",
                                 "--topology", topology, "--replay", "-", "--sink", "file:-"],
                                input=poller.stdout, capture_output=True, check=True)
    return [[json.loads(line) for line in text.splitlines()]
            for text in (poller.stdout, daemon.stdout)]


def kind(records, name):
    return [r for r in records if r["schema"] == f"fabrictrace.{name}.v1"]


def text_of(path):
    def end(hop, side):
        return hop.get(side) or (f"[{hop[side + '_lag']}]" if side + "_lag" in hop else "?")

    return f"{path['state']}: " + ", ".join(
        f"{h['switch']} {end(h, 'in')}>{end(h, 'out')}" for h in path.get("hops", ()))


def expected(member):
    """What has to be said of a flow that went by a member."""
    if MEMBERS[member] == "spine2":
        return f"resolved: leaf1 host>{member}, spine2 {member}>d, leaf2 d>host"
    return "partial: leaf1 host>[po1], spine1 [po9]>c, leaf2 c>host"


def bytes_in(path):
    """Sum of the lengths on the wire of what tcpdump wrote, with the check sums that it leaves out."""
    data = path.read_bytes()
    at, total = 24, 0
    while at + 16 <= len(data):
        captured, length = struct.unpack_from("<II", data, at + 8)
        at += 16 + captured
        total += length + 4
    return total


class Judge(Tally):
    def __init__(self, out, build):
        super().__init__()
        self.out = out
        self.wire = {member: collections.Counter(packet.sport for packet in packets(out / f"{member}.pcap")
                                                 if packet.dst == DST)
                     for member in MEMBERS}
        self.length = {member: bytes_in(out / f"{member}.pcap") for member in MEMBERS}
        self.member = {sport: m for m, sports in self.wire.items() for sport in sports}
        self.polled, self.published = chain(out, build)

    def premises(self):
        modes = [line for line in (self.out / "bonding").read_text().splitlines()
                 if line.startswith(("Bonding Mode", "Transmit Hash"))]
        self.check("one aggregate is LACP's, both choose by ports", [] if modes == [
            "Bonding Mode: IEEE 802.3ad Dynamic link aggregation",
            "Transmit Hash Policy: layer3+4 (1)", "Bonding Mode: load balancing (xor)",
            "Transmit Hash Policy: layer3+4 (1)"] else modes)
        doubled = [s for s in self.member if sum(s in w for w in self.wire.values()) > 1]
        self.check(f"each of {len(self.member)} flows went by one member", doubled +
                   [f"{len(self.member)} flows"] * (len(self.member) != FLOWS))
        self.check("flows went by every member",
                   [m for m, sports in self.wire.items() if not sports])
        counters = dict(line.split() for line in (self.out / "counters").read_text().splitlines())
        self.check("the kernel counted as many, or protocols beside",
                   [(m, counters[m]) for m, sports in self.wire.items()
                    if not 0 <= int(counters[m]) - sum(sports.values()) < 60])

    def samples(self):
        """Which interfaces the exporters named, by their agents."""
        named = collections.defaultdict(set)
        for o in kind(self.polled, "observation"):
            named[o["agent"]].add((o["in_ifindex"], o["out_ifindex"]))
        want = {"172.31.0.1": {(101, 201), (101, 202)}, "172.31.0.2": {(131, 101), (141, 101)},
                "172.31.0.11": {(209, 131)}, "172.31.0.12": {(121, 141), (122, 141)}}
        self.check("exporters name aggregates, spine2 the ports of its own",
                   [(agent, named[agent]) for agent in want if named[agent] != want[agent]])

    def paths(self):
        said = {r["flow"]["sport"]: r for r in kind(self.published, "path")}
        wrong = [f"{sport} by {member}: {text_of(said[sport]) if sport in said else 'nothing'}"
                 for sport, member in self.member.items()
                 if sport not in said or text_of(said[sport]) != expected(member)]
        self.check(f"{len(said)} paths are those of the wire, as far as samples tell", wrong)
        self.check("both members are left where no side tells",
                   [s for s, m in self.member.items()
                    if MEMBERS[m] == "spine1" and said.get(s, {}).get("candidates") != 2])

    def loads(self):
        carried, flows = collections.Counter(), collections.Counter()
        for r in kind(self.published, "link"):
            if r["switch"] == "leaf1":
                carried[r["port"]] += r["bytes"]
                flows[r["port"]] = max(flows[r["port"]], r["flows"])
        wrong = []
        for member, sports in self.wire.items():
            certain = MEMBERS[member] == "spine2"
            most, count = (self.length[member], len(sports)) if certain else (0, 0)
            least = max(0, most - BUFFERED * FRAME_BYTES)
            if flows[member] != count or not least <= carried[member] <= most:
                wrong.append(f"{member}: {carried[member]} B, {flows[member]} flows; want {least} to "
                             f"{most} B, {count} flows")
        self.check("links carry what is certain of them, and no more", wrong)
        groups = {r["name"]: r for r in kind(self.published, "imbalance")}
        via = collections.Counter(MEMBERS[m] for m in self.member.values())
        for name, want in (("leaf1/up", (via["spine2"], via["spine1"])), ("leaf2/down", (FLOWS, 0))):
            got = groups[name].get("flows", 0), groups[name].get("flows_unplaced", 0)
            self.check(f"flows placed and unplaced in {name}", [] if got == want else [(got, want)])


def judge(out, build):
    j = Judge(out, build)
    j.premises()
    j.samples()
    j.paths()
    j.loads()
    return j.passed, j.failed
