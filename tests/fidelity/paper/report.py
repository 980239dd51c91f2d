# SPDX-License-Identifier: Apache-2.0
"""What runs gave, added up by case, and the table of it."""
from collections import Counter

CLASSES = "dense", "usual", "sparse"
STATES = "right", "outdated", "partial", "multipath", "unresolved", "none"
COUNTS = ("records", "resolved", "right", "stale", "wrong", "never", "late", "early", "no_samples",
          "multipath", "unsprayed", "bad_shares", "wrong_share", "single",
          "single_late", "outside", "since_wrong", "since_late", "partial",
          "partial_wrong", "unresolved", "foreign", "links_phantom", "links", "observations", "runs", "false_events",
          "lies", "lies_named", "true_links", "found_links", "found_wrong",
          "false_idle", "outages", "outages_told")


# Of a tally: what is added up by key, and what is strung together.
COUNTERS = "counts", "unsettled", "shares", "calm", "events", "seconds"
LISTS = "since_errors", "known_after_s"


def quantile(values, part):
    """None where there are no values."""
    if not values:
        return None
    values = sorted(values)
    return values[min(len(values) - 1, int(part * len(values)))]


class Tally:
    """The sums of several runs of a case; plain data, so that processes can hand it over."""

    def __init__(self):
        self.counts, self.unsettled = Counter(), Counter()
        self.shares, self.calm = Counter(), Counter()  # seconds; see standing.py
        self.settled = {name: [] for name in CLASSES}
        self.since_errors = []
        self.events = Counter()  # by kind, as they are raised
        self.known_after_s = []  # a run without a topology file each: until 90 % of links are known
        self.volumes = {moved: Counter() for moved in (False, True)}
        self.seconds = Counter()  # of computing: generate, daemon, judge

    def add(self, other):
        for name in COUNTERS:
            getattr(self, name).update(getattr(other, name))
        for name in CLASSES:
            self.settled[name] += other.settled[name]
        for name in LISTS:
            getattr(self, name).extend(getattr(other, name))
        for moved in (False, True):
            self.volumes[moved].update(other.volumes[moved])

    def plain(self):
        """For JSON: all sums, with tuples as lists."""
        return {"counters": {name: [[list(key) if isinstance(key, tuple) else key, value]
                                    for key, value in getattr(self, name).items()]
                             for name in COUNTERS},
                "lists": {name: getattr(self, name) for name in LISTS}, "settled": self.settled,
                "volumes": {str(int(moved)): sums for moved, sums in self.volumes.items()}}

    @staticmethod
    def of_plain(plain):
        tally = Tally()
        for name, pairs in plain["counters"].items():
            getattr(tally, name).update({tuple(key) if isinstance(key, list) else key: value
                                         for key, value in pairs})
        for name, values in plain["lists"].items():
            setattr(tally, name, values)
        tally.settled = plain["settled"]
        tally.volumes = {bool(int(moved)): Counter(sums)
                         for moved, sums in plain["volumes"].items()}
        return tally

    def share(self, state, name=None, calm=False):
        """Of the seconds in which flows (of a class of rate) sent, the part in this state."""
        shares = self.calm if calm else self.shares
        mine = {key: value for key, value in shares.items() if name in (None, key[0])}
        total = sum(mine.values())
        return sum(v for k, v in mine.items() if k[1] == state) / total if total else None

    def all_settled(self):
        return [took for name in CLASSES for took in self.settled[name]]

    def as_json(self):
        settle = {name: {"moves": len(values), "half": quantile(values, 0.5),
                         "ninety": quantile(values, 0.9), "all": max(values, default=None),
                         "not_in_time": self.unsettled[name]}
                  for name, values in [*self.settled.items(), ("any", self.all_settled())]}
        settle["any"]["not_in_time"] = sum(self.unsettled.values())
        return {
            "counts": {name: self.counts[name] for name in COUNTS},
            "states": {state: self.share(state) for state in STATES},
            "right_when_calm": {name: self.share("right", name, True) for name in CLASSES},
            "partial": {name: self.share("partial", name) for name in CLASSES},
            "right_again_s": settle,
            "path_since_error_s": {str(part): quantile(self.since_errors, part)
                                   for part in (0, 0.01, 0.1, 0.5, 0.9, 0.99, 1)},
            "link_bytes": {
                "with_moves" if moved else "steady": {
                    "relative_error": ratio(sums["off"], sums["bytes"]),
                    "own_samples_error": ratio(sums["samples_off"], sums["bytes"])}
                for moved, sums in self.volumes.items()},
            "events": dict(self.events),
            "links_known_after_s": self.known_after_s,
            "computing_s": dict(self.seconds),
        }


def ratio(part, whole):
    return part / whole if whole else None


def number(value, form):
    return "-" if value is None else format(value, form)


COLUMNS = (
    ("CASE", lambda n, t: f"{n:<9}"), ("RUNS", lambda n, t: t.counts["runs"]),
    ("RECORDS", lambda n, t: t.counts["records"]), ("RIGHT", lambda n, t: t.counts["right"]),
    ("STALE", lambda n, t: t.counts["stale"]), ("WRONG", lambda n, t: t.counts["wrong"]),
    ("NEVER", lambda n, t: t.counts["never"]),
    ("NOSAMPL", lambda n, t: t.counts["no_samples"]),
    ("MULTI", lambda n, t: t.counts["unsprayed"]),
    ("OUTSIDE", lambda n, t: t.counts["outside"]),
    ("SINCE", lambda n, t: t.counts["since_wrong"] + t.counts["since_late"]),
    ("P.WRONG", lambda n, t: t.counts["partial_wrong"]),
    ("SINGLE", lambda n, t: t.counts["single"]),
    ("RIGHT%", lambda n, t: number(pc(t.share("right")), ".1f")),
    ("CALM%", lambda n, t: number(pc(t.share("right", None, True)), ".1f")),
    ("OLD%", lambda n, t: number(pc(t.share("outdated")), ".1f")),
    ("PARTIAL%", lambda n, t: number(pc(t.share("partial")), ".1f")),
    ("DENSE", lambda n, t: number(pc(t.share("partial", "dense")), ".1f")),
    ("USUAL", lambda n, t: number(pc(t.share("partial", "usual")), ".1f")),
    ("SPARSE", lambda n, t: number(pc(t.share("partial", "sparse")), ".1f")),
    ("90% S", lambda n, t: number(quantile(t.all_settled(), 0.9), ".1f")),
    ("ALL S", lambda n, t: number(max(t.all_settled(), default=None), ".1f")),
    ("DENSE S", lambda n, t: number(max(t.settled["dense"], default=None), ".1f")),
    ("NOT YET", lambda n, t: sum(t.unsettled.values())),
    ("PHANTOM", lambda n, t: t.counts["links_phantom"]),
    ("BYTES%", lambda n, t: number(pc(ratio(t.volumes[True]["off"], t.volumes[True]["bytes"])),
                                   ".0f")),
    ("SAMPLES", lambda n, t: number(pc(ratio(t.volumes[True]["samples_off"],
                                             t.volumes[True]["bytes"])), ".0f")),
)


def pc(part):
    return None if part is None else 100 * part


def table(tallies):
    """tallies: {case: Tally}; a line a case, and one of all."""
    whole = Tally()
    for tally in tallies.values():
        whole.add(tally)
    rows = [[title for title, _ in COLUMNS]]
    rows += [[str(cell(name, tally)) for _, cell in COLUMNS]
             for name, tally in [*tallies.items(), ("all", whole)]]
    widths = [max(len(row[i]) for row in rows) for i in range(len(COLUMNS))]
    return "\n".join("  ".join(text.rjust(width) if i else text.ljust(width)
                               for i, (text, width) in enumerate(zip(row, widths)))
                     for row in rows)


def settling(name, tally):
    """Half, 90 % and all of the moved flows, by class of rate: seconds until they are right."""
    texts = []
    for which in CLASSES:
        values, late = tally.settled[which], tally.unsettled[which]
        if values or late:
            texts.append(f"{which} {number(quantile(values, 0.5), '.1f')} / "
                         f"{number(quantile(values, 0.9), '.1f')} / "
                         f"{number(max(values, default=None), '.1f')} of {len(values)}"
                         f"{f', {late} not yet' if late else ''}")
    if tally.since_errors:
        texts.append("path_since " + " / ".join(f"{quantile(tally.since_errors, part):.1f}"
                                                for part in (0.01, 0.5, 0.99)))
    return f"{name:<9}  {'; '.join(texts)}" if texts else ""


def findings(name, tally):
    """What was found out beside paths."""
    counts, texts = tally.counts, []
    if counts["true_links"]:
        texts.append(f"links: {counts['found_links']} of {counts['true_links']} found, "
                     f"{counts['found_wrong']} wrong, 90 % after "
                     + ", ".join(number(after, ".0f") for after in tally.known_after_s) + " s")
    if counts["lies"]:
        texts.append(f"lies of the file: {counts['lies_named']} of {counts['lies']} named")
    if counts["outages"]:
        texts.append(f"windows with a link out: {counts['outages_told']} of {counts['outages']} named")
    if counts["false_idle"]:
        texts.append(f"busy links called idle: {counts['false_idle']}")
    if counts["false_events"]:
        texts.append(f"false accusations: {counts['false_events']}")
    if tally.events:
        texts.append("events: " + ", ".join(f"{n} {kind}" for kind, n in tally.events.most_common()))
    return f"{name:<9}  {'; '.join(texts)}" if texts else ""


def whole_text(tallies):
    out = [table(tallies)]
    for title, line in (("seconds until right again, half / 90 % / all; path_since_ms less the true "
                         "move, 1 / 50 / 99 %", settling), ("found", findings)):
        lines = [text for text in (line(name, tally) for name, tally in tallies.items()) if text]
        if lines:
            out += ["", title, *lines]
    return "\n".join(out)
