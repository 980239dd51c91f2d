#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which header switches hash of flows in VXLAN, from generated samples of a fabric of three tiers: leaves put
flows into tunnels whose source port they draw with a key, and hash the outer header, the flow's own, or one
of them with a key; the tier above hashes the outer one. What is hashed is said, and flows of which a few
samples at the end of their path came are predicted, each as the generator has it, where their tunnel is known;
not those of which hosts alone report, whose tunnel is another one since, or which are in none any more."""
import binascii
import json
import random
import struct
import sys
import tempfile
import zlib
from pathlib import Path

sys.dont_write_bytecode = True
import hashes  # noqa: E402
import rig  # noqa: E402
import tiers  # noqa: E402
from rig import check, equal, of_kind  # noqa: E402

SEEN, UNSEEN = 1250, 60  # flows of a leaf; of each way to show them
SECONDS, AFTER = 6, 16  # of samples; until flows that were not seen end


def bytes_of(header, entry=0):
    src, dst, sport, dport = header
    return bytes(map(int, f"{src}.{dst}".split("."))) + struct.pack(">HHBB", sport, dport, 17, entry)


# pod and leaf: (what it computes of the outer and the own header and the port of entry, whether it is said to
# hash the outer one, the inputs that are certain).
LEAVES = {
    11: (lambda outer, own, _: zlib.crc32(bytes_of(outer), 7), True, {"outer_dst", "outer_sport"}),
    12: (lambda outer, own, _: zlib.crc32(bytes_of(own)) >> 2, False, {"dst", "sport"}),
    21: (lambda outer, own, _: hashes.keyed(bytes_of(outer)), False, set()),
    22: (lambda outer, own, entry: binascii.crc_hqx(bytes_of(outer, entry), 0xffff), True,
         {"outer_dst", "outer_sport", "entry"}),
}


def own(flow):
    return (*flow, 4791)


def tunnel(flow, number=0):
    """The header that the leaf puts around the flow; number: of another one, drawn anew."""
    ends = [f"10.255.{p}.{leaf}" for _, p, leaf, _ in (a.split(".") for a in flow[:2])]
    return (*ends, 0xc000 | hashes.keyed(bytes_of(own(flow), number)) & 0x3fff, 4789)


def leaf_of(flow, end=0):
    return int("".join(flow[end].split(".")[1:3]))


def choice(flow, outer):
    """The truth: which aggregation switch, and which core behind it; outer: None, in no tunnel."""
    header, host = outer or own(flow), int(flow[0].split(".")[3])
    agg = 1 + LEAVES[leaf_of(flow)][0](header, own(flow), host) % tiers.AGGS
    core = 1 + (binascii.crc_hqx(bytes_of(header), 13 * agg) >> 3) % tiers.CORES
    return agg, core


def named(header):
    return {"src": header[0], "dst": header[1], "sport": header[2], "dport": header[3], "proto": 17}


def sample(flow, second, agent, came, went, outer=None):
    at = hashes.START_MS + 1000 * second
    r = {"schema": "fabrictrace.observation.v1", "time_ms": at, "interval_ms": 1000, "first_ms": at + 10,
         "last_ms": at + 990, "agent": agent, "flow": named(own(flow)), "in_ifindex": came, "out_ifindex": went,
         "samples": 3, "packets": 3000, "bytes": 3000000, "data_samples": 3}
    return {**r, "outer": named(outer)} if outer else r


def hops(flow, second, outer):
    """Switches sample what comes in: the first leaf sees the flow as it is before it is in the tunnel."""
    (_, pod, leaf, host), (_, pod2, leaf2, host2) = (list(map(int, a.split("."))) for a in flow[:2])
    agg, core = choice(flow, outer)
    yield sample(flow, second, f"192.0.2.{pod}{leaf}", host, 50 + agg)
    yield sample(flow, second, f"192.0.3.{pod}{agg}", leaf, 50 + core, outer)
    yield sample(flow, second, f"192.0.4.{agg}{core}", pod, pod2, outer)
    yield sample(flow, second, f"192.0.3.{pod2}{agg}", 50 + core, leaf2, outer)
    yield sample(flow, second, f"192.0.2.{pod2}{leaf2}", 50 + agg, host2, outer)


def last_leaf(flow, second, outer):
    """Without the port by which it came in: it may have crossed any switch above."""
    _, pod, leaf, host = flow[1].split(".")
    return sample(flow, second, f"192.0.2.{pod}{leaf}", 0, int(host), outer)


def last_agg(flow, second, outer):
    _, pod, leaf, _ = flow[1].split(".")
    return sample(flow, second, f"192.0.3.{pod}{choice(flow, outer)[0]}", 0, int(leaf), outer)


def report(flow, second):
    _, pod, leaf, host = flow[0].split(".")
    return {"schema": "fabrictrace.flow.v1", "time_ms": hashes.START_MS + 1000 * second, "interval_ms": 2000,
            "host": f"h{pod}{leaf}{host}", "flow": named(own(flow)), "direction": "tx", "tuple_source": "computed",
            "data_packets": 1000, "bytes": 4096000}


# What comes of flows that are not seen at each switch: (records at a second after the others, the tunnel that
# they are in).
WAYS = {
    "last leaf": (lambda f, k: [last_leaf(f, SECONDS + k, tunnel(f))], tunnel),
    "last agg": (lambda f, k: [last_agg(f, SECONDS + k, tunnel(f))], tunnel),
    "host": (lambda f, k: [report(f, SECONDS + k + 1)] if k % 2 else [], tunnel),
    "changed": (lambda f, k: [last_leaf(f, SECONDS + k, tunnel(f, k >= 4))], lambda f: tunnel(f, 1)),
    "gone": (lambda f, k: [last_leaf(f, SECONDS + k, tunnel(f)) if k < 4 else last_agg(f, SECONDS + k, None)],
             lambda f: None),
}


class Flows:
    def __init__(self, rng):
        self.way, self.seen = {}, []
        for leaf in LEAVES:
            drawn = set()
            while len(drawn) < SEEN + UNSEEN * len(WAYS):
                other = f"{3 - leaf // 10}.{rng.randint(1, tiers.LEAVES)}"
                drawn.add((f"10.{leaf // 10}.{leaf % 10}.{rng.randint(1, tiers.HOSTS)}",
                           f"10.{other}.{rng.randint(1, tiers.HOSTS)}", rng.randint(0xc000, 0xffff)))
            drawn = rng.sample(sorted(drawn), len(drawn))
            self.seen += drawn[:SEEN]
            for i, way in enumerate(WAYS):
                self.way.update(dict.fromkeys(drawn[SEEN + UNSEEN * i:SEEN + UNSEEN * (i + 1)], way))

    def lines(self):
        for second in range(SECONDS):
            for flow in self.seen:
                yield from hops(flow, second, tunnel(flow))
        for k in range(AFTER):
            for flow, way in self.way.items():
                yield from WAYS[way][0](flow, k)


def replay(flows):
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "t.yaml"
        file.write_text(tiers.topology())
        done = rig.run(rig.DAEMON, *rig.NO_CONFIG, "--set", "source_id=golden", "--set", "window=5s", "--set",
                       "path_refresh=1s", "--topology", file, "--replay", "-", "--sink", "file:-",
                       input="".join(json.dumps(r) + "\n" for r in flows.lines()), stdin=None)
    equal("exit code", done.returncode, 0)
    return rig.records_of(done.stdout)


def test_said(records):
    last = {r["switch"]: r for r in of_kind(records, "hash")}
    for name, r in sorted(last.items()):
        print(f"{name}: {r['model']}, outer {r.get('hashes_outer')}, accuracy {r.get('accuracy')} of "
              f"{r.get('predicted')}, {r['observations']} flows, {r.get('inputs')}")
    for leaf, (_, outer, inputs) in LEAVES.items():
        r = last[f"leaf{leaf}"]
        equal(f"leaf{leaf}: the outer header", bool(r.get("hashes_outer")), outer)
        equal(f"leaf{leaf}: model", r["model"], "linear" if inputs else "table")
        check(f"leaf{leaf}: what is hashed", set(r.get("inputs", ())) == inputs, r)
        check(f"leaf{leaf}: held out", not inputs or (r["accuracy"] == 1 and r["predicted"] >= 64 and r["trusted"]), r)
    aggs = [r for name, r in last.items() if name.startswith("agg")]
    check("the tier above hashes the outer header", len(aggs) == 2 * tiers.AGGS and
          all(r.get("hashes_outer") and r["trusted"] and r["accuracy"] == 1 for r in aggs), aggs)


def test_paths(records, flows):
    """{way: {(leaf, tier)}} of what was predicted; never wrongly."""
    hits, wrong, late = {way: set() for way in WAYS}, [], hashes.START_MS + 1000 * (SECONDS + 5)
    judged, count = dict.fromkeys(WAYS, 0), dict.fromkeys(WAYS, 0)
    for r in of_kind(records, "path"):
        flow = r["flow"]["src"], r["flow"]["dst"], r["flow"]["sport"]
        way = flows.way.get(flow)
        if not way or (way in ("changed", "gone") and r["time_ms"] < late):
            continue
        judged[way] += 1
        truth = [f"E{50 + n}" for n in choice(flow, WAYS[way][1](flow))]
        for tier, hop in enumerate((r.get("likely") or [])[:2]):
            if hop.get("evidence") == "predicted" and hop.get("out"):
                hits[way].add((leaf_of(flow), tier))
                count[way] += 1
                wrong += [] if hop["out"] == truth[tier] else [(way, flow, hop, truth)]
    print(judged, count)
    check("of all ways there are records", min(judged.values()) >= UNSEEN * len(LEAVES), judged)
    check("no link is predicted wrongly", not wrong, (len(wrong), wrong[:2]))
    by_own = {(12, 0)}
    equal("by the tunnel at the last leaf", hits["last leaf"], {(x, t) for x in (11, 12, 22) for t in (0, 1)})
    equal("by the tunnel at the tier above it", {hit for hit in hits["last agg"] if hit[1]}, {(x, 1) for x in LEAVES})
    equal("where hosts alone report", hits["host"], by_own)
    equal("where the tunnel is another one", hits["changed"], by_own)
    equal("where there is none any more", hits["gone"], set())


def main():
    flows = Flows(random.Random(3))
    records = replay(flows)
    test_said(records)
    test_paths(records, flows)
    return 1 if rig.failures else 0


if __name__ == "__main__":
    sys.exit(main())
