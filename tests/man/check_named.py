#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each setting that a text names is one: `section.word` in what programs print (HELP of series, messages),
in the manual, in the journal's catalog, in rules and examples. Settings are those of --print-config."""
import os
import re
import subprocess
import sys
from pathlib import Path

SOURCE = Path(os.environ.get("srcdir", ".")).resolve()
PROGRAMS = ("daemon/fabrictraced", "agent/fabrictrace-agent", "switchpoll/fabrictrace-switchpoll")
# librdkafka's property, the credentials of switches' passwords, files.
OTHERS = {"group.id", "snmp.auth", "snmp.priv", "snmp.community", "daemon.postinst.in", "daemon.prerm.in"}
LITERAL = re.compile(r'"(?:[^"\\\n]|\\.)*"')


def settings():
    keys = set()
    for program in PROGRAMS:
        path = []
        text = subprocess.run([program, "-c", os.devnull, "--print-config"], capture_output=True, text=True,
                              check=True).stdout
        for indent, key in re.findall(r"^( *)(?:# )?([a-z_]+):", text, re.M):
            path[len(indent) // 2:] = [key]
            keys.add(".".join(path))
    return keys


def texts():
    """(file, line, text): of C its strings."""
    for folder in ("agent", "daemon", "switchpoll", "lib", "cli", "man", "packaging"):
        for path in sorted((SOURCE / folder).rglob("*")):
            if not path.is_file():
                continue
            for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
                for text in LITERAL.findall(line) if path.suffix in (".c", ".h") else [line]:
                    if not line.startswith("#include"):
                        yield path.relative_to(SOURCE), number, text


def main():
    keys = settings()
    sections = {k.split(".")[0] for k in keys if "." in k}
    pattern = re.compile(r"(?<![\w./@%-])(?:" + "|".join(sorted(sections)) + r")(?:\.[a-z_]+)+\b")
    found, wrong = set(), []
    for path, number, text in texts():
        for name in pattern.findall(text):
            found.add(name)
            if name not in keys and name not in OTHERS:
                wrong.append(f"FAIL {path}:{number}: {name} is no setting")
    print("\n".join(wrong + [f"{len(keys)} settings, {len(found & keys)} of them named, {len(wrong)} wrong names"]))
    return 1 if wrong or len(found & keys) < 80 else 0


if __name__ == "__main__":
    sys.exit(main())
