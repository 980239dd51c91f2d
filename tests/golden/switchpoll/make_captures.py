#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the captures of the poller's golden tests, from the standards and nothing of ours: sFlow
version 5 in UDP, in pcap (Ethernet, Linux cooked) and pcapng.

As a program: writes fabric.pcap next to itself."""
import ipaddress
import struct
from pathlib import Path

ETHERNET, RAW, COOKED, COOKED2 = 1, 101, 113, 276
WRITE_ONLY, ACK, CNP = 0x0A, 0x11, 0x81
INTERNAL = 0x3FFFFFFF
DISCARD, MULTIPLE = 1, 2
START = 1700000000


def packed(address):
    return ipaddress.ip_address(address).packed


def bth(opcode, dst_qp):
    return struct.pack(">BBHII", opcode, 0, 0xFFFF, dst_qp, 0)


def udp(src, dst, sport, payload, dport=4791, ecn=2):
    """An IP packet."""
    src, dst = packed(src), packed(dst)
    body = struct.pack(">HHHH", sport, dport, 8 + len(payload), 0) + payload
    if len(src) == 4:
        head = struct.pack(">BBHHHBBH", 0x45, ecn, 20 + len(body), 0, 0x4000, 64, 17, 0)
    else:
        head = struct.pack(">IHBB", 6 << 28 | ecn << 20, len(body), 17, 64)
    return head + src + dst + body


def ethertype(packet):
    return 0x0800 if packet[0] >> 4 == 4 else 0x86DD


def ethernet(packet, *tags):
    """tags: (TPID, VLAN id), the outermost first."""
    vlan = b"".join(struct.pack(">HH", tpid, vid) for tpid, vid in tags)
    return bytes(12) + vlan + struct.pack(">H", ethertype(packet)) + packet


def cooked(packet):
    return struct.pack(">HHH8sH", 0, 1, 6, bytes(8), ethertype(packet)) + packet


def cooked2(packet):
    return struct.pack(">HHIHBB8s", ethertype(packet), 0, 7, 1, 0, 6, bytes(8)) + packet


def opaque(data):
    return struct.pack(">I", len(data)) + data + bytes(-len(data) % 4)


def structure(form, data):
    return struct.pack(">I", form) + opaque(data)


def raw_header(frame, length):
    return structure(1, struct.pack(">III", 1, length, 4) + opaque(frame))


def flow_sample(sequence, source, port_in, port_out, records, rate=1000, drops=0):
    """Compact form; port_out may be (format, value)."""
    form, value = port_out if isinstance(port_out, tuple) else (0, port_out)
    head = struct.pack(">IIIIIII", sequence, source[0] << 24 | source[1], rate, rate * sequence % 2**32,
                       drops, port_in, form << 30 | value)
    return structure(1, head + struct.pack(">I", len(records)) + b"".join(records))


def expanded_sample(sequence, source, port_in, port_out, records, rate=1000, drops=0):
    form, value = port_out if isinstance(port_out, tuple) else (0, port_out)
    head = struct.pack(">IIIIIIIIII", sequence, *source, rate, rate * sequence % 2**32, drops, 0, port_in,
                       form, value)
    return structure(3, head + struct.pack(">I", len(records)) + b"".join(records))


def generic_counters(ifindex, in_bytes, out_bytes, speed=400 * 10**9, unknown=False):
    many = 0xFFFFFFFF if unknown else 3
    return structure(1, struct.pack(">IIQIIQIIIIIIQIIIIII", ifindex, 6, speed, 1, 3, in_bytes, 100,
                                    many, many, 1, 2, 0, out_bytes, 200, many, many, 4, 5, 0))


def counter_sample(sequence, source, records):
    head = struct.pack(">III", sequence, source[0] << 24 | source[1], len(records))
    return structure(2, head + b"".join(records))


def datagram(agent, sequence, uptime_ms, samples, sub_agent=0):
    agent = packed(agent)
    return struct.pack(">II", 5, 1 if len(agent) == 4 else 2) + agent + struct.pack(
        ">IIII", sub_agent, sequence, uptime_ms, len(samples)) + b"".join(samples)


def roce(src, dst, sport, opcode=WRITE_ONLY, qp=17, ecn=2, tags=()):
    """The record of a sampled RoCEv2 packet, cut to 128 bytes as switches do."""
    frame = ethernet(udp(src, dst, sport, bth(opcode, qp) + bytes(1000), ecn=ecn), *tags)
    return raw_header(frame[:128], len(frame) + 4)


LEAF, SPINE, SIX = "192.0.2.11", "192.0.2.21", "2001:db8::31"
DATA = ("10.0.1.1", "10.0.3.1", 49441)
ACKS = ("10.0.3.1", "10.0.1.1", 49441)
DATA6 = ("fd00:1::1", "fd00:3::1", 50000)


def fabric():
    """Each kind of thing that a fabric sends: (seconds after START, UDP payload)."""
    late = datagram(LEAF, 3, 1350, [flow_sample(5, (0, 1), 1, (MULTIPLE, 2), [roce(*DATA)])])
    return [
        # One flow at both ends of its first switch, its acknowledgements, and the next switch.
        (0.1, datagram(LEAF, 1, 1000, [
            flow_sample(1, (0, 1), 1, 49, [roce(*DATA)]),
            flow_sample(1, (0, 49), 1, 49, [roce(*DATA)]),
            flow_sample(2, (0, 49), 49, 1, [roce(*ACKS, opcode=ACK, qp=33)])])),
        (0.2, datagram(SPINE, 1, 77000, [
            expanded_sample(1, (0, 1), 1, 3, [roce(*DATA)], rate=2000)])),
        # The same flow again: congestion experienced, another queue pair on the same tuple.
        (0.3, datagram(LEAF, 2, 1200, [
            flow_sample(2, (0, 1), 1, 49, [roce(*DATA, ecn=3)]),
            flow_sample(3, (0, 1), 1, 49, [roce(*DATA, qp=18)])])),
        # Datagram 3 comes after datagram 4, and twice.
        (0.4, datagram(LEAF, 4, 1400, [flow_sample(6, (0, 1), 1, (DISCARD, 2), [roce(*DATA)])])),
        (0.45, late),
        (0.46, late),
        # 5 and 6 are lost. What we do not know stands between what we know.
        (1.1, datagram(LEAF, 7, 2100, [
            structure(4413 << 12 | 1, bytes(20)),
            flow_sample(9, (0, 1), 1, 50, [structure(1001, bytes(16)),
                                           roce(*DATA6, tags=((0x88A8, 5), (0x8100, 6)))]),
            flow_sample(10, (0, 1), 1, 49, [raw_header(bytes(12) + b"\x08\x06" + bytes(46), 64)]),
            flow_sample(11, (0, 1), 1, 49, [raw_header(ethernet(udp(*DATA, b""))[:30], 64)]),
            counter_sample(1, (0, 1), [structure(2, bytes(52)), generic_counters(1, 10**15, 7)]),
            counter_sample(1, (0, 49), [structure(2001, bytes(8))])])),
        # An IPv6 agent; the switch itself sends; the exporter does not know the way out; a bridge as
        # data source; port counters twice in an interval.
        (1.5, datagram(SIX, 10, 5, [
            flow_sample(1, (0, 7), INTERNAL, 0, [roce(*DATA6, opcode=CNP)]),
            flow_sample(1, (2, 1000), 3, 3, [
                raw_header(ethernet(udp("10.0.0.1", "10.0.0.2", 53, b"x" * 20, dport=53)), 66)]),
            counter_sample(1, (0, 7), [generic_counters(7, 1, 2)]),
            counter_sample(2, (0, 7), [generic_counters(7, 3, 4, unknown=True)])])),
        # The leaf's agent restarts.
        (2.2, datagram(LEAF, 1, 50, [flow_sample(1, (0, 1), 1, 49, [roce(*DATA)])])),
        # Not sFlow version 5; cut off; a broken sample beside a good one.
        (2.3, struct.pack(">II", 4, 1) + bytes(60)),
        (2.31, b"not sFlow at all"),
        (2.32, datagram(LEAF, 2, 150, [flow_sample(2, (0, 1), 1, 49, [roce(*DATA)])])[:-8]),
        (2.33, datagram(LEAF, 2, 160, [structure(1, bytes(12)),
                                       flow_sample(3, (0, 1), 1, 49, [roce(*DATA)])])),
        # Past the time of a loss record.
        (12.5, datagram(LEAF, 3, 10350, [flow_sample(4, (0, 1), 1, 49, [roce(*DATA)])])),
    ]


def vxlan(frame, src="192.0.2.101", dst="192.0.2.103", sport=55555, vni=5001, ecn=2):
    return ethernet(udp(src, dst, sport, struct.pack(">II", 0x08000000, vni << 8) + frame, dport=4789,
                        ecn=ecn))


def discarded_packet(sequence, source, port_in, port_out, reason, records, drops=0):
    """sflow_drops.txt: sample format 5."""
    head = struct.pack(">IIIIIII", sequence, *source, drops, port_in, port_out, reason)
    return structure(5, head + struct.pack(">I", len(records)) + b"".join(records))


def words(form, *values):
    return structure(form, struct.pack(f">{len(values)}I", *values))


def framed(link, payload, dport=6343):
    packet = udp("192.0.2.1", "192.0.2.100", 40000, payload, dport=dport)
    if link == RAW:
        return packet
    return {ETHERNET: ethernet, COOKED: cooked, COOKED2: cooked2}[link](packet)


def pcap(link, packets, dport=6343):
    """packets: (seconds after START, UDP payload); the file's bytes."""
    out = [struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, link)]
    for at, payload in packets:
        frame = framed(link, payload, dport)
        seconds, micros = divmod(round((START + at) * 10**6), 10**6)
        out.append(struct.pack("<IIII", seconds, micros, len(frame), len(frame)) + frame)
    return b"".join(out)


def pcapng(link, packets):
    def block(kind, body):
        body += bytes(-len(body) % 4)
        return struct.pack("<II", kind, 12 + len(body)) + body + struct.pack("<I", 12 + len(body))

    out = [block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)),
           block(1, struct.pack("<HHI", link, 0, 65535))]
    for at, payload in packets:
        frame = framed(link, payload)
        micros = round((START + at) * 10**6)
        out.append(block(6, struct.pack("<IIIII", 0, micros >> 32, micros & 0xFFFFFFFF, len(frame),
                                        len(frame)) + frame))
    return b"".join(out)


if __name__ == "__main__":
    (Path(__file__).resolve().parent / "fabric.pcap").write_bytes(pcap(ETHERNET, fabric()))
