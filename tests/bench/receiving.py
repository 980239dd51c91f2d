#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a datagram costs a receiver that only counts (tests/bench/count): by the datagrams of a system
call, with busy polling and with UDP GRO, in turns; the least of each, since what else the machine does
only ever adds. Offered as fast as the source goes, so that the receiver always has some waiting.

usage: receiving.py [--turns N] [--datagrams N] [--samples N]
Runs in the build folder, as root for the receive buffer."""
import argparse
import os
import signal
import socket
import subprocess
from pathlib import Path

COUNT, FLOOD = Path("tests/bench/count").resolve(), Path("tests/bench/flood").resolve()
VARIANTS = {"8 a call": ["8"], "32 a call": ["32"], "64 a call": ["64"], "256 a call": ["256"],
            "1024 a call": ["1024"], "32, busy polling 50 us": ["32", "50"], "32, GRO": ["32", "0", "gro"]}


def free_port():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def turn(options):
    """(datagrams received, messages dropped, CPU seconds, messages taken)"""
    port = str(free_port())
    with subprocess.Popen(["taskset", "-c", "0", COUNT, port, str(4 << 20), *options], text=True,
                          stdout=subprocess.PIPE) as count:
        count.stdout.readline()
        subprocess.run(["taskset", "-c", "1", FLOOD, "-n", str(ARGS.datagrams), "-s", str(ARGS.samples),
                        "-p", port], check=True, stdout=subprocess.DEVNULL)
        count.send_signal(signal.SIGTERM)
        received, dropped, used, taken = count.stdout.read().split()
    return int(received), int(dropped), float(used), int(taken)


def main():
    best, merged = {}, {}
    for _ in range(ARGS.turns):
        for name, options in VARIANTS.items():
            received, dropped, used, taken = turn(options)
            # What the kernel drops of merged ones it counts once.
            if taken == received and received + dropped != ARGS.datagrams:
                raise SystemExit(f"receiving.py: {name}: sent {ARGS.datagrams}, received {received}, "
                                 f"dropped {dropped}")
            best.setdefault(name, []).append(used / received * 1e6)
            merged[name] = received / taken
    for name, figures in best.items():
        print(f"{name:24} {min(figures):.3f} us a datagram at least, {sorted(figures)[len(figures) // 2]:.3f} "
              f"in the middle of {len(figures)}; {merged[name]:.2f} datagrams a message", flush=True)


if __name__ == "__main__":
    os.environ.setdefault("LC_ALL", "C")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=8)
    parser.add_argument("--datagrams", type=int, default=400000)
    parser.add_argument("--samples", type=int, default=6)
    ARGS = parser.parse_args()
    main()
