#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Three real brokers under load: kill -9 of each in turn and of the active controller, then of all
three at once, which stay away for a minute while a spool fills its disk; producers and a daemon are
killed with -9 while they drain. What consumers of committed messages read, kcat and the Java console
consumer, equals the accounts: nothing lost uncounted, what is there twice has the same run and number,
in order per key. usage: check_brokers.py [--away SECONDS] (in the build folder)"""
import argparse
import signal
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from pathlib import Path

sys.dont_write_bytecode = True
TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "golden" / "daemon"), str(TESTS / "kafka")]
import admin  # noqa: E402
import broker  # noqa: E402
from cluster import NODES, WAIT_S, Cluster  # noqa: E402
from live import numbered  # noqa: E402
from rig import LAB, Daemon, Poller, check, equal, failures, run_tests, until  # noqa: E402
from sflow import datagrams  # noqa: E402
from spooling import TOPICS, Judge, Producer, consume  # noqa: E402

RATE = 1000
PROGRESS = 2000  # messages that are taken while a broker is away
BACKLOG = 300    # records of the daemon that wait
KINDS = ("path", "link", "imbalance", "event", "loss")
SINK = 'fabrictraced_sink_records_total{sink="kafka",fate="processed"}'
PENDING = 'fabrictraced_sink_pending{sink="kafka"}'
# A message at a time, so that the end of a drain can be met.
SLOWLY = "{max.in.flight.requests.per.connection: 1, batch.num.messages: 1, linger.ms: 0}"
away_s = 60


class Feed(threading.Thread):
    """Switches that sample without an end: a poller's datagrams from the capture, numbered anew."""

    def __init__(self, poller):
        super().__init__(daemon=True)
        self.poller, self.over = poller, threading.Event()
        self.payloads = [p for _, p in datagrams((LAB / "sflow.pcap").read_bytes())]

    def run(self):
        sent = 0
        while not self.over.wait(0.2):
            for _ in range(20):
                self.poller.send(numbered(self.payloads[sent % len(self.payloads)], sent))
                sent += 1

    def stop(self):
        self.over.set()
        self.join()


class Fabric:
    """A daemon with a spool and a file, its poller and what they are fed."""

    def __init__(self, folder, brokers):
        self.daemon = Daemon(folder, (LAB / "topology.yaml").read_text())
        # First the spool, then the file: what is in the file is in the spool.
        self.daemon.config.write_text(
            self.daemon.config.read_text().replace('sinks: ["', 'sinks: [kafka, "')
            + f"kafka: {{brokers: \"{brokers}\", spool: {folder / 'daemon.spool'}, "
              f"properties: {SLOWLY}}}\n")
        self.written = Counter()
        self.daemon.start()
        self.poller = Poller(folder, self.daemon).start()
        self.feed = Feed(self.poller)
        self.feed.start()

    def killed_while_it_drains(self, back):
        """back: makes the brokers return."""
        until("records of the daemon wait", lambda: self.daemon.metric(PENDING) >= BACKLOG, WAIT_S)
        taken = self.daemon.metric(SINK)
        back()
        until("the daemon drains", lambda: self.daemon.metric(SINK) > taken, WAIT_S)
        self.waited = self.daemon.metric(PENDING)
        self.daemon.kill()
        check("it was killed while it drained", self.waited > 0)
        self.take()
        self.daemon.start()

    def take(self):
        """What is in the file; a killed daemon may have left half a line, and the next one begins
        behind it."""
        text = self.daemon.out.read_text()
        self.daemon.out.unlink()
        self.written.update(text[:text.rindex("\n") + 1].splitlines())

    def end(self):
        self.feed.stop()
        self.poller.stop()
        until("all that the daemon said is taken", lambda: self.daemon.metric(PENDING) == 0, WAIT_S)
        self.daemon.stop()
        self.take()

    def kill(self):
        self.feed.over.set()
        self.poller.kill()
        self.daemon.kill()

    def judge(self, rows):
        """rows: (headers, value) as a consumer got them."""
        values = defaultdict(set)
        times = Counter()
        for headers, value in rows:
            name = (headers["run"], headers["number"])
            values[name].add(value)
            times[name] += 1
        twice = sum(times.values()) - len(times)
        print(f"daemon: {sum(self.written.values())} records in its file, {len(times)} in the topics, "
              f"{twice} of them twice, {self.waited:.0f} waited when it was killed", flush=True)
        equal("daemon: what is there twice is the same", [n for n, v in values.items() if len(v) > 1], [])
        equal("daemon: two runs", len({run for run, _ in times}), 2)
        once = Counter(next(iter(v)) for v in values.values())
        lost = self.written - once
        equal("daemon: lost", (sum(lost.values()), list(lost)[:1]), (0, []))
        # Of the killed one: in the spool, and not yet in the file.
        check("daemon: what is in the topics alone is of the moment of the kill",
              sum((once - self.written).values()) <= self.ahead, list((once - self.written))[:2])

    ahead = 200  # records of a window, which the file is given at once


def one_by_one(cluster, load):
    """Each of them is killed once, and goes on when the copies are in step again."""
    for n in range(1, NODES + 1):
        cluster.kill(n)
        at = load.said()["delivered"]
        load.until(f"without broker {n} messages are taken", lambda s: s["delivered"] > at + PROGRESS)
        cluster.launch(n)
        cluster.whole(f"broker {n} is back and in step")
    epoch, node = cluster.controller()
    check("there is an active controller", node > 0)
    cluster.kill(node)
    at = load.said()["delivered"]
    until("another controller is active", lambda: cluster.controller()[0] > epoch
          and cluster.controller()[1] != node, WAIT_S)
    load.until("under the other controller messages are taken",
               lambda s: s["delivered"] > at + PROGRESS)
    cluster.launch(node)
    cluster.whole(f"the controller that was, {node}, is back and in step")


class Away:
    """All brokers at once."""

    def __init__(self, folder, cluster):
        self.folder, self.cluster, self.spool = folder, cluster, folder / "spool"
        self.since = time.monotonic()
        cluster.kill(*range(1, NODES + 1))
        (folder / "disk").mkdir()
        self.full = [Producer(folder, name, cluster.brokers, RATE * away_s // 2, RATE, folder / "disk",
                              64 << 20, policy, tmpfs="1m")
                     for name, policy in (("newest", "newest"), ("oldest", "oldest"))]
        self.drained = Producer(folder, "drained", cluster.brokers, 20000, RATE, self.spool,
                                die_at=2000)
        self.drained.until("all it sends is in the spool", lambda s: s["safe"] == 20000)
        for p in self.full:
            p.until("all is sent", lambda s: s["sent"] == RATE * away_s // 2)

    def over(self, load):
        time.sleep(max(0.0, away_s - (time.monotonic() - self.since)))
        said = load.until("the spool has taken over", lambda s: s["spooled"] > RATE)
        print(f"{time.monotonic() - self.since:.0f} s without a broker: {said['spooled']} messages "
              "in the spool", flush=True)
        self.cluster.launch()

    def drain(self):
        """Another one finds what the killed one left."""
        self.drained.gone(-signal.SIGKILL)
        said = self.drained.said()
        check("a producer was killed while it drained", said["delivered"] >= 2000
              and said["spooled"] + said["pending"] > 0, said)
        self.next = Producer(self.folder, "next", self.cluster.brokers, 2000, RATE, self.spool)
        self.next.gone()
        check("the next one finds what it left", self.next.said()["found"] > 0)
        for p in self.full:
            p.gone()


def judge(what, rows, load, away):
    """rows: (topic, key, run, number)."""
    judge = Judge(rows)
    sent = load.said()["sent"]
    again = load.said()["again"] + load.left
    print(f"{what}: {sent} of the load, {judge.doubled('load')} twice, {again} sent again; "
          f"{judge.doubled('drained')} of the killed one twice", flush=True)
    equal(f"{what}: lost of the load", len(judge.lost("load", sent)), 0)
    check(f"{what}: twice of the load is what was sent again", judge.doubled("load") <= again,
          (judge.doubled("load"), again))
    equal(f"{what}: lost of the killed one", len(judge.lost("drained", 20000)), 0)
    equal(f"{what}: lost of the next one", len(judge.lost("next", 2000)), 0)
    equal(f"{what}: order within each key of the load", judge.order(["load"]), "")
    equal(f"{what}: order within each key of the others", judge.order(["drained", "next"]), "")
    for p in away.full:
        said = p.said()
        lost = len(judge.lost(p.run, said["sent"]))
        print(f"{what}: full disk, {p.run}: {said['sent']} sent, {sum(said['drops'].values())} dropped, "
              f"{lost} lost", flush=True)
        equal(f"{what}: full disk, {p.run}: lost by the account", lost, sum(said["drops"].values()))
        check(f"{what}: full disk, {p.run}: some did not fit", lost > 1000)
        equal(f"{what}: full disk, {p.run}: twice", judge.doubled(p.run), 0)
        equal(f"{what}: full disk, {p.run}: order", judge.order([p.run]), "")


def parse(line):
    """HEADERS<TAB>KEY<TAB>VALUE"""
    headers, key, value = line.split("\t", 2)
    return dict(part.split(":", 1) for part in headers.split(",")), key, value


def read_daemon(cluster):
    rows = []
    for kind in KINDS:
        text = subprocess.run(
            ["kcat", "-C", "-q", "-e", "-b", cluster.brokers, "-t", f"fabrictrace.{kind}.v1", "-o",
             "beginning", "-m", "60", "-X", "isolation.level=read_committed", "-f", "%h\\t%s\\n"],
            check=True, capture_output=True, text=True).stdout
        for line in text.splitlines():
            headers, value = line.split("\t", 1)
            rows.append((dict(part.split("=", 1) for part in headers.split(",")), value))
    return rows


def test_brokers(folder):
    cluster = Cluster(folder)
    fabric = load = None
    try:
        cluster.start()
        admin.create_topics(cluster.addresses[0], list(TOPICS), partitions=6, copies=NODES)
        admin.create_topics(cluster.addresses[0], [f"fabrictrace.{k}.v1" for k in KINDS], copies=NODES)
        (folder / "load").mkdir()
        fabric = Fabric(folder, cluster.brokers)
        load = Producer(folder, "load", cluster.brokers, 10**9, RATE, folder / "load.spool")
        load.until("messages are delivered", lambda s: s["delivered"] > PROGRESS)
        one_by_one(cluster, load)
        away = Away(folder, cluster)
        fabric.killed_while_it_drains(lambda: away.over(load))
        away.drain()
        cluster.whole("three brokers are back and in step")
        fabric.end()
        load.until("its spool is drained", lambda s: s["spooled"] == 0)
        load.end(signal.SIGTERM, 0)
        drops = {why: count for why, count in load.said()["drops"].items() if count}
        check("nothing of the load was dropped", not drops, (drops, load.err.read_text()[-2000:]))
        rest = Producer(folder, "rest", cluster.brokers, 1, RATE, folder / "load.spool")
        rest.gone()
        # What was on its way to a broker at the end may be there, and was sent once more.
        load.left = rest.said()["found"]
        judge("kcat", consume(cluster.brokers), load, away)
        lines = [parse(line) for line in cluster.console(r"check\..*")]
        # Its lines do not say the topic: the number does.
        judge("console consumer", [(TOPICS[int(h["number"]) % len(TOPICS)], key, h["run"],
                                    int(h["number"])) for h, key, _ in lines], load, away)
        equal("console consumer: values are what was sent",
              sum(int(value) != int(h["number"]) for h, _, value in lines), 0)
        fabric.judge(read_daemon(cluster))
    finally:
        for p in (fabric, load):
            if p:
                p.kill() if p is fabric else p.child.kill()
        cluster.stop()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--away", type=int, default=60, help="seconds without a broker")
    away_s = parser.parse_args().away
    try:
        broker.fetch()
    except broker.Lacking as lack:
        sys.exit(f"FAIL: no Kafka broker: {lack}")
    code = run_tests(test_brokers)
    print(f"{'FAIL' if failures else 'PASS'}: what consumers of three brokers read equals the accounts")
    sys.exit(code)
