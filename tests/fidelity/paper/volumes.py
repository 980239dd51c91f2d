# SPDX-License-Identifier: Apache-2.0
"""Bytes that the link records tell of, against those that went over each link in the window."""
from .samples import BASE_MS, weighed


def true_loads(truth, start, end):
    """{(switch, port out): bytes}"""
    loads = {}
    for flow in truth.flows:
        for begin, until, paths in truth.spans(flow, start, end):
            for place, path, part in weighed(paths):
                switch, _, port = path[place]
                key = switch, port
                loads[key] = loads.get(key, 0.0) + flow.bytes_per_s * part * (until - begin)
    return loads


class Windows:
    """Takes link records, which come window by window, and adds up the differences. A window "with
    moves" has a fault in it. sampled: the writer's loads, what each link's own samples say by the
    second; how far they are off is what nobody can be blamed for."""

    def __init__(self, truth, seconds, sampled, names=None):
        self.truth, self.seconds, self.sampled, self.names = truth, seconds, sampled, names
        self.span, self.loads, self.near = None, {}, {}
        self.sums = {moved: {"bytes": 0.0, "off": 0.0, "over": 0.0, "samples_off": 0.0}
                     for moved in (False, True)}
        self.records = self.phantom = 0
        self.phantoms = []

    def take(self, record):
        span = record["window_start_ms"], record["window_end_ms"]
        start, end = ((ms - BASE_MS) / 1000.0 for ms in span)
        if start < 0 or end > self.seconds:
            return
        if span != self.span:
            self.span = span
            self.loads = true_loads(self.truth, start, end)
            self.near = true_loads(self.truth, start - self.truth.delay_s, end)
        key = record["switch"], record["port"]
        if self.names:
            ((switch, _, port),) = self.names([(record["switch"], None, record["port"])])
            key = switch, port
        true, said = self.loads.get(key, 0.0), record.get("bytes", 0)
        sampled = sum(self.sampled.get((second, *key), 0)
                      for second in range(int(start), round(end)))
        moved = any(start - 1 <= moment < end for moment, *_ in self.truth.faults)
        sums = self.sums[moved]
        sums["bytes"] += true
        sums["off"] += abs(said - true)
        sums["over"] += max(0, said - true)
        sums["samples_off"] += abs(sampled - true)
        self.records += 1
        if key not in self.near and said:
            self.phantom += 1
            self.phantoms.append((start, end, key, said))
