#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The log in a real journal: systemd-journald runs in a mount namespace of its own, the agent writes to it,
and journalctl finds its messages by their fields and explains them from the installed catalog. Each
message that can be looked for is in the catalog, and nothing else is.

usage: check_journal.py     in the build folder; with srcdir from `make check`"""
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TOP = Path(os.environ.get("srcdir", ".")).resolve()
CATALOG = TOP / "packaging/systemd/fabrictrace.catalog"
PACKAGES = ("fabrictrace-daemon", "fabrictrace-switchpoll", "fabrictrace-agent")
JOURNALD = "/lib/systemd/systemd-journald"
PATIENCE_S = 60


def wait(what, state):
    """Until `state` is something; what it was."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        found = state()
        if found:
            return found
        time.sleep(0.05)
    sys.exit(f"FAIL: after {PATIENCE_S} s: no {what}")


def expect(what, holds):
    if not holds:
        sys.exit(f"FAIL: {what}")
    print(f"ok: {what}")


def identifiers():
    """Of the code, and of the catalog."""
    code = dict(re.findall(r'\[FT_LOG_ID_(\w+)\] = "([0-9a-f]{32})"', (TOP / "lib/base/log.c").read_text()))
    named = re.findall(r"^    FT_LOG_ID_(\w+),", (TOP / "lib/base/log.h").read_text(), re.M)
    listed = re.findall(r"^-- ([0-9a-f]{32})$", CATALOG.read_text(), re.M)
    expect("each kind of message has an identifier of its own",
           sorted(code) == sorted(named) and len(set(code.values())) == len(named) > 5)
    expect("the catalog explains each of them, once", sorted(listed) == sorted(code.values()))
    return code


def entries(*matches):
    done = subprocess.run(["journalctl", "--directory=/run/log/journal", "--output=json", *matches],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    return [json.loads(line) for line in done.stdout.splitlines()]


def stream():
    """A stream to the journal as a service manager opens one for a service's stderr."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.connect("/run/systemd/journal/stdout")
    sock.sendall(b"fabrictrace-agent\n\n6\n1\n0\n0\n0\n")
    return sock


def run_agent(agent, folder, port):
    """One whose daemon is not there."""
    config = folder / "agent.yaml"
    config.write_text(f"daemon:\n  endpoint: 127.0.0.1:{port}\n  retry_min: 100ms\n"
                      "http: off\n")
    config.chmod(0o600)
    with stream() as sock:
        about = os.fstat(sock.fileno())
        env = dict(os.environ, JOURNAL_STREAM=f"{about.st_dev}:{about.st_ino}")
        return subprocess.Popen([agent, "--config", config], stderr=sock, env=env), config


def look_up(ids):
    """In the namespace, as its root."""
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/run"], check=True)
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/var/lib/systemd/catalog"], check=True)
    Path("/run/systemd/journal").mkdir(parents=True)
    Path("/run/log").mkdir()
    with tempfile.TemporaryDirectory(dir="/run") as name, socket.socket() as nobody:
        folder = Path(name)
        nobody.bind(("127.0.0.1", 0))  # bound and not listening: refused, and nobody else takes it
        with open(folder / "journald.log", "w") as log:
            journald = subprocess.Popen([JOURNALD], stderr=log)
        try:
            wait("socket of the journal", lambda: os.path.exists("/run/systemd/journal/stdout"))
            judge(ids, folder, nobody.getsockname()[1])
        finally:
            journald.terminate()
            journald.wait()


def judge(ids, folder, port):
    agent, config = run_agent(Path("agent/fabrictrace-agent").resolve(), folder, port)
    peer = f"127.0.0.1:{port}"
    try:
        found = wait("message of the lost daemon", lambda: entries(f"FABRICTRACE_PEER={peer}"))
        expect("a message is found by its peer, with its identifier, priority and program",
               found[0]["MESSAGE_ID"] == ids["DAEMON"] and found[0]["PRIORITY"] == "4" and
               found[0]["SYSLOG_IDENTIFIER"] == "fabrictrace-agent" and peer in found[0]["MESSAGE"])
        agent.send_signal(1)
        found = wait("message of the reload", lambda: entries(f"MESSAGE_ID={ids['RELOADED']}"))
        expect("a reload is found by its identifier", found[0]["MESSAGE"] == "reloaded")
        config.write_text("nonsense: 1\n")
        agent.send_signal(1)
        found = wait("message of the failed reload", lambda: entries(f"MESSAGE_ID={ids['RELOAD_FAILED']}"))
        expect("a reload that failed is an error", found[0]["PRIORITY"] == "3")
        lines = wait("line of the reason",
                     lambda: [e for e in entries("PRIORITY=3") if "nonsense" in e["MESSAGE"]])
        expect("a message without a subject is a line, with its priority", "MESSAGE_ID" not in lines[0])
    finally:
        agent.terminate()
        agent.wait()
    explain(folder, ids)


def explain(folder, ids):
    """journalctl --catalog, with our catalog instead of the machine's."""
    (folder / "catalog").mkdir()
    # Each daemon's package has it, under a name of its own: a host may have several.
    for package in PACKAGES:
        shutil.copy(CATALOG, folder / f"catalog/{package}.catalog")
    subprocess.run(["mount", "--bind", folder / "catalog", "/usr/lib/systemd/catalog"], check=True)
    said = subprocess.run(["journalctl", "--update-catalog"], check=True, capture_output=True, text=True)
    expect("systemd takes it more than once", "fabrictrace" not in said.stdout + said.stderr)
    text = subprocess.run(["journalctl", "--directory=/run/log/journal", "--catalog", "--no-pager",
                           f"MESSAGE_ID={ids['DAEMON']}"], stdout=subprocess.PIPE, check=True).stdout.decode()
    expect("journalctl -x says what to do", re.search(r"Subject: Connection to fabrictraced: 127\.0\.0\.1:", text)
           and "Check that fabrictraced runs" in text)


def main():
    ids = identifiers()
    if os.environ.get("FT_JOURNAL_INSIDE"):
        look_up(ids)
        return
    own = ["unshare", "--mount", "--propagation", "private"]
    if os.geteuid() != 0:
        own.insert(1, "--map-root-user")
    os.execvpe(own[0], [*own, sys.executable, __file__], dict(os.environ, FT_JOURNAL_INSIDE="1"))


main()
