#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a failover costs under load: the observations of a generated fabric go to a daemon that has a
standby. In the middle the daemon is killed (kill -9), or stops to answer (SIGSTOP). Prints for how long
no daemon knew the paths, which windows lack something, and where each record is: at the first daemon, at
the standby, at both, or nowhere. usage: failover.py [--flows N] [--seconds N] (in the build folder)"""
import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.dont_write_bytecode = True
TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "golden" / "daemon"), str(TESTS / "fidelity"), str(TESTS / "kafka")]
from check_ingest import FEEDER, record_traffic  # noqa: E402
from rig import Daemon, of_kind, records_of  # noqa: E402

WINDOW_MS = 10000
KNOWN = 0.9  # of the paths that the first daemon knew
WAIT_S = 60


def daemon_in(folder, name, topology):
    (folder / name).mkdir()
    daemon = Daemon(folder / name, topology)
    text = daemon.config.read_text().replace("window: 2s\ngrace: 1s\n",
                                             "window: 10s\ngrace: 3s\nverify_topology: no\n")
    daemon.config.write_text(text.replace("source_id: golden", f"source_id: {name}"))
    return daemon.start()


def paths(daemon):
    """(flows with a path, when it was asked in ms)."""
    asked = time.time() * 1000
    return json.loads(daemon.get("/api/v1/paths?state=resolved&limit=1"))["total"], asked


def windows(daemon):
    """{beginning: (whether it says that it is of a part, bytes on the fabric's links)}, of those with
    flows that are in its file."""
    text = daemon.out.read_text()
    return {r["window_start_ms"]: (bool(r.get("partial")), r["bytes"])
            for r in of_kind(records_of(text[:text.rfind("\n") + 1]), "imbalance")
            if r["scope"] == "fabric" and r.get("flows")}


def fail_over(folder, topology, file, seconds, how):
    first, standby = daemon_in(folder, "first", topology), daemon_in(folder, "standby", topology)
    feeder = subprocess.Popen([FEEDER, file, "tcp", f"127.0.0.1:{first.port},127.0.0.1:{standby.port}"],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    try:
        while not first.metric("fabrictraced_records_total"):
            time.sleep(0.1)
        # In the middle of a window.
        until_ms = (time.time() + seconds / 2) * 1000 // WINDOW_MS * WINDOW_MS + WINDOW_MS / 2
        time.sleep(until_ms / 1000 - time.time())
        known, gone_ms = paths(first)
        os.kill(first.process.pid, how)
        had = windows(first)
        half_ms, now = None, 0
        while now < KNOWN * known and time.time() * 1000 < gone_ms + WAIT_S * 1000:
            time.sleep(0.05)
            now, asked = paths(standby)
            half_ms = half_ms or (now >= known / 2 and asked)
        sent = json.loads(feeder.communicate(timeout=1200)[0])[0]
        taken = standby.metric("fabrictraced_records_total")
        time.sleep(WINDOW_MS / 1000 + 5)  # the last window is closed
        standby.stop()
        got = windows(standby)
    finally:
        feeder.kill()
        for daemon in (first, standby):
            daemon.kill()
    print(f"{how.name}: {known} paths were known; half of them again after {((half_ms or asked) - gone_ms) / 1000:.1f} s, "
          f"{100 * now / known:.0f} % after {(asked - gone_ms) / 1000:.1f} s")
    print(f"    records: {sent['records']} sent, {sent['acked'] - taken:.0f} at the first daemon alone, {taken:.0f} at "
          f"the standby, {sent['repeated']} of them perhaps at both, {sent['dropped']} dropped")
    between = range(min(had), max(got) + 1, WINDOW_MS)
    print(f"    windows: {len(had)} of the first daemon, {len(got)} of the standby, "
          f"{sum(part for part, _ in got.values())} of them marked as partial; of {len(between)} "
          f"{sum(w not in had and w not in got for w in between)} are missing, "
          f"{sum(w in had and w in got for w in between)} are of both")
    # The traffic is steady, but for where it begins and ends.
    usual = sorted(carried for _, carried in had.values())[len(had) // 2]
    print("    bytes of the standby's windows beside the usual: " + ", ".join(
        f"{carried / usual:.2f}{' (marked)' if part else ''}" for _, (part, carried) in sorted(got.items())), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--flows", type=int, default=2000)
    parser.add_argument("--seconds", type=int, default=120)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        topology, file, count = record_traffic(folder, "steady2", 1, args.seconds, args.flows)
        print(f"{count / args.seconds:.0f} observations a second of {args.flows} flows", flush=True)
        for how in (signal.SIGKILL, signal.SIGSTOP):
            (folder / how.name).mkdir()
            fail_over(folder / how.name, topology, file, args.seconds, how)


if __name__ == "__main__":
    main()
