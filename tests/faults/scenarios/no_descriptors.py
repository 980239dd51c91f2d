# SPDX-License-Identifier: Apache-2.0
"""Out of descriptors, the HTTP server tried to accept the waiting connection again and again: a core
at 100 %, and 26 MB of log a second. Each of the three has that server."""
import os
import socket
import time

import honest
import kit
import rig
from kit import check, until

DESCRIPTORS = 40
SECONDS = 3


def use_up(program):
    """Of one program that runs with few."""
    silent = []
    try:
        for _ in range(2 * DESCRIPTORS):
            silent.append(socket.create_connection(("127.0.0.1", program.http)))
        before, log = honest.processor_s(program.process.pid), program.log.stat().st_size
        time.sleep(SECONDS)
        used = honest.processor_s(program.process.pid) - before
        check(f"processor time of {program.name} in {SECONDS} s: {used:.2f} s", used < SECONDS / 4, used)
        grown = program.log.stat().st_size - log
        check(f"log of {program.name} in {SECONDS} s: {grown} bytes", grown < 1000, grown)
        program.log_says("can be accepted: Too many open files")
    finally:
        for s in silent:
            s.close()
    until(f"{program.name} answers again", program.healthy)
    check("failures are counted", program.metric(f"{honest.PREFIX[program.name]}_http_accept_failures_total") > 0)


def run(folder):
    if os.geteuid() != 0:
        raise kit.Skipped("needs root")
    daemon = kit.daemon(folder)
    programs = [daemon, rig.Poller(folder, daemon), rig.Agent(folder, daemon)]
    try:
        for program in programs:
            program.command = ["prlimit", f"--nofile={DESCRIPTORS}", *program.command]
            program.start()
        for program in programs:
            use_up(program)
        for program in reversed(programs):
            program.stop()
    finally:
        for program in programs:
            program.kill()
