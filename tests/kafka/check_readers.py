#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Readers that share no code with us, of what the daemon published at a real broker: kcat and the Java
console consumer have the lines of the file as they are, a consumer in Python (confluent-kafka, with
classes that protoc makes of the installed fabrictrace.proto) has each record with all its members. What
two of them have still to read kafka-consumer-groups says. usage: check_readers.py (in the build folder)"""
import json
import math
import re
import subprocess
import sys
from collections import Counter
from ipaddress import ip_address
from pathlib import Path

sys.dont_write_bytecode = True
TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "golden" / "daemon"), str(TESTS / "kafka")]
import broker  # noqa: E402
import registry as registries  # noqa: E402
import speed  # noqa: E402  (found by broker)
from check_topics import Kafka, publish  # noqa: E402
from rig import LAB, NO_CONFIG, POLLER, check, equal, failures, run, run_tests, until  # noqa: E402

PROTO = TESTS.parents[0] / "proto" / "fabrictrace.proto"
KINDS = ("path", "link", "imbalance", "event", "hash", "loss")
PREFIX = "pb."
WAIT_S = 240  # on an idle machine


def topics(prefix=""):
    return [f"{prefix}fabrictrace.{kind}.v1" for kind in KINDS]


def by_kcat(kafka):
    """(topic, value)"""
    found = Counter()
    for topic in topics():
        done = run("kcat", "-C", "-q", "-e", "-b", kafka.endpoint, "-t", topic, "-o", "beginning", "-f",
                   "%t\\t%s\\n")
        found.update(tuple(line.split("\t", 1)) for line in done.stdout.splitlines())
    return found


def by_console(kafka, count):
    """Of the Java console consumer: values alone, for it does not say the topic. One at a time: what it
    says that it has read is what it has printed."""
    done = subprocess.run(
        broker.java(broker.fetch(), "kafka.tools.ConsoleConsumer", "--bootstrap-server", kafka.endpoint,
                    "--include", r"fabrictrace\..*", "--from-beginning", "--timeout-ms",
                    int(speed.limit(WAIT_S) * 1000), "--max-messages", count, "--group", "console",
                    "--consumer-property", "max.poll.records=1"), capture_output=True, text=True)
    return Counter(done.stdout.splitlines())


def rows_of(kafka, group):
    done = subprocess.run(
        broker.java(broker.fetch(), "kafka.admin.ConsumerGroupCommand", "--bootstrap-server",
                    kafka.endpoint, "--describe", "--group", group, "--timeout", 60000),
        capture_output=True, text=True)
    return [line.split() for line in done.stdout.splitlines() if line.startswith(f"{group} ")]


def lags(kafka, group):
    """What kafka-consumer-groups says that a group has still to read, in all. It says nothing of one that
    is just being left."""
    rows = until(f"kafka-consumer-groups knows {group}", lambda: rows_of(kafka, group), WAIT_S) or []
    # GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG; - where nothing was read yet.
    return sum(int(row[5] if row[3] != "-" else row[4]) for row in rows)


class Classes:
    """Of fabrictrace.proto, by protoc and Google's own library for Python."""

    def __init__(self, folder):
        from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
        done = run("protoc", f"-I{PROTO.parent}", f"--descriptor_set_out={folder / 'set'}", PROTO.name)
        equal("protoc takes the file", (done.returncode, done.stderr), (0, ""))
        self.pool = descriptor_pool.DescriptorPool()
        for file in descriptor_pb2.FileDescriptorSet.FromString((folder / "set").read_bytes()).file:
            self.pool.Add(file)
        self.classes = {kind: message_factory.GetMessageClass(
            self.pool.FindMessageTypeByName(f"fabrictrace.{kind.capitalize()}")) for kind in KINDS}

    def plain(self, kind, value):
        """Members of a message, and how many bytes of it the file does not know."""
        message = self.classes[kind].FromString(value)
        known = len(message.SerializeToString())
        message.DiscardUnknownFields()
        return members(message), known - len(message.SerializeToString())


def word(field, number):
    """As JSON has it: without the enum's own name in front."""
    prefix = re.sub("(?<!^)(?=[A-Z])", "_", field.enum_type.name).upper() + "_"
    return field.enum_type.values_by_number[number].name.removeprefix(prefix).lower()


def plain(field, value):
    if field.type == field.TYPE_MESSAGE:
        return members(value)
    if field.type == field.TYPE_ENUM:
        return word(field, value)
    if field.type == field.TYPE_BYTES:
        return str(ip_address(value))
    return value


def members(message):
    return {field.name: [plain(field, v) for v in value]
            if hasattr(value, "extend") else plain(field, value)
            for field, value in message.ListFields()}


def same(mine, line):
    """A member of a record as the message has it, and as JSON has it: figures with six digits."""
    if isinstance(mine, dict) and isinstance(line, dict):
        return mine.keys() == line.keys() and all(same(mine[k], line[k]) for k in mine)
    if isinstance(mine, list) and isinstance(line, list):
        return len(mine) == len(line) and all(map(same, mine, line))
    if isinstance(mine, float) or isinstance(line, float):
        return math.isclose(mine, line, rel_tol=5.1e-6, abs_tol=1e-9)
    return mine == line


class Reader:
    """In Python: a consumer of a group, which says how far it read when it is told to."""

    def __init__(self, kafka):
        from confluent_kafka import Consumer
        self.consumer = Consumer({"bootstrap.servers": kafka.endpoint, "group.id": "python",
                                  "auto.offset.reset": "earliest", "enable.auto.commit": False,
                                  "isolation.level": "read_committed"})
        self.consumer.subscribe(topics(PREFIX))

    def read(self, count):
        found = []
        while len(found) < count:
            message = self.consumer.poll(60)
            if message is None or message.error():
                check(f"message {len(found) + 1} of {count} comes", False, message and message.error())
                break
            found.append((message.topic(), message.value()))
        self.consumer.commit(asynchronous=False)
        return found


def lines_are_read(kafka, folder):
    lines = (folder / "out.ndjson").read_text().splitlines()
    lines = [line for line in lines if json.loads(line)["schema"] in topics()]
    want = Counter((json.loads(line)["schema"], line) for line in lines)
    equal("kcat: each line of the file, in its topic", differ(by_kcat(kafka), want), ([], []))
    half = len(lines) // 2
    first = by_console(kafka, half)
    equal("the console consumer: as many as it was told to read", first.total(), half)
    equal("kafka-consumer-groups: it has the rest to read", lags(kafka, "console"), len(lines) - half)
    rest = by_console(kafka, len(lines) - half)
    equal("the console consumer: each line of the file", differ(first + rest, Counter(lines)), ([], []))
    equal("kafka-consumer-groups: it has read all", lags(kafka, "console"), 0)


def differ(got, want):
    return list((got - want).items())[:2], list((want - got).items())[:2]


def messages_are_read(kafka, folder, records):
    classes, reader = Classes(folder), Reader(kafka)
    wanted = [r for r in records if r["schema"] in topics()]
    half = len(wanted) // 2
    found = reader.read(half)
    equal("kafka-consumer-groups: the consumer in Python has the rest to read", lags(kafka, "python"),
          len(wanted) - half)
    found += reader.read(len(wanted) - half)
    equal("kafka-consumer-groups: it has read all", lags(kafka, "python"), 0)
    reader.consumer.close()
    check("values are messages, and no JSON", not any(v.startswith(b"{") for _, v in found))
    for kind in KINDS:
        got = [classes.plain(kind, v) for topic, v in found if topic == f"{PREFIX}fabrictrace.{kind}.v1"]
        want = [{k: v for k, v in r.items() if k != "schema"} for r in wanted
                if r["schema"] == f"fabrictrace.{kind}.v1"]
        equal(f"{kind}: as many", len(got), len(want))
        equal(f"{kind}: no member that the file does not know", sum(n for _, n in got), 0)
        compare(kind, [m for m, _ in got], want)


def names(record):
    """What tells the records of a topic apart, without members that have other forms in JSON."""
    return json.dumps([record.get(k) for k in (
        "window_start_ms", "time_ms", "switch", "port", "scope", "name", "group", "kind", "subject",
        "program", "source", "state", "bytes")], sort_keys=True)


def compare(kind, got, want):
    rest, wrong = {}, []
    for record in want:
        rest.setdefault(names(record), []).append(record)
    for message in got:
        left = rest.get(names(message), [])
        match = next((r for r in left if same(message, r)), None)
        if match is None:
            wrong.append((message, left[:1]))
        else:
            left.remove(match)
    check(f"{kind}: each of {len(got)} messages is a record of the file, member by member",
          not wrong, (len(wrong), wrong[:1]))


def test_readers(folder):
    kafka = Kafka(folder)
    try:
        observations = folder / "observations.ndjson"
        equal("the capture", run(POLLER, *NO_CONFIG, "--set", "source_id=golden", "--replay",
                                 LAB / "sflow.pcap", "--output", observations).returncode, 0)
        publish(kafka, folder, observations)
        lines_are_read(kafka, folder)
        records = publish(kafka, folder, observations, "--set", "kafka.format=protobuf", "--set",
                          f"kafka.topic_prefix={PREFIX}")
        messages_are_read(kafka, folder, records)
    finally:
        kafka("stop")


if __name__ == "__main__":
    try:
        broker.fetch()
        registries.client()
    except (broker.Lacking, registries.Lacking) as lack:
        sys.exit(f"FAIL: no Kafka broker or no consumer: {lack}")
    code = run_tests(test_readers)
    print(f"{'FAIL' if failures else 'PASS'}: readers of others have what the file has")
    sys.exit(code)
