# SPDX-License-Identifier: Apache-2.0
"""The memory that a job shares with the agent, laid out as agent/nccl/segment.h has it: tests/nccl/job
says how."""
import fcntl
import json
import os
import struct
import subprocess
from pathlib import Path

JOB = Path("tests/nccl/job").resolve()
F_ADD_SEALS, SHRINK_GROW = 1033, 6
OP, PROXY = 1, 3


class Layout:
    def __init__(self):
        self.__dict__.update(json.loads(subprocess.run(
            [JOB, "layout"], check=True, capture_output=True, text=True).stdout))

    def hello(self):
        return struct.pack(">QI", self.magic, self.version)

    def head(self):
        return struct.pack("<QIIIIII", self.magic, self.version, self.rings, self.slots, self.comms,
                           self.record_bytes, self.flight_bytes)

    def memory(self, records):
        """A descriptor of sealed memory with these records, a list for each ring from the first."""
        fd = os.memfd_create("job", os.MFD_ALLOW_SEALING)
        os.ftruncate(fd, self.bytes)
        os.pwrite(fd, self.head(), 0)
        for ring, some in enumerate(records):
            at = self.record_at + ring * self.slots * self.record_bytes
            os.pwrite(fd, b"".join(some), at)
            os.pwrite(fd, struct.pack("<QQ", len(some), len(some)),
                      self.ring_at + ring * self.ring_bytes)
        fcntl.fcntl(fd, F_ADD_SEALS, SHRINK_GROW)
        return fd

    def record(self, kind, op, body, rank=0, ranks=2, start_ns=1, end_ns=2):
        return (struct.pack("<HHIQiiQqqIIQ", kind, 0, 1, 0xFAB, rank, ranks, op, start_ns, end_ns, 0, 0,
                            op) + body).ljust(self.record_bytes, b"\0")

    def operation(self, op):
        return self.record(OP, op, struct.pack("<QQi4x16s16s", op, 1, 0, b"AllGather", b"float"))

    def transfer(self, op, peer, channel):
        return self.record(PROXY, op, struct.pack("<iII4xQ", peer, channel, 1, 4096))
