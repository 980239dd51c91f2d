# SPDX-License-Identifier: Apache-2.0
"""Fabrics on paper for the tests of `plan` and `whatif`: topology files, flows, and a judge of paths
that knows nothing of how they were found."""
import collections
import random

SPEED = 400_000_000_000


class Fabric:
    """Links between named ports, hosts at ports."""

    def __init__(self):
        self.switches = {}  # name: tier
        self.links = {}     # (switch, port): (switch, port), both ways
        self.hosts = {}     # name: [(address, rail, [(switch, port)])]
        self.at = {}        # (switch, port): name of the host
        self.speeds = {}    # (switch, port): bits per second

    def link(self, a, a_port, b, b_port, speed=SPEED):
        self.links[a, a_port], self.links[b, b_port] = (b, b_port), (a, a_port)
        self.speeds[a, a_port] = self.speeds[b, b_port] = speed

    def host(self, name, address, attach, rail=None):
        self.hosts.setdefault(name, []).append((address, rail, attach))
        for place in attach:
            self.at[place] = name

    def yaml(self, without=()):
        """The topology file; `without`: ends of links that are not in it."""
        lines = ["fabric: paper", f"speed_bps: {SPEED}", "switches:"]
        lines += [f"  - {{name: {name}, tier: {tier}}}" for name, tier in self.switches.items()]
        lines.append("links:")
        for (a, a_port), (b, b_port) in self.links.items():
            if (a, a_port) < (b, b_port) and not {(a, a_port), (b, b_port)} & set(without):
                lines.append(f"  - {{a: {a}, a_port: {a_port}, b: {b}, b_port: {b_port}, "
                             f"speed_bps: {self.speeds[a, a_port]}}}")
        lines.append("hosts:")
        for name, nics in self.hosts.items():
            lines += [f"  - name: {name}", "    nics:"]
            for address, rail, attach in nics:
                ports = ", ".join(f"{{switch: {s}, port: {p}}}" for s, p in attach)
                lines.append(f"      - {{addresses: [{address}], "
                             f"{'' if rail is None else f'rail: {rail}, '}attach: [{ports}]}}")
        return "\n".join(lines) + "\n"


def two_tiers(leaves, spines, hosts, parallel=1, speed=SPEED):
    f = Fabric()
    f.switches.update({f"spine{s}": "spine" for s in range(spines)})
    f.switches.update({f"leaf{n}": "leaf" for n in range(leaves)})
    for n in range(leaves):
        for s in range(spines):
            for k in range(parallel):
                f.link(f"leaf{n}", f"up{s}-{k}", f"spine{s}", f"down{n}-{k}", speed)
        for h in range(hosts):
            f.host(f"h{n}-{h}", f"10.{n // 250}.{n % 250}.{h + 1}", [(f"leaf{n}", f"host{h}")])
    return f


def three_tiers(pods, leaves, spines, supers, hosts, mesh=False):
    """`supers` superspines to each spine; with planes those of a spine's number, else all alike."""
    f = Fabric()
    planes = 1 if mesh else spines
    for c in range(planes * supers):
        f.switches[f"super{c}"] = "superspine"
    for p in range(pods):
        for s in range(spines):
            f.switches[f"spine{p}-{s}"] = "spine"
            for c in range(supers):
                top = c if mesh else s * supers + c
                f.link(f"spine{p}-{s}", f"up{c}", f"super{top}", f"down{p}-{s}")
        for n in range(leaves):
            f.switches[f"leaf{p}-{n}"] = "leaf"
            for s in range(spines):
                f.link(f"leaf{p}-{n}", f"up{s}", f"spine{p}-{s}", f"down{n}")
            for h in range(hosts):
                f.host(f"h{p}-{n}-{h}", f"10.{p}.{n}.{h + 1}", [(f"leaf{p}-{n}", f"host{h}")])
    return f


def two_planes(pairs, spines, hosts):
    """Each NIC on a leaf of plane a and on one of plane b, which have spines of their own."""
    f = Fabric()
    for plane in "ab":
        f.switches.update({f"spine{plane}{s}": "spine" for s in range(spines)})
        for n in range(pairs):
            f.switches[f"leaf{plane}{n}"] = "leaf"
            for s in range(spines):
                f.link(f"leaf{plane}{n}", f"up{s}", f"spine{plane}{s}", f"down{n}")
    for n in range(pairs):
        for h in range(hosts):
            f.host(f"h{n}-{h}", f"10.0.{n}.{h + 1}", [(f"leaf{p}{n}", f"host{h}") for p in "ab"])
    return f


def address(fabric, host):
    return fabric.hosts[host][0][0]


def leaf_of(fabric, host):
    return fabric.hosts[host][0][2][0][0]


def permutation(fabric, rng, rate=SPEED):
    """Every host sends to one and receives from one, none to its own leaf."""
    hosts = list(fabric.hosts)
    while True:
        to = hosts[:]
        rng.shuffle(to)
        # Those that met their own leaf change with others until none does.
        for i, host in enumerate(hosts):
            for _ in range(1000):
                if leaf_of(fabric, host) != leaf_of(fabric, to[i]):
                    break
                k = rng.randrange(len(hosts))
                if leaf_of(fabric, hosts[k]) != leaf_of(fabric, to[i]) and \
                        leaf_of(fabric, host) != leaf_of(fabric, to[k]):
                    to[i], to[k] = to[k], to[i]
        if all(leaf_of(fabric, a) != leaf_of(fabric, b) for a, b in zip(hosts, to)):
            return [(a, b, rate) for a, b in zip(hosts, to)]


def traffic(fabric, rng, count, rate=SPEED):
    hosts = list(fabric.hosts)
    flows = []
    while len(flows) < count:
        a, b = rng.choice(hosts), rng.choice(hosts)
        if a != b:
            flows.append((a, b, rate() if callable(rate) else rate))
    return flows


def csv(fabric, flows, names=False):
    return "src,dst,rate_bps\n" + "".join(
        f"{a if names else address(fabric, a)},{b if names else address(fabric, b)},{rate}\n"
        for a, b, rate in flows)


def judge(fabric, flows, records, down=()):
    """Raises where a record is no path of its flow; returns the rates on each directed link between
    switches, and on those out of and into hosts."""
    loads = collections.defaultdict(list)
    assert len(records) == len(flows), (len(records), len(flows))
    for (src, dst, rate), record in zip(flows, records):
        hops = record["hops"]
        places = [(h["switch"], h["in"]) for h in hops], [(h["switch"], h["out"]) for h in hops]
        assert all(set(h) <= {"switch", "in", "out"} for h in hops), record
        assert record["rate_bps"] == rate, record
        assert fabric.at.get(places[0][0]) == src == record["src_host"], record
        assert fabric.at.get(places[1][-1]) == dst == record["dst_host"], record
        tiers = [fabric.switches[h["switch"]] for h in hops]
        assert tiers in (["leaf"], ["leaf", "spine", "leaf"],
                         ["leaf", "spine", "superspine", "spine", "leaf"]), record
        for out, into in zip(places[1], places[0][1:]):
            assert fabric.links.get(out) == into, record
            assert not {out, into} & set(down), record
        for out in places[1]:
            loads[out].append(rate)
        loads["from", places[0][0]].append(rate)
    return loads


def between_switches(fabric, loads):
    return {link: rates for link, rates in loads.items() if link in fabric.links}


def fullest(fabric, loads):
    return max((len(rates) for rates in between_switches(fabric, loads).values()), default=0)


def even_share(fabric, flows):
    """By leaf and direction: flows that have to cross its links, and how many those are."""
    need, links = collections.Counter(), collections.Counter()
    for a, b, _ in flows:
        if leaf_of(fabric, a) != leaf_of(fabric, b):
            need[leaf_of(fabric, a), "up"] += 1
            need[leaf_of(fabric, b), "down"] += 1
    for switch, _ in fabric.links:
        if fabric.switches[switch] == "leaf":
            links[switch, "up"] += 1
            links[switch, "down"] += 1
    return {key: -(-n // links[key]) for key, n in need.items()}


def seeded(seed):
    return random.Random(seed)
