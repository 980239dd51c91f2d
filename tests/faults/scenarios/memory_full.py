# SPDX-License-Identifier: Apache-2.0
"""The standard caps of fabrictraced's tables, connections and answers came to more than the 4 GiB of
its unit: whoever filled them all had the kernel kill it.

Here every table of a small budget is filled over its cap, by flows that are seen at many places,
made-up switches, hosts, jobs and programs."""
import json
import re
import time

import kit
from kit import check, data, number, record

MEMORY = 512 << 20
PLACES = 5  # of a flow: its list of sightings grows twice
QUEUE_PAIRS = 12
PAYLOAD = 100000  # bytes: none is late when it is sent


def wall_ms():
    return int(time.time() * 1000)


def caps(daemon):
    """{what: cap} of the budget."""
    done = kit.rig.run(kit.rig.DAEMON, "--check", "-c", daemon.config)
    found = (re.match(r"(.{22}) .{24} +(\d+) ", line) for line in done.stdout.splitlines())
    return {m[1].strip(): int(m[2]) for m in found if m}


def address(net, n):
    return bytes([net, n >> 16 & 255, n >> 8 & 255, n & 255])


def observations(count):
    for i in range(count):
        now_ms = wall_ms()
        flow = data(6, data(1, address(11, i)) + data(2, address(12, i)) + number(3, 49152)
                    + number(4, 4791) + number(5, 17))
        for place in range(PLACES):
            yield record(kit.OBSERVATION, number(1, now_ms) + number(2, 1000) + number(3, now_ms)
                         + number(4, now_ms) + data(5, address(13, place)) + flow
                         + number(7, place + 1) + number(8, i % 1000 + 1) + number(12, 1)
                         + number(13, 100) + number(14, 100000))


def reports(count):
    for i in range(count):
        yield record(kit.FLOW, number(1, wall_ms()) + number(2, 1000) + data(4, f"made-up{i}")
                     + data(6, data(1, address(11, i)) + data(2, address(12, i))
                            + number(3, 49152) + number(4, 4791) + number(5, 17))
                     + number(7, 1) + number(12, 1000))


def counters(count):
    for i in range(count):
        yield record(kit.COUNTERS, number(1, wall_ms()) + data(2, address(14, i // 64))
                     + number(3, i % 64 + 1) + number(5, 1) + number(8, 1) + number(9, 1))


def switches(count):
    """As many ports, 128 a switch, each with a neighbour."""
    for i in range(count // 128 + 1):
        ports = b"".join(data(11, number(1, p) + data(2, f"Ethernet{p}") + data(3, "x" * 40)
                              + data(4, "02:00:00:00:00:01") + number(6, 1)) for p in range(1, 129))
        rows = b"".join(data(12, number(1, p) + number(2, 1) + data(3, f"{i:06x}{p:06x}")
                             + number(4, 1) + data(5, f"Ethernet{p}") + data(7, "y" * 40))
                        for p in range(1, 129))
        yield record(kit.SWITCH_REPORT, number(1, wall_ms()) + number(2, 30000)
                     + data(3, address(15, i)) + data(5, f"switch{i}") + number(9, 1)
                     + number(10, 1) + ports + rows)


def programs(count):
    stages = b"".join(data(4, data(1, f"stage-{i}") + data(2, "records") + number(3, 1000)
                           + data(6, data(1, "queue_full") + number(2, 500))) for i in range(8))
    for i in range(count):
        name = f"made-up{i}"
        yield record(kit.LOSS, number(1, wall_ms()) + data(2, name) + data(3, "agent") + stages)
        yield record(kit.HOST_STATUS, number(1, wall_ms()) + number(2, 10000) + data(3, name)
                     + data(4, name) + data(6, "x" * 200) * 20)
        for port in range(16):
            yield record(kit.HOST, number(1, wall_ms()) + number(2, 10000) + data(3, name)
                         + data(4, name) + data(5, f"mlx5_{port}") + number(6, 1))


def jobs(count):
    for i in range(count):
        comm = f"{i // 8:016x}"
        yield record(kit.COMMUNICATOR, number(1, wall_ms()) + data(3, f"host{i}") + number(4, i + 1)
                     + data(6, comm) + number(8, i % 8) + number(9, 8))
        peers = b"".join(data(24, number(1, p) + number(5, 1) + number(3, 1) + number(10, i * 8 + p))
                         for p in range(8))
        yield record(kit.COLLECTIVE, number(1, wall_ms()) + data(4, f"host{i}") + number(5, i + 1)
                     + data(7, comm) + number(8, i % 8) + number(9, 8) + data(10, "AlltoAll")
                     + peers)


def queue_pairs(count):
    for i in range(count // 64 + 1):
        pairs = b"".join(data(11, number(1, i * 64 + q) + number(2, 7 * q + 1) + data(3, "rts")
                              + number(10, i * 64 + q + 1)
                              + number(13, wall_ms())) for q in range(64))
        yield record(QUEUE_PAIRS, number(1, wall_ms()) + number(2, 10000) + data(3, f"host{i}")
                     + data(4, f"host{i}") + data(5, "mlx5_0") + number(6, 1)
                     + data(10, address(16, i)) + pairs + number(12, 64))


def refused(daemon):
    line = [line for line in daemon.get("/metrics").splitlines()
            if line.startswith('fabrictraced_records_total{fate="table_full"}')][0]
    return int(line.split()[1])


def run(folder):
    daemon = kit.daemon(folder, f"memory_max: {MEMORY}\n")
    cap = caps(daemon)
    check("caps are known", len(cap) > 10, cap)
    daemon.start()
    peers = []
    try:
        peers = [kit.Peer(daemon.port, f"peer{i}") for i in range(100)]
        for what, make in (("flows", observations), ("flows", reports),
                           ("counters of ports", counters), ("ports of switches", switches),
                           ("programs", programs), ("ranks", jobs), ("queue pairs", queue_pairs)):
            before = refused(daemon)
            for payload in kit.batches(make(cap[what] * 5 // 4), PAYLOAD):
                peers[0].send(payload)
                check(f"{what}: taken", peers[0].settled())
            found = refused(daemon) - before
            check(f"{what}, {make.__name__}: some found no room", found > 0, found)
        kit.until("windows close", lambda: daemon.metric("fabrictraced_windows_total") > 1)
        for path in ("links", "matrix", "qps", "loss", "topology", "paths"):
            daemon.get(f"/api/v1/{path}")
        peak = kit.peak_bytes(daemon)
        check(f"peak memory: {peak >> 20} MiB of {MEMORY >> 20}", peak < MEMORY, peak)
        told = json.loads(daemon.get("/api/v1/doctor"))
        check("the doctor tells", "found no room in a table" in json.dumps(told), told)
        daemon.stop()
    finally:
        daemon.kill()
        for peer in peers:
            peer.close()
