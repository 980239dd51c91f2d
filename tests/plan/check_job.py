#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What-if by learnt hashes, and plans of source ports for a job, from a daemon that saw a fabric whose
hash this test knows: what is predicted is held against that hash. Runs in the build folder."""
import collections
import hashlib
import json
import os
import pathlib
import random
import struct
import sys
import tempfile
import unittest
import zlib
from unittest import mock

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import hashed  # noqa: E402


class Learnt(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.job = hashed.permutation(3)
        cls.daemon = hashed.Daemon(pathlib.Path(cls.folder.name), hashed.records(cls.job))

    @classmethod
    def tearDownClass(cls):
        cls.daemon.stop()
        cls.folder.cleanup()

    def whatif(self, *words):
        done = self.daemon.ask("whatif", "--json", *words)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return {r["figures"]["policy"]: r for r in map(json.loads, done.stdout.splitlines())}

    def test_learnt_is_what_was_observed(self):
        """The first draw has the ports that there were: each link carries what it carried."""
        found = self.whatif("--policy", "learnt,crc32", "--draws", "1")
        observed, learnt = found["observed"]["figures"], found["learnt"]["figures"]
        self.assertEqual(found["learnt"]["guessed"], 0)
        self.assertEqual(found["observed"]["flows"], len(self.job))
        for name in ("layers", "flows_most", "collisions", "hottest", "hottest_load"):
            self.assertEqual(learnt[name], observed[name])
            # The switches' hash by its name.
            self.assertEqual(found["crc32"]["figures"][name], observed[name])

    def test_other_ports(self):
        """Over many draws of ports a good hash is as chance."""
        found = self.whatif("--draws", "200")
        self.assertIn("learnt", found)
        learnt, ecmp = (found[p]["figures"]["flows_most"] for p in ("learnt", "ecmp"))
        self.assertEqual(found["learnt"]["figures"]["draws"], 200)
        self.assertAlmostEqual(learnt["mean"], ecmp["mean"], delta=0.3)
        self.assertGreater(learnt["max"], learnt["min"])

    def test_function_is_asked_for(self):
        done = self.daemon.ask("hash", "--json")
        self.assertNotIn('"function"', done.stdout)
        self.assertEqual(done.stdout.count('"model":"linear"'), hashed.LEAVES, done.stdout)

    def plan(self, *words, status=0):
        done = self.daemon.ask("plan", hashed.JOB, "--json", *words)
        self.assertEqual((done.returncode, done.stderr), (status, ""))
        return json.loads(done.stdout)

    def loads(self, flows):
        """Flows on each link between switches by the switches' own hash."""
        return collections.Counter((hop[0], hop[2]) for flow in flows
                                   for hop in hashed.path(flow)[:2])

    def test_plan(self):
        """The ports that are told lead where they are said to; no link has two flows any more."""
        plan = self.plan()
        self.assertEqual(plan["schema"], "fabrictrace.plan.v1")
        self.assertEqual((plan["flows"], plan["movable"]), (len(self.job), len(self.job)))
        flows = {flow: flow for flow in self.job}
        for move in plan["moves"]:
            was = (move["flow"]["src"], move["flow"]["dst"], move["flow"]["sport"])
            now = (*was[:2], move["sport"])
            self.assertEqual(move["qp"]["local"], self.job.index(was))
            for key, flow in (("hops_before", was), ("hops", now)):
                self.assertEqual([h["out"] for h in move[key]],
                                 [f"Ethernet{hop[2]}" for hop in hashed.path(flow)])
            # What RDMA core makes of the label.
            label = move["flow_label"]
            self.assertEqual(0xc000 | (label & 0x3fff ^ label >> 14), move["sport"])
            flows[was] = now
        before, after = self.loads(self.job), self.loads(flows.values())
        self.assertGreater(max(before.values()), 1)
        self.assertEqual(max(after.values()), 1)
        self.assertAlmostEqual(plan["before"]["worst_load"], max(before.values()), 2)
        self.assertAlmostEqual(plan["after"]["worst_load"], 1, 2)
        self.assertEqual((plan["after"]["fim_up"], plan["after"]["fim_down"]), (0, 0))
        self.assertEqual(plan["after"]["slowest_rate_bps"], hashed.SPEED)
        self.assertLess(plan["before"]["slowest_rate_bps"], hashed.SPEED)
        self.assertGreaterEqual(plan["accuracy"], 0.99)
        # As few as possible: of those on a link all but one go.
        self.assertGreaterEqual(len(plan["moves"]), sum(n - 1 for (switch, _), n in before.items()
                                                        if n > 1 and switch < "192.0.2.100"))
        self.assertLess(len(plan["moves"]), len(self.job))
        self.assertEqual(plan["moves"], self.plan()["moves"])

    def test_applied(self):
        """Every queue pair of the job has its port in the file of its host, and no other has; by
        the switches' own hash no link has two of them. It is replaced, and withdrawn."""
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            begin = f"{os.getuid()}@{hashed.JOB}@"
            other = folder / f"{os.getuid()}@{hashed.JOB}2@h1-1.plan"
            stale = folder / f"{begin}gone.plan"
            for file in (other, stale):
                file.write_text("")
            done = self.daemon.ask("plan", hashed.JOB, "--apply", name, "--dry-run")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn(f"would write {begin}h1-1.plan: ports of 1 queue pairs", done.stdout)
            self.assertIn(f"would remove {stale.name}", done.stdout)
            self.assertIn("Nothing was applied.", done.stdout)
            self.assertEqual(set(folder.iterdir()), {other, stale})
            before = self.plan()
            done = self.daemon.ask("plan", hashed.JOB, "--apply", name)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertNotIn("Nothing was applied.", done.stdout)
            hosts = {"h{}-{}".format(*f[0].split(".")[2:]) for f in self.job}
            self.assertEqual(set(folder.iterdir()),
                             {other, *(folder / f"{begin}{host}.plan" for host in hosts)})
            flows, moved = [], 0
            for host in hosts:
                file = folder / f"{begin}{host}.plan"
                self.assertEqual(file.stat().st_mode & 0o777, 0o644)
                part = json.loads(file.read_text())
                self.assertEqual((part["job"], part["stage"]), (hashed.JOB, "planned"))
                for move in part.get("moves", []) + part.get("keeps", []):
                    self.assertEqual(move["src_host"], host)
                    flows.append((move["flow"]["src"], move["flow"]["dst"], move["sport"]))
                    self.assertEqual([h["out"] for h in move["hops"]],
                                     [f"Ethernet{hop[2]}" for hop in hashed.path(flows[-1])])
                moved += len(part.get("moves", []))
                self.assertTrue(all(m in before["moves"] for m in part.get("moves", [])), part)
                self.assertFalse(any("hops_before" in m for m in part.get("keeps", [])), part)
            self.assertEqual(moved, len(before["moves"]))
            self.assertEqual(sorted(f[:2] for f in flows), sorted(f[:2] for f in self.job))
            self.assertEqual(max(self.loads(flows).values()), 1)
            done = self.daemon.ask("plan", hashed.JOB, "--withdraw", name, "--dry-run")
            self.assertEqual(done.returncode, 0)
            self.assertEqual(len(list(folder.iterdir())), 1 + len(hosts))
            done = self.daemon.ask("plan", hashed.JOB, "--withdraw", name)
            self.assertEqual((done.returncode, set(folder.iterdir())), (0, {other}))
            done = self.daemon.ask("plan", hashed.JOB, "--withdraw", name)
            self.assertEqual(done.returncode, 1)
            self.assertIn(f"has no plan of job '{hashed.JOB}'", done.stderr)

    def test_not_applied(self):
        """A job that ended, one that was never there, a plan that is refused: nothing is written."""
        with tempfile.TemporaryDirectory() as name:
            for words, status in ((["nobody", "--apply", name], 1),
                                  ([hashed.JOB, "--failed", "leaf1/Ethernet51", "--apply", name], 65),
                                  ([hashed.JOB, "--apply", name + "/missing"], 73)):
                done = self.daemon.ask("plan", *words)
                self.assertEqual(done.returncode, status, done.stderr)
                self.assertEqual(list(pathlib.Path(name).iterdir()), [])
            done = self.daemon.ask("plan", hashed.JOB, "--apply", name, "--withdraw", name)
            self.assertEqual(done.returncode, 64)

    def test_text(self):
        done = self.daemon.ask("plan", hashed.JOB)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for text in ("flows of the job move", "Before: FIM", "After: FIM 0.0 up, 0.0 down",
                     "Error of the model in the measured case:", "Not known:",
                     "no step time is predicted", "Nothing was applied."):
            self.assertIn(text, done.stdout)

    def test_no_such_job(self):
        done = self.daemon.ask("plan", "nobody")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("no flow of a job 'nobody'", done.stderr)

    def test_failed(self):
        """How leaves choose among three links was never seen: a plan for that is refused."""
        plan = self.plan("--failed", "leaf1/Ethernet51", status=65)
        self.assertIn("among the links that are left was not seen", " ".join(plan["refused"]))
        self.assertNotIn("moves", plan)


class Tcp(unittest.TestCase):
    """Hashes are learnt from RoCEv2: which link another protocol takes does not follow from them."""

    FLOWS = [(hashed.address(leaf, 1), hashed.address(leaf % hashed.LEAVES + 1, 3), 50000 + 777 * leaf, 5001, 6)
             for leaf in range(1, hashed.LEAVES + 1)]

    @staticmethod
    def crc(flow):
        src, dst, *rest = flow
        return zlib.crc32(bytes(map(int, (src + "." + dst).split("."))) + struct.pack(">HHB", *rest))

    def lines(self):
        for line in hashed.records(hashed.permutation(3)):
            yield line
        for second in range(hashed.SECONDS - 12, hashed.SECONDS):
            for flow in self.FLOWS:
                for line in hashed.sampled(flow, hashed.path(flow, self.crc), second, hashed.SPEED / 100):
                    yield {**line, "flow": dict(zip(("src", "dst", "sport", "dport", "proto"), flow))}

    def test_its_choices_are_not_known(self):
        with tempfile.TemporaryDirectory() as folder:
            daemon = hashed.Daemon(pathlib.Path(folder), self.lines())
            try:
                done = daemon.ask("whatif", "--policy", "learnt,crc32", "--draws", "1", "--json")
            finally:
                daemon.stop()
        found = {r["figures"]["policy"]: r for r in map(json.loads, done.stdout.splitlines())}
        self.assertEqual(found["observed"]["flows"], 4 * hashed.LEAVES + len(self.FLOWS))
        # By its name the hash is known, with protocol and ports.
        self.assertEqual(found["crc32"]["figures"]["layers"], found["observed"]["figures"]["layers"])
        self.assertEqual(found["learnt"]["guessed"], len(self.FLOWS))


class Refused(unittest.TestCase):
    """What speaks against a plan is told, and nothing is planned."""

    def refused(self, job, lines):
        with tempfile.TemporaryDirectory() as folder:
            daemon = hashed.Daemon(pathlib.Path(folder), lines)
            try:
                done = daemon.ask("plan", hashed.JOB, "--json")
                text = daemon.ask("plan", hashed.JOB)
            finally:
                daemon.stop()
        self.assertEqual((done.returncode, done.stderr), (65, ""), done.stdout)
        plan = json.loads(done.stdout)
        self.assertEqual(plan["flows"], len(job))
        self.assertNotIn("moves", plan)
        self.assertIn("No plan: a source port does not determine the path.", text.stdout)
        return " ".join(plan["refused"])

    def test_keyed(self):
        def keyed(flow):
            return int.from_bytes(hashlib.blake2b(repr(flow).encode(), digest_size=8).digest(),
                                  "big")

        job = hashed.permutation(4)
        self.assertIn("does not follow from addresses and ports alone",
                      self.refused(job, hashed.records(job, function=keyed)))

    def test_tunnels(self):
        """Leaves put flows into tunnels, whose port has nothing to do with theirs, and hash those."""
        def outer(flow):
            ends = ["10.255.0." + a.split(".")[2] for a in flow[:2]]
            return *ends, int.from_bytes(hashlib.blake2b(repr(flow).encode(), digest_size=2).digest(), "big")

        def lines(job):
            for r in hashed.records(job, function=lambda flow: hashed.crc(outer(flow))):
                flow = r["flow"]["src"], r["flow"]["dst"], r["flow"]["sport"]
                first = r.get("agent") in (None, "192.0.2." + flow[0].split(".")[2])
                yield r if first else {**r, "outer": {**hashed.tuple_of(outer(flow)), "dport": 4789}}

        job = hashed.permutation(7)
        self.assertIn("switch 'leaf1': it hashes the header of the tunnel", self.refused(job, lines(job)))

    def test_without_ports(self):
        def addresses(flow):
            return hashed.crc((flow[0], flow[1], 0))

        job = hashed.permutation(5)
        said = self.refused(job, hashed.records(job, function=addresses))
        self.assertIn("does not take the source port", said)

    def test_too_few_flows(self):
        job = hashed.permutation(6)
        lines = [r for r in hashed.records(job) if r["flow"]["sport"] in {f[2] for f in job}]
        self.assertIn("too few flows were seen", self.refused(job, lines))


class Stale(unittest.TestCase):
    """What the daemon knows is not so any more, or the job has ended: it is said, and nothing is
    applied."""

    CABLE = "  - {a: leaf1, a_port: Ethernet51, b: spine1, b_port: Ethernet1}\n"

    def refused(self, lines, cables=None):
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as plans:
            daemon = hashed.Daemon(pathlib.Path(folder), lines, cables)
            try:
                done = daemon.ask("plan", hashed.JOB, "--apply", plans)
            finally:
                daemon.stop()
            self.assertEqual(list(pathlib.Path(plans).iterdir()), [])
        self.assertEqual(done.returncode, 65, done.stdout)
        return done.stdout + done.stderr

    def test_topology(self):
        job, now = hashed.permutation(3), hashed.topology()
        lines = list(hashed.records(job))
        island = "".join(x for x in now.splitlines(True) if "a: leaf2," not in x)
        for cables, said in ((now.replace(self.CABLE, ""), "flows have no known path"),
                             (island, "flows have no known path"),
                             (now.replace("[10.0.1.1]", "[10.0.9.1]"),
                              "flows are of hosts outside the topology")):
            self.assertNotEqual(cables, now)
            text = self.refused(lines, cables)
            self.assertIn("No plan:", text)
            self.assertIn(said, text)

    def test_ended(self):
        """Its flows were there, with queue pairs and rates, and are not any more."""
        self.assertIn("no flow of the last window counts",
                      self.refused(hashed.records(hashed.permutation(3), begin=0, end=12)))


SWITCH = """#!/bin/sh
""" + hashed.KEYED.replace("{", "{{").replace("}", "}}") + """
{} # it fails, or answers otherwise
[ "$2" = "Ethernet${{3##*.}}" ] && [ "$5/$7" = 17/4791 ] || exit 3
keyed 0 "" "$3" "$4" "$6"
echo "Ethernet$((51 + h % 4))"
"""


class Asked(unittest.TestCase):
    """Switches whose hash nobody can learn are asked, by a command that answers as they choose."""

    @staticmethod
    def keyed(flow):
        return hashed.keyed(0, "", flow)

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.job = hashed.permutation(4)
        cls.daemon = hashed.Daemon(pathlib.Path(cls.folder.name),
                                   hashed.records(cls.job, function=cls.keyed))

    @classmethod
    def tearDownClass(cls):
        cls.daemon.stop()
        cls.folder.cleanup()

    def plan(self, *words, script="", pattern="leaf*", status=0):
        command = pathlib.Path(self.folder.name) / "ask"
        command.write_text(SWITCH.format(script))
        command.chmod(0o755)
        done = self.daemon.ask("plan", hashed.JOB, "--json", "--oracle", f"{pattern}={command}",
                               *words)
        self.assertEqual((done.returncode, done.stderr), (status, ""), done.stdout)
        return json.loads(done.stdout)

    def moved(self, plan):
        """The flows with the ports of the plan, each of which leads where it is said to."""
        flows = {flow: flow for flow in self.job}
        for move in plan["moves"]:
            was = (move["flow"]["src"], move["flow"]["dst"], move["flow"]["sport"])
            flows[was] = (*was[:2], move["sport"])
            self.assertEqual([h["out"] for h in move["hops"]],
                             [f"Ethernet{hop[2]}" for hop in hashed.path(flows[was], self.keyed)])
        return flows

    def loads(self, flows):
        return collections.Counter((hop[0], hop[2]) for flow in flows
                                   for hop in hashed.path(flow, self.keyed)[:2])

    def test_asked(self):
        plan = self.plan()
        self.assertGreater(max(self.loads(self.job).values()), 1)
        self.assertEqual(max(self.loads(self.moved(plan).values()).values()), 1)
        self.assertEqual((plan["movable"], plan["accuracy"]), (len(self.job), 1))
        # Each present flow once, and enough ports to find four paths: 8.3 in the mean.
        self.assertGreaterEqual(plan["asked"], len(self.job) * 5)
        self.assertLess(plan["asked"], len(self.job) * 60)
        done = self.daemon.ask("plan", hashed.JOB, "--oracle",
                               f"leaf*={self.folder.name}/ask")
        self.assertIn(f"Switches were asked {plan['asked']} times", done.stdout)
        self.assertIn("Answers: at least 100.0 % of predictions were right", done.stdout)

    def test_failed(self):
        """With a link that is down: what is left is asked about; flows of that link find another."""
        live = 'if [ "$1" = leaf1 ]; then echo "Ethernet$((52 + $6 % 3))"; exit; fi'
        plan = self.plan("--failed", "leaf2/Ethernet53")
        down = {("192.0.2.2", 53), ("192.0.2.103", 2)}
        lost = [f for f in self.job if down & {(h[0], h[2]) for h in hashed.path(f, self.keyed)}]
        self.assertTrue(lost)
        self.assertEqual((plan["lost"], plan["stuck"]), (len(lost), 0))
        flows = self.moved(plan)
        self.assertFalse(down & set(self.loads(flows.values())))
        self.assertFalse({f for f in lost if flows[f] == f})
        # What it says now is not what samples showed: it is not believed.
        refused = " ".join(self.plan(script=live, status=65)["refused"])
        self.assertRegex(refused, r"of 16 flows of the job .* take another one")

    def test_not_answered(self):
        for script, pattern, said in (
                ('[ "$1" != leaf3 ] || { echo no route to it >&2; exit 2; }', "leaf*",
                 "switch 'leaf3' cannot be asked: it failed: no route to it"),
                ("exit 1", "leaf*", "gave no answer for the flows of the job"),
                ("echo two names; exit", "leaf*", "something other than the name of a port"),
                ("", "leaf[123]", "switch 'leaf4': its choice does not follow")):
            plan = self.plan(script=script, pattern=pattern, status=65)
            self.assertIn(said, " ".join(plan["refused"]))
            self.assertNotIn("moves", plan)
        done = self.daemon.ask("plan", hashed.JOB, "--oracle", "leaf*=ask")
        self.assertEqual(done.returncode, 64)
        self.assertIn("needs the full path of a program", done.stderr)


class Dual(unittest.TestCase):
    """By which of its two ports a NIC sends follows from no hash of a switch: its flow stays."""

    def test_dual(self):
        one = hashed.address(1, 1)
        cables = hashed.topology().replace(
            f"[{one}], attach: [", f"[{one}], attach: [{{switch: leaf2, port: Ethernet9}}, ").replace(
            "[192.0.2.2], ports: [", "[192.0.2.2], ports: [{name: Ethernet9, ifindex: 9}, ")
        job = hashed.permutation(3)
        with tempfile.TemporaryDirectory() as folder:
            daemon = hashed.Daemon(pathlib.Path(folder), hashed.records(job), cables)
            try:
                # The spines now have a choice towards that NIC.
                command = pathlib.Path(folder) / "ask"
                command.write_text('#!/bin/sh\n[ "$1" != leaf1 ] || exit 1\necho Ethernet1\n')
                command.chmod(0o755)
                done = daemon.ask("plan", hashed.JOB, "--json", "--oracle", f"spine*={command}")
            finally:
                daemon.stop()
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        plan = json.loads(done.stdout)
        self.assertEqual((plan["flows"], plan["movable"]), (len(job), len(job) - 1))
        self.assertIn("1 flows of the job leave by NICs with several ports", " ".join(plan["unknown"]))
        self.assertNotIn(one, [m["flow"]["src"] for m in plan["moves"]])


class Taken(unittest.TestCase):
    """The only ports that give a flow a path are those of other flows between the same NICs."""

    PORTS = range(55075, 55135)  # one of these is asked, as far as flows are in the order of their records
    SCRIPT = """#!/bin/sh
    case $3 in
        10.0.1.1) [ "$6" -ge 55075 ] && [ "$6" -lt 55135 ] && echo Ethernet52 || echo Ethernet51;;
        10.0.1.2) echo Ethernet$((53 - $6 % 2 * 2));;
    esac
    """
    # Of leaf 1, the first two of the job: (host, port, spine, part of a link's speed)
    FLOWS = ((1, 50001, 1, 0.5), (2, 50002, 3, 0.475), *((1, port, 2, 0.00105) for port in PORTS),
             (3, 50003, 3, 0.1), (4, 50004, 4, 0.55))

    def records(self):
        for second in range(15):
            for number, (host, sport, spine, part) in enumerate(self.FLOWS):
                flow, bps = (hashed.address(1, host), hashed.address(2, host), sport), part * hashed.SPEED
                yield hashed.report(flow, second, bps, number, hashed.JOB if number < 2 else "other")
                yield from hashed.observations(flow, second, bps, lambda _, s=spine: s - 1)

    def test_no_path_without_its_port(self):
        """It would pay to move the first to spine 2, and the second to spine 1 where it was. As the first has
        no port for that, the second would join it there, and the fullest link be fuller than before."""
        with tempfile.TemporaryDirectory() as folder:
            command = pathlib.Path(folder) / "ask"
            command.write_text(self.SCRIPT)
            command.chmod(0o755)
            daemon = hashed.Daemon(pathlib.Path(folder), self.records())
            try:
                done = daemon.ask("plan", hashed.JOB, "--json", "--oracle", f"leaf1={command}")
            finally:
                daemon.stop()
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        plan = json.loads(done.stdout)
        self.assertEqual((plan["flows"], plan["movable"]), (2, 2))
        loads, now = collections.Counter(), {f[:2]: f[2] for f in self.FLOWS}
        for move in plan.get("moves", []):
            host = int(move["flow"]["src"].split(".")[3])
            self.assertFalse(host == 1 and move["sport"] in self.PORTS, move)
            now[host, move["flow"]["sport"]] = (1 if host == 1 else 3 - move["sport"] % 2 * 2)
        for host, sport, _, part in self.FLOWS:
            loads[now[host, sport]] += part
        self.assertLessEqual(max(loads.values()), 0.575 + 1e-6)
        self.assertAlmostEqual(plan["after"]["worst_load"], max(loads.values()), 3)


class Large(unittest.TestCase):
    """A host whose part of a plan is too large for its file with the paths that flows had."""

    MAX, COUNT = 1 << 20, 2450

    def test_paths_before_are_left_out(self):
        ends = hashed.address(1, 1), hashed.address(2, 1)
        flows = [(*ends, port) for port in range(0xc000, 0x10000)]
        # Most on one link, and enough on the others to tell what is hashed.
        job = [f for f in flows if hashed.spine_of(f) == 1][:self.COUNT - 600] + \
            [f for f in flows if hashed.spine_of(f) != 1][:600]
        random.Random(1).shuffle(job)
        with tempfile.TemporaryDirectory() as folder:
            # Each is large enough to count; together they claim more than their link carries.
            with mock.patch.object(hashed, "rates", lambda flows, _: dict.fromkeys(flows, hashed.SPEED / 500)):
                daemon = hashed.Daemon(pathlib.Path(folder), hashed.records(job))
            try:
                done = daemon.ask("plan", hashed.JOB, "--json", "--apply", folder)
            finally:
                daemon.stop()
            self.assertEqual(done.returncode, 0, done.stderr or done.stdout[:1000])
            text = (pathlib.Path(folder) / f"{os.getuid()}@{hashed.JOB}@h1-1.plan").read_text()
        whole, part = json.loads(done.stdout), json.loads(text)
        self.assertTrue(all("hops_before" in move for move in whole["moves"]))
        self.assertGreater(len(json.dumps({**part, "moves": whole["moves"]}, separators=(",", ":"))), self.MAX)
        self.assertLessEqual(len(text), self.MAX)
        self.assertEqual(len(part["moves"]), len(whole["moves"]))
        self.assertEqual(len(part["moves"]) + len(part["keeps"]), self.COUNT)
        for move in part["moves"] + part["keeps"]:
            self.assertNotIn("hops_before", move)


if __name__ == "__main__":
    unittest.main()
