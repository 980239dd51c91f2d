#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Flows of a host are probed over a leaf-spine that the Linux kernel forwards: each switch is a
network namespace, and nftables counts in each spine which flows cross it, and at the far host what
arrives. The switches that answer are those that the flow crosses; no probe arrives at a host; a
switch that does not answer is a gap, which forged answers do not fill; who may not ask is refused.
Agent, daemon and tool are the real ones, in the host's namespace. Needs root. Runs in the build
folder.

    check_probe.py [--flows N]

N of the 64 flows are probed, of each kind over each spine first; all of them by default. An agent probes
a flow in 1.2 s at most, and a switch answers one packet a second, so that 64 take a minute and a half."""
import argparse
import ctypes
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.dont_write_bytecode = True
TESTS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS / "golden" / "daemon"))
import rig  # noqa: E402
from rig import check, equal, of_kind, until  # noqa: E402

SPINES = 4
SPORTS = range(50000, 50032)
ADDRESSES = (("10.1.0.1", "10.2.0.1"), ("fd01::1", "fd02::1"))
PREFIX = f"ft-probe-{os.getpid()}-"
TOOL = Path("cli/fabrictrace").resolve()
SPACING_S = 1.2
ASKERS = 8  # connections that an agent takes
QP, DSCP = 0x123, 26
# A SEND of one packet to that queue pair (BTH), a payload and an ICRC.
PACKET = struct.pack(">BBHII", 4, 0, 0xffff, QP, 7) + bytes(64)

NAMES = ["gpu1", "leaf1", *(f"spine{k}" for k in range(SPINES)), "leaf2", "gpu2"]


def addresses_of(leaf):
    host = [f"10.{leaf}.0.254", f"fd0{leaf}::fe"]
    return host + [a for k in range(SPINES) for a in (f"10.9.{leaf * 10 + k}.1", f"fd09:{leaf}{k}::1")]


def topology():
    text = "fabric: probed\nspeed_bps: 1000000\nswitches:\n"
    for leaf in (1, 2):
        ports = ", ".join(["{name: host0}"] + [f"{{name: up{k}}}" for k in range(SPINES)])
        text += f"  - {{name: leaf{leaf}, tier: leaf, addresses: [{json.dumps(addresses_of(leaf))[1:-1]}], ports: [{ports}]}}\n"
    for k in range(SPINES):
        own = [a for leaf in (1, 2) for a in (f"10.9.{leaf * 10 + k}.2", f"fd09:{leaf}{k}::2")]
        text += (f"  - {{name: spine{k}, tier: spine, addresses: [{json.dumps(own)[1:-1]}], "
                 "ports: [{name: down1}, {name: down2}]}\n")
    text += "links:\n"
    for leaf in (1, 2):
        for k in range(SPINES):
            text += f"  - {{a: leaf{leaf}, a_port: up{k}, b: spine{k}, b_port: down{leaf}}}\n"
    text += "hosts:\n"
    for leaf in (1, 2):
        own = ", ".join(json.dumps(pair[leaf - 1]) for pair in ADDRESSES)
        text += (f"  - {{name: gpu{leaf}, nics: [{{addresses: [{own}], "
                 f"attach: [{{switch: leaf{leaf}, port: host0}}]}}]}}\n")
    return text


def ip(*words, netns=None):
    command = ["ip"] + (["-n", PREFIX + netns] if netns else []) + [str(w) for w in words]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def inside(netns, *command, **how):
    return subprocess.run(["ip", "netns", "exec", PREFIX + netns, *command], check=True, text=True,
                          stdout=subprocess.PIPE, **how).stdout


def enter(netns):
    """This process and its children from now on."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open(f"/run/netns/{PREFIX}{netns}", encoding="ascii") as space:
        if libc.setns(space.fileno(), 0):
            raise OSError(ctypes.get_errno(), "setns")


COUNT = """
    table inet truth {
        set v4 { typeof ip saddr . udp sport; flags dynamic; counter; }
        set v6 { typeof ip6 saddr . udp sport; flags dynamic; counter; }
        counter packets4791 { }
        counter probes4791 { }
        chain seen {
            type filter hook prerouting priority -300;
            udp dport 4791 counter name packets4791
            udp dport 4791 ip ttl < 32 counter name probes4791
            udp dport 4791 ip6 hoplimit < 32 counter name probes4791
            udp dport 4791 add @v4 { ip saddr . udp sport }
            udp dport 4791 add @v6 { ip6 saddr . udp sport }
        }
    }"""
SILENT = """
    table inet mute {
        chain out {
            type filter hook output priority 0;
            icmp type time-exceeded drop
            icmpv6 type time-exceeded drop
        }
    }"""


class Lab:
    """gpu1 - leaf1 - spines - leaf2 - gpu2"""

    def __enter__(self):
        try:
            return self.made()
        except BaseException:
            self.__exit__()
            raise

    def made(self):
        for name in NAMES:
            ip("netns", "add", PREFIX + name)
            for family in ("ipv4", "ipv6"):
                inside(name, "sysctl", "-qw", f"net.{family}.conf.all.forwarding={int('gpu' not in name)}",
                       *([] if "gpu" in name else [f"net.{family}.fib_multipath_hash_policy=1"]))
            inside(name, "sysctl", "-qw", "net.ipv6.conf.default.accept_dad=0", "net.ipv6.conf.all.accept_dad=0",
                   "net.ipv4.conf.all.rp_filter=0", "net.ipv4.conf.default.rp_filter=0")
            ip("link", "set", "lo", "up", netns=name)
        inside("gpu1", "sysctl", "-qw", "net.ipv6.auto_flowlabels=0")
        for leaf in (1, 2):
            self.wire(f"gpu{leaf}", "eth0", f"10.{leaf}.0.1/24", f"fd0{leaf}::1/64",
                      f"leaf{leaf}", "host0", f"10.{leaf}.0.254/24", f"fd0{leaf}::fe/64")
            ip("route", "add", "default", "via", f"10.{leaf}.0.254", netns=f"gpu{leaf}")
            ip("-6", "route", "add", "default", "via", f"fd0{leaf}::fe", netns=f"gpu{leaf}")
            for k in range(SPINES):
                self.wire(f"leaf{leaf}", f"up{k}", f"10.9.{leaf * 10 + k}.1/30", f"fd09:{leaf}{k}::1/64",
                          f"spine{k}", f"down{leaf}", f"10.9.{leaf * 10 + k}.2/30", f"fd09:{leaf}{k}::2/64")
        for leaf, other in ((1, 2), (2, 1)):
            for family, to, via in (("-4", f"10.{other}.0.0/24", "10.9.{}.2"), ("-6", f"fd0{other}::/64", "fd09:{}::2")):
                hops = [w for k in range(SPINES)
                        for w in ("nexthop", "via", via.format(leaf * 10 + k), "dev", f"up{k}")]
                ip(family, "route", "add", to, *hops, netns=f"leaf{leaf}")
            for k in range(SPINES):
                ip("route", "add", f"10.{leaf}.0.0/24", "via", f"10.9.{leaf * 10 + k}.1", netns=f"spine{k}")
                ip("-6", "route", "add", f"fd0{leaf}::/64", "via", f"fd09:{leaf}{k}::1", netns=f"spine{k}")
        for name in NAMES[1:]:
            inside(name, "nft", "-f", "-", input=COUNT)
        return self

    def wire(self, a, a_port, a4, a6, z, z_port, z4, z6):
        ip("link", "add", a_port, "netns", PREFIX + a, "type", "veth", "peer", "name", z_port, "netns", PREFIX + z)
        for name, port, v4, v6 in ((a, a_port, a4, a6), (z, z_port, z4, z6)):
            ip("addr", "add", v4, "dev", port, netns=name)
            ip("-6", "addr", "add", v6, "dev", port, "nodad", netns=name)
            ip("link", "set", port, "up", netns=name)

    def counted(self, name):
        """({(src, sport)}, packets to port 4791) that came to a switch or host."""
        flows, packets, _ = self.seen(name)
        return flows, packets

    def probes(self, name):
        """Packets to port 4791 that came with the TTL of a probe; a host's own have 64."""
        return self.seen(name)[2]

    def seen(self, name):
        flows, packets = set(), {}
        for item in json.loads(inside(name, "nft", "-j", "list", "table", "inet", "truth"))["nftables"]:
            if "counter" in item:
                packets[item["counter"]["name"]] = item["counter"]["packets"]
            for element in item.get("set", {}).get("elem", []):
                flows.add(tuple(element["elem"]["val"]["concat"]))
        return flows, packets["packets4791"], packets["probes4791"]

    def truth(self):
        """{(src, sport): the spines that it crosses}"""
        found = {}
        for k in range(SPINES):
            for flow in self.counted(f"spine{k}")[0]:
                found.setdefault(flow, set()).add(f"spine{k}")
        return found

    def __exit__(self, *_):
        for name in NAMES:
            subprocess.run(["ip", "netns", "del", PREFIX + name], check=False)


class Agent(rig.Program):
    """The host's agent, which captures its flows and may be asked for probes."""

    def __init__(self, folder, daemon):
        self.http, self.socket = rig.free_port(), folder / "probe.sock"
        super().__init__(folder, "fabrictrace-agent", [rig.AGENT],
                         f"host: gpu1\ninterfaces: [eth0]\nhttp: 127.0.0.1:{self.http}\n"
                         f"probe: {{socket: {self.socket}}}\n"
                         f"daemon: {{endpoint: \"127.0.0.1:{daemon.port}\", retry_min: 100ms, retry_max: 200ms}}\n")

    def count(self, name, outcome):
        for line in self.get("/metrics").splitlines():
            if line.startswith(f'fabrictrace_agent_{name}{{outcome="{outcome}"}}'):
                return int(float(line.split()[-1]))
        return None


def send():
    """A packet of each flow."""
    for src, dst in ADDRESSES:
        for sport in SPORTS:
            with socket.socket(socket.AF_INET6 if ":" in src else socket.AF_INET, socket.SOCK_DGRAM) as s:
                s.bind((src, sport))
                s.sendto(PACKET, (dst, 4791))


def text_of(flow):
    src, sport = flow
    dst = dict(ADDRESSES)[src]
    return f"[{src}]:{sport}-[{dst}]" if ":" in src else f"{src}:{sport}-{dst}"


class Tool:
    """`fabrictrace probe` of a flow, while it runs."""

    def __init__(self, daemon, agent, flow, *options, program=TOOL, user=None):
        self.process = subprocess.Popen(
            [program, "--endpoint", f"127.0.0.1:{daemon.http}", "probe", flow, "--socket", agent.socket,
             *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL,
            user=user)

    def end(self):
        out, err = self.process.communicate(timeout=rig.WAIT_S)
        return self.process.returncode, out, err


def path_of(daemon, flow):
    records = json.loads(daemon.get("/api/v1/paths?limit=1000"))["records"]
    return next((p for p in records if (p["flow"]["src"], p["flow"]["sport"]) == flow), {})


def hops_of(path):
    return [(h["switch"], h.get("in"), h.get("out"), h["evidence"]) for h in path.get("likely", [])]


def know(lab, daemon):
    """Every flow crosses the fabric, and the daemon knows of it. The spine of each."""
    wanted = {(src, sport) for src, _ in ADDRESSES for sport in SPORTS}

    def all_seen():
        send()
        known = json.loads(daemon.get("/api/v1/paths?limit=1000"))["records"]
        return set(lab.truth()) == wanted and wanted <= {(p["flow"]["src"], p["flow"]["sport"]) for p in known}
    until("every flow was seen in a spine, and is known", all_seen)
    truth = lab.truth()
    equal("each flow crosses one spine", {len(s) for s in truth.values()}, {1})
    return {flow: min(spines) for flow, spines in truth.items()}


def pick(truth, most):
    """A flow of each kind of address over each spine, then the others."""
    first = [min(f for f, s in truth.items() if s == f"spine{k}" and f[0] == src)
             for k in range(SPINES) for src, _ in ADDRESSES]
    return (first + sorted(set(truth) - set(first)))[:most]


def probe(daemon, agent, flows):
    """(flow, exit code, output and errors of the tool)"""
    done = []
    for at in range(0, len(flows), ASKERS):
        send()  # the agent forgets flows that are idle
        tools = [(flow, Tool(daemon, agent, text_of(flow), "--json", "--dscp", str(DSCP)))
                 for flow in flows[at:at + ASKERS]]
        done += [(flow, *tool.end()) for flow, tool in tools]
    return done


def explained(daemon, flow):
    """The lines of `fabrictrace explain` on hops, in words."""
    done = subprocess.run([TOOL, "--endpoint", f"127.0.0.1:{daemon.http}", "explain", text_of(flow)],
                          capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    return [" ".join(line.split()) for line in done.stdout.splitlines() if " > " in line and "probed" in line]


def test_paths(lab, daemon, agent, truth, most):
    flows = pick(truth, most)
    check("the flows' own packets arrive at the far host", lab.counted("gpu2")[1] > 0, lab.counted("gpu2"))
    before = {name: lab.probes(name) for name in NAMES[1:]}
    sent = agent.count("probe_packets_total", "sent")
    begun = time.monotonic()
    done = probe(daemon, agent, flows)
    took = time.monotonic() - begun
    equal("every probe has an answer", {code for _, code, _, _ in done}, {0})
    for flow, _, out, _ in done:
        record = json.loads(out)
        k = truth[flow][5:]
        near = "10.1.0.254" if flow[0] == "10.1.0.1" else "fd01::fe"
        far = f"10.9.1{k}.2" if flow[0] == "10.1.0.1" else f"fd09:1{k}::2"
        equal(f"{text_of(flow)}: who answers", [(a["ttl"], a.get("address")) for a in record["answers"]],
              [(1, near), (2, far)])
        equal(f"{text_of(flow)}: queue pair, DSCP, switches and user",
              (record["dst_qp"], record["dscp"], record["switches"], record["uid"]), (QP, DSCP, 3, 0))
        until(f"{text_of(flow)}: the path follows from it", lambda f=flow, n=k: hops_of(path_of(daemon, f)) == [
            ("leaf1", "host0", f"up{n}", "probed"), (f"spine{n}", "down1", "down2", "probed"),
            ("leaf2", f"up{n}", "host0", "probed")])
        equal(f"{text_of(flow)}: what explain says", explained(daemon, flow), [
            f"{at} {came} > {went} probed: a packet of this 5-tuple was answered; no samples here"
            for at, came, went in (("leaf1", "host0", f"up{k}"), (f"spine{k}", "down1", "down2"),
                                   ("leaf2", f"up{k}", "host0"))])
        equal(f"{text_of(flow)}: it is not resolved", path_of(daemon, flow)["state"], "unresolved")
    after = {name: lab.probes(name) for name in NAMES[1:]}
    sent = agent.count("probe_packets_total", "sent") - sent
    check("all were sent", sent >= 2 * len(flows) and agent.count("probe_packets_total", "failed") == 0, sent)
    equal("the leaf saw each of them", after["leaf1"] - before["leaf1"], sent)
    crossed = sum(after[f"spine{k}"] - before[f"spine{k}"] for k in range(SPINES))
    check("each flow crossed a spine", len(flows) <= crossed <= sent - len(flows), (crossed, sent))
    equal("none came further", (after["leaf2"] - before["leaf2"], after["gpu2"] - before["gpu2"]), (0, 0))
    rounds = sent - crossed
    print(f"{len(flows)} of {len(truth)} flows probed in {took:.1f} s, {sent} packets")
    check("a switch is probed no more than once in 1.2 s", took >= (rounds - 1) * SPACING_S, (took, rounds))
    until("the published records name the switches", lambda: {
        (p["flow"]["src"], p["flow"]["sport"]): [(a.get("switch"), a.get("out")) for a in p["answers"]]
        for p in of_kind(daemon.records(), "probe")}
        .items() >= {f: [("leaf1", f"up{truth[f][5:]}"), (truth[f], None)] for f in flows}.items())
    code, out, _ = Tool(daemon, agent, text_of(flows[0])).end()
    check("the tool shows them", code == 0 and "leaf1" in out and truth[flows[0]] in out, (code, out))


def forged(flow, identification):
    """What spine0 would have to answer, with another identification than that of a probe."""
    src, sport = flow
    quoted = struct.pack(">BBHHHBBH4s4sHHHH", 0x45, 0, 52, identification, 0x4000, 1, 17, 0,
                         socket.inet_aton(src), socket.inet_aton("10.2.0.1"), sport, 4791, 32, identification)
    body = struct.pack(">BBHI", 11, 0, 0, 0) + quoted
    total = sum(struct.unpack(f">{len(body) // 2}H", body))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return body[:2] + struct.pack(">H", ~total & 0xffff) + body[4:]


def test_gap(lab, daemon, agent, truth):
    """A spine that does not answer, of a flow that was not probed yet; another one forges answers
    meanwhile."""
    flow = max(f for f, s in truth.items() if s == "spine3" and f[0] == "10.1.0.1")
    inside("spine3", "nft", "-f", "-", input=SILENT)
    foreign = agent.count("probe_answers_total", "foreign")
    forger = f"""
import socket
import time
s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
while True:
    for body in {[forged(flow, i) for i in range(1, 65536, 1285)]!r}:
        s.sendto(body, ("10.1.0.1", 0))
    time.sleep(0.1)
"""
    far = lab.counted("gpu2")[1]
    with subprocess.Popen(["ip", "netns", "exec", PREFIX + "spine0", sys.executable, "-c", forger]) as process:
        try:
            until("forged answers arrive", lambda: agent.count("probe_answers_total", "foreign") > foreign)
            code, out, _ = Tool(daemon, agent, text_of(flow), "--json").end()
        finally:
            process.kill()
    answers = json.loads(out)["answers"]
    equal("the leaf answered and the spine did not", (code, [(a.get("address"), a["sent"] > 0) for a in answers]),
          (0, [("10.1.0.254", True), (None, True)]))
    equal("it was tried three times", answers[1]["sent"], 3)
    check("the forged answers were counted as foreign",
          agent.count("probe_answers_total", "foreign") >= foreign + 100,
          (foreign, agent.count("probe_answers_total", "foreign")))
    until("the record is published", lambda: any(p["flow"]["sport"] == flow[1] and p["flow"]["src"] == flow[0]
                                                 for p in of_kind(daemon.records(), "probe")))
    equal("nothing is said of the path", hops_of(path_of(daemon, flow)), [])
    equal("nothing arrived at the far host", lab.counted("gpu2")[1], far)
    inside("spine3", "nft", "delete", "table", "inet", "mute")


def test_refusals(daemon, agent, truth):
    flow = text_of(min(truth))
    code, _, err = Tool(daemon, agent, "10.9.9.9:50000-10.2.0.1").end()
    check("a flow that nobody knows is not found", code == 1, (code, err))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.bind(("10.1.0.1", 50000))
        until("a flow to a host that is not in the topology is known", lambda: (
            s.sendto(PACKET, ("10.9.20.2", 4791)) and
            "10.9.20.2" in daemon.get("/api/v1/paths?limit=1000")))
    code, _, err = Tool(daemon, agent, "10.1.0.1:50000-10.9.20.2").end()
    check("a flow without a known distance is refused",
          code == 69 and "number of switches on its paths is not known" in err, (code, err))
    sent = agent.count("probe_packets_total", "sent")
    agent.folder.chmod(0o755)
    os.chmod(agent.socket, 0o666)
    # The build folder may be below one that no other user may enter, as /root.
    tool = shutil.copy(TOOL, agent.folder)
    code, _, err = Tool(daemon, agent, flow, program=tool, user=65534).end()
    check("another user than root is refused", code == 69 and "root and its own user" in err, (code, err))
    equal("nothing was sent", agent.count("probe_packets_total", "sent"), sent)
    log = agent.log.read_text()
    check("the log says who asked for what", "for user 0: TTL 1 to 2, 2 of 2 switches answered" in log
          and "for user 0: refused: the number of switches" in log
          and "a process of user 65534 rejected" in log, log)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--flows", type=int, default=len(ADDRESSES) * len(SPORTS))
    most = parser.parse_args().flows
    if os.geteuid():
        print("skipped: probes over a fabric: needs root")
        return 77
    with tempfile.TemporaryDirectory() as folder, Lab() as lab:
        enter("gpu1")
        daemon = rig.Daemon(Path(folder), topology())
        daemon.config.write_text(daemon.config.read_text() + "verify_topology: no\nflow_idle: 600s\n")
        daemon.start()
        agent = Agent(Path(folder), daemon)
        try:
            agent.start()
            if rig.failures:
                return 1
            truth = know(lab, daemon)
            test_gap(lab, daemon, agent, truth)
            test_paths(lab, daemon, agent, truth, most)
            test_refusals(daemon, agent, truth)
            agent.stop()
            daemon.stop()
            rig.check_balance("daemon", daemon.records())
        finally:
            agent.kill()
            daemon.kill()
    return 1 if rig.failures else 0


if __name__ == "__main__":
    sys.exit(main())
