#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""From datagrams to records: the tunnel around a flow, and what switches tell of queues and transit.

leaf1 samples a flow inside VXLAN in two windows, with the depth of the output queue and the time in
the switch; what has to come out was worked out by hand."""
import subprocess
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
  - {name: leaf1, addresses: [192.0.2.11], ports: [{name: host, ifindex: 1}, {name: up1, ifindex: 49},
                                                   {name: up2, ifindex: 50}]}
  - {name: leaf2}
  - {name: spine1}
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
PLAIN = ("10.0.1.1", "10.0.3.1", 49442)
TRANSIT, QUEUE = 1039, 1040  # sflow_transit.txt


def tunnelled(sport):
    inner = c.ethernet(c.udp(*c.DATA, c.bth(c.WRITE_ONLY, 17) + bytes(1000)))
    frame = c.vxlan(inner, sport=sport)
    return c.raw_header(frame[:128], len(frame) + 4)


def sample(sequence, port, header, transit_ns=None, queue_bytes=None):
    told = [] if transit_ns is None else [c.words(TRANSIT, transit_ns)]
    told += [] if queue_bytes is None else [c.words(QUEUE, queue_bytes)]
    return c.flow_sample(sequence, (0, 1), 1, port, [*told, header])


def windows():
    """The capture: two windows of samples, and one more datagram that lets both close."""
    first = [sample(1, 49, tunnelled(55555), 1500, 40000), sample(2, 49, tunnelled(55555), 9000, 20000),
             sample(3, 50, c.roce(*PLAIN), 700), sample(4, 50, c.roce(*PLAIN), 600, 0)]
    # The tunnel has another port now, a flow outside it goes by the same link.
    second = [sample(5, 49, tunnelled(55556), 800), sample(6, 49, c.roce(*PLAIN[:2], 49443))]
    last = [sample(7, 49, tunnelled(55556))]
    return [(0.1, c.datagram(c.LEAF, 1, 1000, first)),
            (0.1 + WINDOW_S, c.datagram(c.LEAF, 2, 6000, second)),
            (0.1 + 3 * WINDOW_S, c.datagram(c.LEAF, 3, 16000, last))]


def chain(folder):
    capture, topology = folder / "made.pcap", folder / "t.yaml"
    capture.write_bytes(c.pcap(c.ETHERNET, windows()))
    topology.write_text(TOPOLOGY)
    polled = rig.run(rig.POLLER, *rig.NO_CONFIG, "--replay", capture, "--output", "-")
    done = subprocess.run(
        [rig.DAEMON, *rig.NO_CONFIG, *rig.TRUST, "--set", f"window={WINDOW_S}s", "--set", "path_refresh=5s",
         "--topology", topology, "--replay", "-", "--sink", "file:-"],
        input=polled.stdout, capture_output=True, text=True, timeout=300)
    equal("exit codes", (polled.returncode, done.returncode), (0, 0))
    if done.returncode:
        print(done.stderr)
    return rig.records_of(done.stdout)


def main():
    with tempfile.TemporaryDirectory() as folder:
        records = chain(Path(folder))
    paths = {}
    for r in of_kind(records, "path"):
        paths.setdefault(r["flow"]["sport"], []).append(r)
    outer = {"src": "192.0.2.101", "dst": "192.0.2.103", "sport": 55555, "dport": 4789, "proto": 17}
    equal("the first record of the flow has its tunnel", paths[49441][0].get("outer"), outer)
    equal("the last has the last one", paths[49441][-1].get("outer"), outer | {"sport": 55556})
    check("a flow outside has none", not any("outer" in r for s in (49442, 49443) for r in paths[s]))
    equal("all are resolved", {r["state"] for rs in paths.values() for r in rs}, {"resolved"})

    starts = sorted({r["window_start_ms"] for r in of_kind(records, "link")})
    told = {(starts.index(r["window_start_ms"]), r["port"]):
            (r.get("queue_max_bytes"), r.get("transit_max_ns"))
            for r in of_kind(records, "link") if r["switch"] == "leaf1"}
    equal("a window's deepest queue and longest transit", told[0, "up1"], (40000, 9000))
    equal("an empty queue is one", told[0, "up2"], (0, 700))
    equal("the next window begins anew", (told[1, "up1"], told[1, "up2"]),
          ((None, 800), (None, None)))
    equal("other links tell nothing", {v for (_, port), v in told.items() if port == "host"},
          {(None, None)})
    return 1 if rig.failures else 0


sys.exit(main())
