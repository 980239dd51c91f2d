#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records into the daemon over a real Kafka broker: the same recorded traffic of a generated fabric
over TCP and over Kafka gives the same paths, links and imbalance, record by record. Links are not held
against samples: which flow confirms one first depends on the order among partitions.

usage: check_ingest.py (in the build folder)"""
import json
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

sys.dont_write_bytecode = True
TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "golden" / "daemon"), str(TESTS / "fidelity")]
from paper.cases import CASES, Case, Run  # noqa: E402
from rig import (WAIT_S, Daemon, check, check_balance, equal, failures, last_stages,  # noqa: E402
                 of_kind, records_of, run, run_tests, until)

BROKER = TESTS / "kafka" / "broker.py"
FEEDER = Path("tests/kafka/feeder").resolve()
PARTITIONS = 3
WINDOW_S, GRACE_S, SECONDS, FLOWS = 10, 9, 14, 300
# Its flows are each sampled about once in 20 s, as it is with very many of them.
CASES["large"] = Case(tiers=2, leaves=64, spines=8, hosts=16, rates=(0.01, 0.03), dense=0.002, common=True)
# A record of what a daemon found; which of them has it says "source".
KINDS = ("path", "link", "imbalance", "event")


def broker(*args):
    return subprocess.run([sys.executable, BROKER, *map(str, args)], check=True,
                          capture_output=True, text=True).stdout


def record_traffic(folder, case="steady2", seed=1, seconds=SECONDS, flows=FLOWS):
    """The observations alone, in the order of their times. Returns the topology too."""
    traffic = Run(case, seed, flows, seconds)
    raw, file = folder / "raw.ndjson", folder / "observations.ndjson"
    with open(raw, "w", encoding="utf-8") as out:
        traffic.write(out)
    count = 0
    with open(raw, encoding="utf-8") as lines, open(file, "w", encoding="utf-8") as out:
        for line in lines:
            if '"fabrictrace.observation.v1"' in line:
                out.write(line)
                count += 1
    raw.unlink()
    return traffic.fabric.yaml(), file, count


def daemon_in(folder, name, topology, more=""):
    (folder / name).mkdir()
    daemon = Daemon(folder / name, topology)
    daemon.config.write_text(daemon.config.read_text().replace(
        "window: 2s\ngrace: 1s\n", f"window: {WINDOW_S}s\ngrace: {GRACE_S}s\nverify_topology: no\n") + more)
    return daemon


def taken(daemon):
    return daemon.metric("fabrictraced_records_total")


def newest_window(daemon):
    return max((r["window_end_ms"] for r in of_kind(daemon.records(), "imbalance")), default=0)


def bag(records):
    return Counter(json.dumps(r, sort_keys=True) for r in records)


def differ(a, b):
    return list((a - b).items())[:3], list((b - a).items())[:3]


def test_same_over_kafka(folder):
    same_over_kafka(folder, "steady2", FLOWS)


def test_large_fabric(folder):
    """Where the daemon looks at its fabric anew in many steps, while messages come."""
    same_over_kafka(folder, "large", 10 * FLOWS)


def same_over_kafka(folder, case, flows):
    endpoint = broker("start", folder / "broker").strip()
    daemons = []
    try:
        topology, file, count = record_traffic(folder, case, flows=flows)
        over = {"tcp": "", "kafka": "kafka: {ingest: yes, partitions: %d, brokers: \"%s\"}\n"
                % (PARTITIONS, endpoint)}
        daemons = {name: daemon_in(folder, name, topology, more) for name, more in over.items()}
        for daemon in daemons.values():
            daemon.start()
        fed = run(FEEDER, file, "tcp", f"127.0.0.1:{daemons['tcp'].port}", "kafka", endpoint, "",
                  str(PARTITIONS))
        equal("the feeder ends", (fed.returncode, fed.stderr), (0, ""))
        sent = json.loads(fed.stdout)
        for way, target in zip(over, sent):
            equal(f"{way}: sent, acknowledged, dropped",
                  (target["records"], target["acked"], target["dropped"]), (count, count, 0))
        check("over Kafka a batch has a part for each partition",
              sent[1]["payloads"] > 2 * sent[0]["payloads"], sent)
        last = records_of(file.read_text().splitlines()[-1])[0]["time_ms"] + sent[0]["shift_ms"]
        for name, daemon in daemons.items():
            until(f"{name}: all records are there", lambda: taken(daemon) >= count)
            until(f"{name}: the last window is closed", lambda: newest_window(daemon) > last)
        check("each sender is remembered", "\nfabrictraced_kafka_unnumbered_messages_total 0\n"
              in daemons["kafka"].get("/metrics"))
        for daemon in daemons.values():
            daemon.stop()
        found = {name: daemon.records() for name, daemon in daemons.items()}
        for kind in KINDS:
            a, b = (bag(of_kind(found[name], kind)) for name in over)
            check(f"{kind}: {sum(a.values())} records, the same over both", a == b, differ(a, b))
        check("paths enough to tell", len(of_kind(found["tcp"], "path")) > FLOWS)
        check("figures enough to tell", any(r.get("flows") for r in of_kind(found["tcp"], "imbalance")))
        for name, records in found.items():
            check_balance(name, records)
        stages = last_stages(found["kafka"], "fabrictraced")
        equal("Kafka's stage has each record", (stages["topics"]["received"],
                                                stages["topics"]["processed"]), (count, count))
        equal("nothing of it came over TCP", stages["peers"]["received"], 0)
    finally:
        for daemon in daemons and daemons.values():
            daemon.kill()
        broker("stop", folder / "broker")


if __name__ == "__main__":
    fetched = subprocess.run([sys.executable, BROKER, "fetch"])
    if fetched.returncode:
        sys.exit("FAIL: no Kafka broker: what it lacks is said above")
    code = run_tests(test_same_over_kafka, test_large_fabric)
    print(f"{'FAIL' if failures else 'PASS'}: over Kafka a daemon finds what it finds over TCP")
    sys.exit(code)
