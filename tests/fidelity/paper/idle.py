# SPDX-License-Identifier: Apache-2.0
"""Links that are said to be idle or avoided, against what went over them; and links that are out,
against what is said of them."""
from .samples import BASE_MS
from .volumes import true_loads

WINDOW_S = 10
CARRIES = 0.5  # of what the links of its group carry on average: that is no idle link
SEEN_FROM = 2  # samples a second, of which each window has some
CHANCE_LESS = 1e-10  # probability that no flow takes a link: far below what raises an event
WORDS = "no flow on {}", "link down, or out of the group"


class Idle:
    """Takes events. Only of fabrics whose file has all names right."""

    def __init__(self, run):
        self.run, self.fabric = run, run.fabric
        self.judges = run.case.named and not run.fabric.told and not run.blind
        self.false, self.raised, self.cleared = [], [], []

    def members(self, group):
        """The ends by which a group's links send: those of a switch's uplinks, or of their peers."""
        switch, direction = group.rsplit("/", 1)
        return [(link.a, link.a_port) if direction == "up" else (link.b, link.b_port)
                for link in self.fabric.links if link.a == switch]

    def take(self, record):
        evidence = record.get("evidence", {})
        if not self.judges or record["kind"] not in ("underused", "polarization"):
            return
        if record.get("cleared"):
            self.cleared.append((record["subject"], second_of(record["time_ms"])))
            return
        members = self.members(evidence["group"])
        if record["kind"] == "underused":
            self.judge(record, members, [(evidence["switch"], evidence["port"])])
            return
        self.raised.append(record)
        for port in evidence.get("idle_ports", ()):
            self.judge(record, members, [end for end in members if end[1] == port])

    def judge(self, record, members, accused):
        """Of ports of one name one has to be idle."""
        start = second_of(max(record["since_ms"], record["evidence"].get("idle_since_ms", 0)))
        loads = true_loads(self.run.truth, start, second_of(record["time_ms"]))
        mean = sum(loads.get(end, 0) for end in members) / len(members)
        if all(loads.get(end, 0) >= CARRIES * mean for end in accused):
            self.false.append(record)

    def outages(self):
        """[(link, start of a window in all of which it is down)], where the flows that others of its
        switch's uplinks carry cannot leave it out by chance."""
        truth, out = self.run.truth, []
        for number, link in enumerate(self.fabric.links):
            for down, up in spans(truth.faults, number):
                first = -int(-(down + 1) // WINDOW_S) * WINDOW_S
                windows = range(first, int(up) - WINDOW_S + 1, WINDOW_S)
                out += [(link, start) for start in windows if self.must_show(link, start)]
        return out if self.judges else []

    def must_show(self, link, start):
        members, end = set(self.members(link.a + "/up")), start + WINDOW_S
        many = sum(1 for flow in self.run.truth.flows
                   if flow.rate >= SEEN_FROM and not flow.ack and not flow.sprayed and
                   flow.start < start - WINDOW_S and flow.end > end and
                   any((hop[0], hop[2]) in members
                       for path in self.run.truth.within(flow, start, end) for hop in path))
        of = len(members)
        return of >= 3 and of * (1 - 1 / of) ** many < CHANCE_LESS

    def told(self, link, start):
        """Whether an event that stands at the window's end names the link, in the words for it."""
        for record in self.raised:
            since, end = second_of(record["time_ms"]), start + WINDOW_S
            if record["subject"] == link.a + "/up" and since <= end and \
                    link.a_port in record["evidence"].get("idle_ports", ()) and \
                    all(words.format(link.a_port) in record["message"] for words in WORDS) and \
                    not any(subject == record["subject"] and since < when <= end
                            for subject, when in self.cleared):
                return True
        return False

    def counts(self):
        outages = self.outages()
        return {"false_idle": len(self.false), "outages": len(outages),
                "outages_told": sum(self.told(*outage) for outage in outages)}


def second_of(ms):
    return (ms - BASE_MS) / 1000


def spans(faults, number):
    """[(down, up)] of a link that comes back."""
    downs = [moment for moment, what, which in faults if what == "down" and which == number]
    ups = [moment for moment, what, which in faults if what == "up" and which == number]
    return list(zip(downs, ups))
