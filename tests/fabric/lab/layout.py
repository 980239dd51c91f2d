# SPDX-License-Identifier: Apache-2.0
"""What a fabric of a given size looks like: names, ports, addresses, routes. Pure, runs nothing.

Leaves have Ethernet1.. towards hosts (ifindex 1001..) and Ethernet51.. towards the spines (1051..),
spines Ethernet1.. towards the leaves (3001..), hosts eth0. With superspines (super1..) there are
pods of leaves and spines; then spines have Ethernet51.. (3501..) towards the superspines, and these
Ethernet1.. (4001..) towards the spines. Every box but the collector has mgmt0 on the collector's
bridge.
"""
from dataclasses import dataclass
from functools import cached_property
from ipaddress import IPv4Address
from math import inf

COLLECTOR = "collector"
COLLECTOR_IP = "172.31.0.1"
MGMT_IFINDEX = 900
DETOUR_TABLE = 100


@dataclass(frozen=True)
class Port:
    node: str
    name: str
    ifindex: int


@dataclass(frozen=True)
class Link:
    """Of two switches, a is the lower one."""
    a: Port
    b: Port


@dataclass(frozen=True)
class Detour:
    """What `spine` has for `leaf` it sends down to the leaf `via`, which sends it up to `second`."""
    spine: str
    leaf: str
    via: str
    second: str


@dataclass(frozen=True)
class Host:
    name: str
    leaf: int
    slot: int
    ip4: str
    ip6: str
    gateway4: str
    gateway6: str

    def address(self, family):
        return self.ip4 if family == 4 else self.ip6


class Layout:
    """Immutable. speed_bps is what the topology file says of every link; nothing shapes to it.

    spines and leaves are those of one pod. parallel links join a leaf and a spine. Superspines are in
    planes, of which each joins the spines of one place in their pods, or with mesh join every spine.
    swaps: pairs of numbers in `planned`, the links of the topology file, whose cables are changed
    over at their upper end; fabric_links are those that there are. detours: how many spines send
    something the long way round, one in each pod from the first on."""

    def __init__(self, spines=4, leaves=4, hosts=2, speed_bps=100_000_000, *, pods=1,
                 superspines=0, mesh=False, parallel=1, swaps=(), detours=0):
        if not (1 <= spines <= 128 and 2 <= leaves <= 200 and 1 <= hosts <= 49):
            raise ValueError("a fabric has 1 to 128 spines, 2 to 200 leaves, 1 to 49 hosts a leaf")
        if superspines and not (pods >= 2 and leaves * parallel <= 49 and spines * pods <= 64
                                and superspines <= 64 and (mesh or superspines % spines == 0)):
            raise ValueError("three tiers have 2 pods or more, up to 49 links down from a spine, up to "
                             "64 spines and superspines, and in each plane as many superspines")
        if pods > 1 and not superspines or not 1 <= parallel <= 8:
            raise ValueError("pods need superspines; up to 8 links are parallel")
        self.speed_bps = speed_bps
        self.pods = pods
        self.pod_leaves, self.pod_spines, self.parallel = leaves, spines, parallel
        leaves, spines = leaves * pods, spines * pods
        self.leaves = [f"leaf{n + 1}" for n in range(leaves)]
        self.spines = [f"spine{n + 1}" for n in range(spines)]
        self.superspines = [f"super{n + 1}" for n in range(superspines)]
        self.switches = self.leaves + self.spines + self.superspines
        width = max(2, len(str(leaves * hosts)))
        self.hosts = [
            Host(
                name=f"gpu{leaf * hosts + slot + 1:0{width}d}",
                leaf=leaf,
                slot=slot,
                ip4=f"10.0.{leaf + 1}.{4 * slot + 2}",
                ip6=f"fd00:0:{leaf + 1:x}:{slot + 1:x}::2",
                gateway4=f"10.0.{leaf + 1}.{4 * slot + 1}",
                gateway6=f"fd00:0:{leaf + 1:x}:{slot + 1:x}::1",
            )
            for leaf in range(leaves)
            for slot in range(hosts)
        ]
        self.boxes = self.switches + [host.name for host in self.hosts]
        self.nodes = self.boxes + [COLLECTOR]
        self.owner = {ip: host for host in self.hosts for ip in (host.ip4, host.ip6)}
        self.host_links = [
            Link(self.host_port(host), Port(host.name, "eth0", 2001)) for host in self.hosts
        ]
        cables = [*self._leaf_cables(), *self._spine_cables(superspines, mesh)]
        self.planned = [link for link, _ in cables]
        uppers = [link.b for link in self.planned]
        for one, other in swaps:
            uppers[one], uppers[other] = uppers[other], uppers[one]
        self.fabric_links = [Link(link.a, b) for link, b in zip(self.planned, uppers)]
        self._nets = {link: net for link, (_, net) in zip(self.fabric_links, cables)}
        self._above = {switch: [] for switch in self.switches}
        self._below = {switch: [] for switch in self.switches}
        for link in self.fabric_links:
            self._above[link.a.node].append(link)
            self._below[link.b.node].append(link)
        self.peer = {}
        for link in self.host_links + self.fabric_links:
            self.peer[link.a.node, link.a.name] = link.b
            self.peer[link.b.node, link.b.name] = link.a
        self.detours = [self._detour(pod) for pod in range(detours)]
        self._ways = None, {}

    def __str__(self):
        tops = f"{self.pods} pods, {len(self.superspines)} superspines, " if self.pods > 1 else ""
        odd = ", swapped" * (self.planned != self.fabric_links) + ", detour" * bool(self.detours)
        lines = f", {self.parallel} links each" if self.parallel > 1 else ""
        return (f"{tops}{len(self.spines)} spines, {len(self.leaves)} leaves{lines}, "
                f"{len(self.hosts)} hosts{odd}")

    def _leaf_cables(self):
        """(link, (third and second octet, host part)) of each; so the next."""
        for leaf in range(len(self.leaves)):
            first = leaf // self.pod_leaves * self.pod_spines
            for spine in range(first, first + self.pod_spines):
                for nth in range(self.parallel):
                    yield (Link(self.uplink(leaf, spine, nth), self.downlink(leaf, spine, nth)),
                           (spine, leaf, 2 * nth))

    def _spine_cables(self, superspines, mesh):
        a_plane = max(1, superspines // self.pod_spines)
        downs = [0] * superspines
        for spine, name in enumerate(self.spines if superspines else ()):
            place = spine % self.pod_spines
            mine = range(superspines) if mesh else range(place * a_plane, (place + 1) * a_plane)
            for nth, top in enumerate(mine):
                downs[top] += 1
                yield (Link(Port(name, f"Ethernet{51 + nth}", 3501 + nth),
                            Port(self.superspines[top], f"Ethernet{downs[top]}",
                                 4000 + downs[top])), (64 + top, spine, 0))

    def _detour(self, pod):
        """By the first spine, for the first leaf, over the last leaf and the last spine of a pod."""
        leaves = self.leaves[pod * self.pod_leaves:(pod + 1) * self.pod_leaves]
        spines = self.spines[pod * self.pod_spines:(pod + 1) * self.pod_spines]
        if len(spines) < 2 or self.pods == 1 and len(leaves) < 3:
            raise ValueError("a detour needs 2 spines and 3 leaves, or 2 in a pod")
        return Detour(spines[0], leaves[0], leaves[-1], spines[-1])

    def host_port(self, host):
        return Port(self.leaves[host.leaf], f"Ethernet{host.slot + 1}", 1001 + host.slot)

    def uplink(self, leaf, spine, nth=0):
        place = spine % self.pod_spines * self.parallel + nth
        return Port(self.leaves[leaf], f"Ethernet{51 + place}", 1051 + place)

    def downlink(self, leaf, spine, nth=0):
        place = leaf % self.pod_leaves * self.parallel + nth
        return Port(self.spines[spine], f"Ethernet{place + 1}", 3001 + place)

    def ports(self, switch):
        """The ports of a switch, in the order of their ifindex."""
        links = self.host_links + self.fabric_links
        ends = [end for link in links for end in (link.a, link.b) if end.node == switch]
        return sorted(ends, key=lambda port: port.ifindex)

    @cached_property
    def port_of(self):
        """{(switch, ifindex): name}"""
        return {(port.node, port.ifindex): port.name for switch in self.switches
                for port in self.ports(switch)}

    def mgmt(self, node):
        return str(IPv4Address("172.31.1.1") + self.boxes.index(node))

    def second_mgmt(self, switch):
        """Another address of a switch, by which its exporter may call itself."""
        return str(IPv4Address("172.31.128.1") + self.boxes.index(switch))

    def _ends(self, link):
        """Addresses of a fabric link: ((IPv4, IPv6) of a, the same of b)."""
        upper, lower, low = self._nets[link]
        four = f"10.{128 + upper}.{lower}."
        six = f"fd00:ffff:{upper + 1:x}:{lower + 1:x}::"
        return ((f"{four}{low}", f"{six}{low:x}" if low else six),
                (f"{four}{low + 1}", f"{six}{low + 1:x}"))

    def addresses(self, node):
        """`ip -batch` lines that give a box its addresses."""
        if node in self.switches:
            for host in self.hosts:
                port = self.host_port(host)
                if port.node == node:
                    yield f"addr add {host.gateway4}/30 dev {port.name}"
                    yield f"addr add {host.gateway6}/64 dev {port.name} nodad"
            ends = [(link.a, self._ends(link)[0]) for link in self._above[node]]
            ends += [(link.b, self._ends(link)[1]) for link in self._below[node]]
            for port, (four, six) in ends:
                yield f"addr add {four}/31 dev {port.name}"
                yield f"addr add {six}/127 dev {port.name} nodad"
        else:
            host = next(h for h in self.hosts if h.name == node)
            yield f"addr add {host.ip4}/30 dev eth0"
            yield f"addr add {host.ip6}/64 dev eth0 nodad"
            yield f"route add default via {host.gateway4}"
            yield f"route add default via {host.gateway6}"

    def _distances(self, leaf, dead):
        """{switch: links to a leaf by way of lower switches alone}, {switch: links in all}."""
        down = dict.fromkeys(self.switches, inf)
        down[leaf] = 0
        for switch in self.spines + self.superspines:
            down[switch] = min((1 + down[link.a.node] for link in self._below[switch]
                                if link not in dead), default=inf)
        total = {}
        for switch in self.superspines + self.spines + self.leaves:
            total[switch] = min([down[switch], *(1 + total[link.b.node]
                                                 for link in self._above[switch]
                                                 if link not in dead)])
        return down, total

    def next_links(self, leaf, dead=frozenset()):
        """{switch: the equal-cost links by which it sends to a leaf}, none through a valley; what
        takes a detour aside. Empty where the leaf is beyond reach."""
        if self._ways[0] != dead:
            self._ways = frozenset(dead), {}
        if leaf not in self._ways[1]:
            self._ways[1][leaf] = self._next_links(leaf, dead)
        return self._ways[1][leaf]

    def _next_links(self, leaf, dead):
        down, total = self._distances(leaf, dead)
        found = {}
        for switch in self.switches:
            if total[switch] in (0, inf):
                found[switch] = []
            elif down[switch] == total[switch]:
                found[switch] = [link for link in self._below[switch] if link not in dead
                                 and down[link.a.node] == down[switch] - 1]
            else:
                found[switch] = [link for link in self._above[switch] if link not in dead
                                 and total[link.b.node] == total[switch] - 1]
        for detour in (d for d in self.detours if d.leaf == leaf):
            found[detour.spine] = self.between(detour.via, detour.spine)
            # As a protocol does that knows a way by what it has passed.
            found[detour.via] = [link for link in found[detour.via] if link.b.node != detour.spine]
        return found

    def between(self, lower, upper):
        """The links that join two switches."""
        return [link for link in self._above[lower] if link.b.node == upper]

    def is_claimed(self, path):
        """Whether a path (hops of switch, port in, port out) is over links of the topology file and
        among the shortest."""
        planned = {(one.node, one.name): (other.node, other.name) for link in self.planned
                   for one, other in ((link.a, link.b), (link.b, link.a))}
        first, last = path[0][0], path[-1][0]
        _, total = self._distances(last, frozenset())
        return len(path) == 1 + total[first] and all(
            planned.get((switch, out)) == (then, inp)
            for (switch, _, out), (then, inp, _) in zip(path, path[1:]))

    def spreads(self, switch):
        """Whether a switch has the choice of several links for some leaf."""
        return any(len(self.next_links(leaf)[switch]) > 1 for leaf in self.leaves)

    def routes(self, switch, dead=frozenset()):
        """`ip -batch` lines for the routes of a switch, what a routing protocol would have told it
        with the links of dead gone. A destination beyond reach keeps its old route."""
        for leaf in self.leaves:
            if leaf != switch:
                yield from self._route(switch, leaf, self.next_links(leaf, dead)[switch])

    def _route(self, switch, leaf, links, table="", how=""):
        hops = [((link.b, self._ends(link)[1], link.a) if link.a.node == switch
                 else (link.a, self._ends(link)[0], link.b)) for link in links]
        if hops:
            number = self.leaves.index(leaf) + 1
            four = " ".join(f"nexthop via {ip[0]} dev {port.name}{how}" for _, ip, port in hops)
            six = " ".join(f"nexthop via {ip[1]} dev {port.name}{how}" for _, ip, port in hops)
            yield f"route replace 10.0.{number}.0/24 {table}{four}"
            yield f"route replace fd00:0:{number:x}::/48 {table}{six}"

    def detour_rules(self, switch):
        """`ip -batch` lines, for either family, and lines for the routes, of the leaf in the middle
        of a detour: what comes from that spine does not go back there."""
        rules, routes = [], []
        for detour in (d for d in self.detours if d.via == switch):
            rules += [f"rule add iif {link.a.name} lookup {DETOUR_TABLE}"
                      for link in self.between(detour.via, detour.spine)]
            routes += self._route(switch, detour.leaf, self.between(detour.via, detour.second),
                                  f"table {DETOUR_TABLE} ", " onlink")
        return rules, routes

    def tier(self, switch):
        return ("leaf" if switch in self.leaves else "spine" if switch in self.spines
                else "superspine")

    def topology(self, fabric):
        """The static topology file of fabrictraced."""
        lines = [f"fabric: {fabric}", "switches:"]
        for switch in self.switches:
            lines += [
                f"  - name: {switch}",
                f"    tier: {self.tier(switch)}",
                f"    addresses: [{self.mgmt(switch)}, {self.second_mgmt(switch)}]",
                "    ports:",
            ]
            lines += [
                f"      - {{ifindex: {p.ifindex}, name: {p.name}, speed_bps: {self.speed_bps}}}"
                for p in self.ports(switch)
            ]
        lines.append("links:")
        lines += [
            f"  - {{a: {link.a.node}, a_port: {link.a.name}, "
            f"b: {link.b.node}, b_port: {link.b.name}}}"
            for link in self.planned
        ]
        lines.append("hosts:")
        for host in self.hosts:
            port = self.host_port(host)
            lines += [
                f"  - name: {host.name}",
                "    nics:",
                f'      - {{addresses: [{host.ip4}, "{host.ip6}"], '
                f"attach: [{{switch: {port.node}, port: {port.name}}}]}}",
            ]
        return "\n".join(lines) + "\n"
