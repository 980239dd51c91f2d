# SPDX-License-Identifier: Apache-2.0
"""Fabrics on paper: switches, cables, hosts, and the topology file that tells of them.

The file may lie: `told` is what it says of the cables, `links` is how they lie."""
from collections import namedtuple

SPEED_BPS = 100_000_000_000
HOST_PORTS_FROM, UPLINKS_FROM, DOWNLINKS_FROM = 1000, 1050, 3000

# ports: {name: ifIndex}
Switch = namedtuple("Switch", "name tier address ports")
Link = namedtuple("Link", "a a_port b b_port")
# attach: ((leaf, port), ...), two of a host on two leaves
Host = namedtuple("Host", "name address attach")


class Fabric:
    def __init__(self, name):
        self.name = name
        self.switches = {}
        self.links = []
        self.told = None  # None: the file says how the cables lie
        self.hosts = []
        self.detour = None  # (spine, leaf, leaf it goes through instead of its own link)

    def add_switch(self, name, tier):
        number = len(self.switches) + 1
        self.switches[name] = Switch(name, tier, f"172.31.{number // 200 + 1}.{number % 200 + 1}",
                                     {})

    def add_port(self, switch, number, base):
        name = f"Ethernet{number}"
        self.switches[switch].ports[name] = base + number
        return name

    def connect(self, lower, upper):
        """One more cable between a switch and one of the tier above."""
        up = sum(1 for link in self.links if link.a == lower) + 1
        down = sum(1 for link in self.links if link.b == upper) + 1
        self.links.append(Link(lower, self.add_port(lower, 50 + up, UPLINKS_FROM - 50), upper,
                               self.add_port(upper, down, DOWNLINKS_FROM)))

    def add_hosts(self, leaf_number, leaf, count):
        for n in range(1, count + 1):
            port = self.add_port(leaf, n, HOST_PORTS_FROM)
            self.hosts.append(Host(f"gpu{len(self.hosts) + 1:03}",
                                   f"10.{leaf_number // 200}.{leaf_number % 200 + 1}.{4 * n + 2}",
                                   ((leaf, port),)))

    def attach_twice(self, number, leaf):
        """A second cable of a host, to another leaf."""
        host = self.hosts[number]
        port = self.add_port(leaf, len(self.switches[leaf].ports) + 100, HOST_PORTS_FROM)
        self.hosts[number] = host._replace(attach=(*host.attach, (leaf, port)))

    def leaves(self):
        return [s.name for s in self.switches.values() if s.tier == "leaf"]

    def above(self):
        """The switches without hosts."""
        return [s.name for s in self.switches.values() if s.tier != "leaf"]

    def swap(self, first, second):
        """The upper ends of two cables change places; the file is not told."""
        self.told = self.told or list(self.links)
        a, b = self.links[first], self.links[second]
        self.links[first] = a._replace(b=b.b, b_port=b.b_port)
        self.links[second] = b._replace(b=a.b, b_port=a.b_port)

    def yaml(self):
        out = [f"fabric: {self.name}", "switches:"]
        for s in self.switches.values():
            out += [f"  - name: {s.name}", f"    tier: {s.tier}", f"    addresses: [{s.address}]",
                    "    ports:"]
            out += [f"      - {{ifindex: {index}, name: {port}, speed_bps: {SPEED_BPS}}}"
                    for port, index in s.ports.items()]
        out.append("links:")
        out += [f"  - {{a: {l.a}, a_port: {l.a_port}, b: {l.b}, b_port: {l.b_port}}}"
                for l in self.told or self.links]
        out.append("hosts:")
        for h in self.hosts:
            out += [f"  - name: {h.name}", "    nics:",
                    f"      - {{addresses: [{h.address}], attach: ["
                    + ", ".join(f"{{switch: {leaf}, port: {port}}}" for leaf, port in h.attach)
                    + "]}"]
        return "\n".join(out) + "\n"


def two_tiers(leaves, spines, parallel=1, hosts=4):
    fabric = Fabric("paper2")
    for n in range(1, spines + 1):
        fabric.add_switch(f"spine{n}", "spine")
    for n in range(1, leaves + 1):
        leaf = f"leaf{n}"
        fabric.add_switch(leaf, "leaf")
        fabric.add_hosts(n, leaf, hosts)
        for spine in range(1, spines + 1):
            for _ in range(parallel):
                fabric.connect(leaf, f"spine{spine}")
    return fabric


def three_tiers(pods, leaves, spines, supers, planes=True, hosts=3):
    """supers superspines a plane (spine n of each pod is in plane n), or in all where each spine
    reaches all of them."""
    fabric = Fabric("paper3")
    tops = [f"super{n}" for n in range(1, supers * (spines if planes else 1) + 1)]
    for top in tops:
        fabric.add_switch(top, "superspine")
    for pod in range(1, pods + 1):
        for n in range(1, spines + 1):
            spine = f"spine{pod}{n}"
            fabric.add_switch(spine, "spine")
            for top in tops[(n - 1) * supers:n * supers] if planes else tops:
                fabric.connect(spine, top)
        for n in range(1, leaves + 1):
            leaf = f"leaf{pod}{n}"
            fabric.add_switch(leaf, "leaf")
            fabric.add_hosts(pod * 10 + n, leaf, hosts)
            for spine in range(1, spines + 1):
                fabric.connect(leaf, f"spine{pod}{spine}")
    return fabric
