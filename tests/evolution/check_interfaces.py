#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What others build on stays: settings, options and commands, series, topics, the API, fields and words of
records, as `interfaces` lists them, a line each. From version 1.0.0 on it only grows. Runs in the build
folder.

usage: check_interfaces.py            each line is still there, and nothing is there without a line
       check_interfaces.py --write    adds what is new; it takes nothing out"""
import json
import os
import re
import subprocess
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
from check_evolution import NOW, Proto  # noqa: E402

LIST = Path(__file__).resolve().parent / "interfaces"
DAEMONS = ("daemon/fabrictraced", "agent/fabrictrace-agent", "switchpoll/fabrictrace-switchpoll")
TOOL = "cli/fabrictrace"


def said(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def settings_and_series(program):
    name = Path(program).name
    for key, kind in re.findall(r"^\.It Ic (\S+) : Ar (.*)$", said(program, "--print-mdoc"), re.M):
        yield f"setting {name}.yaml {key}: {kind}"
    for series, labels, kind in re.findall(r"^\.It Va (\S+)(?: Brq Ar (.*))?\n(\w+)",
                                           said(program, "--print-metrics"), re.M):
        yield f"series {series}{{{labels.replace(' ', '')}}} {kind}"


def options(program, *words):
    """Of its help."""
    name = " ".join([Path(program).name, *words])
    for short, option, value in re.findall(r"^  (-\w, )?(--[\w-]+) *([A-Z]\S*)?",
                                           said(program, *words, "--help"), re.M):
        yield f"option {name} {short}{option}{' ' if value else ''}{value}"


def commands():
    listed = re.search(r"^Commands:\n(.*?)\n\n", said(TOOL, "--help"), re.M | re.S)[1]
    for command in re.findall(r"^  (\S+)", listed, re.M):
        yield f"command fabrictrace {command}"
        yield from options(TOOL, command)


def topics():
    text = said(DAEMONS[0], "-c", "/dev/null", "--topics")
    for topic, key in re.findall(r"^## (\S+)\n# key: (.*)$", text, re.M):
        yield f"topic {topic} by {key}"


def api():
    for path, methods in json.loads(Path("daemon/api/openapi.json").read_text())["paths"].items():
        for method, of in methods.items():
            yield f"api {method.upper()} {path}"
            for parameter in of.get("parameters", ()):
                yield f"api {method.upper()} {path} {parameter['name']}"


def records():
    """Numbers of types and labels are those of protobuf's descriptors."""
    proto = Proto(NOW)
    for message, fields in proto.messages.items():
        for number, (name, label, kind, of) in fields.items():
            yield f"field {message[1:]} {number} {name}: label {label}, type {kind}{of and ' '}{of}"
    for enum, values in proto.enums.items():
        for number, word in values.items():
            yield f"word {enum[1:]} {number} {word}"


def interfaces():
    for program in DAEMONS:
        yield from settings_and_series(program)
        yield from options(program)
    yield from commands()
    yield from topics()
    yield from api()
    yield from records()


def main():
    now = set(interfaces())
    least = {"setting": 200, "series": 100, "option": 200, "command": 25, "topic": 15, "api": 50,
             "field": 900, "word": 100}
    few = {kind: n for kind in least
           if (n := sum(line.split()[0] == kind for line in now)) < least[kind]}
    if few:
        print("FAIL: so few were found that they were not read rightly:", few)
        return 1
    was = set(LIST.read_text().splitlines()) if LIST.exists() else set()
    if sys.argv[1:] == ["--write"]:
        was |= now
        LIST.write_text("\n".join(sorted(was)) + "\n")
    for line in sorted(was - now):
        print("FAIL: gone, or changed:", line)
    for line in sorted(now - was):
        print("FAIL: not in the list, which --write adds it to:", line)
    print(f"{len(was & now)} interfaces are as they were")
    return was != now


if __name__ == "__main__":
    os.environ.setdefault("LC_ALL", "C.UTF-8")
    sys.exit(main())
