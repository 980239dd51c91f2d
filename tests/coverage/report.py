#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How many lines of each room the tests ran, of a build with --enable-coverage. `make coverage` calls it.

usage: report.py SRCDIR BUILDDIR [--lines FILE...]

Rooms that are judged (lib, proto, the join, diagnosis) fail below 90 %. With --lines: the lines of
those files that nothing ran. The whole report as a page: BUILDDIR/coverage/index.html.
"""

import argparse
import collections
import json
import os
import subprocess
import sys

AT_LEAST = 90.0  # [%]
JUDGED = ("lib", "proto", "daemon/join", "daemon/diagnosis")
FOLDERS = ("lib", "proto", "daemon")  # that are measured
WORST = 12  # files named


def is_judged(room):
    return any(room == name or room.startswith(name + "/") for name in JUDGED)


def measure(srcdir, builddir):
    """Runs gcovr: {file: {line: how often}}."""
    folder = os.path.join(builddir, "coverage")
    os.makedirs(folder, exist_ok=True)
    out = os.path.join(folder, "coverage.json")
    command = ["gcovr", "--root", srcdir, "--object-directory", builddir, "-j", str(os.cpu_count()),
               *(os.path.join(builddir, name) for name in FOLDERS),
               "--exclude", ".*/tests/.*", "--exclude", "tests/.*", "--exclude", ".*pb-c.*",
               "--exclude", ".*page_files.c", "--json", out,
               "--html-details", os.path.join(folder, "index.html")]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        sys.exit("FAIL gcovr: " + done.stdout[-2000:])
    with open(out, encoding="utf-8") as file:
        return counted(json.load(file))


def counted(report):
    """The lines of each file that instructions stand for."""
    files = {}
    for entry in report["files"]:
        lines = {}
        for line in entry["lines"]:
            if not line.get("gcovr/noncode"):
                number = line["line_number"]
                lines[number] = lines.get(number, 0) + line["count"]
        files[entry["file"]] = lines
    return files


def by_room(files):
    """{room: [lines run, lines]}"""
    rooms = collections.defaultdict(lambda: [0, 0])
    for name, lines in files.items():
        room = rooms[os.path.dirname(name)]
        room[0] += sum(count > 0 for count in lines.values())
        room[1] += len(lines)
    return dict(rooms)


def percent(ran, lines):
    return 100.0 * ran / lines if lines else 100.0


def verdicts(rooms):
    """Prints a line a room. How many of the judged have enough, and how many do not."""
    passed = failed = 0
    for room, (ran, lines) in sorted(rooms.items()):
        word = "    "
        if is_judged(room):
            enough = percent(ran, lines) >= AT_LEAST
            passed, failed = passed + enough, failed + (not enough)
            word = "ok  " if enough else "FAIL"
        print(f"{word} {room:20} {percent(ran, lines):5.1f} %  {ran} of {lines} lines")
    return passed, failed


def ranges(numbers):
    """[3, 4, 5, 9] as "3-5, 9"."""
    parts = []
    for number in sorted(numbers):
        if parts and parts[-1][1] == number - 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in parts)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("srcdir")
    parser.add_argument("builddir")
    parser.add_argument("--lines", nargs="+", default=[])
    options = parser.parse_args()
    files = measure(options.srcdir, options.builddir)
    for name in options.lines:
        missed = [number for number, count in files[name].items() if count == 0]
        print(f"{name}: {ranges(missed) or 'all ran'}")
    if options.lines:
        return 0
    rooms = by_room(files)
    passed, failed = verdicts(rooms)
    chosen = {name: lines for name, lines in files.items() if is_judged(os.path.dirname(name))}
    if not chosen:
        print("FAIL nothing was measured: configure --enable-coverage, then make coverage")
        return 1
    ran = sum(count > 0 for lines in chosen.values() for count in lines.values())
    print(f"     all that is judged   {percent(ran, sum(map(len, chosen.values()))):5.1f} %")
    worst = sorted(chosen, key=lambda name: sum(count == 0 for count in chosen[name].values()), reverse=True)
    print("most lines that nothing ran:")
    for name in worst[:WORST]:
        missed = sum(count == 0 for count in chosen[name].values())
        print(f"     {name:32} {missed} of {len(chosen[name])}")
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
