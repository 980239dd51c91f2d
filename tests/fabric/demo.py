#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What ./demo shows: a fabric of namespaces, RoCEv2 flows over it, and what fabrictrace says of
them, next to what the kernel says. Takes everything down again."""
import argparse
import json
import os
import random
import signal
import sys
import time
import urllib.error
import urllib.request
from collections import Counter

from lab import judge, truth
from lab.broker import Broker
from lab.fabric import Fabric, LabError, end_tidily, wait_until
from lab.layout import COLLECTOR, Layout
from lab.pipeline import HTTP, Pipeline, find_programs
from lab.records import RecordFile, latest_paths
from lab.relay import Relay
from lab.traffic import ELEPHANT, Traffic, plan

BAR = 30
KINDS = ("path", "link", "imbalance", "event", "loss")


class Progress:
    """One line that is redrawn on a terminal; a line every five seconds elsewhere."""

    def __init__(self, seconds):
        self.seconds = seconds
        self.terminal = sys.stdout.isatty()
        self.next = 0

    def show(self, elapsed, resolved, total):
        text = f"{elapsed:4.0f} s  {resolved:3d} of {total} flows have a path"
        if self.terminal:
            done = min(BAR, int(BAR * elapsed / self.seconds))
            print(f"\r  [{'#' * done}{'.' * (BAR - done)}] {text}", end="", flush=True)
        elif elapsed >= min(self.next, self.seconds):
            print(f"  {text}", flush=True)
            self.next += 5

    def close(self):
        if self.terminal:
            print()


def say(text):
    print(text, flush=True)


def section(title):
    bold = "\033[1m", "\033[0m"
    if not sys.stdout.isatty() or "NO_COLOR" in os.environ:
        bold = "", ""
    say(f"\n{bold[0]}{title}{bold[1]}")


def drive(traffic, flows, records, args):
    """Drives the flows and shows how they get their paths. Returns start and present in Unix ms,
    and when each was first sampled; the flows still run."""
    traffic.start(flows)
    start_ms = time.time() * 1000
    first = truth.FirstSamples(traffic.fabric, start_ms)
    progress = Progress(args.seconds)
    elapsed = 0
    while elapsed < args.seconds:
        latest = latest_paths(records)
        resolved = sum(latest.get(flow, {}).get("state") == "resolved" for flow in flows)
        progress.show(elapsed, resolved, len(flows))
        records.follow(0.25)
        if not flows.keys() <= first.first_ms.keys():
            first.poll()
        elapsed = time.time() - start_ms / 1000
    progress.show(elapsed, resolved, len(flows))
    progress.close()
    return start_ms, time.time() * 1000, {flow: first.first_ms[flow] for flow in flows
                                          if flow in first.first_ms}


def verdict(fabric, records, paths, samples, start_ms, stop_ms):
    """Prints how the records compare with the kernel. Returns whether they are right."""
    wrong = judge.unresolved(records, paths, samples)
    allowed = {flow: [path] for flow, path in paths.items()}
    reverse = truth.kernel_paths(fabric, [flow.reverse for flow in paths])
    allowed.update({flow: [path] for flow, path in reverse.items()})
    ever = judge.ever_wrong(records, allowed)
    sampled = sum(1 for flow in paths if samples[flow])
    say(f"  paths equal to the kernel's    {sampled - len(wrong)} of {sampled} sampled data flows")
    say(f"  records wrong at any time      {len(ever)} of {len(records.of('path'))}, "
        "acknowledgements too")
    windows = judge.full_windows(records, start_ms, stop_ms)
    uneven = [text for window in windows
              for text in judge.wrong_imbalance(window, fabric.layout, paths)]
    groups = len(windows) * len(truth.groups(fabric.layout))
    say(f"  FIM equal to the kernel's      {groups - len(uneven)} of {groups} ECMP groups, "
        f"full windows: {len(windows)}")
    for text in (wrong + ever + uneven)[:10]:
        say(f"  WRONG {text}")
    return bool(windows) and not (wrong or ever or uneven)


def page_of(fabric):
    """A relay to the daemon's page, at its usual address where that is free."""
    port = int(HTTP.rpartition(":")[2])
    try:
        return Relay(fabric, COLLECTOR, port, port)
    except OSError:
        return Relay(fabric, COLLECTOR, port)


def broker_of(fabric, broker):
    """A relay to the broker at the address that it gives its clients, None where that is taken."""
    port = int(broker.endpoint.rpartition(":")[2])
    try:
        return Relay(fabric, COLLECTOR, port, port)
    except OSError:
        return None


def is_page(url):
    try:
        with urllib.request.urlopen(url, timeout=30) as answer:
            return answer.status == 200
    except (OSError, urllib.error.URLError):
        return False


def stay(traffic, flows, url, brokers):
    """Keeps the lab and its flows until Ctrl-C."""
    traffic.start(flows)
    section("The lab stays up")
    say(f"  the page      {url}" if is_page(url) else "  no page: it was built --without-page, or without npm")
    say(f"  on a terminal FABRICTRACE_ENDPOINT={url.split('/')[2]} fabrictrace top")
    if brokers:
        say(f"  Kafka         FABRICTRACE_BROKERS={brokers} fabrictrace consume fabrictrace.path.v1")
    say("  Ctrl-C takes it down")
    try:
        signal.pause()
    except KeyboardInterrupt:
        say("\n  taking it down ...")
    traffic.stop()


def show(fabric, programs, args, broker):
    traffic = Traffic(fabric, programs["rocegen"])
    pipeline = Pipeline(fabric, programs, args.window, kafka=broker and broker.endpoint)
    relay = page_of(fabric)
    if is_page(relay.url):
        say(f"while it runs, the page is at {relay.url}")
    records = RecordFile(pipeline.records)
    flows = plan(fabric.layout, args.flows, args.elephants, random.Random(args.seed))
    paths = truth.kernel_paths(fabric, flows)
    big = sum(load is ELEPHANT for load in flows.values())
    say(f"{len(flows)} RoCEv2 flows, IPv4 and IPv6, {big} of them elephants (seed {args.seed})")
    start_ms, stop_ms, first = drive(traffic, flows, records, args)
    pipeline.check_alive()
    section("Paths")
    say(pipeline.tool("paths").rstrip())
    section("Imbalance")
    say(pipeline.tool("imbalance").rstrip())
    section("Collisions")
    say(pipeline.tool("collisions").rstrip())
    for flow in [flow for flow, load in flows.items() if load is ELEPHANT][:1]:
        section(f"fabrictrace explain {flow}")
        say(pipeline.tool("explain", str(flow)).rstrip())
    traffic.stop()
    samples = truth.Counters(fabric).samples()
    window_ms = args.window * 1000
    try:
        wait_until(lambda: not judge.unresolved(records.poll(), paths, samples)
                   and judge.published(records, stop_ms // window_ms * window_ms), 60, "records")
    except LabError:
        pass  # the verdict says what is missing
    section("Verdict against the kernel")
    right = verdict(fabric, records, paths, samples, start_ms, stop_ms)
    delays = judge.first_path_delays_ms(records, first)
    if delays:
        say(f"  first sample to first path     median {delays[len(delays) // 2] / 1000:.2f} s, "
            f"longest {delays[-1] / 1000:.2f} s")
    if args.stay:
        gate = broker and broker_of(fabric, broker)
        stay(traffic, flows, relay.url, gate and broker.endpoint)
        if gate:
            gate.close()
    relay.close()
    wrong = pipeline.stop()
    if broker:
        wrong += show_topics(broker, records.poll())
    for text in wrong:
        say(f"  WRONG {text}")
    say(f"  {'RIGHT' if right and not wrong else 'WRONG'}")
    if not args.stay:
        say(f"\nThe page was at {relay.url}: ./demo --stay keeps it there to be looked at.")
    return 0 if right and not wrong else 1


def show_topics(broker, records):
    """Shows the topics as a consumer reads them. Returns texts: what the file sink does not say."""
    section("What a Kafka consumer reads")
    wrong = []
    for kind in KINDS:
        rows = broker.consume(kind)
        lines = Counter(json.dumps(seen.record) for seen in records.of(kind))
        say(f"  fabrictrace.{kind}.v1: {len(rows)} records, {lines.total()} in the file")
        for key, value in rows[-1:]:
            say(f"    {key}\n      {value if len(value) < 400 else value[:400] + ' ...'}")
        if Counter(json.dumps(json.loads(value)) for _, value in rows) != lines:
            wrong.append(f"fabrictrace.{kind}.v1: the consumer reads other records than the file")
    return wrong


def main():
    parser = argparse.ArgumentParser(prog="demo", description=__doc__)
    parser.add_argument("--build", default="build", help=argparse.SUPPRESS)
    # Taken by ./demo itself, named here for --help.
    parser.add_argument("--rdma", action="store_true",
                        help="queue pairs of perftest on Soft-RoCE in a virtual machine instead; "
                             "./demo --rdma --help lists its options")
    parser.add_argument("--kafka", action="store_true",
                        help="with an Apache Kafka broker; shows the records as a consumer reads")
    parser.add_argument("--seconds", type=int, default=30, help="of traffic (default: 30)")
    parser.add_argument("--flows", type=int, default=64, help="data flows (default: 64)")
    parser.add_argument("--elephants", type=int, default=8, help="of them large (default: 8)")
    parser.add_argument("--stay", action="store_true",
                        help="keep the lab and its flows up, with the page, until Ctrl-C")
    parser.add_argument("--window", type=int, default=10, help="seconds (default: 10)")
    parser.add_argument("--spines", type=int, default=4)
    parser.add_argument("--leaves", type=int, default=4)
    parser.add_argument("--hosts", type=int, default=2, help="hosts a leaf")
    parser.add_argument("--seed", type=int, default=int(time.time()) % 10000,
                        help="of the choice of flows and of ECMP")
    args = parser.parse_args()
    if args.seconds < 2 * args.window + 1:
        parser.error("needs more seconds: two windows and one, to be sure of a full window")
    end_tidily()
    programs = find_programs(args.build)
    if args.kafka:
        Broker.fetch()
    start = time.monotonic()
    layout = Layout(args.spines, args.leaves, args.hosts)
    with Fabric(f"demo{os.getpid()}", layout, seed=args.seed) as fabric:
        say(f"{args.spines} spines, {args.leaves} leaves, {len(fabric.layout.hosts)} hosts, an "
            f"sFlow exporter in each switch: up in {time.monotonic() - start:.1f} s")
        broker = Broker(fabric) if args.kafka else None
        return show(fabric, programs, args, broker)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("\ndemo: interrupted; the lab is down")
        sys.exit(130)
    except (LabError, ValueError) as error:
        sys.exit(f"demo: {error}")
