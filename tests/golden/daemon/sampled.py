# SPDX-License-Identifier: Apache-2.0
"""A stranger's switches: hashes of packets' headers, and sFlow v5 datagrams in a capture, made byte by byte after
the specification and from nothing of ours; and what switchpoll and daemon make of such a capture."""
import functools
import json
import struct
import subprocess

import rig
from rig import equal

START_S = 1700000000
SAMPLING = 1000  # packets
PAYLOAD, HEADERS = 4042, 68  # bytes of a frame: data; Ethernet, IPv4, UDP, BTH, ICRC, FCS
IN_DATAGRAM, HELD_US = 8, 500000  # an agent sends so many samples at once, and holds none for longer


@functools.cache
def crc_table(width, polynomial):
    """What each byte makes of an empty register, bit by bit, most significant first."""
    top, table = 1 << (width - 1), []
    for byte in range(256):
        value = byte << (width - 8)
        for _ in range(8):
            value = (value << 1 ^ (polynomial if value & top else 0)) & (2 * top - 1)
        table.append(value)
    return table


def crc(data, width, polynomial, value):
    table = crc_table(width, polynomial)
    for byte in data:
        value = (value << 8 & (1 << width) - 1) ^ table[value >> (width - 8) ^ byte]
    return value


def xor(data, seed):
    for i in range(0, len(data) - 1, 2):
        seed ^= data[i] << 8 | data[i + 1]
    return seed ^ seed >> 6 ^ seed >> 11


def keyed(data, key):
    """Multiplied and turned, as jhash and siphash are made of: not linear."""
    for byte in data:
        key = ((key ^ byte) * 0x9e3779b97f4a7c15 ^ key >> 17) & (1 << 64) - 1
    return key >> 23


def hashed(flow, entry=0):
    """The bytes that switches hash of a flow (source and destination as 4 bytes, source port)."""
    src, dst, sport = flow
    return src + dst + struct.pack(">HHBB", sport, 4791, 17, entry)


def header(flow, number):
    """The first bytes of a frame of RoCEv2: Ethernet, IPv4, UDP, BTH of a write that goes on."""
    src, dst, sport = flow
    length = PAYLOAD + HEADERS - 18
    ip = struct.pack(">BBHHHBBH", 0x45, 0x68, length, number & 0xffff, 0x4000, 63, 17, 0) + src + dst
    udp = struct.pack(">HHHH", sport, 4791, length - 20, 0)
    qp = keyed(ip[12:20] + udp[:2], 7) & 0xffffff  # one that followed from the header might be hashed, too
    return bytes(12) + b"\x08\x00" + ip + udp + struct.pack(">BBHII", 7, 0, 0xffff, qp, number & 0xffffff) + bytes(10)


def address(agent):
    """Of an agent, which is a number of 16 bits."""
    return f"198.18.{agent >> 8}.{agent & 255}"


class Capture:
    """Packets that agents sampled; each gathers its own into datagrams."""

    def __init__(self):
        self.samples = []

    def add(self, at_us, agent, came, went, frame):
        self.samples.append((at_us, agent, came, went, frame))

    def datagrams(self):
        """(when, agent, samples), in the order of time."""
        held, out = {}, []
        for at_us, agent, *what in sorted(self.samples, key=lambda s: s[0]):
            first_us, some = held.get(agent, (at_us, []))
            if at_us - first_us > HELD_US:
                out.append((first_us + HELD_US, agent, some))
                first_us, some = at_us, []
            some.append(what)
            if len(some) == IN_DATAGRAM:
                out.append((at_us, agent, some))
                held.pop(agent, None)
            else:
                held[agent] = first_us, some
        out += [(first_us + HELD_US, agent, some) for agent, (first_us, some) in held.items()]
        return sorted(out, key=lambda d: d[0])

    def payloads(self):
        """(when, agent's address, number, bytes) of each datagram of sFlow."""
        sent, sampled = {}, {}
        for at_us, agent, some in self.datagrams():
            number, flows = sent.get(agent, 0) + 1, sampled.get(agent, 0)
            sent[agent], sampled[agent] = number, flows + len(some)
            ip = struct.pack(">BBH", 198, 18, agent)
            sflow = struct.pack(">II4sIIII", 5, 1, ip, 0, number, at_us // 1000 % (1 << 32), len(some)) + b"".join(
                flow_sample(flows + 1 + i, *sample) for i, sample in enumerate(some))
            yield at_us, ip, number, sflow

    def bytes(self):
        data = [struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1)]
        for at_us, ip, number, sflow in self.payloads():
            frame = bytes(12) + b"\x08\x00" + struct.pack(
                ">BBHHHBBH4s4sHHHH", 0x45, 0, 28 + len(sflow), number & 0xffff, 0, 64, 17, 0, ip,
                bytes([198, 18, 0, 1]), 50000, 6343, 8 + len(sflow), 0) + sflow
            data += [struct.pack("<IIII", START_S + at_us // 1000000, at_us % 1000000, len(frame), len(frame)), frame]
        return b"".join(data)


def flow_sample(number, came, went, frame):
    record = struct.pack(">IIIIII", 1, 16 + len(frame), 1, PAYLOAD + HEADERS, 4, len(frame)) + frame
    body = struct.pack(">IIIIIIII", number, came, SAMPLING, number * SAMPLING & 0xffffffff, 0, came, went, 1) + record
    return struct.pack(">II", 1, len(body)) + body


def reports(flow, host, from_s):
    """What a host says of a flow that nobody samples, twice."""
    src, dst = (".".join(map(str, end)) for end in flow[:2])
    for k in range(2):
        yield {"schema": "fabrictrace.flow.v1", "time_ms": 1000 * (START_S + from_s + 1 + 4 * k), "interval_ms": 4000,
               "host": host, "direction": "tx", "tuple_source": "computed", "data_packets": 1000, "bytes": 4000000,
               "flow": {"src": src, "dst": dst, "sport": flow[2], "dport": 4791, "proto": 17}}


def replay(capture, topology, folder, window_s, more=()):
    """The daemon's records of a capture and then of `more` records: of flows those alone of which something is
    likely, for there are many."""
    (folder / "t.yaml").write_text(topology)
    (folder / "x.pcap").write_bytes(capture.bytes())
    with open(folder / "in", "w", encoding="utf-8") as lines:
        polled = subprocess.run([rig.POLLER, *rig.NO_CONFIG, "--replay", folder / "x.pcap", "--output", "-"],
                                stdout=lines, stderr=subprocess.PIPE, check=False)
        equal("switchpoll's exit code", (polled.returncode, polled.stderr[:300] if polled.returncode else b""),
              (0, b""))
        lines.seek(0, 2)
        lines.writelines(json.dumps(r) + "\n" for r in more)
    with open(folder / "in", encoding="utf-8") as lines, open(folder / "out", "w", encoding="utf-8") as out:
        done = subprocess.run([rig.DAEMON, *rig.NO_CONFIG, "--set", "source_id=wire", "--set", f"window={window_s}s",
                               "--set", "grace=500ms", "--topology", folder / "t.yaml", "--replay", "-", "--sink",
                               "file:-"], stdin=lines, stdout=out, stderr=subprocess.PIPE, check=False)
    equal("the daemon's exit code", (done.returncode, done.stderr[:300] if done.returncode else b""), (0, b""))
    with open(folder / "out", encoding="utf-8") as out:
        return [json.loads(line) for line in out if "fabrictrace.path.v1" not in line or '"likely"' in line]


def flow_of(record):
    """A path record's flow as it is here."""
    return (*(bytes(map(int, record["flow"][end].split("."))) for end in ("src", "dst")), record["flow"]["sport"])


def observed_until_trusted(records, switch):
    """[flows] that a set had when its predictions were first trusted; None: they never were."""
    return next((r["observations"] for r in rig.of_kind(records, "hash")
                 if r["switch"] == switch and r.get("trusted")), None)
