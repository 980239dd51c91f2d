# SPDX-License-Identifier: Apache-2.0
"""Judges captured RoCEv2 packets: the ICRC by zlib, all else by tshark where it is installed."""
import shutil
import struct
import subprocess
import zlib

from .fabric import LabError

HEADER = struct.Struct("<IHHiIII")
RECORD = struct.Struct("<IIII")


def read_pcap(path):
    """Ethernet frames of a pcap file in this machine's byte order."""
    data = path.read_bytes()
    if len(data) < HEADER.size or HEADER.unpack_from(data)[0] not in (0xA1B2C3D4, 0xA1B23C4D):
        raise LabError(f"{path}: not a pcap file of this machine")
    offset = HEADER.size
    while offset + RECORD.size <= len(data):
        _, _, captured, length = RECORD.unpack_from(data, offset)
        offset += RECORD.size
        if offset + captured > len(data):
            break
        if captured == length:
            yield data[offset:offset + captured]
        offset += captured


def icrc_is_right(frame):
    """Whether the ICRC at the end of a frame is that of its packet (IBTA annex A17.3.3): a CRC-32
    over 64 bits of ones and the packet, all that a router may change taken as ones."""
    packet = bytearray(frame[14:])
    if packet[0] >> 4 == 4:
        udp = 20
        packet = packet[:struct.unpack_from(">H", packet, 2)[0]]
        packet[1] = packet[8] = packet[10] = packet[11] = 0xFF
    else:
        udp = 40
        packet = packet[:40 + struct.unpack_from(">H", packet, 4)[0]]
        packet[0:4] = b"\x6f\xff\xff\xff"
        packet[7] = 0xFF
    packet[udp + 6] = packet[udp + 7] = packet[udp + 12] = 0xFF
    return zlib.crc32(b"\xff" * 8 + packet[:-4]) == struct.unpack("<I", packet[-4:])[0]


def wrong_packets(capture):
    """(texts of what is wrong, number of packets)."""
    frames = list(read_pcap(capture))
    bad = sum(not icrc_is_right(frame) for frame in frames)
    wrong = [f"{bad} packets with a wrong ICRC"] if bad else []
    opcodes = {frame[14 + (20 if frame[14] >> 4 == 4 else 40) + 8] for frame in frames}
    if not {0x06, 0x07, 0x08, 0x11} <= opcodes:
        wrong.append(f"opcodes {sorted(opcodes)}: a write's or an acknowledgement is missing")
    if shutil.which("tshark"):
        done = subprocess.run(
            ["tshark", "-r", str(capture), "-o", "udp.check_checksum:TRUE",
             "-o", "ip.check_checksum:TRUE", "-Y", "_ws.expert || !infiniband.bth"],
            capture_output=True, text=True)
        wrong += done.stdout.splitlines()
        if done.returncode:
            wrong.append(f"tshark: {done.stderr.strip()}")
    return wrong, len(frames)
