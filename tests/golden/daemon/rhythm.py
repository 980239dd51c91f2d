#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Period and share of exchange of jobs from generated samples whose truth is known, without a plugin:
one that trains in steps, one whose traffic does not repeat, and flows that are nobody's; and which pairs
of hosts become slow. Agents say whose queue pairs they are. The record, the API and the tool are held
against what was generated."""
import json
import random
import subprocess
import sys
from pathlib import Path

sys.dont_write_bytecode = True
import rig  # noqa: E402
from rig import check, equal, of_kind, until  # noqa: E402

TOPOLOGY = Path(__file__).resolve().parents[3] / "packaging" / "examples" / "topology.yaml"
TOOL = Path("cli/fabrictrace").resolve()
START_MS, SECONDS, WINDOW_S = 1700000000000, 300, 10
RATE = 120  # samples a second of a job that sends
PERIOD_S, SHARE = 7.0, 0.4
FLOWS = 8
rng = random.Random(5)


def steps(until_s=SECONDS):
    """Moments of samples of a job that computes and exchanges in turn."""
    t = 0.0
    while t < until_s:
        length = PERIOD_S * rng.uniform(0.96, 1.04)
        t += length * (1 - SHARE)
        for _ in range(int(RATE * length * SHARE)):
            yield t + rng.uniform(0, length * SHARE)
        t += length * SHARE


def anyhow(until_s=SECONDS):
    t = 0.0
    while t < until_s:
        length = rng.expovariate(1 / 4)
        for _ in range(int(RATE * length)):
            yield t + rng.uniform(0, length)
        t += length + rng.expovariate(1 / 4)


def flow_of(job, i):
    return {"src": f"10.0.1.{1 + job}", "dst": "10.0.2.1", "sport": 50000 + 100 * job + i,
            "dport": 4791, "proto": 17}


def records(seconds=SECONDS, jobs=()):
    lines = []
    for job, moments in enumerate(jobs or (steps(), anyhow(), steps())):
        folded = {}
        for t in sorted(t for t in moments if t < seconds):
            folded.setdefault((int(t), rng.randrange(FLOWS)), []).append(int(1000 * t))
        for (second, i), at in folded.items():
            lines.append((1000 * (second + 1), {
                "schema": "fabrictrace.observation.v1", "time_ms": START_MS + 1000 * second,
                "interval_ms": 1000, "first_ms": START_MS + at[0], "last_ms": START_MS + at[-1],
                "agent": "192.0.2.11", "flow": flow_of(job, i), "in_ifindex": 1, "out_ifindex": 51,
                "samples": len(at), "packets": 2000 * len(at), "bytes": 2000 * 4170 * len(at),
                "data_samples": len(at)}))
        # Of the third job's flows nobody says whose they are.
        for second in range(0, seconds if job < 2 else 0, 10):
            for i in range(FLOWS):
                lines.append((1000 * second, {
                    "schema": "fabrictrace.flow.v1", "time_ms": START_MS + 1000 * second,
                    "interval_ms": 1000, "host": f"gpu{job}",
                    "direction": "tx", "flow": flow_of(job, i), "pid": 100 + job,
                    "job": ("steps", "anyhow")[job]}))
    return [json.dumps(r) for _, r in sorted(lines, key=lambda x: x[0])]


def check_steps(record):
    check("steps: its period", abs(record.get("period_ms", 0) / 1000 - PERIOD_S) < 0.04 * PERIOD_S,
          record)
    check("steps: its share", abs(record.get("exchange", 0) - SHARE) < 0.08, record)
    check("steps: its longest pause", 3000 <= record["longest_pause_ms"] <= 5500, record)


def test_jobs(folder):
    file = folder / "records.ndjson"
    file.write_text("\n".join(records()) + "\n")
    http = rig.free_port()
    sink = folder / "out.ndjson"
    command = [rig.DAEMON, *rig.NO_CONFIG, *rig.TRUST, "--topology", TOPOLOGY, "--replay", file, "--sink",
               f"file:{sink}", "--serve", "--set", f"http=127.0.0.1:{http}"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as daemon:
        try:
            tool = [TOOL, "rhythm", "--endpoint", f"127.0.0.1:{http}"]
            until("the daemon answers", lambda: rig.run(*tool, "--json").returncode == 0)
            asked = rig.records_of(rig.run(*tool, "--json").stdout)
            said = rig.run(*tool).stdout
        finally:
            daemon.terminate()
    found = of_kind(rig.records_of(sink.read_text()), "rhythm")
    equal("jobs", sorted({r["job"] for r in found}), ["anyhow", "steps"])
    last = {r["job"]: r for r in found}
    check_steps(last["steps"])
    check("anyhow: no period in any window", not any(
        "period_ms" in r for r in found if r["job"] == "anyhow"), found[-1])
    check("one record a job and window", len(found) in range(
        2 * SECONDS // WINDOW_S - 2, 2 * SECONDS // WINDOW_S + 3), len(found))
    equal("the API has the last ones", sorted(asked, key=lambda r: r["job"]),
          [last["anyhow"], last["steps"]])
    lines = {line.split()[0]: line for line in said.splitlines() if line}
    check("the tool's table", f"{last['steps']['period_ms'] / 1000:.1f} s" in lines.get("steps", "")
          and "not known" in lines.get("anyhow", ""), said)


def test_standstill(folder):
    """The one with a period stops after 300 s, and its queue pairs stay; the other one goes on."""
    file = folder / "standstill.ndjson"
    file.write_text("\n".join(records(500, (steps(300), anyhow(500)))) + "\n")
    http = rig.free_port()
    sink = folder / "standstill.out"
    command = [rig.DAEMON, *rig.NO_CONFIG, *rig.TRUST, "--topology", TOPOLOGY, "--replay", file, "--sink",
               f"file:{sink}", "--serve", "--set", f"http=127.0.0.1:{http}"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as daemon:
        try:
            tool = [TOOL, "diagnose", "--endpoint", f"127.0.0.1:{http}"]
            # 1: something stands.
            until("the daemon answers", lambda: rig.run(*tool, "--json").returncode <= 1)
            asked = rig.records_of(rig.run(*tool, "--json").stdout)
            said = rig.run(*tool).stdout
        finally:
            daemon.terminate()
    found = rig.records_of(sink.read_text())
    named = of_kind(found, "diagnosis")
    equal("one standstill, by flows alone", [(r["job"], r["syndrome"], r["source"], r.get("rank"),
                                              r.get("cleared")) for r in named],
          [("steps", "standstill", "flows", None, None)])
    check("since the last sample", abs(named[0]["since_ms"] - START_MS - 300_000) < 10_000, named)
    check("after two minutes of silence", 120_000 <= named[0]["time_ms"] - named[0]["since_ms"] <= 150_000, named)
    check("what the plugin would add is said", "plugin" in str(named[0]["evidence_against"]), named)
    equal("its event", [(e["subject"], e.get("cleared")) for e in of_kind(found, "event")
                        if e["kind"] == "standstill"], [("steps", None)])
    equal("the API has it", [(r["job"], r["syndrome"], r["since_ms"]) for r in asked],
          [("steps", "standstill", named[0]["since_ms"])])
    check("the tool shows it", "standstill" in said and "steps" in said, said)


# Three leaves with two hosts each, under two spines, for pairs of hosts and the links under them.
LEAVES, SPINES, HOSTS_A_LEAF = 3, 2, 2
HOSTS = LEAVES * HOSTS_A_LEAF
PAIR_RATE, PAIR_PERIOD_S, PAIR_BURST_S = 14, 6.0, 2.4


def wide_topology():
    lines = ["fabric: wide", "switches:"]
    for leaf in range(LEAVES):
        lines += [f"  - name: leaf{leaf + 1}", f"    addresses: [192.0.2.{11 + leaf}]", "    ports:"]
        lines += [f"      - {{ifindex: {i}, name: Ethernet{i}, speed_bps: 400000000000}}"
                  for i in (1, 2, 49, 50)]
    for spine in range(SPINES):
        lines += [f"  - name: spine{spine + 1}", f"    addresses: [192.0.2.{21 + spine}]", "    ports:"]
        lines += [f"      - {{ifindex: {i}, name: Ethernet{i}, speed_bps: 400000000000}}"
                  for i in range(1, LEAVES + 1)]
    lines += ["links:"]
    lines += [f"  - {{a: leaf{leaf + 1}, a_port: Ethernet{49 + spine}, b: spine{spine + 1}, b_port: Ethernet{leaf + 1}}}"
              for leaf in range(LEAVES) for spine in range(SPINES)]
    lines += ["hosts:"]
    for host in range(HOSTS):
        leaf, port = divmod(host, HOSTS_A_LEAF)
        lines += [f"  - name: gpu{host}", "    nics:",
                  f"      - {{addresses: [10.0.1.{host + 1}], rail: 0, attach: "
                  f"[{{switch: leaf{leaf + 1}, port: Ethernet{port + 1}}}]}}"]
    return "\n".join(lines) + "\n"


def way_of(a, b):
    """Switch, port of entry and of exit, of each hop from host a to b."""
    (leaf, port), (far, out) = divmod(a, HOSTS_A_LEAF), divmod(b, HOSTS_A_LEAF)
    spine = (a + b // HOSTS_A_LEAF) % SPINES
    if leaf == far:
        return [(f"192.0.2.{11 + leaf}", port + 1, out + 1)]
    return [(f"192.0.2.{11 + leaf}", port + 1, 49 + spine),
            (f"192.0.2.{21 + spine}", leaf + 1, far + 1),
            (f"192.0.2.{11 + far}", 49 + spine, out + 1)]


def exchanges(dice, seconds, slow):
    """All hosts with all others, in steps; the next one begins when the last pair has ended. How many times
    as slow a pair is at a time, slow() says. Samples (moment, pair)."""
    pairs = [(a, b) for a in range(HOSTS) for b in range(HOSTS) if a != b]
    t = 0.0
    while t < seconds:
        t += (PAIR_PERIOD_S - PAIR_BURST_S) * dice.uniform(0.9, 1.1)
        length = PAIR_BURST_S * dice.uniform(0.9, 1.1)
        for pair in pairs:
            at, times = t, slow(pair, t)
            while (at := at + dice.expovariate(PAIR_RATE / times)) < t + length * times:
                yield at, pair
        t += length * max(slow(pair, t) for pair in pairs)


def wide_records(seconds, slow, seed):
    dice = random.Random(seed)
    folded, lines = {}, []
    for t, (a, b) in exchanges(dice, seconds, slow):
        # Each switch samples for itself.
        for hop in way_of(a, b):
            if dice.random() < 0.5:
                folded.setdefault((int(t), a, b, hop), []).append(int(1000 * t))
    flow = {(a, b): {"src": f"10.0.1.{a + 1}", "dst": f"10.0.1.{b + 1}", "sport": 50000 + 10 * a + b,
                     "dport": 4791, "proto": 17} for a in range(HOSTS) for b in range(HOSTS)}
    for (second, a, b, (agent, entry, leaves)), at in folded.items():
        at.sort()
        lines.append((1000 * (second + 1), {
            "schema": "fabrictrace.observation.v1", "time_ms": START_MS + 1000 * second,
            "interval_ms": 1000, "first_ms": START_MS + at[0], "last_ms": START_MS + at[-1],
            "agent": agent, "flow": flow[a, b], "in_ifindex": entry, "out_ifindex": leaves,
            "samples": len(at), "packets": 2000 * len(at), "bytes": 2000 * 4170 * len(at),
            "data_samples": len(at)}))
    for second in range(0, seconds, 10):
        lines += [(1000 * second, {
            "schema": "fabrictrace.flow.v1", "time_ms": START_MS + 1000 * second, "interval_ms": 1000,
            "host": f"gpu{a}", "direction": "tx", "flow": flow[a, b], "pid": 100 + a, "job": "steps"})
            for a in range(HOSTS) for b in range(HOSTS) if a != b]
    return [json.dumps(r) for _, r in sorted(lines, key=lambda x: x[0])]


def diagnosed(folder, name, slow, seed, seconds=1000):
    """What was published, what the API has at the end, and what the tool prints of it."""
    topology, file, sink = folder / "wide.yaml", folder / f"{name}.ndjson", folder / f"{name}.out"
    topology.write_text(wide_topology())
    file.write_text("\n".join(wide_records(seconds, slow, seed)) + "\n")
    http = rig.free_port()
    command = [rig.DAEMON, *rig.NO_CONFIG, *rig.TRUST, "--topology", topology, "--replay", file, "--sink",
               f"file:{sink}", "--serve", "--set", f"http=127.0.0.1:{http}"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as daemon:
        try:
            tool = [TOOL, "diagnose", "--endpoint", f"127.0.0.1:{http}"]
            until("the daemon answers", lambda: rig.run(*tool, "--json").returncode <= 1)
            asked = rig.records_of(rig.run(*tool, "--json").stdout)
            said = rig.run(*tool).stdout
        finally:
            daemon.terminate()
    found = rig.records_of(sink.read_text())
    return of_kind(found, "diagnosis"), [e for e in of_kind(found, "event")
                                         if e["kind"] == "comm_slow"], asked, said


def test_slow_pairs(folder):
    """From 600 s on: one pair, one host as a receiver, or what crosses one link takes 2.5 times as long."""
    over = (f"192.0.2.{11}", 49)  # leaf1's link to spine1
    faults = {
        "none": (lambda pair: False, []),
        "pair": (lambda pair: pair == (0, 3), [("gpu0", "gpu3", "pair", None, None)]),
        "receiver": (lambda pair: pair[1] == 4, [("gpu4", None, "receiver", None, None)]),
        "link": (lambda pair: any((agent, leaves) == over for agent, _, leaves in way_of(*pair)),
                 [(None, None, "pair", "leaf1", "Ethernet49")]),
    }
    for seed, (name, (hit, want)) in enumerate(faults.items()):
        named, events, asked, said = diagnosed(
            folder, name, lambda pair, t, hit=hit: 2.5 if t >= 600 and hit(pair) else 1, 31 + seed)
        slow = [r for r in named if r["syndrome"] == "comm_slow"]
        equal(f"{name}: who is named", [(r.get("host"), r.get("peer_host"), r["side"], r.get("switch"),
                                         r.get("port")) for r in slow], want)
        if not want or not slow:
            check(f"{name}: nothing else either", want or not (named or events or asked), named)
            continue
        check(f"{name}: by flows, no rank", slow[0]["source"] == "flows" and "rank" not in slow[0], slow)
        check(f"{name}: since when, by how much", abs(slow[0]["since_ms"] - START_MS - 600_000) <= 60_000
              and 1.6 < slow[0]["slowdown"] < 3.2, slow)
        check(f"{name}: what the plugin would add is said", "plugin" in str(slow[0]["evidence_against"]), slow)
        equal(f"{name}: its event", [(e["since_ms"], e.get("cleared")) for e in events],
              [(slow[0]["since_ms"], None)])
        equal(f"{name}: the API has it", [(r["syndrome"], r.get("host"), r["since_ms"]) for r in asked
                                          if r["syndrome"] == "comm_slow"],
              [("comm_slow", want[0][0], slow[0]["since_ms"])])
        check(f"{name}: the tool shows it", "comm_slow" in said and (want[0][0] or "leaf1") in said, said)


if __name__ == "__main__":
    sys.exit(rig.run_tests(test_jobs, test_standstill, test_slow_pairs))
