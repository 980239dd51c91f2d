#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Jobs of eight ranks on two hosts that wait for each other, with the real plugin, an agent for each host
and the daemon: a job without a fault raises nothing; a rank that is stopped is named, while other processes
say that they are the same ranks, and it is over when it goes on; one that is killed is named; one that
calls another operation is. Runs in the build folder."""
import json
import os
import signal
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import speed  # noqa: E402
from ports import free_port  # noqa: E402

SOURCE = Path(os.environ.get("srcdir", ".")).resolve()
PLUGIN = Path("agent/nccl/libnccl-profiler-fabrictrace.so").resolve()
AGENT, DAEMON, TOOL, TOGETHER = (Path(p).resolve() for p in (
    "agent/fabrictrace-agent", "daemon/fabrictraced", "cli/fabrictrace", "tests/nccl/together"))
TOPOLOGY = SOURCE / "packaging/examples/topology.yaml"
RANKS, HOSTS = 8, ("gpu40", "gpu41")
PAUSE_MS = 60
CALM = 60  # operations without a fault
failures = []


def check(what, good, detail=""):
    print(f"{'ok' if good else 'FAIL'}: {what}{'' if good else f': {detail}'}", flush=True)
    if not good:
        failures.append(what)


def host_of(rank):
    return HOSTS[rank * len(HOSTS) // RANKS]


class Lab:
    def __init__(self, folder):
        self.dir = folder
        self.running = []
        self.sink = folder / "records.ndjson"
        self.http = f"127.0.0.1:{free_port()}"
        self.ingest = f"127.0.0.1:{free_port()}"
        self.start("daemon", DAEMON, "-c", "/dev/null", "--topology", TOPOLOGY, "--set", "verify_topology=false",
                   "--set", f"listen={self.ingest}", "--set", f"http={self.http}", "--set", "hang_after=3s",
                   "--sink", f"file:{self.sink}")
        for host in HOSTS:
            self.start(host, AGENT, "-c", "/dev/null", "--set", f"host={host}", "--set",
                       f"nccl.socket={folder}/{host}.sock", "--set", "nccl.hold=300ms", "--set",
                       "nccl.quiet=1s", "--set", "http=off", "--set", f"daemon.endpoint={self.ingest}")
        check("agents listen", speed.wait(lambda: all(
            (folder / f"{host}.sock").exists() for host in HOSTS), 90))

    def start(self, name, *args):
        log = open(self.dir / f"{name}.log", "a")
        self.running.append(subprocess.Popen([str(a) for a in args], stdout=log, stderr=log))

    def job(self, name, comm, other=None, shared=None):
        """Its ranks; the one in other calls another operation as its 30th."""
        shared = self.dir / f"{shared or name}.shared"
        shared.write_bytes(bytes(4096))
        ranks = [subprocess.Popen(
            [TOGETHER, PLUGIN, str(r), str(RANKS), shared, comm, str(PAUSE_MS),
             *(("other", "30") if r == other else ())],
            env={**os.environ, "FABRICTRACE_SOCKET": f"{self.dir}/{host_of(r)}.sock",
                 "FABRICTRACE_JOB": name}) for r in range(RANKS)]
        self.running += ranks
        return ranks

    def records(self, kind, job):
        text = self.sink.read_text() if self.sink.exists() else ""
        return [r for r in (json.loads(line) for line in text.split("\n")[:-1])
                if r["schema"] == f"fabrictrace.{kind}.v1" and r.get("job") == job]

    def diagnoses(self, job, cleared=False):
        return [r for r in self.records("diagnosis", job) if bool(r.get("cleared")) == cleared]

    def operations(self, job):
        return min((max((r["number"] for r in self.records("collective", job) if r["rank"] == rank),
                        default=0) for rank in range(RANKS)))

    def metric(self, name):
        with urllib.request.urlopen(f"http://{self.http}/metrics") as answer:
            lines = answer.read().decode().splitlines()
        return next((float(line.split()[1]) for line in lines if line.startswith(f"{name} ")), 0)

    def tool(self, *args):
        done = subprocess.run([TOOL, *args], capture_output=True, text=True,
                              env={**os.environ, "FABRICTRACE_ENDPOINT": self.http})
        return done.stdout + done.stderr

    def stop(self):
        for process in reversed(self.running):
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.terminate()
                process.wait(timeout=speed.limit(120))


def named(lab, job, syndrome, rank, what):
    found = speed.wait(lambda: lab.diagnoses(job), 120) or [{}]
    check(f"{what}: named, and nothing else", [(r.get("syndrome"), r.get("rank")) for r in found] ==
          [(syndrome, rank)], str(found))
    return found[0]


def end(ranks):
    for rank in ranks:
        rank.send_signal(signal.SIGCONT)
        rank.terminate()
    for rank in ranks:
        rank.wait(timeout=speed.limit(120))


def same_from_file(lab, live):
    """What a daemon kept leads to the same diagnosis later."""
    keys = ("syndrome", "job", "rank", "host", "pid", "communicator", "operation", "sequence", "since_ms",
            "process")
    incident = lab.dir / "incident.ftr"
    said = lab.tool("record", "--output", str(incident))
    text = lab.tool("diagnose", "calm", "--replay", str(incident), "--json")
    try:
        found = [json.loads(line) for line in text.splitlines()]
    except ValueError:
        found = []
    check("from a file: the same", [[r.get(k) for k in keys] for r in found] ==
          [[live.get(k) for k in keys]], said + text + str(live))


def stopped(lab):
    ranks = lab.job("calm", "00000000000000a1")
    check("the job runs", speed.wait(lambda: lab.operations("calm") >= CALM, 120), str(lab.operations("calm")))
    check("without a fault nothing is said", not lab.records("diagnosis", "calm"),
          str(lab.records("diagnosis", "calm")))
    liars = lab.job("calm", "00000000000000a1", shared="liars")
    check("processes that say they are the same ranks are known, and counted", speed.wait(
        lambda: lab.metric("fabrictraced_diagnosis_contested_total") > 0, 120))
    liars[2].send_signal(signal.SIGSTOP)
    liars[3].kill()
    ranks[5].send_signal(signal.SIGSTOP)
    r = named(lab, "calm", "noncomm_hang", 5, "stopped")
    check("stopped: where", (r.get("host"), r.get("pid"), r.get("process")) == ("gpu41", ranks[5].pid, "stopped"),
          str(r))
    check("stopped: the others wait", r.get("waiting", 0) >= RANKS - 1, str(r))
    text = lab.tool("diagnose", "calm")
    check("the tool shows it", "noncomm_hang" in text and "rank 5 on gpu41" in text, text)
    print(text)
    same_from_file(lab, r)
    check("the tool knows no other job's", "no job" in lab.tool("diagnose", "none"))
    ranks[5].send_signal(signal.SIGCONT)
    check("it goes on: over", speed.wait(lambda: [
        (r["syndrome"], r["rank"]) for r in lab.diagnoses("calm", True)] == [("noncomm_hang", 5)], 120),
        str(lab.records("diagnosis", "calm")))
    check("who says the same ranks are others is never named", {r.get("pid") for r in lab.records(
        "diagnosis", "calm")} == {ranks[5].pid}, str(lab.records("diagnosis", "calm")))
    end(liars)
    end(ranks)


def killed(lab):
    ranks = lab.job("killed", "00000000000000a2")
    check("killed: the job runs", speed.wait(lambda: lab.operations("killed") >= 20, 120))
    ranks[2].kill()
    named(lab, "killed", "noncomm_hang", 2, "killed")
    end(ranks)


def differs(lab):
    ranks = lab.job("differs", "00000000000000a3", other=6)
    r = named(lab, "differs", "mismatch", 6, "another operation")
    check("another operation: both are named", "AllGather" in str(r.get("evidence_for")) and
          "AllReduce" in str(r.get("evidence_for")), str(r))
    end(ranks)


def main():
    with tempfile.TemporaryDirectory(prefix="ft-diagnosed-") as folder:
        lab = Lab(Path(folder))
        try:
            stopped(lab)
            killed(lab)
            differs(lab)
        finally:
            lab.stop()
            if failures:
                for log in sorted(Path(folder).glob("*.log")):
                    print(f"-- {log.name}\n" + log.read_text()[-2000:])
    print(f"{len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
