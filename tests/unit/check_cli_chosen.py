#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The program fabrictrace: what --severity and --limit choose of an answer, and what explain puts
together of a host and a switch. Runs in the build folder."""

import json
import unittest

from cli_rig import CASES, Server, run, run_until

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
        self.assertIn(": 6, 6 of them still active", run("events", "--since", "@1", "--severity", "warning", *self.at)[1])
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

    def test_usage(self):
        for words, text in ((["events", "--severity", "grave"],
                             "'grave' is not a severity: these are: info warning critical"),
                            (["events", "--severity", "critical", "--severity", "x"], "is not a severity"),
                            (["events", "--follow", "--limit", "3"], "cannot be combined with --limit"),
                            (["imbalance", "--loads", "1,2", "--limit", "3"], "leave out --limit"),
                            (["links", "--severity", "info"], "does not take --severity")):
            rc, out, err = run(*words)
            self.assertEqual((rc, out), (64, ""), words)
            self.assertIn(text, err)
        self.assertEqual(run("--complete", "events", "--severity", "c")[1].split(), ["critical"])


if __name__ == "__main__":
    unittest.main()
