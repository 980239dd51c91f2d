# SPDX-License-Identifier: Apache-2.0
"""Samples of the flows, folded by the second as fabrictrace-switchpoll --output writes them, or
over more of them as it does where the daemon cannot keep up.

Each hop samples by itself (Poisson). A sample's stamp is its real time and the delay of its switch
in that second, as an exporter's buffer delays it; what a switch sampled earlier never comes later.
At the end of each second stands a record that the daemon hands on as it is: where it lies in the
output tells when the records before it were published."""
from math import log

BASE_MS = 1795000000000
CHUNK_S = 5
PIECES_FROM = 8  # samples a second from which on whole seconds are drawn instead of single gaps
CLOCK = "fidelity-clock"


class Delays:
    """Of one switch: delay[k] of second k, and floor[k], the stamp before which none of it comes."""

    def __init__(self, rng, seconds, most_s):
        self.delay = [rng.random() * most_s for _ in range(seconds)]
        self.floor = [0.0]
        for second, delay in enumerate(self.delay):
            self.floor.append(max(self.floor[-1], second + 1 + delay))


class Hops:
    """What the headers of a packet are where a switch samples it.

    late: switches that sample a packet as they send it on. bridging: switches that do not count its
    TTL down. tunnel: the leaves put it into a VXLAN tunnel, whose packets have a TTL of their own
    (symmetric IRB, RFC 9135: both leaves route the packet inside)."""
    TUNNEL_TTL = 255

    def __init__(self, fabric, late=(), bridging=(), tunnel=False):
        self.fabric, self.late, self.tunnel = fabric, set(late), tunnel
        self.bridging = set(bridging)

    def headers(self, flow, path, place):
        """(TTL, (source, target, source port) of the tunnel or None)."""
        # Of those that are there when the packet is looked at.
        routed = [hop[0] not in self.bridging for hop in path[:place + (path[place][0] in self.late)]]
        first, last = path[0][0], path[-1][0]
        if not self.tunnel or first == last or not routed:
            return flow.ttl - sum(routed), None
        if len(routed) == len(path):
            return flow.ttl - routed[0] - routed[-1], None
        ends = (self.fabric.switches[name].address for name in (first, last))
        return self.TUNNEL_TTL - sum(routed[1:]), (*ends, 49152 + flow.number % 16384)


class Writer:
    """style: "ingress", or "bridge" for exporters that do not say where they sample. ports: what
    tells of the ports. hops: what a packet's headers are at each (Hops)."""

    def __init__(self, fabric, truth, rng, seconds, hops, blind=(), style="ingress", ports=None,
                 fold=1):
        self.fabric, self.truth, self.rng, self.seconds = fabric, truth, rng, seconds
        self.blind, self.style = set(blind), style
        self.delays = {name: Delays(rng, seconds, truth.delay_s) for name in fabric.switches}
        self.ports, self.hops, self.fold = ports, hops, fold
        self.buckets = {}
        self.templates = {}
        self.observations = 0
        self.loads = {}  # {(second, switch, port out): bytes that the switch's own samples tell of}

    def write(self, out):
        for start in range(0, self.seconds, CHUNK_S):
            end = min(start + CHUNK_S, self.seconds)
            for flow in self.truth.flows:
                for begin, until, paths in self.truth.spans(flow, start, end):
                    for place, path, part in weighed(paths):
                        if path[place][0] not in self.blind:
                            self.sample(flow, place, path, flow.rate * part, begin, until)
            for second in range(start, end):
                self.flush(out, second)
        for second in sorted(self.buckets):
            self.flush(out, second + self.fold - 1)

    def template(self, flow, place, path):
        """What all observations of a flow at a hop share."""
        hop = path[place]
        switch = self.fabric.switches[hop[0]]
        ttl, outer = self.hops.headers(flow, path, place)
        source = '"sub_agent":0'
        if self.style == "bridge":
            source += ',"source_type":2,"source_index":1000'
        source += f',"ttl":{ttl}'
        if outer:
            source += (f',"outer":{{"src":"{outer[0]}","dst":"{outer[1]}","sport":{outer[2]},'
                       f'"dport":4789,"proto":17}}')
        point = "ingress" if self.style == "ingress" else "unknown"
        head = (f'"agent":"{switch.address}","flow":{{"src":"{flow.src}","dst":"{flow.dst}",'
                f'"sport":{flow.sport},"dport":4791,"proto":17}},'
                f'"in_ifindex":{switch.ports[hop[1]]},"out_ifindex":{switch.ports[hop[2]]},'
                f'"point":"{point}","fate":"forwarded","samples":')
        return head, flow.one_in, flow.one_in * flow.frame_bytes, flow.ack, source

    def sample(self, flow, place, path, rate, begin, until):
        key = flow.number, path[place]
        if key not in self.templates:
            self.templates[key] = self.template(flow, place, path)
        if rate < PIECES_FROM:
            self.singly(key, rate, begin, until)
        else:
            self.by_pieces(key, rate, begin, until)

    def singly(self, key, rate, begin, until):
        random, buckets = self.rng.random, self.buckets
        delays = self.delays[key[1][0]]
        delay, floor = delays.delay, delays.floor
        gap = -1.0 / rate
        moment = begin + gap * log(1.0 - random())
        while moment < until:
            second = int(moment)
            stamp = moment + delay[second]
            if stamp < floor[second]:
                stamp = floor[second]
            self.add(buckets, key, int(stamp) // self.fold * self.fold, int(stamp * 1000), int(stamp * 1000), 1)
            moment += gap * log(1.0 - random())

    def by_pieces(self, key, rate, begin, until):
        """Counts of the parts of each second whose stamps lie in one second."""
        delays = self.delays[key[1][0]]
        for second in range(int(begin), int(until) + (until > int(until))):
            low, high = max(begin, second), min(until, second + 1)
            delay, floor = delays.delay[second], delays.floor[second]
            turn = second + 1 - delay  # from here on the stamps are in the next second
            for start, end in ((low, min(high, turn)), (max(low, turn), high)):
                if start < end:
                    self.piece(key, rate, start, end, delay, floor)

    def piece(self, key, rate, start, end, delay, floor):
        random = self.rng.random
        count = poisson(self.rng, rate * (end - start))
        if count == 0:
            return
        first = start + (end - start) * (1.0 - random() ** (1.0 / count))
        last = first if count == 1 else first + (end - first) * random() ** (1.0 / (count - 1))
        # Not quite the end: that would be the next second.
        last = min(last, max(first, end - 1e-6))
        first, last = max(first + delay, floor), max(last + delay, floor)
        self.add(self.buckets, key, int(first) // self.fold * self.fold, int(first * 1000), int(last * 1000), count)

    @staticmethod
    def add(buckets, key, second, first_ms, last_ms, count):
        bucket = buckets.get(second)
        if bucket is None:
            bucket = buckets[second] = {}
        entry = bucket.get(key)
        if entry is None:
            bucket[key] = [first_ms, last_ms, count, key]
            return
        if first_ms < entry[0]:
            entry[0] = first_ms
        if last_ms > entry[1]:
            entry[1] = last_ms
        entry[2] += count

    def flush(self, out, second):
        start = BASE_MS + (second - self.fold + 1) * 1000
        ended = (second + 1) % self.fold == 0
        # What is not folded goes out at once, before the samples of its second.
        out.writelines(self.ports.lines(second) if self.ports else ())
        lines = []
        loads = self.loads
        sums = self.buckets.pop(second - self.fold + 1, {}).values() if ended else ()
        # Sums of several seconds go out by their last sample, those of one by their first.
        for first, last, count, key in sorted(sums, key=lambda sum_: (sum_[self.fold > 1], sum_)):
            head, one_in, size, ack, source = self.templates[key]
            (switch, _, port) = key[1]
            load = second, switch, port
            loads[load] = loads.get(load, 0) + count * size
            lines.append(
                f'{{"schema":"fabrictrace.observation.v1","time_ms":{start},'
                f'"interval_ms":{self.fold * 1000},'
                f'"first_ms":{BASE_MS + first},"last_ms":{BASE_MS + last},{head}{count},'
                f'"packets":{count * one_in},"bytes":{count * size},"ce_samples":0,'
                f'"data_samples":{0 if ack else count},"ack_samples":{count if ack else 0},'
                f'{source}}}\n')
        self.observations += len(lines)
        lines.append(f'{{"schema":"fabrictrace.host.v1","time_ms":{BASE_MS + (second + 1) * 1000},'
                     f'"source":"{CLOCK}","host":"{CLOCK}","device":"none","port":1}}\n')
        out.write("".join(lines))


def weighed(paths):
    """[(place on the path, a path with that hop, part of the packets)] of all hops of some paths."""
    if len(paths) == 1:
        return [(place, path, 1.0) for path in paths for place in range(len(path))]
    parts, first = {}, {}
    for path, part in paths.items():
        for key in enumerate(path):
            parts[key] = parts.get(key, 0.0) + part
            first.setdefault(key, path)
    return [(place, first[place, hop], part) for (place, hop), part in parts.items()]


def poisson(rng, mean):
    """Exact for small means; beyond, the normal distribution is as good."""
    if mean > 50:
        return max(0, round(rng.gauss(mean, mean ** 0.5)))
    count, moment = 0, -log(1.0 - rng.random())
    while moment < mean:
        count += 1
        moment -= log(1.0 - rng.random())
    return count
