#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whose clock is off and who loses something is told, from a replay of the lab's records with accounts
of three agents laid between: all is well, one agent's records come with a clock that is shifted, one
agent loses packets."""
import json
import sys

sys.dont_write_bytecode = True
import rig  # noqa: E402
from rig import check, equal, of_kind  # noqa: E402

WINDOW_S = 2
EVERY_MS = 1000
AGENTS = ("gpu01", "gpu02", "gpu03")
POLLER = [rig.POLLER, *rig.NO_CONFIG, "--set", "source_id=golden", "--replay",
          rig.LAB / "sflow.pcap", "--output", "-"]
DAEMON = [rig.DAEMON, *rig.NO_CONFIG, "--set", "source_id=golden", "--set", f"window={WINDOW_S}s",
          "--set", "grace=1s", "--topology", rig.LAB / "topology.yaml", "--replay", "-", "--sink",
          "file:-"]


def account(agent, time_ms, received, lost):
    stage = {"name": "packets", "unit": "packets", "received": received,
             "processed": received - lost, "pending": 0}
    if lost:
        stage["drops"] = [{"reason": "kernel", "count": lost}]
    return {"schema": "fabrictrace.loss.v1", "time_ms": time_ms, "source": agent,
            "program": "fabrictrace-agent", "stages": [stage]}


def replayed(offset_ms=0, lost=lambda second: 0):
    """What the daemon publishes when gpu01's clock is that far ahead, and it lost so many of its
    packets, 1000 a second, by then."""
    lines = []
    next_ms = 0
    second = 0
    for line in rig.run(*POLLER).stdout.splitlines():
        now_ms = json.loads(line).get("last_ms", 0)
        if now_ms >= next_ms:
            next_ms = now_ms + EVERY_MS
            second += 1
            for agent in AGENTS:
                own = agent == AGENTS[0]
                lines.append(json.dumps(account(agent, now_ms + (offset_ms if own else 0),
                                                1000 * second, lost(second) if own else 0)))
        lines.append(line)
    done = rig.run(*DAEMON, input="\n".join(lines) + "\n", stdin=None)
    equal("exit code", done.returncode, 0)
    events = of_kind(rig.records_of(done.stdout), "event")
    return second, [e for e in events if e["kind"] in ("clock_skew", "loss")]


def test_all_is_well(_):
    equal("no event", replayed()[1], [])


def test_a_clock_that_is_behind(_):
    raised = replayed(offset_ms=-40000)[1]
    equal("one event", [(e["kind"], e["subject"]) for e in raised],
          [("clock_skew", "fabrictrace-agent/gpu01")])
    check("by how much", raised and abs(raised[0]["evidence"]["offset_ms"] + 40000) < 2000, raised)


def test_a_burst_of_loss(_):
    seconds, events = replayed(lost=lambda second: 0 if second < 4 else 500)
    equal("raised and cleared", [(e["kind"], e["subject"], e.get("cleared", False)) for e in events],
          [("loss", "fabrictrace-agent/gpu01", False), ("loss", "fabrictrace-agent/gpu01", True)])
    check("the capture is long enough for that", seconds > 8, seconds)
    equal("how many, and why", [(e["evidence"]["count"], e["evidence"]["reason"]) for e in events],
          [(500, "kernel")] * 2)


def test_noise(_):
    equal("no event", replayed(lost=lambda second: 9 * second)[1], [])


if __name__ == "__main__":
    sys.exit(rig.run_tests(test_all_is_well, test_a_clock_that_is_behind, test_a_burst_of_loss,
                           test_noise))
