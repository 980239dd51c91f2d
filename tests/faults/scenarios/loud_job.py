# SPDX-License-Identifier: Apache-2.0
"""One job sent 55,000 records a second, past the cap: all processes together shared it, so that nothing of a
quiet job beside it came through one by one. The cap is that of a process.

Two jobs of the real plugin: one without a pause between its operations, one that makes a few a second. Of the
loud one no more records come than its cap allows, and they say how many calls there were; of the quiet one
each operation has a record of its own."""
import collections
import json
import os
import signal
import subprocess
import time

import honest
import rig
from kit import check, equal, until

REPORTS = 100         # a second of a process, nccl.reports
QUIET_US = 100000     # between its operations
SECONDS = 5
LOUD = 20             # times as many calls as the cap


def start(programs, pause_us, name):
    return subprocess.Popen(
        [honest.JOB, honest.PLUGIN, "0", "2", "1000000", str(pause_us)], stdout=subprocess.PIPE, text=True,
        env={**os.environ, "FABRICTRACE_SOCKET": str(programs.socket), "FABRICTRACE_JOB": name})


def end(job):
    job.send_signal(signal.SIGTERM)
    return json.loads(job.communicate(timeout=rig.WAIT_S)[0])["calls"]


def run(folder):
    honest.own_network()
    programs, jobs = honest.Programs(folder), []
    programs.config(programs.agent, "nccl: {", f"nccl: {{reports: {REPORTS}, ")
    try:
        programs.start()
        begun = time.monotonic()
        jobs = [start(programs, 0, "loud"), start(programs, QUIET_US, "quiet")]
        until("both are followed", lambda: programs.agent.metric("fabrictrace_agent_nccl_jobs") == 2)
        time.sleep(SECONDS)
        calls = [end(job) for job in jobs]
        took_s = time.monotonic() - begun
        programs.settle()
        programs.stop()
        records, events = collections.Counter(), collections.Counter()
        operations = collections.defaultdict(list)
        for r in rig.of_kind(programs.daemon.records(), "collective"):
            records[r["pid"]] += 1
            events[r["pid"]] += r.get("events", 0)
            operations[r["pid"]].append(r.get("operations", 1))
        loud, quiet = (job.pid for job in jobs)
        stage = rig.last_stages(programs.daemon.records(), "fabrictrace-agent")["nccl"]
        dropped = sum(rig.drops(stage).values())
        check(f"{calls[0]} calls of the loud job in {took_s:.1f} s, {records[loud]} records",
              calls[0] > LOUD * REPORTS * SECONDS and 0 < records[loud] <= REPORTS * (took_s + 2), records)
        check(f"of its calls {events[loud]} are in them, and {dropped} are told as dropped",
              events[loud] + dropped == calls[0])
        equal(f"calls of the quiet job in its {records[quiet]} records", events[quiet], calls[1])
        equal("of which none is of several operations", max(operations[quiet], default=0), 1)
        rig.check_balance("of the agent", programs.daemon.records())
    finally:
        for job in jobs:
            job.kill()
        programs.kill()
