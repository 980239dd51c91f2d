#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`fabrictrace whatif --chakra`: the times that ASTRA-sim gave for the same traces (measured with its
analytical networks, 2a2979a), and its closed forms, to the nanosecond. Runs in the build folder."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import chakra  # noqa: E402
from chakra import (ALL_GATHER, ALL_REDUCE, ALL_TO_ALL, BROADCAST, RECV,  # noqa: E402
                    REDUCE_SCATTER, SEND)

PROGRAM = os.environ.get("FABRICTRACE", "cli/fabrictrace")
MIB = 1 << 20
SYSTEM = {"scheduling-policy": "LIFO", "endpoint-delay": 10, "active-chunks-per-dimension": 1,
          "preferred-dataset-splits": 4, "all-reduce-implementation": ["ring"],
          "all-gather-implementation": ["ring"], "reduce-scatter-implementation": ["ring"],
          "all-to-all-implementation": ["ring"], "collective-optimization": "localBWAware",
          "local-mem-bw": 1600, "boost-mode": 0}
# 1 MiB, 50 GB/s, 500 ns: AllReduce, AllGather, ReduceScatter, AllToAll
MEASURED = {
    ("Ring", 4): (43000, 64744, 22240, 41560),
    ("Ring", 8): (64440, 151016, 33080, 125480),
    ("Ring", 16): (99640, 323560, 50740, 391240),
    ("FullyConnected", 16): (99640, 323560, 50740, 391240),
}


class Whatif(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.prefix = str(self.folder / "trace")

    def run_whatif(self, ranks, shape, count, *words, system=None, groups=None, bandwidth=50,
                   latency=500):
        """shape and count: of each dimension, or of the only one."""
        shapes, counts = (shape, count) if isinstance(shape, list) else ([shape], [count])
        if ranks is not None:
            chakra.write(self.prefix, ranks)
        network = self.folder / "n.yml"
        network.write_text(f"topology: [ {', '.join(shapes)} ]\nnpus_count: {counts}\n"
                           f"bandwidth: {[bandwidth] * len(shapes)}  # GB/s\n"
                           f"latency: {[latency] * len(shapes)}\n")
        (self.folder / "s.json").write_text(json.dumps({**SYSTEM, **(system or {})}))
        if groups:
            (self.folder / "g.json").write_text(json.dumps(groups))
            words += "--groups", str(self.folder / "g.json")
        done = subprocess.run([PROGRAM, "whatif", "--chakra", self.prefix, "--network",
                               str(network), "--system", str(self.folder / "s.json"), "--json",
                               *words], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        return done.returncode, done.stdout, done.stderr

    def times(self, *args, **more):
        rc, out, err = self.run_whatif(*args, **more)
        self.assertEqual((rc, err), (0, ""))
        lines = [json.loads(line) for line in out.splitlines()]
        self.assertEqual([line["rank"] for line in lines], list(range(len(lines))))
        self.assertTrue(all(set(line) == {"rank", "finished_ns"} for line in lines))
        return [line["finished_ns"] for line in lines]

    def test_collectives_as_measured(self):
        for (shape, count), answers in MEASURED.items():
            for op, answer in zip((ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL), answers):
                ranks = [[chakra.collective(3, op, MIB)] for _ in range(count)]
                with self.subTest(shape=shape, count=count, op=op):
                    self.assertEqual(self.times(ranks, shape, count), [answer] * count)
                    if shape == "Ring":
                        self.assertEqual(self.times(None, shape, count, "--unaware"),
                                         [answer] * count)

    def test_the_published_vector(self):
        """Metadata and one AllReduce of 1 MiB in 65 bytes, as four files."""
        vector = bytes.fromhex(
            "070a05302e302e34380803120261721807520e0a0969735f6370755f6f70d80100520d0a09636f6d6d5f7479"
            "70654800520f0a09636f6d6d5f73697a6548808040")
        self.assertEqual(len(vector), 65)
        self.assertEqual(chakra.trace([chakra.collective(3, ALL_REDUCE, MIB)]), vector)
        for rank in range(4):
            pathlib.Path(f"{self.prefix}.{rank}.et").write_bytes(vector)
        self.assertEqual(self.times(None, "Ring", 4), [43000] * 4)

    def test_closed_forms(self):
        """Other sizes, splits and speeds, also through a switch: two hops, one after the other."""
        for shape, hops in (("Ring", 1), ("FullyConnected", 1), ("Switch", 2)):
            for n, size, splits, rate, latency, memory in (
                (2, 1 << 20, 1, 25, 700, 100), (5, 5 << 20, 2, 100, 0, 1600),
                (6, 6 * 4 * 1000, 4, 12.5, 33, 50), (9, 9 << 18, 3, 400, 2000, 800),
            ):
                rate_ns = rate * (1 << 30) / 1e9
                def step(m):
                    return hops * int(m / rate_ns + latency)
                m, e = size // splits // n, 10
                reduce = 3 * int(m / (memory * 1e9) * 1e9)
                forms = {
                    ALL_REDUCE: splits * (2 * (n - 1) * step(m) + (n - 1) * reduce
                                          + e * (2 * n - 1)),
                    REDUCE_SCATTER: splits * ((n - 1) * (step(m) + reduce) + e * n),
                    ALL_GATHER: splits * ((n - 1) * step(size // splits) + e * n),
                }
                for op, answer in forms.items():
                    ranks = [[chakra.collective(1, op, size)] for _ in range(n)]
                    with self.subTest(shape=shape, n=n, op=op):
                        self.assertEqual(
                            self.times(ranks, shape, n, bandwidth=rate, latency=latency, system={
                                "preferred-dataset-splits": splits, "local-mem-bw": memory}),
                            [answer] * n)

    def messages(self, count, pairs):
        ranks = [[] for _ in range(count)]
        for src, dst in pairs:
            ranks[src].append(chakra.message(len(ranks[src]) + 1, SEND, src, dst, MIB))
            ranks[dst].append(chakra.message(len(ranks[dst]) + 1, RECV, src, dst, MIB))
        return ranks

    def test_a_send_as_measured(self):
        for shape, aware, unaware in (("Ring", 60093, 21031), ("FullyConnected", 20031, 20031),
                                      ("Switch", 40062, 20531)):
            ranks = self.messages(16, [(1, 4)])
            for words, answer in (((), aware), (("--unaware",), unaware)):
                times = self.times(ranks, shape, 16, *words)
                self.assertEqual((times[1], times[4]), (answer, answer), (shape, words))
                self.assertEqual(times[0], 0)

    def test_an_incast_as_measured(self):
        for shape, answers in (("Switch", (40062, 59593, 40062)),
                               ("FullyConnected", (20031, 20031, 20031)),
                               ("Ring", (160248, 140217, 140217))):
            times = self.times(self.messages(16, [(0, 8), (1, 8), (2, 9)]), shape, 16)
            self.assertEqual(tuple(times[:3]), answers, shape)

    def test_nodes_wait_for_each_other(self):
        """One computation of the GPU at a time, beside one of the CPU; a broadcast takes its duration."""
        sleep = chakra.node(1, "s", 7, [chakra.attribute("is_cpu_op", 0, 27),
                                        chakra.attribute("comm_type", BROADCAST, 9)], (), 3)
        ranks = [[chakra.compute(1, 5), chakra.compute(2, 7), chakra.compute(3, 100, cpu=1)],
                 [chakra.compute(9, 5), chakra.compute(2, 0, deps=(9,))],
                 [sleep, chakra.compute(2, 1, deps=(1,))], [sleep, chakra.compute(2, 1)]]
        self.assertEqual(self.times(ranks, "Ring", 4), [100000, 5000, 4000, 3000])

    def test_control_dependencies(self):
        """As others, and metadata take no time: 2a2979a does not follow the former and never ends the latter."""
        meta = [chakra.node(1, "meta", 1, []), chakra.compute(2, 5, deps=(1,))]
        ranks = [[chakra.compute(1, 3), chakra.node(2, "c", 4, [], ctrl=(1,), duration=1)], meta, meta[:1], []]
        self.assertEqual(self.times(ranks, "Ring", 4), [4000, 5000, 0, 0])

    def test_what_takes_no_time_is_skipped(self):
        """Nothing computes for 0, but with num_ops for 1 ns; who waited begins at once, by its id, unless
        another of its kind runs."""
        ops = [chakra.attribute("is_cpu_op", 0, 27), chakra.attribute("num_ops", 1, 9)]
        ranks = [[chakra.compute(3, 0), chakra.compute(2, 7, deps=(3,)), chakra.compute(4, 5)],
                 [chakra.compute(1, 0), chakra.compute(2, 0, deps=(1,)), chakra.compute(3, 2, deps=(2,))],
                 [chakra.node(1, "c", 4, ops), chakra.compute(2, 5, deps=(1,))],
                 [chakra.compute(1, 5), chakra.compute(2, 0), chakra.collective(3, BROADCAST, MIB, deps=(2,))]]
        self.assertEqual(self.times(ranks, "Ring", 4), [12000, 2000, 5001, 5001])

    def test_collectives_take_turns(self):
        """Two at once on a rank: one after the other, since one communication runs at a time."""
        ranks = [[chakra.collective(1, ALL_REDUCE, MIB), chakra.collective(2, REDUCE_SCATTER, MIB)]
                 for _ in range(4)]
        self.assertEqual(self.times(ranks, "Ring", 4), [43000 + 22240] * 4)

    def test_groups(self):
        """Half of the ranks each: a ring of 4 among 8, whose hand-over takes 10 ns whatever the
        endpoint's delay is; all ranks as a group are as none."""
        ranks = [[chakra.collective(1, ALL_REDUCE, MIB, group=1 + r // 4)] for r in range(8)]
        groups = {"1": [0, 1, 2, 3], "2": [4, 5, 6, 7]}
        for delay in (10, 55):
            self.assertEqual(self.times(ranks, "FullyConnected", 8, groups=groups,
                                        system={"endpoint-delay": delay}), [43000] * 8)
        ranks = [[chakra.collective(1, ALL_REDUCE, MIB, group=5)] for r in range(4)]
        self.assertEqual(self.times(ranks, "Ring", 4, groups={"5": [0, 1, 2, 3]}), [43000] * 4)

    def test_group_0_is_all_ranks(self):
        """As for those after 2a2979a, which knows no group that no file defines."""
        ranks = [[chakra.collective(1, ALL_REDUCE, MIB, group=0)] for r in range(4)]
        self.assertEqual(self.times(ranks, "Ring", 4), [43000] * 4)

    def test_two_dimensions(self):
        """AllReduce in two dimensions: scattered in the first, reduced in the second, gathered."""
        n, m = 4, 2
        ranks = [[chakra.collective(1, ALL_REDUCE, MIB)] for _ in range(n * m)]
        impl = {f"{op}-implementation": ["ring", "ring"]
                for op in ("all-reduce", "all-gather", "reduce-scatter", "all-to-all")}
        times = self.times(ranks, ["Ring", "Switch"], [n, m],
                           system={**impl, "preferred-dataset-splits": 1})
        rate = 50 * (1 << 30) / 1e9
        def step(size, hops):
            return int(hops * 500 + size / rate)
        def reduce(size):
            return 3 * int(size / 1600e9 * 1e9)
        a, b = MIB // n, MIB // n // m
        scatter = (n - 1) * (step(a, 1) + reduce(a)) + 10 * n
        inner = 2 * (m - 1) * step(b, 2) + (m - 1) * reduce(b) + 10 * (2 * m - 1)
        gather = (n - 1) * step(a, 1) + 10 * n
        self.assertEqual(times, [scatter + inner + gather] * (n * m))
        # Only the first dimension takes part.
        ranks = [[chakra.collective(1, REDUCE_SCATTER, MIB, dims=[1, 0])] for _ in range(n * m)]
        self.assertEqual(self.times(ranks, ["Ring", "Switch"], [n, m],
                                    system={**impl, "preferred-dataset-splits": 1}),
                         [scatter] * (n * m))

    def test_direct_collectives(self):
        """Every rank sends to every other at once over links of their own."""
        n = 8
        ranks = [[chakra.collective(1, ALL_GATHER, MIB)] for _ in range(n)]
        times = self.times(ranks, "FullyConnected", n, system={
            "all-gather-implementation": ["direct"], "preferred-dataset-splits": 1})
        self.assertEqual(times, [10 + 20031 + 10] * n)

    def test_nodes_that_wait_for_ever(self):
        """For each other, for themselves, for one that the trace lacks, behind one that has ended: of that rank
        there is no line, and it is an error."""
        for nodes in ([chakra.compute(1, 5, deps=(2,)), chakra.compute(2, 5, deps=(1,))],
                      [chakra.compute(1, 5, deps=(1,))], [chakra.compute(1, 5, deps=(9,))],
                      [chakra.compute(1, 5), chakra.compute(2, 5, deps=(1, 9))],
                      [chakra.node(1, "c", 4, [], ctrl=(9,), duration=1)]):
            ranks = [[chakra.compute(1, 7)], nodes, [chakra.compute(1, 7)], []]
            rc, out, err = self.run_whatif(ranks, "Ring", 4)
            self.assertEqual((rc, [json.loads(line) for line in out.splitlines()]), (65, [
                {"rank": 0, "finished_ns": 7000}, {"rank": 2, "finished_ns": 7000},
                {"rank": 3, "finished_ns": 0}]))
            self.assertIn("1 rank never ends, rank 1 first", err)

    def test_what_never_ends_is_told(self):
        ranks = [[chakra.message(1, RECV, 1, 0, MIB)], [], [], []]
        rc, out, err = self.run_whatif(ranks, "Ring", 4)
        self.assertEqual(rc, 65)
        self.assertEqual([json.loads(line)["rank"] for line in out.splitlines()], [1, 2, 3])
        self.assertIn("1 rank never ends, rank 0 first", err)

    def test_bad_input_is_told(self):
        good = [[chakra.collective(1, ALL_REDUCE, MIB)] for _ in range(4)]
        chakra.write(self.prefix, good)
        os.unlink(f"{self.prefix}.2.et")
        rc, out, err = self.run_whatif(None, "Ring", 4)
        self.assertEqual((rc, out), (66, ""))
        self.assertIn("trace.2.et: No such file", err)
        for data, text in (
            (chakra.trace(good[0], "0.0.9"), "a trace of version '0.0.9', not 0.0.4"),
            (b"", "not a Chakra trace"), (b"\x07\x0a", "not a Chakra trace"),
            (chakra.trace(good[0])[:-3], "ends within a node, behind 0 of them"),
            (chakra.trace(good[0] * 2), "node 1 is defined twice"),
            (chakra.trace([chakra.collective(1, 1, MIB)]), "node 1 is a collective that ASTRA-sim"),
            (chakra.trace([chakra.collective(1, 0, MIB, group="x")]), "pg_name has to be a number"),
            (chakra.trace([chakra.collective(1, 0, MIB, group=7)]), "names communicator group 7"),
            (chakra.trace([chakra.collective(5, 0, MIB, size_member=13)]),
             "trace.2.et: node 5 has no comm_size, or none above 0"),
            (chakra.trace([chakra.collective(5, 0, MIB, size_member=13)]),
             "1 attribute is of a type that ASTRA-sim does not read there, and taken as 0"),
            (chakra.trace([chakra.message(1, SEND, 1, 0, 5)]), "sends for another rank"),
            (chakra.trace([chakra.message(7, SEND, 2, 9, 5)]),
             "trace.2.et: node 7 has a peer that is not another rank"),
        ):
            with self.subTest(text):
                chakra.write(self.prefix, good)
                pathlib.Path(f"{self.prefix}.2.et").write_bytes(data)
                rc, out, err = self.run_whatif(None, "Ring", 4)
                self.assertEqual((rc, out), (65, ""), err)
                self.assertIn(text, err)
        chakra.write(self.prefix, good)
        for system, text in (({"all-reduce-implementation": ["halvingDoubling"]}, "not modelled"),
                             ({"scheduling-policy": "X"}, "scheduling-policy"),
                             ({"roofline-enabled": 1}, "roofline-enabled"),
                             ({"preferred-dataset-splits": 0}, "preferred-dataset-splits")):
            rc, out, err = self.run_whatif(None, "Ring", 4, system=system)
            self.assertEqual((rc, out), (65, ""))
            self.assertIn("s.json: key '", err)
            self.assertIn(text, err)
        rc, out, err = self.run_whatif(None, "Torus", 4)
        self.assertEqual((rc, out), (65, ""))
        self.assertIn("n.yml:1: key 'topology': has to be Ring, FullyConnected or Switch", err)
        rc, out, err = self.run_whatif(None, ["Ring"], [4, 4])
        self.assertEqual((rc, out), (65, ""))
        self.assertIn("n.yml:2: key 'npus_count': has 2 items", err)


if __name__ == "__main__":
    unittest.main()
