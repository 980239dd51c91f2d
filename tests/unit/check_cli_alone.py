#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The program fabrictrace where no daemon answers it: one that hangs, none at all, commands that need
none, and what it says of a command line that is wrong. Runs in the build folder."""

import json
import socket
import subprocess
import unittest

from cli_rig import FLOW, PROGRAM, SOURCE, Server, run, run_on_terminal


class Mute:
    """Takes connections and never says a word: a daemon that hangs."""

    def __enter__(self):
        self.socket = socket.create_server(("127.0.0.1", 0))
        return f"127.0.0.1:{self.socket.getsockname()[1]}"

    def __exit__(self, *_):
        self.socket.close()


class Alone(unittest.TestCase):
    def test_a_daemon_that_hangs(self):
        with Mute() as endpoint:
            rc, out, err = run("paths", "--endpoint", endpoint)
        self.assertEqual((rc, out), (69, ""))
        self.assertIn("no answer within 5 seconds", err)

    def test_no_daemon(self):
        server = Server()
        server.shutdown()
        server.server_close()
        rc, out, err = run("paths", "--endpoint", server.endpoint)
        self.assertEqual((rc, out), (69, ""))
        self.assertIn("fabrictraced does not answer", err)
        self.assertIn(server.endpoint, err)
        self.assertIn("systemctl status fabrictraced", err)

    def test_usage(self):
        for words, text in (
            ([], "Usage: fabrictrace COMMAND"),
            (["foo"], "no command 'foo'\n"),
            (["evnts"], "no command 'evnts'; did you mean 'events'?"),
            (["help", "foo"], "no command 'foo'"),
            (["paths", "--group", "x"], "does not take --group"),
            (["paths", "--state", "x"], "'x' is not a state: these are: resolved partial multipath unresolved"),
            (["paths", "--state", "resolved", "--state", "x"], "'x' is not a state"),
            (["paths", "--limit", "0"], "--limit"),
            (["paths", "-xy"], "unknown option '-x'"),
            (["paths", "--host=a", "-xy"], "unknown option '-x'"),
            (["paths", "-\xe4"], "unknown option '-\\xc3'"),
            (["paths", "--json=1"], "option '--json' takes no value"),
            (["paths", "--help=1"], "option '--help' takes no value"),
            (["paths", "--s", "x"], "option '--s' may be one of several"),
            (["paths", "--stranger=1"], "unknown option '--stranger'"),
            (["paths", "--columns", ""], "--columns takes names"),
            (["diagnose", "--operations", "a", "--replay", "b"], "not both"),
            (["topology", "--export", "--json"], "--export or --json"),
            (["matrix", "--csv", "--json"], "one of --csv, --svg and --json"),
            (["matrix", "--csv", "--svg", "-"], "one of --csv, --svg and --json"),
            (["links", "--json", "--sort", "bytes"], "--sort and --columns are of tables"),
            (["qps", "--columns", "host", "--json"], "--sort and --columns are of tables"),
            (["consume", "--json", "--sort", "host", "x"], "--sort and --columns are of tables"),
            (["replay", "--json", "a"], "'--json' is none"),
            (["replay", "--", "a"], "'--' is none"),
            (["replay", __file__, "linsk"], "no command 'linsk'; did you mean 'links'?"),
            (["links", "more"], "does not take 'more'"),
            (["matrix", "--by", "x"], "rank, gpu or host"),
            (["paths", "--csv"], "does not take --csv"),
            (["ranks", "--op", "x"], "does not take --op"),
            (["top", "--json"], "does not take --json"),
            (["top", "--interval", "0"], "--interval"),
            (["events", "--follow", "--sort", "kind"], "--follow prints lines"),
            (["live", "--endpoint", "a:1"], "does not take --endpoint"),
            (["live", "--json"], "does not take --json"),
            (["links", "--at", "soon"], "'soon' is not one"),
            (["events", "--follow", "--at", "-5m"], "cannot be combined with --at"),
            (["events", "--follow", "--since", "5m"], "cannot be combined with --since"),
            (["events", "--since", "1h", "--at", "5m"], "takes --at or --since, not both"),
            (["events", "--until", "5m"], "--until goes with --since"),
            (["events", "--since", "5m", "--until", "1h"], "--until is not after --since"),
            (["events", "--since", "soon"], "--since takes a time that is over"),
            (["links", "--since", "1h"], "does not take --since"),
            (["imbalance", "--loads", "1,2", "--at", "-5m"], "cannot be combined with --at"),
            (["paths", "--at", "-5m"], "--at needs --flow"),
            (["explain", FLOW, "--at", "-5m"], "does not take --at"),
            (["analyze"], "takes one capture"),
            (["analyze", "a", "b"], "takes one capture"),
            (["live", "--serve"], "does not take --serve"),
            (["live", "here"], "does not take 'here'"),
            (["paths", "--topology", "x"], "does not take --topology"),
            (["explain"], "takes one flow"),
            (["history", "10.0.0.1"], "is not a flow"),
            (["explain", ""], "is not a flow"),
            (["explain", "leaf1", "Ethernet51", "more"], "takes one flow"),
            (["plan", "--topology", "x"], "takes a job, or --topology and --flows"),
            (["whatif", "--chakra", "x"], "--chakra, --network and --system"),
            (["plan", "--topology", "x", "--flows", "y", "z"], "does not take 'z'"),
            (["imbalance", "--loads", "7,,1"], "'' is not valid"),
            (["imbalance", "--loads", "7,-1"], "'-1' is not valid"),
            (["links", "--endpoint"], "needs a value"),
            (["links", "--endpoint", "nonsense"], "Write the endpoint as HOST:PORT"),
        ):
            rc, out, err = run(*words)
            self.assertEqual((rc, out), (64, ""), words)
            self.assertIn(text, err)

    def test_help_and_version(self):
        self.assertIn("Commands:", run("--help")[1])
        self.assertIn("--loads", run("imbalance", "-h")[1])
        self.assertEqual(run("help"), run("--help"))
        self.assertEqual(run("version"), run("--version"))
        self.assertEqual(run("help", "links"), run("links", "--help"))
        self.assertEqual(run("paths", "--host", "help", "-h"), run("paths", "-h"))
        usage = run("plan", "-h")[1].split("\n\n")[0]
        self.assertIn("\n   or: fabrictrace plan --topology FILE --flows FILE", usage)
        for width in (60, 80):
            for command in ("", "plan", "whatif", "events"):
                lines = run_on_terminal(width, *command.split(), "-h")[1].splitlines()
                self.assertLessEqual(max(map(len, lines)), width, command)
        self.assertRegex(run("-V")[1], r"^fabrictrace \d+\.\d+\.\d+\n$")

    def test_full_disk_is_told(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([PROGRAM, "-h"], stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 74)
        self.assertIn("No space left", done.stderr)

    # fim, max/mean, cov, jain, effective links, chi-square: worked out by hand from fabrictrace-records(7)
    KNOWN = {
        "4,4,4,4": (0, 1, 0, 1, 4, 0),
        "16,0,0,0": (150, 4, 1.7321, 0.25, 1, 48),
        "8,4,4,0": (50, 2, 0.7071, 0.6667, 2.8284, 8),
        "7,5,3,1": (50, 1.75, 0.5590, 0.7619, 3.3613, 5),
        "3,2,2,1,0,4,2,2": (37.5, 2, 0.5590, 0.7619, 6.5107, 5),
        "10,12,9,11,8,14,10,6": (17.5, 1.4, 0.2291, 0.9501, 7.7880, 4.2),
    }

    def test_a_diagnosis_without_a_daemon(self):
        table = SOURCE / "tests/fuzz/corpus/csv/hang"
        code, out, err = run("diagnose", "--operations", str(table), "--json")
        record = json.loads(out)
        self.assertEqual((code, err), (0, ""))
        self.assertEqual(
            [record[k] for k in ("schema", "syndrome", "rank", "host", "communicator", "operation")],
            ["fabrictrace.diagnosis.v1", "noncomm_hang", 2, "node0", "world", "AllReduce"],
        )
        self.assertEqual(record["ranks_waiting"], [0, 1, 3])
        code, out, err = run("diagnose", "--operations", str(table))
        self.assertEqual((code, out.split()[0]), (0, "SYNDROME"))
        self.assertIn("never entered", out)
        code, out, err = run("diagnose", "--operations", str(SOURCE / "tests/fuzz/corpus/csv/bad"))
        self.assertEqual((code, out), (65, ""))
        self.assertIn("bad:3: ", err)
        self.assertEqual(run("diagnose", "--operations", "/nonexistent")[0], 66)

    def test_diagnoses_without_room_are_counted(self):
        lines = ["rank,host,communicator,function,bytes,start_ns,end_ns,peer,sequence",
                 "600,h,w,f,8,60000000000,60000000001,,0"]
        for rank in range(600):
            peer, function = (rank + 1, "Send") if rank % 2 == 0 else (rank - 1, "Recv")
            for k in range(4):
                end = "" if k == 3 else 5000000 * (k + 1)
                lines.append(f"{rank},h,p,{function},8,{5000000 * k + 1},{end},{peer},{k}")
        done = subprocess.run([PROGRAM, "diagnose", "--operations", "-", "--json"], input="\n".join(lines), text=True,
                              capture_output=True, check=False)
        self.assertEqual((done.returncode, len(done.stdout.splitlines())), (0, 256))
        self.assertEqual(done.stderr, "fabrictrace diagnose: 44 more were found than there is room for\n")

    def test_loads_give_the_known_answers(self):
        names = ("FIM", "MAX/MEAN", "COV", "JAIN", "EFFECTIVE", "CHI-SQUARE")
        keys = ("fim", "max_over_mean", "cov", "jain", "effective_links")
        for loads, answer in self.KNOWN.items():
            rc, out, err = run("imbalance", "--loads", loads)
            self.assertEqual((rc, err), (0, ""))
            shown = {}
            for line in out.splitlines():
                words = line.replace("LINKS", "").split()
                shown[words[0]] = words[1]
            for name, value in zip(names, answer):
                self.assertEqual(shown[name], f"{value:.4f}", (loads, name))
            record = json.loads(run("imbalance", "--json", "--loads", loads)[1])
            self.assertEqual(record["schema"], "fabrictrace.imbalance.v1")
            for key, value in zip(keys, answer):
                self.assertAlmostEqual(record[key], value, 4, (loads, key))

    def test_loads_are_judged(self):
        for loads, verdict in (
            ("4,4,4,4", "even"),
            ("8,4,4,0", "uneven"),
            ("16,0,0,0", "fault"),
            ("0,0", "idle"),
        ):
            record = json.loads(run("imbalance", "--json", "--loads", loads)[1])
            self.assertEqual(record["verdict"], verdict, loads)
        record = json.loads(run("imbalance", "--json", "--loads", "16,0,0,0")[1])
        self.assertAlmostEqual(record["fim_expected"], 33.780, 3)
        self.assertNotIn("fim", json.loads(run("imbalance", "--json", "--loads", "0,0")[1]))


if __name__ == "__main__":
    unittest.main()
