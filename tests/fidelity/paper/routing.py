# SPDX-License-Identifier: Apache-2.0
"""Where switches send packets: the shortest ways over the cables that are up, and each switch's own
hash among them. Shares nothing with the project's code."""
from collections import deque
from functools import cache

MASK = (1 << 64) - 1


def mix(value):
    """A hash of 64 bits (the finisher of splitmix64)."""
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & MASK
    value = (value ^ value >> 27) * 0x94D049BB133111EB & MASK
    return value ^ value >> 31


class Routing:
    """hashing: "modulo" moves most flows of a group whose size changes, "resilient" those of the
    next hop that went or came."""

    def __init__(self, fabric, rng, hashing):
        self.fabric, self.hashing = fabric, hashing
        self.leaves = fabric.leaves()
        # Where packets may go: to one leaf, or to either of a host's two.
        self.targets = {frozenset([leaf]) for leaf in self.leaves} | {
            leaves_of(host) for host in fabric.hosts}
        self.seeds = {name: rng.getrandbits(64) for name in fabric.switches}
        self.attached = {host.address: host for host in fabric.hosts}
        self.down = set()  # numbers of links
        self.round = True  # whether the fabric's detour, if it has one, is taken
        self.refresh()
        self.lengths = self.spans()

    def refresh(self):
        """Works out the next hops anew: next_hops[leaves][switch] = [(port, peer, peer's port)]."""
        around = {name: [] for name in self.fabric.switches}
        for number, link in enumerate(self.fabric.links):
            if number not in self.down:
                around[link.a].append((link.a_port, link.b, link.b_port))
                around[link.b].append((link.b_port, link.a, link.a_port))
        self.distances, self.next_hops = {}, {}
        for leaves in self.targets:
            distance = self.distances[leaves] = measure(around, leaves)
            self.next_hops[leaves] = {
                name: [hop for hop in hops if distance.get(hop[1], MASK) == distance[name] - 1]
                for name, hops in around.items() if name in distance}
        if self.fabric.detour and self.round:
            self.go_round(around, *self.fabric.detour)

    def go_round(self, around, spine, leaf, through):
        """The spine sends what is for the leaf to another one, which hands it to other spines."""
        table = self.next_hops[frozenset([leaf])]
        table[spine] = [hop for hop in around[spine] if hop[1] == through]
        table[through] = [hop for hop in table[through] if hop[1] != spine]

    def spans(self):
        return {(a, b): self.distances[frozenset([b])].get(a)
                for a in self.leaves for b in self.leaves}

    def may_lose(self, numbers):
        """Whether all leaves reach each other as shortly as ever without these links too."""
        before = self.down
        self.down = before | set(numbers)
        self.refresh()
        same = self.spans() == self.lengths
        self.down = before
        self.refresh()
        return same

    def choose(self, switch, key, hops):
        if len(hops) == 1:
            return hops[0]
        seed = self.seeds[switch] ^ key
        if self.hashing == "modulo":
            return hops[mix(seed) % len(hops)]
        return max(hops, key=lambda hop: mix(seed ^ hash_text(hop[0])))

    def ends(self, flow):
        """((leaf, port) where it enters, {leaf: port} where it may leave). Of a host's leaves the
        host picks one for each flow."""
        source, target = self.attached[flow.src].attach, self.attached[flow.dst].attach
        return source[mix(flow.key) % len(source)], dict(target)

    def path(self, flow):
        """((switch, in, out), ...) of a flow whose packets all go one way."""
        (switch, entry), out = self.ends(flow)
        table, hops = self.next_hops[frozenset(out)], []
        while switch not in out:
            port, peer, peer_port = self.choose(switch, flow.key, table[switch])
            hops.append((switch, entry, port))
            switch, entry = peer, peer_port
        return (*hops, (switch, entry, out[switch]))

    def all_paths(self, flow):
        """{path: part of the packets} where each packet is sent by any next hop."""
        start, out = self.ends(flow)
        table, found = self.next_hops[frozenset(out)], {}

        def walk(switch, entry, hops, part):
            if switch in out:
                found[(*hops, (switch, entry, out[switch]))] = part
                return
            for port, peer, peer_port in table[switch]:
                walk(peer, peer_port, (*hops, (switch, entry, port)), part / len(table[switch]))

        walk(*start, (), 1.0)
        return found


def leaves_of(host):
    return frozenset(leaf for leaf, _ in host.attach)


def measure(around, starts):
    """Links from each switch to the nearest of starts."""
    distance, queue = {start: 0 for start in starts}, deque(sorted(starts))
    while queue:
        name = queue.popleft()
        for _, peer, _ in around[name]:
            if peer not in distance:
                distance[peer] = distance[name] + 1
                queue.append(peer)
    return distance


@cache
def hash_text(text):
    """The same in every process, as hash() is not."""
    value = 0
    for byte in text.encode():
        value = mix(value * 257 + byte & MASK)
    return value
