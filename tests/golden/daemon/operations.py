#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What numbered packets say of a queue pair beside its rate, through poller and daemon: messages by the first
packets among the samples, packets that were sent again, and what acknowledgements refuse (AETH); and of jobs, which
have what their flows have. The generator sends messages of known lengths, goes back where it lost some, draws samples,
and knows what each window has."""
import json
import math
import random
import sys
import tempfile
from collections import Counter
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "switchpoll"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "agent"))
import captures as host  # noqa: E402
import make_captures as c  # noqa: E402
import rig  # noqa: E402
from rig import check, equal, of_kind  # noqa: E402

WINDOW_S, WINDOWS = 10, 5
RATE, ONE_IN = 100000, 1000  # packets a second
MTU_FRAME = 4170
ACKS_A_SECOND = 20
DEVIATIONS = 4

# Opcodes (IBTA volume 1, table 38): of one packet, or the first, the middle and the last ones.
SEND, WRITE, ANSWER = (0x04, 0x00, 0x01, 0x02), (0x0a, 0x06, 0x07, 0x08), (0x10, 0x0d, 0x0e, 0x0f)
WITH_IMMEDIATE = (0x0b, 0x06, 0x07, 0x09)
# Syndromes of acknowledgements (section 9.7.5.2.1): bits 6 and 5 say what it is; by their weight.
GRANTED, NOT_READY, REFUSED, RESERVED = range(0x01, 0x20), range(0x20, 0x40), range(0x60, 0x65), range(0x40, 0x60)

NO_CREDIT = [0x00]  # positive, but no receive is posted

# Source port: (opcodes, packets of messages in turn, packets that are sent again each second, share of
# acknowledgements that are not ready and that refuse).
FLOWS = {
    50000: (WRITE, (8,), 0, 0, 0),
    50001: (WRITE, (1,), 0, 0, 0.3),
    50002: (SEND, (1, 32), 0, 0.2, 0),
    50003: (ANSWER, (4,), 0, 0, 0),
    50004: (WRITE, (64,), 2000, 0.1, 0.1),
    50005: (WITH_IMMEDIATE, (3, 1, 2), 10000, 0, 0),
}
WITHOUT_CREDIT = {50002: 0.2, 50004: 0.1}  # of the acknowledgements

# What agents say: of which job a flow is in a second, by (source port, whether it answers). Who answers 50000 sends
# nothing that is numbered, and 50003 gets another job within a window, in which it counts for neither.
MOVES_AT, MOVED = 25, 50003
JOBS = {(50000, True): "answers", (50001, False): "one", (50001, True): "one", (50002, False): "two",
        (50002, True): "two", (50004, False): "one", (50004, True): "one", (50005, False): "one"}


def job_of(sport, answers, second):
    if (sport, answers) == (MOVED, False):
        return "two" if second < MOVES_AT else "one"
    return JOBS.get((sport, answers))


TOPOLOGY = """fabric: small
switches:
  - {name: leaf1, addresses: [192.0.2.1], ports: [{ifindex: 1, name: Ethernet1}, {ifindex: 2, name: Ethernet2}]}
hosts:
  - {name: h1, nics: [{addresses: [10.0.1.1], attach: [{switch: leaf1, port: Ethernet1}]}]}
  - {name: h2, nics: [{addresses: [10.0.1.2], attach: [{switch: leaf1, port: Ethernet2}]}]}
"""


class Sender:
    """Of numbered packets; in the middle of each second it sends the last ones again."""

    def __init__(self, lengths, back):
        self.back, self.total, self.messages = back, sum(lengths), len(lengths)
        self.at = [(i, length) for length in lengths for i in range(length)]

    def number(self, second):
        """Of the packet that is sent at a moment."""
        return int(second * RATE) - self.back * math.floor(second + 0.5)

    def packets(self):
        """Different ones in a window."""
        return (RATE - self.back) * WINDOW_S

    def opcode(self, opcodes, number):
        i, length = self.at[number % self.total]
        return opcodes[0 if length == 1 else 1 if i == 0 else 3 if i == length - 1 else 2]


def packet(sport, opcode, number, rest, answers=False):
    ends = ("10.0.1.2", "10.0.1.1") if answers else ("10.0.1.1", "10.0.1.2")
    return host.ethernet(host.udp(*ends, sport, host.bth(opcode, 17 + sport, number % 2**24) + rest))


def data(rng, sport, truth):
    """(moment, sample) of a flow's data. Sent again is what has a lower number than a sample before it in the second
    that the poller folds over."""
    opcodes, lengths, back, _, _ = FLOWS[sport]
    sender, second = Sender(lengths, back), 0.0
    highest, folded = 0, None
    while (second := second + rng.expovariate(RATE / ONE_IN)) < WINDOW_S * WINDOWS:
        number = sender.number(second)
        if folded != int(second):
            folded, highest = int(second), number
        truth[sport, int(second) // WINDOW_S].update(samples=1, again=number < highest)
        highest = max(highest, number)
        frame = packet(sport, sender.opcode(opcodes, number), number + 2**24 - 5000, bytes(90))
        yield second, (1, 2, c.raw_header(frame[:128], MTU_FRAME))


def acknowledgements(rng, sport, truth):
    _, _, _, not_ready, refused = FLOWS[sport]
    bad, without = not_ready + refused, WITHOUT_CREDIT.get(sport, 0)
    second = 0.0
    while (second := second + rng.expovariate(ACKS_A_SECOND)) < WINDOW_S * WINDOWS:
        drawn = rng.random()
        kind = ("rnr" if drawn < not_ready else "nak" if drawn < bad else "no credit" if drawn < bad + without else
                "reserved" if drawn > 0.95 else "granted")
        syndrome = rng.choice({"rnr": NOT_READY, "nak": REFUSED, "reserved": RESERVED, "granted": GRANTED,
                               "no credit": NO_CREDIT}[kind])
        truth[sport, int(second) // WINDOW_S][kind] += 1
        aeth = bytes([syndrome, 0, 0, 1])
        frame = packet(sport, host.ACK, int(second * RATE), aeth + bytes(4), True)
        yield second, (2, 1, c.raw_header(frame[:128], len(frame) + 4))


def generate():
    rng, truth, samples = random.Random(29), {}, []
    for sport in FLOWS:
        truth.update({(sport, window): Counter() for window in range(WINDOWS)})
        samples += [*data(rng, sport, truth), *acknowledgements(rng, sport, truth)]
    datagrams = []
    for number, (second, (came, went, record)) in enumerate(sorted(samples), 1):
        sample = c.flow_sample(number, (0, came), came, went, [record], rate=ONE_IN)
        datagrams.append((second, c.datagram("192.0.2.1", number, int(second * 1000), [sample])))
    return c.pcap(c.RAW, datagrams), truth


def with_reports(polled):
    """What pollers and agents say, in the order of time."""
    lines, second = [], 0
    for line in polled.splitlines():
        while second < WINDOW_S * WINDOWS and json.loads(line).get("time_ms", 0) >= 1000 * (c.START + second):
            lines += [json.dumps({
                "schema": "fabrictrace.flow.v1", "time_ms": 1000 * (c.START + second), "interval_ms": 1000,
                "host": "h2" if answers else "h1", "direction": "tx", "pid": sport,
                "job": job_of(sport, answers, second),
                "flow": {"src": "10.0.1.2" if answers else "10.0.1.1", "dst": "10.0.1.1" if answers else "10.0.1.2",
                         "sport": sport, "dport": 4791, "proto": 17}})
                for sport in FLOWS for answers in (False, True) if job_of(sport, answers, second)]
            second += 5
        lines.append(line)
    return "\n".join(lines) + "\n"


def window_of(record):
    return (record["window_start_ms"] // 1000 - c.START) // WINDOW_S


def published(capture):
    with tempfile.TemporaryDirectory() as name:
        pcap, file = Path(name, "samples.pcap"), Path(name, "t.yaml")
        pcap.write_bytes(capture)
        file.write_text(TOPOLOGY)
        polled = rig.run(rig.POLLER, *rig.NO_CONFIG, "--replay", pcap, "--output", "-")
        done = rig.run(rig.DAEMON, *rig.NO_CONFIG, *rig.TRUST, "--set", f"window={WINDOW_S}s", "--set",
                       "path_refresh=1s", "--topology", file, "--replay", "-", "--sink", "file:-",
                       input=with_reports(polled.stdout), stdin=None)
    equal("exit codes", (polled.returncode, done.returncode), (0, 0))
    found = rig.records_of(done.stdout)
    return ({(r["flow"]["src"], r["flow"]["sport"], window_of(r)): r for r in of_kind(found, "path")
             if "rate_bps" in r}, {(r["job"], window_of(r)): r for r in of_kind(found, "rhythm")})


def test_messages(name, r, sport, truth):
    """As many as were sent, within what samples can say."""
    _, lengths, back, _, _ = FLOWS[sport]
    sender = Sender(lengths, back)
    packets, part = sender.packets(), sender.messages / sender.total
    equal(f"{name}: samples", r["numbered_samples"], truth["samples"])
    equal(f"{name}: its rate is known by", r["rate_source"], "psn")
    check(f"{name}: each packet once", abs(r["data_packets"] / packets - 1) < 0.02, (r["data_packets"], packets))
    messages, error = packets * part, math.sqrt((1 - part) / part / truth["samples"])
    check(f"{name}: messages", abs(r["messages"] / messages - 1) <= DEVIATIONS * error + 0.02,
          (r["messages"], messages, error))
    if part == 1:
        equal(f"{name}: each packet is a message", r["messages"], r["data_packets"])
    equal(f"{name}: sent again", r["psn_back_samples"], truth["again"])


SUMS = ("messages", "message_bytes", "numbered_samples", "psn_back_samples", "nak_samples", "rnr_samples",
        "no_credit_samples")


def jobs_in(sport, answers, window):
    return {job_of(sport, answers, second) for second in range(WINDOW_S * window, WINDOW_S * (window + 1))}


def test_job(name, rhythm, flows):
    """What its flows have, by their records and by what was generated; and nothing that none has.
    flows: (record, truth, source port, whether it answers)"""
    sums, drawn, messages, variance = Counter(), Counter(), 0, 0
    for r, of, sport, answers in flows:
        equal(f"{name}: its flow {sport}", r.get("job"), rhythm["job"])
        sums.update({key: r[key] for key in SUMS if key in r})
        if "messages" in r:
            _, lengths, back, _, _ = FLOWS[sport]
            sender = Sender(lengths, back)
            sums["message_bytes"] += r["bytes"]
            sent, part = sender.packets(), sender.messages / sender.total
            messages += sent * part
            variance += sent ** 2 * part * (1 - part) / of["samples"]
        drawn.update({"nak_samples": of["nak"], "rnr_samples": of["rnr"], "no_credit_samples": of["no credit"]}
                     if answers else {"numbered_samples": of["samples"], "psn_back_samples": of["again"]})
    equal(f"{name}: sums of its flows' records", {key: rhythm[key] for key in SUMS if key in rhythm},
          {key: n for key, n in sums.items() if n or key == "psn_back_samples"})
    equal(f"{name}: what was generated", [rhythm.get(key, 0) for key in SUMS[2:]], [drawn[key] for key in SUMS[2:]])
    check(f"{name}: messages", abs(rhythm.get("messages", 0) - messages) <=
          DEVIATIONS * math.sqrt(variance) + 0.02 * messages, (rhythm.get("messages"), messages, variance))


def test_jobs(records, rhythms, truth):
    before = [rhythms.pop(key) for key in sorted(rhythms) if key[1] < 0]
    check("before they sent they sent nothing", not any(set(SUMS) & set(r) for r in before), before)
    equal("jobs", sorted(rhythms), [(job, window) for job in ("answers", "one", "two") for window in range(WINDOWS)])
    for (job, window), rhythm in rhythms.items():
        test_job(f"{job}, window {window}", rhythm, [
            (records[host, sport, window], truth[sport, window], sport, answers) for sport in FLOWS
            for answers, host in ((False, "10.0.1.1"), (True, "10.0.1.2")) if jobs_in(sport, answers, window) == {job}])
    equal("in one window a flow is of two jobs", [len(jobs_in(MOVED, False, window)) for window in range(WINDOWS)],
          [1, 1, 2, 1, 1])
    check("what no flow has is absent", not set(SUMS) & set(rhythms["answers", 0]) and
          "nak_samples" not in rhythms["two", 0] and "nak_samples" in rhythms["one", 0], rhythms["answers", 0])


def main():
    capture, truth = generate()
    records, rhythms = published(capture)
    test_jobs(records, rhythms, truth)
    parts = Counter()
    for (sport, window), of in truth.items():
        name = f"{sport}, window {window}"
        r, back = records.get(("10.0.1.1", sport, window)), records.get(("10.0.1.2", sport, window))
        if not check(f"{name}: both directions are told", r and back):
            continue
        test_messages(name, r, sport, of)
        equal(f"{name}: what its receiver refuses", (back.get("nak_samples", 0), back.get("rnr_samples", 0)),
              (of["nak"], of["rnr"]))
        equal(f"{name}: how often it has no credits", back.get("no_credit_samples"), of["no credit"] or None)
        check(f"{name}: the sender refuses nothing", not {"nak_samples", "rnr_samples", "no_credit_samples"} & set(r), r)
        check(f"{name}: acknowledgements are no messages", "messages" not in back and "data_packets" not in back, back)
        for kind, count in of.items():
            parts[sport, kind] += count
    for (sport, kind), count in sorted(parts.items()):
        print(f"{sport}: {kind} {count}")
    check("some were sent again, not ready, refused and without credits",
          all(parts[key] > 20 for key in ((50004, "again"), (50005, "again"), (50002, "rnr"), (50004, "nak"),
                                          (50002, "no credit"))), parts)
    return 1 if rig.failures else 0


if __name__ == "__main__":
    sys.exit(main())
