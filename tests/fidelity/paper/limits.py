# SPDX-License-Identifier: Apache-2.0
"""What must hold, all in one place. broken(name, tally) gives texts of what does not, for the runs of
one case; an empty list is a pass."""
from .report import quantile, ratio

# Counts that are 0, whatever befalls the fabric.
NEVER = {
    "wrong": "resolved records whose path was not the flow's at that moment",
    "no_samples": "resolved records without a single sample",
    "unsprayed": "multipath records of flows that are not sprayed",
    "bad_shares": "multipath records without hops, or with a share of 0 or 1",
    "wrong_share": "multipath records with a path that was not one of the flow's",
    "single_late": "resolved records of flows that are sprayed, when others had been seen to be",
    "partial_wrong": "partial records with a certain hop that is not so",
    "outside": "path records with times outside their window",
    "since_wrong": "right paths that were not the flow's at their path_since_ms",
    "since_late": "dense flows whose path_since_ms is a window and more after the move",
    "foreign": "path records of flows that nobody sent",
    "links_phantom": "link records with bytes where none went in the window",
    "false_events": "events that accuse a cable, a switch or its sampling falsely",
    "found_wrong": "links found that are not there",
    "false_idle": "events that call a link idle or avoided that carries its share",
}

# Dense flows, of 20 samples a second at each hop and more: seconds from the last move of a group
# until the path that is right for good is published. Publishing is known by the second.
DENSE_S = 5.0 + 1.0
DENSE_CASES = "moves2", "moves3", "bounce", "double", "rehash", "parallel"

# Least share of the calm time in which the standing record of a flow is right, by its rate: who says
# nothing would never be wrong.
RIGHT = {"dense": 0.96, "usual": 0.93, "sparse": 0.70}
# Where others are sprayed, a path counts once chance alone would hardly show it: lib/fabric/spraying.h.
RIGHT_BESIDE_SPRAYING = {"dense": 0.94, "usual": 0.90, "sparse": 0.65}
RIGHT_WHEN_STEADY = {"dense": 0.999, "usual": 0.995, "sparse": 0.95}
# What a switch says of its ports is up to 20 s old when a link is back.
RIGHT_WITH_PORTS = {"dense": 0.85, "usual": 0.80, "sparse": 0.60}
RIGHT_WITH_LIES = {"dense": 0.60, "usual": 0.60, "sparse": 0.40}
RIGHT_WITHOUT_FILE = {"dense": 0.50, "usual": 0.40}
STEADY = "steady2", "steady3"
SPRAYED = "spray",
LYING = "blind", "swapped", "swapped-moves", "detour", "detour-later", "swapped-bridged"
PORTS = "linkdown", "chaos"
NO_FILE = "nofile"  # how they begin
# A tunnel has no TTL that hosts send: a cable shows in one direction, where the leaf is known to
# sample what it receives. What shows is right; the rest has to be told.
TUNNEL = "nofile-tunnel", "nofile-tunnel-blind"
# Of a switch that is silent and that no file names; of hosts behind leaves that show the TTL which
# the spines show; and of cables that tunnels hide, where the file is wrong.
UNKNOWABLE = "nofile-blind", "nofile-bridged", "nofile-bridged-blind", "swapped-tunnel", *TUNNEL

# No event is owed for what tunnels hide, nor for a detour for a while that few samples show.
UNNAMED = "swapped-tunnel", "detour-later"

# Bytes of links in windows with moves, beside what is off without any: twice what each link's own
# samples are off, or what those of windows without moves have too many, as flows do that are new and
# have few samples. What is left is said of links that did not carry it; and what is missing is of
# flows whose path is not certain, and said of none.
OVER_PART, MISSING_PART = 0.12, 0.20

# Without a topology file: part of the links that is found. Below a tier that does not count the TTL
# down, the leaves' links stay open.
FOUND, FOUND_BRIDGED = 0.8, 0.6


def broken(name, tally):
    # A path over a link whose switch has not said yet that it is back is believed late.
    counts = [count for count in NEVER if count != "since_late" or name not in PORTS]
    out = [f"{tally.counts[count]} {NEVER[count]}" for count in counts if tally.counts[count]]
    return out + slow(name, tally) + silent(name, tally) + misplaced(tally) + unfound(name, tally)


def slow(name, tally):
    settled = tally.settled["dense"]
    if name not in DENSE_CASES or not settled and not tally.unsettled["dense"]:
        return []
    out = []
    if settled and max(settled) > DENSE_S:
        late = sum(took > DENSE_S for took in settled)
        out.append(f"dense flows are right after {max(settled):.1f} s ({late} of {len(settled)} "
                   f"later than {DENSE_S:.0f} s, half after {quantile(settled, 0.5):.1f} s)")
    if tally.unsettled["dense"]:
        out.append(f"{tally.unsettled['dense']} times a dense flow was not right until the next "
                   f"fault, of {len(settled) + tally.unsettled['dense']}")
    return out


def least_right(name):
    for names, least in ((STEADY, RIGHT_WHEN_STEADY), (UNKNOWABLE, {}),
                         (SPRAYED, RIGHT_BESIDE_SPRAYING),
                         (LYING, RIGHT_WITH_LIES), (PORTS, RIGHT_WITH_PORTS)):
        if name in names:
            return least
    return RIGHT_WITHOUT_FILE if name.startswith(NO_FILE) else RIGHT


def silent(name, tally):
    least = least_right(name)
    shares = {which: tally.share("right", which, True) for which in least}
    return [f"{which} flows: right for {100 * share:.1f} % of calm time, not "
            f"{100 * least[which]:.1f} %"
            for which, share in shares.items() if share is not None and share < least[which]]


def misplaced(tally):
    sums, calm = tally.volumes[True], tally.volumes[False]
    least = ratio(sums["samples_off"], sums["bytes"])
    if least is None:
        return []
    usual = ratio(calm["over"], calm["bytes"]) or 0
    parts = (("too many", sums["over"], max(2 * least, usual) + OVER_PART),
             ("missing", sums["off"] - sums["over"], 2 * least + MISSING_PART))
    return [f"bytes of links in windows with moves: {100 * ratio(part, sums['bytes']):.1f} % {what}, "
            f"where the links' own samples are {100 * least:.1f} % off, and without moves "
            f"{100 * usual:.1f} % are too many"
            for what, part, most in parts if ratio(part, sums["bytes"]) > most]


def unfound(name, tally):
    out = []
    if name not in UNNAMED and tally.counts["lies_named"] < tally.counts["lies"]:
        out.append(f"{tally.counts['lies'] - tally.counts['lies_named']} of {tally.counts['lies']} "
                   f"lies of the file are named by no event")
    if name.startswith(NO_FILE) and name not in TUNNEL and \
            tally.counts["found_links"] < \
            (FOUND_BRIDGED if "bridged" in name else FOUND) * tally.counts["true_links"]:
        out.append(f"{tally.counts['found_links']} of {tally.counts['true_links']} links are found")
    return out
