#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The program fabrictrace as a person runs it: against an HTTP server that gives prepared answers.

Runs in the build folder, as a test of automake. Each text in tests/unit/cli is what the program
prints for the answer of the same name. With --write the texts are written anew.
"""

import fcntl
import http.server
import json
import os
import pathlib
import pty
import socket
import struct
import subprocess
import sys
import termios
import threading
import time
import unittest

SOURCE = pathlib.Path(os.environ.get("srcdir", ".")).resolve()
CASES = SOURCE / "tests/unit/cli"
PROGRAM = pathlib.Path("cli/fabrictrace").resolve()
FLOW = "10.0.1.2:50003-10.0.4.6"

# answer: words of the command that shows it
SHOWN = {
    "paths": ["paths"],
    "links": ["links"],
    "imbalance": ["imbalance"],
    "imbalance-partial": ["imbalance"],
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
    "explain": ["explain", FLOW],
    "explain-multipath": ["explain", FLOW],
    "explain-paired": ["explain", FLOW],
    "explain-partial": ["explain", FLOW],
    "explain-lag": ["explain", FLOW],
    "explain-unresolved": ["explain", FLOW],
    "explain-link": ["explain", "leaf2/Ethernet54"],
    "explain-group": ["explain", "leaf2/up"],
    "explain-job": ["explain", "88"],
}
WRITE = "--write" in sys.argv


class Server(http.server.ThreadingHTTPServer):
    """Answers every GET with `body` and `code`, or with what `routes` has for its path; remembers
    the last target."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.body, self.code, self.target, self.routes = b"{}", 200, None, {}
        threading.Thread(target=self.serve_forever, daemon=True).start()
        self.endpoint = f"127.0.0.1:{self.server_address[1]}"


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.target = self.path
        self.send_response(self.server.code)
        body = self.server.routes.get(self.path.split("?")[0], self.server.body)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


def environment(**more):
    env = {k: v for k, v in os.environ.items() if not k.startswith("FABRICTRACE_")}
    return {**env, "TZ": "UTC", "TERM": "xterm", **more}


def run(*words, env=None):
    done = subprocess.run(
        [PROGRAM, *words], env=env or environment(), capture_output=True, text=True, timeout=300
    )
    return done.returncode, done.stdout, done.stderr


def run_on_terminal(width, *words, env=None):
    """What the program writes to a terminal that many columns wide."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    with subprocess.Popen([PROGRAM, *words], env=env or environment(), stdout=slave) as process:
        os.close(slave)
        text = b""
        while True:
            try:
                chunk = os.read(master, 65536)
            except OSError:  # Linux: the other end is closed
                break
            if not chunk:
                break
            text += chunk
    os.close(master)
    return process.returncode, text.decode().replace("\r\n", "\n")


def status(name, words):
    """1 where the doctor or the events say that something stands that is more than a note."""
    records = json.loads((CASES / f"{name}.json").read_text()).get("records", ())
    return int(words[0] in ("diagnose", "doctor", "events") and
               any(r.get("severity") in ("warning", "critical") for r in records))


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
                rc, out, _ = run(*words, "--json", *self.at)
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
        self.server.routes = {
            f"/api/v1/{name}": (CASES / f"{case}.json").read_bytes()
            for name, case in (
                ("imbalance", "imbalance"), ("links", "links"), ("events", "events-all"))
        }

    def test_events_of_a_kind(self):
        self.give("events-all")
        run("events", "--kind", "link_down", *self.at)
        self.assertEqual(self.server.target, "/api/v1/events?kind=link_down")

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
        for words in (("--sort", "nothing"), ("--columns", "link,nothing"), ("--sort", "")):
            rc, _, err = run("links", *words, *self.at)
            self.assertEqual(rc, 64)
            self.assertIn("names of columns", err)

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
        self.assertIn("knows no link, group or job 'nobody'", err)
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
                self.assertEqual(run(*words, *self.at)[0], 0, (words, body))


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
            (["foo"], "no command 'foo'"),
            (["paths", "--group", "x"], "does not take --group"),
            (["paths", "--state", "x"], "'x' is not a state"),
            (["paths", "--limit", "0"], "--limit"),
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
            (["events", "--follow", "--at", "-5m"], "goes without --at"),
            (["imbalance", "--loads", "1,2", "--at", "-5m"], "goes without --at"),
            (["paths", "--at", "-5m"], "--at goes with --flow"),
            (["explain", FLOW, "--at", "-5m"], "does not take --at"),
            (["analyze"], "takes one capture"),
            (["analyze", "a", "b"], "takes one capture"),
            (["live", "--serve"], "does not take --serve"),
            (["live", "here"], "does not take 'here'"),
            (["paths", "--topology", "x"], "does not take --topology"),
            (["explain"], "takes one flow"),
            (["explain", "10.0.0.1"], "is not a flow"),
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
        self.assertRegex(run("-V")[1], r"^fabrictrace \d+\.\d+\.\d+\n$")

    def test_full_disk_is_told(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([PROGRAM, "-h"], stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 74)
        self.assertIn("No space left", done.stderr)

    # fim, max/mean, cov, jain, effective links, chi-square: the known answers of METRICS.md
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
    sys.argv = [a for a in sys.argv if a != "--write"]
    unittest.main()
