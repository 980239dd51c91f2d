#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""fabrictrace-troubleshooting(7) and the README's walk from symptom to cause show what the tool prints:
each line of their examples is a line of an output that tests/unit/check_cli.py holds against the
tool, each command is one of its commands."""
import os
import re
import subprocess
import sys
from pathlib import Path

SOURCE = Path(os.environ.get("srcdir", ".")).resolve()
EXAMPLE = re.compile(r"^\.Bd -literal\n(.*?)^\.Ed", re.M | re.S)
WALK = re.compile(r"^### From symptom to cause in five steps\n(.*?)^## ", re.M | re.S)
BLOCK = re.compile(r"^ +```\n(.*?)^ +```", re.M | re.S)
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
    steps = WALK.search((SOURCE / "README.md").read_text())[1]
    shown = [line for block in BLOCK.findall(steps) for line in block.splitlines()]
    if steps.count("$ fabrictrace ") < 6 or len(re.findall(r"^\d\. ", steps, re.M)) != 5:
        failed.append("the README's walk is not of five steps, each with its command")
    for line in shown:
        if line.strip().startswith("$ "):
            failed += [f"README: no command '{n}'" for n in COMMAND.findall(line) if n not in commands]
        elif squeezed(line) not in outputs:
            failed.append(f"README: no output of the tool has this line: {line}")
    print("\n".join(f"FAIL {text}" for text in failed) or f"{len(examples)} examples are as the tool prints them")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
