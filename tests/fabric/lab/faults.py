# SPDX-License-Identifier: Apache-2.0
"""Three things break at once, each in a switch of its own: its SNMP agent, its LLDP agent and its
exporter. What the daemon says of each switch is followed until all are back: the right switch is
named for the right reason, no other one is, and the topology does not change."""
import json
import re
import time

import speed

KINDS = ("silent_exporter", "sampling_rate", "link_down", "link_shut", "topology_change", "loss", "clock_skew")
BROKEN_S = 150
MENDED_S = 180
LOOK_S = 0.5
# What the doctor says of each fault.
SAYS = {"snmpd": "does not answer SNMP", "lldpd": "answers no LLDP any more",
        "exporter": "no sample for"}
# A poll that waits for an answer outlasts the lab's intervals. After an SNMP agent's restart its LLDP
# sub-agent comes back later. A request that is under way while an LLDP agent ends is answered with an
# error. Of windows in which an exporter was dead for a part, it told a part.
ALSO = {"snmpd": ("no report for three intervals", "answers no LLDP", "the SNMP agent has restarted",
                  "no counters by SNMP", "LLDP-MIB is not answered", ": no answer"),
        "lldpd": ("the agent answers with an error", "answers no LLDP"),
        "exporter": ("its samples stand for",)}


def kind(switch, message):
    """An item but for its figures, which grow."""
    return switch, re.sub(r"[0-9.]+", "N", message)


class Faults:
    def __init__(self, fabric, agents, pipeline, records):
        layout = fabric.layout
        self.fabric = fabric
        self.agents = agents
        self.pipeline = pipeline
        self.records = records
        self.victims = {"snmpd": layout.spines[0], "lldpd": layout.leaves[1],
                        "exporter": layout.leaves[-1]}
        self.before = {kind(*item) for item in self.doctor()}
        self.begun_ms = time.time() * 1000
        self.blamed = {}

    def doctor(self):
        """{(switch, what it says)} of the items that name a switch."""
        items = [json.loads(line) for line in self.pipeline.tool("doctor", "--json").splitlines()]
        return {(item["switch"], item["text"]) for item in items if item.get("switch")}

    def break_all(self):
        self.agents.stop_snmpd(self.victims["snmpd"])
        self.agents.stop_lldpd(self.victims["lldpd"])
        self.fabric.stop_exporter(self.victims["exporter"])

    def mend_all(self):
        self.agents.start_snmpd(self.victims["snmpd"])
        self.agents.set_cache_seconds(self.victims["snmpd"], 1)
        self.agents.start_lldpd(self.victims["lldpd"])
        self.fabric.start_exporter(self.victims["exporter"])

    def is_excused(self, switch, message):
        """Whether a fault of this switch explains the item."""
        return any(victim == switch and any(text in message for text in (SAYS[what], *ALSO.get(
            what, ()))) for what, victim in self.victims.items())

    def told(self):
        """The faults that the doctor tells of now; what else it tells is kept in blamed."""
        items = self.doctor()
        for switch, message in items:
            if not self.is_excused(switch, message) and kind(switch, message) not in self.before:
                self.blamed[kind(switch, message)] = message
        return {what for what, victim in self.victims.items()
                if any(switch == victim and SAYS[what] in message for switch, message in items)}

    def silence(self, cleared):
        return [s.record for s in self.records.poll().of("event", self.begun_ms)
                if s.record["kind"] == "silent_exporter"
                and bool(s.record.get("cleared")) == cleared]

    def follow(self, seconds, done):
        """Looks until done(what is told) or the time is over; how long it took."""
        begun = time.monotonic()
        deadline = speed.Deadline(seconds)
        while not done(self.told()) and not deadline.passed():
            self.records.follow(LOOK_S)
        self.pipeline.check_alive()
        return f"after {time.monotonic() - begun:.0f} s"

    def run(self, tally):
        self.break_all()
        took = self.follow(BROKEN_S, lambda told: told == set(self.victims)
                           and self.silence(cleared=False))
        told = self.told()
        tally.check("doctor names each broken part at its switch",
                    [f"{what} of {self.victims[what]}: {self.doctor()}"
                     for what in self.victims if what not in told], took)
        self.mend_all()
        took = self.follow(MENDED_S, lambda told: not told and self.silence(cleared=True))
        told = self.told()
        tally.check("and no longer once it is mended",
                    [f"{what} of {self.victims[what]}: {self.doctor()}" for what in told], took)
        raised, cleared = self.silence(cleared=False), self.silence(cleared=True)
        tally.check("one silent_exporter event, cleared in the end",
                    ([] if [e["subject"] for e in raised] == [self.victims["exporter"]]
                     else [f"raised: {raised}"])
                    + ([] if [e["subject"] for e in cleared] == [self.victims["exporter"]]
                       else [f"cleared: {cleared}"]))
        others = [s.record for s in self.records.of("event", self.begun_ms)
                  if s.record["kind"] in KINDS and s.record["kind"] != "silent_exporter"
                  and (s.record["kind"], s.record["subject"])
                  != ("sampling_rate", self.victims["exporter"])]
        tally.check("no other switch is blamed, and the topology stays",
                    [f"{switch}: {text}" for (switch, _), text in self.blamed.items()]
                    + [f"{e['kind']}: {e['message']}" for e in others])
