#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""From datagrams to link_down with a topology file and no SNMP: the interface counters of leaf1 say
that a port is up, down and up again; its peer's exporter leaves the state out. Then the port is shut
by its administrator, which is believed of an exporter that has shown both states of a port."""
import struct
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "switchpoll"))
import make_captures as c  # noqa: E402
import rig  # noqa: E402
from rig import check, equal, of_kind  # noqa: E402

TOPOLOGY = """
fabric: small
speed_bps: 1000000000
switches:
  - {name: leaf1, addresses: [192.0.2.11], ports: [{name: host, ifindex: 1},
     {name: up1, ifindex: 49}, {name: up2, ifindex: 50}]}
  - {name: leaf2}
  - {name: spine1, addresses: [192.0.2.21], ports: [{name: a, ifindex: 1}, {name: b, ifindex: 2}]}
  - {name: spine2}
links:
  - {a: leaf1, a_port: up1, b: spine1, b_port: a}
  - {a: leaf1, a_port: up2, b: spine2, b_port: a}
  - {a: leaf2, a_port: up1, b: spine1, b_port: b}
  - {a: leaf2, a_port: up2, b: spine2, b_port: b}
hosts:
  - {name: h1, nics: [{addresses: [10.0.1.1], attach: [{switch: leaf1, port: host}]}]}
  - {name: h3, nics: [{addresses: [10.0.3.1], attach: [{switch: leaf2, port: host}]}]}
"""
WINDOW_S = 5
EVERY_S = 10
OPER_UP, ADMIN_UP = 2, 1
SPARE = 51
ROUNDS = 12
DOWN = range(3, 7)  # rounds


def counters(ifindex, status, total):
    return c.structure(1, struct.pack(">IIQIIQIIIIIIQIIIIII", ifindex, 6, 10**9, 1, status, total,
                                      100, 0, 0, 0, 0, 0, total, 200, 0, 0, 0, 0, 0))


def rounds(down_port, shut, spare):
    """Each round leaf1 tells of its ports and samples a packet; the spine leaves the state out. A
    spare port is enabled, and nothing is plugged in."""
    for i in range(ROUNDS):
        down = down_port if i in DOWN else None  # what it carries stands still then
        leaf = [c.counter_sample(i, (0, port), [counters(
            port, (0 if shut and port == down else ADMIN_UP) | (0 if port == down else OPER_UP),
            1000 * (DOWN[0] if port == down else i))]) for port in (1, 49, 50)]
        if spare:
            leaf.append(c.counter_sample(i, (0, SPARE), [counters(SPARE, ADMIN_UP, 0)]))
        leaf.append(c.flow_sample(i, (0, 1), 1, 50, [c.roce("10.0.1.1", "10.0.3.1", 49442)]))
        spine = [c.counter_sample(i, (0, port), [counters(port, 0, 5000 * i)]) for port in (1, 2)]
        yield i * EVERY_S + 0.1, c.datagram(c.LEAF, i, 1000 * i, leaf)
        yield i * EVERY_S + 0.2, c.datagram(c.SPINE, i, 1000 * i, spine)


def events(folder, down_port, shut=False, spare=False):
    capture, topology = folder / "made.pcap", folder / "t.yaml"
    capture.write_bytes(c.pcap(c.ETHERNET, rounds(down_port, shut, spare)))
    topology.write_text(TOPOLOGY)
    polled = rig.run(rig.POLLER, *rig.NO_CONFIG, "--replay", capture, "--output", "-")
    done = rig.run(rig.DAEMON, *rig.NO_CONFIG, "--set", f"window={WINDOW_S}s", "--topology",
                   topology, "--replay", "-", "--sink", "file:-", input=polled.stdout, stdin=None)
    equal("exit codes", (polled.returncode, done.returncode), (0, 0))
    first_ms = min(r["time_ms"] for r in rig.records_of(polled.stdout))
    found = of_kind(rig.records_of(done.stdout), "event")
    for e in found:
        e["round"] = (e["time_ms"] - first_ms) / 1000 / EVERY_S
    return found


def main():
    with tempfile.TemporaryDirectory() as name:
        found = events(Path(name), 49)
        told = [e for e in found if e["kind"] == "link_down"]
        equal("a link is down once, and up again",
              [(e["subject"], e.get("cleared", False)) for e in told],
              [("leaf1/up1", False), ("leaf1/up1", True)])
        check("when its port says so", told and
              all(at <= e["round"] < at + 1 for e, at in zip(told, (DOWN[0], DOWN[-1] + 1))),
              [e["round"] for e in told])
        equal("its ends are named", [(e["evidence"]["peer"], e["evidence"]["peer_port"])
                                     for e in told], [("spine1", "a")] * 2)
        equal("it leaves the topology, and comes back",
              [e["message"] for e in found if e["kind"] == "topology_change"],
              [f"the link from leaf1 up1 to spine1 a {what}" for what in ("went", "came")])
        told = [e for e in events(Path(name), 1) if e["kind"] == "link_down"]
        equal("so is the port of a host", [(e["subject"], e["message"]) for e in told],
              [("leaf1/host", "leaf1 host: the port of host h1 is down")] * 2)
        found = events(Path(name), 49, shut=True, spare=True)
        told = [e for e in found if e["kind"] in ("link_down", "link_shut")]
        equal("a link that was shut is no link_down", [
            (e["kind"], e["severity"], e["subject"], e.get("cleared", False)) for e in told],
              [("link_shut", "info", "leaf1/up1", cleared) for cleared in (False, True)])
        equal("the port that was shut is named",
              [e["evidence"].get("shut_ports") for e in told],
              [[{"switch": "leaf1", "port": "up1"}]] * 2)
        equal("it leaves the topology as well",
              [e["message"] for e in found if e["kind"] == "topology_change"],
              [f"the link from leaf1 up1 to spine1 a {what}" for what in ("went", "came")])
        told = [e for e in events(Path(name), 1, shut=True, spare=True)
                if e["kind"] in ("link_down", "link_shut")]
        equal("so is the port of a host that was shut", [(e["kind"], e["message"]) for e in told],
              [("link_shut", "leaf1 host: the port of host h1 is down: an administrator shut it "
                             "down")] * 2)
        equal("of an exporter that may have one state for both it is down", [
            (e["kind"], e["subject"]) for e in events(Path(name), 49, shut=True)
            if e["kind"] in ("link_down", "link_shut")], [("link_down", "leaf1/up1")] * 2)
        equal("nothing is down where the state is left out", [
            e["subject"] for e in events(Path(name), None)
            if e["kind"] in ("link_down", "link_shut")], [])
    return 1 if rig.failures else 0


if __name__ == "__main__":
    sys.exit(main())
