#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""No topology file: the fabric of lab/ as its switches would report it, and what follows from it.

The same samples are joined three times: on the topology file, on the reports of the switches with
hosts that speak LLDP, and on reports in which only switches do, so that hosts are learnt from the
samples. What the daemon publishes of paths, links and imbalance must not tell the first two apart.
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

INTERVAL_MS = 10000
TOPOLOGY = rig.LAB / "topology.yaml"
POLLER = [rig.POLLER, *rig.NO_CONFIG, "--set", "source_id=golden", "--replay",
          rig.LAB / "sflow.pcap", "--output", "-"]
DAEMON = [rig.DAEMON, *rig.NO_CONFIG, *rig.TRUST, "--set", "source_id=golden", "--set", "window=5s",
          "--replay", "-", "--sink", "file:-"]


class Fabric:
    """The lab's topology file, read by other means."""

    def __init__(self):
        text = TOPOLOGY.read_text()
        self.name = re.search(r"fabric: (\w+)", text)[1]
        self.addresses, self.ports = {}, defaultdict(dict)
        for name, address, ports in re.findall(
                r"- name: (\w+)\n    tier: \w+\n    addresses: \[(\S+)\]\n    ports:\n((?: {6}.*\n)+)",
                text):
            self.addresses[name] = address
            for ifindex, port, speed in re.findall(
                    r"ifindex: (\d+), name: (\w+), speed_bps: (\d+)", ports):
                self.ports[name][port] = int(ifindex), int(speed)
        self.peer = {}
        for a, a_port, b, b_port in re.findall(
                r"\{a: (\w+), a_port: (\w+), b: (\w+), b_port: (\w+)\}", text):
            self.peer[a, a_port], self.peer[b, b_port] = (b, b_port), (a, a_port)
        self.host = {}
        for name, four, six, switch, port in re.findall(
                r"- name: (\w+)\n    nics:\n      - \{addresses: \[(\S+), \"(\S+)\"\], "
                r"attach: \[\{switch: (\w+), port: (\w+)\}\]\}", text):
            self.host[switch, port] = name, [four, six]

    @staticmethod
    def chassis(name):
        return "02:00:" + ":".join(f"{b:02x}" for b in name.encode()[-4:].rjust(4, b"\0"))

    def neighbour(self, switch, port, hosts_speak):
        """A row of the LLDP table; ports go by another kind of id on every spine."""
        row = {"ifindex": self.ports[switch][port][0], "chassis_kind": "mac"}
        if (switch, port) in self.peer:
            peer, peer_port = self.peer[switch, port]
            row |= {"chassis_id": self.chassis(peer).upper(), "name": peer, "forwards": True}
            if peer == "spine1":
                return row | {"port_kind": "interface_alias", "port_id": f"to {switch}"}
            if peer == "spine2":
                return row | {"port_kind": "local", "port_id": f"{self.local(peer, peer_port)}"}
            if peer == "spine3":
                return row | {"port_kind": "mac", "port_id": self.mac(peer, peer_port)}
            return row | {"port_kind": "interface_name", "port_id": peer_port}
        if not hosts_speak:
            return None
        name, addresses = self.host[switch, port]
        return row | {"chassis_id": self.chassis(name), "name": name, "addresses": addresses,
                      "port_kind": "mac", "port_id": self.chassis(name)}

    def local(self, switch, port):
        """A number that is no ifIndex, though it is one of another port."""
        ports = sorted(self.ports[switch])
        return self.ports[switch][ports[ports.index(port) - 1]][0]

    def mac(self, switch, port):
        return f"06:{ord(switch[0]):02x}:{ord(switch[-1]):02x}:00:00:{ord(port[-1]):02x}"

    def report(self, switch, at_ms, hosts_speak, spines_speak=True):
        ports = []
        for port, (ifindex, speed) in self.ports[switch].items():
            info = {"ifindex": ifindex, "name": port, "mac": self.mac(switch, port),
                    "speed_bps": speed, "oper_up": True, "lldp_id_kind": "local",
                    "lldp_id": str(self.local(switch, port))}
            if (switch, port) in self.peer:
                info["alias"] = f"to {self.peer[switch, port][0]}"
            ports.append(info)
        ports.append({"ifindex": 1, "name": "lo", "oper_up": True})
        rows = [self.neighbour(switch, port, hosts_speak) for port in self.ports[switch]]
        if not spines_speak and switch.startswith("spine"):
            rows = []
        return {"schema": "fabrictrace.switch_report.v1", "time_ms": at_ms, "interval_ms": INTERVAL_MS,
                "agent": self.addresses[switch], "addresses": [self.addresses[switch],
                                                               "127.0.0.1"],
                "name": switch, "chassis_kind": "mac", "chassis_id": self.chassis(switch),
                "reachable": True, "has_lldp": True, "ports": ports,
                "neighbors": [row for row in rows if row]}


def lines(records):
    return "".join(json.dumps(r) + "\n" for r in records).encode()


def replay(records, *arguments):
    run = subprocess.run([*DAEMON, *arguments], input=lines(records), capture_output=True,
                         timeout=300)
    equal("exit code", run.returncode, 0)
    return rig.records_of(run.stdout.decode())


def with_reports(fabric, polled, hosts_speak, spines_speak=True):
    """Reports come two seconds before the first sample, and again every interval."""
    first = min(r.get("last_ms") or r["time_ms"] for r in polled) - 2000
    out = [fabric.report(s, first, hosts_speak, spines_speak) for s in fabric.addresses]
    due = first + INTERVAL_MS
    for record in polled:
        at = record.get("last_ms") or record["time_ms"]
        if at >= due:
            due = at + INTERVAL_MS
            out += [fabric.report(s, at, hosts_speak, spines_speak) for s in fabric.addresses]
        out.append(record)
    return out


def figures(records):
    """What a reader learns of the fabric: all but the accounting and the discovery's own events."""
    return [r for r in records if r["schema"] != "fabrictrace.loss.v1"
            and r.get("kind") != "topology_change"]


def test_lldp(fabric, polled, want):
    for spines_speak in (True, False):
        told = with_reports(fabric, polled, True, spines_speak)
        got = replay(told, "--topology", "", "--set", f"fabric={fabric.name}")
        name = "from both sides" if spines_speak else "from the leaves alone"
        equal(f"records on what LLDP tells {name} are those on the file", len(figures(got)),
              len(want))
        check(f"... and the same ones ({name})", figures(got) == want,
              next(((g, w) for g, w in zip(figures(got), want) if g != w), None))
        events = [r for r in of_kind(got, "event") if r["kind"] == "topology_change"]
        equal("one event tells what came", [r["evidence"].get("count") for r in events],
              [len(fabric.addresses) + len(fabric.peer) // 2 + len(fabric.host)])


def test_learnt(fabric, polled, want):
    """Hosts that say nothing: known once their packets were seen for a while."""
    got = replay(with_reports(fabric, polled, False), "--topology", "", "--set",
                 f"fabric={fabric.name}")
    known, last = {}, {}
    for r in of_kind(want, "path"):
        known[json.dumps(r["flow"])] = [(h["switch"], h["in"], h["out"]) for h in r["hops"]]
    for r in of_kind(got, "path"):
        last[json.dumps(r["flow"])] = r
    resolved = {f: [(h["switch"], h["in"], h["out"]) for h in r["hops"]]
                for f, r in last.items() if r["state"] == "resolved"}
    wrong = [f for f, hops in resolved.items() if known.get(f) != hops]
    check(f"{len(resolved)} of {len(known)} paths on learnt hosts, none is wrong", not wrong, wrong)
    check("most are known at the end of so short a capture", len(resolved) > len(known) * 0.8)
    came = {(e["evidence"]["switch"], e["evidence"]["port"], e["evidence"]["peer"])
            for e in of_kind(got, "event") if e["kind"] == "topology_change"
            and "peer" in e["evidence"] and "peer_port" not in e["evidence"]}
    places = {(switch, port) for switch, port, _ in came}
    check("hosts are learnt where they are, and nowhere else", places <= set(fabric.host),
          places - set(fabric.host))


def test_live():
    """A daemon that starts with nothing, and what its doctor says of that."""
    with tempfile.TemporaryDirectory() as folder:
        daemon = rig.Daemon(Path(folder), "")
        daemon.config.write_text(re.sub("topology: .*", 'topology: ""', daemon.config.read_text()))
        daemon.start()
        try:
            answer = json.loads(daemon.get("/api/v1/doctor"))
            equal("an empty fabric is the one finding", [r["text"] for r in answer["records"]],
                  ["no switch is known"])
            told = rig.run("cli/fabrictrace", "doctor", "--endpoint", f"127.0.0.1:{daemon.http}")
            check("the tool shows it", "no switch is known" in told.stdout
                  and "write a topology file" in told.stdout, told)
            equal("topology", json.loads(daemon.get("/api/v1/topology"))["switches"], [])
        finally:
            daemon.stop()


def test_sources():
    with tempfile.TemporaryDirectory() as folder:
        daemon = rig.Daemon(Path(folder), TOPOLOGY.read_text()).start()
        try:
            switches = json.loads(daemon.get("/api/v1/topology"))["switches"]
            used = [p for s in switches for p in s["ports"] if "peer" in p or "host" in p]
            equal("what the file says is said to come from it",
                  (len(used), {p.get("source") for p in used}), (40, {"static"}))
            answer = json.loads(daemon.get("/api/v1/doctor"))
            equal("without SNMP there is one line, of the fabric",
                  [(r.get("switch"), "no counters by SNMP of any of 8 switches" in r["text"])
                   for r in answer["records"] if "SNMP" in r["text"]], [(None, True)])
        finally:
            daemon.stop()


def test_no_source():
    run = subprocess.run([rig.DAEMON, *rig.NO_CONFIG, *rig.TRUST, "--topology", "", "--set",
                          "discovery.switches_max=0", "--check"], capture_output=True)
    equal("neither a file nor discovery: refused", run.returncode, 78)


def main():
    fabric = Fabric()
    polled = rig.records_of(rig.run(*POLLER).stdout)
    want = figures(replay(polled, "--topology", TOPOLOGY))
    check("the file gives paths", of_kind(want, "path"))
    test_lldp(fabric, polled, want)
    test_learnt(fabric, polled, want)
    test_live()
    test_sources()
    test_no_source()
    return 1 if rig.failures else 0


if __name__ == "__main__":
    sys.exit(main())
