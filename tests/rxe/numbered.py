# SPDX-License-Identifier: Apache-2.0
"""Rates by packet numbers of real queue pairs, against perftest's count of messages and the device's
counters. Draws samples from the packets that tcpdump saw, as a switch would, gives them to the poller
and the daemon, and compares what they publish with what was sent; many times, for the error."""
import collections
import json
import math
import os
import random
import re
import struct
import subprocess
import sys
from pathlib import Path

from judging import ACKS

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "golden" / "switchpoll"))
import make_captures as sflow  # noqa: E402

ROUTER = "192.0.2.1"
PORT_IN, PORT_OUT = 1, 2
SAMPLES = 100  # of a queue pair, about
TIMES = 25
WINDOW_S = 600
DEVIATIONS = 5


def frames(path):
    """(time in ms, what was captured of it, its length on the wire) of each frame."""
    data, at = path.read_bytes(), 24
    while at + 16 <= len(data):
        seconds, micros, captured, length = struct.unpack_from("<IIII", data, at)
        yield seconds * 1000 + micros / 1000, data[at + 16:at + 16 + captured], length
        at += 16 + captured


def tuple_of(frame):
    """(source address, source port, destination queue pair, opcode) of a RoCEv2 packet over IPv4."""
    if len(frame) < 54 or frame[12:14] != b"\x08\x00" or frame[23] != 17 or frame[36:38] != b"\x12\xb7":
        return None
    return (".".join(map(str, frame[26:30])), int.from_bytes(frame[34:36], "big"),
            int.from_bytes(frame[47:50], "big"), frame[42])


class Sent:
    """What the test sent from a device, and what tcpdump saw of it."""

    def __init__(self, out, device, source, capture):
        log = (out / "counted-client.log").read_text()
        self.queue_pairs = int(re.search(r"Number of qps\s*:\s*(\d+)", log)[1])
        size, messages = map(int, re.search(r"^\s*(\d+)\s+(\d+)\s+\d+\.\d+", log, re.M).groups())
        mtu = int(re.search(r"Mtu\s*:\s*(\d+)", log)[1])
        self.packets = messages // self.queue_pairs * math.ceil(size / mtu)  # of each
        before, after = (next(row for row in json.loads((out / f"stat-counted-{n}.json").read_text())
                              if row["ifname"] == device) for n in (0, 1))
        self.device = after["sent_pkts"] - before["sent_pkts"]
        self.retries = after["completer_retry_err"] - before["completer_retry_err"]
        begin, end = map(int, (out / "counted").read_text().split())
        self.frames, self.seen = [], collections.Counter()
        for ms, frame, length in frames(capture):
            said = tuple_of(frame)
            if said and begin <= ms <= end and said[0] == source and said[2] > 1:
                self.frames.append((ms - begin, frame, length))
                if said[3] not in ACKS:
                    self.seen[said[1], said[2]] += 1

    def wrong(self):
        """Perftest, the device and tcpdump have to agree for there to be a truth."""
        all_sent, seen = self.packets * self.queue_pairs, sum(self.seen.values())
        out = []
        if not all_sent <= self.device or (self.device > all_sent and not self.retries):
            out.append(f"perftest sent {all_sent} packets, the device {self.device}, {self.retries} retries")
        if not 0.97 * all_sent <= seen <= self.device:
            out.append(f"tcpdump saw {seen} of {all_sent}, {self.device} with those sent again")
        if len(self.seen) != self.queue_pairs:
            out.append(f"queue pairs: {dict(self.seen)}")
        return out


def samples(sent, one_in, seed):
    """A capture of the sFlow datagrams of a switch that samples one packet in so many."""
    rng, sequence, out = random.Random(f"{seed} {sent.frames[0][1].hex()}"), 0, []
    start = (sflow.START // WINDOW_S + 1) * WINDOW_S - sflow.START
    for ms, frame, length in sent.frames:
        if rng.randrange(one_in):
            continue
        sequence += 1
        sample = sflow.flow_sample(sequence, (0, PORT_IN), PORT_IN, PORT_OUT,
                                   [sflow.raw_header(frame, length + 4)], rate=one_in)
        out.append((start + ms / 1000, sflow.datagram(ROUTER, sequence, round(ms), [sample])))
    return sflow.pcap(sflow.ETHERNET, out)


def published(build, folder, capture):
    """The records of paths that poller and daemon make of a capture."""
    files = [folder / name for name in ("samples.pcap", "samples.ndjson", "numbered.yaml")]
    files[0].write_bytes(capture)
    files[2].write_text("fabric: rxe\nswitches:\n"
                        f"  - {{name: router, tier: leaf, addresses: [{ROUTER}]}}\n")
    subprocess.run([build / "switchpoll" / "fabrictrace-switchpoll", "-c", os.devnull, "--replay", files[0],
                    "--output", files[1]], check=True, stderr=subprocess.DEVNULL)
    done = subprocess.run([build / "daemon" / "fabrictraced", "-c", os.devnull, "--topology", files[2], "--set",
                           f"window={WINDOW_S}s", "--replay", files[1], "--sink", "file:-"],
                          check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return [record for record in map(json.loads, done.stdout.splitlines())
            if record["schema"] == "fabrictrace.path.v1" and "rate_source" in record]


def root_mean_square(errors):
    return math.sqrt(sum(error * error for error in errors) / len(errors))


class Errors:
    """Of many draws, as parts of the truth."""

    def __init__(self):
        self.by_numbers, self.by_counting, self.covered, self.told, self.wrong = [], [], 0, 0, []

    def take(self, sent, records, one_in):
        mean = collections.defaultdict(list)
        for _, frame, length in sent.frames:
            said = tuple_of(frame)
            mean[said[1]].append(length + 4)
        for record in records:
            sport = record["flow"]["sport"]
            self.told += 1
            if record["rate_source"] != "psn":
                continue
            truth = sent.packets
            self.by_numbers.append(record["data_packets"] / truth - 1)
            self.by_counting.append(record["numbered_samples"] * one_in / truth - 1)
            rate = truth * sum(mean[sport]) / len(mean[sport]) * 8 / WINDOW_S
            self.covered += record["rate_lo_bps"] <= rate + 1 and rate <= record["rate_hi_bps"] + 1


def judge(tally, out, build, device, source, capture):
    sent = Sent(out, device, source, capture)
    tally.check(f"{sent.queue_pairs} queue pairs sent {sent.packets} packets each, by perftest; the device "
                f"sent {sent.device}, tcpdump saw {sum(sent.seen.values())}", sent.wrong())
    one_in, errors = max(2, sent.packets // SAMPLES), Errors()
    for seed in range(TIMES):
        errors.take(sent, published(build, out, samples(sent, one_in, seed)), one_in)
    many, most = len(errors.by_numbers), TIMES * sent.queue_pairs
    wrong = [] if many >= 0.9 * most else [f"{many} rates by numbers of {most}, {errors.told} in all"]
    if many:
        numbers, counting = map(root_mean_square, (errors.by_numbers, errors.by_counting))
        least = 0.95 * many - DEVIATIONS * math.sqrt(0.95 * 0.05 * many)
        if numbers * 3 > counting:
            wrong.append("not three times as exact as counting")
        if errors.covered < least:
            wrong.append(f"the interval holds the truth {errors.covered} times of {many}, not {least:.0f}")
        tally.check(f"{many} rates by numbers, 1 in {one_in} sampled: error {100 * numbers:.2f} %, by counting "
                    f"{100 * counting:.2f} %, ratio {counting / numbers:.1f}; truth in the interval "
                    f"{100 * errors.covered / many:.1f} %", wrong)
    else:
        tally.check("rates by numbers", wrong)
