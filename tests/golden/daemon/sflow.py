# SPDX-License-Identifier: Apache-2.0
"""Reads captures of sFlow datagrams for the tests, from the standards and nothing of ours: classic
pcap with Ethernet, compact flow samples with raw headers, which is what pmacct's uacctd sends."""
import struct
from collections import Counter
from dataclasses import dataclass
from ipaddress import ip_address

FLOW_SAMPLE, COUNTER_SAMPLE = 1, 2
RAW_HEADER = 1
BTH_DPORT = 4791
ACK_OPCODES = (0x11, 0x12, 0x81)  # acknowledge, atomic acknowledge, CNP


@dataclass(frozen=True)
class Sample:
    at_ms: int
    agent: str
    in_ifindex: int
    out_ifindex: int
    rate: int
    frame_bytes: int
    src: str
    dst: str
    sport: int
    dport: int
    ack: bool

    @property
    def flow(self):
        return self.src, self.dst, self.sport

    @property
    def place(self):
        return (self.agent, self.in_ifindex, self.out_ifindex, *self.flow, self.dport)


def datagrams(capture):
    """(milliseconds, UDP payload) of each IPv4 packet in a capture file's bytes."""
    if struct.unpack_from("<I", capture)[0] != 0xA1B2C3D4:
        raise ValueError("no pcap file of this machine's byte order in microseconds")
    at = 24
    while at < len(capture):
        seconds, micros, captured, wire = struct.unpack_from("<IIII", capture, at)
        frame = capture[at + 16:at + 16 + captured]
        if captured != wire or frame[12:14] != b"\x08\x00" or frame[23] != 17:
            raise ValueError("a packet that is no whole UDP datagram over IPv4")
        start = 14 + 4 * (frame[14] & 15)
        length, = struct.unpack_from(">H", frame, start + 4)
        yield seconds * 1000 + micros // 1000, frame[start + 8:start + length]
        at += 16 + captured


def structures(data, at, count):
    """(format, content) of XDR structures one behind another."""
    for _ in range(count):
        form, length = struct.unpack_from(">II", data, at)
        yield form, data[at + 8:at + 8 + length]
        at += 8 + length + -length % 4


def samples_in(payload):
    """(agent's address, [(format, content)]) of a datagram of version 5 from an IPv4 agent."""
    version, kind = struct.unpack_from(">II", payload)
    if (version, kind) != (5, 1):
        raise ValueError("not sFlow version 5 from an IPv4 agent")
    count, = struct.unpack_from(">I", payload, 24)
    return str(ip_address(payload[8:12])), list(structures(payload, 28, count))


def packet_of(header):
    """(src, dst, sport, dport, is an acknowledgement) of an Ethernet frame, or None."""
    kind = header[12:14]
    if kind == b"\x08\x00":
        proto, src, dst, body = header[23], header[26:30], header[30:34], 14 + 4 * (header[14] & 15)
    elif kind == b"\x86\xdd":
        proto, src, dst, body = header[20], header[22:38], header[38:54], 54
    else:
        return None
    if proto != 17:
        return None
    sport, dport = struct.unpack_from(">HH", header, body)
    ack = dport == BTH_DPORT and header[body + 8] in ACK_OPCODES
    return str(ip_address(src)), str(ip_address(dst)), sport, dport, ack


def read(capture):
    """What a capture file's bytes hold: ({format: samples}, [Sample] of UDP packets)."""
    total, found = Counter(), []
    for at_ms, payload in datagrams(capture):
        agent, samples = samples_in(payload)
        total.update(form for form, _ in samples)
        for form, content in samples:
            if form != FLOW_SAMPLE:
                continue
            rate, _, _, inp, out, count = struct.unpack_from(">6I", content, 8)
            for kind, record in structures(content, 32, count):
                if kind != RAW_HEADER:
                    continue
                _, frame_bytes, _, length = struct.unpack_from(">4I", record)
                packet = packet_of(record[16:16 + length])
                if packet:
                    found.append(Sample(at_ms, agent, inp, out, rate, frame_bytes, *packet))
    return total, found
