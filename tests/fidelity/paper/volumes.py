# SPDX-License-Identifier: Apache-2.0
"""Bytes that the link records tell of, against those that went over each link in the window."""
from .samples import BASE_MS, weighed


def true_loads(truth, start, end):
    """{(switch, port out): [bytes, variance of their estimate from samples]}"""
    loads = {}
    for flow in truth.flows:
        size = flow.one_in * flow.frame_bytes
        for begin, until, paths in truth.spans(flow, start, end):
            for _, (switch, _, port), part in weighed(paths):
                load = loads.setdefault((switch, port), [0.0, 0.0])
                samples = flow.rate * part * (until - begin)
                load[0] += samples * size
                load[1] += samples * size * size
    return loads


class Windows:
    """Takes link records, which come window by window, and adds up the differences. A window "with
    moves" has a fault in it. noise: what the differences would be from sampling alone, on average
    0.8 standard deviations."""

    def __init__(self, truth, seconds, names=None):
        self.truth, self.seconds, self.names = truth, seconds, names
        self.span, self.loads, self.near = None, {}, {}
        self.sums = {moved: {"bytes": 0.0, "off": 0.0, "noise": 0.0} for moved in (False, True)}
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
            (key,) = self.names([(record["switch"], None, record["port"])])
            key = key[0], key[2]
        true, variance = self.loads.get(key, (0.0, 0.0))
        said = record.get("bytes", 0)
        moved = any(start - 1 <= moment < end for moment, *_ in self.truth.faults)
        sums = self.sums[moved]
        sums["bytes"] += true
        sums["off"] += abs(said - true)
        sums["noise"] += 0.8 * variance ** 0.5
        self.records += 1
        if said and key not in self.near:
            self.phantom += 1
            self.phantoms.append((start, key, said))
