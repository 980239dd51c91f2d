# SPDX-License-Identifier: Apache-2.0
"""What the daemon's program-level tests share: verdicts, and programs that run on loopback."""
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
import urllib.error
import urllib.request
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))
import speed  # noqa: E402
from ports import free_port  # noqa: E402

LAB = HERE / "lab"
DAEMON = Path("daemon/fabrictraced").resolve()
AGENT = Path("agent/fabrictrace-agent").resolve()
POLLER = Path("switchpoll/fabrictrace-switchpoll").resolve()
WAIT_S = speed.limit(120)
WRAP = os.environ.get("FT_WRAP", "").split()  # valgrind and its options
NO_CONFIG = ("-c", os.devnull)
# For tests of few samples that are not about the topology.
TRUST = ("--set", "verify_topology=false")
failures = []


def check(what, good, detail=""):
    print(f"{'ok' if good else 'FAIL'}: {what}{'' if good else f': {detail}'}", flush=True)
    if not good:
        failures.append(what)
    return good


def equal(what, got, want):
    return check(what, got == want, f"got {got!r}, want {want!r}")


def until(what, condition, seconds=120, pause_s=0.05):
    """Polls condition; a failed check when it does not come true. Returns its last value."""
    value = speed.wait(condition, seconds, pause_s)
    if not value:
        check(what, False, f"not within {speed.limit(seconds):.0f} s: {value!r}")
    return value


def run(*command, **how):
    """A program to its end; standard output and error as text."""
    return subprocess.run(command, capture_output=True, timeout=300,
                          **{"stdin": subprocess.DEVNULL, "text": True, **how})


def records_of(text, *kinds):
    """All, or those of these kinds."""
    return [json.loads(line) for line in text.splitlines()
            if not kinds or any(f'"fabrictrace.{kind}.v1"' in line for kind in kinds)]


def of_kind(records, kind):
    return [r for r in records if r["schema"] == f"fabrictrace.{kind}.v1"]


def drops(stage):
    return {d["reason"]: d["count"] for d in stage.get("drops", [])}


def check_balance(what, records):
    """In each stage of each loss record nothing is unaccounted for."""
    stages = [(r["program"], s) for r in of_kind(records, "loss") for s in r.get("stages", ())]
    wrong = [(program, s) for program, s in stages
             if s["received"] != s["processed"] + s["pending"] + sum(drops(s).values())]
    check(f"{what}: received = processed + pending + dropped, {len(stages)} stages",
          stages and not wrong, wrong)


def last_stages(records, program):
    last = [r for r in of_kind(records, "loss") if r["program"] == program][-1]
    return {s["name"]: s for s in last["stages"]}


def run_tests(*tests):
    """Each with an argument of its own, a folder. Returns the exit code."""
    for test in tests:
        print(test.__name__, flush=True)
        with tempfile.TemporaryDirectory() as folder:
            try:
                test(Path(folder))
            except Exception:
                check(f"{test.__name__} comes to its end", False, traceback.format_exc())
    return 1 if failures else 0


class Program:
    """A program of ours that runs until stop(). Subclasses have .port and .http."""

    def __init__(self, folder, name, command, config):
        self.folder, self.name, self.command = folder, name, command
        self.config, self.log = folder / f"{name}.yaml", folder / f"{name}.log"
        self.config.write_text(config)
        self.process = None
        self.log.write_bytes(b"")

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [*WRAP, *self.command, "-c", self.config], stdin=subprocess.DEVNULL, stdout=log,
                stderr=log)
        until(f"{self.name} answers", lambda: self.process.poll() is not None or self.answers())
        check(f"{self.name} runs", self.process.poll() is None, self.log.read_text())
        return self

    def healthy(self):
        try:
            return self.get("/healthz")
        except (OSError, urllib.error.URLError):
            return None

    def answers(self):
        """Be it that something is wrong: a daemon that is not there yet."""
        try:
            return self.get("/healthz")
        except urllib.error.HTTPError as error:
            return error.code
        except (OSError, urllib.error.URLError):
            return None

    def get(self, path):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.http}{path}", timeout=WAIT_S) as answer:
            return answer.read().decode()

    def metric(self, name):
        """The sum of a metric over its labels."""
        return sum(float(line.rsplit(None, 1)[1]) for line in self.get("/metrics").splitlines()
                   if line.startswith((f"{name} ", f"{name}{{")))

    def log_says(self, text, count=1):
        return until(f"{self.name} says '{text}'",
                     lambda: self.log.read_text().count(text) >= count)

    def hang_up(self):
        self.process.send_signal(signal.SIGHUP)

    def stop(self, number=signal.SIGTERM, code=0):
        if self.process is None or self.process.poll() is not None:
            return
        self.process.send_signal(number)
        try:
            if not equal(f"{self.name}: exit code", self.process.wait(timeout=WAIT_S), code):
                print(self.log.read_text())
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            check(f"{self.name} ends", False)

    def kill(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()


class Daemon(Program):
    """A live daemon that writes NDJSON to .out; the topology is a copy that a test may change."""

    def __init__(self, folder, topology):
        self.port, self.http = free_port(), free_port()
        self.out, self.topology = folder / "daemon.ndjson", folder / "topology.yaml"
        self.topology.write_text(topology)
        super().__init__(folder, "fabrictraced", [DAEMON],
                         f"topology: {self.topology}\nlisten: 127.0.0.1:{self.port}\n"
                         f"http: 127.0.0.1:{self.http}\nsource_id: golden\n"
                         f"window: 2s\ngrace: 1s\nsinks: [\"file:{self.out}\"]\n")

    def records(self):
        lines = self.out.read_text().split("\n") if self.out.exists() else [""]
        return [json.loads(line) for line in lines[:-1]]

    def take_records(self):
        """What is there, of a daemon that has ended; the next one begins a file of its own. One
        that was killed may have left half a line."""
        text = self.out.read_text()
        self.out.unlink()
        return records_of(text[:text.rindex("\n") + 1])


class Poller(Program):
    """A live poller that sends to a daemon, or to .out as NDJSON without one."""

    def __init__(self, folder, daemon=None):
        self.port, self.http = free_port(socket.SOCK_DGRAM), free_port()
        self.out = folder / "poller.ndjson"
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        output = [] if daemon else ["--output", self.out]
        where = f"daemon: {{endpoint: \"127.0.0.1:{daemon.port}\", retry_min: 100ms, " \
                "retry_max: 200ms}\n" if daemon else ""
        super().__init__(folder, "fabrictrace-switchpoll", [POLLER, *output],
                         f"source_id: golden\nlisten: 127.0.0.1:{self.port}\n"
                         f"http: 127.0.0.1:{self.http}\nreceive_buffer: 4MiB\n"
                         f"fold_interval: 200ms\nloss_interval: 1s\n{where}")

    def send(self, datagram):
        self.socket.sendto(datagram, ("127.0.0.1", self.port))

    def records(self):
        lines = self.out.read_text().split("\n") if self.out.exists() else [""]
        return [json.loads(line) for line in lines[:-1]]


class Agent(Program):
    """A live agent on the loopback interface that sends to a daemon; needs root."""

    def __init__(self, folder, daemon):
        self.http = free_port()
        super().__init__(folder, "fabrictrace-agent", [AGENT],
                         "host: golden\ninterfaces: [lo]\nloss_interval: 1s\n"
                         f"http: 127.0.0.1:{self.http}\n"
                         f"daemon: {{endpoint: \"127.0.0.1:{daemon.port}\", retry_min: 100ms, "
                         "retry_max: 200ms}\n")
