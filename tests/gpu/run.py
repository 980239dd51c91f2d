#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Real NCCL over two ranks on one GPU, through its socket transport, with the plugin and without.

Takes the CUDA runtime's and NCCL's headers and libraries as wheels from PyPI into the build folder,
compiles and links tests/gpu/nccl_job.c against them, and where a GPU is: runs it, compares the
matrix with the formulas, and prints what the plugin costs. Without a GPU it ends after the link,
says so, and counts one skipped.

usage: run.py [--build BUILD] [--no-run]
"""
import argparse
import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
WHEELS = ("nvidia-nccl-cu12==2.28.9", "nvidia-cuda-runtime-cu12==12.9.79",
          "nvidia-cuda-nvcc-cu12==12.9.86", "nvidia-cuda-cccl-cu12==12.9.27")
SIZES = (8, 1 << 20, 256 << 20)
ITERATIONS = 20
RANKS = 2
# Before NCCL 2.30 two ranks on one GPU pass the check for duplicates only as two hosts.
NCCL_ENV = {"NCCL_NET": "Socket", "NCCL_SOCKET_IFNAME": "lo", "NCCL_P2P_DISABLE": "1",
            "NCCL_SHM_DISABLE": "1", "NCCL_MNNVL_ENABLE": "0", "NCCL_NVLS_ENABLE": "0",
            "NCCL_MAX_CTAS": "2", "NCCL_ALGO": "Ring", "NCCL_PROTO": "Simple"}
passed = failed = 0


def check(what, good, detail=""):
    global passed, failed
    print(f"{'ok' if good else 'FAIL'}: {what}{'' if good else f': {detail}'}", flush=True)
    if good:
        passed += 1
    else:
        failed += 1
    return good


def end(skipped=0):
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    sys.exit(1 if failed else 0)


def fetch(folder):
    """The wheels, unpacked; kept from run to run."""
    folder.mkdir(parents=True, exist_ok=True)
    done = folder / ("unpacked-" + "-".join(w.rpartition("=")[2] for w in WHEELS))
    if not done.exists():
        got = subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d",
                              folder, *WHEELS], capture_output=True, text=True)
        if got.returncode:
            check("CUDA and NCCL come from PyPI (pip: packaging/install-deps test)", False,
                  got.stderr.strip()[-500:])
            end()
        for wheel in folder.glob("*.whl"):
            with zipfile.ZipFile(wheel) as z:
                z.extractall(folder)
            wheel.unlink()
        done.touch()
    return folder / "nvidia"


def build(build_folder, cuda):
    program = build_folder / "tests/gpu/nccl_job"
    program.parent.mkdir(parents=True, exist_ok=True)
    includes = [f"-I{cuda / part / 'include'}" 
                for part in ("cuda_runtime", "cuda_nvcc", "cuda_cccl", "nccl")]
    libs = [cuda / "nccl/lib/libnccl.so.2", cuda / "cuda_runtime/lib/libcudart.so.12"]
    run = subprocess.run(
        [os.environ.get("CC", "cc"), "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O2",
         *includes, SOURCE / "tests/gpu/nccl_job.c", *libs,
         *(f"-Wl,-rpath,{lib.parent}" for lib in libs), "-o", program],
        capture_output=True, text=True)
    check("compiles and links against CUDA and NCCL", run.returncode == 0, run.stderr)
    return program


def has_gpu():
    """Whether the driver is there and finds a device."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    count = ctypes.c_int(0)
    return driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0 \
        and count.value > 0


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def run_job(folder, program, name, env):
    """Both ranks; returns {(op, bytes): us} as rank 0 saw it."""
    jobs = []
    for rank in range(RANKS):
        own = {**os.environ, **NCCL_ENV, **env, "NCCL_HOSTID": f"r{rank}"}
        if "FABRICTRACE_DIR" in env:
            own["FABRICTRACE_SOCKET"] = f"{env['FABRICTRACE_DIR']}/host{rank}.sock"
        jobs.append(subprocess.Popen(
            [program, str(rank), str(RANKS), str(folder / f"id-{name}"), str(ITERATIONS),
             *map(str, SIZES)], env=own, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    lines = []
    for rank, job in enumerate(jobs):
        try:
            out, err = job.communicate(timeout=240)
        except subprocess.TimeoutExpired:
            job.kill()
            out, err = job.communicate()
        if not check(f"{name}: rank {rank} ends well", job.returncode == 0, err[-2000:]):
            end()
        lines.append([json.loads(line) for line in out.splitlines()])
    return {(r["op"], r["bytes"]): r["us"] for r in lines[0]}


class Follower:
    """The daemon, and an agent for each of the two 'hosts'."""

    def __init__(self, folder, build_folder):
        self.folder, self.bin, self.running = folder, build_folder, []
        self.http, ingest = (f"127.0.0.1:{free_port()}" for _ in range(2))
        self.start(["daemon/fabrictraced", "--topology",
                    SOURCE / "packaging/examples/topology.yaml", "--set", f"listen={ingest}",
                    "--set", f"http={self.http}"])
        for rank in range(RANKS):
            self.start(["agent/fabrictrace-agent", "-c", "/dev/null", "--set", f"host=host{rank}",
                        "--set", f"nccl.socket={folder}/host{rank}.sock", "--set", "http=off",
                        "--set", f"daemon.endpoint={ingest}"])

    def start(self, command):
        log = open(self.folder / "programs.log", "a")
        self.running.append(subprocess.Popen([str(self.bin / command[0]), *map(str, command[1:])],
                                             stdout=log, stderr=log))

    def tool(self, *args):
        return subprocess.run([self.bin / "cli/fabrictrace", "matrix", *args], check=True, text=True,
                              capture_output=True,
                              env={**os.environ, "FABRICTRACE_ENDPOINT": self.http}).stdout

    def stop(self):
        for process in reversed(self.running):
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=15)


def compare(follower):
    """Measured bytes against the formula; sizes of 8 bytes round up to whole messages."""
    edges = [e for line in follower.tool("--json").splitlines() for e in json.loads(line)["edges"]]
    check("the plugin reported both directions", {(e["src"], e["dst"]) for e in edges}
          >= {(0, 1), (1, 0)}, str(edges))
    for e in edges:
        if e.get("expected_bytes", 0) > 0:
            ratio = e["sent_bytes"] / e["expected_bytes"]
            check(f"{e['op']} {e['src']} to {e['dst']}: {e['sent_bytes']} bytes sent, "
                  f"{ratio:.3f} of the formula", 0.95 <= ratio <= 1.1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default=".")
    parser.add_argument("--no-run", action="store_true", help="compile and link alone")
    options = parser.parse_args()
    build_folder = Path(options.build).resolve()
    program = build(build_folder, fetch(build_folder / "gpu-wheels"))
    if failed or options.no_run:
        end()
    if not has_gpu():
        print("skipped: tests/gpu/nccl_job was linked but not run: no GPU here (libcuda.so.1 finds "
              "none)")
        end(skipped=1)
    plugin = build_folder / "agent/nccl/libnccl-profiler-fabrictrace.so"
    with tempfile.TemporaryDirectory(prefix="ft-gpu-") as name:
        folder = Path(name)
        follower = Follower(folder, build_folder)
        try:
            time.sleep(2)
            none = run_job(folder, program, "without", {"NCCL_PROFILER_PLUGIN": "none"})
            ours = run_job(folder, program, "with", {"NCCL_PROFILER_PLUGIN": str(plugin),
                                                     "FABRICTRACE_DIR": name})
            again = run_job(folder, program, "without-again", {"NCCL_PROFILER_PLUGIN": "none"})
            time.sleep(4)
            compare(follower)
            print(follower.tool())
        finally:
            follower.stop()
    print(f"{'operation':<14} {'bytes':>10} {'without us':>11} {'again':>9} {'with us':>9} {'more':>7}")
    for key in none:
        base = min(none[key], again[key])
        print(f"{key[0]:<14} {key[1]:>10} {none[key]:>11.1f} {again[key]:>9.1f} {ours[key]:>9.1f} "
              f"{100 * (ours[key] / base - 1):>6.1f}%")
    end()


if __name__ == "__main__":
    main()
