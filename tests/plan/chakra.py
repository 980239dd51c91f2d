# SPDX-License-Identifier: Apache-2.0
"""Chakra traces written and read from the published schema (et_def.proto), apart from the program's
own codec."""
COMP, SEND, RECV, COLL = 4, 5, 6, 7
ALL_REDUCE, ALL_GATHER, BROADCAST, ALL_TO_ALL, REDUCE_SCATTER = 0, 2, 5, 6, 7


def varint(value):
    out = bytearray()
    value &= (1 << 64) - 1
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out + bytes([value]))


def key(number, wire):
    return varint(number << 3 | wire)


def packed(number, payload):
    return key(number, 2) + varint(len(payload)) + payload


def attribute(name, value, member):
    text = packed(1, name.encode())
    if member == 29:
        return packed(10, text + packed(29, value.encode()))
    if member == 28:
        return packed(10, text + packed(28, packed(1, bytes(value))))
    return packed(10, text + key(member, 0) + varint(value))


def node(number, name, kind, attributes, deps=(), duration=0, ctrl=()):
    body = key(1, 0) + varint(number) + packed(2, name.encode()) + key(3, 0) + varint(kind)
    if ctrl:
        body += packed(4, b"".join(map(varint, ctrl)))
    if deps:
        body += packed(5, b"".join(map(varint, deps)))
    if duration:
        body += key(7, 0) + varint(duration)
    return body + b"".join(attributes)


def collective(number, op, size, deps=(), group=None, dims=None, name="ar", size_member=9):
    attributes = [attribute("is_cpu_op", 0, 27), attribute("comm_type", op, 9),
                  attribute("comm_size", size, size_member)]
    if group is not None:
        attributes.append(attribute("pg_name", str(group), 29))
    if dims is not None:
        attributes.append(attribute("involved_dim", dims, 28))
    return node(number, name, COLL, attributes, deps)


def message(number, kind, src, dst, size, tag=0, deps=()):
    return node(number, "m", kind,
                [attribute("is_cpu_op", 0, 27), attribute("comm_size", size, 9),
                 attribute("comm_src", src, 7), attribute("comm_dst", dst, 7),
                 attribute("comm_tag", tag, 7)], deps)


def compute(number, micros, deps=(), cpu=0):
    return node(number, "c", COMP, [attribute("is_cpu_op", cpu, 27)], deps, micros)


def trace(nodes, version="0.0.4"):
    return b"".join(varint(len(part)) + part for part in [packed(1, version.encode()), *nodes])


def write(prefix, ranks):
    for rank, nodes in enumerate(ranks):
        with open(f"{prefix}.{rank}.et", "wb") as file:
            file.write(trace(nodes))
