#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`fabrictrace whatif` on captured traffic: records made by hand, whose figures are worked out here;
the records of a recorded capture, as exact text; the same from a daemon. Runs in the build folder."""
import difflib
import http.client
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest
import urllib.error
import urllib.request

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import speed  # noqa: E402
from ports import free_port  # noqa: E402

TOOL = os.environ.get("FABRICTRACE", "cli/fabrictrace")
DAEMON = "daemon/fabrictraced"
LAB = HERE.parent / "golden" / "daemon" / "lab"
GBPS = 10 ** 9
SPEED = 100 * GBPS
START_MS, END_MS = 1700000000000, 1700000010000

FABRIC = """fabric: small
speed_bps: 100000000000
switches:
  - {name: leaf1, addresses: [192.0.2.1]}
  - {name: leaf2, addresses: [192.0.2.2]}
  - {name: spine1, addresses: [192.0.2.11]}
  - {name: spine2, addresses: [192.0.2.12]}
links:
  - {a: leaf1, a_port: up1, b: spine1, b_port: d1}
  - {a: leaf1, a_port: up2, b: spine2, b_port: d1}
  - {a: leaf2, a_port: up1, b: spine1, b_port: d2}
  - {a: leaf2, a_port: up2, b: spine2, b_port: d2}
hosts:
""" + "".join(
    f"  - {{name: h{i}, nics: [{{addresses: [10.0.0.{i}], attach: [{{switch: leaf{1 + i // 3}, "
    f"port: p{i}}}]}}]}}\n" for i in (1, 2, 3, 4))


def leaf(host):
    return f"leaf{1 + host // 3}"


def path(src, dst, spine, gbps, sport=50000, **more):
    """A flow of hosts 1 to 4, of which two hang on each leaf; rank r is host r + 1."""
    if leaf(src) == leaf(dst):
        hops = [{"switch": leaf(src), "in": f"p{src}", "out": f"p{dst}"}]
    else:
        hops = [{"switch": leaf(src), "in": f"p{src}", "out": f"up{spine}"},
                {"switch": f"spine{spine}", "in": "d" + leaf(src)[-1], "out": "d" + leaf(dst)[-1]},
                {"switch": leaf(dst), "in": f"up{spine}", "out": f"p{dst}"}]
    return {"schema": "fabrictrace.path.v1", "window_start_ms": START_MS, "window_end_ms": END_MS,
            "flow": {"src": f"10.0.0.{src}", "dst": f"10.0.0.{dst}", "sport": sport, "dport": 4791,
                     "proto": 17}, "role": "data", "state": "resolved", "hops": hops,
            "rate_bps": int(gbps * GBPS), "comm_id": "c1", "src_rank": src - 1,
            "dst_rank": dst - 1, **more}


def link(switch, port, gbps):
    return {"schema": "fabrictrace.link.v1", "window_start_ms": START_MS, "window_end_ms": END_MS,
            "switch": switch, "port": port, "bytes": int(gbps * GBPS * 10 / 8),
            "speed_bps": SPEED, "utilization": gbps / 100}


def collective(op, rank, peers, start_s, took_s, sequence=1, algo="RING", ranks=4, **more):
    """peers: bytes sent to each."""
    return {"schema": "fabrictrace.collective.v1", "comm_id": "c1", "op": op, "rank": rank,
            "ranks": ranks, "algo": algo, "sequence": sequence,
            "start_ms": START_MS + int(1000 * start_s),
            "time_ms": START_MS + int(1000 * (start_s + took_s)),
            "duration_us": int(1e6 * took_s),
            "peers": [{"peer": p, "channel": 0, "sent_bytes": n} for p, n in peers.items()],
            **more}


class Captured(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.topology = self.folder / "t.yaml"
        self.topology.write_text(FABRIC)

    def run_tool(self, records, *words):
        file = self.folder / "r.ndjson"
        file.write_text("".join(r if isinstance(r, str) else json.dumps(r) + "\n"
                                for r in records))
        done = subprocess.run([TOOL, "whatif", "--topology", str(self.topology), "--records",
                               str(file), *words], text=True, capture_output=True)
        return done.returncode, done.stdout, done.stderr

    def compare(self, records, *words):
        rc, out, err = self.run_tool(records, "--json", *words)
        self.assertEqual((rc, err), (0, ""))
        found = [json.loads(line) for line in out.splitlines()]
        self.assertEqual({r["schema"] for r in found}, {"fabrictrace.whatif.v1"})
        # Every record has the model's error.
        self.assertTrue(all("loads" in r["error"] for r in found))
        return {r["figures"]["policy"]: r for r in found}

    # Two flows of 50 Gb/s share the link to spine1, which is full.
    COLLISION = [path(1, 3, 1, 50), path(2, 4, 1, 50), link("leaf1", "up1", 100),
                 link("leaf1", "up2", 0), link("spine1", "d2", 100), link("spine2", "d2", 0)]

    def test_collision(self):
        found = self.compare(self.COLLISION)
        self.assertEqual(list(found), ["measured", "observed", "ecmp", "static", "rail", "greedy",
                                       "plan", "spray", "flowlet"])
        observed, plan = found["observed"]["figures"], found["plan"]["figures"]
        self.assertEqual(found["measured"]["figures"]["hottest"],
                         {"switch": "leaf1", "port": "up1"})
        # The link that both share and its sibling: FIM of 2 and 0 flows is 100.
        layers = {x["name"]: x for x in observed["layers"]}
        self.assertEqual(layers["leaf/up"]["fim"]["mean"], 100)
        self.assertEqual(observed["flows_most"]["mean"], 2)
        # Both links to leaf1 are idle: only the link up and the link down are shared.
        self.assertEqual(observed["collisions"]["mean"], 2)
        # Each could have its NIC's 100 Gb/s, and has half.
        self.assertEqual(observed["slowest_share"]["mean"], 0.5)
        self.assertEqual(observed["slowest_rate_bps"], 50 * GBPS)
        self.assertEqual(plan["collisions"]["mean"], 0)
        self.assertEqual(plan["slowest_rate_bps"], 100 * GBPS)
        # One of the two is to move; who is observed stays, and what is sprayed has no one path.
        self.assertEqual(observed["moves"], {"mean": 0, "min": 0, "max": 0})
        self.assertEqual(plan["moves"], {"mean": 1, "min": 1, "max": 1})
        move, = found["plan"]["moved"]
        self.assertEqual([h["out"] for h in move["hops_before"]][0], "up1")
        self.assertEqual([h["out"] for h in move["hops"]][0], "up2")
        self.assertEqual([h["switch"] for h in move["hops"]],
                         [h["switch"].replace("spine1", "spine2") for h in move["hops_before"]])
        self.assertEqual([n for n, r in found.items() if "moved" in r], ["plan"])
        self.assertEqual((found["ecmp"]["figures"]["moves"]["min"],
                          found["ecmp"]["figures"]["moves"]["max"]), (0, 2))
        for name in ("measured", "spray", "flowlet"):
            self.assertNotIn("moves", found[name]["figures"])
        self.assertNotIn("moves", self.compare(self.COLLISION, "--add-spines", "2")["plan"]["figures"])
        # Half of all draws collide.
        ecmp = found["ecmp"]["figures"]
        # Two flows that want 100 Gb/s each on one link of that speed, or on one each.
        self.assertEqual((ecmp["load_most"]["min"], ecmp["load_most"]["max"]), (1, 2))
        self.assertEqual(ecmp["hottest_load"], 2)
        self.assertEqual(found["spray"]["figures"]["paths"], 2)
        self.assertNotIn("paths", plan)
        self.assertEqual((ecmp["slowest_share"]["min"], ecmp["slowest_share"]["max"]), (0.5, 1))
        error = found["plan"]["error"]
        self.assertEqual(error["limited"], {"count": 2, "median": 0, "p90": 0, "worst": 0})
        self.assertEqual(error["loads"], {"count": 2, "median": 0, "p90": 0, "worst": 0})

    def test_records_of_a_newer_daemon(self):
        """What they say beside is passed over."""
        newer = [{**r, "weather": {"wind": [1]}, "tuple_source": "dreamt"} for r in self.COLLISION]
        for record in newer:
            for hop in record.get("hops", ()):
                hop["evidence"] = "dreamt"
        self.assertEqual(self.compare(newer), self.compare(self.COLLISION))

    def test_error_is_told(self):
        """The model gives each 50 Gb/s: 40 measured is a quarter off, and the link carries 125 Gb/s
        by nobody's account but 20 that no flow explains."""
        records = [path(1, 3, 1, 40), path(2, 4, 1, 50), link("leaf1", "up1", 95),
                   link("spine1", "d2", 80)]
        error = self.compare(records, "--policy", "plan")["observed"]["error"]
        self.assertEqual(error["limited"]["count"], 2)
        self.assertAlmostEqual(error["limited"]["worst"], 0.25)
        self.assertAlmostEqual(error["limited"]["median"], 0.125)
        self.assertAlmostEqual(error["loads"]["worst"], 0.25)  # 100 for 80
        self.assertEqual(error["worst_link"], {"switch": "spine1", "port": "d2"})
        rc, out, _ = self.run_tool(records)
        self.assertEqual(rc, 0)
        self.assertIn("Error of the model in the measured case:", out)
        self.assertIn("of these behind a full link: 2 compared, median 12 %", out.replace("13 %", "12 %"))

    def test_idle_flows_keep_what_they_have(self):
        """No link is full: a flow of 10 Gb/s wants no more on another path either."""
        records = [path(1, 3, 1, 10), path(2, 4, 1, 10), link("leaf1", "up1", 20),
                   link("spine1", "d2", 20)]
        found = self.compare(records)
        for record in found.values():
            if "slowest_rate_bps" in record["figures"]:
                self.assertEqual(record["figures"]["slowest_rate_bps"], 10 * GBPS)
        self.assertEqual(found["observed"]["error"]["limited"], {"count": 0})

    def test_changes(self):
        def slowest(policy, *words):
            return self.compare(self.COLLISION, *words)[policy]["figures"]["slowest_rate_bps"]

        # One spine is gone: a plan cannot help. The observed case stays as it was.
        self.assertEqual(slowest("plan", "--failed", "spine2"), 50 * GBPS)
        # Of what is down each flow moves.
        plan = self.compare(self.COLLISION, "--failed", "spine1")["plan"]
        self.assertEqual((plan["figures"]["moves"]["max"], len(plan["moved"])), (2, 2))
        # Links between switches of 40 Gb/s, and of 400.
        self.assertEqual(slowest("plan", "--fabric-speed", str(40 * GBPS)), 40 * GBPS)
        self.assertEqual(slowest("observed", "--fabric-speed", str(400 * GBPS)), 50 * GBPS)
        self.assertEqual(slowest("static", "--fabric-speed", str(400 * GBPS)), 100 * GBPS)
        # Two spines more: one link fails, and the plan still has no collision.
        found = self.compare(self.COLLISION, "--add-spines", "2", "--failed", "spine2")
        self.assertEqual(found["plan"]["figures"]["flows_most"]["mean"], 1)
        self.assertEqual(found["plan"]["figures"]["layers"][0]["links"], 6)
        # Four queue pairs a flow: over many seeds the worst draw is better than that of one.
        one = self.compare(self.COLLISION, "--draws", "200")["ecmp"]["figures"]
        four = self.compare(self.COLLISION, "--draws", "200", "--pairs", "8")["ecmp"]["figures"]
        self.assertGreater(four["slowest_share"]["mean"], one["slowest_share"]["mean"])
        # Sprayed over one path it is no better than that.
        sprayed = self.compare(self.COLLISION, "--spray", "2")["spray"]["figures"]
        self.assertEqual(sprayed["slowest_share"]["mean"], 1)

    def test_collectives(self):
        """Two transfers of 12.5 GB over one link of 100 Gb/s: 2 s; on two links 1 s. Then, 3 s after
        its end, a ring of four."""
        gb = 12_500_000_000
        records = [*self.COLLISION, path(1, 2, 1, 50), path(3, 4, 1, 50), path(2, 3, 2, 50),
                   path(4, 1, 1, 50),
                   collective("Send", 0, {2: gb}, 0, 2, algo="", ranks=4),
                   collective("Send", 1, {3: gb}, 0, 2, algo="", ranks=4),
                   *(collective("AllReduce", r, {(r + 1) % 4: gb}, 5, 1, 7) for r in range(4))]
        found = self.compare(records)
        measured = {t["op"]: t for t in found["measured"]["times"]}
        self.assertEqual(measured["Send"]["measured_us"], 2_000_000)
        self.assertEqual((measured["AllReduce"]["ranks_seen"], measured["AllReduce"]["edges"],
                          measured["AllReduce"]["edges_without"]), (4, 4, 0))
        self.assertEqual(found["measured"]["step_measured_us"], 6_000_000)

        def times(policy):
            return {t["op"]: t["time_us"]["mean"] / 1e6 for t in found[policy]["times"]}

        self.assertAlmostEqual(times("observed")["Send"], 2, 5)
        self.assertAlmostEqual(times("observed")["AllReduce"], 1, 5)
        self.assertAlmostEqual(found["observed"]["step_us"]["mean"] / 1e6, 6, 5)
        # 1 to 3, 2 to 4 and 2 to 3 cross two links: one of them is shared in any case.
        self.assertGreaterEqual(times("spray")["Send"], 1)
        self.assertAlmostEqual(times("spray")["Send"], 1, 5)
        self.assertAlmostEqual(found["spray"]["step_us"]["mean"] / 1e6, 5, 5)

    def test_the_newest_of_many(self):
        """Transfers have no number, and a CUDA graph that is launched again gives its operations those of the
        launch before: of a file with many of either each counts once, the newest."""
        gb = 12_500_000_000
        records = [path(1, 3, 1, 50), path(3, 1, 1, 50)]
        for k, took_s in ((0, 3), (2, 1), (1, 2)):
            records += [collective("Send", 0, {2: gb}, 10 * k, took_s, None, "", peer=2),
                        *(collective("AllReduce", r, {2 - r: gb}, 10 * k + 5, took_s, 7) for r in (0, 2))]
        times = {t["op"]: t for t in self.compare(records)["observed"]["times"]}
        self.assertEqual({op: (t["ranks_seen"], t["edges"], t["measured_us"]) for op, t in times.items()},
                         {"Send": (1, 1, 10 ** 6), "AllReduce": (2, 2, 10 ** 6)})
        for op in "Send", "AllReduce":
            self.assertAlmostEqual(times[op]["time_us"]["mean"], 1e6, -1)

    def test_rounds_and_unknown_edges(self):
        """A rank that nobody saw sending costs nothing, and is told; of two operations the complete
        one counts; what was long before the window does not."""
        gb = 12_500_000_000
        records = [path(1, 3, 1, 50), path(3, 1, 1, 50),
                   collective("AllReduce", 0, {2: gb}, 1, 1, 5, ranks=4),
                   collective("AllReduce", 2, {0: gb, 3: gb}, 1, 1, 5, ranks=4),
                   collective("AllReduce", 0, {2: gb}, 3, 1, 6, ranks=4),
                   collective("Broadcast", 0, {2: gb}, -900, 1, 1)]
        found = self.compare(records, "--policy", "plan")
        times = found["plan"]["times"]
        self.assertEqual([(t["op"], t["sequence"], t["edges"], t["edges_without"])
                          for t in times], [("AllReduce", 5, 3, 1)])
        self.assertAlmostEqual(times[0]["time_us"]["mean"], 1e6, -1)

    def test_left_out(self):
        records = [*self.COLLISION, path(1, 4, 1, 50, 50001, state="partial"),
                   path(2, 3, 1, 50, 50002, state="multipath"),
                   path(2, 3, 1, 0.001, 50003), path(2, 3, 1, 5, 50004, role="ack")]
        strange = path(1, 3, 1, 50, 50005)
        strange["flow"]["dst"] = "10.9.9.9"
        broken = path(1, 3, 1, 50, 50006)
        broken["hops"][1]["switch"] = "spine2"
        routed = path(1, 3, 1, 50, 50007, source_routed=True)
        records += [strange, broken, routed]
        found = self.compare(records, "--policy", "plan")["plan"]
        self.assertEqual([found[k] for k in ("flows", "unresolved", "sprayed", "source_routed", "small",
                                             "strangers")], [2, 2, 1, 1, 2, 1])
        _, out, _ = self.run_tool(records)
        self.assertIn("2 without a known path, 1 sprayed, 1 with their path in their address, "
                      "1 of hosts outside the topology, 2 small", out)

    def test_bad_input(self):
        for records, words, want, said in (
                ([], (), 65, "has no records of paths or links"),
                (["{\"schema\":\"fabrictrace.path.v1\",\n"], (), 65, "r.ndjson:1"),
                (self.COLLISION, ("--failed", "spine9"), 65, "spine9"),
                (self.COLLISION, ("--failed", "spine1,spine2"), 65, "no path left"),
                (self.COLLISION, ("--policy", "magic"), 64, "there is no policy 'magic'"),
                (self.COLLISION, ("--pairs", "0"), 64, "--pairs takes an integer from 1 to 128"),
                (self.COLLISION, ("--flows", "x"), 64, "not both")):
            with self.subTest(said):
                rc, out, err = self.run_tool(records, *words)
                self.assertEqual((rc, out), (want, ""))
                self.assertIn(said, err)
        done = subprocess.run([TOOL, "whatif", "--records", "x"], text=True, capture_output=True)
        self.assertEqual(done.returncode, 64)

    def golden(self, *words):
        return subprocess.run([TOOL, "whatif", *words], text=True, capture_output=True, check=True,
                              env={**os.environ, "COLUMNS": "200"}).stdout

    def test_recorded_capture(self):
        """capture.ndjson is what a daemon made of the lab's sFlow once; it stays. FT_WRITE_GOLDEN=1
        writes the text anew."""
        got = self.golden("--topology", str(LAB / "topology.yaml"), "--records",
                          str(HERE / "capture.ndjson"))
        expected = HERE / "capture.txt"
        if os.environ.get("FT_WRITE_GOLDEN"):
            expected.write_text(got)
        want = expected.read_text()
        self.assertEqual(got, want, "\n".join(difflib.unified_diff(want.splitlines(),
                                                                   got.splitlines(), lineterm="")))

    def daemon(self, flows):
        """What asks a daemon that has read observations of flows: (src, dst, source port, spine by
        second), 20 seconds of them in windows of 5."""
        port = free_port()
        lines = [self.observation(src, dst, sport, hop, second) for second in range(20)
                 for src, dst, sport, spine in flows
                 for hop in path(src, dst, spine(second), 1)["hops"]]
        file = self.folder / "o.ndjson"
        file.write_text("".join(lines))
        topology = self.folder / "numbered.yaml"
        topology.write_text(self.numbered())
        daemon = subprocess.Popen(
            [DAEMON, "-c", os.devnull, "--set", f"http=127.0.0.1:{port}", "--set", "window=5s",
             "--set", "verify_topology=false", "--topology", str(topology), "--replay", str(file),
             "--serve", "--sink", "file:/dev/null"], stdin=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        self.addCleanup(daemon.wait)
        self.addCleanup(daemon.send_signal, signal.SIGTERM)
        words = [TOOL, "whatif", "--endpoint", f"127.0.0.1:{port}"]

        def ask(*more):
            done = subprocess.run([*words, "--json", *more], text=True, capture_output=True)
            return done if done.returncode == 0 else None

        self.assertTrue(speed.wait(ask, 120),
                        subprocess.run(words, text=True, capture_output=True))

        self.endpoint = f"http://127.0.0.1:{port}"

        def figures(*more):
            done = subprocess.run([*words, "--json", *more], text=True, capture_output=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            return {r["figures"]["policy"]: r for r in map(json.loads, done.stdout.splitlines())}
        return figures

    def test_daemon(self):
        """Observations of flows into a daemon, and what it knows from its API."""
        found = self.daemon([(1, 3, 50000, lambda _: 1), (2, 4, 50001, lambda _: 1),
                             (3, 2, 50002, lambda _: 2)])()
        self.assertEqual(found["observed"]["flows"], 3)
        self.assertEqual(found["observed"]["fabric"], "small")
        self.assertEqual(found["observed"]["figures"]["flows_most"]["mean"], 2)
        self.assertEqual(found["plan"]["figures"]["flows_most"]["mean"], 1)
        self.assertLess(found["observed"]["error"]["loads"]["worst"], 0.01)

    def test_past_window(self):
        """A collision that is over, in a window that it was in."""
        ask = self.daemon([(1, 3, 50000, lambda _: 1),
                           (2, 4, 50001, lambda second: 1 if second < 10 else 2)])
        then, now = ask("--at", f"@{START_MS // 1000 + 2}"), ask()
        self.assertEqual(then["observed"]["window_start_ms"], START_MS)
        self.assertEqual((then["observed"]["flows"], now["observed"]["flows"]), (2, 2))
        self.assertEqual(then["observed"]["figures"]["flows_most"]["mean"], 2)
        self.assertEqual(then["plan"]["figures"]["flows_most"]["mean"], 1)
        self.assertEqual(now["observed"]["figures"]["flows_most"]["mean"], 1)
        self.assertLess(then["observed"]["error"]["loads"]["worst"], 0.01)

    def get(self, target, *statuses):
        """An answer of the daemon's own, and its Retry-After."""
        try:
            with urllib.request.urlopen(self.endpoint + target) as answer:
                self.assertIn(answer.status, statuses or (200,))
                return json.load(answer), answer.headers["Retry-After"]
        except urllib.error.HTTPError as e:
            with e:
                self.assertIn(e.code, statuses, e.read())
                return None, e.headers["Retry-After"]

    def test_daemon_compares(self):
        """The daemon's own what-if is the tool's, which asks for the records and computes."""
        ask = self.daemon([(1, 3, 50000, lambda _: 1), (2, 4, 50001, lambda _: 1),
                           (3, 2, 50002, lambda _: 2)])
        for query, words in (("", ()), ("?seeds=7&pairs=4&spray=1",
                                        ("--draws", "7", "--pairs", "4", "--spray", "1")),
                             ("?policy=crc32,plan&seeds=100",
                              ("--policy", "crc32,plan", "--draws", "100"))):
            words = words if "--draws" in words else (*words, "--draws", "20")
            answer, _ = self.get("/api/v1/whatif" + query)
            found = {r["figures"]["policy"]: r for r in answer["records"]}
            self.assertEqual(found, ask(*words))
            self.assertEqual(answer["total"], len(found))
            # None without its error.
            self.assertTrue(all(r["error"]["rates"]["count"] == 3 for r in found.values()))
            self.assertIn("measured", found)
            self.assertIn("observed", found)
        for query in ("policy=magic", "policy=", "seeds=0", "seeds=101", "seeds=x", "pairs=9",
                      "spray=65", "limit=1", "seeds=1&seeds=1"):
            self.get("/api/v1/whatif?" + query, 400)

    def test_one_comparison_at_a_time(self):
        """Who asks meanwhile is sent away with when to come again; one that nobody waits for any more
        ends by itself, and the next is complete."""
        flows = [(1 + i % 2, 3 + i // 2 % 2, 50000 + i, lambda _, i=i: 1 + i // 4 % 2)
                 for i in range(200)]
        self.daemon(flows)
        target = "/api/v1/whatif?seeds=100&pairs=8&policy=ecmp,plan,crc16,crc32,xor"
        host = self.endpoint.removeprefix("http://")
        def refused():
            """While one is in progress; it may be over before the second comes."""
            first = http.client.HTTPConnection(host)
            first.request("GET", target)
            # The head comes with the first part; the rest takes many.
            answer = first.getresponse()
            try:
                self.get("/api/v1/windows")
                return self.get("/api/v1/whatif?seeds=1", 200, 503)
            finally:
                first.close()
                answer.close()

        again = speed.wait(lambda: refused()[1], 60)
        self.assertGreater(int(again), 0)

        found = speed.wait(lambda: self.get(target, 200, 503)[0], 120)
        self.assertEqual([r["figures"]["policy"] for r in found["records"]],
                         ["measured", "observed", "ecmp", "crc16", "crc32", "xor", "plan"])
        self.assertEqual({r["flows"] for r in found["records"]}, {200})

    PORTS = {"leaf1": ["p1", "p2", "up1", "up2"], "leaf2": ["p3", "p4", "up1", "up2"],
             "spine1": ["d1", "d2"], "spine2": ["d1", "d2"]}

    def numbered(self):
        """The fabric with its ports' numbers."""
        text = FABRIC
        for name, ports in self.PORTS.items():
            listed = ", ".join(f"{{name: {p}, ifindex: {i + 1}}}" for i, p in enumerate(ports))
            head, tail = text.split(f"name: {name}, addresses: [", 1)
            address, rest = tail.split("]", 1)
            text = f"{head}name: {name}, addresses: [{address}], ports: [{listed}]{rest}"
        return text

    def observation(self, src, dst, sport, hop, second):
        agent = {"leaf1": 1, "leaf2": 2, "spine1": 11, "spine2": 12}[hop["switch"]]
        ports = self.PORTS[hop["switch"]]
        at_ms = START_MS + 1000 * second
        return json.dumps({
            "schema": "fabrictrace.observation.v1", "time_ms": at_ms, "interval_ms": 1000,
            "first_ms": at_ms + 10, "last_ms": at_ms + 990, "agent": f"192.0.2.{agent}",
            "flow": {"src": f"10.0.0.{src}", "dst": f"10.0.0.{dst}", "sport": sport, "dport": 4791,
                     "proto": 17}, "in_ifindex": 1 + ports.index(hop["in"]),
            "out_ifindex": 1 + ports.index(hop["out"]), "samples": 100, "packets": 10 ** 6,
            "bytes": 2 * 10 ** 9, "data_samples": 100}) + "\n"


if __name__ == "__main__":
    unittest.main()
