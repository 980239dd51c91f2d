#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Secrets of Kafka, of a schema registry, of switches and of the API stand in their files alone: whatever goes
wrong with them, at the most talkative level of the log, they are in no log, record, answer, incident,
command line or environment, nor in what --print-config and --check print."""
import json
import socket
import sys
import threading
import urllib.error
import urllib.request
from pathlib import Path

sys.dont_write_bytecode = True
import rig  # noqa: E402
from rig import check, equal, until  # noqa: E402

SECRETS = {name: f"hush-{name}-0123456789" for name in (
    "kafka", "inline", "registry", "auth", "priv", "community", "token")}


class Strangers:
    """Ports where somebody answers with what is none: TCP that hangs up behind a line, UDP that echoes."""

    def __init__(self):
        self.tcp = socket.create_server(("127.0.0.1", 0))
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.bind(("127.0.0.1", 0))
        self.heard = {"tcp": 0, "udp": 0}
        for serve in (self.serve_tcp, self.serve_udp):
            threading.Thread(target=serve, daemon=True).start()

    def serve_tcp(self):
        while True:
            try:
                peer = self.tcp.accept()[0]
                peer.recv(4096)
                peer.sendall(b"\0\0\0\4none")
                peer.close()
            except OSError:
                if self.tcp.fileno() < 0:
                    return
            self.heard["tcp"] += 1

    def serve_udp(self):
        while True:
            try:
                data, peer = self.udp.recvfrom(65536)
                self.udp.sendto(data[:-1], peer)
            except OSError:
                return
            self.heard["udp"] += 1

    def close(self):
        self.tcp.close()
        self.udp.close()


def put(folder, name):
    path = folder / f"{name}.secret"
    path.write_text(SECRETS[name] + "\n")
    path.chmod(0o600)
    return path


def search(what, data):
    data = data if isinstance(data, bytes) else data.encode()
    found = [name for name, secret in SECRETS.items() if secret.encode() in data]
    check(f"{what}: no secret", not found, found)


def search_process(program):
    for name in ("cmdline", "environ"):
        search(f"{program.name}: {name}", Path(f"/proc/{program.process.pid}/{name}").read_bytes())
    search(f"{program.name}: its log", program.log.read_bytes())
    for how in ("--print-config", "--check"):
        done = rig.run(*program.command, how, "-c", program.config)
        equal(f"{program.name} {how}", done.returncode, 0)
        search(f"{program.name} {how}", done.stdout + done.stderr)


def kafka(folder, port):
    return (f"kafka:\n  brokers: 127.0.0.1:{port}\n  spool: {folder}/spool\n"
            "  properties: {security.protocol: sasl_plaintext, sasl.mechanism: PLAIN, sasl.username: fabric,\n"
            f"               ssl.key.password: {SECRETS['inline']}, debug: 'security,broker'}}\n"
            f"  secrets: {{sasl.password: {put(folder, 'kafka')}}}\n")


def get(daemon, path, token):
    request = urllib.request.Request(f"http://127.0.0.1:{daemon.http}{path}",
                                     headers={"Authorization": f"Bearer {token}"} if token else {})
    try:
        with urllib.request.urlopen(request, timeout=rig.WAIT_S) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as refusal:
        return refusal.code, refusal.read()


def test_daemon(folder):
    strangers = Strangers()
    port = strangers.tcp.getsockname()[1]
    daemon = rig.Daemon(folder, (rig.LAB / "topology.yaml").read_text())
    text = daemon.config.read_text().replace("sinks: [", "sinks: [kafka, ")
    daemon.config.write_text(
        f"{text}log: {{level: debug}}\nhttp_token_file: {put(folder, 'token')}\n{kafka(folder, port)}"
        f"  registry: {{url: 'https://127.0.0.1:{port}', user: fabric, password_file: {put(folder, 'registry')}}}\n"
        "  format: protobuf\n")
    daemon.config.chmod(0o600)
    try:
        daemon.start()
        until("Kafka and the registry are tried", lambda: strangers.heard["tcp"] > 5
              and "kafka" in daemon.log.read_text() and "registry" in daemon.log.read_text())
        equal("without the token", get(daemon, "/api/v1/doctor", None)[0], 401)
        status, body = get(daemon, "/api/v1/doctor", SECRETS["token"] + "x")
        equal("with another one", status, 401)
        search("the refusal", body)
        described = json.loads(get(daemon, "/api/v1/openapi.json", SECRETS["token"])[1])["paths"]
        paths = [path for path in described if "{" not in path and "stream" not in path]
        check("paths of the API are known", len(paths) > 15, paths)
        for path in [*paths, "/metrics"]:
            search(path, get(daemon, path, SECRETS["token"])[1])
        daemon.config.write_text(daemon.config.read_text() + "windw: 3s\n")
        daemon.hang_up()
        daemon.log_says("reload failed")
        daemon.config.write_text(daemon.config.read_text().replace("windw: 3s\n", ""))
        search_process(daemon)
        daemon.stop()
        search("what was published", daemon.out.read_bytes())
        for path in (folder / "spool").rglob("*"):
            if path.is_file():
                search(path.name, path.read_bytes())
    finally:
        daemon.kill()
        strangers.close()


def test_poller(folder):
    strangers = Strangers()
    port = strangers.udp.getsockname()[1]
    for name in ("auth", "priv", "community"):
        put(folder, name)
    switches = folder / "switches.yaml"
    switches.write_text(
        "credentials:\n  new: {version: 3, user: u, auth: SHA-256, auth_secret_file: auth.secret,\n"
        "        priv: AES, priv_secret_file: priv.secret}\n  old: {version: 2c, community_file: community.secret}\n"
        f"switches:\n  - {{address: 127.0.0.1, port: {port}, credentials: old}}\n"
        f"  - {{address: 127.0.0.2, port: {port}, credentials: new}}\n")
    poller = rig.Poller(folder)
    poller.config.write_text(poller.config.read_text() + f"log: {{level: debug}}\nsnmp: {{switches: {switches}}}\n")
    try:
        poller.start()
        until("switches are asked, and found to be silent", lambda: strangers.heard["udp"] > 0
              and poller.log.read_text().count("switch '127.0.0.") > 1)
        search("/metrics", poller.get("/metrics"))
        poller.hang_up()
        poller.log_says("reloaded")
        search_process(poller)
        poller.stop()
        search("what was reported", poller.out.read_bytes())
    finally:
        poller.kill()
        strangers.close()


def test_senders(folder):
    """An agent and a poller that send over Kafka."""
    strangers = Strangers()
    port = strangers.tcp.getsockname()[1]
    for name, program, own in (
            ("agent", rig.AGENT, f"host: gpu01\ninterfaces: []\nrdma: {{enabled: false}}\n"
                                 f"nccl: {{socket: {folder}/nccl.sock}}\n"),
            ("poller", rig.POLLER, f"source_id: poll1\nlisten: 127.0.0.1:{rig.free_port(socket.SOCK_DGRAM)}\n")):
        where = folder / name
        where.mkdir()
        before, http = strangers.heard["tcp"], rig.free_port()
        sender = rig.Program(where, name, [program],
                             f"{own}http: 127.0.0.1:{http}\nlog: {{level: debug}}\n{kafka(where, port)}")
        sender.http = http
        sender.config.chmod(0o600)
        try:
            sender.start()
            until(f"{name}: Kafka is tried", lambda n=before, p=sender: strangers.heard["tcp"] > n + 2
                  and "kafka" in p.log.read_text())
            search(f"{name}: /metrics", sender.get("/metrics"))
            search_process(sender)
            sender.stop()
        finally:
            sender.kill()
    strangers.close()


if __name__ == "__main__":
    sys.exit(rig.run_tests(test_daemon, test_poller, test_senders))
