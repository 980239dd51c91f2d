#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The chain in virtual time: a real fabric's sFlow in, paths and imbalance out, twice the same.

lab/ was made by capture.py: the datagrams of a 4 x 4 leaf-spine with kernel ECMP as pmacct's uacctd
sent them, and the paths that the kernel's routes and counters gave. FT_WRITE_GOLDEN=1 writes the
expected text anew (`make golden-update`)."""
import difflib
import json
import os
import re
import subprocess
import sys
from collections import Counter, defaultdict

sys.dont_write_bytecode = True
import rig  # noqa: E402
import sflow  # noqa: E402
from rig import check, equal, last_stages, of_kind  # noqa: E402

WINDOW_MS = 5000
CAPTURE, TOPOLOGY = rig.LAB / "sflow.pcap", rig.LAB / "topology.yaml"
POLLER = [rig.POLLER, *rig.NO_CONFIG, "--set", "source_id=golden", "--replay", CAPTURE, "--output",
          "-"]
DAEMON = [rig.DAEMON, *rig.NO_CONFIG, *rig.TRUST, "--set", "source_id=golden", "--set",
          f"window={WINDOW_MS // 1000}s", "--topology", TOPOLOGY, "--replay", "-", "--sink",
          "file:-"]


def flow_of(record):
    flow = record["flow"]
    return flow["src"], flow["dst"], flow["sport"]


def chain():
    """One run of the pipe. Returns its output."""
    poller = subprocess.Popen(POLLER, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    daemon = subprocess.run(DAEMON, stdin=poller.stdout, capture_output=True, timeout=300)
    poller.stdout.close()
    equal("exit codes of the pipe", (poller.wait(timeout=300), daemon.returncode), (0, 0))
    return daemon.stdout.decode()


def test_golden():
    got, again = chain(), chain()
    check("twice the same", got == again)
    expected = rig.LAB / "expected.ndjson"
    if os.environ.get("FT_WRITE_GOLDEN"):
        expected.write_text(got)
    want = expected.read_text()
    check("exact text", got == want, "\n" + "".join(list(difflib.unified_diff(
        want.splitlines(True), got.splitlines(True), "want", "got"))[:12]))
    return rig.records_of(got)


class Truth:
    """What the kernel said, and the fabric as its topology file states it."""

    def __init__(self):
        rows = json.loads((rig.LAB / "truth.json").read_text())
        self.path, self.role, self.elephants = {}, {}, set()
        for row in rows:
            flow = row["src"], row["dst"], row["sport"]
            self.path[flow] = [tuple(hop) for hop in row["path"]]
            self.role[flow] = row["role"]
            if row["elephant"]:
                self.elephants.add(flow)
        self.groups = defaultdict(list)
        links = re.findall(r"\{a: (\w+), a_port: (\w+), b: (\w+), b_port: (\w+)\}",
                           TOPOLOGY.read_text())
        for leaf, up, spine, down in links:
            self.groups[f"{leaf}/up"].append((leaf, up))
            self.groups[f"{leaf}/down"].append((spine, down))

    def loads(self, flows):
        """{group: flows on each of its links}."""
        count = Counter((switch, out) for flow in flows for switch, _, out in self.path[flow])
        return {name: [count[link] for link in links] for name, links in self.groups.items()}


def fim(values):
    if not sum(values):
        return None
    mean = sum(values) / len(values)
    return 100 / len(values) * sum(abs(v - mean) / mean for v in values)


def test_paths(records, truth, samples):
    sampled = {s.flow for s in samples}
    check("the capture has both families, and acknowledgements",
          {":" in src for src, _, _ in sampled} == {True, False}
          and {truth.role[f] for f in sampled} == {"data", "ack"})
    paths = of_kind(records, "path")
    wrong = [r for r in paths if r["state"] != "resolved" or r["role"] != truth.role[flow_of(r)]
             or [(h["switch"], h["in"], h["out"]) for h in r["hops"]] != truth.path[flow_of(r)]]
    check(f"{len(paths)} path records are the kernel's paths", paths and not wrong, wrong[:2])
    equal("every sampled flow has its path", {flow_of(r) for r in paths}, sampled)


def test_imbalance(records, truth, samples):
    flows = defaultdict(set)
    for s in samples:
        if truth.role[s.flow] == "data":
            flows[s.at_ms - s.at_ms % WINDOW_MS].add(s.flow)
    groups = [r for r in of_kind(records, "imbalance") if r["scope"] == "group"]
    equal("windows", sorted({r["window_start_ms"] for r in groups}), sorted(flows))
    wrong = []
    for start, some in flows.items():
        of_window = {r["name"]: r for r in groups if r["window_start_ms"] == start}
        equal(f"groups of window {start}", set(of_window), set(truth.groups))
        for name, values in truth.loads(some).items():
            r = of_window[name]
            want, got = fim(values), r.get("fim")
            close = got is want if want is None or got is None else abs(got - want) <= 1e-5 * want
            if not close or r.get("flows", 0) != sum(values) or r.get("flows_unplaced", 0):
                wrong.append((start, name, values, want, r))
    check(f"FIM of {len(groups)} groups is that of the kernel's paths", not wrong, wrong[:2])


def test_collisions(records, truth):
    want = set()
    for name, values in truth.loads(truth.elephants).items():
        for link, count in zip(truth.groups[name], values):
            if count >= 2 and min(values) <= count - 1:
                want.add("/".join(link))
    events = of_kind(records, "event")
    check("the capture has a collision", want)
    equal("collisions", {r["subject"] for r in events if r["kind"] == "collision"}, want)
    equal("no event else", {r["kind"] for r in events}, {"collision"})
    victims = {flow_of(v) for r in events for v in r["evidence"]["victims"]}
    check("victims are elephants", victims <= truth.elephants, victims - truth.elephants)


def test_observations(records, samples):
    """What the poller folded, against the capture read by other means."""
    sums = defaultdict(Counter)
    for s in samples:
        sums[s.place].update(samples=1, bytes=s.rate * s.frame_bytes, packets=s.rate,
                             ack_samples=s.ack, data_samples=not s.ack)
    got = defaultdict(Counter)
    for r in of_kind(records, "observation"):
        place = (r["agent"], r["in_ifindex"], r["out_ifindex"], *flow_of(r), r["flow"]["dport"])
        got[place].update({k: r[k] for k in ("samples", "bytes", "packets", "ack_samples",
                                             "data_samples")})
    wrong = [p for p in sums.keys() | got.keys() if +sums[p] != +got[p]]
    check(f"sums of samples, packets and bytes at {len(sums)} places", not wrong,
          [(p, sums[p], got[p]) for p in wrong[:2]])


def test_accounting(polled, published, samples, total):
    """Nothing vanishes between the datagrams and the records published."""
    rig.check_balance("poller", polled)
    rig.check_balance("daemon", published)
    poller = last_stages(polled, "fabrictrace-switchpoll")
    seen = poller["samples"]
    equal("datagrams in", poller["datagrams"]["received"],
          sum(1 for _ in sflow.datagrams(CAPTURE.read_bytes())))
    equal("samples in", seen["received"], sum(total.values()))
    observed = sum(r["samples"] for r in of_kind(polled, "observation"))
    equal("samples of observations, of counters and dropped",
          observed + total[sflow.COUNTER_SAMPLE] + sum(rig.drops(seen).values()),
          sum(total.values()))
    equal("samples of UDP packets are in observations", observed, len(samples))
    equal("interface counters", poller["counters"]["processed"],
          len(of_kind(polled, "counters")))
    equal("records out, before the last accounting", poller["transport"]["received"],
          len(polled) - 1)
    daemon = last_stages(published, "fabrictraced")
    equal("records into the daemon", daemon["records"]["received"], len(polled))
    equal("the daemon has a use for all of them", rig.drops(daemon["records"]), {})
    equal("flows", daemon["flows"]["received"], len({s.flow for s in samples}))
    equal("records published, before the last accounting",
          daemon["file"]["received"], len(published) - 1)
    equal("the poller's accounting is passed on", of_kind(polled, "loss"),
          [r for r in of_kind(published, "loss") if r["program"] == "fabrictrace-switchpoll"])


def main():
    total, samples = sflow.read(CAPTURE.read_bytes())
    truth = Truth()
    published = test_golden()
    polled = rig.records_of(rig.run(*POLLER).stdout)
    test_observations(polled, samples)
    test_paths(published, truth, samples)
    test_imbalance(published, truth, samples)
    test_collisions(published, truth)
    test_accounting(polled, published, samples, total)
    return 1 if rig.failures else 0


sys.exit(main())
