#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One budget of bytes for each program: --check prints who gets how much, what is set must fit, the
defaults of the manual are those of the default budget, and the units are given what it takes, descriptors too."""
import os
import re
import sys
from pathlib import Path

sys.dont_write_bytecode = True
import rig  # noqa: E402
from rig import check, equal  # noqa: E402

UNITS = Path(__file__).resolve().parents[3] / "packaging" / "systemd"
EX_OK, EX_CONFIG = 0, 78
KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
SIZES = {"": 1, "B": 1, "KiB": KIB, "MiB": MIB, "GiB": GIB, "K": KIB, "M": MIB, "G": GIB}
# Settings whose every unit may hold so many descriptors; and what else there may be, most of it of HTTP.
DESCRIPTORS = {
    "fabrictraced": {"connections_max": 1},
    "fabrictrace-agent": {"nccl.jobs_max": 2},
    "fabrictrace-switchpoll": {"snmp.switches_max": 1},
}
OTHER_DESCRIPTORS = 4000
# What each program needs to be told besides, a cap of it, and what is too much of that.
PROGRAMS = {
    "fabrictraced": (rig.DAEMON, (), "flows_max", 20000000),
    "fabrictrace-agent": (rig.AGENT, ("--set", "interfaces=lo", "--set",
                                      "daemon.endpoint=127.0.0.1:1"), "flows_max", 16000000),
    "fabrictrace-switchpoll": (rig.POLLER, (), "fold_entries", 16000000),
}


def size(text):
    number, unit = re.fullmatch(r"([0-9.]+) ?([A-Za-z]*)", text).groups()
    return float(number) * SIZES[unit]


def ask(program, *arguments):
    path, needed, _, _ = PROGRAMS[program]
    return rig.run(path, "-c", os.devnull, *needed, *arguments)


def table(program, *arguments):
    """({what: bytes}, the sum, the budget), as --check prints them."""
    done = ask(program, "--check", *arguments)
    equal(f"{program} {' '.join(arguments)}: --check", (done.returncode, done.stderr), (EX_OK, ""))
    shares = {}
    lines = done.stdout.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("MEMORY FOR"))
    end = next(i for i, line in enumerate(lines) if line.startswith("sum: "))
    for line in lines[start + 1:end]:
        line = line.removesuffix(" (set)")
        shares[line[:22].strip()] = size(re.search(r"([0-9.]+ [KMG]?i?B)$", line)[1])
    total, budget = re.fullmatch(r"sum: (.*) of (.*) \(memory_max\)", lines[end]).groups()
    return shares, size(total), size(budget)


def config(program, *arguments):
    """{key: value} of the effective configuration; keys of sections as they are in --set."""
    found, section = {}, ""
    for line in ask(program, "--print-config", *arguments).stdout.splitlines():
        key, _, value = line.strip().partition(": ")
        if line.endswith(":") and not line.strip().startswith("#"):
            section = line.strip()[:-1] + "."
        elif not line.startswith("#"):
            found[(section if line.startswith(" ") else "") + key] = value
    return found


def test_sums(program):
    for memory in (None, 2 * GIB, 16 * GIB):
        arguments = ("--set", f"memory_max={memory}") if memory else ()
        shares, total, budget = table(program, *arguments)
        check(f"{program}: the sum fits {budget / MIB:.0f} MiB", total <= budget, (total, budget))
        check(f"{program}: it is the sum of the shares",
              abs(sum(shares.values()) - total) < 0.1 * total, (shares, total))
        check(f"{program}: nothing is left out", len(shares) > 5, shares)


def test_ingest():
    """What a consumer of Kafka reads ahead is in it where there is one."""
    without, _, _ = table("fabrictraced")
    shares, total, budget = table("fabrictraced", "--set", "kafka.ingest=yes", "--set",
                                  "kafka.brokers=localhost:9092")
    check("kafka.ingest: its share is in the sum", "Kafka's ingest" not in without
          and shares.get("Kafka's ingest", 0) >= 16 * MIB and total <= budget, shares)
    both, total, budget = table("fabrictraced", "--set", "kafka.ingest=yes", "--set",
                                "sinks=[kafka]", "--set", "group.role=member", "--set",
                                "group.name=fabric")
    check("a member of a group reads with two consumers, and publishes", both["Kafka's ingest"]
          == 2 * shares["Kafka's ingest"] and "Kafka's queue" in both and total <= budget, both)


def test_what_is_set(program):
    _, _, key, much = PROGRAMS[program]
    standard = int(config(program)[key])
    less = config(program, "--set", f"{key}={standard // 10}")
    equal(f"{program}: what is set stays", less[key], str(standard // 10))
    more = [k for k, v in config(program).items() if v.isdigit() and k != key
            and int(less[k]) > int(v)]
    check(f"{program}: others get what is left", more, more)
    done = ask(program, "--check", "--set", f"{key}={much}")
    equal(f"{program}: what does not fit is refused", done.returncode, EX_CONFIG)
    check(f"{program}: with its key and the sum",
          f"key '{key}': with it " in done.stderr and "memory_max is" in done.stderr, done.stderr)
    equal(f"{program}: a start refuses it as well",
          ask(program, "--set", f"{key}={much}").returncode, EX_CONFIG)
    done = ask(program, "--check", "--set", "memory_max=1MiB")
    equal(f"{program}: a budget that is no use", done.returncode, EX_CONFIG)


def test_defaults(program):
    """The manual's are those that the default budget gives."""
    path = PROGRAMS[program][0]
    told = {}
    for part in rig.run(path, "--print-mdoc").stdout.split(".It Ic ")[1:]:
        default = re.search(r'^\.Li "(.*)" \.$', part, re.M)
        told[part.split()[0]] = default[1] if default else None
    plain = {}
    section = ""
    for line in rig.run(path, "-c", os.devnull, "--print-config").stdout.splitlines():
        key, _, value = line.strip().partition(": ")
        if line.endswith(":") and not line.strip().startswith("#"):
            section = line.strip()[:-1] + "."
        elif not line.strip().startswith("#"):
            plain[(section if line.startswith(" ") else "") + key] = value
    caps = [k for k in plain if k.endswith(("_max", "queue", "fold_entries", "_bytes"))]
    check(f"{program}: caps", len(caps) > 4, caps)
    for key in caps:
        equal(f"{program}: default of {key}", plain[key], told[key])


def test_unit(program):
    text = (UNITS / f"{program}.service.in").read_text()
    most = size(re.search(r"^MemoryMax=(.*)$", text, re.M)[1])
    equal(f"{program}: MemoryMax is a seventh above memory_max", most * 7,
          size(config(program)["memory_max"]) * 8)
    allowed = int(re.search(r"^LimitNOFILE=(\d+)$", text, re.M)[1])
    caps = sum(int(config(program)[key]) * each for key, each in DESCRIPTORS[program].items())
    check(f"{program}: LimitNOFILE is enough for its caps", caps + OTHER_DESCRIPTORS <= allowed, (caps, allowed))


test_ingest()
for name in PROGRAMS:
    test_sums(name)
    test_what_is_set(name)
    test_defaults(name)
    test_unit(name)
sys.exit(1 if rig.failures else 0)
