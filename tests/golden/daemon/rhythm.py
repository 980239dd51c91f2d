#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Period and share of exchange of jobs from generated samples whose truth is known, without a plugin:
one that trains in steps, one whose traffic does not repeat, and flows that are nobody's. Agents say
whose queue pairs they are. The record, the API and the tool are held against what was generated."""
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


if __name__ == "__main__":
    sys.exit(rig.run_tests(test_jobs, test_standstill))
