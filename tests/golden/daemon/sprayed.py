#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Spraying from the wire (sampled.py): a leaf under 32 spines that sends packet by packet, by turns and by a hash of
the packet's number, with one path dead, with one that gets half of its share, in flowlets of 500 and of 20,000 packets,
over other spines from a moment on, and 256 queue pairs of one connection that stay on their paths; a queue pair that
changes its route once. Switches draw packets at random, leaf and spines by themselves. What fabrictrace.spread.v1
says is held against what was sent: paths, effective paths, the share of each, and which is dead; no path of what is
healthy is called dead or uneven.  sprayed.py [--seeds N]"""
import argparse
import math
import random
import sys
import tempfile
from collections import Counter
from pathlib import Path

sys.dont_write_bytecode = True
import rig  # noqa: E402
from rig import check, equal, of_kind  # noqa: E402
import sampled  # noqa: E402

SPINES, HOSTS = 32, 10
SECONDS, WINDOW_S = 20, 5
RATE = 200 * sampled.SAMPLING  # packets a second of what is sprayed
DEAD, HALF, MOVE_S = 9, 21, 7.4
QPS, QP_RATE = 256, 2 * sampled.SAMPLING
SPINES_SAMPLE = 10  # times fewer packets than the leaf does
LEAF = (1, 2)
CERTAIN = 1e-4  # what is healthy has a p-value below this once in so many records


def by_number(number, key=5):
    return sampled.keyed(number.to_bytes(5, "big"), key)


class Flowlets:
    """Runs of packets that keep to one spine; about so many each."""

    def __init__(self, rng, packets):
        self.ends, self.spines = [0], []
        while self.ends[-1] < RATE * SECONDS:
            self.ends.append(self.ends[-1] + max(1, int(rng.expovariate(1 / packets))))
            self.spines.append(rng.randrange(SPINES))
        self.at = 0

    def __call__(self, number):
        """Of packets in their order."""
        while self.ends[self.at + 1] <= number:
            self.at += 1
        return self.spines[self.at]

    def sent(self, window):
        """The share of each spine in a window."""
        from_, to = (RATE * WINDOW_S * w for w in (window, window + 1))
        sent = Counter()
        for start, end, spine in zip(self.ends, self.ends[1:], self.spines):
            sent[spine] += max(0, min(end, to) - max(start, from_))
        return [sent[s] / (to - from_) for s in range(SPINES)]


class World:
    def __init__(self, seed):
        self.rng = rng = random.Random(seed)
        short, long = Flowlets(rng, 500), Flowlets(rng, 20000)
        moved = int(MOVE_S * RATE)
        given = 1 / SPINES / 2 / SPINES  # to each, of what one gives up

        def half(n):
            spine = by_number(n) % SPINES
            return by_number(n, 6) % SPINES if spine == HALF and by_number(n, 7) % 2 else spine

        def even(window):
            return [1 / SPINES] * SPINES
        # name: (spine of a packet by its number; shares of a window; False: not even)
        self.kinds = {
            "by turns": (lambda n: n % SPINES, even, True),
            "by hash": (lambda n: by_number(n) % SPINES, even, True),
            "one dead": (lambda n: (DEAD + 1 + by_number(n) % (SPINES - 1)) % SPINES,
                         lambda w: [(s != DEAD) / (SPINES - 1) for s in range(SPINES)], False),
            "one half": (half, lambda w: [1 / SPINES / (1 + (s == HALF)) + given for s in range(SPINES)], False),
            "flowlets of 500": (short, short.sent, True),
            "flowlets of 20000": (long, long.sent, True),
            "moves while sprayed": (lambda n: by_number(n) % 16 + 16 * (n >= moved), self.halves, False),
            "moves": (lambda n: 3 if n < moved else 7, None, False),
        }
        self.flows = {self.flow(i, rng.randint(0xc000, 0xffff)): kind for i, kind in enumerate(self.kinds, 1)}
        self.qps = {}
        while len(self.qps) < QPS:
            flow = self.flow(HOSTS, rng.randint(0xc000, 0xffff))
            self.qps[flow] = sampled.crc(sampled.hashed(flow), 16, 0x1021, seed) % SPINES

    @staticmethod
    def halves(window):
        before = min(max(MOVE_S / WINDOW_S - window, 0), 1)
        return [before / 16] * 16 + [(1 - before) / 16] * 16

    @staticmethod
    def flow(host, sport):
        return bytes([10, 7, 1, host]), bytes([10, 7, 2, host]), sport

    def drawn(self, rate, sampling):
        """Numbers of packets that a switch samples, and when: the gaps are drawn, as sFlow wants it."""
        number = 0
        while True:
            number += max(1, round(self.rng.expovariate(1 / sampling)))
            if number >= rate * SECONDS:
                return
            yield number, number * 1000000 // rate

    def capture(self):
        out = sampled.Capture()
        for flow in [*self.flows, *self.qps]:
            rate = RATE if flow in self.flows else QP_RATE
            for times in (1, SPINES_SAMPLE):
                kind = self.kinds.get(self.flows.get(flow))
                if kind and isinstance(kind[0], Flowlets):
                    kind[0].at = 0
                for number, at_us in self.drawn(rate, times * sampled.SAMPLING):
                    spine = kind[0](number) if kind else self.qps[flow]
                    frame, host = sampled.header(flow, number), flow[0][3]
                    if times == 1:
                        out.add(at_us, LEAF[0], host, 100 + spine, frame)
                        out.add(at_us, LEAF[1], 100 + spine, host, frame)
                    else:
                        out.add(at_us, 100 + spine, 1, 2, frame)
        return out

    @staticmethod
    def topology():
        ports = ", ".join([f"{{name: host{h}, ifindex: {h}}}" for h in range(1, HOSTS + 1)] +
                          [f"{{name: up{s}, ifindex: {100 + s}}}" for s in range(SPINES)])
        text = "fabric: wire\nspeed_bps: 400000000000\nswitches:\n" + "".join(
            f"  - {{name: leaf{leaf}, addresses: [{sampled.address(leaf)}], ports: [{ports}]}}\n" for leaf in LEAF)
        downs = ", ".join(f"{{name: down{leaf}, ifindex: {leaf}}}" for leaf in LEAF)
        text += "".join(f"  - {{name: spine{s}, addresses: [{sampled.address(100 + s)}], ports: [{downs}]}}\n"
                        for s in range(SPINES)) + "links:\n"
        text += "".join(f"  - {{a: leaf{leaf}, a_port: up{s}, b: spine{s}, b_port: down{leaf}}}\n"
                        for leaf in LEAF for s in range(SPINES)) + "hosts:\n"
        return text + "".join(f"  - {{name: h{leaf}-{h}, nics: [{{addresses: [10.7.{leaf}.{h}], "
                              f"attach: [{{switch: leaf{leaf}, port: host{h}}}]}}]}}\n"
                              for leaf in LEAF for h in range(1, HOSTS + 1))


def counted(capture):
    """(flow, window): samples of the leaf by spine, as its datagrams say them; where it took none, of the spines."""
    out, behind = {}, {}
    for at_us, agent, samples in capture.datagrams():
        for _, went, frame in samples if agent != LEAF[1] else ():
            flow = frame[26:30], frame[30:34], int.from_bytes(frame[34:36], "big")
            to, spine = (out, went - 100) if agent == LEAF[0] else (behind, agent - 100)
            to.setdefault((flow, at_us // 1000000 // WINDOW_S), Counter())[spine] += 1
    return behind | out


def effective(shares):
    return math.exp(-sum(p * math.log(p) for p in shares if p))


def error(shares, samples):
    """How far the logarithm of the effective paths of so many samples is from that of the shares: its bias (Miller
    1955) and four standard deviations."""
    taken = [p for p in shares if p]
    variance = sum(p * math.log(p) ** 2 for p in taken) - math.log(effective(shares)) ** 2
    more = (len(taken) - 1) / 2 / samples
    return more + 4 * math.sqrt(max(variance, 0) / samples + more / samples)


class Tally:
    def __init__(self):
        self.inside, self.links, self.healthy, self.alarms, self.half = Counter(), Counter(), Counter(), [], []

    @staticmethod
    def figures(name, record, counts):
        """What was sampled is what is told."""
        links, total = {int(x["port"][2:]): x for x in record["links"]}, sum(counts.values())
        equal(f"{name}: samples by spine", {s: x["samples"] for s, x in links.items() if x["samples"]}, dict(counts))
        equal(f"{name}: paths", (record["seen"], record["possible"], record["samples"]), (len(counts), SPINES, total))
        paths = effective([n / total for n in counts.values()])
        check(f"{name}: effective paths", abs(record["effective_paths"] - paths) < 1e-3, record["effective_paths"])

    def shares(self, kind, record, shares):
        """Intervals against the share of the packets that were sent."""
        for link in record["links"]:
            share = shares[int(link["port"][2:])]
            self.inside[kind] += link["share_lo"] <= share <= link["share_hi"]
            self.links[kind] += 1

    def quiet(self, kind, name, record):
        self.healthy[kind] += 1
        p = min(record.get("even_p", 1), record.get("least_p", 1))
        if record.get("dead") or p < 0.001:
            self.alarms.append((name, record.get("dead"), p))
        check(f"{name}: nothing is wrong", "dead" not in record and p > CERTAIN, (record.get("dead"), p))


def flows(world, records, counts, tally):
    told = {(sampled.flow_of(r), window_of(r)): r for r in records if r["of"] == "qp"}
    for (flow, window), seen in sorted(counts.items()):
        kind = world.flows.get(flow, "stays")
        name, r = f"{kind} in window {window}", told.get((flow, window))
        if len(seen) == 1 or window >= SECONDS // WINDOW_S:
            check(f"{name}: one path is no spreading", r is None or len(seen) > 1, r)
            continue
        if not check(f"{name}: told", r is not None):
            continue
        tally.figures(name, r, seen)
        if kind == "moves":
            equal(f"{name}: a change of route", (r["alternation"], r["sprayed_flows"]), ("moved", 0))
            continue
        _, shares, healthy = world.kinds[kind]
        shares = shares(window)
        tally.shares(kind, r, shares)
        equal(f"{name}: sprayed", (r["alternation"], r["sprayed_flows"]), ("sprayed", 1))
        check(f"{name}: effective paths are those of what was sent",
              abs(math.log(r["effective_paths"] / effective(shares))) < error(shares, r["samples"]),
              (r["effective_paths"], effective(shares), error(shares, r["samples"])))
        if healthy:
            tally.quiet(kind, name, r)
        elif kind == "one dead":
            equal(f"{name}: which", (r["least"], r.get("dead")), (f"up{DEAD}", [f"up{DEAD}"]))
        elif kind == "one half":
            check(f"{name}: no path is dead", "dead" not in r, r.get("dead"))
            tally.half.append(r["least_p"])
        else:
            equal(f"{name}: the others carry nothing", {int(x[2:]) for x in r.get("dead", [])},
                  {s for s in range(SPINES) if not shares[s]})


def window_of(record):
    return (record["window_start_ms"] - 1000 * sampled.START_S) // (1000 * WINDOW_S)


def connections(world, records, counts, tally):
    told = {window_of(r): r for r in records if r["of"] == "connection" and r["src_host"] == f"h1-{HOSTS}"}
    taken = Counter(world.qps.values())
    for window in range(SECONDS // WINDOW_S):
        r, name = told.get(window), f"{QPS} queue pairs in window {window}"
        if not check(f"{name}: told", r is not None):
            continue
        seen = [flow for flow in world.qps if (flow, window) in counts]
        tally.figures(name, r, sum((counts[flow, window] for flow in seen), Counter()))
        tally.shares("256 queue pairs", r, [taken[s] / QPS for s in range(SPINES)])
        equal(f"{name}: each chose once", (r["flows"], r["trials"], r["sprayed_flows"]), (len(seen), len(seen), 0))
        tally.quiet("256 queue pairs", name, r)


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--seeds", type=int, default=1)
    tally = Tally()
    for seed in range(options.parse_args().seeds):
        world = World(seed)
        capture = world.capture()
        with tempfile.TemporaryDirectory() as folder:
            records = of_kind(sampled.replay(capture, world.topology(), Path(folder), WINDOW_S), "spread")
        counts = counted(capture)
        flows(world, records, counts, tally)
        connections(world, records, counts, tally)
    for kind, links in tally.links.items():
        print(f"{kind}: {100 * tally.inside[kind] / links:.1f} % of {links} intervals hold the share that was sent")
    print(f"healthy records: {dict(tally.healthy)}, {len(tally.alarms)} of them with a dead path or a p-value below "
          f"0.001: {tally.alarms}; half a share: p {[float(f'{p:.2g}') for p in tally.half]}")
    inside, links = sum(tally.inside.values()), sum(tally.links.values())
    check("intervals hold the shares as often as they say", 0.92 <= inside / links <= 0.985, (inside, links))
    return 1 if rig.failures else 0


if __name__ == "__main__":
    sys.exit(main())
