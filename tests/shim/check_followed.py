#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A plan that is applied, followed by its samples: a real daemon, poller and agent, and a job whose
libibverbs says what it is asked to do. A made switch of two uplinks sends each source port where the
test says; the daemon has to confirm the plan while that is where the plan says, and to withdraw it
when it is not: then the agent gives no more of its ports. Runs in the build folder."""
import json
import os
import pathlib
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest
from ipaddress import ip_address

sys.dont_write_bytecode = True
TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "golden/daemon"), str(TESTS / "shim"), str(TESTS / "faults")]
import check_shim  # noqa: E402
import kit  # noqa: E402
import rig  # noqa: E402
import speed  # noqa: E402

WAIT_S = 120
JOB, HOST = check_shim.JOB, check_shim.HOST
TOOL = pathlib.Path("cli/fabrictrace").resolve()
SWITCHES = ("leaf1", "leaf2", "spine1", "spine2")
TOPOLOGY = """fabric: small
speed_bps: 100000000000
switches:
  - {name: leaf1, addresses: [192.0.2.1], ports: [{name: h1, ifindex: 1}, {name: up1, ifindex: 51}, {name: up2, ifindex: 52}]}
  - {name: leaf2, addresses: [192.0.2.2], ports: [{name: h2, ifindex: 2}, {name: h3, ifindex: 3}, {name: up1, ifindex: 51}, {name: up2, ifindex: 52}]}
  - {name: spine1, addresses: [192.0.2.3], ports: [{name: down1, ifindex: 1}, {name: down2, ifindex: 2}]}
  - {name: spine2, addresses: [192.0.2.4], ports: [{name: down1, ifindex: 1}, {name: down2, ifindex: 2}]}
links:
  - {a: leaf1, a_port: up1, b: spine1, b_port: down1}
  - {a: leaf1, a_port: up2, b: spine2, b_port: down1}
  - {a: leaf2, a_port: up1, b: spine1, b_port: down2}
  - {a: leaf2, a_port: up2, b: spine2, b_port: down2}
hosts:
  - {name: node1, nics: [{addresses: [10.0.0.1], attach: [{switch: leaf1, port: h1}]}]}
  - {name: node2, nics: [{addresses: [10.0.0.2], attach: [{switch: leaf2, port: h2}]}]}
  - {name: node3, nics: [{addresses: [10.0.0.3], attach: [{switch: leaf2, port: h3}]}]}
"""
PORT = {2: 0xc123, 3: 0xd456}
PLAN_PORT, TAKEN_BACK = 28, 4  # of fabrictrace.proto


def hops(dst, spine):
    return [("leaf1", 1, 50 + spine), (f"spine{spine}", 1, 2), ("leaf2", 50 + spine, dst)]


def predicted(dst, spine):
    return [{"switch": "leaf1", "in": "h1", "out": f"up{spine}"},
            {"switch": f"spine{spine}", "in": "down1", "out": "down2"},
            {"switch": "leaf2", "in": f"up{spine}", "out": f"h{dst}"}]


def plan(time_ms, spines):
    moves = [{"flow": {"src": "10.0.0.1", "dst": f"10.0.0.{dst}", "sport": 50000, "dport": 4791,
                       "proto": 17}, "sport": PORT[dst], "hops": predicted(dst, spine),
              "hops_before": predicted(dst, 3 - spine)}
             for dst, spine in spines.items()]
    return json.dumps({"schema": "fabrictrace.plan.v1", "time_ms": time_ms, "job": JOB,
                       "moves": moves})


def header(dst):
    """RoCEv2 over IPv4, as far as switches copy it: a WRITE of 4,096 bytes."""
    bth = struct.pack(">BBHIII", 0x07, 0, 0xffff, 17, 1, 0)[:12]
    udp = struct.pack(">HHHH", PORT[dst], 4791, 8 + 12 + 4096 + 4, 0) + bth
    ip = struct.pack(">BBHHHBBH4s4s", 0x45, 2, 20 + len(udp) + 4100, 1, 0x4000, 63, 17, 0,
                     ip_address("10.0.0.1").packed, ip_address(f"10.0.0.{dst}").packed)
    return bytes(6) + bytes([2]) + bytes(5) + b"\x08\x00" + ip + udp


class Fabric:
    """Sends samples of each flow as it goes by the spine that it is given."""

    def __init__(self, poller):
        self.poller, self.numbers = poller, {name: 0 for name in SWITCHES}
        self.pools = {}

    def sample(self, switch, inp, out, dst):
        pool = self.pools[switch] = self.pools.get(switch, 0) + 1
        head = header(dst)
        raw = struct.pack(">4I", 1, 4170, 4, len(head)) + head + bytes(-len(head) % 4)
        body = struct.pack(">8I", pool, inp, 100, 100 * pool, 0, inp, out, 1) + \
            struct.pack(">II", 1, len(raw)) + raw
        return struct.pack(">II", 1, len(body)) + body

    def feed(self, spines):
        by_switch = {}
        for dst, spine in spines.items():
            for _ in range(5):
                for switch, inp, out in hops(dst, spine):
                    by_switch.setdefault(switch, []).append(self.sample(switch, inp, out, dst))
        for switch, samples in by_switch.items():
            self.numbers[switch] += 1
            address = bytes([192, 0, 2, SWITCHES.index(switch) + 1])
            self.poller.send(struct.pack(">II4sIIII", 5, 1, address, 0, self.numbers[switch],
                                         1000 * self.numbers[switch], len(samples))
                             + b"".join(samples))


class Followed(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.daemon = rig.Daemon(self.folder, TOPOLOGY).start()
        self.addCleanup(self.daemon.kill)
        self.poller = rig.Poller(self.folder, self.daemon).start()
        self.addCleanup(self.poller.kill)
        self.agent = self.start_agent()
        self.job = check_shim.Program(self.agent)
        self.addCleanup(lambda: self.job.process.poll() is None and self.job.end())
        self.addCleanup(self.poller.socket.close)
        self.fabric = Fabric(self.poller)

    def start_agent(self):
        agent = check_shim.Agent(self.folder, ["--set", f"daemon.endpoint=127.0.0.1:{self.daemon.port}",
                                               "--set", "source_id=agent-of-node1",
                                               "--set", "daemon.retry_max=200ms",
                                               "--set", "daemon.retry_min=100ms"])
        self.addCleanup(lambda: agent.process.poll() is None and agent.stop(signal.SIGKILL))
        return agent

    def ask_tool(self, *words):
        done = subprocess.run([TOOL, *words, "--json", "--endpoint", f"127.0.0.1:{self.daemon.http}"],
                              capture_output=True, text=True, check=True)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def plans(self):
        return {r["time_ms"]: r for r in self.ask_tool("plans")}

    def moves(self, job):
        """{destination: (state, spine before, spine that is predicted)}"""
        return {r["flow"]["dst"]: (r["state"], r["hops_before"][1]["switch"], r["hops"][1]["switch"])
                for r in self.ask_tool("moves", job)}

    def until(self, what, condition, spines=None):
        """Samples go on meanwhile, spines saying where."""
        def step():
            if spines:
                self.fabric.feed(spines)
            return condition()
        if not speed.wait(step, WAIT_S):
            self.fail((what, self.plans(), self.agent.log.read_text(), self.daemon.log.read_text()))

    def stands(self, time_ms, **want):
        record = self.plans().get(time_ms, {})
        return all(record.get(name) == value for name, value in want.items())

    def ask(self, dst):
        self.until(f"a port for {dst}", lambda: self.job.label(dst))

    def events(self):
        return [r for r in rig.of_kind(self.daemon.records(), "event")
                if r["kind"] == "plan_withdrawn"]

    def stages(self, time_ms):
        """In the order of their publication, each once."""
        found = [r["stage"] for r in rig.of_kind(self.daemon.records(), "plan")
                 if r["time_ms"] == time_ms]
        return [s for i, s in enumerate(found) if i == 0 or found[i - 1] != s]

    def test_followed(self):
        spines, first = {2: 1, 3: 2}, 1700000000000
        self.agent.lay_down(plan(first, spines))
        for dst in spines:
            self.ask(dst)
        self.until("it is applied", lambda: self.stands(first, stage="applied", ports_given=2))
        self.until("it is confirmed", lambda: self.stands(first, stage="confirmed",
                                                          ports_confirmed=2), spines)
        self.assertEqual(self.events(), [])
        self.assertEqual(self.moves(JOB), {"10.0.0.2": ("confirmed", "spine2", "spine1"),
                                           "10.0.0.3": ("confirmed", "spine1", "spine2")})
        with self.assertRaises(subprocess.CalledProcessError) as unknown:
            self.moves("another")
        self.assertEqual(unknown.exception.returncode, os.EX_USAGE)
        self.assertNotEqual(self.job.label(3), 0)
        # The switch chooses otherwise from here on.
        spines = {2: 1, 3: 1}
        self.until("it is withdrawn, by its agent, too",
                   lambda: self.stands(first, stage="withdrawn", end="contradicted", ports_missed=1,
                                       hosts=1, hosts_ended=1), spines)
        self.assertEqual([self.moves(JOB)[f"10.0.0.{dst}"][0] for dst in (2, 3)], ["confirmed", "missed"])
        self.assertEqual([self.job.label(dst) for dst in (2, 3, 2, 3)], [0, 0, 0, 0])
        self.assertIn(f"plan of job '{JOB}', user {os.getuid()}: withdrawn by the daemon",
                      self.agent.log.read_text())
        # Sinks write when they have time.
        self.until("its event", self.events)
        event, = self.events()
        self.assertEqual(event["subject"], f"{JOB}/{os.getuid()}")
        self.assertEqual(event["evidence"]["flow"]["dst"], "10.0.0.3")
        self.assertEqual([h["switch"] for h in event["evidence"]["old_hops"]],
                         ["leaf1", "spine2", "leaf2"])
        self.assertEqual([h["switch"] for h in event["evidence"]["new_hops"]],
                         ["leaf1", "spine1", "leaf2"])
        self.until("all stages", lambda: "withdrawn" in self.stages(first))
        self.assertEqual(self.stages(first)[-2:], ["confirmed", "withdrawn"])
        # Another plan, by what is so now, stands for itself.
        second = first + 1
        self.agent.lay_down(plan(second, spines))
        self.ask(3)
        self.until("the second is confirmed", lambda: self.stands(second, stage="confirmed"),
                   spines)
        self.assertTrue(self.stands(first, stage="withdrawn", end="contradicted"))
        # And is taken back.
        next(self.agent.plans.glob("*.plan")).unlink()
        self.until("its owner took it back",
                   lambda: self.stands(second, stage="withdrawn", end="owner", hosts_ended=1))
        self.until("that is published", lambda: "withdrawn" in self.stages(second))
        self.assertEqual(len(self.events()), 1)
        self.assertEqual(self.job.end(), 0)

    def test_agent_anew(self):
        """An agent that has forgotten is asked again as soon as it gives a port."""
        first = 1700000000000
        self.agent.lay_down(plan(first, {2: 1}))
        self.ask(2)
        self.until("it is withdrawn", lambda: self.stands(first, stage="withdrawn", hosts_ended=1),
                   {2: 2})
        self.agent.stop()
        self.agent.start()
        self.ask(2)
        self.until("no port is given", lambda: self.job.label(2) == 0)
        self.until("and it says so", lambda: self.stands(first, stage="withdrawn", hosts_ended=1))
        self.assertEqual(self.job.end(), 0)

    def test_reloaded(self):
        """Settings were read anew: the agent is still the one that the daemon speaks to."""
        first = 1700000000000
        for n in (1, 2, 3):
            self.agent.process.send_signal(signal.SIGHUP)
            self.until(f"reload {n}", lambda: self.agent.log.read_text().count("reloaded") == n)
        self.agent.lay_down(plan(first, {2: 1}))
        self.ask(2)
        self.until("it is withdrawn, by its agent, too",
                   lambda: self.stands(first, stage="withdrawn", hosts=1, hosts_ended=1), {2: 2})
        self.assertEqual(self.job.label(2), 0)
        self.assertEqual(self.job.end(), 0)

    def test_stranger(self):
        """A host that no other one of the job knows cannot say that its owner took the plan back; one
        that others have flows to can."""
        first = 1700000000000
        self.agent.lay_down(plan(first, {2: 1}))
        self.ask(2)
        self.until("it is confirmed", lambda: self.stands(first, stage="confirmed"), {2: 1})
        peer = kit.Peer(self.daemon.port, "by-hand", "fabrictrace-agent")
        now = int(time.time() * 1000)

        def flow(host, other):
            five = (kit.data(1, ip_address(f"10.0.0.{host}").packed) + kit.data(2, ip_address(
                f"10.0.0.{other}").packed) + kit.number(3, 50000) + kit.number(4, 4791) + kit.number(5, 17))
            return kit.record(kit.FLOW, (kit.number(1, now) + kit.number(2, 500) + kit.number(3, now - 1000)
                                         + kit.data(4, f"node{host}") + kit.data(6, five) + kit.number(7, 1)
                                         + kit.number(8, 1) + kit.data(17, JOB)))

        def taken_back(host):
            return kit.record(PLAN_PORT, (kit.number(1, now) + kit.data(2, f"node{host}") + kit.data(3, JOB)
                                          + kit.number(4, os.getuid()) + kit.number(8, TAKEN_BACK)
                                          + kit.number(10, first)))

        # Of reports that come again and again some are looked at. The stranger says that it is in the job.
        peer.send(500 * (flow(1, 2) + flow(2, 1) + flow(3, 1)) + taken_back(3))
        self.assertTrue(peer.settled())
        self.until("the stranger is refused",
                   lambda: self.daemon.metric("fabrictraced_plan_ends_refused_total") == 1)
        self.assertTrue(self.stands(first, stage="confirmed"), self.plans())
        peer.send(taken_back(2))
        self.assertTrue(peer.settled())
        self.until("it is withdrawn", lambda: self.stands(first, stage="withdrawn", end="owner"))
        self.assertEqual(self.daemon.metric("fabrictraced_plan_ends_refused_total"), 1)
        peer.close()
        self.assertEqual(self.job.end(), 0)


if __name__ == "__main__":
    unittest.main()
