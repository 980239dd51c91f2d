#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""fabrictrace-troubleshooting(7) and the README's walk from symptom to cause show what the tool prints:
each line of their examples is a line that this command prints in tests/unit/check_cli.py, which holds
it against the tool, each command is one of its commands."""
import os
import re
import subprocess
import sys
from pathlib import Path

sys.dont_write_bytecode = True
SOURCE = Path(os.environ.get("srcdir", ".")).resolve()
EXAMPLE = re.compile(r"^\.Bd -literal\n(.*?)^\.Ed", re.M | re.S)
WALK = re.compile(r"^### From symptom to cause in five steps\n(.*?)^## ", re.M | re.S)
BLOCK = re.compile(r"^ +```\n(.*?)^ +```", re.M | re.S)
COMMAND = re.compile(r"fabrictrace ([a-z]+)")
sys.path.insert(0, str(SOURCE / "tests/unit"))
from check_cli import SHOWN  # noqa: E402


def squeezed(line):
    return " ".join(line.split())


def printed():
    """{command: lines that it prints}"""
    lines = {}
    for name, words in SHOWN.items():
        text = (SOURCE / f"tests/unit/cli/{name}.txt").read_text()
        lines.setdefault(words[0], set()).update(map(squeezed, text.splitlines()))
    return lines


def misprints(lines, outputs):
    """Lines that the command of the last line with a $ before them does not print."""
    command = None
    for line in map(str.strip, lines):
        if line.startswith("$ "):
            command = COMMAND.search(line)[1]
        elif squeezed(line) not in outputs.get(command, ()):
            yield f"fabrictrace {command} has no such line: {line}"


def main():
    page = (SOURCE / "man/fabrictrace-troubleshooting.7").read_text()
    outputs = printed()
    usage = subprocess.run(["./cli/fabrictrace", "--help"], capture_output=True, text=True, check=True).stdout
    commands = set(re.findall(r"^  ([a-z]+)\b", usage, re.M))
    examples = EXAMPLE.findall(page)
    failed = [] if len(examples) >= 10 else [f"only {len(examples)} examples"]
    failed += misprints("".join(examples).splitlines(), outputs)
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
    failed += (f"README: {text}" for text in misprints(shown, outputs))
    print("\n".join(f"FAIL {text}" for text in failed) or f"{len(examples)} examples are as the tool prints them")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
