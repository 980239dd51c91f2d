#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The agent over several reloads, without root: what it was started with may be gone by then."""
import json
import signal
import socketserver
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import speed  # noqa: E402
from ports import free_port  # noqa: E402

AGENT = Path("agent/fabrictrace-agent").resolve()
WAIT_S = 60


def wait_until(what, done, log):
    if not speed.wait(done, WAIT_S):
        sys.exit(f"FAIL: {what}: {log.read_text()}")
    print(f"ok: {what}")


class Ras(socketserver.ThreadingTCPServer):
    """Where RAS is asked; it hangs up."""
    allow_reuse_address = daemon_threads = True
    asked = 0

    def __init__(self):
        super().__init__(("127.0.0.1", free_port()), None)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def finish_request(self, *_):
        self.asked += 1


def main():
    ras = Ras()
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder)
        sock, config, out = base / "plugin-events.socket", base / "agent.yaml", base / "out.ndjson"
        log = base / "log"
        text = (f"host: reload\ninterfaces: []\nhttp: \"off\"\nrdma: {{enabled: false}}\n"
                f"nccl: {{socket: {sock}}}\n"
                f"states: {{ras: [\"127.0.0.1:{ras.server_address[1]}\"], interval: 1s}}\n")
        config.write_text(text)
        with log.open("w") as err:
            agent = subprocess.Popen([AGENT, "-c", config, "--output", out], stderr=err)
        try:
            wait_until("the socket is there", sock.exists, log)
            wait_until("it runs", lambda: "host 'reload'" in log.read_text(), log)
            for n in (1, 2, 3):
                config.write_text(text + f"refresh_interval: {n + 9}s\n")
                agent.send_signal(signal.SIGHUP)
                wait_until(f"reload {n}", lambda: log.read_text().count("reloaded") == n, log)
            before = ras.asked
            wait_until("RAS is asked where it was before", lambda: ras.asked > before + 1, log)
            for blocks, said in (("fc00::/33", "is not an IPv6 prefix"), ("fc00::/32", "reloaded")):
                before = log.read_text().count(said)
                config.write_text(text + f'srv6_blocks: ["{blocks}"]\n')
                agent.send_signal(signal.SIGHUP)
                wait_until(f"{blocks}: {said}", lambda: log.read_text().count(said) == before + 1, log)
            agent.send_signal(signal.SIGTERM)
            if agent.wait(speed.limit(WAIT_S)) != 0:
                sys.exit(f"FAIL: exit code {agent.returncode}\n{log.read_text()}")
        finally:
            agent.kill()
        if sock.exists():
            sys.exit("FAIL: its socket is left behind")
        last = json.loads(out.read_text().splitlines()[-1])
        if last["schema"] != "fabrictrace.loss.v1":
            sys.exit(f"FAIL: the last record is {last}")
        print("ok: the socket is gone, the last record is the account")


if __name__ == "__main__":
    sys.exit(main())
