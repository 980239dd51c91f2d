#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The spool before a real broker that is away: producers killed with -9 while it is away and while
they drain, ended with SIGTERM, at the cap of the spool, on a full disk. What a consumer of committed
messages reads equals their accounts: none lost uncounted, none out of order within its key, and what
is there twice has the same run and number.

usage: check_spool.py (in the build folder)"""
import signal
import subprocess
import sys

from spooling import BROKER, TOPICS, Judge, Producer, broker, check, consume, equal
from rig import failures, run_tests  # noqa: E402  (found by spooling)

MIB = 1 << 20


def drops(said):
    return sum(said["drops"].values())


def test_outage(folder):
    address = broker("start", folder / "kafka")
    try:
        run = Outage(folder, address)
        run.killed_while_away()
        run.stopped_while_away()
        run.killed_while_draining()
        run.judge()
    finally:
        broker("stop", folder / "kafka")


class Outage:
    def __init__(self, folder, address):
        self.folder, self.address, self.spool = folder, address, folder / "spool"
        self.safe = {}
        self.full = []

    def start(self, name, count, rate, *spool, **how):
        return Producer(self.folder, name, self.address, count, rate, *spool, **how)

    def killed_while_away(self):
        one = self.start("one", 10**9, 5000, self.spool)
        one.until("messages are delivered", lambda s: s["delivered"] > 1000)
        broker("kill", self.folder / "kafka")
        said = one.until("the spool takes over", lambda s: s["spooled"] > 5000)
        one.kill()
        self.safe["one"] = said["safe"]
        check("much was in the spool alone", said["spooled"] > 5000, said)

    def stopped_while_away(self):
        """And three with a spool that is too small, which wait for the broker."""
        two = self.start("two", 10**9, 5000, self.spool)
        for name, size, policy, disk in (("oldest", MIB, "oldest", ""), ("newest", MIB, "newest", ""),
                                         ("disk", 64 * MIB, "newest", "1m"),
                                         ("olddisk", 64 * MIB, "oldest", "1m")):
            (self.folder / name).mkdir()
            self.full.append(self.start(name, 15000, 5000, self.folder / name, size, policy,
                                        tmpfs=disk))
        said = two.until("its spool grows", lambda s: s["spooled"] > s["found"] + 3000)
        check("what the one before had left is found", said["found"] >= 5000, said)
        two.end(signal.SIGTERM, 0)
        said = two.said()
        equal("SIGTERM: all that was taken is safe", said["safe"], said["sent"])
        self.safe["two"] = said["sent"]
        for p in self.full:
            p.until("all is sent", lambda s: s["sent"] == 15000)

    def killed_while_draining(self):
        three = self.start("three", 2000, 1000, self.spool, die_at=2000)
        three.until("it has found what was left", lambda s: s["found"] > 8000)
        three.until("all it sends is in the spool", lambda s: s["safe"] == 2000)
        broker("start", self.folder / "kafka")
        three.gone(-signal.SIGKILL)
        said = three.said()
        check("it was killed while it drained", said["delivered"] >= 2000 and said["spooled"] > 0,
              said)
        self.safe["three"] = said["safe"]
        four = self.start("four", 3000, 3000, self.spool)
        four.gone()
        self.safe["four"] = 3000
        equal("nothing is left in the spool", four.said()["kept"], 0)
        check("it found what the drain had left", four.said()["found"] > 0)

    def judge(self):
        for p in self.full:
            p.gone()
        judge = Judge(consume(self.address))
        for name, safe in self.safe.items():
            print(f"{name}: {safe} safe, {judge.doubled(name)} twice")
            equal(f"{name}: lost of what was safe", len(judge.lost(name, safe)), 0)
        equal("order within each key", judge.order(list(self.safe)), "")
        equal("twice without a kill behind", judge.doubled("four"), 0)
        for p in self.full:
            said = p.said()
            lost = len(judge.lost(p.run, 15000))
            print(f"{p.run}: {said['drops']}, {lost} lost, {judge.doubled(p.run)} twice")
            check(f"{p.run}: some did not fit", drops(said) > 1000, said)
            equal(f"{p.run}: lost by the account", lost, drops(said))
            equal(f"{p.run}: doubled", judge.doubled(p.run), 0)
            equal(f"{p.run}: order", judge.order([p.run]), "")
        reasons = [{k for k, v in p.said()["drops"].items() if v} for p in self.full]
        equal("each for its reason", reasons,
              [{"spool_oldest"}, {"spool_newest"}, {"spool_disk"}, {"spool_oldest"}])


if __name__ == "__main__":
    fetched = subprocess.run([sys.executable, BROKER, "fetch"])
    if fetched.returncode:
        sys.exit("FAIL: no Kafka broker: what it lacks is said above")
    code = run_tests(test_outage)
    print(f"{'FAIL' if failures else 'PASS'}: what a consumer reads of {len(TOPICS)} topics is what "
          "the accounts say")
    sys.exit(code)
