# SPDX-License-Identifier: Apache-2.0
"""What scenarios share: the programs and verdicts of the daemon's live tests, the transport by hand,
and records in protobuf's form without a library."""
import re
import socket
import struct
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS / "golden" / "daemon"))
import rig  # noqa: E402
from rig import check, equal, failures, until  # noqa: E402, F401

TOPOLOGY = (rig.LAB / "topology.yaml").read_text()
HELLO, WELCOME, DATA, ACK, REFUSE = 1, 2, 3, 4, 5
VERSION = 1
FRAME_MAX = 4 << 20
# Members of Record in fabrictrace.proto.
OBSERVATION, FLOW, COUNTERS, LOSS, SWITCH_REPORT, HOST, COMMUNICATOR, COLLECTIVE, HOST_STATUS = (
    1, 2, 3, 4, 5, 6, 8, 9, 10)


class Skipped(Exception):
    """Says what is lacking."""


def varint(value):
    out = bytearray()
    while value > 0x7f:
        out.append(value & 0x7f | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field, value):
    return varint(field << 3) + varint(value)


def data(field, value):
    value = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(value)) + value


def record(kind, body):
    """A record within a batch: batches are these, one behind the other."""
    return data(1, data(kind, body))


def frame(kind, body):
    return struct.pack(">IB", 1 + len(body), kind) + body


class Peer:
    """A program that speaks the transport by hand."""

    def __init__(self, port, source="by-hand", program="test", boot_id=1):
        self.socket = self.connected(port)
        self.socket.sendall(frame(HELLO, struct.pack(">BQB", VERSION, boot_id, len(program))
                                  + program.encode() + source.encode()))
        self.sequence = 0
        self.answer = self.receive()

    def connected(self, port):
        return socket.create_connection(("127.0.0.1", port), timeout=rig.WAIT_S)

    def receive(self):
        """(type, body), None at the end."""
        length = self.exactly(4)
        body = self.exactly(struct.unpack(">I", length)[0]) if length else None
        return (body[0], body[1:]) if body else None

    def exactly(self, count):
        got = b""
        while len(got) < count:
            part = self.socket.recv(count - len(got))
            if not part:
                return None
            got += part
        return got

    def send(self, payload):
        self.sequence += 1
        self.socket.sendall(frame(DATA, struct.pack(">Q", self.sequence) + payload))

    def settled(self):
        """Waits until all that was sent is acknowledged; False when it was refused."""
        while (answer := self.receive()) and answer[0] == ACK:
            if struct.unpack(">Q", answer[1])[0] == self.sequence:
                return True
        return False

    def close(self):
        self.socket.close()


def batches(records, most=FRAME_MAX - 64):
    """Joins records to payloads."""
    parts, size = [], 0
    for part in records:
        if size + len(part) > most:
            yield b"".join(parts)
            parts, size = [], 0
        parts.append(part)
        size += len(part)
    if parts:
        yield b"".join(parts)


def daemon(folder, settings=""):
    """A daemon with further lines of configuration, not started."""
    d = rig.Daemon(folder, TOPOLOGY)
    d.config.write_text(d.config.read_text() + settings)
    return d


UNITS = {"B": 1, "KiB": 1024, "MiB": 1 << 20, "GiB": 1 << 30}


def budget(program):
    """{what: (cap, bytes of one)} as --check prints them."""
    done = rig.run(program.command[0], "--check", "-c", program.config)
    found = (re.match(r"(.{22}) .{24} +(\d+) +([\d.]+) (B|KiB|MiB)", line)
             for line in done.stdout.splitlines())
    return {m[1].strip(): (int(m[2]), float(m[3]) * UNITS[m[4]]) for m in found if m}


def resident(program):
    text = Path(f"/proc/{program.process.pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", text)[1]) * 1024


def held(what, before, after, count, most):
    """The memory of `count` of something against what the budget gives them."""
    each = (after - before) / count
    check(f"{what}: {each:.0f} bytes each of {most:.0f}", each <= most, (before, after, count))


def peak_bytes(program):
    """The most memory that a running program ever held."""
    for line in Path(f"/proc/{program.process.pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0
