#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The agent on real interfaces: a veth pair between two network namespaces, UDP packets of RoCEv2
form sent by the kernel's own stack. Without root it is skipped (77)."""
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import captures as c  # noqa: E402
import speed  # noqa: E402

AGENT = Path("agent/fabrictrace-agent").resolve()
PREFIX = f"fta{os.getpid()}"
A, B = f"{PREFIX}a", f"{PREFIX}b"
PACKETS = 500
REPORT_S = 5
PAYLOAD = c.bth(c.WRITE_ONLY, 17) + bytes(200)
FRAME_BYTES = 14 + 20 + 8 + len(PAYLOAD)
SENDER = """
import socket, sys
payload = bytes.fromhex(sys.argv[4])
s = socket.socket(socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET, socket.SOCK_DGRAM)
s.bind((sys.argv[1], int(sys.argv[3])))
for i in range(int(sys.argv[5])):
    s.sendto(payload, (sys.argv[2], int(sys.argv[6])))
"""
RAW_SENDER = """
import socket, sys
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind(("eth0", 0))
for i in range(int(sys.argv[2])):
    s.send(bytes.fromhex(sys.argv[1]))
"""
failures = []


def check(what, good, detail=""):
    print(f"{'ok' if good else 'FAIL'}: {what}{'' if good else f': {detail}'}", flush=True)
    if not good:
        failures.append(what)


def equal(what, got, want):
    check(what, got == want, f"got {got!r}, want {want!r}")


def ip(*args):
    subprocess.run(["ip", *args], check=True, capture_output=True)


def within(node, *args):
    return ["ip", "netns", "exec", node, *map(str, args)]


def send(node, src, dst, sport, count=PACKETS, payload=PAYLOAD, dport=4791):
    subprocess.run(within(node, sys.executable, "-c", SENDER, src, dst, sport, payload.hex(), count,
                          dport), check=True)


def send_frame(node, frame, count=PACKETS):
    subprocess.run(within(node, sys.executable, "-c", RAW_SENDER, frame.hex(), count), check=True)


def wait_until(done):
    return bool(speed.wait(done, 120))


def set_up():
    if os.geteuid() != 0:
        print("skipped: the agent's captures: needs root")
        sys.exit(77)
    try:
        ip("netns", "add", A)
        ip("netns", "add", B)
    except FileNotFoundError:
        sys.exit("FAIL: ip is not installed: packaging/install-deps test")
    except subprocess.CalledProcessError as error:
        sys.exit(f"FAIL: root may make no network namespace here: {error.stderr.decode()}")
    for node in (A, B):
        subprocess.run(within(node, "sysctl", "-qw", "net.ipv6.conf.default.accept_dad=0"),
                       check=False)
        ip("-n", node, "link", "set", "lo", "up")
    wire()


def wire():
    ip("link", "add", "eth0", "netns", A, "type", "veth", "peer", "name", "eth0", "netns", B)
    for node, last in ((A, 1), (B, 2)):
        ip("-n", node, "addr", "add", f"10.99.0.{last}/24", "dev", "eth0")
        ip("-n", node, "addr", "add", f"fd99::{last}/64", "dev", "eth0", "nodad")
        ip("-n", node, "link", "set", "eth0", "up")
    # A neighbour that is looked up while packets come loses some of them.
    for node, peer, last in ((A, B, 2), (B, A, 1)):
        link = subprocess.run(["ip", "-n", peer, "-j", "link", "show", "eth0"], check=True,
                              capture_output=True).stdout
        for address in (f"10.99.0.{last}", f"fd99::{last}"):
            ip("-n", node, "neigh", "replace", address, "lladdr", json.loads(link)[0]["address"],
               "dev", "eth0", "nud", "permanent")


def tear_down():
    for node in (A, B):
        subprocess.run(["ip", "netns", "del", node], capture_output=True)


class Agent:
    def __init__(self, folder, name, config, to_file=True):
        self.config = Path(folder) / f"{name}.yaml"
        self.output = Path(folder) / f"{name}.ndjson"
        self.log = Path(folder) / f"{name}.log"
        self.config.write_text(config)
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                within(A, AGENT, "-c", self.config,
                       *(["--output", self.output] if to_file else [])), stderr=log,
                # A leak check traces its own process, which one that changed its user may not.
                env={**os.environ, "ASAN_OPTIONS": f"detect_leaks={int('user' not in config)}"})
        self.await_log("capturing on", 1)

    def await_log(self, text, count):
        good = wait_until(lambda: self.log.read_text().count(text) >= count)
        check(f"log says '{text}'", good, self.log.read_text())

    def records(self):
        if not self.output.exists():
            return []
        lines = self.output.read_text().split("\n")
        return [json.loads(line) for line in lines[:-1]]

    def flows(self, sport, direction):
        return [r for r in self.records() if r["schema"] == "fabrictrace.flow.v1"
                and r["flow"]["sport"] == sport and r.get("direction") == direction]

    def packets(self, sport, direction, what="data_packets"):
        return sum(r[what] for r in self.flows(sport, direction))

    def http(self, path):
        code = f"import urllib.request as u; print(u.urlopen('http://127.0.0.1:9479{path}')" \
               ".read().decode())"
        return subprocess.run(within(A, sys.executable, "-c", code), capture_output=True,
                              text=True).stdout

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=speed.limit(120))

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def test_counts(agent):
    send(A, "10.99.0.1", "10.99.0.2", 50001)
    send(B, "10.99.0.2", "10.99.0.1", 50002)
    send(A, "fd99::1", "fd99::2", 50003)
    # The kernel takes the tag of what arrives out of the frame, and leaves it in what is sent.
    tagged = c.ethernet(c.udp("10.99.0.2", "10.99.0.1", 50004, PAYLOAD), (0x8100, 5))
    send_frame(B, tagged)
    send_frame(A, c.ethernet(c.udp("10.99.0.1", "10.99.0.2", 50006, PAYLOAD), (0x8100, 5)))
    send(A, "10.99.0.1", "10.99.0.2", 50005, dport=4000)
    for sport, direction, name in ((50001, "tx", "sent"), (50002, "rx", "received"),
                                   (50003, "tx", "IPv6"), (50004, "rx", "received in a VLAN"),
                                   (50006, "tx", "sent in a VLAN")):
        wait_until(lambda: agent.packets(sport, direction) >= PACKETS)
        equal(f"packets {name}", agent.packets(sport, direction), PACKETS)
    equal("bytes", agent.packets(50001, "tx", "bytes"), PACKETS * FRAME_BYTES)
    equal("another port is not captured", agent.flows(50005, "tx"), [])
    report = agent.flows(50001, "tx")[0]
    equal("report", (report["host"], report["interface"], report["qp"], report["tuple_source"]),
          ("live", "eth0", {"remote": 17}, "observed"))
    check("a new flow is reported before a report would be due",
          report["time_ms"] - report["first_seen_ms"] < (REPORT_S - 1) * 1000, report)


def test_http(agent):
    page = agent.http("/metrics")
    check("metrics", f'fabrictrace_agent_processed_total{{stage="packets",unit="packets"}} {5 * PACKETS}\n'
          in page, page)
    equal("health", agent.http("/healthz").strip(), "ok")


def test_interface_gone(agent):
    ip("-n", A, "link", "set", "eth0", "down")
    ip("-n", A, "link", "set", "eth0", "up")
    send(B, "10.99.0.2", "10.99.0.1", 50009)
    wait_until(lambda: agent.packets(50009, "rx") >= PACKETS)
    equal("packets after the link was down", agent.packets(50009, "rx"), PACKETS)
    ip("-n", A, "link", "del", "eth0")
    agent.await_log("opened again when it is back", 1)
    wire()
    agent.await_log("capturing again", 1)
    send(A, "10.99.0.1", "10.99.0.2", 50010)
    wait_until(lambda: agent.packets(50010, "tx") >= PACKETS)
    equal("packets on an interface that came back", agent.packets(50010, "tx"), PACKETS)


def test_reload(agent):
    good = agent.config.read_text()
    agent.config.write_text(good + "no_such_option: 1\n")
    agent.process.send_signal(signal.SIGHUP)
    agent.await_log("reload failed", 1)
    agent.config.write_text(good.replace("[eth0]", "[eth0, no-such-interface]"))
    agent.process.send_signal(signal.SIGHUP)
    agent.await_log("reload failed", 2)
    send(A, "10.99.0.1", "10.99.0.2", 50011)
    wait_until(lambda: agent.packets(50011, "tx") >= PACKETS)
    equal("packets after refused reloads", agent.packets(50011, "tx"), PACKETS)
    agent.config.write_text(good.replace("[eth0]", "[eth0, lo]"))
    agent.process.send_signal(signal.SIGHUP)
    agent.await_log("reloaded", 1)
    send(A, "127.0.0.1", "127.0.0.1", 50012)
    wait_until(lambda: agent.packets(50012, "tx") >= PACKETS)
    equal("packets on the new interface, each once", agent.packets(50012, "tx"), PACKETS)


def test_privileges(agent):
    status = Path(f"/proc/{agent.process.pid}/status").read_text().splitlines()
    fields = dict(line.split(":", 1) for line in status)
    equal("capabilities left", int(fields["CapEff"], 16), 1 << 13)
    equal("capabilities permitted", int(fields["CapPrm"], 16), 1 << 13)
    equal("no new privileges", fields["NoNewPrivs"].strip(), "1")
    check("another user", fields["Uid"].split()[0] != "0", fields["Uid"])


def test_end(agent):
    send(A, "10.99.0.1", "10.99.0.2", 50020, 1)
    wait_until(lambda: any(r.get("ended") for r in agent.flows(50001, "tx")))
    check("an idle flow ends", any(r.get("ended") for r in agent.flows(50001, "tx")))
    equal("exit code", agent.stop(), 0)
    last = agent.records()[-1]
    equal("the last record", last["schema"], "fabrictrace.loss.v1")
    for s in last["stages"]:
        equal(f"balance of {s['name']}", s["received"],
              s["processed"] + s["pending"] + sum(d["count"] for d in s.get("drops", [])))


def test_any(folder):
    agent = Agent(folder, "any", "host: live\ninterfaces: [any]\nhttp: \"off\"\n")
    try:
        send(A, "10.99.0.1", "10.99.0.2", 50030)
        send(B, "10.99.0.2", "10.99.0.1", 50031)
        for sport, direction in ((50030, "tx"), (50031, "rx")):
            wait_until(lambda: agent.packets(sport, direction) >= PACKETS)
            equal(f"packets on any, {direction}",
                  (agent.packets(sport, direction), agent.packets(sport, direction, "bytes")),
                  (PACKETS, PACKETS * FRAME_BYTES))
        equal("exit code", agent.stop(), 0)
    finally:
        agent.kill()


def test_no_daemon(folder):
    # A report of itself, one of the flow, and the accounting at its end: no other is due meanwhile.
    agent = Agent(folder, "away", "host: live\ninterfaces: [eth0]\nreport_interval: 1h\n"
                  "refresh_interval: 1h\nidle_timeout: 1h\nloss_interval: 1h\n"
                  "daemon: {endpoint: \"127.0.0.1:9\"}\n", to_file=False)
    try:
        send(A, "10.99.0.1", "10.99.0.2", 50040, 10)
        pending = 'fabrictrace_agent_pending{stage="transport",unit="records"} 2\n'
        check("two records wait", wait_until(lambda: pending in agent.http("/metrics")))
        equal("exit code without a daemon", agent.stop(), 0)
        check("what was not delivered is told", "3 records are not acknowledged" in
              agent.log.read_text(), agent.log.read_text())
    finally:
        agent.kill()


def test_no_interface(folder):
    config = Path(folder) / "none.yaml"
    config.write_text("host: live\nrdma: {enabled: false}\n")
    done = subprocess.run(within(A, AGENT, "-c", config, "--output", "-"), capture_output=True,
                          text=True, timeout=speed.limit(120))
    equal("no interface: exit code", done.returncode, 78)
    check("no interface: lists them", " eth0" in done.stderr and " lo" in done.stderr, done.stderr)


def main():
    set_up()
    with tempfile.TemporaryDirectory() as folder:
        # The agent reads its configuration again when it is root no more.
        os.chmod(folder, 0o755)
        test_no_interface(folder)
        agent = Agent(folder, "agent", "host: live\ninterfaces: [eth0]\nuser: nobody\n"
                      f"report_interval: {REPORT_S}s\nrefresh_interval: 30s\nidle_timeout: 5s\nloss_interval: 1s\n")
        try:
            test_counts(agent)
            test_http(agent)
            test_privileges(agent)
            test_interface_gone(agent)
            test_reload(agent)
            test_end(agent)
        finally:
            agent.kill()
        test_any(folder)
        test_no_daemon(folder)
    return 1 if failures else 0


# An interrupted test takes its namespaces down as well.
signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(1))
try:
    code = main()
finally:
    tear_down()
sys.exit(code)
