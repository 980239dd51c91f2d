# SPDX-License-Identifier: Apache-2.0
"""A wire between programs of one network namespace, on which packets are lost, late, in another order or
not carried at all. The kernel's own (netem) is not in every kernel.

A TUN device has the address NEAR. What is sent to FAR comes out of it here, and goes back with both
addresses exchanged: as sent by FAR to NEAR. Checksums are sums, so they stay right. Whoever connects
to FAR reaches a program that listens at NEAR, and all packets between the two pass here."""
import fcntl
import heapq
import os
import select
import struct
import subprocess
import threading
import time
from collections import Counter

import kit

NEAR, FAR = "10.98.0.1", "10.98.0.2"
DEVICE = "wire0"
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 1, 0x1000
MTU = 60000  # no datagram is sent in parts
PACKETS = 2000  # that wait for a moment
IDLE_S = 1.0
TCP, UDP = 6, 17


class Wire(threading.Thread):
    """Until end(). What it does to packets is set by bend()."""

    def __init__(self, rng):
        super().__init__()
        if not os.path.exists("/dev/net/tun"):
            raise kit.Skipped("needs /dev/net/tun")
        self.rng, self.over, self.error = rng, threading.Event(), None
        self.bend()
        self.waiting, self.order = [], 0
        self.count, self.lost = Counter(), []  # payloads of UDP that were not carried
        self.tun = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        fcntl.ioctl(self.tun, TUNSETIFF, struct.pack("16sH", DEVICE.encode(), IFF_TUN | IFF_NO_PI))
        for words in (f"addr add {NEAR}/30 dev {DEVICE}", f"link set {DEVICE} mtu {MTU} up"):
            subprocess.run(["ip", *words.split()], check=True)
        self.start()

    def bend(self, loss=0.0, delay_s=0.0, tcp_s=0.0, udp_s=0.0, cut=False):
        """tcp_s, udp_s: how much later than delay_s a packet may be, so that others overtake it."""
        self.loss, self.delay_s, self.cut = loss, delay_s, cut
        self.later_s = {TCP: tcp_s, UDP: udp_s}

    def run(self):
        try:
            while not self.over.is_set():
                self.carry()
        except Exception as error:  # told by end()
            self.error = error

    def carry(self):
        wait = max(0.0, self.waiting[0][0] - time.monotonic()) if self.waiting else IDLE_S
        select.select([self.tun], [], [], min(wait, IDLE_S))
        try:
            while True:
                self.take(os.read(self.tun, MTU + 100))
        except BlockingIOError:
            pass
        while self.waiting and self.waiting[0][0] <= time.monotonic():
            os.write(self.tun, heapq.heappop(self.waiting)[2])

    def take(self, packet):
        if packet[0] >> 4 != 4:
            return  # the kernel's own, of IPv6
        kind, head = packet[9], 4 * (packet[0] & 15)
        fate = "cut" if self.cut else "lost" if self.rng.random() < self.loss else "carried"
        if fate == "carried" and len(self.waiting) >= PACKETS:
            fate = "lost"
        self.count[fate] += 1
        if fate != "carried":
            if kind == UDP:
                self.lost.append(packet[head + 8:])
            return
        due = time.monotonic() + self.delay_s + self.rng.random() * self.later_s.get(kind, 0.0)
        self.order += 1
        back = packet[:12] + packet[16:20] + packet[12:16] + packet[20:]
        heapq.heappush(self.waiting, (due, self.order, back))

    def end(self):
        self.over.set()
        self.join()
        os.close(self.tun)
        kit.check("the wire carries to the end", not self.error, repr(self.error))
