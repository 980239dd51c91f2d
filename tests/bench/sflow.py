#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""fabrictrace-switchpoll beside other sFlow collectors: the same datagrams, one core for each.

Live: a source on one core offers datagrams over loopback at growing rates; the receiver has the
other core. What it took, what the kernel dropped and the CPU time are told, and for the poller
that received and counted drops are what was sent. From a capture file: CPU seconds until every
sample is folded (sfacctd: the same key). A collector that is not there is skipped, by name.

usage: sflow.py [--seconds S] [--samples N] [--rates R,R,..] [--keys N] [--turns N]
                [--only NAME,..]
Runs in the build folder. GOFLOW2, SFACCTD, SFCAPD and SFLOWTOOL name other programs."""
import argparse
import ctypes
import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

FLOOD = Path("tests/bench/flood").resolve()
COUNT = Path("tests/bench/count").resolve()
POLLER = Path("switchpoll/fabrictrace-switchpoll").resolve()
BUFFER = 4 << 20
CORE, SOURCE_CORE = "0", "1"
CAPTURED = 233333  # datagrams: 1.4 million samples by six
WAIT_S = 30


def free_port():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def socket_state(port):
    """(bytes waiting, datagrams dropped) of the socket bound to port; None without one."""
    for name in ("/proc/net/udp", "/proc/net/udp6"):
        for line in Path(name).read_text().splitlines()[1:]:
            field = line.split()
            if int(field[1].rsplit(":", 1)[1], 16) == port:
                return int(field[4].split(":")[1], 16), int(field[-1])
    return None


def until(condition, seconds=WAIT_S):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def program(variable, name):
    return os.environ.get(variable) or shutil.which(name) or shutil.which(f"/usr/sbin/{name}")


class Receiver:
    """A collector: command(folder, port) and, if it can read one, from_file(folder, capture)."""
    name = ""
    stop_signal = signal.SIGTERM

    def found(self):
        return True

    def folded(self, folder):
        """Samples in the output of the last run, None where it is not known."""
        return None


class Counter(Receiver):
    name = "counts only"

    def command(self, _folder, port):
        return [COUNT, str(port), str(BUFFER)]


class Poller(Receiver):
    name = "fabrictrace"

    def command(self, folder, port):
        (folder / "poller.yaml").write_text(
            f'listen: "127.0.0.1:{port}"\nhttp: "off"\nreceive_buffer: {BUFFER}\n'
            f'fold_entries: {ARGS.entries}\nlog.level: error\n')
        return [POLLER, "-c", folder / "poller.yaml", "--output", folder / "out.ndjson"]

    def from_file(self, folder, capture):
        return self.command(folder, 1) + ["--replay", capture]

    def loss(self, folder):
        with open(folder / "out.ndjson", "rb") as f:
            f.seek(max(0, f.seek(0, os.SEEK_END) - 16384))
            last = json.loads(f.read().splitlines()[-1])
        return {s["name"]: s for s in last["stages"]}

    def folded(self, folder):
        return self.loss(folder)["samples"]["processed"]


class Sfacctd(Receiver):
    """untuned: its own buffer sizes, with which it loses records between its processes."""
    stop_signal = signal.SIGINT

    def __init__(self, tuned):
        self.tuned, self.name = tuned, "sfacctd, large pipe" if tuned else "sfacctd"
        self.program = program("SFACCTD", "sfacctd")

    def found(self):
        return self.program

    def command(self, folder, port, capture=None):
        source = f"pcap_savefile: {capture}" if capture else (
            f"sfacctd_ip: 127.0.0.1\nsfacctd_port: {port}\nsfacctd_pipe_size: {BUFFER}")
        tuned = "plugin_pipe_size: 67108864\nplugin_buffer_size: 65536\n" if self.tuned else ""
        (folder / "sfacctd.conf").write_text(
            f"daemonize: false\n{source}\nplugins: print\nprint_refresh_time: 60\n"
            "aggregate: peer_src_ip,src_host,dst_host,src_port,dst_port,proto,in_iface,out_iface\n"
            f"print_output: csv\nprint_output_file: {folder}/sfacctd.csv\n{tuned}")
        (folder / "sfacctd.csv").unlink(missing_ok=True)
        return [self.program, "-f", folder / "sfacctd.conf"]

    def from_file(self, folder, capture):
        return self.command(folder, 0, capture)

    def folded(self, folder):
        try:
            lines = (folder / "sfacctd.csv").read_text().splitlines()[1:]
        except FileNotFoundError:
            return None
        return sum(int(line.split(",")[-2]) for line in lines)


class Sfcapd(Receiver):
    name = "sfcapd"

    def found(self):
        return program("SFCAPD", "sfcapd")

    def command(self, folder, port):
        (folder / "nf").mkdir(exist_ok=True)
        return [self.found(), "-b", "127.0.0.1", "-p", str(port), "-w", folder / "nf", "-B", str(BUFFER)]


class Goflow2(Receiver):
    name = "goflow2"

    def found(self):
        return program("GOFLOW2", "goflow2")

    def command(self, _folder, port):
        # Two threads on the one core: with one, its reader starves behind its own decoder.
        return ["env", "GOMAXPROCS=2", self.found(), "-listen", f"sflow://127.0.0.1:{port}", "-addr", "",
                "-format", "json", "-transport", "file", "-transport.file", "/dev/null"]


class Sflowtool(Receiver):
    name = "sflowtool -l"

    def found(self):
        return program("SFLOWTOOL", "sflowtool")

    def command(self, _folder, port):
        return [self.found(), "-l", "-p", str(port)]

    def from_file(self, _folder, capture):
        return [self.found(), "-l", "-r", capture]


def cpu_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def reap(process, poke_port=0):
    """Waits for all that a collector left behind: they are ours, as their sub-reaper. pmacct ends
    with the next datagram only, hence the poke."""
    end = time.monotonic() + WAIT_S
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        while True:
            try:
                pid, _ = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid:
                continue
            if poke_port:
                s.sendto(b"end", ("127.0.0.1", poke_port))
            if time.monotonic() > end:
                os.killpg(process.pid, signal.SIGKILL)
            time.sleep(0.05)


def start(command):
    return subprocess.Popen(["taskset", "-c", CORE, *map(str, command)], stdout=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, start_new_session=True)


def flood(*arguments):
    out = subprocess.run(["taskset", "-c", SOURCE_CORE, FLOOD, "-s", str(ARGS.samples), "-k",
                          str(ARGS.keys), *map(str, arguments)], check=True, capture_output=True, text=True)
    sent, seconds = out.stdout.split()
    return int(sent), float(seconds)


def live(receiver, rate, folder):
    """One run: offered/s, received/s, CPU microseconds a datagram; prints a row."""
    port = free_port()
    process = start(receiver.command(folder, port))
    if not until(lambda: socket_state(port)):
        os.killpg(process.pid, signal.SIGKILL)
        reap(process)
        return print(f"{receiver.name:20} did not start", flush=True)
    flood_cpu = cpu_seconds()
    count = int((rate or 1_000_000) * ARGS.seconds)
    sent, seconds = flood("-n", count, "-r", rate, "-p", port)
    flood_cpu = cpu_seconds() - flood_cpu
    began = time.monotonic()
    until(lambda: socket_state(port)[0] == 0)
    seconds += time.monotonic() - began
    drops = socket_state(port)[1]
    before = cpu_seconds()
    os.killpg(process.pid, receiver.stop_signal)
    reap(process, port if isinstance(receiver, Sfacctd) else 0)
    used = cpu_seconds() - before
    received = sent - drops
    row = {"offered": sent / seconds, "received": received / seconds, "cpu_us": used / received * 1e6}
    folded = receiver.folded(folder)
    note = "" if folded is None else f"{100 * folded / (received * ARGS.samples):.2f} % folded"
    if isinstance(receiver, Poller):
        loss = receiver.loss(folder)["datagrams"]
        lost = sum(d["count"] for d in loss.get("drops", []))
        exact = loss["received"] == sent and loss["received"] == loss["processed"] + lost
        note += ", accounted to the last" if exact else f", NOT ACCOUNTED: sent {sent}, {loss}"
    print(f"{receiver.name:20} {row['offered']:10.0f} {row['received']:10.0f} {row['cpu_us']:8.2f} "
          f"{row['received'] * ARGS.samples:12.0f}  {note}", flush=True)
    return row


def from_file(receiver, capture, folder):
    """One reading: CPU seconds of all its processes and the share of the samples it folded, None
    where that is not known; prints a row. On one core, where sfacctd's two processes use less than
    on two."""
    before = cpu_seconds()
    reap(start(receiver.from_file(folder, capture)))
    used = cpu_seconds() - before
    folded = receiver.folded(folder)
    samples = CAPTURED * ARGS.samples
    note = "" if folded is None else f"{100 * folded / samples:.1f} % folded"
    print(f"{receiver.name:20} {used:8.3f} s CPU  {used / samples * 1e9:8.0f} ns/sample  {note}", flush=True)
    return used, None if folded is None else folded / samples


def files(receivers, folder):
    """Each reads the same capture, in turns. The least of each counts, since what else the machine
    does only ever adds; of those that folded everything, where there are any."""
    capture = folder / "capture.pcap"
    flood("-n", CAPTURED, "-r", 10000, "-w", capture)
    readers = [r for r in receivers if hasattr(r, "from_file")]
    turns = [{r.name: from_file(r, capture, folder) for r in readers} for _ in range(ARGS.turns)]
    used = {}
    for r in readers:
        runs = [turn[r.name] for turn in turns]
        used[r.name] = min([u for u, share in runs if share == 1] or [u for u, _ in runs])
    for name, seconds in used.items():
        line = f"from a file: {name}: {seconds:.3f} s, {seconds / (CAPTURED * ARGS.samples) * 1e9:.0f} ns/sample"
        if "fabrictrace" in used:
            line += f", {seconds / used['fabrictrace']:.1f} x the poller's"
        print(line)


def compare(runs, receivers):
    """The best of each receiver's runs at a rate, for the reason that files() gives."""
    for rate in dict.fromkeys(rate for rate, _ in runs):
        best = {name: (max(row["received"] for row in rows), min(row["cpu_us"] for row in rows))
                for (at, name), rows in runs.items() if at == rate}
        ours = best.get("fabrictrace")
        for r in receivers:
            if ours and r.name in best and r.name != "fabrictrace":
                received, cpu_us = best[r.name]
                print(f"offered {rate or 'all'}: {received:.0f}/s and {cpu_us:.2f} us by {r.name}: the poller takes "
                      f"{ours[0] / received:.2f} x as many, for {cpu_us / ours[1]:.2f} x less CPU each")


def main():
    receivers = [Counter(), Poller(), Sfacctd(False), Sfacctd(True), Sfcapd(), Goflow2(), Sflowtool()]
    only = ARGS.only.split(",") if ARGS.only else None
    receivers = [r for r in receivers if not only or r.name in only]
    for r in receivers:
        if not r.found():
            print(f"SKIP {r.name}: not installed")
    receivers = [r for r in receivers if r.found()]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        best = {}
        print(f"{ARGS.samples} samples a datagram, {ARGS.keys} keys, {ARGS.seconds} s each")
        print(f"{'live':20} {'offered/s':>10} {'received/s':>10} {'us CPU':>8} {'samples/s':>12}")
        for rate in [int(r) for r in ARGS.rates.split(",") if r]:
            for r in receivers:
                row = live(r, rate, folder)
                if row:
                    best.setdefault((rate, r.name), []).append(row)
        compare(best, receivers)
        if ARGS.turns:
            files(receivers, folder)


parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
parser.add_argument("--seconds", type=float, default=5)
parser.add_argument("--samples", type=int, default=6)
parser.add_argument("--keys", type=int, default=1126)
parser.add_argument("--entries", type=int, default=262144, help="fold_entries of the poller")
parser.add_argument("--rates", default="50000,0,0,0", help="datagrams/s; 0: as fast as it goes; one given twice is run twice, the better run counts; "
                    "empty: no live runs")
parser.add_argument("--turns", type=int, default=3, help="how often each reads the capture; 0: never")
parser.add_argument("--only", help="names of collectors")
ARGS = parser.parse_args()
if os.cpu_count() < 2:
    sys.exit("SKIP: needs two cores, one for the source")
if ctypes.CDLL(None).prctl(36, 1, 0, 0, 0) != 0:  # PR_SET_CHILD_SUBREAPER
    sys.exit("no sub-reaper: CPU times would be wrong")
main()
