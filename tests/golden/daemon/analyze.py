#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""fabrictrace analyze: the lab's capture in every packing, as text and as records; what is no capture
of sFlow, and how it ends. FT_WRITE_GOLDEN=1 writes the expected text anew."""
import gzip
import json
import os
import signal
import struct
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path

sys.dont_write_bytecode = True
import rig  # noqa: E402
from rig import check, equal, until  # noqa: E402

TOOL = Path("cli/fabrictrace").resolve()
CAPTURE, TOPOLOGY = rig.LAB / "sflow.pcap", rig.LAB / "topology.yaml"
ENV = {**{k: v for k, v in os.environ.items() if not k.startswith("FABRICTRACE_")}, "TZ": "UTC"}


def analyze(*words, **how):
    return rig.run(TOOL, "analyze", *words, env=ENV, cwd=rig.LAB, **how)


def as_pcapng(pcap):
    """The same packets, block by block."""
    def block(kind, body):
        body += bytes(-len(body) % 4)
        return struct.pack("<II", kind, len(body) + 12) + body + struct.pack("<I", len(body) + 12)

    link, at = struct.unpack_from("<I", pcap, 20)[0], 24
    out = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
    out += block(1, struct.pack("<HHI", link, 0, 0))
    while at < len(pcap):
        seconds, micros, captured, wire = struct.unpack_from("<IIII", pcap, at)
        when = seconds * 1000000 + micros
        out += block(6, struct.pack("<IIIII", 0, when >> 32, when & 0xFFFFFFFF, captured, wire)
                     + pcap[at + 16:at + 16 + captured])
        at += 16 + captured
    return out


def chain(*topology):
    """What poller and daemon make of it, without the tool."""
    own = ["--set", "source_id=analyze"]
    poller = subprocess.Popen(
        [rig.POLLER, *rig.NO_CONFIG, *own, "--replay", CAPTURE, "--output", "-"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    daemon = subprocess.run(
        [rig.DAEMON, *rig.NO_CONFIG, *own, *topology, "--replay", "-", "--sink", "file:-"],
        stdin=poller.stdout, capture_output=True, text=True, timeout=300)
    poller.stdout.close()
    equal("exit codes of the programs alone", (poller.wait(timeout=300), daemon.returncode), (0, 0))
    return daemon.stdout


def test_text(folder):
    done = analyze("sflow.pcap", "--topology", "topology.yaml")
    equal("exit status, and nothing but the result", (done.returncode, done.stderr), (0, ""))
    expected = rig.LAB / "analyze.txt"
    if os.environ.get("FT_WRITE_GOLDEN"):
        expected.write_text(done.stdout)
    equal("the text", done.stdout, expected.read_text())
    truth = json.loads((rig.LAB / "truth.json").read_text())
    data = sum(row["role"] == "data" for row in truth)
    check("its flows are the kernel's", f"\n{data} flows: {data} resolved\n" in done.stdout)
    alone = analyze("sflow.pcap")
    equal("a fabric learnt from the samples", (alone.returncode, alone.stderr), (0, ""))
    check("has its switches", "switch 172.31.1.7 came" in alone.stdout, alone.stdout)


def test_records(folder):
    for what, words, set_ in (
            ("with a topology", ("--topology", "topology.yaml"), ("--topology", TOPOLOGY)),
            ("without one", (), ("--set", "topology="))):
        done = analyze("sflow.pcap", "--json", *words)
        equal(f"{what}: exit status", (done.returncode, done.stderr), (0, ""))
        equal(f"{what}: the records of the programs themselves, to the byte", done.stdout,
              chain(*set_))


def test_packings(folder):
    want = analyze("sflow.pcap", "--json").stdout
    bytes_ = CAPTURE.read_bytes()
    files = {"x.pcap.gz": gzip.compress(bytes_), "x.pcapng": as_pcapng(bytes_),
             "- no sflow.pcap": bytes_, "x.pcapng.gz": gzip.compress(as_pcapng(bytes_))}
    for name, content in files.items():
        (folder / name).write_bytes(content)
    subprocess.run(["zstd", "-q", CAPTURE, "-o", folder / "x.pcap.zst"], check=True)
    for name in [*files, "x.pcap.zst"]:
        done = analyze("--json", "--", folder / name)
        equal(f"{name}: exit status", (done.returncode, done.stderr), (0, ""))
        check(f"{name}: the same records", done.stdout == want)
    done = analyze("-", "--json", input=bytes_, stdin=None, text=False)
    check("standard input: the same records", done.stdout.decode() == want, done.stderr)


def test_what_is_no_sflow(folder):
    bytes_ = CAPTURE.read_bytes()
    first = 16 + struct.unpack_from("<I", bytes_, 32)[0]
    other = bytearray(bytes_[:24 + first])
    port = other.index(struct.pack(">H", 6343), 40 + 14)
    other[port:port + 2] = struct.pack(">H", 6344)
    wrong = bytearray(bytes_[:24 + first])
    version = wrong.index(struct.pack(">II", 5, 1), 40 + 14)
    wrong[version + 3] = 4
    for name, content, code, text in (
            ("empty", b"", 65, "no capture file: it is empty"),
            ("text", b"I am not a capture\n" * 9, 65, "no capture file: unknown file format"),
            ("header", bytes_[:24], 65, "the capture is empty: it has no packet"),
            ("port", bytes(other), 65, "no sFlow: no packet of the capture goes to UDP port 6343"),
            ("version", bytes(wrong), 65,
             "no sFlow: nothing that goes to UDP port 6343 can be read as sFlow v5"),
            ("missing", None, 66, "No such file or directory"),
            ("folder", "", 66, "Is a directory")):
        file = folder / name
        if content == "":
            file.mkdir()
        elif content is not None:
            file.write_bytes(content)
        for more in ((), ("--json",)):
            done = analyze(file, *more)
            equal(f"{name} {more}", (done.returncode, done.stderr),
                  (code, f"fabrictrace analyze: {file}: {text}\n"))
            schemas = {r["schema"] for r in rig.records_of(done.stdout)}
            check(f"{name} {more}: no result", schemas <= {"fabrictrace.loss.v1"}, schemas)
    (folder / "cut").write_bytes(bytes_[:len(bytes_) // 2])
    done = analyze("-", input=bytes_[:len(bytes_) // 2], stdin=None, text=False)
    equal("cut off: standard input is named once", (done.returncode, done.stderr.count(b"standard input: ")), (65, 1))
    done = analyze(folder / "cut")
    equal("cut off: exit status", done.returncode, 65)
    check("and what is before is analyzed", "sFlow datagrams, " in done.stdout
          and "the file is truncated" in done.stderr, (done.stdout, done.stderr))
    done = analyze("sflow.pcap", "--topology", folder / "missing")
    equal("no topology", (done.returncode, done.stdout, done.stderr),
          (66, "", f"fabrictrace analyze: {folder / 'missing'}: No such file or directory\n"))
    done = analyze("sflow.pcap", "--topology", folder / "text")
    equal("a topology that is none: exit status", (done.returncode, done.stdout), (78, ""))
    check("and where it is wrong", f"{folder / 'text'}:1" in done.stderr, done.stderr)
    for words in ((), ("a", "b"), ("sflow.pcap", "--endpoint", "a:1")):
        equal(f"usage: {words}", analyze(*words).returncode, 64)
    with open("/dev/full", "w") as full:
        for more in ((), ("--json",)):
            done = subprocess.run([TOOL, "analyze", CAPTURE, *more], stdout=full,
                                  stderr=subprocess.PIPE, text=True, timeout=300)
            equal(f"a full disk {more}: exit status", done.returncode, 74)


def look_back(endpoint, records):
    """--at gives the records of that window, and names it."""
    def at(command, *words):
        return rig.run(TOOL, command, *words, "--endpoint", endpoint, env=ENV)

    for start in sorted({r["window_start_ms"] for r in rig.of_kind(records, "link")}):
        for command, kind in (("links", "link"), ("imbalance", "imbalance")):
            want = [r for r in rig.of_kind(records, kind) if r["window_start_ms"] == start]
            got = rig.records_of(at(command, "--at", f"@{start // 1000 + 7}", "--json").stdout)
            order = lambda r: json.dumps(r, sort_keys=True)  # noqa: E731
            equal(f"{command} --at {start}: the records of then", sorted(map(order, got)),
                  sorted(map(order, want)))
    second = "2026-11-20T22:35:03Z"
    for command in ("links", "imbalance", "collisions", "events"):
        done = at(command, "--at", second)
        check(f"{command} --at names its window",
              ", window 2026-11-20 22:35:00 to 2026-11-20 22:35:10" in done.stdout, done)
    stood = {r["subject"] for r in rig.of_kind(records, "event") if r["kind"] == "collision"}
    got = rig.records_of(at("collisions", "--at", second, "--json").stdout)
    equal("the collision of then", {r["subject"] for r in got}, stood)
    equal("and none before", at("collisions", "--at", "2026-11-20T22:34:55Z", "--json").stdout, "")
    victim = got[0]["evidence"]["victims"][0]["flow"]
    flow = f"[{victim['src']}]:{victim['sport']}-[{victim['dst']}]"
    done = at("paths", "--flow", flow, "--at", second)
    check("its victim's path of then", "2026-11-20 22:35:00" in done.stdout
          and "leaf2 Ethernet54 > spine4" in done.stdout, done)
    for when in ("2026-11-20T22:35:20Z", "2026-11-20T22:34:49Z", "-1m"):
        done = at("links", "--at", when)
        equal(f"no window of {when}: exit status", (done.returncode, done.stdout), (64, ""))
        check("and which there are", "its windows are from 2026-11-20 22:34:50 to 2026-11-20 22:35:20"
              in done.stderr, done.stderr)


def test_serve(folder):
    process = subprocess.Popen([TOOL, "analyze", "--json", "--serve", CAPTURE, "--topology", TOPOLOGY],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENV)
    lines, said = [], []
    readers = [threading.Thread(target=lambda to, of: to.extend(iter(of.readline, "")), args=pair,
                                daemon=True)
               for pair in ((lines, process.stdout), (said, process.stderr))]
    try:
        for reader in readers:
            reader.start()
        until("it says how it ends", lambda: any("Ctrl-C" in line for line in said))
        page = said[0].split()[1]

        def get(path):
            with urllib.request.urlopen(page + path, timeout=rig.WAIT_S) as answer:
                return answer.read().decode()

        equal("it is ready", get("readyz"), "ok\n")
        answer = json.loads(get("api/v1/imbalance"))
        last = [r for r in rig.of_kind(map(json.loads, lines), "imbalance")][-1]
        equal("its last window is that of the records", answer["window_end_ms"],
              last["window_end_ms"])
        equal("and so are all its windows", len(json.loads(get("api/v1/windows"))["records"]), 3)
        done = rig.run(TOOL, "paths", "--endpoint", page[7:-1], "--state", "resolved", "--json")
        equal("the other commands read it", (done.returncode, len(done.stdout.splitlines())),
              (0, 37))
        look_back(page[7:-1], [json.loads(line) for line in lines])
        process.send_signal(signal.SIGINT)
        equal("Ctrl-C ends it", process.wait(timeout=rig.WAIT_S), 0)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


def test_two_serve(folder):
    """The first finds the usual port free, and needs it only after the second."""
    words = ("--json", "--serve", "--topology", TOPOLOGY)
    how = {"stdin": subprocess.PIPE, "stdout": subprocess.DEVNULL, "env": ENV}
    with open(folder / "first", "wb") as said, open(folder / "second", "wb") as also:
        first = subprocess.Popen([TOOL, "analyze", *words, "-"], stderr=said, **how)
        second = None
        try:
            until("its programs run", lambda: len(Path(
                f"/proc/{first.pid}/task/{first.pid}/children").read_text().split()) == 2)
            second = subprocess.Popen([TOOL, "analyze", *words, CAPTURE], stderr=also, **how)
            until("the second serves", lambda: "Ctrl-C" in (folder / "second").read_text())
            first.stdin.write(CAPTURE.read_bytes())
            first.stdin.close()
            until("the first serves", lambda: "Ctrl-C" in (folder / "first").read_text())
            pages = {(folder / name).read_text().split()[1] for name in ("first", "second")}
            equal("pages of their own", len(pages), 2)
            for process in (first, second):
                process.send_signal(signal.SIGINT)
                equal("Ctrl-C ends it", process.wait(timeout=rig.WAIT_S), 0)
        finally:
            for process in filter(None, (first, second)):
                if process.poll() is None:
                    process.kill()
                process.wait()


def test_interrupted(folder):
    """While it reads a capture that does not come."""
    process = subprocess.Popen([TOOL, "analyze", "-"], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        until("its programs run", lambda: len(list(
            Path(f"/proc/{process.pid}/task/{process.pid}").glob("children"))) and len(
                Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()) == 2)
        process.send_signal(signal.SIGINT)
        equal("Ctrl-C while it reads", (process.wait(timeout=rig.WAIT_S), process.stdout.read()),
              (130, ""))
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


if __name__ == "__main__":
    sys.exit(rig.run_tests(test_text, test_records, test_packings, test_what_is_no_sflow, test_serve,
                           test_two_serve, test_interrupted))
