#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A leaf with more equal-cost links than a hash is learnt of, from the wire (sampled.py) to a live poller and daemon:
the hops of its flows are counted, and the doctor says what is not done. With as many as are learnt neither is."""
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
import rig  # noqa: E402
from rig import check, equal, run_tests, until  # noqa: E402
import sampled  # noqa: E402
import sprayed  # noqa: E402

MOST, FLOWS, ROUNDS = 128, 40, 400


def payloads():
    """Round after round, each flow is sampled at each switch."""
    out = sampled.Capture()
    for turn in range(ROUNDS):
        for n in range(FLOWS):
            flow = sprayed.World.flow(1 + n % sprayed.HOSTS, 50000 + n)
            spine, host, frame = n * 7 % sprayed.SPINES, flow[0][3], sampled.header(flow, turn)
            for hop in ((1, host, 100 + spine), (100 + spine, 1, 2), (2, 100 + spine, host)):
                out.add(turn * 1000000, *hop, frame)
    rounds = {}
    for at_us, *_, payload in out.payloads():
        rounds.setdefault(at_us // 1000000, []).append(payload)
    return iter(rounds.values())


def look(folder, spines):
    """What is counted, and what the doctor says of it."""
    sprayed.SPINES = spines
    daemon = rig.Daemon(folder, sprayed.World.topology()).start()
    poller = rig.Poller(folder, daemon).start()
    rounds = payloads()

    def learnt():
        for payload in next(rounds, ()):
            poller.send(payload)
        return daemon.metric("fabrictraced_hash_sets") or daemon.metric("fabrictraced_hash_wide_hops_total")
    try:
        until("flows are learnt from, or are not", learnt)
        return (daemon.metric("fabrictraced_hash_wide_hops_total"), daemon.metric("fabrictraced_hash_sets"),
                "more than 128 equal-cost links" in daemon.get("/api/v1/doctor"))
    finally:
        poller.stop()
        daemon.stop()


def test_more(folder):
    wide, sets, said = look(folder, MOST + 1)
    check("hops are counted", wide > 0, wide)
    equal("nothing is learnt", sets, 0)
    check("the doctor says so", said)


def test_as_many(folder):
    wide, sets, said = look(folder, MOST)
    equal("no hop is counted, and nothing is said", (wide, said), (0, False))
    check("they are learnt from", sets > 0, sets)


if __name__ == "__main__":
    sys.exit(run_tests(test_more, test_as_many))
