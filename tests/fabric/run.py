#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The end-to-end check: a real fabric in, every flow's path and the imbalance out, compared with
what the kernel says. Prints a line a check and closes with `N passed, N failed, N skipped`."""
import argparse
import json
import os
import random
import shutil
import signal
import sys
import time
from collections import Counter
from pathlib import Path

from lab import blind, exporters, judge, timeline, truth, variants, volumes
from lab.agents import TOOLS, Agents
from lab.course import VERDICTS, Course
from lab.fabric import Fabric, LabError, end_tidily, reap, wait_until
from lab.faults import Faults
from lab.packets import wrong_packets
from lab.pipeline import Pipeline, find_programs
from lab.records import RecordFile
from lab.traffic import SPARSE_PPS, Traffic, plan, sparse
from lab.variants import (LONG_MOVES_S, MOVES_S, case_name, case_options, draw, is_varied,
                          layout_of, refusal)

FIRST_PATH_MAX_MS = 3000
SETTLE_S = 5  # exporter's buffer, folding and the daemon's own delay, with room
WAIT_S = 90  # only a fault takes that long: a slow machine does not
LEFTOVER_MS = 2500  # samples in an exporter's buffer wait for the next flows to push them out
LOOK_S = 0.25
TRIES = 100
ODD_FLOWS = 3  # or more go over a swapped cable or a detour
SHOWN = 5
DISCOVERY_S = 120
CASE_S = 45  # of a case, but for its moves
POINTS = ("forward", "ingress", "egress", "both", "cards", "mixed")
# A receive buffer that holds what comes in half a second.
LOSSY = "receive_buffer: 256KiB\nloss_interval: 2s\n"
DRAIN_S = 1  # until the poller has read what waited
PAUSE_S = 2  # less than the daemon's grace: nothing comes too late
# Events that a healthy fabric gives no cause for.
UNCALLED = ("silent_exporter", "sampling_rate", "loss", "clock_skew", "topology_change", "link_down", "link_shut")


def lacking(tools):
    """What keeps a lab from being raised here; "" when nothing does."""
    missing = [tool for tool in tools if not shutil.which(tool)]
    if missing:
        return f"{', '.join(missing)} is not installed: packaging/install-deps test"
    return "it needs root, for network namespaces" if os.geteuid() else ""


class Tally:
    """Counts checks and prints each as it is made; quiet: those that fail."""

    def __init__(self, quiet=False):
        self.quiet = quiet
        self.passed = self.failed = 0

    def check(self, what, wrong, detail=""):
        """A check passes when wrong, a list of texts, is empty."""
        self.passed += not wrong
        self.failed += bool(wrong)
        if self.quiet and not wrong:
            return
        print(f"{'FAIL' if wrong else 'ok':4}  {what}{': ' + detail if detail else ''}", flush=True)
        for text in wrong[:SHOWN]:
            print(f"        {text}")
        if len(wrong) > SHOWN:
            print(f"        and {len(wrong) - SHOWN} more")

    def close(self):
        print(f"{self.passed} passed, {self.failed} failed, 0 skipped")
        return 1 if self.failed else 0


class Check:
    """A lab with the whole pipeline in it, and what is checked on it."""

    def __init__(self, fabric, programs, args, tally):
        self.fabric = fabric
        self.args = args
        self.tally = tally
        self.rng = random.Random(args.seed)
        self.used_sports = set()
        self.allowed = {}
        self.judged = set()  # flows of courses, by the truth of each moment
        self.traffic = Traffic(fabric, programs["rocegen"])
        self.agents = (blind.BlindAgents(fabric, args.blind) if args.blind
                       else Agents(fabric) if args.discover else None)
        for switch in fabric.layout.switches if self.agents else ():
            self.agents.set_cache_seconds(switch, 1)
        self.by_samples = bool(args.points or args.exporters)
        self.pipeline = Pipeline(fabric, programs, args.window, agents=self.agents,
                                 hosts=not self.by_samples,
                                 poller=LOSSY if args.loss else "",
                                 daemon=f"path_refresh: {args.window}s\n" if args.long else "")
        self.records = RecordFile(self.pipeline.records)

    def new_flows(self):
        flows = plan(self.fabric.layout, self.args.flows, self.args.elephants, self.rng,
                     self.used_sports)
        self.used_sports |= {flow.sport for flow in flows}
        truth.flush(self.fabric)
        return flows

    def paths(self, flows):
        """The kernel's paths of data flows and of their acknowledgements."""
        data = truth.kernel_paths(self.fabric, flows)
        return data, {**data, **truth.kernel_paths(self.fabric, [f.reverse for f in flows])}

    def await_records(self, done, seconds):
        """Reads on until done() or the time is over; either way the checks tell."""
        try:
            wait_until(lambda: done(self.records.poll()), seconds, "records")
        except LabError:
            pass
        self.pipeline.check_alive()

    def packets(self):
        """Before anything is judged by it: the traffic itself."""
        capture = self.fabric.dir / "packets.pcap"
        tcpdump = self.fabric.spawn("leaf1", "tcpdump", "tcpdump", "-Z", "root", "-U", "-n", "-i",
                                    "Ethernet1", "-w", capture, "udp", "port", "4791")
        wait_until(lambda: capture.exists() and capture.stat().st_size >= 24, WAIT_S, "tcpdump")
        flows = self.new_flows()
        _, both = self.paths(flows)
        self.allowed.update({flow: [path] for flow, path in both.items()})
        self.traffic.start(flows)
        self.records.follow(1)
        self.await_records(lambda r: capture.stat().st_size > 100000, WAIT_S)
        self.traffic.stop()
        tcpdump.send_signal(signal.SIGTERM)
        tcpdump.wait()
        wrong, count = wrong_packets(capture)
        self.tally.check("packets are valid RoCEv2", wrong, f"{count} captured")

    def topology(self):
        return json.loads(self.pipeline.tool("topology", "--json"))

    def await_topology(self, what, found, there):
        """Waits until the daemon's topology holds what is there, no more and no less."""
        begun = time.monotonic()
        try:
            wait_until(lambda: found(self.topology()) == there, DISCOVERY_S, what)
        except LabError:
            pass
        got = found(self.topology())
        self.tally.check(what, [f"missing: {row}" for row in sorted(there - got)]
                         + [f"not there: {row}" for row in sorted(got - there)],
                         f"{len(there)} after {time.monotonic() - begun:.1f} s")

    def discover(self):
        """Links come from LLDP over SNMP, hosts from their own packets, and tiers from both: what is
        a leaf shows once hosts are heard of."""
        flows = self.new_flows()
        _, both = self.paths(flows)
        self.allowed.update({flow: [path] for flow, path in both.items()})
        self.traffic.start(flows)
        self.await_topology("links found without a topology file are the lab's",
                            judge.links_found, judge.links_there(self.fabric.layout))
        self.await_topology("hosts learnt from samples are the lab's",
                            judge.hosts_found, judge.hosts_there(self.fabric.layout))
        self.traffic.stop()

    def faults(self):
        """Agents and an exporter break while flows go on; paths are judged in the end."""
        flows = self.new_flows()
        data, both = self.paths(flows)
        self.allowed.update({flow: [path] for flow, path in both.items()})
        self.traffic.start(flows)
        start_ms = time.time() * 1000
        self.records.follow(4 * self.args.window)
        Faults(self.fabric, self.agents, self.pipeline, self.records).run(self.tally)
        self.traffic.stop()
        samples = truth.Counters(self.fabric).samples()
        self.await_records(lambda r: not judge.unresolved(r, data, samples, start_ms), WAIT_S)
        self.tally.check("meanwhile every sampled data flow had the kernel's path",
                         judge.unresolved(self.records, data, samples, start_ms))

    def link_events(self, link, since_ms):
        """Subjects of link_shut events of either end: those raised, and those cleared; what is said
        of others, or as if nobody had shut a port (Fabric.set_cable() shuts the upper one)."""
        ends = {f"{end.node}/{end.name}" for end in (link.a, link.b)}
        events = [s.record for s in self.records.poll().of("event", since_ms)
                  if s.record["kind"] in ("link_down", "link_shut")]
        port = [{"switch": link.b.node, "port": link.b.name}]
        shut = [e for e in events if e["kind"] == "link_shut" and e["subject"] in ends]
        return ([e["subject"] for e in shut if not e.get("cleared")
                 and e["severity"] == "info" and e["evidence"].get("shut_ports") == port],
                [e["subject"] for e in shut if e.get("cleared")],
                [f"{e['kind']} {e['subject']}" for e in events if e not in shut])

    def link_is_told(self, link, down_ms):
        """After the link came back: it was told as down, once, as up again, and no other was."""
        self.await_topology("the link that came up is found again", judge.links_found,
                            judge.links_there(self.fabric.layout))
        self.await_records(lambda r: self.link_events(link, down_ms)[1], DISCOVERY_S)
        raised, cleared, others = self.link_events(link, down_ms)
        self.tally.check("one link_shut event that names the port, cleared once it is up; no link_down",
                         [f"also: {subject}" for subject in others]
                         + ([] if len(raised) == 1 else [f"raised: {raised}"])
                         + ([] if cleared == raised else [f"cleared: {cleared}"]))

    def round(self, number):
        name = f"round {number}"
        flows = self.new_flows()
        data, both = self.paths(flows)
        self.allowed.update({flow: [path] for flow, path in both.items()})
        self.traffic.start(flows)
        start_ms = time.time() * 1000
        first = truth.FirstSamples(self.fabric, start_ms)
        # Two windows are sure to hold a whole one.
        end = start_ms / 1000 + 2 * self.args.window + LEFTOVER_MS / 1000 + 0.1
        with truth.Looks(self.fabric) as looks:
            while len(first.first_ms) < len(both) and time.time() < end:
                self.records.follow(LOOK_S)
                first.poll()
            self.records.follow(end - time.time())
        stop_ms = time.time() * 1000
        sent = self.traffic.stop()
        counters = truth.Counters(self.fabric)
        samples = counters.samples()
        self.tally.check(f"{name}, routes agree with counters", counters.disagreements(data),
                         f"{len(data)} flows, {sum(sent.values())} packets")
        window_ms = self.args.window * 1000
        last_end_ms = stop_ms // window_ms * window_ms
        self.await_records(lambda r: not judge.unresolved(r, data, samples, start_ms)
                           and judge.published(r, last_end_ms), WAIT_S)
        self.judge_paths(name, data, samples, start_ms)
        self.judge_delays(name, {flow: first.first_ms[flow] for flow in data
                                 if flow in first.first_ms})
        windows = judge.full_windows(self.records, start_ms + LEFTOVER_MS, stop_ms)
        wrong = [text for window in windows
                 for text in judge.wrong_imbalance(window, self.fabric.layout, data)]
        self.tally.check(f"{name}, imbalance equals the kernel's",
                         wrong or ([] if windows else ["no full window was published"]),
                         f"{len(windows)} full windows, "
                         f"{len(truth.groups(self.fabric.layout))} groups")
        if self.by_samples:
            self.judge_volumes(name, looks, start_ms + LEFTOVER_MS, stop_ms)
        self.judge_calm(name, start_ms)

    def judge_volumes(self, name, looks, start_ms, stop_ms, links=True):
        """No packet is counted twice, or not at all, however many exporters sampled it."""
        windows = volumes.link_bytes(self.records.poll(), start_ms, stop_ms)
        sent = {start: looks.between(start, start + 1000 * self.args.window) for start in windows}
        wrong = volumes.wrong_totals(windows, sent)
        if links:
            wrong += volumes.wrong_links(windows, sent, self.args.sampling)
        self.tally.check(f"{name}, volumes by samples are the kernel's",
                         wrong or ([] if windows else ["no full window was published"]),
                         f"{volumes.ratio(windows, sent):.3f} times its bytes "
                         f"in {len(windows)} windows, "
                         f"at least {volumes.lowest(windows, sent):.3f} in one")

    def judge_calm(self, name, since_ms):
        events = [s.record for s in self.records.of("event", since_ms)
                  if s.record["kind"] in UNCALLED]
        self.tally.check(f"{name}, nobody is blamed", [e["message"] for e in events])

    def exporters(self):
        """One exporter is killed and comes back, one changes its address for a while."""
        name = "exporters that change"
        flows = self.new_flows()
        data, both = self.paths(flows)
        self.allowed.update({flow: [path] for flow, path in both.items()})
        self.traffic.start(flows)
        start_ms = time.time() * 1000
        with truth.Looks(self.fabric) as looks:
            wrong = exporters.change(self.fabric, self.pipeline, self.records,
                                     2.5 * self.args.window)
        stop_ms = time.time() * 1000
        self.traffic.stop()
        samples = truth.Counters(self.fabric).samples()
        last_end_ms = stop_ms // (self.args.window * 1000) * self.args.window * 1000
        self.await_records(lambda r: not judge.unresolved(r, data, samples, start_ms)
                           and judge.published(r, last_end_ms), WAIT_S)
        self.tally.check(f"{name}: restarts, and nothing missing", wrong)
        self.judge_paths(name, data, samples, start_ms)
        moved = [s.record["message"] for s in self.records.of("event", start_ms)
                 if s.record["kind"] == "path_change"]
        self.tally.check(f"{name}: no flow is said to have moved", moved)
        self.judge_volumes(name, looks, start_ms + LEFTOVER_MS, stop_ms, links=False)
        self.judge_calm(name, start_ms)

    def loss_events(self, since_ms, cleared):
        return [s.record for s in self.records.of("event", since_ms)
                if s.record["kind"] == "loss" and bool(s.record.get("cleared")) == cleared]

    def loss(self):
        """The poller stands still for a moment, with a small receive buffer."""
        flows = self.new_flows()
        _, both = self.paths(flows)
        self.allowed.update({flow: [path] for flow, path in both.items()})
        self.traffic.start(flows)
        self.records.follow(self.args.window)
        begun_ms = time.time() * 1000
        self.pipeline.pause_poller(PAUSE_S)
        time.sleep(DRAIN_S)
        dropped = self.pipeline.poller_dropped()
        self.await_records(lambda r: self.loss_events(begun_ms, True), WAIT_S)
        self.traffic.stop()
        again = self.pipeline.poller_dropped() - dropped
        raised, cleared = (self.loss_events(begun_ms, over) for over in (False, True))
        # Where the machine stands still later, there is a second loss, which need not be over.
        self.tally.check("one loss event, of the poller's buffer, cleared when it is over",
                         [] if {e["evidence"]["reason"] for e in raised} == {"kernel_buffer"}
                         and (again or len(raised) == 1)
                         and [e["subject"] for e in raised][:len(cleared)] ==
                         [e["subject"] for e in cleared] != []
                         else [f"raised: {raised}", f"cleared: {cleared}"],
                         f"{raised[0]['message'] if raised else ''}, and {again} dropped later")

    def missing(self, poller):
        """What its account says is missing; of a lossy run, more or less than the kernel dropped."""
        if not self.args.loss:
            return volumes.lost_on_the_way(poller)
        gap, dropped = (volumes.drops_of(poller, *what) for what in
                        (("network", "sequence_gap"), ("datagrams", "kernel_buffer")))
        return [] if gap == dropped and gap else [f"{gap} by sequence, {dropped} by the kernel"]

    def accounts(self):
        """The last account of each program."""
        last = {(s.record["program"], s.record["source"]): s.record
                for s in self.records.poll().of("loss")}
        poller = [r for (program, _), r in last.items() if program == "fabrictrace-switchpoll"]
        self.tally.check("every account balances, and no datagram is missing but what was told",
                         [text for record in last.values() for text in volumes.imbalances(record)]
                         + [text for record in poller for text in self.missing(record)]
                         + ([] if poller else ["no account of switchpoll"]),
                         f"{len(last)} programs")

    def judge_paths(self, name, data, samples, start_ms):
        sampled = sum(1 for flow in data if samples[flow])
        wrong = judge.unresolved(self.records, data, samples, start_ms)
        self.tally.check(f"{name}, every sampled data flow has the kernel's path", wrong,
                         f"{sampled - len(wrong)} of {sampled}, "
                         f"{len(data) - sampled} without a sample")

    def judge_delays(self, name, first_sample_ms):
        delays = judge.first_path_delays_ms(self.records, first_sample_ms)
        late = judge.late_paths(self.records, first_sample_ms, FIRST_PATH_MAX_MS)
        self.tally.check(f"{name}, first path within {FIRST_PATH_MAX_MS / 1000:.0f} s", late,
                         f"median {delays[len(delays) // 2]:.0f} ms, longest {delays[-1]:.0f} ms"
                         if delays else "no path at all")

    def link_down(self):
        layout = self.fabric.layout
        flows = self.new_flows()
        before, both = self.paths(flows)
        self.traffic.start(flows)
        start_ms = time.time() * 1000
        self.records.follow(SETTLE_S)
        counters = truth.Counters(self.fabric)
        self.await_records(
            lambda r: not judge.unresolved(r, before, counters.samples(), start_ms), WAIT_S)
        link = self.busiest_link(before)
        self.fabric.set_cable(link, False)
        down_ms = time.time() * 1000
        after, both_after = self.paths(flows)
        for flow in both:
            self.allowed[flow] = [both[flow], both_after[flow]]
        truth.flush(self.fabric)
        moved = [flow for flow in after if before[flow] != after[flow]]
        self.records.follow(SETTLE_S + 2 * self.args.window)
        sampled = truth.Counters(self.fabric).samples()
        self.await_records(lambda r: not (
            judge.unresolved(r, after, sampled, start_ms)
            or judge.path_change_problems(r, before, after, down_ms)), WAIT_S)
        self.traffic.stop()
        counters = truth.Counters(self.fabric)
        samples = counters.samples()
        name = f"{link.a.node} to {link.b.node} down"
        self.tally.check(f"{name}, routes agree with counters", counters.disagreements(after),
                         f"{len(moved)} of {len(after)} flows moved")
        self.await_records(lambda r: not judge.unresolved(r, after, samples, start_ms), WAIT_S)
        self.tally.check(f"{name}, every sampled data flow has its new path",
                         judge.unresolved(self.records, after, samples, start_ms))
        self.tally.check(f"{name}, flows that moved have a path_change event, no others",
                         judge.path_change_problems(self.records, before, after, down_ms))
        dead = {(link.a.node, link.a.name), (link.b.node, link.b.name)}
        self.tally.check(f"{name}, none stays on the dead link",
                         judge.back_over(self.records, dead, before, after, down_ms,
                                         SETTLE_S * 1000))
        self.fabric.set_cable(link, True)
        if self.args.discover:
            self.link_is_told(link, down_ms)
        self.link_up(f"{link.a.node} to {link.b.node} up again", flows)

    def link_up(self, name, flows):
        """The same flows go on where the kernel sends them now."""
        data, both = self.paths(flows)
        for flow in both:
            self.allowed[flow].append(both[flow])
        moved = sum(self.allowed[flow][-2] != path for flow, path in data.items())
        truth.flush(self.fabric)
        start_ms = time.time() * 1000
        self.traffic.start(flows)
        self.records.follow(SETTLE_S + self.args.window)
        counters = truth.Counters(self.fabric)
        self.await_records(
            lambda r: not judge.unresolved(r, data, counters.samples(), start_ms), WAIT_S)
        self.traffic.stop()
        counters = truth.Counters(self.fabric)
        samples = counters.samples()
        self.tally.check(f"{name}, routes agree with counters", counters.disagreements(data),
                         f"{moved} of {len(data)} flows moved")
        self.tally.check(f"{name}, every sampled data flow has the kernel's path",
                         judge.unresolved(self.records, data, samples, start_ms))

    def busiest_link(self, paths):
        """The link that most data flows go over, in both directions."""
        ends = [(switch, out) for path in paths.values() for switch, _, out in path]
        return max(self.fabric.layout.fabric_links, key=lambda link: sum(
            ends.count((end.node, end.name)) for end in (link.a, link.b)))

    def course_flows(self):
        """Where cables are swapped, or a spine takes a detour, some that are not slow go there."""
        for _ in range(TRIES):
            flows = self.new_flows()
            if self.args.sparse:
                flows = sparse(flows, self.rng)
            paths = truth.kernel_paths(self.fabric, flows)
            odd = [flow for flow, path in paths.items() if flows[flow].pps > SPARSE_PPS
                   and not self.fabric.layout.is_claimed(path)]
            if len(odd) >= ODD_FLOWS or not (self.args.swapped or self.args.detour):
                return flows
        raise LabError(f"no {ODD_FLOWS} of {self.args.flows} flows go where the file has no link")

    def course(self, number):
        """What the variants share: a time in which paths may move, judged by the truth of each
        moment. Returns {verdict: path records} and how soon flows were right again."""
        args = self.args
        flows = self.course_flows()
        steady = not (args.moves or args.sparse or args.swapped or args.detour)
        wanted = ["miscabling"] * bool(args.swapped) + ["detour"] * args.detour
        course = Course(self, f"course {number}", flows, args.moves, steady, wanted)
        count = course.run()
        self.judged.update(course.witness.flows)
        for kind in ("miscabling", "detour"):
            told = course.told(kind)
            if kind in wanted:
                self.tally.check(f"course {number}, {kind} is told", [] if told else ["no event"],
                                 told[0] if told else "")
            elif told:
                self.tally.check(f"course {number}, no {kind} is told", told)
        return count, course.again

    def close(self):
        self.accounts()
        # Hosts tell of flows too; between two of one leaf there is nothing to choose.
        self.tally.check("no flow without samples has a path", timeline.without_samples(
            self.records.poll(), 1 if is_varied(self.args) else 2))
        self.tally.check("no path record was wrong at any time",
                         judge.ever_wrong(self.records.poll(), self.allowed, self.judged),
                         f"{len(self.records.of('path'))} records")
        self.records.close()
        ends = self.traffic.close()
        self.tally.check("every program ends well on SIGTERM", self.pipeline.stop(),
                         f"{ends['requests']} requests, {ends['acks_sent']} acknowledgements")


def options():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=variants.EPILOG)
    add = parser.add_argument
    add("--build", default="build", help="build folder (default: build)")
    add("--id", default=f"run{os.getpid()}", help="lab id")
    add("--spines", type=int, help="of a pod (default: 4; 2 in three tiers)")
    add("--leaves", type=int, help="of a pod (default: 4; 2 in three tiers)")
    add("--hosts", type=int, default=2, help="hosts a leaf")
    add("--flows", type=int, default=64)
    add("--elephants", type=int, default=8)
    add("--rounds", type=int, default=1)
    add("--window", type=int, default=4, help="seconds")
    add("--sampling", type=int, default=50, help="one packet in N")
    add("--points", choices=POINTS, help="where switches sample, and by how many exporters each; no "
        "agents, so that volumes come from samples")
    add("--exporters", action="store_true",
        help="exporters restart and change their address; no agents either")
    add("--loss", action="store_true",
        help="the poller stands still for a moment, with a small receive buffer")
    add("--discover", action="store_true",
        help="no topology file: snmpd and lldpd in every switch")
    add("--blind", choices=blind.KINDS,
        help="as --discover, but one spine says nothing, or less than it did")
    add("--link-down", action="store_true", help="a link goes down in the end")
    variants.add_options(add)
    add("--seed", type=int, default=int(time.time()), help="of the choice of flows and of ECMP")
    add("--keep", metavar="DIR", help="copy the run folder there in the end")
    return parser


def main():
    args = options().parse_args()
    if why := refusal(args):
        options().error(why)
    tally = Tally()
    tools = ("ip", "nft", "uacctd", "nsenter", "tcpdump", "tshark") + (TOOLS if args.discover or args.blind else ())
    if lacks := lacking(tools):
        tally.check("the fabric", [lacks])
        return tally.close()
    end_tidily()
    reap()
    try:
        if args.long:
            tally.quiet = True
            run_long(args, tally)
        else:
            run_all(args, tally)
    except LabError as error:
        tally.check("the run goes through", [str(error)])
    return tally.close()


def run_all(args, tally):
    """Returns {verdict: path records} of the variants, and how soon flows were right again."""
    programs = find_programs(args.build)
    layout = layout_of(args)
    if not args.long:
        print(f"{layout}, {args.flows} flows, 1 in {args.sampling} sampled, "
              f"points {args.points or POINTS[0]}, seed {args.seed}", flush=True)
    count, again = Counter(), ""
    with Fabric(args.id, layout, args.sampling, args.seed, args.points or POINTS[0],
                prompt=is_varied(args)) as fabric:
        try:
            check = Check(fabric, programs, args, tally)
            if args.blind:
                blind.run(check)
                check.close()
                return count, again
            if args.discover:
                check.discover()
            if not is_varied(args):
                check.packets()
            for number in range(1, args.rounds + 1):
                if is_varied(args):
                    counted, again = check.course(number)
                    count += counted
                else:
                    check.round(number)
            if args.exporters:
                check.exporters()
            if args.loss:
                check.loss()
            if args.discover and not is_varied(args):
                check.faults()
            if args.link_down:
                check.link_down()
            check.close()
        finally:
            if args.keep:
                shutil.copytree(fabric.dir, Path(args.keep), dirs_exist_ok=True,
                                ignore=lambda _, names: {"agentx", "lldpd.sock"} & set(names))
    return count, again


def run_long(args, tally):
    """One lab after the other until the time is over; a line each, and in the end the sums."""
    rng = random.Random(args.seed)
    begun = time.monotonic()
    end = begun + 60 * args.long
    sums = {}
    print(f"long run of {args.long:g} minutes, seed {args.seed}", flush=True)
    number = 0
    while not number or time.monotonic() + CASE_S < end:
        number += 1
        case = draw(args, rng, min(LONG_MOVES_S, max(MOVES_S, end - time.monotonic() - CASE_S)))
        print(f"{(time.monotonic() - begun) / 60:5.1f} min  case {number}, {case_name(case)}: "
              f"{case_options(case)}", flush=True)
        try:
            count, again = run_all(case, tally)
        except LabError as error:
            tally.check(f"case {number} goes through", [str(error)])
            continue
        print(f"           {told(count)}; right again: {again}", flush=True)
        for name in (case_name(case).split(", ") + ["all"]):
            sums.setdefault(name, Counter()).update(count)
    for name, count in sorted(sums.items()):
        print(f"{name:14} {told(count)}")


def told(count):
    return ", ".join([f"{sum(count.values())} records"]
                     + [f"{count[verdict]} {verdict}" for verdict in VERDICTS])


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
    except ValueError as error:
        sys.exit(f"run.py: {error}")
