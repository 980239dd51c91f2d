#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Second sources of a job of eight ranks on two hosts, with the real plugin, an agent for each host and the
daemon: NCCL's RAS and dumps of Flight Recorder bear a diagnosis out, a RAS that says otherwise contradicts it
and the rank stays named, and what speaks no JSON is refused and counted.

RAS itself needs a GPU: what is asked here answers as NCCL 2.28.7 to 2.30 do (src/ras/client_support.cc), from
the memory in which the ranks say what they have entered. Dumps are written by Python's own pickle. Runs in the
build folder."""
import json
import mmap
import os
import pickle
import signal
import socketserver
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import speed  # noqa: E402
from ports import free_port  # noqa: E402

SOURCE = Path(os.environ.get("srcdir", ".")).resolve()
PLUGIN = Path("agent/nccl/libnccl-profiler-fabrictrace.so").resolve()
AGENT, DAEMON, TOGETHER = (Path(p).resolve() for p in (
    "agent/fabrictrace-agent", "daemon/fabrictraced", "tests/nccl/together"))
TOPOLOGY = SOURCE / "packaging/examples/topology.yaml"
RANKS, HOSTS = 8, ("gpu40", "gpu41")
PAUSE_MS, LATE = 60, 40
FUNCTIONS = ("Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllReduce")
failures = []


def check(what, good, detail=""):
    print(f"{'ok' if good else 'FAIL'}: {what}{'' if good else f': {detail}'}", flush=True)
    if not good:
        failures.append(what)


def host_of(rank):
    return HOSTS[rank * len(HOSTS) // RANKS]


class Ras(socketserver.ThreadingTCPServer):
    """The service of RAS, by its commands; status() gives what it answers."""
    allow_reuse_address = daemon_threads = True

    def __init__(self, status, json_format=True):
        super().__init__(("127.0.0.1", free_port()), RasClient)
        self.status, self.json_format, self.asked = status, json_format, 0
        self.address = "127.0.0.1:%d" % self.server_address[1]
        threading.Thread(target=self.serve_forever, daemon=True).start()


class RasClient(socketserver.StreamRequestHandler):
    def handle(self):
        style = "text"
        for line in self.rfile:
            command = line.decode().strip().lower()
            if command.startswith("client protocol "):
                self.wfile.write(b"SERVER PROTOCOL 2\n")
            elif command.startswith("timeout "):
                self.wfile.write(b"OK\n")
            elif command.startswith("set format ") and self.server.json_format:
                style = command.split()[-1]
                self.wfile.write(b"OK\n")
            elif command in ("status", "verbose status"):
                self.server.asked += 1
                self.wfile.write(json.dumps(self.server.status(), indent=2).encode() if style == "json"
                                 else b"NCCL version 2.24.3\n")
                return
            else:
                self.wfile.write(b"ERROR: Unknown command %s\n" % command.encode())


class Job:
    def __init__(self, lab, name, comm, *odd):
        self.name, self.comm = name, comm
        path = lab.dir / f"{name}.shared"
        path.write_bytes(bytes(4096))
        self.file = open(path, "r+b")
        self.shared = mmap.mmap(self.file.fileno(), 4096)
        self.ranks = [subprocess.Popen(
            [TOGETHER, PLUGIN, str(r), str(RANKS), path, comm, str(PAUSE_MS),
             *(odd[1:] if odd and r == odd[0] else ())],
            env={**os.environ, "FABRICTRACE_SOCKET": f"{lab.dir}/{host_of(r)}.sock",
                 "FABRICTRACE_JOB": name}) for r in range(RANKS)]
        lab.running += self.ranks
        self.lies = {}   # by rank: how many more AllReduce it is said to have launched
        self.silent = set()

    def entered(self, rank):
        return struct.unpack_from("<Q", self.shared, 8 * rank)[0] // 2

    def status(self):
        """Numbers of operations begin with 1, NCCL's with 0: one more than it has entered."""
        def rank(r):
            counts = dict.fromkeys(FUNCTIONS, 0) | {"AllReduce": self.entered(r) + 1 + self.lies.get(r, 0)}
            return {"rank": r, "host": "127.0.0.1", "pid": self.ranks[r].pid, "cuda_dev": r % 4, "nvml_dev": r % 4,
                    "status": {"init_state": 0, "async_error": 0, "finalize_called": False,
                               "destroy_flag": False, "abort_flag": False}, "collective_counts": counts}
        missing = [{"rank": r, "host": "127.0.0.1", "pid": self.ranks[r].pid, "cuda_dev": r % 4, "nvml_dev": r % 4,
                    "status": {"unresponsive": True, "considered_dead": False}} for r in sorted(self.silent)]
        ranks = [rank(r) for r in range(RANKS) if r not in self.silent]
        return {"nccl_version": "2.28.9", "cuda_runtime_version": 12090, "cuda_driver_version": 12090,
                "timestamp": time.strftime("%F %T"), "communicators_count": 1,
                "communicators": [{"hash": hex(int(self.comm, 16)), "secondary_hash": "0x1:0x2", "size": RANKS,
                                   "ranks_count": len(ranks), "missing_ranks_count": len(missing),
                                   "ranks": ranks, "missing_ranks": missing}],
                "ras": {"collection_time_sec": 0.002, "timeouts_count": len(missing)}}

    def dump(self, lab, rank):
        """As the watchdog writes it that a file asked."""
        last = self.entered(rank)
        waits = any(self.entered(r) < last for r in range(RANKS))
        at = time.time_ns()
        entries = [{"record_id": n, "process_group": ("0", "default_pg"), "collective_seq_id": n, "p2p_seq_id": 0,
                    "op_id": n, "profiling_name": "nccl:all_reduce", "time_created_ns": at,
                    "input_sizes": [[1024]], "input_dtypes": ["Float"],
                    "state": "started" if n == last and waits else "completed",
                    "time_discovered_completed_ns": None if n == last and waits else at,
                    "retired": not (n == last and waits)} for n in range(max(1, last - 20), last + 1)]
        path = lab.dir / f"{host_of(rank)}.flight" / f"nccl_trace_rank_{rank}"
        path.write_bytes(pickle.dumps({"version": "2.4", "pg_config": {"0": {"ranks": str(list(range(RANKS)))}},
                                       "entries": entries}, protocol=2))

    def end(self):
        for rank in self.ranks:
            rank.send_signal(signal.SIGCONT)
            rank.terminate()
        for rank in self.ranks:
            rank.wait(timeout=speed.limit(120))


class Lab:
    def __init__(self, folder, ras):
        self.dir = folder
        self.running = []
        self.sink = folder / "records.ndjson"
        self.ingest = f"127.0.0.1:{free_port()}"
        self.pages = {host: f"127.0.0.1:{free_port()}" for host in HOSTS}
        self.start("daemon", DAEMON, "-c", "/dev/null", "--topology", TOPOLOGY, "--set", "verify_topology=false",
                   "--set", f"listen={self.ingest}", "--set", f"http=127.0.0.1:{free_port()}", "--set", "hang_after=3s",
                   "--sink", f"file:{self.sink}")
        for host, address in zip(HOSTS, ras):
            (folder / f"{host}.flight").mkdir()
            self.start(host, AGENT, "-c", "/dev/null", "--set", f"host={host}", "--set",
                       f"nccl.socket={folder}/{host}.sock", "--set", "nccl.hold=300ms", "--set", "nccl.quiet=1s",
                       "--set", f"states.ras={address}", "--set", f"states.flight={folder}/{host}.flight",
                       "--set", "states.interval=1s", "--set", f"http={self.pages[host]}",
                       "--set", f"daemon.endpoint={self.ingest}")
        check("agents listen", speed.wait(lambda: all(
            (folder / f"{host}.sock").exists() for host in HOSTS), 90))

    def start(self, name, *args):
        log = open(self.dir / f"{name}.log", "a")
        self.running.append(subprocess.Popen([str(a) for a in args], stdout=log, stderr=log))

    def records(self, kind):
        text = self.sink.read_text() if self.sink.exists() else ""
        return [r for r in (json.loads(line) for line in text.split("\n")[:-1])
                if r["schema"] == f"fabrictrace.{kind}.v1"]

    def diagnoses(self, job):
        return [r for r in self.records("diagnosis") if r.get("job") == job and not r.get("cleared")]

    def metric(self, host, name):
        page = urllib.request.urlopen(f"http://{self.pages[host]}/metrics", timeout=60).read().decode()
        return sum(float(line.rsplit(" ", 1)[1]) for line in page.splitlines() if line.startswith(name))

    def stop(self):
        for process in reversed(self.running):
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.terminate()
                process.wait(timeout=speed.limit(120))


def opinions(record):
    return {o["source"]: o["agrees"] for o in record.get("second_opinions", ())}


def said(lab, job, expected, what):
    """Of the newest diagnosis."""
    found = speed.wait(lambda: [r for r in lab.diagnoses(job)[-1:] if opinions(r) == expected], 180)
    check(what, found, str(lab.diagnoses(job)))
    return found[0] if found else {}


def named(lab, job, what):
    check(f"{what}: nobody else is ever named", {(r["syndrome"], r.get("rank")) for r in lab.diagnoses(job)} ==
          {("noncomm_hang", 5)}, str(lab.diagnoses(job)))


def healthy(lab, job):
    check("the job runs", speed.wait(lambda: min(map(job.entered, range(RANKS))) >= LATE - 10, 120))
    check("states of ranks come, of their communicator", speed.wait(lambda: [
        r for r in lab.records("rank_states") if r["source"] == "ras" and r["comm_id"] == job.comm and
        r["answered"] == RANKS and r["host"] in HOSTS], 120), str(lab.records("rank_states")))
    check("nothing is said of a job that runs", not lab.diagnoses(job.name), str(lab.diagnoses(job.name)))


def never(lab, job):
    """Rank 5 does not begin its operation; its process runs."""
    first = said(lab, job.name, {"ras": True}, "never entered: RAS bears it out")
    check("with how far it is", f"AllReduce {LATE} times" in str(first.get("evidence_for")), str(first))
    job.lies[5] = 1
    liar = said(lab, job.name, {"ras": False}, "a RAS that says otherwise contradicts it, which is told")
    check("it is evidence against, and takes from the confidence", "RAS contradicts it" in
          str(liar.get("evidence_against")) and liar.get("confidence", 9) < first.get("confidence", 0), str(liar))
    job.lies.clear()
    for rank in range(RANKS):
        job.dump(lab, rank)
    said(lab, job.name, {"ras": True, "flight_recorder": True}, "never entered: dumps bear it out, too")
    named(lab, job.name, "never entered")


def stopped(lab, job):
    job.silent.add(5)
    job.ranks[5].send_signal(signal.SIGSTOP)
    said(lab, job.name, {"ras": True}, "stopped: RAS gets no answer from it")
    named(lab, job.name, "stopped")


def refusals(lab, old):
    check("what speaks no JSON is counted", speed.wait(
        lambda: lab.metric("gpu41", 'fabrictrace_agent_ras_answers_total{outcome="refused"}') > 0, 120))
    check("and is not asked for its status", old.asked == 0, str(old.asked))
    (lab.dir / "gpu40.flight" / "nccl_trace_rank_6").write_bytes(pickle.dumps(Path("/")))
    check("a dump of more than plain data is counted", speed.wait(
        lambda: lab.metric("gpu40", 'fabrictrace_agent_flight_dumps_total{outcome="invalid"}') > 0, 120))


def main():
    jobs = []
    ras, old = Ras(lambda: jobs[-1].status() if jobs else {"communicators": []}), Ras(dict, json_format=False)
    with tempfile.TemporaryDirectory(prefix="ft-second-") as folder:
        lab = Lab(Path(folder), (ras.address, old.address))
        try:
            jobs.append(Job(lab, "never", "00000000000000b1", 5, "never", str(LATE)))
            healthy(lab, jobs[-1])
            never(lab, jobs[-1])
            jobs[-1].end()
            jobs.append(Job(lab, "stopped", "00000000000000b2"))
            healthy(lab, jobs[-1])
            stopped(lab, jobs[-1])
            refusals(lab, old)
            jobs[-1].end()
        finally:
            lab.stop()
            if failures:
                print(lab.sink.read_text()[-1500:])
                for log in sorted(Path(folder).glob("*.log")):
                    print(f"-- {log.name}\n" + log.read_text()[-2000:])
    print(f"{len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
