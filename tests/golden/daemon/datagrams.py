#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hashes from the wire: sFlow v5 datagrams (sampled.py) through switchpoll and daemon. Leaves under 4, 8, 16 and 64
spines choose by CRC-16, CRC-32 and XOR, with and without seed and with and without port of entry, by a keyed hash
with a modulo as Linux does, by a modulo that is no power of two, and by resilient tables, of which some are intact
and one has lost a link. Linear ones are learnt and the others are not; of flows without samples, which hosts
alone report, none is predicted wrongly."""
import random
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
import rig  # noqa: E402
from rig import check, equal, of_kind  # noqa: E402
import sampled  # noqa: E402
from sampled import crc, keyed, xor  # noqa: E402

SECONDS, ROUND = 20, 10  # each flow is sampled at each switch once in a round
FLOWS, UNSEEN, HOSTS = 640, 160, 8
BUCKETS = 256


def bucket_of(data):
    return crc(data, 16, 0x8005, 0) % BUCKETS


def without_last(data, members):
    """The buckets of a link that was lost are dealt to the others."""
    bucket = bucket_of(data)
    return bucket // members % (members - 1) if bucket % members == members - 1 else bucket % members


def dealt(data, members):
    """As many buckets for each link, in no order."""
    return DEAL[bucket_of(data)] % members


DEAL = random.Random(3).sample(range(BUCKETS), BUCKETS)
ASIC_PORT = random.Random(4).sample(range(256), HOSTS + 1)  # a port's number in the switch follows from nothing

# leaf: (name, index of the header's bytes and the number of links, whether the port of entry is in it,
# whether it is linear)
LEAVES = (
    ("CRC-16", lambda d, m: crc(d, 16, 0x1021, 0) % m, False, True),
    ("CRC-16, seed", lambda d, m: crc(d, 16, 0x8005, 0xbeef) % m, False, True),
    ("CRC-16, port of entry", lambda d, m: crc(d, 16, 0x1021, 0) % m, True, True),
    ("CRC-16, seed, port of entry", lambda d, m: crc(d, 16, 0x8005, 0xbeef) % m, True, True),
    ("CRC-32", lambda d, m: crc(d, 32, 0x04c11db7, 0) % m, False, True),
    ("CRC-32, seed", lambda d, m: (crc(d, 32, 0x1edc6f41, 0x12345678) >> 9) % m, False, True),
    ("CRC-32, port of entry", lambda d, m: crc(d, 32, 0x04c11db7, 0) % m, True, True),
    ("CRC-32, seed, port of entry", lambda d, m: (crc(d, 32, 0x1edc6f41, 0x12345678) >> 9) % m, True, True),
    ("XOR", lambda d, m: xor(d, 0) % m, False, True),
    ("XOR, seed", lambda d, m: xor(d, 0x5aa5) % m, False, True),
    ("XOR, port of entry", lambda d, m: xor(d, 0) % m, True, True),
    ("XOR, seed, port of entry", lambda d, m: xor(d, 0x5aa5) % m, True, True),
    ("keyed, as Linux", lambda d, m: keyed(d, 0x0123456789abcdef) % m, False, False),
    ("CRC-32 modulo links - 1", lambda d, m: crc(d, 32, 0x04c11db7, 0) % (m - 1), False, False),
    ("resilient, intact, links by turns", lambda d, m: bucket_of(d) % m, False, True),
    ("resilient, intact, buckets in blocks", lambda d, m: bucket_of(d) * m // BUCKETS, False, True),
    ("resilient, intact, buckets in no order", dealt, False, False),
    ("resilient, a link lost", without_last, False, False),
)


class World:
    def __init__(self, spines):
        self.spines, rng = spines, random.Random(spines)
        self.order = {leaf: rng.sample(range(spines), spines) for leaf in range(1, len(LEAVES) + 1)}
        self.flows = {leaf: self.draw(leaf, rng) for leaf in self.order}

    def draw(self, leaf, rng):
        found = {}
        while len(found) < FLOWS + UNSEEN:
            other = rng.choice([x for x in self.order if x != leaf])
            found[bytes([10, 7, leaf, rng.randint(1, HOSTS)]), bytes([10, 7, other, rng.randint(1, HOSTS)]),
                  rng.randint(0xc000, 0xffff)] = True
        return list(found)

    def spine(self, flow):
        leaf, host = flow[0][2:]
        _, choose, entry, _ = LEAVES[leaf - 1]
        return self.order[leaf][choose(sampled.hashed(flow, ASIC_PORT[host] if entry else 0), self.spines)]

    def hops(self, flow):
        """(agent, ifIndex in, ifIndex out) of each switch."""
        (leaf, host), (other, far), spine = flow[0][2:], flow[1][2:], self.spine(flow)
        return (leaf, host, 100 + spine), (100 + spine, leaf, other), (other, 100 + spine, far)

    def topology(self):
        ups = [f"{{name: up{s}, ifindex: {100 + s}}}" for s in range(self.spines)]
        hosts = [f"{{name: host{h}, ifindex: {h}}}" for h in range(1, HOSTS + 1)]
        downs = ", ".join(f"{{name: down{leaf}, ifindex: {leaf}}}" for leaf in self.order)
        text = "fabric: wire\nspeed_bps: 400000000000\nswitches:\n"
        for leaf in self.order:
            text += (f"  - {{name: leaf{leaf}, addresses: [{sampled.address(leaf)}], "
                     f"ports: [{', '.join(hosts + ups)}]}}\n")
        for s in range(self.spines):
            text += f"  - {{name: spine{s}, addresses: [{sampled.address(100 + s)}], ports: [{downs}]}}\n"
        text += "links:\n" + "".join(f"  - {{a: leaf{leaf}, a_port: up{s}, b: spine{s}, b_port: down{leaf}}}\n"
                                     for leaf in self.order for s in range(self.spines))
        return text + "hosts:\n" + "".join(
            f"  - {{name: h{leaf}-{h}, nics: [{{addresses: [10.7.{leaf}.{h}], "
            f"attach: [{{switch: leaf{leaf}, port: host{h}}}]}}]}}\n"
            for leaf in self.order for h in range(1, HOSTS + 1))

    def capture(self):
        out = sampled.Capture()
        for flows in self.flows.values():
            for number, flow in enumerate(flows[:FLOWS]):
                for second in range(number % ROUND, SECONDS, ROUND):
                    frame = sampled.header(flow, second)
                    for hop in self.hops(flow):
                        out.add(second * 1000000 + 100000, *hop, frame)
        return out

    def reports(self):
        for flows in self.flows.values():
            for flow in flows[FLOWS:]:
                yield from sampled.reports(flow, f"h{flow[0][2]}-{flow[0][3]}", SECONDS)


def judge(world, records):
    said = {r["switch"]: r for r in of_kind(records, "hash")}
    right, wrong = dict.fromkeys(world.order, 0), []
    unseen = {f for flows in world.flows.values() for f in flows[FLOWS:]}
    for r in of_kind(records, "path"):
        flow, hop = sampled.flow_of(r), (r.get("likely") or [{}])[0]
        if flow not in unseen or hop.get("evidence") != "predicted" or not hop.get("out"):
            continue
        good = hop["out"] == f"up{world.spine(flow)}"
        right[flow[0][2]] += good
        wrong += [] if good else [(LEAVES[flow[0][2] - 1][0], flow, hop)]
    for leaf, (name, _, _, linear) in enumerate(LEAVES, 1):
        r = said.get(f"leaf{leaf}", {})
        print(f"{world.spines:2} links, {name}: {r.get('model')}, trusted {r.get('trusted')}, {r.get('reason')} "
              f"{r.get('more_least')}, {r.get('observations')} flows, {right[leaf]} without samples right")
        equal(f"{world.spines} links, {name}: linear", r.get("model") == "linear", linear)
        check(f"{world.spines} links, {name}: whether flows are predicted", (right[leaf] >= 0.9 * UNSEEN) == linear,
              right[leaf])
    check(f"{world.spines} links: none is predicted wrongly", not wrong, (len(wrong), wrong[:3]))


def main():
    for spines in (4, 8, 16, 64):
        world = World(spines)
        with tempfile.TemporaryDirectory() as folder:
            judge(world, sampled.replay(world.capture(), world.topology(), Path(folder), 10, world.reports()))
    return 1 if rig.failures else 0


if __name__ == "__main__":
    sys.exit(main())
