# SPDX-License-Identifier: Apache-2.0
"""A whole fabric in one guest: 16 hosts, 256 ends of queue pairs, then a link that loses packets.

What the daemon published is compared with what tcpdump saw on the spines' links, with the queue
pairs and counters that the rdma tool showed, and with what did not leave the lossy spine: the event
packet_loss names that link and the pairs of hosts behind it, and nobody else.
"""
import collections
import json
import math

import guestfabric
import vm
from fabricwire import EDGE_MS, FabricJudge
from guestfabric import Layout
from judging import ACK, ACKS, NAK, packets
from lab.records import flow_of
from lab.traffic import Flow

PROGRAMS = guestfabric.PROGRAMS
HOSTS = 4  # of each leaf
LEAVES = 4
LOSSY = ("spine1", "Ethernet3")
LOST_LEAST = 20  # packets of data, with which a host's counters cannot stay where they are
RAISED_LEAST = 10  # growth that is told from none; in one report it is congestion
READ_MS = 500  # within which counters are read at a report's time
DEVIATIONS = 5  # above what is usual
VICTIMS_MAX = 32  # flows that an event names
MEMORY = 6  # windows, for which a flow counts with what its samples showed
CERTAIN = 1e-12  # so unlikely by chance that it has to be told
SHOWN_MS = 30000  # after which it is
SIGNS = {  # counters of Soft-RoCE that tell of lost packets, at the receiver and at the sender
    "receiver": ("out_of_seq_request",),
    "sender": ("completer_retry_err",),
}


def machines(_):
    return (vm.Machine(memory_mib=704),)


# Which leaf each host of a leaf writes to, by the leaf's place after the one behind the lossy link: half
# of the flows go there, and those over each other link have other ends as well, so that no link up
# carries just what the lossy one does.
WRITES_TO = {
    0: (1, 2, 3, 1),
    1: (0, 0, 0, 2),
    2: (0, 0, 0, 3),
    3: (0, 0, 1, 2),
}


def the_plan():
    layout = Layout(spines=2, leaves=LEAVES, hosts=HOSTS)
    behind = layout.leaves.index(layout.peer[LOSSY].node)
    pairs = []
    for number, host in enumerate(layout.hosts):
        leaf = (WRITES_TO[(host.leaf - behind) % LEAVES][host.slot] + behind) % LEAVES
        pairs.append((host, layout.hosts[leaf * HOSTS + (host.slot + host.leaf) % HOSTS],
                      6 if number % 2 else 4))
    return guestfabric.Plan(layout, tuple(pairs), qps=8, sampling=1, window_s=4)


def prepare(share, _):
    plan = the_plan()
    guestfabric.write(share, plan)
    (share / "plan" / "lossy").write_text(" ".join(LOSSY) + "\n")
    # By which much goes.
    (share / "plan" / "senders").write_text("".join(
        f"{client.name}\n" for client, server, _ in plan.pairs
        if plan.layout.peer[LOSSY].node == plan.layout.leaves[server.leaf]))


def fisher(here, flows, others, other_flows):
    """The probability that chance gives as many of all that show it to one side, or more."""
    all_again = here + others
    ways = sum(math.comb(flows, k) * math.comb(other_flows, all_again - k)
               for k in range(here, min(flows, all_again) + 1))
    return ways / math.comb(flows + other_flows, all_again)


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

    def numbers(self, spine):
        """{Flow: [(time_ms, number)]} of data that came to a spine, and the moments of NAKs that did."""
        came, naks = collections.defaultdict(list), collections.defaultdict(list)
        for p in packets(self.out / f"{spine}.pcap"):
            if p.leaves:
                continue
            if p.opcode not in ACKS:
                came[Flow(p.src, p.dst, p.sport)].append((p.time_ms, p.psn))
            elif p.opcode == ACK and p.syndrome >> 5 == NAK:
                naks[Flow(p.dst, p.src, p.sport)].append(p.time_ms)
        return came, naks

    def sent_again(self):
        """Moments at which a packet of data came to a spine with a lower number than the one before, and those
        of NAKs that answer such, each by Flow."""
        again, naks = collections.defaultdict(list), collections.defaultdict(list)
        for spine in self.layout.spines:
            came, refused = self.numbers(spine)
            for flow, seen in came.items():
                again[flow] += [at for (_, before), (at, number) in zip(seen, seen[1:])
                                if 0 < (before - number) % 2**24 < 2**23]
            for flow, moments in refused.items():
                naks[flow] += moments
        return again, naks

    def pair(self, flow):
        return tuple(self.layout.owner[ip].name for ip in (flow.src, flow.dst))

    def towards(self, spine):
        """Flows of data that leave a spine for the leaf behind the lossy link."""
        leaf = self.layout.peer[LOSSY].node
        return {flow for flow, path in self.paths.items()
                if path and self.wire.data[flow] and path[1][0] == spine and path[2][0] == leaf}

    def wrong_victim(self, flow, v, over, since_ms, until_ms):
        """A flow that an event names crossed the link and lost packets there, and it shows: it sent some again,
        or its receiver said so. It is named rightly."""
        end = next((end for end in self.ends if end.client and end.flow == flow), None)
        lost = self.wire.lost().get(flow, 0)
        if flow not in over or not lost:
            return [f"{flow}: {'' if flow in over else 'does not cross it, '}{lost} of its packets lost"]
        if not any(since_ms - EDGE_MS <= at <= until_ms + EDGE_MS for at in self.again[flow] + self.naks[flow]):
            return [f"{flow}: sends none again between {since_ms} and {until_ms}"]
        told = {"src_host": v.get("src_host"), "dst_host": v.get("dst_host"), "job": v.get("job"),
                "local": v.get("qp", {}).get("local"), "remote": v.get("qp", {}).get("remote")}
        true = {"src_host": end.host.name, "dst_host": self.layout.owner[flow.dst].name,
                "job": guestfabric.job(end.host), "local": end.row["lqpn"], "remote": end.row["rqpn"]}
        return [] if told == true else [f"{end}: {told}, not {true}"]

    def packet_loss(self):
        """Every event packet_loss against the wire: it is of the lossy link, since that lost packets; what it
        names and counts. Returns texts, how many there are, and the pairs of hosts that they name."""
        self.again, self.naks = self.sent_again()
        over, wrong, told, named = self.towards(LOSSY[0]), [], 0, set()
        for seen in self.records.of("event"):
            event, at = seen.record, seen.record.get("evidence", {})
            if event["kind"] != "packet_loss" or event.get("cleared"):
                continue
            if (at["switch"], at["port"], at["peer"]) != (*LOSSY, self.layout.peer[LOSSY].node) or \
                    event["time_ms"] < self.moment("lossy"):
                wrong.append(f"at {event['time_ms']}: {event['message']}")
                continue
            told += 1
            window_ms = event["time_ms"] - event["since_ms"]
            flows = [(flow_of(v), v) for v in at["victims"]]
            for flow, v in flows:
                wrong += self.wrong_victim(flow, v, over, event["time_ms"] - MEMORY * window_ms, event["time_ms"])
            pairs = {self.pair(flow) for flow, _ in flows}
            named |= pairs
            # The list is as long as there are flows, or as it may be; one flow of each pair comes first.
            if (len({flow for flow, _ in flows}), at.get("pairs", len(pairs))) != \
                    (min(at["flows"], VICTIMS_MAX), len(pairs)) or not at["flows"] <= at["count"] <= len(over):
                wrong.append(f"names {len(flows)} of {at['flows']} flows of {at['count']} and {len(pairs)} of "
                             f"{at['pairs']} pairs; there are {len(over)} flows")
        return wrong, told, named

    def certain(self):
        """Whether receivers missed packets of so many more flows over the lossy link than over the others of
        its group, which show enough of themselves, that chance does not explain it."""
        spans = [(self.moment("lossy"), self.moment("healed") - SHOWN_MS)]
        count = {}
        for spine in self.layout.spines:
            flows = self.towards(spine)
            missed = sum(any(a <= at <= b for a, b in spans for at in self.naks[flow]) for flow in flows)
            count[spine] = missed, len(flows)
        here, flows = count.pop(LOSSY[0])
        others, other_flows = map(sum, zip(*count.values()))
        return fisher(here, flows, others, other_flows) < CERTAIN, f"{here} of {flows}, {others} of {other_flows}"


def judge(out, _):
    j = Judge(out, the_plan())
    j.check_paths()
    count = j.lost_at()
    j.check("counters grew on the hosts that sent what was lost", j.counters(count))
    j.check("the daemon's counters are the devices'", j.reported())
    wrong, guilty, still = j.congestion(count)
    lossy, told, named = j.packet_loss()
    certain, count = j.certain()
    if certain and not told:
        lossy.append("nothing is told")
    j.check(f"packet_loss names {'/'.join(LOSSY)} {told} times and {len(named)} pairs of hosts whose flows lost "
            f"packets there, and nobody else; receivers missed some of {count} flows over the others", lossy)
    j.check(f"congestion names {guilty} hosts behind the lossy link, none of {still} whose counters "
            "stood still, and tells no more than they grew", wrong)
    return j.passed, j.failed
