#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""fabrictrace-troubleshooting(7) shows what the tool prints: each line of its examples is a line of
an output that tests/unit/check_cli.py holds against the tool, each command is one of its commands."""
import os
import re
import subprocess
import sys
from pathlib import Path

SOURCE = Path(os.environ.get("srcdir", ".")).resolve()
EXAMPLE = re.compile(r"^\.Bd -literal\n(.*?)^\.Ed", re.M | re.S)
COMMAND = re.compile(r"fabrictrace ([a-z]+)")


def squeezed(line):
    return " ".join(line.split())


def main():
    page = (SOURCE / "man/fabrictrace-troubleshooting.7").read_text()
    outputs = {squeezed(line) for text in (SOURCE / "tests/unit/cli").glob("*.txt")
               for line in text.read_text().splitlines()}
    usage = subprocess.run(["./cli/fabrictrace", "--help"], capture_output=True, text=True, check=True).stdout
    commands = set(re.findall(r"^  ([a-z]+)\b", usage, re.M))
    examples = EXAMPLE.findall(page)
    failed = [] if len(examples) >= 10 else [f"only {len(examples)} examples"]
    for line in "".join(examples).splitlines():
        if not line.startswith("$ ") and squeezed(line) not in outputs:
            failed.append(f"no output of the tool has this line: {line}")
    for line in page.splitlines():
        for name in COMMAND.findall(line) if line.startswith(("$ ", ".Ql fabrictrace ")) else ():
            if name not in commands:
                failed.append(f"the tool has no command '{name}'")
    print("\n".join(f"FAIL {text}" for text in failed) or f"{len(examples)} examples are as the tool prints them")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
