#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of the lab's own judgement, without a lab: what it takes for right and for wrong."""
import argparse
import json
import random
import socket
import struct
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))

from lab import judge, moves, packets, routes, switchrules, timeline, truth, variants, volumes  # noqa: E402
from lab.layout import Layout  # noqa: E402
from lab.records import RecordFile, Seen, path_of  # noqa: E402
from lab.timeline import Timeline  # noqa: E402
from lab.traffic import ELEPHANT, MOUSE, Flow, plan, sparse  # noqa: E402

A = Flow("10.0.1.2", "10.0.2.2", 50001)
B = Flow("fd00:0:1:1::2", "fd00:0:2:1::2", 50002)
OVER1 = (("leaf1", "Ethernet1", "Ethernet51"), ("spine1", "Ethernet1", "Ethernet2"),
         ("leaf2", "Ethernet51", "Ethernet1"))
OVER2 = (("leaf1", "Ethernet1", "Ethernet52"), ("spine2", "Ethernet1", "Ethernet2"),
         ("leaf2", "Ethernet52", "Ethernet1"))


def hops(path):
    return [{"switch": switch, "in": inp, "out": out, "samples": 3} for switch, inp, out in path]


def flow_json(flow):
    return {"src": flow.src, "dst": flow.dst, "sport": flow.sport, "dport": 4791, "proto": 17}


class Records(RecordFile):
    """Records from lists instead of a file."""

    def __init__(self, *seen):
        super().__init__(None)
        for at_ms, record in seen:
            self.seen.setdefault(record["schema"], []).append(Seen(at_ms, record))


def path(at_ms, flow, path, state="resolved"):
    return at_ms, {"schema": "fabrictrace.path.v1", "flow": flow_json(flow), "state": state,
                   "hops": hops(path)}


def moved(at_ms, flow, old, new):
    return at_ms, {"schema": "fabrictrace.event.v1", "kind": "path_change", "evidence": {
        "flow": flow_json(flow), "old_hops": hops(old), "new_hops": hops(new)}}


class Fim(unittest.TestCase):
    def test_known_answers(self):
        for loads, fim in (("4 4 4 4", 0), ("16 0 0 0", 150), ("8 4 4 0", 50), ("7 5 3 1", 50),
                           ("3 2 2 1 0 4 2 2", 37.5), ("10 12 9 11 8 14 10 6", 17.5)):
            self.assertAlmostEqual(truth.fim([int(n) for n in loads.split()]), fim)
        self.assertIsNone(truth.fim([0, 0]))

    def test_loads_of_groups(self):
        loads = truth.loads(Layout(2, 2, 1), {A: OVER1, B: OVER2, A.reverse: ()})
        self.assertEqual(loads, {"leaf1/up": [1, 1], "leaf1/down": [0, 0], "leaf2/up": [0, 0],
                                 "leaf2/down": [1, 1]})


class Paths(unittest.TestCase):
    truth = {A: OVER1, B: OVER2}
    sampled = {A: 5, B: 1}

    def test_right(self):
        records = Records(path(1, A, OVER1[:1], "partial"), path(2, A, OVER1), path(3, B, OVER2))
        self.assertEqual(judge.unresolved(records, self.truth, self.sampled), [])
        self.assertEqual(judge.ever_wrong(records, {A: [OVER1], B: [OVER2]}), [])

    def test_wrong_path(self):
        records = Records(path(1, A, OVER2), path(2, A, OVER1), path(3, B, OVER1))
        self.assertEqual(len(judge.unresolved(records, self.truth, self.sampled)), 1)
        self.assertEqual(len(judge.ever_wrong(records, {A: [OVER1], B: [OVER2]})), 2)

    def test_missing_or_not_resolved(self):
        records = Records(path(1, A, (), "unresolved"))
        self.assertEqual(len(judge.unresolved(records, self.truth, self.sampled)), 2)
        self.assertEqual(len(judge.unresolved(records, self.truth, {A: 0, B: 1})), 1)

    def test_cut_short(self):
        records = Records(path(1, A, OVER1[:2]), path(1, B, OVER2))
        self.assertEqual(len(judge.unresolved(records, self.truth, self.sampled)), 1)

    def test_partial_may_leave_out_but_not_lie(self):
        known = {A: [OVER1]}
        start = (("leaf1", "Ethernet1", None),)
        lie = (("leaf1", "Ethernet1", "Ethernet52"),)
        self.assertEqual(judge.ever_wrong(Records(path(1, A, start, "partial")), known), [])
        self.assertEqual(len(judge.ever_wrong(Records(path(1, A, lie, "partial")), known)), 1)

    def test_sprayed_or_unknown_flow_is_wrong(self):
        self.assertTrue(judge.ever_wrong(Records(path(1, A, (), "multipath")), {A: [OVER1]}))
        self.assertTrue(judge.ever_wrong(Records(path(1, B, OVER2)), {A: [OVER1]}))
        self.assertEqual(judge.ever_wrong(Records(path(1, B, OVER2)), {A: [OVER1]}, {B}), [])

    def test_delay_counts_from_the_first_sample_to_the_first_resolved_record(self):
        records = Records(path(500, A, (), "unresolved"), path(900, A, OVER1),
                          path(9000, A, OVER1), path(950, B, OVER2))
        self.assertEqual(judge.first_path_delays_ms(records, {A: 100}), [800])


class Imbalance(unittest.TestCase):
    layout = Layout(2, 2, 1)

    def judged(self, **changes):
        record = {"scope": "group", "name": "leaf1/up", "flows": 2, "fim": 0.0, **changes}
        rest = [{"scope": "group", "name": "leaf2/down", "flows": 2, "fim": 0.0},
                {"scope": "group", "name": "leaf1/down", "flows": 0},
                {"scope": "group", "name": "leaf2/up"}, {"scope": "fabric", "name": "lab"}]
        return judge.wrong_imbalance((0, [record, *rest]), self.layout, {A: OVER1, B: OVER2})

    def test_right(self):
        self.assertEqual(self.judged(), [])

    def test_wrong(self):
        for changes in ({"fim": 0.001}, {"fim": None}, {"flows": 1}, {"name": "leaf9/up"}):
            self.assertTrue(self.judged(**changes), changes)

    def test_windows_that_traffic_filled(self):
        records = Records(*((9, {"schema": "fabrictrace.imbalance.v1", "window_start_ms": start,
                                 "window_end_ms": start + 10}) for start in (0, 10, 20)))
        self.assertEqual([w for w, _ in judge.full_windows(records, 5, 29)], [10])


class LinkDown(unittest.TestCase):
    before = {A: OVER1, B: OVER2}
    after = {A: OVER2, B: OVER2}
    dead = {("leaf1", "Ethernet51"), ("spine1", "Ethernet1")}

    def test_right(self):
        records = Records(moved(1500, A, OVER1, OVER2), path(1500, A, OVER2))
        self.assertEqual(judge.path_change_problems(records, self.before, self.after, 1000), [])
        self.assertEqual(self.stays(records), [])

    def stays(self, records):
        return judge.back_over(records, self.dead, self.before, self.after, 1000, 5000)

    def test_events(self):
        for events in ((), (moved(1500, A, OVER2, OVER1),), (moved(1500, A, OVER1, OVER1),),
                       (moved(500, A, OVER1, OVER2),),
                       (moved(1500, A, OVER1, OVER2), moved(1500, B, OVER1, OVER2))):
            self.assertTrue(judge.path_change_problems(
                Records(*events), self.before, self.after, 1000), events)

    def test_dead_link(self):
        self.assertEqual(self.stays(Records(path(1100, A, OVER1), path(1500, A, OVER2))), [])
        self.assertTrue(self.stays(Records(path(1500, A, OVER2), path(1600, A, OVER1))))
        self.assertTrue(self.stays(Records(path(6100, A, OVER1))))


class Truth(unittest.TestCase):
    """Of a flow that goes over OVER1 until 10 s, then over OVER2; between two looks over either."""

    def setUp(self):
        self.line = Timeline()
        for at_ms, path in ((0, OVER1), (5000, OVER1), (9950, OVER1), (10050, OVER2),
                            (60000, OVER2)):
            self.line.look(at_ms, {A: path, B: OVER2})
        self.line.changes_ms.append(10040)

    def said(self, at_ms, path, state="resolved", **more):
        record = {"schema": "fabrictrace.path.v1", "flow": flow_json(A), "state": state,
                  "hops": hops(path), "window_start_ms": at_ms // 4000 * 4000, **more}
        return timeline.verdict(Seen(at_ms, record), self.line)

    def test_path_by_time(self):
        self.assertEqual(self.line.at(A, 9900, 9940), [OVER1])
        self.assertEqual(self.line.at(A, 10000, 10000), [OVER1, OVER2])
        self.assertEqual(self.line.at(A, 10060, 20000), [OVER2])
        self.assertEqual(self.line.at(A, -50, -10), [])
        self.assertEqual(self.line.at(A.reverse, 0, 60000), [])
        self.assertEqual(self.line.history(A), [(0, OVER1), (10050, OVER2)])
        self.assertTrue(self.line.moved(A) and not self.line.moved(B))
        self.assertIsNone(self.line.steady(9000, 11000))
        self.assertEqual(self.line.steady(11000, 20000)[A], OVER2)

    def test_verdicts(self):
        for at_ms, path, verdict in ((9000, OVER1, "right"), (9000, OVER2, "wrong"),
                                     (10000, OVER2, "right"), (11000, OVER2, "right"),
                                     (11000, OVER1, "stale"), (13000, OVER1, "wrong")):
            self.assertEqual(self.said(at_ms + 100, path, time_ms=at_ms), verdict, (at_ms, path))

    def test_a_mixture_of_two_paths_is_wrong(self):
        mixed = OVER1[:1] + OVER2[1:]
        for state in ("resolved", "partial"):
            for at_ms in (9000, 10000, 11000):
                self.assertEqual(self.said(at_ms, mixed, state, time_ms=at_ms), "wrong")

    def test_partial_is_judged_by_its_time_too(self):
        start = (("leaf1", "Ethernet1", None),)
        for at_ms, path, verdict in ((9000, OVER1[:1], "partial"), (9000, start, "partial"),
                                     (9000, OVER1[::2], "partial"), (9000, OVER2[:1], "wrong"),
                                     (9000, OVER1[::-1], "wrong"), (11000, OVER1[:1], "stale"),
                                     (14000, OVER1[:1], "wrong"), (14000, start, "partial"),
                                     (14000, (), "no path")):
            self.assertEqual(self.said(at_ms, path, "partial", time_ms=at_ms), verdict,
                             (at_ms, path))

    def test_the_time_of_the_record_counts_not_when_it_came(self):
        self.assertEqual(self.said(40000, OVER1, time_ms=9000), "right")
        self.assertEqual(self.said(40000, OVER1, time_ms=39000), "wrong")
        # What stands for a poller's interval may have begun before the move.
        self.assertEqual(self.said(40000, OVER2, time_ms=9500), "right")
        self.assertEqual(self.said(9600, OVER2, time_ms=9500), "wrong")

    def test_without_a_time_the_window_counts(self):
        self.assertEqual(self.said(11500, OVER1), "right")
        self.assertEqual(self.said(13000, OVER1), "stale")
        self.assertEqual(self.said(17000, OVER1), "wrong")

    def test_no_multipath_and_no_stranger(self):
        self.assertEqual(self.said(5000, OVER1, "multipath"), "wrong")
        self.assertEqual(self.said(5000, (), "unresolved"), "no path")
        self.assertEqual(self.said(5000, (), "resolved"), "wrong")
        record = {"flow": flow_json(B.reverse), "state": "unresolved", "hops": []}
        self.assertEqual(timeline.verdict(Seen(1, record), self.line), "wrong")

    def test_a_stopped_flow_keeps_its_last_path(self):
        self.assertEqual(self.said(70000, OVER2, time_ms=65000), "right")
        self.assertEqual(self.said(70000, OVER1, time_ms=65000), "wrong")

    def test_counts(self):
        records = Records(path(5000, A, OVER1), path(5000, B, OVER1),
                          path(5000, A, (), "multipath"), path(5000, A, OVER1[:1], "partial"),
                          path(5000, B, (), "unresolved"))
        count, wrong = timeline.judge(records, self.line)
        self.assertEqual((count["right"], count["wrong"], count["partial"], count["no path"]),
                         (1, 2, 1, 1))
        self.assertEqual(len(wrong), 2)
        count, wrong = timeline.judge(records, self.line, others={B})
        self.assertEqual((count["right"], count["wrong"], len(wrong)), (1, 1, 1))

    def test_no_samples(self):
        at_ms, record = path(5000, A, OVER1)
        bare = {**record, "hops": [{k: v for k, v in hop.items() if k != "samples"}
                                   for hop in record["hops"]]}
        one = {**record, "hops": [record["hops"][0], *bare["hops"][1:]]}
        self.assertEqual(timeline.without_samples(Records((at_ms, record), (at_ms, one))), [])
        self.assertEqual(len(timeline.without_samples(Records((at_ms, bare)))), 1)
        self.assertEqual(timeline.without_samples(Records((at_ms, bare)), hops_min=4), [])
        for time_ms, wrong in ((19000, 0), (8000, 1)):
            older = {**bare, "time_ms": time_ms, "window_end_ms": 40000}
            self.assertEqual(len(timeline.without_samples(Records((41000, older)))), wrong)

    def test_moments_of_samples(self):
        def sampled(*counts):
            return {(A, *hop): count for hop, count in zip(OVER1, counts)}
        snapshots = [(0, 100, sampled(0, 0, 0)), (4000, 4100, sampled(1, 0, 2)),
                     (8000, 8100, sampled(1, 0, 2)), (12000, 12100, sampled(1, 0, 2)),
                     (16000, 16100, sampled(1, 1, 2))]
        for came_ms, time_ms, wrong in ((5000, 2000, 0), (11000, 4500, 0), (11500, 10700, 1),
                                        (15000, 10700, 0), (15000, 14000, 0), (20000, 19000, 0)):
            at_ms, record = path(came_ms, A, OVER1)
            records = Records((at_ms, {**record, "time_ms": time_ms}))
            self.assertEqual(len(timeline.unattested(records, snapshots)), wrong, time_ms)

    def test_since(self):
        for path_, window, since, of_ms, right in (
                (OVER2, 8000, 10100, 11900, True), (OVER2, 8000, 12000, 12000, False),
                (OVER2, 12000, 4000, 13000, False), (OVER2, 12000, 10100, 11000, True),
                (OVER1, 4000, 100, 7000, True), (OVER1, 16000, 14000, 17000, False),
                (OVER2, 12000, 12500, 12400, False), (OVER2, 12000, 12500, 16000, False)):
            at_ms, record = path(window + 4100, A, path_)
            record.update(window_start_ms=window, window_end_ms=window + 4000, path_since_ms=since,
                          time_ms=of_ms)
            wrong = timeline.outside_window(Records((at_ms, record)), self.line)
            self.assertEqual(not wrong, right, (window, since))

    def test_links_that_carried_none(self):
        def link(window, port, count):
            return window + 4100, {"schema": "fabrictrace.link.v1", "switch": "leaf1", "port": port,
                                   "bytes": count, "window_start_ms": window,
                                   "window_end_ms": window + 4000}

        line = Timeline()
        for at_ms, path_ in ((0, OVER1), (9950, OVER1), (10050, OVER2), (60000, OVER2)):
            line.look(at_ms, {A: path_})

        def wrong(*records):
            return len(timeline.idle_links(Records(*records), line, 0, 60000))

        self.assertEqual(wrong(link(4000, "Ethernet51", 9), link(4000, "Ethernet52", 0)), 0)
        self.assertEqual(wrong(link(4000, "Ethernet52", 9)), 1)
        self.assertEqual(wrong(link(8000, "Ethernet51", 9), link(8000, "Ethernet52", 9)), 0)
        self.assertEqual(wrong(link(16000, "Ethernet51", 9)), 1)
        self.assertEqual(wrong(link(58000, "Ethernet51", 9)), 0)  # not all of it was watched

    def test_events(self):
        self.assertEqual(timeline.wrong_moves(Records(moved(1, A, OVER1, OVER2)), self.line), [])
        for event in (moved(1, A, OVER1, OVER1), moved(1, B, OVER1, OVER2),
                      moved(1, A, OVER1, OVER1[:1])):
            self.assertEqual(len(timeline.wrong_moves(Records(event), self.line)), 1)

    def test_right_again(self):
        def again(*records):
            return timeline.right_again_ms(Records(*records), {A: OVER2}, 10000)[A]
        self.assertEqual(again(path(9000, A, OVER1), path(12000, A, OVER2)), 2000)
        self.assertEqual(again(path(9000, A, OVER2)), 0)
        self.assertEqual(again(path(12000, A, OVER2), path(13000, A, (), "partial"),
                               path(14000, A, OVER2), path(15000, A, OVER2)), 4000)
        self.assertIsNone(again(path(12000, A, OVER2), path(13000, A, OVER1)))
        self.assertIsNone(again())

    def test_settled(self):
        def unsettled(*records, end_ms=30000):
            return timeline.unsettled(Records(*records), self.line, [A], 5000, end_ms)
        start = path(9000, A, OVER1)
        self.assertEqual(unsettled(start, path(12040, A, OVER2)), ([], [2000]))
        self.assertEqual(unsettled(path(9000, A, OVER2)), ([], []))
        for records in ((start,), (start, path(16000, A, OVER2)),
                        (start, path(12000, A, OVER2), path(16000, A, (), "partial"))):
            wrong, times = unsettled(*records)
            self.assertEqual((len(wrong), times), (1, []))
        # The next change comes too soon to tell.
        self.assertEqual(unsettled(start, end_ms=14000), ([], []))

    def test_counters_against_routes(self):
        def counters(*hops_):
            return {(A, *hop): packets for hop, packets in hops_}
        first, more = counters(*((hop, 5) for hop in OVER1)), counters(*((hop, 9) for hop in OVER1))
        stray = {**more, (A, *OVER2[0]): 1}
        for last, wrong in ((more, 0), (stray, 1)):
            texts, compared = timeline.disagreements(
                self.line, [(1000, 1100, first), (3000, 3100, last)])
            self.assertEqual((len(texts), compared), (wrong, 1))
        self.assertEqual(timeline.disagreements(self.line, [(9000, 9100, first),
                                                            (11000, 11100, stray)]), ([], 0))


class Variants(unittest.TestCase):
    pods = Layout(2, 2, 1, pods=2, superspines=4)

    def test_pods(self):
        layout = self.pods
        self.assertEqual([len(some) for some in (layout.leaves, layout.spines,
                                                 layout.superspines)], [4, 4, 4])
        ways = layout.next_links("leaf3")
        self.assertEqual({link.b.node for link in ways["leaf1"]}, {"spine1", "spine2"})
        self.assertEqual({link.b.node for link in ways["spine1"]}, {"super1", "super2"})
        self.assertEqual([link.a.node for link in ways["super1"]], ["spine3"])
        self.assertEqual([link.a.node for link in ways["spine3"]], ["leaf3"])
        # A plane that cannot reach the leaf is told of in the other pods too.
        dead = set(layout.between("leaf3", "spine3"))
        ways = layout.next_links("leaf3", dead)
        self.assertEqual({link.b.node for link in ways["leaf1"]}, {"spine2"})
        self.assertEqual(ways["super1"], [])
        mesh = Layout(2, 2, 1, pods=2, superspines=3, mesh=True)
        self.assertEqual(len(mesh.fabric_links), 8 + 12)
        for changes in ({"superspines": 3}, {"superspines": 0}, {"superspines": 4, "parallel": 9}):
            with self.assertRaises(ValueError):
                Layout(2, 2, 1, **{"pods": 2, **changes})

    def test_addresses_are_unique(self):
        for layout in (self.pods, Layout(2, 3, 2, parallel=2, swaps=[(0, 5)]), Layout(4, 4, 2),
                       Layout(3, 2, 2, pods=2, superspines=3, mesh=True, parallel=2)):
            lines = [line.split()[2] for box in layout.boxes for line in layout.addresses(box)
                     if line.startswith("addr")]
            self.assertEqual(len(lines), len(set(lines)))
            ports = [(p.node, p.ifindex) for s in layout.switches for p in layout.ports(s)]
            self.assertEqual(len(ports), len(set(ports)))

    def test_swapped_cables_are_not_in_the_file(self):
        straight = Layout(2, 3, 1)
        layout = Layout(2, 3, 1, swaps=[(0, 1)])
        self.assertEqual(layout.topology("x"), straight.topology("x"))
        self.assertEqual(layout.peer["leaf1", "Ethernet51"].node, "spine2")
        over = (("leaf1", "Ethernet1", "Ethernet51"), ("spine2", "Ethernet1", "Ethernet2"),
                ("leaf2", "Ethernet52", "Ethernet1"))
        self.assertFalse(layout.is_claimed(over))
        self.assertTrue(straight.is_claimed(OVER1) and layout.is_claimed(OVER1[2:]))

    def test_detour(self):
        layout = Layout(2, 3, 1, detours=1)
        detour, = layout.detours
        self.assertEqual((detour.spine, detour.leaf, detour.via, detour.second),
                         ("spine1", "leaf1", "leaf3", "spine2"))
        ways = layout.next_links("leaf1")
        self.assertEqual([link.a.node for link in ways["spine1"]], ["leaf3"])
        self.assertEqual([link.b.node for link in ways["leaf3"]], ["spine2"])
        rules, routes = layout.detour_rules("leaf3")
        self.assertEqual(rules, ["rule add iif Ethernet51 lookup 100"])
        self.assertIn("table 100 nexthop via 10.129.2.1 dev Ethernet52", routes[0])
        self.assertEqual(layout.detour_rules("leaf2"), ([], []))
        long = (("leaf2", "Ethernet1", "Ethernet51"), ("spine1", "Ethernet2", "Ethernet3"),
                ("leaf3", "Ethernet51", "Ethernet52"), ("spine2", "Ethernet3", "Ethernet1"),
                ("leaf1", "Ethernet52", "Ethernet1"))
        self.assertFalse(layout.is_claimed(long))

    def test_schedule(self):
        for layout in (Layout(2, 3, 1), self.pods, Layout(2, 3, 1, parallel=2),
                       Layout(3, 4, 1, detours=1), Layout(3, 4, 1, swaps=[(0, 4)])):
            steps = moves.Schedule(layout, 300, random.Random(5)).steps
            self.assertEqual(steps, moves.Schedule(layout, 300, random.Random(5)).steps)
            self.assertEqual([s.at_s for s in steps], sorted(s.at_s for s in steps))
            self.assertEqual({step.kind for step in steps}, set(moves.KINDS))
            gone = set()
            for step in steps:
                if step.what != "hash":
                    (gone.add if step.what in ("down", "leave") else gone.remove)(step.subject)
                    self.assertTrue(moves.reaches_all(layout, gone), step)
            self.assertEqual(gone, set())
            pairs = [b.at_s - a.at_s for a, b in zip(steps, steps[1:])
                     if a.kind == b.kind == "double"]
            self.assertTrue(any(gap <= moves.DOUBLE_S[1] for gap in pairs))

    def test_sparse(self):
        flows = plan(Layout(), 32, 4, random.Random(7))
        slow = sparse(flows, random.Random(7))
        self.assertEqual(sum(load.pps == 2 for load in slow.values()), 9)
        for load in slow.values():
            self.assertAlmostEqual(load.pps / load.message_packets, 2, delta=0.01)

    def test_drawn_cases_can_be_built(self):
        args = argparse.Namespace(discover=False, points=None, exporters=False, loss=False,
                                  link_down=False, long=5)
        rng = random.Random(3)
        cases = [variants.draw(args, rng, 60) for _ in range(300)]
        parser = argparse.ArgumentParser()
        parser.set_defaults(hosts=2)
        for name in ("spines", "leaves", "flows", "sampling", "seed"):
            parser.add_argument(f"--{name}", type=int)
        variants.add_options(parser.add_argument)
        for case in cases[:50]:
            again = parser.parse_args(variants.case_options(case).split())
            self.assertEqual(variants.case_name(again).replace(", mesh", ""),
                             variants.case_name(case).replace(", mesh", ""))
            self.assertEqual(variants.layout_of(again).topology("lab"),
                             variants.layout_of(case).topology("lab"))
        names = " ".join(map(variants.case_name, cases))
        for part in ("3 tiers", "mesh", "parallel", "sparse", "detour", "moves", "swapped leaf",
                     "swapped spine", "swapped both"):
            self.assertIn(part, names)

    def test_netlink(self):
        asked = routes.question(A, 1001)
        self.assertEqual(struct.unpack_from("IHH", asked), (len(asked), 26, 1))
        self.assertIn(socket.inet_aton(A.dst), asked)
        head = struct.pack("IHHII", 0, 24, 0, 0, 0)
        out = struct.pack("HHI", 8, 4, 1051)
        table = struct.pack("HHI", 8, 15, 254)
        for kind, rest, said in ((1, table + out, 1051), (1, table, None), (7, table + out, None)):
            body = struct.pack("BBBBBBBBI", 2, 32, 0, 0, 254, 0, 0, kind, 0)
            self.assertEqual(routes.answer(head + body + rest), said)
        self.assertIsNone(routes.answer(struct.pack("IHHII", 36, 2, 0, 0, 0) + bytes(20)))


class Plan(unittest.TestCase):
    def test_flows(self):
        layout = Layout()
        flows = plan(layout, 64, 8, random.Random(7), used_sports=range(0xC000, 0xFF00))
        leaf = {flow: (layout.owner[flow.src].leaf, layout.owner[flow.dst].leaf) for flow in flows}
        self.assertEqual(len(set(leaf.values())), 16)
        self.assertEqual(sum(":" in flow.src for flow in flows), 32)
        self.assertEqual(len({flow.sport for flow in flows}), 64)
        self.assertGreaterEqual(min(flow.sport for flow in flows), 0xFF00)
        big = [flow for flow, load in flows.items() if load is ELEPHANT]
        self.assertEqual(len(big), 8)
        self.assertTrue(all(leaf[flow][0] != leaf[flow][1] for flow in big))
        # What makes an elephant in the topology's terms.
        bits = 8 * (1024 + 58) * ELEPHANT.pps
        self.assertGreater(bits, 0.1 * layout.speed_bps)
        self.assertLess(8 * (256 + 78) * MOUSE.pps, 0.01 * layout.speed_bps)

    def test_layout(self):
        layout = Layout(3, 2, 2)
        self.assertEqual([p.name for p in layout.ports("leaf2")],
                         ["Ethernet1", "Ethernet2", "Ethernet51", "Ethernet52", "Ethernet53"])
        self.assertEqual(layout.peer["leaf2", "Ethernet53"].name, "Ethernet2")
        # A route to a destination does not use a link that is dead at either end.
        dead = {layout.between("leaf1", "spine1")[0], layout.between("leaf2", "spine3")[0]}
        lines = list(layout.routes("leaf1", dead))
        self.assertEqual(lines[0],
                         "route replace 10.0.2.0/24 nexthop via 10.129.0.1 dev Ethernet52")
        self.assertNotIn("10.0.2.0/24", " ".join(layout.routes("spine3", dead)))
        with self.assertRaises(ValueError):
            Layout(leaves=500)


class Reading(unittest.TestCase):
    def test_counters(self):
        listing = {"nftables": [{"metainfo": {}}, {"set": {"name": "sampled6", "elem": [
            {"elem": {"val": {"concat": ["Ethernet1", "Ethernet51", B.src, B.dst, B.sport]},
                      "counter": {"packets": 7, "bytes": 900}}}]}}, {"set": {"name": "all4"}}]}
        rows = switchrules.parse(json.dumps(listing))
        self.assertEqual(rows["all"], [])
        self.assertEqual(rows["sampled"], [{"in": "Ethernet1", "out": "Ethernet51", "src": B.src,
                                            "dst": B.dst, "sport": B.sport, "packets": 7,
                                            "bytes": 900}])

    def test_file_that_grows(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "records"
            records = RecordFile(file)
            self.addCleanup(records.close)
            self.assertEqual(records.poll().of("path"), [])
            line = json.dumps(path(0, A, OVER1)[1]) + "\n"
            file.write_text(line + line[:20])
            self.assertEqual(len(records.poll().of("path")), 1)
            file.write_text(line + line)
            self.assertEqual([path_of(s.record["hops"]) for s in records.poll().of("path")],
                             [OVER1, OVER1])
            self.assertEqual(records.of("path")[0].flow, A)

    def test_bytes_of_a_time_lie_between_two_looks(self):
        looks = truth.Looks(None)
        looks.read_s["leaf1"] = [10, 12, 14]
        looks.sent_bytes["leaf1"] = [{}, {"Ethernet1": 100}, {"Ethernet1": 500, "Ethernet2": 8}]
        self.assertEqual(looks.between(12500, 13000), {("leaf1", "Ethernet1"): 100})
        looks.sent_bytes["leaf1"][0] = {"Ethernet1": 0}
        self.assertEqual(looks.between(11000, 13000), {("leaf1", "Ethernet1"): 250})

    def test_volumes_are_judged_window_by_window(self):
        sent = {start: {("leaf1", "Ethernet1"): size} for start, size in ((0, 1000), (4, 200))}
        self.assertEqual(volumes.wrong_totals(sent, sent), [])
        for told in (700, 1300):
            windows = {**sent, 0: {("leaf1", "Ethernet1"): told}}
            self.assertEqual(len(volumes.wrong_totals(windows, sent)), 2)
        windows = {**sent, 4: {("leaf1", "Ethernet1"): 150}}
        self.assertEqual(len(volumes.wrong_totals(windows, sent)), 1)

    def test_icrc(self):
        packet = bytes.fromhex(
            "45000030a60140003e1180b70a0201010a010101c15412b7001c00001100ffff0000001400446009"
            "1f0000018e7ac834")
        self.assertTrue(packets.icrc_is_right(bytes(14) + packet))
        self.assertFalse(packets.icrc_is_right(bytes(14) + packet[:-1] + b"\x35"))


if __name__ == "__main__":
    unittest.main()
