#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The page in Debian's Chromium: over the lab of namespaces, served by the real daemon, where a
collision is made on purpose (source ports that the kernel's own hash puts on one link); over such a lab
with a training job of 64 ranks (training.py); behind nginx with a token (proxied.py); and over fabrics on
paper (paper.mjs, tiers.mjs) for sizes, texts and failures that no lab has. Pictures go to --shots."""
import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "fabric")]
import proxied  # noqa: E402
import speed  # noqa: E402
import training  # noqa: E402
from lab import truth  # noqa: E402
from lab.fabric import Fabric, LabError, end_tidily  # noqa: E402
from lab.layout import COLLECTOR, Layout  # noqa: E402
from lab.pipeline import HTTP, Pipeline, find_programs  # noqa: E402
from lab.relay import Relay  # noqa: E402
from lab.traffic import ELEPHANT, SPORTS, Flow, Traffic, plan  # noqa: E402

WINDOW_S = 5
MICE = 24
COLLIDING = 3
TRIED_SPORTS = 64
TOOLS = ("node", "npm", "chromium", "nginx")


def colliding(fabric, rng, used):
    """{Flow: path} of COLLIDING flows from one leaf's hosts, to hosts of other leaves, that the
    kernel sends up by one and the same link."""
    hosts = fabric.layout.hosts
    leaf = hosts[0].leaf
    sources = [host for host in hosts if host.leaf == leaf]
    targets = [host for host in hosts if host.leaf != leaf]
    sports = rng.sample(sorted(set(SPORTS) - used), TRIED_SPORTS)
    flows = [Flow(rng.choice(sources).ip4, rng.choice(targets).ip4, sport) for sport in sports]
    by_link = {}
    for flow, path in truth.kernel_paths(fabric, flows).items():
        switch, _, out = path[0]
        by_link.setdefault((switch, out), {})[flow] = path
    some = max(by_link.values(), key=len)
    if len(some) < COLLIDING:
        raise LabError(f"of {TRIED_SPORTS} flows no {COLLIDING} share a link")
    return dict(list(some.items())[:COLLIDING])


def node(scripts, script, *args, stdin=None):
    return subprocess.Popen(["node", scripts / script, *map(str, args)], stdin=stdin, text=True,
                            stdout=subprocess.PIPE, env={**os.environ, "FT_SLOWNESS": str(speed.limit(1))})


def pass_on(process):
    """Prints what it prints; (passed, failed) of its last line."""
    last = ""
    for line in process.stdout:
        last = line.strip() or last
        print(line, end="", flush=True)
    words = last.split()
    if process.wait() not in (0, 1) or len(words) != 6 or words[1] != "passed,":
        print(f"FAIL: {Path(process.args[1]).name} does not come to its end")
        return 0, 1
    return int(words[0]), int(words[2])


def over_the_lab(args, shots):
    programs = find_programs(args.build)
    rng = random.Random(args.seed)
    layout = Layout(2, 2, 2, pods=2, superspines=2) if args.tiers == 3 else Layout(3, 3, 2)
    with Fabric(f"page{os.getpid()}", layout, seed=args.seed) as fabric:
        traffic = Traffic(fabric, programs["rocegen"])
        pipeline = Pipeline(fabric, programs, WINDOW_S)
        mice = plan(fabric.layout, MICE, 0, rng)
        clash = colliding(fabric, rng, {flow.sport for flow in mice})
        path = next(iter(clash.values()))
        traffic.start(mice)
        with Relay(fabric, COLLECTOR, int(HTTP.rpartition(":")[2])) as relay:
            told = {"url": relay.url, "window_ms": WINDOW_S * 1000, "switch": path[0][0],
                    "port": path[0][2], "flows": [str(flow) for flow in clash],
                    "paths": {str(flow): path for flow, path in clash.items()},
                    "host": fabric.layout.hosts[0].name,
                    "ways": 2 * len(fabric.layout.fabric_links)}
            process = node(args.scripts, "check_page.mjs", json.dumps(told), shots, stdin=subprocess.PIPE)
            # It says so when it has seen the fabric without the collision.
            for line in process.stdout:
                print(line, end="", flush=True)
                if line == "ready\n":
                    break
            traffic.stop()
            traffic.start({**mice, **{flow: ELEPHANT for flow in clash}})
            process.stdin.write(f"{time.time() * 1000:.0f}\n")
            process.stdin.close()
            counts = pass_on(process)
        traffic.close()
        wrong = pipeline.stop()
    for text in wrong:
        print(f"FAIL: {text}")
    return counts[0], counts[1] + len(wrong)


def over_a_job(args, shots):
    with training.fabric(args.seed) as fabric:
        job = training.Training(fabric, args.build, args.seed)
        with job.relay() as relay:
            process = node(args.scripts, "check_job.mjs", json.dumps({"url": relay.url, **job.told()}), shots,
                           stdin=subprocess.PIPE)
            # It says so when it has seen the job while it is well.
            for line in process.stdout:
                print(line, end="", flush=True)
                if line == "ready\n":
                    break
            job.stop_a_rank()
            process.stdin.close()
            counts = pass_on(process)
        wrong = job.end()
    for text in wrong:
        print(f"FAIL: {text}")
    return counts[0], counts[1] + len(wrong)


def over_a_proxy(args, build, shots):
    with proxied.Proxied(build) as proxy:
        passed, failed = pass_on(node(args.scripts, "check_proxy.mjs", proxy.told(), shots))
        for name in proxy.logs_with_token():
            print(f"FAIL: {name} has the token")
            failed += 1
    return passed, failed


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build")
    parser.add_argument("--shots", help="folder for pictures (standard: page-shots in --build)")
    parser.add_argument("--scripts", type=Path, default=HERE,
                        help="where they and node_modules are (standard: here)")
    parser.add_argument("--seed", type=int, default=int(time.time()) % 10000)
    parser.add_argument("--tiers", type=int, choices=(2, 3), default=2, help="of the lab (2)")
    parser.add_argument("--only", choices=("lab", "job", "paper", "states", "tiers", "times", "proxy"))
    args = parser.parse_args()
    end_tidily()
    build = Path(args.build).resolve()
    missing = [tool for tool in TOOLS if not shutil.which(tool)]
    if missing or os.geteuid():
        sys.exit(f"FAIL: {', '.join(missing) or 'root'} is needed: packaging/install-deps test")
    shots = Path(args.shots or build / "page-shots").resolve()
    shots.mkdir(parents=True, exist_ok=True)
    print(f"seed {args.seed}", flush=True)
    counts = [0, 0]
    files = build / "page" / "dist"
    runs = {"paper": lambda: pass_on(node(args.scripts, "check_paper.mjs", files, shots)),
            "states": lambda: pass_on(node(args.scripts, "check_states.mjs", files, shots)),
            "tiers": lambda: pass_on(node(args.scripts, "check_tiers.mjs", files, shots)),
            "times": lambda: pass_on(node(args.scripts, "check_times.mjs", files, shots)),
            "proxy": lambda: over_a_proxy(args, build, shots),
            "lab": lambda: over_the_lab(args, shots),
            "job": lambda: over_a_job(args, shots)}
    for name, run in runs.items():
        if args.only in (None, name):
            counts = [a + b for a, b in zip(counts, run())]
    print(f"{counts[0]} passed, {counts[1]} failed, 0 skipped")
    return 1 if counts[1] else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except LabError as error:
        sys.exit(f"FAIL: {error}")
