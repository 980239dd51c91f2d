#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Leaves and spines of which one link is missing: flows to and from that leaf have three spines to choose from, the
others four. As long as each takes one of its own by chance no group is called uneven and no link underused, whatever
most flows are; a spine that a leaf does not use is named all the same."""
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

START_MS, WINDOWS, FLOWS = 1700000000000, 8, 1200
LEAVES, SPINES, HOSTS = 4, 4, 4
MISSING = (3, 1)  # leaf, spine


def observations(pairs, dead):
    """New flows in each window, sampled at both switches that choose or are chosen; dead: a leaf and the spine that
    its flows never take."""
    rng = random.Random(5)
    for window in range(WINDOWS):
        at = START_MS + 10000 * window
        for i in range(FLOWS):
            a, b = rng.choices(*pairs)[0]
            spines = [s for s in range(1, SPINES + 1) if MISSING not in ((a, s), (b, s)) and (a, s) != dead]
            spine, host = rng.choice(spines), rng.randint(1, HOSTS)
            flow = {"src": f"10.0.{a}.{host}", "dst": f"10.0.{b}.{rng.randint(1, HOSTS)}",
                    "sport": 0xc000 + (window * FLOWS + i) % 0x4000, "dport": 4791, "proto": 17}
            for agent, came, went in ((f"192.0.2.{a}", 50 + host, spine), (f"192.0.3.{spine}", a, b)):
                yield {"schema": "fabrictrace.observation.v1", "time_ms": at + 5000, "interval_ms": 1000,
                       "first_ms": at + 4050, "last_ms": at + 4950, "agent": agent, "in_ifindex": came,
                       "out_ifindex": went, "flow": flow, "samples": 20, "data_samples": 20, "packets": 40000,
                       "bytes": 40000 * 4170}


def mostly(rare):
    """Ring neighbours: leaf3 to leaf1 and leaf2 to leaf3 carry most of it."""
    pairs = [(a, b) for a in range(1, LEAVES + 1) for b in range(1, LEAVES + 1) if a != b]
    return pairs, [1 if p in ((3, 1), (2, 3)) else rare for p in pairs]


def elephants(spines):
    """From leaf2 to leaf3, 100 Gbit/s each, by these spines."""
    for i, spine in enumerate(spines):
        flow = {"src": "10.0.2.1", "dst": f"10.0.3.{1 + i % HOSTS}", "sport": 0xc000 + i, "dport": 4791, "proto": 17}
        for agent, came, went in (("192.0.2.2", 51, spine), (f"192.0.3.{spine}", 2, 3)):
            yield {"schema": "fabrictrace.observation.v1", "time_ms": START_MS + 5000, "interval_ms": 1000,
                   "first_ms": START_MS + 1000, "last_ms": START_MS + 4950, "agent": agent, "in_ifindex": came,
                   "out_ifindex": went, "flow": flow, "samples": 200, "data_samples": 200,
                   "packets": 30 * 10 ** 6, "bytes": 125 * 10 ** 9}


def job(spines):
    """200 queue pairs of a job from leaf2 to leaf3, by each of these spines in turn, and four to leaf1."""
    for i in range(204):
        spine, to = spines[i % len(spines)], 3 if i < 200 else 1
        flow = {"src": f"10.0.2.{1 + i % HOSTS}", "dst": f"10.0.{to}.{1 + i % HOSTS}", "sport": 0xc000 + i,
                "dport": 4791, "proto": 17}
        yield {"schema": "fabrictrace.flow.v1", "time_ms": START_MS + 4000, "interval_ms": 1000,
               "host": f"h2{1 + i % HOSTS}", "flow": flow, "direction": "tx", "tuple_source": "computed",
               "data_packets": 1000, "bytes": 4096000, "job": "train-1"}
        for agent, came, went in (("192.0.2.2", 51 + i % HOSTS, spine), (f"192.0.3.{spine}", 2, to)):
            yield {"schema": "fabrictrace.observation.v1", "time_ms": START_MS + 5000, "interval_ms": 1000,
                   "first_ms": START_MS + 4050, "last_ms": START_MS + 4950, "agent": agent, "in_ifindex": came,
                   "out_ifindex": went, "flow": flow, "samples": 20, "data_samples": 20, "packets": 40000,
                   "bytes": 40000 * 4170}


def events_of(records, *kinds):
    return {(e["kind"], e["subject"]): e for e in of_kind(records, "event")
            if e["kind"] in kinds and not e.get("cleared")}


def replay(folder, given):
    file = folder / "t.yaml"
    file.write_text(leaf_spine(LEAVES, SPINES, HOSTS, missing=(MISSING,), head="speed_bps: 400000000000\n"))
    done = rig.run(rig.DAEMON, "-c", os.devnull, *rig.TRUST, "--set", "source_id=golden", "--topology", file,
                   "--replay", "-", "--sink", "file:-", stdin=None, input="".join(json.dumps(r) + "\n" for r in given))
    equal("exit code", done.returncode, 0)
    return rig.records_of(done.stdout)


def run(folder, pairs, dead=None):
    records = replay(folder, observations(pairs, dead))
    return of_kind(records, "imbalance"), events_of(records, "polarization", "underused")


def ratio(records, name):
    of = [r for r in records if r["name"] == name]
    return sum(r["fim"] for r in of) / sum(r["fim_expected"] for r in of)


def test_what_cannot_be_taken_is_no_fault(folder):
    for rare in (0.02, 1):
        records, events = run(folder, mostly(rare))
        equal(f"{rare}: events", sorted((k, s, e["message"]) for (k, s), e in events.items()), [])
        judged = [r for r in records if r["scope"] == "group" and "p_value" in r]
        check(f"{rare}: groups are judged", len(judged) > LEAVES * WINDOWS, len(judged))
        equal(f"{rare}: faults", sorted({r["name"] for r in judged if r["verdict"] == "fault"}), [])
        wide = [r for r in records if r["scope"] != "group"]
        check(f"{rare}: layers and the fabric", wide and all(r.get("p_value", 1) > 1e-4 for r in wide),
              [(r["name"], r.get("p_value")) for r in wide])
        for name in ("leaf2/up", "leaf1/down", "leaf1/up", "leaf/up"):
            check(f"{rare}: FIM of {name} is what is expected", 0.8 < ratio(records, name) < 1.25,
                  ratio(records, name))


def test_a_dead_link_is_named(folder):
    for rare, spine in ((0.02, 2), (1, 1), (1, 4)):
        _, events = run(folder, mostly(rare), (2, spine))
        event = events.get(("polarization", "leaf2/up"), {})
        equal(f"{rare}, spine{spine}: named", event.get("evidence", {}).get("idle_ports"), [f"Ethernet{spine}"])
        check(f"{rare}, spine{spine}: so it is by new flows", ("underused", f"leaf2/Ethernet{spine}") in events,
              sorted(events))
        equal(f"{rare}, spine{spine}: no other leaf",
              [s for _, s in events if s.endswith("/up") and not s.startswith("leaf2/")], [])


def test_a_link_that_elephants_cannot_take_is_no_alternative(folder):
    events = events_of(replay(folder, elephants((2, 3, 4, 2, 3, 4))), "collision")
    equal("spread evenly over three", events, {})
    events = events_of(replay(folder, elephants((2, 2, 2, 3, 3, 4))), "collision")
    # The links down meet the same.
    equal("unevenly", {s: (e["evidence"]["elephants"], e["evidence"]["elephants_least"],
                           e["evidence"]["elephants_even"]) for (_, s), e in events.items()},
          {s: n for n, up, down in (((3, 1, 2), 2, 2), ((2, 1, 2), 3, 3))
           for s in (f"leaf2/Ethernet{up}", f"spine{down}/Ethernet3")})


def test_of_a_job_links_are_compared_that_all_of_it_may_take(folder):
    for spines, dead in (((2, 3, 4), []), ((3, 4), ["Ethernet2"])):
        found = [r for r in of_kind(replay(folder, job(spines)), "spread") if r["of"] == "job"]
        equal(f"{spines}: group", [r["group"] for r in found], ["leaf2/up"])
        equal(f"{spines}: links and flows", [(r["possible"], r["flows"]) for r in found], [(4, 204)])
        equal(f"{spines}: dead", [r.get("dead", []) for r in found], [dead])
        check(f"{spines}: even", all((r["even_p"] > 0.05) == (not dead) for r in found), found)
        check(f"{spines}: the least", all(r["least"] != "Ethernet1" for r in found), found)


if __name__ == "__main__":
    sys.exit(rig.run_tests(test_what_cannot_be_taken_is_no_fault, test_a_dead_link_is_named,
                           test_a_link_that_elephants_cannot_take_is_no_alternative,
                           test_of_a_job_links_are_compared_that_all_of_it_may_take))
