#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The log in a real journal: systemd-journald runs in namespaces of its own (mounts and network), the agent
writes to it, and journalctl finds its messages by their fields and explains them from the installed catalog.
Each message that can be looked for is in the catalog, and nothing else is. Each field that
fabrictrace-deploy(7) names is borne by a message of a program to which that happens, and the commands that
it shows find them: a real snmpd is the switch.

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
import urllib.request
from pathlib import Path

TOP = Path(os.environ.get("srcdir", ".")).resolve()
sys.dont_write_bytecode = True
sys.path.insert(0, str(TOP / "tests"))
from ports import free_port  # noqa: E402

PAGE = (TOP / "man/fabrictrace-deploy.7").read_text()
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


def stream(name):
    """A stream to the journal as a service manager opens one for a service's stderr."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.connect("/run/systemd/journal/stdout")
    sock.sendall(f"{name}\n\n6\n1\n0\n0\n0\n".encode())
    return sock


def start(program, folder, text):
    """A program whose log goes to the journal, and its configuration."""
    config = folder / f"{program.name}.yaml"
    config.write_text(text)
    config.chmod(0o600)
    with stream(program.name) as sock:
        about = os.fstat(sock.fileno())
        env = dict(os.environ, JOURNAL_STREAM=f"{about.st_dev}:{about.st_ino}")
        return subprocess.Popen([program, "--config", config], stdin=subprocess.DEVNULL, stderr=sock, env=env), config


def run_agent(agent, folder, port):
    """One whose daemon is not there."""
    return start(agent, folder, f"daemon:\n  endpoint: 127.0.0.1:{port}\n  retry_min: 100ms\nhttp: off\n")


def end(process):
    if process and process.poll() is None:
        process.terminate()
        process.wait()


def look_up(ids):
    """In the namespaces, as their root."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
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
    fields(ids, folder)
    explain(folder, ids)


def snmpd(folder, port, name):
    """A switch that answers by that name."""
    config = folder / "snmpd.conf"
    config.write_text(f"agentAddress udp:127.0.0.1:{port}\nrocommunity public\nsysName {name}\n")
    words = ["-f", "-Lf", folder / "snmpd.log", "-C", "-c", config, "-p", folder / "snmpd.pid"]
    return subprocess.Popen(["snmpd", *words],
                            stdin=subprocess.DEVNULL, env=dict(os.environ, SNMP_PERSISTENT_DIR=str(folder / "snmp")))


def polled(port):
    """Whether the poller knows the switch: its name was asked for first."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE_S) as answer:
            polls, = re.findall(r"^fabrictrace_switchpoll_snmp_polls_total (\d+)$", answer.read().decode(), re.M)
    except OSError:
        return False
    return int(polls) >= 2


def shown(command):
    """The entries that a command of the page finds, with the journal that is here."""
    words = command.split()
    if words[0] != "journalctl":
        sys.exit(f"FAIL: {command}: no question to the journal")
    done = subprocess.run([*words, "--directory=/run/log/journal", "--output=json"], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, check=False)
    return [json.loads(line) for line in done.stdout.splitlines()]


def fields(ids, folder):
    """A switch that falls silent, a daemon that knows its poller and agent by name, an interface that is gone, a
    job that is no plugin, a sink without room."""
    named = set(re.findall(r"\.Ev (FABRICTRACE_\w+)", PAGE.split("Messages on the journal carry", 1)[1]
                           .split(".Sh ", 1)[0]))
    commands = re.findall(r"^journalctl .*$", PAGE, re.M)
    expect("the manual shows how to look for a switch and a peer",
           sorted(re.findall(r"FABRICTRACE_(\w+)=", " ".join(commands))) == ["PEER", "SWITCH"])
    (_, peer), (_, switch) = sorted(re.findall(r"FABRICTRACE_(\w+)=(\S+)", " ".join(commands)))
    full = folder / "full"
    full.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", full], check=True)
    subprocess.run(["ip", "link", "add", "lost0", "type", "veth", "peer", "name", "lost1"], check=True)
    subprocess.run(["ip", "link", "set", "lost0", "up"], check=True)
    udp, tcp, pages = free_port(socket.SOCK_DGRAM), free_port(), free_port()
    (folder / "switches.yaml").write_text("credentials:\n  c: {version: 2c, community: public}\n"
                                          f"switches: [{{address: 127.0.0.1, port: {udp}, credentials: c}}]\n")
    (folder / "switches.yaml").chmod(0o600)
    agent, daemon, poller = (Path(name).resolve() for name in (
        "agent/fabrictrace-agent", "daemon/fabrictraced", "switchpoll/fabrictrace-switchpoll"))
    device = snmpd(folder, udp, switch)
    programs = []
    try:
        for program, text in (
                (daemon, f"listen: 127.0.0.1:{tcp}\nhttp: 127.0.0.1:{free_port()}\nwindow: 2s\ngrace: 500ms\n"
                         f"sinks: ['file:{full}/records']\n"),
                (agent, f"source_id: {peer}\ninterfaces: [lost0]\nhttp: off\ndaemon: {{endpoint: '127.0.0.1:{tcp}'}}\n"
                        f"nccl: {{socket: {folder}/nccl.sock}}\n"),
                (poller, f"listen: 127.0.0.1:{free_port(socket.SOCK_DGRAM)}\nhttp: 127.0.0.1:{pages}\n"
                         f"daemon: {{endpoint: '127.0.0.1:{tcp}'}}\n"
                         f"snmp: {{switches: {folder}/switches.yaml, interval: 1s, timeout: 200ms, retries: 0}}\n")):
            programs.append(start(program, folder, text)[0])
            checked = subprocess.run([program, "--check", "-c", folder / f"{program.name}.yaml"], text=True,
                                     capture_output=True, check=False)
            expect(f"{program.name} takes its configuration", not checked.stderr or print(checked.stderr))
        expected = {
            "PEER": (peer, ids["PEER"], "fabrictraced", "connected"),
            "SWITCH": (switch, ids["SWITCH"], "fabrictrace-switchpoll", f"({switch})"),
            "INTERFACE": ("lost0", ids["INTERFACE"], "fabrictrace-agent", "lost0"),
            "JOB_PID": (str(os.getpid()), ids["JOB"], "fabrictrace-agent", f"job of pid {os.getpid()}"),
            "SINK": (f"file:{full}/records", ids["SINK"], "fabrictraced", "No space left"),
        }
        expect("these are the fields of the manual", named == {f"FABRICTRACE_{name}" for name in expected})
        wait("message of the peer", lambda: entries(f"FABRICTRACE_PEER={peer}"))
        wait("answer of the switch", lambda: polled(pages))
        end(device)
        subprocess.run(["ip", "link", "del", "lost0"], check=True)
        wait("socket for jobs", lambda: (folder / "nccl.sock").exists())
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as job:
            job.connect(str(folder / "nccl.sock"))
            job.send(b"no hello of the plugin")
            for name, (value, identifier, program, text) in expected.items():
                found = wait(f"message with {name}", lambda n=name, v=value: entries(f"FABRICTRACE_{n}={v}"))
                expect(f"{name}: of {program}, with its identifier",
                       any((e["MESSAGE_ID"], e["SYSLOG_IDENTIFIER"]) == (identifier, program) and text in e["MESSAGE"]
                           for e in found) or print(found))
        for command in commands:
            expect(f"'{command}' finds it", shown(command))
    finally:
        for process in (*programs, device):
            end(process)
        subprocess.run(["umount", full], check=True)


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
    own = ["unshare", "--mount", "--net", "--propagation", "private"]
    if os.geteuid() != 0:
        own.insert(1, "--map-root-user")
    os.execvpe(own[0], [*own, sys.executable, __file__], dict(os.environ, FT_JOURNAL_INSIDE="1"))


main()
