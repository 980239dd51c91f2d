#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What rates by packet numbers (PSN) cost the poller: instructions of two builds on the same samples.

42,000 samples of RoCEv2 in 6,000 datagrams of 8 switches, of 300 flows that three switches see each:
folded over a minute, over a second where each sum has three samples and is written as a line of JSON,
and of as many sums each of which has one sample.

usage: psn_cost.py POLLER...    the first is what the others are compared with; needs valgrind"""
import os
import random
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "golden" / "switchpoll"))
import make_captures as c  # noqa: E402

FLOWS, SWITCHES, HOPS = 300, 8, 3
DATAGRAMS, SAMPLES = 6000, 7
RATE = 2048
FRAME = 4170
FIRST, MIDDLE = 0x06, 0x07  # of an RDMA WRITE


def seconds(rng, each):
    """Endlessly (flow, switch) a second, `each` times."""
    while True:
        one = [(flow, (flow + hop) % SWITCHES) for flow in range(FLOWS) for hop in range(HOPS)] * each
        rng.shuffle(one)
        yield one


def capture(each, ip=c.udp):
    """A pcap file of datagrams in which a sum of a second has so many samples; ip makes their packets."""
    rng = random.Random(1)
    psn = [rng.getrandbits(24) for _ in range(FLOWS)]
    sequence, sources, waiting, out = [0] * SWITCHES, [0] * SWITCHES, [[] for _ in range(SWITCHES)], []
    for second, samples in enumerate(seconds(rng, each)):
        for number, (flow, switch) in enumerate(samples):
            at = second + number / len(samples)
            psn[flow] = (psn[flow] + rng.randrange(2 * RATE)) % 2**24
            head = bytearray(c.bth(MIDDLE if rng.random() < 0.9 else FIRST, 17 + flow))
            head[8:] = psn[flow].to_bytes(4, "big")
            packet = ip(f"10.0.{flow >> 6}.{flow & 63}", f"10.1.{flow >> 5}.{flow & 31}", 49152 + flow,
                        bytes(head) + bytes(FRAME - 58))
            sources[switch] += 1
            waiting[switch].append(c.flow_sample(sources[switch], (0, 1 + flow % 16), 1 + flow % 16, 49 + flow % 4,
                                                 [c.raw_header(c.ethernet(packet)[:128], FRAME)], rate=RATE))
            if len(waiting[switch]) == SAMPLES:
                sequence[switch] += 1
                out.append((at, c.datagram(f"192.0.2.{switch + 1}", sequence[switch], int(at * 1000), waiting[switch])))
                waiting[switch] = []
                if len(out) == DATAGRAMS:
                    return c.pcap(c.ETHERNET, out)
    raise AssertionError


def instructions(poller, file, fold, folder, settings=()):
    profile = folder / "callgrind.out"
    done = subprocess.run(
        ["valgrind", "--tool=callgrind", f"--callgrind-out-file={profile}", poller, "-c", os.devnull, "--set",
         f"fold_interval={fold}", "--set", "source_id=bench", *settings, "--replay", file, "--output", "/dev/null"],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=True)
    return int(re.search(r"Collected : (\d+)", done.stderr)[1])


def main(pollers):
    if not pollers:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for each in (1, 3):
            (folder / f"{each}.pcap").write_bytes(capture(each))
        for what, each, fold in (("a minute", 3, "60s"), ("a second, three samples a sum", 3, "1s"),
                                 ("a second, one sample a sum", 1, "1s")):
            counts = [instructions(poller, folder / f"{each}.pcap", fold, folder) for poller in pollers]
            print(f"{what}: " + ", ".join(f"{count / 1e6:.1f}" for count in counts) + " million, " +
                  ", ".join(f"{100 * (count / counts[0] - 1):+.1f} %" for count in counts[1:]), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
