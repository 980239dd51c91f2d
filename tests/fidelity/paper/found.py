# SPDX-License-Identifier: Apache-2.0
"""What the daemon finds out about the fabric: links without a topology file, and lies of the file
that it names."""
import json
from collections import Counter

from .samples import BASE_MS, weighed

KNOWN_PART = 0.9
BUSY_FLOWS, BUSY_SAMPLES = 3, 100
ACCUSING = "miscabling", "detour"
# Events that blame a switch's sampling.
BLAMING = "silent_exporter", "sampling_rate"


class Names:
    """Of a fabric that nobody named: switches by their address, ports by a text that ends in their
    ifIndex. Names that are the true ones stay."""

    def __init__(self, fabric):
        self.switches = {s.address: s.name for s in fabric.switches.values()}
        self.ports = {s.name: {str(index): port for port, index in s.ports.items()}
                      for s in fabric.switches.values()}

    def switch(self, text):
        return self.switches.get(text, text)

    def port(self, switch, text):
        digits = text[len(text.rstrip("0123456789")):] if text else ""
        ports = self.ports.get(switch, {})
        return text if text in ports.values() else ports.get(digits, text)

    def __call__(self, hops):
        return tuple((self.switch(switch), self.port(self.switch(switch), entry),
                      self.port(self.switch(switch), out)) for switch, entry, out in hops)


def busy_links(truth, seconds):
    """The ends of directed links that several flows crossed often enough to be seen."""
    flows, samples = Counter(), Counter()
    for flow in truth.flows:
        seen = set()
        for begin, until, paths in truth.spans(flow, 0, seconds):
            for place, path, part in weighed(paths):
                switch, _, port = path[place]
                seen.add((switch, port))
                samples[switch, port] += flow.rate * part * (until - begin)
        flows.update(seen)
    return {end for end in flows if flows[end] >= BUSY_FLOWS and samples[end] >= BUSY_SAMPLES}


class Links:
    """Directed links between switches that link records tell of, against the cables. Those that
    hardly a flow crosses need not be found, nor those of a blind switch."""

    def __init__(self, fabric, truth, seconds, names, blind=()):
        self.names = names
        self.true = {}
        for link in fabric.links:
            self.true[link.a, link.a_port] = link.b, link.b_port
            self.true[link.b, link.b_port] = link.a, link.a_port
        self.busy = {end for end in busy_links(truth, seconds) if end in self.true and
                     not {end[0], self.true[end][0]} & set(blind)}
        self.switches = set(fabric.switches)
        self.said, self.wrong, self.known_after_s = {}, set(), None

    def take(self, record):
        ((switch, _, port),) = self.names([(record["switch"], None, record["port"])])
        peer = self.names.switch(record.get("peer"))
        if peer not in self.switches:
            return
        end = switch, port
        self.said[end] = peer, self.names.port(peer, record.get("peer_port"))
        if self.said[end] != self.true.get(end):
            self.wrong.add((end, self.said[end]))
        if self.known_after_s is None and self.right() >= KNOWN_PART * len(self.busy):
            self.known_after_s = (record["window_end_ms"] - BASE_MS) / 1000

    def right(self):
        """Of the busy ones."""
        return sum(end in self.busy and self.true[end] == peer for end, peer in self.said.items())


class Events:
    """Counts events as they are raised, and tells rightful accusations from false ones."""

    def __init__(self, run):
        self.run = run
        self.kinds = Counter()
        self.false, self.named = [], set()

    def take(self, record):
        if record.get("cleared"):
            return
        kind = record["kind"]
        self.kinds[kind] += 1
        if kind in ACCUSING and not self.names_a_lie(kind, json.dumps(record)):
            self.false.append(record)
        elif kind in BLAMING and not any(name in json.dumps(record) for name in self.run.blind):
            self.false.append(record)

    def names_a_lie(self, kind, text):
        """Whether it names a switch and port that the file is wrong about, or the detour's."""
        fabric = self.run.fabric
        if kind == "detour":
            true = bool(fabric.detour) and fabric.detour[0] in text and fabric.detour[2] in text
            if true:
                self.named.add(fabric.detour)
            return true
        lies = [told for told, true in zip(fabric.told or (), fabric.links) if told != true]
        hit = {lie for lie in lies if lie.a in text and lie.a_port in text}
        self.named |= hit
        return bool(hit)

    def lies(self):
        fabric = self.run.fabric
        return sum(told != true for told, true in zip(fabric.told or (), fabric.links)) + \
            bool(fabric.detour)
