#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a second receiving thread of fabrictrace-switchpoll brings.

The poller is stopped while a source fills the buffers of its sockets, and then goes on: how fast it
empties them with one thread and with two, in turns. Nothing else of ours runs meanwhile, so that two
cores are enough, and both threads have all their work from the start. Told are datagrams by the
clock, and by the processor time of the thread that used most: what other programs on the machine
take is not in that. The best turn of each counts, since they only ever add.

usage: workers.py [TURNS [DATAGRAMS]]    in the build folder; root, for the size of the buffer"""
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
import ports  # noqa: E402

FLOOD = Path("tests/bench/flood").resolve()
POLLER = Path("switchpoll/fabrictrace-switchpoll").resolve()
BUFFER = 512 << 20
WAIT_S = 60


def sockets(port):
    """(bytes waiting, datagrams dropped) of each socket bound to port."""
    found = []
    for line in Path("/proc/net/udp").read_text(encoding="ascii").splitlines()[1:]:
        field = line.split()
        if int(field[1].rsplit(":", 1)[1], 16) == port:
            found.append((int(field[4].split(":")[1], 16), int(field[-1])))
    return found


def until(condition):
    end = time.monotonic() + WAIT_S
    while not condition():
        if time.monotonic() > end:
            sys.exit("the poller does not get on")
        time.sleep(0.0005)


def busiest_s(pid):
    """Processor time of the thread that used most."""
    return max(int((task / "schedstat").read_text().split()[0]) for task in Path(f"/proc/{pid}/task").iterdir()) / 1e9


def turn(threads, datagrams, folder):
    """Datagrams a second, by the clock and by processor time."""
    port = ports.free_port(socket.SOCK_DGRAM)
    config = folder / "poller.yaml"
    config.write_text(f'listen: "127.0.0.1:{port}"\nhttp: "off"\nreceive_buffer: {BUFFER}\n'
                      f'workers: {threads}\nlog.level: error\n', encoding="ascii")
    poller = subprocess.Popen([POLLER, "-c", config, "--output", "/dev/null"], stdin=subprocess.DEVNULL)
    try:
        until(lambda: len(sockets(port)) == threads)
        time.sleep(0.2)  # its threads read
        poller.send_signal(signal.SIGSTOP)
        subprocess.run([FLOOD, "-n", str(datagrams), "-p", str(port)], check=True, stdout=subprocess.DEVNULL)
        waiting = sockets(port)
        began, used_s = time.monotonic(), busiest_s(poller.pid)
        poller.send_signal(signal.SIGCONT)
        until(lambda: not any(bytes for bytes, _ in sockets(port)))
        seconds = time.monotonic() - began
        used_s = busiest_s(poller.pid) - used_s
    finally:
        poller.kill()
        poller.wait()
    if any(dropped for _, dropped in waiting):
        sys.exit("the buffers are too small: fewer DATAGRAMS")
    return datagrams / seconds, datagrams / used_s, min(waiting)[0] / max(waiting)[0]


def main():
    turns, datagrams = (int(text) for text in (sys.argv[1:] + ["20", "100000"][len(sys.argv) - 1:]))
    best = {1: (0, 0), 2: (0, 0)}
    with tempfile.TemporaryDirectory() as name:
        for _ in range(turns):
            for threads in best:
                clock, used, even = turn(threads, datagrams, Path(name))
                best[threads] = (max(best[threads][0], clock), max(best[threads][1], used))
                print(f"{threads} thread{'s' * (threads > 1)}: {clock:9.0f}/s by the clock, {used:9.0f}/s by processor "
                      f"time (the emptier socket had {even:.2f} of the fuller)", flush=True)
    print(f"WORKERS two receiving threads take {best[2][0] / best[1][0]:.2f} x what one takes by the clock "
          f"({best[2][0]:.0f}/s and {best[1][0]:.0f}/s), {best[2][1] / best[1][1]:.2f} x by processor time "
          f"({best[2][1]:.0f}/s and {best[1][1]:.0f}/s)")


if os.geteuid() != 0:
    sys.exit("SKIP: needs root, for the size of the buffers")
main()
