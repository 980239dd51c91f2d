#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How the Linux kernel chooses among equal-cost links, learnt from flows over the lab: leaves of
namespaces with each fib_multipath_hash_policy. Where a flow goes is what its packet did, by the kernel's
counters. (`ip route get` says otherwise for IPv6 by policy 3.) Flows that are shown to the daemon are its
samples; of the others only their hosts report. A keyed hash is never called linear, and no link of a
flow without samples is predicted wrongly. Over the same flows a hash by CRC is learnt, so that
predictions are looked for where they would be. Needs root; runs in the build folder. Closes with
`N passed, N failed, N skipped`."""
import argparse
import json
import os
import random
import struct
import sys
import time
import zlib
from pathlib import Path

sys.dont_write_bytecode = True
TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "golden" / "daemon")]
import rig  # noqa: E402
from lab.fabric import Fabric, end_tidily, reap  # noqa: E402
from lab.layout import Layout  # noqa: E402
from lab.traffic import Flow  # noqa: E402
from lab.truth import Counters, flush, kernel_paths  # noqa: E402
from rig import of_kind  # noqa: E402

# fib_multipath_hash_policy, and which fields policy 3 takes: the bits are of Documentation/networking/ip-sysctl.
POLICIES = {
    "addresses": (0, None),
    "5-tuple": (1, None),
    "fields: addresses, protocol, ports": (3, 0x0037),
    "fields: source port": (3, 0x0010),
}
KNOWN, UNSEEN = 1200, 600
START_MS = 1700000000000
SECONDS, WINDOW_S = 8, 4


checks = 0


def check(what, good, detail=""):
    global checks
    checks += 1
    rig.check(what, good, detail)


def draw(layout, rng):
    """Flows between leaves, in both families; half of them between few hosts."""
    flows = set()
    few = rng.sample(layout.hosts, len(layout.hosts) // 2)
    while len(flows) < KNOWN + UNSEEN:
        among = few if len(flows) % 2 else layout.hosts
        src, dst = rng.choice(among), rng.choice(layout.hosts)
        family = rng.choice((4, 4, 6))
        if src.leaf != dst.leaf:
            flows.add(Flow(src.address(family), dst.address(family), rng.randint(0xc000, 0xffff)))
    return rng.sample(sorted(flows, key=str), KNOWN + UNSEEN)


def set_policy(fabric, policy, fields):
    for leaf in fabric.layout.leaves:
        for family in ("ipv4", "ipv6"):
            text = f"echo {policy} > /proc/sys/net/{family}/fib_multipath_hash_policy\n"
            if fields is not None:
                text += f"echo {fields} > /proc/sys/net/{family}/fib_multipath_hash_fields\n"
            fabric.run(leaf, "sh", "-e", text=text)


def send(fabric, flows):
    """A packet of each flow."""
    for host in fabric.layout.hosts:
        mine = [(f.src, f.dst, f.sport) for f in flows if fabric.layout.owner[f.src] == host]
        fabric.run(host.name, sys.executable, "-c", f"""
import socket
for src, dst, sport in {mine!r}:
    s = socket.socket(socket.AF_INET6 if ":" in src else socket.AF_INET, socket.SOCK_DGRAM)
    s.bind((src, sport))
    s.sendto(bytes(64), (dst, 4791))
""")


def sent_paths(fabric, flows):
    """{Flow: path} of the packets that were sent: leaf, spine, leaf."""
    hops = {flow: {} for flow in flows}
    for (flow, switch, came, went), packets in Counters(fabric).all.items():
        if packets and flow in hops:
            hops[flow][switch] = (switch, came, went)
    paths = {}
    for flow, at in hops.items():
        leaves = [fabric.layout.leaves[fabric.layout.owner[x].leaf] for x in (flow.src, flow.dst)]
        spine, = at.keys() - set(leaves)
        paths[flow] = at[leaves[0]], at[spine], at[leaves[1]]
    return paths


def by_crc(layout, flows, paths):
    """The same flows over leaves that hash by CRC-32 as switches do."""
    made = {}
    for flow in flows:
        (leaf, came, _), _, (far, _, went) = paths[flow]
        header = f"{flow.src} {flow.dst}".encode() if ":" in flow.src else bytes(
            int(x) for x in f"{flow.src}.{flow.dst}".split("."))
        spine = zlib.crc32(header + struct.pack(">H", flow.sport)) % len(layout.spines)
        up, down = layout.uplink(layout.leaves.index(leaf), spine), layout.uplink(layout.leaves.index(far), spine)
        made[flow] = ((leaf, came, up.name),
                      (layout.spines[spine], layout.peer[leaf, up.name].name, layout.peer[far, down.name].name),
                      (far, down.name, went))
    return made


def told(flow):
    return {"src": flow.src, "dst": flow.dst, "sport": flow.sport, "dport": 4791, "proto": 17}


def lines(layout, paths, known, unseen):
    ifindex = {(switch, name): index for (switch, index), name in layout.port_of.items()}
    for second in range(SECONDS):
        at_ms = START_MS + 1000 * second
        for flow in known:
            for switch, came, went in paths[flow]:
                yield {"schema": "fabrictrace.observation.v1", "time_ms": at_ms, "interval_ms": 1000,
                       "first_ms": at_ms + 10, "last_ms": at_ms + 990, "agent": layout.mgmt(switch),
                       "flow": told(flow), "in_ifindex": ifindex[switch, came],
                       "out_ifindex": ifindex[switch, went], "samples": 3, "packets": 3000, "bytes": 3000000,
                       "data_samples": 3}
    for k in range(2):
        for flow in unseen:
            yield {"schema": "fabrictrace.flow.v1", "time_ms": START_MS + 1000 * SECONDS + 4000 * k,
                   "interval_ms": 4000, "host": layout.owner[flow.src].name, "flow": told(flow), "direction": "tx",
                   "tuple_source": "computed", "data_packets": 1000, "bytes": 4096000}


def replay(fabric, paths, known, unseen):
    text = "".join(json.dumps(x) + "\n" for x in lines(fabric.layout, paths, known, unseen))
    done = rig.run(rig.DAEMON, *rig.NO_CONFIG, "--set", "source_id=golden", "--set", f"window={WINDOW_S}s",
                   "--topology", fabric.dir / "topology.yaml", "--replay", "-", "--sink", "file:-", input=text,
                   stdin=None)
    check("exit code", done.returncode == 0, done.returncode)
    return rig.records_of(done.stdout)


def judge(name, records, paths, linear):
    """Predicted hops of flows without samples, by whether they are those of the kernel."""
    right, wrong = 0, []
    for r in of_kind(records, "path"):
        flow = Flow(r["flow"]["src"], r["flow"]["dst"], r["flow"]["sport"])
        for hop in r.get("likely", ()):
            if hop.get("evidence") == "predicted" and hop.get("out"):
                good = hop["out"] in [went for switch, _, went in paths[flow] if switch == hop["switch"]]
                right += good
                wrong += [] if good else [(str(flow), hop)]
    models = {(r["switch"], r["model"]) for r in of_kind(records, "hash") if r.get("switch")}
    leaves = {switch for switch, _ in models}
    print(f"{name}: {sorted(models)}, {right} hops predicted rightly, {len(wrong)} wrongly")
    check(f"{name}: something was learnt from", len(leaves) == 2, models)
    check(f"{name}: no link is predicted wrongly", not wrong, wrong[:2])
    if linear:
        check(f"{name}: links are predicted", right >= UNSEEN / 2, right)
    else:
        check(f"{name}: nothing of it is called linear", not any(model == "linear" for _, model in models), models)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=Path, default=Path("."))
    parser.add_argument("--seed", type=int, default=int(time.time()) % 100000)
    args = parser.parse_args()
    os.chdir(args.build)
    print(f"seed {args.seed}")
    end_tidily()
    reap()
    rng = random.Random(args.seed)
    layout = Layout(spines=4, leaves=2, hosts=8)
    with Fabric(f"run{os.getpid()}", layout, sampling=0) as fabric:
        for name, (policy, fields) in POLICIES.items():
            set_policy(fabric, policy, fields)
            flows = draw(layout, rng)
            flush(fabric)
            send(fabric, flows)
            paths = sent_paths(fabric, flows)
            routes = kernel_paths(fabric, flows)
            differ = {":" in f.src for f in flows if routes[f] != paths[f]}
            check(f"{name}: IPv4 packets went as the routes say, IPv6 likewise but by policy 3",
                  not differ or differ == {True} and policy == 3, differ)
            known, unseen = flows[:KNOWN], flows[KNOWN:]
            judge(name, replay(fabric, paths, known, unseen), paths, False)
        made = by_crc(layout, flows, paths)
        judge("by CRC", replay(fabric, made, known, unseen), made, True)
    print(f"{checks - len(rig.failures)} passed, {len(rig.failures)} failed, 0 skipped")
    return 1 if rig.failures else 0


if __name__ == "__main__":
    sys.exit(main())
