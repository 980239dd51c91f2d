#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Jobs with the plugin, an agent for each of their hosts, the daemon and the tool: the matrix of a
ring and of a tree equals the formulas; an agent that is killed and started again 20 times loses
nothing that is not counted, and the job does not notice. Runs in the build folder."""
import csv
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
import xml.etree.ElementTree
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import speed  # noqa: E402
from ports import free_port  # noqa: E402

SOURCE = Path(os.environ.get("srcdir", ".")).resolve()
PLUGIN = Path("agent/nccl/libnccl-profiler-fabrictrace.so").resolve()
AGENT, DAEMON, TOOL, JOB = (Path(p).resolve() for p in (
    "agent/fabrictrace-agent", "daemon/fabrictraced", "cli/fabrictrace", "tests/nccl/job"))
TOPOLOGY = SOURCE / "packaging/examples/topology.yaml"
COMM = "0000000000000fab"
HOSTS, RANKS = 4, 8
SLOW_US = 800  # of a step of the slow rank, on an idle machine
WAIT_S = speed.limit(120)
failures = []


def check(what, good, detail=""):
    print(f"{'ok' if good else 'FAIL'}: {what}{'' if good else f': {detail}'}", flush=True)
    if not good:
        failures.append(what)


def equal(what, got, want):
    check(what, got == want, f"got {got!r}, want {want!r}")


def wait_until(done):
    return bool(speed.wait(done, 120))


class Programs:
    def __init__(self, folder):
        self.dir = folder
        self.running = []
        self.http = f"127.0.0.1:{free_port()}"
        self.ingest = f"127.0.0.1:{free_port()}"
        self.start("daemon", DAEMON, "--topology", TOPOLOGY, "--set", "verify_topology=false",
                   "--set", f"listen={self.ingest}",
                   "--set", f"http={self.http}", "--sink", f"file:{folder}/records.ndjson")

    def start(self, name, *args):
        log = open(self.dir / f"{name}.log", "a")
        process = subprocess.Popen([str(a) for a in args], stdout=log, stderr=log)
        self.running.append(process)
        return process

    def agent(self, host, *more):
        # A job that waits for a processor is no collective that has ended.
        hold = f"nccl.hold={speed.limit(200):.0f}ms"
        return self.start(host, AGENT, "-c", "/dev/null", "--set", f"host={host}", "--set",
                          f"nccl.socket={self.dir}/{host}.sock", "--set", hold,
                          "--set", "http=off", "--set", "loss_interval=1s", *more)

    def job(self, host, rank, ranks, seconds, pause_us, *more):
        return subprocess.Popen(
            [JOB, PLUGIN, str(rank), str(ranks), str(seconds), str(pause_us), *more],
            env={**os.environ, "FABRICTRACE_SOCKET": f"{self.dir}/{host}.sock",
                 "FABRICTRACE_JOB": "88"}, stdout=subprocess.PIPE, text=True)

    def tool(self, *args):
        done = subprocess.run([TOOL, *args], capture_output=True, text=True,
                              env={**os.environ, "FABRICTRACE_ENDPOINT": self.http})
        if done.returncode:
            raise RuntimeError(f"fabrictrace {args}: {done.stderr}")
        return done.stdout

    def stop(self):
        for process in reversed(self.running):
            if process.poll() is None:
                process.terminate()
                process.wait(timeout=WAIT_S)


def matrix(programs):
    lines = programs.tool("matrix", "--json").splitlines()
    return json.loads(lines[0]) if lines else {"edges": [], "members": []}


def by_pair(found):
    """{(source, destination): edge}, with the nameless rest of an operation that was cut in two."""
    pairs = {}
    for e in found.get("edges", []):
        pair = pairs.setdefault((e["src"], e["dst"]), {
            "sent_bytes": 0, "received_bytes": 0, "expected_bytes": 0})
        for key in pair:
            pair[key] += e.get(key, 0)
    return pairs


def run_jobs(programs, *more, but=()):
    """A job of all ranks; the ranks of `but` get another mode."""
    jobs = [programs.job(f"gpu{r * HOSTS // RANKS:02}", r, RANKS, 2, 20000,
                         *dict(but).get(r, more)) for r in range(RANKS)]
    return [json.loads(j.communicate(timeout=WAIT_S)[0]) for j in jobs]


def total(found):
    """(sent, received) bytes of all edges."""
    return tuple(sum(e[key] for e in found.get("edges", [])) for key in ("sent_bytes", "received_bytes"))


def accounts(programs):
    """{source: its last accounting} as the daemon has them."""
    with urllib.request.urlopen(f"http://{programs.http}/api/v1/loss", timeout=WAIT_S) as answer:
        return {r["source"]: r for r in json.loads(answer.read())["records"]}


def told_all(programs):
    """Whether every agent has accounted for all that it was given, after this was called first. Records
    keep their order: whatever was to come before has come."""
    begun_ms = time.time() * 1000

    def done():
        last = [r for source, r in accounts(programs).items() if source.startswith("gpu")]
        return len(last) == HOSTS and all(
            r["time_ms"] > begun_ms and stage([r], "nccl").get("pending") == 0 for r in last)

    return wait_until(done)


def settled(programs, sent_bytes):
    """The matrix once all is in it that was sent, and whatever should not have been."""
    wait_until(lambda: min(total(matrix(programs))) >= sent_bytes)
    check("agents account for all that they were given", told_all(programs), str(accounts(programs)))
    return matrix(programs)


def ring_bytes(results, size=4 * 1048576):
    """What a ring of all ranks sends."""
    return sum((r["operations"] - 1) * 2 * size * (RANKS - 1) // RANKS for r in results)


def ring(programs):
    results = run_jobs(programs)
    found = settled(programs, ring_bytes(results))
    edges = by_pair(found)
    size = 4 * 1048576
    equal("ring: each rank sends to the next alone", sorted(edges),
          sorted((r, (r + 1) % RANKS) for r in range(RANKS)))
    for r, result in enumerate(results):
        edge = edges.get((r, (r + 1) % RANKS))
        if not edge:
            continue
        # One operation before the measured ones has one empty step; the formula counts it whole.
        count = result["operations"] - 1
        equal(f"ring: rank {r} sent 2N(n-1)/n a time", edge["sent_bytes"],
              count * 2 * size * (RANKS - 1) // RANKS)
        equal(f"ring: rank {r} by formula", edge["expected_bytes"],
              (count + 1) * 2 * size * (RANKS - 1) // RANKS)
        # Each rank runs for a time of its own, so the next one's count may be another.
        equal(f"ring: what the next of rank {r} received", edge["received_bytes"],
              (results[(r + 1) % RANKS]["operations"] - 1) * 2 * size * (RANKS - 1) // RANKS)
    equal("ring: 8 members on 4 hosts", (len(found["members"]),
                                         len({m["host"] for m in found["members"]})), (8, 4))
    return results


def tree(programs, before):
    results = run_jobs(programs, "tree")
    size = 2 * 4 * 65536
    peers = {r: [p for p in ([(r - 1) // 2] if r else []) + [2 * r + 1, 2 * r + 2] if p < RANKS]
             for r in range(RANKS)}
    found = settled(programs, min(total(before)) + sum(
        (result["operations"] - 1) * size * len(peers[r]) for r, result in enumerate(results)))
    edges = by_pair(found)
    old = by_pair(before)
    sums = {r: 0 for r in range(RANKS)}
    for r, result in enumerate(results):
        for peer in peers[r]:
            # Rank 0's first operation, over a ring, goes to rank 1 too.
            ran = result["operations"] - 1
            sent = edges[r, peer]["sent_bytes"] - old.get((r, peer), {}).get("sent_bytes", 0)
            equal(f"tree: rank {r} sent N to {peer} a time", sent, ran * size)
            sums[r] += sent
    rows = {r: sum(e["sent_bytes"] for (s, _), e in edges.items() if s == r)
            - sum(e["sent_bytes"] for (s, _), e in old.items() if s == r) for r in range(RANKS)}
    equal("tree: the row sums are the bytes sent", rows, sums)


def forms(programs):
    text = programs.tool("matrix", "--comm", COMM)
    check("text names communicator and formula", COMM in text and "BY FORMULA" in text, text)
    print(text)
    rows = list(csv.DictReader(io.StringIO(programs.tool("matrix", "--csv", "--by", "host"))))
    hosts = {row["from"] for row in rows}
    equal("CSV by host", hosts, {f"gpu{h:02}" for h in range(HOSTS)})
    equal("CSV by host keeps the sum", sum(int(row["bytes"]) for row in rows),
          total(matrix(programs))[0])
    svg = programs.tool("matrix", "--comm", COMM, "--svg", "-")
    root = xml.etree.ElementTree.fromstring(svg)
    cells = [e for e in root if e.tag.endswith("rect") and len(e)]
    equal("heat map: a cell for each pair", len(cells),
          len({(e["src"], e["dst"]) for e in matrix(programs)["edges"]}))
    empty = programs.tool("matrix", "--op", "Broadcast", "--json")
    equal("another operation has no edges", json.loads(empty).get("edges", []), [])


def slow_rank(programs):
    """One rank sends slowly: it names its peer, and nobody else names one."""
    def named():
        return {r["rank"]: r["slowest_peer"] for r in ranks() if "slowest_peer" in r}

    def ranks():
        return [json.loads(line) for line in programs.tool("ranks", "--json").splitlines()]

    # The last operation of a job that was held up in the middle of it comes in two parts, neither
    # of which can be judged: then it runs again. Where every step waits for a processor, a slow one
    # has to be slower to stand out, but not so slow that each operation is held up.
    deadline = speed.Deadline(60)
    while True:
        before = min(total(matrix(programs)))
        slow = ("slow", f"{min(speed.measured(), 3) * SLOW_US:.0f}")
        settled(programs, before + ring_bytes(run_jobs(programs, but={5: slow}.items())))
        if named() or deadline.passed():
            break
    equal("ranks: the slow pair is named, and no other", named(), {5: 6})
    rank = [r for r in ranks() if r["rank"] == 5][0]
    check("ranks: its steps beside the others'", rank.get("slowest_step_median_ns", 0) > SLOW_US * 1000 and
          rank["slowest_step_median_ns"] > rank.get("others_step_median_ns", 0) > 0, str(rank))
    check("ranks: without a path no link is named", "slowest_switch" not in rank, str(rank))
    equal("ranks: every rank and its last operation", [(r["rank"], r["host"], r["op"])
          for r in ranks()], [(r, f"gpu{r * HOSTS // RANKS:02}", "AllReduce")
                              for r in range(RANKS)])
    text = programs.tool("ranks", "--comm", COMM)
    check("ranks as text", "SLOWEST TO" in text and COMM in text, text)
    print(text)
    try:
        programs.tool("ranks", "--json", "--comm", "0000000000000bad")
        check("ranks of another communicator are refused", False)
    except RuntimeError as error:
        check("ranks of another communicator", "no communicator '0000000000000bad' is known" in str(error),
              str(error))


def replay(folder, records):
    """The records that the daemon makes of records."""
    source = folder / "join.ndjson"
    source.write_text("".join(json.dumps(r) + "\n" for r in records))
    out = subprocess.run([DAEMON, "--topology", TOPOLOGY, "--set", "verify_topology=false", "--replay", source,
                          "--sink", "file:-"],
                         capture_output=True, text=True, check=True).stdout
    return [json.loads(line) for line in out.splitlines()]


def slowest(records):
    """What the last collective of each rank says of its slowest peer."""
    return {r["rank"]: {k: v for k, v in r.items() if k.startswith(("slowest", "others"))}
            for r in records if r["schema"] == "fabrictrace.collective.v1"}


def join(folder):
    """Two ranks a host, two flows between the hosts: the process says which is whose."""
    t = 1700000000000
    hosts = {0: "gpu01", 1: "gpu01", 2: "gpu02", 3: "gpu02"}
    records = [{"schema": "fabrictrace.communicator.v1", "time_ms": t, "host": hosts[r],
                "pid": 100 + r, "job": "88", "comm_id": COMM, "rank": r, "ranks": 4}
               for r in hosts]
    records += [{"schema": "fabrictrace.collective.v1", "time_ms": t + 100, "host": hosts[src],
                 "pid": 100 + src, "comm_id": COMM, "rank": src, "ranks": 4, "op": "AllReduce",
                 "peers": [{"peer": dst, "channel": 0, "sent_bytes": 1000, "sent_messages": 1}]}
                for src, dst in ((0, 2), (1, 3))]
    for sport, pid in ((50001, 100), (50002, 101), (50003, None)):
        flow = {"src": "10.0.1.1", "dst": "10.0.2.1", "sport": sport, "dport": 4791, "proto": 17}
        records.append({"schema": "fabrictrace.flow.v1", "time_ms": t + 1000, "interval_ms": 1000,
                        "host": "gpu01", "flow": flow, "direction": "tx", "data_packets": 10,
                        "bytes": 10000, **({"pid": pid} if pid else {})})
        records.append({"schema": "fabrictrace.observation.v1", "time_ms": t + 1000,
                        "agent": "192.0.2.11", "flow": flow, "in_ifindex": 1,
                        "out_ifindex": 50 if sport == 50002 else 49,
                        "samples": 10, "data_samples": 10, "bytes": 10000})
    # A window later the same ring again, with one slow pair. Its flow and another pair's, which
    # comes over the other spine, share the last link.
    records += [{"schema": "fabrictrace.collective.v1", "time_ms": t + 15000 + i, "host": hosts[src],
                 "pid": 100 + src, "comm_id": COMM, "rank": src, "ranks": 4, "op": "AllReduce",
                 "bytes": 1000, "peers": [{"peer": dst, "channel": 0, "sent_bytes": 1000,
                                           "sent_messages": 10, "step_median_ns": step}]}
                for i, (src, dst, step) in enumerate(
                    ((2, 1, 50000), (1, 3, 50000), (3, 0, 40000), (0, 2, 300000)))]
    found = replay(folder, records)
    paths = {r["flow"]["sport"]: r for r in found if r["schema"] == "fabrictrace.path.v1"}
    slow = {"slowest_peer": 2, "slowest_step_median_ns": 300000, "others_step_median_ns": 50000}
    equal("join: the slow pair; a flow that may be its own leaves the link open",
          slowest(found), {0: slow, 1: {}, 2: {}, 3: {}})
    sure = [r for r in records if r.get("flow", {}).get("sport") != 50003]
    equal("join: the slow pair and the link under it", slowest(replay(folder, sure)), {
        0: {**slow, "slowest_switch": "leaf2", "slowest_port": "Ethernet1",
            "slowest_port_flows": 2}, 1: {}, 2: {}, 3: {}})
    for sport, src, dst in ((50001, 0, 2), (50002, 1, 3)):
        equal(f"join: flow {sport} is certainly of ranks {src} and {dst}",
              tuple(paths[sport].get(k) for k in ("comm_id", "src_rank", "dst_rank", "job")),
              (COMM, src, dst, "88"))
    check("join: a flow of an unknown process has candidates and no claim",
          "src_rank" not in paths[50003] and
          {(c["src_rank"], c["dst_rank"]) for c in paths[50003]["rank_candidates"]}
          == {(0, 2), (1, 3)}, str(paths[50003]))


def stage(records, name):
    for record in reversed(records):
        for s in record.get("stages", []):
            if s["name"] == name:
                return s
    return {}


def whole_lines(path):
    """One that was killed may leave half a line, one that runs is in the middle of it."""
    return path.read_text().split("\n")[:-1] if path.exists() else []


def events(path):
    return sum(json.loads(line).get("events", 0) for line in whole_lines(path))


def told_twice(paths, surplus):
    """Whether a number of events is that of some last records. An agent that is killed between writing
    a record and noting that it did leaves a record that the next one counts as lost too."""
    sums = {0}
    for path in paths:
        last = [json.loads(line).get("events", 0) for line in whole_lines(path)][-1:]
        sums |= {n + again for n in sums for again in last}
    return surplus in sums


def finish(agent):
    agent.terminate()
    agent.wait(timeout=WAIT_S)


def finish_job(job):
    """What it prints in the end."""
    job.terminate()
    return json.loads(job.communicate(timeout=WAIT_S)[0])


def handover(programs):
    """An agent that ends in order hands the job over: not one call is lost."""
    files = [programs.dir / "first.ndjson", programs.dir / "second.ndjson"]
    agent = programs.agent("gpu30", "--output", files[0])
    wait_until(lambda: (programs.dir / "gpu30.sock").exists())
    job = programs.job("gpu30", 0, 4, 4 * WAIT_S, 2000)
    wait_until(lambda: events(files[0]))
    finish(agent)
    agent = programs.agent("gpu30", "--output", files[1])
    wait_until(lambda: events(files[1]))
    calls = finish_job(job)["calls"]
    wait_until(lambda: sum(map(events, files)) >= calls)
    finish(agent)
    told = [events(f) for f in files]
    check("handover: both agents saw a part", min(told) > 0, str(told))
    equal("handover: every call is reported by one of two agents", sum(told), calls)


def socket_of(programs, host):
    """Which socket an agent listens on: another one each time that it starts."""
    try:
        found = (programs.dir / f"{host}.sock").stat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_ctime_ns


def restarts(programs):
    """The same job with an agent killed 20 times, beside one whose agent is left alone."""
    host, calm, before = "gpu20", "gpu21", None

    def listens(earlier):
        return socket_of(programs, host) != earlier

    files = [programs.dir / f"kills{i}.ndjson" for i in range(21)]
    other = programs.agent(calm, "--output", programs.dir / "calm.ndjson")
    agent = programs.agent(host, "--output", files[0])
    wait_until(lambda: all((programs.dir / f"{h}.sock").exists() for h in (host, calm)))
    jobs = [programs.job(h, 0, 2, 4 * WAIT_S, 500) for h in (host, calm)]
    # Some are killed while they hold events back, some when they have just begun to listen, some when
    # the job has found them and nothing is written yet.
    for i in range(20):
        states = (lambda: events(files[i]), lambda: listens(before), lambda: files[i].exists())
        if not wait_until(states[i % 3 if i else 0]):
            check(f"agent {i} comes as far as it is to be killed", False)
        before = socket_of(programs, host)
        agent.send_signal(signal.SIGKILL)
        agent.wait()
        agent = programs.agent(host, "--output", files[i + 1])
    wait_until(lambda: events(files[20]))
    killed, left = [finish_job(j) for j in jobs]
    path = files[20]

    def lost():
        """By the last account: agents may have been killed before they had told of earlier ones."""
        s = stage([json.loads(line) for line in whole_lines(path)], "nccl")
        return sum(d["count"] for d in s.get("drops", []))

    wait_until(lambda: sum(map(events, files)) + lost() >= killed["calls"])
    for process in (agent, other):
        finish(process)
    told = sum(map(events, files))
    last = [json.loads(line) for line in path.read_text().splitlines()]
    s = stage(last, "nccl")
    drops = {d["reason"]: d["count"] for d in s.get("drops", [])}
    print(f"  killed 20 times: {killed}; left alone: {left}")
    print(f"  {killed['calls']} calls = {told} reported + lost {drops}")
    check("killed agents' losses are counted", drops.get("agent_restart", 0) > 0, str(s))
    equal("the last agent's account balances", s["received"],
          s["processed"] + s["pending"] + sum(drops.values()))
    surplus = told + sum(drops.values()) - killed["calls"]
    check("20 kills: every call is reported or counted as lost, but for a last record both",
          told_twice(files[:20], surplus), f"{surplus} more than there were")
    # Some slow calls come from this machine's interrupts: the calm job has them as well.
    check("the job does not notice",
          killed["slow"] / killed["calls"] <= 3 * left["slow"] / left["calls"] + 2e-5,
          f"slow calls: {killed['slow']} of {killed['calls']} against {left['slow']} of "
          f"{left['calls']}")


def main():
    with tempfile.TemporaryDirectory(prefix="ft-nccl-") as folder:
        programs = Programs(Path(folder))
        try:
            for h in range(HOSTS):
                programs.agent(f"gpu{h:02}", "--set", f"daemon.endpoint={programs.ingest}")
            ready = wait_until(lambda: all(
                (programs.dir / f"gpu{h:02}.sock").exists() for h in range(HOSTS)))
            check("agents listen", ready)
            ring(programs)
            before = matrix(programs)
            tree(programs, before)
            forms(programs)
            slow_rank(programs)
            join(programs.dir)
            handover(programs)
            restarts(programs)
        finally:
            programs.stop()
            if failures:
                for log in sorted(Path(folder).glob("*.log")):
                    print(f"-- {log.name}\n" + log.read_text()[-2000:])
    print(f"{len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
