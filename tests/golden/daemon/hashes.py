#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How switches hash, learnt from generated samples: six leaves under eight spines, each with a hash
of its own, computed by Python's binascii and zlib. Linear ones are learnt, whatever seed and order of
links; a keyed one is refused; links that a hash never picks are named; a hash that changes is learnt
anew. Two tiers of switches, links by name; twice the same output."""
import binascii
import hashlib
import json
import random
import struct
import sys
import tempfile
import zlib
from pathlib import Path

sys.dont_write_bytecode = True
import rig  # noqa: E402
from fabrics import hosts_first  # noqa: E402
from rig import check, equal, of_kind  # noqa: E402

LEAVES, SPINES, HOSTS = 6, 8, 3
START_MS = 1700000000000
SECONDS, CHANGE = 60, 30
WINDOW_S = 5
FLOWS = 160  # a leaf


def key(flow, entry):
    src, dst, sport = flow
    return bytes(map(int, (src + "." + dst).split("."))) + struct.pack(">HHBB", sport, 4791, 17, entry)


def fold(data):
    x = 0
    for i in range(0, len(data) - 1, 2):
        x ^= data[i] << 8 | data[i + 1]
    return x ^ x >> 8


def keyed(data):
    """Not linear: a digest with a key, as Linux takes one."""
    return int.from_bytes(hashlib.blake2b(data, key=b"seed", digest_size=8).digest(), "big")


ORDER = (3, 0, 7, 5, 1, 6, 2, 4)  # in which a switch may list its links

# leaf: (what it computes, with the port of entry or not, the order of its links, and how it is
# learnt).
HASHES = {
    1: (lambda d, s: binascii.crc_hqx(d, 0xffff), False, range(8), "linear"),
    2: (lambda d, s: zlib.crc32(d, 0x1234) >> 3, True, ORDER, "linear"),
    3: (lambda d, s: fold(d), False, ORDER, "linear"),
    4: (lambda d, s: keyed(d), False, range(8), "table"),
    5: (lambda d, s: binascii.crc_hqx(d, 0) & 6, False, range(8), "linear"),
    6: (lambda d, s: zlib.crc32(d) if s < CHANGE else binascii.crc_hqx(d, 1) >> 5, False, ORDER,
        "linear"),
}


def address(leaf, host):
    return f"10.0.{leaf}.{host}"


def make_flows():
    rng = random.Random(5)
    flows = set()
    for leaf in range(1, LEAVES + 1):
        while sum(f[0].split(".")[2] == str(leaf) for f in flows) < FLOWS:
            to = rng.choice([x for x in range(1, LEAVES + 1) if x != leaf])
            flows.add((address(leaf, rng.randint(1, HOSTS)), address(to, rng.randint(1, HOSTS)),
                       rng.randint(0xc000, 0xffff)))
    return sorted(flows)


def path(flow, second):
    src, dst = (list(map(int, a.split("."))) for a in flow[:2])
    function, ingress, order, _ = HASHES[src[2]]
    spine = 1 + order[function(key(flow, src[3] if ingress else 0), second) % SPINES]
    return [(f"192.0.2.{src[2]}", src[3], 50 + spine),
            (f"192.0.2.{100 + spine}", src[2], dst[2]),
            (f"192.0.2.{dst[2]}", 50 + spine, dst[3])]


def samples(flows):
    for second in range(SECONDS):
        for flow in flows:
            for agent, came, went in path(flow, second):
                at_ms = START_MS + 1000 * second
                yield {"schema": "fabrictrace.observation.v1", "time_ms": at_ms,
                       "interval_ms": 1000, "first_ms": at_ms + 10, "last_ms": at_ms + 990,
                       "agent": agent, "flow": {"src": flow[0], "dst": flow[1], "sport": flow[2],
                                                "dport": 4791, "proto": 17},
                       "in_ifindex": came, "out_ifindex": went, "samples": 3, "packets": 3000,
                       "bytes": 3000000, "data_samples": 3}


def replay(file, lines):
    done = rig.run(rig.DAEMON, *rig.NO_CONFIG, "--set", "source_id=golden", "--set",
                   f"window={WINDOW_S}s", "--topology", file, "--replay", "-", "--sink", "file:-",
                   input=lines, stdin=None)
    equal("exit code", done.returncode, 0)
    return done.stdout


def test_models(records):
    last = {r["switch"]: r for r in of_kind(records, "hash")}
    equal("one set a leaf, none of spines, which have one link to each", sorted(last),
          [f"leaf{i}" for i in range(1, LEAVES + 1)])
    for leaf, (_, ingress, _, model) in HASHES.items():
        r = last[f"leaf{leaf}"]
        print(f"leaf{leaf}: {r['model']}, accuracy {r.get('accuracy')} of {r.get('predicted')}, "
              f"{r['observations']} flows, {r.get('inputs')}")
        equal(f"leaf{leaf} is", (r["group"], r["model"]), (f"leaf{leaf}/up", model))
        equal(f"leaf{leaf} chooses from", r["members"], [f"Ethernet{51 + i}" for i in range(SPINES)])
        if model != "linear":
            check(f"leaf{leaf}: nothing is claimed of it", "inputs" not in r and
                  "accuracy" not in r and "never_chosen" not in r, r)
            continue
        check(f"leaf{leaf}: every prediction was right", r["accuracy"] == 1 and r["predicted"] >= 20,
              r)
        check(f"leaf{leaf}: it hashes the source port", "sport" in r["inputs"], r)
        equal(f"leaf{leaf}: bits", r["index_bits"], 2 if leaf == 5 else 3)
    equal("links that leaf5 never picks", last["leaf5"]["never_chosen"],
          [f"Ethernet{51 + i}" for i in (1, 3, 5, 7)])
    check("the others leave out none",
          not any("never_chosen" in r for name, r in last.items() if name != "leaf5"))


def test_event(records):
    """The event of leaf5's group names them, too, once they are learnt, with the same begin."""
    events = [r for r in of_kind(records, "event") if r["kind"] == "polarization" and r["subject"] == "leaf5/up"]
    check("leaf5's event, and what was learnt of it later", len(events) == 2 and
          len({r["since_ms"] for r in events}) == 1, events)
    before, after = events[0], events[-1]
    check("before nobody is named", "never_chosen" not in before["evidence"] and
          "look for a polarised hash, a mis-sized group or a dead member" in before["message"], before)
    equal("after", after["evidence"].get("never_chosen"), [f"Ethernet{51 + i}" for i in (1, 3, 5, 7)])
    check("in words", "the hash learnt of leaf5 takes no flow to Ethernet52 and 3 more: "
          "a polarised hash, or a group without them" in after["message"], after["message"])
    check("by a hash alone no link is dead", not any("idle_ports" in r["evidence"] for r in events), events)


def test_change(records):
    """leaf6 is published when it is learnt, when it is learnt anew, and at the end; the others when
    they are learnt and at the end."""
    told = [((r["time_ms"] - START_MS) / 1000, r["model"]) for r in of_kind(records, "hash")
            if r["switch"] == "leaf6"]
    check("leaf6 was learnt, and was learnt anew when its hash had changed",
          [m for _, m in told] == ["linear"] * 3 and told[0][0] < CHANGE and
          CHANGE <= told[1][0] <= CHANGE + 3 * WINDOW_S, told)
    calm = [r for r in of_kind(records, "hash") if r["switch"] == "leaf1"]
    check("leaf1 is published when it is learnt, and at the end", len(calm) == 2, calm)


def test_others(records):
    """Models say nothing of paths: those stay what samples show."""
    truth = {}
    wrong = 0
    for r in of_kind(records, "path"):
        if r["state"] != "resolved":
            continue
        flow = (r["flow"]["src"], r["flow"]["dst"], r["flow"]["sport"])
        second = (r["time_ms"] - START_MS) // 1000
        truth[flow] = path(flow, second)
        wrong += r["hops"][0]["out"] != f"Ethernet{truth[flow][0][2]}"
    check(f"{len(truth)} flows have their paths", len(truth) == LEAVES * FLOWS and wrong == 0, wrong)


def main():
    flows = make_flows()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "t.yaml"
        file.write_text(hosts_first(LEAVES, SPINES, HOSTS))
        lines = "".join(json.dumps(r) + "\n" for r in samples(flows))
        got = replay(file, lines)
        check("twice the same", got == replay(file, lines))
    records = rig.records_of(got)
    test_models(records)
    test_event(records)
    test_change(records)
    test_others(records)
    return 1 if rig.failures else 0


if __name__ == "__main__":
    sys.exit(main())
