# SPDX-License-Identifier: Apache-2.0
"""Records that are made up: well formed by fabrictrace.proto, which is read here, and wild in every value
but those that the sender's certificate holds it to."""
import re
import struct
import time
from pathlib import Path

from kit import data, number, varint

PROTO = Path(__file__).resolve().parents[2] / "proto" / "fabrictrace.proto"
EXTREMES = (0, 1, 2**31 - 1, 2**31, 2**32 - 1, 2**53, 2**63 - 1, 2**63, 2**64 - 1)
MANY = 40  # of a list
NUMBERS = ("uint32", "uint64", "int32", "int64", "bool")


def messages():
    """{message: [(number, name, type, is a list)]}, and the enums' names; a oneof's members are its
    message's."""
    found, enums, current = {}, set(), None
    for line in PROTO.read_text().splitlines():
        line = line.split("//")[0]
        if head := re.match(r"(message|enum)\s+(\w+)", line):
            current = found.setdefault(head[2], []) if head[1] == "message" else None
            enums |= {head[2]} if head[1] == "enum" else set()
        elif current is not None and (m := re.match(
                r"\s+(?:(optional|repeated|required)\s+)?(\w+)\s+(\w+)\s*=\s*(\d+)", line)):
            current.append((int(m[4]), m[3], m[2], m[1] == "repeated"))
    return found, enums


class MadeUp:
    """own: {field's name: what it has to be, a value or a function without arguments}."""

    def __init__(self, rng, own, names, addresses):
        self.rng, self.own, self.names, self.addresses = rng, own, names, addresses
        self.messages, self.enums = messages()
        self.kinds = {name: n for n, name, _, _ in self.messages["Record"]}
        self.types = {name: kind for _, name, kind, _ in self.messages["Record"]}

    def record(self, name):
        """One record of a batch."""
        return data(1, data(self.kinds[name], self.message(self.types[name])))

    def message(self, kind, depth=0):
        rng, out = self.rng, []
        likely = rng.choice((0.3, 0.9, 1.0))
        for field, name, of, several in self.messages[kind]:
            if name not in self.own and rng.random() > likely:
                continue
            count = rng.choice((1, 2, rng.randrange(MANY))) if several and not depth else 1
            for _ in range(count):
                out.append(self.field(field, name, of, depth))
        return b"".join(out)

    def field(self, field, name, of, depth):
        if name in self.own and of not in self.enums:
            value = self.own[name]
            return data(field, value() if callable(value) else value)
        if of in self.messages:
            return data(field, self.message(of, depth + 1))
        if of in self.enums:
            return number(field, self.rng.choice((0, 1, 2, 3, 9, 2**31)))
        if of in NUMBERS:
            return number(field, self.moment() if name.endswith("_ms") and "interval" not in name
                          else self.amount())
        if of == "double":
            return varint(field << 3 | 1) + struct.pack("<d", self.rng.choice(
                (0.5, -1.0, 1e308, float("nan"), float("inf"))))
        return data(field, self.address() if of == "bytes" else self.text())

    def moment(self):
        now = int(time.time() * 1000)
        return self.rng.choice((now, now, now, now, now - 3600000, now + 30000, now + 10**10,
                                *EXTREMES))

    def amount(self):
        return self.rng.choice((self.rng.randrange(10), self.rng.randrange(10**6),
                                self.rng.choice(EXTREMES)))

    def text(self):
        rng = self.rng
        return rng.choice((*self.names, f"n{rng.randrange(2000)}", "0000000000000fab",
                           "x" * rng.randrange(200), "x" * rng.randrange(5000),
                           "\x1b]0;gotcha\x07", "\u202eevil", "a b\"\\{}\n"))

    def address(self):
        return self.rng.choice((*self.addresses, b"", bytes(16), self.rng.randbytes(4),
                                self.rng.randbytes(5)))
