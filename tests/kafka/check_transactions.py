#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What daemons publish in transactions of a real broker, though they are killed with -9 in the middle
of windows and while they close one: to a consumer of committed messages each window comes once. One
daemon has all flows: its figures equal those of a daemon over TCP that nobody killed, in all windows.
A member of a group and the aggregator: the same, apart from windows that say what they miss. Then two
daemons of one name: the older one says so, with the setting.

usage: check_transactions.py [--seconds N] [--flows N] [--seed N] [--keep FOLDER] (in the build folder)"""
import argparse
import json
import math
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
import speed  # noqa: E402  (found by broker)
from rig import Daemon, check, equal, failures, of_kind, run_tests, until  # noqa: E402
from sharing import Learnt  # noqa: E402

SLOW, ATTEMPTS = 2.5, 3
PARTITIONS = 8
# What comes late for want of a processor is in no window of one daemon, and in one of another.
WINDOW_MS, GRACE_S = (5000, 4) if speed.slowness() < SLOW else (10000, 9)
WAIT_S = 240  # on an idle machine
LATE = 'fabrictraced_dropped_total{stage="records",unit="records",reason="late"}'
INGEST = ("flows", "state", "reports")
KINDS = ("path", "link", "imbalance", "partial", "loss", "event")
seconds, keep, flows, seed = 20 * WINDOW_MS // 1000, None, 300, 1


class Committing(Daemon):
    """Publishes in transactions; its other sink says at once what it found."""

    def __init__(self, folder, name, source, endpoint, prefix, topology, role=""):
        folder = folder / name
        folder.mkdir()
        super().__init__(folder, topology)
        self.name, self.kills, self.killed_ms = name, 0, math.inf
        adapt(self, source)
        text = self.config.read_text().replace('sinks: ["', 'sinks: [kafka, "')
        self.config.write_text(
            text + f"kafka: {{ingest: yes, transactions: yes, partitions: {PARTITIONS}, brokers: "
            f"\"{endpoint}\", topic_prefix: {prefix}}}\n{role}")

    def again(self):
        """As systemd does after a kill."""
        self.kills += 1
        self.killed_ms = min(self.killed_ms, time.time() * 1000)
        self.kill()
        self.start()

    def goes_on(self):
        """It has made up for what the ones before it had not committed."""
        until(f"{self.name}: windows of before the start are made up for", lambda: self.log.read_text()
              .count("the windows of before the start are made up for") >= self.kills, WAIT_S)


def adapt(daemon, source):
    daemon.config.write_text(
        daemon.config.read_text()
        .replace("window: 2s\ngrace: 1s\n", f"window: {WINDOW_MS // 1000}s\ngrace: {GRACE_S}s\n"
                 "verify_topology: no\npath_refresh: 600s\n")
        .replace("source_id: golden", f"source_id: {source}"))


def committed(endpoint, prefix, kind):
    """[(key, run, number, record)] of a consumer of committed messages; a partial, which is protobuf,
    has no record."""
    done = subprocess.run(
        ["kcat", "-C", "-q", "-e", "-b", endpoint, "-t", f"{prefix}fabrictrace.{kind}.v1", "-o",
         "beginning", "-m", "60", "-X", "isolation.level=read_committed", "-f",
         "%h\\t%k\\t" + ("%S" if kind == "partial" else "%s") + "\\n"],
        capture_output=True, text=True)
    rows = []
    for line in done.stdout.splitlines():
        headers, key, value = line.split("\t", 2)
        fields = dict(part.split("=", 1) for part in headers.split(","))
        rows.append((key, fields["run"], int(fields["number"]), fields.get("window"),
                     None if kind == "partial" else json.loads(value)))
    return rows


def newest(daemon):
    """The beginning of the newest window that it has closed."""
    text = daemon.out.read_text() if daemon.out.exists() else ""
    return max((json.loads(line)["window_start_ms"] for line in text.splitlines()
                if line.endswith("}") and '"fabrictrace.imbalance.v1"' in line), default=0)


def loads(daemon):
    """As newest(), of a member, which computes no imbalance."""
    text = daemon.out.read_text() if daemon.out.exists() else ""
    return max((json.loads(line)["window_start_ms"] for line in text.splitlines()
                if line.endswith("}") and '"fabrictrace.partial.v1"' in line), default=0)


def kill_while_it_closes(daemon, closed):
    """At the first sign of the next window: it is being published, or committed."""
    daemon.goes_on()
    before = closed(daemon)
    until(f"{daemon.name}: another window is closed", lambda: closed(daemon) > before, WAIT_S)
    daemon.again()


def kill_in_between(daemon, closed):
    """In the middle of a window, behind the close of the one before."""
    daemon.goes_on()
    before = closed(daemon)
    until(f"{daemon.name}: another window is closed", lambda: closed(daemon) > before, WAIT_S)
    middle = (GRACE_S * 1000 + 1500) % WINDOW_MS
    until("the middle of a window", lambda: abs(time.time() * 1000 % WINDOW_MS - middle) < 200, WAIT_S)
    daemon.again()


def key_of(r):
    return (r["window_start_ms"], r.get("switch"), r.get("port"), r.get("scope"), r.get("name"),
            r.get("group"))


def judge(endpoint, name, prefix, reference, span, allowed, least, learnt):
    """Each record once; those of windows that are not marked as those of the reference."""
    rows = {kind: committed(endpoint, prefix, kind) for kind in KINDS}
    for kind in KINDS:
        numbers = Counter((run, number) for _, run, number, _, _ in rows[kind])
        twice = [k for k, n in numbers.items() if n > 1]
        check(f"{name}: {len(rows[kind])} {kind} records of {len({r for r, _ in numbers})} runs, none "
              "twice", not twice, twice[:3])
    runs = {r for _, r, *_ in rows["imbalance"]}
    check(f"{name}: {len(runs)} runs have published, at least {least}", len(runs) >= least)
    mine = [r for *_, r in rows["imbalance"]]
    within = sorted({r["window_start_ms"] for r in of_kind(reference, "imbalance")
                     if span[0] <= r["window_start_ms"] <= span[1]})
    marked = {r["window_start_ms"] for r in mine
              if r.get("partial") or r.get("missing_partitions")} & set(within)
    check(f"{name}: {len(marked)} of {len(within)} windows say that they miss something, at most "
          f"{allowed}", len(marked) <= allowed < len(within), sorted(marked))
    missing = [w for w in within if w not in {r["window_start_ms"] for r in mine}]
    check(f"{name}: each of {len(within)} windows is there", not missing, missing)
    for kind in ("link", "imbalance"):
        found = Counter(key_of(r) for *_, r in rows[kind] if r["window_start_ms"] in within)
        more = {k: n for k, n in found.items() if n > 1}
        check(f"{name}: {sum(found.values())} {kind} records, each of its window once", not more,
              list(more.items())[:3])
        a = {key_of(r): r for r in of_kind(reference, kind)
             if r["window_start_ms"] in within and r["window_start_ms"] not in marked}
        b = {key_of(r): r for *_, r in rows[kind]
             if r["window_start_ms"] in within and r["window_start_ms"] not in marked}
        check(f"{name}: {len(a)} {kind} records, the same as of a daemon that nobody killed",
              a and a.keys() == b.keys() and all(learnt.same(a[k], b[k]) for k in a),
              (len(a), len(b), list(a.keys() ^ b.keys())[:2],
               sum(k in b and not learnt.same(a[k], b[k]) for k in a),
               [(a[k], b[k]) for k in a if k in b and not learnt.same(a[k], b[k])][:1]))
    parts = Counter((key, window) for key, _, _, window, _ in rows["partial"])
    check(f"{name}: {len(parts)} parts of windows, none of two commits",
          all(len({run for k, run, _, w, _ in rows["partial"] if (k, w) == part}) == 1
              for part in parts), parts)
    known = {json.dumps(r["flow"], sort_keys=True) for *_, r in rows["path"] if r["state"] == "resolved"}
    all_known = {json.dumps(r["flow"], sort_keys=True) for r in of_kind(reference, "path")
                 if r["state"] == "resolved"}
    check(f"{name}: {len(known)} flows with a path, the same as of that daemon", known == all_known,
          (len(known ^ all_known), sorted(known ^ all_known)[:2]))


def learnt_until(file, ms):
    """By those who were there then: windows that were closed by then are of them."""
    return Learnt(file, ms - WINDOW_MS - GRACE_S * 1000)


def open_topics(endpoint, prefix):
    admin.create_topics(endpoint, [f"{prefix}fabrictrace.ingest.{t}" for t in INGEST],
                        partitions=PARTITIONS)
    admin.create_topics(endpoint, [f"{prefix}fabrictrace.{kind}.v1" for kind in KINDS], partitions=1)


def has_all(daemon):
    return "this member has" in daemon.log.read_text()


def check_rival(folder, endpoint, topology, daemon):
    """Another of the same name takes its transactions over; the first takes them back once, and again
    the second, and so on: each gives up once it lost them twice."""
    rival = Committing(folder, "rival", "single", endpoint, "single.", topology)
    try:
        rival.start()

        def named():
            return any("kafka.transactions" in line and "same source_id: nothing" in line
                       for d in (daemon, rival) for line in d.log.read_text().splitlines())
        until("one of two daemons of a name gives up, and names the setting", named, WAIT_S)
        check("both are alive", daemon.process.poll() is None and rival.process.poll() is None)
        check("the log names the setting", named())
    finally:
        rival.kill()


def in_time(sent, reference):
    """Whether what is compared can be: what came late is in no window of one, and in one of another."""
    late = reference.metric(LATE)
    print(f"the feeder was behind by {sent[0]['behind_ms']} ms at most; {late:.0f} records came late to "
          "the daemon over TCP", flush=True)
    return late == 0


def in_one_of(folder, attempt):
    """attempt(folder): whether the machine let it feed in time."""
    for n in range(ATTEMPTS):
        own = folder / str(n)
        own.mkdir()
        if attempt(own):
            return
        print("too slow to compare: once more", flush=True)
    check(f"the traffic is fed in time in one of {ATTEMPTS} attempts", False)


def test_transactions(folder):
    in_one_of(folder, transactions)


def transactions(folder):
    home = folder / "kafka"
    broker.start(home)
    endpoint = broker.address(home)
    daemons, feeder = [], None
    try:
        topology, file, count = record_traffic(folder, seed=seed, seconds=seconds, flows=flows)
        (folder / "tcp").mkdir()
        reference = Daemon(folder / "tcp", topology)
        adapt(reference, "tcp")
        for prefix in ("single.", "group."):
            open_topics(endpoint, prefix)
        single = Committing(folder, "single", "single", endpoint, "single.", topology)
        member = Committing(folder, "member", "m1", endpoint, "group.", topology,
                            "group: {role: member, name: pair}\n")
        other = Committing(folder, "other", "m2", endpoint, "group.", topology,
                           "group: {role: member, name: pair}\n")
        sums = Committing(folder, "sums", "sums", endpoint, "group.", topology,
                          "group: {role: aggregator}\n")
        daemons = [reference, single, member, other, sums]
        for daemon in daemons:
            daemon.start()
        for daemon in (single, member, other, sums):
            until(f"{daemon.name}: it has partitions", lambda d=daemon: has_all(d), WAIT_S)
        until("windows are closed before the traffic", lambda: all(newest(d) for d in (
            reference, single, sums)), WAIT_S)
        feeder = subprocess.Popen(
            [FEEDER, file, "tcp", f"127.0.0.1:{reference.port}", "kafka", endpoint, "single.",
             str(PARTITIONS), "kafka", endpoint, "group.", str(PARTITIONS)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        begun = newest(reference)
        until("windows of the traffic", lambda: newest(reference) > begun + 2 * WINDOW_MS, WAIT_S)
        kill_while_it_closes(single, newest)
        kill_in_between(single, newest)
        kill_while_it_closes(single, newest)
        kill_while_it_closes(sums, newest)
        kill_while_it_closes(other, loads)
        kill_in_between(member, loads)
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
        for daemon in (reference, single, sums):
            until(f"{daemon.name}: the last window is closed", lambda d=daemon: newest(d) > span[1],
                  WAIT_S)
        for prefix in ("single.", "group."):
            until(f"{prefix}: the last window is committed", lambda p=prefix: any(
                r["window_start_ms"] > span[1] for *_, r in committed(endpoint, p, "imbalance")),
                  WAIT_S)
        reference.stop()
        records = reference.records()
        judge(endpoint, "one daemon", "single.", records, span, 0, 3, learnt_until(file, single.killed_ms))
        judge(endpoint, "a group", "group.", records, span, 2, 2,
              learnt_until(file, min(d.killed_ms for d in (member, other, sums))))
        check_rival(folder, endpoint, topology, single)
        for daemon in daemons[1:]:
            daemon.stop()
        return True
    finally:
        if feeder and feeder.poll() is None:
            feeder.kill()
        for daemon in daemons:
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
    code = run_tests(test_transactions)
    print(f"{'FAIL' if failures else 'PASS'}: each window is published once")
    sys.exit(code)
