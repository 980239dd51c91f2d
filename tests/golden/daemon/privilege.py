#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Daemon and poller started by root: by /proc, no thread of theirs keeps a capability, and they
become the user that they are told. Exit code 77 (skipped) without root."""
import os
import pwd
import sys
from pathlib import Path

sys.dont_write_bytecode = True
import rig  # noqa: E402
from rig import check, equal  # noqa: E402

TOPOLOGY = (rig.LAB / "topology.yaml").read_text()
USER = "nobody"


def threads(program):
    """The kernel's view of each."""
    for task in Path(f"/proc/{program.process.pid}/task").iterdir():
        lines = (task / "status").read_text().splitlines()
        yield {key: value.split() for key, value in (line.split(":", 1) for line in lines)}


def look(what, program, user):
    entry = pwd.getpwnam(user)
    seen = list(threads(program))
    for status in seen:
        for field in ("CapEff", "CapPrm", "CapInh", "CapAmb"):
            equal(f"{what}: {field}", int(status[field][0], 16), 0)
        equal(f"{what}: NoNewPrivs", status["NoNewPrivs"], ["1"])
        equal(f"{what}: user", status["Uid"], [str(entry.pw_uid)] * 4)
        equal(f"{what}: group", status["Gid"], [str(entry.pw_gid)] * 4)
    return len(seen)


def test_daemon(folder):
    folder.chmod(0o777)
    for user in ("root", USER):
        daemon = rig.Daemon(folder, TOPOLOGY)
        daemon.out.unlink(missing_ok=True)
        if user != "root":
            daemon.config.write_text(daemon.config.read_text() + f"user: {user}\n")
        daemon.config.chmod(0o644)
        daemon.topology.chmod(0o644)
        try:
            daemon.start()
            look(f"daemon as {user}", daemon, user)
            equal(f"daemon as {user}: its files", daemon.out.stat().st_uid,
                  pwd.getpwnam(user).pw_uid)
            equal("root is told", "running as root" in daemon.log.read_text(), user == "root")
            daemon.hang_up()
            daemon.log_says("reloaded the topology")
            daemon.stop()
        finally:
            daemon.kill()


def test_poller(folder):
    most = int(Path("/proc/sys/net/core/rmem_max").read_text())
    for workers in (1, 2):
        poller = rig.Poller(folder)
        poller.config.write_text(poller.config.read_text().replace(
            "receive_buffer: 4MiB", f"receive_buffer: {4 * most}") + f"user: {USER}\n"
                                 f"workers: {workers}\n")
        poller.config.chmod(0o644)
        try:
            poller.start()
            count = look(f"poller with {workers}", poller, USER)
            check("its threads were looked at", count >= (workers if workers > 1 else 1), count)
            # What the capability was for, was done.
            check("no complaint of it", "receive_buffer: is" not in poller.log.read_text(),
                  poller.log.read_text())
            poller.stop()
        finally:
            poller.kill()


if __name__ == "__main__":
    if os.geteuid() != 0:
        print("skipped: not root")
        sys.exit(77)
    sys.exit(rig.run_tests(test_daemon, test_poller))
