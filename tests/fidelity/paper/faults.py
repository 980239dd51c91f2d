# SPDX-License-Identifier: Apache-2.0
"""What befalls a fabric: a list of (second, what, which), in order of time. what is "down" or "up"
of a link's number, or "rehash" of a switch: its hash gets another seed; or the fabric's detour is
taken, "round", and no more, "straight".

No fault takes the last shortest way between two leaves: paths move, and never grow."""

FIRST_S = 15  # until then all is quiet, so that paths can be known
LAST_S = 12  # before the end


class Planner:
    """Keeps the links of planned faults apart in time, and checks that ways are left."""

    def __init__(self, rng, routing, seconds):
        self.rng, self.routing, self.seconds = rng, routing, seconds
        self.faults = []
        self.spans = []  # (link, down, up)

    def lost(self, start, end):
        return {link for link, down, up in self.spans if down < end + 1 and start < up + 1}

    def fail(self, link, start, end):
        """Plans that a link is down for a while; False where that must not be."""
        others = self.lost(start, end)
        if link in others or not self.routing.may_lose(others | {link}):
            return False
        self.spans.append((link, start, end))
        self.faults += [(start, "down", link), (end, "up", link)]
        return True

    def undo(self):
        self.spans.pop()
        del self.faults[-2:]

    def any_link(self):
        return self.rng.randrange(len(self.routing.fabric.links))

    def moment(self, before=0.0):
        return self.rng.uniform(FIRST_S, max(FIRST_S + 1, self.seconds - LAST_S - before))

    def first(self):
        return FIRST_S + self.rng.uniform(3, 8)

    def moves(self, count):
        """Links fail, and are back after some seconds."""
        for _ in range(count):
            start = self.moment(3)
            self.fail(self.any_link(), start, start + self.rng.uniform(3, 25))

    def bounces(self, every=30.0):
        """Links that are down for half a second."""
        start = self.first()
        while start < self.seconds - LAST_S:
            self.fail(self.any_link(), start, start + self.rng.uniform(0.4, 0.6))
            start += self.rng.uniform(0.8, 1.2) * every

    def doubles(self, every=40.0):
        """Two links of one switch, one after the other within 0.7 s; both come back likewise."""
        links = self.routing.fabric.links
        start = self.first()
        while start < self.seconds - LAST_S - every / 2:
            for _ in range(20):
                first = self.any_link()
                second = self.rng.choice([n for n, link in enumerate(links)
                                          if n != first and link.a == links[first].a])
                gap = self.rng.uniform(0.2, 0.7)
                end = start + every / 2
                if not self.fail(first, start, end):
                    continue
                if self.fail(second, start + gap, end + self.rng.uniform(0.2, 0.7)):
                    break
                self.undo()
            start += every

    def rehashes(self, every=25.0):
        start = self.first()
        while start < self.seconds - LAST_S:
            self.rehash(start)
            start += self.rng.uniform(0.8, 1.2) * every

    def detour(self):
        """The fabric's detour begins in the middle of the run, and lasts for some windows."""
        self.routing.round = False
        self.routing.refresh()
        start = self.rng.uniform(0.25, 0.4) * self.seconds
        self.faults += [(start, "round", ""), (start + self.rng.uniform(0.25, 0.4) * self.seconds,
                                               "straight", "")]

    def rehash(self, moment):
        busy = [name for name in self.routing.fabric.switches if any(
            len(table.get(name, ())) > 1 for table in self.routing.next_hops.values())]
        self.faults.append((moment, "rehash", self.rng.choice(busy)))

    def planned(self):
        return sorted(self.faults)
