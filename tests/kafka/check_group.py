#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Daemons that share the flows of a fabric as a consumer group of a real broker: the same recorded
traffic through one daemon over TCP and through 1, 2 and 4 members gives the same paths, links and
imbalance, record by record. Of two groups one loses a member by kill -9 in the middle, the other gets
one more: the same but for two windows at most, which say what they miss, and for what the members before
had learnt of switches that see a part of a flow. No member is told which partitions are its own.
usage: check_group.py [--seconds N] [--flows N] [--case NAME] [--seed N] [--turns [--changes]]
[--grace SECONDS] [--traffic FOLDER] [--keep FOLDER] (in the build folder)"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

sys.dont_write_bytecode = True
TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "golden" / "daemon"), str(TESTS / "fidelity"), str(TESTS / "kafka")]
import admin  # noqa: E402
import broker  # noqa: E402
from check_ingest import FEEDER, record_traffic  # noqa: E402
from check_transactions import in_one_of, in_time  # noqa: E402
from group import partition_of  # noqa: E402
from rig import Daemon, check, equal, failures, run_tests, until  # noqa: E402
from sharing import Found, Learnt, Lines, check_known, judge  # noqa: E402

PARTITIONS = 8  # as group.partition_of() has it
WINDOW_MS, GRACE_S = 10000, 5
WAIT_S = 240  # on an idle machine
seconds, keep, flows, case, seed, turns = 70, None, 300, "steady2", 1, False
kept, changes_alone = None, False
INGEST = ("flows", "state", "reports")


def daemon_in(folder, name, topology, more):
    (folder / name).mkdir()
    daemon = Daemon(folder / name, topology)
    daemon.name = name
    daemon.config.write_text(
        daemon.config.read_text().replace("window: 2s\ngrace: 1s\n", f"window: {WINDOW_MS // 1000}s\n"
                                          f"grace: {GRACE_S}s\nverify_topology: no\npath_refresh: 600s\n")
        .replace("source_id: golden", f"source_id: {name}") + more)
    daemon.lines = Lines(daemon.out)
    return daemon


class Group:
    """Members, and the aggregator, of one name: each its own topics in the same broker."""

    def __init__(self, folder, name, endpoint, topology, members):
        self.folder, self.name, self.endpoint, self.topology = folder, name, endpoint, topology
        self.prefix = f"{name}."
        admin.create_topics(endpoint, [f"{self.prefix}fabrictrace.ingest.{t}" for t in INGEST],
                            partitions=PARTITIONS)
        admin.create_topics(endpoint, [f"{self.prefix}fabrictrace.partial.v1"], partitions=1)
        self.aggregator = self.make("aggregator", "group: {role: aggregator}\n")
        self.members = []
        for _ in range(members):
            self.add()

    def make(self, name, role):
        daemon = daemon_in(self.folder, f"{self.name}-{name}", self.topology, role +
                           f"kafka: {{ingest: yes, partitions: {PARTITIONS}, brokers: "
                           f"\"{self.endpoint}\", topic_prefix: {self.prefix}}}\n")
        text = daemon.config.read_text()
        daemon.config.write_text(text.replace('sinks: ["', 'sinks: [kafka, "'))
        return daemon.start()

    def add(self):
        self.members.append(self.make(f"m{len(self.members)}",
                                      f"group: {{role: member, name: {self.name}}}\n"))

    def shares(self):
        """How many partitions each running member has, as its log says."""
        found = []
        for m in self.members:
            lines = [line for line in m.log.read_text().splitlines() if "this member has" in line]
            if m.process.poll() is None:
                found.append(int(lines[-1].rsplit(None, 1)[1]) if lines else 0)
        return found

    def settled(self):
        until(f"{self.name}: members share all partitions",
              lambda: sum(self.shares()) == PARTITIONS and min(self.shares()) > 0, WAIT_S)

    def stop(self):
        for daemon in (*self.members, self.aggregator):
            if daemon.process.poll() is None:
                daemon.stop()

    def kill(self):
        for daemon in (*self.members, self.aggregator):
            daemon.kill()


def ticks_s(fields):
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def cpu_of(pid):
    """By the kernel."""
    return ticks_s(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split())


def published_at(endpoint, name):
    """{beginning of a window: when Kafka had its last record of imbalance}, in ms."""
    text = subprocess.run(["kcat", "-C", "-q", "-e", "-b", endpoint, "-t",
                           f"{name}.fabrictrace.imbalance.v1", "-o", "beginning", "-m", "60", "-f",
                           "%T %s\\n"], capture_output=True, text=True).stdout
    found = {}
    for line in text.splitlines():
        moment, value = line.split(" ", 1)
        window = json.loads(value)["window_start_ms"]
        found[window] = max(found.get(window, 0), int(moment))
    return found


def delays(endpoint, name, traffic, shift_ms):
    """[s] from each second in which samples were taken, once a sample, to the records of imbalance that
    count them, sorted: those of the middle of its observation, in steps of 0.1 s."""
    when, found = published_at(endpoint, name), Counter()
    for moment, samples in traffic.samples.items():
        at = moment + shift_ms
        if at // WINDOW_MS * WINDOW_MS in when:
            found[(when[at // WINDOW_MS * WINDOW_MS] - at) // 100 / 10] += samples
    late = [t - w - WINDOW_MS for w, t in when.items()
            if traffic.span[0] <= w - shift_ms <= traffic.span[1]]
    return sorted(found.items()), sorted(late)


def part(found, share):
    """Of sorted (value, count)."""
    rest = share * sum(count for _, count in found)
    for value, count in found:
        rest -= count
        if rest <= 0:
            return value
    return found[-1][0]


def print_cost(endpoint, name, shift_ms, daemons, aggregator, traffic):
    """What it took to join all, of those that had all of it, and when figures are there."""
    spent = threads(daemons)
    used = sum(spent.values())
    found, late = delays(endpoint, name, traffic, shift_ms)
    print(f"{name}: {len(daemons)} daemons took {used:.2f} s of a processor for {traffic.count} "
          f"observations, {traffic.count / used:.0f} a second"
          + (f"; aggregator {sum(threads([aggregator]).values()):.2f} s" if aggregator else "")
          + f"; figures {late[len(late) // 2] / 1000:.2f} s after the end of their window, at most "
          f"{late[-1] / 1000:.2f} s; from a sample to them {part(found, 0.5):.1f} s, of 99 % at most "
          f"{part(found, 0.99):.1f} s", flush=True)
    print(f"{name}: of it " + ", ".join(f"{thread} {s:.2f} s" for thread, s in spent.most_common(4)),
          flush=True)


def print_sizes(endpoint, prefix, span_s):
    """Of each topic, keys and values as they are, before they are compressed."""
    for topic in ("fabrictrace.ingest.flows", "fabrictrace.partial.v1", "fabrictrace.path.v1",
                  "fabrictrace.link.v1", "fabrictrace.imbalance.v1"):
        out = subprocess.run(["kcat", "-C", "-q", "-e", "-b", endpoint, "-t", prefix + topic, "-o",
                              "beginning", "-m", "60", "-f", "%S %K\n"], capture_output=True, text=True).stdout
        sizes = [sum(max(int(n), 0) for n in line.split()) for line in out.splitlines()]
        print(f"{prefix}{topic}: {len(sizes)} messages, {sum(sizes)} bytes, {len(sizes) / span_s:.1f} and "
              f"{sum(sizes) / span_s:.0f} a second", flush=True)


def threads(daemons):
    """{name: CPU s} of the threads of some daemons together, since they were fed."""
    found = Counter()
    for daemon in daemons:
        found += threads_of(daemon) - daemon.before
    return found


def threads_of(daemon):
    found = Counter()
    for stat in Path(f"/proc/{daemon.process.pid}/task").glob("*/stat"):
        head, fields = stat.read_text().rsplit(")", 1)
        found[head.split("(", 1)[1].rstrip("0123456789/")] += ticks_s(fields.split())
    return found


def lags(endpoint, jars, name):
    """What kafka-consumer-groups says of a group: {partition: (lag, member)}."""
    done = subprocess.run(
        broker.java(jars, "kafka.admin.ConsumerGroupCommand", "--bootstrap-server", endpoint,
                    "--describe", "--group", name), capture_output=True, text=True)
    rows = [line.split() for line in done.stdout.splitlines() if line.startswith(f"{name} ")]
    return {int(r[2]): (int(r[5]) if r[5] != "-" else -1, r[6]) for r in rows}


def at_boundary():
    """Just behind the beginning of a window."""
    time.sleep((WINDOW_MS - time.time() * 1000 % WINDOW_MS) / 1000 + 0.5)


class Traffic:
    """What is recorded, and of it what the figures need."""

    def __init__(self, folder):
        self.file = kept and kept / "observations.ndjson"
        if kept and self.file.exists():
            self.topology = (kept / "topology.yaml").read_text()
        else:
            self.topology, self.file, _ = record_traffic(kept or folder, case, seed, seconds, flows)
        if kept:
            (kept / "topology.yaml").write_text(self.topology)
        self.samples, self.times, self.count = Counter(), set(), 0
        with open(self.file, encoding="utf-8") as lines:
            for r in map(json.loads, lines):
                self.samples[(r["first_ms"] + r["last_ms"]) // 2] += r["samples"]
                self.times.add(r["time_ms"])
                self.count += 1
        self.span = (min(self.times) // WINDOW_MS * WINDOW_MS, max(self.times) // WINDOW_MS * WINDOW_MS)
        print(f"{self.count} observations of {sum(self.samples.values())} samples", flush=True)


class Rig:
    """A broker, the one daemon and the groups."""

    def __init__(self, folder):
        self.folder, self.home = folder, folder / "kafka"
        broker.start(self.home)
        self.endpoint = broker.address(self.home)
        self.traffic, self.feeder, self.groups = Traffic(folder), None, []
        self.alone = daemon_in(folder, "alone", self.traffic.topology,
                               f"kafka: {{brokers: \"{self.endpoint}\", topic_prefix: alone.}}\n")
        self.alone.config.write_text(
            self.alone.config.read_text().replace('sinks: ["', 'sinks: [kafka, "'))

    def group(self, name, members):
        made = Group(self.folder, name, self.endpoint, self.traffic.topology, members)
        self.groups.append(made)
        return made

    def feed(self, groups, alone=None, meanwhile=lambda: None):
        """The traffic to these at the same time, until all have closed its last window."""
        for group in groups:
            group.settled()
        at_boundary()
        command = [FEEDER, self.traffic.file, *(("tcp", f"127.0.0.1:{alone.port}") if alone else ())]
        for group in groups:
            command += ["kafka", self.endpoint, group.prefix, str(PARTITIONS)]
        before = cpu_of(broker.pid_of(self.home))
        for daemon in (d for one in groups for d in (*one.members, one.aggregator)):
            daemon.before = threads_of(daemon)
        if alone:
            alone.before = threads_of(alone)
        self.feeder = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE, text=True)
        meanwhile()
        out, err = self.feeder.communicate(timeout=1200)
        equal("the feeder ends", (self.feeder.returncode, err), (0, ""))
        sent, count = json.loads(out), self.traffic.count
        equal("each got all of it", {(t["records"], t["acked"], t["dropped"]) for t in sent},
              {(count, count, 0)})
        fed = groups + [alone] * bool(alone)
        for one in fed:
            one.shift_ms = sent[0]["shift_ms"]
            daemon = one.aggregator if one in groups else one
            until(f"{one.name}: the last window is closed", lambda d=daemon: max(
                d.lines.windows_closed(), default=0) >= self.traffic.span[1] + sent[0]["shift_ms"],
                  WAIT_S)
        print(f"the broker took {cpu_of(broker.pid_of(self.home)) - before:.2f} s of a processor for "
              f"{len(groups)} groups", flush=True)
        return sent

    def cost(self, *groups):
        for g in groups:
            print_cost(self.endpoint, g.name, g.shift_ms, g.members, g.aggregator, self.traffic)

    def end(self):
        if self.feeder and self.feeder.poll() is None:
            self.feeder.kill()
        for one in (*self.groups, self.alone):
            one.kill()
        broker.end(self.home, 15, 60)
        if keep:
            shutil.rmtree(self.home)
            shutil.copytree(self.folder, keep, dirs_exist_ok=True)


def change_members(killed, added):
    """When some windows are over: one member goes, one comes."""
    begun = time.time() * 1000 + WINDOW_MS
    until("windows of the traffic are closed", lambda: len(
        {w for w in killed.aggregator.lines.windows_closed() if w >= begun}) >= 2, WAIT_S)
    killed.changed_ms = added.changed_ms = time.time() * 1000
    killed.members[0].kill()
    added.add()
    killed.settled()
    added.settled()
    equal("the one that is left has all partitions", killed.shares(), [PARTITIONS])


def all_at_once(rig):
    groups = [rig.group("one", 1), rig.group("two", 2), rig.group("four", 4), *make_changed(rig)]
    sent = rig.feed(groups, rig.alone, lambda: change_members(*groups[3:]))
    if not in_time(sent, rig.alone):
        return False
    end_alone(rig)
    show_lag(rig.endpoint, groups[2])
    end_turn(rig, groups[:3])
    end_changed(groups[3:], rig)
    return True


def one_by_one(rig):
    """For traffic that the machine does not take in so often at the same time."""
    groups = [rig.group("one", 1)]
    if not in_time(rig.feed(groups, rig.alone), rig.alone):
        return False
    end_alone(rig)
    print_sizes(rig.endpoint, "one.", seconds)
    end_turn(rig, groups)
    for name, members in () if changes_alone else (("two", 2), ("four", 4)):
        groups = [rig.group(name, members)]
        rig.feed(groups)
        if name == "four":
            show_lag(rig.endpoint, groups[0])
        end_turn(rig, groups)
    groups = make_changed(rig)
    rig.feed(groups, meanwhile=lambda: change_members(*groups))
    end_changed(groups, rig)
    return True


def make_changed(rig):
    return [rig.group("killed", 2), rig.group("added", 1)]


def end_alone(rig):
    alone = rig.alone
    print_cost(rig.endpoint, "alone", alone.shift_ms, [alone], None, rig.traffic)
    alone.stop()
    alone.found = Found([alone], alone.shift_ms)
    check("paths enough to tell", alone.found.records > 300)
    check("flows are in all partitions",
          {partition_of(json.loads(flow)) for flow in alone.found.paths} == set(range(PARTITIONS)))


def end_changed(groups, rig):
    for group in groups:
        group.stop()
        judge(group, rig.alone, rig.traffic.span, 2, Learnt(
            rig.traffic.file, group.changed_ms - group.shift_ms - WINDOW_MS - GRACE_S * 1000))
        check_known(group)


def test_group(folder):
    in_one_of(folder, attempt)


def attempt(folder):
    rig = Rig(folder)
    try:
        rig.alone.start()
        return (one_by_one if turns else all_at_once)(rig)
    finally:
        rig.end()


def end_turn(rig, groups):
    rig.cost(*groups)
    for group in groups:
        group.stop()
        judge(group, rig.alone, rig.traffic.span, 0)


def show_lag(endpoint, group):
    """By Kafka's own tool: each partition has one of the members, and nothing waits."""
    jars = broker.fetch()
    found = until("kafka-consumer-groups: no lag",
                  lambda: (rows := lags(endpoint, jars, group.name))
                  and all(lag == 0 for lag, _ in rows.values()) and rows, WAIT_S) or {}
    equal("kafka-consumer-groups: partitions", sorted(found), list(range(PARTITIONS)))
    equal("kafka-consumer-groups: each of four members has two",
          sorted(Counter(member for _, member in found.values()).values()), [2, 2, 2, 2])


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=int, default=seconds)
    parser.add_argument("--flows", type=int, default=flows)
    parser.add_argument("--case", default=case, help="of tests/fidelity, or large: 64 leaves")
    parser.add_argument("--seed", type=int, default=seed)
    parser.add_argument("--turns", action="store_true", help="groups one after the other")
    parser.add_argument("--changes", action="store_true",
                        help="with --turns: without the groups of two and four that stay as they are")
    parser.add_argument("--traffic", type=Path, help="a folder that keeps what is recorded, for other runs")
    parser.add_argument("--grace", type=int, default=GRACE_S)
    parser.add_argument("--keep", type=Path, help="records and logs")
    args = parser.parse_args()
    seconds, keep, flows, case = args.seconds, args.keep, args.flows, args.case
    changes_alone = args.changes
    seed, turns, GRACE_S, kept = args.seed, args.turns, args.grace, args.traffic
    try:
        broker.fetch()
    except broker.Lacking as lack:
        sys.exit(f"FAIL: no Kafka broker: {lack}")
    code = run_tests(test_group)
    print(f"{'FAIL' if failures else 'PASS'}: a group of daemons finds what one finds")
    sys.exit(code)
