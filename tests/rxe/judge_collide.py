# SPDX-License-Identifier: Apache-2.0
"""A collision, a plan, the job on its ports, a spine that goes, a plan anew: what the tool and the
daemon said is held against the links by which the kernel sent each flow, and the bytes it counted."""
import collections
import json
import pathlib
import shutil

import guestfabric
from guestfabric import Layout
from judging import Tally

PROGRAMS = (*guestfabric.PROGRAMS, "agent/shim/libibverbs.so")
SPINES, HOSTS = 4, 3
SPEED = 500_000  # until the guest knows how slow it is
JOB = "train"
SEEN = """table inet seen {
    set flows { typeof ip saddr . udp sport . oifname; flags dynamic; counter; }
    chain out {
        type filter hook forward priority 0;
        ip saddr 10.0.1.0/24 udp dport 4791 add @flows { ip saddr . udp sport . oifname }
    }
}
"""


def the_plan():
    layout = Layout(spines=SPINES, leaves=2, hosts=HOSTS, speed_bps=SPEED)
    pairs = tuple((layout.hosts[i], layout.hosts[HOSTS + i], 4) for i in range(HOSTS))
    return guestfabric.Plan(layout, pairs, qps=1, sampling=1, window_s=4)


def prepare(share, _):
    plan = the_plan()
    layout = plan.layout
    guestfabric.write(share, plan)
    folder = share / "plan"
    shutil.copy2(pathlib.Path(__file__).parent / "guestjob.sh", share)
    (folder / "seen.nft").write_text(SEEN)
    clients = [(c.name, layout.host_port(c), c.ip4, s.ip4, layout.host_port(s)) for c, s, _ in plan.pairs]
    guestfabric.put(folder, "clients", [f"{c} {port.name} {src} {dst}" for c, port, src, dst, _ in clients])
    for name, port, src, dst, far in clients:
        with open(folder / f"{name}.yaml", "a", encoding="utf-8") as file:
            file.write(f"plan:\n  socket: /tmp/plan-{name}.sock\n  folder: /tmp/plans\n")
        hops = [{"switch": "leaf1", "in": port.name, "out": "Ethernet@LINK@"},
                {"switch": "spine@SPINE@", "in": "Ethernet1", "out": "Ethernet2"},
                {"switch": "leaf2", "in": "Ethernet@LINK@", "out": far.name}]
        text = json.dumps({"schema": "fabrictrace.plan.v1", "time_ms": 1700000000000, "job": JOB, "moves": [
            {"flow": {"src": src, "dst": dst, "sport": 0xc001, "dport": 4791, "proto": 17},
             "sport": 0, "hops": hops}]})
        (folder / f"collision-{name}.json").write_text(text.replace('"sport": 0,', '"sport": @SPORT@,') + "\n")


def fim(loads):
    """FIM of the links of a group, by hand: the mean deviation from an even share, in percent."""
    mean = sum(loads) / len(loads)
    return 100 / len(loads) * sum(abs(n - mean) for n in loads) / mean


class Judge(Tally):
    def __init__(self, out):
        super().__init__()
        self.out = out

    def flows(self, name):
        """{(address, port): the leaf's links by which the kernel sent it}"""
        found = collections.defaultdict(set)
        for item in json.loads((self.out / f"flows-{name}.json").read_text())["nftables"]:
            for element in item.get("set", {}).get("elem", []):
                src, sport, link = element["elem"]["val"]["concat"]
                found[src, sport].add(link)
        return found

    def taken(self, name):
        """Flows on each link of the leaf. Fails where a flow has not just one."""
        flows = self.flows(name)
        self.check(f"{name}: the kernel sends {HOSTS} flows, each by one link",
                   [] if len(flows) == HOSTS and {len(x) for x in flows.values()} == {1} else [dict(flows)])
        return collections.Counter(min(links) for links in flows.values())

    def rates(self, name):
        """Bits per second of each host by its device's counter."""
        first = {}
        for line in (self.out / f"sent-{name}").read_text().splitlines():
            host, time, count = line.split()
            if host in first:
                time_ms, was = first[host]
                first[host] = 8000 * (int(count) - was) / (int(time) - time_ms)
            else:
                first[host] = int(time), int(count)
        return first

    def plan(self, name):
        return json.loads((self.out / f"plan-{name}.json").read_text())

    def leads(self, name, flows):
        """What the plan predicts is where the kernel sent its ports."""
        wrong = []
        for move in self.plan(name).get("moves", []):
            key = move["flow"]["src"], move["sport"]
            if flows.get(key) != {move["hops"][0]["out"]}:
                wrong.append(f"{key}: planned {move['hops'][0]['out']}, the kernel {flows.get(key)}")
        return wrong

    def measured(self, name):
        """FIM of the leaf's links up, as the daemon measured it."""
        return next((r.get("fim") for r in map(json.loads, (self.out / f"imbalance-{name}.json").read_text()
                                               .splitlines())
                     if r.get("group", r.get("name")) == "leaf1/up"), None)

    def imbalance(self, name, loads):
        want, found = fim([loads.get(f"Ethernet{51 + i}", 0) for i in range(SPINES)]), self.measured(name)
        self.check(f"{name}: measured FIM is that of the kernel's links, {want:.0f}",
                   [] if found is not None and abs(found - want) < 0.01 else [found])


def judge(out, _):
    j = Judge(out)
    before = j.taken("collided")
    j.check("the collision is one: all flows on one link", [] if max(before.values()) == HOSTS else [before])
    j.imbalance("collided", before)
    plan = j.plan("planned")
    j.check(f"planned: {HOSTS - 1} of {HOSTS} flows move, as few as can",
            [] if len(plan["moves"]) == HOSTS - 1 else [plan])
    said = plan["before"].get("fim_up"), plan["after"].get("fim_up")
    j.check("planned: FIM 150 before, 50 after, which is the least of 3 flows over 4 links",
            [] if said == (fim([3, 0, 0, 0]), fim([1, 1, 1, 0])) else [said])
    after = j.taken("planned")
    j.check("planned: no link has two flows", [] if max(after.values()) == 1 else [after])
    j.check("planned: each port leads where the plan says", j.leads("planned", j.flows("planned")))
    j.imbalance("planned", after)
    slow, fast = (min(j.rates(name).values()) for name in ("collided", "planned"))
    j.check(f"planned: the slowest flow has {fast / 1000:.0f} kb/s, before {slow / 1000:.0f}: at least twice as much",
            [] if fast >= 2 * slow > 0 else [j.rates("collided"), j.rates("planned")])
    j.check("planned: samples confirm every port", confirmed(out, "planned", HOSTS))
    down = (out / "down").read_text().strip()
    hashed = j.taken("rehashed")
    again = j.plan("failed")
    moves, least = len(again["moves"]), HOSTS - len(hashed)
    j.check(f"failed: {moves} of {HOSTS} flows move, as few as can",
            [] if moves == least > 0 and down not in hashed else [again, hashed])
    final = j.taken("failed")
    j.check("failed: no link has two flows, none is the one that is down",
            [] if max(final.values()) == 1 and down not in final else [final, down])
    j.check("failed: each port leads where the plan says", j.leads("failed", j.flows("failed")))
    j.imbalance("failed", final)
    j.check("failed: samples confirm every port", confirmed(out, "failed", HOSTS))
    return j.passed, j.failed


def confirmed(out, name, ports):
    record = json.loads((out / f"confirmed-{name}.json").read_text().splitlines()[0])
    return [] if record.get("ports_confirmed") == ports else [record]
