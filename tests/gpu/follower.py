# SPDX-License-Identifier: Apache-2.0
"""The daemon, and an agent for each rank of a job: ranks on one GPU are hosts of their own to NCCL."""
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import speed  # noqa: E402
from ports import free_port  # noqa: E402

SOURCE = Path(__file__).resolve().parents[2]
PLUGIN = "agent/nccl/libnccl-profiler-fabrictrace.so"
RANKS = 2
# Before NCCL 2.30 two ranks on one GPU pass the check for duplicates only as two hosts.
NCCL_ENV = {"NCCL_NET": "Socket", "NCCL_SOCKET_IFNAME": "lo", "NCCL_P2P_DISABLE": "1",
            "NCCL_SHM_DISABLE": "1", "NCCL_MNNVL_ENABLE": "0", "NCCL_NVLS_ENABLE": "0",
            "NCCL_MAX_CTAS": "2", "NCCL_ALGO": "Ring", "NCCL_PROTO": "Simple",
            "NCCL_DEBUG": "WARN", "NCCL_DEBUG_FILE": "/dev/stderr"}


class Follower:
    def __init__(self, folder, build):
        self.folder, self.build, self.running = folder, build, []
        self.sink = folder / "records.ndjson"
        self.http, ingest = (f"127.0.0.1:{free_port()}" for _ in range(2))
        self.start("daemon/fabrictraced", "--topology", SOURCE / "packaging/examples/topology.yaml",
                   "--set", "verify_topology=false", "--set", f"listen={ingest}", "--set", f"http={self.http}",
                   "--sink", f"file:{self.sink}")
        for rank in range(RANKS):
            self.start("agent/fabrictrace-agent", "-c", "/dev/null", "--set", f"host=host{rank}", "--set",
                       f"nccl.socket={self.socket(rank)}", "--set", "http=off", "--set",
                       f"daemon.endpoint={ingest}")
        speed.wait(lambda: all(self.socket(rank).exists() for rank in range(RANKS)), 30)

    def socket(self, rank):
        return self.folder / f"host{rank}.sock"

    def start(self, program, *args):
        with open(self.folder / "programs.log", "a") as log:
            self.running.append(subprocess.Popen([self.build / program, *map(str, args)], stdout=log, stderr=log))

    def rank_env(self, rank, job, plugin=True):
        """The environment of a rank, with the plugin or without any."""
        env = {**os.environ, **NCCL_ENV, "NCCL_HOSTID": f"r{rank}"}
        if not plugin:
            return {**env, "NCCL_PROFILER_PLUGIN": "none"}
        return {**env, "NCCL_PROFILER_PLUGIN": str(self.build / PLUGIN), "FABRICTRACE_JOB": job,
                "FABRICTRACE_SOCKET": str(self.socket(rank))}

    def tool(self, *args):
        return subprocess.run([self.build / "cli/fabrictrace", *args], check=True, text=True, capture_output=True,
                              env={**os.environ, "FABRICTRACE_ENDPOINT": self.http}).stdout

    def records(self, schema):
        """As they were published, in order."""
        lines = self.sink.read_text().splitlines() if self.sink.exists() else []
        return [json.loads(line) for line in lines if f'"fabrictrace.{schema}"' in line and line[-1] == "}"]

    def diagnoses(self, job):
        return [r for r in self.records("diagnosis.v1") if r.get("job") == job]

    def events(self):
        """What the plugin's calls told the agents so far, and what of it was dropped, with reasons."""
        last = {r["source"]: r for r in self.records("loss.v1") if r["program"] == "fabrictrace-agent"}
        stages = [s for r in last.values() for s in r["stages"] if s["name"] == "nccl"]
        drops = [d for s in stages for d in s.get("drops", ())]
        return sum(s["received"] for s in stages), {d["reason"]: d["count"] for d in drops}

    def processor_s(self):
        """{program: seconds of processor time so far}"""
        used = {}
        for process in self.running:
            fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
            name = Path(process.args[0]).name
            used[name] = used.get(name, 0) + (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        return used

    def stop(self):
        for process in reversed(self.running):
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=30)
