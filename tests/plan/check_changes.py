#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`fabrictrace whatif --records` with one thing changed at a time: queue pairs, speeds, spines, what is down;
and the times of collectives of each kind. Every figure is worked out by hand beside it. Runs in the build
folder."""
import collections
import json
import math
import os
import pathlib
import socket
import struct
import subprocess
import tempfile
import unittest
import zlib

TOOL = os.environ.get("FABRICTRACE", "cli/fabrictrace")
GBPS = 10 ** 9
SPEED = 100 * GBPS  # of every link, and of NICs
START_MS, END_MS = 1700000000000, 1700000010000
HOSTS = 4  # at either leaf; host h of leaf l is rank l * HOSTS + h
SECOND = SPEED // 8  # bytes that take a second on a link of its own


def fabric(spines):
    text = f"fabric: changed\nspeed_bps: {SPEED}\nswitches:\n"
    text += "".join(f"  - {{name: leaf{x}}}\n" for x in range(2))
    text += "".join(f"  - {{name: spine{s}}}\n" for s in range(spines)) + "links:\n"
    text += "".join(f"  - {{a: leaf{x}, a_port: up{s}, b: spine{s}, b_port: down{x}}}\n"
                    for x in range(2) for s in range(spines)) + "hosts:\n"
    return text + "".join(
        f"  - {{name: h{x}-{h}, nics: [{{addresses: [{address(x * HOSTS + h)}], attach: "
        f"[{{switch: leaf{x}, port: p{h}}}]}}]}}\n" for x in range(2) for h in range(HOSTS))


def address(rank):
    return f"10.0.{rank // HOSTS}.{rank % HOSTS + 1}"


def path(src, dst, spine, gbps):
    a, b = src // HOSTS, dst // HOSTS
    out = {"in": f"p{src % HOSTS}", "out": f"up{spine}"}
    hops = [{"switch": f"leaf{a}", **out},
            {"switch": f"spine{spine}", "in": f"down{a}", "out": f"down{b}"},
            {"switch": f"leaf{b}", "in": f"up{spine}", "out": f"p{dst % HOSTS}"}]
    if a == b:
        hops = [{"switch": f"leaf{a}", "in": f"p{src % HOSTS}", "out": f"p{dst % HOSTS}"}]
    return {"schema": "fabrictrace.path.v1", "window_start_ms": START_MS, "window_end_ms": END_MS,
            "flow": {"src": address(src), "dst": address(dst), "sport": 50000 + src * 64 + dst, "dport": 4791,
                     "proto": 17}, "role": "data", "state": "resolved", "hops": hops,
            "rate_bps": int(gbps * GBPS), "comm_id": "c1", "src_rank": src, "dst_rank": dst}


def links(paths):
    """What each link between switches carries."""
    loads = {}
    for record in paths:
        for hop in record["hops"][:-1]:
            key = hop["switch"], hop["out"]
            loads[key] = loads.get(key, 0) + record["rate_bps"]
    for (switch, port), bps in loads.items():
        yield {"schema": "fabrictrace.link.v1", "window_start_ms": START_MS, "window_end_ms": END_MS,
               "switch": switch, "port": port, "bytes": bps * 10 // 8, "speed_bps": SPEED,
               "utilization": bps / SPEED}


def operation(op, algo, sends, took_s):
    """sends: {rank: {peer: bytes}}"""
    ranks = {*sends, *(peer for peers in sends.values() for peer in peers)}
    for rank, peers in sends.items():
        yield {"schema": "fabrictrace.collective.v1", "comm_id": "c1", "op": op, "rank": rank,
               "ranks": len(ranks), "algo": algo, "sequence": 1, "start_ms": START_MS + 1000,
               "time_ms": START_MS + 1000 + int(1000 * took_s), "duration_us": int(1e6 * took_s),
               # Over two channels, as NCCL has them.
               "peers": [{"peer": peer, "channel": channel, "sent_bytes": size // 2}
                         for peer, size in peers.items() for channel in (0, 1)]}


class Tool(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    fabric = staticmethod(fabric)

    def run_tool(self, spines, paths, *words, more=()):
        (self.folder / "t.yaml").write_text(self.fabric(spines))
        (self.folder / "r.ndjson").write_text(
            "".join(json.dumps(r) + "\n" for r in [*paths, *links(paths), *more]))
        done = subprocess.run([TOOL, "whatif", "--topology", self.folder / "t.yaml", "--records",
                               self.folder / "r.ndjson", "--json", *words], text=True, capture_output=True)
        return done.returncode, done.stdout, done.stderr

    def compare(self, *args, **more):
        rc, out, err = self.run_tool(*args, **more)
        self.assertEqual((rc, err), (0, ""))
        return {r["figures"]["policy"]: r for r in map(json.loads, out.splitlines())}

    def figures(self, policy, *args):
        return self.compare(*args, "--policy", policy)[policy]["figures"]


class Changes(Tool):
    def test_queue_pairs(self):
        """A connection of k queue pairs, of which each chooses one of two spines: B of k go by the first, and
        the fuller link carries 1/2 + E|B - k/2| / k of the demand."""
        flow = [path(0, 4, 0, 100)]
        for k, known in ((1, 1), (2, 0.75), (4, 0.6875), (8, 0.63671875)):
            mean = sum(math.comb(k, b) * max(b, k - b) for b in range(k + 1)) / 2 ** k / k
            self.assertAlmostEqual(mean, known)
            load = self.figures("ecmp", 2, flow, "--draws", "2000", "--pairs", str(k))["load_most"]
            self.assertAlmostEqual(load["mean"], mean, delta=0.012)
            self.assertEqual((load["min"], load["max"]), (1 if k == 1 else 0.5, 1))
        # A plan of two queue pairs or more has them on both.
        self.assertEqual(self.figures("plan", 2, flow, "--pairs", "2")["load_most"]["max"], 0.5)

    def test_speed_of_all_links(self):
        """Two flows on one of two links. Each link 40 Gb/s: alone on it a flow has 40. Each 400: both have
        what their NICs send, however they are hashed."""
        flows = [path(0, 4, 0, 50), path(1, 5, 0, 50)]
        self.assertEqual(self.figures("plan", 2, flows)["slowest_rate_bps"], 100 * GBPS)
        slow = self.compare(2, flows, "--fabric-speed", str(40 * GBPS), "--draws", "50")
        self.assertEqual(slow["plan"]["figures"]["slowest_rate_bps"], 40 * GBPS)
        self.assertEqual(slow["ecmp"]["figures"]["slowest_rate_bps"], 20 * GBPS)
        fast = self.compare(2, flows, "--fabric-speed", str(400 * GBPS), "--draws", "50")
        for policy in ("plan", "ecmp", "static", "greedy", "spray"):
            self.assertEqual(fast[policy]["figures"]["slowest_rate_bps"], 100 * GBPS)
        # What was observed stays what it was.
        self.assertEqual(fast["observed"]["figures"]["slowest_rate_bps"], 50 * GBPS)

    def test_speed_of_one_link(self):
        """The link from leaf 0 to spine 1 has 25 Gb/s. Who counts flows alone puts one there, which has 25; a
        plan puts both on the other, for 50 each. Named from either end."""
        flows = [path(0, 4, 0, 50), path(1, 5, 0, 50)]
        for name in ("leaf0/up1", "spine1/down0"):
            found = self.compare(2, flows, "--link-speed", f"{name}={25 * GBPS}")
            self.assertEqual(found["greedy"]["figures"]["slowest_rate_bps"], 25 * GBPS)
            self.assertEqual(found["plan"]["figures"]["slowest_rate_bps"], 50 * GBPS)
            self.assertEqual(found["observed"]["figures"]["slowest_rate_bps"], 50 * GBPS)
            self.assertNotIn("moves", found["plan"]["figures"])
        # Two links, and over the speed of all of them.
        found = self.compare(2, flows, "--fabric-speed", str(10 * GBPS), "--link-speed",
                             f"leaf0/up0={200 * GBPS},spine0/down1={200 * GBPS}")
        self.assertEqual(found["plan"]["figures"]["slowest_rate_bps"], 100 * GBPS)
        self.assertEqual(found["greedy"]["figures"]["slowest_rate_bps"], 10 * GBPS)
        for value, status, said in (
                ("leaf0/up9=1000", 65, "'leaf0/up9' is not a link between switches"),
                ("leaf0/p0=1000", 65, "'leaf0/p0' is not a link between switches"),
                ("leaf0=1000", 65, "'leaf0' is not a link between switches"),
                ("leaf0/up1", 65, "'leaf0/up1' has no speed"),
                ("leaf0/up1=", 65, "'leaf0/up1=' has no speed"),
                ("leaf0/up1=0", 65, "'leaf0/up1=0' has no speed"),
                ("leaf0/up1=fast", 65, "'leaf0/up1=fast' has no speed")):
            rc, out, err = self.run_tool(2, flows, "--link-speed", value)
            self.assertEqual((rc, out), (status, ""), err)
            self.assertIn(said, err)

    def test_oversubscribed(self):
        """Four flows of 100 Gb/s from leaf to leaf. Over two spines, 2:1, none can have more than a half, by
        whatever policy; with two spines more, 1:1, a plan and spraying give each all. And back."""
        flows = [path(i, 4 + i, i // 2, 50) for i in range(4)]
        before = self.compare(2, flows, "--draws", "50")
        after = self.compare(2, flows, "--draws", "50", "--add-spines", "2")
        for policy in ("plan", "spray"):
            self.assertAlmostEqual(before[policy]["figures"]["slowest_share"]["max"], 0.5, 6)
            self.assertAlmostEqual(after[policy]["figures"]["slowest_share"]["min"], 1, 6)
        for policy in ("ecmp", "greedy", "static"):
            self.assertLessEqual(before[policy]["figures"]["slowest_share"]["max"], 0.5 + 1e-6)
        self.assertGreater(after["ecmp"]["figures"]["slowest_share"]["max"], 0.5)
        # Up and down, four links each instead of two.
        self.assertEqual([x["links"] for x in before["plan"]["figures"]["layers"]], [4, 4])
        self.assertEqual([x["links"] for x in after["plan"]["figures"]["layers"]], [8, 8])
        flows = [path(i, 4 + i, i, 100) for i in range(4)]
        back = self.compare(4, flows, "--failed", "spine2,spine3")
        for policy in ("plan", "spray"):
            self.assertAlmostEqual(back[policy]["figures"]["slowest_share"]["max"], 0.5, 6)
        self.assertEqual(back["observed"]["figures"]["slowest_share"]["min"], 1)

    def test_one_spine_more(self):
        """Three flows over two spines: two share a link. With a third spine none does."""
        flows = [path(0, 4, 0, 50), path(1, 5, 0, 50), path(2, 6, 1, 100)]
        self.assertEqual(self.figures("plan", 2, flows)["flows_most"]["max"], 2)
        self.assertEqual(self.figures("plan", 2, flows, "--add-spines", "1")["flows_most"]["max"], 1)
        self.assertEqual(self.figures("plan", 2, flows, "--add-spines", "1", "--failed", "spine1")
                         ["flows_most"]["max"], 2)

    def test_a_link_and_a_switch_down(self):
        """Of three spines one link, which leaves two paths for three flows out of leaf 0; then a spine; then
        all but one."""
        flows = [path(i, 4 + i, i, 100) for i in range(3)]
        for failed, most, share in (("leaf0/up2", 2, 0.5), ("spine1/down1", 2, 0.5), ("spine0", 2, 0.5),
                                    ("spine0,spine2", 3, 1 / 3)):
            found = self.figures("plan", 3, flows, "--failed", failed)
            self.assertEqual(found["flows_most"]["max"], most, failed)
            self.assertAlmostEqual(found["slowest_share"]["max"], share, 5)

    def test_hashes_know_of_links_that_are_down_further_on(self):
        """The link from spine 1 to leaf 1 is down: leaf 0 takes spine 1 out of its choice, whatever the hash,
        and the three flows share what is left."""
        flows = [path(i, 4 + i, i, 100) for i in range(3)]
        for policy in ("crc16", "crc32", "xor"):
            found = self.figures(policy, 3, flows, "--failed", "spine1/down1", "--draws", "200")
            self.assertEqual((found["flows_most"]["min"], found["flows_most"]["max"]), (2, 3), policy)
            alone = self.figures(policy, 2, flows[:2], "--failed", "spine1/down1")
            self.assertEqual(alone["flows_most"]["min"], 2, policy)


class TwoLeaves(Tool):
    """Each NIC on the leaf of its rack in plane 0 and on that in plane 1, which have a spine each. Two flows
    from rack to rack were observed on plane 0."""

    @staticmethod
    def fabric(_):
        ends = [(p, x) for p in range(2) for x in range(2)]
        text = f"fabric: planes\nspeed_bps: {SPEED}\nswitches:\n"
        text += "".join(f"  - {{name: leaf{p}{x}}}\n" for p, x in ends)
        text += "".join(f"  - {{name: spine{p}}}\n" for p in range(2)) + "links:\n"
        text += "".join(f"  - {{a: leaf{p}{x}, a_port: up, b: spine{p}, b_port: down{x}}}\n" for p, x in ends)
        return text + "hosts:\n" + "".join(
            f"  - {{name: h{x}-{h}, nics: [{{addresses: [{address(x * HOSTS + h)}], attach: "
            f"[{{switch: leaf0{x}, port: p{h}}}, {{switch: leaf1{x}, port: p{h}}}]}}]}}\n"
            for x in range(2) for h in range(HOSTS))

    def flows(self):
        for src, dst in ((0, 4), (1, 5)):
            record = path(src, dst, 0, 50)
            for hop, name in zip(record["hops"], ("leaf00", "spine0", "leaf01")):
                hop["switch"] = name
            record["hops"][0]["out"] = record["hops"][2]["in"] = "up"
            yield record

    def test_a_leaf_is_down(self):
        """By whatever hash of switches, flows are sent by the other port of their NICs then; and where the
        leaf is there but leads nowhere. Both are on the one way of plane 1."""
        for failed in ("leaf00", "leaf00/up", "spine0", "leaf01"):
            for policy in ("crc16", "crc32", "xor", "static", "plan"):
                found = self.figures(policy, 0, list(self.flows()), "--failed", failed)
                self.assertEqual((found["flows_most"]["max"], found["moves"]["max"]), (2, 2), (failed, policy))
                self.assertIn(found["hottest"]["switch"], ("leaf10", "spine1"), (failed, policy))

    def test_the_link_of_a_nic_is_down(self):
        """Its flow alone is on plane 1."""
        for policy in ("crc16", "crc32", "xor"):
            found = self.figures(policy, 0, list(self.flows()), "--failed", "leaf00/p0")
            self.assertEqual((found["flows_most"]["max"], found["moves"]["max"]), (1, 1), policy)

    def test_both_leaves_are_down(self):
        for policy in ("crc32", "static"):
            rc, _, err = self.run_tool(0, list(self.flows()), "--failed", "leaf00,spine1", "--policy", policy)
            self.assertEqual(rc, 65)
            self.assertIn("no path left", err)


class OneLeaf(Tool):
    """A NIC on the second leaf by four ports, as one aggregate; four flows to it, of which each port had one."""

    @staticmethod
    def fabric(spines):
        attach = ", ".join(f"{{switch: leaf1, port: p{p}}}" for p in range(HOSTS))
        lines = [line for line in fabric(spines).splitlines(keepends=True) if "switch: leaf1" not in line]
        return "".join(lines) + f"  - {{name: wide, nics: [{{addresses: [{address(HOSTS)}], attach: [{attach}]}}]}}\n"

    def test_the_last_switch_chooses(self):
        """By its hash, among the ports of the NIC that are up: the most flows that one has are worked out here."""
        flows, hashes = [], []
        for number in range(HOSTS):
            record = path(number, HOSTS, 0, 50)
            record["hops"][2]["out"] = f"p{number}"
            f = record["flow"]
            key = socket.inet_aton(f["src"]) + socket.inet_aton(f["dst"]) + struct.pack(">HHB", f["sport"], 4791, 17)
            hashes.append(zlib.crc32(key))
            flows.append(record)
        for ports, words in ((4, ()), (3, ("--failed", "leaf1/p2")), (2, ("--failed", "leaf1/p0,leaf1/p3"))):
            most = max(collections.Counter(h % ports for h in hashes).values())
            self.assertLess(most, HOSTS)
            # Links between switches have room for all, and each flow wants a port of its own.
            found = self.figures("crc32", 2, flows, "--draws", "1", "--fabric-speed", str(1000 * GBPS), *words)
            self.assertAlmostEqual(found["slowest_share"]["max"], 1 / most, 5)


class Collectives(Tool):
    """Ranks 0 and 1 are on leaf 0, 4 and 5 on leaf 1. Each takes the time of its slowest transfer."""

    RANKS = 0, 1, 4, 5

    def times(self, spines, paths, records, *words):
        found = self.compare(spines, paths, *words, more=records)
        return {policy: r["times"][0]["time_us"]["mean"] / 1e6 for policy, r in found.items()
                if policy != "measured"}

    def test_all_to_all(self):
        """Each rank sends a second's worth to each other. Its NIC needs 3 s for that. The four flows from leaf
        to leaf need 4 s where one spine has them all, and 2, so no more than the NIC's 3, on two."""
        sends = {a: {b: SECOND for b in self.RANKS if a != b} for a in self.RANKS}
        paths = [path(a, b, 0, 25) for a in self.RANKS for b in self.RANKS if a != b]
        times = self.times(2, paths, operation("AllToAll", "", sends, 4))
        self.assertAlmostEqual(times["observed"], 4, 4)
        self.assertAlmostEqual(times["plan"], 3, 4)
        self.assertAlmostEqual(times["spray"], 3, 4)

    def test_tree(self):
        """A tree is a pipeline: all of its edges are busy at once. 1 - 0 - 4 - 5: the middle ranks send to two,
        a second's worth each: 2 s, whatever spine the one flow takes."""
        sends = {1: {0: SECOND}, 0: {1: SECOND, 4: SECOND}, 4: {0: SECOND, 5: SECOND}, 5: {4: SECOND}}
        paths = [path(a, b, 0, 50) for a, peers in sends.items() for b in peers]
        times = self.times(2, paths, operation("AllReduce", "TREE", sends, 2))
        self.assertAlmostEqual(times["observed"], 2, 4)
        self.assertAlmostEqual(times["plan"], 2, 4)

    def test_ring(self):
        """0 - 4 - 1 - 5 - 0: two flows up from either leaf, on one spine 2 s, on two 1 s; in rounds or at once
        is the same where nothing else runs."""
        ring = [0, 4, 1, 5]
        sends = {a: {b: SECOND} for a, b in zip(ring, ring[1:] + ring[:1])}
        paths = [path(a, b, 0, 50) for a, peers in sends.items() for b in peers]
        times = self.times(2, paths, operation("AllReduce", "RING", sends, 2))
        self.assertAlmostEqual(times["observed"], 2, 4)
        self.assertAlmostEqual(times["plan"], 1, 4)

    def test_rounds_wait(self):
        """The same ring where one edge has the half of a link, and all others a whole one: each of its rounds
        waits for that edge, so all take its time."""
        ring = [0, 4, 1, 5]
        sends = {a: {b: SECOND} for a, b in zip(ring, ring[1:] + ring[:1])}
        paths = [path(0, 4, 0, 50), path(4, 1, 0, 50), path(1, 5, 1, 50), path(5, 0, 1, 50)]
        # A flow of no collective takes half of the link down to leaf 0 by which 4 sends to 1.
        other = {**path(6, 2, 0, 50)}
        del other["comm_id"], other["src_rank"], other["dst_rank"]
        times = self.times(2, [*paths, other], operation("AllReduce", "RING", sends, 2))
        self.assertAlmostEqual(times["observed"], 2, 4)


if __name__ == "__main__":
    unittest.main()
