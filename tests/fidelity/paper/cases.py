# SPDX-License-Identifier: Apache-2.0
"""The cases, and how a run of one is made: the same seed makes the same run."""
import random

from . import fabric as fabrics
from .faults import Planner
from .ports import Ports
from .routing import Routing
from .samples import BASE_MS, Hops, Writer
from .truth import Flow, Truth

DELAY_S = 0.5  # most that an exporter's buffer holds a sample back; below 1
DENSE, USUAL, SPARSE, RARE = (20, 300), (0.2, 5), (0.2, 1), (0.02, 0.3)
FRAMES = 1104, 2126, 4174


class Case:
    """tiers: 2, 3, or 0 for either; rates of the usual flows; dense: share of dense ones;
    sprayed: share of flows whose every packet goes its own way; brief: share of those that begin
    later, and of those that end earlier; plan(planner) makes the faults, bend(run) the lies; named:
    there is a topology file; ports: how switches tell of their ports, one of these; bridging: a tier
    does not count the TTL down; tunnel: the leaves put packets into a tunnel; spines, leaves: so many
    of two tiers, 0: any; hosts: at each leaf then; crowd: times the flows; common: flows of other hosts
    may have the same source port, of which there are 16,384."""

    def __init__(self, tiers=0, plan=None, rates=USUAL, dense=0.1, sprayed=0.0, brief=0.15,
                 parallel=1, bend=None, named=True, ports=(None,), bridging=False, tunnel=False,
                 spines=0, leaves=0, hosts=4, crowd=1, common=False):
        self.tiers, self.plan, self.rates, self.dense = tiers, plan, rates, dense
        self.sprayed, self.brief, self.parallel = sprayed, brief, parallel
        self.bend, self.named, self.ports = bend, named, ports
        self.bridging, self.tunnel = bridging, tunnel
        self.spines, self.leaves, self.hosts = spines, leaves, hosts
        self.crowd, self.common = crowd, common


def moves(planner):
    planner.moves(planner.rng.randint(4, 15))


def one_out(planner):
    """A leaf's link is down for more than two windows."""
    start = planner.rng.uniform(37.5, 38.5)
    planner.fail(planner.any_link(), start, start + planner.rng.uniform(25, 35))


def few_moves(planner):
    planner.moves(planner.rng.randint(2, 5))


def all_sorts(planner):
    """Faults of every kind in one run."""
    rng = planner.rng
    planner.moves(rng.randint(2, 8))
    for plan in (Planner.bounces, Planner.doubles, Planner.rehashes):
        if rng.random() < 0.6:
            plan(planner, rng.uniform(40, 80))


def swap_cables(run):
    """Two cables of one leaf, or of two leaves at one spine, have changed places."""
    links, rng = run.fabric.links, run.rng
    first = rng.randrange(len(links))
    near = [n for n, link in enumerate(links) if n != first and
            (link.a == links[first].a) != (link.b == links[first].b)]
    run.fabric.swap(first, rng.choice(near))


def send_round(run):
    """A spine sends what is for one leaf through another one."""
    spine = run.rng.choice([s.name for s in run.fabric.switches.values() if s.tier == "spine"])
    leaves = [link.a for link in run.fabric.links if link.b == spine]
    run.fabric.detour = (spine, *run.rng.sample(sorted(set(leaves)), 2))


def attach_twice(run):
    """Half of the hosts hang on a second leaf, the next one."""
    leaves = run.fabric.leaves()
    for number, host in enumerate(list(run.fabric.hosts)):
        if run.rng.random() < 0.5:
            following = leaves[(leaves.index(host.attach[0][0]) + 1) % len(leaves)]
            run.fabric.attach_twice(number, following)


def blind_one(run):
    run.blind = [run.rng.choice(run.fabric.above() if run.rng.random() < 0.7
                                else run.fabric.leaves())]


CASES = {
    "steady2": Case(tiers=2),
    "steady3": Case(tiers=3),
    "out": Case(tiers=2, plan=one_out, rates=(2, 5), spines=4, leaves=3, crowd=3),
    "moves2": Case(tiers=2, plan=moves),
    "moves3": Case(tiers=3, plan=moves),
    "bounce": Case(plan=Planner.bounces),
    "double": Case(plan=Planner.doubles),
    "rehash": Case(plan=Planner.rehashes),
    "sparse": Case(plan=moves, rates=SPARSE, dense=0.0),
    "spray": Case(plan=few_moves, sprayed=0.2),
    "parallel": Case(tiers=2, plan=moves, parallel=2),
    "blind": Case(plan=few_moves, bend=blind_one),
    "swapped": Case(bend=swap_cables),
    "swapped-moves": Case(plan=few_moves, bend=swap_cables),
    "detour": Case(bend=send_round),
    "detour-later": Case(tiers=2, plan=Planner.detour, bend=send_round, rates=RARE),
    "dual": Case(plan=few_moves, bend=attach_twice),
    "linkdown": Case(plan=moves, brief=0.5, ports=("snmp", "sflow")),
    "nofile2": Case(tiers=2, named=False),
    "nofile3": Case(tiers=3, named=False),
    "nofile-moves": Case(plan=few_moves, named=False),
    "nofile-parallel": Case(tiers=2, parallel=2, named=False),
    "nofile-dual": Case(bend=attach_twice, named=False),
    "nofile-sparse": Case(rates=SPARSE, dense=0.0, named=False),
    "nofile-blind": Case(bend=blind_one, named=False),
    "nofile-bridged": Case(named=False, bridging=True),
    "nofile-bridged-blind": Case(bend=blind_one, named=False, bridging=True),
    "nofile-tunnel": Case(named=False, tunnel=True),
    "nofile-tunnel-blind": Case(bend=blind_one, named=False, tunnel=True),
    "swapped-tunnel": Case(bend=swap_cables, tunnel=True),
    "swapped-bridged": Case(bend=swap_cables, bridging=True),
    "chaos": Case(plan=all_sorts, brief=0.3, ports=(None, None, "snmp", "sflow")),
}


class Run:
    """One fabric, its flows and what befalls them."""

    def __init__(self, name, seed, flows, seconds, delay_s=DELAY_S):
        self.name, self.seed, self.seconds = name, seed, seconds
        self.case = CASES[name]
        self.rng = random.Random(f"{name} {seed} {flows} {seconds}")
        self.blind = []
        self.fabric = self.make_fabric()
        if self.case.bend:
            self.case.bend(self)
        part = self.rng.choice((0, 0, 1, 0.5))
        # Switches that count a packet's TTL down before they sample it.
        late = [name for name in self.fabric.switches if self.rng.random() < part]
        self.hops = Hops(self.fabric, late, self.one_tier() if self.case.bridging else (),
                         self.case.tunnel)
        self.routing = Routing(self.fabric, self.rng, self.rng.choice(("modulo", "resilient")))
        self.truth = Truth(self.make_flows(flows * self.case.crowd), delay_s)
        planner = Planner(self.rng, self.routing, seconds)
        if self.case.plan:
            self.case.plan(planner)
        self.truth.follow(self.routing, planner.planned(), self.rng)

    def make_fabric(self):
        pick = self.rng.choice
        tiers = self.case.tiers or pick((2, 3))
        if self.case.spines:
            return fabrics.two_tiers(self.case.leaves, self.case.spines, hosts=self.case.hosts)
        if tiers == 2:
            spines = pick((2, 3, 4)) if self.case.parallel == 1 else 2
            return fabrics.two_tiers(pick((3, 4, 6)), max(spines, 3 if self.case.bend else 2),
                                     self.case.parallel)
        return fabrics.three_tiers(pick((2, 3)), pick((2, 3)), pick((2, 3)), 2, pick((True, False)))

    def one_tier(self):
        switches = self.fabric.switches.values()
        tier = self.rng.choice(sorted({s.tier for s in switches}))
        return [s.name for s in switches if s.tier == tier]

    def make_flows(self, count):
        """A third of the flows of data have acknowledgements beside them, on the reverse tuple."""
        rng, hosts, flows, ports = self.rng, self.fabric.hosts, [], set()
        while len(flows) < count:
            source, target = rng.sample(hosts, 2)
            if source.attach[0][0] == target.attach[0][0] and rng.random() < 0.8:
                continue
            sport = rng.randint(49152, 65535)
            taken = (source.address, target.address, sport) if self.case.common else sport
            if taken in ports:
                continue
            ports.add(taken)
            flow = self.make_flow(len(flows), source, target, sport)
            flows.append(flow)
            if rng.random() < 0.33 and len(flows) < count and not flow.sprayed:
                flows.append(self.make_flow(len(flows), target, source, sport, flow))
        return flows

    def make_flow(self, number, source, target, sport, data=None):
        rng, case = self.rng, self.case
        low, high = DENSE if rng.random() < case.dense else case.rates
        rate = low * (high / low) ** rng.random()
        start, end = 0.0, float(self.seconds)
        if rng.random() < case.brief:
            start = rng.uniform(0, self.seconds / 2)
        if rng.random() < case.brief:
            end = rng.uniform(self.seconds / 2, self.seconds)
        if data:
            rate, start, end = max(min(0.2, low), data.rate / rng.uniform(2, 20)), data.start, data.end
        return Flow(number=number, src=source.address, dst=target.address, sport=sport, rate=rate,
                    one_in=rng.choice((1000, 2000, 4000)) if not data else data.one_in,
                    frame_bytes=rng.choice(FRAMES) if not data else 66, ack=bool(data),
                    sprayed=rng.random() < case.sprayed and not data, start=start, end=end,
                    key=rng.getrandbits(64), ttl=255 if rng.random() < 0.1 else 64)

    def write(self, out, fold=1):
        """Returns the Writer, which knows what it wrote."""
        style, how = self.rng.choice(("ingress", "bridge")), self.rng.choice(self.case.ports)
        ports = Ports(self.fabric, self.truth, self.rng, how, BASE_MS) if how else None
        writer = Writer(self.fabric, self.truth, self.rng, self.seconds, self.hops, self.blind, style,
                        ports, fold)
        writer.write(out)
        return writer
