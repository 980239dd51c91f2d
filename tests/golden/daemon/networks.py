#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""From datagrams to records: two tenants whose flows have the same 5-tuple, in two networks (VNI).

leaf1 puts flows into VXLAN. It samples them at its uplinks: one tenant's by the one, the other's by the
other, at the same time, with packet numbers of their own. Another flow is in one network alone. Nothing is
said of the 5-tuple that both have but that it is both; when one of them ends, the other one has its path."""
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
WINDOW_S, EVIDENCE_S = 5, 15
RED, BLUE = 5001, 5002
BOTH, ALONE = c.DATA, (*c.DATA[:2], c.DATA[2] + 1)
SHARED_S, END_S = 20, 60  # the second tenant's flow ends, the capture does


def tunnelled(flow, vni, psn):
    bth = c.bth(0x07, 17)[:8] + psn.to_bytes(4, "big")  # WRITE middle
    frame = c.vxlan(c.ethernet(c.udp(*flow, bth + bytes(1000))), sport=50000 + vni, vni=vni)
    return c.raw_header(frame[:128], len(frame) + 4)


def seconds():
    """The capture: in each second three samples of each."""
    for second in range(END_S):
        samples = []
        for n in range(3):
            now = 10 * second + n
            samples.append((49, tunnelled(BOTH, RED, 100000 + now)))
            if second < SHARED_S:
                samples.append((50, tunnelled(BOTH, BLUE, 100 + now)))
            samples.append((50, tunnelled(ALONE, BLUE, now)))
        yield 0.1 + second, c.datagram(c.LEAF, 1 + second, 1000 * (1 + second), [
            c.flow_sample(10 * second + i, (0, 1), 1, port, [header], rate=1000)
            for i, (port, header) in enumerate(samples)])


def chain(folder):
    capture, topology = folder / "made.pcap", folder / "t.yaml"
    capture.write_bytes(c.pcap(c.ETHERNET, seconds()))
    topology.write_text(TOPOLOGY)
    polled = rig.run(rig.POLLER, *rig.NO_CONFIG, "--replay", capture, "--output", "-")
    done = subprocess.run(
        [rig.DAEMON, *rig.NO_CONFIG, *rig.TRUST, "--set", f"window={WINDOW_S}s", "--set", f"evidence={EVIDENCE_S}s",
         "--set", "path_refresh=5s", "--topology", topology, "--replay", "-", "--sink", "file:-"],
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
    both, alone = paths[BOTH[2]], paths[ALONE[2]]
    start = c.START * 1000
    shared = [r for r in both if r["window_start_ms"] < start + (SHARED_S + EVIDENCE_S - WINDOW_S) * 1000]
    # The first sample of all is of the one, and nobody knows of the other yet.
    first = shared.pop(0)
    equal("before, it is that of one", (first["state"], first.get("vni"), first["hops"][0]["out"]),
          ("resolved", RED, "up1"))
    check("the 5-tuple of both is in records while they are two", len(shared) > 3, both)
    equal("of it nothing is known", {(r["state"], r.get("reason")) for r in shared},
          {("unresolved", "several_networks")})
    equal("but the networks", {tuple(sorted((r.get("vni", 0), r.get("other_vni", 0)))) for r in shared}, {(RED, BLUE)})
    odd = {"rate_bps", "bytes", "src_host", "dst_host", "hops", "outer", "numbered_samples"}
    equal("no rate, no host, no tunnel", set().union(*(odd & set(r) for r in shared)), set())
    last = both[-1]
    equal("the one that is left is resolved",
          (last["state"], last.get("vni"), "other_vni" in last, [h.get("out") for h in last["hops"]][:1]),
          ("resolved", RED, False, ["up1"]))
    check("since after the other one ended", last["path_since_ms"] >= start + SHARED_S * 1000 - 1000, last)
    check("with its rate", last["rate_bps"] > 0 and last.get("psn_back_samples", 0) == 0, last)
    equal("a flow of one network is a flow as any",
          {(r["state"], r.get("vni"), "other_vni" in r, r["hops"][0]["out"], r["src_host"]) for r in alone},
          {("resolved", BLUE, False, "up2", "h1")})
    groups = [r for r in of_kind(records, "imbalance") if r["name"] == "leaf1/up"]
    counted = [(r["flows"], r.get("flows_unplaced", 0)) for r in groups]
    equal("it is unplaced while it is two", counted[:SHARED_S // WINDOW_S], [(1, 1)] * (SHARED_S // WINDOW_S))
    equal("and placed when it is one", counted[-2], (2, 0))
    equal("no event says that a flow moves", {r["kind"] for r in of_kind(records, "event")} &
          {"path_change", "collision", "packet_loss", "miscabling"}, set())
    return 1 if rig.failures else 0


sys.exit(main())
