#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""fabrictrace events --follow and explain against the daemon as it runs: collisions that stand, that
end when their flows do, and that begin again; SIGINT, a closed pipe and a daemon that goes."""
import json
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

sys.dont_write_bytecode = True
import rig  # noqa: E402
import sflow  # noqa: E402
from rig import check, equal, until  # noqa: E402

TOOL = Path("cli/fabrictrace").resolve()
TOPOLOGY = (rig.LAB / "topology.yaml").read_text()


class Traffic(threading.Thread):
    """The capture's datagrams again and again, while .on."""

    def __init__(self, poller):
        super().__init__(daemon=True)
        self.poller, self.on, self.ended = poller, threading.Event(), False
        self.payloads = [p for _, p in sflow.datagrams((rig.LAB / "sflow.pcap").read_bytes())][:40]

    def run(self):
        number = 0
        while not self.ended:
            if not self.on.wait(0.1):
                continue
            for payload in self.payloads:
                number += 1
                self.poller.send(payload[:16] + number.to_bytes(4, "big")
                                 + (1000 * number).to_bytes(4, "big") + payload[24:])
                time.sleep(0.005)


class Follower:
    def __init__(self, daemon, *words):
        self.lines, self.errors = [], []
        self.process = subprocess.Popen(
            [TOOL, "events", "--follow", "--interval", "1", *words, "--endpoint",
             f"127.0.0.1:{daemon.http}"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.readers = [threading.Thread(target=self.read, args=pair, daemon=True)
                        for pair in ((self.lines, self.process.stdout),
                                     (self.errors, self.process.stderr))]
        for reader in self.readers:
            reader.start()

    @staticmethod
    def read(into, stream):
        for line in stream:
            into.append(line)

    def end(self, what, number):
        self.process.send_signal(number)
        equal(f"{what}: exit status", self.process.wait(timeout=rig.WAIT_S), 0)
        for reader in self.readers:
            reader.join()


def keys(lines):
    """(subject, whether it is over) of each line of JSON."""
    return [(r["subject"], r.get("cleared", False)) for r in map(json.loads, lines)]


def test_events(folder):
    daemon = rig.Daemon(folder, TOPOLOGY).start()
    poller = rig.Poller(folder, daemon).start()
    traffic = Traffic(poller)
    traffic.start()
    started = []
    try:
        traffic.on.set()
        until("a collision stands", lambda: json.loads(daemon.get("/api/v1/collisions"))["total"])
        follower = Follower(daemon, "--json", "--kind", "collision")
        text = Follower(daemon, "--kind", "collision")
        started += [follower, text]
        until("what stands is printed", lambda: follower.lines and text.lines)
        subject = keys(follower.lines)[0][0]
        done = subprocess.run([TOOL, "explain", subject, "--endpoint", f"127.0.0.1:{daemon.http}"],
                              capture_output=True, text=True, timeout=rig.WAIT_S)
        check("explain of its link", done.returncode == 0 and "Flows" in done.stdout
              and subject.replace("/", " ") in done.stdout, (done.stdout, done.stderr))
        # One that reads a line and goes.
        gone = Follower.__new__(Follower)
        gone.process = subprocess.Popen(
            [TOOL, "events", "--follow", "--endpoint", f"127.0.0.1:{daemon.http}"],
            stdout=subprocess.PIPE)
        started.append(gone)
        gone.process.stdout.readline()
        gone.process.stdout.close()
        equal("a closed pipe ends it", gone.process.wait(timeout=rig.WAIT_S), 0)
        traffic.on.clear()
        until("its end is printed", lambda: (subject, True) in keys(follower.lines))
        until("and as text", lambda: any(" over " in line for line in text.lines))
        traffic.on.set()
        until("one begins anew", lambda: keys(follower.lines)[-1][1] is False)
        got = keys(follower.lines)
        wrong = [key for i, key in enumerate(got) if key[1] is dict(got[:i]).get(key[0], True)]
        check("of each subject beginning and end alternate", not wrong, got)
        daemon.stop()
        until("a daemon that goes is reported", lambda: follower.errors)
        printed = len(follower.lines)
        daemon.start()
        until("the next daemon's events are printed", lambda: len(follower.lines) > printed)
        follower.end("SIGINT, JSON", signal.SIGINT)
        equal("the daemon that went was reported once",
              sum("does not answer" in line for line in follower.errors), 1)
        text.end("SIGINT, text", signal.SIGINT)
    finally:
        traffic.ended = True
        traffic.join()
        for follower in started:
            if follower.process.poll() is None:
                follower.process.kill()
                follower.process.wait()
        poller.kill()
        daemon.kill()


class Ending(threading.Thread):
    """A daemon without events that ends in the middle of its second answer, and is there again."""

    def __init__(self):
        super().__init__(daemon=True)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.http, self.asked = self.listener.getsockname()[1], 0
        self.start()

    def run(self):
        whole = b'{"window_end_ms": 1, "records": []}'
        while True:
            peer = self.listener.accept()[0]
            request = b""
            while b"\r\n\r\n" not in request:
                request += peer.recv(65536)
            body = whole[:9] if self.asked == 1 else whole
            peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n"
                         b"Content-Length: %d\r\n\r\n" % len(whole) + body)
            peer.close()
            self.asked += 1


def test_cut_off(folder):
    daemon = Ending()
    follower = Follower(daemon)
    try:
        until("it asks on after an answer that was cut off", lambda: daemon.asked > 3)
        follower.end("SIGINT after that", signal.SIGINT)
        equal("it was reported once", len([line for line in follower.errors if "cut off" in line]), 1)
    finally:
        if follower.process.poll() is None:
            follower.process.kill()


def test_no_daemon(folder):
    port = rig.free_port()
    done = subprocess.run([TOOL, "events", "--follow", "--endpoint", f"127.0.0.1:{port}"],
                          capture_output=True, text=True, timeout=rig.WAIT_S)
    equal("without a daemon at the start", (done.returncode, done.stdout), (69, ""))


if __name__ == "__main__":
    sys.exit(rig.run_tests(test_events, test_cut_off, test_no_daemon))
