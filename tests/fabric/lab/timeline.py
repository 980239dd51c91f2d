# SPDX-License-Identifier: Apache-2.0
"""Truth by time, and what records say against it. Pure: takes looks at the kernel and records, gives
verdicts and texts.

A path record is judged by the path that was true at the record's moment: the newest sample that it
rests on, `time_ms`. It is `stale` when it tells the path of just before a move; `partial` when what
it states is so but not all; `wrong` when what it tells was not so.
"""
from bisect import bisect_left
from collections import Counter, defaultdict
from dataclasses import dataclass

from .records import path_of
from .truth import format_path

STALE_MS = 1000  # so long after a move the path before it is no fault
DELAY_MS = 1500  # an exporter's buffer, and the way to the poller
FOLD_MS = 1000  # samples of one interval of the poller have one time
EVIDENCE_MS = 30000  # the daemon's `evidence`: older samples say nothing
SHOWN_MOVES = 3
RIGHT, STALE, WRONG, PARTIAL, NONE = "right", "stale", "wrong", "partial", "no path"


@dataclass
class Span:
    """Every look from one time to another found these paths. A path may end early where packets do."""
    from_ms: float
    to_ms: float
    paths: dict


class Timeline:
    def __init__(self):
        self.spans = []
        self.changes_ms = []

    def look(self, at_ms, paths):
        """What the kernel said at a moment; in the order of time."""
        if self.spans and self.spans[-1].paths == paths:
            self.spans[-1].to_ms = at_ms
        else:
            self.spans.append(Span(at_ms, at_ms, paths))

    def at(self, flow, from_ms, to_ms):
        """Paths that may have been true of a flow at some time between these: between two looks that
        differ, either. None of a flow that nobody sent then."""
        spans = self.spans
        found = []
        first = max(0, bisect_left([span.to_ms for span in spans], from_ms) - 1)
        for index in range(first, len(spans)):
            begun = spans[index - 1].to_ms if index else spans[index].from_ms
            ended = spans[index + 1].from_ms if index + 1 < len(spans) else spans[index].to_ms
            if begun > to_ms:
                break
            path = spans[index].paths.get(flow)
            if ended >= from_ms and path is not None and path not in found:
                found.append(path)
        return found

    def ever(self, flow):
        return self.at(flow, float("-inf"), float("inf"))

    def history(self, flow):
        """[(since ms, path)] of a flow, each path other than the one before."""
        found = []
        for span in self.spans:
            path = span.paths.get(flow)
            if path is not None and (not found or found[-1][1] != path):
                found.append((span.from_ms, path))
        return found

    def steady(self, from_ms, to_ms):
        """{Flow: path} when no look told of another in all that time, else None."""
        for span in self.spans:
            if span.from_ms <= from_ms and to_ms <= span.to_ms:
                return span.paths
        return None

    def moved(self, flow):
        return len(self.ever(flow)) > 1


def fits(hops, state, path):
    """Whether what a record states is so of a path. A partial one may leave out hops, or one side of
    a hop, but not change their order."""
    if state == "resolved":
        return hops == path
    rest = iter(path)
    return all(any(all(said is None or said == real for said, real in zip(hop, true))
                   for true in rest) for hop in hops)


def moment(seen):
    """(from, to) in Unix ms: when what a record says was so. Without its own time, at some time since
    its window began."""
    at_ms = seen.record.get("time_ms")
    if at_ms is not None:
        return at_ms, min(at_ms + FOLD_MS, max(at_ms, seen.at_ms))
    return seen.record.get("window_start_ms", seen.at_ms), seen.at_ms


def late(records, at_ms):
    """How old, in ms, what is told at a time may be: besides, as old as programs waited for a
    processor."""
    usual = STALE_MS + DELAY_MS
    return usual + 1000 * records.waited.seconds(at_ms - usual, at_ms)


def verdict(seen, timeline, late_ms=STALE_MS + DELAY_MS):
    """One of RIGHT, STALE, WRONG, PARTIAL and NONE for a path record."""
    record, flow = seen.record, seen.flow
    state = record["state"]
    hops = path_of(record.get("hops", ()))
    if not timeline.ever(flow) or state == "multipath":
        return WRONG
    if state == "unresolved" or not hops:
        return NONE if state != "resolved" else WRONG
    from_ms, to_ms = moment(seen)
    # A flow that has just stopped is still told of; what was true last counts.
    last_ms = timeline.spans[-1].to_ms
    from_ms, to_ms = min(from_ms, last_ms), min(to_ms, last_ms)
    if any(fits(hops, state, path) for path in timeline.at(flow, from_ms, to_ms)):
        return RIGHT if state == "resolved" else PARTIAL
    before = timeline.at(flow, from_ms - late_ms, to_ms)
    return STALE if any(fits(hops, state, path) for path in before) else WRONG


def describe(seen, timeline):
    from_ms, to_ms = moment(seen)
    record = seen.record
    samples = [hop.get("samples", 0) for hop in record.get("hops", ())]
    true = timeline.at(seen.flow, from_ms, to_ms) or timeline.ever(seen.flow)
    spans = [(from_ms - span_ms, path) for span_ms, path in timeline.history(seen.flow)
             if span_ms < from_ms]
    before = [f"since {since_ms / 1000:.1f} s before: {format_path(path)}"
              for since_ms, path in spans[-SHOWN_MOVES:]]
    return (f"{seen.flow} {record['state']} {record.get('reason', '')}: "
            f"{format_path(path_of(record.get('hops', ())))} samples {samples}, of {from_ms:.0f}, "
            f"window {record.get('window_start_ms')}, came {seen.at_ms:.0f}; the kernel says "
            f"{' or '.join(map(format_path, true)) or 'nobody sent it'}; {', '.join(before)}")


def judge(records, timeline, since_ms=0, others=()):
    """({verdict: records}, texts of the wrong ones). others: flows that are judged elsewhere."""
    count, wrong = Counter(), []
    for seen in records.of("path", since_ms):
        if seen.flow in others:
            continue
        said = verdict(seen, timeline, late(records, seen.at_ms))
        count[said] += 1
        if said == WRONG:
            wrong.append(describe(seen, timeline))
    return count, wrong


def without_samples(records, hops_min=1):
    """Records that give a path of hops_min or more to a flow of which no hop has a sample, nor had one
    that still counts at the record's moment."""
    wrong = []
    for seen in records.of("path"):
        record = seen.record
        at_ms = record.get("time_ms", float("-inf"))
        if record["state"] == "resolved" and len(record["hops"]) >= hops_min \
                and not any(hop.get("samples") for hop in record["hops"]) \
                and at_ms + EVIDENCE_MS < record.get("window_end_ms", seen.at_ms):
            wrong.append(f"{seen.flow}: resolved, {len(record['hops'])} hops without a sample")
    return wrong


def unattested(records, snapshots, since_ms=0):
    """Resolved records of a moment from which on, until they came, no switch sampled the flow, by
    snapshots ([(from ms, to ms, {(Flow, switch, in, out): samples})]). A window's record takes samples
    from after its end too."""
    counts = [(begun_ms, ended_ms, _by_flow(sampled)) for begun_ms, ended_ms, sampled in snapshots]
    wrong = []
    for seen in records.of("path", since_ms):
        at_ms = seen.record.get("time_ms")
        if seen.record["state"] != "resolved" or at_ms is None:
            continue
        oldest_ms = at_ms - late(records, at_ms)
        before = [sampled for _, ended_ms, sampled in counts if ended_ms <= oldest_ms][-1:]
        after = [sampled for begun_ms, _, sampled in counts if begun_ms >= max(seen.at_ms, at_ms + FOLD_MS)][:1]
        if before and after and after[0][seen.flow] == before[0][seen.flow]:
            wrong.append(f"{seen.flow}: resolved, as of {at_ms}, when it was not sampled")
    return wrong


def _by_flow(sampled):
    total = Counter()
    for (flow, *_), samples in sampled.items():
        total[flow] += samples
    return total


def outside_window(records, timeline, since_ms=0):
    """Records of a moment after their window; resolved ones whose path is said to be there since after
    their window or moment, or since a time when the flow had another."""
    wrong = []
    for seen in records.of("path", since_ms):
        record = seen.record
        since, at_ms, end = (record.get(f"{name}_ms") for name in ("path_since", "time", "window_end"))
        if at_ms is not None and end is not None and at_ms >= end:
            wrong.append(f"{seen.flow}: of {at_ms}, {at_ms - end} ms after its window's end")
        if record["state"] != "resolved" or since is None or not timeline.ever(seen.flow):
            continue
        hops = path_of(record["hops"])
        if at_ms is not None and since > at_ms:
            wrong.append(f"{seen.flow}: since {since}, but of {at_ms}")
        if end is not None and since >= end:
            wrong.append(f"{seen.flow}: since {since}, {since - end} ms after its window's end")
        elif hops in timeline.ever(seen.flow) and hops not in timeline.at(
                seen.flow, since - late(records, since), since + FOLD_MS):
            wrong.append(f"{seen.flow}: {format_path(hops)} since {since}, when it was another")
    return wrong


def idle_links(records, timeline, start_ms, stop_ms):
    """Link records with bytes of a link over which no flow went in that window."""
    wrong = []
    used = {}
    for seen in records.of("link"):
        record = seen.record
        window = record["window_start_ms"], record["window_end_ms"]
        if not record.get("bytes") or window[0] < start_ms or window[1] > stop_ms:
            continue
        if window not in used:
            used[window] = _used(timeline, window[0] - late(records, window[0]) + STALE_MS,
                                 window[1])
        if (record["switch"], record["port"]) not in used[window]:
            wrong.append(f"window {window[0]}, {record['switch']} {record['port']}: "
                         f"{record['bytes']} bytes where none were sent")
    return wrong


def _used(timeline, from_ms, to_ms):
    flows = {flow for span in timeline.spans for flow in span.paths}
    return {(switch, out) for flow in flows for path in timeline.at(flow, from_ms, to_ms)
            for switch, _, out in path}


def wrong_moves(records, timeline, since_ms=0):
    """path_change events that tell of paths a flow never had, or of one that it did not leave."""
    wrong = []
    for seen in records.of("event", since_ms):
        if seen.record["kind"] != "path_change":
            continue
        evidence = seen.record["evidence"]
        flow = seen.__class__(seen.at_ms, evidence).flow
        old, new = (path_of(evidence.get(name, ())) for name in ("old_hops", "new_hops"))
        ever = timeline.ever(flow)
        if old == new or old not in ever or new not in ever:
            wrong.append(f"{flow}: path_change from {format_path(old)} to {format_path(new)}, the "
                         f"kernel's {' and '.join(map(format_path, ever))}")
    return wrong


def right_again_ms(records, paths, since_ms, until_ms=float("inf")):
    """{Flow: ms} for {Flow: path}: how long after since_ms its newest record told that path for good;
    None where it does not until until_ms."""
    good = dict.fromkeys(paths)
    for seen in records.of("path"):
        flow, record = seen.flow, seen.record
        if flow in good and seen.at_ms < until_ms:
            right = record["state"] == "resolved" and path_of(record["hops"]) == paths[flow]
            if not right:
                good[flow] = None
            elif good[flow] is None:
                good[flow] = max(0.0, seen.at_ms - since_ms)
    return good


def unsettled(records, timeline, flows, limit_ms, end_ms):
    """Of every time without a change that is longer than limit_ms: texts, of flows that were not right
    for good within limit_ms; and sorted, after how many ms those were that were not so before."""
    wrong, times = [], []
    for begun_ms, until_ms in zip(timeline.changes_ms, [*timeline.changes_ms[1:], end_ms]):
        paths = {flow: timeline.at(flow, begun_ms + 1, begun_ms + 1)[-1] for flow in flows}
        waited_ms = 1000 * records.waited.seconds(begun_ms, begun_ms + limit_ms)
        if until_ms - begun_ms < limit_ms + waited_ms:
            continue
        for flow, ms in right_again_ms(records, paths, begun_ms, until_ms).items():
            if ms is None or ms > limit_ms + waited_ms:
                wrong.append(f"{flow}: a change at {begun_ms:.0f}, right "
                             f"{'never' if ms is None else f'after {ms / 1000:.1f} s'}, of which "
                             f"programs waited {waited_ms / 1000:.1f} s for a processor")
            elif ms:
                times.append(ms)
    return wrong, sorted(times)


def disagreements(timeline, snapshots):
    """Texts: where counters tell of hops that the kernel's routes did not, between snapshots
    ([(from ms, to ms, {(Flow, switch, in, out): packets})]) without a change."""
    wrong, compared = [], 0
    for (before_ms, _, before), (_, after_ms, after) in zip(snapshots, snapshots[1:]):
        paths = timeline.steady(before_ms, after_ms)
        if paths is None:
            continue
        hops = defaultdict(set)
        for (flow, *hop), packets in after.items():
            if packets > before.get((flow, *hop), 0):
                hops[flow].add(tuple(hop))
        compared += 1
        wrong += [f"{flow}: counters say {sorted(some)}, routes {format_path(paths.get(flow, ()))}"
                  for flow, some in hops.items() if not some <= set(paths.get(flow, ()))]
    return wrong, compared
