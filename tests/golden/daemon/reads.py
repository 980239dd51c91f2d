#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Numbers of packets that READs take: the responses to a READ have numbers of who asked. A flow whose
packets do not have all numbers of its row is counted, and only such a flow."""
import json
import os
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
import rig  # noqa: E402
from rig import check, equal, of_kind  # noqa: E402

START_MS, SECONDS = 1700000000000, 60
SAMPLES, ONE_IN, FRAME = 10, 1000, 4170  # a second
TAKEN = 1.1  # numbers for each packet, where READs take some

TOPOLOGY = """fabric: small
switches:
  - {name: leaf1, addresses: [192.0.2.1], ports: [{ifindex: 1, name: Ethernet1}, {ifindex: 2, name: Ethernet2}]}
hosts:
  - {name: h1, nics: [{addresses: [10.0.1.1], attach: [{switch: leaf1, port: Ethernet1}]}]}
  - {name: h2, nics: [{addresses: [10.0.1.2], attach: [{switch: leaf1, port: Ethernet2}]}]}
"""
WRITE, ANSWER, READ = {}, {"read_responses": True}, {"read_requests": True}
# What a flow is sampled as, its numbers for each packet, the samples of its reverse, and what its
# rate is known by.
FLOWS = {
    50001: (WRITE, 1, None, "psn"),
    50002: (WRITE, 1, WRITE, "psn"),
    50003: (WRITE, TAKEN, ANSWER, "sflow"),
    50004: (ANSWER, 1, READ, "psn"),
    50005: (ANSWER, TAKEN, WRITE, "sflow"),
    50006: (WRITE, TAKEN, None, "sflow"),  # READs, sampled once
}


def observation(second, sport, back, **members):
    at = START_MS + 1000 * second
    ends = ("10.0.1.2", "10.0.1.1") if back else ("10.0.1.1", "10.0.1.2")
    n = members["samples"]
    return {"schema": "fabrictrace.observation.v1", "time_ms": at, "interval_ms": 1000,
            "first_ms": at + 50, "last_ms": at + 950, "agent": "192.0.2.1",
            "flow": {"src": ends[0], "dst": ends[1], "sport": sport, "dport": 4791, "proto": 17},
            "in_ifindex": 1 + back, "out_ifindex": 2 - back, "packets": ONE_IN * n,
            "dst_qp": 7, **members}


def data(second, numbers, samples, kind):
    sent = round(numbers * samples * ONE_IN)
    return {"samples": samples, "bytes": FRAME * ONE_IN * samples, "data_samples": samples,
            "psn": second * sent & 0xffffff, "psn_span": round(0.9 * sent), "psn_back_samples": 0,
            "message_starts": 0, "frame_min_bytes": FRAME, "frame_max_bytes": FRAME, **kind}


def request():
    return {"samples": 1, "bytes": 90 * ONE_IN, "ack_samples": 1, **READ}


def generate():
    for second in range(SECONDS):
        for sport, (kind, numbers, reverse, _) in FLOWS.items():
            yield observation(second, sport, False, **data(second, numbers, SAMPLES, kind))
            if reverse is READ:
                yield observation(second, sport, True, **request())
            elif reverse is not None:
                yield observation(second, sport, True, **data(second, TAKEN, 1, reverse))
        if second == 1:
            yield observation(second, 50006, False, **request())


def main():
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "t.yaml"
        file.write_text(TOPOLOGY)
        done = rig.run(rig.DAEMON, "-c", os.devnull, *rig.TRUST, "--set", "source_id=golden", "--set",
                       "path_refresh=10s", "--topology", file, "--replay", "-", "--sink", "file:-",
                       input="".join(json.dumps(r) + "\n" for r in generate()), stdin=None)
    equal("exit code", done.returncode, 0)
    told = {}
    for r in of_kind(rig.records_of(done.stdout), "path"):
        if r["flow"]["src"] == "10.0.1.1" and "rate_source" in r:
            told.setdefault(r["flow"]["sport"], []).append(r)
    for sport, (_, _, _, source) in FLOWS.items():
        records = told.get(sport, [])
        check(f"{sport}: told", len(records) > 2, len(records))
        equal(f"{sport}: its rate is known by", {r["rate_source"] for r in records}, {source})
        for r in records:
            rate = SAMPLES * ONE_IN * FRAME * 8
            check(f"{sport}: its rate at {r['window_start_ms'] - START_MS}",
                  r["rate_lo_bps"] <= rate <= r["rate_hi_bps"], (r["rate_lo_bps"], r["rate_hi_bps"]))
    return 1 if rig.failures else 0


if __name__ == "__main__":
    sys.exit(main())
