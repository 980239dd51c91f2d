#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The fluid model (lib/sim/fluid.c) against linear programs solved by scipy, and worked examples.
Runs in the build folder."""
import math
import os
import subprocess
import sys
import unittest

sys.path.append("/usr/lib/python3/dist-packages")  # Debian's, for another python3 in front
import numpy  # noqa: E402
from scipy.optimize import linprog  # noqa: E402

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import paper  # noqa: E402

PROGRAM = os.environ.get("FLUID", "tests/plan/fluid")


def fluid(capacities, flows, rounds=()):
    """flows: (demand, bits, round, links); rounds: (start, after)."""
    lines = [f"{len(capacities)} {len(flows)} {len(rounds)}", *map(str, capacities)]
    lines += [f"{d} {b} {r} {len(links)} {' '.join(map(str, links))}" for d, b, r, links in flows]
    lines += [f"{start} {after}" for start, after in rounds]
    done = subprocess.run([PROGRAM], input="\n".join(lines) + "\n", text=True, check=True,
                          stdout=subprocess.PIPE)
    return [float(line) for line in done.stdout.split()]


def max_min(capacities, flows):
    """Lexicographically: the highest common rate by a linear program, those that cannot have more
    are held, and again. Who can have more is another linear program for each flow."""
    count, held = len(flows), {}
    rows = numpy.zeros((len(capacities), count))
    for f, (_, _, _, links) in enumerate(flows):
        for link in links:
            rows[link, f] += 1
    demands = [d for d, _, _, _ in flows]
    while len(held) < count:
        free = [f for f in range(count) if f not in held]
        # Variables: the rates, and the common rate t; every free rate >= t.
        matrix = [[*row, 0] for row in rows]
        matrix += [[-1 if k == f else 0 for k in range(count)] + [1] for f in free]
        bounds = [(held[f], held[f]) if f in held else (0, demands[f]) for f in range(count)]
        best = linprog([0] * count + [-1], matrix, [*capacities, *[0] * len(free)],
                       bounds=[*bounds, (0, None)])
        assert best.status == 0, best.message
        t = best.x[-1]
        floor = [(held[f], held[f]) if f in held else (t * (1 - 1e-9), demands[f])
                 for f in range(count)]
        before = len(held)
        for f in free:
            more = linprog([-1 if k == f else 0 for k in range(count)], rows, capacities,
                           bounds=floor)
            if -more.fun <= t * (1 + 1e-6) + 1e-9:
                held[f] = t
        assert len(held) > before
    return [held[f] for f in range(count)]


class Fluid(unittest.TestCase):
    def near(self, got, wanted, text=None):
        self.assertEqual(len(got), len(wanted))
        for a, b in zip(got, wanted):
            self.assertTrue(a == b or math.isclose(a, b, rel_tol=1e-5, abs_tol=1e-6),
                            (text, got, wanted))

    def test_the_textbook(self):
        """Bertsekas and Gallager, figure 6.12's kind: one long flow, shares behind its bottleneck."""
        inf = math.inf
        flows = [(inf, 0, 0, [0, 1]), (inf, 0, 0, [0]), (inf, 0, 0, [1]), (inf, 0, 0, [1])]
        self.near(fluid([1, 2], flows), [0.5, 0.5, 0.75, 0.75])
        # One wants less than its share: the other has the rest. Without links: what it wants.
        self.near(fluid([10], [(2, 0, 0, [0]), (inf, 0, 0, [0]), (7, 0, 0, [])]), [2, 8, 7])
        self.near(fluid([0, 5], [(inf, 0, 0, [0, 1]), (3, 0, 0, [1])]), [0, 3])

    def test_random_cases_as_linear_programs_solve_them(self):
        for seed in range(60):
            rng = paper.seeded(seed)
            links = rng.randint(1, 8)
            capacities = [rng.choice((1, 2, 5, 10, rng.uniform(0.5, 20))) for _ in range(links)]
            flows = [(rng.choice((1e6, rng.uniform(0.1, 5))), 0, 0,
                      rng.sample(range(links), rng.randint(1, min(4, links))))
                     for _ in range(rng.randint(1, 14))]
            self.near(fluid(capacities, flows), max_min(capacities, flows), seed)

    def test_every_flow_has_its_bottleneck(self):
        """The definition itself, on cases too large for the linear programs."""
        for seed in range(5):
            rng = paper.seeded(seed)
            capacities = [rng.uniform(1, 100) for _ in range(60)]
            flows = [(rng.choice((1e9, rng.uniform(0.01, 2))), 0, 0, rng.sample(range(60), 4))
                     for _ in range(2000)]
            rates = fluid(capacities, flows)
            used, most = [0] * 60, [0] * 60
            for rate, (_, _, _, links) in zip(rates, flows):
                for link in links:
                    used[link] += rate
                    most[link] = max(most[link], rate)
            for link in range(60):
                self.assertLessEqual(used[link], capacities[link] * (1 + 1e-9))
            for rate, (demand, _, _, links) in zip(rates, flows):
                self.assertTrue(rate >= demand * (1 - 1e-9) or any(
                    used[link] >= capacities[link] * (1 - 1e-9) and
                    rate >= most[link] * (1 - 1e-9) for link in links), (seed, rate))

    def test_an_incast_takes_twice_as_long(self):
        inf = math.inf
        self.near(fluid([10], [(inf, 40, 0, [0]), (inf, 40, 0, [0])], [(0, -1)]), [8, 8, 8])

    def test_flows_start_and_end(self):
        """One alone for 2 s, two for a time, the rest alone."""
        inf = math.inf
        got = fluid([10], [(inf, 40, 0, [0]), (inf, 10, 1, [0])], [(0, -1), (2, -1)])
        self.near(got, [5, 4, 5, 4])

    def test_rounds_wait_for_each_other(self):
        """A ring of 4 in 3 steps over links of their own, the second step disturbed by another flow;
        a round of nothing; a round that has to wait for its own time."""
        inf = math.inf
        flows = [(inf, 10, step, [n]) for step in range(3) for n in range(4)]
        flows.append((inf, 5, 3, [2]))
        got = fluid([10] * 4, flows, [(0, -1), (0, 0), (0, 1), (1, -1), (0, 2), (9, 4)])
        # Step 1 takes 1 s. Then link 2 carries two flows until the guest's 5 bits are through.
        self.near(got[-6:], [1, 2.5, 3.5, 2, 3.5, 9])

    def test_a_million_flows_take_seconds(self):
        done = subprocess.run([PROGRAM, "large", "1000000", "16384"], text=True, check=True,
                              stdout=subprocess.PIPE)
        print(f"1,000,000 flows over 16,384 links: {float(done.stdout):.2f} s of processor time")
        self.assertLess(float(done.stdout), 60)


if __name__ == "__main__":
    unittest.main()
