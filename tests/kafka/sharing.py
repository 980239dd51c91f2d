# SPDX-License-Identifier: Apache-2.0
"""What daemons that share the flows of a fabric published, a line at a time, and held against what one
daemon found of the same traffic. Times are those of the traffic: of each run they are moved back by
what the feeder moved them."""
import json
import math
import sys
from collections import defaultdict
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "golden" / "daemon")]
from group import same  # noqa: E402
from rig import check  # noqa: E402

KNOWN_MS = 6000
DEVIATIONS = 2
NAMES = ("schema", "window_start_ms", "window_end_ms", "fabric", "switch", "port", "peer", "peer_port", "tier",
         "direction", "group", "speed_bps", "scope", "name", "links", "groups", "partial", "seen_share",
         "missing_partitions", "unaccounted_partitions")
CLOCK_MS = 10**12  # a number of milliseconds beyond this is a moment


class Lines:
    """A file of records that grows: what came since it was asked last is read, and no more."""

    def __init__(self, file):
        self.file, self.at, self.windows = file, 0, set()

    def windows_closed(self):
        """The beginnings of those of which it has imbalance."""
        if not self.file.exists():
            return self.windows
        with open(self.file, "rb") as lines:
            lines.seek(self.at)
            for line in lines:
                if not line.endswith(b"\n"):
                    break
                self.at += len(line)
                if b'"fabrictrace.imbalance.v1"' in line:
                    self.windows.add(json.loads(line)["window_start_ms"])
        return self.windows


def moved(value, shift_ms):
    """A record as of the time of the traffic."""
    if isinstance(value, dict):
        return {k: v - shift_ms if k.endswith("_ms") and isinstance(v, int) and v > CLOCK_MS
                else moved(v, shift_ms) for k, v in value.items()}
    if isinstance(value, list):
        return [moved(v, shift_ms) for v in value]
    return value


def published(daemon, kind, shift_ms=0):
    mark = f'"fabrictrace.{kind}.v1"'
    with open(daemon.out, encoding="utf-8") as lines:
        for line in lines:
            # One that was killed may have left half a line.
            if mark in line and line.endswith("\n"):
                yield moved(json.loads(line), shift_ms)


def flow_of(r):
    return json.dumps(r["flow"], sort_keys=True)


def paths_of(daemon):
    """{flow: since when it has its first path}, as this daemon says."""
    found = {}
    for r in published(daemon, "path"):
        if r["state"] == "resolved":
            found.setdefault(flow_of(r), r["path_since_ms"])
    return found


def check_known(group):
    """Who took flows over knows their paths by samples of long before."""
    before, after = (paths_of(m) for m in group.members)
    taken = before.keys() & after.keys()
    known = {f for f in taken if after[f] < group.changed_ms - KNOWN_MS}
    check(f"{group.name}: of {len(taken)} flows that were taken over {len(known)} have their path since "
          f"{KNOWN_MS // 1000} s before that", len(known) > len(taken) / 2 > 10)


def by_name(records):
    return {(r["window_start_ms"], r.get("switch"), r.get("port"), r.get("scope"), r.get("name"),
             r.get("group")): r for r in records}


class Learnt:
    """Who takes flows over, or begins anew, does not know which switches saw a part of a flow alone by all
    windows of before: these are left out where one daemon goes on. Of samples as few as a flow has that is
    often chance, and with or without such a switch the figure is an estimate of the same traffic,
    with the error of its samples. file: of observations; since_ms: windows that begin after it may be of
    such a daemon."""

    def __init__(self, file, since_ms):
        self.since_ms = since_ms
        with open(file, encoding="utf-8") as lines:
            self.sample_bytes = max(r["bytes"] / r["samples"] for r in map(json.loads, lines))

    def same(self, a, b):
        """Two records of loads, of one name."""
        if a["window_start_ms"] <= self.since_ms:
            return same(a, b)
        most = max(a["bytes"], b["bytes"], self.sample_bytes)
        return (abs(a["bytes"] - b["bytes"]) <= DEVIATIONS * math.sqrt(most * self.sample_bytes)
                and all(a.get(k) == b.get(k) for k in NAMES))


class Found:
    """What is said of each flow's path, and the figures of each window. When exactly a record is made,
    and so how many samples its hops have by then, is of no meaning."""

    def __init__(self, daemons, shift_ms):
        self.paths, self.since, self.rates, self.records = defaultdict(set), defaultdict(set), {}, 0
        for daemon in daemons:
            for r in published(daemon, "path", shift_ms):
                self.add(r)

    def add(self, r):
        self.records += 1
        flow = flow_of(r)
        # Whether a flow that is sampled seldom is known yet is a matter of that moment, too.
        if r["state"] != "unresolved":
            hops = tuple((h["switch"], h.get("in"), h.get("out")) for h in r.get("hops", ()))
            self.paths[flow].add((r["state"], hops, r.get("role")))
            self.since[flow].add(r.get("path_since_ms"))
        if "rate_bps" in r:
            self.rates[flow, r["window_start_ms"]] = tuple(
                r.get(k) for k in ("bytes", "rate_bps", "rate_lo_bps", "rate_hi_bps"))

    def first(self):
        """Since when each flow has a path. One that is silent for long is taken for a new one when it is
        sampled again: whether it was forgotten by then depends on when that is looked at."""
        return {flow: min(times) for flow, times in self.since.items()}

    def differences(self, other, since):
        """Flows of which another path is said, or another time since when they have one."""
        what = [(self.paths, other.paths)] + [(self.first(), other.first())] * since
        return [(k, a.get(k), b.get(k)) for a, b in what for k in a.keys() | b.keys()
                if a.get(k) != b.get(k)]


def compare_rates(name, one, mine, rest):
    single = {k for k in one.rates if k[1] in rest}
    both = single & mine.rates.keys()
    check(f"{name}: rates of flows in {len(both)} windows, the same as of one daemon",
          {flow for flow, _ in mine.rates} == {flow for flow, _ in one.rates}
          and len(both) > len(single) * 0.8
          and all(one.rates[k] == mine.rates[k] for k in both),
          (len(single), len(mine.rates), [(one.rates[k], mine.rates[k]) for k in both
                                             if one.rates[k] != mine.rates[k]][:3]))


def judge(group, alone, span, allowed, learnt=None):
    """alone: the one daemon, with what was found of its paths; span: (first, last) window of the
    traffic; allowed: windows that may say what they miss; learnt: of a group whose members changed."""
    name, is_same = group.name, learnt.same if learnt else same
    whole = {kind: by_name(published(group.aggregator, kind, group.shift_ms))
             for kind in ("link", "imbalance")}
    single = {kind: by_name(published(alone, kind, alone.shift_ms)) for kind in ("link", "imbalance")}
    within = {k[0] for k in single["imbalance"] if span[0] <= k[0] <= span[1]}
    marked = {k[0] for k, r in whole["imbalance"].items()
              if r.get("partial") or r.get("missing_partitions")} & within
    check(f"{name}: {len(marked)} of {len(within)} windows say that they miss something, at most "
          f"{allowed}", len(marked) <= allowed < len(within), sorted(marked))
    rest = within - marked
    for kind in ("link", "imbalance"):
        a, b = ({k: r for k, r in found[kind].items() if k[0] in rest} for found in (single, whole))
        check(f"{name}: {len(a)} {kind} records of {len(rest)} windows, the same as of one daemon",
              a and a.keys() == b.keys() and all(is_same(a[k], b[k]) for k in a),
              (len(a), len(b), list(a.keys() ^ b.keys())[:2],
               sum(k in b and not is_same(a[k], b[k]) for k in a),
               [(a[k], b[k]) for k in a if k in b and not is_same(a[k], b[k])][:1]))
    mine = Found(group.members, group.shift_ms)
    # Who takes a flow over does not know since when it has its path, beyond what is read back.
    wrong = alone.found.differences(mine, since=allowed == 0)
    check(f"{name}: paths of {len(mine.paths)} flows in {mine.records} records, the same as of one daemon",
          mine.paths and not wrong, (len(wrong), wrong[:3]))
    compare_rates(name, alone.found, mine, rest)
