#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Flows whose path is in their address: senders write micro-SIDs into the destination, switches shift them
(RFC 9800 section 4.1.1). The generator draws a path for each packet, shifts the address itself, and knows
by which spine each sample went; leaves sample what comes in, spines what goes out, already shifted. A queue
pair with one source port is one flow over all paths; one with a port for each path is a flow for each, whose
path is known. What stays of a destination of which that is not certain is nobody's, and its path unresolved."""
import ipaddress
import json
import random
import struct
import sys
import tempfile
from collections import Counter
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "switchpoll"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "agent"))
import captures as host  # noqa: E402
import make_captures as c  # noqa: E402
import rig  # noqa: E402
from rig import check, equal, of_kind  # noqa: E402

SPINES, WINDOW_S, SECONDS = 4, 5, 10
BLOCK = "fc00:0::/32"
LEAVES = {1: 0x11, 2: 0x12}
NICS = {1: 0x101, 2: 0x102}
LOCAL = 0xe001  # means something at leaf2 alone
ONE_PORT, OWN_PORTS, LOST, TWO_ADDRESSES = 50000, range(51001, 51001 + SPINES), 52000, 53000
QPS = {ONE_PORT: 17, TWO_ADDRESSES: 19}  # of all others 18
SECOND = "fc00:0:1101::"  # address of h1's NIC: by which of them is by which of the first two spines


def container(*sids):
    """Block, micro-SIDs, zeros."""
    words = [0xfc00, 0, *sids]
    return str(ipaddress.IPv6Address(struct.pack(">8H", *words, *[0] * (8 - len(words)))))


def topology():
    text = "fabric: small\nspeed_bps: 100000000000\nswitches:\n"
    for leaf in LEAVES:
        ports = ", ".join(f"{{name: {n}, ifindex: {i}}}" for n, i in
                          [("host", 1), *((f"up{s}", 50 + s) for s in range(1, SPINES + 1))])
        text += f"  - {{name: leaf{leaf}, addresses: [192.0.2.{leaf}], ports: [{ports}]}}\n"
    for spine in range(1, SPINES + 1):
        text += (f"  - {{name: spine{spine}, addresses: [192.0.2.{100 + spine}], ports: "
                 "[{name: a, ifindex: 1}, {name: b, ifindex: 2}]}\n")
    text += "links:\n"
    for leaf, port in (1, "a"), (2, "b"):
        for spine in range(1, SPINES + 1):
            text += f"  - {{a: leaf{leaf}, a_port: up{spine}, b: spine{spine}, b_port: {port}}}\n"
    text += "hosts:\n"
    for n, nic in NICS.items():
        addresses = [container(nic), *([SECOND] if n == 1 else [])]
        text += (f"  - {{name: h{n}, nics: [{{addresses: {addresses}, "
                 f"attach: [{{switch: leaf{n}, port: host}}]}}]}}\n")
    return text


def roce(src, dst, sport, qp, psn):
    """The record of a sampled packet: numbered over all paths of its queue pair."""
    bth = host.bth(host.WRITE_ONLY, qp, psn % 2**24)
    frame = c.ethernet(c.udp(src, dst, sport, bth + bytes(1000)))
    return c.raw_header(frame[:128], len(frame) + 4)


def generate():
    """(capture, {(source port, window): samples at leaf1 by spine})."""
    rng, truth = random.Random(7), {}
    samples, sequences, psn = {}, Counter(), Counter()
    for second in range(SECONDS):
        for sport in [ONE_PORT] * 100 + [*OWN_PORTS] * 20 + [LOST] * 10 + [TWO_ADDRESSES] * 40:
            spine = sport - OWN_PORTS[0] + 1 if sport in OWN_PORTS else rng.randint(1, SPINES)
            if sport == TWO_ADDRESSES:
                spine = 1 + spine % 2
            src = SECOND if sport == TWO_ADDRESSES and spine == 2 else container(NICS[1])
            qp = QPS.get(sport, 18)
            psn[qp] += rng.randint(1, 2000)
            last = [LOCAL] if sport == LOST else [NICS[2]]
            switch = rng.choice(["leaf1", "spine", "leaf2"])
            # The leaves take their own off as they send; of the last one the NIC's stays, or nothing sure.
            rest = {"leaf1": [LEAVES[1], 0x20 + spine, LEAVES[2], *last],
                    "spine": [LEAVES[2], *last], "leaf2": [LEAVES[2], *last]}[switch]
            if sport == LOST:
                rest = last
            agent, came, went = {"leaf1": ("192.0.2.1", 1, 50 + spine),
                                 "spine": (f"192.0.2.{100 + spine}", 1, 2),
                                 "leaf2": ("192.0.2.2", 50 + spine, 1)}[switch]
            if switch == "leaf1":
                truth.setdefault((sport, second // WINDOW_S), Counter())[spine] += 1
            sequences[agent] += 1
            source = went if switch == "spine" else came
            samples.setdefault((second, agent), []).append(c.flow_sample(
                sequences[agent], (0, source), came, went,
                [roce(src, container(*rest), sport, qp, psn[qp])]))
    datagrams, numbers = [], Counter()
    for (second, agent), list_ in sorted(samples.items()):
        for at in range(0, len(list_), 6):
            numbers[agent] += 1
            datagrams.append((second + at / 1000, c.datagram(agent, numbers[agent], 1000 * second + at,
                                                             list_[at:at + 6])))
    datagrams.sort(key=lambda d: d[0])
    return c.pcap(c.ETHERNET, datagrams), truth


def chain(folder, capture, *settings):
    pcap, file = folder / "made.pcap", folder / "t.yaml"
    pcap.write_bytes(capture)
    file.write_text(topology())
    polled = rig.run(rig.POLLER, *rig.NO_CONFIG, *settings, "--replay", pcap, "--output", "-")
    done = rig.run(rig.DAEMON, *rig.NO_CONFIG, *rig.TRUST, "--set", f"window={WINDOW_S}s", "--topology", file,
                   "--replay", "-", "--sink", "file:-", input=polled.stdout, stdin=None)
    equal("exit codes", (polled.returncode, done.returncode), (0, 0))
    return rig.records_of(done.stdout)


def captured(truth):
    """Of h1's NIC: the packets of ONE_PORT that leaf1 sampled, as they leave the host, and one more each."""
    frames = []
    for (sport, window), by_spine in sorted(truth.items()):
        sent = [spine for spine, n in sorted(by_spine.items()) for _ in range(2 * n) if sport == ONE_PORT]
        for at, spine in enumerate(sent):
            dst = container(LEAVES[1], 0x20 + spine, LEAVES[2], NICS[2])
            packet = host.udp(container(NICS[1]), dst, sport, host.bth(host.WRITE_ONLY, 17) + bytes(1000))
            frames.append((c.START + window * WINDOW_S + at * WINDOW_S / len(sent), host.ethernet(packet)))
    return host.capture(host.ETHERNET, frames), len(frames)


def test_capture_meets(folder, samples, truth):
    """What the sender's agent captures is of the same flow as what the switches sampled."""
    pcap, sent = captured(truth)
    file = folder / "host.pcap"
    file.write_bytes(pcap)
    for blocks, meets in ((("--set", f"srv6_blocks={BLOCK}"), True), ((), False)):
        agent = rig.run(rig.AGENT, *rig.NO_CONFIG, "--set", "host=h1", "--set", f"addresses={container(NICS[1])}", *blocks,
                        "--replay", file, "--output", "-")
        flows = of_kind(rig.records_of(agent.stdout), "flow")
        equal(f"destinations at the agent, meets: {meets}", {r["flow"]["dst"] for r in flows} == {container(NICS[2])}, meets)
        equal("all are sent", {r["direction"] for r in flows}, {"tx"})
        equal("each packet is counted", sum(r["data_packets"] for r in flows), sent)
        records = rig.run(rig.DAEMON, *rig.NO_CONFIG, *rig.TRUST, "--set", f"window={WINDOW_S}s", "--topology",
                          folder / "t.yaml", "--replay", "-", "--sink", "file:-", input=merged(samples, agent.stdout),
                          stdin=None)
        paths = [r for r in of_kind(rig.records_of(records.stdout), "path")
                 if r["flow"]["sport"] == ONE_PORT and r["flow"]["dst"] == container(NICS[2])]
        equal("the host's rate is that of the flow with a path",
              {r["rate_source"] for r in paths if r.get("rate_bps")} == {"host"}, meets)


def merged(*outputs):
    """Records of several programs in the order of their times."""
    lines = [line for text in outputs for line in text.splitlines()]
    return "".join(f"{line}\n" for line in sorted(lines, key=lambda line: json.loads(line).get("time_ms", 0)))


def window_of(record):
    return (record["window_start_ms"] // 1000 - c.START) // WINDOW_S


def samples_of(record):
    return {int(x["port"][2:]): x["samples"] for x in record["links"] if x["samples"]}


def test_named(records, truth):
    paths = [r for r in of_kind(records, "path") if r["flow"]["sport"] != LOST]
    equal("every flow goes to the NIC", {r["flow"]["dst"] for r in paths}, {container(NICS[2])})
    equal("as many flows as source ports", {r["flow"]["sport"] for r in paths}, {ONE_PORT, *OWN_PORTS, TWO_ADDRESSES})
    equal("it is said that senders chose the paths", {r.get("source_routed") for r in paths}, {True})
    equal("nobody's numbers are taken for a path's", {r["rate_source"] for r in paths if r.get("rate_bps")},
          {"sflow"})
    for spine, sport in enumerate(OWN_PORTS, 1):
        last = [r for r in paths if r["flow"]["sport"] == sport][-1]
        equal(f"{sport}: its path", (last["state"], [h["switch"] for h in last["hops"]]),
              ("resolved", ["leaf1", f"spine{spine}", "leaf2"]))
    equal("the queue pair with one port takes all", [r for r in paths if r["flow"]["sport"] == ONE_PORT][-1]["state"],
          "multipath")
    spread = of_kind(records, "spread")
    at = {(r["of"], r.get("dst_qp"), window_of(r)): r for r in spread if r["switch"] == "leaf1"}
    equal("one record for each", len(at), len([r for r in spread if r["switch"] == "leaf1"]))
    for window in range(SECONDS // WINDOW_S):
        test_queue_pairs(at, truth, window)
        all_ports = sum((truth[sport, window] for sport in [ONE_PORT, *OWN_PORTS, TWO_ADDRESSES]), Counter())
        r = at["connection", None, window]
        equal(f"connection in window {window}", (r["src_host"], r["dst_host"], r["flows"], samples_of(r)),
              ("h1", "h2", 3 + SPINES, dict(all_ports)))


def test_queue_pairs(at, truth, window):
    """A queue pair is one, whether its paths have one port, a port each or an address each."""
    common = {"src": container(NICS[1]), "dst": container(NICS[2]), "dport": 4791, "proto": 17}
    for qp, ports, flows, links, flow in (
            (17, [ONE_PORT], 1, SPINES, {**common, "sport": ONE_PORT}),
            (18, OWN_PORTS, SPINES, SPINES, common),
            (19, [TWO_ADDRESSES], 2, 2, {k: v for k, v in {**common, "sport": TWO_ADDRESSES}.items() if k != "src"})):
        r, seen = at["qp", qp, window], sum((truth[sport, window] for sport in ports), Counter())
        equal(f"queue pair {qp} in window {window}",
              (r["flow"], r["src_host"], r["dst_host"], r["flows"], r["sprayed_flows"], r["seen"], r["possible"]),
              (flow, "h1", "h2", flows, flows, links, SPINES))
        equal(f"its samples, {window}", (samples_of(r), r["samples"]), (dict(seen), seen.total()))
        # How much those of one flow keep together is found by few of them.
        least = seen.total() * (1 if flows > 1 else 0.5 if window else 0.1)
        check(f"each a trial, {window}", least <= r["trials"] <= seen.total(), (r["trials"], seen.total()))
        equal(f"its alternation, {window}", r["alternation"], "sprayed")
        check(f"its paths end to end, {window}", r["end_to_end_lo"] <= links <= r["end_to_end_hi"] + 0.01, r)
        dead = [] if links == SPINES else [f"up{n}" for n in range(1, SPINES + 1) if n not in seen]
        equal(f"what it does not take, {window}", r.get("dead", []), dead)


def test_not_certain(records):
    lost = [r for r in of_kind(records, "path") if r["flow"]["sport"] == LOST]
    equal("a destination that is not certain stays", {r["flow"]["dst"] for r in lost}, {container(LOCAL)})
    check("and its path is none", lost and all("hops" not in r or r["state"] == "unresolved" for r in lost),
          [r["state"] for r in lost])


def main():
    capture, truth = generate()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        records = chain(folder, capture, "--set", f"srv6_blocks={BLOCK}")
        test_named(records, truth)
        polled = rig.run(rig.POLLER, *rig.NO_CONFIG, "--set", f"srv6_blocks={BLOCK}", "--replay", folder / "made.pcap",
                         "--output", "-")
        test_capture_meets(folder, polled.stdout, truth)
        test_not_certain(records)
        without = of_kind(chain(folder, capture), "path")
    # Not told, each address is one more flow: of those that are no NIC's nothing is claimed.
    check("without the setting there are more flows",
          len({(r["flow"]["dst"], r["flow"]["sport"]) for r in without}) > 2 + SPINES)
    equal("and none of them has a path", {r["state"] for r in without}, {"unresolved"})
    return 1 if rig.failures else 0


sys.exit(main())
