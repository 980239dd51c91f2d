#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Real NCCL over two ranks on one GPU, through its socket transport, with the plugin and without.

Takes the CUDA runtime's and NCCL's headers and libraries as wheels from PyPI into the build folder, or
from --installed, and compiles and links tests/gpu/nccl_job.c against them. Where a GPU is, it runs the
job: compares the matrix with the formulas, prints what the plugin costs, and has a rank stop and a rank
be late (training.py). Without a GPU it ends after the link, says so, and counts one skipped.

usage: run.py [--build BUILD] [--installed FOLDER]... [--no-run] [--keep FOLDER] [training] [costs]
"""
import argparse
import contextlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
import cuda  # noqa: E402
import training  # noqa: E402
from follower import RANKS, SOURCE, Follower, speed  # noqa: E402

SIZES = (8, 1 << 20, 64 << 20)
ITERATIONS = 60
REPEATS = 5
PARTS = ("training", "costs")
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


def build(build_folder, found):
    program = build_folder / "tests/gpu/nccl_job"
    program.parent.mkdir(parents=True, exist_ok=True)
    run = subprocess.run(
        [os.environ.get("CC", "cc"), "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O2",
         *(f"-isystem{include}" for include in found.includes), SOURCE / "tests/gpu/nccl_job.c", *found.libraries,
         *(f"-Wl,-rpath,{library.parent}" for library in found.libraries), "-o", program],
        capture_output=True, text=True)
    check("compiles and links against CUDA and NCCL", run.returncode == 0, run.stderr)
    return program


def run_job(follower, program, name, plugin):
    """Both ranks; returns {(op, bytes): us} as rank 0 saw it."""
    jobs = [subprocess.Popen(
        [program, str(rank), str(RANKS), str(follower.folder / f"id-{name}"), str(ITERATIONS), *map(str, SIZES)],
        env=follower.rank_env(rank, name, plugin), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for rank in range(RANKS)]
    lines = []
    for rank, job in enumerate(jobs):
        try:
            out, err = job.communicate(timeout=240)
        except subprocess.TimeoutExpired:
            job.kill()
            out, err = job.communicate()
        if not check(f"{name}: rank {rank} ends well", job.returncode == 0, err[-2000:]):
            return {}
        lines.append([json.loads(line) for line in out.splitlines()])
    return {(r["op"], r["bytes"]): r["us"] for r in lines[0]}


def edges(follower):
    return [e for line in follower.tool("matrix", "--json").splitlines() for e in json.loads(line)["edges"]]


def as_formula(e):
    """Sizes of 8 bytes round up to entire messages."""
    return 0.95 <= e["sent_bytes"] / e["expected_bytes"] <= 1.1


def compare(follower):
    """Measured bytes against the formula."""
    speed.wait(lambda: (found := edges(follower)) and
               all(as_formula(e) for e in found if e.get("expected_bytes", 0) > 0), 30, 0.5)
    found = edges(follower)
    check("the plugin reported both directions", {(e["src"], e["dst"]) for e in found} >= {(0, 1), (1, 0)},
          str(found))
    for e in found:
        if e.get("expected_bytes", 0) > 0:
            check(f"{e['op']} {e['src']} to {e['dst']}: {e['sent_bytes']} bytes sent, "
                  f"{e['sent_bytes'] / e['expected_bytes']:.3f} of the formula", as_formula(e))


@contextlib.contextmanager
def shared_gpu(folder):
    """Kernels of both ranks at once, by NVIDIA's MPS, instead of in turns of milliseconds. Yields whether."""
    control = shutil.which("nvidia-cuda-mps-control")
    os.environ.update(CUDA_MPS_PIPE_DIRECTORY=f"{folder}/mps", CUDA_MPS_LOG_DIRECTORY=f"{folder}/mps")
    (folder / "mps").mkdir()
    begun = control and subprocess.run([control, "-d"], check=False).returncode == 0
    try:
        yield bool(begun)
    finally:
        if begun:
            subprocess.run([control], input="quit\n", text=True, check=False)
        for name in ("CUDA_MPS_PIPE_DIRECTORY", "CUDA_MPS_LOG_DIRECTORY"):
            del os.environ[name]


def costs(follower, program):
    """Times of operations with the plugin and without, in turns; what follows it uses of the processor."""
    times = {False: [], True: []}
    told, used, begun = follower.events()[0], follower.processor_s(), time.monotonic()
    with shared_gpu(follower.folder) as shared:
        for repeat in range(REPEATS):
            for plugin in (False, True):
                times[plugin].append(run_job(follower, program, f"{'with' if plugin else 'without'}-{repeat}", plugin))
                if not times[plugin][-1]:
                    return
    print(f"times in us, the kernels of both ranks {'at once (MPS)' if shared else 'in turns'}: median of "
          f"{REPEATS} runs of {ITERATIONS} operations, least and most\n"
          f"{'operation':<14} {'bytes':>9} {'without the plugin':>30} {'with it':>30} {'more':>7}")
    for key in times[False][0]:
        row, middle = f"{key[0]:<14} {key[1]:>9}", {}
        for plugin in (False, True):
            values = [run[key] for run in times[plugin]]
            middle[plugin] = statistics.median(values)
            row += f" {middle[plugin]:>10.1f} ({min(values):>8.1f} {max(values):>8.1f})"
        print(f"{row} {100 * (middle[True] / middle[False] - 1):>6.1f}%")
    for name, seconds in follower.processor_s().items():
        print(f"{name}: {seconds - used[name]:.2f} s of a processor in {time.monotonic() - begun:.0f} s, for "
              f"{follower.events()[0] - told} events of the plugin")


def unlisted(follower):
    """Transfers that a report had no room for, and reports of transfers whose operation is not known."""
    reports = follower.records("collective.v1")
    return sum(r.get("peers_dropped", 0) for r in reports), sum("op" not in r for r in reports)


def run_all(follower, program, parts):
    if "training" in parts:
        training.run(follower, program, check)
    if "costs" in parts:
        costs(follower, program)
        lost = unlisted(follower)
        check("each transfer is in the report of its operation", lost == (0, 0), str(lost))
    compare(follower)
    print(follower.tool("matrix"))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)} (default: all)")
    parser.add_argument("--build", default=".")
    parser.add_argument("--installed", action="append", metavar="FOLDER",
                        help="where CUDA and NCCL are installed, instead of wheels from PyPI")
    parser.add_argument("--no-run", action="store_true", help="compile and link alone")
    parser.add_argument("--keep", type=Path, help="leave records and logs here")
    options = parser.parse_args()
    build_folder = Path(options.build).resolve()
    try:
        found = cuda.installed(options.installed) if options.installed else \
            cuda.fetch(build_folder / "gpu-wheels")
    except cuda.Lacks as why:
        check("CUDA and NCCL are there (pip: packaging/install-deps test)", False, why)
        end()
    program = build(build_folder, found)
    if failed or options.no_run:
        end()
    if not cuda.has_gpu():
        print("skipped: tests/gpu/nccl_job was linked but not run: no GPU here (libcuda.so.1 finds "
              "none)")
        end(skipped=1)
    with tempfile.TemporaryDirectory(prefix="ft-gpu-") as name:
        follower = Follower(Path(name), build_folder)
        try:
            run_all(follower, program, options.parts or PARTS)
        finally:
            follower.stop()
            if options.keep:
                shutil.copytree(name, options.keep, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.sock", "id-*", "mps"))
    end()


if __name__ == "__main__":
    main()
