# SPDX-License-Identifier: Apache-2.0
"""Runs the daemon over a file of records, and hands its records on one by one."""
import json
import os
import subprocess
from pathlib import Path

WANTED = ('"fabrictrace.path.v1"', '"fabrictrace.link.v1"', '"fabrictrace.event.v1"',
          '"fabrictrace.host.v1"')
HEAD = 40  # characters in which the schema stands


class DaemonError(Exception):
    pass


def find_daemon(build):
    daemon = Path(build, "daemon", "fabrictraced").resolve()
    if not os.access(daemon, os.X_OK):
        raise DaemonError(f"{daemon} is not there: build first, or name the folder with --build")
    return daemon


def run(daemon, topology, observations, out, settings=()):
    """Writes the daemon's records to out. topology None: it has no file."""
    command = [daemon, "-c", os.devnull, "--set", "source_id=fidelity", "--log-level", "error"]
    for setting in settings:
        command += ["--set", setting]
    command += ["--topology", topology] if topology else ["--set", "topology="]
    command += ["--replay", observations, "--sink", "file:-"]
    with open(out, "wb") as output:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=output,
                              stderr=subprocess.PIPE, check=False)
    if done.returncode != 0:
        raise DaemonError(f"fabrictraced ended with {done.returncode}: "
                          f"{done.stderr.decode(errors='replace')[-2000:]}")


def records(path):
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            if any(kind in line[:HEAD] for kind in WANTED):
                yield json.loads(line)
