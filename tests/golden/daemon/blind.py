#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One switch that says nothing: the fabric of lab/ as the others report it. Paths are those on the
topology file, none is wrong, and nobody is blamed. Then a leaf with a link that nobody knows: it is
not blamed for its sampling, unless that is wrong."""
import json
import sys

sys.dont_write_bytecode = True
import discovery  # noqa: E402
import rig  # noqa: E402
from discovery import Fabric, replay  # noqa: E402
from rig import check, equal, of_kind  # noqa: E402

BLIND = "spine4"  # its neighbours name its ports by their names
WINDOW_MS = 2000
WINDOWS = 40
START_MS = 1700000000000
BYTES = 4000000  # a port and window
LENGTH = 1000
RATE = 100
LLDP_MS = 70000  # over the time that LLDP is given


class Blind(Fabric):
    """A spine that a poller asks in vain, or that nobody lists."""

    def __init__(self, listed):
        super().__init__()
        self.listed = listed

    def neighbour(self, switch, port, hosts_speak):
        row = super().neighbour(switch, port, hosts_speak)
        if self.peer.get((switch, port), [None])[0] == BLIND:
            row["addresses"] = [self.addresses[BLIND]]
        return row

    def report(self, switch, at_ms, hosts_speak, spines_speak=True):
        report = super().report(switch, at_ms, hosts_speak, spines_speak)
        if switch != BLIND:
            return report
        # Without a name or a port it says nothing; an address that nobody asks is not reported.
        return {key: report[key] for key in ("schema", "time_ms", "interval_ms", "agent")} | {
            "reachable": False, "problem": "unknown user"}

    def told(self, polled, hosts_speak):
        """LLDP has had its time at the switches before the first sample: while an exporter that belongs
        to no switch is heard of, hosts are learnt only then, or by the TTL of longer captures."""
        told = discovery.with_reports(self, polled, hosts_speak)
        first = told[0]["time_ms"]
        told = [self.report(s, at_ms, hosts_speak)
                for at_ms in range(first - LLDP_MS, first, discovery.INTERVAL_MS)
                for s in self.addresses] + told
        return [r for r in told
                if self.listed or r.get("agent") != self.addresses[BLIND]
                or r["schema"] != "fabrictrace.switch_report.v1"]


def hops(record):
    return [(h["switch"], h["in"], h["out"]) for h in record["hops"]]


def test_paths(polled, known, listed, hosts_speak):
    fabric = Blind(listed)
    got = replay(fabric.told(polled, hosts_speak), "--topology", "", "--set",
                 f"fabric={fabric.name}")
    name = f"{BLIND} {'does not answer' if listed else 'is not listed'}, hosts " \
           f"{'speak' if hosts_speak else 'are learnt'}"
    paths = [r for r in of_kind(got, "path") if r["state"] == "resolved"]
    wrong = [r["flow"] for r in paths if hops(r) != known.get(json.dumps(r["flow"]))]
    right = {json.dumps(r["flow"]) for r in paths}
    check(f"{name}: {len(right)} of {len(known)} paths, none was wrong ever", not wrong, wrong)
    over = {flow for flow, path in known.items() if any(hop[0] == BLIND for hop in path)}
    check(f"{name}: of those over it {len(right & over)} of {len(over)}",
          len(right & over) == len(over) if listed and hosts_speak else len(right & over) > 0)
    check(f"{name}: most are known at the end of so short a capture",
          len(right) == len(known) if listed and hosts_speak else len(right) > 0.8 * len(known))
    blamed = [e["message"] for e in of_kind(got, "event")
              if e["kind"] in ("sampling_rate", "silent_exporter", "link_down")]
    equal(f"{name}: nobody is blamed", blamed, [])


def counters(ifindex, at_ms, total):
    return {"schema": "fabrictrace.counters.v1", "time_ms": at_ms, "agent": "192.0.2.1",
            "ifindex": ifindex, "source": "snmp", "speed_bps": 10**9, "oper_up": True,
            "in_bytes": total, "out_bytes": 0}


def samples(ifindex, at_ms, total):
    """From other hosts every second: more than one is behind the port."""
    count = total // (LENGTH * RATE)
    return {"schema": "fabrictrace.observation.v1", "time_ms": at_ms, "interval_ms": 1000,
            "first_ms": at_ms, "last_ms": at_ms + 900, "agent": "192.0.2.1",
            "flow": {"src": f"10.{ifindex}.{at_ms // 1000 % 250}.1", "dst": "10.0.1.1",
                     "sport": 50000, "dport": 4791, "proto": 17}, "in_ifindex": ifindex, "out_ifindex": 1, "samples": count,
            "packets": count * RATE, "bytes": total, "data_samples": count}


TOPOLOGY = """fabric: lab
switches:
  - {name: leaf1, tier: leaf, addresses: [192.0.2.1], ports: [{ifindex: 1, name: Ethernet1},
     {ifindex: 51, name: Ethernet51}, {ifindex: 52, name: Ethernet52}]}
  - {name: spine1, tier: spine, addresses: [192.0.2.2], ports: [{ifindex: 1, name: Ethernet1}]}
links:
  - {a: leaf1, a_port: Ethernet51, b: spine1, b_port: Ethernet1}
hosts:
  - name: gpu01
    nics:
      - {addresses: [10.0.1.1], attach: [{switch: leaf1, port: Ethernet1}]}
"""


def blamed(folder, times):
    """Who is blamed when two links bring the same, one of them is known, and samples of that one
    stand for so many times what it brought."""
    path = folder / "topology.yaml"
    path.write_text(TOPOLOGY)
    records = []
    for second in range(WINDOWS * WINDOW_MS // 1000):
        at_ms = START_MS + 1000 * second
        for ifindex in (1, 51, 52):
            records.append(counters(ifindex, at_ms, 0 if ifindex == 1 else BYTES * second))
        records += [samples(51, at_ms, BYTES * times)]
        if times == 1:
            records += [samples(52, at_ms, BYTES)]
    got = replay(records, "--topology", path, "--set", "window=2s", "--set", "grace=1s")
    return [(e["kind"], e["subject"]) for e in of_kind(got, "event")
            if e["kind"] in ("sampling_rate", "silent_exporter")]


def test_sampling():
    with rig.tempfile.TemporaryDirectory() as name:
        folder = rig.Path(name)
        equal("a healthy leaf with a link that is not known is not blamed", blamed(folder, 1), [])
        equal("one that samples at another rate than it says is",
              blamed(folder, 2)[:1], [("sampling_rate", "leaf1")])


def main():
    polled = rig.records_of(rig.run(*discovery.POLLER).stdout)
    want = replay(polled, "--topology", discovery.TOPOLOGY)
    known = {json.dumps(r["flow"]): hops(r) for r in of_kind(want, "path")
             if r["state"] == "resolved"}
    check("the file gives paths", known)
    for listed in (True, False):
        for hosts_speak in (True, False):
            test_paths(polled, known, listed, hosts_speak)
    test_sampling()
    return 1 if rig.failures else 0


if __name__ == "__main__":
    sys.exit(main())
