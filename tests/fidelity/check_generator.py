#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the generator writes is what its truth says, and the truth is what cables and faults allow."""
import io
import json
import sys
from collections import Counter

sys.dont_write_bytecode = True
from paper.cases import CASES, Run  # noqa: E402
from paper.checks import check, equal, run_tests  # noqa: E402
from paper.samples import BASE_MS, Hops  # noqa: E402

SECONDS = 80


def make(name, seed=1, flows=60):
    return Run(name, seed, flows, SECONDS)


def observations(run):
    out = io.StringIO()
    run.write(out)
    return out.getvalue()


def told(run, flow, path, place):
    ttl, outer = run.hops.headers(flow, path, place)
    return ttl, outer and outer[1]


def test_headers():
    """TTLs at the hops of a way through five switches, worked out by hand."""
    run = make("steady3")
    flow = next(f for f in run.truth.flows if f.ttl == 64)
    path = max((path for f in run.truth.flows for path in run.truth.at(f, 0)), key=len)
    names = [hop[0] for hop in path]
    for hops, want in ((Hops(run.fabric), [64, 63, 62, 61, 60]),
                       (Hops(run.fabric, late=names), [63, 62, 61, 60, 59]),
                       (Hops(run.fabric, bridging=names[1:2]), [64, 63, 63, 62, 61]),
                       (Hops(run.fabric, tunnel=True), [64, 255, 254, 253, 252]),
                       (Hops(run.fabric, late=names, tunnel=True), [255, 254, 253, 252, 62])):
        got = [hops.headers(flow, path, place) for place in range(5)]
        equal("TTLs", [ttl for ttl, _ in got], want)
        equal("in a tunnel", [bool(outer) for _, outer in got], [ttl > 64 for ttl in want])


def test_samples():
    """Each sample lies on a path that was true within the longest delay before its stamp."""
    for name in ("moves3", "spray", "swapped", "detour", "parallel", "dual", "nofile-tunnel",
                 "nofile-bridged"):
        run = make(name, seed=3)
        text = observations(run)
        equal(f"{name}: the same seed gives the same samples",
              text == observations(make(name, seed=3)), True)
        switches = {s.address: s for s in run.fabric.switches.values()}
        ports = {(s.name, i): p for s in run.fabric.switches.values() for p, i in s.ports.items()}
        off, samples, before = [], Counter(), 0
        for line in text.splitlines():
            o = json.loads(line)
            if o["schema"] != "fabrictrace.observation.v1":
                continue
            in_order, before = o["time_ms"] >= before, o["time_ms"]
            flow = run.truth.by_tuple[o["flow"]["src"], o["flow"]["dst"], o["flow"]["sport"]]
            switch = switches[o["agent"]].name
            hop = (switch, ports[switch, o["in_ifindex"]], ports[switch, o["out_ifindex"]])
            first, last = ((o[k] - BASE_MS) / 1000 for k in ("first_ms", "last_ms"))
            near = run.truth.within(flow, first - run.truth.delay_s - 0.001, last + 0.001)
            seen = o["ttl"], o.get("outer") and o["outer"]["dst"]
            samples[flow.number] += o["samples"] / len(next(iter(near)))
            if not in_order or not any(hop in path and seen == told(run, flow, path, path.index(hop))
                                       for path in near) or \
                    not o["time_ms"] <= o["first_ms"] <= o["last_ms"] < o["time_ms"] + 1000:
                off.append(line)
        check(f"{name}: each sample is of a true path", not off, off[:2])
        want = sum(flow.rate * (flow.end - flow.start) for flow in run.truth.flows)
        check(f"{name}: as many samples as the rates say",
              abs(samples.total() - want) < 0.1 * want, f"{samples.total()} of {want}")


def test_routes():
    """Paths cross links that are there and up, from host to host, and those of a lost link move."""
    for name in CASES:
        run = make(name, seed=2)
        ends = {}
        for number, link in enumerate(run.fabric.links):
            ends[link.a, link.a_port] = (link.b, link.b_port, number)
            ends[link.b, link.b_port] = (link.a, link.a_port, number)
        hosts = {host.address: host for host in run.fabric.hosts}
        down, bad = set(), []
        for moment, what, which in [(0.0, "", None), *run.truth.faults]:
            down = down | {which} if what == "down" else down - {which}
            for flow in run.truth.flows:
                if not flow.start <= moment < flow.end:
                    continue
                for path in run.truth.at(flow, moment):
                    source, target = hosts[flow.src], hosts[flow.dst]
                    joined = all(ends[a[0], a[2]][:2] == b[:2] and ends[a[0], a[2]][2] not in down
                                 for a, b in zip(path, path[1:]))
                    if not joined or path[0][:2] not in source.attach or \
                            path[-1][::2] not in target.attach:
                        bad.append((moment, flow.number, path))
        check(f"{name}: paths follow the cables", not bad, bad[:2])
        check(f"{name}: it has what it is called after", bool(run.truth.faults) ==
              bool(run.case.plan) and bool(run.case.bend) ==
              bool(run.blind or run.fabric.told or run.fabric.detour or
                   any(len(host.attach) > 1 for host in run.fabric.hosts)))


def test_lies():
    run = make("swapped")
    differ = [(told, true) for told, true in zip(run.fabric.told, run.fabric.links) if told != true]
    equal("two cables are not as the file says", len(differ), 2)
    run = make("blind")
    blind = run.fabric.switches[run.blind[0]].address
    check("the blind switch says nothing", f'"agent":"{blind}"' not in observations(run))
    run = make("detour")
    lengths = {len(path) for flow in run.truth.flows for path in run.truth.at(flow, 0)}
    check("a detour is longer than what is shortest", max(lengths) > max(
        length + 1 for length in run.routing.lengths.values()), lengths)
    doubles = make("double").truth.faults
    gaps = [b[0] - a[0] for a, b in zip(doubles, doubles[1:])]
    check("two moves within 0.7 s", any(0 < gap <= 0.7 for gap in gaps), gaps)


def test_ports():
    """Ports tell that they are down while they are."""
    told = {kind: Counter() for kind in ("switch_report", "counters")}
    for seed in range(1, 5):
        run = make("linkdown", seed)
        links = {link.a: {} for link in run.fabric.links}
        for number, link in enumerate(run.fabric.links):
            links[link.a][run.fabric.switches[link.a].ports[link.a_port]] = number
        names = {s.address: s.name for s in run.fabric.switches.values()}
        for line in observations(run).splitlines():
            record = json.loads(line)
            kind = record["schema"].split(".")[1]
            if kind not in told:
                continue
            down = set()
            for moment, what, which in run.truth.faults:
                if BASE_MS + int(moment * 1000) <= record["time_ms"] and what != "rehash":
                    down = down | {which} if what == "down" else down - {which}
            numbers = links.get(names[record["agent"]], {})
            for port in record.get("ports", [record]):
                if port["ifindex"] in numbers:
                    true = numbers[port["ifindex"]] not in down
                    told[kind][port["oper_up"], true] += 1
    for kind, seen in told.items():
        check(f"{kind}: ports are as they say", seen[True, True] and seen[False, False] and
              not seen[True, False] and not seen[False, True], seen)


sys.exit(run_tests(test_headers, test_samples, test_routes, test_lies, test_ports))
