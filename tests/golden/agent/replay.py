#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""fabrictrace-agent --replay: capture files in, exact NDJSON out.

rxe.pcap is every 21st packet of a capture of Soft-RoCE (Linux 6.1, perftest) on a leaf's uplink; its
counts were compared with tshark's when rxe.ndjson was written."""
import difflib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
import captures as c  # noqa: E402

HERE = Path(__file__).resolve().parent
AGENT = Path("agent/fabrictrace-agent").resolve()
START = 1700000000
failures = []


def check(what, good, detail=""):
    print(f"{'ok' if good else 'FAIL'}: {what}{'' if good else f': {detail}'}")
    if not good:
        failures.append(what)


def equal(what, got, want):
    check(what, got == want, f"got {got!r}, want {want!r}")


class Replays:
    def __init__(self, folder):
        self.folder = Path(folder)

    def run(self, capture, config, output="-", **more):
        path = self.folder / "agent.yaml"
        path.write_text(config)
        return subprocess.run([AGENT, "-c", path, "--replay", capture, "--output", output],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300, **more)

    def records(self, name, data, config="host: h\n"):
        path = self.folder / name
        path.write_bytes(data)
        done = self.run(path, config)
        equal(f"{name}: exit code", (done.returncode, done.stderr), (0, b""))
        return [json.loads(line) for line in done.stdout.splitlines()]


def flows_of(records, **want):
    return [r for r in records if r["schema"] == "fabrictrace.flow.v1"
            and all(r["flow"].get(k, r.get(k)) == v for k, v in want.items())]


def last_loss(records):
    stages = [r for r in records if r["schema"] == "fabrictrace.loss.v1"][-1]["stages"]
    return {s["name"]: s for s in stages}


def drops(stage):
    return {d["reason"]: d["count"] for d in stage.get("drops", [])}


def check_balance(records):
    for record in records:
        for s in record.get("stages", []):
            out = s["processed"] + s["pending"] + sum(drops(s).values())
            if s["received"] != out:
                check(f"balance of {s}", False)


def test_golden(replays):
    config = "host: host1\naddresses: [10.1.1.1, 10.1.2.1]\n"
    done = [replays.run(HERE / "rxe.pcap", config) for _ in range(2)]
    equal("rxe: exit code", done[0].returncode, 0)
    check("rxe: twice the same", done[0].stdout == done[1].stdout)
    got = done[0].stdout.decode().splitlines(True)
    if os.environ.get("FT_WRITE_GOLDEN"):
        (HERE / "rxe.ndjson").write_text("".join(got))
    want = (HERE / "rxe.ndjson").read_text().splitlines(True)
    check("rxe: exact text", got == want,
          "\n" + "".join(list(difflib.unified_diff(want, got, "want", "got"))[:20]))
    records = [json.loads(line) for line in got]
    # Taken from the capture by tshark: data and acknowledgement opcodes of each tuple.
    for sport, src, data, ack in [(49492, "10.1.1.1", 15, 0), (49530, "10.1.1.1", 14, 0),
                                  (49612, "10.1.1.1", 13, 0), (49492, "10.2.1.1", 0, 15),
                                  (49800, "10.2.1.1", 0, 15), (61447, "10.1.2.1", 21, 7)]:
        reports = flows_of(records, sport=sport, src=src)
        equal(f"rxe: packets of {src}:{sport}",
              (sum(r["data_packets"] for r in reports), sum(r["ack_packets"] for r in reports)),
              (data, ack))
        equal(f"rxe: direction of {src}:{sport}", {r["direction"] for r in reports},
              {"tx" if src.startswith("10.1.") else "rx"})
    equal("rxe: packets", last_loss(records)["packets"]["processed"], 200)
    check_balance(records)


def test_ethernet(replays):
    v4 = c.udp("10.0.0.1", "10.0.0.2", 50000, c.bth(c.WRITE_ONLY, 17) + bytes(100), ecn=c.ECN_CE)
    v6 = c.udp("fd00::1", "fd00::2", 50001, c.bth(c.WRITE_ONLY, 18) + bytes(100))
    ack = c.udp("10.0.0.2", "10.0.0.1", 50000, c.bth(c.ACK, 19) + bytes(8))
    cnp = c.udp("10.0.0.2", "10.0.0.1", 50000, c.bth(c.CNP, 19) + bytes(20))
    foreign = c.udp("10.0.0.8", "10.0.0.9", 50000, c.bth(c.WRITE_ONLY, 20) + bytes(100))
    arp = bytes(12) + b"\x08\x06" + bytes(28)
    records = replays.records("ethernet.pcap", c.capture(c.ETHERNET, [
        (START, c.ethernet(v4)),
        (START + 0.001, c.ethernet(v4, (0x8100, 5))),
        (START + 0.002, c.ethernet(v4, (0x88A8, 6), (0x8100, 5))),
        (START + 0.1, c.ethernet(v6)),
        (START + 0.2, c.ethernet(c.udp("10.0.0.1", "10.0.0.2", 50000, bytes(12), dport=53))),
        (START + 0.2, arp),
        (START + 0.2, c.ethernet(v4), 20),
        (START + 0.5, c.ethernet(ack)),
        (START + 0.5, c.ethernet(cnp)),
        (START + 0.6, c.ethernet(foreign), 64),
        (START + 100000, c.ethernet(v4)),
    ]), "host: h\naddresses: [10.0.0.1, \"fd00::1\"]\n")
    tx = flows_of(records, src="10.0.0.1")
    ms = START * 1000
    equal("ethernet: report, refresh, end, and a new flow long after",
          [(r["time_ms"] - ms, r["data_packets"], r.get("ended")) for r in tx],
          [(1000, 3, None), (16000, 0, None), (31000, 0, True), (100000000, 1, None)])
    equal("ethernet: bytes with tags", tx[0]["bytes"], 3 * len(c.ethernet(v4)) + 4 + 8)
    equal("ethernet: CE marks", tx[0]["ce_packets"], 3)
    equal("ethernet: first seen", [r["first_seen_ms"] - ms for r in tx], [0, 0, 0, 100000000])
    equal("ethernet: interval", tx[1]["interval_ms"], 15000)
    equal("ethernet: remote queue pair", tx[0]["qp"], {"remote": 17})
    rx = flows_of(records, src="10.0.0.2")
    equal("ethernet: acknowledgements", [(r["direction"], r["ack_packets"], r["data_packets"],
                                          r["qp"]) for r in rx[:1]],
          [("rx", 2, 0, {"local": 19})])
    equal("ethernet: IPv6", [(r["flow"]["dst"], r["direction"]) for r in
                             flows_of(records, src="fd00::1")][:1], [("fd00::2", "tx")])
    other = flows_of(records, src="10.0.0.8")
    equal("ethernet: neither end is local", "direction" in other[0], False)
    equal("ethernet: bytes on the wire of a cut packet", other[0]["bytes"],
          len(c.ethernet(foreign)))
    equal("ethernet: no interface in a file", "interface" in other[0], False)
    stages = last_loss(records)
    equal("ethernet: packets received and processed",
          (stages["packets"]["received"], stages["packets"]["processed"]), (11, 8))
    equal("ethernet: drops", drops(stages["packets"]),
          {"no_tuple": 1, "cut_off": 1, "not_roce": 1})
    equal("ethernet: flows", [stages["flows"][k] for k in ("received", "processed", "pending")],
          [5, 4, 1])
    check_balance(records)


def test_cooked(replays):
    packet = c.udp("10.0.0.1", "10.0.0.2", 50000, c.bth(c.WRITE_ONLY, 17) + bytes(100))
    for name, link, frame in (("cooked", c.COOKED, c.cooked), ("cooked2", c.COOKED2, c.cooked2)):
        records = replays.records(f"{name}.pcap", c.capture(link, [
            (START, frame(packet, 4)), (START, frame(packet, 0)), (START, frame(packet, 3))]))
        equal(f"{name}: direction from the packet type, bytes as of Ethernet",
              [(r.get("direction"), r["data_packets"], r["bytes"]) for r in flows_of(records)],
              [("tx", 1, 14 + len(packet)), ("rx", 1, 14 + len(packet)),
               (None, 1, 14 + len(packet))])


def test_cap(replays):
    packets = [(START + i / 1000, c.ethernet(c.udp("10.0.0.1", "10.0.0.2", 50000 + i,
                                                   c.bth(c.WRITE_ONLY, 17)))) for i in range(10)]
    records = replays.records("cap.pcap", c.capture(c.ETHERNET, packets),
                              "host: h\nflows_max: 4\n")
    stage = last_loss(records)["packets"]
    equal("cap: packets of flows over it", (stage["processed"], drops(stage)),
          (4, {"table_full": 6}))
    check_balance(records)


def test_bad_input(replays):
    good = c.capture(c.ETHERNET, [(START, c.ethernet(c.udp("10.0.0.1", "10.0.0.2", 50000,
                                                           c.bth(c.WRITE_ONLY, 17))))] * 2)
    cut = replays.folder / "cut.pcap"
    cut.write_bytes(good[:-10])
    done = replays.run(cut, "host: h\n")
    equal("cut file: exit code", done.returncode, 65)
    check("cut file: named", b"cut.pcap" in done.stderr, done.stderr)
    equal("cut file: what was whole is kept", len(done.stdout.splitlines()), 2)
    text = replays.folder / "text.pcap"
    text.write_text("this is no capture, whatever it is called\n")
    done = replays.run(text, "host: h\n")
    equal("no capture: exit code and output", (done.returncode, done.stdout), (65, b""))
    done = replays.run(replays.folder / "absent.pcap", "host: h\n")
    equal("absent file: exit code", done.returncode, 66)
    check("absent file: named", b"absent.pcap" in done.stderr, done.stderr)
    whole = replays.folder / "whole.pcap"
    whole.write_bytes(good)
    equal("full disk: exit code", replays.run(whole, "host: h\n", "/dev/full").returncode, 74)
    equal("output that cannot be made", replays.run(whole, "host: h\n", "/nowhere/x").returncode,
          73)
    equal("an address that is none", replays.run(whole, "addresses: [10.0.0.300]\n").returncode,
          78)
    done = replays.run(HERE / "rxe.pcap", "host: h\n", preexec_fn=lambda: os.close(1))
    equal("closed output", done.returncode, 74)


def main():
    with tempfile.TemporaryDirectory() as folder:
        replays = Replays(folder)
        for test in (test_golden, test_ethernet, test_cooked, test_cap, test_bad_input):
            test(replays)
    return 1 if failures else 0


sys.exit(main())
