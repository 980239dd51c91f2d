#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the agent keeps of its privileges, by /proc/PID/status, and what it says that it lacks. Without
root it is skipped (77)."""
import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import speed  # noqa: E402
from ports import free_port  # noqa: E402

AGENT = Path("agent/fabrictrace-agent").resolve()
NET_ADMIN, NET_RAW, SYS_PTRACE = 1 << 12, 1 << 13, 1 << 19
NAMES = {NET_RAW: "CAP_NET_RAW", SYS_PTRACE: "CAP_SYS_PTRACE", NET_ADMIN: "CAP_NET_ADMIN"}
USER = "nobody"
failures = []


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def equal(what, got, want):
    good = got == want
    print(f"{'ok' if good else 'FAIL'}: {what}{'' if good else f': got {got!r}, want {want!r}'}", flush=True)
    if not good:
        failures.append(what)


def wait_until(done):
    return bool(speed.wait(done, 120))


class Agent:
    """before: a command that runs it."""

    def __init__(self, folder, *settings, before=()):
        self.output, self.log = Path(folder) / "out.ndjson", Path(folder) / "log"
        self.output.unlink(missing_ok=True)
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [*before, AGENT, "--output", self.output, "--set", "host=here", "--set", "first_report=100ms",
                 *(word for setting in settings for word in ("--set", setting))],
                stderr=log, env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0"})
        self.started = wait_until(lambda: self.process.poll() is not None or self.said())

    def records(self):
        if not self.output.exists():
            return []
        return [json.loads(line) for line in self.output.read_text().split("\n")[:-1]]

    def status(self):
        """The kernel's view of the process."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return {key: value.split() for key, value in (line.split(":", 1) for line in lines)}

    def said(self):
        """Its own view."""
        return [r for r in self.records() if r["schema"] == "fabrictrace.host_status.v1"]

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(speed.limit(120))


def get(url):
    """The answer's code and text."""
    try:
        with urllib.request.urlopen(url) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def check_privileges(name, agent, want, user):
    if agent.process.poll() is not None:
        equal(f"{name}: runs", agent.log.read_text(), "")
        return
    status = agent.status()
    for field in ("CapEff", "CapPrm"):
        equal(f"{name}: {field}", int(status[field][0], 16), want)
    for field in ("CapInh", "CapAmb"):
        equal(f"{name}: {field}", int(status[field][0], 16), 0)
    equal(f"{name}: NoNewPrivs", status["NoNewPrivs"], ["1"])
    if user:
        entry = pwd.getpwnam(user)
        equal(f"{name}: user", status["Uid"], [str(entry.pw_uid)] * 4)
        equal(f"{name}: group", status["Gid"], [str(entry.pw_gid)] * 4)
        equal(f"{name}: groups", sorted(map(int, status["Groups"])),
              sorted(os.getgrouplist(user, entry.pw_gid)))
    said = agent.said()
    equal(f"{name}: one report of itself at first", len(said[:1]), 1)
    equal(f"{name}: says what it has", set(said[0].get("capabilities", [])),
          {text for bit, text in NAMES.items() if want & bit})
    equal(f"{name}: says who it is", said[0].get("user"), user or "root")


def kept(folder):
    """Started by root: what each configuration keeps."""
    query = NET_ADMIN | SYS_PTRACE
    for name, settings, want in (
            ("capture", ["interfaces=[lo]"], NET_RAW),
            ("no capture", [], 0),
            ("queries", ["rdma.query=true"], query),
            ("capture and queries", ["interfaces=[lo]", "rdma.query=true"], NET_RAW | query),
            ("queries of a source that is off", ["interfaces=[lo]", "rdma.enabled=false", "rdma.query=true"], NET_RAW)):
        for user in (USER, None):
            agent = Agent(folder, "http=off", *settings, *([f"user={user}"] if user else []))
            check_privileges(f"{name}, user {user}", agent, want, user)
            equal(f"{name}, user {user}: exit code", agent.end(), 0)


def given(folder):
    """Started with less than it could use."""
    less = ("setpriv", "--bounding-set=-sys_ptrace")
    agent = Agent(folder, "http=off", "rdma.query=true", before=less)
    check_privileges("no CAP_SYS_PTRACE to have", agent, NET_ADMIN, None)
    agent.end()


def unprivileged(folder):
    """Started by nobody, who has no capability at all."""
    entry = pwd.getpwnam(USER)
    before = ("setpriv", f"--reuid={entry.pw_uid}", f"--regid={entry.pw_gid}", "--init-groups", "--inh-caps=-all",
              "--bounding-set=-all", "--no-new-privs")
    os.chmod(folder, 0o777)
    agent = Agent(folder, "http=off", before=before)
    check_privileges("unprivileged", agent, 0, USER)
    equal("unprivileged: exit code", agent.end(), 0)
    # What was configured cannot be had: it goes on with what it can see, and says so.
    http = f"127.0.0.1:{free_port()}"
    agent = Agent(folder, f"http={http}", "interfaces=[lo]", f"nccl.socket={folder}/nccl.sock", before=before)
    check_privileges("unprivileged capture", agent, 0, USER)
    lacks = [lack for said in agent.said()[:1] for lack in said.get("missing_capabilities", []) if lack["what"] == "capture"]
    equal("unprivileged capture: the lack in its record", [lack.get("capability") for lack in lacks], ["CAP_NET_RAW"])
    log = agent.log.read_text()
    equal("unprivileged capture: the lack in its log", log.count("not seen without CAP_NET_RAW"), 1)
    status, problem = get(f"http://{http}/healthz")
    equal("unprivileged capture: health", (status, json.loads(problem)["detail"]),
          (503, "no interface is captured on: CAP_NET_RAW is missing"))
    equal("unprivileged capture: exit code", agent.end(), 0)
    if not Path("/sys/class/infiniband").exists():
        # Nothing at all could be seen.
        agent = Agent(folder, "http=off", "interfaces=[lo]", before=before)
        equal("nothing to see: exit code", agent.process.wait(speed.limit(120)), 77)
        equal("nothing to see: what is missing", "CAP_NET_RAW" in agent.log.read_text(), True)


def reloaded(folder):
    """An agent that gave up capturing cannot take it up again."""
    config = Path(folder) / "agent.yaml"
    config.write_text("http: off\n")
    log = Path(folder) / "log"
    with open(log, "wb") as out:
        process = subprocess.Popen([AGENT, "-c", config, "--output", Path(folder) / "out.ndjson"], stderr=out,
                                   env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0"})
    wait_until(lambda: "capturing on 0" in log.read_text())
    config.write_text("http: off\ninterfaces: [lo]\n")
    process.send_signal(signal.SIGHUP)
    equal("reload with a first interface is refused", wait_until(lambda: "reload failed" in log.read_text()), True)
    equal("reload: says why", "kept only by an agent that starts with interfaces" in log.read_text(), True)
    process.send_signal(signal.SIGTERM)
    equal("reload: exit code", process.wait(speed.limit(120)), 0)


def main():
    if os.geteuid() != 0:
        skip("needs root")
    held = int(next(line.split()[1] for line in open("/proc/self/status", encoding="ascii")
                    if line.startswith("CapEff")), 16)
    for bit, name in NAMES.items():
        if not held & bit:
            skip(f"no {name}")
    if not shutil.which("setpriv"):
        sys.exit("FAIL: setpriv is not installed: it comes with Debian's util-linux")
    with tempfile.TemporaryDirectory() as folder:
        kept(folder)
        given(folder)
        unprivileged(folder)
        reloaded(folder)
    print(f"{len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
