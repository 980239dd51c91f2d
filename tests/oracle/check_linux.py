#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A leaf that forwards with the Linux kernel over four equal-cost links is asked by the daemon for
flows that no switch samples. Which link each flow really takes is counted behind them, by nftables.
A sample that says something else than the answer is believed. Needs root: the leaf is a network
namespace. Runs in the build folder."""
import contextlib
import json
import os
import socket
import socketserver
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.dont_write_bytecode = True
TESTS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS / "faults"))
import kit  # noqa: E402
from kit import check, data, equal, number, record, rig, until  # noqa: E402

LINKS = 4
SPORTS = range(50000, 50024)
ADDRESSES = (("10.1.0.1", "10.2.0.1"), ("fd01::1", "fd02::1"))
PREFIX = f"ft-oracle-{os.getpid()}-"
ADAPTER = TESTS.parent / "daemon" / "oracle" / "adapters" / "oracle-linux"
DATA, SENT = 1, 1
SPEED = 1000000000

TOPOLOGY = "\n".join(
    ["fabric: oracle", f"speed_bps: {SPEED}", "switches:"]
    + [f"  - {{name: leaf{leaf}, tier: leaf, addresses: [192.0.2.{leaf}], ports: [{{name: host0, ifindex: 1}}, "
       + ", ".join(f"{{name: up{k}, ifindex: {10 + k}}}" for k in range(LINKS)) + "]}" for leaf in (1, 2)]
    + [f"  - {{name: spine{k}, tier: spine, addresses: [192.0.2.1{k}], ports: [{{name: down1, ifindex: 1}}, "
       "{name: down2, ifindex: 2}]}" for k in range(LINKS)]
    + ["links:"]
    + [f"  - {{a: leaf{leaf}, a_port: up{k}, b: spine{k}, b_port: down{leaf}}}"
       for leaf in (1, 2) for k in range(LINKS)]
    + ["hosts:"]
    + [f"  - {{name: gpu{leaf}, nics: [{{addresses: [{', '.join(a[leaf - 1] for a in ADDRESSES)}], "
       f"attach: [{{switch: leaf{leaf}, port: host0}}]}}]}}" for leaf in (1, 2)]) + "\n"


def ip(*words, netns=None):
    command = ["ip"] + (["-n", PREFIX + netns] if netns else []) + [str(w) for w in words]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def inside(netns, *command, **how):
    return subprocess.run(["ip", "netns", "exec", PREFIX + netns, *command], check=True, text=True,
                          stdout=subprocess.PIPE, **how).stdout


class Lab:
    """gpu1 - leaf1 = far, by LINKS links; far has the other host's addresses."""

    def __enter__(self):
        for name in ("gpu1", "leaf1", "far"):
            ip("netns", "add", PREFIX + name)
            for family in ("ipv4", "ipv6"):
                inside(name, "sysctl", "-qw", f"net.{family}.conf.all.forwarding=1")
            inside(name, "sysctl", "-qw", "net.ipv6.conf.default.accept_dad=0", "net.ipv6.conf.all.accept_dad=0",
                   "net.ipv4.conf.all.rp_filter=0", "net.ipv4.conf.default.rp_filter=0")
            ip("link", "set", "lo", "up", netns=name)
        # For a flow label the sender hashes a packet, and no wire lies between to lose that hash: the
        # leaf would use it instead of its own.
        inside("gpu1", "sysctl", "-qw", "net.ipv6.auto_flowlabels=0")
        inside("leaf1", "sysctl", "-qw", "net.ipv4.fib_multipath_hash_policy=1",
               "net.ipv6.fib_multipath_hash_policy=1")
        self.wire("gpu1", "eth0", "10.1.0.1/24", "fd01::1/64", "leaf1", "host0", "10.1.0.254/24", "fd01::fe/64")
        for k in range(LINKS):
            self.wire("leaf1", f"up{k}", f"10.9.{k}.1/30", f"fd09:{k}::1/64",
                      "far", f"in{k}", f"10.9.{k}.2/30", f"fd09:{k}::2/64")
        for _, far in ADDRESSES:
            ip("addr", "add", far, "dev", "lo", *(["nodad"] if ":" in far else []), netns="far")
        ip("route", "add", "default", "via", "10.1.0.254", netns="gpu1")
        ip("-6", "route", "add", "default", "via", "fd01::fe", netns="gpu1")
        for family, to, via in (("-4", "10.2.0.0/24", "10.9.{}.2"), ("-6", "fd02::/64", "fd09:{}::2")):
            hops = [w for k in range(LINKS) for w in ("nexthop", "via", via.format(k), "dev", f"up{k}")]
            ip(family, "route", "add", to, *hops, netns="leaf1")
        inside("far", "nft", "-f", "-", input="""
            table inet truth {
                set v4 { typeof iifname . ip saddr . udp sport; flags dynamic; counter; }
                set v6 { typeof iifname . ip6 saddr . udp sport; flags dynamic; counter; }
                chain seen {
                    type filter hook prerouting priority -300;
                    udp dport 4791 add @v4 { iifname . ip saddr . udp sport }
                    udp dport 4791 add @v6 { iifname . ip6 saddr . udp sport }
                }
            }""")
        return self

    def wire(self, a, a_port, a4, a6, z, z_port, z4, z6):
        ip("link", "add", a_port, "netns", PREFIX + a, "type", "veth", "peer", "name", z_port, "netns", PREFIX + z)
        for name, port, v4, v6 in ((a, a_port, a4, a6), (z, z_port, z4, z6)):
            ip("addr", "add", v4, "dev", port, netns=name)
            ip("-6", "addr", "add", v6, "dev", port, "nodad", netns=name)
            ip("link", "set", port, "up", netns=name)

    def send(self):
        """A packet of each flow."""
        inside("gpu1", sys.executable, "-c", f"""
import socket
for src, dst in {ADDRESSES!r}:
    for sport in range({SPORTS.start}, {SPORTS.stop}):
        s = socket.socket(socket.AF_INET6 if ":" in src else socket.AF_INET, socket.SOCK_DGRAM)
        s.bind((src, sport))
        s.sendto(b"x", (dst, 4791))
""")

    def truth(self):
        """{(src, sport): the leaf's ports by which its packets went}."""
        found = {}
        for item in json.loads(inside("far", "nft", "-j", "list", "table", "inet", "truth"))["nftables"]:
            for element in item.get("set", {}).get("elem", []):
                port, src, sport = element["elem"]["val"]["concat"]
                found.setdefault((src, sport), set()).add(port.replace("in", "up"))
        return found

    def __exit__(self, *_):
        for name in ("gpu1", "leaf1", "far"):
            subprocess.run(["ip", "netns", "del", PREFIX + name], check=False)


class Shell(socketserver.StreamRequestHandler):
    """The switch's shell: the daemon has no privilege, and asks the leaf as it would by ssh."""

    def handle(self):
        name, command = self.rfile.read().decode().split("\n", 1)
        done = subprocess.run(["ip", "netns", "exec", PREFIX + name, "sh", "-c", command], text=True,
                              stdout=subprocess.PIPE)
        with contextlib.suppress(BrokenPipeError):  # of one that was asked when the daemon ended
            self.wfile.write(f"{done.returncode}\n{done.stdout}".encode())


class Shells(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    request_queue_size = 64


def packed(address):
    return socket.inet_pton(socket.AF_INET6 if ":" in address else socket.AF_INET, address)


def tuple_of(src, dst, sport):
    return data(1, packed(src)) + data(2, packed(dst)) + number(3, sport) + number(4, 4791) + number(5, 17)


def flows():
    return [(src, dst, sport) for src, dst in ADDRESSES for sport in SPORTS]


class Host(threading.Thread):
    """gpu1 reports its flows, each a fifth of the link's speed, which does not matter here."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.peer, self.over = kit.Peer(port, "gpu1", "fabrictrace-agent"), threading.Event()

    def run(self):
        while not self.over.is_set():
            now = int(time.time() * 1000)
            self.peer.send(b"".join(record(kit.FLOW, (
                number(1, now) + number(2, 500) + number(3, now - 60000) + data(4, "gpu1")
                + data(6, tuple_of(*flow)) + number(7, SENT) + number(8, 1) + number(9, 10000)
                + number(12, SPEED // 8 // 2 // 5))) for flow in flows()))
            if not self.peer.settled():
                return
            self.over.wait(0.5)


class Switch(threading.Thread):
    """leaf1 samples some flows at the ports that it is given."""

    def __init__(self, port, sampled):
        super().__init__(daemon=True)
        self.peer, self.sampled = kit.Peer(port, "poller", "fabrictrace-switchpoll"), sampled
        self.over = threading.Event()

    def run(self):
        while not self.over.is_set():
            now = int(time.time() * 1000)
            self.peer.send(b"".join(record(kit.OBSERVATION, (
                number(1, now) + number(2, 1000) + number(3, now) + number(4, now)
                + data(5, packed("192.0.2.1")) + data(6, tuple_of(*flow)) + number(7, 1)
                + number(8, 10 + int(port[2:])) + number(12, 5) + number(13, 500) + number(14, 2000000)
                + number(16, 5))) for flow, port in self.sampled.items()))
            if not self.peer.settled():
                return
            self.over.wait(0.5)


def paths(daemon):
    records = json.loads(daemon.get("/api/v1/paths?limit=1000"))["records"]
    return {(p["flow"]["src"], p["flow"]["sport"]): p for p in records if p["flow"]["dport"] == 4791}


def answered(path):
    """The port by which the leaf says that it sends the flow."""
    for hop in path.get("likely", []):
        if hop["switch"] == "leaf1" and hop.get("evidence") == "oracle":
            return hop["out"]
    return None


def agreement(daemon):
    """(agree, differ) of leaf1."""
    text = daemon.get("/metrics")
    found = {}
    for line in text.splitlines():
        if line.startswith("fabrictraced_oracle_checked_total{") and 'switch="leaf1"' in line:
            found["agree" if 'samples="agree"' in line else "differ"] = int(float(line.split()[-1]))
    return found.get("agree", 0), found.get("differ", 0)


def test_answers(daemon, lab):
    wanted = {(src, sport) for src, _, sport in flows()}

    def all_seen():
        lab.send()
        return set(lab.truth()) == wanted
    until("each flow was seen behind the leaf", all_seen)
    truth = lab.truth()
    equal("every flow took one link", {len(ports) for ports in truth.values()}, {1})
    check("the flows spread over all links", len(set.union(*truth.values())) == LINKS, truth)
    until("the switch has answered for every flow",
          lambda: sum(answered(p) is not None for p in paths(daemon).values()) == len(truth))
    found = paths(daemon)
    equal("each answer is the link that the kernel uses",
          {key: (answered(path), min(truth[key])) for key, path in found.items()
           if answered(path) != min(truth[key])}, {})
    equal("an answer resolves no path", {p["state"] for p in found.values()} & {"resolved"}, set())
    for (src, sport), path in found.items():
        k = answered(path)[2:]
        ways = [(h["switch"], h.get("in"), h.get("out"), h["evidence"]) for h in path["likely"]]
        if ways != [("leaf1", "host0", f"up{k}", "oracle"), (f"spine{k}", "down1", "down2", "oracle"),
                    ("leaf2", f"up{k}", "host0", "oracle")]:
            check(f"the path of {src}:{sport} follows from it", False, ways)
    equal("nothing was compared with samples", agreement(daemon), (0, 0))
    return truth


def test_samples(daemon, truth):
    """Six flows are sampled where the kernel sends them, and two are said to go elsewhere."""
    some = flows()[:8]
    ports = {flow: min(truth[flow[0], flow[2]]) for flow in some}
    for flow in some[6:]:
        ports[flow] = f"up{(int(ports[flow][2:]) + 1) % LINKS}"
    switch = Switch(daemon.port, ports)
    switch.start()

    def sampled():
        found = paths(daemon)
        return all(found[f[0], f[2]]["state"] == "resolved" for f in some)
    until("the samples resolve their paths", sampled)
    until("the answers are compared with them", lambda: agreement(daemon) == (6, 2))
    found = paths(daemon)
    equal("a sample is believed, not the switch",
          {f: found[f[0], f[2]]["hops"][0]["out"] for f in some}, ports)
    equal("what is sampled has no likely path", [f for f in some if found[f[0], f[2]].get("likely")], [])
    doctor = [f for f in json.loads(daemon.get("/api/v1/doctor"))["records"] if "answers by which" in f["text"]]
    equal("the doctor says so", [(f["switch"], f["text"]) for f in doctor],
          [("leaf1", "2 of 8 answers by which port it sends a flow differ from samples")])
    switch.over.set()
    switch.join()


def main():
    if os.geteuid():
        print("skipped: a switch that is asked: needs root")
        return 77
    with tempfile.TemporaryDirectory() as folder, Lab() as lab:
        shells = Shells(f"{folder}/shell", Shell)
        threading.Thread(target=shells.serve_forever, daemon=True).start()
        runner = f"{TESTS / 'oracle' / 'remote.py'} {folder}/shell"
        daemon = rig.Daemon(Path(folder), TOPOLOGY)
        daemon.config.write_text(
            daemon.config.read_text().replace("grace: 1s", "grace: 1s\nverify_topology: no\nflow_idle: 600s")
            + f"oracle:\n  interval: 0s\n  keep: 1h\n  commands: {{'leaf*': \"{ADAPTER} -r '{runner}'\"}}\n")
        daemon.start()
        host = Host(daemon.port)
        host.start()
        try:
            test_samples(daemon, test_answers(daemon, lab))
            host.over.set()
            host.join()
            daemon.stop()
            rig.check_balance("daemon", daemon.records())
        finally:
            host.over.set()
            daemon.kill()
    return 1 if kit.failures else 0


if __name__ == "__main__":
    sys.exit(main())
