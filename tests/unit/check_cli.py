#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The program fabrictrace as a person runs it: against an HTTP server that gives prepared answers.

Runs in the build folder, as a test of automake. Each text in tests/unit/cli is what the program
prints for the answer of the same name. With --write the texts are written anew.
"""

import json
import resource
import socket
import subprocess
import sys
import tempfile
import threading
import unittest

from cli_rig import (CASES, FLOW, PROGRAM, Handler, Server, environment, routes_of_top, run,
                     run_on_terminal)

# answer: words of the command that shows it
SHOWN = {
    "paths": ["paths"],
    "links": ["links"],
    "imbalance": ["imbalance"],
    "imbalance-partial": ["imbalance"],
    "imbalance-seen": ["imbalance"],
    "history": ["history", "leaf1/Ethernet51"],
    "history-group": ["history", "leaf1/up"],
    "history-flow": ["history", FLOW],
    "events": ["collisions"],
    "events-none": ["collisions"],
    "events-all": ["events"],
    "topology": ["topology"],
    "topology-samples": ["topology"],
    "topology-export": ["topology", "--export"],
    "matrix": ["matrix"],
    "ranks": ["ranks"],
    "ranks-none": ["ranks"],
    "doctor": ["doctor"],
    "doctor-none": ["doctor"],
    "doctor-hosts": ["doctor"],
    "qps": ["qps"],
    "qps-none": ["qps"],
    "diagnoses": ["diagnose"],
    "diagnoses-none": ["diagnose"],
    "hash": ["hash"],
    "hash-none": ["hash"],
    "spread": ["spread"],
    "spread-none": ["spread"],
    "rhythm": ["rhythm"],
    "rhythm-none": ["rhythm"],
    "plans": ["plans"],
    "plans-none": ["plans"],
    "moves": ["moves", "88"],
    "moves-none": ["moves"],
    "probes": ["probes"],
    "probes-none": ["probes"],
    "explain": ["explain", FLOW],
    "explain-multipath": ["explain", FLOW],
    "explain-paired": ["explain", FLOW],
    "explain-partial": ["explain", FLOW],
    "explain-lag": ["explain", FLOW],
    "explain-inferred": ["explain", FLOW],
    "explain-likely": ["explain", FLOW],
    "explain-probed": ["explain", FLOW],
    "explain-unresolved": ["explain", FLOW],
    "explain-networks": ["explain", FLOW],
    "explain-lossy": ["explain", FLOW],
    "explain-link": ["explain", "leaf2/Ethernet54"],
    "explain-link-lossy": ["explain", "leaf2/Ethernet54"],
    "explain-group": ["explain", "leaf2/up"],
    "explain-job": ["explain", "88"],
}
WRITE = "--write" in sys.argv


def status(name, words):
    """1 where the doctor or the events say that something stands that is more than a note."""
    records = json.loads((CASES / f"{name}.json").read_text()).get("records", ())
    return int(words[0] in ("diagnose", "doctor", "events") and
               any(r.get("severity") in ("warning", "critical") for r in records))


def as_records(words):
    """The command without what cannot be combined with --json."""
    return [word for word in words if word != "--export"]


class Answers(unittest.TestCase):
    def setUp(self):
        self.server = Server()
        self.at = ["--endpoint", self.server.endpoint]

    def tearDown(self):
        self.server.shutdown()
        self.server.server_close()

    def give(self, name, code=200):
        self.server.body, self.server.code = (CASES / f"{name}.json").read_bytes(), code

    def test_tables_are_those_in_the_files(self):
        for name, words in SHOWN.items():
            with self.subTest(name):
                self.give(name)
                rc, out, err = run(*words, *self.at)
                # The answers are of one day; on another the program puts the date before the time.
                out = out.replace("2026-11-20 ", "")
                if WRITE:
                    (CASES / f"{name}.txt").write_text(out)
                self.assertEqual((rc, err), (status(name, words), ""))
                self.assertEqual(out, (CASES / f"{name}.txt").read_text())

    def test_json_is_the_records_one_a_line(self):
        for name, words in SHOWN.items():
            with self.subTest(name):
                self.give(name)
                rc, out, _ = run(*as_records(words), "--json", *self.at)
                answer = json.loads(self.server.body)
                lines = [json.loads(line) for line in out.splitlines()]
                whole = words[0] in ("explain", "topology")
                self.assertEqual(rc, status(name, words))
                self.assertEqual(lines, [answer] if whole else answer["records"])

    def test_filters_reach_the_daemon(self):
        self.give("paths")
        run("paths", "--state", "partial", "--host", "gpu 1/ü", "--limit", "7", *self.at)
        self.assertEqual(
            self.server.target, "/api/v1/paths?state=partial&host=gpu%201%2F%C3%BC&limit=7"
        )
        run("paths", "--flow", "[fd00::1]:1-fd00::2", *self.at)
        self.assertEqual(
            self.server.target, "/api/v1/paths?flow=%5Bfd00%3A%3A1%5D%3A1-%5Bfd00%3A%3A2%5D%3A4791"
        )
        self.give("links")
        run("links", "--group", "leaf1/up", *self.at)
        self.assertEqual(self.server.target, "/api/v1/links?group=leaf1%2Fup")
        self.give("events")
        run("collisions", *self.at)
        self.assertEqual(self.server.target, "/api/v1/events?kind=collision")

    def test_matrix_forms(self):
        self.give("matrix")
        rc, out, _ = run("matrix", "--csv", "--by", "host", *self.at)
        self.assertEqual(rc, 0)
        self.assertEqual(
            out.splitlines(),
            [
                "communicator,from,to,bytes,messages,formula_bytes",
                '"00000000c0ffee00","gpu01","gpu02",3000000,30,3000000',
                '"00000000c0ffee00","gpu02","gpu01",1500000,15,0',
                '"00000000c0ffee00","gpu02","gpu02",1500000,15,1500000',
            ],
        )
        rc, out, _ = run("matrix", "--svg", "-", "--messages", *self.at)
        self.assertEqual(rc, 0)
        self.assertEqual(out.count("<title>"), 4)
        self.assertIn("0 to 1: 1.5 MB in 15 messages, by formula 1.5 MB", out)
        run("matrix", "--comm", "ab", "--op", "AllReduce", *self.at)
        self.assertEqual(self.server.target, "/api/v1/matrix?comm=ab&op=AllReduce")
        rc, _, err = run("matrix", "--svg", "/nonexistent/x.svg", *self.at)
        self.assertEqual(rc, 73)
        self.assertIn("No such file", err)
        self.server.body = b'{"records":[]}'
        self.assertEqual(run("matrix", "--svg", "-", *self.at)[0], 64)

    def test_queue_pairs_of_one_host(self):
        self.give("qps")
        run("qps", "--host", "gpu01", "--state", "no_peer", "--limit", "3", *self.at)
        self.assertEqual(self.server.target, "/api/v1/qps?state=no_peer&host=gpu01&limit=3")

    def test_diagnoses(self):
        self.give("diagnoses-none")
        run("diagnose", *self.at)
        self.assertEqual(self.server.target, "/api/v1/diagnoses")
        self.give("diagnoses")
        run("diagnose", "job 88", *self.at)
        self.assertEqual(self.server.target, "/api/v1/diagnoses?job=job%2088")

    def test_spread_at_one_group(self):
        self.give("spread")
        run("spread", "--group", "leaf1/up", "--host", "h1-6", "--limit", "9", *self.at)
        self.assertEqual(self.server.target, "/api/v1/spread?host=h1-6&group=leaf1%2Fup&limit=9")

    def test_hashes(self):
        self.give("hash")
        run("hash", *self.at)
        self.assertEqual(self.server.target, "/api/v1/hashes")

    def test_ranks_of_one_communicator(self):
        self.give("ranks")
        run("ranks", "--comm", "ab", *self.at)
        self.assertEqual(self.server.target, "/api/v1/ranks?comm=ab")
        rc, out = run_on_terminal(80, "ranks", *self.at, env=environment(NO_COLOR="1"))
        self.assertEqual(rc, 0)
        self.assertLessEqual(max(map(len, out.splitlines())), 80)
        self.assertIn("leaf1 Ethernet51", out)

    def give_top(self):
        self.server.routes = routes_of_top()

    def test_events_of_a_kind(self):
        self.give("events-all")
        run("events", "--kind", "link_down", *self.at)
        self.assertEqual(self.server.target, "/api/v1/events?kind=link_down")

    def test_events_of_a_time(self):
        """One that is over, one that is active, and one that only happened, in their order."""
        base = {"kind": "link_down", "severity": "critical", "subject": "leaf1/Ethernet51",
                "message": "the link is down", "since_ms": 1795170000000, "time_ms": 1795170060000}
        over = {**base, "cleared": True}
        active = {**base, "since_ms": 1795170600000, "time_ms": 1795170600000}
        flow = {"src": "10.0.1.2", "dst": "10.0.4.6", "sport": 50003, "dport": 4791, "proto": 17}
        hops = [[{"switch": "leaf1", "out": f"Ethernet{port}"}, {"switch": "leaf4", "out": "Ethernet2"}]
                for port in (51, 52)]
        happened = {**base, "kind": "path_change", "subject": "a flow", "since_ms": 1795170300000,
                    "evidence": {"flow": flow, "old_hops": hops[0], "new_hops": hops[1]}}
        asked = []

        class Answering(Handler):
            def do_GET(handler):
                records = [over, happened, active] if "from_ms" in handler.path else [active]
                if "windows" in handler.path:
                    records = [{"window_start_ms": 1795169000000}]
                self.server.body = json.dumps({"fabric": "lab", "records": records}).encode()
                asked.append(handler.path)
                super().do_GET()

        self.server.RequestHandlerClass = Answering
        rc, out, err = run("events", "--since", "2026-11-20 10:00", "--until", "2026-11-20T11:00:00Z", "--kind",
                           "link_down", "--switch", "leaf1", "--host", "gpu01", "--job", "88", *self.at)
        self.assertEqual((rc, err), (1, ""))
        self.assertEqual(asked[0], "/api/v1/events?kind=link_down&job=88&switch=leaf1&host=gpu01"
                                   "&from_ms=1795168800000&to_ms=1795172400000")
        lines = [" ".join(line.split()) for line in out.replace("2026-11-20 ", "").splitlines()]
        self.assertEqual(lines, [
            "lab, events since 10:00:00 until 11:00:00: 3, 1 of them still active "
            "(nothing is kept of before 10:03:20)",
            "SINCE UNTIL SEVERITY KIND WHAT",
            "10:20:00 10:21:00 critical link_down the link is down",
            "10:25:00 critical path_change 10.0.1.2:50003-10.0.4.6 from leaf1 Ethernet51 > leaf4 to "
            "leaf1 Ethernet52 > leaf4",
            "10:30:00 active critical link_down the link is down"])
        rc, out, _ = run("events", "--since", "@1795169000", "--json", *self.at)
        self.assertEqual([json.loads(line) for line in out.splitlines()], [over, happened, active])
        self.assertIn(", events since 2026-11-20 10:03:20: 3, 1 of them still active\n",
                      run("events", "--since", "@1795169000", *self.at)[1])

    def test_filters_by_switch_and_job(self):
        self.give("paths")
        run("paths", "--switch", "spine1", "--job", "88", *self.at)
        self.assertEqual(self.server.target, "/api/v1/paths?job=88&switch=spine1")
        self.give("links")
        run("links", "--switch", "spine1", *self.at)
        self.assertEqual(self.server.target, "/api/v1/links?switch=spine1")
        self.server.body = b'{"records":[]}'
        self.server.routes = {"/api/v1/topology": b'{"switches":[{"name":"leaf1"}]}'}
        self.assertEqual(run("links", "--switch", "leaf1", *self.at)[0], 0)
        for words in (["links"], ["paths"], ["events"], ["events", "--since", "1h"]):
            rc, out, err = run(*words, "--switch", "typo", *self.at)
            self.assertEqual((rc, out), (64, ""))
            self.assertIn("no switch 'typo' is known: fabrictrace topology lists them", err)

    def test_top_without_a_terminal_shows_one_picture(self):
        self.give_top()
        rc, out, err = run("top", *self.at)
        out = out.replace("2026-11-20 ", "")
        if WRITE:
            (CASES / "top.txt").write_text(out)
        self.assertEqual((rc, err), (0, ""))
        self.assertEqual(out, (CASES / "top.txt").read_text())
        self.server.routes, self.server.body = {}, b"{}"
        self.assertEqual(run("top", *self.at)[0], 0)

    def test_endpoint_from_the_environment(self):
        self.give("links")
        rc, _, _ = run("links", env=environment(FABRICTRACE_ENDPOINT=self.server.endpoint))
        self.assertEqual(rc, 0)

    def test_a_finding_is_not_cut(self):
        """What is wrong and what to do are words: on a narrow terminal they take more lines."""
        self.give("doctor")
        for width in (60, 80):
            rc, out = run_on_terminal(width, "doctor", *self.at, env=environment(NO_COLOR="1"))
            self.assertEqual(rc, 1)
            self.assertLessEqual(max(map(len, out.splitlines()[1:])), width)
            words = " ".join(out.split())
            self.assertIn("enable its sFlow exporter, and check that UDP 6343 is not blocked", words)
            self.assertNotIn("...", words)

    def test_no_line_is_wider_than_the_terminal(self):
        for width in (60, 80, 132):
            self.give("paths")
            rc, out = run_on_terminal(width, "paths", *self.at, env=environment(NO_COLOR="1"))
            self.assertEqual(rc, 0)
            self.assertNotIn("\x1b", out)
            self.assertLessEqual(max(map(len, out.splitlines())), width)
            self.assertIn(FLOW, out)

    def test_paths_keep_what_they_are_sorted_by(self):
        self.give("paths")
        out = run_on_terminal(80, "paths", *self.at, env=environment(NO_COLOR="1"))[1]
        self.assertRegex(out, r"FLOW .* RATE ")

    def test_the_column_of_sort_stays(self):
        self.give("paths")
        for words, there in (((), False), (("--sort", "role"), True)):
            out = run_on_terminal(80, "paths", *words, *self.at, env=environment(NO_COLOR="1"))[1]
            (self.assertIn if there else self.assertNotIn)("ROLE", out.splitlines()[1])

    def test_whole_lines_on_a_narrow_terminal(self):
        self.give("paths")
        out = run_on_terminal(60, "paths", "--wide", *self.at, env=environment(NO_COLOR="1"))[1]
        self.assertEqual(out.replace("\r\n", "\n").replace("2026-11-20 ", ""),
                         (CASES / "paths.txt").read_text())

    def column(self, *words):
        """The cells of the one column that a table has, without head and summary."""
        rc, out, err = run(*words, *self.at)
        self.assertEqual((rc, err), (0, ""))
        return out.splitlines()[2:]

    def test_columns_and_their_order(self):
        self.give("links")
        used = self.column("links", "--columns", "port used", "--sort", "PORT USED")
        values = [float(text.rstrip("% ").strip() or "-1") for text in used]
        self.assertEqual(values, sorted(values, reverse=True))
        self.assertGreater(len(set(values)), 1)
        turned = self.column("links", "--columns", "port used", "--sort=-port used")
        self.assertEqual([t.strip() for t in turned], [t.strip() for t in reversed(used)])
        rates = [text.split() for text in self.column("links", "--columns", "flow rate", "--sort=flow rate")]
        bps = [float(n) * {"b/s": 1, "kb/s": 1e3, "Mb/s": 1e6, "Gb/s": 1e9}[unit]
               for n, unit in filter(None, rates)]
        self.assertEqual(bps, sorted(bps, reverse=True))
        head = run("links", "--columns", "TO,LINK", *self.at)[1].splitlines()[1].split()
        self.assertEqual(head, ["LINK", "TO"])
        self.assertEqual(self.column("links", "--columns", "used", "--sort", "used"), used)
        for words, name in ((("--sort", "nothing"), "nothing"), (("--columns", "link,nothing"), "nothing"),
                            (("--sort", ""), ""), (("--sort", "-por"), "por")):
            rc, _, err = run("links", *words, *self.at)
            self.assertEqual(rc, 64)
            self.assertIn(f"there is no column '{name}': LINK, TO, GROUP, FLOWS, FLOW RATE,", err)

    def test_colour_only_on_a_terminal(self):
        self.give("imbalance")
        self.assertIn("\x1b[1;31mFAULT", run_on_terminal(200, "imbalance", *self.at)[1])
        self.assertNotIn("\x1b", run("imbalance", *self.at)[1])

    def test_unknown_flow(self):
        self.server.body, self.server.code = b"this flow is not known", 404
        rc, out, err = run("explain", FLOW, *self.at)
        self.assertEqual((rc, out), (1, ""))
        self.assertIn(f"does not know the flow {FLOW}:4791", err)
        self.assertIn("fabrictrace paths --host", err)

    def test_a_flow_that_bears_its_path_is_not_probed(self):
        """An agent that would be asked for any other."""
        asked = []
        with tempfile.TemporaryDirectory() as folder, \
                socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as agent:
            agent.bind(f"{folder}/agent")
            agent.listen()

            def answer():
                with agent.accept()[0] as peer:
                    asked.append(peer.recv(4096))
                    peer.send(b'{"refused":"another flow is being probed"}')

            thread = threading.Thread(target=answer, daemon=True)
            thread.start()
            for routed, text, count in ((True, "its address bears its path", 0),
                                        (False, "another flow is being probed", 1)):
                known = json.loads((CASES / "explain.json").read_bytes())
                known["records"][0]["source_routed"] = routed
                self.server.body, self.server.code = json.dumps(known).encode(), 200
                rc, out, err = run("probe", FLOW, "--socket", f"{folder}/agent", *self.at)
                self.assertEqual((rc, out, len(asked)), (69, "", count))
                self.assertIn(text, err)
            thread.join()

    def test_a_name_is_looked_up(self):
        """As a link, a group and a job, in this order; two words are a link alone."""
        asked, known = [], {}

        class Naming(Handler):
            def do_GET(handler):
                query = handler.path.partition("?")[2]
                asked.append(query)
                name = known.get(query.partition("=")[0])
                self.server.code = 200 if name else 404
                self.server.body = name or b"this is not known"
                super().do_GET()

        self.server.RequestHandlerClass = Naming
        parts = {kind: (CASES / f"explain-{kind}.json").read_bytes()
                 for kind in ("link", "group", "job")}
        orders = ["link", "group", "job"]
        for i, kind in enumerate(orders):
            asked.clear()
            known.clear()
            known[kind] = parts[kind]
            rc, out, err = run("explain", "a b/c&d", *self.at)
            self.assertEqual((rc, err), (0, ""))
            self.assertEqual(asked, [f"{k}=a%20b%2Fc%26d" for k in orders[:i + 1]])
        # The daemon takes any word for a job, and gives nothing.
        known["job"] = b'{"fabric":"lab","records":[],"paths":[],"total":0}'
        rc, out, err = run("explain", "nobody", *self.at)
        self.assertEqual((rc, out), (1, ""))
        self.assertIn("knows no link, group, job, host or switch 'nobody'", err)
        asked.clear()
        rc, out, err = run("explain", "leaf1", "Ethernet51", *self.at)
        self.assertEqual((rc, out, asked), (1, "", ["link=leaf1%2FEthernet51"]))
        self.assertIn("knows no link 'leaf1/Ethernet51'", err)
        known["link"] = parts["link"]
        self.assertEqual(run("explain", "leaf2", "Ethernet54", *self.at)[1],
                         run("explain", "leaf2/Ethernet54", *self.at)[1])

    def test_refusals_and_strangers(self):
        self.server.body, self.server.code = b"no such group\x1b[2J", 400
        rc, _, err = run("links", "--group", "x", *self.at)
        self.assertEqual(rc, 64)
        self.assertIn("no such group", err)
        self.assertNotIn("\x1b", err)
        self.server.body, self.server.code = b"<html>hello</html>", 200
        rc, out, err = run("links", *self.at)
        self.assertEqual((rc, out), (76, ""))
        self.assertIn("is not fabrictraced", err)

    def test_a_page_is_no_answer(self):
        """Another program's error page, of several lines, is not thrown at the user."""
        for page in (b"<!DOCTYPE html>\n<html><h1>404</h1></html>", b"Not\nFound\n", b"x" * 600):
            self.server.body, self.server.code = page, 404
            for words in (["links"], ["explain", FLOW]):
                rc, out, err = run(*words, *self.at)
                self.assertEqual((rc, out), (76, ""))
                self.assertIn("is not fabrictraced", err)
                self.assertIn("status 404", err)
                self.assertEqual(len(err.splitlines()), 1)

    def test_filters_that_match_nothing_known(self):
        """Nothing stands, and nobody knows such a thing, are two answers."""
        empty = b'{"records":[]}'
        self.server.body = empty
        self.server.routes = {"/api/v1/topology": (CASES / "topology.json").read_bytes()}
        rc, out, err = run("events", "--kind", "typo", *self.at)
        self.assertEqual((rc, out), (64, ""))
        self.assertIn("no kind 'typo'", err)
        self.assertIn("link_down", err)
        self.assertEqual(run("events", "--kind", "link_down", *self.at)[0], 0)
        host = json.loads(self.server.routes["/api/v1/topology"])["hosts"][0]["name"]
        for command in ("paths", "qps"):
            rc, out, err = run(command, "--host", "typo", *self.at)
            self.assertEqual((rc, out), (68, ""))
            self.assertIn("no host 'typo' is known", err)
            self.assertEqual(run(command, "--host", host, *self.at)[0], 0)
            self.assertEqual(run(command, "--host", "10.9.9.9", *self.at)[0], 0)
        # Where no host is known at all, this one may be any.
        self.server.routes = {"/api/v1/topology": b'{"hosts":[]}'}
        self.assertEqual(run("paths", "--host", "typo", *self.at)[0], 0)

    def test_a_group_that_nobody_knows(self):
        links = json.loads((CASES / "links.json").read_bytes())
        known = next(r["group"] for r in links["records"] if "group" in r)

        class Filtering(Handler):
            def do_GET(handler):
                records = [] if "group=" in handler.path else links["records"]
                self.server.body = json.dumps({"records": records}).encode()
                super().do_GET()

        self.server.RequestHandlerClass = Filtering
        self.assertEqual(run("links", "--group", known, *self.at)[0], 0)
        rc, out, err = run("links", "--group", "typo/up", *self.at)
        self.assertEqual((rc, out), (64, ""))
        self.assertIn("no group 'typo/up' is known", err)

    @staticmethod
    def communicator(ranks, edges):
        return {"records": [{
            "comm_id": "1", "ranks": ranks,
            "members": [{"rank": r, "host": f"gpu{r // 8:04}"} for r in range(ranks)],
            "edges": [{"src": i % ranks, "dst": (i + 1 + i // ranks) % ranks, "op": "AllReduce", "sent_bytes": 1000,
                       "sent_messages": 1} for i in range(edges)]}]}

    def test_the_work_of_a_matrix_grows_with_its_edges(self):
        """Not with ranks times edges."""
        spent = []
        for ranks in (64, 2048):
            self.server.body = json.dumps(self.communicator(ranks, 20000)).encode()
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            rc, out, err = run("matrix", *self.at)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            self.assertEqual((rc, err), (0, ""))
            self.assertIn(f"{ranks} ranks", out)
            spent.append(after.ru_utime - before.ru_utime)
        self.assertLess(spent[1], 3 * spent[0] + 0.3)

    def test_a_matrix_that_is_too_large(self):
        self.server.body = json.dumps(self.communicator(2056, 10)).encode()
        rc, out, err = run("matrix", *self.at)
        self.assertEqual((rc, out), (65, ""))
        self.assertIn("more than 2048 rows", err)
        self.assertEqual(run("matrix", "--by", "host", *self.at)[0], 0)

    def test_a_closed_pipe_ends_following(self):
        """While more is written than a pipe holds, too."""
        events = [{"kind": "collision", "subject": f"leaf1/Ethernet{i}", "message": 100 * "x"} for i in range(3000)]
        self.server.body = json.dumps({"records": events}).encode()
        for words in ([], ["--json"]):
            command = [PROGRAM, "events", "--follow", *words, *self.at]
            with subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as reader:
                reader.stdout.readline()
                reader.stdout.close()
                self.assertEqual((reader.wait(timeout=300), reader.stderr.read()), (0, b""), words)

    def test_a_communicator_that_nobody_knows(self):
        ranks = json.loads((CASES / "ranks.json").read_bytes())["records"]

        class Filtering(Handler):
            def do_GET(handler):
                records = [] if "comm=" in handler.path else ranks
                self.server.body = json.dumps({"records": records}).encode()
                super().do_GET()

        self.server.RequestHandlerClass = Filtering
        for words in (["ranks"], ["matrix"], ["matrix", "--svg", "-"]):
            rc, out, err = run(*words, "--comm", "typo", *self.at)
            self.assertEqual((rc, out), (64, ""))
            self.assertIn("no communicator 'typo' is known: fabrictrace ranks lists them", err)
        ranks.clear()
        rc, out, err = run("ranks", "--comm", "typo", *self.at)
        self.assertEqual((rc, err), (0, ""))
        self.assertIn("NCCL profiler plugin", out)
        rc, out, err = run("matrix", "--svg", "-", *self.at)
        self.assertEqual((rc, out), (64, ""))
        self.assertIn("no communicator is known", err)

    def test_a_job_that_nobody_knows(self):
        """That nothing is wrong with it is said of a job that there is alone."""
        self.server.body = b'{"records":[]}'
        for found in ({"records": [{}], "paths": []}, {"records": [], "paths": [{}]}):
            self.server.routes = {"/api/v1/explain": json.dumps(found).encode()}
            for command in ("diagnose", "moves"):
                self.assertEqual(run(command, "88", *self.at)[0], 0)
        self.server.routes = {"/api/v1/explain": b'{"records":[],"paths":[]}'}
        for command in ("diagnose", "moves"):
            rc, out, err = run(command, "typo", *self.at)
            self.assertEqual((rc, out), (64, ""))
            self.assertIn("no job 'typo' is known", err)
            self.assertEqual(run(command, *self.at)[0], 0)

    # C0, DEL, C1, overrides of direction, a tag, and what may be shown
    NASTY = "a\x1b[2Jb\x7f\x9b\u202e\u2066\u200f\U000e0041é"

    def test_names_cannot_drive_the_terminal(self):
        """In every table, in sentences, and in JSON that goes to a terminal."""
        bad = set(self.NASTY) - set("a[2Jbé")

        def nasty(value):
            if isinstance(value, dict):
                return {k: nasty(v) for k, v in value.items()}
            if isinstance(value, list):
                return [nasty(v) for v in value]
            return value + self.NASTY if isinstance(value, str) else value

        for name, words in SHOWN.items():
            with self.subTest(name):
                answer = nasty(json.loads((CASES / f"{name}.json").read_bytes()))
                self.server.body, self.server.code = json.dumps(answer).encode(), 200
                out = run(*words, *self.at)[1]
                self.assertEqual(set(out) & bad, set(), name)
                words = as_records(words)
                rc, out = run_on_terminal(200, *words, "--json", *self.at)
                self.assertEqual((rc, set(out) & bad), (0, set()))
                lines = [json.loads(line) for line in out.splitlines()]
                whole = words[0] in ("explain", "topology")
                self.assertEqual(lines, [answer] if whole else answer["records"])
                # Programs get what the daemon said.
                out = run(*words, "--json", *self.at)[1]
                if answer.get("records"):
                    self.assertIn("\u202e", out)

    def test_answers_that_lack_everything_print(self):
        for words in SHOWN.values():
            for body in (b"{}", b'{"records":[{}],"switches":[{"ports":[{}]}]}', b'{"records":3}'):
                self.server.body = body
                unknown = words[0] == "history" and b"[{}]" not in body
                self.assertEqual(run(*words, *self.at)[0], int(unknown), (words, body))


if __name__ == "__main__":
    sys.argv = [a for a in sys.argv if a != "--write"]
    unittest.main()
