# SPDX-License-Identifier: Apache-2.0
"""One spine says nothing, or less than it did: the poller has wrong credentials for it (credentials),
does not list it (unlisted), its lldpd dies once the fabric is known (lldpd), or never ran (mute);
or never ran, and the leaves answer long after it (late); or it is not listed, its lldpd starts late,
and until then one leaf alone answers (unheard). Every flow has its path all the same, and the spine
alone is named, once."""
import itertools
import json
import time

from . import judge, truth
from .agents import Agents, write_switches
from .fabric import LabError, wait_until

KINDS = ("credentials", "unlisted", "lldpd", "mute", "late", "unheard")
UNLISTED = ("unlisted", "unheard")
SILENT = ("mute", "late", "unheard")  # at the beginning: no lldpd
FLOWS_S = 120
ALONE_S = 8  # longer than hosts take to be found at a switch
LOOK_S = 1
# Whether it ever answered LLDP is chance: its links may be known from their other ends before.
SAYS = {"credentials": "never answered SNMP", "unlisted": "no switch poller reads it",
        "lldpd": "answers no LLDP", "mute": "answers no LLDP", "late": "answers no LLDP",
        "unheard": "no switch poller reads it"}
UNCALLED = ("silent_exporter", "sampling_rate", "link_down", "link_shut", "loss", "clock_skew")


class BlindAgents(Agents):
    """Agents of which the last spine's are not asked, or not well."""

    def __init__(self, fabric, kind):
        self.kind = kind
        self.blind = fabric.layout.spines[-1]
        super().__init__(fabric)

    def start_lldpd(self, switch):
        if self.kind not in SILENT or switch != self.blind:
            super().start_lldpd(switch)

    def speak(self):
        super().start_lldpd(self.blind)

    def pause_leaves(self, stopped):
        """All of them; of an unheard spine all but the last."""
        for switch in self.fabric.layout.leaves[:-1 if self.kind == "unheard" else None]:
            self.pause(switch, stopped)

    def config(self, path, credentials="v3", also=()):
        layout = self.fabric.layout
        asked = {s: "wrong" if self.kind == "credentials" and s == self.blind else credentials
                 for s in layout.switches}
        write_switches(path, layout, asked, also)
        if self.kind in UNLISTED:
            lines = path.read_text().splitlines(True)
            path.write_text("".join(
                line for line in lines if f"address: {layout.mgmt(self.blind)}," not in line))
        if self.kind in ("late", "unheard"):
            self.pause_leaves(True)


def known_switches(check):
    topology = json.loads(check.pipeline.tool("topology", "--json"))
    return {switch["name"] for switch in topology.get("switches", ())}


def named(check):
    """[(switch, what the doctor says of it)]."""
    items = [json.loads(line) for line in check.pipeline.tool("doctor", "--json").splitlines()]
    return [(item["switch"], item["text"]) for item in items if item.get("switch")]


def wrong_names(check):
    """What is said of others, and what is not said, or twice, of the blind one."""
    blind, says = check.agents.blind, SAYS[check.agents.kind]
    items = named(check)
    mine = [text for switch, text in items if switch == blind]
    return ([f"{switch}: {text}" for switch, text in items if switch != blind]
            + ([] if len(mine) == 1 and says in mine[0] else [f"of {blind}: {mine}"]))


def spellings(layout, path):
    """A path as records may have it before all of its switches have said their names: such a switch
    is its sFlow agent's address, its ports are their ifIndex."""
    number = {(switch, name): f"#{ifindex}"
              for (switch, ifindex), name in layout.port_of.items()}
    return list(itertools.product(*(
        ((switch, come, out), (layout.mgmt(switch), number[switch, come], number[switch, out]))
        for switch, come, out in path)))


def run(check):
    """Checks of a fabric whose agents are BlindAgents; flows run meanwhile."""
    kind, blind, layout = check.agents.kind, check.agents.blind, check.fabric.layout
    flows = check.new_flows()
    data, both = check.paths(flows)
    check.allowed.update({flow: spellings(layout, path) for flow, path in both.items()})
    check.traffic.start(flows)
    begun, start_ms = time.monotonic(), time.time() * 1000
    if kind == "lldpd":
        check.await_topology("links found while all speak", judge.links_found,
                             judge.links_there(layout))
        check.agents.stop_lldpd(blind)
    if kind == "late":
        wait_until(lambda: blind in known_switches(check), FLOWS_S, f"{blind} in the topology")
        check.records.follow(ALONE_S)
        check.agents.pause_leaves(False)
    if kind == "unheard":
        wait_until(lambda: layout.leaves[-1] in known_switches(check), FLOWS_S,
                   f"{layout.leaves[-1]} in the topology")
        check.records.follow(ALONE_S)
        check.agents.pause_leaves(False)
        check.agents.speak()
    samples = {}
    while time.monotonic() < begun + FLOWS_S and (
            len(samples) < len(both) or judge.unresolved(check.records, data, samples, start_ms)):
        check.records.follow(LOOK_S)
        samples = truth.Counters(check.fabric).samples()
    took = time.monotonic() - begun
    try:
        wait_until(lambda: not wrong_names(check), FLOWS_S, f"what is said of {blind}")
    except LabError:
        pass
    check.tally.check(f"{kind}: {blind} is named for that, once, and nobody else is",
                      wrong_names(check))
    check.records.follow(4 * check.args.window)
    check.traffic.stop()
    samples = truth.Counters(check.fabric).samples()
    check.await_records(lambda r: not judge.unresolved(r, data, samples, start_ms), FLOWS_S)
    over = [flow for flow, path in data.items() if any(hop[0] == blind for hop in path)]
    check.judge_paths(f"{kind}, {took:.0f} s, {len(over)} flows over {blind}", data, samples,
                      start_ms)
    check.await_topology(f"{kind}: links are the lab's", judge.links_found,
                         judge.links_there(layout))
    check.tally.check(f"{kind}: nobody is blamed",
                      [s.record["message"] for s in check.records.of("event", start_ms)
                       if s.record["kind"] in UNCALLED])
