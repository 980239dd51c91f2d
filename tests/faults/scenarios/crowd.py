# SPDX-License-Identifier: Apache-2.0
"""20 clients that fetch the largest answers over and over, idle listeners to the stream and slow
readers, all at once, while flows of a whole fabric come in: nothing that comes in may be lost, and
windows have to close as soon as they did without anybody.

FT_CROWD=LEAVES,SPINES,FLOWS,STREAMS,READERS,WINDOWS is the size: 512,32,100000,1000,50,6 for what is
measured in README.md. The windows are then of 10 s."""
import http.client
import json
import os
import re
import resource
import socket
import threading
import time
import urllib.error
from pathlib import Path

import kit
from kit import check, data, equal, number, record, until

SIZE = [int(n) for n in os.environ.get("FT_CROWD", "32,8,4000,150,50,3").split(",")]
LEAVES, SPINES, FLOWS, STREAMS, READERS, WINDOWS = SIZE
WINDOW_S, GRACE_S = (10, 5) if FLOWS > 20000 else (4, 3)
CLIENTS = 20
HOSTS = 16  # a leaf
LARGE = ("/api/v1/paths", "/api/v1/topology", "/api/v1/links", "/metrics", "/api/v1/doctor",
         "/api/v1/windows", "/api/v1/incident")


def host(leaf, n):
    return bytes([10, leaf >> 8, leaf & 255, n + 1])


def topology():
    lines = ["fabric: crowd", "speed_bps: 100000000000", "switches:"]
    for i in range(LEAVES):
        ports = [f"{{name: H{n}, ifindex: {n + 1}}}" for n in range(HOSTS)]
        ports += [f"{{name: U{n}, ifindex: {HOSTS + n + 1}}}" for n in range(SPINES)]
        lines.append(f"  - {{name: l{i}, tier: leaf, addresses: [172.16.{i >> 8}.{i & 255}], "
                     f"ports: [{', '.join(ports)}]}}")
    for i in range(SPINES):
        ports = [f"{{name: D{n}, ifindex: {n + 1}}}" for n in range(LEAVES)]
        lines.append(f"  - {{name: s{i}, tier: spine, addresses: [172.17.0.{i}], "
                     f"ports: [{', '.join(ports)}]}}")
    lines.append("links:")
    lines += [f"  - {{a: l{i}, a_port: U{k}, b: s{k}, b_port: D{i}}}"
              for i in range(LEAVES) for k in range(SPINES)]
    lines.append("hosts:")
    for i in range(LEAVES):
        lines += [f"  - {{name: h{i}-{n}, nics: [{{addresses: [{'.'.join(map(str, host(i, n)))}], "
                  f"attach: [{{switch: l{i}, port: H{n}}}]}}]}}" for n in range(HOSTS)]
    return "\n".join(lines) + "\n"


def times(now_ms):
    return number(1, now_ms) + number(2, 1000) + number(3, now_ms) + number(4, now_ms)


def flows():
    """(before its times, behind them) of each flow's observation at its first leaf."""
    some = times(int(time.time() * 1000))
    for i in range(FLOWS):
        leaf, n = i % LEAVES, i // LEAVES % HOSTS
        to = (leaf + 1 + i // 7) % LEAVES
        to += to == leaf
        rest = (data(5, bytes([172, 16, leaf >> 8, leaf & 255]))
                + data(6, data(1, host(leaf, n)) + data(2, host(to % LEAVES, i % HOSTS))
                       + number(3, 49152 + i % 16384) + number(4, 4791) + number(5, 17))
                + number(7, n + 1) + number(8, HOSTS + 1 + i * 2654435761 % SPINES) + number(12, 1)
                + number(13, 1000) + number(14, 4000000))
        whole = record(kit.OBSERVATION, some + rest)
        yield whole[:len(whole) - len(some) - len(rest)], rest


class Sender(threading.Thread):
    """Every flow once a half window."""

    def __init__(self, daemon):
        super().__init__(daemon=True)
        self.peer, self.flows = kit.Peer(daemon.port), list(flows())
        self.sent, self.over, self.good = 0, threading.Event(), True

    def run(self):
        while not self.over.is_set() and self.good:
            begun = time.monotonic()
            for at in range(0, FLOWS, 1000):
                now = times(int(time.time() * 1000))
                part = self.flows[at:at + 1000]
                self.peer.send(b"".join(head + now + rest for head, rest in part))
                self.sent += len(part)
            self.good = self.peer.settled()
            self.over.wait(max(0, WINDOW_S / 2 - (time.monotonic() - begun)))


class Client(threading.Thread):
    def __init__(self, daemon, first):
        super().__init__(daemon=True)
        self.daemon_, self.next, self.over = daemon, first, threading.Event()
        self.answers, self.refused, self.bytes, self.failed = 0, 0, 0, []

    def run(self):
        while not self.over.is_set():
            target = LARGE[self.next % len(LARGE)]
            self.next += 1
            try:
                c = http.client.HTTPConnection("127.0.0.1", self.daemon_.http, timeout=600)
                c.request("GET", target, headers={"Accept-Encoding": "gzip"})
                answer = c.getresponse()
                while part := answer.read(1 << 20):
                    self.bytes += len(part)
                if answer.status not in (200, 503):
                    self.failed.append((target, answer.status))
                self.answers += answer.status == 200
                self.refused += answer.status == 503
                c.close()
            except (OSError, http.client.HTTPException) as error:
                self.failed.append((target, repr(error)))


def asking(daemon, target, buffer=None):
    s = socket.socket()
    if buffer:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    s.connect(("127.0.0.1", daemon.http))
    s.sendall(f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
    return s


NAMES = ("fabrictraced_windows_total", "fabrictraced_window_close_lag_seconds",
         "fabrictraced_window_close_seconds")


def page(daemon):
    """None where the daemon has too much under way to give it."""
    try:
        return daemon.get("/metrics")
    except urllib.error.HTTPError as error:
        if error.code != 503:
            raise
        return None


def look(daemon):
    """These metrics, of one page, or None."""
    lines = page(daemon)
    if lines is None:
        return None
    lines = lines.splitlines()
    return tuple(sum(float(line.split()[1]) for line in lines if line.startswith(f"{name} "))
                 for name in NAMES)


def lags(daemon, windows):
    """Of the next windows: how long after its end each was closed, and how long that took."""
    found, last = [], None
    while len(found) <= windows:
        now = until("a window closes", lambda: (new := look(daemon)) and new[0] != last and new)
        last = now[0]
        found.append(now[1:])
    return found[1:]


def cuts(daemon):
    """Whom the daemon has cut off, by reason, and how many answers it gave once more."""
    lines = until("there is room for a page", lambda: page(daemon)).splitlines()
    shared = [line.split()[1] for line in lines
              if line.startswith("fabrictraced_http_answers_shared_total ")]
    found = (re.fullmatch(r'fabrictraced_http_cut_off_total\{reason="(\w+)"\} (\d+)', line)
             for line in lines)
    return {m[1]: int(m[2]) for m in found if m and int(m[2])}, int(shared[0])


def cpu_s(daemon):
    fields = Path(f"/proc/{daemon.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


def own_records(daemon):
    own = [r for r in json.loads(daemon.get("/api/v1/loss"))["records"]
           if r["program"] == "fabrictraced"][0]
    return {s["name"]: s for s in own["stages"]}["records"]


def late_of(account):
    return sum(d["count"] for d in account.get("drops", []) if d["reason"] == "late")


def run(folder):
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
    daemon = kit.rig.Daemon(folder, topology())
    daemon.config.write_text(daemon.config.read_text().replace(
        "window: 2s", f"window: {WINDOW_S}s").replace("grace: 1s", f"grace: {GRACE_S}s").replace(
            str(daemon.out), "/dev/null") + f"http_streams_max: {STREAMS}\n"
        "verify_topology: false\n")
    daemon.start()
    sender, clients, sockets = None, [], []
    try:
        sender = Sender(daemon)
        sender.start()
        until("all flows are known", lambda: daemon.metric("fabrictraced_flows") >= 0.95 * FLOWS)
        quiet = lags(daemon, WINDOWS)
        sockets += [asking(daemon, "/api/v1/stream") for _ in range(STREAMS)]
        sockets += [asking(daemon, "/api/v1/paths", 4096) for _ in range(READERS)]
        clients = [Client(daemon, i) for i in range(CLIENTS)]
        late = late_of(own_records(daemon))
        begun_s, spent_s = time.monotonic(), cpu_s(daemon)
        for client in clients:
            client.start()
        crowded = lags(daemon, WINDOWS)
        for client in clients:
            client.over.set()
        for client in clients:
            client.join()
        took_s, spent_s = time.monotonic() - begun_s, cpu_s(daemon) - spent_s
        sender.over.set()
        sender.join()
        check("every batch was acknowledged", sender.good)
        account = own_records(daemon)
        equal(f"all that was sent came in, and was used; {late} came late before the crowd, while the "
              "daemon learnt", (account["received"], account["processed"] + late,
              late_of(account) - late), (sender.sent, sender.sent, 0))
        failed, (of, shared) = [f for c in clients for f in c.failed], cuts(daemon)
        check(f"{sum(c.answers for c in clients)} large answers whole ({shared} made "
              "for others), "
              f"{sum(c.bytes for c in clients) >> 20} MiB packed, {sum(c.refused for c in clients)} "
              f"refused before they began, cut off: {of or 'nobody'}; {spent_s:.1f} s of processor "
              f"in {took_s:.1f} s", not failed and sum(c.answers for c in clients) > CLIENTS,
              failed[:5])
        check("no reader was cut off but those who took nothing", set(of) <= {"still"}
              and of.get("still", 0) <= READERS, of)
        before, then = max(lag for lag, _ in quiet), max(lag for lag, _ in crowded)
        # The loop goes round once for each answer's slice, and other processes have the processor.
        check(f"windows close {then:.2f} s after their end at most, {before:.2f} s before; a close "
              f"takes {max(t for _, t in crowded):.2f} s, {max(t for _, t in quiet):.2f} s before",
              then < before + kit.rig.speed.limit(1), (quiet, crowded))
        peak = kit.peak_bytes(daemon)
        check(f"peak memory: {peak >> 20} MiB", peak < (900 << 20), peak)
        daemon.stop()
    finally:
        daemon.kill()
        for s in sockets:
            s.close()
