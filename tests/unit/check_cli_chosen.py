#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The program fabrictrace: what --severity and --limit choose of an answer, and what explain puts
together of a host and a switch. Runs in the build folder."""

import json
import re
import unittest

from cli_rig import CASES, FLOW, SOURCE, Handler, Server, environment, run, run_on_terminal, run_until

START_MS = 1795170000000
SEVERITIES = ("info", "warning", "critical")


def event(i, severity, **more):
    return {"kind": "link_down", "severity": severity, "subject": f"leaf1/{i}", "message": f"event {i}.",
            "since_ms": START_MS + 60000 * i, "time_ms": START_MS + 60000 * i, **more}


def shown(out):
    """Numbers of the events in a table."""
    return [int(line.split("event ")[1].split(".")[0]) for line in out.splitlines() if "event " in line]


class Chosen(unittest.TestCase):
    def setUp(self):
        self.server = Server()
        self.at = ["--endpoint", self.server.endpoint]

    def tearDown(self):
        self.server.shutdown()
        self.server.server_close()

    def give(self, records):
        self.server.body = json.dumps({"fabric": "lab", "records": records}).encode()

    def both(self, *words):
        """Exit status, and the numbers of the events: of the table and of JSON, which are the same."""
        rc, out, err = run(*words, *self.at)
        self.assertEqual(err, "")
        other, lines, _ = run(*words, "--json", *self.at)
        self.assertEqual(other, rc)
        of_json = [int(json.loads(line)["subject"].split("/")[1]) for line in lines.splitlines()]
        self.assertEqual(sorted(shown(out)), sorted(of_json))
        return rc, shown(out)

    def test_events_of_a_severity(self):
        self.give([event(i, SEVERITIES[i % 3]) for i in range(9)])
        self.assertEqual(self.both("events"), (1, [2, 5, 8, 1, 4, 7, 0, 3, 6]))
        self.assertEqual(self.both("events", "--severity", "info"), (1, [2, 5, 8, 1, 4, 7, 0, 3, 6]))
        self.assertEqual(self.both("events", "--severity", "warning"), (1, [2, 5, 8, 1, 4, 7]))
        self.assertEqual(self.both("events", "--severity", "critical"), (1, [2, 5, 8]))
        self.assertEqual(self.server.target, "/api/v1/events")
        self.assertEqual(self.both("events", "--since", "@1", "--severity", "critical"), (1, [2, 5, 8]))
        out = run("events", "--since", "@1", "--severity", "warning", *self.at)[1]
        self.assertIn(": 6, 6 of them still active", out)
        self.give([event(1, "warning"), event(2, "grave")])
        self.assertEqual(self.both("events", "--severity", "critical"), (0, [2]))

    def test_the_newest_events(self):
        self.give([event(i, SEVERITIES[i % 3]) for i in (4, 0, 3, 1, 2)])
        self.assertEqual(self.both("events", "--limit", "2"), (1, [4, 3]))
        self.assertIn(", 5 active events, 2 of 5 shown\n", run("events", "--limit", "2", *self.at)[1])
        self.assertEqual(self.both("events", "--limit", "9"), (1, [2, 4, 1, 0, 3]))
        self.assertNotIn("shown", run("events", "--limit", "5", *self.at)[1])
        self.assertEqual(self.both("events", "--since", "@1", "--limit", "3"), (1, [4, 3, 2]))
        # Nothing that is left out counts less.
        self.assertEqual(self.both("events", "--limit", "1", "--severity", "critical"), (1, [2]))
        self.give([event(0, "warning"), event(1, "info")])
        self.assertEqual(self.both("events", "--limit", "1"), (1, [1]))

    def test_following_events_of_a_severity(self):
        self.give([event(i, SEVERITIES[i % 3]) for i in range(3)])
        done = run_until(2, "events", "--follow", "--severity", "warning", *self.at)
        self.assertEqual(shown(done[1]), [1, 2])

    def test_rows_of_tables(self):
        for name in ("links", "imbalance"):
            self.server.body = (CASES / f"{name}.json").read_bytes()
            records = json.loads(self.server.body)["records"]
            for sort in ((), ("--sort", "flows")):
                rows = run(name, *sort, *self.at)[1].splitlines()
                some = run(name, "--limit", "1", *sort, *self.at)[1].splitlines()
                self.assertEqual(some[0], f"{rows[0]}, 1 of {len(records)} shown")
                self.assertEqual(some[1:], rows[1:3])
            self.assertEqual(self.server.target, f"/api/v1/{name}")
            lines = run(name, "--limit", "1", "--json", *self.at)[1].splitlines()
            self.assertEqual([json.loads(line) for line in lines], records[:1])

    def give_parts(self, **parts):
        """The answers that explain puts together, and the lists of events and of what is not there."""
        empty = json.dumps({"fabric": "lab", "records": []}).encode()
        topology = json.loads((CASES / "topology.json").read_text())
        self.server.routes = {f"/api/v1/{name}": empty for name in ("hosts", "qps", "paths", "doctor", "links",
                                                                    "imbalance", "events")}
        self.server.routes["/api/v1/topology"] = json.dumps(topology).encode()
        self.server.routes.update({f"/api/v1/{name}": json.dumps({"fabric": "lab", "records": records}).encode()
                                   for name, records in parts.items()})
        # Neither link, group nor job.
        self.server.routes["/api/v1/explain"] = b'{"records":[],"slowest":[],"slowest_links":[],"paths":[]}'

        class Answering(Handler):
            def do_GET(handler):
                self.server.code = 404 if "explain?link" in handler.path or "explain?group" in handler.path else 200
                super().do_GET()

        self.server.RequestHandlerClass = Answering
        return topology

    def test_explain_a_host(self):
        agent = {"source": "gpu01", "host": "gpu01", "user": "fabrictrace", "time_ms": START_MS, "queue_pairs": 3,
                 "resolved": 2, "no_destination": 1,
                 "missing_capabilities": [{"what": "owners", "capability": "CAP_SYS_PTRACE"}]}
        findings = [{"host": "gpu01", "severity": "warning", "text": "it is late"},
                    {"host": "gpu02", "severity": "warning", "text": "it is early"}]
        qps = json.loads((CASES / "qps.json").read_text())["records"]
        paths = json.loads((CASES / "paths.json").read_text())["records"]
        topology = self.give_parts(hosts=[agent], doctor=findings, qps=qps, paths=30 * paths,
                                   events=[event(1, "warning")])
        rc, out, err = run("explain", "gpu01", *self.at)
        self.assertEqual((rc, err), (0, ""))
        for text in ("host gpu01", "leaf1 Ethernet1, leaf2 Ethernet1", "10.0.1.2, fd00:1::2",
                     "Agent: gpu01, user fabrictrace, reported at",
                     "; 3 queue pairs: 2 with their flows, 1 whose destination the host cannot read",
                     "does not see owners: needs CAP_SYS_PTRACE", "it is late", "event 1.",
                     f"Connected queue pairs: {len(qps)}\n",
                     f"Flows: {30 * len(paths)}, the first 20; fabrictrace paths --host gpu01 lists them"):
            self.assertIn(text, out)
        self.assertNotIn("early", out)
        for address in ("10.0.1.2", "fd00:1:0::2"):
            self.assertEqual(run("explain", address, *self.at), (rc, out, err))
        self.assertIn("host or switch '10.9.9.9'", run("explain", "10.9.9.9", *self.at)[2])
        self.assertEqual(len(out.split("\nFlows: ")[1].splitlines()), 22)
        answer = json.loads(run("explain", "gpu01", "--json", *self.at)[1])
        self.assertEqual(answer["host"], topology["hosts"][0])
        self.assertEqual((answer["agents"], answer["findings"], answer["queue_pairs"]), ([agent], findings[:1], qps))
        self.give_parts()
        out = run("explain", "gpu01", *self.at)[1]
        for text in ("No agent reports from this host", "Connected queue pairs: 0",
                     "No finding of the doctor is about it", "No active events", "Flows: 0"):
            self.assertIn(text, out)

    def test_explain_a_switch(self):
        groups = [{"scope": "group", "name": "leaf1/up", "links": 2, "flows": 7},
                  {"scope": "group", "name": "leaf11/up", "links": 2}, {"scope": "layer", "name": "leaf1/up"}]
        links = [{"switch": "leaf1", "port": "Ethernet51", "counter_bytes": 7},
                 {"switch": "leaf1", "port": "Ethernet1"}]
        findings = [{"switch": "leaf1", "severity": "warning", "text": "no samples"}]
        topology = self.give_parts(doctor=findings, imbalance=groups, links=links, events=[event(2, "critical")])
        rc, out, err = run("explain", "leaf1", *self.at)
        self.assertEqual((rc, err), (0, ""))
        for text in ("switch leaf1 (leaf)", "Addresses: 192.0.2.11\n", "Port-Channel1", "leaf1/up",
                     "Links: 2, counters of 1", "no samples", "event 2.", "Flows: 0"):
            self.assertIn(text, out)
        self.assertNotIn("leaf11", out)
        answer = json.loads(run("explain", "leaf1", "--json", *self.at)[1])
        self.assertEqual((answer["switch"], answer["groups"]), (topology["switches"][0], groups[:1]))
        self.assertNotIn("records", answer)

    def test_explain_what_nobody_knows(self):
        self.give_parts()
        rc, out, err = run("explain", "typo", *self.at)
        self.assertEqual((rc, out), (1, ""))
        self.assertIn("knows no link, group, job, host or switch 'typo'", err)

    def test_a_column_that_is_none(self):
        """Nothing is printed before the complaint."""
        for name in ("links", "imbalance", "events", "qps", "paths", "ranks"):
            self.server.body = (CASES / f"{'events-all' if name == 'events' else name}.json").read_bytes()
            for option in ("--sort", "--columns"):
                rc, out, err = run(name, option, "typo", *self.at)
                self.assertEqual((rc, out), (64, ""), name)
                self.assertIn("there is no column 'typo'", err)

    def test_filters_reach_the_daemon(self):
        self.give([{}])
        for words, target in (("collisions --job 88 --host gpu01 --switch leaf1",
                               "events?kind=collision&job=88&switch=leaf1&host=gpu01"),
                              ("ranks --job 88 --host gpu01", "ranks?job=88&host=gpu01"),
                              ("qps --job 88 --limit 3", "qps?job=88&limit=3"),
                              ("matrix --job 88 --op Send", "matrix?job=88&op=Send"),
                              ("spread --job 88", "spread?job=88"), ("rhythm --job 88", "rhythms?job=88"),
                              ("imbalance --group leaf1/up", "imbalance?scope=group&name=leaf1%2Fup"),
                              ("imbalance --verdict fault --at @1795170000", "imbalance?state=fault&at_ms=1795170000000")):
            self.assertEqual(run(*words.split(), *self.at)[0], 0, words)
            self.assertEqual(self.server.target, f"/api/v1/{target}")

    def test_nothing_of_what_was_asked_for(self):
        """An empty answer to a filter does not say that all is well, or that nothing is known."""
        self.server.routes = {"/api/v1/topology": b'{"hosts":[{"name":"gpu01"}]}',
                              "/api/v1/explain": b'{"records":[{}],"paths":[]}'}
        self.give([])
        for words, text in (("collisions --host gpu01", "no such collisions"), ("collisions", ", no collisions"),
                            ("events --host gpu01", "no such active events"), ("events", "no active events"),
                            ("ranks --job 88", "no rank that was asked for"), ("ranks", "no communicator is known"),
                            ("matrix --job 88 --op Send", "no communicator that was asked for"),
                            ("rhythm --job 88", "no flow of this job"), ("rhythm", "no flow of a job"),
                            ("spread --job 88", "no flow that was asked for"),
                            ("imbalance --verdict fault", "nothing that was asked for")):
            rc, out, err = run(*words.split(), *self.at)
            self.assertEqual((rc, err), (0, ""), words)
            self.assertIn(text, out)
        self.server.routes["/api/v1/explain"] = b'{"records":[],"paths":[]}'
        for words in ("collisions", "ranks", "qps", "matrix --op Send", "spread", "rhythm"):
            rc, out, err = run(*words.split(), "--job", "typo", *self.at)
            self.assertEqual((rc, out), (64, ""), words)
            self.assertIn("no job 'typo' is known", err)

        class Answering(Handler):
            def do_GET(handler):
                self.give([{}] if "qps" in handler.path and "state" not in handler.path else [])
                super().do_GET()

        handler, self.server.RequestHandlerClass = self.server.RequestHandlerClass, Answering
        self.assertEqual(run("qps", "--job", "88", "--state", "no_peer", *self.at),
                         (0, "no such queue pair is listed by an agent\n", ""))
        self.server.RequestHandlerClass = handler
        self.give([])
        self.server.routes["/api/v1/links"] = b'{"records":[{"group":"leaf1/up"}]}'
        rc, out, err = run("imbalance", "--group", "typo", "--verdict", "even", *self.at)
        self.assertEqual((rc, out, err), (64, "", "fabrictrace: no group 'typo' is known: fabrictrace imbalance "
                                                 "lists them\n"))

    def on_terminal(self, width, case, *words):
        self.server.body = (CASES / f"{case}.json").read_bytes()
        return run_on_terminal(width, *words, *self.at, env=environment(NO_COLOR="1"))[1]

    def test_a_narrow_terminal(self):
        """Since when and how grave, the load of a hop's link: nobody who is called at night may miss these. What
        has no room is said to be left out."""
        left_out = "(columns are left out: --wide shows them)"
        out = self.on_terminal(80, "events-all", "events")
        self.assertEqual(out.splitlines()[1].split(), ["SINCE", "SEVERITY", "KIND", "WHAT"])
        message = json.loads((CASES / "events-all.json").read_text())["records"][0]["message"]
        rows = [" ".join(line[24:].split()) for line in out.splitlines()]
        self.assertIn(message.split()[-1], " ".join(rows))
        self.assertLessEqual(max(map(len, out.splitlines()[1:])), 80)
        self.assertNotIn("...", out)
        self.assertNotIn(left_out, out)
        self.assertIn("96 % used", self.on_terminal(80, "explain", "explain", FLOW))
        out = self.on_terminal(80, "links", "links")
        self.assertEqual(out.splitlines()[1].split()[-2:], ["DISCARDS", "ERRORS"])
        self.assertEqual(out.splitlines()[-1], left_out)
        self.assertLessEqual(max(map(len, out.splitlines()[1:])), 80)
        for width, words in ((200, ["links"]), (80, ["links", "--wide"])):
            self.assertNotIn(left_out, self.on_terminal(width, "links", *words))
        self.assertNotIn(left_out, run("links", *self.at)[1])
        self.assertIn("NOT PREDICTED", self.on_terminal(60, "hash", "hash", "--wide"))

    def test_why_a_path_is_not_resolved(self):
        """Each reason that there is, as words that need no manual."""
        table = (SOURCE / "lib/fabric/evidence.c").read_text().split("*ft_reason_name(")[1].split("};")[0]
        reasons = re.findall(r'= "([a-z_]+)"', table)
        self.assertGreaterEqual(len(reasons), 10)
        flow = {"src": "10.9.9.9", "dst": "10.0.4.6", "sport": 1, "dport": 4791, "proto": 17}
        said = {}
        for reason in reasons:
            path = {"flow": flow, "state": "unresolved", "reason": reason}
            self.server.body = json.dumps({"fabric": "lab", "records": [path], "path": path}).encode()
            out = run("explain", "10.9.9.9:1-10.0.4.6", *self.at)[1]
            self.assertRegex(out, r"\n  unresolved: \w+( [\w.,-]+){3,}\n", reason)
            self.assertNotIn("_", out)
            said[reason] = out.split("unresolved: ")[1].splitlines()[0]
            self.assertIn(said[reason], run("paths", *self.at)[1])
        self.assertEqual(len(set(said.values())), len(reasons))
        self.assertIn("10.9.9.9", said["unknown_source"])
        self.assertIn("10.0.4.6", said["unknown_destination"])
        one = {"flow": flow, "state": "partial", "reason": "unconfirmed", "hops": [{"switch": "leaf1"}],
               "candidates": 1}
        self.give([one, {**one, "candidates": 4}, {**one, "reason": "of_tomorrow"}])
        paths = [line.split("  ")[-1] for line in run("paths", *self.at)[1].splitlines()[2:]]
        self.assertEqual(paths, [f"leaf1, one path is left: {said['unconfirmed']}", "leaf1, one of 4 paths",
                                 "leaf1, one path is left: of_tomorrow"])

    def ask_history(self, found, *words):
        """What the daemon is asked for, which has records of one of these alone; exit status, text, complaint."""
        asked = []

        class Answering(Handler):
            def do_GET(handler):
                asked.append(handler.path.removeprefix("/api/v1/"))
                self.give([{"flows": i} for i in range(4)] if asked[-1].startswith(found) else
                          [{"window_start_ms": START_MS, "window_end_ms": START_MS + 10000}] if asked[-1] == "windows"
                          else [])
                super().do_GET()

        self.server.RequestHandlerClass = Answering
        return asked, run("history", *words, *self.at)

    def test_history_is_of_a_link_a_group_or_a_flow(self):
        link, *groups = (f"history?kind={kind}&key={scope}leaf1%2Fup" for kind, scope in
                         (("link", ""), ("imbalance", "group%2F"), ("imbalance", "layer%2F"), ("imbalance", "fabric%2F")))
        self.assertEqual(self.ask_history(link, "leaf1/up")[0], [link])
        self.assertEqual(self.ask_history(link, "leaf1", "up")[0], [link])
        for i, group in enumerate(groups):
            asked, done = self.ask_history(group, "leaf1/up")
            self.assertEqual((asked, done[0]), ([link, *groups[:i + 1]], 0))
        time = ["--since", "@1795170000", "--until", "@1795170060"]
        flow = "history?kind=path&key=10.0.1.2%2C10.0.4.6%2C50003%2C4791%2C17"
        asked, done = self.ask_history(flow, "10.0.1.2:50003-10.0.4.6", *time)
        self.assertEqual((asked, done[0]), ([f"{flow}&from_ms=1795170000000&to_ms=1795170060000"], 0))
        lines = self.ask_history(link, "leaf1/up", "--limit", "3", "--json")[1][1]
        self.assertEqual([json.loads(line)["flows"] for line in lines.splitlines()], [1, 2, 3])

    def test_history_of_what_nobody_knows(self):
        kept = "; its windows are from 2026-11-20 10:20:00 to 2026-11-20 10:20:10\n"
        for words, text in ((["typo"], "no window that fabrictraced keeps has the link or group 'typo'" + kept),
                            (["leaf1", "typo"], "has the link 'leaf1/typo'" + kept),
                            (["leaf1/up", "--since", "1m"], "no window of that time has the link or group 'leaf1/up'"),
                            (["10.0.1.2:1-10.0.4.6"], "has the flow '10.0.1.2:1-10.0.4.6:4791'" + kept)):
            asked, (rc, out, err) = self.ask_history("nothing", *words)
            self.assertEqual((rc, out, asked[-1]), (1, "", "windows"))
            self.assertIn(text, err)

    def test_usage(self):
        for words, text in ((["events", "--severity", "grave"],
                             "'grave' is not a severity: these are: info warning critical"),
                            (["events", "--severity", "critical", "--severity", "x"], "is not a severity"),
                            (["events", "--follow", "--limit", "3"], "cannot be combined with --limit"),
                            (["imbalance", "--loads", "1,2", "--limit", "3"], "leave out --limit"),
                            (["imbalance", "--verdict", "foul"],
                             "'foul' is not a verdict: these are: fault uneven even idle"),
                            (["history"], "takes one link (leaf1/Ethernet51), group (leaf1/up) or flow"),
                            (["history", "a/b", "--until", "1m"], "--until goes with --since"),
                            (["history", "a/b", "--at", "1m"], "does not take --at"),
                            (["explain"], "group (leaf1/up), job, host or switch"),
                            (["links", "--severity", "info"], "does not take --severity")):
            rc, out, err = run(*words)
            self.assertEqual((rc, out), (64, ""), words)
            self.assertIn(text, err)
        self.assertEqual(run("--complete", "events", "--severity", "c")[1].split(), ["critical"])
        self.assertEqual(run("--complete", "imbalance", "--verdict", "")[1].split(),
                         ["fault", "uneven", "even", "idle"])


if __name__ == "__main__":
    unittest.main()
