#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""No topology file and no SNMP: the fabric from samples alone, and a file that samples contradict.

A fabric is made by dice, flows take its paths, and switches sample them in virtual time. What the
daemon learns of links, tiers and hosts' places is held against the fabric, and so are its paths."""
import json
import random
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
import rig  # noqa: E402
from rig import check, equal, of_kind  # noqa: E402

TOOL = Path("cli/fabrictrace").resolve()
START_MS = 1_700_000_000_000
DAEMON = [rig.DAEMON, *rig.NO_CONFIG, "--set", "source_id=golden", "--set", "window=5s",
          "--replay", "-", "--sink", "file:-"]


class Fabric:
    """Leaves, spines and, with pods, superspines; every hop is (agent, in, out)."""

    def __init__(self, seed, leaves=4, spines=2, pods=1, supers=0, parallel=1, hosts=2):
        self.dice = random.Random(seed)
        self.leaves, self.spines, self.pods = leaves, spines, pods
        self.supers, self.parallel, self.hosts = supers, parallel, hosts
        self.cables, self.swap = {}, None
        for leaf in range(leaves):
            for s in range(spines):
                for k in range(parallel):
                    self.plug((self.leaf(leaf), 20 + s * parallel + k),
                              (self.spine(self.pod(leaf), s), self.down(leaf, k)))
        for pod in range(pods):
            for s in range(spines):
                for c in range(supers):
                    self.plug((self.spine(pod, s), 60 + c), (self.super(s, c), 1 + pod))

    def plug(self, a, b):
        self.cables[a], self.cables[b] = b, a

    def swap_uplinks(self):
        """The first two uplinks of the first leaf, at the spines' side."""
        a, b = (self.leaf(0), 20), (self.leaf(0), 21)
        x, y = self.cables[a], self.cables[b]
        self.plug(a, y)
        self.plug(b, x)

    def pod(self, leaf):
        return leaf * self.pods // self.leaves

    def down(self, leaf, k):
        return 1 + leaf % (self.leaves // self.pods) * self.parallel + k

    def leaf(self, i):
        return f"192.0.2.{1 + i}"

    def spine(self, pod, s):
        return f"192.0.2.{101 + pod * self.spines + s}"

    def super(self, s, c):
        return f"192.0.2.{201 + s * self.supers + c}"

    def host(self, leaf, h):
        return f"10.0.{leaf}.{1 + h}"

    def path(self, src, dst):
        """From (leaf, host) to (leaf, host): hops as the cables are plugged."""
        up = 20 + self.dice.randrange(self.spines * self.parallel)
        at, port = self.cables[self.leaf(src[0]), up]
        hops = [(self.leaf(src[0]), 1 + src[1], up)]
        if self.pod(src[0]) != self.pod(dst[0]):
            out = 60 + self.dice.randrange(self.supers)
            hops.append((at, port, out))
            at, port = self.cables[at, out]
            out = 1 + self.pod(dst[0])
            hops.append((at, port, out))
            at, port = self.cables[at, out]
        out = self.down(dst[0], self.dice.randrange(self.parallel))
        hops.append((at, port, out))
        at, port = self.cables[at, out]
        hops.append((at, port, 1 + dst[1]))
        return hops

    def flows(self, count):
        """Pairs of flows there and back between hosts of different leaves."""
        out = {}
        for i in range(count):
            a, b = self.dice.sample(range(self.leaves), 2)
            ends = [(a, self.dice.randrange(self.hosts)), (b, self.dice.randrange(self.hosts))]
            for src, dst in (ends, ends[::-1]):
                key = self.host(*src), self.host(*dst), 49152 + i
                out[key] = self.path(src, dst)
        return out


def observations(fabric, flows, seconds, rate=3.0, sent=False, silent=()):
    """What the switches' samples fold to, in the order of time."""
    out = []
    for second in range(seconds):
        start = START_MS + second * 1000
        for (src, dst, sport), hops in flows.items():
            for number, (agent, port_in, port_out) in enumerate(hops):
                n = int(rate) + (fabric.dice.random() < rate % 1)
                if n == 0 or agent in silent:
                    continue
                times = sorted(start + fabric.dice.randrange(1000) for _ in range(n))
                out.append({"schema": "fabrictrace.observation.v1", "time_ms": start,
                            "interval_ms": 1000, "first_ms": times[0], "last_ms": times[-1],
                            "agent": agent,
                            "flow": {"src": src, "dst": dst, "sport": sport, "dport": 4791,
                                     "proto": 17},
                            "in_ifindex": port_in, "out_ifindex": port_out, "point": "ingress",
                            "fate": "forwarded", "samples": n, "packets": 1000 * n,
                            "bytes": 1000000 * n, "data_samples": n,
                            "ttl": 64 - number - sent})
    return sorted(out, key=lambda o: (o["time_ms"], o["last_ms"]))


def replay(records, *arguments):
    run = subprocess.run([*DAEMON, *arguments], capture_output=True, timeout=300,
                         input="".join(json.dumps(r) + "\n" for r in records).encode())
    equal("exit code", run.returncode, 0)
    out = rig.records_of(run.stdout.decode())
    rig.check_balance("daemon", out)
    return out


def links_of(records):
    """{window: {(switch, port): (peer, peer_port)}}."""
    out = {}
    for r in of_kind(records, "link"):
        if "peer_port" in r:
            out.setdefault(r["window_start_ms"], {})[r["switch"], r["port"]] = \
                r["peer"], r["peer_port"]
    return out


def named(cables):
    return {(a, f"#{p}"): (b, f"#{q}") for (a, p), (b, q) in cables.items()}


def learn(name, fabric, flows, seconds=30, **how):
    records = replay(observations(fabric, flows, seconds, **how))
    silent = how.get("silent", ())
    crossed = {(agent, port) for hops in flows.values() for agent, *ports in hops for port in ports}
    truth = named({a: b for a, b in fabric.cables.items()
                   if a[0] not in silent and b[0] not in silent and a in crossed and b in crossed})
    learnt = links_of(records)
    wrong = [(a, b) for links in learnt.values() for a, b in links.items()
             if truth.get(a) != b]
    equal(f"{name}: no link is wrong at any time", wrong[:3], [])
    equal(f"{name}: links at the end", learnt[max(learnt)] if learnt else {}, truth)
    last = {}
    for r in of_kind(records, "path"):
        hops = [(h["switch"], h.get("in"), h.get("out")) for h in r.get("hops", [])]
        last[r["flow"]["src"], r["flow"]["dst"], r["flow"]["sport"]] = r["state"], hops
    want = {flow: ("resolved", [(agent, f"#{i}", f"#{o}") for agent, i, o in hops])
            for flow, hops in flows.items() if not any(h[0] in silent for h in hops)}
    wrong = [(flow, path, last.get(flow)) for flow, path in want.items() if last.get(flow) != path]
    equal(f"{name}: {len(want)} paths at the end", wrong[:2], [])
    return records


def test_alone():
    for seed in range(2):
        fabric = Fabric(seed, leaves=4, spines=2)
        first = learn(f"two tiers, seed {seed}", fabric, fabric.flows(40))
        equal("tiers", {r["tier"] for r in of_kind(first, "link")}, {"leaf", "spine"})
        fabric = Fabric(seed, leaves=4, spines=2, pods=2, supers=2)
        learn(f"three tiers, seed {seed}", fabric, fabric.flows(60))
        fabric = Fabric(seed, leaves=3, spines=2, parallel=2)
        learn(f"parallel links, seed {seed}", fabric, fabric.flows(60))
        fabric = Fabric(seed, leaves=4, spines=2)
        learn(f"samples after the countdown, seed {seed}", fabric, fabric.flows(40), sent=True)
        fabric = Fabric(seed, leaves=4, spines=3)
        learn(f"a silent spine, seed {seed}", fabric, fabric.flows(60),
              silent={fabric.spine(0, 1)})
    fabric = Fabric(7)
    flows = fabric.flows(40)
    seen = observations(fabric, flows, 20)
    check("twice the same", replay(seen) == replay(seen))


def counters(agent, ifindex, name, second):
    return {"schema": "fabrictrace.counters.v1", "time_ms": START_MS + second * 1000,
            "agent": agent, "ifindex": ifindex, "port": name, "source": "sflow", "oper_up": True}


def test_port_names():
    """Exporters name their ports once flows have their paths: links, paths and flows go on under the
    names. One exporter says none, and one the same of two ports."""
    fabric = Fabric(11, leaves=4, spines=2)
    flows = fabric.flows(40)
    ports = sorted({(agent, port) for hops in flows.values() for agent, *both in hops
                    for port in both})
    silent, twins = fabric.leaf(1), [(fabric.spine(0, 0), 1), (fabric.spine(0, 0), 2)]
    said = {end: f"Ethernet{end[1]}" for end in ports if end[0] != silent}
    said[twins[1]] = said[twins[0]]
    names = {end: said.get(end, f"#{end[1]}") for end in ports}
    names[twins[1]] = f"#{twins[1][1]}"
    seen = observations(fabric, flows, 80, rate=2)
    middle = next(i for i, o in enumerate(seen) if o["time_ms"] >= START_MS + 20000)
    records = replay(seen[:middle] + [counters(*end, name, 20) for end, name in said.items()] +
                     seen[middle:])
    learnt = links_of(records)
    before, after = learnt[START_MS + 10000], learnt[max(learnt)]
    equal("before they are said ports are numbers", before, named(fabric.cables))
    equal("then they have their names", after,
          {(a, names[a, p]): (b, names[b, q]) for (a, p), (b, q) in fabric.cables.items()})
    last = {}
    for r in of_kind(records, "path"):
        last[r["flow"]["src"], r["flow"]["dst"], r["flow"]["sport"]] = r
        if r["window_start_ms"] >= START_MS + 20000 and r["state"] != "resolved":
            check("no flow loses its path by that", False, r)
    equal("no flow has moved", [r["message"] for r in of_kind(records, "event")
                                if r["kind"] == "path_change"], [])
    equal("paths go by the names", {flow: [(h["switch"], h["in"], h["out"])
                                           for h in r.get("hops", [])]
                                    for flow, r in last.items()},
          {flow: [(agent, names[agent, i], names[agent, o]) for agent, i, o in hops]
           for flow, hops in flows.items()})


def topology_file(fabric, text, hosts=True):
    names = {}
    lines = ["fabric: lab", "switches:"]
    for agent in sorted({a for a, _ in fabric.cables}):
        number = int(agent.split(".")[-1])
        names[agent] = f"leaf{number}" if number < 100 else f"spine{number - 100}"
        lines += [f"  - name: {names[agent]}", f"    addresses: [{agent}]", "    ports:"]
        lines += [f"      - {{ifindex: {p}, name: Ethernet{p}, speed_bps: 10000000000}}"
                  for p in range(1, 30)]
    lines.append("links:")
    for (a, p), (b, q) in sorted(fabric.cables.items()):
        if names[a].startswith("leaf"):
            lines.append(f"  - {{a: {names[a]}, a_port: Ethernet{p}, b: {names[b]}, "
                         f"b_port: Ethernet{q}}}")
    lines.append("hosts:")
    for leaf in range(fabric.leaves):
        for h in range(fabric.hosts):
            lines += [f"  - name: gpu{leaf}-{h}", "    nics:",
                      f"      - addresses: [{fabric.host(leaf, h)}]",
                      f"        attach: [{{switch: leaf{1 + leaf}, port: Ethernet{1 + h}}}]"]
    text.write_text("\n".join(lines) + "\n")
    return text


def test_miscabling(folder):
    """The file tells of the cables as they should be; two of them are swapped."""
    fabric = Fabric(3, leaves=4, spines=2)
    file = topology_file(fabric, folder / "topology.yaml")
    good = replay(observations(fabric, fabric.flows(40), 30), "--topology", file)
    equal("no event where the file is right",
          [r["message"] for r in of_kind(good, "event") if r["kind"] == "miscabling"], [])
    fabric.swap_uplinks()
    bad = replay(observations(fabric, fabric.flows(40), 30), "--topology", file)
    events = [r for r in of_kind(bad, "event") if r["kind"] == "miscabling"]
    equal("both cables are named", {r["subject"] for r in events if not r.get("cleared")},
          {"leaf1/Ethernet20", "leaf1/Ethernet21"})
    spine = {"Ethernet20": "spine1", "Ethernet21": "spine2"}
    for event in events:
        evidence = event["evidence"]
        port, other = evidence["port"], ({*spine} - {evidence["port"]}).pop()
        equal("the file's end", evidence["peer"], spine[port])
        check("numbers", evidence["count"] >= 10 and 1 <= evidence["flows"] <= 80, evidence)
        # Which of the two ends is certain first depends on the dice.
        says = (f"{spine[other]} Ethernet1" if "found_peer" in evidence else
                f"that leaf1 {other} goes there")
        check("the text says all of it", event["message"].startswith(
            f"leaf1 {port}: the file says it goes to {spine[port]} Ethernet1; "
            f"{evidence['count']} samples of {evidence['flows']} flows show {says}"),
            event["message"])
    check("that they are swapped is told",
          any(r["message"].endswith("the other way round: swapped") for r in events),
          [r["message"] for r in events])
    fabric.swap_uplinks()
    # Put right again, and the events clear.
    later = [{**o, "time_ms": o["time_ms"] + 31000, "first_ms": o["first_ms"] + 31000,
              "last_ms": o["last_ms"] + 31000}
             for o in observations(fabric, fabric.flows(40), 150, rate=1)]
    fabric.swap_uplinks()
    mended = replay(observations(fabric, fabric.flows(40), 30) + later, "--topology", file)
    state = {}
    for r in of_kind(mended, "event"):
        if r["kind"] == "miscabling":
            state[r["subject"]] = r.get("cleared", False)
    equal("cleared when mended", state, {"leaf1/Ethernet20": True, "leaf1/Ethernet21": True})


def known(daemon):
    """The topology as a daemon knows it, without where it knows it from."""
    topology = json.loads(daemon.get("/api/v1/topology"))
    for port in (port for switch in topology["switches"] for port in switch["ports"]):
        for name in ("source", "confirmed", "samples", "flows"):
            port.pop(name, None)
    return topology


def test_export(folder):
    """What the tool writes is read back to the same topology."""
    fabric = Fabric(5, leaves=4, spines=2, parallel=2)
    text = topology_file(fabric, folder / "given.yaml").read_text()
    text = text.replace("gpu0-0", '"#0: \\"gpu\\" \\\\ [1]"')
    text = text.replace("10.0.1.1]", '10.0.1.1, "fd00:1::1"]')
    text = re.sub(r"\bEthernet7\b", '"#7"', text)
    daemon, folders = None, [folder / "first", folder / "second"]
    topologies = []
    for number, at in enumerate(folders):
        at.mkdir()
        daemon = rig.Daemon(at, text).start()
        try:
            topologies.append(known(daemon))
            exported = rig.run(TOOL, "topology", "--export", "--endpoint",
                               f"127.0.0.1:{daemon.http}")
            equal("exit code", (exported.returncode, exported.stderr), (0, ""))
            text = exported.stdout
        finally:
            daemon.stop()
        file = at / "exported.yaml"
        file.write_text(text)
        valid = rig.run(rig.DAEMON, *rig.NO_CONFIG, "--topology", file, "--check")
        equal("a valid file", (valid.returncode, valid.stderr), (0, ""))
    equal("links have their evidence beside them", text.count("# static, not confirmed"), 16)
    equal("the same topology", topologies[1], topologies[0])


def main():
    with tempfile.TemporaryDirectory() as folder:
        test_export(Path(folder))
        test_miscabling(Path(folder))
    test_alone()
    test_port_names()
    return 1 if rig.failures else 0


sys.exit(main())
