#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The daemon has elephants without samples probed by the agent of their host, over the leaf-spine of
kernels of check_probe.py: nftables in each spine says which flows cross it, the kernels when a probe
ended in them. The switches in the list of probes are those; a spine that does not answer is a gap;
a switch meets no more than one probe in 1.2 s; none arrives at the far side; mice are left alone, as
are flows of a host whose agent did not agree. By default nothing is sent, and a probe that is asked
for is refused. Needs root. Runs in the build folder."""
import json
import os
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
import check_probe as lab_of  # noqa: E402
from check_probe import ADDRESSES, PACKET, QP, SILENT, SPINES, TOOL, Lab, inside, rig, text_of  # noqa: E402
from rig import check, equal, of_kind, until  # noqa: E402

ELEPHANTS = range(50000, 50008)
MOUSE = 50100
FLOWS = sorted((src, sport) for src, _ in ADDRESSES for sport in ELEPHANTS)
MUTE = f"spine{SPINES - 1}"
PAUSE_S = 1.2
# Of what the daemon adds up in whole milliseconds.
ROUNDED_S = 0.005
SO_TIMESTAMPNS = 35
PACKET_HOST = 0
ETH_P_ALL = 3


class Traffic(threading.Thread):
    """Twenty packets a second of each elephant, and one of the mice."""

    def __init__(self):
        super().__init__(daemon=True)
        self.ended = threading.Event()
        self.sockets = []
        for src, dst in ADDRESSES:
            for sport in (*ELEPHANTS, MOUSE):
                s = socket.socket(socket.AF_INET6 if ":" in src else socket.AF_INET, socket.SOCK_DGRAM)
                s.bind((src, sport))
                self.sockets.append((sport, s, (dst, 4791)))

    def run(self):
        n = 0
        while not self.ended.wait(0.05):
            for sport, s, to in self.sockets:
                if sport != MOUSE:
                    s.sendto(PACKET + bytes(1000), to)
                elif n % 20 == 0:
                    s.sendto(PACKET, to)
            n += 1

    def end(self):
        self.ended.set()
        self.join()
        for _, s, _ in self.sockets:
            s.close()


class Ends(threading.Thread):
    """When probes ended in a switch, as its kernel received them. Made in the switch's namespace."""

    def __init__(self, name):
        super().__init__(daemon=True)
        self.switch, self.at, self.ended = name, [], threading.Event()
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_ALL))
        self.socket.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        self.socket.settimeout(0.2)

    def run(self):
        while not self.ended.is_set():
            try:
                packet, extra, _, address = self.socket.recvmsg(128, 64)
            except TimeoutError:
                continue
            four = packet[0] >> 4 == 4 and packet[8:10] == b"\x01\x11" and packet[22:24] == b"\x12\xb7"
            six = packet[0] >> 4 == 6 and packet[6:8] == b"\x11\x01" and packet[42:44] == b"\x12\xb7"
            if address[2] == PACKET_HOST and (four or six):
                seconds, ns = struct.unpack("qq", extra[0][2])
                self.at.append(seconds + ns / 1e9)

    def end(self):
        self.ended.set()
        self.join()
        self.socket.close()


def probes_of(daemon):
    found = json.loads(daemon.get("/api/v1/probes?limit=1000"))["records"]
    return {(p["flow"]["src"], p["flow"]["sport"]): p for p in found}


def test_elephants(lab, daemon):
    until("every elephant was probed", lambda: {
        f for f, p in probes_of(daemon).items() if p["outcome"] in ("answered", "gaps")} >= set(FLOWS), 300)
    truth, listed = lab.truth(), probes_of(daemon)
    equal("and nothing else", sorted(listed), FLOWS)
    equal("each crosses one spine", {len(truth[f]) for f in FLOWS}, {1})
    for flow, probe in listed.items():
        spine = min(truth[flow])
        got = probe["outcome"], [(a["ttl"], a.get("switch"), a.get("out"), a["gap"]) for a in probe["answers"]]
        equal(f"{text_of(flow)}: what answered and what did not", got, (
            ("gaps", [(1, "leaf1", None, "next"), (2, None, None, "silent")]) if spine == MUTE else
            ("answered", [(1, "leaf1", f"up{spine[5:]}", "none"), (2, spine, None, "last")])))
        equal(f"{text_of(flow)}: who asked whom for what", (
            probe["by_daemon"], probe["host"], probe["dst_qp"], probe["switches"], "uid" in probe),
            (True, "gpu1", QP, 3, False))
        check(f"{text_of(flow)}: where nothing answers it is tried three times",
              "address" in probe["answers"][1] or probe["answers"][1]["sent"] == 3, probe)
        path = lab_of.path_of(daemon, flow)
        equal(f"{text_of(flow)}: what follows", (path["state"], lab_of.hops_of(path)), ("unresolved", [] if spine == MUTE else [
            ("leaf1", "host0", f"up{spine[5:]}", "probed"), (spine, "down1", "down2", "probed"),
            ("leaf2", f"up{spine[5:]}", "host0", "probed")]))


def test_far_side(lab, agent, traffic):
    """Nothing of a probe comes to the far side. Of the flows' own packets a loaded kernel may drop some."""
    traffic.end()
    sent = agent.count("probe_packets_total", "sent")
    check("probes were sent", sent >= 2 * len(FLOWS), sent)
    equal("the kernel took all of them", agent.count("probe_packets_total", "failed"), 0)
    equal("the leaf saw each of them", lab.probes("leaf1"), sent)
    crossed, spines = lab.counted("gpu2")[0], sum(lab.probes(f"spine{k}") for k in range(SPINES))
    check("each flow crossed a spine", len(FLOWS) <= spines <= sent - len(FLOWS), (spines, sent))
    check("the flows' own packets have arrived", crossed >= set(FLOWS), crossed)
    equal("none of a probe came further", [lab.probes(name) for name in ("leaf2", "gpu2")], [0, 0])


def test_pace(ends):
    for one in ends:
        one.end()
        gaps = [b - a for a, b in zip(one.at, one.at[1:])]
        early = [g for g in gaps if g < PAUSE_S - ROUNDED_S]
        check(f"{one.switch}: no two of {len(one.at)} probes within {PAUSE_S} s", not early, early)
    check("the leaf ended one of each flow at least", len(ends[0].at) >= len(FLOWS), len(ends[0].at))
    check("and the spines another", sum(len(one.at) for one in ends[1:]) >= len(FLOWS))


def test_words(daemon, agent):
    published = [p for p in of_kind(daemon.records(), "probe") if p.get("by_daemon")]
    equal("each was asked for once", sorted((p["flow"]["src"], p["flow"]["sport"]) for p in published), FLOWS)
    equal("one agent offers it", daemon.metric("fabrictraced_probe_agents"), 1)
    equal("all requests are accounted for", daemon.metric("fabrictraced_probe_requests_total"), len(FLOWS))
    out = subprocess.run([TOOL, "--endpoint", f"127.0.0.1:{daemon.http}", "probes"], check=True, text=True,
                         stdout=subprocess.PIPE).stdout
    check("the tool lists them", out.count("the daemon") == len(FLOWS), out)
    check("the agent's log says for whom", agent.log.read_text().count("for the daemon: TTL 1 to 2") == len(FLOWS))


def test_without_consent(folder):
    daemon, agent = programs(folder, "probe: {elephants: yes}\n", "")
    traffic = Traffic()
    try:
        start(daemon, agent, traffic)
        until("the daemon has looked at elephants in vain",
              lambda: daemon.metric("fabrictraced_probe_no_agent_total") >= 20)
        equal("nobody was asked", (probes_of(daemon), daemon.metric("fabrictraced_probe_agents")), ({}, 0))
    finally:
        stop(daemon, agent, traffic)


def probe_sockets():
    """Raw sockets of this host, of which probes leave, and Unix sockets that are asked for them."""
    raw = [line for file in ("raw", "raw6") for line in Path("/proc/net", file).read_text().splitlines()[1:]]
    return raw, [line for line in Path("/proc/net/unix").read_text().splitlines() if "probe.sock" in line]


def test_off_by_default(lab, folder, agent_settings=""):
    """Neither program says a word of probes, or the agent agrees to them and the daemon is as it comes."""
    daemon, agent = programs(folder, "", agent_settings)
    traffic, before = Traffic(), {name: lab.probes(name) for name in lab_of.NAMES[1:]}
    try:
        start(daemon, agent, traffic)
        until("the elephants are known, without evidence, for three windows", lambda: len({
            p["window_start_ms"] for p in of_kind(daemon.records(), "imbalance") if p["scope"] == "fabric"}) >= 3 and
              {f for f in FLOWS if lab_of.path_of(daemon, f).get("state") == "unresolved"} == set(FLOWS))
        if not agent_settings:
            equal("the agent has no socket of which a probe could leave, or that listens", probe_sockets(), ([], []))
        for options in ((), ("--socket", folder / "probe.sock")):
            asked = subprocess.run([TOOL, "--endpoint", f"127.0.0.1:{daemon.http}", "probe", text_of(FLOWS[0]), *options],
                                   check=False, text=True, capture_output=True)
            check(f"a probe that is asked for is refused, with the reason ({agent_settings.strip() or 'by default'})",
                  asked.returncode == os.EX_UNAVAILABLE and not asked.stdout and
                  "it listens where probe.socket is set" in asked.stderr, asked)
        equal("the daemon asked nobody", (probes_of(daemon), daemon.metric("fabrictraced_probe_requests_total"),
                                          of_kind(daemon.records(), "probe")), ({}, 0, []))
        check("the agent sent nothing", not agent.count("probe_packets_total", "sent"))
        equal("no packet with the TTL of a probe came to a switch or host",
              {name: lab.probes(name) for name in before}, before)
    finally:
        stop(daemon, agent, traffic)


def programs(folder, daemon_settings, agent_settings):
    folder.mkdir()
    daemon = rig.Daemon(folder, lab_of.topology())
    daemon.config.write_text(daemon.config.read_text() + "verify_topology: no\nflow_idle: 600s\n"
                             f"elephant: 0.02\n{daemon_settings}")
    agent = lab_of.Agent(folder, daemon)
    kept = [line for line in agent.config.read_text().splitlines(True) if not line.startswith("probe:")]
    agent.config.write_text("".join(kept) + agent_settings)
    return daemon, agent


def start(daemon, agent, traffic):
    daemon.start()
    agent.start()
    traffic.start()


def stop(daemon, agent, traffic):
    if not traffic.ended.is_set():
        traffic.end()
    for program in (agent, daemon):
        if program.process and program.process.poll() is None:
            program.stop()
        program.kill()


def main():
    if os.geteuid():
        print("skipped: probes of elephants over a fabric: needs root")
        return 77
    with tempfile.TemporaryDirectory() as top, Lab() as lab:
        inside(MUTE, "nft", "-f", "-", input=SILENT)
        ends = []
        for name in ["leaf1", *(f"spine{k}" for k in range(SPINES))]:
            lab_of.enter(name)
            ends.append(Ends(name))
        lab_of.enter("gpu1")
        for one in ends:
            one.start()
        daemon, agent = programs(Path(top) / "agreed", "probe: {elephants: yes}\n", "probe: {daemon: yes}\n")
        traffic = Traffic()
        try:
            start(daemon, agent, traffic)
            test_elephants(lab, daemon)
            test_far_side(lab, agent, traffic)
            test_pace(ends)
            test_words(daemon, agent)
        finally:
            stop(daemon, agent, traffic)
        rig.check_balance("daemon", daemon.records())
        test_without_consent(Path(top) / "alone")
        test_off_by_default(lab, Path(top) / "default")
        test_off_by_default(lab, Path(top) / "offered", "probe: {daemon: yes}\n")
    return 1 if rig.failures else 0


if __name__ == "__main__":
    sys.exit(main())
