#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Switches whose samples name an aggregate of ports: what is said of paths and links then.

Two fabrics. One is small, and what has to come out of its records was worked out by hand: on a
topology file, and on what its switches report of links (LLDP) and members (LAG). The other
is lab/, a real fabric's samples with the kernel's paths: the leaves' uplinks are joined two by two
to aggregates, and the observations say what such leaves would have sent. Whatever is then said of a
path has to be what the kernel did.
"""
import json
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

sys.dont_write_bytecode = True
import rig  # noqa: E402
from rig import check, equal, of_kind  # noqa: E402

DAEMON = [rig.DAEMON, *rig.NO_CONFIG, *rig.TRUST, "--set", "source_id=golden", "--set", "window=5s",
          "--replay", "-", "--sink", "file:-"]
START_MS = 1_700_000_000_000

# leaf1 and spine1 call their two links an aggregate, leaf2 and spine2 have single links.
SMALL = """
fabric: small
speed_bps: 1000000000
switches:
  - name: leaf1
    addresses: [192.0.2.1]
    ports: [{name: host, ifindex: 1}, {name: a1, ifindex: 11}, {name: a2, ifindex: 12},
            {name: b, ifindex: 21}]
    lags: [{name: po1, ifindex: 101, members: [a1, a2]}]
  - name: leaf2
    addresses: [192.0.2.2]
    ports: [{name: host, ifindex: 1}, {name: c, ifindex: 31}, {name: d, ifindex: 41}]
  - name: spine1
    addresses: [192.0.2.11]
    ports: [{name: a1, ifindex: 11}, {name: a2, ifindex: 12}, {name: c, ifindex: 31}]
    lags: [{name: po9, ifindex: 109, members: [a1, a2]}]
  - name: spine2
    addresses: [192.0.2.12]
    ports: [{name: b, ifindex: 21}, {name: d, ifindex: 41}]
links:
  - {a: leaf1, a_port: a1, b: spine1, b_port: a1}
  - {a: leaf1, a_port: a2, b: spine1, b_port: a2}
  - {a: leaf1, a_port: b, b: spine2, b_port: b}
  - {a: leaf2, a_port: c, b: spine1, b_port: c}
  - {a: leaf2, a_port: d, b: spine2, b_port: d}
hosts:
  - {name: h1, nics: [{addresses: [10.0.1.1], attach: [{switch: leaf1, port: host}]}]}
  - {name: h2, nics: [{addresses: [10.0.2.1], attach: [{switch: leaf2, port: host}]}]}
"""

# Flow by source port, switch, in, out; each is one observation of 10 samples that stand for 10000 B.
SEEN = [
    (50001, "192.0.2.1", 1, 101),    # the aggregate and nothing else
    (50002, "192.0.2.1", 1, 101),    # the far side names a member
    (50002, "192.0.2.11", 12, 31),
    (50003, "192.0.2.1", 1, 101),    # the far side names its own aggregate
    (50003, "192.0.2.11", 109, 31),
    (50004, "192.0.2.1", 1, 11),     # the near side names the member, the far side the aggregate
    (50004, "192.0.2.11", 109, 31),
    (50005, "192.0.2.1", 1, 21),     # no aggregate on its way
    (50006, "192.0.2.11", 109, 31),  # the far side's aggregate alone
]
# State, candidates and hops: "switch in>out", aggregates in brackets.
SMALL_PATHS = {
    50001: "partial 2: leaf1 host>[po1], spine1 [po9]>c, leaf2 c>host",
    50002: "resolved 1: leaf1 host>a2, spine1 a2>c, leaf2 c>host",
    50003: "partial 2: leaf1 host>[po1], spine1 [po9]>c, leaf2 c>host",
    50004: "resolved 1: leaf1 host>a1, spine1 a1>c, leaf2 c>host",
    50005: "resolved 1: leaf1 host>b, spine2 b>d, leaf2 d>host",
    50006: "partial 2: leaf1 host>[po1], spine1 [po9]>c, leaf2 c>host",
}
# Of links that carry something: flows and bytes. Those on the aggregate alone load no member.
SMALL_LINKS = {"leaf1/a1": (1, 10000), "leaf1/a2": (1, 10000), "leaf1/b": (1, 10000),
               "spine1/c": (5, 50000), "spine2/d": (1, 10000), "leaf2/host": (6, 60000)}
# Of groups with data: flows placed on its links, and flows that are not.
SMALL_GROUPS = {"leaf1/up": (3, 3), "leaf2/down": (6, 0)}


def join(topology, records):
    """What the daemon makes of records on a topology file's text, None: on what is reported."""
    text = "".join(json.dumps(r) + "\n" for r in records)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.yaml"
        path.write_text(topology or "")
        done = subprocess.run([*DAEMON, "--topology", path if topology else ""], input=text,
                              capture_output=True, text=True, timeout=300)
    equal("exit code", done.returncode, 0)
    if done.returncode:
        print(done.stderr)
    return rig.records_of(done.stdout)


def observation(sport, agent, in_ifindex, out_ifindex, at_ms=START_MS):
    return {"schema": "fabrictrace.observation.v1", "time_ms": at_ms, "interval_ms": 1000,
            "first_ms": at_ms, "last_ms": at_ms + 900, "agent": agent,
            "flow": {"src": "10.0.1.1", "dst": "10.0.2.1", "sport": sport, "dport": 4791,
                     "proto": 17},
            "in_ifindex": in_ifindex, "out_ifindex": out_ifindex, "point": "unknown",
            "fate": "forwarded", "samples": 10, "packets": 10, "bytes": 10000, "data_samples": 10}


def text_of(path):
    def end(hop, side):
        return hop.get(side) or (f"[{hop[side + '_lag']}]" if side + "_lag" in hop else "?")

    hops = ", ".join(f"{h['switch']} {end(h, 'in')}>{end(h, 'out')}" for h in path.get("hops", ()))
    return f"{path['state']} {path.get('candidates')}: {hops}"


def last_paths(records):
    return {r["flow"]["sport"]: r for r in of_kind(records, "path")}


def small_report(name, at_ms, down=()):
    """The small fabric's switch as SNMP tells of it; `down` are ports of it."""
    block = re.search(rf"  - name: {name}\n(?:    .*\n| {{12}}.*\n)+", SMALL)[0]
    members = {port: int(index) for index, ports in
               re.findall(r"ifindex: (\d+), members: \[(.*?)\]", block)
               for port in ports.split(", ")}
    ports, rows = [], []
    for port, index in re.findall(r"name: (\w+), ifindex: (\d+)", block):
        ports.append({"ifindex": int(index), "name": port, "oper_up": port not in down,
                      "speed_bps": 10**9} | ({"lag_ifindex": members[port]} if port in members else {}))
        for a, a_port, b, b_port in re.findall(r"a: (\w+), a_port: (\w+), b: (\w+), b_port: (\w+)", SMALL):
            for near, near_port, far, far_port in ((a, a_port, b, b_port), (b, b_port, a, a_port)):
                if (near, near_port) == (name, port) and port not in down:
                    rows.append({"ifindex": int(index), "chassis_kind": "local", "chassis_id": far,
                                 "name": far, "port_kind": "interface_name", "port_id": far_port,
                                 "forwards": True})
        if port == "host":
            host = name.replace("leaf", "h")
            rows.append({"ifindex": int(index), "chassis_kind": "local", "chassis_id": host,
                         "name": host, "port_kind": "local", "port_id": "0",
                         "addresses": [f"10.0.{name[-1]}.1"], "forwards": False})
    agent = re.search(r"addresses: \[(\S+)\]", block)[1]
    return {"schema": "fabrictrace.switch_report.v1", "time_ms": at_ms, "interval_ms": 10000,
            "agent": agent, "addresses": [agent], "name": name, "chassis_kind": "local",
            "chassis_id": name, "reachable": True, "has_lldp": True, "ports": ports,
            "neighbors": rows}


def small_reports(at_ms, down=()):
    """`down` are (switch, port), both ends of a link."""
    return [small_report(name, at_ms, {port for switch, port in down if switch == name})
            for name in ("leaf1", "leaf2", "spine1", "spine2")]


def test_members_come_and_go():
    """Of two members one goes down and comes back: the aggregate is the other one meanwhile."""
    ms = [START_MS + 20000 * i for i in range(4)]
    down = ("leaf1", "a1"), ("spine1", "a1")
    records = join(None, [
        *small_reports(ms[0]), observation(1, "192.0.2.1", 1, 101, ms[0] + 6000),
        *small_reports(ms[1], down), observation(1, "192.0.2.1", 1, 101, ms[1] + 6000),
        *small_reports(ms[2]), observation(1, "192.0.2.1", 1, 101, ms[2] + 6000),
        *small_reports(ms[3])])
    said = []
    for r in of_kind(records, "path"):
        if r["state"] != "unresolved" and r.get("reason") != "changing" and (not said or said[-1] != text_of(r)):
            said.append(text_of(r))
    both = SMALL_PATHS[50001]
    # Between the report and the next sample nothing tells that the flow is still at the aggregate.
    equal("both members, one, both", [s for s in said if "[po1]" in s or "resolved" in s],
          [both, "resolved 1: leaf1 host>a2, spine1 a2>c, leaf2 c>host", both])


def test_small(topology, before=()):
    records = join(topology, [*before, *(observation(*seen) for seen in SEEN)])
    paths = last_paths(records)
    for sport, want in SMALL_PATHS.items():
        equal(f"flow {sport}", text_of(paths[sport]), want)
    hop = paths[50001]["hops"][0]
    equal("samples by the aggregate", (hop["samples"], hop["share"]), (10, 1))
    equal("loads", {f"{r['switch']}/{r['port']}": (r["flows"], r["bytes"])
                    for r in of_kind(records, "link") if r.get("bytes")}, SMALL_LINKS)
    equal("groups", {r["name"]: (r["flows"], r.get("flows_unplaced", 0))
                     for r in of_kind(records, "imbalance")
                     if r["scope"] == "group" and r.get("bytes")}, SMALL_GROUPS)
    rig.check_balance("small", records)


class Lab:
    """lab/, with the uplinks of each leaf in two aggregates of two."""

    def __init__(self):
        self.text = (rig.LAB / "topology.yaml").read_text()
        self.truth = {(r["src"], r["dst"], r["sport"]): [tuple(h) for h in r["path"]]
                      for r in json.loads((rig.LAB / "truth.json").read_text())}
        self.lag_of, self.tier = {}, {}
        text = []
        for block in re.split(r"(?=  - name: )", self.text):
            found = re.match(r"  - name: (\w+)\n    tier: (\w+)\n    addresses: \[(\S+)\]", block)
            if found:
                name, self.tier[found[3]], agent = found[1], found[2], found[3]
                ups = re.findall(rf"\{{a: {name}, a_port: (\w+), b: spine", self.text)
                index = {p: int(i) for i, p in re.findall(r"ifindex: (\d+), name: (\w+)", block)}
                if ups:
                    block += "    lags:\n"
                for n in range(0, len(ups), 2):
                    lag, ifindex = f"po{n // 2}", 2000 + n // 2
                    members = ups[n:n + 2]
                    block += (f"      - {{name: {lag}, ifindex: {ifindex}, "
                              f"members: [{', '.join(members)}]}}\n")
                    for port in members:
                        self.lag_of[agent, index[port]] = ifindex
                        self.lag_of[name, port] = lag
            text.append(block)
        self.topology = "".join(text)

    def blurred(self, record):
        """An observation as a leaf with aggregates sends it."""
        if record["schema"] != "fabrictrace.observation.v1":
            return record
        changed = dict(record)
        for side in ("in_ifindex", "out_ifindex"):
            key = record["agent"], record.get(side)
            if key in self.lag_of:
                changed[side] = self.lag_of[key]
        return changed


def test_lab():
    lab = Lab()
    poller = [rig.POLLER, *rig.NO_CONFIG, "--set", "source_id=golden", "--replay",
              rig.LAB / "sflow.pcap", "--output", "-"]
    polled = [lab.blurred(r) for r in rig.records_of(rig.run(*poller).stdout)]
    check("samples name aggregates", any(r.get("out_ifindex", 0) >= 2000 for r in polled))
    records = join(lab.topology, polled)
    by_flow = {}
    for r in of_kind(records, "path"):
        by_flow[r["flow"]["src"], r["flow"]["dst"], r["flow"]["sport"]] = r
    spines = {(r["flow"]["src"], r["flow"]["dst"], r["flow"]["sport"]) for r in polled
              if lab.tier.get(r.get("agent")) == "spine" and "flow" in r}
    far = {f for f in by_flow if len(lab.truth[f]) == 3}
    check("some flows were seen by no spine, most by one", 0 < len(far - spines) < len(far) / 2,
          (len(far), len(far - spines)))
    states = defaultdict(set)
    wrong = []
    for flow, r in by_flow.items():
        states[r["state"]].add(flow)
        hops = {h["switch"]: h for h in r.get("hops", ())}
        for switch, way_in, way_out in lab.truth[flow]:
            hop = hops.pop(switch, {})
            for side, port in (("in", way_in), ("out", way_out)):
                if hop.get(side, port) != port or \
                        hop.get(side + "_lag", lab.lag_of.get((switch, port))) != \
                        lab.lag_of.get((switch, port)):
                    wrong.append((flow, hop, port))
        if hops:
            wrong.append((flow, hops))
    check(f"what is said of {len(by_flow)} paths is what the kernel did", not wrong, wrong[:2])
    equal("resolved are the flows that a spine saw, or that stay at their leaf",
          states["resolved"], set(by_flow) - (far - spines))
    equal("partial the rest", states["partial"], far - spines)
    lags = {f for f in states["partial"] if any("out_lag" in h for h in by_flow[f]["hops"])}
    check("and of these the aggregate is named", lags == states["partial"],
          states["partial"] - lags)


def main():
    test_small(SMALL)
    test_small(None, small_reports(START_MS - 5000))
    test_members_come_and_go()
    test_lab()
    return 1 if rig.failures else 0


sys.exit(main())
