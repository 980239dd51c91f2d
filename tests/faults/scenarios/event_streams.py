# SPDX-License-Identifier: Apache-2.0
"""A thousand listeners to /api/v1/stream that say nothing, and one more: it is refused, everybody
else is served, all of them hear of a window, and who goes away makes room for another."""
import resource
import socket

import kit
from kit import check, until

STREAMS = 1000
PEAK_BYTES = 300 << 20


def listen(daemon):
    s = socket.create_connection(("127.0.0.1", daemon.http))
    s.sendall(b"GET /api/v1/stream HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    return s


def heard(s, text):
    """Reads until the text comes; false when the end does."""
    data = b""
    while text not in data:
        part = s.recv(65536)
        if not part:
            return False
        data += part
    return True


def run(folder):
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    daemon = kit.daemon(folder, f"http_streams_max: {STREAMS}\n").start()
    streams = []
    try:
        for _ in range(STREAMS):
            streams.append(listen(daemon))
        check("all are heard", all(heard(s, b"text/event-stream") for s in streams))
        refused = listen(daemon)
        check("one more is refused", refused.recv(12) == b"HTTP/1.1 503")
        refused.close()
        check("others are answered", daemon.get("/healthz"))
        check("all hear of a window", all(heard(s, b"event: window") for s in streams))
        peak = kit.peak_bytes(daemon)
        check(f"peak memory: {peak >> 20} MiB", peak < PEAK_BYTES, peak)
        for s in streams:
            s.close()
        until("there is room again", lambda: daemon.metric("fabrictraced_http_connections") <= 1)
        again = listen(daemon)
        check("then one is let in", again.recv(12) == b"HTTP/1.1 200")
        again.close()
        daemon.stop()
    finally:
        daemon.kill()
        for s in streams:
            s.close()
