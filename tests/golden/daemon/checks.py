#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""--check refuses what a start refuses, with file, line and key, in each program."""
import sys

sys.dont_write_bytecode = True
import rig  # noqa: E402
from certificates import Authority  # noqa: E402
from rig import check, equal  # noqa: E402

EX_CONFIG = 78
AGENT = "interfaces: []\nnccl: {socket: {folder}/nccl.sock}\nhttp: 'off'\n"
POLLER = "listen: 127.0.0.1:0\nhttp: 'off'\n"
REGISTRY = "sinks: [kafka]\nkafka:\n  spool: {folder}/spool\n  registry:\n"
SNMP = "credentials:\n  a: {version: 3, user: u, auth: SHA, auth_secret_file: %s%s}\nswitches: []\n"


def judge(what, folder, program, config, want, *more, mode=0o640):
    """Both complain alike. {folder} stands for the folder, {config} for the configuration."""
    file = folder / "config.yaml"
    file.write_text(config.replace("{folder}", str(folder)))
    file.chmod(mode)
    for how in (("--check",), ()):
        done = rig.run(program, *how, "-c", file, *more)
        told = [line.removeprefix("error: ") for line in done.stderr.splitlines()]
        want_ = want.replace("{config}", str(file)).replace("{folder}", str(folder))
        equal(f"{what}: {' '.join(how) or 'start'}", done.returncode, EX_CONFIG)
        check(f"{what}: told alone", len(told) == 1 and told[0].startswith(want_), told)


def test_files(folder):
    authority = Authority(folder)
    cert, key = authority.make("good", "DNS:localhost")
    other = authority.make("other", "DNS:localhost")[1]
    public = folder / "public.key"
    public.write_bytes(key.read_bytes())
    public.chmod(0o644)
    for program, own, section in ((rig.DAEMON, "listen: 127.0.0.1:0\n", "tls"),
                                  (rig.AGENT, AGENT, "daemon"), (rig.POLLER, POLLER, "daemon")):
        name = program.name
        line = own.count("\n") + 2
        end = "" if section == "tls" else "  endpoint: 127.0.0.1:9\n"

        def tls(c, k, ca):
            return f"{own}{section}:\n  cert: {c}\n  key: {k}\n  ca: {ca}\n{end}"

        for what, files, at, text in (
                ("no certificate", ("{folder}/none.pem", key, authority.ca), ("cert", 0),
                 "{folder}/none.pem: No such file or directory"),
                ("no key", (cert, "{folder}/none.key", authority.ca), ("key", 1),
                 "{folder}/none.key: No such file or directory"),
                ("no authority", (cert, key, "{folder}/none.pem"), ("ca", 2),
                 "{folder}/none.pem: No such file or directory"),
                ("another key", (cert, other, authority.ca), ("key", 1), f"{other}: "),
                ("a key for everybody", (cert, public, authority.ca), ("key", 1),
                 f"{public}: everybody may read or write it (mode 0644)")):
            judge(f"{name}: {what}", folder, program, tls(*files),
                  f"{{config}}:{line + at[1]}: key '{section}.{at[0]}': {text}")
        judge(f"{name}: an unknown user", folder, program,
              f"{own}user: nobody-of-that-name\n{section}:\n{end or '  identity: any'}\n",
              f"{{config}}:{line - 1}: key 'user': user 'nobody-of-that-name': there is no such user")


def test_daemon(folder):
    public = folder / "public"
    public.write_text("secret\n")
    public.chmod(0o644)
    (folder / "private").write_text("secret\n")
    (folder / "private").chmod(0o600)
    for what, config, want in (
            ("a sink without a folder", "sinks:\n  - file:{folder}/none/x\n",
             "{config}:1: key 'sinks': 'file:{folder}/none/x': No such file or directory"),
            ("a sink that is a folder", "sinks: ['file:{folder}']\n",
             "{config}:1: key 'sinks': 'file:{folder}': Is a directory"),
            ("an unknown property", "sinks: [kafka]\nkafka:\n  properties: [no.such=1]\n",
             "{config}:3: key 'kafka.properties.no.such': kafka: No such configuration property"),
            ("an unknown property of a map",
             "sinks: [kafka]\nkafka:\n  properties:\n    linger.ms: 50\n    no.such: 1\n",
             "{config}:5: key 'kafka.properties.no.such': kafka: No such configuration property"),
            ("a value that a property does not take",
             "sinks: [kafka]\nkafka:\n  properties:\n    linger.ms: 50\n    acks: many\n",
             "{config}:5: key 'kafka.properties.acks': kafka: "),
            ("a property as the only text", "sinks: [kafka]\nkafka:\n  properties: banana\n",
             "{config}:3: key 'kafka.properties.banana': kafka: property 'banana' is not name=value"),
            ("a property without a value",
             "sinks: [kafka]\nkafka:\n  properties:\n    acks:\n",
             "{config}:4: key 'kafka.properties.acks': has to be a text"),
            ("a secret without its file",
             "sinks: [kafka]\nkafka:\n  secrets:\n    sasl.password: {folder}/none\n",
             "{config}:4: key 'kafka.secrets.sasl.password': {folder}/none: No such file"),
            ("a secret for everybody",
             "sinks: [kafka]\nkafka:\n  secrets: [sasl.password={folder}/public]\n",
             "{config}:3: key 'kafka.secrets.sasl.password': {folder}/public: everybody may read"),
            ("a credential where there are none",
             "sinks: [kafka]\nkafka:\n  secrets:\n    ssl.key.password: credential:key\n",
             "{config}:4: key 'kafka.secrets.ssl.key.password': credential:key: No such file"),
            ("a spool without a folder", "sinks: [kafka]\nkafka: {spool: {folder}/no/spool}\n",
             "{config}:2: key 'kafka.spool': '{folder}/no': No such file or directory"),
            ("a spool that is a file", "sinks: [kafka]\nkafka: {spool: {folder}/public}\n",
             "{config}:2: key 'kafka.spool': '{folder}/public' is not a folder"),
            ("a broker that is none", "sinks: [kafka]\nkafka: {brokers: 'k1:9092,k2:99092'}\n",
             "{config}:2: key 'kafka.brokers': 'k2:99092' is not HOST:PORT"),
            ("topics that cannot be", "sinks: [kafka]\nkafka: {topic_prefix: 'lab 1.'}\n",
             "{config}:2: key 'kafka.topic_prefix': 'lab 1.': names of topics have letters"),
            ("a registry without a spool", "sinks: [kafka]\nkafka: {registry: {url: http://r:1}}\n",
             "{config}:2: key 'kafka.registry.url': what waits for it needs kafka.spool"),
            ("a registry that is no URL", REGISTRY + "    url: r:1\n",
             "{config}:5: key 'kafka.registry.url': neither http://HOST nor https://HOST"),
            ("a name in a registry's URL", REGISTRY + "    url: https://me:pw@r:1\n",
             "{config}:5: key 'kafka.registry.url': it has neither a user nor"),
            ("a password that anybody could read", REGISTRY +
             "    url: http://r:1\n    user: me\n    password_file: {folder}/private\n",
             "{config}:5: key 'kafka.registry.url': a secret does not go over http beyond this machine"),
            ("half a name", REGISTRY + "    url: http://[::1]:1\n    user: me\n",
             "{config}:6: key 'kafka.registry.user': a user and a password_file go together"),
            ("a registry's password for everybody", REGISTRY +
             "    url: https://r:1\n    user: me\n    password_file: {folder}/public\n",
             "{config}:7: key 'kafka.registry.password_file': {folder}/public: everybody may read"),
            ("half a certificate", REGISTRY + "    url: https://r:1\n    cert: {folder}/public\n",
             "{config}:6: key 'kafka.registry.cert': a cert and a key go together"),
            ("no authority", REGISTRY + "    url: https://r:1\n    ca: {folder}/none\n",
             "{config}:6: key 'kafka.registry.ca': '{folder}/none': No such file"),
            ("a group of nobody", "group: {role: member, name: ''}\nkafka: {ingest: yes}\n",
             "{config}:1: key 'group.name': it is empty"),
            ("a group that gives what is given",
             "group:\n  role: member\n  name: g\n  partitions: [0-3]\nkafka: {ingest: yes}\n",
             "{config}:3: key 'group.name': the group gives the partitions"),
            ("a group without Kafka", "group:\n  role: member\n  name: g\n",
             "{config}:3: key 'group.name': it reads from Kafka: kafka.ingest is needed"),
            ("a group of an aggregator",
             "group:\n  role: aggregator\n  name: g\nkafka: {ingest: yes}\n",
             "{config}:3: key 'group.name': only of a member"),
            ("a member without a share", "group:\n  role: member\nkafka: {ingest: yes}\n",
             "{config}: key 'group.partitions': a member needs some, or group.name"),
            ("a member that reads nothing",
             "sinks: [kafka]\ngroup:\n  role: member\n  partitions: [0-3]\n",
             "{config}:3: key 'group.role': it reads from Kafka: kafka.ingest is needed"),
            ("an aggregator that reads nothing", "group:\n  role: aggregator\n",
             "{config}:2: key 'group.role': it reads from Kafka: kafka.ingest is needed"),
            ("a member whose sums go nowhere",
             "sinks: ['file:-']\ngroup: {role: member, name: g}\nkafka: {ingest: yes}\n",
             "{config}:2: key 'group.role': what a member says goes to the aggregator by the sink kafka"),
            ("transactions of a file", "kafka:\n  transactions: yes\n",
             "{config}:2: key 'kafka.transactions': it needs the sink kafka"),
            ("transactions without Kafka", "sinks: [kafka]\nkafka: {transactions: yes}\n",
             "{config}:2: key 'kafka.transactions': what they commit is read from Kafka"),
            ("transactions and a spool",
             "sinks: [kafka]\nkafka: {ingest: yes, transactions: yes, spool: {folder}/spool}\n",
             "{config}:2: key 'kafka.transactions': what is not committed is read again"),
            ("transactions of a fixed share", "sinks: [kafka]\nkafka: {ingest: yes, transactions: yes}\n"
             "group: {role: member, partitions: [0-3]}\n",
             "{config}:2: key 'kafka.transactions': a member needs group.name"),
            ("no property", "sinks: [kafka]\nkafka:\n  properties: [ssl]\n",
             "{config}:3: key 'kafka.properties.ssl': kafka: property 'ssl' is not name=value"),
            ("properties that do not go together",
             "sinks: [kafka]\nkafka:\n  properties: [acks=0]\n",
             "{config}:3: key 'kafka.properties': kafka: "),
            ("properties that no reader takes",
             "sinks: [kafka]\nkafka:\n  ingest: yes\n  properties: {session.timeout.ms: 400000}\n",
             "{config}:4: key 'kafka.properties': kafka: `max.poll.interval.ms`"),
            ("no peer", "tls: {peers: [gpu01]}\n", "{config}:1: key 'tls.peers': 'gpu01' is not "),
            ("no inventory", "tls:\n  inventory: [p=192.0.2.0/33]\n",
             "{config}:2: key 'tls.inventory': 'p=192.0.2.0/33' is not "),
            ("a fabric without a name", "fabric: ''\n", "{config}:1: key 'fabric': it is empty"),
            ("a source without a name", "window: 10s\nsource_id: ''\n",
             "{config}:2: key 'source_id': it is empty"),
            ("a history file without a folder", "history_file: {folder}/none/x\n",
             "{config}:1: key 'history_file': '{folder}/none': No such file or directory"),
            ("a history file that is a folder", "history_file: {folder}\n",
             "{config}:1: key 'history_file': '{folder}' is a folder"),
            ("no spool", "sinks: [kafka]\nkafka: {spool: ''}\n",
             "{config}:2: key 'kafka.spool': it is empty"),
            ("no spool, for nothing", "kafka: {spool: ''}\n", "{config}:1: key 'kafka.spool': it is empty"),
            ("a number as a broker", "kafka: {brokers: -5}\n",
             "{config}:1: key 'kafka.brokers': '-5' is not HOST:PORT"),
            ("brokers without a comma", "sinks: [kafka]\nkafka: {brokers: 'k1:9092, banana nut'}\n",
             "{config}:2: key 'kafka.brokers': 'banana nut' is not HOST:PORT"),
            ("plain beyond loopback", "\nlisten: ':9477'\n", "{config}:2: key 'listen': ':9477' ")):
        judge(what, folder, rig.DAEMON, config, want)
    judge("a sink of another kind", folder, rig.DAEMON, "window: 10s\n",
          "--sink: 'foo:bar' is neither file:PATH nor kafka", "--sink", "foo:bar")


def test_senders(folder):
    """Over Kafka, by agents and pollers."""
    head = "kafka:\n  brokers: 127.0.0.1:9\n"
    for program, own in ((rig.AGENT, AGENT), (rig.POLLER, POLLER)):
        line, config = own.count("\n") + 3, own + head
        for what, more, want, mode in (
                ("topics that cannot be", "topic_prefix: 'lab 1.'", "topic_prefix': 'lab 1.': names of",
                 0o640),
                ("a spool without a folder", "spool: {folder}/no/spool",
                 "spool': '{folder}/no': No such file or directory", 0o640),
                ("a password that everybody may read", "properties: {sasl.password: hush}",
                 "properties': a secret is in a file where everybody may read or write it", 0o644)):
            judge(f"{program.name}: {what}", folder, program, f"{config}  {more}\n",
                  f"{{config}}:{line}: key 'kafka.{want}", mode=mode)


def test_agent(folder):
    judge("an agent's source without a name", folder, rig.AGENT,
          AGENT + "source_id: ''\ndaemon: {endpoint: '127.0.0.1:9'}\n",
          "{config}:4: key 'source_id': it is empty")
    judge("a broken filter", folder, rig.AGENT,
          AGENT + "filter: udp porf 1\ndaemon: {endpoint: '127.0.0.1:9'}\n",
          "{config}:4: key 'filter': 'udp porf 1': ")
    judge("intervals", folder, rig.AGENT,
          AGENT + "refresh_interval: 1s\ndaemon: {endpoint: '127.0.0.1:9'}\n",
          "{config}:4: key 'refresh_interval': shorter than 'report_interval'")


def test_poller(folder):
    judge("a poller's source without a name", folder, rig.POLLER, POLLER + "source_id: ''\n",
          "{config}:3: key 'source_id': it is empty")
    secret, switches = folder / "secret", folder / "switches.yaml"

    def snmp(what, text, want, mode=0o600, more=""):
        secret.write_text(text)
        secret.chmod(mode)
        switches.write_text(SNMP % ("secret", more))
        judge(what, folder, rig.POLLER, POLLER + "snmp: {switches: {folder}/switches.yaml}\n",
              f"{switches}:2: key '{want}")

    snmp("a short secret", "short\n", "a': auth_secret: needs 8 characters or more")
    snmp("a secret for everybody", "long enough\n",
         "auth_secret_file': secret: everybody may read or write it (mode 0644)", 0o644)
    snmp("unknown privacy", "long enough\n", "a': priv: must be one of AES", 0o600,
         ", priv: DES, priv_secret_file: secret")


def test_reload(folder):
    """What needs a restart, and is there before it, is not taken for what runs."""
    daemon = rig.Daemon(folder, "fabric: lab\n")
    small = "flows_max: 1000\nsources_max: 100\nkafka: {brokers: '127.0.0.1:9', queue_bytes: 1MiB, " \
            "queue_messages: 1000"
    text = daemon.config.read_text()
    daemon.config.write_text(f"{text}{small}}}\n")
    daemon.start()
    daemon.config.write_text(text.replace("sinks: [", "sinks: [kafka, ") +
                             f"{small}, ingest: yes, transactions: yes}}\n")
    daemon.hang_up()
    daemon.log_says("reloaded the topology")
    daemon.stop()


if __name__ == "__main__":
    sys.exit(rig.run_tests(test_files, test_daemon, test_senders, test_agent, test_poller, test_reload))
