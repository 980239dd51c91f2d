#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Who may report what: certificates that bind programs, hosts and switches, new ones by SIGHUP, and
what the daemon refuses to do without them. Speaks the transport by hand."""
import os
import socket
import ssl
import struct
import sys

sys.dont_write_bytecode = True
import connection  # noqa: E402
import rig  # noqa: E402
from certificates import Authority  # noqa: E402
from rig import check, equal  # noqa: E402

TOPOLOGY = (rig.LAB / "topology.yaml").read_text()
HELLO, WELCOME, DATA, ACK, REFUSE = 1, 2, 3, 4, 5
AGENT, POLLER = "fabrictrace-agent", "fabrictrace-switchpoll"
TX, RX = 1, 2
EX_CONFIG = 78
NOW = 1_800_000_000_000


def number(n):
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def field(tag, value):
    """A field of protobuf: a number, or bytes with their length."""
    if isinstance(value, int):
        return number(tag << 3) + number(value)
    value = value.encode() if isinstance(value, str) else value
    return number(tag << 3 | 2) + number(len(value)) + value


def ip(text):
    return socket.inet_pton(socket.AF_INET, text)


def flow(host, src, dst, direction=TX):
    tuple_ = (field(1, ip(src)) + field(2, ip(dst)) + field(3, 50000) + field(4, 4791)
              + field(5, 17))
    return field(2, field(1, NOW) + field(2, 1000) + field(4, host) + field(6, tuple_)
                 + field(7, direction) + field(12, 1000))


def counters(agent):
    return field(3, field(1, NOW) + field(2, ip(agent)) + field(3, 1) + field(5, 1) + field(8, 1))


def loss(program, source):
    return field(4, field(1, NOW) + field(2, source) + field(3, program))


def queue_pairs(source, host, *addresses):
    return field(12, field(1, NOW) + field(3, source) + field(4, host) + field(5, "mlx5_0")
                 + field(6, 1) + b"".join(field(10, ip(a)) for a in addresses))


def communicator(host):
    return field(8, field(1, NOW) + field(3, host) + field(4, 1) + field(6, "0" * 16)
                 + field(8, 0) + field(9, 2))


class Peer:
    """One connection over TLS; .answer is that to its HELLO: (type, body)."""

    def __init__(self, port, program, source, files, ca, host="localhost"):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(ca)
        context.load_cert_chain(*files)
        raw = socket.create_connection(("127.0.0.1", port), timeout=rig.WAIT_S)
        self.socket = context.wrap_socket(raw, server_hostname=host)
        self.serial = self.socket.getpeercert()["serialNumber"]
        name = program.encode()
        self.sequence = 0
        self.send(HELLO, struct.pack(">BQB", 1, os.getpid(), len(name)) + name + source.encode())
        self.answer = self.receive()

    def send(self, kind, body):
        self.socket.sendall(struct.pack(">IB", 1 + len(body), kind) + body)

    def exactly(self, count):
        data = b""
        while len(data) < count:
            part = self.socket.recv(count - len(data))
            if not part:
                raise EOFError
            data += part
        return data

    def receive(self):
        body = self.exactly(struct.unpack(">I", self.exactly(4))[0])
        return body[0], body[1:]

    def report(self, *records):
        """One batch; the daemon acknowledges it whatever it thinks of the records."""
        if self.sequence == 0:
            self.sequence = struct.unpack(">BQ", self.answer[1])[1]
        self.sequence += 1
        self.send(DATA, struct.pack(">Q", self.sequence) + b"".join(field(1, r) for r in records))
        equal("acknowledged", self.receive(), (ACK, struct.pack(">Q", self.sequence)))

    def close(self):
        self.socket.close()


class Fabric:
    """A daemon with certificates, and what connects to it."""

    def __init__(self, folder, more=""):
        self.folder, self.authority = folder, Authority(folder)
        cert, key = self.authority.make("daemon", "DNS:localhost", "URI:fabrictrace://daemon/1")
        self.daemon = rig.Daemon(folder, TOPOLOGY)
        self.daemon.config.write_text(
            self.daemon.config.read_text()
            + f"tls:\n  cert: {cert}\n  key: {key}\n  ca: {self.authority.ca}\n{more}")
        self.daemon.start()
        self.peers = self.refused = 0

    def peer(self, program, source, *names):
        self.peers += 1
        return Peer(self.daemon.port, program, source,
                    self.authority.make(f"peer{self.peers}", *names), self.authority.ca)

    def fate(self, name):
        for line in self.daemon.get("/metrics").splitlines():
            if line.startswith(f'fabrictraced_records_total{{fate="{name}"}}'):
                return int(line.split()[-1])
        return None


def fate_of(fabric, peer, what, record, good):
    """Whether the daemon takes a record, by its own count."""
    before = fabric.fate("unauthorized")
    fabric.refused += not good
    peer.report(record)
    equal(f"{what}: {'taken' if good else 'refused'}", fabric.fate("unauthorized") - before,
          0 if good else 1)


def test_hello(folder):
    fabric = Fabric(folder, "  peers: [\"URI:spiffe://site/a?b=c=switchpoll/poll9\"]\n")
    try:
        for what, program, source, names, good in (
                ("an agent by its URI", AGENT, "gpu01", ["URI:fabrictrace://agent/gpu01"], True),
                ("another host by it", AGENT, "gpu77", ["URI:fabrictrace://agent/gpu01"], False),
                ("a poller by an agent's", POLLER, "gpu01", ["URI:fabrictrace://agent/gpu01"],
                 False),
                ("a poller by its URI", POLLER, "poll1", ["URI:fabrictrace://switchpoll/poll1"],
                 True),
                ("an agent by a poller's", AGENT, "poll1", ["URI:fabrictrace://switchpoll/poll1"],
                 False),
                ("an agent by its host's name", AGENT, "gpu02", ["DNS:gpu02.example.com"], True),
                ("by its whole name", AGENT, "gpu02.example.com", ["DNS:gpu02.example.com"], True),
                ("by another host's name", AGENT, "gpu03", ["DNS:gpu02.example.com"], False),
                ("a poller by a host's name", POLLER, "gpu02", ["DNS:gpu02.example.com"], False),
                ("an agent beside a poller's URI", AGENT, "gpu02",
                 ["URI:fabrictrace://switchpoll/poll1", "DNS:gpu02"], False),
                ("by a wildcard", AGENT, "gpu02", ["DNS:*.example.com"], False),
                ("by nothing", AGENT, "gpu01", [], False),
                ("by an address", AGENT, "10.0.1.1", ["IP:10.0.1.1"], False),
                ("by a name of the site", POLLER, "poll9", ["URI:spiffe://site/a?b=c"], True),
                ("a program that is none", "curl", "gpu01", ["URI:fabrictrace://agent/gpu01"],
                 False)):
            peer = fabric.peer(program, source, *names)
            equal(f"hello: {what}", peer.answer[0], WELCOME if good else REFUSE)
            if not good:
                check(f"hello: {what}: the reason", b"certificate" in peer.answer[1]
                      or b"not a program" in peer.answer[1], peer.answer)
            peer.close()
        fabric.daemon.log_says("peer 'gpu77' at 127.0.0.1:")
        fabric.daemon.log_says("its certificate is not that of agent/gpu77, but of "
                               "URI:fabrictrace://agent/gpu01")
    finally:
        fabric.daemon.stop()
        fabric.daemon.kill()


def test_records(folder):
    host, address = first_host(TOPOLOGY)
    fabric = Fabric(folder, "  inventory: [\"poll1=192.0.2.0/25,198.51.100.7\"]\n")
    try:
        agent = fabric.peer(AGENT, "new01", "URI:fabrictrace://agent/new01")
        other = fabric.peer(AGENT, "new02", "DNS:new02.example.com", "IP:10.9.0.2")
        owner = fabric.peer(AGENT, host, f"URI:fabrictrace://agent/{host}")
        for what, peer, record, good in (
                ("a flow of its own", agent, flow("new01", "10.9.0.1", "10.9.0.9"), True),
                ("a flow of another host", agent, flow("gpu77", "10.9.0.1", "10.9.0.9"), False),
                ("a flow from an address of the file", agent, flow("new01", address, "10.9.0.9"),
                 False),
                ("the same by its host", owner, flow(host, address, "10.9.0.9"), True),
                ("a flow to it", agent, flow("new01", "10.9.0.1", address), True),
                ("a flow that another host received", agent,
                 flow("new01", "10.9.0.1", address, RX), False),
                ("a flow from an address that was reported", other,
                 flow("new02", "10.9.0.1", "10.9.0.9"), False),
                ("one that is nobody's yet", agent, flow("new01", "10.9.0.2", "10.9.0.9"), True),
                ("the same by whose certificate has it", other,
                 flow("new02", "10.9.0.2", "10.9.0.9"), True),
                ("and by the first again", agent, flow("new01", "10.9.0.2", "10.9.0.9"), False),
                ("a link-local address by two", agent, flow("new01", "169.254.0.1", "10.9.0.9"),
                 True),
                ("by the second", other, flow("new02", "169.254.0.1", "10.9.0.9"), True),
                ("its queue pairs", agent, queue_pairs("new01", "new01", "10.9.0.1"), True),
                ("queue pairs of another source", agent, queue_pairs("new02", "new01"), False),
                ("queue pairs of another host", agent, queue_pairs("new01", "gpu77"), False),
                ("queue pairs of another's address", agent,
                 queue_pairs("new01", "new01", "10.9.0.1", address), False),
                ("its rank", agent, communicator("new01"), True),
                ("another host's rank", agent, communicator("gpu77"), False),
                ("its account", agent, loss(AGENT, "new01"), True),
                ("another's account", agent, loss(AGENT, "gpu77"), False),
                ("the daemon's account", agent, loss("fabrictraced", "new01"), False),
                ("an agent's port counters", agent, counters("192.0.2.1"), False)):
            fate_of(fabric, peer, what, record, good)
        poller = fabric.peer(POLLER, "poll1", "URI:fabrictrace://switchpoll/poll1")
        free = fabric.peer(POLLER, "poll2", "URI:fabrictrace://switchpoll/poll2")
        for what, peer, record, good in (
                ("a switch of the inventory", poller, counters("192.0.2.127"), True),
                ("the other prefix", poller, counters("198.51.100.7"), True),
                ("a switch behind the prefix", poller, counters("192.0.2.128"), False),
                ("any switch, without an inventory", free, counters("203.0.113.1"), True),
                ("a poller's flow", poller, flow("poll1", "10.9.0.5", "10.9.0.9"), False),
                ("a poller's account", poller, loss(POLLER, "poll1"), True)):
            fate_of(fabric, peer, what, record, good)
        fabric.daemon.log_says("fabrictrace-agent 'new01': a record is refused, its certificate "
                               "does not allow it: it names host 'gpu77'")
        fabric.daemon.stop()
        rig.check_balance("records", fabric.daemon.records())
        refused = rig.drops(rig.last_stages(fabric.daemon.records(), "fabrictraced")["records"])
        equal("refused records are in the account", refused.get("unauthorized"), fabric.refused)
    finally:
        fabric.daemon.kill()


def first_host(topology):
    """(name, address) of a host that the file has."""
    name = topology.split("hosts:")[1].split("name:")[1].split()[0]
    return name, topology.split("hosts:")[1].split("addresses: [")[1].split("]")[0].split(",")[0]


def test_renewal(folder):
    fabric = Fabric(folder)
    daemon = fabric.daemon

    try:
        stays = fabric.peer(AGENT, "gpu05", "URI:fabrictrace://agent/gpu05")
        old = serial(fabric)
        cert, key = folder / "daemon.pem", folder / "daemon.key"
        good = cert.read_bytes(), key.read_bytes()
        cert.write_text("no certificate\n")
        daemon.hang_up()
        daemon.log_says("reload failed")
        check("the file is named", f"key 'tls.cert': {cert}: " in daemon.log.read_text(),
              daemon.log.read_text())
        equal("after a bad one the old stays", serial(fabric), old)
        cert.write_bytes(good[0])
        key.chmod(0o644)
        daemon.hang_up()
        daemon.log_says("reload failed", 2)
        daemon.log_says(f"key 'tls.key': {key}: everybody may read or write it (mode 0644)")
        key.unlink()
        fabric.authority.make("daemon", "DNS:localhost")
        config = daemon.config.read_text()
        daemon.config.write_text(f"{config}http_tls: {{cert: {cert}, key: {key}}}\n")
        daemon.hang_up()
        daemon.log_says("reload failed", 3)
        daemon.log_says("http_tls: TLS can be enabled or disabled only by a restart")
        equal("of a reload that fails later nothing is in force", serial(fabric), old)
        daemon.config.write_text(config)
        daemon.hang_up()
        daemon.log_says("reloaded the topology")
        check("a new one is served", serial(fabric) != old, old)
        stays.report(loss(AGENT, "gpu05"))
        stays.close()
        daemon.stop()
    finally:
        daemon.kill()


def serial(fabric):
    """Of the certificate that the daemon shows."""
    peer = fabric.peer(AGENT, "gpu01", "URI:fabrictrace://agent/gpu01")
    equal("it is welcome", peer.answer[0], WELCOME)
    peer.close()
    return peer.serial


def test_plain(folder):
    """Plain TCP beyond loopback is asked for, and told."""
    topology = folder / "topology.yaml"
    topology.write_text(TOPOLOGY)

    def judge(*settings):
        return rig.run(rig.DAEMON, "--check", *rig.NO_CONFIG, "--topology", topology,
                       *(word for s in settings for word in ("--set", s)))

    for listen in (":9477", "0.0.0.0:9477", "192.0.2.1:9477", "[::]:9477", "daemon.example:9477"):
        done = judge(f"listen={listen}")
        equal(f"plain on {listen}", done.returncode, EX_CONFIG)
        check("which key", "--set: key 'listen': " in done.stderr and "listen_plain" in done.stderr,
              done.stderr)
    for listen in ("127.0.0.1:9477", "127.9.9.9:1", "[::1]:9477", "localhost:9477"):
        equal(f"plain on {listen}", (judge(f"listen={listen}").stderr), "")
    equal("when it is asked for", judge("listen=:9477", "listen_plain=true").stderr, "")
    printed = rig.run(rig.DAEMON, "--print-config", *rig.NO_CONFIG).stdout
    check("the default is loopback", 'listen: "127.0.0.1:9477"' in printed, printed)
    daemon = rig.Daemon(folder, TOPOLOGY)
    daemon.config.write_text(daemon.config.read_text().replace("listen: 127.0.0.1:", "listen: :")
                             + "listen_plain: true\n")
    try:
        daemon.start()
        check("a warning at the start", "warning: listen ':" in daemon.log.read_text()
              and "plain TCP" in daemon.log.read_text(), daemon.log.read_text())
        daemon.stop()
    finally:
        daemon.kill()


def check_names(program, path):
    """Of one program's HTTP server."""
    def ask(host):
        with socket.create_connection(("127.0.0.1", program.http), timeout=rig.WAIT_S) as s:
            line = f"Host: {host}\r\n" if host else ""
            s.sendall(f"GET {path} HTTP/1.0\r\n{line}\r\n".encode())
            answer = b""
            while part := s.recv(65536):
                answer += part
        return int(answer.split()[1])

    program.config.write_text(program.config.read_text() + "http_names: [proxy.example]\n")
    program.start()
    try:
        for host, code in ((None, 200), ("127.0.0.1", 200), (f"127.0.0.1:{program.http}", 200),
                           ("[::1]:9478", 200), ("localhost", 200), ("LocalHost.:80", 200),
                           (socket.gethostname(), 200), ("proxy.example", 200),
                           ("evil.example", 421), (f"evil.example:{program.http}", 421),
                           ("127.0.0.1.evil.example", 421), ("proxy.example.evil", 421)):
            equal(f"{program.name}: a request for {host}", ask(host), code)
        program.stop()
    finally:
        program.kill()


def test_names(folder):
    """A page whose own name was led here does not get an answer, from none of the three."""
    check_names(rig.Daemon(folder, TOPOLOGY), "/api/v1/topology")
    for kind in ("agent", "poller"):
        check_names(connection.Reporter(folder / kind, kind, "127.0.0.1:9"), "/metrics")


def test_secrets(folder):
    config = folder / "secrets.yaml"
    config.write_text("kafka:\n  properties:\n    - sasl.password=hunter2\n"
                      "    - ssl.key.password=hunter3\n    - security.protocol=plaintext\n")
    config.chmod(0o640)
    done = rig.run(rig.DAEMON, "--print-config", "-c", config)
    check("printed without secrets", "hunter" not in done.stdout + done.stderr, done.stdout)
    check("but with the rest", '["sasl.password=(hidden)", "ssl.key.password=(hidden)", '
          '"security.protocol=plaintext"]' in done.stdout, done.stdout)
    topology = folder / "topology.yaml"
    topology.write_text(TOPOLOGY)
    judge = (rig.DAEMON, "--check", "-c", config, "--topology", topology, "--sink", "kafka")
    check("a file for few is taken", "secret" not in rig.run(*judge).stderr)
    config.chmod(0o644)
    done = rig.run(*judge)
    equal("a file for everybody is not", done.returncode, EX_CONFIG)
    check("and it is named", f"{config}:2: key 'kafka.properties': a secret is in a file where "
          "everybody may read or write it (mode 0644)" in done.stderr, done.stderr)


if __name__ == "__main__":
    sys.exit(rig.run_tests(test_hello, test_records, test_renewal, test_plain, test_names,
                           test_secrets))
