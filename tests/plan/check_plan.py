#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`fabrictrace plan` on fabrics on paper: every path is one of its flow, and the fullest link carries
what it has to and no more. Runs in the build folder."""
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import paper  # noqa: E402

PROGRAM = os.environ.get("FABRICTRACE", "cli/fabrictrace")


class Plan(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, text):
        (self.folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        return str(self.folder / name)

    def run_plan(self, *words):
        done = subprocess.run([PROGRAM, "plan", *words], text=True, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        return done.returncode, done.stdout, done.stderr

    def plan(self, fabric, flows, *words, names=False, without=()):
        topology = self.write("t.yaml", fabric.yaml(without))
        rc, out, err = self.run_plan("--topology", topology, "--flows",
                                     self.write("f.csv", paper.csv(fabric, flows, names)),
                                     "--json", *words)
        self.assertEqual((rc, err), (0, ""))
        return [json.loads(line) for line in out.splitlines()]

    def test_permutations_never_collide(self):
        """Every leaf sends and receives as many flows as it has uplinks: one a link."""
        for n, seeds in ((4, 10), (8, 5), (16, 3), (32, 2)):
            fabric = paper.two_tiers(n, n, n)
            for seed in range(seeds):
                flows = paper.permutation(fabric, paper.seeded(seed))
                records = self.plan(fabric, flows)
                loads = paper.judge(fabric, flows, records)
                self.assertEqual(paper.fullest(fabric, loads), 1, (n, seed))
                self.assertEqual({r.get("flows") for r in records}, {1})

    def test_any_traffic_has_its_even_share_rounded_up(self):
        """At each leaf, in both directions, not only where it is worst."""
        for seed in range(12):
            rng = paper.seeded(seed)
            fabric = paper.two_tiers(rng.randint(2, 9), rng.randint(1, 9), rng.randint(1, 9),
                                     rng.choice((1, 1, 2, 3)))
            flows = paper.traffic(fabric, rng, rng.randint(1, 400))
            loads = paper.judge(fabric, flows, self.plan(fabric, flows, names=seed % 2 == 0))
            share = paper.even_share(fabric, flows)
            for (switch, port), rates in paper.between_switches(fabric, loads).items():
                leaf = switch if fabric.switches[switch] == "leaf" else \
                    fabric.links[switch, port][0]
                way = "up" if leaf == switch else "down"
                self.assertLessEqual(len(rates), share[leaf, way], (seed, switch, port))

    def test_three_tiers(self):
        """Permutations in full fabrics of pods with planes, and with superspines for all."""
        for mesh in (False, True):
            for seed in range(4):
                fabric = paper.three_tiers(4, 4, 4, 4, 4, mesh)
                flows = paper.permutation(fabric, paper.seeded(seed))
                loads = paper.judge(fabric, flows, self.plan(fabric, flows))
                self.assertEqual(paper.fullest(fabric, loads), 1, (mesh, seed))

    def test_two_planes(self):
        """Twice as many flows as either plane has uplinks; each port of a bonded NIC has its half."""
        for seed in range(4):
            fabric = paper.two_planes(4, 4, 4)
            flows = [f for i in (0, 1) for f in paper.permutation(fabric, paper.seeded(seed * 2 + i))]
            loads = paper.judge(fabric, flows, self.plan(fabric, flows))
            self.assertEqual(paper.fullest(fabric, loads), 1, seed)
            self.assertEqual({len(rates) for rates in loads.values()}, {1})

    def test_a_plane_with_a_link_less_is_still_used(self):
        """Both flows of a NIC have a port of their own, as long as its leaf has another uplink."""
        for port in ("up0", "up1"):
            for leaf in ("leafa1", "leafb1"):
                fabric = paper.two_planes(2, 2, 3)
                records = self.plan(fabric, [("h1-0", "h0-2", SPEED)] * 2, "--failed", f"{leaf}/{port}")
                self.assertEqual({r["hops"][0]["switch"] for r in records}, {"leafa1", "leafb1"})
                self.assertEqual({r["hops"][-1]["switch"] for r in records}, {"leafa0", "leafb0"})

    def test_rates_that_differ(self):
        """No more than the larger of two: twice the least possible; and far less in practice."""
        worst = 0
        for seed in range(6):
            rng = paper.seeded(seed)
            fabric = paper.two_tiers(6, 6, 6)
            flows = paper.traffic(fabric, rng, 150, lambda: int(rng.paretovariate(1.2) * 1e9) % SPEED)
            loads = paper.between_switches(fabric, paper.judge(fabric, flows,
                                                               self.plan(fabric, flows)))
            sums = {key: 0 for key in paper.even_share(fabric, flows)}
            for a, b, rate in flows:
                if paper.leaf_of(fabric, a) != paper.leaf_of(fabric, b):
                    sums[paper.leaf_of(fabric, a), "up"] += rate
                    sums[paper.leaf_of(fabric, b), "down"] += rate
            least = max(max(sums.values()) / 6, max(
                rate for a, b, rate in flows
                if paper.leaf_of(fabric, a) != paper.leaf_of(fabric, b)))
            ratio = max(sum(rates) for rates in loads.values()) / least
            worst = max(worst, ratio)
        self.assertLess(worst, 1.1)

    def test_slower_links_carry_less(self):
        fabric = paper.two_tiers(4, 4, 4)
        for n in range(4):
            fabric.speeds[f"leaf{n}", "up0-0"] = fabric.speeds["spine0", f"down{n}-0"] = SPEED // 4
        flows = [f for seed in range(8) for f in
                 paper.permutation(fabric, paper.seeded(seed), SPEED // 16)]
        loads = paper.between_switches(fabric, paper.judge(fabric, flows, self.plan(fabric, flows)))
        shares = [sum(rates) / fabric.speeds[link] for link, rates in loads.items()]
        # 32 flows of 1/16 over 3 1/4 links: 0.615 on each if they could be cut; with whole flows
        # 10 on a fast link, 2 on a slow one.
        self.assertLessEqual(max(shares), 0.6876)

    def test_the_least_is_what_the_fastest_link_carries(self):
        """One flow over a fabric whose links to spine 1 have half the speed of the others."""
        fabric = paper.two_tiers(2, 2, 1)
        for end, other in fabric.links.items():
            if "spine1" in (end[0], other[0]):
                fabric.speeds[end] = SPEED // 2
        rc, out, err = self.run_plan("--topology", self.write("t.yaml", fabric.yaml()), "--flows",
                                     self.write("f.csv", paper.csv(fabric, [("h0-0", "h1-0", SPEED // 2)], False)))
        self.assertEqual((rc, err), (0, ""))
        self.assertIn("the fullest link carries 50 % of its speed, 50 % at the least", out)

    def test_a_link_that_the_file_lacks(self):
        """One uplink less: that leaf's flows share, nobody else's do."""
        for seed in range(6):
            fabric = paper.two_tiers(8, 8, 8)
            flows = paper.permutation(fabric, paper.seeded(seed))
            lost = (("leaf3", "up2-0"), ("spine2", "down3-0"))
            loads = paper.judge(fabric, flows, self.plan(fabric, flows, without=lost), down=lost)
            crowded = {link for link, rates in paper.between_switches(fabric, loads).items()
                       if len(rates) > 1}
            self.assertLessEqual(len(crowded), 2, seed)
            self.assertEqual(paper.fullest(fabric, loads), 2)
            for switch, port in crowded:
                self.assertIn("leaf3", (switch, fabric.links[switch, port][0]))

    def test_only_what_failed_moves(self):
        """A fabric that is half full has room: the flows of the failed link move, and no other."""
        for seed in range(6):
            fabric = paper.two_tiers(8, 8, 4)
            flows = paper.permutation(fabric, paper.seeded(seed))
            before = self.plan(fabric, flows)
            previous = self.write("before.json", "\n".join(map(json.dumps, before)))
            lost = {("leaf3", "up2-0"), ("spine2", "down3-0")}
            over = [any({(h["switch"], h["in"]), (h["switch"], h["out"])} & lost
                        for h in r["hops"]) for r in before]
            if not any(over):
                continue
            for words, without in ((("--failed", "leaf3/up2-0"), ()), ((), lost)):
                after = self.plan(fabric, flows, "--previous", previous, *words, without=without)
                loads = paper.judge(fabric, flows, after, down=lost)
                self.assertEqual(paper.fullest(fabric, loads), 1)
                self.assertEqual([r["moved"] for r in after], over, seed)
                self.assertEqual([a["hops"] != b["hops"] for a, b in zip(before, after)], over)

    def test_a_full_fabric_moves_few(self):
        """Where every link is taken, others make room: the leaf of the failed link alone shares."""
        moved, anew = [], []
        for seed in range(6):
            fabric = paper.two_tiers(8, 8, 8)
            flows = paper.permutation(fabric, paper.seeded(seed))
            before = self.plan(fabric, flows)
            previous = self.write("before.json", "\n".join(map(json.dumps, before)))
            after = self.plan(fabric, flows, "--previous", previous, "--failed", "leaf3/up2-0")
            lost = {("leaf3", "up2-0"), ("spine2", "down3-0")}
            loads = paper.judge(fabric, flows, after, down=lost)
            for (switch, port), rates in paper.between_switches(fabric, loads).items():
                if len(rates) > 1:
                    self.assertIn("leaf3", (switch, fabric.links[switch, port][0]), seed)
            moved.append(sum(r["moved"] for r in after))
            # Without the previous plan nothing holds flows where they are but their order.
            other = random.Random(seed).sample(range(len(flows)), len(flows))
            fresh = self.plan(fabric, [flows[i] for i in other], "--failed", "leaf3/up2-0")
            anew.append(sum(before[i]["hops"] != r["hops"] for i, r in zip(other, fresh)))
        print(f"of 64 flows moved {sorted(moved)}, planned anew {sorted(anew)}")
        self.assertGreaterEqual(min(moved), 2)
        self.assertLessEqual(max(moved), 12)
        self.assertTrue(all(few < many for few, many in zip(moved, anew)), (moved, anew))

    def test_a_previous_plan_stays_as_it_is(self):
        fabric = paper.two_tiers(8, 8, 8)
        flows = paper.permutation(fabric, paper.seeded(1))
        before = self.plan(fabric, flows)
        previous = self.write("before.json", "\n".join(map(json.dumps, before)))
        after = self.plan(fabric, flows, "--previous", previous)
        self.assertEqual([r["hops"] for r in before], [r["hops"] for r in after])
        self.assertFalse(any(r["moved"] for r in after))

    def test_a_spine_that_failed(self):
        fabric = paper.two_tiers(8, 8, 7)
        flows = paper.permutation(fabric, paper.seeded(3))
        loads = paper.judge(fabric, flows, self.plan(fabric, flows, "--failed", "spine4"))
        self.assertEqual(paper.fullest(fabric, loads), 1)
        self.assertNotIn("spine4", {link[0] for link in loads})

    def test_flows_within_a_leaf_and_rails(self):
        fabric = paper.Fabric()
        fabric.switches.update({"leaf0": "leaf", "leaf1": "leaf", "spine0": "spine"})
        for n in (0, 1):
            fabric.link(f"leaf{n}", "up", "spine0", f"down{n}")
        for h in range(3):
            for rail in (0, 1):
                fabric.host(f"h{h}", f"10.{rail}.0.{h + 1}", [(f"leaf{rail}", f"host{h}")], rail)
        rc, out, err = self.run_plan(
            "--topology", self.write("t.yaml", fabric.yaml()), "--json", "--flows",
            self.write("f.csv", "dst,rate_bps,src\r\nh1, 4e9 ,h0\r\n\r\n# a comment\r\n"
                                '"h1",400,"h0"\n10.1.0.2,0,10.0.0.1\n'))
        self.assertEqual((rc, err), (0, ""))
        records = [json.loads(line) for line in out.splitlines()]
        hops = [[h["switch"] for h in r["hops"]] for r in records]
        # Rail 0 to rail 0, the next flow of the host rail 1 to rail 1; by address across.
        self.assertEqual(hops, [["leaf0"], ["leaf1"], ["leaf0", "spine0", "leaf1"]])
        self.assertEqual([r["rate_bps"] for r in records], [4000000000, 400, 0])
        self.assertEqual(records[0]["hops"], [{"switch": "leaf0", "in": "host0", "out": "host1"}])
        self.assertEqual([r["schema"] for r in records], ["fabrictrace.planned_flow.v1"] * 3)

    def test_text_for_a_person(self):
        fabric = paper.two_tiers(2, 2, 2)
        flows = [("h0-0", "h1-0", SPEED), ("h0-1", "h1-0", SPEED), ("h0-1", "h0-0", SPEED)]
        rc, out, err = self.run_plan("--topology", self.write("t.yaml", fabric.yaml()), "--flows",
                                     self.write("f.csv", paper.csv(fabric, flows)))
        self.assertEqual((rc, err), (0, ""))
        self.assertRegex(out, r"(?m)^10\.0\.0\.1 +10\.0\.1\.1 +400\.0 Gb/s +1 +leaf0 up\d-0 > spine\d")
        self.assertIn("3 flows: at most 1 on a link between switches; no placement has fewer\n", out)

    def test_bad_input_is_told_with_its_place(self):
        fabric = paper.two_tiers(2, 2, 2)
        good = paper.csv(fabric, [("h0-0", "h1-0", SPEED)])
        topology = self.write("t.yaml", fabric.yaml())
        for text, rc, message in (
            ("", 65, "f.csv:1:1: is empty"),
            ("src,dst\n", 65, "f.csv:1:8: 2 fields"),
            ("src,dst,rate\n", 65, "f.csv:1:9: the first line has to be src,dst,rate_bps"),
            ("src,src,rate_bps\n", 65, "f.csv:1:5: .*'src' is there twice"),
            (good + "h0-0,gpu99,1\n", 65, "f.csv:3:6: dst 'gpu99' is not a host"),
            (good + "10.9.9.9,h0-0,1\n", 65, "f.csv:3:1: src '10.9.9.9' is not a host"),
            (good + "h0-0,h0-0,1\n", 65, "f.csv:3:6: dst 'h0-0' is the source itself"),
            (good + "h0-0,h1-0\n", 65, "f.csv:3:10: 2 fields"),
            (good + "h0-0,h1-0,1,2\n", 65, "f.csv:3:13: more than 3 fields"),
            (good + "h0-0,h1-0,-1\n", 65, "f.csv:3:11: rate_bps '-1' is not a number"),
            (good + "h0-0,h1-0,nan\n", 65, "f.csv:3:11: rate_bps 'nan' is not a number"),
            (good + "h0-0,h1-0,0x10\n", 65, "f.csv:3:11: rate_bps '0x10' is not a number"),
            (good + "h0-0,h1-0,1e99\n", 65, "f.csv:3:11: rate_bps '1e99' is not a number"),
            (good + '"h0-0,h1-0,1\n', 65, "f.csv:3:1: a field in quotes"),
            (good.encode() + b"h0-0\0,h1-0,1\n", 65, "f.csv:3:5: a zero byte"),
        ):
            with self.subTest(text):
                got = self.run_plan("--topology", topology, "--flows", self.write("f.csv", text))
                self.assertEqual(got[:2], (rc, ""), got[2])
                self.assertRegex(got[2], message)
        flows = self.write("f.csv", good)
        self.assertEqual(self.run_plan("--topology", topology, "--flows", "/none")[0], 66)
        self.assertEqual(self.run_plan("--topology", "/none", "--flows", flows)[0], 66)
        self.assertEqual(self.run_plan("--topology", topology)[0], 64)
        got = self.run_plan("--topology", self.write("bad.yaml", "fabric: x\nlinks:\n  - {a: y}\n"),
                            "--flows", flows)
        self.assertEqual(got[:2], (65, ""))
        self.assertRegex(got[2], r"bad.yaml:3: key 'links\[0\]")
        got = self.run_plan("--topology", topology, "--flows", flows, "--failed", "leaf0/nope")
        self.assertEqual(got[0], 65)
        self.assertIn("--failed: 'leaf0/nope' is not a switch", got[2])
        got = self.run_plan("--topology", topology, "--flows", flows, "--previous",
                            self.write("p.json", '{"src":1}\n'))
        self.assertEqual(got[0], 65)
        self.assertIn("p.json:1: no planned flow", got[2])

    def test_no_way_is_told_with_its_flow(self):
        fabric = paper.two_tiers(2, 1, 1)
        flows = [("h0-0", "h1-0", 1)]
        topology = self.write("t.yaml", fabric.yaml())
        got = self.run_plan("--topology", topology, "--flows",
                            self.write("f.csv", paper.csv(fabric, flows)), "--failed", "spine0")
        self.assertEqual(got[:2], (65, ""))
        self.assertRegex(got[2], "f.csv:2: no path leads from '10.0.0.1' to '10.0.1.1'")

    def test_16384_gpus_take_seconds(self):
        """512 leaves, 32 spines; processor time, which other work on the machine does not count in."""
        fabric = paper.two_tiers(512, 32, 32)
        flows = paper.permutation(fabric, paper.seeded(7))
        topology = self.write("t.yaml", fabric.yaml())
        csv = self.write("f.csv", paper.csv(fabric, flows))
        before, start = os.times(), time.monotonic()
        rc, out, err = self.run_plan("--topology", topology, "--flows", csv, "--json")
        spent = os.times().children_user - before.children_user
        print(f"16384 flows, 512 x 32: {spent:.1f} s of processor time, "
              f"{time.monotonic() - start:.1f} s")
        self.assertEqual((rc, err), (0, ""))
        loads = paper.judge(fabric, flows, [json.loads(line) for line in out.splitlines()])
        self.assertEqual(paper.fullest(fabric, loads), 1)
        self.assertLess(spent, 30)
        # A link fails while every other is taken: its leaf alone shares, by long chains of moves.
        rc, out, err = self.run_plan("--topology", topology, "--flows", csv, "--json", "--failed",
                                     "leaf3/up2-0", "--previous", self.write("before.json", out))
        after = [json.loads(line) for line in out.splitlines()]
        loads = paper.judge(fabric, flows, after, down={("leaf3", "up2-0"), ("spine2", "down3-0")})
        for (switch, port), rates in paper.between_switches(fabric, loads).items():
            if len(rates) > 1:
                self.assertIn("leaf3", (switch, fabric.links[switch, port][0]))
        print(f"a link down: {sum(r['moved'] for r in after)} of 16384 flows moved")
        self.assertLess(sum(r["moved"] for r in after), 200)


SPEED = paper.SPEED

if __name__ == "__main__":
    unittest.main()
