#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What agents and pollers say of their connection to the daemon, in the log and over HTTP, and that
both take new certificates without a restart. Needs no root."""
import re
import socket
import ssl
import struct
import sys
import threading
import urllib.error
import urllib.request
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "faults"))
import kit  # noqa: E402
import rig  # noqa: E402
from certificates import Authority  # noqa: E402
from rig import check, equal, until  # noqa: E402

TOPOLOGY = (rig.LAB / "topology.yaml").read_text()
HELLO, WELCOME = 1, 2


class Reporter(rig.Program):
    """An agent that looks at nothing, or a poller; endpoint and certificates as told."""

    def __init__(self, folder, kind, endpoint, tls=""):
        folder.mkdir()
        self.http = rig.free_port()
        self.endpoint = endpoint
        own = ("host: gpu01\ninterfaces: []\nrdma: {enabled: false}\n"
               f"nccl: {{socket: {folder}/nccl.sock}}\n" if kind == "agent" else
               f"source_id: poll1\nlisten: 127.0.0.1:{rig.free_port(socket.SOCK_DGRAM)}\n"
               "receive_buffer: 64KiB\n")
        super().__init__(folder, kind, [rig.AGENT if kind == "agent" else rig.POLLER],
                         f"{own}http: 127.0.0.1:{self.http}\ndaemon:\n  endpoint: {endpoint}\n"
                         f"  retry_min: 50ms\n  retry_max: 100ms\n{tls}")

    def health(self):
        """(status, text)"""
        try:
            return 200, self.get("/healthz")
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return None, ""

    def set_what_fails(self, port):
        """Settings that are good, of which an interface is not there, or an endpoint is taken.
        Returns those before."""
        before = self.config.read_text()
        after = re.sub("^listen: .*", f"listen: 127.0.0.1:{port}", before, flags=re.M)
        self.config.write_text(after.replace("interfaces: []", "interfaces: [nowhere0]"))
        return before

    def says_once(self, what, text):
        """And no more, however often it tries."""
        self.log_says(f"warning: {text}")
        until(f"{self.name}: {what}: told over HTTP",
              lambda: self.health()[0] == 503 and text in self.health()[1])
        equal(f"{self.name}: {what}: once", self.log.read_text().count(text), 1)


class Silent:
    """A server that takes connections, hears the HELLO and ends them, counting."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port, self.count = self.listener.getsockname()[1], 0
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                peer = self.listener.accept()[0]
            except OSError:
                return
            peer.recv(4096)
            peer.close()
            self.count += 1


def tls_of(authority, cert, key):
    return f"  cert: {cert}\n  key: {key}\n  ca: {authority.ca}\n"


def test_newer_program(folder):
    """Records of kinds that the daemon does not know are counted."""
    daemon = rig.Daemon(folder, TOPOLOGY)
    try:
        daemon.start()
        peer = kit.Peer(daemon.port, "gpu01", "fabrictrace-agent")
        peer.send(kit.record(4000, b"\x08\x01") * 3)
        check("a batch of a newer program is taken", peer.settled())
        text = daemon.get("/metrics")
        check("what it has that is not known here is counted",
              'fabrictraced_records_total{fate="unused_kind"} 3\n' in text)
        peer.close()
        daemon.stop()
    finally:
        daemon.kill()


def test_log(folder):
    """Refused, broken off, unknown, and there at last."""
    for kind in ("agent", "poller"):
        daemon = rig.Daemon(folder, TOPOLOGY)
        reporter = Reporter(folder / f"{kind}1", kind, f"127.0.0.1:{daemon.port}").start()
        silent = Silent()
        ends = Reporter(folder / f"{kind}2", kind, f"127.0.0.1:{silent.port}")
        unknown = Reporter(folder / f"{kind}3", kind, "nowhere.invalid:9477")
        try:
            reporter.says_once("refused", f"receiver '{reporter.endpoint}': "
                               "Connection refused")
            daemon.start()
            reporter.log_says(f"receiver '{reporter.endpoint}': connected")
            until("healthy again", lambda: reporter.health() == (200, "ok\n"))
            daemon.stop()
            until("and ill again", lambda: reporter.health()[0] == 503)
            reporter.stop()
            ends.start()
            until("some tries", lambda: silent.count > 5)
            ends.says_once("broken off", f"receiver '{ends.endpoint}': it closed the "
                           "connection")
            ends.stop()
            unknown.start()
            unknown.says_once("unknown", "receiver 'nowhere.invalid:9477': host name not "
                              "found")
            check("plain TCP beyond loopback is told", "warning: daemon 'nowhere.invalid:9477': "
                  "plain TCP" in unknown.log.read_text(), unknown.log.read_text())
            unknown.stop()
        finally:
            silent.listener.close()
            for program in (reporter, ends, unknown, daemon):
                program.kill()


class Listener(threading.Thread):
    """A receiver over TLS that welcomes, and keeps the serial numbers of whom it saw."""

    def __init__(self, files, ca):
        super().__init__(daemon=True)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(*files)
        self.context.load_verify_locations(ca)
        self.context.verify_mode = ssl.CERT_REQUIRED
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port, self.serials, self.now = self.listener.getsockname()[1], [], None
        self.start()

    def run(self):
        while True:
            try:
                raw = self.listener.accept()[0]
            except OSError:
                return
            try:
                stream = self.context.wrap_socket(raw, server_side=True)
                stream.recv(4096)
                stream.sendall(struct.pack(">IBBQ", 10, WELCOME, 2, 0))
                self.serials.append(stream.getpeercert()["serialNumber"])
                self.now = stream
            except OSError:
                raw.close()

    def hang_up(self):
        """The peer has to connect anew."""
        self.now.shutdown(socket.SHUT_RDWR)
        self.now.close()


def test_certificates(folder):
    ours, other = Authority(folder), Authority(folder, "other")
    server = ours.make("server", "IP:127.0.0.1")
    for kind, name in (("agent", "URI:fabrictrace://agent/gpu01"),
                       ("poller", "URI:fabrictrace://switchpoll/poll1")):
        listener = Listener(server, ours.ca)
        cert, key = ours.make(kind, name)
        endpoint = f"127.0.0.1:{listener.port}"
        stranger = Reporter(folder / f"{kind}1", kind, endpoint,
                            tls_of(other, *other.make(f"{kind}2", name)))
        reporter = Reporter(folder / f"{kind}2", kind, endpoint, tls_of(ours, cert, key))
        try:
            stranger.start()
            stranger.says_once("another authority", f"receiver '{endpoint}': its "
                               "certificate is not accepted")
            stranger.stop()
            equal("the stranger was not let in", listener.serials, [])
            reporter.start()
            reporter.log_says("connected")
            good = key.read_bytes()
            key.write_text("no key\n")
            reporter.hang_up()
            reporter.log_says("reload failed")
            check("the file is named", f"key 'daemon.key': {key}: " in reporter.log.read_text(),
                  reporter.log.read_text())
            listener.hang_up()
            until("another connection", lambda: len(listener.serials) == 2)
            equal("with the old certificate", len(set(listener.serials)), 1)
            key.write_bytes(good)
            ours.make(kind, name)
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
                taken.bind(("127.0.0.1", 0))
                config = reporter.set_what_fails(taken.getsockname()[1])
                reporter.hang_up()
                reporter.log_says("reload failed", 2)
            listener.hang_up()
            until("a third", lambda: len(listener.serials) == 3)
            equal("of a reload that fails later nothing is in force", len(set(listener.serials)), 1)
            reporter.config.write_text(config)
            reporter.hang_up()
            reporter.log_says("notice: reloaded")
            listener.hang_up()
            until("a fourth", lambda: len(listener.serials) == 4)
            equal("with the new one", len(set(listener.serials)), 2)
            reporter.stop()
        finally:
            listener.listener.close()
            stranger.kill()
            reporter.kill()


def test_sink(folder):
    """A disk that is full: an event, and a line of the doctor's."""
    daemon = rig.Daemon(folder, TOPOLOGY)
    daemon.config.write_text(daemon.config.read_text().replace(f"file:{daemon.out}",
                                                               "file:/dev/full"))
    try:
        daemon.start()
        until("the event", lambda: '"kind":"loss"' in daemon.get("/api/v1/events"))
        events = daemon.get("/api/v1/events")
        check("what it says", "fabrictraced 'golden' lost" in events and "(failed)" in events
              and "look at the disk" in events, events)
        doctor = daemon.get("/api/v1/doctor")
        check("the doctor's line", "fabrictraced 'golden' lost" in doctor
              and "look at the disk" in doctor, doctor)
        daemon.log_says("sink 'file:/dev/full': No space left on device")
        daemon.stop()
    finally:
        daemon.kill()


if __name__ == "__main__":
    sys.exit(rig.run_tests(test_newer_program, test_log, test_certificates, test_sink))
