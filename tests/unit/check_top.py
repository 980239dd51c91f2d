#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""fabrictrace top on a terminal, which is tmux's: what stands on it after each key, against an HTTP
server that gives prepared answers, hangs, refuses and comes back. Runs in the build folder."""
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[1])]
import speed  # noqa: E402
from cli_rig import CASES, PROGRAM, Handler, Server, environment  # noqa: E402

WAIT_S = 120
MARK = "\x1b[7m"
ANSWERS = {"imbalance": "imbalance", "links": "links", "events": "events-all", "paths": "paths",
           "ranks": "ranks", "doctor": "doctor", "explain": "explain-link"}


class Terminal:
    """A program on a terminal of so many columns and lines; what stty says before and after it."""

    def __init__(self, width, height, *words, **env):
        self.folder = tempfile.TemporaryDirectory()
        self.socket = f"{self.folder.name}/tmux"
        command = " ".join(f"'{w}'" for w in words)
        folder = self.folder.name
        script = Path(folder, "run.sh")
        more = "".join(f"export {name}={value}\n" for name, value in env.items())
        script.write_text(f"{more}trap : INT\nstty -a >{folder}/before\n{command} 2>{folder}/err\n"
                          f"echo $? >{folder}/rc.part\nstty -a >{folder}/after\n"
                          f"mv {folder}/rc.part {folder}/rc\nexec cat\n")
        self.tmux("new-session", "-d", "-x", str(width), "-y", str(height), f"sh {script}",
                  env=environment(NO_COLOR="1", LC_ALL="C.UTF-8"))

    def tmux(self, *words, env=None):
        return subprocess.run(["tmux", "-f", "/dev/null", "-S", self.socket, *words], env=env,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              check=True).stdout

    def lines(self):
        return self.tmux("capture-pane", "-p").split("\n")[:-1]

    def marked(self):
        """The line that is marked, "" where none is."""
        for line in self.tmux("capture-pane", "-p", "-e").split("\n"):
            if MARK in line:
                return re.sub(r"\x1b\[[0-9;]*m", "", line).rstrip()
        return ""

    def keys(self, *names):
        self.tmux("send-keys", *names)

    def until(self, what, condition):
        value = speed.wait(condition, WAIT_S)
        if not value:
            raise AssertionError(f"not {what}:\n" + "\n".join(self.lines()))
        return value

    def until_shows(self, *texts):
        return self.until(f"there: {texts}", lambda: all(t in "\n".join(self.lines()) for t in texts))

    def end(self):
        """The exit status, once it has ended."""
        rc = Path(self.folder.name, "rc")
        self.until("over", rc.exists)
        return int(rc.read_text())

    def read(self, name):
        return Path(self.folder.name, name).read_text()

    def close(self):
        # Who loses its terminal is sent SIGCONT, which undoes the SIGSTOP by which LeakSanitizer stops a
        # program that ends: both would wait for good. So it ends first.
        subprocess.run(["tmux", "-S", self.socket, "send-keys", "q"], capture_output=True, check=False)
        speed.wait(Path(self.folder.name, "rc").exists, 10)
        subprocess.run(["tmux", "-S", self.socket, "kill-server"], capture_output=True, check=False)
        self.folder.cleanup()


class Patient(Server):
    def handle_error(self, request, client_address):
        """Who asks may go away before he has his answer."""


class Top(unittest.TestCase):
    def setUp(self):
        self.server = Patient()
        self.server.routes = {f"/api/v1/{name}": (CASES / f"{case}.json").read_bytes()
                              for name, case in ANSWERS.items()}

    def tearDown(self):
        self.server.shutdown()
        self.server.server_close()

    def top(self, width=80, height=24, interval="1", **env):
        t = Terminal(width, height, PROGRAM, "top", "--interval", interval, "--endpoint",
                     self.server.endpoint, **env)
        self.addCleanup(t.close)
        return t

    def many_links(self, count):
        answer = json.loads((CASES / "links.json").read_bytes())
        one = answer["records"][0]
        answer["records"] = [{**one, "switch": f"leaf{i:03}", "port": "up", "bytes": 1000 * (i * 37 % count)}
                             for i in range(count)]
        self.server.routes["/api/v1/links"] = json.dumps(answer).encode()
        return [f"leaf{r['switch'][4:]} up" for r in sorted(answer["records"], key=lambda r: -r["bytes"])]

    def test_the_picture_fits_and_the_terminal_is_left_as_it_was(self):
        t = self.top(80, 16)
        t.until_shows("link_down", "GROUP", "LINK", "1 overview", "q quits")
        self.assertEqual(len(t.lines()), 16)
        t.keys("q")
        self.assertEqual(t.end(), 0)
        self.assertEqual(t.read("before"), t.read("after"))
        self.assertEqual(t.read("err"), "")
        t.until("the screen before", lambda: not "".join(t.lines()).strip())

    def test_signals_and_keys_end_it(self):
        for key in ("q", "Q", "C-c"):
            t = self.top()
            t.until_shows("link_down")
            t.keys(key)
            self.assertEqual(t.end(), 0)
            self.assertEqual(t.read("before"), t.read("after"))

    def test_each_list_has_its_key(self):
        t = self.top(100, 40)
        for key, text in (("2", "topology_change"), ("3", "VERDICT"), ("4", "directed links"), ("5", "64 flows"),
                          ("6", "4 ranks"), ("7", "3 findings"), ("1", "link_down")):
            t.keys(key)
            t.until_shows(text)

    def test_a_long_list_scrolls(self):
        self.many_links(200)
        t = self.top()
        t.keys("4")
        t.until_shows("200 directed links", "leaf000 up")
        t.keys("End")
        t.until_shows("leaf199 up")
        self.assertIn("leaf199 up", t.until("marked", t.marked))
        t.keys("PPage")
        t.until("a page up", lambda: "leaf177 up" in t.marked())
        t.keys("Home")
        t.until_shows("directed links", "leaf000 up")
        for n in range(30):
            t.keys("Down")
        t.until("30 rows down", lambda: "leaf030 up" in t.marked())
        # The mark stays on its link when answers come anew in another order.
        answer = json.loads(self.server.routes["/api/v1/links"])
        answer["records"].reverse()
        self.server.routes["/api/v1/links"] = json.dumps(answer).encode()
        t.until("it on its link", lambda: "leaf030 up" in t.marked() and
                "leaf031 up" in t.lines()[next(i for i, line in enumerate(t.lines())
                                               if "leaf030 up" in line) - 1])

    def test_it_sorts(self):
        order = self.many_links(60)
        t = self.top(120, 70)
        t.keys("4")
        t.until_shows("60 directed links")
        for _ in range(12):
            if "(FLOW RATE)" in t.lines()[-1]:
                break
            before = t.lines()[-1]
            t.keys("s")
            t.until("another order", lambda: t.lines()[-1] != before)

        def shown():
            return [line[:10] for line in t.lines() if line.startswith("leaf")]
        t.until("the fastest first", lambda: shown() == order)
        t.keys("r")
        t.until("the slowest first", lambda: shown() == order[::-1])
        t.keys("S")
        t.until("by the column before", lambda: "(FLOWS)" in t.lines()[-1])

    def test_it_drills_down_and_returns(self):
        self.many_links(50)
        t = self.top()
        t.keys("4")
        t.until_shows("50 directed links")
        for _ in range(3):
            t.keys("Down")
        t.until("the fourth", lambda: "leaf003 up" in t.marked())
        t.keys("Enter")
        t.until_shows("> leaf003/up", "leaf2 Ethernet54", "Flows")
        self.assertEqual(self.server.target, "/api/v1/explain?link=leaf003%2Fup")
        t.keys("BSpace")
        t.until("the list with its mark", lambda: "leaf003 up" in t.marked() and
                "> leaf003/up" not in t.lines()[0])
        # From an event to its link.
        t.keys("2")
        t.until_shows("topology_change")
        t.until("its first row", lambda: "link_down" in t.marked())
        t.keys("Enter")
        t.until_shows("> leaf2/Ethernet49")

    def test_it_takes_the_size_of_the_terminal(self):
        self.many_links(90)
        t = self.top(80, 16)
        t.keys("4")
        t.until_shows("90 directed links", "leaf000 up")
        t.tmux("resize-window", "-x", "132", "-y", "50")
        t.until("all lines are used", lambda: sum(line.startswith("leaf") for line in t.lines()) >= 45)
        t.tmux("resize-window", "-x", "60", "-y", "10")
        t.until("few lines", lambda: len(t.lines()) == 10 and "q quits" in t.lines()[-1] and
                sum(line.startswith("leaf") for line in t.lines()) in (5, 6, 7, 8))

    def test_a_daemon_that_goes_and_comes_back(self):
        t = self.top()
        t.until_shows("link_down")
        routes, self.server.routes = self.server.routes, {}
        self.server.code, self.server.body = 503, b"the daemon stops"
        t.until_shows("answers 503", "link_down")
        self.server.code, self.server.routes = 200, routes
        t.until("all well again", lambda: "q quits" in t.lines()[-1])

    def test_keys_are_answered_while_a_daemon_hangs(self):
        hung, release = threading.Event(), threading.Event()

        class Hanging(Handler):
            def do_GET(handler):
                if not hung.is_set():
                    super().do_GET()
                    return
                handler.send_response(200)
                handler.send_header("Content-Length", "100000")
                handler.end_headers()
                try:
                    # An answer without end: it is not given up before half a minute.
                    while not release.wait(0.5):
                        handler.wfile.write(b" ")
                except ConnectionError:
                    pass

        self.addCleanup(release.set)
        self.server.RequestHandlerClass = Hanging
        self.many_links(100)
        t = self.top()
        t.keys("4")
        t.until_shows("100 directed links", "leaf000 up")
        hung.set()
        t.until_shows("no answer for")
        for key, name in (("End", "leaf099 up"), ("Home", "leaf000 up"), ("Down", "leaf001 up")):
            t.keys(key)
            t.until(f"at {name}", lambda: name in t.marked())
        t.keys("Enter")
        t.until_shows("> leaf001/up", "asking fabrictraced")
        t.keys("BSpace")
        t.until("back", lambda: "leaf001 up" in t.marked())
        self.assertFalse(release.is_set())
        t.keys("q")
        self.assertEqual(t.end(), 0)

    def test_names_of_the_network_are_harmless(self):
        answer = json.loads((CASES / "links.json").read_bytes())
        answer["records"][0]["switch"] = "leaf\x1b[2J\x07\x9b31mA"
        answer["records"][0]["port"] = "ä" * 20 + "x" * 300
        self.server.routes["/api/v1/links"] = json.dumps(answer).encode()
        t = self.top(100, 30)
        t.keys("4")
        t.until_shows("directed links", "leaf?[2J??31mA", "ä" * 20, "q quits", "4 links")

    def test_a_terminal_that_nobody_knows(self):
        t = self.top(TERM="no-such-terminal")
        self.assertEqual(t.end(), 64)
        self.assertIn("of kind 'no-such-terminal'", t.read("err"))
        self.assertEqual(t.read("before"), t.read("after"))


if __name__ == "__main__":
    if not os.environ.get("srcdir"):
        os.environ["srcdir"] = str(Path(__file__).resolve().parents[2])
    unittest.main()
