# SPDX-License-Identifier: Apache-2.0
"""A whole fabric in one guest: 16 hosts, 256 ends of queue pairs, then a link that loses packets.

What the daemon published is compared with what tcpdump saw on the spines' links, with the queue
pairs and counters that the rdma tool showed, and with what did not leave the lossy spine.
"""
import collections
import json
import math

import guestfabric
import vm
from fabricwire import FabricJudge
from guestfabric import Layout

PROGRAMS = guestfabric.PROGRAMS
HOSTS = 4  # of each leaf
LEAVES = 4
LOSSY = ("spine1", "Ethernet3")
LOST_LEAST = 20  # packets of data, with which a host's counters cannot stay where they are
RAISED_LEAST = 10  # growth that is told from none; in one report it is congestion
READ_MS = 500  # within which counters are read at a report's time
DEVIATIONS = 5  # above what is usual
SIGNS = {  # counters of Soft-RoCE that tell of lost packets, at the receiver and at the sender
    "receiver": ("out_of_seq_request",),
    "sender": ("completer_retry_err",),
}


def machines(_):
    return (vm.Machine(memory_mib=704),)


def the_plan():
    """Each host writes to one under the next leaf, so that the hosts of one leaf have nothing to do
    with a link between two others."""
    layout = Layout(spines=2, leaves=LEAVES, hosts=HOSTS)
    pairs = ((host, layout.hosts[(host.leaf + 1) % LEAVES * HOSTS + (host.slot + 1) % HOSTS],
              6 if number % 2 else 4) for number, host in enumerate(layout.hosts))
    return guestfabric.Plan(layout, tuple(pairs), qps=8, sampling=1, window_s=4)


def prepare(share, _):
    plan = the_plan()
    guestfabric.write(share, plan)
    (share / "plan" / "lossy").write_text(" ".join(LOSSY) + "\n")
    # By which much goes: those under the leaf before.
    (share / "plan" / "senders").write_text("".join(
        f"{client.name}\n" for client, server, _ in plan.pairs
        if plan.layout.peer[LOSSY].node == plan.layout.leaves[server.leaf]))


class Judge(FabricJudge):
    def __init__(self, out, plan):
        super().__init__(out, plan)
        self._looks = []

    def growth(self):
        """{(device, counter): growth} while the link lost packets."""
        before, after = ({row["ifname"]: row for row in
                          json.loads((self.out / f"statistic-{n}.json").read_text())} for n in (0, 1))
        return {(device, name): after[device][name] - before[device][name]
                for device in before for name, value in before[device].items()
                if isinstance(value, int)}

    def lost_at(self):
        """Lost packets of data by (host, side)."""
        count = collections.Counter()
        for flow, lost in self.wire.lost().items():
            if lost > 0 and self.wire.data[flow]:
                src, dst = (self.layout.owner[ip].name for ip in (flow.src, flow.dst))
                count[src, "sender"] += lost
                count[dst, "receiver"] += lost
        return count

    def counters(self, count):
        """The counters of the device itself, by the rdma tool: that the fault is one. Those of senders:
        where a slow machine has a packet in flight at a time, none follows that tells the receiver."""
        while_lossy = self.growth()
        wrong = []
        for host in self.layout.hosts:
            names = SIGNS["sender"]
            grown = sum(while_lossy[guestfabric.device(host), name] for name in names)
            if count[host.name, "sender"] >= LOST_LEAST and grown < RAISED_LEAST:
                wrong.append(f"{host.name}: {count[host.name, 'sender']} of its packets lost, "
                             f"{names} grew by {grown}")
        return wrong

    def reported(self):
        """The daemon's records of the counters grew as the rdma tool says, late reports aside."""
        while_lossy = self.growth()
        wrong = []
        for host in self.layout.hosts:
            device = guestfabric.device(host)
            totals = collections.defaultdict(list)
            for seen in self.records.of("host"):
                if seen.record["host"] != host.name:
                    continue
                if seen.record["device"] != device:
                    wrong.append(f"{host.name}: reports of {seen.record['device']}")
                for counter in seen.record["counters"]:
                    totals[counter["name"]].append(counter["total"])
            for names in SIGNS.values():
                for name in names:
                    true = while_lossy[device, name]
                    if not totals[name] or totals[name] != sorted(totals[name]):
                        wrong.append(f"{host.name} {name}: {totals[name]}")
                    elif true >= RAISED_LEAST and totals[name][-1] < true // 2:
                        wrong.append(f"{host.name} {name}: {totals[name][-1]}, not {true}")
        return wrong

    def looks(self):
        """[(begin_ms, end_ms, {host: {counter: value}})] of the devices, in the order of time."""
        if not self._looks:
            for file in self.out.glob("look-*.ms"):
                begin_ms, end_ms = map(int, file.read_text().split())
                rows = json.loads(file.with_suffix(".json").read_text())
                self._looks.append((begin_ms, end_ms, {self.host[row["ifname"]].name: row
                                                       for row in rows}))
            self._looks.sort(key=lambda look: look[0])
        return self._looks

    def grown(self, host, since_ms, time_ms):
        """By how much all signs of a host grew at most in a time."""
        signs = [(begin_ms, end_ms, sum(rows[host][name] for names in SIGNS.values()
                                        for name in names))
                 for begin_ms, end_ms, rows in self.looks()]
        before = [value for _, end_ms, value in signs if end_ms <= since_ms - READ_MS]
        after = [value for begin_ms, _, value in signs if begin_ms >= time_ms + READ_MS]
        return min(after, default=signs[-1][2]) - max(before, default=0)

    def must_be_told(self):
        """[(host, time_ms)] of reports that are congestion for sure. Where the machine is slow timers
        fire before there is a loss: what is usual is not more than the most in one report before
        that was no congestion for sure, for of congestion nothing is learned."""
        most, healed = collections.Counter(), set()
        for seen in self.records.of("host"):
            host, time_ms = seen.record["host"], seen.record["time_ms"]
            count = seen.record.get("out_of_sequence", 0) + seen.record.get("retransmissions", 0)
            unusual = most[host] + DEVIATIONS * math.sqrt(most[host] + 1)
            if count < max(RAISED_LEAST, unusual + 1):
                most[host] = max(most[host], count)
            elif time_ms >= self.moment("lossy") and host not in healed:
                yield host, time_ms
            # The guest waited for one such report to be judged.
            if time_ms > self.moment("healed"):
                healed.add(host)

    def congestion(self, count):
        """Hosts that lost much are named, and none is unless its own counters grew by as much as is
        told. Returns texts, hosts that had to be named, and of how many the counters stood still."""
        standing = collections.defaultdict(list)  # {host: [[since_ms, until_ms]]}
        wrong = []
        for seen in self.records.of("event"):
            event = seen.record
            if event["kind"] != "congestion":
                continue
            host, device, _ = event["subject"].split("/")
            if event.get("cleared"):
                standing[host][-1][1] = event["time_ms"]
                continue
            standing[host].append([event["time_ms"], math.inf])
            told = event["evidence"]["count"]
            true = self.grown(host, event["since_ms"], event["time_ms"])
            if not RAISED_LEAST <= told <= true:
                wrong.append(f"{event['message']}: its counters grew by {true}")
            if event["evidence"]["host"] != host or device != f"rxe_{host}":
                wrong.append(f"names {event['evidence']} as {event['subject']}")
        guilty = set()
        for host, time_ms in self.must_be_told():
            lost = [count[host, side] for side in SIGNS]
            if max(lost) >= LOST_LEAST:
                guilty.add(host)
            if not any(since <= time_ms <= until for since, until in standing[host]):
                wrong.append(f"{host}: {lost} packets lost, no event at {time_ms}")
        if not guilty:
            wrong.append("no host lost enough")
        last_ms = self.looks()[-1][1]
        still = sum(self.grown(host.name, 0, last_ms) < RAISED_LEAST for host in self.layout.hosts)
        return wrong, len(guilty), still


def judge(out, _):
    j = Judge(out, the_plan())
    j.check_paths()
    count = j.lost_at()
    j.check("counters grew on the hosts that sent what was lost", j.counters(count))
    j.check("the daemon's counters are the devices'", j.reported())
    wrong, guilty, still = j.congestion(count)
    j.check(f"congestion names {guilty} hosts behind the lossy link, none of {still} whose counters "
            "stood still, and tells no more than they grew", wrong)
    return j.passed, j.failed
