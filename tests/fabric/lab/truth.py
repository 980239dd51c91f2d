# SPDX-License-Identifier: Apache-2.0
"""What really happens in a lab, from the kernel alone.

Two sources that must agree: the route that each switch's kernel chooses for a flow's tuple, hop by
hop from its host, and the counters of the packets that it forwarded. A path is a tuple of hops
(switch, in port, out port).
"""
import json
import threading
import time
from bisect import bisect_left
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from math import fsum

from . import switchrules
from .fabric import LabError, run
from .traffic import Flow

READERS = 8  # of counters, at once
LOOK_S = 0.5


def kernel_paths(fabric, flows):
    """{Flow: path} by `ip route get` with the tuple, all flows of one switch in one call."""
    layout = fabric.layout
    paths = {flow: [] for flow in flows}
    here = {flow: layout.host_port(layout.owner[flow.src]) for flow in paths}
    while here:
        by_switch = defaultdict(list)
        for flow, port in here.items():
            by_switch[port.node].append(flow)
        here_next = {}
        for switch, some in by_switch.items():
            for flow, out in zip(some, _route_get(fabric, switch, some, here)):
                paths[flow].append((switch, here[flow].name, out))
                peer = layout.peer[switch, out]
                if peer.node in layout.switches:
                    here_next[flow] = peer
                elif peer.node != layout.owner[flow.dst].name:
                    raise LabError(f"{flow}: {switch} sends it to {peer.node}")
            if len(paths[some[0]]) > 8:
                raise LabError(f"{some[0]}: the route runs in a circle")
        here = here_next
    return {flow: tuple(path) for flow, path in paths.items()}


def _route_get(fabric, switch, flows, here):
    lines = "".join(
        f"route get {flow.dst} from {flow.src} iif {here[flow].name} ipproto 17 "
        f"sport {flow.sport} dport 4791\n" for flow in flows)
    text = run("ip", "-n", fabric.netns(switch), "-j", "-batch", "-", text=lines)
    decoder = json.JSONDecoder()
    outs = []
    while text := text.lstrip():
        rows, end = decoder.raw_decode(text)
        outs.append(rows[0]["dev"])
        text = text[end:]
    if len(outs) != len(flows):
        raise LabError(f"{switch}: {len(outs)} routes for {len(flows)} flows")
    return outs


def _listing(fabric, switch):
    """When counters were read, and what nft said."""
    begun_s = time.time()
    text = fabric.run(switch, "nft", "-j", "list", "table", "inet", "lab")
    return (begun_s + time.time()) / 2, text


class Counters:
    """Packets forwarded and sampled since the last flush: {(Flow, switch, in, out): packets}; bytes
    sent by {(switch, out): bytes of IP packets} and {switch: when that was, in seconds}."""

    def __init__(self, fabric):
        self.all = {}
        self.sampled = {}
        self.sent_bytes = Counter()
        self.read_s = {}
        with ThreadPoolExecutor(READERS) as pool:
            listings = list(pool.map(lambda switch: _listing(fabric, switch),
                                     fabric.layout.switches))
        for switch, (read_s, listing) in zip(fabric.layout.switches, listings):
            rows = switchrules.parse(listing)
            self.read_s[switch] = read_s
            for row in rows["all"]:
                self.sent_bytes[switch, row["out"]] += row["bytes"]
            for name, into in (("all", self.all), ("sampled", self.sampled)):
                for row in rows[name]:
                    flow = Flow(row["src"], row["dst"], row["sport"])
                    into[flow, switch, row["in"], row["out"]] = row["packets"]

    def samples(self):
        """{Flow: packets that exporters were given}."""
        total = Counter()
        for (flow, *_), packets in self.sampled.items():
            total[flow] += packets
        return total

    def disagreements(self, paths):
        """Texts: where counters and paths ({Flow: path}) tell different stories."""
        hops = defaultdict(set)
        for (flow, *hop), packets in self.all.items():
            if packets:
                hops[flow].add(tuple(hop))
        return [
            f"{flow}: routes say {format_path(path)}, counters {sorted(hops[flow])}"
            for flow, path in paths.items()
            if hops[flow] != set(path)
        ]


class Looks:
    """What switches sent by time: their counters, read again and again beside what goes on within
    `with`. A sender may have to wait, so that a mean over all of it says nothing of one window."""

    def __init__(self, fabric):
        self.fabric = fabric
        self.read_s = defaultdict(list)  # of a switch
        self.sent_bytes = defaultdict(list)
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self._look()
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()
        self._look()

    def _run(self):
        while not self.over.wait(LOOK_S):
            self._look()

    def _look(self):
        counters = Counters(self.fabric)
        for switch, read_s in counters.read_s.items():
            self.read_s[switch].append(read_s)
            self.sent_bytes[switch].append({out: count for (at, out), count
                                            in counters.sent_bytes.items() if at == switch})

    def _until(self, switch, at_s):
        """{out: bytes} that it had sent by then, evenly between two looks."""
        times, sent = self.read_s[switch], self.sent_bytes[switch]
        after = min(max(bisect_left(times, at_s), 1), len(times) - 1)
        part = (at_s - times[after - 1]) / (times[after] - times[after - 1])
        return {out: count + part * (sent[after].get(out, 0) - count)
                for out, count in sent[after - 1].items()}

    def between(self, start_ms, end_ms):
        """{(switch, out): bytes} of a time within the looks."""
        return {(switch, out): count - before.get(out, 0)
                for switch in self.read_s
                for before in (self._until(switch, start_ms / 1000),)
                for out, count in self._until(switch, end_ms / 1000).items()}


class FirstSamples:
    """When each flow was first sampled, by looking at the counters again and again."""

    def __init__(self, fabric, start_ms):
        self.fabric = fabric
        self.looked_ms = start_ms
        self.first_ms = {}

    def poll(self):
        """A flow that was not sampled when last looked was so at the earliest just after that."""
        now_ms = time.time() * 1000
        for flow in Counters(self.fabric).samples():
            self.first_ms.setdefault(flow, self.looked_ms)
        self.looked_ms = now_ms


def flush(fabric):
    for switch in fabric.layout.switches:
        fabric.run(switch, "nft", "-f", "-", text=switchrules.flush_rules())


def format_path(path):
    return " ".join(f"{switch}({inp}>{out})" for switch, inp, out in path)


def groups(layout):
    """{group name: its directed links as (switch, out port)}, of the leaves and of the spines."""
    found = defaultdict(list)
    for link in layout.fabric_links:
        leaf, spine = link.a, link.b
        found[f"{leaf.node}/up"].append((leaf.node, leaf.name))
        found[f"{leaf.node}/down"].append((spine.node, spine.name))
    return dict(found)


def loads(layout, paths):
    """{group name: flows on each of its links} for {Flow: path}."""
    count = Counter((switch, out) for path in paths.values() for switch, _, out in path)
    return {name: [count[link] for link in links] for name, links in groups(layout).items()}


def fim(values):
    """Flow imbalance in percent: mean absolute deviation from the even share; None of no flows."""
    total = fsum(values)
    if not total:
        return None
    mean = total / len(values)
    return 100 / len(values) * fsum(abs(value - mean) / mean for value in values)
