#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A group of daemons that publish in transactions, over changes of its members: one joins, one leaves on
SIGTERM, one is stopped (SIGSTOP) for so long that the brokers give its partitions to another, and goes on
(SIGCONT). What a consumer of committed messages gets: each record once, each window once, as of one daemon
over TCP wherever a window does not say that it misses something. usage: check_rebalance.py [--seconds N]
[--flows N] [--seed N] [--keep FOLDER] (in the build folder)"""
import argparse
import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True
TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "golden" / "daemon"), str(TESTS / "kafka")]
import broker  # noqa: E402
from check_ingest import FEEDER, record_traffic  # noqa: E402
from check_transactions import (PARTITIONS, WAIT_S, WINDOW_MS, Committing, adapt, committed,  # noqa: E402
                                in_one_of, in_time, judge, learnt_until, loads, newest, open_topics)
from rig import Daemon, check, equal, failures, run_tests, until  # noqa: E402

PREFIX = "turns."
# A stop lasts as long as the brokers take to miss a member and the next window; what it had begun to say
# of its windows is lost, and the others take its partitions in the middle of one. Where it is stopped with
# a transaction open, its offsets and what is behind it in the topic of partials wait until the brokers end
# that: the one minute of the default is six to twelve windows.
TRANSACTION_WINDOWS = 3
MARKED = 4 + TRANSACTION_WINDOWS
seconds, keep, flows, seed = 22 * WINDOW_MS // 1000, None, 300, 1


class Group:
    def __init__(self, folder, endpoint, topology):
        self.folder, self.endpoint, self.topology, self.members = folder, endpoint, topology, []
        self.sums = self.make("sums", "group: {role: aggregator}\n")

    def make(self, name, role):
        daemon = Committing(self.folder, name, name, self.endpoint, PREFIX, self.topology, role)
        daemon.config.write_text(daemon.config.read_text().replace(
            "transactions: yes,", "transactions: yes, properties: [transaction.timeout.ms="
            f"{TRANSACTION_WINDOWS * WINDOW_MS}],"))
        daemon.start()
        return daemon

    def add(self):
        self.members.append(self.make(f"m{len(self.members)}", "group: {role: member, name: turns}\n"))
        return self.members[-1]

    def settled(self, *members):
        """All partitions are with these, each of which has some."""
        until(f"{', '.join(m.name for m in members)} share all partitions",
              lambda: sum(shares := [share(m) for m in members]) == PARTITIONS and min(shares) > 0, WAIT_S)

    def goes_on(self):
        """Another window is published whole."""
        before = newest(self.sums)
        until("another window", lambda: newest(self.sums) > before, WAIT_S)


def share(daemon):
    """Of how many partitions it says that it has them."""
    lines = [line for line in daemon.log.read_text().splitlines() if "this member has" in line]
    return int(lines[-1].rsplit(None, 1)[1]) if lines else 0


def stop_at_close(daemon):
    """At the first sign that it closes a window: its transaction is open, or being committed."""
    before = loads(daemon)
    until(f"{daemon.name}: another window is closed", lambda: loads(daemon) > before, WAIT_S)
    daemon.process.send_signal(signal.SIGSTOP)


def change_members(group):
    first, second = group.members
    group.goes_on()
    group.changed_ms = time.time() * 1000
    third = group.add()
    group.settled(first, second, third)
    group.goes_on()
    third.stop()
    group.settled(first, second)
    group.goes_on()
    before = committed_by(second) + 1  # one may be on its way when it is stopped
    stop_at_close(second)
    try:
        until("the other one has all partitions", lambda: share(first) == PARTITIONS, WAIT_S)
        group.goes_on()
    finally:
        second.process.send_signal(signal.SIGCONT)
    until("who was stopped is a member again",
          lambda: share(first) < PARTITIONS and share(first) + share(second) == PARTITIONS, WAIT_S)
    group.goes_on()
    until("what it does since is committed", lambda: committed_by(second) > before, WAIT_S)


def committed_by(daemon):
    """How many transactions."""
    name = 'fabrictraced_kafka_transactions_total{outcome="committed"} '
    return sum(int(line.removeprefix(name)) for line in daemon.get("/metrics").splitlines()
               if line.startswith(name))


def test_rebalance(folder):
    in_one_of(folder, rebalance)


def rebalance(folder):
    home = folder / "kafka"
    broker.start(home)
    endpoint, group, reference, feeder = broker.address(home), None, None, None
    try:
        topology, file, count = record_traffic(folder, seed=seed, seconds=seconds, flows=flows)
        (folder / "tcp").mkdir()
        reference = Daemon(folder / "tcp", topology)
        adapt(reference, "tcp")
        reference.start()
        open_topics(endpoint, PREFIX)
        group = Group(folder, endpoint, topology)
        group.add()
        group.add()
        group.settled(*group.members)
        until("windows are closed before the traffic", lambda: newest(reference) and newest(group.sums),
              WAIT_S)
        feeder = subprocess.Popen(
            [FEEDER, file, "tcp", f"127.0.0.1:{reference.port}", "kafka", endpoint, PREFIX,
             str(PARTITIONS)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True)
        change_members(group)
        check("members changed while flows were sampled", feeder.poll() is None)
        out, err = feeder.communicate(timeout=600)
        equal("the feeder ends", (feeder.returncode, err), (0, ""))
        sent = json.loads(out)
        equal("each got all of it", {(t["records"], t["acked"], t["dropped"]) for t in sent},
              {(count, count, 0)})
        if not in_time(sent, reference):
            return False
        times = [json.loads(line)["time_ms"] + sent[0]["shift_ms"]
                 for line in file.read_text().splitlines()]
        span = min(times) // WINDOW_MS * WINDOW_MS, max(times) // WINDOW_MS * WINDOW_MS
        for daemon in (reference, group.sums):
            until(f"{daemon.name}: the last window is closed", lambda d=daemon: newest(d) > span[1], WAIT_S)
        until("the last window is committed", lambda: any(
            r["window_start_ms"] > span[1] for *_, r in committed(endpoint, PREFIX, "imbalance")), WAIT_S)
        reference.stop()
        judge(endpoint, "the group", PREFIX, reference.records(), span, MARKED, 1,
              learnt_until(file, group.changed_ms))
        for daemon in (*group.members[:2], group.sums):
            daemon.stop()
        return True
    finally:
        if feeder and feeder.poll() is None:
            feeder.kill()
        for daemon in (*(group.members if group else ()), group and group.sums, reference):
            if daemon:
                daemon.kill()
        broker.end(home, 15, 60)
        if keep:
            shutil.rmtree(home)
            shutil.copytree(folder, keep, dirs_exist_ok=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=int, default=seconds)
    parser.add_argument("--flows", type=int, default=flows)
    parser.add_argument("--seed", type=int, default=seed, help="of fabric and traffic")
    parser.add_argument("--keep", type=Path, help="records and logs")
    args = parser.parse_args()
    seconds, keep, flows, seed = args.seconds, args.keep, args.flows, args.seed
    try:
        broker.fetch()
    except broker.Lacking as lack:
        sys.exit(f"FAIL: no Kafka broker: {lack}")
    code = run_tests(test_rebalance)
    print(f"{'FAIL' if failures else 'PASS'}: members come and go, each window is published once")
    sys.exit(code)
