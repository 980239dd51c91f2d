#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a daemon publishes with a schema registry, read by Confluent's own consumer, which knows the
registry alone: record by record what the file has. The registry (Apicurio) is away at the start, goes
away in the middle and is away over a kill -9 of the daemon; it wants a name and a password behind TLS, or
a certificate and a token; it takes no schemas from the daemon, or finds them not compatible with those
that it has. usage: check_registry.py [TEST..] (in the build folder)"""
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "kafka"), str(TESTS / "golden" / "daemon")]
from check_pipeline import SOME, Feed, broker  # noqa: E402
from rig import (DAEMON, LAB, Daemon, Poller, check, equal, failures, records_of, run,  # noqa: E402
                 run_tests, until)
import registry as registries  # noqa: E402
from certificates import Authority  # noqa: E402
from registry_front import Front, basic  # noqa: E402

TOOL = Path("cli/fabrictrace").resolve()


class Rig:
    def __init__(self, folder, endpoint, url, *more):
        """more: further lines of kafka."""
        self.endpoint, self.prefix = endpoint, folder.name + "."
        self.daemon = Daemon(folder, (LAB / "topology.yaml").read_text())
        self.daemon.config.write_text(
            self.daemon.config.read_text().replace('sinks: ["', 'sinks: [kafka, "')
            + f"kafka:\n  brokers: \"{endpoint}\"\n  topic_prefix: {self.prefix}\n"
            f"  spool: {folder / 'spool'}\n  registry.url: \"{url}\"\n"
            + "".join(f"  {line}\n" for line in more))
        self.poller = Poller(folder, self.daemon)
        self.lines = Counter()

    def start(self):
        self.daemon.start()
        self.poller.start()
        self.feed = Feed(self.poller)
        return self

    def metric(self, name):
        return self.daemon.metric(f"fabrictraced_{name}")

    def taken(self):
        return self.metric('sink_records_total{sink="kafka",fate="processed"}')

    def wait_for(self, what, condition):
        self.feed.until(what, condition)

    def waits(self, said):
        """Records wait, the daemon lives, and says of what."""
        before = self.taken()
        spooled = self.metric("kafka_spooled_messages")
        self.wait_for(f"records wait ({said})",
                      lambda: self.metric("kafka_spooled_messages") > spooled + SOME)
        equal("and none went out", self.taken(), before)
        # A slow machine may have another request fail in another way first.
        until(f"the doctor says why ({said})", lambda: "schema registry" in (
            text := self.daemon.get("/api/v1/doctor")) and said in text)

    def goes_on(self):
        before = self.taken()
        self.wait_for("what waited is taken, and more", lambda: self.taken() > before + SOME
                      and self.metric("kafka_spooled_messages") == 0)

    def keep_lines(self):
        self.lines.update(self.daemon.out.read_text().splitlines())
        self.daemon.out.unlink()

    def end(self):
        self.poller.stop()
        until("a daemon that has said all",
              lambda: self.daemon.metric('fabrictraced_sink_pending{sink="kafka"}') == 0)
        self.daemon.stop()
        self.keep_lines()
        check("records enough to tell", sum(self.lines.values()) > 200, self.lines.total())

    def written(self):
        """By schema."""
        kinds = {}
        for line in self.lines:
            record = json.loads(line)
            kinds.setdefault(record["schema"], []).append(record)
        return kinds


def values_of(endpoint, topic):
    """What kcat finds in a topic: each message's own bytes."""
    done = run("kcat", "-C", "-q", "-e", "-b", endpoint, "-t", topic, "-o", "beginning", "-f",
               "%S %s", text=False, stdin=subprocess.DEVNULL)
    values, rest = [], done.stdout
    while rest:
        length, _, rest = rest.partition(b" ")
        values.append(rest[:int(length)])
        rest = rest[int(length):]
    return values


def canon(record):
    return json.dumps(record, sort_keys=True)


class Reader:
    """Confluent's: an id leads it to the schema, which the value must keep to."""

    def __init__(self, registry):
        from confluent_kafka.schema_registry import SchemaRegistryClient
        self.client = SchemaRegistryClient({"url": registry.url})

    def json(self, topic, values):
        from confluent_kafka.schema_registry.json_schema import JSONDeserializer
        from confluent_kafka.serialization import (MessageField, SerializationContext,
                                                   SerializationError)
        schema = self.client.get_latest_version(f"{topic}-value").schema.schema_str
        read = JSONDeserializer(schema, schema_registry_client=self.client)
        context = SerializationContext(topic, MessageField.VALUE)
        got = [read(v, context) for v in values]
        try:
            read(values[0][:-1] + b',"stranger":1}', context)
            check(f"{topic}: a member that the schema does not have is refused", False)
        except SerializationError:
            pass
        return got

    def protobuf(self, topic, values, folder):
        """With classes made of the text that the registry has under the id of these messages. (It
        would ask the registry for a descriptor in base64, which Apicurio does not make.)"""
        from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer
        from confluent_kafka.serialization import MessageField, SerializationContext
        from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
        number = int.from_bytes(values[0][1:5], "big")
        text = self.client.get_schema(number, f"{topic}-value").schema_str
        (folder / "schema.proto").write_text(text)
        done = run("protoc", f"-I{folder}", f"--descriptor_set_out={folder / 'set'}", "schema.proto")
        equal("protoc takes the registry's text", (done.returncode, done.stderr), (0, ""))
        pool = descriptor_pool.DescriptorPool()
        for file in descriptor_pb2.FileDescriptorSet.FromString((folder / "set").read_bytes()).file:
            name = f"{file.package}.{file.message_type[0].name}"
            pool.Add(file)
        read = ProtobufDeserializer(
            message_factory.GetMessageClass(pool.FindMessageTypeByName(name)),
            {"use.deprecated.format": False})
        return [read(v, SerializationContext(topic, MessageField.VALUE)) for v in values]


class Place:
    """A broker and a registry, which has not been started yet."""

    def __init__(self, folder):
        self.folder = folder / "kafka"
        self.registry = registries.Registry(folder)

    def __enter__(self):
        self.endpoint = broker("start", self.folder).strip()
        return self

    def __exit__(self, *error):
        self.registry.stop()
        broker("stop", self.folder)


def read_all(rig, read):
    """Reads each topic of which the file has records, and gives what is missing there and what it has
    more often than the file. Each message must begin with its topic's one id."""
    missing, doubled, strange = Counter(), Counter(), Counter()
    for schema, records in rig.written().items():
        topic = rig.prefix + schema
        values = values_of(rig.endpoint, topic)
        equal(f"{topic}: one id", (len({v[:5] for v in values}), {v[0] for v in values}), (1, {0}))
        got, want = Counter(map(canon, read(topic, values))), Counter(map(canon, records))
        missing += want - got
        more = got - want
        doubled += Counter({k: n for k, n in more.items() if k in want})
        strange += Counter({k: n for k, n in more.items() if k not in want})
        print(f"{topic}: {len(values)} messages", flush=True)
    return missing, doubled, strange


def test_json(folder):
    """Away at the start, in the middle, and while the daemon is killed."""
    with Place(folder) as place:
        rig = Rig(folder, place.endpoint, place.registry.url).start()
        rig.waits("onnect to 127.0.0.1")
        place.registry.start()
        rig.goes_on()
        equal("an id for each schema", rig.metric("registry_schemas_known"),
              rig.metric("registry_schemas"))
        check("the doctor is content",
              "schema registry" not in rig.daemon.get("/api/v1/doctor"))
        place.registry.stop()
        rig.goes_on()
        rig.end()
        reader = Reader(place.registry.start())
        nothing = (Counter(),) * 3
        equal("what Confluent's consumer reads is what the file has",
              read_all(rig, reader.json), nothing)
        place.registry.stop()
        rig.start()
        rig.waits("onnect to 127.0.0.1")
        rig.daemon.kill()
        text = rig.daemon.out.read_text()
        rig.daemon.out.write_text(text[:text.rindex("\n") + 1])
        rig.daemon.start()
        rig.waits("onnect to 127.0.0.1")
        place.registry.start()
        rig.goes_on()
        rig.end()
        # The file that the killed daemon left lacks the end of what was published: the spool has it.
        missing, doubled, _ = read_all(rig, reader.json)
        equal("none lost, none doubled by a kill -9", (missing, doubled), (Counter(), Counter()))


def named(message):
    """What names a link record."""
    return (message.switch, message.port, message.window_start_ms, message.bytes)


def test_protobuf(folder):
    """Behind TLS and a password, which is wrong at first."""
    authority = Authority(folder)
    cert, key = authority.make("front", "DNS:localhost")
    password = folder / "password"
    password.write_text("not this one\n")
    password.chmod(0o600)
    with Place(folder) as place:
        front = Front(place.registry.start(), cert, key, basic("fabrictrace", "open: sesame"))
        rig = Rig(folder, place.endpoint, front.url, "format: protobuf", "registry.user: fabrictrace",
                  f"registry.password_file: {password}", f"registry.ca: {authority.ca}").start()
        rig.waits("status 401: who are you")
        rig.daemon.stop()
        password.write_text("open: sesame\n")
        rig.daemon.start()
        rig.goes_on()
        rig.end()
        front.stop()
        check("the front let in and refused", front.passed > 5 and front.refused > 0,
              (front.passed, front.refused))
        reader = Reader(place.registry)
        for schema, records in rig.written().items():
            topic = rig.prefix + schema
            values = values_of(place.endpoint, topic)
            equal(f"{topic}: one id, and the first message of its schema",
                  (len({v[:6] for v in values}), {(v[0], v[5]) for v in values}), (1, {(0, 0)}))
            messages = reader.protobuf(topic, values, folder)
            equal(f"{topic}: as many", len(messages), len(records))
            if schema == "fabrictrace.link.v1":
                equal("links: the same numbers", Counter(map(named, messages)),
                      Counter((r["switch"], r["port"], r["window_start_ms"], r.get("bytes", 0))
                              for r in records))
            ours = run(TOOL, "consume", topic, "--brokers", place.endpoint, "--json")
            equal(f"{topic}: fabrictrace consume reads the same",
                  Counter(map(canon, records_of(ours.stdout))), Counter(map(canon, records)))


def test_register_no(folder):
    """The daemon may only look schemas up. Somebody else registers what it prints."""
    with Place(folder) as place:
        place.registry.start()
        rig = Rig(folder, place.endpoint, place.registry.url, "registry.register: no").start()
        rig.waits("status 404")
        equal("nothing was registered", place.registry.ask("/subjects"), [])
        printed = records_of(run(DAEMON, "-c", rig.daemon.config, "--schemas").stdout)
        for one in printed:
            subject = one.pop("subject")
            place.registry.ask(f"/subjects/{subject}/versions", one)
        rig.goes_on()
        rig.end()
        equal("what Confluent's consumer reads is what the file has",
              read_all(rig, Reader(place.registry).json), (Counter(),) * 3)


def test_token(folder):
    """Behind TLS that asks for a certificate, and a token, which is wrong at first."""
    authority = Authority(folder)
    cert, key = authority.make("front", "DNS:localhost")
    own, own_key = authority.make("daemon")
    own_key.chmod(0o600)
    token = folder / "token"
    token.write_text("not.this.one\n")
    token.chmod(0o600)
    with Place(folder) as place:
        front = Front(place.registry.start(), cert, key, "Bearer right.one", clients=authority.ca)
        rig = Rig(folder, place.endpoint, front.url, f"registry.ca: {authority.ca}",
                  f"registry.token_file: {token}").start()
        rig.waits(front.url)  # the alert, or what becomes of it when the connection is gone
        equal("without a certificate no request came", (front.passed, front.refused), (0, 0))
        rig.daemon.stop()
        with open(rig.daemon.config, "a", encoding="utf-8") as config:
            config.write(f"  registry.cert: {own}\n  registry.key: {own_key}\n")
        rig.daemon.start()
        rig.waits("status 401: who are you")
        check("with it they do, and the token is refused", front.refused > 0 == front.passed)
        rig.daemon.stop()
        token.write_text("right.one\n")
        rig.daemon.start()
        rig.goes_on()
        rig.end()
        front.stop()
        check("with both schemas are registered", front.passed > 5, front.passed)
        equal("what Confluent's consumer reads is what the file has",
              read_all(rig, Reader(place.registry).json), (Counter(),) * 3)


STRANGER = {"$schema": "http://json-schema.org/draft-07/schema#", "type": "string"}


def earlier(schema):
    """As a release would have had it whose records had one member less."""
    known = json.loads(schema)
    spare = [name for name in known["properties"] if name not in known.get("required", ())][-1]
    del known["properties"][spare]
    return json.dumps(known)


def test_compatible(folder):
    """The registry asks for BACKWARD. Some have left schemas there that ours are not compatible with;
    then those of an earlier release are there instead."""
    with Place(folder) as place:
        ask = place.registry.start().ask
        ask("/config", {"compatibility": "BACKWARD"}, "PUT")
        rig = Rig(folder, place.endpoint, place.registry.url)
        ours = records_of(run(DAEMON, "-c", rig.daemon.config, "--schemas").stdout)
        for one in ours:
            ask(f"/subjects/{one['subject']}/versions",
                {"schemaType": "JSON", "schema": json.dumps(STRANGER)})
        rig.start()
        rig.waits("status 409")
        rig.daemon.stop()
        for one in ours:
            equal(f"{one['subject']}: no version of ours", ask(f"/subjects/{one['subject']}/versions"), [1])
            ask(f"/subjects/{one['subject']}", method="DELETE")
            ask(f"/subjects/{one['subject']}/versions",
                {"schemaType": one["schemaType"], "schema": earlier(one["schema"])})
        rig.daemon.start()
        rig.goes_on()
        rig.end()
        equal("each of ours is the version behind the earlier one",
              {len(ask(f"/subjects/{one['subject']}/versions")) for one in ours}, {2})
        equal("what Confluent's consumer reads is what the file has",
              read_all(rig, Reader(place.registry).json), (Counter(),) * 3)


TESTS_HERE = ("test_json", "test_protobuf", "test_register_no", "test_token", "test_compatible")

if __name__ == "__main__":
    try:
        registries.client()
        subprocess.run([sys.executable, TESTS / "kafka" / "broker.py", "fetch"], check=True)
    except (registries.Lacking, subprocess.CalledProcessError) as lack:
        sys.exit(f"FAIL: no registry or no Kafka: {lack}")
    code = run_tests(*map(globals().get, sys.argv[1:] or TESTS_HERE))
    print(f"{'FAIL' if failures else 'PASS'}: a schema registry's consumers read what the file has")
    sys.exit(code)
