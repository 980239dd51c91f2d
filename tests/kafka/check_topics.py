#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Topics at a real broker: `fabrictraced --topics` has Kafka's own tool create them as it says, and
`fabrictrace consume` shows what the daemon published there, as JSON and as protobuf, in tables and in
lines, from a moment on, filtered, and as it comes. usage: check_topics.py (in the build folder)"""
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS / "golden" / "daemon"))
from rig import (DAEMON, LAB, NO_CONFIG, POLLER, TRUST, check, equal, of_kind,  # noqa: E402
                 records_of, run, run_tests, until, failures)

BROKER = TESTS / "kafka" / "broker.py"
TOOL = Path("cli/fabrictrace").resolve()
WAIT_S = 240  # on an idle machine
EX_DATAERR, EX_UNAVAILABLE = 65, 69


class Kafka:
    def __init__(self, folder):
        self.folder = folder / "kafka"
        self.endpoint = self("start").strip()

    def __call__(self, verb, *args):
        return subprocess.run([sys.executable, BROKER, verb, self.folder, *map(str, args)],
                              check=True, capture_output=True, text=True).stdout

    def put(self, topic, value, key="k"):
        done = run("kcat", "-P", "-b", self.endpoint, "-t", topic, "-k", key, "-D", "\x1e\x1f\x1e",
                   input=value, text=False, stdin=None)
        check(f"kcat writes to {topic}", done.returncode == 0, done.stderr)

    def consume(self, topic, *args, code=0):
        done = run(TOOL, "consume", topic, "--brokers", self.endpoint, *args)
        equal(f"consume {topic} {' '.join(args)}: exit code", (done.returncode, done.stderr)
              if code == 0 else done.returncode, (0, "") if code == 0 else code)
        return done

    def lines(self, topic, *args, code=0):
        return records_of(self.consume(topic, "--json", *args, code=code).stdout)


def bag(records):
    return Counter(json.dumps(r, sort_keys=True) for r in records)


def create(kafka, folder):
    """The script, with Kafka's tool for some and a note of all: a JVM a topic takes seconds."""
    script = run(DAEMON, *NO_CONFIG, "--set", f"kafka.brokers={kafka.endpoint}", "--topics").stdout
    tool = folder / "tool"
    tool.write_text("#!/bin/sh\nshift 2\necho \"$@\" >>%s\ncase $* in *.path.*|*.hash.*|*.event.*)\n"
                    "exec %s %s topics %s \"$@\";; esac\n"
                    % (folder / "asked", sys.executable, BROKER, kafka.folder))
    tool.chmod(0o755)
    done = run("sh", input=script, stdin=None, env={
        **os.environ, "KAFKA_TOPICS": str(tool), "REPLICATION": "1", "MIN_INSYNC": "1"})
    equal("the script creates topics", done.returncode, 0)
    asked = (folder / "asked").read_text().splitlines()
    told = {re.search(r"--topic (\S+)", line)[1]: line for line in asked}
    found = {}
    for line in kafka("topics", "--describe").splitlines():
        words = dict(re.findall(r"(\w+): (\S+)", line))
        if "PartitionCount" in words:
            found[words["Topic"]] = words
    check("three are there", len(found) == 3, found)
    for name, words in found.items():
        equal(f"{name}: partitions", words["PartitionCount"],
              re.search(r"--partitions (\d+)", told[name])[1])
        wanted = dict(re.findall(r"--config (\S+)=(\S+)", told[name]))
        got = dict(re.findall(r"([a-z.]+)=((?:[^,]|,(?![a-z.]+=))+)", words.get("Configs", "")))
        check(f"{name}: settings", all(got.get(k) == v or (k, v) == ("min.insync.replicas", "1")
                                       for k, v in wanted.items()), (got, wanted))


def publish(kafka, folder, observations, *options):
    out = folder / "out.ndjson"
    out.unlink(missing_ok=True)
    done = run(DAEMON, *NO_CONFIG, *TRUST, "--set", "source_id=golden", "--set", "window=5s",
               "--topology", LAB / "topology.yaml", "--replay", observations, "--sink",
               f"file:{out}", "--sink", "kafka", "--set", f"kafka.brokers={kafka.endpoint}",
               *options)
    equal("a replay into Kafka", done.returncode, 0)
    return records_of(out.read_text())


def matches(kafka, records):
    topic = "fabrictrace.path.v1"
    paths = of_kind(records, "path")
    acks = [r for r in paths if r["role"] == "ack"]
    check("the capture has acknowledgements, and data", 0 < len(acks) < len(paths))
    equal("filter by role", bag(kafka.lines(topic, "--filter", "role=ack")), bag(acks))
    dst = acks[0]["flow"]["dst"]
    equal("filter by a member of a member, and two together",
          bag(kafka.lines(topic, "--filter", f"flow.dst={dst}", "--filter", "role=ack")),
          bag(r for r in acks if r["flow"]["dst"] == dst))
    equal("filter by one of a list",
          bag(kafka.lines(topic, "--filter", "hops.switch=spine4")),
          bag(r for r in paths if any(h["switch"] == "spine4" for h in r.get("hops", ()))))
    equal("filter that nothing passes",
          kafka.consume(topic, "--filter", "state=nonsense").stdout, "no records\n")
    equal("a limit", len(kafka.lines(topic, "--limit", "7")), 7)


def tables(kafka, records):
    for kind, title in (("path", "TIME"), ("link", "WINDOW"), ("imbalance", "WINDOW"), ("event", "SINCE"),
                        ("hash", "SWITCH"), ("loss", "TIME")):
        lines = kafka.consume(f"fabrictrace.{kind}.v1").stdout.splitlines()
        check(f"{kind}: the table of its kind", lines[0].startswith(title), lines[0])
        equal(f"{kind}: a row each", len(lines) - 1, len(of_kind(records, kind)))
    for kind, column, member in (("path", "TIME", "time_ms"), ("link", "WINDOW", "window_start_ms"),
                                 ("imbalance", "WINDOW", "window_start_ms")):
        rows = kafka.consume(f"fabrictrace.{kind}.v1", "--columns", column).stdout.splitlines()[1:]
        times = [time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(r[member] // 1000)) for r in of_kind(records, kind)]
        equal(f"{kind}: each row says its time", sorted(row.strip() for row in rows), sorted(times))
        check(f"{kind}: times are several", len(set(times)) > 1, times)
    sorted_ = kafka.consume("fabrictrace.imbalance.v1", "--columns", "GROUP,FLOWS", "--sort",
                            "FLOWS").stdout.splitlines()
    flows = [int(line.split()[-1]) for line in sorted_[1:] if line.split()[-1].isdigit()]
    check("columns and order are the person's", sorted_[0].split() == ["GROUP", "FLOWS"] and
          flows == sorted(flows, reverse=True), sorted_[:3])


class Follower:
    """consume --follow, its lines as they come."""

    def __init__(self, kafka, topic, *args):
        self.process = subprocess.Popen(
            [TOOL, "consume", topic, "--brokers", kafka.endpoint, "--follow", *args],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        self.lines = []
        self.thread = threading.Thread(target=self.read)
        self.thread.start()

    def read(self):
        for line in self.process.stdout:
            self.lines.append(line)

    def stop(self, what):
        self.process.send_signal(signal.SIGTERM)
        equal(f"{what}: exit code at SIGTERM", self.process.wait(timeout=WAIT_S), 0)
        self.thread.join()


def follows(kafka, records):
    paths = len(of_kind(records, "path"))
    follower = Follower(kafka, "fabrictrace.path.v1", "--json", "--from", "@1")
    table = Follower(kafka, "fabrictrace.path.v1", "--from", "@1", "--interval", "1")
    until("what is there", lambda: len(follower.lines) >= paths, WAIT_S)
    equal("once", len(follower.lines), paths)
    until("a table of it", lambda: len(table.lines) > paths, WAIT_S)
    kafka.put("fabrictrace.path.v1", b'{"schema":"fabrictrace.path.v1","state":"new"}')
    until("and what comes", lambda: len(follower.lines) > paths, WAIT_S)
    equal("as it is", json.loads(follower.lines[paths])["state"], "new")
    until("in the table too", lambda: any("new" in line.split() for line in table.lines), WAIT_S)
    follower.stop("lines")
    table.stop("table")


def since(kafka):
    """What is newer than a moment: the broker's clock is this machine's."""
    topic = "fabrictrace.since.v1"
    kafka.put(topic, b'{"n":1}')
    kafka.put(topic, b'{"n":2}', key="other")
    moment = int(time.time()) + 1
    until("a later second", lambda: time.time() > moment, WAIT_S)
    kafka.put(topic, b'{"n":3}')
    equal("all", sorted(r["n"] for r in kafka.lines(topic)), [1, 2, 3])
    equal("since then", [r["n"] for r in kafka.lines(topic, "--from", f"@{moment}")], [3])
    until("a later second", lambda: time.time() > moment + 2, WAIT_S)
    equal("since after them", kafka.lines(topic, "--from", f"@{moment + 2}"), [])


def strangers(kafka):
    topic = "x.fabrictrace.path.v1"
    kafka.put(topic, b"\0\0\0\0\x07{\"schema\":\"fabrictrace.path.v1\",\"fabric\":\"prefixed\"}")
    kafka.put(topic, b"\0\0\0\0\x07\x02\x2e\x1a\x03abc")
    kafka.put(topic, b"\x1a\xff\xff")
    kafka.put(topic, b"{never ends")
    done = kafka.consume(topic, "--json", code=EX_DATAERR)
    equal("with the prefix of a registry", sorted(r["fabric"] for r in records_of(done.stdout)),
          ["abc", "prefixed"])
    equal("what is none is told", done.stderr.count(": no record: "), 2)
    kafka.put("fabrictrace.escape.v1", b'{"text":"\\u001b[31m red"}')
    check("a table never drives the terminal",
          "\x1b" not in kafka.consume("fabrictrace.escape.v1").stdout)


def refusals(kafka, folder):
    done = kafka.consume("nowhere", code=1)
    check("a topic that is not there is named", "no topic 'nowhere'" in done.stderr, done.stderr)
    kind = kafka.consume("path", code=1)
    check("who writes the kind means its topic", "did you mean 'fabrictrace.path.v1'?" in kind.stderr, kind.stderr)
    settings = folder / "properties"
    settings.write_text("# none such\nno.such.thing=1\n")
    wrong = kafka.consume("nowhere", "--properties", str(settings), code=64)
    check("a setting that is none is named", "no.such.thing" in wrong.stderr, wrong.stderr)
    settings.write_text("sasl.password=secret\n")
    settings.chmod(0o644)
    open_ = kafka.consume("nowhere", "--properties", str(settings), code=77)
    check("a password that everybody may read is refused, and not shown",
          "secret\n" not in open_.stderr and str(settings) in open_.stderr, open_.stderr)


def test_topics(folder):
    kafka = Kafka(folder)
    nobody = subprocess.Popen([TOOL, "consume", "nowhere", "--brokers", "127.0.0.1:1"],
                              stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        create(kafka, folder)
        observations = folder / "observations.ndjson"
        equal("the capture", run(POLLER, *NO_CONFIG, "--set", "source_id=golden", "--replay",
                                 LAB / "sflow.pcap", "--output", observations).returncode, 0)
        records = publish(kafka, folder, observations)
        packed = publish(kafka, folder, observations, "--set", "kafka.format=protobuf", "--set",
                         "kafka.topic_prefix=pb.")
        for kind in ("path", "link", "imbalance", "event", "hash"):
            topic = f"fabrictrace.{kind}.v1"
            equal(f"{kind} from JSON", bag(kafka.lines(topic)), bag(of_kind(records, kind)))
            equal(f"{kind} from protobuf", bag(kafka.lines(f"pb.{topic}")),
                  bag(of_kind(packed, kind)))
        matches(kafka, records)
        tables(kafka, records)
        follows(kafka, records)
        since(kafka)
        strangers(kafka)
        refusals(kafka, folder)
        _, said = nobody.communicate(timeout=WAIT_S)
        check("no broker", nobody.returncode == EX_UNAVAILABLE and "127.0.0.1:1" in said, said)
    finally:
        nobody.kill()
        kafka("stop")


if __name__ == "__main__":
    fetched = subprocess.run([sys.executable, BROKER, "fetch"], stdout=subprocess.DEVNULL)
    if fetched.returncode:
        sys.exit("FAIL: no Kafka broker: what it lacks is said above")
    code = run_tests(test_topics)
    print(f"{'FAIL' if failures else 'PASS'}: topics at a real broker")
    sys.exit(code)
