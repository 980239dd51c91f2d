# SPDX-License-Identifier: Apache-2.0
"""Out of descriptors, the HTTP server tried to accept the waiting connection again and again: a core
at 100 %, and 26 MB of log a second. Each of the three has that server. So did the agent's socket for NCCL;
here somebody waits at each other socket that connections are taken at, too."""
import os
import socket
import time
from concurrent.futures import ThreadPoolExecutor

import honest
import kit
import rig
from honest import waited
from kit import check, until

DESCRIPTORS = 40
SECONDS = 3


def wanted(program):
    """Processor time that it had, or waited for: on a busy machine who spins gets little of what it wants."""
    return honest.processor_s(program.process.pid) + waited.of_process(program.process.pid)


def knock(where):
    """A connection to a port, or to a path."""
    if isinstance(where, int):
        return socket.create_connection(("127.0.0.1", where))
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.connect(str(where))
    return s


def use_up(program, others):
    """Of one program that runs with few; others: where else it takes connections."""
    silent = []
    try:
        for _ in range(2 * DESCRIPTORS):
            silent.append(knock(program.http))
        silent += [knock(where) for where in others for _ in range(3)]
        before, log = wanted(program), program.log.stat().st_size
        time.sleep(SECONDS)
        used = wanted(program) - before
        check(f"processor time that {program.name} wanted in {SECONDS} s: {used:.2f} s", used < SECONDS / 2, used)
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
    agent = rig.Agent(folder, daemon)
    sockets = [folder / f"{name}.sock" for name in ("nccl", "plan", "probe")]
    agent.config.write_text(agent.config.read_text() + "rdma: {enabled: false}\n" + "".join(
        f"{path.stem}: {{socket: {path}{f', folder: {folder}' if path.stem == 'plan' else ''}}}\n" for path in sockets))
    programs = [daemon, rig.Poller(folder, daemon), agent]
    others = {daemon.name: [daemon.port], agent.name: sockets}
    try:
        for program in programs:
            program.command = ["prlimit", f"--nofile={DESCRIPTORS}", *program.command]
            program.start()
        with ThreadPoolExecutor() as pool:
            for used in [pool.submit(use_up, program, others.get(program.name, [])) for program in programs]:
                used.result()
        for program in reversed(programs):
            program.stop()
    finally:
        for program in programs:
            program.kill()
