#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How far ranks are that stand, as agent and daemon tell: what each transfer waits for, which channels of
a GPU's kernel run, who never began the operation, what the kernel says of the process; a process that is
stopped, goes on, dies or ends in order, or that the agent cannot see; memory full of garbage, and a plugin
of another version. Runs in the build folder."""
import array
import fcntl
import json
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import speed  # noqa: E402
from ports import free_port  # noqa: E402

SOURCE = Path(os.environ.get("srcdir", ".")).resolve()
PLUGIN = Path("agent/nccl/libnccl-profiler-fabrictrace.so").resolve()
AGENT, DAEMON, TOOL, STUCK = (Path(p).resolve() for p in (
    "agent/fabrictrace-agent", "daemon/fabrictraced", "cli/fabrictrace", "tests/nccl/stuck"))
TOPOLOGY = SOURCE / "packaging/examples/topology.yaml"
WORLD, PAIR, PXN = "0000000000000fab", "0000000000000fac", "0000000000000fad"
HOW = ["send", "peer", "never", "gpu", "queued", "local", "flush", "take", "kernel"]  # by rank
RANKS = len(HOW)
MAGIC, VERSION = 0x0a4c43434e2d5446, 2
F_ADD_SEALS, SEALS = 1033, 2 | 4
failures = []


def check(what, good, detail=""):
    print(f"{'ok' if good else 'FAIL'}: {what}{'' if good else f': {detail}'}", flush=True)
    if not good:
        failures.append(what)


class Records:
    """The records of a file that grows."""
    def __init__(self, path):
        self.path = path
        self.kept = []
        self.at = 0

    def all(self):
        if self.path.exists():
            with open(self.path, "rb") as file:
                file.seek(self.at)
                text = file.read()
            end = text.rfind(b"\n") + 1
            self.at += end
            self.kept += [json.loads(line) for line in text[:end].splitlines()]
        return self.kept

    def of(self, kind, rank, comm=WORLD):
        return [r for r in self.all() if r["schema"] == f"fabrictrace.{kind}.v1"
                and r.get("rank") == rank and r.get("comm_id") == comm]


def wait_for(what, records, rank, fits, comm=WORLD, kind="progress"):
    """The first record that fits; a failure where none comes."""
    found = speed.wait(lambda: next((r for r in records.of(kind, rank, comm) if fits(r)), None), 90)
    check(what, found, f"last: {records.of(kind, rank, comm)[-1:]}")
    return found or {}


def transfers(record):
    """{(peer, whether it sends): (state, steps done, steps)}"""
    return {(t["peer"], t["send"]): (t["state"], t["steps_done"], t.get("steps"))
            for t in record.get("transfers", [])}


def standing_ranks(records):
    """Each rank as it stands, by the state that its way to hang leads to."""
    for rank, (how, sends, receives, done) in enumerate((
            ("send", "send_wait", "recv_wait", 2), ("peer", "send_peer_wait", "recv_wait", 2),
            ("never", None, None, 0), ("gpu", "send_gpu_wait", "recv_wait", 2),
            ("queued", "queued", "queued", 0), ("local", None, None, 0),
            ("flush", "send_gpu_wait", "recv_flush_wait", 2), ("take", "send_gpu_wait", "recv_gpu_wait", 2),
            ("kernel", None, None, 0))):
        r = wait_for(f"{how}: it stands", records, rank, lambda r: r["standing"])
        check(f"{how}: kernels are told of where the job reports them", ("kernels_open" in r) == (how == "kernel") and
              ("kernels_ended" in r) == (how == "kernel"), str(r))
        if sends:
            want = {((rank + 1) % RANKS, True): (sends, done, 8),
                    ((rank - 1) % RANKS, False): (receives, done, 8)}
            check(f"{how}: what its transfers wait for", transfers(r) == want, str(r))
            check(f"{how}: the operation", [r.get(k) for k in (
                "number", "begun", "finished", "state", "op", "sequence", "sequence_stands", "bytes",
                "transfers_open", "transfers_ended", "enqueued", "process")] ==
                [4, 4, 3, "in_flight", "AllReduce", 2, False, 4194304, 2, 0, True, "running"], str(r))
            check(f"{how}: since when", all(
                r["start_ms"] <= t["since_ms"] <= r["time_ms"] for t in r["transfers"]), str(r))
        check(f"{how}: when it last moved", r.get("moved_ms", 0) <= r.get("time_ms", 0) - 300, str(r))
    r = records.of("progress", 2)[-1]
    check("never: all that it began has ended; the last was a graph", [r.get(k) for k in (
        "number", "begun", "finished", "state", "sequence_stands", "process")] ==
        [3, 3, 3, "finished", True, "running"] and not transfers(r), str(r))
    r = records.of("progress", 5)[-1]
    check("local: begun, and nothing in the network", [r.get(k) for k in (
        "number", "begun", "finished", "state")] == [4, 4, None, "begun"] and not transfers(r), str(r))
    r = records.of("progress", 8)[-1]
    check("kernel: two of its channels run, one has ended", [r.get(k) for k in (
        "number", "begun", "finished", "state", "op", "transfers_open", "transfers_ended", "kernels_open",
        "kernels_ended")] == [4, 4, 3, "in_flight", "AllReduce", 0, 0, 2, 1] and not transfers(r), str(r))
    r = wait_for("a second communicator is idle", records, 0, lambda r: r["standing"], comm=PAIR)
    check("its own count", [r.get(k) for k in ("begun", "finished", "state")] == [1, 1, "finished"],
          str(r))
    r = wait_for("a third one works for others", records, 0, lambda r: r["standing"], comm=PXN)
    check("transfers of another process are its own operations' no more than known",
          r.get("begun") == 0 and "number" not in r and
          [(t["peer"], t["state"], t.get("foreign"), t.get("number")) for t in r["transfers"]] ==
          [(3, "send_wait", True, None)], str(r))
    numbers = [r.get("number") for r in records.of("collective", 0)]
    check("collectives have the same count, and none is over that is in flight", numbers == [1, 2, 3], str(numbers))


def ranks(http):
    """{(communicator, rank): what the tool prints of it}"""
    done = subprocess.run([TOOL, "ranks", "--json"], capture_output=True, text=True,
                          env={**os.environ, "FABRICTRACE_ENDPOINT": http})
    found = [json.loads(line) for line in done.stdout.splitlines()]
    return {(r["comm_id"], r["rank"]): r for r in found}


def shown(what, http, rank, **want):
    """Waits until the tool shows it; an absent member is None."""
    def fits():
        r = ranks(http).get((WORLD, rank), {})
        return all(r.get(k) == v for k, v in want.items())

    check(what, speed.wait(fits, 90), str(ranks(http).get((WORLD, rank))))


def waits_for_room(records):
    """Since when, in each report; to the millisecond, as both clocks are read anew."""
    return [t["since_ms"] for r in records.of("progress", 1) if r["standing"]
            for t in r["transfers"] if t["state"] == "send_peer_wait"]


def signals(records, jobs, http):
    jobs[0].send_signal(signal.SIGSTOP)
    r = wait_for("stopped: it is told", records, 0, lambda r: r["process"] == "stopped")
    check("stopped: its transfers are read all the same",
          transfers(r).get((1, True)) == ("send_wait", 2, 8), str(r))
    jobs[2].send_signal(signal.SIGSTOP)
    wait_for("the one that never began, too", records, 2, lambda r: r["process"] == "stopped")
    shown("ranks: who is stopped", http, 2, process="stopped", number=3, state="finished")
    shown("ranks: who waits for room", http, 1, process="running", standing=True, number=4,
          state="in_flight", standing_op="AllReduce")
    before = len(records.of("progress", 0))
    jobs[0].send_signal(signal.SIGCONT)
    check("it goes on: its process is told to run", speed.wait(lambda: any(
        r["process"] == "running" for r in records.of("progress", 0)[before:]), 90))
    jobs[0].kill()
    jobs[0].wait()
    r = wait_for("killed: it is gone", records, 0, lambda r: r["process"] == "gone")
    check("killed: what it died in", r.get("number") == 4 and
          transfers(r).get((1, True)) == ("send_wait", 2, 8), str(r))
    shown("ranks: what the dead one stood in", http, 0, process="gone", number=4, closed=True)
    wait_for("killed: its operation is incomplete", records, 0,
             lambda r: r.get("number") == 4 and r.get("incomplete"), kind="collective")
    check("a rank that stands is told of again", speed.wait(lambda: len(waits_for_room(records)) > 1, 90))
    since = waits_for_room(records)
    check("what NCCL reports at every poll goes on since it began", since and max(since) - min(since) <= 2,
          str(since))
    for rank in range(1, RANKS):
        jobs[rank].send_signal(signal.SIGCONT)
        jobs[rank].terminate()
    for rank in range(1, RANKS):
        check(f"rank {rank} ends in order", jobs[rank].wait(timeout=speed.limit(120)) == 0)
        wait_for(f"rank {rank}: its communicator is closed", records, rank,
                 lambda r: r.get("closed"), kind="communicator")
        check(f"rank {rank}: it is not told to be gone", not any(
            r["process"] == "gone" for r in records.of("progress", rank)))


def offer(path, memory, version=VERSION):
    client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    client.connect(str(path))
    client.sendmsg([struct.pack(">QI", MAGIC, version)],
                   [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [memory]))])
    return client


def garbage(path, bytes_, seed):
    """Memory of the right size and head; random bytes from there on."""
    memory = os.memfd_create("garbage", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(memory, bytes_)
    random.seed(seed)
    head = struct.pack("=QIIIIII", MAGIC, VERSION, 64, 2048, 256, 256, 192)
    os.pwrite(memory, head, 0)
    os.pwrite(memory, random.randbytes(6 << 20), 4096)
    fcntl.fcntl(memory, F_ADD_SEALS, SEALS)
    return offer(path, memory), memory


def unseen(folder, start):
    """An agent of a PID namespace of its own, as in a container, sees no process of a job: it does not know
    how they are, and says of none that it is gone."""
    if os.geteuid():
        print("skipped: a PID namespace needs root")
        return
    records = Records(folder / "unseen.ndjson")
    agent = start("unshare", "--pid", "--fork", "--kill-child", "--mount-proc", AGENT, "-c", "/dev/null", "--set",
                  "host=gpu02", "--set", f"nccl.socket={folder}/unseen.sock", "--set", "nccl.quiet=300ms", "--set",
                  "rdma.enabled=false", "--set", "http=off", "--output", records.path)
    job = start(STUCK, PLUGIN, "0", str(RANKS), "send", env={
        **os.environ, "FABRICTRACE_SOCKET": f"{folder}/unseen.sock"})
    r = wait_for("unseen: it stands", records, 0, lambda r: r["standing"])
    check("unseen: nothing is known of its process", r.get("process", "unknown") == "unknown", str(r))
    job.send_signal(signal.SIGCONT)
    job.terminate()
    check("unseen: it ends in order", job.wait(timeout=speed.limit(120)) == 0)
    wait_for("unseen: its communicator is closed", records, 0, lambda r: r.get("closed"), kind="communicator")
    check("unseen: it was never said to be gone", not any(
        r.get("process") == "gone" for r in records.of("progress", 0)))
    check("unseen: the agent lives", agent.poll() is None)
    agent.kill()  # unshare passes no other signal on
    agent.wait()


def main():
    jobs, running = {}, []
    seed = int.from_bytes(os.urandom(4), "big")
    print(f"seed {seed}")
    with tempfile.TemporaryDirectory(prefix="ft-progress-") as folder:
        folder = Path(folder)
        records = Records(folder / "records.ndjson")
        http, ingest = (f"127.0.0.1:{free_port()}" for _ in range(2))
        log = open(folder / "agent.log", "w+")

        def start(*args, to=subprocess.DEVNULL, env=None):
            running.append(subprocess.Popen([str(a) for a in args], stderr=to, stdout=to, env=env))
            return running[-1]

        try:
            start(DAEMON, "--topology", TOPOLOGY, "--set", "verify_topology=false", "--set",
                  f"listen={ingest}", "--set", f"http={http}", "--sink", f"file:{records.path}")
            agent = start(AGENT, "-c", "/dev/null", "--set", "host=gpu01", "--set",
                          f"nccl.socket={folder}/nccl.sock", "--set", "nccl.quiet=300ms", "--set",
                          "nccl.hold=200ms", "--set", "http=off", "--set", f"daemon.endpoint={ingest}",
                          to=log)
            for rank, how in enumerate(HOW):
                jobs[rank] = subprocess.Popen(
                    [STUCK, PLUGIN, str(rank), str(RANKS), how], stdout=subprocess.PIPE, text=True,
                    env={**os.environ, "FABRICTRACE_SOCKET": f"{folder}/nccl.sock",
                         "FABRICTRACE_JOB": "88", **({"FABRICTRACE_NCCL_KERNEL": "1"} if how == "kernel" else {})})
            for rank, job in jobs.items():
                check(f"rank {rank} stands", job.stdout.readline() == "ready\n")
            standing_ranks(records)
            size = os.stat(next(f"/proc/{jobs[0].pid}/fd/{fd}" for fd in os.listdir(
                f"/proc/{jobs[0].pid}/fd") if "fabrictrace-nccl" in os.readlink(
                    f"/proc/{jobs[0].pid}/fd/{fd}"))).st_size
            client, memory = garbage(f"{folder}/nccl.sock", size, seed)
            old = offer(f"{folder}/nccl.sock", memory, version=1)
            check("a plugin of another version is refused in words", speed.wait(
                lambda: "has protocol version 1" in (folder / "agent.log").read_text(), 90))
            signals(records, jobs, http)
            client.close()
            old.close()
            check("the agent lives", agent.poll() is None)
            unseen(folder, start)
        finally:
            for process in [*jobs.values(), *reversed(running)]:
                if process.poll() is None:
                    process.send_signal(signal.SIGCONT)
                    process.terminate()
                    process.wait(timeout=speed.limit(120))
        if failures:
            print((folder / "agent.log").read_text())
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
