# SPDX-License-Identifier: Apache-2.0
"""Path records against the truth. Pure: takes records one by one, in the order of the output.

A resolved record is judged at its moment: `time_ms`, the newest sample that it rests on. A record
without that member is judged at the end of its window, at its `path_since_ms` if that is later, and
never after it was published.
  right  its hops are the true path at that moment
  stale  they are the path that was true within 1 s, and the longest delay of a sample, before
  wrong  all else; "never": the flow never had that path, "late" and "early": not at that moment
  since_wrong  the path is right, and was not so within 1 s (and the delay) of its path_since_ms
  since_late   a flow of 20 samples/s and more moved to it more than a window before path_since_ms;
               one that is sprayed, and of whose paths one is left, is judged once a window
  single       the flow is sprayed; single_late: and others have been seen to be
"""
from collections import Counter

from .samples import BASE_MS, CLOCK

STALE_S = 1.0
EVIDENCE_S = 32.0  # shares tell of all samples that still count
KEPT_WRONG = 50
LATE_S = 10.0  # a window; of flows with many samples, for which path_since_ms can be so good
DENSE_FROM = 20
SPRAYING_KNOWN_S = 10.0  # after so long a daemon has seen that flows are sprayed


def hops_of(hops):
    return tuple((hop.get("switch"), hop.get("in"), hop.get("out")) for hop in hops)


def fits(said, path):
    """Whether a partial path's certain hops are all on a path; what a hop leaves open fits."""
    return all(any(all(s is None or s == t for s, t in zip(hop, true)) for true in path)
               for hop in said)


def second_of(ms):
    return (ms - BASE_MS) / 1000.0


class Judge:
    """names(hops) turns the names of a fabric without a file into those of the truth."""

    def __init__(self, truth, names=None):
        self.truth, self.names = truth, names
        self.counts = Counter()
        self.found = []  # (verdict, record, moment, published) of the first ones that are not so
        self.since_errors = []  # seconds between the last true move and path_since_ms
        self.since_seen = set()
        self.claims = [[] for _ in truth.flows]  # (published, state, hops)
        self.clock_s = 0.0

    def take(self, record):
        """A record of any kind. When it was published is known from the clock's next one."""
        schema = record["schema"]
        if schema == "fabrictrace.path.v1":
            self.path(record)
        elif schema == "fabrictrace.host.v1" and record.get("source") == CLOCK:
            self.clock_s = second_of(record["time_ms"])

    def moment(self, record):
        if "time_ms" in record:
            return second_of(record["time_ms"])
        ends = second_of(max(record["window_end_ms"], record.get("path_since_ms", 0)))
        return min(ends, self.clock_s + 1.0)

    def path(self, record):
        counts = self.counts
        counts["records"] += 1
        named = record["flow"]
        flow = self.truth.by_tuple.get((named["src"], named["dst"], named["sport"]))
        if flow is None:
            self.note("foreign", record)
            return
        state = record["state"]
        hops = hops_of(record.get("hops", ()))
        if self.names:
            hops = self.names(hops)
        counts[state] += 1
        # What comes before the clock's mark of a second was published within that second.
        claims = self.claims[flow.number]
        news = not claims or claims[-1][1:] != (state, hops)
        claims.append((self.clock_s + 1.0, state, hops))
        self.check_times(record, news)
        if state == "resolved":
            self.resolved(flow, record, hops)
        elif state == "partial":
            self.partial(flow, record, hops)
        elif state == "multipath":
            self.multipath(flow, record)

    def note(self, verdict, record):
        self.counts[verdict] += 1
        if verdict not in ("right", "stale") and \
                sum(1 for f in self.found if f[0] == verdict) < KEPT_WRONG:
            self.found.append((verdict, record, self.moment(record), self.clock_s + 1.0))

    def check_times(self, record, news):
        """The window of a record holds what it tells of. One that says again what was said may rest
        on samples from before its window."""
        start, end = record["window_start_ms"], record["window_end_ms"]
        time = record.get("time_ms", start)
        if record.get("path_since_ms", 0) > end or time > end or news and time < start:
            self.note("outside", record)

    def resolved(self, flow, record, hops):
        moment = self.moment(record)
        if len(hops) > 1 and not sum(hop.get("samples", 0) for hop in record["hops"]):
            self.note("no_samples", record)
        verdict = self.verdict(flow, hops, moment)
        if len(self.truth.at(flow, moment)) > 1 and verdict in ("right", "stale"):
            verdict = "single"
            self.counts["single_late"] += self.clock_s >= SPRAYING_KNOWN_S
        elif verdict == "right":
            self.compare_since(flow, record, hops, moment)
        if verdict in ("never", "late", "early"):
            self.counts[verdict] += 1
            verdict = "wrong"
        self.note(verdict, record)

    def verdict(self, flow, hops, moment):
        truth = self.truth
        if hops in truth.at(flow, moment):
            return "right"
        if hops in truth.within(flow, moment - STALE_S - truth.delay_s, moment):
            return "stale"
        if hops not in truth.ever(flow):
            return "never"
        return "late" if hops in truth.within(flow, 0, moment) else "early"

    def partial(self, flow, record, hops):
        """Without time_ms what is certain may be so at any time from the window's end on."""
        moment = self.moment(record)
        until = moment if "time_ms" in record else self.clock_s + 1.0
        near = self.truth.within(flow, moment - STALE_S - self.truth.delay_s, until)
        if not any(fits(hops, path) for path in near):
            self.note("partial_wrong", record)

    def multipath(self, flow, record):
        """Sprayed flows alone take several paths; each has a part of the packets, never all."""
        shares = record.get("shares", ())
        moment = self.moment(record)
        if not flow.sprayed:
            self.note("unsprayed", record)
        if not shares or any(not share.get("hops") or not 0 < share.get("share", 0) < 1
                             for share in shares):
            self.note("bad_shares", record)
        if flow.sprayed:
            true = self.truth.within(flow, moment - EVIDENCE_S, moment)
            said = [hops_of(share.get("hops", ())) for share in shares]
            if self.names:
                said = [self.names(hops) for hops in said]
            if any(hops not in true for hops in said):
                self.note("wrong_share", record)

    def compare_since(self, flow, record, hops, moment):
        """Once for each time that a path is said to have begun."""
        if "path_since_ms" not in record or (flow.number, record["path_since_ms"]) in self.since_seen:
            return
        self.since_seen.add((flow.number, record["path_since_ms"]))
        since, moved = second_of(record["path_since_ms"]), self.truth.last_move(flow, moment)
        if hops not in self.truth.within(flow, since - STALE_S - self.truth.delay_s,
                                         since + STALE_S):
            self.note("since_wrong", record)
        if moved is not None and flow.start < moved:
            self.since_errors.append(since - moved)
            if flow.rate >= DENSE_FROM and not flow.sprayed and since - moved > LATE_S:
                self.note("since_late", record)
