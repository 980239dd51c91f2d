# SPDX-License-Identifier: Apache-2.0
"""What a fabric of a given size looks like: names, ports, addresses, routes. Pure, runs nothing.

Leaves have Ethernet1.. towards hosts (ifindex 1001..) and Ethernet51.. towards the spines (1051..),
spines Ethernet1.. towards the leaves (3001..), hosts eth0. Every box but the collector has mgmt0 on
the collector's bridge.
"""
from dataclasses import dataclass
from ipaddress import IPv4Address

COLLECTOR = "collector"
COLLECTOR_IP = "172.31.0.1"
MGMT_IFINDEX = 900


@dataclass(frozen=True)
class Port:
    node: str
    name: str
    ifindex: int


@dataclass(frozen=True)
class Link:
    a: Port
    b: Port


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
    """Immutable. speed_bps is what the topology file says of every link; nothing shapes to it."""

    def __init__(self, spines=4, leaves=4, hosts=2, speed_bps=100_000_000):
        if not (1 <= spines <= 128 and 2 <= leaves <= 200 and 1 <= hosts <= 49):
            raise ValueError("a fabric has 1 to 128 spines, 2 to 200 leaves, 1 to 49 hosts a leaf")
        self.speed_bps = speed_bps
        self.leaves = [f"leaf{n + 1}" for n in range(leaves)]
        self.spines = [f"spine{n + 1}" for n in range(spines)]
        self.switches = self.leaves + self.spines
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
        self.fabric_links = [
            Link(self.uplink(leaf, spine), self.downlink(leaf, spine))
            for leaf in range(leaves)
            for spine in range(spines)
        ]
        self.peer = {}
        for link in self.host_links + self.fabric_links:
            self.peer[link.a.node, link.a.name] = link.b
            self.peer[link.b.node, link.b.name] = link.a

    def host_port(self, host):
        return Port(self.leaves[host.leaf], f"Ethernet{host.slot + 1}", 1001 + host.slot)

    def uplink(self, leaf, spine):
        return Port(self.leaves[leaf], f"Ethernet{51 + spine}", 1051 + spine)

    def downlink(self, leaf, spine):
        return Port(self.spines[spine], f"Ethernet{leaf + 1}", 3001 + leaf)

    def ports(self, switch):
        """The ports of a switch, in the order of their ifindex."""
        links = self.host_links + self.fabric_links
        ends = [end for link in links for end in (link.a, link.b) if end.node == switch]
        return sorted(ends, key=lambda port: port.ifindex)

    def mgmt(self, node):
        return str(IPv4Address("172.31.1.1") + self.boxes.index(node))

    def second_mgmt(self, switch):
        """Another address of a switch, by which its exporter may call itself."""
        return str(IPv4Address("172.31.128.1") + self.boxes.index(switch))

    def addresses(self, node):
        """`ip -batch` lines that give a box its addresses."""
        if node in self.leaves:
            leaf = self.leaves.index(node)
            for host in (h for h in self.hosts if h.leaf == leaf):
                port = self.host_port(host).name
                yield f"addr add {host.gateway4}/30 dev {port}"
                yield f"addr add {host.gateway6}/64 dev {port} nodad"
            for spine in range(len(self.spines)):
                port = self.uplink(leaf, spine).name
                yield f"addr add 10.{128 + spine}.{leaf}.0/31 dev {port}"
                yield f"addr add fd00:ffff:{spine + 1:x}:{leaf + 1:x}::/127 dev {port} nodad"
        elif node in self.spines:
            spine = self.spines.index(node)
            for leaf in range(len(self.leaves)):
                port = self.downlink(leaf, spine).name
                yield f"addr add 10.{128 + spine}.{leaf}.1/31 dev {port}"
                yield f"addr add fd00:ffff:{spine + 1:x}:{leaf + 1:x}::1/127 dev {port} nodad"
        else:
            host = next(h for h in self.hosts if h.name == node)
            yield f"addr add {host.ip4}/30 dev eth0"
            yield f"addr add {host.ip6}/64 dev eth0 nodad"
            yield f"route add default via {host.gateway4}"
            yield f"route add default via {host.gateway6}"

    def routes(self, switch, dead=frozenset()):
        """`ip -batch` lines for the routes of a switch, what a routing protocol would have told it
        with the (leaf, spine) links of dead gone. A destination beyond reach keeps its old route.
        """
        spines = range(len(self.spines))
        for leaf, name in enumerate(self.leaves):
            if name == switch:
                continue
            if switch in self.spines:
                here = self.spines.index(switch)
                hops = [] if (leaf, here) in dead else [
                    (f"10.{128 + here}.{leaf}.0", f"fd00:ffff:{here + 1:x}:{leaf + 1:x}::",
                     self.downlink(leaf, here).name)
                ]
            else:
                here = self.leaves.index(switch)
                hops = [
                    (f"10.{128 + spine}.{here}.1", f"fd00:ffff:{spine + 1:x}:{here + 1:x}::1",
                     self.uplink(here, spine).name)
                    for spine in spines
                    if (leaf, spine) not in dead and (here, spine) not in dead
                ]
            if hops:
                four = " ".join(f"nexthop via {v4} dev {port}" for v4, _, port in hops)
                six = " ".join(f"nexthop via {v6} dev {port}" for _, v6, port in hops)
                yield f"route replace 10.0.{leaf + 1}.0/24 {four}"
                yield f"route replace fd00:0:{leaf + 1:x}::/48 {six}"

    def topology(self, fabric):
        """The static topology file of fabrictraced."""
        lines = [f"fabric: {fabric}", "switches:"]
        for switch in self.switches:
            lines += [
                f"  - name: {switch}",
                f"    tier: {'leaf' if switch in self.leaves else 'spine'}",
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
            for link in self.fabric_links
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
