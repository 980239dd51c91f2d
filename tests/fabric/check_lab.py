#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of the lab's own judgement, without a lab: what it takes for right and for wrong."""
import json
import random
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))

from lab import judge, packets, switchrules, truth  # noqa: E402
from lab.layout import Layout  # noqa: E402
from lab.records import RecordFile, Seen, path_of  # noqa: E402
from lab.traffic import ELEPHANT, MOUSE, Flow, plan  # noqa: E402

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
        lines = list(layout.routes("leaf1", {(0, 0), (1, 2)}))
        self.assertEqual(lines[0],
                         "route replace 10.0.2.0/24 nexthop via 10.129.0.1 dev Ethernet52")
        self.assertNotIn("10.0.2.0/24", " ".join(layout.routes("spine3", {(1, 2)})))
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

    def test_icrc(self):
        packet = bytes.fromhex(
            "45000030a60140003e1180b70a0201010a010101c15412b7001c00001100ffff0000001400446009"
            "1f0000018e7ac834")
        self.assertTrue(packets.icrc_is_right(bytes(14) + packet))
        self.assertFalse(packets.icrc_is_right(bytes(14) + packet[:-1] + b"\x35"))


if __name__ == "__main__":
    unittest.main()
