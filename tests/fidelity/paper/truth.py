# SPDX-License-Identifier: Apache-2.0
"""The true path of each flow over time. Times are seconds since the run's start, as floats."""
from bisect import bisect_right

# rate: samples a second at each hop; one_in: packets for each sample; key: what hashes take;
# start, end: seconds within which it sends; ttl: of its packets as the host sends them
FIELDS = "number src dst sport rate one_in frame_bytes ack sprayed start end key ttl".split()


class Flow:
    __slots__ = FIELDS

    def __init__(self, **values):
        for name in FIELDS:
            setattr(self, name, values[name])

    @property
    def tuple(self):
        return self.src, self.dst, self.sport

    @property
    def bytes_per_s(self):
        return self.rate * self.one_in * self.frame_bytes

    def __str__(self):
        return f"{self.src}:{self.sport} > {self.dst}:4791"


class Truth:
    """history[flow's number] = [(second from which on, {path: part of the packets}), ...]"""

    def __init__(self, flows, delay_s):
        self.flows, self.delay_s = flows, delay_s
        self.by_tuple = {flow.tuple: flow for flow in flows}
        self.history = [[] for _ in flows]
        self.faults = []

    def follow(self, routing, faults, rng):
        """Lets the faults happen one by one, and notes each flow's way after it."""
        self.faults = faults
        self.note(routing, 0.0)
        for moment, what, which in faults:
            if what == "rehash":
                routing.seeds[which] = rng.getrandbits(64)
            elif what == "down":
                routing.down.add(which)
            elif what == "up":
                routing.down.discard(which)
            else:
                routing.round = what == "round"
            routing.refresh()
            self.note(routing, moment)
        for flow in self.flows:
            self.cut(flow)

    def note(self, routing, moment):
        for flow in self.flows:
            history = self.history[flow.number]
            now = routing.all_paths(flow) if flow.sprayed else {routing.path(flow): 1.0}
            if not history or history[-1][1] != now:
                history.append((moment, now))

    def cut(self, flow):
        """What is the way of a flow that does not send is nobody's business."""
        history = [(moment, now) for moment, now in self.history[flow.number]
                   if moment < flow.end]
        first = max(0, bisect_right(history, flow.start, key=lambda h: h[0]) - 1)
        self.history[flow.number] = history[first:]

    def at(self, flow, second):
        """{path: part} at a moment; before it sends the first, after that the last."""
        history = self.history[flow.number]
        return history[max(0, bisect_right(history, second, key=lambda h: h[0]) - 1)][1]

    def within(self, flow, start, end):
        """All paths that the flow had between two moments."""
        history = self.history[flow.number]
        first = max(0, bisect_right(history, start, key=lambda h: h[0]) - 1)
        last = max(0, bisect_right(history, end, key=lambda h: h[0]) - 1)
        return {path for _, paths in history[first:last + 1] for path in paths}

    def ever(self, flow):
        return {path for _, paths in self.history[flow.number] for path in paths}

    def last_move(self, flow, second):
        """The moment of its last move until then; None: it did not move."""
        history = self.history[flow.number]
        index = bisect_right(history, second, key=lambda h: h[0]) - 1
        return history[index][0] if index > 0 else None

    def spans(self, flow, start, end):
        """[(from, to, {path: part})] of the time in which it sends."""
        history = self.history[flow.number]
        start, end = max(start, flow.start), min(end, flow.end)
        for index, (begin, paths) in enumerate(history):
            until = history[index + 1][0] if index + 1 < len(history) else end
            begin, until = max(begin, start), min(until, end)
            if begin < until:
                yield begin, until, paths
