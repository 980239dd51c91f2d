#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The whole pipeline into a real Kafka broker that is killed (-9) and started again in the middle:
what a consumer reads equals what the file sink wrote, record for record, none lost, none doubled.

A captured fabric's sFlow datagrams are sent to a live fabrictrace-switchpoll over loopback, again
and again, as if the fabric went on. usage: check_pipeline.py (in the build folder)"""
import json
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS / "golden" / "daemon"))
from live import numbered  # noqa: E402
from rig import (DAEMON, LAB, Daemon, Poller, check, equal, failures, of_kind, run,  # noqa: E402
                 run_tests, until)
import speed  # noqa: E402  (found by rig)
from sflow import datagrams  # noqa: E402

BROKER = TESTS / "kafka" / "broker.py"
WAIT_S = 240  # on an idle machine
SOME = 100
KINDS = ("path", "link", "imbalance", "event", "loss")


def broker(*args):
    return subprocess.run([sys.executable, BROKER, *map(str, args)], check=True,
                          capture_output=True, text=True).stdout


class Feed:
    """The capture's datagrams, again and again."""

    def __init__(self, poller):
        self.poller = poller
        self.payloads = [p for _, p in datagrams((LAB / "sflow.pcap").read_bytes())]
        self.sent = 0

    def until(self, what, condition):
        """Sends until the condition holds; no more at once than a small socket buffer takes."""
        deadline = speed.Deadline(WAIT_S)
        while not condition() and not deadline.passed():
            for _ in range(50):
                self.poller.send(numbered(self.payloads[self.sent % len(self.payloads)], self.sent))
                self.sent += 1
            until("datagrams are read", lambda: self.poller.metric(
                "fabrictrace_switchpoll_datagrams_received_total") >= self.sent)
            time.sleep(0.1)
        check(what, condition(), f"not within {deadline.seconds:.0f} s")


def outage(daemon, feed, folder):
    """The broker is killed when it has taken some records, and comes back when others wait."""
    def taken():
        return daemon.metric('fabrictraced_sink_records_total{sink="kafka",fate="processed"}')

    def pending():
        return daemon.metric('fabrictraced_sink_pending{sink="kafka"}')

    feed.until("the broker takes records", lambda: taken() > SOME)
    broker("kill", folder / "kafka")
    before = taken()
    feed.until("records wait while the broker is away", lambda: pending() > SOME)
    broker("start", folder / "kafka")
    feed.until("what waited is taken, and more", lambda: taken() > before + 2 * SOME)


def tuple_key(flow):
    return ",".join(str(flow[name]) for name in ("src", "dst", "sport", "dport", "proto"))


def check_headers(endpoint, written):
    """Of each link record, with kcat: which it is, of which window, by whom."""
    text = run("kcat", "-C", "-q", "-e", "-b", endpoint, "-t", "fabrictrace.link.v1", "-o",
               "beginning", "-f", "%h\\t%s\\n").stdout
    rows = [(dict(part.split("=", 1) for part in headers.split(",")), json.loads(value))
            for headers, value in (line.split("\t", 1) for line in text.splitlines())]
    version = run(DAEMON, "--version").stdout.split()[-1]
    equal("headers: one for each link record", len(rows), len(of_kind(written, "link")))
    wrong = [(h, r) for h, r in rows if
             (h["schema"], h["version"], h["producer"], h["fabric"], h["window"])
             != (r["schema"], version, "golden", r["fabric"], str(r["window_start_ms"]))]
    equal("headers: schema, version, producer, fabric and window are the record's", wrong[:2], [])
    equal("headers: one run", len({h["run"] for h, _ in rows}), 1)
    equal("headers: a number each", len({h["number"] for h, _ in rows}), len(rows))


def test_broker_killed(folder):
    endpoint = broker("start", folder / "kafka").strip()
    try:
        daemon = Daemon(folder, (LAB / "topology.yaml").read_text())
        daemon.config.write_text(
            daemon.config.read_text().replace('sinks: ["', 'sinks: [kafka, "')
            + f"kafka: {{brokers: \"{endpoint}\"}}\n")
        daemon.start()
        poller = Poller(folder, daemon).start()
        feed = Feed(poller)
        outage(daemon, feed, folder)
        poller.stop()
        until("a daemon that has said all",
              lambda: daemon.metric('fabrictraced_sink_pending{sink="kafka"}') == 0)
        daemon.stop()
        written = daemon.records()
        lines = Counter(daemon.out.read_text().splitlines())
        print(f"{feed.sent} datagrams sent, {len(written)} records written", flush=True)
        read = Counter()
        for kind in KINDS:
            rows = [row.split("\t", 1)
                    for row in broker("consume", folder / "kafka",
                                      f"fabrictrace.{kind}.v1").splitlines()] if any(
                r["schema"] == f"fabrictrace.{kind}.v1" for r in written) else []
            read.update(value for _, value in rows)
            if kind == "path":
                check("a path's key is its 5-tuple", rows and all(
                    key == tuple_key(json.loads(value)["flow"]) for key, value in rows))
        check_headers(endpoint, written)
        equal("records lost", sum((lines - read).values()), 0)
        equal("records doubled or foreign", sum((read - lines).values()), 0)
        check("records enough to tell", len(written) > 200, len(written))
    finally:
        broker("stop", folder / "kafka")


if __name__ == "__main__":
    fetched = subprocess.run([sys.executable, BROKER, "fetch"])
    if fetched.returncode:
        sys.exit("FAIL: no Kafka broker: what it lacks is said above")
    code = run_tests(test_broker_killed)
    print(f"{'FAIL' if failures else 'PASS'}: what Kafka's consumer reads equals the file")
    sys.exit(code)
