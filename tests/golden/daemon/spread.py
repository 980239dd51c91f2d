#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How traffic spreads over 32 uplinks, from generated samples whose truth is known: a queue pair that
is sprayed packet by packet with one dead path, one in flowlets, four in flowlets of several samples each,
256 queue pairs of one connection that stay, 480 of another that leave out one path, one that changes its route, one that changes it while it is
sprayed, one whose own leaf takes no samples, one whose route flaps, and one seen at more ports than are
remembered; and jobs of several of them. Shares, paths and verdicts are held against what was generated."""
import json
import math
import random
import sys
import tempfile
from collections import Counter
from pathlib import Path

sys.dont_write_bytecode = True
import rig  # noqa: E402
from rig import check, equal, of_kind  # noqa: E402

SPINES, HOSTS = 32, 8
START_MS = 1700000000000
SECONDS, WINDOW_S = 15, 5
RATE = 400  # samples a second
DEAD, MOVE_MS = 9, 7400
QPS, DARK_QPS = 256, 480

# Of each flow: (host, spine of a sample at a moment).
rng = random.Random(11)
EVEN = [s for s in range(1, SPINES + 1) if s != DEAD]


def of_flowlets():
    """500 packets at a time choose a spine, of which one in 2000 is sampled."""
    state = {"spine": 1, "left": 0}

    def choose(_):
        gap = rng.randint(1, 4000)
        while gap > state["left"]:
            gap -= state["left"]
            state.update(spine=rng.randint(1, SPINES), left=500)
        state["left"] -= gap
        return state["spine"]
    return choose


def of_moments(length_ms):
    """All packets of so long choose the same spine."""
    state = {"spine": 1, "until": 0}

    def choose(ms):
        if ms >= state["until"]:
            state.update(spine=rng.randint(1, SPINES), until=(ms // length_ms + 1) * length_ms)
        return state["spine"]
    return choose


FLOWS = {
    50001: (1, lambda ms: rng.choice(EVEN)),
    50002: (2, of_flowlets()),
    50003: (3, lambda ms: 3 if ms < MOVE_MS else 7),
    50004: (4, lambda ms: rng.randint(1, 16) if ms < MOVE_MS else rng.randint(17, 32)),
    50005: (5, lambda ms: rng.randint(1, SPINES)),
    50006: (7, lambda ms: 4 + 7 * (ms // 1700 % 2)),
    50007: (8, lambda ms: rng.randint(1, SPINES)),
    50008: (1, of_moments(30)),
    50009: (2, of_moments(200)),
    50010: (4, of_moments(2)),
    50011: (5, of_moments(5)),
}
LONG = {50008: 30, 50009: 200, 50010: 2, 50011: 5}  # flowlets of several samples, in ms
FLAPS = 50006  # between two spines
CROWDED = 50007  # each spine has as many sub-agents as leave room for half of its leaf's ports
SUB_AGENTS, SIGHTINGS_MAX = 7, 256
BLIND = 50005  # leaf3 sends it, and samples nothing
OWN_QP = {51000 + i: rng.randint(1, SPINES) for i in range(QPS)}
# Of another connection none reaches one spine: that path is dead for it, though no queue pair of it shows that.
dark = random.Random(12)
DARK_QP = {52000 + i: dark.choice(EVEN) for i in range(DARK_QPS)}
# Queue pairs that stay, of one connection; queue pairs of two connections that are sprayed.
JOBS = {"train-7": [*OWN_QP], "train-8": [50001, 50002]}


def leaf_of(sport):
    return 3 if sport == BLIND else 1


def flow_of(sport):
    host = FLOWS[sport][0] if sport in FLOWS else 6
    return {"src": f"10.0.{leaf_of(sport)}.{host}", "dst": f"10.0.2.{5 if sport in DARK_QP else host}", "sport": sport,
            "dport": 4791, "proto": 17}


def topology():
    text = "fabric: small\nspeed_bps: 100000000000\nswitches:\n"
    for leaf in range(1, 4):
        ports = ", ".join(f"{{name: Ethernet{i}, ifindex: {i}}}"
                          for i in [*range(1, HOSTS + 1), *range(51, 51 + SPINES)])
        text += f"  - {{name: leaf{leaf}, addresses: [192.0.2.{leaf}], ports: [{ports}]}}\n"
    for spine in range(1, SPINES + 1):
        ports = ", ".join(f"{{name: Ethernet{i}, ifindex: {i}}}" for i in range(1, 4))
        text += f"  - {{name: spine{spine}, addresses: [192.0.2.{100 + spine}], ports: [{ports}]}}\n"
    text += "links:\n"
    for leaf in range(1, 4):
        for spine in range(1, SPINES + 1):
            text += (f"  - {{a: leaf{leaf}, a_port: Ethernet{50 + spine}, b: spine{spine}, "
                     f"b_port: Ethernet{leaf}}}\n")
    text += "hosts:\n"
    for leaf in range(1, 4):
        for host in range(1, HOSTS + 1):
            text += (f"  - {{name: h{leaf}-{host}, nics: [{{addresses: [10.0.{leaf}.{host}], "
                     f"attach: [{{switch: leaf{leaf}, port: Ethernet{host}}}]}}]}}\n")
    return text


def crowd(second):
    """What samples of the spines and the last leaf say of CROWDED, before those of its own leaf."""
    last = SIGHTINGS_MAX - SUB_AGENTS * SPINES - SPINES // 2
    sites = [(f"192.0.2.{100 + s}", 1, 2, a) for s in range(1, SPINES + 1)
             for a in range(SUB_AGENTS)]
    sites += [("192.0.2.2", 50 + s, FLOWS[CROWDED][0], 0) for s in range(1, last + 1)]
    at = START_MS + 1000 * second
    return [{"schema": "fabrictrace.observation.v1", "time_ms": at, "interval_ms": 1000,
             "first_ms": at, "last_ms": at + 999, "agent": agent, "sub_agent": sub,
             "flow": flow_of(CROWDED), "in_ifindex": came, "out_ifindex": went, "samples": 2,
             "packets": 4000, "bytes": 4000 * 4170, "data_samples": 2}
            for agent, came, went, sub in sites]


def owners(second):
    """Whose the queue pairs are, as their hosts report once a window."""
    return [{"schema": "fabrictrace.flow.v1", "time_ms": START_MS + 1000 * second + 900, "interval_ms": 1000,
             "host": f"h1-{flow_of(sport)['src'].split('.')[3]}", "flow": flow_of(sport), "direction": "tx",
             "tuple_source": "computed", "data_packets": 1000, "bytes": 4096000, "job": job}
            for job, sports in JOBS.items() for sport in sports if second % WINDOW_S == 0]


def generate():
    """(observations, {(sport, window): Counter of spines})."""
    truth, lines = {}, []
    for second in range(SECONDS):
        lines += crowd(second) + owners(second)
        folded = {}
        for sport in [*FLOWS, *OWN_QP, *DARK_QP]:
            draw = dark if sport in DARK_QP else rng
            count = RATE if sport in FLOWS else draw.randint(1, 5)
            for ms in sorted(draw.randrange(1000) for _ in range(count)):
                at = 1000 * second + ms
                spine = OWN_QP.get(sport) or DARK_QP.get(sport) or FLOWS[sport][1](at)
                truth.setdefault((sport, second // WINDOW_S), Counter())[spine] += 1
                folded.setdefault((sport, spine), []).append(at)
        for (sport, spine), moments in folded.items():
            host, leaf = int(flow_of(sport)["src"].split(".")[3]), leaf_of(sport)
            agent, came, went = ((f"192.0.2.{100 + spine}", leaf, 2) if sport == BLIND else
                                 ("192.0.2.1", host, 50 + spine))
            n = len(moments)
            lines.append({"schema": "fabrictrace.observation.v1",
                          "time_ms": START_MS + 1000 * second, "interval_ms": 1000,
                          "first_ms": START_MS + moments[0], "last_ms": START_MS + moments[-1],
                          "agent": agent, "flow": flow_of(sport), "in_ifindex": came,
                          "out_ifindex": went, "samples": n, "packets": 2000 * n,
                          "bytes": 2000 * 4170 * n, "data_samples": n})
    return "".join(json.dumps(r) + "\n" for r in lines), truth


def window_of(record):
    return (record["window_start_ms"] - START_MS) // (1000 * WINDOW_S)


def effective(counts):
    total = sum(counts.values())
    return math.exp(-sum(n / total * math.log(n / total) for n in counts.values()))


def held(record, counts, name):
    """The figures of a record are those of what was generated."""
    total = sum(counts.values())
    links = {int(x["port"][8:]) - 50: x for x in record["links"]}
    equal(f"{name}: samples by spine", {s: x["samples"] for s, x in links.items() if x["samples"]},
          dict(counts))
    equal(f"{name}: paths", (record["seen"], record["possible"], record["samples"]),
          (len(counts), SPINES, total))
    check(f"{name}: effective paths", abs(record["effective_paths"] - effective(counts)) < 1e-4,
          record["effective_paths"])
    inside = sum(x["share_lo"] <= x["samples"] / total <= x["share_hi"] and
                 abs(x["share"] - x["samples"] / total) < 1e-5 for x in links.values())
    equal(f"{name}: shares lie in their intervals", inside, SPINES)


def few(window):
    """How few of its choices may be counted: when it was seen to be sprayed, part of the first window was over."""
    return 0.6 if window else 0.2


def test_flows(records, truth):
    told = {(r["flow"]["sport"], window_of(r)): r for r in records if r["of"] == "qp"}
    for (sport, window), counts in sorted(truth.items()):
        name = f"{sport} in window {window}"
        r = told.get((sport, window))
        if sport == CROWDED:
            check(f"{name}: what was left out is not called dead", r is None, r)
            continue
        if len(counts) == 1:
            check(f"{name}: one path is no spreading", r is None, r)
            continue
        check(f"{name}: told", r is not None)
        if r is None:
            continue
        held(r, counts, name)
        if sport == 50003:
            equal(f"{name}: a change of route", (r["alternation"], r["sprayed_flows"]), ("moved", 0))
            check(f"{name}: certain", r["alternation_p"] < 1e-6, r["alternation_p"])
            continue
        equal(f"{name}: sprayed", (r["alternation"], r["sprayed_flows"]), ("sprayed", 1))
        if sport == FLAPS:
            check(f"{name}: 400 samples a second chose a few times, and nothing is dead",
                  "dead" not in r and r["trials"] < 50, (r.get("dead"), r["trials"]))
            continue
        if sport in LONG:
            chose = r["samples"] / (1 + RATE * LONG[sport] / 1000)
            check(f"{name}: its flowlets chose", few(window) * chose <= r["trials"] <= 2 * chose,
                  (r["trials"], chose))
            check(f"{name}: nothing dead, even", "dead" not in r and r["even_p"] > 1e-4 and r["least_p"] > 1e-4,
                  (r.get("dead"), r["even_p"], r["least_p"]))
            continue
        if sport != 50004 or window != MOVE_MS // (1000 * WINDOW_S):
            check(f"{name}: each sample chose", few(window) <= r["trials"] / r["samples"] <= 1,
                  (r["trials"], r["samples"]))
        if sport == 50001:
            equal(f"{name}: the dead path", (r["least"], r.get("dead")),
                  (f"Ethernet{50 + DEAD}", [f"Ethernet{50 + DEAD}"]))
            expected = SPINES * (1 - 1 / SPINES) ** sum(counts.values())
            check(f"{name}: its p-value", expected <= r["least_p"] < 1e-9, (r["least_p"], expected))
        elif sport in (50002, BLIND):
            check(f"{name}: nothing dead, even", "dead" not in r and r["even_p"] > 1e-4, r["even_p"])
        elif window != MOVE_MS // (1000 * WINDOW_S):
            equal(f"{name}: the others carry nothing", len(r.get("dead", [])), 16)


def test_shares(records):
    """The interval of a share holds the one that packets were drawn by as often as it says: 95 %."""
    inside, total = 0, 0
    for sport, spines in ((50001, EVEN), (BLIND, range(1, SPINES + 1))):
        for r in records:
            if r["of"] != "qp" or r["flow"]["sport"] != sport:
                continue
            for link in r["links"]:
                share = (int(link["port"][8:]) - 50 in spines) / len(spines)
                inside, total = inside + (link["share_lo"] <= share <= link["share_hi"]), total + 1
    equal("links whose share is known", total, 2 * SPINES * SECONDS // WINDOW_S)
    check("intervals hold the shares as often as they say", 0.89 <= inside / total <= 0.99, (inside, total))


def test_connections(records, truth):
    told = {(r["src_host"], window_of(r)): r for r in records if r["of"] == "connection" and r["dst_host"] != "h2-5"}
    for window in range(SECONDS // WINDOW_S):
        r = told.get(("h1-6", window))
        counts = sum((truth[sport, window] for sport in OWN_QP), Counter())
        check(f"connection of {QPS} queue pairs in window {window}", r is not None)
        if r is None:
            continue
        held(r, counts, f"connection in window {window}")
        equal("its trials are its queue pairs", (r["flows"], r["trials"], r["sprayed_flows"]),
              (QPS, QPS, 0))
        equal("by link", {int(x["port"][8:]) - 50: x["trials"] for x in r["links"] if x["trials"]},
              dict(Counter(OWN_QP.values())))
        check("queue pairs that stay are not uneven beyond chance", r["even_p"] > 1e-4, r["even_p"])
        check("the connection of one flow that moved is none", ("h1-3", window) not in told)


def test_dead_path_of_a_connection(records, truth):
    told = {window_of(r): r for r in records if r["of"] == "connection" and r["dst_host"] == "h2-5"
            and r["src_host"] == "h1-6"}
    for window in range(SECONDS // WINDOW_S):
        r, name = told.get(window), f"connection of {DARK_QPS} queue pairs in window {window}"
        if not check(f"{name}: told", r is not None):
            continue
        held(r, sum((truth[sport, window] for sport in DARK_QP), Counter()), name)
        equal(f"{name}: each queue pair chose once", (r["flows"], r["trials"], r["sprayed_flows"]),
              (DARK_QPS, DARK_QPS, 0))
        equal(f"{name}: the dead path", (r["least"], r.get("dead")),
              (f"Ethernet{50 + DEAD}", [f"Ethernet{50 + DEAD}"]))
        by_chance = (1 - 1 / SPINES) ** DARK_QPS
        check(f"{name}: its p-value", by_chance <= r["least_p"] <= SPINES * by_chance * 1.01, (r["least_p"], by_chance))


def test_jobs(records, truth):
    """All of a job's queue pairs together, over connections: one that sprays by its samples, one that stays once."""
    told = {(r["job"], window_of(r)): r for r in records if r["of"] == "job"}
    for job, sports in JOBS.items():
        sprays = [sport for sport in sports if sport not in OWN_QP]
        for window in range(SECONDS // WINDOW_S):
            r, name = told.pop((job, window), None), f"{job} in window {window}"
            if not check(f"{name}: told", r is not None):
                continue
            held(r, sum((truth[sport, window] for sport in sports), Counter()), name)
            equal(f"{name}: its flows", (r["flows"], r["sprayed_flows"]), (len(sports), len(sprays)))
            least, most = ((few(window) * r["samples"], r["samples"]) if sprays else
                           (len(sports), len(sports)))
            check(f"{name}: its trials", least <= r["trials"] <= most, (r["trials"], least, most))
            # Of the two that spray one takes all links, so that the other's dead one is none of the job's.
            check(f"{name}: nothing is dead of it", "dead" not in r, r.get("dead"))
    equal("no other job", told, {})


def main():
    lines, truth = generate()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "t.yaml"
        file.write_text(topology())
        done = rig.run(rig.DAEMON, *rig.NO_CONFIG, "--set", "source_id=golden", "--set",
                       f"window={WINDOW_S}s", "--topology", file, "--replay", "-", "--sink",
                       "file:-", input=lines, stdin=None)
    equal("exit code", done.returncode, 0)
    records = of_kind(rig.records_of(done.stdout), "spread")
    test_flows(records, truth)
    test_shares(records)
    test_connections(records, truth)
    test_dead_path_of_a_connection(records, truth)
    test_jobs(records, truth)
    return 1 if rig.failures else 0


if __name__ == "__main__":
    sys.exit(main())
