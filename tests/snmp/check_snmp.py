#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The SNMP poller against real agents: snmpd and lldpd in every switch of a lab of namespaces. What
it reports is compared with the lab and with the kernel's counters; then things go wrong, one by one,
and each has to give its record while nothing else stops. Prints a line a check and closes with
`N passed, N failed, N skipped`."""
import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "fabric"),
                str(Path(__file__).resolve().parent)]

from lab.agents import TOOLS, Agents  # noqa: E402
from lab.fabric import Fabric, LabError, end_tidily, wait_until  # noqa: E402
from lab.layout import COLLECTOR, MGMT_IFINDEX, Layout  # noqa: E402
from lab.records import RecordFile  # noqa: E402
from run import Tally, lacking  # noqa: E402
from simulated import check_tables  # noqa: E402
import speed  # noqa: E402

INTERVAL_S = 1
TIMEOUT_S = min(speed.limit(2), 60)
RETRIES = 1
FROZEN_S = 6
NOBODY = "172.31.9.9"
# A poll of another switch may wait for the machine, never for a switch that does not answer: that
# would hold it up for all of the tries.
GAP_MAX_S = TIMEOUT_S * (RETRIES + 1) - 0.5
WAIT_S = 90  # on an idle machine
DATAGRAMS = 50
DATAGRAM_BYTES = 1000
SEND = f"""import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for _ in range({DATAGRAMS}):
    s.sendto(bytes({DATAGRAM_BYTES}), (sys.argv[1], 9))
"""
COUNTERS = {"in_bytes": "rx_bytes", "out_bytes": "tx_bytes"}


class Poller:
    """fabrictrace-switchpoll in the collector, writing its records to a file."""

    def __init__(self, fabric, program):
        self.fabric = fabric
        self.switches = fabric.dir / "switches.yaml"
        self.log = fabric.dir / "switchpoll.log"
        config = fabric.dir / "switchpoll.yaml"
        config.write_text(
            f"http: off\nloss_interval: 1s\nsnmp:\n  switches: {self.switches}\n"
            f"  interval: {INTERVAL_S}s\n  timeout: {int(TIMEOUT_S * 1000)}ms\n"
            f"  retries: {RETRIES}\n  frozen_after: {FROZEN_S}s\n")
        self.records = RecordFile(fabric.dir / "records.ndjson")
        self.process = fabric.spawn(COLLECTOR, "switchpoll", program, "-c", config, "--output",
                                    self.records.path)

    def reload(self):
        """SIGHUP, and the line of the log that says what became of it."""
        seen = self.log.stat().st_size
        self.process.send_signal(signal.SIGHUP)
        return wait_until(lambda: [line for line in self.log.read_text()[seen:].splitlines()
                                   if "reload" in line], WAIT_S, "an answer to SIGHUP")[-1]

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=speed.limit(WAIT_S))


class Check:
    def __init__(self, fabric, program, tally):
        self.fabric = fabric
        self.layout = fabric.layout
        self.tally = tally
        self.agents = Agents(fabric)
        for switch in self.layout.switches:
            self.agents.set_cache_seconds(switch, 1)
        # Every kind of credentials that there is.
        kinds = ["v3", "v3strong", "v3sha", "v3auth", "v2c"]
        self.credentials = {switch: kinds[i % len(kinds)]
                            for i, switch in enumerate(self.layout.switches)}
        self.write_config()
        self.poller = Poller(fabric, program)
        self.records = self.poller.records

    def write_config(self, **changes):
        self.agents.config(self.fabric.dir / "switches.yaml", {**self.credentials, **changes},
                           also=[NOBODY])

    # What the records say.

    def reports(self, switch, since_ms=0):
        """Newest last."""
        agent = NOBODY if switch == NOBODY else self.layout.mgmt(switch)
        return [s.record for s in self.records.of("switch_report", since_ms)
                if s.record["agent"] == agent]

    def await_report(self, switch, condition, since_ms=None):
        """The first report from then or from now on that fulfils the condition; None when none
        comes."""
        since_ms = since_ms or time.time() * 1000
        deadline = speed.Deadline(WAIT_S)
        while not deadline.passed():
            for report in self.reports(switch, since_ms):
                if condition(report):
                    return report
            self.records.follow(0.1)
        return None

    def await_polls(self, count, since_ms, but=()):
        """Until every other switch has been reported so often."""
        deadline = speed.Deadline(WAIT_S)
        while not deadline.passed() and not all(
                len(self.reports(s, since_ms)) >= count for s in self.layout.switches if s not in but):
            self.records.follow(0.1)

    def ports_wrong(self, switch, report):
        want = {p.ifindex: p.name for p in self.layout.ports(switch)}
        want |= {1: "lo", MGMT_IFINDEX: "mgmt0"}
        have = {p["ifindex"]: p.get("name") for p in report.get("ports", ())}
        return [] if want == have else [f"{switch}: ports are {have}, not {want}"]

    def links(self, switch):
        """{(ifindex, neighbour, its port)} as the lab has them; hosts do not speak LLDP here."""
        peers = ((p.ifindex, self.layout.peer[switch, p.name]) for p in self.layout.ports(switch))
        return {(i, peer.node, peer.name) for i, peer in peers if peer.node in self.layout.switches}

    @staticmethod
    def links_of(report):
        return {(n["ifindex"], n.get("name"), n.get("port_id"))
                for n in report.get("neighbors", ())}

    def links_wrong(self, switch, report):
        want, have = self.links(switch), self.links_of(report)
        return [] if want == have else [f"{switch}: links are {have}, not {want}"]

    def gaps_wrong(self, since_ms, but=()):
        """Switches whose reports, well ones, did not keep coming."""
        wrong = []
        now_ms = time.time() * 1000
        self.records.poll()
        for switch in self.layout.switches:
            if switch in but:
                continue
            reports = self.reports(switch, since_ms)
            times = [since_ms] + [r["time_ms"] for r in reports] + [now_ms]
            for begun, end in zip(times, times[1:]):
                waited_s = self.records.waited.seconds(begun, end)
                if end - begun > (GAP_MAX_S + waited_s) * 1000:
                    wrong.append(f"{switch}: no report for {(end - begun) / 1000:.1f} s, of which "
                                 f"programs waited {waited_s:.1f} s for a processor")
            wrong += [f"{switch}: {r.get('problem')}" for r in reports if not r["reachable"]]
        return wrong

    # The checks, in the order in which they run.

    def everything_named(self):
        reports = {}
        deadline = speed.Deadline(WAIT_S)
        while not deadline.passed() and len(reports) < len(self.layout.switches):
            self.records.follow(0.2)
            for switch in self.layout.switches:
                newest = self.reports(switch)[-1:]
                if newest and not self.links_wrong(switch, newest[0]):
                    reports[switch] = newest[0]
        whole = [s for s in self.layout.switches if s in reports]
        self.tally.check("every agent answers, with v2c, noPriv, SHA, SHA-2, AES and AES-256",
                         [f"{s} ({self.credentials[s]})" for s in self.layout.switches
                          if not any(r["reachable"] for r in self.reports(s))])
        self.tally.check("every link of the lab is in the reports of both ends, and no other",
                         [text for s in self.layout.switches
                          for text in self.links_wrong(s, (self.reports(s) or [{}])[-1])],
                         f"{sum(len(self.links(s)) for s in whole)} ends")
        self.tally.check("every port is named, and no other",
                         [text for s in self.layout.switches
                          for text in self.ports_wrong(s, (self.reports(s) or [{}])[-1])])
        wrong = []
        for switch, report in reports.items():
            if report.get("name") != switch or self.layout.mgmt(switch) not in report["addresses"]:
                wrong.append(f"{switch}: {report.get('name')} {report['addresses']}")
            peers = {n["chassis_id"] for other in reports.values()
                     for n in other["neighbors"] if n["name"] == switch}
            if peers != {report.get("chassis_id")}:
                wrong.append(f"{switch}: is {report.get('chassis_id')}, its peers hear {peers}")
            wrong += [f"{switch}: {p['name']} calls itself {p.get('lldp_id')}"
                      for p in report["ports"] if p["name"].startswith("Ethernet")
                      and p.get("lldp_id") != p["name"]]
            wrong += [f"{switch}: {n['name']} does not say that it forwards" for n in
                      report["neighbors"] if n.get("forwards") is not True]
            if report.get("problem"):
                wrong.append(f"{switch}: {report['problem']}")
        self.tally.check("names, addresses, chassis and port ids agree between the switches", wrong)

    def kernel(self, switch, port, counter):
        return int(self.fabric.run(switch, "cat", f"/proc/net/dev").split(port + ":")[1].split()[
            0 if counter == "rx_bytes" else 8])

    def counters(self):
        """A counter lies between what the kernel said before the poll and what it says after it."""
        switch = self.layout.leaves[0]
        host = next(h for h in self.layout.hosts if h.leaf == 0)
        port = self.layout.host_port(host)
        agent = self.layout.mgmt(switch)
        before = {c: self.kernel(switch, port.name, k) for c, k in COUNTERS.items()}
        self.fabric.run(host.name, sys.executable, "-c", SEND, host.gateway4)
        moved = {c: self.kernel(switch, port.name, k) for c, k in COUNTERS.items()}
        # The agent's cache may answer from before.
        rows = []
        deadline = speed.Deadline(WAIT_S)
        while not deadline.passed() and not all(
                row.get(c, -1) >= moved[c] for c in COUNTERS for row in rows[-1:] or [{}]):
            self.records.follow(0.1)
            rows = [s.record for s in self.records.of("counters")
                    if s.record["agent"] == agent and s.record["ifindex"] == port.ifindex]
        after = {c: self.kernel(switch, port.name, k) for c, k in COUNTERS.items()}
        wrong = [] if rows else ["no counters"]
        for row in rows[-1:]:
            wrong += [f"{c}: {row.get(c)} is not from {moved[c]} to {after[c]}"
                      for c in COUNTERS if not moved[c] <= row.get(c, -1) <= after[c]]
            if row["source"] != "snmp" or row["port"] != port.name:
                wrong.append(str(row))
        if moved["in_bytes"] - before["in_bytes"] < DATAGRAMS * DATAGRAM_BYTES:
            wrong.append("the datagrams did not arrive")
        self.tally.check("counters are the kernel's", wrong)

    def unreachable_switch(self):
        for _ in range(2):
            self.await_report(NOBODY, lambda r: True, since_ms=1)
        reports = self.reports(NOBODY)
        wrong = [] if reports else ["no report"]
        wrong += [str(r) for r in reports if r["reachable"] or "no answer" not in r.get("problem", "")]
        self.tally.check("an address where nobody is: reported not reachable", wrong,
                         f"{len(reports)} reports")

    def wrong_credentials(self):
        since_ms = time.time() * 1000
        victim = self.layout.leaves[1]
        self.write_config(**{victim: "wrong"})
        line = self.poller.reload()
        report = self.await_report(victim, lambda r: not r["reachable"])
        wrong = [] if report and "refuses the authentication" in report["problem"] else [str(report)]
        self.await_polls(3, time.time() * 1000, but=[victim])
        self.tally.check("wrong credentials: told, and only of that switch",
                         wrong + self.gaps_wrong(since_ms + 1500, but=[victim]), line)
        (self.fabric.dir / "switches.yaml").write_text("switches: [192.0.2.300]\nfoo: 1\n")
        line = self.poller.reload()
        since_ms = time.time() * 1000
        self.await_polls(3, since_ms, but=[victim])
        self.tally.check("a broken file of switches is refused, and the old one stays",
                         ([] if "reload failed" in line else [line])
                         + self.gaps_wrong(since_ms, but=[victim]))
        self.write_config()
        self.poller.reload()
        report = self.await_report(victim, lambda r: r["reachable"])
        self.tally.check("right credentials again", [] if report else ["does not come back"])

    def restarted_agent(self):
        since_ms = time.time() * 1000
        victim = self.layout.spines[0]
        known = self.reports(victim)[-1]
        self.agents.stop_snmpd(victim)
        report = self.await_report(victim, lambda r: not r["reachable"])
        wrong = [] if report else ["not reported"]
        if report and (report["ports"] != known["ports"] or "no answer" not in report["problem"]):
            wrong.append(f"does not keep what was known: {report}")
        self.tally.check("snmpd killed: not reachable, what was known before is kept", wrong)
        started_ms = time.time() * 1000
        self.agents.start_snmpd(victim)
        report = self.await_report(victim, lambda r: r["reachable"], started_ms)
        wrong = [] if report else ["does not come back"]
        if report and "restarted" not in report.get("problem", ""):
            wrong.append(f"the restart is not told: {report.get('problem')}")
        self.tally.check("snmpd started again: reachable, and the restart is told", wrong)
        report = self.await_report(victim, lambda r: r.get("has_lldp")
                                   and not self.links_wrong(victim, r))
        self.tally.check("lldpd's sub-agent comes back to it, and the links with it",
                         [] if report else [str(self.reports(victim)[-1:])])
        # As a switch that was replaced: another engine id, and its counts begin anew.
        self.agents.stop_snmpd(victim)
        self.agents.forget(victim)
        self.agents.start_snmpd(victim)
        report = self.await_report(victim, lambda r: r["reachable"])
        self.tally.check("snmpd with another engine id: reachable again",
                         [] if report else [str(self.reports(victim)[-1:])])
        self.tally.check("meanwhile all others were polled in time",
                         self.gaps_wrong(since_ms, but=[victim]))

    def paused_agent(self):
        since_ms = time.time() * 1000
        victim = self.layout.leaves[0]
        self.agents.pause(victim, True)
        report = self.await_report(victim, lambda r: not r["reachable"])
        gaps = self.gaps_wrong(since_ms, but=[victim])
        self.agents.pause(victim, False)
        back = self.await_report(victim, lambda r: r["reachable"])
        self.tally.check("an agent that hangs delays nobody",
                         gaps + ([] if report else ["not reported"])
                         + ([] if back else ["does not come back"]))

    def not_shut(self, switch, shut):
        """What differs in the newest report and in the newest counters from: these ports, and no
        others, are administratively down. The kernel says so, too."""
        report = self.reports(switch)[-1]
        found = {p["ifindex"] for p in report["ports"] if not p.get("admin_up", not shut)}
        counted = {}
        for s in self.records.of("counters", report["time_ms"] - 1000):
            if s.record["agent"] == report["agent"]:
                counted[s.record["ifindex"]] = s.record.get("admin_up")
        counted = {ifindex for ifindex, up in counted.items() if up is False}
        links = json.loads(self.fabric.run(switch, "ip", "-j", "link", "show"))
        kernel = {link["ifindex"] for link in links if "UP" not in link["flags"]}
        return [f"{switch}: {what} {is_} is administratively down, not {shut}" for what, is_ in
                (("by its report", found), ("by its counters", counted), ("by its kernel", kernel))
                if is_ != shut]

    def port_down(self):
        leaf, spine = 1, 0
        port = self.layout.downlink(leaf, spine)
        peer = self.layout.uplink(leaf, spine)
        down_at = time.monotonic()
        self.fabric.set_link(leaf, spine, False)

        def down(report, ifindex):
            ports = {p["ifindex"]: p for p in report["ports"]}
            return not ports[ifindex].get("oper_up", True) and not any(
                n["ifindex"] == ifindex for n in report.get("neighbors", ()))

        wrong = []
        for end in (port, peer):
            if not self.await_report(end.node, lambda r: down(r, end.ifindex)):
                wrong.append(f"{end.node} {end.name}: {self.reports(end.node)[-1]}")
        took = time.monotonic() - down_at
        self.tally.check("port down: both ends down, the neighbours gone", wrong, f"{took:.1f} s")
        self.tally.check("one end was shut by its administrator, the other is enabled",
                         self.not_shut(port.node, {port.ifindex})
                         + self.not_shut(peer.node, set()))
        self.fabric.set_link(leaf, spine, True)
        wrong = [f"{end.node}: {self.links_of(self.reports(end.node)[-1])}" for end in (port, peer)
                 if not self.await_report(end.node, lambda r: not self.links_wrong(end.node, r))]
        self.tally.check("port up again: the link is back", wrong)

    def frozen_counters(self):
        victim = self.layout.spines[1]
        agent = self.layout.mgmt(victim)
        self.agents.freeze(victim, True)
        report = self.await_report(victim, lambda r: "stale" in r.get("problem", ""))
        frozen_ms = time.time() * 1000
        for _ in range(3):
            self.await_report(victim, lambda r: True)
        rows = [s for s in self.records.of("counters", frozen_ms) if s.record["agent"] == agent]
        self.tally.check("frozen counters: told, and not passed on as ports without traffic",
                         ([] if report else ["not told"]) + [str(s.record) for s in rows[:1]])
        self.agents.freeze(victim, False)
        report = self.await_report(victim, lambda r: "problem" not in r)
        self.tally.check("counters move again: well again", [] if report else ["is not"])

    def lldp_gone(self):
        victim = self.layout.leaves[2]
        self.agents.stop_lldpd(victim)
        report = self.await_report(
            victim, lambda r: not r["has_lldp"] and not r.get("neighbors"))
        wrong = [] if report and "LLDP-MIB is not answered" in report["problem"] else [str(report)]
        if report:
            wrong += self.ports_wrong(victim, report)
        self.tally.check("lldpd gone: told, its links gone, its ports there", wrong)

    def close(self):
        code = self.poller.stop()
        self.records.poll()
        wrong = [f"exit code {code}"] if code else []
        for seen in self.records.of("loss"):
            for stage in seen.record["stages"]:
                out = stage["processed"] + stage["pending"] + sum(
                    d["count"] for d in stage.get("drops", ()))
                if stage["received"] != out:
                    wrong.append(str(stage))
        last = [s for s in self.records.of("loss")[-1].record["stages"] if s["name"] == "snmp"]
        if not last or not any(d["reason"] == "timeout" for d in last[0].get("drops", ())):
            wrong.append("the timeouts are not accounted for")
        self.tally.check("every request is accounted for, and the end is clean", wrong,
                         f"{last[0]['received'] if last else 0} requests")

    def run(self):
        self.everything_named()
        self.counters()
        self.unreachable_switch()
        self.wrong_credentials()
        self.paused_agent()
        self.restarted_agent()
        self.port_down()
        self.frozen_counters()
        self.lldp_gone()
        self.close()


def find_program(build):
    for place in ("switchpoll/fabrictrace-switchpoll", "fabrictrace-switchpoll"):
        program = Path(build).resolve() / place
        if os.access(program, os.X_OK):
            return program
    raise LabError(f"not built in {build}: fabrictrace-switchpoll")


def refusal(program):
    """What the program says to a file of switches when it was built without SNMP; else ""."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "switches.yaml"
        file.write_text("credentials: {a: {version: 2c, community: b}}\nswitches: []\n")
        file.chmod(0o600)
        done = subprocess.run([program, "--check", "--set", f"snmp.switches={file}"],
                              capture_output=True, text=True)
    return done.stderr if done.returncode else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build", help="build folder (default: build)")
    parser.add_argument("--id", default=f"snmp{os.getpid()}", help="lab id")
    parser.add_argument("--keep", metavar="DIR", help="copy the run folder there in the end")
    args = parser.parse_args()
    tally = Tally()
    if lacks := lacking(("ip", "nft", "nsenter", "unshare", "snmpsimd", *TOOLS)):
        tally.check("SNMP", [lacks])
        return tally.close()
    end_tidily()
    try:
        program = find_program(args.build)
        if "SNMP" in refusal(program):
            tally.check("SNMP", ["this build has no support for net-snmp: packaging/install-deps, and configure it anew"])
            return tally.close()
        check_tables(program, tally)
        with Fabric(args.id, Layout(spines=2, leaves=3, hosts=1), sampling=0) as fabric:
            try:
                Check(fabric, program, tally).run()
            finally:
                if args.keep:
                    shutil.copytree(fabric.dir, Path(args.keep), dirs_exist_ok=True,
                                    ignore=shutil.ignore_patterns("agentx", "*.sock"))
    except LabError as error:
        tally.check("the run goes through", [str(error)])
    return tally.close()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
