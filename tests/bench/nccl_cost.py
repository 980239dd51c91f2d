#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the agent takes of a processor to follow 8 ranks, each of which makes so many transfers a second
through the real plugin, counted as steps and as whole transfers of a channel: while they run, and while all
of them stand. By the scheduler's clock of run time, in ns. Runs in the build folder.

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
# Channels and steps of each transfer: one that moves 14 MB by 16 channels, and many that are short.
SHAPES = (("steps", 2, 56, 224), ("transfers of 8 steps", 8, 8, 16), ("transfers of one step", 8, 1, 16))
PLUGIN = Path("agent/nccl/libnccl-profiler-fabrictrace.so").resolve()


def cpu_s(pid):
    """Of its main thread and all others."""
    return sum(int((t / "schedstat").read_text().split()[0]) for t in Path(f"/proc/{pid}/task").iterdir()) / 1e9


def share(pid, seconds):
    before, begun = cpu_s(pid), time.monotonic()
    time.sleep(seconds)
    return (cpu_s(pid) - before) / (time.monotonic() - begun)


def run(agent, env, shape, rate, seconds):
    what, channels, steps, unit = shape
    pause_us = int(1e6 * unit / rate)
    jobs = [subprocess.Popen(["tests/nccl/job", PLUGIN, str(r), str(RANKS), str(seconds * 1.3), str(pause_us),
                              "rate", str(channels), str(steps)], env=env, stdout=subprocess.PIPE)
            for r in range(RANKS)]
    time.sleep(seconds / 10)
    moving = share(agent.pid, seconds)
    made = [json.loads(j.communicate()[0])["operations"] for j in jobs]
    done = sum(made) / RANKS * unit / (seconds * 1.3)
    print(f"{RANKS} ranks x {done:.0f} {what}/s: {100 * moving:.3f} %, {moving / done / RANKS * 1e9:.0f} ns each",
          flush=True)


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
            print(f"load {os.getloadavg()[0]:.0f}; agent without a job: {100 * share(agent.pid, seconds / 4):.3f} %",
                  flush=True)
            for shape in SHAPES:
                run(agent, env, shape, rate, seconds)
            jobs = [subprocess.Popen(
                ["tests/nccl/stuck", PLUGIN, str(r), str(RANKS), "peer"], env=env,
                stdout=subprocess.PIPE) for r in range(RANKS)]
            for j in jobs:
                j.stdout.readline()
            time.sleep(seconds / 4)
            print(f"{RANKS} ranks that stand: {100 * share(agent.pid, seconds):.3f} %")
            for j in jobs:
                j.terminate()
                j.wait()
        finally:
            agent.terminate()
            agent.wait()


if __name__ == "__main__":
    main()
