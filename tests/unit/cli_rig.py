# SPDX-License-Identifier: Apache-2.0
"""The program fabrictrace as a person runs it, in the build folder, and a server that answers it."""
import http.server
import os
import pathlib
import subprocess
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import terminal  # noqa: E402

SOURCE = pathlib.Path(os.environ.get("srcdir", ".")).resolve()
CASES = SOURCE / "tests/unit/cli"
PROGRAM = pathlib.Path("cli/fabrictrace").resolve()
FLOW = "10.0.1.2:50003-10.0.4.6"
# What `fabrictrace top` asks for: its name in the API, the answer in tests/unit/cli
TOP = (("imbalance", "imbalance"), ("links", "links"), ("events", "events-all"))


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


def run_until(lines, *words):
    """What a program has written that is stopped after so many lines."""
    with subprocess.Popen([PROGRAM, *words], env=environment(), stdout=subprocess.PIPE, text=True) as program:
        out = [program.stdout.readline() for _ in range(lines)]
        program.terminate()
        out.append(program.stdout.read())
    return program.returncode, "".join(out)


def run_on_terminal(width, *words, env=None):
    """What the program writes to a terminal that many columns wide."""
    rc, text = terminal.written(lambda end: subprocess.Popen(
        [PROGRAM, *words], env=env or environment(), stdout=end), width)
    return rc, text.replace("\r\n", "\n")


def routes_of_top():
    return {f"/api/v1/{name}": (CASES / f"{case}.json").read_bytes() for name, case in TOP}
