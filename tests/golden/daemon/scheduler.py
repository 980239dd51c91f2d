#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""diagnosis.exec of a live daemon: a program that gets each diagnosis at its begin and at its end, and
ones that fail, hang, write without end, leave children behind, are not there; more diagnoses than the
queue has room for; the examples for Slurm and Kubernetes with commands that say what they are asked."""
import json
import os
import re
import shutil
import signal
import stat
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "faults"))
import rig  # noqa: E402
import kit  # noqa: E402
from madeup import PROTO, messages  # noqa: E402
from rig import check, equal, until  # noqa: E402

TOPOLOGY = (rig.LAB / "topology.yaml").read_text()
EXAMPLES = Path(__file__).resolve().parents[3] / "packaging" / "scheduler"
MESSAGES, _ = messages()
OPERATIONS = 8
IN_FLIGHT, FINISHED, RUNNING, STOPPED = (
    int(re.search(rf"^  {name} = (\d+);", PROTO.read_text(), re.M)[1]) for name in (
        "OPERATION_STATE_IN_FLIGHT", "OPERATION_STATE_FINISHED", "PROCESS_STATE_RUNNING",
        "PROCESS_STATE_STOPPED"))
SLEEPER = "3661.25"  # seconds; nobody else sleeps so long


def encoded(kind, **fields):
    """A record of a batch."""
    member = {name: (n, of) for n, name, of, _ in MESSAGES["Record"]}[kind]
    known = {name: n for n, name, _, _ in MESSAGES[member[1]]}
    body = b"".join(kit.number(known[k], v) if isinstance(v, int) else kit.data(known[k], v)
                    for k, v in fields.items())
    return kit.data(1, kit.data(member[0], body))


class Jobs:
    """Two ranks each, the second of which is stopped."""

    def __init__(self, daemon):
        self.peer = kit.Peer(daemon.port, "gpu40", "fabrictrace-agent")

    def send(self, records):
        for payload in kit.batches(records):
            self.peer.send(payload)
            check("the daemon takes records", self.peer.settled())

    def base(self, job, rank):
        return {"host": "gpu40", "pid": 1000 + 10 * job + rank, "job": f"job{job}",
                "comm_id": f"{job + 1:016x}", "rank": rank, "ranks": 2, "op": "AllReduce",
                "bytes": 1 << 20}

    def operations(self, job, first, count, ago_ms):
        now = int(time.time() * 1000)
        for i in range(count):
            begun = now - ago_ms - 1000 * (count - i)
            for rank in range(2):
                yield encoded("collective", **self.base(job, rank), time_ms=begun + 20, start_ms=begun,
                              duration_us=20000, started_ns=begun * 10**6, operations=1,
                              number=first + i, sequence=first + i - 1,
                              peers=kit.number(1, 1 - rank) + kit.number(3, 1 << 20))

    def progress(self, job, rank, **more):
        now = int(time.time() * 1000)
        return encoded("progress", **self.base(job, rank), time_ms=now, moved_ms=now - 8000, **more)

    def hang(self, job):
        """The first rank is in an operation for eight seconds."""
        begun = int(time.time() * 1000) - 8000
        return [*self.operations(job, 1, OPERATIONS, 9000),
                self.progress(job, 0, process=RUNNING, state=IN_FLIGHT, standing=1, start_ms=begun,
                              begun=OPERATIONS + 1, finished=OPERATIONS, number=OPERATIONS + 1, sequence=OPERATIONS),
                self.progress(job, 1, process=STOPPED, state=FINISHED, standing=1,
                              begun=OPERATIONS, finished=OPERATIONS, number=OPERATIONS)]

    def go_on(self, job):
        return [*self.operations(job, OPERATIONS + 1, 2, 0),
                *(self.progress(job, rank, process=RUNNING, state=FINISHED, begun=OPERATIONS + 2,
                                finished=OPERATIONS + 2, number=OPERATIONS + 2) for rank in range(2))]


def script(path, text):
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def daemon_with(folder, argv, *more):
    folder.mkdir(exist_ok=True)
    daemon = rig.Daemon(folder, TOPOLOGY)
    lines = "".join(f", {m}" for m in more)
    daemon.config.write_text(
        daemon.config.read_text() + "hang_after: 1s\nverify_topology: no\n"
        f"diagnosis: {{exec: {json.dumps([str(a) for a in argv])}{lines}}}\n")
    return daemon.start()


def fates(daemon):
    """Of the calls by outcome, and of records that wait."""
    out = {}
    for line in daemon.get("/metrics").splitlines():
        if line.startswith('fabrictraced_sink_records_total{sink="exec"'):
            out[line.split('fate="')[1].split('"')[0]] = int(line.rsplit(" ", 1)[1])
        if line.startswith('fabrictraced_sink_pending{sink="exec"'):
            out["pending"] = int(line.rsplit(" ", 1)[1])
    return out


def fate(daemon, name, count=1):
    until(f"{name}: {count} calls", lambda: fates(daemon).get(name) == count)
    return fates(daemon)


def diagnoses(daemon):
    return [r for r in daemon.records() if r["schema"] == "fabrictrace.diagnosis.v1"]


def processes_with(word):
    """Of /proc: running ones whose command has it."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if word.encode() in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
        except OSError:
            pass
    return found


def test_begin_and_end(folder):
    took = folder / "took"
    took.mkdir()
    program = script(folder / "take", f"""
        echo "$@" >{took}/arguments
        env >{took}/environment
        readlink /proc/self/fd/* >{took}/descriptors
        pwd >{took}/folder
        cat >{took}/part
        cat {took}/part >>{took}/records""")
    os.environ["FT_SECRET_OF_TEST"] = "visible"
    daemon = daemon_with(folder, [program, "a b", "$HOME;`id`"])
    try:
        jobs = Jobs(daemon)
        jobs.send(jobs.hang(0))
        fate(daemon, "processed")
        begun = rig.records_of((took / "records").read_text())
        equal("what is wrong", [(r["syndrome"], r["job"], r["rank"], r["process"], r.get("cleared"))
                                for r in begun], [("noncomm_hang", "job0", 1, "stopped", None)])
        until("the record of the file", lambda: diagnoses(daemon) == begun)
        equal("arguments as they are", (took / "arguments").read_text(), "a b $HOME;`id`\n")
        names = {line.split("=")[0] for line in (took / "environment").read_text().splitlines()}
        equal("environment", sorted(names - {"PWD", "SHLVL", "_", "OLDPWD"}),
              ["HOME", "LANG", "PATH", "USER"])
        equal("folder", (took / "folder").read_text(), "/\n")
        own = [d for d in (took / "descriptors").read_text().splitlines()
               if "socket" in d or str(folder) in d and str(took) not in d and "take" not in d]
        equal("no descriptor of the daemon's", own, [])
        jobs.send(jobs.go_on(0))
        fate(daemon, "processed", 2)
        both = rig.records_of((took / "records").read_text())
        equal("its end", [r.get("cleared") for r in both], [None, True])
        equal("nothing failed", {k: v for k, v in fates(daemon).items() if v}, {"processed": 2})
        daemon.stop()
        stage = rig.last_stages(daemon.records(), "fabrictraced")["exec"]
        equal("the account", (stage["received"], stage["processed"], sum(rig.drops(stage).values())),
              (2, 2, 0))
    finally:
        daemon.kill()


def test_failures(folder):
    """Each in a daemon of its own; the daemon goes on, and says why."""
    gone = script(folder / "gone", "exit 0")
    cases = {
        "exit_status": (script(folder / "fails", "echo no such node >&2; exit 3"),
                        "exit status 3: no such node"),
        "signal": (script(folder / "dies", "kill -SEGV $$"), f"killed by signal {int(signal.SIGSEGV)}"),
        "timeout": (script(folder / "hangs", f"sleep {SLEEPER} & sleep {SLEEPER}"),
                    "killed: its time was over"),
        "not_started": (gone, "not started: No such file or directory"),
    }
    for name, (program, says) in cases.items():
        daemon = daemon_with(folder / name, [program], "exec_timeout: 1s")
        try:
            if name == "not_started":
                gone.unlink()
            jobs = Jobs(daemon)
            jobs.send(jobs.hang(0))
            last = fate(daemon, name)
            equal(f"{name}: nothing else", {k: v for k, v in last.items() if v}, {name: 1})
            daemon.log_says(says)
            if name == "timeout":
                equal("its children are gone, too", processes_with(SLEEPER), [])
            until(f"{name}: published all the same", lambda: len(diagnoses(daemon)) == 1)
            daemon.stop()
        finally:
            daemon.kill()


def test_flood(folder):
    """Without end to its output, which nobody keeps; and its standard input is not read."""
    program = script(folder / "flood", "exec yes \"$(head -c 3000 /dev/zero | tr '\\0' x)\"")
    daemon = daemon_with(folder, [program], "exec_timeout: 60s")
    try:
        jobs = Jobs(daemon)
        jobs.send(jobs.hang(0))
        last = fate(daemon, "signal")
        equal("its output was closed", {k: v for k, v in last.items() if v}, {"signal": 1})
        daemon.log_says(f"killed by signal {int(signal.SIGPIPE)}: xxx")
        longest = max(len(line) for line in daemon.log.read_text().splitlines())
        check("the log has a part of a line", longest < 600, longest)
        daemon.stop()
    finally:
        daemon.kill()


def test_burst(folder):
    """More at once than the queue holds: what is refused is counted, and nothing waits for it."""
    hold, count = folder / "hold", 12
    hold.touch()
    program = script(folder / "slow", f"cat >>{folder}/took; while [ -e {hold} ]; do sleep 0.1; done")
    daemon = daemon_with(folder, [program], "exec_queue: 4", "exec_interval: 100ms", "exec_timeout: 1h")
    try:
        jobs = Jobs(daemon)
        jobs.send([r for job in range(count) for r in jobs.hang(job)])
        until("all are published", lambda: len(diagnoses(daemon)) == count)
        until("one runs, four wait, the rest is refused", lambda: (
            fates(daemon).get("pending"), fates(daemon).get("refused")) == (5, count - 5))
        hold.unlink()
        last = fate(daemon, "processed", 5)
        equal("each record is counted once", sum(last.values()), count)
        took = rig.records_of((folder / "took").read_text())
        equal("in their order", took, diagnoses(daemon)[:5])
        daemon.stop()
    finally:
        daemon.kill()


def test_distance(folder):
    """Calls begin so far apart as it is set, by the clock of the program that is called."""
    program = script(folder / "when", f"date +%s%N >>{folder}/times")
    daemon = daemon_with(folder, [program], "exec_interval: 700ms")
    try:
        jobs = Jobs(daemon)
        jobs.send([r for job in range(4) for r in jobs.hang(job)])
        fate(daemon, "processed", 4)
        times = [int(t) for t in (folder / "times").read_text().split()]
        # A call that was late itself has its successor closer by that.
        check("none sooner", times[3] - times[0] >= 3 * 7e8 - 6e8, times)
        daemon.stop()
    finally:
        daemon.kill()


def test_end_of_daemon(folder):
    """A daemon that is killed takes along what it called."""
    program = script(folder / "waits", f"exec sleep {SLEEPER}")
    daemon = daemon_with(folder, [program], "exec_timeout: 1h")
    try:
        jobs = Jobs(daemon)
        jobs.send(jobs.hang(0))
        until("it runs", lambda: processes_with(SLEEPER))
        daemon.kill()
        until("it ended", lambda: not processes_with(SLEEPER))
    finally:
        daemon.kill()


def complaint(folder, *settings):
    done = rig.run(rig.DAEMON, *rig.NO_CONFIG, "--check",
                   *(a for s in settings for a in ("--set", s)))
    return done.returncode, done.stderr


def test_check(folder):
    good = script(folder / "good", "exit 0")
    plain, loose = folder / "plain", script(folder / "loose", "exit 0")
    plain.write_text("")
    loose.chmod(loose.stat().st_mode | stat.S_IWOTH)
    for what, setting, says in (
            ("none there", f"diagnosis.exec={folder}/none", "No such file or directory"),
            ("no full path", "diagnosis.exec=true", "not a full path"),
            ("a folder", f"diagnosis.exec={folder}", "cannot be executed"),
            ("not executable", f"diagnosis.exec={plain}", "cannot be executed"),
            ("anybody's", f"diagnosis.exec={loose}", "can be changed by everybody"),
            ("no such user", "diagnosis.exec_user=nobody-of-the-kind", "there is no such user")):
        code, text = complaint(folder, setting)
        check(f"{what}: refused", code != 0 and says in text, f"{code}: {text}")
    equal("a good one", complaint(folder, f"diagnosis.exec={good}"), (0, ""))


def test_user(folder):
    if os.geteuid():
        print("skipped: calling as another user needs root")
        return
    took = folder / "took"
    took.mkdir()
    took.chmod(0o777)
    folder.chmod(0o755)
    program = script(folder / "who", f"id -un >{took}/who; grep NoNewPrivs /proc/self/status >>{took}/who")
    daemon = daemon_with(folder, [program], "exec_user: nobody")
    try:
        jobs = Jobs(daemon)
        jobs.send(jobs.hang(0))
        fate(daemon, "processed")
        equal("its user", (took / "who").read_text().split(), ["nobody", "NoNewPrivs:", "1"])
        daemon.stop()
    finally:
        daemon.kill()


def test_examples(folder):
    """What stands for the schedulers' commands says what it is asked."""
    commands, said = folder / "commands", folder / "said"
    commands.mkdir()
    for name in ("scontrol", "kubectl"):
        script(commands / name, f"echo {name} \"$@\" >>{said}")
    path = f"PATH={commands}:/usr/bin:/bin"
    want = {"drain-slurm": "scontrol update nodename=gpu40 state=drain reason=fabrictrace\n",
            "cordon-kubernetes": "kubectl cordon --request-timeout=20s -- gpu40\n"}
    for name, text in want.items():
        program = folder / name
        shutil.copy(EXAMPLES / name, program)
        program.chmod(0o755)
        daemon = daemon_with(folder / f"with-{name}", ["/usr/bin/env", path, program])
        try:
            jobs = Jobs(daemon)
            jobs.send(jobs.hang(0))
            fate(daemon, "processed")
            jobs.send(jobs.go_on(0))
            fate(daemon, "processed", 2)
            equal(f"{name}: asked once, for the begin", said.read_text(), text)
            daemon.stop()
        finally:
            daemon.kill()
        said.unlink()
        for record in ({"syndrome": "comm_hang", "host": "gpu40", "process": "stopped"},
                       {"syndrome": "noncomm_hang", "host": "gpu40", "process": "running"},
                       {"syndrome": "noncomm_hang", "process": "gone"}):
            done = rig.run("/usr/bin/env", path, program, stdin=None, input=json.dumps(record))
            check(f"{name}: nothing for {record}", done.returncode == 0 and not said.exists(),
                  done.stderr)
        done = rig.run("/usr/bin/env", path, program, stdin=None, input=json.dumps(
            {"syndrome": "noncomm_hang", "process": "gone", "host": "-x state=down"}))
        check(f"{name}: a name that is none", done.returncode == 1 and not said.exists(), done.stderr)


if __name__ == "__main__":
    sys.exit(rig.run_tests(test_begin_and_end, test_failures, test_flood, test_burst, test_distance,
                           test_end_of_daemon, test_check, test_user, test_examples))
