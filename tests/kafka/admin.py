# SPDX-License-Identifier: Apache-2.0
"""Topics and access rights of a broker, by Kafka's own protocol: Kafka's tools take a JVM each."""
import socket
import struct

CREATE_TOPICS, CREATE_ACLS = 19, 30
TOPIC, GROUP = 2, 3
PREFIXED, ALLOW = 4, 3
READ, WRITE, DESCRIBE = 3, 4, 8


def text(value):
    return struct.pack(">h", len(value)) + value.encode()


def array(items):
    return struct.pack(">i", len(items)) + b"".join(items)


def ask(address, key, version, body):
    host, port = address.rsplit(":", 1)
    request = struct.pack(">hhi", key, version, 1) + text("test") + body
    with socket.create_connection((host, int(port)), timeout=60) as s:
        s.sendall(struct.pack(">i", len(request)) + request)
        length, _ = struct.unpack(">ii", s.recv(8, socket.MSG_WAITALL))
        return s.recv(length - 4, socket.MSG_WAITALL)


def create_topics(address, names, partitions=3, copies=1, **settings):
    """Settings with _ for the dots of their names."""
    configs = array([text(k.replace("_", ".")) + text(str(v)) for k, v in settings.items()])
    topics = [text(name) + struct.pack(">ih", partitions, copies) + array([]) + configs
              for name in names]
    answer = ask(address, CREATE_TOPICS, 0, array(topics) + struct.pack(">i", 60000))
    at = 4
    for _ in names:
        size, = struct.unpack_from(">h", answer, at)
        error, = struct.unpack_from(">h", answer, at + 2 + size)
        if error:
            raise RuntimeError(f"topic {answer[at + 2:at + 2 + size].decode()}: error {error}")
        at += 4 + size


def allow(address, user, kind, prefix, *operations):
    """The user may do this with all topics or groups whose names begin so."""
    rules = [struct.pack(">b", kind) + text(prefix) + struct.pack(">b", PREFIXED) +
             text(f"User:{user}") + text("*") + struct.pack(">bb", operation, ALLOW)
             for operation in operations]
    answer = ask(address, CREATE_ACLS, 1, array(rules))
    at = 8
    for _ in rules:
        error, size = struct.unpack_from(">hh", answer, at)
        if error:
            raise RuntimeError(f"rights of {user}: error {error}")
        at += 4 + max(size, 0)
