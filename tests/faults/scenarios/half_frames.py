# SPDX-License-Identifier: Apache-2.0
"""1,000 connections that each sent all but the last byte of a frame of 4 MiB took 4 GiB, and the
kernel killed fabrictraced at its unit's limit: each input had a cap, all together had none.

A fifth of that is sent here, while an honest peer goes on."""
import socket
import struct

import kit
from kit import check, data, equal, record, until

CONNECTIONS = 200
PEAK_BYTES = 400 << 20  # a daemon without a flow, and the room for frames


def attack(port, held):
    """Of a name of its own each, or the newer would replace the older."""
    half = struct.pack(">IBQ", kit.FRAME_MAX - 4, kit.DATA, 1) + bytes(kit.FRAME_MAX - 100)
    for i in range(CONNECTIONS):
        peer = kit.Peer(port, f"attacker-{i}")
        peer.socket.settimeout(5)
        try:
            peer.socket.sendall(half)
        except (OSError, socket.timeout):
            pass  # it is not read for now, or was cut off
        held.append(peer)


def run(folder):
    daemon = kit.daemon(folder).start()
    held = []
    try:
        honest = kit.Peer(daemon.port, "honest")
        attack(daemon.port, held)
        for i in range(100):
            honest.send(record(kit.LOSS, kit.number(1, 1) + data(2, f"s{i}") + data(3, "honest")))
        check("what an honest peer sends meanwhile is taken", honest.settled())
        until("who holds too much is cut off",
              lambda: daemon.metric("fabrictraced_connections_crowded_out_total") > 0)
        equal("records", daemon.metric("fabrictraced_records_total"), 100)
        peak = kit.peak_bytes(daemon)
        check(f"peak memory: {peak >> 20} MiB", peak < PEAK_BYTES, peak)
        daemon.stop()
    finally:
        daemon.kill()
        for peer in held:
            peer.close()
