# SPDX-License-Identifier: Apache-2.0
"""What all judges use: counting checks, and reading what tcpdump wrote."""
import ipaddress
import struct
from typing import NamedTuple

ACKS = {0x0C, 0x11, 0x12, 0x81}  # READ request, ACK, ATOMIC ACK, CNP (IBTA volume 1, table 38)


ACK = 0x11
NAK = 3  # the upper bits of an ACK's syndrome (IBTA section 9.7.5.2.1)
ETHERNET, COOKED = 1, 276  # tcpdump.org/linktypes.html
IPV4, IPV6 = b"\x08\x00", b"\x86\xdd"


class Packet(NamedTuple):
    """A RoCEv2 packet in a pcap file: psn is its number, syndrome that of an ACK. Of the cooked captures
    of all of a machine's interfaces there is the interface's index, and whether the packet left by it."""
    time_ms: float
    src: str
    dst: str
    sport: int
    qp: int
    opcode: int
    ifindex: int
    leaves: bool
    psn: int
    syndrome: int


def _udp_at(kind, frame, at):
    """Where UDP starts behind the IP header at this place, None when it is something else."""
    if kind == IPV4 and len(frame) > at + 20 and frame[at + 9] == 17:
        return at + (frame[at] & 15) * 4
    return at + 40 if kind == IPV6 and len(frame) > at + 40 and frame[at + 6] == 17 else None


def packets(path):
    """The RoCEv2 packets that tcpdump wrote, of Ethernet or of `-i any`."""
    data = path.read_bytes()
    link = struct.unpack_from("<I", data, 20)[0]
    at = 24
    while at + 16 <= len(data):
        seconds, micros, captured = struct.unpack_from("<III", data, at)
        frame = data[at + 16:at + 16 + captured]
        at += 16 + captured
        cooked = link == COOKED
        kind, ip = (frame[:2], 20) if cooked else (frame[12:14], 14)
        udp = _udp_at(kind, frame, ip)
        if udp is None or len(frame) < udp + 20:
            continue
        sport, dport = struct.unpack_from(">HH", frame, udp)
        if dport != 4791:
            continue
        bth = frame[udp + 8:]
        size = 4 if kind == IPV4 else 16
        first = ip + (12 if kind == IPV4 else 8)
        src, dst = (str(ipaddress.ip_address(frame[n:n + size])) for n in (first, first + size))
        yield Packet(seconds * 1000 + micros / 1000, src, dst, sport,
                     int.from_bytes(bth[5:8], "big"), bth[0],
                     int.from_bytes(frame[4:8], "big") if cooked else 0,
                     cooked and frame[10] == 4, int.from_bytes(bth[9:12], "big"),
                     bth[12] if bth[0] == ACK and len(bth) > 12 else 0)


class Tally:
    """Counts checks and prints each as it is made."""

    def __init__(self):
        self.passed = self.failed = 0

    def check(self, what, wrong):
        if wrong:
            self.failed += 1
            print(f"FAIL {what}")
            for line in list(wrong)[:12]:
                print(f"    {line}")
        else:
            self.passed += 1
            print(f"PASS {what}")
