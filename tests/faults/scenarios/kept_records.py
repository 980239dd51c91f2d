# SPDX-License-Identifier: Apache-2.0
"""A thousand records of 4 MiB killed fabrictraced at its 4 GiB: accounts and statuses of 20,000
programs were kept whole, however long they were."""
import kit
from kit import check, data, equal, number, record

RECORDS = 50  # of each of both kinds
PEAK_BYTES = 300 << 20


def long_loss(i):
    return record(kit.LOSS, number(1, 1) + data(2, f"s{i}") + data(3, "nobody")
                  + data(4, data(1, bytes(4190000).replace(b"\0", b"x"))))


def long_status(i):
    return record(kit.HOST_STATUS, number(2, 1000) + data(3, f"s{i}") + data(4, "host")
                  + data(6, b"x" * 100) * 40000)


def run(folder):
    daemon = kit.daemon(folder).start()
    try:
        peer = kit.Peer(daemon.port)
        for i in range(RECORDS):
            peer.send(long_loss(i))
            peer.send(long_status(i))
            check("they are taken", peer.settled())
        refused = [line for line in daemon.get("/metrics").splitlines()
                   if line.startswith('fabrictraced_records_total{fate="invalid"}')]
        equal("refused", int(refused[0].split()[1]), 2 * RECORDS)
        peak = kit.peak_bytes(daemon)
        check(f"peak memory: {peak >> 20} MiB", peak < PEAK_BYTES, peak)
        daemon.stop()
    finally:
        daemon.kill()
