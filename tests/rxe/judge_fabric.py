# SPDX-License-Identifier: Apache-2.0
"""A whole fabric in one guest: 16 hosts, 256 ends of queue pairs, then a link that loses packets.

What the daemon published is compared with what tcpdump saw on the spines' links, with the queue
pairs and counters that the rdma tool showed, and with what did not leave the lossy spine.
"""
import collections
import json

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
REPORTS_MS = 10000  # the agents' interval
GUILTY_LEAST = 20  # growth in that time, of which one of two reports must have RAISED_LEAST
SIGNS = {  # counters of Soft-RoCE that tell of lost packets, at the receiver and at the sender
    "receiver": ("out_of_seq_request",),
    "sender": ("rcvd_seq_err", "completer_retry_err"),
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
    def growth(self):
        """{(device, counter): growth} while the link lost packets, and before."""
        shots = [{row["ifname"]: row for row in
                  json.loads((self.out / f"statistic-{n}.json").read_text())} for n in range(3)]
        return [{(device, name): b[device][name] - a[device][name]
                 for device in a for name in a[device] if isinstance(a[device][name], int)}
                for a, b in zip(shots, shots[1:])]

    def lost_at(self):
        """Lost packets of data by (host, side), and hosts that lost anything at all."""
        count = collections.Counter()
        touched = set()
        for flow, lost in self.wire.lost().items():
            if lost <= 0:
                continue
            src, dst = (self.layout.owner[ip].name for ip in (flow.src, flow.dst))
            touched |= {src, dst}
            if self.wire.data[flow]:
                count[src, "sender"] += lost
                count[dst, "receiver"] += lost
        return count, touched

    def counters(self, count, touched):
        """The counters of the device itself, by the rdma tool: that the fault is one."""
        _, while_lossy = self.growth()
        wrong = []
        for host in self.layout.hosts:
            for side, names in SIGNS.items():
                grown = sum(while_lossy[guestfabric.device(host), name] for name in names)
                if count[host.name, side] >= LOST_LEAST and grown < RAISED_LEAST:
                    wrong.append(f"{host.name}: {count[host.name, side]} packets lost as {side}, "
                                 f"{names} grew by {grown}")
                fast = self.fastest(host.name, side)
                if host.name not in touched and fast >= GUILTY_LEAST:
                    wrong.append(f"{host.name}: nothing lost, {names} grew by {fast}")
        return wrong

    def reported(self):
        """The daemon's records of the counters grew as the rdma tool says, late reports aside."""
        _, while_lossy = self.growth()
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

    def fastest(self, host, side):
        """By how much the counters of a host grew at most between two looks that are no further apart
        than two reports."""
        looks = []
        for file in self.out.glob("look-*.json"):
            rows = {row["ifname"]: row for row in json.loads(file.read_text())}
            looks.append((int(file.with_suffix(".ms").read_text()),
                          sum(rows[f"rxe_{host}"][name] for name in SIGNS[side])))
        looks.sort()
        return max((b - a for at, a in looks for then, b in looks if 0 <= then - at <= REPORTS_MS),
                   default=0)

    def late_at_first(self, host):
        """Whether the device itself counted such signs before there was a loss: where the machine is
        too slow, timers fire. An event then tells of what is so."""
        rows = json.loads((self.out / "statistic-1.json").read_text())
        row = next(row for row in rows if row["ifname"] == f"rxe_{host}")
        return sum(row[name] for names in SIGNS.values() for name in names) >= RAISED_LEAST

    def congestion(self, count, touched):
        """Hosts that lost much are named, those that lost nothing are not."""
        lossy = self.moment("lossy")
        named = collections.defaultdict(list)
        wrong = []
        for seen in self.records.of("event"):
            if seen.record["kind"] != "congestion" or seen.record.get("cleared"):
                continue
            host, device, _ = seen.record["subject"].split("/")
            if seen.record["time_ms"] >= lossy:
                named[host].append(seen.record["message"])
            elif not self.late_at_first(host):
                wrong.append(f"before anything was lost: {seen.record['message']}")
            if seen.record["evidence"]["host"] != host or device != f"rxe_{host}":
                wrong.append(f"names {seen.record['evidence']} as {seen.record['subject']}")
        guilty = {host for (host, side), lost in count.items()
                  if lost >= LOST_LEAST and self.fastest(host, side) >= GUILTY_LEAST}
        wrong += [f"{host}: {[count[host, side] for side in SIGNS]} packets lost, no event"
                  for host in sorted(guilty - set(named))]
        innocent = {host.name for host in self.layout.hosts} - touched
        innocent = {host for host in innocent if not self.late_at_first(host) and
                    sum(self.fastest(host, side) for side in SIGNS) < RAISED_LEAST // 2}
        wrong += [f"{host} lost nothing: {named[host]}" for host in sorted(set(named) & innocent)]
        if not guilty or not innocent:
            wrong.append(f"too little variety: {len(guilty)} hosts lost much, "
                         f"{len(innocent)} nothing")
        return wrong, len(guilty), len(innocent)


def judge(out, _):
    j = Judge(out, the_plan())
    j.check_paths()
    count, touched = j.lost_at()
    j.check("counters grew on the hosts whose packets were lost and on no other",
            j.counters(count, touched))
    j.check("the daemon's counters are the devices'", j.reported())
    wrong, guilty, innocent = j.congestion(count, touched)
    j.check(f"congestion names {guilty} hosts behind the lossy link, none of {innocent} innocent",
            wrong)
    return j.passed, j.failed
