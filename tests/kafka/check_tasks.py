#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""librdkafka has a thread for each broker of a cluster: with a cluster of a hundred, which librdkafka
plays itself, agent, poller and daemon have no more threads than their units allow (TasksMax)."""
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
TESTS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS / "golden" / "daemon"))
from rig import AGENT, DAEMON, NO_CONFIG, POLLER, check, failures, free_port, until  # noqa: E402

BROKERS = 100
CLUSTER = f"kafka.properties=test.mock.num.brokers={BROKERS}"


def allowed(unit):
    text = (TESTS.parent / f"packaging/systemd/{unit}.service.in").read_text()
    return int(re.search(r"^TasksMax=(\d+)$", text, re.M)[1])


def threads(pid):
    """Their names; one that has just ended has none."""
    names = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            names.append((task / "comm").read_text().strip())
        except OSError:
            pass
    return names


def runs(program, unit, clients, *words):
    with tempfile.TemporaryFile("w+") as log:
        run = subprocess.Popen([program, *NO_CONFIG, "--set", f"http=127.0.0.1:{free_port()}", "--set",
                                CLUSTER, "--set", "kafka.brokers=127.0.0.1:1", *words], stdout=log, stderr=log)
        try:
            until(f"{unit}: a thread for each broker of {clients} clients",
                  lambda: run.poll() is not None or
                  sum(bool(re.fullmatch(r"rdk:broker\d+", n)) for n in threads(run.pid)) >= clients * BROKERS)
            if not check(f"{unit} runs", run.poll() is None):
                log.seek(0)
                print(log.read())
                return
            count, most = len(threads(run.pid)), allowed(unit)
            check(f"{unit}: {count} threads with {BROKERS} brokers, its unit allows {most}", count <= most)
        finally:
            run.terminate()
            run.wait()


with tempfile.TemporaryDirectory() as folder:
    # Producers: for what it sends.
    runs(AGENT, "fabrictrace-agent", 1, "--set", f"nccl.socket={folder}/nccl.sock")
    runs(POLLER, "fabrictrace-switchpoll", 1, "--set", f"listen=127.0.0.1:{free_port()}")
    # And one that reads what they sent.
    runs(DAEMON, "fabrictraced", 2, "--set", f"listen=127.0.0.1:{free_port()}",
         "--set", "sinks=kafka", "--set", "kafka.ingest=true")
sys.exit(1 if failures else 0)
