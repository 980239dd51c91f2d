# SPDX-License-Identifier: Apache-2.0
"""Makes packets and capture files for the agent's tests, from the standards and nothing of ours."""
import ipaddress
import struct

ETHERNET, COOKED, COOKED2 = 1, 113, 276
WRITE_ONLY, ACK, CNP = 0x0A, 0x11, 0x81
ECN_CE = 3


def bth(opcode, dst_qp, psn=0):
    return struct.pack(">BBHII", opcode, 0, 0xFFFF, dst_qp, psn)


def udp(src, dst, sport, payload, dport=4791, ecn=2):
    """An IP packet."""
    src, dst = ipaddress.ip_address(src), ipaddress.ip_address(dst)
    body = struct.pack(">HHHH", sport, dport, 8 + len(payload), 0) + payload
    if src.version == 4:
        head = struct.pack(">BBHHHBBH4s4s", 0x45, ecn, 20 + len(body), 0, 0x4000, 64, 17, 0,
                           src.packed, dst.packed)
    else:
        head = struct.pack(">IHBB16s16s", 6 << 28 | ecn << 20, len(body), 17, 64, src.packed,
                           dst.packed)
    return head + body


def ethertype(packet):
    return 0x0800 if packet[0] >> 4 == 4 else 0x86DD


def ethernet(packet, *tags):
    """tags: (TPID, VLAN id), the outermost first."""
    vlan = b"".join(struct.pack(">HH", tpid, vid) for tpid, vid in tags)
    return bytes(12) + vlan + struct.pack(">H", ethertype(packet)) + packet


def cooked(packet, packet_type):
    return struct.pack(">HHH8sH", packet_type, 1, 6, bytes(8), ethertype(packet)) + packet


def cooked2(packet, packet_type):
    return struct.pack(">HHIHBB8s", ethertype(packet), 0, 7, 1, packet_type, 6, bytes(8)) + packet


def capture(link, packets):
    """packets: (seconds, frame[, captured bytes]); the file's bytes."""
    out = [struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, link)]
    for at, frame, *cut in packets:
        kept = frame[:cut[0]] if cut else frame
        seconds, micros = divmod(round(at * 1e6), 1000000)
        out.append(struct.pack("<IIII", seconds, micros, len(kept), len(frame)) + kept)
    return b"".join(out)
