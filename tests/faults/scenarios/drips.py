# SPDX-License-Identifier: Apache-2.0
"""Peers that send a byte now and then: none is silent, and none ever comes to an end. That the deadline is that
of the frame, of the request and of the hello, and not of the last byte, had been tried of no running program.

Two drip to where records are taken, one its HELLO and one a frame after its WELCOME, one to the HTTP port of
each of the three, and one holds a place at the agent's socket. All are cut off, and counted; an honest peer is
heard meanwhile."""
import os
import select
import socket
import struct
import time

import honest
import kit
import rig
from kit import check, data, equal, number, record, until

FRAME_S, REQUEST_S, HELLO_S = 15, 60, 5  # receiver, HTTP, the agent's socket
EVERY_S = 0.5
SLACK_S = 10


class Drip:
    def __init__(self, name, s, text, allowed_s):
        self.name, self.socket, self.text, self.allowed_s = name, s, text, allowed_s
        self.begun, self.sent, self.cut_s = time.monotonic(), 0, None
        s.setblocking(False)

    def next(self):
        """The next byte, or the end."""
        try:
            if self.text:
                self.sent += self.socket.send(self.text[self.sent:self.sent + 1])
            while select.select([self.socket], [], [], 0)[0]:
                if not self.socket.recv(4096):
                    self.cut_s = time.monotonic() - self.begun
                    break
        except OSError:
            self.cut_s = time.monotonic() - self.begun


def tcp(port):
    return socket.create_connection(("127.0.0.1", port), timeout=rig.WAIT_S)


def drips(daemon, programs, path):
    hello = kit.frame(kit.HELLO, struct.pack(">BQB", kit.VERSION, 1, 4) + b"test" + b"x" * 60)
    welcome = kit.Peer(daemon.port, "dripping")
    equal("who drips later is welcome", welcome.answer[0], kit.WELCOME)
    frame = kit.frame(kit.DATA, struct.pack(">Q", 1) + bytes(1000))
    request = b"GET /healthz HTTP/1.1\r\nX-Slow: " + b"x" * 2000
    silent = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    silent.connect(os.fspath(path))
    return [Drip("a HELLO", tcp(daemon.port), hello, FRAME_S), Drip("a frame", welcome.socket, frame, FRAME_S),
            *(Drip(f"a request to {p.name}", tcp(p.http), request, REQUEST_S) for p in programs),
            Drip("a hello to the agent", silent, b"", HELLO_S)]


def judge(one):
    check(f"{one.name} is cut off after {one.cut_s:.1f} s and {one.sent} bytes",
          one.allowed_s - 1 < one.cut_s < rig.speed.limit(one.allowed_s + SLACK_S))


def run(folder):
    honest.own_network()
    path = folder / "nccl.sock"
    daemon = kit.daemon(folder)
    agent, poller = rig.Agent(folder, daemon), rig.Poller(folder, daemon)
    agent.config.write_text(agent.config.read_text() + f"nccl: {{socket: {path}}}\nrdma: {{enabled: false}}\n")
    programs = [daemon, poller, agent]
    try:
        for program in programs:
            program.start()
        until("the agent listens to jobs", path.exists)
        peer, sent = kit.Peer(daemon.port, "honest"), 0
        all_of_them = drips(daemon, programs, path)

        def all_cut():
            nonlocal sent
            for one in all_of_them:
                if one.cut_s is None:
                    one.next()
            sent += 1
            peer.send(record(kit.LOSS, number(1, 1) + data(2, "s") + data(3, "honest")))
            return peer.settled() and all(one.cut_s for one in all_of_them)

        if not until("all are cut off", all_cut, 2 * REQUEST_S, pause_s=EVERY_S):
            raise RuntimeError([one.name for one in all_of_them if one.cut_s is None])
        for one in all_of_them:
            judge(one)
        equal("counted where records are taken", daemon.metric("fabrictraced_connections_cut_off_total"), 2)
        for program in programs:
            name = f'{honest.PREFIX[program.name]}_http_cut_off_total{{reason="silent"}} '
            lines = [line for line in program.get("/metrics").splitlines() if line.startswith(name)]
            equal(f"counted by {program.name} over HTTP", [int(line.split()[1]) for line in lines], [1])
        equal("counted by the agent", agent.metric("fabrictrace_agent_nccl_refused_total"), 1)
        check(f"{sent} records of an honest peer were taken meanwhile", sent > REQUEST_S / EVERY_S / 4)
        peer.close()
        for program in reversed(programs):
            program.stop()
    finally:
        for program in programs:
            program.kill()
