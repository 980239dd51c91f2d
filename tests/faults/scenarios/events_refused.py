# SPDX-License-Identifier: Apache-2.0
"""Events beyond events_max vanished uncounted: nobody knew that there was more to tell."""
import itertools
import json

import kit
from kit import check, data, number, record, until


def loss(source, received, lost):
    return record(kit.LOSS, number(1, 1) + data(2, source) + data(3, "nobody")
                  + data(4, data(1, "stage") + data(2, "records") + number(3, received)
                         + data(6, data(1, "queue_full") + number(2, lost))))


def run(folder):
    daemon = kit.daemon(folder, "events_max: 1\n").start()
    try:
        peer = kit.Peer(daemon.port)
        accounts = itertools.count(1)

        def refused():
            """Five programs lose half of what they get, until windows have closed over it."""
            n = next(accounts)
            peer.send(b"".join(loss(f"s{i}", 1000 * n, 500 * n) for i in range(5)))
            check("the accounts are taken", peer.settled())
            return daemon.metric("fabrictraced_events_refused_total") > 0

        until("refused events are counted", refused)
        findings = json.loads(daemon.get("/api/v1/doctor"))
        check("the doctor tells", "events_max" in json.dumps(findings), findings)
        daemon.stop()
    finally:
        daemon.kill()
