#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`fabrictrace whatif` on fabrics that nobody would build: links missing and parallel, of unequal speed, two planes,
hosts on two leaves, three tiers, links and switches down. What each link carries when packets are sprayed, and what
rate each flow then has, is worked out here by another way: switch by switch over distances of its own, and by water
that rises in the links. Runs in the build folder; --seeds N for other ones."""
import collections
import json
import os
import pathlib
import random
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import paper  # noqa: E402

PROGRAM = os.environ.get("FABRICTRACE", "cli/fabrictrace")
SPEED = paper.SPEED
LEVEL = {"leaf": 0, "spine": 1, "superspine": 2}
SEEDS = 25


def odd_fabric(rng):
    """Each pair of switches that could be linked has no link, one, or several, of some speed."""
    f = paper.Fabric()
    planes, pods = rng.choice(((1, 1), (1, 1), (2, 1), (1, 2)))
    speeds = rng.choice(((SPEED,), (SPEED, SPEED // 4)))

    def connect(a, b, most=(0, 1, 1, 1, 1, 3)):
        for k in range(rng.choice(most)):
            f.link(a, f"up-{b}-{k}", b, f"down-{a}-{k}", rng.choice(speeds))

    leaves, spines = rng.randint(2, 3), rng.randint(1, 3)
    for plane in range(planes):
        for pod in range(pods):
            names = [f"spine{plane}{pod}-{s}" for s in range(spines)]
            f.switches.update(dict.fromkeys(names, "spine"))
            for n in range(leaves):
                f.switches[f"leaf{plane}{pod}-{n}"] = "leaf"
                for s in names:
                    connect(f"leaf{plane}{pod}-{n}", s)
        for c in range(rng.randint(1, 3) if pods > 1 else 0):
            f.switches[f"super{c}"] = "superspine"
            for pod in range(pods):
                for s in range(spines):
                    connect(f"spine{plane}{pod}-{s}", f"super{c}")
    both = planes == 1 and rng.random() < 0.4  # some hosts on two leaves of one plane
    for pod in range(pods):
        for n in range(leaves):
            for h in range(rng.randint(1, 3)):
                attach = [(f"leaf{plane}{pod}-{n}", f"host{h}") for plane in range(planes)]
                if both and rng.random() < 0.5:
                    attach.append((f"leaf0{pod}-{(n + 1) % leaves}", f"host{n}-{h}"))
                f.host(f"h{pod}-{n}-{h}", f"10.{pod}.{n}.{h + 1}", attach)
    return f


def far(f, dst, dead):
    """By (switch, whether it was left downwards already): links to a leaf of the host, none of them dead."""
    found = {}
    queue = collections.deque()
    for end in f.hosts[dst][0][2]:
        if end not in dead:
            for down in (False, True):
                found[end[0], down] = 0
                queue.append((end[0], down))
    while queue:
        at, down = queue.popleft()
        for (a, port), (b, _) in f.links.items():
            if b != at or (a, port) in dead:
                continue
            falls = LEVEL[f.switches[a]] > LEVEL[f.switches[b]]
            # Upwards only who has not gone down yet, to where nothing has gone down yet.
            for state in ((a, False), (a, True)):
                follows = falls if state[1] else (True if falls else not down)
                if falls and not down or not follows or state in found:
                    continue
                found[state] = found[at, down] + 1
                queue.append(state)
    return found


def split(f, src, dst, dead=()):
    """What of a flow each link carries, where the NIC and each switch take what leads on alike; None: no way."""
    left = far(f, dst, dead)
    parts = collections.Counter()
    doors = [end for end in f.hosts[src][0][2] if end not in dead and left.get((end[0], False), 5) < 5]
    if not doors:
        return None
    crowd = collections.Counter()
    for end in doors:
        parts["in", end] += 1 / len(doors)
        crowd[end[0], False, left[end[0], False]] += 1 / len(doors)
    while crowd:
        ahead = collections.Counter()
        for (at, down, links), part in crowd.items():
            if links == 0:
                outs = [end for end in f.hosts[dst][0][2] if end[0] == at and end not in dead]
                for end in outs:
                    parts[end] += part / len(outs)
                continue
            outs = []
            for (a, port), (b, _) in f.links.items():
                if a != at or (a, port) in dead:
                    continue
                falls = LEVEL[f.switches[a]] > LEVEL[f.switches[b]]
                if (falls or not down) and left.get((b, down or falls), 9) == links - 1:
                    outs.append(((a, port), (b, down or falls, links - 1)))
            for end, state in outs:
                parts[end] += part / len(outs)
                ahead[state] += part / len(outs)
        crowd = ahead
    return parts


def crc32(src, dst, sport):
    return zlib.crc32(bytes(map(int, (src + "." + dst).split("."))) + struct.pack(">HHB", sport, 4791, 17))


def hashed(f, src, dst, door, value, dead):
    """The path by a hash whose remainder is the choice of each switch, in the order of its ports; None: no way."""
    left, hops = far(f, dst, dead), []
    order = list(f.links) + [end for ((_, _, ends),) in f.hosts.values() for end in ends]
    at, down, came = door[0], False, door[1]
    if door in dead or left.get((at, False), 9) >= 5:
        return None
    while True:
        n, outs = left[at, down], []
        for end in order:
            if end[0] != at or end in dead:
                continue
            if n == 0:
                outs += [end] * (f.at.get(end) == dst)
            elif end in f.links:
                b = f.links[end][0]
                falls = LEVEL[f.switches[at]] > LEVEL[f.switches[b]]
                outs += [end] * ((falls or not down) and left.get((b, down or falls), 9) == n - 1)
        out = outs[value % len(outs)]
        hops.append({"switch": at, "in": came, "out": out[1]})
        if n == 0:
            return hops
        down = down or LEVEL[f.switches[at]] > LEVEL[f.switches[f.links[out][0]]]
        at, came = f.links[out]


def rise(f, flows, parts):
    """Rates of flows on all of their links at once: all rise alike until a link is full, or the flow content."""
    def room(link):
        return f.speeds.get(link, SPEED)

    rate, rising = [0.0] * len(flows), set(range(len(flows)))
    used = collections.Counter()
    while rising:
        slope = collections.Counter()
        for i in rising:
            for link, part in parts[i].items():
                slope[link] += part
        step = min([flows[i][2] - rate[i] for i in rising] +
                   [(room(link) - used[link]) / s for link, s in slope.items() if s > 1e-12])
        for i in rising:
            rate[i] += step
        for link, s in slope.items():
            used[link] += s * step
        full = {link for link, s in slope.items() if room(link) - used[link] < 1e-6 * room(link)}
        rising = {i for i in rising if flows[i][2] - rate[i] > 1e-6 * flows[i][2] and not full & set(parts[i])}
    return rate


class Odd(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def whatif(self, f, flows, *words):
        (self.folder / "t.yaml").write_text(f.yaml())
        (self.folder / "f.csv").write_text(paper.csv(f, flows))
        done = subprocess.run([PROGRAM, "whatif", "--topology", str(self.folder / "t.yaml"), "--flows",
                               str(self.folder / "f.csv"), "--json", *words], text=True, capture_output=True)
        return done, {r["policy"]: r for r in map(json.loads, done.stdout.splitlines())}

    def case(self, seed):
        rng = random.Random(seed)
        f = odd_fabric(rng)
        flows = paper.traffic(f, rng, rng.randint(1, 12), lambda: rng.choice((SPEED, SPEED // 2)))
        failed, dead = [], set()
        if seed % 2 and f.links:
            failed = rng.sample(sorted(f.links), min(2, len(f.links)))
            failed += rng.sample([end for ((_, _, ends),) in f.hosts.values() for end in ends], 1)
            dead = {end for a in failed for end in (a, f.links.get(a))}
        return f, flows, failed, dead

    def same(self, a, b):
        self.assertAlmostEqual(a, b, delta=1e-5 * max(1, b))  # records have six digits

    def test_spraying(self):
        ways = 0
        for seed in range(SEEDS):
            with self.subTest(seed=seed):
                f, flows, failed, dead = self.case(seed)
                parts = [split(f, a, b, dead) for a, b, _ in flows]
                words = ["--failed", ",".join("/".join(end) for end in failed)] if failed else []
                done, found = self.whatif(f, flows, "--policy", "spray", *words)
                if None in parts:
                    self.assertEqual(done.returncode, 65, done.stderr)
                    continue
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                ways += 1
                loads, count = collections.Counter(), collections.Counter()
                for flow, part in zip(flows, parts):
                    for link, x in part.items():
                        loads[link] += x * flow[2]
                        count[link] += x
                loads = {link: loads[link] / f.speeds[link] for link in f.links if link in loads}
                spray = found["spray"]
                self.same(spray.get("load_most", {}).get("max", 0), max(loads.values(), default=0))
                self.same(spray["flows_most"]["max"], max((n for link, n in count.items() if link in f.links),
                                                          default=0))
                rate = rise(f, flows, parts)
                self.same(spray["slowest_share"]["max"], min(r / flow[2] for r, flow in zip(rate, flows)))
        self.assertGreater(ways, SEEDS // 3)

    def test_rates_of_a_plan(self):
        """The slowest flow and the fullest link of whatif's plan are those of the paths that plan prints."""
        for seed in range(SEEDS):
            f, flows, failed, dead = self.case(seed)
            words = ["--failed", ",".join("/".join(end) for end in failed)] if failed else []
            done, found = self.whatif(f, flows, "--policy", "plan", *words)
            if done.returncode == 65:
                continue
            with self.subTest(seed=seed):
                plan = subprocess.run([PROGRAM, "plan", "--topology", str(self.folder / "t.yaml"), "--flows",
                                       str(self.folder / "f.csv"), "--json", *words], text=True, capture_output=True)
                parts, loads = [], collections.Counter()
                for line, flow in zip(plan.stdout.splitlines(), flows):
                    hops = json.loads(line)["hops"]
                    links = [(h["switch"], h["out"]) for h in hops]
                    self.assertFalse(dead & {*links, (hops[0]["switch"], hops[0]["in"])})
                    parts.append(dict.fromkeys([("in", hops[0]["switch"], hops[0]["in"]), *links], 1))
                    for link in links[:-1]:
                        loads[link] += flow[2] / f.speeds[link]
                self.assertEqual(len(parts), len(flows))
                self.same(found["plan"]["slowest_share"]["max"],
                          min(r / flow[2] for r, flow in zip(rise(f, flows, parts), flows)))
                self.same(found["plan"].get("load_most", {}).get("max", 0), max(loads.values(), default=0))

    def test_chance(self):
        """Of 400 flows between two hosts each link has its part, but for what chance adds."""
        for seed in range(1, SEEDS, 3):
            with self.subTest(seed=seed):
                f, flows, failed, dead = self.case(seed)
                parts = split(f, *flows[0][:2], dead)
                words = ["--failed", ",".join("/".join(end) for end in failed)] if failed else []
                if parts is None:
                    continue
                done, found = self.whatif(f, flows[:1] * 400, "--policy", "flowlet,ecmp", "--draws", "40", *words)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                most = 400 * max((part for link, part in parts.items() if link in f.links), default=0)
                self.assertAlmostEqual(found["flowlet"]["flows_most"]["mean"], most, delta=12)
                self.assertAlmostEqual(found["ecmp"]["flows_most"]["mean"], most, delta=32)

    def test_named_hash(self):
        """Captured flows by the switches' CRC32, as they were and with something down."""
        for seed in range(SEEDS):
            f, flows, failed, dead = self.case(seed)
            rng = random.Random(seed)
            records, paths = [], []
            for a, b, _ in flows:
                door = f.hosts[a][0][2][0]
                ends = paper.address(f, a), paper.address(f, b)
                sport = rng.randint(0xc000, 0xffff)
                hops = hashed(f, a, b, door, rng.randrange(1 << 30), ())
                if hops is None:
                    continue
                paths.append(hashed(f, a, b, door, crc32(*ends, sport), dead))
                records.append({"schema": "fabrictrace.path.v1", "window_start_ms": 1700000000000,
                                "window_end_ms": 1700000010000, "role": "data", "state": "resolved", "hops": hops,
                                "flow": {"src": ends[0], "dst": ends[1], "sport": sport, "dport": 4791, "proto": 17},
                                "rate_bps": SPEED // 200})
            if not records or None in paths:
                continue
            (self.folder / "t.yaml").write_text(f.yaml())
            (self.folder / "r.ndjson").write_text("".join(json.dumps(r) + "\n" for r in records))
            words = ["--failed", ",".join("/".join(end) for end in failed)] if failed else []
            with self.subTest(seed=seed):
                done = subprocess.run([PROGRAM, "whatif", "--topology", str(self.folder / "t.yaml"), "--records",
                                       str(self.folder / "r.ndjson"), "--json", "--policy", "crc32", "--draws", "1",
                                       *words], text=True, capture_output=True)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                found = {r["figures"]["policy"]: r["figures"] for r in map(json.loads, done.stdout.splitlines())}
                count = collections.Counter((h["switch"], h["out"]) for path in paths for h in path)
                self.assertEqual(found["crc32"]["flows_most"]["max"],
                                 max((n for link, n in count.items() if link in f.links), default=0))
                moves = sum(path != r["hops"] for path, r in zip(paths, records))
                self.assertEqual(found["crc32"]["moves"]["max"], moves)

    def test_many_paths(self):
        """5,120 paths by 80 spines: chance spreads 800 flows over all of them, as 10 of 80 do; FIM by METRICS is 25."""
        f = paper.three_tiers(2, 1, 80, 64, 1)
        _, found = self.whatif(f, [("h0-0-0", "h1-0-0", SPEED // 800)] * 800, "--policy", "ecmp", "--draws", "3")
        up = next(layer for layer in found["ecmp"]["layers"] if layer["name"] == "leaf/up")
        self.assertAlmostEqual(up["fim"]["mean"], 25, delta=5)

    def test_some_of_many_paths(self):
        """Of 1,536 paths over 48 spines 1,024 are kept: of each spine as many, but for one. Of two paths, where one
        spine has three links to the other leaf, each goes over a spine of its own."""
        f = paper.three_tiers(2, 1, 48, 32, 1)
        _, found = self.whatif(f, [("h0-0-0", "h1-0-0", SPEED)], "--policy", "spray")
        up = next(layer for layer in found["spray"]["layers"] if layer["name"] == "leaf/up")
        self.assertEqual(found["spray"]["paths"], 1024)
        self.assertLess(up["fim"]["max"], 5)
        f = paper.two_tiers(2, 2, 1)
        for k in (1, 2):
            f.link("spine0", f"more{k}", "leaf1", f"more{k}")
        _, found = self.whatif(f, [("h0-0", "h1-0", SPEED)], "--policy", "spray,flowlet", "--spray", "2",
                               "--draws", "9")
        self.assertEqual(found["spray"]["load_most"]["max"], 0.5)
        self.assertLess(found["flowlet"]["load_most"]["min"], 1)

    def test_the_longer_way(self):
        """What is down may leave a way that is longer: to a host of two leaves by the other one, and within a pod by
        a superspine. Routing takes it."""
        dual = paper.two_tiers(2, 2, 1)
        dual.host("both", "10.9.0.1", [("leaf0", "both"), ("leaf1", "both")])
        cases = ((dual, ("h0-0", "both"), "leaf0/both", ["leaf0", "spine", "leaf1"]),
                 (paper.three_tiers(1, 2, 2, 1, 1, mesh=True), ("h0-0-0", "h0-1-0"), "leaf0-0/up0,leaf0-1/up1",
                  ["leaf0-0", "spine0-1", "super0", "spine0-0", "leaf0-1"]))
        for f, ends, failed, way in cases:
            flows = [(*ends, SPEED)]
            done, found = self.whatif(f, flows, "--failed", failed)
            self.assertEqual((done.returncode, done.stderr, len(found)), (0, "", 7))
            for policy, record in found.items():
                self.assertEqual(record["slowest_share"]["max"], 1, policy)
                self.assertGreater(record["flows_most"]["max"], 0, policy)
            plan = subprocess.run([PROGRAM, "plan", "--topology", str(self.folder / "t.yaml"), "--flows",
                                   str(self.folder / "f.csv"), "--json", "--failed", failed], text=True,
                                  capture_output=True)
            self.assertEqual((plan.returncode, plan.stderr), (0, ""))
            hops = json.loads(plan.stdout)["hops"]
            self.assertEqual([h["switch"][:len(want)] for h, want in zip(hops, way)], way)
            self.assertEqual(len(hops), len(way))

    def test_a_longer_way_is_left_again(self):
        """A plan for a port that was down is none once it is back: its leaf sends straight to the host."""
        f = paper.two_tiers(3, 2, 1)
        f.host("one", "10.9.0.1", [("leaf0", "one"), ("leaf2", "one")])
        f.host("both", "10.9.0.2", [("leaf0", "both"), ("leaf1", "both")])
        (self.folder / "t.yaml").write_text(f.yaml())
        (self.folder / "f.csv").write_text(paper.csv(f, [("one", "both", SPEED)]))
        tool = [PROGRAM, "plan", "--topology", str(self.folder / "t.yaml"), "--flows", str(self.folder / "f.csv"),
                "--json"]
        before = subprocess.run([*tool, "--failed", "leaf0/both,leaf2/one"], text=True, capture_output=True)
        self.assertEqual([h["switch"][:4] for h in json.loads(before.stdout)["hops"]], ["leaf", "spin", "leaf"])
        (self.folder / "p.json").write_text(before.stdout)
        after = subprocess.run([*tool, "--previous", str(self.folder / "p.json")], text=True, capture_output=True)
        record = json.loads(after.stdout)
        self.assertTrue(record["moved"])
        self.assertNotEqual((record["hops"][0]["switch"], len(record["hops"])), ("leaf0", 3))


if __name__ == "__main__":
    if "--seeds" in sys.argv:
        at = sys.argv.index("--seeds")
        SEEDS = int(sys.argv[at + 1])
        del sys.argv[at:at + 2]
    unittest.main()
