#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plans for hosts whose NICs hang on two planes: 2 x 4 hosts, each behind a leaf of either plane, and two
spines a plane. Which port a flow leaves by is the hash of its host's bond, written here from the kernel's
source (bond_ip_hash and bond_xmit_hash in drivers/net/bonding/bond_main.c); switches hash by CRC32. What
the planner makes of it is worked out by hand. Runs in the build folder."""
import collections
import json
import pathlib
import random
import struct
import sys
import tempfile
import unittest
import zlib

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import hashed  # noqa: E402
from hashed import JOB, SECONDS, SPEED, address, report  # noqa: E402

GROUPS, HOSTS, SPINES, PLANES = 2, 4, 2, "ab"
NICS = 8  # behind a leaf: of fewer any hash of two ends would be linear by chance too often
SHORT_FLOWS = 480
UP = 50  # Ethernet51 is the first uplink


def topology():
    def switch(name, number, ports):
        named = ", ".join(f"{{name: Ethernet{i}, ifindex: {i}}}" for i in ports)
        return f"  - {{name: {name}, addresses: [192.0.2.{number}], ports: [{named}]}}\n"

    text = f"fabric: planes\nspeed_bps: {SPEED}\nswitches:\n"
    links, hosts = "links:\n", "hosts:\n"
    for p, plane in enumerate(PLANES):
        for g in range(1, GROUPS + 1):
            text += switch(f"leaf-{plane}{g}", 10 * p + g,
                           [*range(1, NICS + 1), *range(UP + 1, UP + 1 + SPINES)])
            links += "".join(f"  - {{a: leaf-{plane}{g}, a_port: Ethernet{UP + s}, "
                             f"b: spine-{plane}{s}, b_port: Ethernet{g}}}\n"
                             for s in range(1, SPINES + 1))
        text += "".join(switch(f"spine-{plane}{s}", 100 + 10 * p + s, range(1, GROUPS + 1))
                        for s in range(1, SPINES + 1))
    for g in range(1, GROUPS + 1):
        for h in range(1, NICS + 1):
            attach = ", ".join(f"{{switch: leaf-{plane}{g}, port: Ethernet{h}}}" for plane in PLANES)
            hosts += f"  - {{name: h{g}-{h}, nics: [{{addresses: [{address(g, h)}], attach: [{attach}]}}]}}\n"
    return text + links + hosts


def octets(text):
    return list(map(int, text.split(".")))


def layer34(flow):
    """Linux, xmit_hash_policy layer3+4, on a little-endian host: ports and addresses as they stand in
    memory, folded, without the lowest bit."""
    src, dst, sport = flow
    ports, = struct.unpack("<I", struct.pack(">HH", sport, 4791))
    x = ports ^ struct.unpack("<I", bytes(octets(dst)))[0] ^ struct.unpack("<I", bytes(octets(src)))[0]
    x ^= x >> 16
    x ^= x >> 8
    return (x >> 1) % len(PLANES)


def layer2(flow):
    """By MAC addresses: what a flow's port is does not matter."""
    return (octets(flow[0])[3] ^ octets(flow[1])[3] ^ 1) % len(PLANES)


def affinity(flow):
    """A port for each queue pair, whatever its packets say."""
    return random.Random(repr(flow)).randrange(len(PLANES))


def path(flow, bond):
    """(agent, in, out) at each switch."""
    src, dst, sport = flow
    p, g, to = bond(flow), octets(src)[2], octets(dst)[2]
    key = bytes(octets(src) + octets(dst)) + struct.pack(">HHB", sport, 4791, 17)
    s = 1 + (zlib.crc32(key) >> 3) % SPINES
    return [(f"192.0.2.{10 * p + g}", octets(src)[3], UP + s), (f"192.0.2.{100 + 10 * p + s}", g, to),
            (f"192.0.2.{10 * p + to}", UP + s, octets(dst)[3])]


def ports(flow, bond):
    return [f"Ethernet{out}" for _, _, out in path(flow, bond)]


def loads(flows, bond):
    return collections.Counter((hop[0], hop[2]) for flow in flows for hop in path(flow, bond)[:2])


def records(job, bond):
    rng = random.Random(7)
    short = [((address(g, rng.randint(1, NICS)), address(3 - g, rng.randint(1, NICS)),
               rng.randint(0xc000, 0xffff)), rng.randrange(0, SECONDS - 12))
             for g in (1, 2) for _ in range(SHORT_FLOWS // 2)]
    fullest = loads(job, bond)
    for second in range(SECONDS):
        for flow, since in short:
            if since <= second < since + 5:
                yield from hashed.sampled(flow, path(flow, bond), second, SPEED / 5000)
        for number, flow in enumerate(job if second >= SECONDS - 12 else ()):
            bps = SPEED / max(fullest[hop[0], hop[2]] for hop in path(flow, bond)[:2])
            yield report(flow, second, bps, number, JOB)
            yield from hashed.sampled(flow, path(flow, bond), second, bps)


def job_on(plane, bond):
    """One flow of each host of the first four, all by one plane; two by two on its two spines."""
    found = []
    for h in range(1, HOSTS + 1):
        found.append(next(f for f in ((address(1, h), address(2, h), port) for port in range(0xc000, 0xffff))
                          if bond(f) == plane and path(f, bond)[0][2] == UP + 1 + h % SPINES))
    return found


class Planes(unittest.TestCase):
    def plan(self, job, bond, *words, status=0):
        with tempfile.TemporaryDirectory() as folder:
            daemon = hashed.Daemon(pathlib.Path(folder), records(job, bond), topology())
            try:
                done = daemon.ask("plan", JOB, "--json", *words)
                self.hash = daemon.ask("hash", "--json").stdout
            finally:
                daemon.stop()
        self.assertEqual((done.returncode, done.stderr), (status, ""), done.stdout)
        return json.loads(done.stdout)

    def moved(self, plan, job, bond):
        """The flows with their new ports, each of which leads where the plan says."""
        flows = {flow: flow for flow in job}
        for move in plan["moves"]:
            was = (move["flow"]["src"], move["flow"]["dst"], move["flow"]["sport"])
            now = flows[was] = (*was[:2], move["sport"])
            plane = PLANES[bond(now)]
            self.assertEqual([h["out"] for h in move["hops"]], ports(now, bond))
            self.assertEqual([h["switch"][-2] for h in move["hops"]], [plane] * 3)
        return list(flows.values())

    def test_both_planes(self):
        """Four flows on the two uplinks of one plane, two each; the other plane has two more: one flow a
        link, two flows a plane. That is the bound: four flows, four uplinks."""
        job = job_on(0, layer34)
        self.assertEqual(sorted(loads(job, layer34).values()), [2, 2, 2, 2])
        plan = self.plan(job, layer34)
        nics = [r for r in map(json.loads, self.hash.splitlines()) if "switch" not in r]
        self.assertEqual([(r["group"], r["members"], r["model"]) for r in nics if r["group"] == "leaf-a1+leaf-b1/nics"],
                         [("leaf-a1+leaf-b1/nics", ["leaf-a1", "leaf-b1"], "linear")])
        self.assertIn("sport", nics[0]["inputs"])
        self.assertEqual((plan["flows"], plan["movable"]), (4, 4))
        self.assertNotIn("several ports", " ".join(plan.get("unknown", [])))
        flows = self.moved(plan, job, layer34)
        self.assertEqual(set(loads(flows, layer34).values()), {1})
        self.assertEqual(collections.Counter(map(layer34, flows)), {0: 2, 1: 2})
        self.assertEqual(len(plan["moves"]), 2)
        self.assertAlmostEqual(plan["before"]["worst_load"], 2, 2)
        self.assertAlmostEqual(plan["after"]["worst_load"], 1, 2)
        self.assertAlmostEqual(plan["worst_load_bound"], 1, 2)
        self.assertGreaterEqual(plan["accuracy"], 0.99)

    def test_new_ports_by_the_bonds_hash(self):
        """whatif by learnt hashes: queue pairs that are made anew go where bonds send them, by either plane."""
        job, rng, draws = job_on(0, layer34), random.Random(5), 200
        with tempfile.TemporaryDirectory() as folder:
            daemon = hashed.Daemon(pathlib.Path(folder), records(job, layer34), topology())
            try:
                done = daemon.ask("whatif", "--json", "--policy", "learnt", "--draws", str(draws))
            finally:
                daemon.stop()
        learnt = {r["figures"]["policy"]: r for r in map(json.loads, done.stdout.splitlines())}["learnt"]
        self.assertEqual(learnt["guessed"], 0)
        mean = sum(max(loads([(*f[:2], rng.randint(0xc000, 0xffff)) for f in job], layer34).values())
                   for _ in range(2000)) / 2000
        self.assertAlmostEqual(learnt["figures"]["flows_most"]["mean"], mean, delta=0.2)

    def test_port_down(self):
        """Its NIC's port to plane a is down: the flow has a port of plane b, whatever its hash says, and
        the leaf of that plane says which spine."""
        job = job_on(0, layer34)
        plan = self.plan(job, layer34, "--failed", "leaf-a1/Ethernet1")
        first = [m for m in plan["moves"] if m["flow"]["src"] == address(1, 1)]
        self.assertEqual((plan["lost"], plan["stuck"], len(first)), (1, 0, 1))

        def bond(flow):
            return 1 if flow[0] == address(1, 1) else layer34(flow)

        flows = self.moved(plan, job, bond)
        self.assertEqual(set(loads(flows, bond).values()), {1})

    def test_by_mac(self):
        """A bond that hashes MAC addresses leaves flows in their plane: two flows each on two uplinks, and
        as its other plane is out of reach, no bound lower than that."""
        job = job_on(1, layer2)
        plan = self.plan(job, layer2)
        self.assertEqual(plan["movable"], 4)
        self.assertNotIn("moves", plan)
        self.assertAlmostEqual(plan["after"]["worst_load"], 2, 2)
        self.assertAlmostEqual(plan["worst_load_bound"], 2, 2)

    def test_affinity(self):
        """NICs that bind queue pairs to ports: which one a new queue pair gets is not known."""
        job = job_on(0, affinity)
        plan = self.plan(job, affinity)
        self.assertEqual((plan["flows"], plan["movable"]), (4, 0))
        self.assertNotIn("moves", plan)
        self.assertIn("4 flows of the job leave by NICs with several ports: by which of them a source "
                      "port leaves is not known (the choice does not follow from addresses and ports, "
                      "as where NICs bind queue pairs to ports), and they stay", plan["unknown"])


if __name__ == "__main__":
    unittest.main()
