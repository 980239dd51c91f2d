# SPDX-License-Identifier: Apache-2.0
"""What `ip route get` asks, by netlink and a hundred times as fast: often enough to tell at which moment
a flow had which path."""
import socket
import struct

from .fabric import in_netns

RTM_GETROUTE = 26
NLM_F_REQUEST = 1
NLMSG_ERROR = 2
RTM_F_LOOKUP_TABLE = 0x1000
RTA_DST, RTA_SRC, RTA_IIF, RTA_OIF, RTA_IP_PROTO, RTA_SPORT, RTA_DPORT = 1, 2, 3, 4, 27, 28, 29
RTN_UNICAST = 1
ROCE_PORT = 4791
HOPS_MAX = 12


def _netlink():
    sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, 0)
    sock.settimeout(10)
    sock.bind((0, 0))
    return sock


def _attribute(kind, value):
    return struct.pack("HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)


def question(flow, ifindex):
    """The request for the route of a RoCEv2 flow that comes in by a port."""
    family = socket.AF_INET6 if ":" in flow.src else socket.AF_INET
    src, dst = (socket.inet_pton(family, ip) for ip in (flow.src, flow.dst))
    bits = 8 * len(dst)
    body = struct.pack("BBBBBBBBI", family, bits, bits, 0, 0, 0, 0, 0, RTM_F_LOOKUP_TABLE)
    body += b"".join((
        _attribute(RTA_DST, dst), _attribute(RTA_SRC, src),
        _attribute(RTA_IIF, struct.pack("I", ifindex)),
        _attribute(RTA_IP_PROTO, struct.pack("B", socket.IPPROTO_UDP)),
        _attribute(RTA_SPORT, struct.pack("!H", flow.sport)),
        _attribute(RTA_DPORT, struct.pack("!H", ROCE_PORT))))
    return struct.pack("IHHII", 16 + len(body), RTM_GETROUTE, NLM_F_REQUEST, 0, 0) + body


def answer(message):
    """The ifindex by which the kernel sends it on, or None where it does not."""
    _, kind = struct.unpack_from("IH", message)
    if kind == NLMSG_ERROR or message[16 + 7] != RTN_UNICAST:
        return None
    at = 16 + 12
    while at + 4 <= len(message):
        size, kind = struct.unpack_from("HH", message, at)
        if kind == RTA_OIF:
            return struct.unpack_from("I", message, at + 4)[0]
        at += max(4, size + 3 & ~3)
    return None


class Routes:
    """A question to the kernel of each switch, kept open while the lab is up."""

    def __init__(self, fabric):
        self.layout = fabric.layout
        self.ifindex = {(port.node, port.name): port.ifindex for switch in self.layout.switches
                        for port in self.layout.ports(switch)}
        self.sockets = {switch: in_netns(fabric.netns(switch), _netlink)
                        for switch in self.layout.switches}

    def close(self):
        for sock in self.sockets.values():
            sock.close()

    def _out(self, flow, port):
        sock = self.sockets[port.node]
        sock.send(question(flow, port.ifindex))
        out = answer(sock.recv(65536))
        return out and self.layout.port_of.get((port.node, out))

    def path(self, flow):
        """The path of a flow, which ends early where its packets do."""
        layout = self.layout
        port = layout.host_port(layout.owner[flow.src])
        hops = []
        while port.node in self.sockets and len(hops) < HOPS_MAX:
            out = self._out(flow, port)
            if not out:
                break
            hops.append((port.node, port.name, out))
            port = layout.peer[port.node, out]
        return tuple(hops)

    def paths(self, flows):
        """{Flow: path}"""
        return {flow: self.path(flow) for flow in flows}
