#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Leaves with two links of 400 and two of 100 Gbit/s: whether they choose among them evenly or by speed, no
group is called uneven and no link underused; a link that no flow takes is named in both cases. Weights that
no speed explains are a fault."""
import json
import os
import random
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
import rig  # noqa: E402
from fabrics import leaf_spine  # noqa: E402
from rig import check, equal, of_kind  # noqa: E402

START_MS, WINDOWS, FLOWS = 1700000000000, 8, 2400
LEAVES, SPINES, HOSTS = 4, 4, 4
EVEN, BY_SPEED = (1, 1, 1, 1), (4, 4, 1, 1)


def observations(weights, dead):
    """New flows in each window, sampled at both switches that choose or are chosen; from leaf1 none to a dead spine."""
    rng = random.Random(3)
    for window in range(WINDOWS):
        at = START_MS + 10000 * window
        for i in range(FLOWS):
            a, b = rng.sample(range(1, LEAVES + 1), 2)
            spine = dead
            while spine == dead:
                spine = rng.choices(range(1, SPINES + 1), weights)[0]
                if a != 1:
                    break
            host = rng.randint(1, HOSTS)
            flow = {"src": f"10.0.{a}.{host}", "dst": f"10.0.{b}.{rng.randint(1, HOSTS)}",
                    "sport": 0xc000 + (window * FLOWS + i) % 0x4000, "dport": 4791, "proto": 17}
            for agent, came, went in ((f"192.0.2.{a}", 50 + host, spine), (f"192.0.3.{spine}", a, b)):
                yield {"schema": "fabrictrace.observation.v1", "time_ms": at + 5000, "interval_ms": 1000,
                       "first_ms": at + 4050, "last_ms": at + 4950, "agent": agent, "in_ifindex": came,
                       "out_ifindex": went, "flow": flow, "samples": 20, "data_samples": 20, "packets": 40000,
                       "bytes": 40000 * 4170}


def run(folder, speeds, weights, dead=0):
    file = folder / "t.yaml"
    file.write_text(leaf_spine(LEAVES, SPINES, HOSTS, speeds))
    done = rig.run(rig.DAEMON, "-c", os.devnull, *rig.TRUST, "--set", "source_id=golden", "--topology", file,
                   "--replay", "-", "--sink", "file:-", stdin=None,
                   input="".join(json.dumps(r) + "\n" for r in observations(weights, dead)))
    equal("exit code", done.returncode, 0)
    # Of the paths, which are nearly all, nothing is asked.
    records = rig.records_of("".join(line for line in done.stdout.splitlines(True) if ".path.v1" not in line))
    return (of_kind(records, "imbalance"),
            {(e["kind"], e["subject"]): e for e in of_kind(records, "event")
             if e["kind"] in ("polarization", "underused") and not e.get("cleared")})


def groups(records):
    return [r for r in records if r["scope"] == "group" and "p_value" in r]


def test_neither_is_a_fault(folder):
    for name, weights in (("evenly", EVEN), ("by speed", BY_SPEED)):
        records, events = run(folder, (400, 400, 100, 100), weights)
        judged = groups(records)
        check(f"{name}: groups", len(judged) == 2 * LEAVES * WINDOWS, len(judged))
        equal(f"{name}: events", events, {})
        low = [r for r in judged if r["p_value"] < 0.05]
        check(f"{name}: of p-values at most one in ten is small", len(low) <= len(judged) / 10,
              [(r["name"], r["p_value"]) for r in low])
        # Of a window's uneven groups one in twenty is luck, and a window has one by luck that often.
        check(f"{name}: uneven groups", sum(r["verdict"] != "even" for r in judged) <= 1
              and not any(r["verdict"] == "fault" for r in judged), [r for r in judged if r["verdict"] != "even"])
        wide = [r for r in records if r["scope"] != "group"]
        check(f"{name}: layers and the fabric", wide and all(r["p_value"] > 1e-4 for r in wide),
              [(r["name"], r.get("p_value")) for r in wide])
        for leaf in range(1, LEAVES + 1):
            for direction in ("up", "down"):
                of = [r for r in judged if r["name"] == f"leaf{leaf}/{direction}"]
                ratio = sum(r["fim"] for r in of) / sum(r["fim_expected"] for r in of)
                check(f"{name}: FIM of leaf{leaf}/{direction} is what is expected", 0.6 < ratio < 1.5, ratio)


def test_a_dead_link_is_named(folder):
    for name, weights in (("evenly", EVEN), ("by speed", BY_SPEED)):
        for dead in (1, 4):
            _, events = run(folder, (400, 400, 100, 100), weights, dead)
            event = events.get(("polarization", "leaf1/up"), {})
            equal(f"{name}, Ethernet{dead}: named", event.get("evidence", {}).get("idle_ports"), [f"Ethernet{dead}"])
            others = {s for _, s in events if s.startswith(("leaf2", "leaf3", "leaf4")) and s.endswith("/up")}
            equal(f"{name}, Ethernet{dead}: no other leaf", others, set())


def test_weights_by_hand_are_a_fault(folder):
    records, events = run(folder, (400, 400, 400, 400), BY_SPEED)
    check("of one speed", all(r["verdict"] == "fault" for r in groups(records) if r["name"].endswith("/up")))
    equal("events", {s for k, s in events if k == "polarization" and s.endswith("/up")},
          {f"leaf{i}/up" for i in range(1, LEAVES + 1)})


if __name__ == "__main__":
    sys.exit(rig.run_tests(test_neither_is_a_fault, test_a_dead_link_is_named, test_weights_by_hand_are_a_fault))
