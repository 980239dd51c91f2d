# SPDX-License-Identifier: Apache-2.0
"""A disk that fills up slowly under the file of the daemon's records, and has room again later: only one that is
full from the first byte on (/dev/full) had been tried of a running daemon. The spool's is in check_brokers.

The disk is a tmpfs in a mount namespace of its own. What does not fit is counted, an event says so and what to
do; with room again lines come as before, each of them whole but for the one that the disk cut, and lines and
account agree."""
import ctypes
import json
import subprocess

import honest
import kit
from kit import check, equal, until

CLONE_NEWNS = 0x20000
SIZE, ROOM = "256k", "64m"


def own_mounts():
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS):
        raise OSError(ctypes.get_errno(), "no mount namespace can be made")
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)


def sink(daemon):
    """{fate: lines} of the file"""
    lines = [line.rsplit(None, 1) for line in daemon.get("/metrics").splitlines()
             if line.startswith("fabrictraced_sink_") and "file:" in line]
    return {name.split("{")[0] + name: int(float(value)) for name, value in lines}


def failed(daemon):
    return sum(n for name, n in sink(daemon).items() if '"failed"' in name)


def processed(daemon):
    return sum(n for name, n in sink(daemon).items() if '"processed"' in name)


def run(folder):
    honest.own_network()
    own_mounts()
    rng = honest.new_rng()
    disk = folder / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "none", disk], check=True)
    programs, work = honest.Programs(folder, "path_refresh: 2s\n"), None
    out = disk / "daemon.ndjson"
    programs.config(programs.daemon, f"file:{programs.daemon.out}", f"file:{out}")
    daemon = programs.daemon
    try:
        programs.start()
        work = honest.Work(programs, rng, numbered=False, mice=20)
        until("some fit", lambda: processed(daemon) > 0)
        equal("none was lost", failed(daemon), 0)
        until("the disk is full, and what does not fit is counted", lambda: failed(daemon) > 0)
        until("the event", lambda: "look at the disk" in daemon.get("/api/v1/events"))
        check("the log says what it is", "No space left on device" in daemon.log.read_text())
        check("others are answered", daemon.get("/healthz") and daemon.get("/api/v1/links"))
        subprocess.run(["mount", "-o", f"remount,size={ROOM}", disk], check=True)
        before = processed(daemon)
        until("lines come again", lambda: processed(daemon) > before)
        lost = failed(daemon)
        windows = daemon.metric("fabrictraced_windows_total")
        until("windows close", lambda: daemon.metric("fabrictraced_windows_total") >= windows + 3)
        equal("no more are lost", failed(daemon), lost)
        work.stop()
        programs.settle()
        programs.stop()
        judge(out.read_bytes().split(b"\n"), lost)
    finally:
        if work:
            work.over.set()
        programs.kill()
        subprocess.run(["umount", "-l", disk], check=False)


def judge(lines, lost):
    equal("the last line is whole", lines.pop(), b"")
    broken, records = 0, []
    for line in lines:
        try:
            records.append(json.loads(line))
        except ValueError:
            broken += 1
    check(f"{len(records)} lines are whole, {broken} cut by the disk; {lost} are lost by the account",
          broken <= 1 < lost)
    own = [r for r in records if r["schema"] == "fabrictrace.loss.v1" and r["program"] == "fabrictraced"][-1]
    equal("and by its last record", sum(d["count"] for s in own["stages"] for d in s.get("drops", ())
                                        if d["reason"] == "failed"), lost)
    kit.rig.check_balance("with a full disk", records)
