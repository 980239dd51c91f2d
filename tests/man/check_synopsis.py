#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""fabrictrace(1) against the tool's own help: each command is in the synopsis and described, each of
its options stands in the page, and the synopsis has no option that the command refuses and all that it
takes, but for those of every command. And each exit status that a program's sources name is in its page.

usage: check_synopsis.py    in the build folder"""
import os
import re
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
TOOL = Path("cli/fabrictrace").resolve()
PAGE = (SOURCE / "man" / "fabrictrace.1").read_text()
failures = []


def check(what, good, detail=""):
    if not good:
        print(f"FAIL: {what}: {detail}")
        failures.append(what)


def help_of(*command):
    run = subprocess.run([TOOL, *command, "--help"], capture_output=True, text=True, timeout=300,
                         env={**os.environ, "LC_ALL": "C"})
    check(f"{' '.join(command)} --help", run.returncode == 0, run.stderr)
    return run.stdout


def options_of(text):
    return set(re.findall(r"^  --([a-z-]+)", text, re.M))


def synopsis():
    """{command: options that its lines name}"""
    found = {}
    part = PAGE.split(".Sh SYNOPSIS\n")[1].split(".Sh DESCRIPTION")[0]
    for line in part.split(".Nm\n")[1:]:
        command = re.match(r"\.Cm ([a-z]+)", line)
        if not command:
            check("a line of the synopsis begins with a command", False, line)
            continue
        found.setdefault(command[1], set()).update(re.findall(r"Fl -([a-z-]+)", line))
    return found


def commands_at(option, begins):
    """The commands that the sentences of a general option name, from this word on."""
    text = PAGE.split("Every command takes:")[1].split(f"\n.It Fl -{option}")[1]
    sentence = text[text.index(begins):].split("\n.It ")[0]
    return {name for line in re.findall(r"^\.Cm (.*)", sentence, re.M) for name in re.findall(r"[a-z]+", line)}


def statuses(folders):
    """Exit statuses by sysexits.h."""
    text = "".join(p.read_text() for folder in folders for p in (SOURCE / folder).rglob("*.c"))
    return {getattr(os, name) for name in re.findall(r"\bEX_[A-Z]+\b", text) if hasattr(os, name)}


for page, folders in (("fabrictrace.1", ["cli"]), ("fabrictraced.8", ["daemon", "lib/config"]),
                      ("fabrictrace-agent.8", ["agent", "lib/config"]),
                      ("fabrictrace-switchpoll.8", ["switchpoll", "lib/config"])):
    part = (SOURCE / "man" / page).read_text().split(".Sh EXIT STATUS\n")[1].split("\n.Sh ")[0]
    told = {int(n) for line in re.findall(r"^\.It (.*)", part, re.M) for n in re.findall(r"\d+", line)}
    used = statuses(folders)
    check(f"{page}: statuses that programs end with are in the page", len(used) > 5 and used <= told, used - told)
listed = help_of()
commands = re.findall(r"^  ([a-z]+) {2,}\S", listed.split("Commands:")[1].split("Options of")[0], re.M)
general = options_of(listed)
stated = synopsis()
shared = {"help", "version"} | set(re.findall(r"Fl -([a-z-]+)", PAGE.split("Every command takes:")[1].split(".El")[0]))
check("there are commands", len(commands) > 20, commands)
check("the synopsis has each command, and no other", set(stated) == set(commands), set(stated) ^ set(commands))
described = set(re.findall(r"^\.It Cm ([a-z]+)", PAGE, re.M))
check("each is described", set(commands) <= described, set(commands) - described)
for name in commands:
    own = options_of(help_of(name))
    check(f"{name}: the synopsis has options of its own alone", stated.get(name, set()) <= own,
          stated.get(name, set()) - own)
    check(f"{name}: the synopsis has all of these", own - shared <= stated.get(name, set()),
          own - shared - stated.get(name, set()))
    for option in sorted(own):
        check(f"{name} --{option} is in the page", re.search(rf"(?:Fl|,) -{option}\b(?!-)", PAGE), name)
takes = {option: {name for name in commands if option in options_of(help_of(name))}
         for option in ("endpoint", "json", "sort", "columns", "wide")}
check("-json: who does not take it", commands_at("json", "Not for") == set(commands) - takes["json"],
      commands_at("json", "Not for") ^ set(commands) - takes["json"])
check("-endpoint: who does not take it", commands_at("endpoint", "Not for") == set(commands) - takes["endpoint"],
      commands_at("endpoint", "Not for") ^ set(commands) - takes["endpoint"])
for option in ("sort", "columns"):
    check(f"-{option}: who takes it", commands_at("wide", "are for\n.Cm paths") == takes[option],
          commands_at("wide", "are for\n.Cm paths") ^ takes[option])
text = PAGE.split("\n.It Fl -wide")[1].split("It is for all")[1].split("\n.Fl -sort\n")[0]
without = {name for line in re.findall(r"^\.Cm (.*)", text.split("and for")[0], re.M) for name in re.findall(r"[a-z]+", line)}
check("-wide: who takes it", (takes["endpoint"] - without) | {"consume"} == takes["wide"],
      (takes["endpoint"] - without) | {"consume"} ^ takes["wide"])
check("all have options", {"help", "version"} <= general, general)
print(f"{len(commands)} commands, {len(failures)} failures")
sys.exit(1 if failures else 0)
