#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Switches that hash what a flow's 5-tuple does not say, computed by Python's zlib: the destination queue
pair, or the header of a tunnel around it. A queue pair that is its own in each flow shows, and is said to be
hashed; one that follows from the header in all flows that are seen, or is always the same, must not be
taken for the header's doing: flows to other queue pairs, of which no sample comes, must not be predicted
wrongly. Where queue pairs are no part of the hash flows are predicted whatever theirs are."""
import json
import random
import struct
import sys
import tempfile
import zlib
from pathlib import Path

sys.dont_write_bytecode = True
import hashes  # noqa: E402
from fabrics import hosts_first  # noqa: E402
import parts  # noqa: E402
import rig  # noqa: E402
from rig import check, of_kind  # noqa: E402

FLOWS, ROUNDS = 500, 2
OWN, FOLLOWS, SAME = "own", "follows the source port", "the same"
hashes.SECONDS = 12


def header(flow):
    return hashes.key(flow, 0)[:12]


def with_qp(flow, qp, number):
    return zlib.crc32(header(flow) + struct.pack(">I", qp)[1:], number)


def tunnel(flow, number, entropy):
    """The outer header, whose source port is drawn from the inner one with a key, or is none."""
    ends = bytes(hashes.keyed(a.rpartition(".")[0].encode()) & 0xff for a in flow[:2])
    port = hashes.keyed(header(flow)) & 0x3fff if entropy else 0
    return zlib.crc32(bytes([10, 255, 0, ends[0], 10, 255, 0, ends[1]]) + struct.pack(">HH", port, 4789), number)


# leaf: (what it computes of flow, queue pair and number; which queue pairs flows have that are seen; whether
# it is said to hash queue pairs; whether flows are predicted).
KINDS = {
    1: (with_qp, OWN, True, False),
    2: (lambda f, _, n: zlib.crc32(header(f), n), OWN, False, True),
    3: (with_qp, FOLLOWS, False, False),
    4: (with_qp, SAME, False, False),
    5: (lambda f, _, n: tunnel(f, n, True), OWN, False, False),
    6: (lambda f, _, n: tunnel(f, n, False), OWN, False, None),
}


def leaf_of(flow):
    return int(flow[0].split(".")[2])


def draw(leaf, rng):
    other = rng.choice([x for x in KINDS if x != leaf])
    return (hashes.address(leaf, rng.randint(1, hashes.HOSTS)), hashes.address(other, rng.randint(1, hashes.HOSTS)),
            rng.randint(0xc000, 0xffff))


class Fabric:
    def __init__(self, number):
        self.number, rng = number, random.Random(number)
        self.order = rng.sample(range(hashes.SPINES), hashes.SPINES)
        self.qps, self.seen, self.unseen = {}, [], []
        for leaf, (_, pairs, _, _) in KINDS.items():
            for k in range(2 * FLOWS):
                flow, qp = draw(leaf, rng), rng.randrange(2, 1 << 24)
                if flow in self.qps:
                    continue
                if k < FLOWS and pairs != OWN:
                    qp = flow[2] ^ 0x5a0000 if pairs == FOLLOWS else 0x1234
                self.qps[flow] = qp
                (self.seen if k < FLOWS else self.unseen).append(flow)

    def path(self, flow, _):
        src, dst = (list(map(int, a.split("."))) for a in flow[:2])
        spine = 1 + self.order[KINDS[src[2]][0](flow, self.qps[flow], self.number) % hashes.SPINES]
        return [(f"192.0.2.{src[2]}", src[3], 50 + spine), (f"192.0.2.{100 + spine}", src[2], dst[2]),
                (f"192.0.2.{dst[2]}", 50 + spine, dst[3])]

    def lines(self):
        hashes.path = self.path
        for r in hashes.samples(self.seen):
            flow = r["flow"]["src"], r["flow"]["dst"], r["flow"]["sport"]
            yield {**r, "dst_qp": self.qps[flow], "psn": r["time_ms"] // 1000 * 3000 & 0xffffff, "psn_span": 2000,
                   "psn_back_samples": 0, "message_starts": 1, "frame_min_bytes": 1000, "frame_max_bytes": 1000}
        end_ms = hashes.START_MS + 1000 * hashes.SECONDS
        for k in range(2):
            for flow in self.unseen:
                yield {**parts.report(flow, end_ms + 4000 * k), "qp": {"local": 7, "remote": self.qps[flow]}}


def judge(fabric, records):
    last = {r["switch"]: r for r in of_kind(records, "hash")}
    right, wrong = dict.fromkeys(KINDS, 0), []
    for r in of_kind(records, "path"):
        hop = (r.get("likely") or [{}])[0]
        flow = r["flow"]["src"], r["flow"]["dst"], r["flow"]["sport"]
        if hop.get("evidence") != "predicted" or not hop.get("out"):
            continue
        good = hop["out"] == f"Ethernet{fabric.path(flow, 0)[0][2]}"
        right[leaf_of(flow)] += good
        wrong += [] if good else [(flow, hop)]
    for leaf, (_, pairs, says, predicted) in KINDS.items():
        r = last[f"leaf{leaf}"]
        print(f"leaf{leaf}: {r['model']}, queue pairs {pairs}, hashes_qp {r.get('hashes_qp')}, trusted "
              f"{r.get('trusted')}, {right[leaf]} flows without samples right")
        check(f"leaf{leaf}: whether it hashes queue pairs", bool(r.get("hashes_qp")) == says, r)
        if predicted is not None:
            check(f"leaf{leaf}: whether flows are predicted", (right[leaf] > FLOWS / 2) == predicted, right)
    check("no link is predicted wrongly", not wrong, (len(wrong), wrong[:2]))


def main():
    for number in range(ROUNDS):
        fabric = Fabric(number)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "t.yaml"
            file.write_text(hosts_first(hashes.LEAVES, hashes.SPINES, hashes.HOSTS))
            judge(fabric, rig.records_of(hashes.replay(file, "".join(json.dumps(r) + "\n" for r in fabric.lines()))))
    return 1 if rig.failures else 0


if __name__ == "__main__":
    sys.exit(main())
