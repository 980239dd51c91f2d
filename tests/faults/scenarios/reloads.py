# SPDX-License-Identifier: Apache-2.0
"""SIGHUP under load, with files that are right and files that are not: of each program alone that had
been tried, at rest.

What a program reads is changed to something good or bad, drawn, and it is told so; the next change comes
when it has said what it made of that. All that the honest put in has to come out once, as if nothing had
happened, and the last good file is what is in force."""
import random
import time

import honest
import judged
from kit import TOPOLOGY, check, equal, until

SECONDS = 12
MICE = 10
JOB_US = 20000
FAILED, DONE = "reload failed", "reloaded"
ADDRESS = "fd00:0:4:2::2"  # of a host that sends nothing by it


class Files:
    """What one program reads, and what can be made of it."""

    def __init__(self, program):
        self.program, self.good = program, program.config.read_text()
        self.said = {FAILED: 0, DONE: 0}

    def bad(self, rng):
        return rng.choice((self.good + "nonsense: 1\n", self.good[:len(self.good) // 2] + "\n\x01{",
                           self.good.replace("/ca.pem", "/none.pem"), None))

    def turn(self, rng, number):
        """Changes them; whether for something good."""
        well = rng.random() < 0.5
        text = self.good + f"log: {{level: {('info', 'notice')[number % 2]}}}\n" if well else self.bad(rng)
        if text is None:
            self.program.config.unlink(missing_ok=True)
        else:
            self.program.config.write_text(text)
        return well

    def reload(self, well):
        word = DONE if well else FAILED
        self.said[word] += 1
        self.program.hang_up()
        if not until(f"{self.program.name} says '{word}'",
                     lambda: self.program.log.read_text().count(word) >= self.said[word]):
            raise RuntimeError(self.program.log.read_text()[-500:])


class DaemonFiles(Files):
    """Its topology changes, too: by another address of a host."""
    address = ADDRESS

    def turn(self, rng, number):
        self.program.topology.write_text(TOPOLOGY.replace(ADDRESS, self.address))
        if rng.random() < 0.3:
            return super().turn(rng, number)
        self.program.config.write_text(self.good)
        well = rng.random() < 0.5
        if well:
            self.address = f"fd00:0:4:9::{number + 1:x}"
            self.program.topology.write_text(TOPOLOGY.replace(ADDRESS, self.address))
        else:
            self.program.topology.write_text(rng.choice((
                TOPOLOGY[:len(TOPOLOGY) // 2] + "\n  - {", TOPOLOGY.replace("leaf2", "leaf1"), "")))
        return well


def judge(programs, work, calls):
    sent = work.sent
    records = judged.Records(sent, programs.job.pid).read(programs.daemon.out)
    equal("numbered records that are not there once", [
        n for n in range(1, sent.numbered + 1) if records.numbered[n] != 1][:5], [])
    equal("calls of NCCL in collective records", records.events, calls)
    equal("mice that lack the bytes of their sample", records.lost_mice(), 0)
    equal("honest readers without an answer", sent.unread[:5], [])
    records.check_paths()
    records.longest_outage()
    records.check_accounts()
    judged.check_memory(programs.peaks)


def run(folder):
    honest.own_network()
    rng = honest.new_rng()
    programs, work = honest.Programs(folder, "path_refresh: 2s\n"), None
    # What a busy machine delays is in time all the same.
    programs.config(programs.daemon, "window: 2s\ngrace: 1s\n", "window: 3s\ngrace: 2.5s\n")
    daemon, *others = DaemonFiles(programs.daemon), Files(programs.poller), Files(programs.agent)
    try:
        programs.start()
        programs.start_job(JOB_US)
        work = honest.Work(programs, rng, mice=MICE)
        draw = random.Random(rng.getrandbits(32))  # of no thread but this
        ends, number = time.monotonic() + honest.asked("FT_SIEGE_SECONDS", SECONDS), 0
        while time.monotonic() < ends and not work.error:
            files = draw.choice((daemon, *others))
            files.reload(files.turn(draw, number))
            number += 1
        print({files.program.name: files.said for files in (daemon, *others)})
        check("both kinds of each", all(min(files.said.values()) for files in (daemon, *others)))
        check(f"the last good topology is in force: {daemon.address}",
              daemon.address in programs.daemon.get("/api/v1/topology"))
        work.stop()
        calls = programs.end_job()
        programs.settle()
        programs.stop()
        for files in (daemon, *others):
            log = files.program.log.read_text()
            equal(f"what {files.program.name} said", {w: log.count(w) for w in files.said}, files.said)
        judge(programs, work, calls)
    finally:
        if work:
            work.over.set()
        programs.kill()
