#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The judge judged: records made from the truth are right, and each way of being wrong that is put
into them is counted as what it is; and what the generator writes is what the truth says."""
import copy
import io
import json
import sys
from collections import Counter

sys.dont_write_bytecode = True
from paper import standing  # noqa: E402
from paper.cases import CASES, Run  # noqa: E402
from paper.judge import Judge  # noqa: E402
from paper.samples import BASE_MS, CLOCK  # noqa: E402
from paper.volumes import Windows, true_loads  # noqa: E402

WINDOW_S = 10
SECONDS = 80
failures = []


def check(what, good, detail=""):
    print(f"{'ok' if good else 'FAIL'}: {what}{'' if good else f': {detail}'}", flush=True)
    if not good:
        failures.append(what)


def equal(what, got, want):
    check(what, got == want, f"got {got!r}, want {want!r}")


def make(name, seed=1, flows=60):
    return Run(name, seed, flows, SECONDS)


def hop_dicts(path):
    return [{"switch": switch, "in": entry, "out": port, "samples": 3, "share": 1}
            for switch, entry, port in path]


def flow_dict(flow):
    return {"src": flow.src, "dst": flow.dst, "sport": flow.sport, "dport": 4791, "proto": 17}


def record_at(truth, flow, second):
    """What a daemon that knows all says of a flow at a moment."""
    start = int(second) // WINDOW_S * WINDOW_S
    (path,) = truth.at(flow, second)
    return {"schema": "fabrictrace.path.v1", "window_start_ms": BASE_MS + start * 1000,
            "window_end_ms": BASE_MS + (start + WINDOW_S) * 1000,
            "time_ms": BASE_MS + int(second * 1000), "flow": flow_dict(flow), "state": "resolved",
            "hops": hop_dicts(path), "path_since_ms": BASE_MS + int(
                (truth.last_move(flow, second) or 0) * 1000)}


def clock(second):
    return {"schema": "fabrictrace.host.v1", "time_ms": BASE_MS + second * 1000, "source": CLOCK}


def perfect(truth):
    """Each flow each second, and the clock."""
    for second in range(SECONDS):
        for flow in truth.flows:
            if not flow.sprayed:
                yield record_at(truth, flow, second + 0.9)
        yield clock(second + 1)


def counted(truth, records):
    judge = Judge(truth)
    for record in records:
        judge.take(record)
    return judge


def moved_flow(truth, quiet_s=4):
    """(flow, moment of a move) with nothing else for a while on both sides."""
    for flow in truth.flows:
        moments = [0, *(m for m, _ in truth.history[flow.number][1:]), SECONDS]
        for before, moment, after in zip(moments, moments[1:], moments[2:]):
            if moment - before > quiet_s and after - moment > quiet_s and not flow.sprayed:
                return flow, moment
    raise ValueError("no flow moved")


def with_fault(record, **changes):
    return {**copy.deepcopy(record), **changes}


def injected(what, truth, record, **want):
    """One record alone gives these counts, of those that tell of faults."""
    kinds = ("right", "stale", "wrong", "never", "late", "early", "no_samples", "unsprayed",
             "bad_shares", "wrong_share", "single", "outside", "partial_wrong", "foreign")
    counts = counted(truth, [record]).counts
    equal(what, {kind: counts[kind] for kind in kinds if counts[kind]}, want)


def test_right():
    truth = make("moves2").truth
    judge = counted(truth, perfect(truth))
    equal("a daemon that knows all is right",
          judge.counts, Counter(records=60 * SECONDS, resolved=60 * SECONDS,
                                right=60 * SECONDS))
    check("path_since of moved flows is compared", judge.since_errors and
          all(-0.002 < error <= 0 for error in judge.since_errors), judge.since_errors[:5])


def test_wrong_hops():
    truth = make("moves2").truth
    flow, moment = moved_flow(truth)
    good = record_at(truth, flow, moment + 2)
    bad = with_fault(good)
    bad["hops"][0]["out"], bad["hops"][0]["in"] = bad["hops"][0]["in"], bad["hops"][0]["out"]
    injected("a hop the wrong way round never was", truth, bad, wrong=1, never=1)
    other = next(f for f in truth.flows if len(truth.at(f, 5)) == 1 and f.src != flow.src)
    bad = with_fault(good, hops=hop_dicts(next(iter(truth.at(other, 5)))))
    injected("another flow's path never was", truth, bad, wrong=1, never=1)
    bad = with_fault(good, hops=good["hops"][:-1])
    injected("a path without its last hop never was", truth, bad, wrong=1, never=1)
    bad = with_fault(good)
    del bad["hops"][0]["in"]
    injected("a resolved hop without a port is wrong", truth, bad, wrong=1, never=1)
    bad = with_fault(good, hops=[dict(hop, samples=0) for hop in good["hops"]])
    injected("a path without a sample is counted", truth, bad, right=1, no_samples=1)
    bad = with_fault(good, flow=dict(good["flow"], sport=1))
    injected("a flow that nobody sent is counted", truth, bad, foreign=1)


def test_wrong_times():
    truth = make("moves2").truth
    flow, moment = moved_flow(truth)
    old, new = record_at(truth, flow, moment - 1), record_at(truth, flow, moment + 3)

    def said(record, second):
        shifted = record_at(truth, flow, second)
        return with_fault(shifted, hops=record["hops"])

    injected("the old path just after a move is stale", truth, said(old, moment + 1.4), stale=1)
    injected("the old path later is wrong", truth, said(old, moment + 1.6), wrong=1, late=1)
    injected("the new path before the move is wrong", truth, said(new, moment - 0.1),
             wrong=1, early=1)
    end = new["window_end_ms"]
    injected("time_ms after the window is outside", truth,
             with_fault(record_at(truth, flow, moment + 3), window_end_ms=new["time_ms"] - 1),
             right=1, outside=1)
    injected("path_since_ms after the window is outside", truth,
             with_fault(new, path_since_ms=end + 1), right=1, outside=1)
    old.pop("time_ms")
    bare = with_fault(old, window_end_ms=BASE_MS + int((moment + 1.6) * 1000))
    judge = counted(truth, [clock(int(moment) + 5), bare])
    equal("without time_ms the window's end is the moment", judge.counts["late"], 1)
    judge = counted(truth, [clock(int(moment) - 2), bare])
    equal("but never after it was published", judge.counts["right"], 1)


def test_other_states():
    truth = make("moves2").truth
    flow, moment = moved_flow(truth)
    good = record_at(truth, flow, moment + 3)
    shares = [{"share": 0.5, "hops": good["hops"]}, {"share": 0.5, "hops": good["hops"]}]
    injected("multipath of a flow with one path is counted", truth,
             with_fault(good, state="multipath", hops=[], shares=shares), unsprayed=1)
    shares[0]["share"] = 1
    injected("a share of 1 is counted", truth,
             with_fault(good, state="multipath", shares=shares), unsprayed=1, bad_shares=1)
    injected("no shares are counted", truth, with_fault(good, state="multipath"), unsprayed=1,
             bad_shares=1)
    hops = good["hops"][:1]
    injected("a certain hop that is so", truth, with_fault(good, state="partial", hops=hops))
    some = [{"switch": hops[0]["switch"], "in": hops[0]["in"]}]
    injected("half of a hop that is so", truth, with_fault(good, state="partial", hops=some))
    some = [{"switch": "spine99"}]
    injected("a certain hop that is not so", truth, with_fault(good, state="partial", hops=some),
             partial_wrong=1)


def test_sprayed():
    truth = make("spray").truth
    flow = next(f for f in truth.flows if f.sprayed and len(truth.at(f, 5)) > 1)
    start = {"schema": "fabrictrace.path.v1", "window_start_ms": BASE_MS,
             "window_end_ms": BASE_MS + 10000, "time_ms": BASE_MS + 5000, "flow": flow_dict(flow)}
    paths = truth.at(flow, 5)
    shares = [{"share": part, "hops": hop_dicts(path)} for path, part in paths.items()]
    injected("all paths of a sprayed flow", truth, dict(start, state="multipath", shares=shares))
    injected("one path of a sprayed flow", truth,
             dict(start, state="resolved", hops=shares[0]["hops"]), single=1)
    shares[0] = dict(shares[0], hops=shares[0]["hops"][::-1])
    injected("a share of a path that never was", truth,
             dict(start, state="multipath", shares=shares), wrong_share=1)


def late_claims(truth, delay_s):
    """Each path is said so much after it is true."""
    return [[(m + delay_s if m else 0.0, "resolved", next(iter(paths)))
             for m, paths in truth.history[flow.number]] for flow in truth.flows]


def test_standing():
    run = make("double")
    shares, settled, unsettled, _ = standing.judge(run.truth, late_claims(run.truth, 4), SECONDS)
    times = [took for values in settled.values() for took in values]
    check("paths that come 4 s late are right 4 s after the last move",
          times and all(3.2 < took < 4.01 for took in times) and not unsettled, times[:5])
    total = sum(flow.end - flow.start for flow in run.truth.flows)
    check("the shares are of all time that flows send", abs(sum(shares.values()) - total) < 0.01,
          f"{sum(shares.values())} of {total}")
    check("old paths stand meanwhile", any(state == "outdated" for _, state in shares), shares)
    truth = make("rehash").truth
    claims = [claims[:1] for claims in late_claims(truth, 0)]
    _, _, unsettled, _ = standing.judge(truth, claims, SECONDS)
    check("flows that are never right again are counted", unsettled.total() > 0)


def link_records(truth, start, end):
    return [{"schema": "fabrictrace.link.v1", "window_start_ms": BASE_MS + start * 1000,
             "window_end_ms": BASE_MS + end * 1000, "switch": switch, "port": port,
             "bytes": round(load[0])}
            for (switch, port), load in true_loads(truth, start, end).items()]


def test_volumes():
    truth = make("moves3").truth
    windows = Windows(truth, SECONDS)
    records = [r for start in range(0, SECONDS, 10)
               for r in link_records(truth, start, start + 10)]
    for record in records:
        windows.take(record)
    off = sum(sums["off"] for sums in windows.sums.values())
    total = sum(sums["bytes"] for sums in windows.sums.values())
    check("true bytes of links have no error", total and off < 1e-6 * total, f"{off} of {total}")
    equal("nor does an idle link carry any", windows.phantom, 0)
    windows.take(dict(records[-1], port="Ethernet999"))
    equal("bytes on an idle link are counted", windows.phantom, 1)
    # Each flow's bytes leave by its last hop, whatever moved.
    flow = next(f for f in truth.flows if f.start == 0 and f.end == SECONDS)
    alone = copy.copy(truth)
    alone.flows = [flow]
    last = next(iter(truth.at(flow, 0)))[-1]
    bytes_out = true_loads(alone, 0, SECONDS)[last[0], last[2]][0]
    check("the truth's bytes are those of the flow",
          abs(bytes_out - SECONDS * flow.bytes_per_s) < 1, bytes_out)


def observations(run):
    out = io.StringIO()
    run.write(out)
    return out.getvalue()


def test_samples():
    """Each sample lies on a path that was true within the longest delay before its stamp."""
    for name in ("moves3", "spray", "swapped", "detour", "parallel"):
        run = make(name, seed=3)
        text = observations(run)
        equal(f"{name}: the same seed gives the same samples",
              text == observations(make(name, seed=3)), True)
        switches = {s.address: s for s in run.fabric.switches.values()}
        ports = {(s.name, i): p for s in run.fabric.switches.values() for p, i in s.ports.items()}
        off, samples, before = [], Counter(), 0
        for line in text.splitlines():
            o = json.loads(line)
            check_order = o["time_ms"] >= before
            before = o["time_ms"] if o["schema"] != "fabrictrace.host.v1" else before
            if o["schema"] != "fabrictrace.observation.v1":
                continue
            flow = run.truth.by_tuple[o["flow"]["src"], o["flow"]["dst"], o["flow"]["sport"]]
            switch = switches[o["agent"]].name
            hop = (switch, ports[switch, o["in_ifindex"]], ports[switch, o["out_ifindex"]])
            first, last = ((o[k] - BASE_MS) / 1000 for k in ("first_ms", "last_ms"))
            near = run.truth.within(flow, first - run.truth.delay_s - 0.001, last + 0.001)
            samples[flow.number] += o["samples"] / len(next(iter(near)))
            if not check_order or not any(hop in path for path in near) or \
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
                for path in run.truth.at(flow, moment):
                    source, target = hosts[flow.src], hosts[flow.dst]
                    joined = all(ends[a[0], a[2]][:2] == b[:2] and ends[a[0], a[2]][2] not in down
                                 for a, b in zip(path, path[1:]))
                    if not joined or path[0][:2] != (source.leaf, source.port) or \
                            path[-1][::2] != (target.leaf, target.port):
                        bad.append((moment, flow.number, path))
        check(f"{name}: paths follow the cables", not bad, bad[:2])
        check(f"{name}: it has what it is called after", bool(run.truth.faults) ==
              bool(run.case.plan) and bool(run.case.bend) ==
              bool(run.blind or run.fabric.told or run.fabric.detour))


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


for test in (test_right, test_wrong_hops, test_wrong_times, test_other_states, test_sprayed,
             test_standing, test_volumes, test_samples, test_routes, test_lies):
    print(test.__name__)
    test()
sys.exit(1 if failures else 0)
