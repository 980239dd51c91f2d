#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""fabrictrace-switchpoll as it runs: real datagrams over loopback, reload, metrics, the end."""
import json
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import make_captures as c  # noqa: E402
import speed  # noqa: E402
from ports import free_port  # noqa: E402

POLLER = Path("switchpoll/fabrictrace-switchpoll").resolve()
WAIT_S = speed.limit(120)
FLUSH_DEFAULT_S = 5
SO_RCVBUFFORCE = 33
GIVEN_BYTES = 12 << 20
EX_UNAVAILABLE = 69
AT_ONCE = 50  # datagrams that the smallest socket buffer takes
failures = []


def check(what, good, detail=""):
    print(f"{'ok' if good else 'FAIL'}: {what}{'' if good else f': {detail}'}")
    if not good:
        failures.append(what)


def equal(what, got, want):
    check(what, got == want, f"got {got!r}, want {want!r}")


def until(what, condition):
    return bool(speed.wait(condition, 120)) or check(what, False, f"not within {WAIT_S:.0f} s")


class Poller:
    """One running poller; writes NDJSON to a file unless it is to speak to a daemon."""

    def __init__(self, folder, to_file=True, given=(), **settings):
        """given: sockets that it gets as from a service manager."""
        self.port, self.http = free_port(socket.SOCK_DGRAM), free_port()
        self.config, self.out = folder / "poller.yaml", folder / "out.ndjson"
        self.log = folder / "log"
        self.settings = {"source_id": "live", "listen": f"127.0.0.1:{self.port}",
                         "http": f"127.0.0.1:{self.http}", "receive_buffer": "8MiB", **settings}
        self.write()
        command = [POLLER, "-c", self.config] + (["--output", self.out] if to_file else [])
        if given:
            # sd_listen_fds(3): from descriptor 3 on, and the process itself is meant.
            moved = " ".join(f"{n}<&{s.fileno()}" for n, s in enumerate(given, 3))
            command = ["bash", "-c", f"exec {moved} && LISTEN_FDS={len(given)} LISTEN_PID=$$ exec \"$@\"",
                       "bash", *command]
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(command, stderr=log, stdin=subprocess.DEVNULL,
                                            stdout=subprocess.DEVNULL,
                                            pass_fds=[s.fileno() for s in given])
        self.ready = until("start", lambda: self.said("listening") or self.process.poll() is not None)
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.sent = 0

    def write(self, **settings):
        self.settings.update(settings)
        self.config.write_text("".join(f"{k}: \"{v}\"\n" for k, v in self.settings.items()))

    def said(self, text):
        return text in self.log.read_text()

    def send(self, sequences, agent=c.LEAF, port=None, paced=True):
        for i in sequences:
            if paced and self.sent % AT_ONCE == AT_ONCE - 1:
                until("datagrams are read", lambda: self.metric(
                    "datagrams_received_total") >= self.sent)
            self.sent += 1
            self.socket.sendto(c.datagram(agent, i, 1000 + i, [
                c.flow_sample(2 * i, (0, 1), 1, 49, [c.roce(*c.DATA)]),
                c.flow_sample(2 * i + 1, (0, 1), 1, 49, [c.roce(*c.DATA)]),
                c.counter_sample(i, (0, 1), [c.generic_counters(1, i, i)])]),
                ("127.0.0.1", port or self.port))

    def get(self, path):
        url = f"http://127.0.0.1:{self.http}{path}"
        with urllib.request.urlopen(url, timeout=WAIT_S) as answer:
            return answer.read().decode()

    def metric(self, name):
        for line in self.get("/metrics").splitlines():
            if line.startswith(f"fabrictrace_switchpoll_{name} "):
                return float(line.split()[1])
        return None

    def reload(self):
        """What the log says of it."""
        before = len(self.log.read_text())
        self.process.send_signal(signal.SIGHUP)
        until("reload", lambda: re.search(
            "(reloaded|reload failed).*\n", self.log.read_text()[before:]))
        return self.log.read_text()[before:]

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(WAIT_S)
        finally:
            self.socket.close()

    def records(self):
        return [json.loads(line) for line in self.out.read_text().splitlines()]


def last_loss(records):
    return {s["name"]: s for s in
            [r for r in records if r["schema"] == "fabrictrace.loss.v1"][-1]["stages"]}


def samples_of(records):
    return sum(r.get("samples", 0) for r in records)


def test_live(folder):
    poller = Poller(folder)
    poller.send(range(1, 301))
    # Records come by the clock, with nothing sent after them.
    until("records by the clock", lambda: samples_of(poller.records()) == 600)
    equal("samples, with nothing sent after them", samples_of(poller.records()), 600)
    equal("healthy", poller.get("/healthz"), "ok\n")
    equal("metrics: datagrams", poller.metric("datagrams_received_total"), 300)
    equal("metrics: samples", poller.metric("samples_processed_total"), 900)
    equal("metrics: missing", poller.metric("network_datagrams_missing_total"), 0)
    poller.send(range(311, 321))
    until("a gap is seen", lambda: poller.metric("network_datagrams_missing_total") == 10)
    # What arrives right before the end is taken as well.
    poller.send(range(321, 341))
    equal("exit code after SIGTERM", poller.stop(), 0)
    records = poller.records()
    last = last_loss(records)
    equal("samples at the end", samples_of(records), 660)
    equal("network", (last["network"]["received"], last["network"]["processed"]), (340, 330))
    for stage in last.values():
        equal(f"balance of {stage['name']}", stage["received"], stage["processed"] +
              stage["pending"] + sum(d["count"] for d in stage.get("drops", [])))


def test_reload(folder):
    poller = Poller(folder)
    poller.send(range(1, 11))
    until("first records", lambda: samples_of(poller.records()) == 20)
    for key, value in (("fold_interval", "soon"), ("no_such_key", "1"), ("source_id", "other"),
                       ("listen", "192.0.2.1:6343")):
        kept = dict(poller.settings)
        poller.write(**{key: value})
        said = poller.reload()
        check(f"reload with {key}={value} is refused", "reload failed" in said, said)
        check("the complaint names the key", key in said, said)
        poller.settings = kept
    poller.send(range(11, 21))
    until("records after refused reloads", lambda: samples_of(poller.records()) == 40)
    other = free_port(socket.SOCK_DGRAM)
    poller.write(listen=f"127.0.0.1:{other}", fold_interval="200ms")
    said = poller.reload()
    check("a good reload is taken", "reloaded" in said, said)
    poller.send(range(21, 31), port=other)
    until("records from the new port", lambda: samples_of(poller.records()) == 60)
    equal("exit code", poller.stop(), 0)
    records = poller.records()
    equal("samples", samples_of(records), 60)
    equal("the new interval", {r["interval_ms"] for r in records if "interval_ms" in r},
          {1000, 200})
    equal("nothing lost", last_loss(records)["network"]["received"], 30)


def test_small_buffer(folder):
    """The kernel gives no socket this much, whoever asks: said after a reload, too, of every kind of intake."""
    for workers in (1, 2):
        poller = Poller(folder, workers=workers, memory_max="32GiB", receive_buffer="64KiB")
        check("not said where the buffer is as large as asked for", not poller.said("receive_buffer: is"))
        poller.write(receive_buffer="1GiB")
        poller.reload()
        check(f"{workers} workers: a smaller buffer is said", poller.said("receive_buffer: is"))
        equal("exit code", poller.stop(), 0)


def sockets_on(port):
    return sum(int(line.split()[1].rsplit(":", 1)[1], 16) == port
               for line in Path("/proc/net/udp").read_text().splitlines()[1:])


def balanced(records):
    for stage in last_loss(records).values():
        equal(f"workers: balance of {stage['name']}", stage["received"], stage["processed"] +
              stage["pending"] + sum(d["count"] for d in stage.get("drops", [])))


def test_workers(folder):
    """Several threads: an exporter stays with one of them, whatever port it sends from."""
    poller = Poller(folder, workers=4, fold_interval="200ms")
    agents = [f"192.0.2.{i}" for i in range(1, 25)] + [f"2001:db8::{i}" for i in range(1, 9)]
    ports = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(8)]

    def burst(sequences, port):
        for i in sequences:
            for agent in agents:
                poller.socket = ports[i % len(ports)]
                poller.send([i], agent=agent, port=port)

    equal("workers: sockets", sockets_on(poller.port), 4)
    burst(range(1, 31), poller.port)
    sent = 30 * len(agents)
    until("workers: all taken", lambda: poller.metric("datagrams_received_total") == sent)
    for name, want in (("network_datagrams_missing_total", 0), ("exporters", len(agents)),
                       ("network_samples_missing_total", 0)):
        equal(f"workers: {name}", poller.metric(name), want)
    each = [line.split()[1] for line in poller.get("/metrics").splitlines()
            if line.startswith("fabrictrace_switchpoll_exporter_datagrams_total{")]
    equal("workers: every exporter once", each, ["30"] * len(agents))
    other = free_port(socket.SOCK_DGRAM)
    burst(range(31, 41), poller.port)
    poller.write(listen=f"127.0.0.1:{other}")
    said = poller.reload()
    check("workers: a good reload is taken", "reloaded" in said, said)
    poller.write(listen="192.0.2.1:6343")
    said = poller.reload()
    check("workers: a bad endpoint is refused", "reload failed" in said, said)
    equal("workers: sockets after a reload", (sockets_on(poller.port), sockets_on(other)), (0, 4))
    burst(range(41, 51), other)
    equal("workers: exit code", poller.stop(), 0)
    for s in ports:
        s.close()
    records = poller.records()
    network = last_loss(records)["network"]
    equal("workers: all at the end", (network["received"], network["processed"]),
          (50 * len(agents), 50 * len(agents)))
    equal("workers: samples in records", samples_of(records), 100 * len(agents))
    balanced(records)


def socket_of_manager(port=0):
    """Bound, with a receive buffer that the poller cannot make."""
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    try:
        s.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, GIVEN_BYTES)
    except PermissionError:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, GIVEN_BYTES)
    s.bind(("127.0.0.1", port))
    return s


def test_given(folder):
    """Sockets of the service manager are taken as they are, instead of those of `listen`."""
    manager = socket_of_manager()
    port = manager.getsockname()[1]
    size = manager.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) // 2
    early = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    early.sendto(c.datagram(c.SPINE, 1, 1000, [
        c.flow_sample(1, (0, 1), 1, 3, [c.roce(*c.DATA)])]), ("127.0.0.1", port))
    poller = Poller(folder, given=[manager], receive_buffer=f"{size}")
    check("it says so", poller.said("1 sockets of the service manager"), poller.log.read_text())
    equal("the buffer is that of the socket", poller.metric("receive_buffer_bytes"), size)
    until("what came before is taken", lambda: poller.metric("datagrams_received_total") == 1)
    poller.send(range(1, 41), port=port)
    until("what comes is taken", lambda: poller.metric("datagrams_received_total") == 41)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind(("127.0.0.1", poller.port))  # listen is left alone
    poller.write(listen=f"127.0.0.1:{free_port(socket.SOCK_DGRAM)}", fold_interval="200ms")
    check("a reload keeps the socket", "reloaded" in poller.reload(), poller.log.read_text())
    poller.send(range(41, 61), port=port)
    until("what comes then is taken", lambda: poller.metric("datagrams_received_total") == 61)
    equal("exit code", poller.stop(), 0)
    # The next one goes on with what came meanwhile.
    early.sendto(c.datagram(c.SPINE, 2, 2000, [
        c.flow_sample(2, (0, 1), 1, 3, [c.roce(*c.DATA)])]), ("127.0.0.1", port))
    poller = Poller(folder, given=[manager])
    until("what came between two", lambda: poller.metric("datagrams_received_total") == 1)
    equal("exit code of the next", poller.stop(), 0)
    sockets = [manager, socket_of_manager(port)]
    poller = Poller(folder, given=sockets)
    equal("one worker and two sockets: exit code", poller.process.wait(WAIT_S), EX_UNAVAILABLE)
    check("what the socket unit needs is told", poller.said("1 are to share 2 sockets"),
          poller.log.read_text())
    poller = Poller(folder, given=sockets, workers=2)
    for i, agent in enumerate((c.LEAF, c.SPINE, "192.0.2.31", "192.0.2.41")):
        poller.send(range(1, 11), agent=agent, port=port)
        until(f"exporter {i}", lambda: poller.metric("datagrams_received_total") == poller.sent)
    equal("exit code with two workers", poller.stop(), 0)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as wrong:
        poller = Poller(folder, given=[wrong])
        equal("another kind of socket: exit code", poller.process.wait(WAIT_S), EX_UNAVAILABLE)
        check("is told", poller.said("is no UDP socket"), poller.log.read_text())


def test_faults(folder):
    poller = Poller(folder)
    done = subprocess.run([POLLER, "-c", poller.config, "--output", folder / "other"],
                          capture_output=True, timeout=WAIT_S)
    equal("port in use: exit code", done.returncode, 69)
    check("port in use: named", str(poller.port).encode() in done.stderr, done.stderr)
    poller.stop()
    # A reader that goes away.
    poller.write(fold_interval="100ms")
    gone = subprocess.Popen([POLLER, "-c", poller.config, "--output", "-"],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    gone.stdout.close()
    poller.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    until("end after a closed pipe", lambda: gone.poll() is not None or
          poller.send([int(time.time())], paced=False))
    equal("closed pipe: exit code", gone.wait(WAIT_S), 74)
    check("closed pipe: said", b"standard output" in gone.stderr.read())
    gone.stderr.close()
    poller.socket.close()


def test_daemon_away(folder):
    """Without a daemon records wait, and the end waits no longer than it may."""
    nowhere = free_port()
    poller = Poller(folder, to_file=False)
    poller.stop()
    poller.config.write_text(poller.config.read_text() +
                             f"daemon: {{endpoint: \"127.0.0.1:{nowhere}\", flush_timeout: 100ms}}\n")
    with open(poller.log, "wb") as log:
        poller.process = subprocess.Popen([POLLER, "-c", poller.config], stderr=log)
    until("start", lambda: poller.said("listening"))
    poller.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    poller.send(range(1, 11))
    until("records wait", lambda: poller.metric("records_pending") >= 2)
    equal("daemon away: not connected", poller.metric("daemon_connected"), 0)
    began = time.monotonic()
    equal("daemon away: exit code", poller.stop(), 0)
    check("daemon away: the end is not held up", time.monotonic() - began < speed.limit(FLUSH_DEFAULT_S))
    check("daemon away: what is lost is told", poller.said("records are not acknowledged"),
          poller.log.read_text())


def main():
    given = (test_given,) if "#define HAVE_SYSTEMD 1" in Path("config.h").read_text() else ()
    for test in (test_live, test_reload, test_small_buffer, test_workers, *given, test_faults, test_daemon_away):
        with tempfile.TemporaryDirectory() as folder:
            test(Path(folder))
    print(f"{len(failures)} failed")
    return 1 if failures else 0


sys.exit(main())
