#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the agent takes of a processor to follow 8 ranks, each of which makes so many transfers a second
through the real plugin: while they run, and while all of them stand. Runs in the build folder.

usage: nccl_cost.py [TRANSFERS_PER_S [SECONDS]]
"""
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RANKS = 8
STEPS = 2 * 2 * 2 * (RANKS - 1) * 4  # network steps of an operation of tests/nccl/job
PLUGIN = Path("agent/nccl/libnccl-profiler-fabrictrace.so").resolve()


def cpu_s(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def share(pid, seconds):
    before, begun = cpu_s(pid), time.monotonic()
    time.sleep(seconds)
    return (cpu_s(pid) - before) / (time.monotonic() - begun)


def main():
    rate = float(sys.argv[1]) if len(sys.argv) > 1 else 10000
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 20
    with tempfile.TemporaryDirectory(prefix="ft-cost-") as folder:
        agent = subprocess.Popen(
            ["agent/fabrictrace-agent", "-c", "/dev/null", "--set", "host=a", "--set",
             f"nccl.socket={folder}/s", "--set", "http=off", "--set", "rdma.enabled=false",
             "--output", "/dev/null"], stderr=subprocess.DEVNULL)
        env = {**os.environ, "FABRICTRACE_SOCKET": f"{folder}/s"}
        while not os.path.exists(f"{folder}/s"):
            time.sleep(0.05)
        try:
            print(f"agent without a job: {100 * share(agent.pid, seconds / 4):.2f} % of a processor")
            jobs = [subprocess.Popen(
                ["tests/nccl/job", PLUGIN, str(r), str(RANKS), str(seconds * 1.5),
                 str(int(1e6 * STEPS / rate))], env=env, stdout=subprocess.PIPE) for r in range(RANKS)]
            time.sleep(seconds / 5)
            moving = share(agent.pid, seconds)
            made = [json.loads(j.communicate()[0])["operations"] for j in jobs]
            print(f"{RANKS} ranks x {sum(made) / RANKS * STEPS / (seconds * 1.5):.0f} transfers/s: "
                  f"{100 * moving:.2f} %")
            jobs = [subprocess.Popen(
                ["tests/nccl/stuck", PLUGIN, str(r), str(RANKS), "peer"], env=env,
                stdout=subprocess.PIPE) for r in range(RANKS)]
            for j in jobs:
                j.stdout.readline()
            time.sleep(seconds / 4)
            print(f"{RANKS} ranks that stand: {100 * share(agent.pid, seconds / 2):.2f} %")
            for j in jobs:
                j.terminate()
                j.wait()
        finally:
            agent.terminate()
            agent.wait()


if __name__ == "__main__":
    main()
