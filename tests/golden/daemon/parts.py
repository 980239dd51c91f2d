#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Switches that hash a part of the header alone, as Linux hashes addresses with a key by
default: between few hosts such a hash fits a linear function, however many flows they have. It must not
be called linear, and flows between other hosts, of which no sample comes, must not be predicted wrongly."""
import json
import random
import sys
import tempfile
import zlib
from pathlib import Path

sys.dont_write_bytecode = True
import hashes  # noqa: E402
from fabrics import hosts_first  # noqa: E402
import rig  # noqa: E402
from rig import check, of_kind  # noqa: E402

HOSTS, FLOWS, PAIRS = hashes.HOSTS, 470, 5
ROUNDS = 2
hashes.SECONDS = 20  # of samples


def keyed(part, number):
    return hashes.keyed(bytes([number]) + part)


def summed(d, number):
    """Both addresses added up: the same choice in both directions, linear in the source port alone."""
    return zlib.crc32(bytes([d[2] + d[6], d[3] + d[7]]) + d[8:10], number)


# leaf: (what it computes of the key, whether few pairs of hosts or few ports are seen, whether it is linear).
KINDS = {
    1: (lambda d, n: keyed(d[:8], n), "pairs", False),
    2: (lambda d, n: keyed(d[4:8], n), "pairs", False),
    3: (lambda d, n: keyed(d[:4], n), "pairs", False),
    4: (lambda d, n: keyed(d[8:10], n), "ports", False),
    5: (summed, "pairs", None),
    6: (lambda d, n: zlib.crc32(d[:8], n), "", True),
}


def choices(leaf, rng):
    """((source, destination, port) to be seen, and those that are not)."""
    pairs = [(hashes.address(leaf, a), hashes.address(other, b)) for a in range(1, HOSTS + 1)
             for other in range(1, hashes.LEAVES + 1) if other != leaf for b in range(1, HOSTS + 1)]
    few = rng.sample(pairs, PAIRS) if KINDS[leaf][1] == "pairs" else pairs
    ports = [rng.randint(0xc000, 0xffff) for _ in range(PAIRS)]

    def draw(pairs, among):
        return *rng.choice(pairs), rng.choice(among) if among else rng.randint(0xc000, 0xffff)
    seen, unseen = set(), set()
    while len(seen) < (FLOWS if KINDS[leaf][1] != "ports" else len(pairs) * PAIRS * 3 // 4):
        seen.add(draw(few, ports if KINDS[leaf][1] == "ports" else None))
    while len(unseen) < FLOWS:
        unseen.add(draw(pairs, None))
    return seen, unseen - seen


def report(flow, end_ms):
    leaf, host = flow[0].split(".")[2:]
    return {"schema": "fabrictrace.flow.v1", "time_ms": end_ms, "interval_ms": 4000, "host": f"h{leaf}-{host}",
            "flow": {"src": flow[0], "dst": flow[1], "sport": flow[2], "dport": 4791, "proto": 17},
            "direction": "tx", "tuple_source": "computed", "data_packets": 1000, "bytes": 4096000}


def judge(records):
    last, right, wrong = {}, dict.fromkeys(KINDS, 0), []
    linear = {r["switch"] for r in of_kind(records, "hash") if r["model"] == "linear"}
    for r in of_kind(records, "hash"):
        last[r["switch"]] = r
    for r in of_kind(records, "path"):
        hop = (r.get("likely") or [{}])[0]
        if hop.get("evidence") != "predicted" or not hop.get("out"):
            continue
        flow = r["flow"]["src"], r["flow"]["dst"], r["flow"]["sport"]
        if hop["out"] == f"Ethernet{hashes.path(flow, 0)[0][2]}":
            right[int(flow[0].split(".")[2])] += 1
        else:
            wrong.append((hop, flow))
    for leaf, (_, _, is_linear) in KINDS.items():
        r = last[f"leaf{leaf}"]
        print(f"leaf{leaf}: {r['model']}, {r.get('predicted')} predicted of {r['observations']} flows; "
              f"{right[leaf]} hops without samples right")
        if is_linear is False:
            check(f"leaf{leaf}: a keyed hash is never called linear", f"leaf{leaf}" not in linear, r)
        elif is_linear:
            check(f"leaf{leaf}: a linear one is", r["model"] == "linear", r)
    check("no link is predicted wrongly", not wrong, (len(wrong), wrong[:2]))
    return right


def play(number):
    rng = random.Random(number)
    order = rng.sample(range(hashes.SPINES), hashes.SPINES)
    hashes.HASHES = {leaf: (lambda d, _, f=f: f(d, number), False, order, None) for leaf, (f, _, _) in KINDS.items()}
    seen, unseen = set(), set()
    for leaf in KINDS:
        shown, hidden = choices(leaf, rng)
        seen |= shown
        unseen |= hidden
    end_ms = hashes.START_MS + 1000 * hashes.SECONDS
    lines = [*hashes.samples(sorted(seen)),
             *(report(f, end_ms + 4000 * k) for k in range(2) for f in sorted(unseen))]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "t.yaml"
        file.write_text(hosts_first(hashes.LEAVES, hashes.SPINES, hashes.HOSTS))
        return hashes.replay(file, "".join(json.dumps(r) + "\n" for r in lines))


def main():
    rights = dict.fromkeys(KINDS, 0)
    for number in range(ROUNDS):
        for leaf, right in judge(rig.records_of(play(number))).items():
            rights[leaf] += right
    check("flows between hosts that were seen are predicted", all(rights[leaf] > 0 for leaf in (5, 6)), rights)
    return 1 if rig.failures else 0


if __name__ == "__main__":
    sys.exit(main())
