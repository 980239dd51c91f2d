# SPDX-License-Identifier: Apache-2.0
"""Producers that are killed, what they said of themselves, and what a consumer got of them."""
import collections
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
TESTS = HERE.parent
sys.path.insert(0, str(TESTS / "golden" / "daemon"))
from rig import check, equal, until  # noqa: E402

BROKER = HERE / "broker.py"
PRODUCER = Path("tests/kafka/producer").resolve()
TOPICS = ("check.0", "check.1", "check.2")
WAIT_S = 240  # on an idle machine


def broker(*args):
    done = subprocess.run([sys.executable, BROKER, *map(str, args)], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"broker.py {args}: {done.stdout}{done.stderr}")
    return done.stdout.strip()


class Producer:
    """One run of tests/kafka/producer."""

    def __init__(self, folder, run, brokers, count, rate, *spool, properties=(), die_at=0, tmpfs=""):
        self.run = run
        self.out = folder / f"{run}.out"
        self.err = folder / f"{run}.err"
        command = [str(PRODUCER), brokers, run, str(count), str(rate), *map(str, spool)]
        if properties:
            command += ["--", *properties]
        if tmpfs:
            # A disk of its own, which is full soon.
            mine = [] if os.geteuid() == 0 else ["-U", "-r"]
            command = ["unshare", *mine, "-m", "sh", "-c",
                       f'mount -t tmpfs -o size={tmpfs} none "$0" && exec "$@"', str(spool[0]),
                       *command]
        with open(self.out, "wb") as out, open(self.err, "wb") as err:
            self.child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                          env={**os.environ, "DIE_AT": str(die_at)})

    def said(self):
        """Its last whole line; empty before the first."""
        lines = self.out.read_bytes().split(b"\n")[:-1]
        return json.loads(lines[-1]) if lines else collections.defaultdict(int)

    def until(self, what, condition):
        def holds():
            return condition(self.said()) or self.child.poll() is not None
        until(f"{self.run}: {what}", holds, WAIT_S)
        if not condition(self.said()):
            check(f"{self.run}: {what}", False,
                  f"{dict(self.said())} {self.err.read_text()[-500:]}")
        return self.said()

    def kill(self):
        self.end(signal.SIGKILL, -signal.SIGKILL)

    def end(self, number, code):
        self.child.send_signal(number)
        self.gone(code)

    def gone(self, code=0):
        until(f"{self.run} ends", lambda: self.child.poll() is not None, WAIT_S)
        if self.child.poll() is None:
            self.child.kill()
            self.child.wait()
        equal(f"{self.run} ends as it is to", self.child.returncode, code)
        self.balances()

    def balances(self):
        """In each of its lines."""
        for line in self.out.read_bytes().split(b"\n")[:-1]:
            s = json.loads(line)
            sides = (s["taken"] + s["found"],
                     s["delivered"] + s["pending"] + s["spooled"] + sum(s["drops"].values()))
            if sides[0] != sides[1]:
                check(f"{self.run}: taken + found = delivered + pending + spooled + drops", False, s)
                return
        check(f"{self.run}: its account balances in each line", self.out.stat().st_size > 0)


def consume(address, topics=TOPICS, *more):
    """(topic, key, run, number) in the order in which a consumer of committed messages gets them."""
    kcat = shutil.which("kcat")
    if not kcat:
        raise RuntimeError("kcat is not installed: packaging/install-deps test")
    rows = []
    for topic in topics:
        text = subprocess.run(
            [kcat, "-C", "-q", "-e", "-b", address, "-t", topic, "-o", "beginning", "-m", "60",
             "-X", "isolation.level=read_committed", *more, "-f", "%t %k %h\\n"],
            check=True, capture_output=True, text=True).stdout
        for line in text.splitlines():
            name, key, headers = line.split(" ")
            fields = dict(part.split("=", 1) for part in headers.split(","))
            rows.append((name, key, fields["run"], int(fields["number"])))
    return rows


class Judge:
    """What came of all runs, which went through the same spool in this order."""

    def __init__(self, rows):
        self.seen = collections.defaultdict(collections.Counter)
        self.rows = rows
        for _, _, run, number in rows:
            self.seen[run][number] += 1

    def lost(self, run, sent):
        return [n for n in range(sent) if n not in self.seen[run]]

    def doubled(self, run):
        return sum(count - 1 for count in self.seen[run].values())

    def order(self, runs):
        """Per key, the first time that each number comes."""
        last, known = {}, set()
        for topic, key, run, number in self.rows:
            if run not in runs or (run, number) in known:
                continue
            known.add((run, number))
            now = (runs.index(run), number)
            if last.get((topic, key), (-1, -1)) > now:
                return f"{topic} {key}: {run} {number} behind {last[topic, key]}"
            last[topic, key] = now
        return ""
