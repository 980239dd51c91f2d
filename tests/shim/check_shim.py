#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Source ports of a plan, given to queue pairs of a job by the wrap of libibverbs: a real agent, a
plan's file, and a libibverbs that says what it is asked to do. Runs in the build folder."""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import speed  # noqa: E402

SHIM = pathlib.Path("agent/shim/libibverbs.so").resolve()
AGENT = pathlib.Path("agent/fabrictrace-agent").resolve()
HERE = pathlib.Path("tests/shim").resolve()
WAIT_S = 120
JOB, HOST = "train-7", "node1"
PORTS = {2: (0xc123, 0xc000), 3: (0xffff,)}  # by the last byte of the peer's address
RTR, RTS = 2, 3


def label_of(port):
    """As RDMA core makes a port of a label (rdma_flow_label_to_udp_sport)."""
    return next(label for label in (port & 0x3fff, 0x4001)
                if label and (label & 0x3fff ^ (label & 0xfc000) >> 14 | 0xc000) == port)


def move(dst, port):
    flow = {"src": "10.0.0.1", "dst": f"10.0.0.{dst}", "sport": 50000, "dport": 4791, "proto": 17}
    return {"flow": flow, "sport": port, "hops": [{"switch": "leaf1", "in": "a", "out": "b"}]}


def plan(**more):
    moves = [move(dst, port) for dst, ports in PORTS.items() for port in ports]
    return json.dumps({"schema": "fabrictrace.plan.v1", "time_ms": 1700000000000, "job": JOB,
                       "moves": moves[:2], "keeps": moves[2:], **more})


class Agent:
    def __init__(self, folder, daemon=()):
        """daemon: options that say where it is; without them records go to a file."""
        self.folder = folder
        self.socket, self.plans = folder / "plan.sock", folder / "plans"
        self.records, self.log = folder / "records.ndjson", folder / "agent.log"
        self.output = daemon or ["--output", self.records]
        self.plans.mkdir(exist_ok=True)
        self.start()

    def start(self):
        with self.log.open("a") as log:
            self.process = subprocess.Popen(
                [AGENT, "--config", "/dev/null", *self.output, "--set", f"host={HOST}",
                 "--set", "http=off",
                 "--set", f"plan.socket={self.socket}", "--set", f"plan.folder={self.plans}"],
                stdout=log, stderr=log)
        assert speed.wait(lambda: self.process.poll() is not None or self.socket.exists(), WAIT_S) \
            and self.process.poll() is None, \
            self.log.read_text()

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        return self.process.wait()

    def lay_down(self, text, job=JOB, uid=None, mode=0o644):
        file = self.plans / f"{os.getuid() if uid is None else uid}@{job}@{HOST}.plan"
        new = file.with_suffix(".new")
        new.write_text(text)
        new.chmod(mode)
        new.rename(file)
        return file

    def reported(self):
        if not self.records.exists():
            return []
        lines = [json.loads(line) for line in self.records.read_text().splitlines()]
        return [r for r in lines if r["schema"] == "fabrictrace.plan_port.v1"]

    def wait_for(self, text):
        return speed.wait(lambda: text in self.log.read_text(), WAIT_S)


class Program:
    """A job; what its libibverbs says is kept by queue pair."""

    def __init__(self, agent, how="linked", program=HERE / "job", shim=SHIM, preload=(), **more):
        env = {**os.environ, "LD_PRELOAD": " ".join(map(str, (*preload, shim))),
               "LD_LIBRARY_PATH": str(HERE / "fake"), "FABRICTRACE_JOB": JOB,
               "FABRICTRACE_PLAN_SOCKET": str(agent.socket), "FABRICTRACE_PLAN_WAIT_MS": "1000",
               "ASAN_OPTIONS": "detect_leaks=0", **more}
        self.process = subprocess.Popen([program, how], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, env=env)
        self.next = 17

    def ask(self, line):
        """What it said until it was done: (lines, status, seconds)."""
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        said = []
        while not (text := self.process.stdout.readline()).startswith("done"):
            assert text, f"the job ended: {self.process.wait()}"
            said.append(text.strip())
        _, _, status, us = text.split()
        return said, int(status), int(us) / 1e6

    def ready(self, dst, label=0):
        """Makes another queue pair ready to receive. (its number, what was said, status, seconds)"""
        self.next += 1
        return self.next, *self.ask(f"rtr {self.next} {self.next + 1000} {label} {dst}")

    def label(self, dst, label=0):
        """The label that another queue pair has in the end."""
        _, said, status, _ = self.ready(dst, label)
        assert status == 0, said
        return int(re.search(r"label (0x[0-9a-f]+)", said[-1]).group(1), 16)

    def until_label(self, dst):
        """As before, of the first that has one: an agent that did not get on in time gives none."""
        return speed.wait(lambda: self.label(dst), WAIT_S)

    def end(self):
        self.process.stdin.close()
        self.process.stdout.close()
        return self.process.wait()


class Shim(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.agent = Agent(pathlib.Path(self.folder.name))
        self.addCleanup(self.folder.cleanup)
        self.addCleanup(self.agent.stop)
        self.programs = []

    def program(self, *args, **more):
        program = Program(self.agent, *args, **more)
        self.addCleanup(lambda: program.process.poll() is None and program.process.kill())
        return program

    def test_ports(self):
        """Each way to the library: queue pairs to a peer get the ports of the plan in turn."""
        self.agent.lay_down(plan())
        for how in ("linked", "dlopen"):
            job = self.program(how)
            wanted = {label_of(port) for port in PORTS[2]}
            self.assertEqual(wanted, {0x123, 0x4001})
            got = set()
            self.assertTrue(speed.wait(lambda: got.add(job.until_label(2)) or wanted <= got, WAIT_S))
            self.assertEqual(got, wanted)
            self.assertEqual(job.until_label(3), 0x3fff)
            # Who has no port in the plan, and who chose a label itself, with one and without.
            self.assertEqual(job.label(9), 0)
            self.assertEqual(job.label(9, label=0x777), 0x777)
            self.assertIn(job.label(2, label=0x777), wanted)
            said, status, _ = job.ask(f"rts {job.next}")
            self.assertEqual((said, status), ([f"modify {job.next} state 3 label 0x0 mask 0x10001"],
                                              0))
            self.assertEqual(job.end(), 0)

    def test_report(self):
        """Who, when, what: in the log, and as records."""
        self.agent.lay_down(plan())
        job = self.program()
        self.assertEqual(job.until_label(3), 0x3fff)
        number, pid = job.next, job.process.pid
        self.assertEqual(job.end(), 0)
        said = f"plan of job '{JOB}', user {os.getuid()}: queue pair {number} of process {pid}, " \
            "10.0.0.1 > 10.0.0.3: has port 65535"
        self.assertTrue(self.agent.wait_for(said), self.agent.log.read_text())
        self.assertIn(f"plan of job '{JOB}', user {os.getuid()}: taken, 3 queue pairs",
                      self.agent.log.read_text())
        self.agent.stop()
        record = self.agent.reported()[-1]
        self.assertLess(abs(record.pop("time_ms") / 1000 - time.time()), 3600)
        self.assertEqual(record, {
            "schema": "fabrictrace.plan_port.v1", "host": HOST, "job": JOB, "uid": os.getuid(),
            "pid": pid, "flow": {**move(3, 0)["flow"], "sport": 65535},
            "qp": {"local": number, "remote": number + 1000}, "outcome": "label",
            "hops": move(3, 0)["hops"], "plan_time_ms": 1700000000000})
        self.agent.start()

    def test_withdrawn(self):
        file = self.agent.lay_down(plan())
        job = self.program()
        self.assertEqual(job.until_label(3), 0x3fff)
        file.unlink()
        self.assertEqual(job.label(3), 0)
        self.assertTrue(self.agent.wait_for("withdrawn, 3 queue pairs"))
        # And laid down again.
        self.agent.lay_down(plan(time_ms=1700000000001))
        self.assertEqual(job.until_label(3), 0x3fff)

    def test_not_taken(self):
        """A plan that others may have written, of another job, or none at all: nothing changes."""
        job = self.program()
        refused = [
            ("others may write it", lambda: self.agent.lay_down(plan(), mode=0o666)),
            ("it is of another job", lambda: self.agent.lay_down(plan(job="other"))),
            ("it has no ports", lambda: self.agent.lay_down(plan(refused=["no"]))),
            ("colour", lambda: self.agent.lay_down(plan(colour="red"))),
        ]
        for said, lay_down in refused:
            file = lay_down()
            self.assertEqual(job.label(3), 0)
            self.assertTrue(speed.wait(lambda: job.label(3) or said in self.agent.log.read_text(),
                                       WAIT_S), self.agent.log.read_text())
            self.assertIn(said, self.agent.log.read_text())
            file.unlink()
        elsewhere = self.agent.folder / "elsewhere"
        elsewhere.write_text(plan())
        file.symlink_to(elsewhere)
        self.assertEqual(job.label(3), 0)
        file.unlink()
        os.mkfifo(file)
        self.assertEqual(job.label(3), 0)
        file.unlink()
        if os.getuid() == 0:
            # Another user's file under this user's name.
            os.chown(self.agent.lay_down(plan()), 12345, 12345)
            self.assertEqual(job.label(3), 0)
            file.unlink()
        self.agent.lay_down(plan())
        self.assertEqual(job.until_label(3), 0x3fff)

    def test_other_user(self):
        """A process of another user gets nothing of a plan, whatever it says."""
        if os.getuid() != 0:
            # On a line of its own, by which ./check finds what it has to run as root.
            print("\nskipped: another user's process: needs root", flush=True)
            self.skipTest("needs root")
        self.agent.lay_down(plan())
        self.agent.folder.chmod(0o755)
        copy = self.agent.folder / "programs"
        shutil.copytree(HERE, copy)
        shutil.copy(SHIM, copy)
        for path in (copy, *copy.rglob("*")):
            path.chmod(0o755)
        env = {"LD_PRELOAD": str(copy / SHIM.name), "LD_LIBRARY_PATH": str(copy / "fake"),
               "FABRICTRACE_JOB": JOB, "FABRICTRACE_PLAN_SOCKET": str(self.agent.socket),
               "FABRICTRACE_PLAN_WAIT_MS": "1000"}
        done = subprocess.run([copy / "job", "linked"], user=12345, group=12345, env=env, text=True,
                              input="rtr 18 19 0 3\n" * 5, stdout=subprocess.PIPE, check=True)
        self.assertEqual(done.stdout.count("label 0x0 "), 5, done.stdout)
        job = self.program()
        self.assertEqual(job.until_label(3), 0x3fff)

    def test_agent_gone(self):
        """The agent is killed, stopped and started again at any point: the job runs on."""
        self.agent.lay_down(plan())
        job = self.program(FABRICTRACE_PLAN_WAIT_MS="20")
        self.assertTrue(job.until_label(2))
        self.agent.stop(signal.SIGKILL)
        for _ in range(20):
            self.assertEqual(job.label(2), 0)
        self.agent.start()
        self.assertTrue(job.until_label(2))
        self.agent.process.send_signal(signal.SIGSTOP)
        began, times = time.monotonic(), [job.ready(2) for _ in range(200)]
        self.agent.process.send_signal(signal.SIGCONT)
        self.assertEqual({t[2] for t in times}, {0})
        # Two wait in vain, then none is asked for ten seconds: 200 are done before 200 waits are.
        waited = [t[3] for t in times if t[3] >= 0.02]
        self.assertGreaterEqual(len(waited), 2)
        if time.monotonic() - began < 10:
            self.assertLess(sum(t[3] for t in times), 200 * 0.02)
        self.assertTrue(job.until_label(2))
        # Killed while the job goes on asking.
        for turn in range(5):
            made = [job.ready(2) for _ in range(20)]
            self.agent.process.kill()
            made += [job.ready(2) for _ in range(20)]
            self.agent.process.wait()
            self.assertEqual({m[2] for m in made}, {0}, turn)
            self.agent.start()
        self.assertTrue(job.until_label(2))
        self.assertEqual(job.end(), 0)

    def test_refused(self):
        """A device that takes no label: as without a plan, and by mlx5's own call where there is
        one."""
        self.agent.lay_down(plan())
        job = self.program(REFUSES_LABELS="1")
        found = speed.wait(lambda: len((made := job.ready(3))[1]) == 2 and made, WAIT_S)
        number, said, status, _ = found
        self.assertEqual(status, 0)
        self.assertEqual(said, [f"modify {number} state {RTR} label {label} mask 0x129181"
                                for label in ("0x3fff", "0x0")])
        self.assertEqual(len(job.ask(f"rts {number}")[0]), 1)
        job.end()
        self.assertTrue(self.agent.wait_for("refused 65535"))
        job = self.program(REFUSES_LABELS="1", MLX5="1")
        number = speed.wait(lambda: len((made := job.ready(3))[1]) == 2 and made, WAIT_S)[0]
        said, status, _ = job.ask(f"rts {number}")
        self.assertEqual((said[1:], status), ([f"sport 65535 of {number}"], 0))
        self.assertEqual(len(job.ask(f"rts {number}")[0]), 1)
        job.end()
        # What would have failed fails, with the same error.
        job = self.program(REFUSES_ALL="1")
        self.assertTrue(speed.wait(lambda: len((made := job.ready(3))[1]) == 2 and made[2] == 13,
                                   WAIT_S))

    def test_sanitized(self):
        """The same with address and undefined behaviour sanitizers in job and wrap."""
        preload = [subprocess.run([os.environ.get("CC", "cc").split()[-1],
                                   f"-print-file-name=lib{name}.so"], capture_output=True,
                                  text=True, check=True).stdout.strip() for name in ("asan", "ubsan")]
        self.agent.lay_down(plan())
        for how in ("linked", "dlopen"):
            job = self.program(how, program=HERE / "asan/job", shim=HERE / "asan/libibverbs.so",
                               preload=[p for p in preload if "/" in p], MLX5="1")
            self.assertTrue(job.until_label(2))
            for _ in range(300):
                job.label(3)
                job.ask(f"rts {job.next}")
            self.assertEqual(job.end(), 0)


class Symbols(unittest.TestCase):
    """What it exports is of the real library, in the version that it has there, and it is all."""

    def exported(self, file):
        lines = subprocess.run(["nm", "-D", "--defined-only", file], capture_output=True, text=True,
                               check=True).stdout.splitlines()
        return {line.split()[2] for line in lines if line.split()[1] in "TWDB"}

    def real(self):
        said = subprocess.run(["ldd", HERE / "job"], capture_output=True, text=True,
                              check=True).stdout
        return re.search(r"libibverbs\.so\.1 => (\S+)", said).group(1)

    def test_symbols(self):
        own = self.exported(SHIM)
        self.assertEqual(own, {"ibv_modify_qp@@IBVERBS_1.1"})
        self.assertLessEqual(own, self.exported(self.real()))

    def test_names(self):
        said = subprocess.run(["readelf", "-d", SHIM], capture_output=True, text=True,
                              check=True).stdout
        self.assertEqual(re.findall(r"SONAME.*\[(.*)\]", said), ["libibverbs.so"])
        self.assertIn("libibverbs.so.1", re.findall(r"NEEDED.*\[(.*)\]", said))

    def test_older_version(self):
        """Who asks for the version before it gets the library's."""
        with tempfile.TemporaryDirectory() as folder:
            agent = Agent(pathlib.Path(folder))
            try:
                agent.lay_down(plan())
                job = Program(agent, "old")
                _, said, status, _ = job.ready(3)
                job.end()
            finally:
                agent.stop()
        self.assertEqual(status, 0)
        self.assertTrue(said[-1].startswith("old modify") and "label 0x0 " in said[-1], said)


if __name__ == "__main__":
    unittest.main()
