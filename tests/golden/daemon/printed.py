#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What --print-config prints is a configuration that prints the same: of each program its defaults, and each
text and list of it with what YAML takes for something else. What cannot be printed is no success."""
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
import rig  # noqa: E402
from rig import check, equal  # noqa: E402

STRANGE = "#x", "a: b", "- x", "'", "\"", "\\", "null", "1e3", "]", "&x", "tab\t", "line\n", "\u2028é😀", ""


def printed(program, file, *words):
    done = rig.run(program, "-c", file, "--print-config", *words)
    return done.stdout if done.returncode == 0 else done.stderr


def keys(text):
    """Of texts and lists, which are in quotes, in brackets, or not set; those of sections with a point."""
    sections = []
    for line in text.splitlines():
        indent, name, value = re.fullmatch(r"( *)(?:# )?([a-z0-9_]+):(.*)", line).groups()
        sections = sections[:len(indent) // 2] + [name]
        if re.match(r' ["\[]', value) or "# " in line:
            yield ".".join(sections)


def test(program, file):
    defaults = printed(program, os.devnull)
    file.write_text(defaults)
    equal(f"{program.name}: what is printed reads back", printed(program, file), defaults)
    # Endpoints and words take not every text.
    found = [key for key in keys(defaults) if rig.run(program, "-c", os.devnull, "--print-config", "--set",
                                                      f"{key}={STRANGE[0]}").returncode == 0]
    check(f"{program.name}: it has texts", len(found) > 10, found)
    for text in STRANGE:
        words = [word for key in found for word in ("--set", f"{key}={text}")]
        want = printed(program, os.devnull, *words)
        file.write_text(want)
        check(f"{program.name}: {text!r} is taken", want.count("\n") > 50, want)
        equal(f"{program.name}: {text!r} reads back", printed(program, file), want)


def test_full_disk(program):
    for word in "--print-config", "--version", "--help":
        with open("/dev/full", "w", encoding="ascii") as full:
            done = subprocess.run([program, "-c", os.devnull, word], stdout=full, stderr=subprocess.PIPE, text=True)
        equal(f"{program.name} {word}: a full disk is told", (done.returncode, done.stderr),
              (74, f"{program.name}: standard output: No space left on device\n"))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        for each in rig.DAEMON, rig.AGENT, rig.POLLER:
            test(each, Path(folder) / "printed.yaml")
            test_full_disk(each)
    sys.exit(1 if rig.failures else 0)
