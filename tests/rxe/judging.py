# SPDX-License-Identifier: Apache-2.0
"""What all judges use: counting checks, and reading what tcpdump wrote."""
import struct

ACKS = {0x0C, 0x11, 0x12, 0x81}  # READ request, ACK, ATOMIC ACK, CNP (IBTA volume 1, table 38)


def packets(path):
    """(src, dst, sport, destination queue pair, opcode) of RoCEv2 over IPv4 in a pcap file."""
    data = path.read_bytes()
    at = 24
    while at + 16 <= len(data):
        captured = struct.unpack_from("<I", data, at + 8)[0]
        frame = data[at + 16:at + 16 + captured]
        at += 16 + captured
        if len(frame) < 54 or frame[12:14] != b"\x08\x00" or frame[23] != 17:
            continue
        udp = 14 + (frame[14] & 15) * 4
        sport, dport = struct.unpack_from(">HH", frame, udp)
        if dport != 4791:
            continue
        bth = frame[udp + 8:]
        yield (".".join(map(str, frame[26:30])), ".".join(map(str, frame[30:34])), sport,
               int.from_bytes(bth[5:8], "big"), bth[0])


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
