#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""fabrictrace live: poller, daemon and page by one command without configuration, and how they end:
by Ctrl-C, by SIGKILL of the tool, by the death of one of them, by what cannot be started."""
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path

sys.dont_write_bytecode = True
import rig  # noqa: E402
import sflow  # noqa: E402
from rig import check, equal, until  # noqa: E402

TOOL = Path("cli/fabrictrace").resolve()


def children_of(pid):
    """{program: pid} of the processes whose parent it is."""
    found = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, rest = re.match(r"\d+ \((.*)\) (.*)", stat.read_text(), re.S).groups()
            if int(rest.split()[1]) == pid:
                program = Path(os.readlink(stat.parent / "exe")).name
                found[program] = int(stat.parent.name)
        except (OSError, AttributeError):
            continue
    return found


def is_there(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class Live:
    """fabrictrace live until it has said where its page is."""

    def __init__(self, *words):
        self.process = subprocess.Popen(
            [TOOL, "live", "--sflow", "127.0.0.1:0", *words], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.lines = []
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        until("it says how it ends", lambda: any("Ctrl-C" in line for line in self.lines)
              or self.process.poll() is not None)
        text = "".join(self.lines)
        self.page = re.search(r"^Page: +(http://127\.0\.0\.1:(\d+)/)$", text, re.M)
        self.port = int(re.search(r"UDP port (\d+)", text)[1])
        self.children = children_of(self.process.pid)

    def read(self):
        for line in self.process.stdout:
            self.lines.append(line)

    def get(self, path):
        with urllib.request.urlopen(self.page[1] + path, timeout=rig.WAIT_S) as answer:
            return answer.read().decode()

    def wait(self):
        """Exit status and standard error, once it and its children are gone."""
        code = self.process.wait(timeout=rig.WAIT_S)
        until("nothing of it is left",
              lambda: not any(map(is_there, self.children.values())))
        return code, self.process.stderr.read()

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def test_live(folder):
    live = Live()
    other = None
    try:
        equal("its children", sorted(live.children), ["fabrictrace-switchpoll", "fabrictraced"])
        equal("the page's daemon is ready", live.get("readyz"), "ok\n")
        sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        for _, payload in sflow.datagrams((rig.LAB / "sflow.pcap").read_bytes()):
            sender.sendto(payload, ("127.0.0.1", live.port))
        until("what was sent to it is a path",
              lambda: json.loads(live.get("api/v1/paths")).get("records"))
        tool = rig.run(TOOL, "doctor", "--endpoint", f"127.0.0.1:{live.page[2]}")
        check("the other commands read it", "finding" in tool.stdout, tool)
        # Another one beside it takes other ports.
        other = Live()
        check("two have two pages", other.page and other.page[1] != live.page[1], other.lines)
        check("and say how it is reached",
              f"FABRICTRACE_ENDPOINT=127.0.0.1:{other.page[2]}" in "".join(other.lines),
              other.lines)
        other.process.send_signal(signal.SIGTERM)
        equal("SIGTERM ends it", other.wait(), (0, ""))
        live.process.send_signal(signal.SIGINT)
        equal("Ctrl-C ends it", live.wait(), (0, ""))
    finally:
        for one in (live, other):
            if one:
                one.kill()


def test_deaths(folder):
    live = Live("--topology", rig.LAB / "topology.yaml")
    try:
        check("it names the topology", f"Fabric: {rig.LAB / 'topology.yaml'}\n" in live.lines,
              live.lines)
        check("and has it", json.loads(live.get("api/v1/topology"))["switches"][0]["name"])
        live.process.kill()
        live.process.wait()
        until("its children end with a tool that is killed",
              lambda: not any(map(is_there, live.children.values())))
    finally:
        live.kill()
    live = Live()
    try:
        os.kill(live.children["fabrictrace-switchpoll"], signal.SIGKILL)
        code, err = live.wait()
        equal("a killed poller: exit status", code, 70)
        equal("and what is said", err, "fabrictrace live: fabrictrace-switchpoll was ended by "
                                       "signal 9 (Killed)\n")
    finally:
        live.kill()
    live = Live()
    try:
        os.kill(live.children["fabrictraced"], signal.SIGTERM)
        code, err = live.wait()
        equal("a daemon that was told to end: exit status", code, 70)
        check("it is named", "fabrictraced has ended" in err, err)
    finally:
        live.kill()


def test_what_cannot_be_started(folder):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        done = rig.run(TOOL, "live", "--sflow", f"127.0.0.1:{port}")
        equal("a port that is taken: exit status", (done.returncode, done.stdout), (69, ""))
        equal("and the poller's last words", done.stderr,
              "fabrictrace live: fabrictrace-switchpoll ended with exit status 69; its log ends "
              f"with:\n  error: listen '127.0.0.1:{port}': Address already in use\n")
    done = rig.run(TOOL, "live", "--topology", folder / "none.yaml")
    equal("no topology file", (done.returncode, done.stdout, done.stderr),
          (66, "", f"fabrictrace live: {folder / 'none.yaml'}: No such file or directory\n"))
    wrong = folder / "wrong.yaml"
    wrong.write_text("switches: 7\n")
    done = rig.run(TOOL, "live", "--sflow", "127.0.0.1:0", "--topology", wrong)
    equal("a topology that is none: exit status", (done.returncode, done.stdout), (78, ""))
    check("and where it is wrong", f"{wrong}:1" in done.stderr, done.stderr)
    alone = folder / "bin" / "fabrictrace"
    alone.parent.mkdir()
    alone.write_bytes(TOOL.read_bytes())
    alone.chmod(0o755)
    done = rig.run(alone, "live", "--sflow", "127.0.0.1:0")
    if not any(Path(p, "fabrictraced").exists() for p in ("/usr/sbin", "/usr/local/sbin")):
        equal("a tool without its programs: exit status", done.returncode, 69)
        check("and which is missing", "fabrictraced is not there" in done.stderr, done.stderr)


if __name__ == "__main__":
    sys.exit(rig.run_tests(test_live, test_deaths, test_what_cannot_be_started))
