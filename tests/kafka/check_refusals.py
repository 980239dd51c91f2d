#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What goes wrong between us and brokers, each with a real one: a wrong address, wrong credentials, a
wrong authority, no topic, messages over the limit, rights that lack, fewer partitions than expected.
Each is an error that names the line of the setting, the daemon lives on, and nothing is lost
uncounted; where all is right, over SASL, TLS and both, with the rights that the manual names, every
record arrives. usage: check_refusals.py (in the build folder)"""
import subprocess
import sys
from collections import Counter
from pathlib import Path

sys.dont_write_bytecode = True
TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "golden" / "daemon"), str(TESTS / "kafka")]
import admin  # noqa: E402
import broker  # noqa: E402
from certificates import Authority  # noqa: E402
from live import numbered  # noqa: E402
from ports import free_port  # noqa: E402
from rig import (LAB, Daemon, Poller, check, check_balance, equal, failures, run,  # noqa: E402
                 run_tests, until)
from sflow import datagrams  # noqa: E402

WAIT_S = 240  # on an idle machine
KINDS = ("link", "imbalance", "loss", "event", "path")
INGEST = ("flows", "state", "reports")
PASSWORD = "right-password"
LOGIN = ("org.apache.kafka.common.security.{0}LoginModule required {1};")
MORE = """\
listeners=PLAINTEXT://127.0.0.1:{{port}},CONTROLLER://127.0.0.1:{{controller}},SASL://127.0.0.1:{sasl},\
TLS://127.0.0.1:{tls},BOTH://127.0.0.1:{both}
advertised.listeners=PLAINTEXT://127.0.0.1:{{port}},SASL://127.0.0.1:{sasl},TLS://127.0.0.1:{tls},\
BOTH://127.0.0.1:{both}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL:SASL_PLAINTEXT,TLS:SSL,\
BOTH:SASL_SSL
listener.name.sasl.sasl.enabled.mechanisms=PLAIN
listener.name.sasl.plain.sasl.jaas.config={plain}
listener.name.both.sasl.enabled.mechanisms=SCRAM-SHA-256
listener.name.both.scram-sha-256.sasl.jaas.config={scram}
ssl.keystore.type=PEM
ssl.keystore.location={keystore}
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS
auto.create.topics.enable=false
"""


class Kafka:
    """With a listener for each way in; without a login one is User:ANONYMOUS, who may do all."""

    def __init__(self, folder):
        self.folder = folder / "kafka"
        self.ca, self.other = Authority(folder), Authority(folder, "other")
        cert, key = self.ca.make("server", "IP:127.0.0.1")
        keystore = folder / "keystore.pem"
        keystore.write_text(key.read_text() + cert.read_text())
        ports = {name: free_port() for name in ("sasl", "tls", "both")}
        users = f'user_fabric="{PASSWORD}" user_stranger="{PASSWORD}"'
        broker.start(self.folder, 0, MORE.format(
            plain=LOGIN.format("plain.Plain", users), scram=LOGIN.format("scram.Scram", ""),
            keystore=keystore, **ports),
            [f"SCRAM-SHA-256=[name=fabric,password={PASSWORD}]"])
        self.plain = broker.address(self.folder)
        self.sasl, self.tls, self.both = (f"127.0.0.1:{port}" for port in ports.values())
        for prefix in ("right.", "tls.", "both.", "forbidden."):
            self.topics(prefix)
        self.topics("small.", max_message_bytes=300)
        # What fabrictrace-security(7) asks for.
        for prefix in ("right.", "both."):
            admin.allow(self.plain, "fabric", admin.TOPIC, prefix, admin.WRITE, admin.DESCRIBE)
        admin.create_topics(self.plain, [f"few.fabrictrace.ingest.{name}" for name in INGEST])
        admin.allow(self.plain, "fabric", admin.TOPIC, "few.", admin.READ, admin.DESCRIBE)
        admin.allow(self.plain, "fabric", admin.GROUP, "fabrictraced-", admin.READ)

    def topics(self, prefix, **settings):
        admin.create_topics(self.plain, [f"{prefix}fabrictrace.{k}.v1" for k in KINDS], **settings)

    def read(self, prefix):
        """All values of the topics with this prefix."""
        values = Counter()
        for kind in KINDS:
            done = run("kcat", "-C", "-q", "-e", "-b", self.plain, "-t",
                       f"{prefix}fabrictrace.{kind}.v1", "-o", "beginning", "-X",
                       "isolation.level=read_committed", "-f", "%s\\n")
            values.update(done.stdout.splitlines())
        return values


def settings_of(brokers, prefix, folder, password=None, **properties):
    """The section kafka, a key a line; where the key stands, an error is to say."""
    lines = ["kafka:", f'  brokers: "{brokers}"', f'  topic_prefix: "{prefix}"',
             "  message_timeout: 3s"]
    if password:
        secret = folder / "password"
        secret.write_text(password + "\n")
        secret.chmod(0o600)
        lines += ["  secrets:", f"    sasl.password: {secret}"]
    if properties:
        lines += ["  properties:"] + [f"    {k.replace('_', '.')}: {v}"
                                      for k, v in properties.items()]
    return "\n".join(lines) + "\n"


class Case:
    def __init__(self, folder, name, brokers, prefix, key=None, says="", fate=None, more="", **how):
        """fate: what its records are to meet; None: it publishes to the file alone."""
        self.name, self.prefix, self.key, self.says, self.fate = name, prefix, key, says, fate
        own = folder / name
        own.mkdir()
        self.daemon = Daemon(own, (LAB / "topology.yaml").read_text())
        self.daemon.name = name
        text = self.daemon.config.read_text()
        if fate:
            text = text.replace('sinks: ["', 'sinks: [kafka, "')
        self.daemon.config.write_text(text.replace("window: 2s", "window: 10s")
                                      + settings_of(brokers, prefix, own, **how) + more)

    def line(self):
        """Where the file has the key: no code of ours reads it."""
        word = self.key.rsplit(".", 1)[1] + ":"
        lines = self.daemon.config.read_text().splitlines()
        return 1 + next(i for i, line in enumerate(lines) if line.strip().startswith(word))

    def start(self):
        self.daemon.start()

    def fates(self):
        found = Counter()
        for line in self.daemon.get("/metrics").splitlines():
            if line.startswith('fabrictraced_sink_records_total{sink="kafka",fate="'):
                found[line.split('fate="')[1].split('"')[0]] += int(float(line.rsplit(None, 1)[1]))
        return +found

    def told(self):
        place = f"{self.daemon.config}:{self.line()}: key '{self.key}': "
        until(f"{self.name}: an error says {place}", lambda: any(
            place in line and self.says in line
            for line in self.daemon.log.read_text().splitlines()), WAIT_S) or print(
                self.daemon.log.read_text())

    def accounted(self, kafka):
        """In the quiet between two windows all numbers are equal."""
        def is_so():
            before = self.fates()
            written = self.daemon.records()
            arrived = sum(kafka.read(self.prefix).values()) if kafka else 0
            return (before == self.fates() and before["processed"] == arrived
                    and len(written) > 40 and sum(before.values()) == len(written)
                    and before[self.fate] > 0 and before)
        found = until(f"{self.name}: what it published = what arrived + what is counted", is_so, WAIT_S)
        print(f"{self.name}: {dict(found or self.fates())}", flush=True)
        equal(f"{self.name}: the daemon lives", self.daemon.process.poll(), None)
        self.daemon.stop()
        check_balance(self.name, self.daemon.records())

    def judge(self, kafka):
        if self.key:
            self.told()
        self.accounted(kafka if self.prefix not in ("nowhere.", "lacks.") else None)
        if self.key:
            return
        lost = Counter(self.daemon.out.read_text().splitlines()) - kafka.read(self.prefix)
        equal(f"{self.name}: nothing was lost", sum(lost.values()), 0)


def sasl(user="fabric", password=PASSWORD):
    return {"password": password, "security_protocol": "sasl_plaintext", "sasl_mechanism": "PLAIN",
            "sasl_username": user}


def publishing(folder, kafka):
    """Daemons that publish, each in its own trouble or in none."""
    def case(*args, **how):
        return Case(folder, *args, **how)

    ca, other = kafka.ca.ca, kafka.other.ca
    at, name = "kafka.brokers", "kafka.properties"
    return [
        case("port", f"127.0.0.1:{free_port()}", "nowhere.", at, "Connection refused", "failed"),
        case("name", "no-such-host.invalid:9092", "nowhere.", at, "resolve", "failed"),
        case("password", kafka.sasl, "nowhere.", name, "uthentication", "failed",
             **sasl(password="wrong-password")),
        case("authority", kafka.tls, "nowhere.", name, "certificate verify failed", "failed",
             security_protocol="ssl", ssl_ca_location=other),
        # Before that time librdkafka takes a topic for one that is being made.
        case("topic", kafka.plain, "lacks.", "kafka.topic_prefix", "lacks.fabrictrace.", "no_topic",
             topic_metadata_propagation_max_ms=1000),
        case("size", kafka.plain, "small.", name, "max.message.bytes", "too_large",
             compression_type="none"),
        case("rights", kafka.sasl, "forbidden.", name, "ACL: Write", "forbidden", **sasl()),
        # No producer of his is ever given a number: each record finds none that takes it.
        case("stranger", kafka.sasl, "nowhere.", name, "ACL: IdempotentWrite", "refused",
             **sasl("stranger")),
        case("sasl", kafka.sasl, "right.", fate="processed", **sasl()),
        case("tls", kafka.tls, "tls.", fate="processed", security_protocol="ssl",
             ssl_ca_location=ca),
        case("both", kafka.both, "both.", fate="processed", password=PASSWORD,
             security_protocol="sasl_ssl", sasl_mechanism="SCRAM-SHA-256", sasl_username="fabric",
             ssl_ca_location=ca),
    ]


def test_publishing(folder):
    kafka = Kafka(folder)
    cases = publishing(folder, kafka)
    try:
        for case in cases:
            case.start()
        for case in cases:
            case.judge(kafka)
        ingest(folder, kafka)
    finally:
        for case in cases:
            case.daemon.kill()
        broker.end(kafka.folder, 15, 60)


def ingest(folder, kafka):
    """A daemon and a poller that expect 12 partitions where there are 3; a daemon that may not read."""
    more = "  ingest: yes\n  partitions: 12\n"
    few = Case(folder, "few", kafka.sasl, "few.", "kafka.partitions", "partition", more=more, **sasl())
    blind = Case(folder, "blind", kafka.sasl, "few.", "kafka.properties", "ACL",
                 more=more, **sasl("stranger"))
    (folder / "poller").mkdir()
    poller = Poller(folder / "poller", few.daemon)
    text = poller.config.read_text()
    poller.config.write_text(text[:text.index("daemon:")] + settings_of(
        kafka.plain, "few.", folder / "poller") + "  partitions: 12\n")
    programs = (few.daemon, blind.daemon, poller)
    try:
        for program in programs:
            program.start()
        for number, (_, payload) in enumerate(datagrams((LAB / "sflow.pcap").read_bytes())):
            poller.send(numbered(payload, number))
        few.told()
        blind.told()
        place = f"{poller.config}:{1 + poller.config.read_text().splitlines().index('  partitions: 12')}"
        poller.log_says(f"{place}: key 'kafka.partitions': ")
        until("what went to partitions that are there is read",
              lambda: few.daemon.metric("fabrictraced_records_total") > 0, WAIT_S)
        stage = 'fabrictrace_switchpoll_records_dropped_total'
        until("the poller counts what it could not send", lambda: poller.metric(stage) > 0, WAIT_S)
        for program in programs:
            equal(f"{program.name} lives", program.process.poll(), None)
            program.stop()
    finally:
        for program in programs:
            program.kill()


if __name__ == "__main__":
    try:
        broker.fetch()
    except broker.Lacking as lack:
        sys.exit(f"FAIL: no Kafka broker: {lack}")
    code = run_tests(test_publishing)
    print(f"{'FAIL' if failures else 'PASS'}: what brokers refuse is an error with its line, and counted")
    sys.exit(code)
