#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `fabrictraced --topics` prints is a script that calls Kafka's own with one word for each
argument, whatever the configuration has as prefix and brokers; each topic is that of a published
record, and fabrictrace-topics(7) has it with its fields. tests/kafka/check_topics.py has the script
create the topics at a real broker."""
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = Path(os.environ.get("srcdir", ".")).resolve()
DAEMON = Path("daemon/fabrictraced").resolve()
PAGE = Path("man/fabrictrace-topics.7")
NASTY = "it's $(touch made) `touch made` \"a\" \\ ; touch made;"
LAB = SOURCE / "tests/golden/daemon/lab/expected.ndjson"
failures = []


def check(what, good, detail=""):
    if not good:
        print(f"FAIL {what}{detail and ': '}{detail}")
        failures.append(what)


def script(*options):
    return subprocess.run([DAEMON, "-c", os.devnull, "--topics", *options], capture_output=True,
                          text=True, check=True).stdout


def calls(text, **environment):
    """The arguments of each call that the script makes."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "kafka-topics.sh").write_text(
            "#!/bin/sh\nfor word; do printf '%s\\0' \"$word\"; done >>\"$CALLS\"\n"
            "printf '\\n' >>\"$CALLS\"\n")
        (folder / "kafka-topics.sh").chmod(0o755)
        done = subprocess.run(
            ["sh"], input=text, text=True, capture_output=True, cwd=folder,
            env={"PATH": f"{folder}:{os.environ['PATH']}", "CALLS": str(folder / "calls"),
                 **environment})
        check("the script runs", done.returncode == 0 and not done.stderr, done.stderr)
        check("no word of the configuration is run", not (folder / "made").exists())
        return [line.split("\0")[:-1] for line in (folder / "calls").read_text().split("\n")[:-1]]


def option(call, name):
    return call[call.index(name) + 1]


def configs(call):
    return dict(word.split("=", 1) for at, word in enumerate(call) if call[at - 1] == "--config")


def published():
    text = (SOURCE / "man/fabrictrace-records.7.in").read_text()
    table = text[text.index(".Ss Kinds, topics and keys"):text.index("Between the programs")]
    return set(re.findall(r"^\.It (fabrictrace\.\w+\.v1) Ta", table, re.M))


def check_script():
    made = calls(script())
    names = [option(call, "--topic") for call in made]
    check("each topic once", len(set(names)) == len(names) and len(names) >= 9, str(names))
    check("all are published", set(names) <= published(), str(set(names) - published()))
    schemas = set(re.findall(r'^\{"schema":"([^"]+)"', LAB.read_text(), re.M))
    check("what a replay publishes has its topic", schemas and schemas <= set(names),
          str(schemas - set(names)))
    for call in made:
        name = option(call, "--topic")
        check(f"{name}: created, and left alone where it is",
              "--create" in call and "--if-not-exists" in call)
        check(f"{name}: partitions", int(option(call, "--partitions")) > 0)
        check(f"{name}: replicas", option(call, "--replication-factor") == "3")
        check(f"{name}: settings", configs(call)["min.insync.replicas"] == "2" and
              configs(call)["cleanup.policy"] in ("delete", "compact", "compact,delete") and
              int(configs(call)["retention.ms"]) >= -1, str(configs(call)))
    return names


def check_words(names):
    made = calls(script("--set", f"kafka.topic_prefix={NASTY}", "--set", f"kafka.brokers={NASTY}"),
                 REPLICATION="1", MIN_INSYNC="1", PARTITIONS="5")
    check("a prefix is a part of one word", [option(c, "--topic") for c in made] ==
          [NASTY + name for name in names], str(made))
    for call in made:
        check("brokers are one word", option(call, "--bootstrap-server") == NASTY, str(call))
        check("the environment decides", option(call, "--replication-factor") == "1" and
              option(call, "--partitions") == "5" and configs(call)["min.insync.replicas"] == "1")


def check_page(names):
    parts = dict(part.split("\n", 1) for part in PAGE.read_text().split("\n.Ss ")[1:])
    check("the page has the same topics", list(parts) == names, str(list(parts)))
    for name, part in parts.items():
        for item in ("Key", "Cadence", "Size", "Partitions", "Retention"):
            check(f"{name}: {item}", re.search(rf"^\.It {item}\n\w", part, re.M))
        fields, _, _ = part.partition(".Sh SEE ALSO")
        check(f"{name}: its fields", len(re.findall(r"^\.It Ql \w+ Pq ", fields, re.M)) > 3)


if __name__ == "__main__":
    topics = check_script()
    check_words(topics)
    check_page(topics)
    print(f"{len(topics)} topics, {len(failures)} failed")
    sys.exit(1 if failures else 0)
