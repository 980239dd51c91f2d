# SPDX-License-Identifier: Apache-2.0
"""A schedule of what changes flows' paths: which, when, from a seed. Pure, but for `Step.apply`.

single: a link goes down, and comes back after a while. bounce: it is down for half a second. double:
two changes within 0.7 s. hash: a switch hashes another way. group: a link leaves its ECMP groups
while it stays up, and returns.
"""
from dataclasses import dataclass

KINDS = ("double", "bounce", "single", "hash", "group")
CALM_S = 5, 9  # between one and the next
HOLD_S = 4, 8  # a link that is gone stays so
BOUNCE_S = 0.5
DOUBLE_S = 0.3, 0.7


@dataclass(frozen=True)
class Step:
    at_s: float
    kind: str
    what: str  # down, up, leave, join, hash
    subject: object  # a Link, or (switch, seed)

    def apply(self, fabric):
        if self.what in ("down", "up"):
            fabric.set_cable(self.subject, self.what == "up")
        elif self.what in ("leave", "join"):
            fabric.set_routed(self.subject, self.what == "join")
        else:
            fabric.set_hash(*self.subject)

    def __str__(self):
        if self.what == "hash":
            return f"{self.kind}: {self.subject[0]} hashes with {self.subject[1]}"
        return (f"{self.kind}: {self.subject.a.node} {self.subject.a.name} to "
                f"{self.subject.b.node} {self.what}")


def movable(layout):
    """Links without which every leaf still reaches every other, none of a detour's."""
    def held(link):
        return any(link.b.node in (d.spine, d.second) and link.a.node in (d.leaf, d.via)
                   for d in layout.detours)

    return [link for link in layout.fabric_links
            if not held(link) and reaches_all(layout, {link})]


def reaches_all(layout, dead):
    """Whether each leaf has a way to each other."""
    return all(layout.next_links(leaf, dead)[other] for leaf in layout.leaves
               for other in layout.leaves if other != leaf)


class Schedule:
    def __init__(self, layout, seconds, rng, can_hash=True):
        self.layout = layout
        self.rng = rng
        self.kinds = [kind for kind in KINDS if can_hash or kind != "hash"]
        self.links = movable(layout)
        self.steps = []
        if not self.links:
            raise ValueError("no link of this fabric can be spared")
        at_s = 0.0
        kinds = []
        while at_s < seconds:
            kinds = kinds or rng.sample(self.kinds, len(self.kinds))
            at_s = self._add(kinds.pop(), at_s) + rng.uniform(*CALM_S)

    def _step(self, *args):
        self.steps.append(Step(*args))
        return self.steps[-1].at_s

    def _hash(self, kind, at_s):
        switch = self.rng.choice([s for s in self.layout.switches if self.layout.spreads(s)])
        return self._step(at_s, kind, "hash", (switch, self.rng.randrange(1, 1 << 31)))

    def _away(self, kind, at_s, hold_s, how=("down", "up")):
        link = self.rng.choice(self.links)
        self._step(at_s, kind, how[0], link)
        return self._step(at_s + hold_s, kind, how[1], link)

    def _add(self, kind, at_s):
        """Adds what a kind means from a time on. Returns when its last change is."""
        if kind == "hash":
            return self._hash(kind, at_s)
        if kind == "bounce":
            return self._away(kind, at_s, BOUNCE_S)
        if kind == "double":
            return self._double(at_s)
        how = ("down", "up") if kind == "single" else ("leave", "join")
        return self._away(kind, at_s, self.rng.uniform(*HOLD_S), how)

    def _double(self, at_s):
        """Two links leave one after the other, and return so; or one leaves while another returns."""
        first = self.rng.choice(self.links)
        rest = [link for link in self.links if link != first
                and reaches_all(self.layout, {first, link})]
        gap_s = self.rng.uniform(*DOUBLE_S)
        self._step(at_s, "double", "leave", first)
        if not rest:
            return self._step(at_s + gap_s, "double", "join", first)
        second = self.rng.choice(rest)
        self._step(at_s + gap_s, "double", "leave", second)
        back_s = at_s + gap_s + self.rng.uniform(*HOLD_S)
        self._step(back_s, "double", "join", first)
        return self._step(back_s + gap_s, "double", "join", second)
