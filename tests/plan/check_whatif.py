#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`fabrictrace whatif --topology --flows`: how flows fare under hashing, static routes, greedy
placement, a plan and spraying, against what is known of random permutations and worked examples.
Runs in the build folder."""
import collections
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent),
                str(pathlib.Path(__file__).resolve().parents[1])]
import paper  # noqa: E402
import terminal  # noqa: E402

PROGRAM = os.environ.get("FABRICTRACE", "cli/fabrictrace")
SPEED = paper.SPEED
POLICIES = ["ecmp", "static", "rail", "greedy", "plan", "spray", "flowlet"]


class Whatif(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_whatif(self, fabric, flows, *words):
        (self.folder / "t.yaml").write_text(fabric.yaml())
        (self.folder / "f.csv").write_text(
            paper.csv(fabric, flows, names="." in flows[0][0]))
        done = subprocess.run([PROGRAM, "whatif", "--topology", str(self.folder / "t.yaml"),
                               "--flows", str(self.folder / "f.csv"), *words], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        return done.returncode, done.stdout, done.stderr

    def compare(self, fabric, flows, *words):
        rc, out, err = self.run_whatif(fabric, flows, "--json", *words)
        self.assertEqual((rc, err), (0, ""))
        records = [json.loads(line) for line in out.splitlines()]
        self.assertEqual({r["schema"] for r in records}, {"fabrictrace.policy.v1"})
        return {r["policy"]: r for r in records}

    # Mean of the fullest link over some random permutations without local pairs, as others found it:
    # n x n x n, hashed and greedily placed; a plan has 1.
    KNOWN = {4: (2.80, 1.43), 8: (4.00, 2.00), 16: (4.85, 2.00), 32: (6.07, 2.00)}

    def test_random_permutations(self):
        for n, (hashed, greedy) in self.KNOWN.items():
            fabric = paper.two_tiers(n, n, n)
            runs = {4: 40, 8: 12, 16: 6, 32: 2}[n]
            sums, drawn = dict.fromkeys(POLICIES, 0), 0
            for seed in range(runs):
                flows = paper.permutation(fabric, paper.seeded(seed))
                for name, record in self.compare(fabric, flows, "--draws", "20").items():
                    sums[name] += record["flows_most"]["mean"] / runs
                drawn += self.draw(flows, fabric, n, paper.seeded(seed + 1000)) / runs
            print(f"{n} x {n} x {n}: " + ", ".join(f"{k} {v:.2f}" for k, v in sums.items()))
            self.assertAlmostEqual(sums["plan"], 1, 9)
            # Spraying: each link its share of every flow.
            self.assertAlmostEqual(sums["spray"], 1, 9)
            # By this test's own draws; and by those of others, which are of few permutations.
            self.assertAlmostEqual(sums["ecmp"], drawn, delta=0.25)
            self.assertAlmostEqual(sums["ecmp"], hashed, delta=0.5)
            self.assertAlmostEqual(sums["greedy"], greedy, delta=0.3 if n == 4 else 0.01)

    @staticmethod
    def draw(flows, fabric, spines, rng, draws=60):
        """Mean of the fullest link when each flow chooses a spine at random."""
        total = 0
        for _ in range(draws):
            loads = collections.Counter()
            for a, b, _ in flows:
                spine = rng.randrange(spines)
                loads[paper.leaf_of(fabric, a), spine, "up"] += 1
                loads[paper.leaf_of(fabric, b), spine, "down"] += 1
            total += max(loads.values())
        return total / draws

    def test_figures_of_one_case(self):
        """Two leaves, two spines, two flows: hashed they share a link in half of the draws."""
        fabric = paper.two_tiers(2, 2, 2)
        flows = [("h0-0", "h1-0", SPEED), ("h0-1", "h1-1", SPEED)]
        records = self.compare(fabric, flows, "--draws", "400")
        self.assertEqual(list(records), POLICIES)
        ecmp, plan = records["ecmp"], records["plan"]
        self.assertEqual((ecmp["draws"], plan["draws"]), (400, 1))
        self.assertEqual(ecmp["flows_most"]["min"], 1)
        self.assertEqual(ecmp["flows_most"]["max"], 2)
        self.assertAlmostEqual(ecmp["flows_most"]["mean"], 1.5, delta=0.1)
        self.assertEqual(ecmp["slowest_share"]["min"], 0.5)
        self.assertEqual(ecmp["slowest_rate_bps"], SPEED // 2)
        self.assertEqual(ecmp["hottest_load"], 2)
        self.assertIn(ecmp["hottest"]["switch"], fabric.switches)
        layer = {layer["name"]: layer for layer in ecmp["layers"]}
        self.assertEqual(set(layer), {"leaf/up", "leaf/down"})
        # Both on one of two links is FIM 100 %; one on each 0.
        self.assertEqual((layer["leaf/up"]["fim"]["min"], layer["leaf/up"]["fim"]["max"]), (0, 100))
        self.assertEqual(ecmp["collisions"]["max"], 2)
        self.assertEqual(plan["flows_most"], {"mean": 1, "min": 1, "max": 1})
        self.assertEqual(plan["collisions"]["max"], 0)
        self.assertEqual(plan["slowest_share"]["min"], 1)
        self.assertEqual([layer["fim"]["max"] for layer in plan["layers"]], [0, 0])

    def test_draws_repeat(self):
        fabric = paper.two_tiers(4, 4, 4)
        flows = paper.permutation(fabric, paper.seeded(5))
        first = self.run_whatif(fabric, flows, "--json")
        self.assertEqual(first, self.run_whatif(fabric, flows, "--json"))

    def test_a_link_less(self):
        """Of three spines one is down: nothing goes there, and three flows share two links."""
        fabric = paper.two_tiers(2, 3, 3)
        flows = [(f"h0-{i}", f"h1-{i}", SPEED) for i in range(3)]
        records = self.compare(fabric, flows, "--failed", "spine1")
        for name in ("plan", "greedy"):
            self.assertEqual(records[name]["flows_most"]["max"], 2)
            self.assertEqual(records[name]["slowest_share"]["max"], 0.5)
        self.assertAlmostEqual(records["spray"]["slowest_share"]["max"], 2 / 3, 5)
        self.assertEqual(records["spray"]["layers"][0]["links"], 4)

    def test_a_link_that_is_down_is_no_sibling(self):
        """Two flows on each link that is left: none could take another one."""
        fabric = paper.two_tiers(2, 3, 4)
        flows = [(f"h0-{i}", f"h1-{i}", SPEED) for i in range(4)]
        records = self.compare(fabric, flows, "--failed", "spine1", "--policy", "plan,spray")
        for name in ("plan", "spray"):
            self.assertEqual(records[name]["flows_most"]["max"], 2)
            self.assertEqual(records[name]["collisions"]["max"], 0)

    def test_a_link_that_leads_nowhere_is_no_sibling(self):
        """Three spines, one of which lost its link to leaf 2: what leaf 0 sends there cannot take its link to that
        spine, and what leaf 2 sends to leaf 0 does not come by it. To leaf 1 it could."""
        fabric = paper.two_tiers(3, 3, 4)
        for a, b in ((0, 2), (2, 0)):
            flows = [(f"h{a}-{i}", f"h{b}-{i}", SPEED) for i in range(4)]
            records = self.compare(fabric, flows, "--failed", "leaf2/up1-0", "--policy", "plan,greedy,spray")
            for name in ("plan", "greedy", "spray"):
                self.assertEqual((records[name]["flows_most"]["max"], records[name]["collisions"]["max"]), (2, 0))
        # Of two spines, with one flow to leaf 1: of three flows on a link one could take the other.
        fabric = paper.two_tiers(3, 2, 4)
        flows = [(f"h0-{i}", f"h2-{i}", SPEED) for i in range(2)]
        for more, collisions in (([], 0), ([("h0-2", "h2-2", SPEED), ("h0-3", "h1-3", SPEED)], 0)):
            plan = self.compare(fabric, flows + more, "--failed", "leaf2/up1-0", "--policy", "plan")["plan"]
            self.assertEqual(plan["collisions"]["max"], collisions)
        static = self.compare(fabric, [("h0-0", "h2-0", SPEED), ("h0-2", "h1-0", SPEED)], "--failed", "leaf2/up1-0",
                              "--policy", "static")["static"]
        self.assertEqual((static["flows_most"]["max"], static["collisions"]["max"]), (2, 1))

    def test_a_switch_chooses_among_its_links(self):
        """From spine0-0 one superspine is left of four. Its leaf sends it half of the flows all the same, though only
        one path of five goes there."""
        fabric = paper.three_tiers(2, 1, 2, 4, 64)
        flows = [(f"h0-0-{i}", f"h1-0-{i}", SPEED // 64) for i in range(64)]
        failed = ",".join(f"spine0-0/up{i}" for i in (1, 2, 3))
        ecmp = self.compare(fabric, flows, "--failed", failed, "--policy", "ecmp", "--draws", "200")["ecmp"]
        up = next(layer for layer in ecmp["layers"] if layer["name"] == "leaf/up")
        # Of 64 in two halves the larger has 32 and 0.4 times their root more, which is their FIM as well.
        self.assertAlmostEqual(up["fim"]["mean"], 10, delta=1.5)
        self.assertAlmostEqual(ecmp["flows_most"]["mean"], 35.2, delta=0.6)

    def test_parts_add_up_to_whole_flows(self):
        """By halves and thirds two flows on each of two links into leaf 1, whatever their rounding, and one
        on the third."""
        fabric = paper.two_tiers(3, 3, 3)
        flows = [(f"h{leaf}-{i}", f"h1-{i}", SPEED) for leaf, i in
                 ((0, 0), (2, 0), (2, 1), (0, 1), (2, 2))]
        spray = self.compare(fabric, flows, "--policy", "spray", "--failed", "leaf0/up2-0")["spray"]
        self.assertEqual((spray["flows_most"]["max"], spray["collisions"]["max"]), (2, 2))

    def test_a_sprayed_flow_is_one_to_its_nic(self):
        """The NIC of h0-0 sends one flow by two spines and one within its leaf: a half each."""
        fabric = paper.two_tiers(2, 2, 2)
        flows = [("h0-0", "h1-0", SPEED), ("h0-0", "h0-1", SPEED)]
        spray = self.compare(fabric, flows, "--policy", "spray")["spray"]
        self.assertEqual(spray["slowest_share"], {"mean": 0.5, "min": 0.5, "max": 0.5})

    def test_the_slowest_path_limits_a_sprayed_flow(self):
        """Over two spines, the links of one of which have a quarter of the speed: twice a quarter."""
        fabric = paper.two_tiers(2, 2, 1)
        for end, other in fabric.links.items():
            if "spine1" in (end[0], other[0]):
                fabric.speeds[end] = SPEED // 4
        spray = self.compare(fabric, [("h0-0", "h1-0", SPEED)], "--policy", "spray")["spray"]
        self.assertEqual((spray["slowest_share"]["max"], spray["slowest_rate_bps"]), (0.5, SPEED // 2))

    def test_static_and_rail_routes(self):
        """Four leaves of three NICs under four spines; the i-th NIC of leaf 0 sends to the i-th of leaf
        i + 1. These are the NICs 3, 7 and 11 of the fabric, which static routes send over spine 3, and
        the first, second and third of their leaves, which rail-aligned ones send over spines 0 to 2."""
        fabric = paper.two_tiers(4, 4, 3)
        flows = [(f"h0-{i}", f"h{i + 1}-{i}", SPEED) for i in range(3)]
        records = self.compare(fabric, flows, "--policy", "static,rail")
        self.assertEqual(records["static"]["flows_most"]["max"], 3)
        self.assertAlmostEqual(records["static"]["slowest_share"]["max"], 1 / 3, 5)
        self.assertEqual(records["rail"]["flows_most"]["max"], 1)
        self.assertEqual(records["rail"]["slowest_share"]["max"], 1)
        # The first NIC of each leaf is behind the same spine: four such flows share it upwards.
        flows = [(f"h0-{i}", f"h{i + 1}-0", SPEED) for i in range(3)]
        records = self.compare(fabric, flows, "--policy", "static,rail")
        self.assertEqual(records["static"]["flows_most"]["max"], 1)
        self.assertEqual(records["rail"]["flows_most"]["max"], 3)

    def test_rail_routes_stay_without_a_nic(self):
        """The second NIC of leaf 1 is the second, whether the first one is down or not."""
        fabric = paper.two_tiers(2, 4, 3)
        for words in ([], ["--failed", "leaf1/host0"], ["--failed", "leaf1/host0,leaf0/host1"]):
            rail = self.compare(fabric, [("h0-0", "h1-1", SPEED)], "--policy", "rail", *words)["rail"]
            self.assertEqual(rail["hottest"], {"switch": "leaf0", "port": "up1-0"})

    def test_rails_count_before_hosts(self):
        """Two hosts of two NICs at each leaf, rail 1 of each named first: whatever comes on rail 0 for
        either host takes a path of its own, and so does rail 1, over as many spines."""
        fabric = paper.two_tiers(2, 4, 0)
        for leaf in range(2):
            for host in range(2):
                for rail in (1, 0):
                    fabric.host(f"g{leaf}-{host}", f"10.1.{leaf}.{host * 2 + rail + 1}",
                                [(f"leaf{leaf}", f"n{host}-{rail}")], rail)
        to = {(0, 0): 0, (1, 0): 1, (0, 1): 2, (1, 1): 3}  # host and rail: the place at the leaf
        for (host, rail), place in to.items():
            flows = [("10.1.0.1", f"10.1.1.{host * 2 + rail + 1}", SPEED)]
            hottest = self.compare(fabric, flows, "--policy", "rail")["rail"]["hottest"]
            self.assertEqual(hottest["switch"], "leaf0")
            self.assertEqual(hottest["port"], f"up{place}-0")

    def test_greedy_looks_at_both_ports_of_a_nic(self):
        """Two flows from one NIC on two planes, and two to one: a port of it each."""
        fabric = paper.two_planes(2, 4, 3)
        for flows in ([("h0-0", "h1-0", SPEED), ("h0-0", "h1-1", SPEED)],
                      [("h0-0", "h1-0", SPEED), ("h0-1", "h1-0", SPEED)]):
            greedy = self.compare(fabric, flows, "--policy", "greedy")["greedy"]
            self.assertEqual(greedy["slowest_share"]["max"], 1)

    def test_spraying_by_packet_and_by_flowlet(self):
        """One flow over two spines. By packet each link carries half of it, always; 16 flowlets on a
        random spine each: the fuller link carries 1/2 + E|B - 8| / 16 of it, B binomial of 16 and 1/2,
        which is 0.5982; one draw never differs from sixteenths."""
        fabric = paper.two_tiers(2, 2, 1)
        records = self.compare(fabric, [("h0-0", "h1-0", SPEED)], "--policy", "spray,flowlet",
                               "--draws", "600")
        spray, flowlet = records["spray"], records["flowlet"]
        self.assertEqual((spray["draws"], flowlet["draws"]), (1, 600))
        self.assertEqual((spray["paths"], flowlet["paths"]), (2, 2))
        self.assertEqual(spray["load_most"], {"mean": 0.5, "min": 0.5, "max": 0.5})
        mean = sum(math.comb(16, b) * max(b, 16 - b) for b in range(17)) / 2**16 / 16
        self.assertAlmostEqual(mean, 0.5982, 4)
        self.assertAlmostEqual(flowlet["load_most"]["mean"], mean, delta=0.015)
        self.assertEqual(flowlet["load_most"]["min"], 0.5)
        self.assertEqual(flowlet["load_most"]["max"] * 16 % 1, 0)
        # Of one path alone all flowlets are on it.
        records = self.compare(fabric, [("h0-0", "h1-0", SPEED)], "--policy", "flowlet", "--spray", "1")
        self.assertEqual(records["flowlet"]["load_most"], {"mean": 1, "min": 1, "max": 1})

    def test_the_one_who_chooses(self):
        fabric = paper.two_tiers(2, 2, 2)
        flows = [("h0-0", "h1-0", SPEED)]
        self.assertEqual(list(self.compare(fabric, flows, "--policy", "spray,plan")),
                         ["plan", "spray"])
        rc, out, err = self.run_whatif(fabric, flows, "--policy", "magic")
        self.assertEqual((rc, out), (64, ""))
        self.assertIn("there is no policy 'magic'", err)
        rc, out, err = self.run_whatif(fabric, flows, "--failed", "spine0,spine1")
        self.assertEqual((rc, out), (65, ""))
        self.assertIn("a flow has no path left", err)
        rc, out, err = self.run_whatif(fabric, flows)
        self.assertEqual((rc, err), (0, ""))
        self.assertRegex(out, r"(?m)^POLICY .* MOST FLOWS .*\n(ecmp .*\n)(.*\n){6}\Z")

    def on_terminal(self, *words):
        """What a command says on a terminal while its answer goes elsewhere."""
        rc, said = terminal.written(lambda end: subprocess.Popen(
            [PROGRAM, *words], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=end))
        self.assertEqual(rc, 0, said)
        return said

    def test_progress_is_shown(self):
        """How far it is, on a terminal, and the line is clear in the end; elsewhere nothing."""
        fabric = paper.two_tiers(4, 4, 4)
        flows = paper.permutation(fabric, paper.seeded(1))
        self.assertEqual(self.run_whatif(fabric, flows, "--draws", "3")[2], "")
        files = "--topology", str(self.folder / "t.yaml"), "--flows", str(self.folder / "f.csv")
        said = self.on_terminal("whatif", *files, "--draws", "3")
        for text in ("whatif: ecmp, draw 1", "whatif: ecmp, draw 3", "whatif: plan, draw 1"):
            self.assertIn(text, said)
        self.assertTrue(said.endswith("\r\x1b[K"), said)
        said = self.on_terminal("plan", *files)
        self.assertIn("plan: 16 of 16 flows", said)
        self.assertTrue(said.endswith("\r\x1b[K"), said)

    def test_a_hundred_draws_of_16384_flows(self):
        fabric = paper.two_tiers(512, 32, 32)
        flows = paper.permutation(fabric, paper.seeded(7))
        before = os.times()
        record = self.compare(fabric, flows, "--policy", "ecmp", "--draws", "100")["ecmp"]
        spent = os.times().children_user - before.children_user
        print(f"100 draws of 16384 flows, 512 x 32: {spent:.1f} s of processor time; fullest link "
              f"{record['flows_most']}")
        self.assertEqual(record["draws"], 100)
        self.assertGreater(record["flows_most"]["min"], 3)
        self.assertLess(spent, 120)


if __name__ == "__main__":
    unittest.main()
