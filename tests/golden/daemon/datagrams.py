#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hashes from the wire: sFlow v5 datagrams in a capture, made here byte by byte after the specification,
through switchpoll and daemon. Leaves under 4, 8, 16 and 64 spines choose by CRC-16, CRC-32 and XOR, with and
without seed and port of entry, by a keyed hash with a modulo as Linux does, by a modulo that is no power of
two, and by resilient tables. Linear ones are learnt and the others are not; of flows without samples, which
hosts alone report, none is predicted wrongly."""
import json
import random
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
import rig  # noqa: E402
from rig import check, equal, of_kind  # noqa: E402

START_S, SECONDS = 1700000000, 40
FLOWS, UNSEEN, HOSTS = 640, 160, 8
BUCKETS = 256
SWITCHPOLL = Path("switchpoll/fabrictrace-switchpoll").resolve()


def crc(data, width, polynomial, value):
    """Bit by bit, most significant first."""
    top = 1 << (width - 1)
    for byte in data:
        value ^= byte << (width - 8)
        for _ in range(8):
            value = (value << 1 ^ (polynomial if value & top else 0)) & (2 * top - 1)
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


def resilient(data, members):
    """The buckets of a link that was lost are dealt to the others."""
    bucket = crc(data, 16, 0x8005, 0) % BUCKETS
    return bucket // members % (members - 1) if bucket % members == members - 1 else bucket % members


# leaf: (name, index of the header's bytes and the number of links, whether the port of entry is in it,
# whether it is linear)
LEAVES = (
    ("CRC-16", lambda d, m: crc(d, 16, 0x1021, 0) % m, False, True),
    ("CRC-16, seed, port of entry", lambda d, m: crc(d, 16, 0x8005, 0xbeef) % m, True, True),
    ("CRC-32", lambda d, m: crc(d, 32, 0x04c11db7, 0xffffffff) % m, False, True),
    ("CRC-32, seed, port of entry", lambda d, m: (crc(d, 32, 0x1edc6f41, 0x12345678) >> 9) % m, True, True),
    ("XOR", lambda d, m: xor(d, 0) % m, False, True),
    ("XOR, seed, port of entry", lambda d, m: xor(d, 0x5aa5) % m, True, True),
    ("keyed, as Linux", lambda d, m: keyed(d, 0x0123456789abcdef) % m, False, False),
    ("CRC-32 modulo links - 1", lambda d, m: crc(d, 32, 0x04c11db7, 0) % (m - 1), False, False),
    ("resilient, a link lost", resilient, False, False),
)


class World:
    def __init__(self, spines):
        self.spines, rng = spines, random.Random(spines)
        self.order = {leaf: rng.sample(range(spines), spines) for leaf in range(1, len(LEAVES) + 1)}
        self.flows = {leaf: self.draw(leaf, rng) for leaf in self.order}

    def draw(self, leaf, rng):
        found = {}
        while len(found) < FLOWS + UNSEEN:
            other = rng.choice([x for x in self.order if x != leaf])
            found[leaf, rng.randint(1, HOSTS), other, rng.randint(1, HOSTS), rng.randint(0xc000, 0xffff)] = True
        return list(found)

    def spine(self, flow):
        leaf, host, other, far, sport = flow
        _, choose, entry, _ = LEAVES[leaf - 1]
        data = bytes([10, 7, leaf, host, 10, 7, other, far]) + struct.pack(">HHB", sport, 4791, 17)
        return self.order[leaf][choose(data + bytes([host if entry else 0]), self.spines)]

    def hops(self, flow):
        """(agent, ifIndex in, ifIndex out) of each switch."""
        leaf, host, other, far, _ = flow
        spine = self.spine(flow)
        return ((leaf, host, 100 + spine), (100 + spine, leaf, other), (other, 100 + spine, far))

    def topology(self):
        ups = [f"{{name: up{s}, ifindex: {100 + s}}}" for s in range(self.spines)]
        hosts = [f"{{name: host{h}, ifindex: {h}}}" for h in range(1, HOSTS + 1)]
        downs = ", ".join(f"{{name: down{leaf}, ifindex: {leaf}}}" for leaf in self.order)
        text = "fabric: wire\nspeed_bps: 400000000000\nswitches:\n"
        for leaf in self.order:
            text += f"  - {{name: leaf{leaf}, addresses: [192.0.2.{leaf}], ports: [{', '.join(hosts + ups)}]}}\n"
        for s in range(self.spines):
            text += f"  - {{name: spine{s}, addresses: [192.0.2.{100 + s}], ports: [{downs}]}}\n"
        text += "links:\n" + "".join(f"  - {{a: leaf{leaf}, a_port: up{s}, b: spine{s}, b_port: down{leaf}}}\n"
                                     for leaf in self.order for s in range(self.spines))
        return text + "hosts:\n" + "".join(
            f"  - {{name: h{leaf}-{h}, nics: [{{addresses: [10.7.{leaf}.{h}], "
            f"attach: [{{switch: leaf{leaf}, port: host{h}}}]}}]}}\n"
            for leaf in self.order for h in range(1, HOSTS + 1))

    def reports(self):
        """What hosts say of flows that nobody samples, after the others."""
        for k in range(2):
            for leaf, flows in self.flows.items():
                for _, host, other, far, sport in flows[FLOWS:]:
                    yield {"schema": "fabrictrace.flow.v1", "time_ms": 1000 * (START_S + SECONDS + 1 + 4 * k),
                           "interval_ms": 4000, "host": f"h{leaf}-{host}", "direction": "tx",
                           "flow": {"src": f"10.7.{leaf}.{host}", "dst": f"10.7.{other}.{far}", "sport": sport,
                                    "dport": 4791, "proto": 17},
                           "tuple_source": "computed", "data_packets": 1000, "bytes": 4000000}


def header(flow, number):
    """The first bytes of a frame of RoCEv2: Ethernet, IPv4, UDP, BTH of a write that goes on."""
    leaf, host, other, far, sport = flow
    ip = struct.pack(">BBHHHBBH4B4B", 0x45, 0x68, 4096, number & 0xffff, 0x4000, 63, 17, 0, 10, 7, leaf, host,
                     10, 7, other, far)
    udp = struct.pack(">HHHH", sport, 4791, 4076, 0)
    qp = keyed(ip[12:20] + udp[:2], 7) & 0xffffff  # one that followed from the header might be hashed, too
    return bytes(12) + b"\x08\x00" + ip + udp + struct.pack(">BBHII", 7, 0, 0xffff, qp, number & 0xffffff) + bytes(10)


class Capture:
    """A capture of datagrams; one agent's samples are gathered into datagrams."""

    def __init__(self):
        self.data = [struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1)]
        self.datagrams, self.samples = {}, {}

    def sample(self, agent, came, went, frame):
        self.samples[agent] = number = self.samples.get(agent, 0) + 1
        record = struct.pack(">IIIIII", 1, 16 + len(frame), 1, 4110, 4, len(frame)) + frame
        body = struct.pack(">IIIIIIII", number, came, 1000, number * 1000, 0, came, went, 1) + record
        return struct.pack(">II", 1, len(body)) + body

    def datagram(self, agent, samples, at_us):
        self.datagrams[agent] = number = self.datagrams.get(agent, 0) + 1
        sflow = struct.pack(">II4BIIII", 5, 1, 192, 0, 2, agent, 0, number, at_us // 1000 % (1 << 32),
                            len(samples)) + b"".join(samples)
        udp = struct.pack(">HHHH", 50000, 6343, 8 + len(sflow), 0) + sflow
        ip = struct.pack(">BBHHHBBH4B4B", 0x45, 0, 20 + len(udp), number & 0xffff, 0, 64, 17, 0, 192, 0, 2, agent,
                         192, 0, 2, 254) + udp
        frame = bytes(12) + b"\x08\x00" + ip
        at_us += START_S * 1000000
        self.data.append(struct.pack("<IIII", at_us // 1000000, at_us % 1000000, len(frame), len(frame)) + frame)

    def bytes(self):
        return b"".join(self.data)


def capture(world):
    """Each flow is sampled at each switch once in 10 s."""
    out = Capture()
    for second in range(SECONDS):
        of_agent = {}
        for flows in world.flows.values():
            for number, flow in enumerate(flows[:FLOWS]):
                if number % 10 == second % 10:
                    frame = header(flow, second)
                    for agent, came, went in world.hops(flow):
                        of_agent.setdefault(agent, []).append((came, went, frame))
        for agent, some in sorted(of_agent.items()):
            for at in range(0, len(some), 8):
                samples = [out.sample(agent, *s) for s in some[at:at + 8]]
                out.datagram(agent, samples, second * 1000000 + 100000 + 10 * at)
    return out.bytes()


def replay(world, folder):
    (folder / "t.yaml").write_text(world.topology())
    (folder / "x.pcap").write_bytes(capture(world))
    polled = subprocess.run([SWITCHPOLL, *rig.NO_CONFIG, "--replay", folder / "x.pcap", "--output", "-"],
                            capture_output=True, text=True, check=False)
    equal("switchpoll's exit code", (polled.returncode, polled.stderr[:300] if polled.returncode else ""), (0, ""))
    lines = polled.stdout + "".join(json.dumps(r) + "\n" for r in world.reports())
    done = rig.run(rig.DAEMON, *rig.NO_CONFIG, "--set", "source_id=wire", "--set", "window=10s", "--topology",
                   folder / "t.yaml", "--replay", "-", "--sink", "file:-", input=lines, stdin=None)
    equal("the daemon's exit code", done.returncode, 0)
    return rig.records_of(done.stdout)


def judge(world, records):
    said = {r["switch"]: r for r in of_kind(records, "hash")}
    right, wrong = dict.fromkeys(world.order, 0), []
    unseen = {f for flows in world.flows.values() for f in flows[FLOWS:]}
    for r in of_kind(records, "path"):
        src, dst = (list(map(int, r["flow"][end].split("."))) for end in ("src", "dst"))
        flow, hop = (src[2], src[3], dst[2], dst[3], r["flow"]["sport"]), (r.get("likely") or [{}])[0]
        if flow not in unseen or hop.get("evidence") != "predicted" or not hop.get("out"):
            continue
        good = hop["out"] == f"up{world.spine(flow)}"
        right[flow[0]] += good
        wrong += [] if good else [(LEAVES[flow[0] - 1][0], flow, hop)]
    for leaf, (name, _, _, linear) in enumerate(LEAVES, 1):
        r = said.get(f"leaf{leaf}", {})
        print(f"{world.spines:2} links, {name}: {r.get('model')}, trusted {r.get('trusted')}, {r.get('reason')} "
              f"{r.get('more_least')}, {r.get('observations')} flows, {right[leaf]} without samples right")
        equal(f"{world.spines} links, {name}: linear", r.get("model") == "linear", linear)
        check(f"{world.spines} links, {name}: whether flows are predicted", (right[leaf] >= 0.9 * UNSEEN) == linear,
              right[leaf])
    check(f"{world.spines} links: none is predicted wrongly", not wrong, (len(wrong), wrong[:3]))


def main():
    for spines in (4, 8, 16, 64):
        world = World(spines)
        with tempfile.TemporaryDirectory() as folder:
            judge(world, replay(world, Path(folder)))
    return 1 if rig.failures else 0


if __name__ == "__main__":
    sys.exit(main())
