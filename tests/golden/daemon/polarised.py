#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two tiers that hash, from the wire (sampled.py): pods of leaves and spines under cores, in each of which both tiers
choose by functions of its own: the same with the same seed, with another seed (of a CRC or an XOR that changes
which link it is and not who goes together, so that it is as polarised), other bits, another polynomial, keyed ones
as in Linux, and one leaf that is unlike the others. Switches list their links alike or in an order of their own.
What each spine has to choose from is held against the generator's truth; whatever is learnt, of flows that hosts
alone report no link of either tier is predicted wrongly.  polarised.py [--seeds N] [--more]"""
import argparse
import math
import random
import sys
import tempfile
from collections import Counter
from pathlib import Path

sys.dont_write_bytecode = True
import rig  # noqa: E402
from rig import check, of_kind  # noqa: E402
import sampled  # noqa: E402
from sampled import crc, keyed, xor  # noqa: E402

SECONDS, WINDOW_S = 20, 1
LEAVES, HOSTS, UNSEEN = 4, 8, 100  # in a pod; behind a leaf; flows of a leaf
AT_A_SPINE = 640  # flows that choose there
TRUTH = 4096  # flows that the truth is counted from
# Spines of a pod, cores above each, whether switches list their links alike.
SIZES, MORE = ((4, 4, True), (4, 8, False)), ((8, 4, True), (4, 16, True), (4, 4, False))


def crc16(polynomial, seed):
    return lambda d: crc(d, 16, polynomial, seed)


def crc32(polynomial, seed, shift=0):
    return lambda d: crc(d, 32, polynomial, seed) >> shift


# (name, function of leaves, of spines, of leaf 1 where that is unlike the others, whether the port of entry is in
# them, whether the leaves' is linear, whether the spines' is: None, where few bits are left for them to show it)
CASES = (
    ("CRC-16, same seed", crc16(0x1021, 7), crc16(0x1021, 7), None, False, True, True),
    ("CRC-16, same seed, port of entry", crc16(0x1021, 7), crc16(0x1021, 7), None, True, True, True),
    ("CRC-16, another seed", crc16(0x1021, 7), crc16(0x1021, 0x9a3c), None, False, True, True),
    ("CRC-16, another polynomial", crc16(0x1021, 0), crc16(0x8005, 0), None, False, True, True),
    ("CRC-16, one leaf with another polynomial", crc16(0x1021, 0), crc16(0x1021, 0), crc16(0x8005, 0), False, True,
     None),
    ("CRC-32, same seed", crc32(0x04c11db7, 99), crc32(0x04c11db7, 99), None, False, True, True),
    ("CRC-32, another seed", crc32(0x04c11db7, 99), crc32(0x04c11db7, 0x7654321), None, False, True, True),
    ("CRC-32, other bits, another seed, port of entry", crc32(0x04c11db7, 99), crc32(0x04c11db7, 0x7654321, 9), None,
     True, True, True),
    ("XOR, same seed", lambda d: xor(d, 0x5aa5), lambda d: xor(d, 0x5aa5), None, False, True, True),
    ("XOR, another seed, port of entry", lambda d: xor(d, 0x5aa5), lambda d: xor(d, 0x1234), None, True, True, True),
    ("keyed, same key", lambda d: keyed(d, 0x123456789), lambda d: keyed(d, 0x123456789), None, False, False, None),
    ("keyed, another key", lambda d: keyed(d, 0x123456789), lambda d: keyed(d, 0x987654321), None, False, False, False),
    ("CRC-16, then keyed", crc16(0x1021, 7), lambda d: keyed(d, 0x987654321), None, False, True, False),
    ("keyed, then CRC-16", lambda d: keyed(d, 0x987654321), crc16(0x1021, 7), None, False, False, True),
)


class World:
    """spines: of a pod; cores: above each of them."""

    def __init__(self, seed, spines, cores, alike):
        self.rng, self.spines, self.cores = random.Random(f"{seed} {spines} {cores} {alike}"), spines, cores
        self.pods = range(1, len(CASES) + 1)
        self.orders = {}
        for pod in self.pods:
            for leaf in range(1, LEAVES + 1):
                self.orders[pod, "leaf", leaf] = self.order(spines, alike)
            for spine in range(spines):
                self.orders[pod, "spine", spine] = self.order(cores, alike)
        # A port's number in a switch follows from nothing.
        self.asic = {at: self.rng.sample(range(256), max(HOSTS, LEAVES) + 1) for at in ("leaf", "spine")}
        count = AT_A_SPINE * spines // LEAVES
        self.seen, self.unseen = ({(pod, leaf): self.draw(pod, leaf, n) for pod in self.pods
                                   for leaf in range(1, LEAVES + 1)} for n in (count, UNSEEN))

    def order(self, links, alike):
        return list(range(links)) if alike else self.rng.sample(range(links), links)

    def draw(self, pod, leaf, count):
        rng, found = self.rng, set()
        while len(found) < count:
            other = rng.choice([p for p in self.pods if p != pod])
            found.add((bytes([10, pod, leaf, rng.randint(1, HOSTS)]),
                       bytes([10, other, rng.randint(1, LEAVES), rng.randint(1, HOSTS)]), rng.randint(0xc000, 0xffff)))
        return sorted(found)

    def path(self, flow):
        """(spine, core)."""
        pod, leaf, host = flow[0][1:]
        _, first, second, unlike, entry, _, _ = CASES[pod - 1]
        first = unlike if unlike and leaf == 1 else first
        spine = first(sampled.hashed(flow, self.asic["leaf"][host] if entry else 0)) % self.spines
        spine = self.orders[pod, "leaf", leaf][spine]
        core = second(sampled.hashed(flow, self.asic["spine"][leaf] if entry else 0)) % self.cores
        return spine, self.orders[pod, "spine", spine][core]

    def hops(self, flow):
        """(agent, ifIndex in, ifIndex out) of each switch."""
        (pod, leaf, host), (other, far, end), (spine, core) = flow[0][1:], flow[1][1:], self.path(flow)
        return ((agent_of("leaf", pod, leaf), host, 100 + spine), (agent_of("spine", pod, spine), leaf, 100 + core),
                (agent_of("core", spine, core), pod, other), (agent_of("spine", other, spine), 100 + core, far),
                (agent_of("leaf", other, far), 100 + spine, end))

    def topology(self):
        text, links, hosts = "fabric: pods\nspeed_bps: 400000000000\nswitches:\n", "links:\n", "hosts:\n"

        def switch(kind, tier, a, b, *ports):
            listed = ", ".join(f"{{name: {name}{i}, ifindex: {i + base}}}" for name, base, some in ports for i in some)
            return (f"  - {{name: {kind}{a}-{b}, tier: {tier}, addresses: [{sampled.address(agent_of(kind, a, b))}], "
                    f"ports: [{listed}]}}\n")
        for pod in self.pods:
            for leaf in range(1, LEAVES + 1):
                text += switch("leaf", "leaf", pod, leaf, ("host", 0, range(1, HOSTS + 1)),
                               ("up", 100, range(self.spines)))
                links += "".join(f"  - {{a: leaf{pod}-{leaf}, a_port: up{s}, b: spine{pod}-{s}, b_port: down{leaf}}}\n"
                                 for s in range(self.spines))
                hosts += "".join(f"  - {{name: h{pod}-{leaf}-{h}, nics: [{{addresses: [10.{pod}.{leaf}.{h}], "
                                 f"attach: [{{switch: leaf{pod}-{leaf}, port: host{h}}}]}}]}}\n"
                                 for h in range(1, HOSTS + 1))
            for s in range(self.spines):
                text += switch("spine", "spine", pod, s, ("down", 0, range(1, LEAVES + 1)),
                               ("up", 100, range(self.cores)))
                links += "".join(f"  - {{a: spine{pod}-{s}, a_port: up{c}, b: core{s}-{c}, b_port: pod{pod}}}\n"
                                 for c in range(self.cores))
        for s in range(self.spines):
            for c in range(self.cores):
                text += switch("core", "superspine", s, c, ("pod", 0, self.pods))
        return text + links + hosts

    def capture(self):
        """Flows come one after the other, and each is sampled at each switch."""
        out = sampled.Capture()
        for flows in self.seen.values():
            flows = self.rng.sample(flows, len(flows))
            for number, flow in enumerate(flows):
                second, frame = number * SECONDS // len(flows), sampled.header(flow, number)
                for hop in self.hops(flow):
                    out.add(second * 1000000 + 100000, *hop, frame)
        return out

    def reports(self):
        for (pod, leaf), flows in self.unseen.items():
            for flow in flows:
                yield from sampled.reports(flow, f"h{pod}-{leaf}-{flow[0][3]}", SECONDS)

    def truth(self, pod):
        """How many links a spine of the pod chooses evenly from, given the port of entry, on average of spines:
        exponential of the entropy, of many flows."""
        by_entry, rng = {}, random.Random(1)
        for _ in range(TRUTH):
            flow = (bytes([10, pod, rng.randint(1, LEAVES), rng.randint(1, HOSTS)]),
                    bytes([10, pod % len(CASES) + 1, rng.randint(1, LEAVES), rng.randint(1, HOSTS)]),
                    rng.randint(0xc000, 0xffff))
            spine, core = self.path(flow)
            by_entry.setdefault((spine, flow[0][2]), Counter())[core] += 1
        entropy = 0
        for cores in by_entry.values():
            total = sum(cores.values())
            entropy -= sum(n * math.log(n / total) for n in cores.values())
        return math.exp(entropy / TRUTH)


def agent_of(kind, a, b):
    return {"leaf": 1 << 12, "spine": 2 << 12, "core": 3 << 12}[kind] + a * 64 + b


class Tally:
    def __init__(self):
        self.right, self.wrong, self.needed = Counter(), [], {}

    def predictions(self, name, world, records):
        """Of flows without samples."""
        unseen = {f for flows in world.unseen.values() for f in flows}
        right = Counter()
        for r in of_kind(records, "path"):
            flow = sampled.flow_of(r)
            if flow not in unseen:
                continue
            (pod, leaf, _), (other, far, end), (spine, core) = flow[0][1:], flow[1][1:], world.path(flow)
            truth = {f"leaf{pod}-{leaf}": ("leaf", f"up{spine}"), f"spine{pod}-{spine}": ("spine", f"up{core}"),
                     f"core{spine}-{core}": ("down", f"pod{other}"), f"spine{other}-{spine}": ("down", f"down{far}"),
                     f"leaf{other}-{far}": ("down", f"host{end}")}
            for hop in r.get("likely", ()):
                if hop.get("evidence") != "predicted" or not hop.get("out"):
                    continue
                tier, out = truth.get(hop["switch"], ("", ""))
                right[pod, tier] += hop["out"] == out
                if hop["out"] != out:
                    self.wrong.append((name, CASES[pod - 1][0], flow, hop, (spine, core)))
        self.right.update(tier for (_, tier), n in right.items() for _ in range(n))
        return right

    def models(self, name, world, records, right):
        said = {r["switch"]: r for r in of_kind(records, "hash")}
        for pod, (case, _, _, unlike, _, *linear) in enumerate(CASES, 1):
            full = {"leaf": world.spines, "spine": world.cores}
            for tier, is_linear in zip(("leaf", "spine"), linear):
                sets = [said.get(f"{tier}{pod}-{i}", {}) for i in
                        (range(1, LEAVES + 1) if tier == "leaf" else range(world.spines))]
                needed = [n for n in (sampled.observed_until_trusted(records, r.get("switch")) for r in sets) if n]
                for n in needed:
                    self.needed.setdefault((tier, full[tier]), []).append(n)
                effective = sum(r.get("effective_links", 0) for r in sets) / len(sets)
                chance = sum(r.get("effective_by_chance", 0) for r in sets) / len(sets)
                truth = world.truth(pod) if tier == "spine" else full[tier]
                print(f"{name}: {case}: {tier}s {dict(Counter(r.get('model') for r in sets))}, effective links "
                      f"{effective:.2f}, by chance {chance:.2f}, in truth {truth:.2f}; trusted "
                      f"{sum(r.get('trusted', False) for r in sets)} of {len(sets)} after {min(needed, default=0)} to "
                      f"{max(needed, default=0)} flows, {right[pod, tier]} of {LEAVES * UNSEEN} without samples right")
                what = f"{name}: {case}: {tier}s"
                check(f"{what} have as many links to choose from as in truth",
                      all(abs(r.get("effective_links", 0) - truth) < 0.12 * truth for r in sets),
                      [r.get("effective_links") for r in sets])
                if is_linear is None:
                    continue
                check(f"{what} are linear or not", all((r.get("model") == "linear") == is_linear for r in sets), sets)
                check(f"{what}: whether flows are predicted",
                      (right[pod, tier] >= 0.9 * LEAVES * UNSEEN) == (linear[0] and is_linear), right[pod, tier])


def events(name, world, records, alike):
    """A group whose links are not all taken is raised; one that is even is not."""
    raised = {e["subject"] for e in of_kind(records, "event") if e["kind"] == "polarization" and not e.get("cleared")}
    for pod, (case, *_) in enumerate(CASES, 1):
        groups = {f"spine{pod}-{s}/up" for s in range(world.spines)}
        if world.truth(pod) > 0.9 * world.cores:
            check(f"{name}: {case}: no spine is called polarised", not raised & groups, raised & groups)
        elif alike and world.truth(pod) < 1.1:
            check(f"{name}: {case}: each spine is called polarised", groups <= raised, groups - raised)


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--seeds", type=int, default=1)
    options.add_argument("--more", action="store_true", help="more numbers of links")
    options = options.parse_args()
    tally, sizes = Tally(), SIZES + (MORE if options.more else ())
    for seed in range(options.seeds):
        for spines, cores, alike in sizes:
            world = World(seed, spines, cores, alike)
            name = f"{spines} x {cores} links, {'alike' if alike else 'orders of their own'}"
            with tempfile.TemporaryDirectory() as folder:
                records = sampled.replay(world.capture(), world.topology(), Path(folder), WINDOW_S, world.reports())
            tally.models(name, world, records, tally.predictions(name, world, records))
            events(name, world, records, alike)
    print(f"{dict(tally.right)} links of flows without samples right, {len(tally.wrong)} wrong; trusted after "
          f"{ {k: (min(v), sorted(v)[len(v) // 2], max(v)) for k, v in tally.needed.items()} } flows")
    check("none is predicted wrongly", not tally.wrong, (len(tally.wrong), tally.wrong[:3]))
    return 1 if rig.failures else 0


if __name__ == "__main__":
    sys.exit(main())
