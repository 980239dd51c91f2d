# SPDX-License-Identifier: Apache-2.0
"""What a reader of all records holds for true at each moment, against the truth: how long each state
stands, and how long after a move all flows are right again."""
from collections import Counter
from heapq import merge

CLUSTER_S = 1.5  # faults so near to each other are one: what counts is the last
# A flow's time is calm when it neither began nor moved so lately, by its rate: its path can be known.
CALM_S = {"dense": 6, "usual": 12, "sparse": 30}
PATIENCE_S = 20  # flows that had less time until the next fault are not counted as never right


def rate_class(flow):
    return "dense" if flow.rate >= 20 else "usual" if flow.rate >= 1 else "sparse"


def timeline(truth, flow, claims):
    """[(second, state)]: right, outdated (resolved, but not so now), or as the record says. Of a
    sprayed flow that it takes several paths is right."""
    state, hops, path, out = "none", None, None, []
    moments = merge(((m, 1, paths) for m, paths in truth.history[flow.number]),
                    ((m, 0, claim) for m, *claim in claims), key=lambda item: item[0])
    for moment, is_truth, value in moments:
        if is_truth:
            path = value
        else:
            state, hops = value
        word = state
        if state == "resolved":
            word = "right" if hops in path and not flow.sprayed else "outdated"
        elif state == "multipath" and flow.sprayed:
            word = "right"
        if not out or out[-1][1] != word:
            out.append((moment, word))
    return out


def add_shares(shares, flow, line, spans):
    """Adds the seconds of each (class of rate, state) within spans of time."""
    for (start, state), (end, _) in zip(line, [*line[1:], (flow.end, None)]):
        for begin, until in spans:
            seconds = min(end, until) - max(start, begin)
            if seconds > 0:
                shares[rate_class(flow), state] += seconds


def calm_spans(truth, flow):
    """[(from, to)]"""
    moments = [flow.start, *(moment for moment, _ in truth.history[flow.number][1:]), flow.end]
    calm = CALM_S[rate_class(flow)]
    return [(moment + calm, following) for moment, following in zip(moments, moments[1:])
            if moment + calm < following]


def clusters(truth, seconds):
    """[(first fault, last fault, next cluster's first)]"""
    out = []
    for moment, *_ in truth.faults:
        if out and moment - out[-1][1] <= CLUSTER_S:
            out[-1][1] = moment
        else:
            out.append([moment, moment])
    starts = [start for start, _ in out[1:]] + [seconds]
    return [(start, last, following) for (start, last), following in zip(out, starts)]


def right_after(line, last, following):
    """Seconds from the last fault until the flow is right until the next; None: it is not."""
    since, state = last, "none"
    for moment, word in line:
        if moment >= following:
            break
        if (word == "right") != (state == "right"):
            since = max(moment, last)
        state = word
    return since - last if state == "right" else None


def judge(truth, claims, seconds):
    """(shares: {(class, state): seconds}, calm: the same of calm time, settled:
    {class: [seconds]}, unsettled: {class: count}, slow: [(flow, last fault, seconds or None)] of those
    that took longer than till calm)"""
    shares, calm, settled, unsettled, slow = Counter(), Counter(), {}, Counter(), []
    spans = clusters(truth, seconds)
    for flow in truth.flows:
        line = timeline(truth, flow, claims[flow.number])
        add_shares(shares, flow, line, [(flow.start, flow.end)])
        add_shares(calm, flow, line, calm_spans(truth, flow))
        if flow.sprayed:
            continue
        moved = [moment for moment, _ in truth.history[flow.number][1:]]
        for start, last, following in spans:
            if not (flow.start < start - 5 and following <= flow.end and
                    any(start <= moment <= last for moment in moved)):
                continue
            took = right_after(line, last, following)
            if took is not None:
                settled.setdefault(rate_class(flow), []).append(took)
            elif following - last >= PATIENCE_S:
                unsettled[rate_class(flow)] += 1
            else:
                continue
            if took is None or took > CALM_S[rate_class(flow)]:
                slow.append((flow, last, took))
    return shares, calm, settled, unsettled, slow
