#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The judge judged: records made from the truth are right, and each way of being wrong that is put
into them is counted as what it is, and breaks the limit that is set for it."""
import copy
import json
import sys
from collections import Counter

sys.dont_write_bytecode = True
from paper import limits, standing  # noqa: E402
from paper.cases import Run  # noqa: E402
from paper.checks import check, equal, run_tests  # noqa: E402
from paper.found import Events, Links, Names  # noqa: E402
from paper.idle import WINDOW_S as IDLE_WINDOW_S, WORDS, Idle, spans  # noqa: E402
from paper.judge import Judge, hops_of  # noqa: E402
from paper.report import Tally  # noqa: E402
from paper.samples import BASE_MS, CLOCK  # noqa: E402
from paper.volumes import Windows, true_loads  # noqa: E402

WINDOW_S = 10
SECONDS = 80


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
    kinds = ("since_wrong", "since_late", "right", "stale", "wrong", "never", "late", "early", "no_samples", "unsprayed",
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
    before = with_fault(new, window_start_ms=new["time_ms"] + 1)
    injected("time_ms before the window is outside", truth, before, right=1, outside=1)
    equal("but not where it was said already", counted(truth, [new, before]).counts["outside"], 0)
    early = BASE_MS + int((moment - 2) * 1000)
    injected("a path_since_ms long before the move is wrong", truth,
             with_fault(new, path_since_ms=early), right=1, since_wrong=1)
    slow, left = moved_flow(truth, 12)
    slow.rate, late = 50, BASE_MS + int((left + 11) * 1000)
    injected("and of a dense flow, one long after it", truth,
             with_fault(record_at(truth, slow, left + 11.5), path_since_ms=late), right=1,
             since_late=1)
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
    judge = counted(truth, [clock(9), dict(start, state="resolved", hops=shares[0]["hops"]),
                            clock(10), dict(start, state="resolved", hops=shares[0]["hops"])])
    equal("that is no excuse once others were seen to be sprayed",
          (judge.counts["single"], judge.counts["single_late"]), (2, 1))
    alone, path = copy.deepcopy(truth), shares[0]["hops"]
    alone.history[flow.number] = [(0.0, {hops_of(path): 1.0}), (4.0, truth.at(flow, 5))]
    injected("a path that was the only one a second ago", alone,
             dict(start, state="resolved", hops=path), stale=1)
    injected("and one that was so long before", alone,
             dict(start, time_ms=BASE_MS + 6000, state="resolved", hops=path), single=1)
    shares[0] = dict(shares[0], hops=shares[0]["hops"][::-1])
    injected("a share of a path that never was", truth,
             dict(start, state="multipath", shares=shares), wrong_share=1)


def late_claims(truth, delay_s):
    """Each path is said so much after it is true."""
    return [[(m + delay_s if m else 0.0, "resolved", next(iter(paths)))
             for m, paths in truth.history[flow.number]] for flow in truth.flows]


def test_standing():
    run = make("double")
    shares, calm, settled, unsettled, slow = standing.judge(run.truth, late_claims(run.truth, 4), SECONDS)
    times = [took for values in settled.values() for took in values]
    check("paths that come 4 s late are right 4 s after the last move",
          times and all(3.2 < took < 4.01 for took in times) and not unsettled, times[:5])
    total = sum(flow.end - flow.start for flow in run.truth.flows)
    check("the shares are of all time that flows send", abs(sum(shares.values()) - total) < 0.01,
          f"{sum(shares.values())} of {total}")
    equal("none of them is slow", slow, [])
    equal("when all is calm, all are right", {state for _, state in calm}, {"right"})
    check("old paths stand meanwhile", any(state == "outdated" for _, state in shares), shares)
    truth = make("rehash").truth
    claims = [claims[:1] for claims in late_claims(truth, 0)]
    *_, unsettled, slow = standing.judge(truth, claims, SECONDS)
    check("flows that are never right again are counted", unsettled.total() > 0)
    equal("and named", sum(took is None for _, _, took in slow), unsettled.total())


def link_records(truth, start, end):
    return [{"schema": "fabrictrace.link.v1", "window_start_ms": BASE_MS + start * 1000,
             "window_end_ms": BASE_MS + end * 1000, "switch": switch, "port": port,
             "bytes": round(load)}
            for (switch, port), load in true_loads(truth, start, end).items()]


def test_volumes():
    truth = make("moves3").truth
    windows = Windows(truth, SECONDS, {})
    records = [r for start in range(0, SECONDS, 10)
               for r in link_records(truth, start, start + 10)]
    for record in records:
        windows.take(record)
    off = sum(sums["off"] for sums in windows.sums.values())
    total = sum(sums["bytes"] for sums in windows.sums.values())
    check("true bytes of links have no error", total and off < 1e-6 * total, f"{off} of {total}")
    equal("nor does an idle link carry any", windows.phantom, 0)
    windows.take(dict(records[-1], port="Ethernet999", bytes=0))
    equal("an idle link's record is no fault", windows.phantom, 0)
    windows.take(dict(records[-1], port="Ethernet999", bytes=10))
    equal("the fewest bytes on an idle link are", windows.phantom, 1)
    # Each flow's bytes leave by its last hop, whatever moved.
    flow = next(f for f in truth.flows if f.start == 0 and f.end == SECONDS)
    alone = copy.copy(truth)
    alone.flows = [flow]
    last = next(iter(truth.at(flow, 0)))[-1]
    bytes_out = true_loads(alone, 0, SECONDS)[last[0], last[2]]
    check("the truth's bytes are those of the flow",
          abs(bytes_out - SECONDS * flow.bytes_per_s) < 1, bytes_out)


def link_said(fabric, link, **changes):
    a, b = fabric.switches[link.a], fabric.switches[link.b]
    return {"schema": "fabrictrace.link.v1", "window_end_ms": BASE_MS + 30000, "switch": a.address,
            "port": f"if{a.ports[link.a_port]}", "peer": b.address,
            "peer_port": f"{b.ports[link.b_port]}", **changes}


def test_found():
    run = make("nofile2", flows=200)
    fabric = run.fabric
    links = Links(fabric, run.truth, SECONDS, Names(fabric))
    check("many links are busy, no more than there are", len(links.true) / 2 < len(links.busy) <=
          len(links.true), len(links.busy))
    for link in fabric.links:
        links.take(link_said(fabric, link))
        back = link._replace(a=link.b, a_port=link.b_port, b=link.a, b_port=link.a_port)
        links.take(link_said(fabric, back))
    equal("links by address and ifIndex are found", (links.right(), links.known_after_s),
          (len(links.busy), 30.0))
    equal("none is wrong", len(links.wrong), 0)
    busy = next(link for link in fabric.links if (link.a, link.a_port) in links.busy)
    links.take(link_said(fabric, busy, peer_port="1"))
    equal("one to another port is", (len(links.wrong), links.right()), (1, len(links.busy) - 1))


def event(kind, text):
    return {"schema": "fabrictrace.event.v1", "kind": kind, "subject": text}


def test_events():
    run = make("swapped")
    events = Events(run)
    told = next(t for t, true in zip(run.fabric.told, run.fabric.links) if t != true)
    good = next(t for t, true in zip(run.fabric.told, run.fabric.links) if t == true and
                (t.a, t.a_port) != (told.a, told.a_port))
    events.take(event("miscabling", f"{told.a}/{told.a_port}"))
    equal("a lie that is named", (len(events.named), len(events.false), events.lies()), (1, 0, 2))
    events.take(event("miscabling", f"{good.a}/{good.a_port}"))
    events.take(event("detour", run.fabric.leaves()[0]))
    equal("accusations that are false", len(events.false), 2)
    run = make("blind")
    events = Events(run)
    events.take(event("silent_exporter", run.blind[0]))
    equal("the blind switch may be blamed", len(events.false), 0)
    events.take(event("silent_exporter", next(n for n in run.fabric.leaves()
                                              if n not in run.blind)))
    equal("another one may not", len(events.false), 1)


def idle_event(kind, group, start, **evidence):
    return {"schema": "fabrictrace.event.v1", "kind": kind, "subject": group, "message": "",
            "since_ms": BASE_MS + start * 1000, "time_ms": BASE_MS + (start + IDLE_WINDOW_S) * 1000,
            "evidence": {"group": group, **evidence}}


def test_idle():
    run = make("out", flows=200)
    idle = Idle(run)
    outages = idle.outages()
    link, start = outages[0]
    equal("a link is out", {out for out, _ in outages}, {link})
    check("in windows in all of which it is", all(
        down < begin and begin + IDLE_WINDOW_S <= up for _, begin in outages
        for down, up in spans(run.truth.faults, run.fabric.links.index(link))), outages)
    equal("nobody names it", idle.counts(), {"false_idle": 0, "outages": len(outages), "outages_told": 0})
    group = link.a + "/up"
    event = idle_event("polarization", group, start, idle_ports=[link.a_port])
    idle.take(event)
    equal("one without the words does not", idle.counts()["outages_told"], 0)
    event["message"] = ": ".join(WORDS).format(link.a_port)
    idle.take(event)
    equal("an event does, while it stands", idle.counts()["outages_told"], len(outages))
    idle.take({**event, "cleared": True, "time_ms": event["time_ms"] + 1000})
    equal("and not when it is cleared", idle.counts()["outages_told"], 1)
    equal("it is right", idle.counts()["false_idle"], 0)
    busy = next(end for end in idle.members(group) if end != (link.a, link.a_port))
    idle.take(idle_event("underused", group, start, switch=link.a, port=link.a_port))
    equal("nor is it false that flows avoid it", idle.counts()["false_idle"], 0)
    idle.take(idle_event("underused", group, start, switch=busy[0], port=busy[1]))
    idle.take(idle_event("polarization", group, start, idle_ports=[busy[1]]))
    equal("of a busy one both are", idle.counts()["false_idle"], 2)


def test_limits():
    """Each count that must be 0 breaks a limit, and so does silence."""
    for count in limits.NEVER:
        tally = Tally()
        equal("nothing breaks no limit", limits.broken("moves2", tally), [])
        tally.counts[count] = 1
        equal(f"one of {count} does", len(limits.broken("moves2", tally)), 1)
    tally = Tally()
    tally.calm["dense", "partial"] = 60.0
    equal("always partial is no pass", len(limits.broken("moves2", tally)), 1)
    tally = Tally()
    tally.settled["dense"] = [3.0, limits.DENSE_S + 1]
    equal("nor are paths that come late", len(limits.broken("double", tally)), 1)
    tally.settled["dense"], tally.unsettled["dense"] = [3.0], 1
    equal("nor those that never come", len(limits.broken("double", tally)), 1)
    tally = Tally()
    tally.volumes[True].update(bytes=100.0, off=30.0, over=25.0, samples_off=4.0)
    equal("nor bytes on other links", len(limits.broken("moves2", tally)), 1)
    tally.volumes[False].update(bytes=100.0, off=15.0, over=14.0, samples_off=4.0)
    equal("but those that are too many without moves as well", limits.broken("moves2", tally), [])
    tally = Tally()
    tally.counts.update(lies=2, lies_named=1)
    equal("nor a lie that nobody named", len(limits.broken("swapped", tally)), 1)
    tally = Tally()
    tally.counts.update(true_links=10, found_links=7)
    equal("nor links that are not found", len(limits.broken("nofile2", tally)), 1)


def test_saved():
    """What was saved and added up is what the runs gave."""
    tally, whole = Tally(), Tally()
    tally.counts.update(records=7, wrong=1)
    tally.shares["dense", "right"] += 1.5
    tally.settled["usual"].append(2.5)
    tally.known_after_s += [10, None]
    tally.volumes[True].update(bytes=3.0)
    for _ in range(2):
        whole.add(Tally.of_plain(json.loads(json.dumps(tally.plain()))))
    tally.add(copy.deepcopy(tally))
    equal("twice the same is twice as much", whole.as_json(), tally.as_json())
    equal("in each part", whole.plain(), tally.plain())


sys.exit(run_tests(test_right, test_wrong_hops, test_wrong_times, test_other_states, test_sprayed,
                   test_standing, test_volumes, test_found, test_events, test_idle, test_limits,
                   test_saved))
