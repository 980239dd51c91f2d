# SPDX-License-Identifier: Apache-2.0
"""A small fabric for a real Prometheus: two leaves, four spines and a host on each leaf, told in sFlow
datagrams that are written here from the standard. leaf1 puts all its flows on one of its four uplinks,
which chance does not do; leaf2 spreads its own evenly."""
import struct
from ipaddress import ip_address

SPINES, FLOWS = 4, 16
RATE = 100
FRAME = 1500
SPEED_BPS = 1_000_000_000
UPLINKS = [51 + i for i in range(SPINES)]


def agent(switch):
    return {"leaf1": "192.0.2.1", "leaf2": "192.0.2.2"}.get(switch) or f"192.0.2.{10 + int(switch[-1])}"


def topology():
    text = f"fabric: small\nspeed_bps: {SPEED_BPS}\nswitches:\n"
    spines = [f"spine{i + 1}" for i in range(SPINES)]
    for switch in ("leaf1", "leaf2", *spines):
        indices = (1, 2) if switch in spines else (1, *UPLINKS)
        ports = ", ".join(f"{{name: Ethernet{i}, ifindex: {i}}}" for i in indices)
        text += f"  - {{name: {switch}, addresses: [{agent(switch)}], ports: [{ports}]}}\n"
    text += "links:\n"
    for leaf in (1, 2):
        for i, spine in enumerate(spines):
            text += (f"  - {{a: leaf{leaf}, a_port: Ethernet{51 + i}, b: {spine}, "
                     f"b_port: Ethernet{leaf}}}\n")
    text += "hosts:\n"
    for leaf in (1, 2):
        text += (f"  - {{name: gpu{leaf}, nics: [{{addresses: [10.0.{leaf}.1], "
                 f"attach: [{{switch: leaf{leaf}, port: Ethernet1}}]}}]}}\n")
    return text


def hops(leaf, flow):
    """(switch, in, out) of a flow from a leaf to the other one."""
    spine = 0 if leaf == 1 else flow % SPINES
    other = 3 - leaf
    return [(f"leaf{leaf}", 1, 51 + spine), (f"spine{spine + 1}", leaf, other),
            (f"leaf{other}", 51 + spine, 1)]


def header(leaf, flow, marked):
    """Ethernet, IPv4, UDP and the head of an RDMA WRITE, as far as a switch sends it."""
    bth = struct.pack(">BBHII", 0x0A, 0, 0xFFFF, 17, 0) + bytes(46)
    udp = struct.pack(">HHHH", 49152 + 100 * leaf + flow, 4791, FRAME - 38, 0)
    ip = struct.pack(">BBHHHBBH4s4s", 0x45, 3 if marked else 2, FRAME - 18, 0, 0x4000, 62, 17, 0,
                     ip_address(f"10.0.{leaf}.1").packed, ip_address(f"10.0.{3 - leaf}.1").packed)
    return bytes(12) + b"\x08\x00" + ip + udp + bth


def flow_sample(number, inp, out, packet):
    record = struct.pack(">4I", 1, FRAME, 4, len(packet)) + packet + bytes(-len(packet) % 4)
    body = struct.pack(">8I", number, inp, RATE, RATE * number, 0, inp, out, 1)
    body += struct.pack(">II", 1, len(record)) + record
    return struct.pack(">II", 1, len(body)) + body


def counter_sample(number, ifindex, octets):
    body = struct.pack(">IIQIIQIIIIIIQIIIIII", ifindex, 6, SPEED_BPS, 1, 3, octets, number, 0, 0, 0,
                       0, 0, octets, number, 0, 0, number, 0, 0)
    record = struct.pack(">II", 1, len(body)) + body
    sample = struct.pack(">III", number, ifindex, 1) + record
    return struct.pack(">II", 2, len(sample)) + sample


def datagram(switch, number, samples):
    return struct.pack(">II4sIIII", 5, 1, ip_address(agent(switch)).packed, 0, number, 1000 * number,
                       len(samples)) + b"".join(samples)


def second(number):
    """The datagrams of a second, the number-th from 1."""
    by_switch, at = {}, {}
    for leaf in (1, 2):
        for flow in range(FLOWS):
            for switch, inp, out in hops(leaf, flow):
                at[switch, inp] = at.get((switch, inp), 0) + 1
                count = (number - 1) * FLOWS + at[switch, inp]
                by_switch.setdefault(switch, []).append(
                    flow_sample(count, inp, out, header(leaf, flow, flow == 0)))
    for switch, samples in by_switch.items():
        ports = (1, 2) if switch.startswith("spine") else (1, *UPLINKS)
        samples += [counter_sample(number, port, 1_000_000 * number) for port in ports]
        parts = [samples[i:i + 8] for i in range(0, len(samples), 8)]
        for i, part in enumerate(parts):
            yield datagram(switch, (number - 1) * len(parts) + i + 1, part)
