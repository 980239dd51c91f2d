# SPDX-License-Identifier: Apache-2.0
"""Delays what leaves a switch by a port, without netem: nftables hands its packets to one end of a pair of
devices, a thread takes them at the other, and sends each by the port when its time has come. In order, and
as many as come: nothing is lost or paced."""
import collections
import select
import socket
import threading
import time

from lab.fabric import in_netns

ROCE, MARK = 4791, 0x64
QUEUE_BYTES = 4 << 20
FIRST, SECOND = "delay0", "delay1"
ETH_P_ALL, PACKET_OUTGOING = 3, 4


class Delay:
    def __init__(self, fabric, link, seconds):
        self.fabric, self.seconds = fabric, seconds
        self.switch, self.port = link
        for text in (f"link add {FIRST} type veth peer name {SECOND}", f"link set {FIRST} up", f"link set {SECOND} up"):
            fabric.run(self.switch, "ip", *text.split())
        self.taken = self._socket(SECOND)
        self.sent = self._socket(self.port, 0)
        self.sent.setblocking(True)  # a full queue waits instead of ending the thread
        self.sent.setsockopt(socket.SOL_SOCKET, socket.SO_MARK, MARK)
        self.wake, self.over = socket.socketpair()
        self.thread = threading.Thread(target=self._work, daemon=True)
        self.thread.start()
        fabric.run(self.switch, "nft", "-f", "-", text=(
            "table netdev delay {\n chain c {\n"
            f"  type filter hook egress device \"{self.port}\" priority 0;\n"
            f"  meta mark != {MARK} udp dport {ROCE} fwd to \"{FIRST}\"\n }}\n}}\n"))

    def _socket(self, device, protocol=ETH_P_ALL):
        made = in_netns(self.fabric.netns(self.switch), lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0))
        made.bind((device, protocol))
        made.setblocking(False)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, QUEUE_BYTES)
        return made

    def _take(self, queue):
        while True:
            try:
                frame, at = self.taken.recvfrom(65536)
            except BlockingIOError:
                return
            if at[2] != PACKET_OUTGOING:
                queue.append((time.monotonic() + self.seconds, frame))

    def _work(self):
        queue = collections.deque()
        while True:
            wait = max(0, queue[0][0] - time.monotonic()) if queue else None
            ready, _, _ = select.select([self.taken, self.wake], [], [], wait)
            if self.wake in ready:
                return
            self._take(queue)
            while queue and queue[0][0] <= time.monotonic():
                self.sent.send(queue.popleft()[1])

    def close(self):
        """What is held then is lost; cards send it again."""
        self.fabric.run(self.switch, "nft", "delete", "table", "netdev", "delay", check=False)
        self.over.send(b"x")
        self.thread.join()
        for s in (self.taken, self.sent, self.wake, self.over):
            s.close()
        self.fabric.run(self.switch, "ip", "link", "del", FIRST, check=False)
