#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A group of daemons finds what one daemon finds: the flows of a generated fabric among 1, 2 and 4
members by their partitions, whose partial loads the aggregator sums. In virtual time, without Kafka;
the partition of a flow is computed here too. Also a member that says nothing, and hostile sums."""
import functools
import json
import math
import random
import sys
from collections import Counter
from ipaddress import ip_address
from pathlib import Path

sys.dont_write_bytecode = True
TESTS = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(Path(__file__).resolve().parent), str(TESTS / "fidelity")]
from fabrics import hosts_first  # noqa: E402
from paper.cases import Run  # noqa: E402
from rig import DAEMON, NO_CONFIG, TRUST, check, equal, of_kind, records_of, run, run_tests  # noqa: E402

PARTITIONS = 8
FLOWS, SECONDS = 400, 60
M32 = 0xffffffff


def murmur2(data):
    """As org.apache.kafka.common.utils.Utils has it."""
    length, m = len(data), 0x5bd1e995
    h = 0x9747b28c ^ length
    for i in range(0, length // 4 * 4, 4):
        k = int.from_bytes(data[i:i + 4], "little") * m & M32
        h = (h * m & M32) ^ ((k ^ k >> 24) * m & M32)
    tail = data[length // 4 * 4:]
    for i in reversed(range(len(tail))):
        h ^= tail[i] << 8 * i
    if tail:
        h = h * m & M32
    h = (h ^ h >> 13) * m & M32
    return h ^ h >> 15


def mapped(text):
    address = ip_address(text)
    return address.packed if address.version == 6 else b"\0" * 10 + b"\xff\xff" + address.packed


def partition_of(flow):
    key = mapped(flow["src"]) + mapped(flow["dst"]) + flow["sport"].to_bytes(2, "big") + \
        flow["dport"].to_bytes(2, "big") + bytes([flow["proto"]])
    return (murmur2(key) & 0x7fffffff) % PARTITIONS


class Traffic(list):
    """Records that several daemons are given: their text is made once."""

    @functools.cached_property
    def text(self):
        return "".join(json.dumps(r) + "\n" for r in self)


def replay(folder, name, records, *settings):
    file = folder / f"{name}.in"
    file.write_text(Traffic(records).text if type(records) is list else records.text)
    done = run(DAEMON, *NO_CONFIG, "--topology", folder / "topology.yaml", "--replay", file, "--sink",
               "file:-", *TRUST, "--set", f"source_id={name}", "--set", f"kafka.partitions={PARTITIONS}",
               *(word for s in settings for word in ("--set", s)))
    equal(f"{name}: exit code", (done.returncode, done.stderr), (0, ""))
    return records_of(done.stdout)


def record(folder, case="steady3", seed=1):
    traffic = Run(case, seed, FLOWS, SECONDS)
    (folder / "topology.yaml").write_text(traffic.fabric.yaml())
    with open(folder / "raw", "w", encoding="utf-8") as out:
        traffic.write(out)
    return Traffic(r for r in records_of((folder / "raw").read_text())
                   if r["schema"] in ("fabrictrace.observation.v1", "fabrictrace.host.v1"))


def member(folder, traffic, name, partitions):
    """Gets all flows: it takes its own."""
    return replay(folder, name, traffic, "group.role=member",
                  f"group.partitions=[{', '.join(partitions)}]")


def aggregate(folder, name, partials):
    partials = sorted(partials, key=lambda r: r["window_start_ms"])
    return replay(folder, name, partials, "group.role=aggregator")


def bag(records):
    return Counter(json.dumps(r, sort_keys=True) for r in records)


def same(a, b):
    """Figures have six digits; sums of parts in another order differ in the last."""
    if isinstance(a, float) or isinstance(b, float):
        return math.isclose(a, b, rel_tol=2e-6, abs_tol=1e-9)
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(same, a, b))
    return a == b


def by_name(records):
    return {(r["window_start_ms"], r.get("switch"), r.get("port"), r.get("scope"), r.get("name")): r
            for r in records}


def compare(what, kind, alone, group):
    a, b = (by_name(of_kind(records, kind)) for records in (alone, group))
    check(f"{what}: {len(a)} {kind} records", a and a.keys() == b.keys(),
          (len(a), len(b), sorted(map(str, a.keys() ^ b.keys()))[:4]))
    wrong = [(a[k], b[k]) for k in a if k in b and not same(a[k], b[k])]
    check(f"{what}: each {kind} record is the same", not wrong, (len(wrong), wrong[:1]))


def test_group(folder):
    traffic = record(folder)
    alone = replay(folder, "alone", traffic)
    paths = of_kind(alone, "path")
    check("paths enough to tell", len(paths) > FLOWS, len(paths))
    check("flows are in all partitions",
          {partition_of(r["flow"]) for r in paths} == set(range(PARTITIONS)))
    for name, shares in {"one": ["0-7"], "two": ["0-3", "4-7"],
                         "four": ["0-1", "2-3", "4", "5-7"]}.items():
        said = [member(folder, traffic, f"{name}{i}", [share]) for i, share in enumerate(shares)]
        for share, records in zip(shares, said):
            first, _, last = share.partition("-")
            own = range(int(first), int(last or first) + 1)
            check(f"{name}: a member with {share} has the flows of its partitions alone",
                  all(partition_of(r["flow"]) in own for r in of_kind(records, "path")))
        got = bag(r for records in said for r in of_kind(records, "path"))
        check(f"{name}: {sum(got.values())} path records, as alone", got == bag(paths),
              (list((got - bag(paths)).items())[:1], list((bag(paths) - got).items())[:1]))
        check(f"{name}: members compute no figures",
              not any(of_kind(records, kind) for records in said for kind in ("link", "imbalance")))
        whole = aggregate(folder, f"sum-{name}",
                          [r for records in said for r in of_kind(records, "partial")])
        compare(name, "link", alone, whole)
        compare(name, "imbalance", alone, whole)
        collisions = [[r for r in of_kind(records, "event") if r["kind"] == "collision"]
                      for records in (alone, whole)]
        compare_events(name, *collisions)


def compare_events(name, alone, group):
    plain = [sorted((r["subject"], r["time_ms"], r["message"], bool(r.get("cleared")),
                     tuple(sorted(json.dumps(v["flow"], sort_keys=True)
                                  for v in r.get("evidence", {}).get("victims", ()))))
                    for r in records) for records in (alone, group)]
    equal(f"{name}: {len(alone)} collisions", plain[1], plain[0])


def test_missing(folder):
    """A member that is silent for two windows, and one that speaks for a partition of another."""
    traffic = record(folder)
    said = [of_kind(member(folder, traffic, f"m{i}", [share]), "partial")
            for i, share in enumerate(("0-3", "4-7"))]
    windows = sorted({r["window_start_ms"] for r in said[0]})
    check("windows enough to tell", len(windows) > 4, windows)
    silent = windows[1:3]
    whole = of_kind(aggregate(folder, "all", said[0] + said[1]), "imbalance")
    part = of_kind(aggregate(folder, "part", said[0] + [
        r for r in said[1] if r["window_start_ms"] not in silent]), "imbalance")
    for r in part:
        missing = r.get("missing_partitions", [])
        if r["window_start_ms"] in silent:
            if not (missing == [4, 5, 6, 7] and r["partial"]):
                check("what is missing is said", False, r)
        elif missing:
            check("nothing is missing elsewhere", False, r)
    marked = {r["window_start_ms"] for r in part if r.get("missing_partitions")}
    equal("windows that say what they miss", sorted(marked), silent)
    a, b = (by_name(r for r in records if r["window_start_ms"] not in silent)
            for records in (whole, part))
    check("the others are as with all", a and a.keys() == b.keys() and all(same(a[k], b[k])
                                                                           for k in a))
    double = [dict(r, source="other") for r in said[1]]
    late = of_kind(aggregate(folder, "double", said[0] + said[1] + double + said[0]), "imbalance")
    check("what is said twice counts once", bag(late) == bag(whole))
    hostile = [dict(r, source="evil", links=[dict(link, bytes_rest=-1e300) for link in r.get("links", [])])
               for r in said[1]]
    late = of_kind(aggregate(folder, "hostile", hostile + said[0] + said[1]), "imbalance")
    check("sums that cannot be are not taken", bag(late) == bag(whole))


def test_late(folder):
    """What comes again when its window is closed shows as with one daemon, also where that is one member's."""
    traffic = record(folder)
    flows = [r for r in traffic if r["schema"] == "fabrictrace.observation.v1"]
    begin, end = (f(r["time_ms"] for r in flows) for f in (min, max))
    old = [r for r in flows if r["time_ms"] < begin + 5000]
    at = next(i for i, r in enumerate(traffic) if r.get("time_ms", 0) > (begin + end) // 2)
    for name, late in {"both": old, "first": [r for r in old if partition_of(r["flow"]) < 4]}.items():
        mixed = Traffic(traffic[:at] + late + traffic[at:])
        alone = replay(folder, f"{name}-alone", mixed)
        said = [of_kind(member(folder, mixed, f"{name}{i}", [share]), "partial")
                for i, share in enumerate(("0-3", "4-7"))]
        marked = {r["seen_share"] for r in of_kind(alone, "imbalance") if "seen_share" in r}
        check(f"late, {name}: one window says that not all was seen", len(marked) == 1
              and 0.2 < min(marked) < 0.95, marked)
        compare(f"late, {name}", "imbalance", alone, aggregate(folder, f"{name}-sum", said[0] + said[1]))
        before = [{k: v for k, v in r.items() if not k.startswith("observations")} for r in said[1]]
        sums = of_kind(aggregate(folder, f"{name}-before", said[0] + before), "imbalance")
        check(f"late, {name}: what an earlier member does not say is not whole",
              sums and all(r["unaccounted_partitions"] == [4, 5, 6, 7] and not r.get("partial") for r in sums))


def falling_silent(samples):
    """A leaf takes so many samples a second, of 200 flows, and none for four seconds."""
    rng, begin = random.Random(1), 1700000000000
    flows = [{"src": f"10.0.1.{rng.randint(1, 3)}", "dst": f"10.0.2.{rng.randint(1, 3)}", "sport": 50000 + i,
              "dport": 4791, "proto": 17} for i in range(200)]
    for second in range(40):
        for agent in ("192.0.2.1", "192.0.2.101", "192.0.2.2"):
            for flow in rng.sample(flows, samples) if agent != "192.0.2.1" or second not in range(12, 16) else ():
                src, dst = (int(flow[end][-1]) for end in ("src", "dst"))
                came, went = {"192.0.2.1": (src, 51), "192.0.2.101": (1, 2), "192.0.2.2": (51, dst)}[agent]
                at = begin + 1000 * second
                yield {"schema": "fabrictrace.observation.v1", "time_ms": at, "interval_ms": 1000, "first_ms": at + 10,
                       "last_ms": at + 990, "agent": agent, "flow": flow, "in_ifindex": came, "out_ifindex": went,
                       "samples": 1, "packets": 1000, "bytes": 1000000, "data_samples": 1}


def test_outage(folder):
    """A switch that was silent for a part of a window: each member sees it by its own samples. Of 20 in a second it
    does as one daemon does; of fewer, what flows carried is not corrected for it, and that alone is another."""
    (folder / "topology.yaml").write_text(hosts_first(2, 2, 3))
    for samples, corrected in ((120, True), (60, False)):
        traffic = Traffic(falling_silent(samples))
        alone = of_kind(replay(folder, f"silent{samples}", traffic), "path")
        said = [r for i, share in enumerate(("0-1", "2-3", "4-5", "6-7"))
                for r in of_kind(member(folder, traffic, f"s{samples}-{i}", [share]), "path")]
        check(f"{samples} samples a second: {len(alone)} path records, the same but for volumes",
              len(alone) > 100 and bag(map(without_volume, alone)) == bag(map(without_volume, said)))
        differ = sum((bag(alone) - bag(said)).values())
        print(f"{samples} samples a second of the switch, 4 members: {differ} of {len(alone)} records differ so")
        check(f"{samples} samples a second: whether volumes are those of one daemon", (differ == 0) == corrected,
              differ)


def without_volume(record):
    return {k: v for k, v in record.items() if k not in ("bytes", "rate_bps", "rate_lo_bps", "rate_hi_bps")}


if __name__ == "__main__":
    sys.exit(run_tests(test_group, test_missing, test_late, test_outage))
