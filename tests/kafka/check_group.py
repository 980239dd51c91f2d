#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Daemons that share the flows of a fabric as a consumer group of a real broker: the same recorded
traffic through one daemon over TCP and through 1, 2 and 4 members gives the same paths, links and
imbalance, record by record. Of two groups one loses a member by kill -9 in the middle, the other gets
one more: the same but for two windows at most, which say what they miss. No member is told which
partitions are its own. usage: check_group.py [--seconds N] [--flows N] [--case NAME]
[--keep FOLDER] (in the build folder)"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path

sys.dont_write_bytecode = True
TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "golden" / "daemon"), str(TESTS / "fidelity"), str(TESTS / "kafka")]
import admin  # noqa: E402
import broker  # noqa: E402
from check_ingest import FEEDER, record_traffic  # noqa: E402
from group import partition_of, same  # noqa: E402
from rig import Daemon, check, equal, failures, of_kind, run_tests, until  # noqa: E402

PARTITIONS = 8  # as group.partition_of() has it
WINDOW_MS, GRACE_S = 10000, 5
WAIT_S = 240  # on an idle machine
seconds, keep, flows, case = 70, None, 300, "steady2"
KNOWN_MS = 6000
INGEST = ("flows", "state", "reports")


def daemon_in(folder, name, topology, more):
    (folder / name).mkdir()
    daemon = Daemon(folder / name, topology)
    daemon.name = name
    daemon.config.write_text(
        daemon.config.read_text().replace("window: 2s\ngrace: 1s\n", f"window: {WINDOW_MS // 1000}s\n"
                                          f"grace: {GRACE_S}s\nverify_topology: no\npath_refresh: 600s\n")
        .replace("source_id: golden", f"source_id: {name}") + more)
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

    def paths(self):
        return [r for m in self.members for r in of_kind(m.records(), "path")]

    def stop(self):
        for daemon in (*self.members, self.aggregator):
            if daemon.process.poll() is None:
                daemon.stop()

    def kill(self):
        for daemon in (*self.members, self.aggregator):
            daemon.kill()


def cpu_s(daemon):
    """By the kernel."""
    fields = Path(f"/proc/{daemon.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def check_known(group):
    """Who took flows over knows their paths by samples of long before."""
    before, after = (paths_of(m) for m in group.members)
    taken = before.keys() & after.keys()
    known = {f for f in taken if after[f] < group.changed_ms - KNOWN_MS}
    check(f"{group.name}: of {len(taken)} flows that were taken over {len(known)} have their path since "
          f"{KNOWN_MS // 1000} s before that", len(known) > len(taken) / 2 > 10)


def paths_of(daemon):
    """{flow: since when it has its first path}, as this daemon says."""
    found = {}
    for r in of_kind(daemon.records(), "path"):
        if r["state"] == "resolved":
            found.setdefault(json.dumps(r["flow"], sort_keys=True), r["path_since_ms"])
    return found


def delays(endpoint, name):
    """[s] from the end of each window to its imbalance records, by the time that Kafka has of them."""
    text = subprocess.run(["kcat", "-C", "-q", "-e", "-b", endpoint, "-t",
                           f"{name}.fabrictrace.imbalance.v1", "-o", "beginning", "-m", "60", "-f",
                           "%T %s\\n"], capture_output=True, text=True).stdout
    rows = [line.split(" ", 1) for line in text.splitlines()]
    return sorted((int(t) - json.loads(value)["window_end_ms"]) / 1000 for t, value in rows)


def print_cost(endpoint, alone, groups, count):
    """What it took to join all, of those that had all of it, and when figures are there."""
    print(f"{count} observations")
    for name, members, aggregator in (("alone", [alone], None), *(
            (g.name, g.members, g.aggregator) for g in groups)):
        used, late = sum(map(cpu_s, members)), delays(endpoint, name)
        print(f"{name}: {len(members)} daemons took {used:.2f} s of a processor, {count / used:.0f} "
              f"observations a second" + (f"; aggregator {cpu_s(aggregator):.2f} s" if aggregator else "")
              + f"; figures {late[len(late) // 2]:.2f} s after the end of their window, at most "
              f"{late[-1]:.2f} s", flush=True)


def windows_of(records):
    return {r["window_start_ms"] for r in of_kind(records, "imbalance")}


def newest(daemon):
    return max(windows_of(daemon.records()), default=0)


def by_name(records):
    return {(r["window_start_ms"], r.get("switch"), r.get("port"), r.get("scope"), r.get("name"),
             r.get("group")): r for r in records}


def paths_in(records, since):
    """What is said of each flow's path, and the figures of each window. When exactly a record is made,
    and so how many samples its hops have by then, is of no meaning."""
    paths, rates = defaultdict(set), {}
    for r in records:
        flow = json.dumps(r["flow"], sort_keys=True)
        hops = tuple((h["switch"], h.get("in"), h.get("out")) for h in r.get("hops", ()))
        # Whether a flow that is sampled seldom is known yet is a matter of that moment, too.
        if r["state"] != "unresolved":
            paths[flow].add((r["state"], hops, r.get("role"), since and r.get("path_since_ms")))
        if "rate_bps" in r:
            rates[flow, r["window_start_ms"]] = tuple(
                r.get(k) for k in ("bytes", "rate_bps", "rate_lo_bps", "rate_hi_bps"))
    return paths, rates


def judge(group, alone, span, allowed):
    """span: (first, last) window of the traffic; allowed: windows that may say what they miss."""
    whole, name = group.aggregator.records(), group.name
    within = {w for w in windows_of(alone) if span[0] <= w <= span[1]}
    marked = {r["window_start_ms"] for r in of_kind(whole, "imbalance")
              if r.get("partial") or r.get("missing_partitions")} & within
    check(f"{name}: {len(marked)} of {len(within)} windows say that they miss something, at most "
          f"{allowed}", len(marked) <= allowed, sorted(marked))
    rest = within - marked
    for kind in ("link", "imbalance"):
        a, b = (by_name(r for r in of_kind(records, kind) if r["window_start_ms"] in rest)
                for records in (alone, whole))
        check(f"{name}: {len(a)} {kind} records of {len(rest)} windows, the same as of one daemon",
              a and a.keys() == b.keys() and all(same(a[k], b[k]) for k in a),
              (len(a), len(b), list(a.keys() ^ b.keys())[:2],
               [(a[k], b[k]) for k in a if k in b and not same(a[k], b[k])][:1]))
    # Who takes a flow over does not know since when it has its path, beyond what is read back.
    (a, rates), (b, others) = (paths_in(records, since=allowed == 0)
                               for records in (of_kind(alone, "path"), group.paths()))
    check(f"{name}: paths of {len(a)} flows, the same as of one daemon", a and a == b,
          [(k, a.get(k), b.get(k)) for k in a.keys() | b.keys() if a.get(k) != b.get(k)][:3])
    both = {k for k in rates.keys() & others.keys() if k[1] in rest}
    check(f"{name}: rates of flows in {len(both)} windows, the same as of one daemon",
          {flow for flow, _ in others} == {flow for flow, _ in rates} and len(both) > len(rates) * 0.8
          and all(rates[k] == others[k] for k in both),
          (len(rates), len(others), [(rates[k], others[k]) for k in both if rates[k] != others[k]][:3]))


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


def test_group(folder):
    endpoint_folder = folder / "kafka"
    broker.start(endpoint_folder)
    endpoint = broker.address(endpoint_folder)
    alone, groups, feeder = None, [], None
    try:
        traffic = record_traffic(folder, case, seconds=seconds, flows=flows)
        topology, file, count = traffic
        alone = daemon_in(folder, "alone", topology, f"kafka: {{brokers: \"{endpoint}\", "
                          "topic_prefix: alone.}\n")
        alone.config.write_text(alone.config.read_text().replace('sinks: ["', 'sinks: [kafka, "'))
        alone.start()
        groups = [Group(folder, *what) for what in (
            ("one", endpoint, topology, 1), ("two", endpoint, topology, 2),
            ("four", endpoint, topology, 4), ("killed", endpoint, topology, 2),
            ("added", endpoint, topology, 1))]
        for group in groups:
            group.settled()
        at_boundary()
        command = [FEEDER, file, "tcp", f"127.0.0.1:{alone.port}"]
        for group in groups:
            command += ["kafka", endpoint, group.prefix, str(PARTITIONS)]
        begun = time.time() * 1000
        feeder = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True)
        change(groups[3], groups[4], alone, begun)
        out, err = feeder.communicate(timeout=600)
        equal("the feeder ends", (feeder.returncode, err), (0, ""))
        equal("each got all of it", {(t["records"], t["acked"], t["dropped"]) for t in json.loads(out)},
              {(count, count, 0)})
        last = json.loads(file.read_text().splitlines()[-1])["time_ms"] + json.loads(out)[0]["shift_ms"]
        first = json.loads(file.read_text().splitlines()[0])["time_ms"] + json.loads(out)[0]["shift_ms"]
        span = first // WINDOW_MS * WINDOW_MS, last // WINDOW_MS * WINDOW_MS
        for daemon in (alone, *(g.aggregator for g in groups)):
            until(f"{daemon.name}: the last window is closed", lambda: newest(daemon) >= span[1], WAIT_S)
        show_lag(endpoint, groups[2])
        print_cost(endpoint, alone, groups[:3], count)
        for group in groups:
            group.stop()
        alone.stop()
        records = alone.records()
        check("paths enough to tell", len(of_kind(records, "path")) > 300)
        check("flows are in all partitions", {partition_of(r["flow"]) for r in of_kind(records, "path")}
              == set(range(PARTITIONS)))
        for group, allowed in zip(groups, (0, 0, 0, 2, 2)):
            judge(group, records, span, allowed)
        for group in groups[3:]:
            check_known(group)
    finally:
        if feeder and feeder.poll() is None:
            feeder.kill()
        for group in groups:
            group.kill()
        if alone:
            alone.kill()
        broker.end(endpoint_folder, 15, 60)
        if keep:
            shutil.rmtree(endpoint_folder)
            shutil.copytree(folder, keep, dirs_exist_ok=True)


def change(killed, added, alone, begun):
    """When some windows are over: one member goes, one comes."""
    until("windows of the traffic are closed", lambda: len(
        {w for w in windows_of(alone.records()) if w >= begun + WINDOW_MS}) >= 2, WAIT_S)
    killed.changed_ms = added.changed_ms = time.time() * 1000
    killed.members[0].kill()
    added.add()
    killed.settled()
    added.settled()
    equal("the one that is left has all partitions", killed.shares(), [PARTITIONS])


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
    parser.add_argument("--case", default=case)
    parser.add_argument("--keep", type=Path, help="records and logs")
    args = parser.parse_args()
    seconds, keep, flows, case = args.seconds, args.keep, args.flows, args.case
    try:
        broker.fetch()
    except broker.Lacking as lack:
        sys.exit(f"FAIL: no Kafka broker: {lack}")
    code = run_tests(test_group)
    print(f"{'FAIL' if failures else 'PASS'}: a group of daemons finds what one finds")
    sys.exit(code)
