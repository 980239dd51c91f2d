# SPDX-License-Identifier: Apache-2.0
"""40 to 50 clients that asked for a large answer and did not read it cost fabrictraced 2.3 to 3.8 GiB:
each answer waited whole for its reader, and nothing bounded them all together."""
import socket
from collections import Counter

import kit
from kit import check, data, record, until

READERS = 60
SOURCES = 15000
PEAK_BYTES = 300 << 20


def loss(number):
    stages = b"".join(data(4, data(1, f"stage-{i}") + data(2, "records") + kit.number(3, 1 << 60))
                      for i in range(16))
    return record(kit.LOSS, kit.number(1, 1) + data(2, f"{number}-" + "x" * 90) + data(3, "nobody")
                  + stages)


def ask(daemon):
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    s.connect(("127.0.0.1", daemon.http))
    s.sendall(b"GET /api/v1/loss HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    return s


def run(folder):
    daemon = kit.daemon(folder).start()
    readers = []
    try:
        peer = kit.Peer(daemon.port)
        for payload in kit.batches(map(loss, range(SOURCES))):
            peer.send(payload)
        check("all is applied", peer.settled())
        readers += [ask(daemon) for _ in range(READERS)]
        codes = Counter(reader.recv(12).decode() for reader in readers)
        check("all are answered, as fast as they read", codes == {"HTTP/1.1 200": READERS}, codes)
        check("a small one is answered all the same", daemon.get("/healthz"))
        peak = kit.peak_bytes(daemon)
        check(f"peak memory: {peak >> 20} MiB", peak < PEAK_BYTES, peak)
        for reader in readers:
            reader.close()
        until("room comes back", lambda: daemon.metric("fabrictraced_http_connections") <= 1)
        check("then it is answered", len(daemon.get("/api/v1/loss")) > 1000)
        daemon.stop()
    finally:
        daemon.kill()
        for reader in readers:
            reader.close()
