# SPDX-License-Identifier: Apache-2.0
"""What goes wrong in a run of lab.py, how it is made, and which diagnosis is right."""
import signal
import subprocess
import threading

import labdelay
import labjob
from labjob import (DRIFT_US, LATE_US, ONCE_MS, ORDER, PAUSE_MS, PROXY, RANKS, RECEIVE, SEND, host_of, peer_of)

# Options of the job of a run without a fault.
HEALTHY = {"healthy": {}, "jitter": {"jitter": 0.2}, "pauses": {}, "evaluation": {"evaluate": 12},
           "uneven": {"uneven": 0.25}, "last stage": {"last_stage": 1.6}}
PAUSE_EVERY_S, PAUSE_OF_MS = 20, 4000
SLOW_BIT, ALIEN_BIT = 1_200_000, 40_000_000  # a card sends 4 Mbit/s
LOSS_PERCENT = 25


class Case:
    """No fault. right(): of a diagnosis, whether syndrome, rank and link are those of the fault."""
    syndromes = ()
    link = None

    def __init__(self, lab, job, rng):
        self.lab, self.job, self.rng = lab, job, rng
        self.ranks = set()
        self.choose()

    def __str__(self):
        return "none"

    def choose(self):
        pass

    def begin(self):
        pass

    def end(self):
        pass

    def is_rank(self, record):
        return record.get("rank") in self.ranks

    def is_link(self, record):
        return self.link is not None and (record.get("switch"), record.get("port")) == self.link

    def right(self, record):
        link = self.is_link(record)
        return {"syndrome": record["syndrome"] in self.syndromes and (self.is_rank(record) or link),
                "rank": self.is_rank(record), "link": link}


class Pauses(Case):
    """All ranks save a checkpoint now and then."""

    def begin(self):
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._work, daemon=True)
        self.thread.start()

    def _work(self):
        while not self.over.wait(PAUSE_EVERY_S):
            for rank in range(RANKS):
                self.job.set(rank, PAUSE_MS, PAUSE_OF_MS + self.rng.randrange(400))

    def end(self):
        self.over.set()
        self.thread.join()


class OfRank(Case):
    """One rank's own."""
    peer_counts = False

    def choose(self):
        self.rank = self.rng.randrange(RANKS)
        self.ranks = {self.rank}

    def __str__(self):
        return f"{type(self).__name__} rank {self.rank} on gpu{host_of(self.rank) + 1:02}"

    def is_rank(self, record):
        return record.get("rank") == self.rank or (self.peer_counts and record.get("peer") == self.rank)


class Stop(OfRank):
    syndromes = ("noncomm_hang",)

    def begin(self):
        self.job.ranks[self.rank].send_signal(signal.SIGSTOP)

    def end(self):
        self.job.ranks[self.rank].send_signal(signal.SIGCONT)


class Kill(OfRank):
    syndromes = ("noncomm_hang",)

    def begin(self):
        self.job.gone.add(self.rank)
        self.job.ranks[self.rank].kill()


class Once(OfRank):
    syndromes = ("noncomm_hang",)

    def begin(self):
        self.job.set(self.rank, ONCE_MS, 30000)


class Late(OfRank):
    syndromes = ("noncomm_slow",)

    def begin(self):
        self.job.set(self.rank, LATE_US, self.rng.randrange(80_000, 160_000))


class Drift(OfRank):
    syndromes = ("noncomm_slow",)

    def begin(self):
        self.job.set(self.rank, DRIFT_US, 5000)


class Order(OfRank):
    syndromes = ("mismatch",)

    def begin(self):
        self.job.set(self.rank, ORDER, 1)


class Proxy(OfRank):
    """Its transfers stand: with whom they are is named."""
    syndromes = ("comm_hang",)
    peer_counts = True

    def begin(self):
        self.job.set(self.rank, PROXY, 1)


class SlowToSend(OfRank):
    syndromes = ("comm_slow",)

    def begin(self):
        self.job.set(self.rank, SEND, self.rng.randrange(25, 45))


class SlowToReceive(OfRank):
    syndromes = ("comm_slow",)
    peer_counts = True

    def begin(self):
        self.job.set(self.rank, RECEIVE, self.rng.randrange(25, 45))


class OfLink(Case):
    """A link between switches that several pairs cross."""
    syndromes = ("comm_slow",)

    def choose(self):
        found = self.job.crossings()
        # What the operations that wait for it are large enough for: not the small ones of all ranks.
        shared = sorted(link for link, its in found.items()
                        if len({(a, b) for a, b, slot in its if slot < 3}) > 2)
        self.link = self.rng.choice(shared)
        self.note_edges(found)

    def note_edges(self, found):
        """Whose steps the link delays: those whose data cross it, and those whose acknowledgements do."""
        self.edges = {(a, b) for a, b, _ in found[self.link] + self.job.crossings(True)[self.link]}

    def __str__(self):
        return f"{type(self).__name__} {self.link[0]} {self.link[1]}, {len(self.edges)} pairs"

    def is_rank(self, record):
        pair = record.get("rank"), record.get("peer")
        return pair in self.edges or pair[::-1] in self.edges

    def right(self, record):
        """One that names another link is wrong, whatever pair it names with it."""
        if "port" in record and not self.is_link(record):
            return dict.fromkeys(("syndrome", "rank", "link"), False)
        return super().right(record)

    def shape(self, bit):
        self.lab.fabric.run(self.link[0], "tc", "qdisc", "replace", "dev", self.link[1], "root", "tbf", "rate",
                            str(bit), "burst", "4000", "latency", "300ms")

    def begin(self):
        self.shape(SLOW_BIT)

    def end(self):
        self.lab.fabric.run(self.link[0], "tc", "qdisc", "del", "dev", self.link[1], "root", check=False)


class Rate(OfLink):
    pass


class Delay(OfLink):
    """Each packet leaves later; as many do. A step of four packets takes some 10 ms without."""

    def begin(self):
        self.delay = labdelay.Delay(self.lab.fabric, self.link, self.rng.uniform(0.03, 0.06))

    def __str__(self):
        return super().__str__() + (f", {1000 * self.delay.seconds:.0f} ms" if self.begun() else "")

    def begun(self):
        return hasattr(self, "delay")

    def end(self):
        if self.begun():
            self.delay.close()


class Loss(OfLink):
    def begin(self):
        self.lab.fabric.run(self.link[0], "nft", "-f", "-", text=(
            "table inet loss {\n chain c {\n type filter hook forward priority 300;\n"
            f"  oifname \"{self.link[1]}\" udp dport 4791 numgen random mod 100 < {LOSS_PERCENT} drop\n }}\n}}\n"))

    def end(self):
        self.lab.fabric.run(self.link[0], "nft", "delete", "table", "inet", "loss", check=False)


class Down(OfLink):
    """Nobody routes around it: what crosses a link down from a spine stays away, and what goes up by it."""
    syndromes = ("comm_hang",)

    def ends(self):
        return next(ends for ends in ([(end.node, end.name) for end in (link.a, link.b)]
                                      for link in self.lab.fabric.layout.fabric_links) if self.link in ends)

    def note_edges(self, found):
        back = self.job.crossings(True)
        self.edges = {(a, b) for end in self.ends() for a, b, _ in found[end] + back[end]}

    def is_link(self, record):
        return (record.get("switch"), record.get("port")) in self.ends()

    def begin(self):
        self.lab.fabric.run(self.link[0], "ip", "link", "set", self.link[1], "down")

    def end(self):
        self.lab.fabric.run(self.link[0], "ip", "link", "set", self.link[1], "up", check=False)
        layout = self.lab.fabric.layout
        for switch in layout.switches:
            self.lab.fabric.run(switch, "ip", "-batch", "-", text="\n".join(self.lab.fabric.routes[switch]) + "\n",
                                check=False)

    def choose(self):
        found = self.job.crossings()
        self.link = self.rng.choice(sorted(l for l, its in found.items() if l[0].startswith("spine") and len(
            {(a, b) for a, b, slot in its if slot < 3}) > 1))
        self.note_edges(found)


class Alien(OfLink):
    """Another flow that fills the link, whose queue is the job's as well."""

    def begin(self):
        self.shape(ALIEN_BIT)
        layout, fabric = self.lab.fabric.layout, self.lab.fabric
        sender, target = self._route(layout)
        flow = fabric.dir / "alien"
        flow.write_text(f"{sender.ip4} {self.sport} {target.ip4} 77 {1.4 * ALIEN_BIT / 8 / 1200:.0f} 1140 64\n")
        self.process = fabric.spawn(sender.name, "alien", self.lab.rocegen, "send", flow, 0,
                                    stdout=subprocess.PIPE)

    def _route(self, layout):
        """A host each, and a source port by which the kernel sends over the link."""
        for sport in range(0xf000, 0xf400):
            flows = {}
            for a in layout.hosts:
                for b in layout.hosts:
                    if a.leaf != b.leaf:
                        flows[labjob.Flow(a.ip4, b.ip4, sport)] = (a, b)
            for flow, path in labjob.kernel_paths(self.lab.fabric, flows).items():
                if self.link in [(switch, out) for switch, _, out in path]:
                    self.sport = sport
                    return flows[flow]
        raise labjob.LabError("no flow by this link")

    def end(self):
        self.process.terminate()
        self.process.wait()
        super().end()


class Two(OfLink):
    """A slow link, and a rank none of whose flows crosses it whose card is slow to send."""

    def choose(self):
        super().choose()
        others = [r for r in range(RANKS) if not any(r in edge for edge in self.edges)]
        self.slow = self.rng.choice(others)

    def __str__(self):
        return super().__str__() + f", and rank {self.slow} slow to send"

    def begin(self):
        super().begin()
        self.job.set(self.slow, SEND, 30)

    def is_rank(self, record):
        return super().is_rank(record) or record.get("rank") == self.slow or \
            record.get("peer") in {self.slow}


class Mixed(OfLink):
    """A slow link, and a rank none of whose flows crosses it that computes longer: rank is that one, link the
    link; a pair over it is right, too. Either is one of both."""

    def choose(self):
        super().choose()
        self.late = self.rng.choice([r for r in range(RANKS) if not any(r in edge for edge in self.edges)])

    def __str__(self):
        return super().__str__() + f", and rank {self.late} late"

    def begin(self):
        super().begin()
        self.job.set(self.late, LATE_US, self.rng.randrange(80_000, 160_000))

    def right(self, record):
        if "port" in record and not self.is_link(record):
            return super().right(record)
        late = record["syndrome"] == "noncomm_slow" and record.get("rank") == self.late
        link = record["syndrome"] == "comm_slow" and self.is_link(record)
        pair = record["syndrome"] == "comm_slow" and self.is_rank(record)
        return {"syndrome": late or link or pair, "rank": late, "link": link}


CASES = {"stop": Stop, "kill": Kill, "once": Once, "order": Order, "proxy": Proxy, "late": Late, "drift": Drift,
         "send": SlowToSend, "receive": SlowToReceive, "rate": Rate, "delay": Delay, "loss": Loss, "down": Down,
         "alien": Alien, "two": Two, "mixed": Mixed, **{name: Pauses if name == "pauses" else Case for name in HEALTHY}}
