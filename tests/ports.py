# SPDX-License-Identifier: Apache-2.0
"""Ports for servers that a test starts, where the server cannot choose one and tell.

A port that bind(0) gave is anybody's once the socket is closed: the next connection out of this
machine may take it, and so may another test. These lie below the range of connections, and a name
in the abstract socket namespace keeps each for this process as long as it lives."""
import random
import socket
from pathlib import Path

LOWEST = 10000

held = []


def candidates():
    try:
        first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    except (OSError, ValueError):
        first = 32768
    ports = list(range(LOWEST, first) if first > LOWEST + 1000 else range(LOWEST, 65536))
    random.SystemRandom().shuffle(ports)
    return ports


def free_port(kind=socket.SOCK_STREAM, address="127.0.0.1"):
    for port in candidates():
        name = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            name.bind(f"\0fabrictrace-test-port-{port}")
            with socket.socket(socket.AF_INET, kind) as s:
                s.bind((address, port))
        except OSError:
            name.close()
            continue
        held.append(name)
        return port
    raise OSError("no free port")
