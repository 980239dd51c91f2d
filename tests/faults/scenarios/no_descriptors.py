# SPDX-License-Identifier: Apache-2.0
"""Out of descriptors, the HTTP server tried to accept the waiting connection again and again: a core
at 100 %, and 26 MB of log a second."""
import os
import socket
import time
from pathlib import Path

import kit
from kit import check, until

DESCRIPTORS = 40
SECONDS = 3


def processor_s(program):
    fields = Path(f"/proc/{program.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def run(folder):
    daemon = kit.daemon(folder)
    daemon.command = ["prlimit", f"--nofile={DESCRIPTORS}", *daemon.command]
    daemon.start()
    silent = []
    try:
        for _ in range(2 * DESCRIPTORS):
            silent.append(socket.create_connection(("127.0.0.1", daemon.http)))
        before, log = processor_s(daemon), daemon.log.stat().st_size
        time.sleep(SECONDS)
        used = processor_s(daemon) - before
        check(f"processor time in {SECONDS} s: {used:.2f} s", used < SECONDS / 4, used)
        grown = daemon.log.stat().st_size - log
        check(f"log in {SECONDS} s: {grown} bytes", grown < 1000, grown)
        daemon.log_says("can be accepted: Too many open files")
        for s in silent:
            s.close()
        until("it answers again", daemon.healthy)
        check("failures are counted", daemon.metric("fabrictraced_http_accept_failures_total") > 0)
        daemon.stop()
    finally:
        daemon.kill()
        for s in silent:
            s.close()
