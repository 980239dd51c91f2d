#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A link loses packets for a while, and no counter says so: the flows over it send packets again, as the
numbers of their samples show. The link is named while that is so, and none else; not where the flows of
one receiver do so, over all links. That the job pauses for a window or two does not end it. The event names
flows that cross the link and send again, and pairs of hosts.

So it is where senders go back that far, at every switch, that samples seem to overtake each other. Where it is
the samples of one spine, or of one uplink of a leaf, that overtake each other, no link is named. And where all
flows send again by their timers, those whose receivers say that they missed packets name the link, though what
answers goes back by the same spine, as Linux routes it."""
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

START_MS, SECONDS = 1700000000000, 150
LEAVES, SPINES, HOSTS, FLOWS = 4, 4, 4, 500
LOSSY, FROM, TO = ("spine3", "Ethernet2"), 20, 60  # spine3's port to leaf2
BUSY, BUSY_FROM = "10.0.4.1", 5  # a receiver that is too slow for what it gets
MEMORY = 60  # seconds for which a flow counts with what its samples showed
PAUSES = (30, 40), (50, 60), (70, 90)  # of a job, while a link loses packets and after
FAR = 500  # packets by which a sender goes back, beyond the samples of the second before
VICTIMS_MAX = 32


def observation(flow, second, agent, came, went, back, far=0, source=0):
    src, dst, sport, spine = flow
    at = START_MS + 1000 * second
    return {"schema": "fabrictrace.observation.v1", "time_ms": at, "interval_ms": 1000, "first_ms": at + 50,
            "last_ms": at + 950, "agent": agent, "in_ifindex": came, "out_ifindex": went,
            "flow": {"src": src, "dst": dst, "sport": sport, "dport": 4791, "proto": 17},
            "samples": 3, "packets": 3000, "bytes": 4170 * 3000, "data_samples": 3, "dst_qp": 7,
            "psn": second * 3000 - far & 0xffffff, "psn_span": 2700 + far, "psn_back_samples": back,
            "frame_min_bytes": 4170, "frame_max_bytes": 4170, "source_type": 0, "source_index": source}


def answers(flow, second, agent, came, went, naks):
    """What the leaf of the receiver samples of them."""
    src, dst, sport, _ = flow
    at = START_MS + 1000 * second
    return {"schema": "fabrictrace.observation.v1", "time_ms": at, "interval_ms": 1000, "first_ms": at + 50,
            "last_ms": at + 950, "agent": agent, "in_ifindex": came, "out_ifindex": went,
            "flow": {"src": dst, "dst": src, "sport": sport, "dport": 4791, "proto": 17},
            "samples": 3, "packets": 3000, "bytes": 78 * 3000, "ack_samples": 3, "dst_qp": 8, "nak_samples": naks}


def is_lossy(flow):
    return f"spine{flow[3]}" == LOSSY[0] and f"Ethernet{flow[1].split('.')[2]}" == LOSSY[1]


def generate(rng, case, pauses):
    flows = []
    while len(flows) < FLOWS:
        a, b = rng.sample(range(1, LEAVES + 1), 2)
        flows.append((f"10.0.{a}.{rng.randint(1, HOSTS)}", f"10.0.{b}.{rng.randint(1, HOSTS)}",
                      rng.randint(0xc000, 0xffff), rng.randint(1, SPINES)))
    for second in range(SECONDS):
        if any(begin <= second < end for begin, end in pauses):
            continue
        for flow in flows:
            src, dst, _, spine = flow
            a, b = src.split("."), dst.split(".")
            lossy = is_lossy(flow) and FROM <= second < TO
            lost = case in ("lost", "far", "timers") and lossy and rng.random() < 0.1
            back = (lost or (dst == BUSY and second >= BUSY_FROM and rng.random() < 0.3)
                    or rng.random() < (0.1 if case == "timers" else 0.0005))
            far = FAR if back and case in ("far", "timers") else 0
            # Samples of one spine, or of the way to it alone, that overtake each other.
            late = [case == what and f"spine{spine}" == LOSSY[0] and second >= FROM and rng.random() < 0.3
                    for what in ("spine", "uplink")]
            yield observation(flow, second, f"192.0.2.{a[2]}", 50 + int(a[3]), spine, int(back or late[1]),
                              FAR if late[1] else far, spine if case == "uplink" else 0)
            yield observation(flow, second, f"192.0.3.{spine}", int(a[2]), int(b[2]),
                              int(bool(far) and back or late[0]), FAR if late[0] else far)
            if case == "timers":
                yield answers(flow, second, f"192.0.2.{b[2]}", 50 + int(b[3]), spine, int(lost))


def check_victims(evidence, flows):
    """flows: those that cross the link."""
    victims = evidence.get("victims", [])
    told = [(v["flow"]["src"], v["flow"]["dst"], v["flow"]["sport"]) for v in victims]
    pairs = [flow[:2] for flow in told]
    check("flows named are of the link", set(told) <= flows, set(told) - flows)
    equal("as many as there are", len(set(told)), min(evidence["flows"], VICTIMS_MAX))
    check("one of each pair first", len(set(pairs[:evidence["pairs"]])) == min(evidence["pairs"], len(victims)), pairs)
    check("pairs", len(set(pairs)) <= evidence["pairs"] <= evidence["flows"], evidence["pairs"])
    for v in victims:
        check("shows it", v["resending_windows"] + v.get("nak_windows", 0) > 0 and
              v["link_evidence"] == "sampled" and 0 < v["numbered_windows"] <= 6, v)
        check("its queue pair", v.get("qp") == {"remote": 7}, v)


def replay(case, pauses):
    """Returns the daemon's records, and the flows that cross the link."""
    given = list(generate(random.Random(5), case, pauses))
    crossing = set()
    for r in given:
        flow = r["flow"]["src"], r["flow"]["dst"], r["flow"]["sport"]
        if r["agent"] == f"192.0.3.{LOSSY[0][-1]}" and f"Ethernet{r['out_ifindex']}" == LOSSY[1]:
            crossing.add(flow)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "t.yaml"
        file.write_text(leaf_spine(LEAVES, SPINES, HOSTS))
        done = rig.run(rig.DAEMON, "-c", os.devnull, *rig.TRUST, "--set", "source_id=golden", "--topology", file,
                       "--replay", "-", "--sink", "file:-", stdin=None,
                       input="".join(json.dumps(r) + "\n" for r in given))
    equal("exit code", done.returncode, 0)
    records = rig.records_of(done.stdout, "event", "link")
    return records, [e for e in of_kind(records, "event") if e["kind"] == "packet_loss"], crossing


def judge_case(case):
    print(f"case {case}")
    _, events, crossing = replay(case, ())
    named = case in ("far", "timers")
    equal("what is said of it", {e["subject"] for e in events}, {"/".join(LOSSY)} if named else set())
    for e in events[:1]:
        second = (e["time_ms"] - START_MS) / 1000
        check("when it is said", FROM < second <= FROM + 30, second)
        check_victims(e["evidence"], crossing)


def judge(pauses):
    print("with pauses" if pauses else "without a pause")
    records, events, crossing = replay("lost", pauses)
    equal("what is said of it", [(e["subject"], bool(e.get("cleared"))) for e in events],
          [("/".join(LOSSY), False), ("/".join(LOSSY), True)])
    for e in events:
        second = (e["time_ms"] - START_MS) / 1000
        low, high = (TO, TO + MEMORY + 20) if e.get("cleared") else (FROM, FROM + 20)
        check("when it is said", low < second <= high, second)
    evidence = events[0]["evidence"] if events else {}
    equal("where", {k: evidence.get(k) for k in ("switch", "port", "peer", "peer_port", "group")},
          dict(zip(("switch", "port", "peer", "peer_port", "group"), (*LOSSY, "leaf2", "Ethernet3", "leaf2/down"))))
    check_victims(evidence, crossing)
    check("by chance", evidence.get("p_value", 1) < 1e-7, evidence.get("p_value"))
    check("flows", 3 <= evidence.get("flows", 0) <= evidence.get("count", 0), evidence)
    links = [r for r in of_kind(records, "link") if (r["switch"], r["port"]) == LOSSY and "resending_flows" in r]
    before = [r for r in links if r["window_end_ms"] <= START_MS + 1000 * FROM]
    during = [r for r in links if START_MS + 1000 * (FROM + 10) <= r["window_start_ms"] < START_MS + 1000 * TO
              and r["numbered_flows"]]
    check("its record, before", before and all(r["resending_flows"] <= r["numbered_flows"] / 5 for r in before), before)
    check("its record, while it does", during and all(
        r["resending_flows"] > r["numbered_flows"] / 2 for r in during), during)


def main():
    judge(())
    judge(PAUSES)
    for case in ("far", "spine", "uplink", "timers"):
        judge_case(case)
    return 1 if rig.failures else 0


if __name__ == "__main__":
    sys.exit(main())
