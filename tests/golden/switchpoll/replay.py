#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""fabrictrace-switchpoll --replay: captures in, exact NDJSON out, twice the same.

ovs.pcap is real: Debian 12's Open vSwitch as the exporter, with the RoCEv2 of Soft-RoCE and perftest
passing it; nobody listened on the port at first, so datagrams are missing. Its figures below were
taken from it by tshark. fabric.pcap comes from make_captures.py. FT_WRITE_GOLDEN=1 writes the expected texts anew."""
import difflib
import json
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.dont_write_bytecode = True
import make_captures as c  # noqa: E402

HERE = Path(__file__).resolve().parent
POLLER = Path("switchpoll/fabrictrace-switchpoll").resolve()
SETTINGS = ["-c", os.devnull, "--set", "source_id=golden"]
failures = []


def check(what, good, detail=""):
    print(f"{'ok' if good else 'FAIL'}: {what}{'' if good else f': {detail}'}")
    if not good:
        failures.append(what)


def equal(what, got, want):
    check(what, got == want, f"got {got!r}, want {want!r}")


def run(capture, *more, output="-", **how):
    return subprocess.run([POLLER, *SETTINGS, "--replay", capture, "--output", output, *more],
                          stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=300,
                          **{"stdout": subprocess.PIPE, **how})


def records_of(done):
    return [json.loads(line) for line in done.stdout.splitlines()]


def observations(records, **want):
    return [r for r in records if r["schema"] == "fabrictrace.observation.v1"
            and all(r.get(k, r["flow"].get(k)) == v for k, v in want.items())]


def counters(records):
    return [r for r in records if r["schema"] == "fabrictrace.counters.v1"]


def losses(records):
    return [{s["name"]: s for s in r["stages"]} for r in records
            if r["schema"] == "fabrictrace.loss.v1"]


def drops(stage):
    return {d["reason"]: d["count"] for d in stage.get("drops", [])}


def check_balance(name, records):
    """received = processed + pending + drops, in every stage of every loss record."""
    for stages in losses(records):
        for s in stages.values():
            out = s["processed"] + s["pending"] + sum(drops(s).values())
            if s["received"] != out:
                check(f"{name}: balance of {s}", False)
    last = losses(records)[-1]
    equal(f"{name}: samples in observations and counters, and in the loss record",
          sum(o["samples"] for o in observations(records)) + last["counters"]["received"],
          last["samples"]["processed"])
    equal(f"{name}: nothing pending at the end",
          {s["pending"] for n, s in last.items() if n != "transport"}, {0})


def golden(name):
    done = [run(HERE / f"{name}.pcap") for _ in range(2)]
    equal(f"{name}: exit code", done[0].returncode, 0)
    check(f"{name}: twice the same", done[0].stdout == done[1].stdout)
    got = done[0].stdout.decode().splitlines(True)
    expected = HERE / f"{name}.ndjson"
    if os.environ.get("FT_WRITE_GOLDEN"):
        expected.write_text("".join(got))
    want = expected.read_text().splitlines(True)
    check(f"{name}: exact text", got == want,
          "\n" + "".join(list(difflib.unified_diff(want, got, "want", "got"))[:20]))
    records = records_of(done[0])
    check_balance(name, records)
    return records


def test_fabric(folder):
    equal("fabric.pcap is what make_captures.py makes", (HERE / "fabric.pcap").read_bytes(),
          c.pcap(c.ETHERNET, c.fabric()))
    records = golden("fabric")
    first = c.START * 1000
    both = observations(records, agent=c.LEAF, time_ms=first, src="10.0.1.1", out_ifindex=49)
    equal("ingress and egress samples stay apart",
          {o["point"]: (o["samples"], o["packets"]) for o in both},
          {"ingress": (3, 3000), "egress": (1, 1000)})
    seen = both[0] if both[0]["point"] == "ingress" else both[1]
    equal("congestion experienced", seen["ce_samples"], 1)
    check("queue pairs that disagree are left out", "dst_qp" not in seen, seen)
    equal("frame lengths", seen["bytes"], 3 * 1000 * (14 + 20 + 8 + 12 + 1000 + 4))
    equal("acknowledgements", [(o["ack_samples"], o["data_samples"], o["dst_qp"]) for o in
                               observations(records, src="10.0.3.1")], [(1, 0, 33)])
    equal("expanded form", [(o["in_ifindex"], o["out_ifindex"], o["packets"]) for o in
                            observations(records, agent=c.SPINE)], [(1, 3, 2000)])
    equal("discarded", [(o["discard_reason"], "out_ifindex" in o) for o in
                        observations(records, fate="discarded")], [(2, False)])
    equal("multiple outputs", [o["samples"] for o in observations(records, fate="multiple")], [1])
    equal("internal and unknown ports are absent",
          [("in_ifindex" in o, "out_ifindex" in o) for o in
           observations(records, agent=c.SIX, sport=50000)], [(False, False)])
    equal("neither port is the data source", [o["point"] for o in
                                              observations(records, dport=53)], ["unknown"])
    equal("last counters win, unknown ones are absent",
          [(r["agent"], r["in_bytes"], r.get("in_packets")) for r in counters(records)],
          [(c.LEAF, 10**15, 106), (c.SIX, 3, 100)])
    middle, last = losses(records)
    equal("a loss record at its time", (middle["datagrams"]["received"],
                                        last["datagrams"]["received"]), (14, 14))
    equal("network: 5 and 6 missing, 3 was late, the restart is no gap",
          (last["network"]["received"], drops(last["network"])), (12, {"sequence_gap": 2}))
    equal("datagrams", (last["datagrams"]["processed"], drops(last["datagrams"])),
          (10, {"not_sflow_v5": 2, "truncated": 1, "duplicate": 1}))
    equal("samples", (last["samples"]["received"], drops(last["samples"])),
          (22, {"unknown_format": 1, "malformed": 1, "not_ip": 1, "header_short": 1,
                "no_port_counters": 1}))
    equal("counters", drops(last["counters"]), {"superseded": 1})


def test_links(folder):
    """The same datagrams in other kinds of captures give the same text."""
    want = (HERE / "fabric.ndjson").read_bytes()
    packets = c.fabric()
    captures = {
        "cooked.pcap": c.pcap(c.COOKED, packets), "cooked2.pcap": c.pcap(c.COOKED2, packets),
        "raw.pcap": c.pcap(c.RAW, packets), "ethernet.pcapng": c.pcapng(c.ETHERNET, packets),
        "cooked.pcapng": c.pcapng(c.COOKED, packets),
    }
    for name, data in captures.items():
        (folder / name).write_bytes(data)
        check(f"{name}: as fabric.pcap", run(folder / name).stdout == want)
    (folder / "port.pcap").write_bytes(c.pcap(c.ETHERNET, packets, dport=16343))
    check("replay_port: as fabric.pcap",
          run(folder / "port.pcap", "--set", "replay_port=16343").stdout == want)
    equal("another port: a loss record alone, at the time of the last packet",
          [(r["schema"], r["time_ms"]) for r in records_of(run(folder / "port.pcap"))],
          [("fabrictrace.loss.v1", c.START * 1000 + 12500)])
    piped = subprocess.run([POLLER, *SETTINGS, "--replay", "-"], input=captures["raw.pcap"],
                           capture_output=True, timeout=300)
    check("standard input: as fabric.pcap", piped.stdout == want, piped.stderr)
    run(folder / "raw.pcap", output=folder / "out.ndjson")
    check("--output FILE: as fabric.pcap", (folder / "out.ndjson").read_bytes() == want)


def test_real(folder):
    records = golden("ovs")
    last = losses(records)[-1]
    equal("ovs: datagrams", last["datagrams"]["processed"], 32)
    equal("ovs: flow samples", last["network_samples"]["processed"], 166)
    equal("ovs: flow samples in observations", sum(o["samples"] for o in observations(records)),
          166)
    by_flow = {}
    for o in observations(records):
        by_flow[o["flow"]["sport"], o["flow"]["src"]] = o["out_ifindex"]
    check("ovs: one way out for each flow", by_flow and all(
        {o["out_ifindex"] for o in observations(records, sport=sport, src=src)} == {out}
        for (sport, src), out in by_flow.items()), by_flow)
    tshark = shutil.which("tshark")
    if not tshark:
        check("ovs against tshark", False, "tshark is not installed: packaging/install-deps test")
        return
    text = subprocess.run([tshark, "-r", HERE / "ovs.pcap", "-V"], capture_output=True,
                          text=True, timeout=300).stdout
    equal("ovs: flow samples as tshark counts them",
          sum(line.startswith("    Flow sample, seq") for line in text.splitlines()), 166)


def test_lacp(_folder):
    """ovs_lacp.pcap: Open vSwitch again, with a bond of two ports (ifIndex 3 and 5) whose partner
    spoke LACP for the first five seconds. States are as `ovs-appctl lacp/show` had them."""
    records = golden("ovs_lacp")
    for ifindex in (3, 5):
        states = [r["lag"]["state"] for r in counters(records) if r["ifindex"] == ifindex]
        equal(f"port {ifindex}: well, expired, then defaulted", list(dict.fromkeys(states)),
              [0x3f, 0xbf, 0x77])
        received = [r["lag"]["lacp_in"] for r in counters(records) if r["ifindex"] == ifindex]
        check(f"port {ifindex}: LACPDUs", received == sorted(received) and received[-1] == 5, received)
    check("Ethernet errors of every port, and no other aggregate's member",
          all("fcs_errors" in r["ethernet"] and "symbol_errors" not in r["ethernet"]
              and ("lag" in r) == (r["ifindex"] in (3, 5)) for r in counters(records)))


def test_caps(folder):
    """Tables at their caps: counted, and the balance holds."""
    flows = [c.datagram(c.LEAF, 1 + i, 1000 + i, [
        c.flow_sample(1 + i, (0, 1), 1, 49, [c.roce("10.0.0.1", "10.0.0.2", 50000 + i)])])
        for i in range(40)]
    (folder / "many.pcap").write_bytes(c.pcap(c.ETHERNET, [(i / 1000, d) for i, d in
                                                           enumerate(flows)]))
    records = records_of(run(folder / "many.pcap", "--set", "fold_entries=16"))
    check_balance("caps", records)
    equal("caps: sums", len(observations(records)), 16)
    equal("caps: the rest is counted", drops(losses(records)[-1]["samples"]), {"table_full": 24})
    agents = [c.datagram(f"192.0.2.{i}", 1, 1000, [
        c.flow_sample(1, (0, 1), 1, 49, [c.roce(*c.DATA)])]) for i in range(1, 11)]
    (folder / "agents.pcap").write_bytes(c.pcap(c.ETHERNET, [(0, d) for d in agents]))
    records = records_of(run(folder / "agents.pcap", "--set", "exporters_max=2"))
    equal("caps: exporters over the cap are processed", len(observations(records)), 10)


def test_garbage(folder):
    """Bytes changed, cut and repeated at random: the accounting still balances."""
    dice = random.Random(6343)
    packets = []
    for i in range(3000):
        payload = bytearray(dice.choice(c.fabric())[1])
        for _ in range(dice.randrange(4)):
            payload[dice.randrange(len(payload))] = dice.choice((0, 1, 0x7F, 0x80, 0xFF))
        if dice.random() < 0.2:
            del payload[dice.randrange(len(payload)):]
        packets.append((i / 100, bytes(payload)))
    (folder / "garbage.pcap").write_bytes(c.pcap(c.ETHERNET, packets))
    done = run(folder / "garbage.pcap")
    equal("garbage: exit code", done.returncode, 0)
    records = records_of(done)
    check_balance("garbage", records)
    equal("garbage: every datagram is accounted for",
          losses(records)[-1]["datagrams"]["received"], 3000)
    check("garbage: twice the same", run(folder / "garbage.pcap").stdout == done.stdout)


def replay(folder, *samples):
    """What one datagram with these samples becomes."""
    capture = folder / "made.pcap"
    capture.write_bytes(c.pcap(c.ETHERNET, [(0.1, c.datagram(c.LEAF, 1, 1000, list(samples)))]))
    return records_of(run(capture))


def test_tunnels(folder):
    inner = c.ethernet(c.udp(*c.DATA, c.bth(c.WRITE_ONLY, 17) + bytes(1000)))
    packet = c.udp(*c.DATA, c.bth(c.WRITE_ONLY, 17) + bytes(1000))
    tunnel, other = c.vxlan(inner), c.vxlan(inner, vni=5002)
    # A label stack and a VXLAN tunnel, each with the same flow inside; the tunnel marked on the way.
    records = replay(
        folder,
        c.flow_sample(1, (0, 1), 1, 49, [c.raw_header(tunnel[:128], len(tunnel) + 4)]),
        c.flow_sample(2, (0, 1), 1, 49, [c.raw_header(c.vxlan(inner, ecn=3)[:128], len(tunnel) + 4)]),
        c.flow_sample(3, (0, 1), 1, 50, [c.raw_header(
            bytes(12) + b"\x88\x47" + struct.pack(">II", 16 << 12 | 64, 17 << 12 | 0x140) + packet[:100],
            1090)]),
        c.flow_sample(4, (0, 1), 1, 51, [c.raw_header(tunnel[:60], len(tunnel) + 4)]),
        c.flow_sample(5, (0, 1), 1, 49, [c.raw_header(other[:128], len(other) + 4)]))
    through, apart = observations(records, out_ifindex=49)
    flow = {"src": "10.0.1.1", "dst": "10.0.3.1", "sport": 49441, "dport": 4791, "proto": 17}
    outer = {"src": "192.0.2.101", "dst": "192.0.2.103", "sport": 55555, "dport": 4789, "proto": 17}
    equal("vxlan: the flow", through["flow"], flow)
    equal("vxlan: the outer one is kept", through.get("outer"), outer)
    equal("vxlan: figures", (through["samples"], through["ce_samples"], through["data_samples"],
                             through["dst_qp"], through["bytes"]),
          (2, 1, 2, 17, 2 * 1000 * (len(tunnel) + 4)))
    equal("vxlan: another network is another sum", [(o["flow"], o.get("vni"), o["samples"]) for o in (through, apart)],
          [(flow, 5001, 2), (flow, 5002, 1)])
    labels, = observations(records, out_ifindex=50)
    equal("mpls: the flow", (labels["flow"], "outer" in labels, "vni" in labels), (flow, False, False))
    cut, = observations(records, out_ifindex=51)
    equal("a cut tunnel is its outer flow", (cut["flow"], "outer" in cut), (outer, False))


def test_discards(folder):
    header = c.roce(*c.DATA)
    records = replay(
        folder,
        c.flow_sample(7, (0, 1), 1, 49, [c.words(1039, 1500), c.words(1040, 40000), header]),
        c.flow_sample(8, (0, 1), 1, 49, [c.words(1039, 9000), c.words(1040, 20000), header]),
        c.discarded_packet(1, (0, 1), 1, 49, 258, [header]),
        c.discarded_packet(2, (0, 1), 1, 49, 258, [header], drops=3),
        c.discarded_packet(5, (0, 1), 1, 0, 0, [header]))
    sampled, = observations(records, point="ingress")
    equal("queue and transit: the worst of the samples",
          (sampled["queue_max_bytes"], sampled["transit_max_ns"]), (40000, 9000))
    told = observations(records, point="discard")
    equal("discards stay apart from samples, by reason",
          [(o["samples"], o["packets"], o["fate"], o["discard_reason"], o.get("out_ifindex"))
           for o in told], [(2, 2, "discarded", 258, 49), (1, 1, "discarded", 0, None)])
    equal("discards are numbered apart, and missing ones seen",
          losses(records)[-1]["network_samples"].get("drops"), [{"reason": "sequence_gap", "count": 2}])


# Public captures: (file, datagrams, samples, flow samples, port counters, datagrams that are none).
# tshark 4.0.17 agrees on datagrams and samples, sfacctd 1.7.7 on the flow samples. Five datagrams
# to the port in the third file are NetFlow 5; tshark calls the last file malformed as well.
VECTORS = [("sflow-print-v6.pcap", 25, 61, 13, 48, {}),
           ("sflow_expanded.pcap", 1, 1, 1, 0, {}),
           ("sflow_multiple_counter_30_pdus.pcap", 25, 144, 0, 142, {"not_sflow_v5": 5}),
           ("sflow_print-segv.pcap", 0, 0, 0, 0, {"truncated": 1})]


def test_vectors(_folder):
    vectors = os.environ.get("FABRICTRACE_VECTORS")
    if not vectors:
        return print("SKIP: public captures: FABRICTRACE_VECTORS does not name their folder")
    for name, datagrams, samples, flows, counts, drops in VECTORS:
        last = losses(records_of(run(Path(vectors) / name)))[-1]
        equal(f"{name}: datagrams, samples, flow samples, port counters",
              (last["datagrams"]["processed"], last["samples"]["received"],
               last["network_samples"]["received"], last["counters"]["received"]),
              (datagrams, samples, flows, counts))
        equal(f"{name}: what is none", {d["reason"]: d["count"]
                                        for d in last["datagrams"].get("drops", [])}, drops)


def test_faults(folder):
    good = (HERE / "fabric.pcap").read_bytes()
    (folder / "cut.pcap").write_bytes(good[:-20])
    done = run(folder / "cut.pcap")
    equal("cut file: exit code", done.returncode, 65)
    check("cut file: named", b"cut.pcap" in done.stderr, done.stderr)
    check("cut file: what was whole is kept", len(observations(records_of(done))) > 5)
    (folder / "text.pcap").write_text("this is no capture, whatever it is called\n")
    done = run(folder / "text.pcap")
    equal("no capture: exit code", done.returncode, 65)
    check("no capture: named", b"text.pcap" in done.stderr, done.stderr)
    done = run(folder / "absent.pcap")
    equal("absent file: exit code", (done.returncode, done.stdout), (66, b""))
    check("absent file: named", b"absent.pcap" in done.stderr, done.stderr)
    (folder / "token.pcap").write_bytes(good[:20] + struct.pack("<I", 0) + good[24:])
    equal("other link type: exit code", run(folder / "token.pcap").returncode, 65)
    equal("full disk: exit code", run(HERE / "ovs.pcap", output="/dev/full").returncode, 74)
    done = run(HERE / "ovs.pcap", output=folder / "absent" / "x")
    equal("output that cannot be made: exit code", done.returncode, 73)
    ends = os.pipe()
    os.close(ends[0])
    done = run(HERE / "ovs.pcap", stdout=ends[1])
    os.close(ends[1])
    equal("closed pipe: exit code", done.returncode, 74)
    check("closed pipe: said", b"standard output" in done.stderr, done.stderr)
    for setting, key in (("fold_interval=0s", b"fold_interval"), ("listen=nonsense", b"listen"),
                         ("daemon.cert=x.pem", b"daemon"), ("fold_intervall=1s", b"fold_intervall")):
        done = run(HERE / "ovs.pcap", "--set", setting)
        equal(f"{setting}: exit code", (done.returncode, done.stdout), (78, b""))
        check(f"{setting}: named", key in done.stderr, done.stderr)


def test_cut_meanwhile(folder):
    """A capture that another program cuts short while it is read ends with a word."""
    good = (HERE / "fabric.pcap").read_bytes()
    packets = []
    for second in range(4000):
        at = 24
        while at < len(good):
            length = struct.unpack_from("<I", good, at + 8)[0]
            packets += [struct.pack("<I", 1700000000 + second), good[at + 4:at + 16 + length]]
            at += 16 + length
    path = folder / "shrinks.pcap"
    path.write_bytes(good[:24] + b"".join(packets))
    with subprocess.Popen([POLLER, *SETTINGS, "--replay", path, "--output", "-"],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as process:
        # Nobody reads, so it stands still in the middle of a part that was read.
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and "pipe_write" not in where(process.pid):
            time.sleep(0.02)
        check("cut meanwhile: it waits in the middle", "pipe_write" in where(process.pid))
        os.truncate(path, 24)
        _, stderr = process.communicate(timeout=300)
    equal("cut meanwhile: exit code", process.returncode, 65)
    check("cut meanwhile: named", b"the file was cut short while it was read" in stderr, stderr)


def where(pid):
    """The kernel function that a process waits in."""
    return Path(f"/proc/{pid}/wchan").read_text()


def main():
    with tempfile.TemporaryDirectory() as folder:
        for test in (test_fabric, test_links, test_real, test_lacp, test_caps, test_garbage, test_tunnels,
                     test_discards, test_vectors, test_faults, test_cut_meanwhile):
            test(Path(folder))
    print(f"{len(failures)} failed")
    return 1 if failures else 0


sys.exit(main())
