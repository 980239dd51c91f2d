# SPDX-License-Identifier: Apache-2.0
"""3 MB of loss records, each of a source of its own, kept the daemon's loop for 12 s: once the table
of sources was full, each further one searched all of it for who might give way. Meanwhile nobody was
heard or answered."""
import kit
from kit import check, data, equal, record

SOURCES = 75000
STEP_S = 1.0  # of hundreds that are awaited; a busy machine may take its time


def loss(number):
    return record(kit.LOSS, kit.number(1, 1) + data(2, f"source-{number}") + data(3, "nobody"))


def run(folder):
    daemon = kit.daemon(folder).start()
    try:
        peer = kit.Peer(daemon.port)
        peer.send(b"".join(map(loss, range(SOURCES))))
        check("all is applied", peer.settled())
        equal("records", daemon.metric("fabrictraced_records_total"), SOURCES)
        longest = daemon.metric("fabrictraced_loop_longest_step_seconds")
        check(f"longest step of the loop: {longest:.3f} s", 0 < longest < STEP_S, longest)
        daemon.stop()
    finally:
        daemon.kill()
