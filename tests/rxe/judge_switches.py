# SPDX-License-Identifier: Apache-2.0
"""A fabric of Open vSwitch with SNMP and LLDP, and no topology file: the topology that the daemon found
is the plan's, and paths and imbalance on it are what tcpdump saw on the spines' links."""
import json
import re

import guestswitches
import vm
from fabricwire import FabricJudge
from guestfabric import Layout, Plan, put
from lab import judge as paths

PROGRAMS = guestswitches.PROGRAMS
# What a healthy fabric gives no cause for, once it is found.
UNCALLED = ("silent_exporter", "sampling_rate", "loss", "clock_skew", "link_down", "link_shut",
            "path_change", "topology_change")
LOST_PART = 0.05


def machines(_):
    return (vm.Machine(memory_mib=640),)


def the_plan():
    """Each host sends by IPv4 and by IPv6, for only who is heard of is found."""
    layout = Layout(spines=2, leaves=2, hosts=2)
    one, two, three, four = layout.hosts
    pairs = (three, one, 4), (two, four, 4), (one, four, 6), (three, two, 6)
    return Plan(layout, pairs, qps=8, sampling=1, window_s=4)


def prepare(share, _):
    plan = the_plan()
    guestswitches.write(share, plan)
    put(share / "plan", "addresses", plan.layout.owner)
    put(share / "plan", "link-ends", [2 * len(plan.layout.fabric_links)])


class Judge(FabricJudge):
    def __init__(self, out, plan):
        super().__init__(out, plan)
        self.topology_ms = self.moment("start")

    def topology(self):
        topology = json.loads((self.out / "topology.json").read_text())
        wrong = []
        for found, there in ((paths.links_found(topology), paths.links_there(self.layout)),
                             (paths.hosts_found(topology), paths.hosts_there(self.layout))):
            wrong += [f"missing: {row}" for row in sorted(there - found)]
            wrong += [f"not there: {row}" for row in sorted(found - there)]
        tiers = {switch["name"]: switch.get("tier") for switch in topology["switches"]}
        true = {name: "leaf" if name in self.layout.leaves else "spine"
                for name in self.layout.switches}
        return wrong + ([] if tiers == true else [f"tiers: {tiers}"])

    @staticmethod
    def is_busy(event):
        """Where the machine that emulates the guest has no time for it, a few of the samples that hsflowd
        numbered are not sent: they are lost, and said to be."""
        found = re.search(r" lost (\d+) of (\d+) samples ", event["message"])
        return event["kind"] == "loss" and event["evidence"]["reason"] == "sequence_gap" and \
            found and int(found[1]) <= LOST_PART * int(found[2])

    def calm(self):
        return [seen.record["message"] for seen in self.records.of("event")
                if seen.record["kind"] in UNCALLED and not self.is_busy(seen.record) and
                seen.record["time_ms"] > self.topology_ms]

    def doctor(self):
        """Each switch is polled, samples and is linked: there is nothing to advise."""
        rows = map(json.loads, (self.out / "doctor.json").read_text().splitlines())
        return [f"{row['switch']}: {row['text']}" for row in rows if "switch" in row]


def judge(out, _):
    j = Judge(out, the_plan())
    j.check("links, hosts and tiers found by LLDP, SNMP and samples are the plan's", j.topology())
    j.check_paths()
    j.check("nothing is said to be wrong with a link, a switch or an exporter", j.calm())
    j.check("the doctor finds no fault with a switch", j.doctor())
    return j.passed, j.failed
