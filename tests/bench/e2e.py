#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""From sFlow datagrams to paths in a file, with all programs at once: what a sample costs in each
program, what is lost where, and how many paths are right.

The datagrams are those of the 544 switches of a 512-leaf, 32-spine fabric (fabric_flood), whose paths
are known. Each row is one run: CPU in microseconds a sample of pollers and daemon, bytes between
them for an observation, drops by stage, how late the last window was closed, peak memory, and the
share of the flows whose last path record is resolved and right; where the daemon cannot keep up,
over how long was folded at most, and the lowest seen_share of a window. It fails when a stage of any
loss record does not add up, a path is wrong, or windows claim to have seen all of what was thinned.

--peers: then the same datagrams through sfacctd and goflow2, where they are installed (SFACCTD and
GOFLOW2 name others; `make tests/bench/goflow2` fetches that one), with a file as their output and
without any path.

--kafka: the daemon's records go to a real broker on the same machine, as protobuf, instead of to a file; paths and
loss are those of its API at the end, whose cost does not count.

CPU counts from when a program has settled after its start, for all of them. --turns N: each row so
often, all programs in turns, and the median of each at the end, with the load of the machine.

usage: e2e.py [--runs FLOWSxRATE,..] [--seconds S] [--pollers N] [--turns N] [--peers] [--kafka] [--bin FOLDER]
Runs in the build folder; --bin names another one, whose programs are measured."""
import argparse
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from ports import free_port  # noqa: E402

LEAVES, SPINES, HOSTS = 512, 32, 16
MASK = (1 << 64) - 1
FLOOD = Path("tests/bench/fabric_flood").resolve()
BROKER = Path(__file__).resolve().parents[1] / "kafka/broker.py"
WAIT_S = 300
REFRESH_S = 10
# Of sfacctd: what an entry of its cache takes at the start, and about what a sample takes on its way there.
CACHE_ENTRY_BYTES, QUEUED_BYTES = 4048, 256


def plan_of(flow):
    """(source leaf and host, spine, destination leaf and host), as in fabric_flood.c."""
    h = (flow + 1) * 0x9E3779B97F4A7C15 & MASK
    h ^= h >> 29
    h = h * 0xBF58476D1CE4E5B9 & MASK
    h ^= h >> 32
    src = h % LEAVES
    dst = (src + 1 + (h >> 10) % (LEAVES - 1)) % LEAVES
    return (src, (h >> 20) % HOSTS), (h >> 28) % SPINES, (dst, (h >> 24) % HOSTS)


def address(leaf, host):
    return f"10.{leaf >> 8}.{leaf & 255}.{host + 1}"


def write_topology(file):
    """No hosts: where they are attached is learnt."""
    lines = ["fabric: bench", "switches:"]
    for i in range(LEAVES + SPINES):
        leaf = i < LEAVES
        name, number = (f"leaf{i}", i + 1) if leaf else (f"spine{i - LEAVES}", i + 1)
        ports = [(1 + h, f"host{h}") for h in range(HOSTS)] + [(100 + s, f"up{s}") for s in range(SPINES)] \
            if leaf else [(1 + x, f"down{x}") for x in range(LEAVES)]
        lines += [f"  - name: {name}", f"    tier: {'leaf' if leaf else 'spine'}",
                  f"    addresses: [192.0.{number >> 8}.{number & 255}]", "    ports:"]
        lines += [f"      - {{ifindex: {n}, name: {p}, speed_bps: 400000000000}}" for n, p in ports]
    lines.append("links:")
    lines += [f"  - {{a: leaf{x}, a_port: up{s}, b: spine{s}, b_port: down{x}}}"
              for x in range(LEAVES) for s in range(SPINES)]
    lines.append("hosts:")
    lines += [f"  - {{name: h{x}-{h}, nics: [{{addresses: [{address(x, h)}], "
              f"attach: [{{switch: leaf{x}, port: host{h}}}]}}]}}" for x in range(LEAVES) for h in range(HOSTS)]
    file.write_text("\n".join(lines) + "\n")


class Program:
    """One that is measured: the CPU time and peak memory of it and of whom it started."""

    def __init__(self, folder, *command):
        self.name = Path(str(command[0])).name
        self.log = open(folder / f"{self.name}.log", "ab")
        self.process = subprocess.Popen([str(c) for c in command], stdout=subprocess.DEVNULL,
                                        stderr=self.log, start_new_session=True)
        self.peak_kib = 0

    def cpu(self):
        """Seconds of user and system time by now, of all its processes and those that ended in it."""
        used = 0
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = stat.read_text().rsplit(")", 1)[1].split()
            except (FileNotFoundError, ProcessLookupError):
                continue
            if int(fields[2]) == self.process.pid:
                used += sum(map(int, fields[11:15]))
        return used / os.sysconf("SC_CLK_TCK")

    def settled(self, quiet_s=3):
        """Waits until it does nearly nothing, and returns its CPU seconds by then."""
        since, used = time.monotonic(), self.cpu()
        while time.monotonic() - since < quiet_s:
            time.sleep(0.2)
            if self.process.poll() is not None:
                raise SystemExit(f"e2e.py: {self.name} ended: {self.said()}")
            if (now := self.cpu()) > used + 0.02 * quiet_s:
                since, used = time.monotonic(), now
        return self.cpu()

    def said(self):
        return Path(self.log.name).read_text(encoding="utf-8").strip()

    def stop(self, how=signal.SIGTERM):
        """Returns its CPU seconds in all."""
        if self.process.returncode is None:
            # Not ru_maxrss, in which this script's own memory is.
            status = Path(f"/proc/{self.process.pid}/status").read_text()
            self.peak_kib = int(re.search(r"VmHWM:\s*(\d+)", status).group(1))
            self.process.send_signal(how)
        _, status, used = os.wait4(self.process.pid, 0)
        self.process.returncode = os.waitstatus_to_exitcode(status)
        self.log.close()
        return used.ru_utime + used.ru_stime


def until(what, condition, program=None, seconds=WAIT_S):
    """Waits for a state that a program is to reach, which it cannot once it has ended."""
    end = time.monotonic() + seconds
    while not (value := condition()):
        if program and program.process.poll() is not None:
            raise SystemExit(f"e2e.py: {what} ended: {program.said()}")
        if time.monotonic() > end:
            raise SystemExit(f"e2e.py: not within {seconds} s: {what}")
        time.sleep(0.1)
    return value


def bound(port):
    rows = [line.split() for name in ("/proc/net/udp", "/proc/net/udp6")
            for line in Path(name).read_text().splitlines()[1:]]
    return next((r for r in rows if int(r[1].rsplit(":", 1)[1], 16) == port), None)


def waiting(port):
    """Bytes in the socket that is bound to the port."""
    row = bound(port)
    return int(row[4].split(":")[1], 16) if row else 0


def figures(port):
    """{name with labels: value} of a /metrics page; nothing when it does not answer."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as page:
            lines = page.read().decode().splitlines()
    except OSError:
        return {}
    return {k: float(v) for k, _, v in (x.rpartition(" ") for x in lines if x and x[0] != "#")}


def sent_bytes(port):
    """Bytes that pollers sent to the daemon and that were acknowledged by its kernel."""
    rows = subprocess.run(["ss", "-tinH", "state", "established", f"( dport = :{port} )"],
                          capture_output=True, text=True, check=False).stdout
    return sum(int(n) for n in re.findall(r"bytes_acked:(\d+)", rows))


def flood(ports, flows, rate):
    out = subprocess.run([FLOOD, "-r", str(rate), "-t", str(ARGS.seconds), "-k", str(flows), "-p",
                          ",".join(map(str, ports))], check=True, capture_output=True, text=True).stdout
    samples, _datagrams, seconds = out.split()
    return int(samples), float(seconds)


def adds_up(stage):
    lost = sum(d["count"] for d in stage.get("drops", []))
    return stage["received"] == stage["processed"] + stage["pending"] + lost


def read_sink(file):
    """({(src, sport, dst, dport): its last path record}, {program: its last loss record}, stages of any
    loss record that do not add up, lowest share of the samples that a window saw, longest fold, whether a
    window should say that samples were thinned out: one began to close after a program had said so)."""
    paths, losses, odd, seen, fold, after = {}, {}, [], 1.0, 0, set()
    with open(file, encoding="utf-8") as lines:
        for line in lines:
            if line.startswith('{"schema":"fabrictrace.path.v1"'):
                record = json.loads(line)
                f = record["flow"]
                paths[f["src"], f["sport"], f["dst"], f["dport"]] = record
            elif line.startswith('{"schema":"fabrictrace.loss.v1"'):
                record = json.loads(line)
                losses[record["program"], record["source"]] = record
                odd += [f"{record['program']} {s}" for s in record.get("stages", []) if not adds_up(s)]
                fold = max(fold, record.get("fold_ms", 0))
            elif line.startswith('{"schema":"fabrictrace.imbalance.v1"'):
                record = json.loads(line)
                seen = min(seen, record.get("seen_share", 1))
                if "switchpoll samples thinned" in drops_of(losses):
                    after.add(record["window_end_ms"])
    return paths, losses, odd, seen, fold, len(after) > 1


def pages(http, what, **words):
    """All records of a list of the daemon's API."""
    cursor = None
    while True:
        query = urllib.parse.urlencode({**words, "limit": 1000, **({"cursor": cursor} if cursor else {})})
        with urllib.request.urlopen(f"http://127.0.0.1:{http}/api/v1/{what}?{query}", timeout=60) as answer:
            page = json.load(answer)
        yield from page["records"]
        cursor = page.get("next")
        if not cursor:
            return


def read_api(http):
    """As read_sink, of what is known at the end; windows are not looked at."""
    paths = {(r["flow"]["src"], r["flow"]["sport"], r["flow"]["dst"], r["flow"]["dport"]): r
             for r in pages(http, "paths", sort="flow")}
    losses = {(r["program"], r["source"]): r for r in pages(http, "loss")}
    odd = [f"{r['program']} {s}" for r in losses.values() for s in r.get("stages", []) if not adds_up(s)]
    return paths, losses, odd, 1.0, max((r.get("fold_ms", 0) for r in losses.values()), default=0), False


def judge(paths, flows):
    """(flows resolved and right, resolved and wrong)"""
    right = wrong = 0
    for flow in range(flows):
        (src, src_host), spine, (dst, dst_host) = plan_of(flow)
        record = paths.get((address(src, src_host), flow & 0xFFFF, address(dst, dst_host), 4791 + (flow >> 16)))
        if not record or record["state"] != "resolved":
            continue
        if [h["switch"] for h in record["hops"]] == [f"leaf{src}", f"spine{spine}", f"leaf{dst}"]:
            right += 1
        else:
            wrong += 1
    return right, wrong


def drops_of(losses):
    """{program, stage and reason: what was lost there}"""
    found = {}
    for (program, _), record in losses.items():
        for stage in record.get("stages", []):
            for d in stage.get("drops", []):
                key = f"{program.replace('fabrictrace-', '')} {stage['name']} {d['reason']}"
                found[key] = found.get(key, 0) + d["count"]
    return found


def observed(http):
    """Observations that the daemon has by now. The page of metrics has some figures per link: to make it
    costs more in a large fabric than this wait may."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{http}/api/v1/loss", timeout=60) as answer:
            records = json.load(answer)["records"]
    except OSError:
        return None
    return next(s["received"] for r in records if r["program"] == "fabrictraced" for s in r["stages"]
                if s["unit"] == "observations")


def wait_quiet(http, udp):
    """Until the daemon has all that there is, and has closed a window since."""
    until("empty sockets", lambda: all(waiting(p) == 0 for p in udp))
    last, since = None, time.monotonic()
    while time.monotonic() - since < 14:
        now = observed(http)
        if now != last or now is None:
            last, since = now, time.monotonic()
        time.sleep(0.5)
    return figures(http)


def broker(verb, folder):
    """HOST:PORT of a broker."""
    return subprocess.run([BROKER, verb, folder / "kafka"], check=True, capture_output=True, text=True).stdout.strip()


def run(folder, topology, flows, rate):
    ingest, http = free_port(), free_port()
    udp = [free_port() for _ in range(ARGS.pollers)]
    sink = folder / "out.ndjson"
    sink.unlink(missing_ok=True)
    sinks = f'sinks: ["file:{sink}"]\n' if not ARGS.kafka else \
        f'sinks: [kafka]\nkafka: {{brokers: "{broker("address", folder)}", format: protobuf}}\n'
    (folder / "daemon.yaml").write_text(
        f'listen: "127.0.0.1:{ingest}"\nhttp: "127.0.0.1:{http}"\ntopology: {topology}\n{sinks}'
        f'flows_max: {max(2 * flows, 100000)}\nlog.level: error\n')
    bin_ = Path(ARGS.bin)
    daemon = Program(folder, bin_ / "daemon/fabrictraced", "-c", folder / "daemon.yaml")
    pollers = []
    try:
        until("the daemon", lambda: figures(http), daemon)
        idle = daemon.settled()
        for n, port in enumerate(udp):
            (folder / f"poller{n}.yaml").write_text(
                f'listen: "127.0.0.1:{port}"\nhttp: "off"\nsource_id: poller{n}\nlog.level: error\n'
                f'daemon.endpoint: "127.0.0.1:{ingest}"\nfold_entries: {max(4 * flows, 262144)}\n'
                f'memory_max: {max(896 << 20, 2048 * flows)}\n')
            pollers.append(Program(folder, bin_ / "switchpoll/fabrictrace-switchpoll", "-c",
                                   folder / f"poller{n}.yaml"))
            until("a poller", lambda p=port: bound(p), pollers[-1])
        poller_idle = sum(p.settled() for p in pollers)
        samples, seconds = flood(udp, flows, rate)
        page = wait_quiet(http, udp)
        wire = sent_bytes(ingest)
        poller_cpu = sum(p.stop() for p in pollers) - poller_idle
        time.sleep(1)
        if ARGS.kafka:
            daemon_cpu = daemon.cpu() - idle
            read = read_api(http)
            daemon.stop()
        else:
            daemon_cpu = daemon.stop() - idle
            read = read_sink(sink)
    except BaseException:
        for p in [daemon, *pollers]:
            if p.process.returncode is None:
                p.process.kill()
        raise
    paths, losses, odd, seen, fold, said = read
    right, wrong = judge(paths, flows)
    drops = drops_of(losses)
    lag = next((v for k, v in page.items() if k.endswith("window_close_lag_seconds")), float("nan"))
    observations = sum(s["processed"] for r in losses.values() for s in r.get("stages", [])
                       if s["name"] == "transport" and s["unit"] == "records" and "switchpoll" in r["program"])
    print(f"{flows:>9,} {samples / seconds:>9,.0f} {poller_cpu / samples * 1e6:>7.2f} "
          f"{daemon_cpu / samples * 1e6:>7.2f} {(poller_cpu + daemon_cpu) / samples * 1e6:>7.2f} "
          f"{wire / max(observations, 1):>7.1f} {lag:>6.1f} {sum(p.peak_kib for p in pollers) / 1024:>7.0f} "
          f"{daemon.peak_kib / 1024:>7.0f} {100 * right / flows:>7.2f} {wrong:>5}  "
          f"{', '.join(f'{k} {v:,}' for k, v in sorted(drops.items())) or 'nothing lost'}"
          f"{f'; folds to {fold / 1000:g} s' if fold > 1000 else ''}"
          f"{f'; seen {100 * seen:.1f} %' if seen < 1 else ''}", flush=True)
    if odd or wrong:
        raise SystemExit(f"e2e.py: {wrong} paths are wrong; stages that do not add up: {odd or 'none'}")
    if said and seen == 1:
        raise SystemExit("e2e.py: samples were thinned out, and each window claims that it saw all")
    return (poller_cpu + daemon_cpu) / samples * 1e6


def found(variable, name):
    return (os.environ.get(variable) or shutil.which(name) or shutil.which(f"/usr/sbin/{name}")
            or shutil.which(f"tests/bench/{name}"))


def sfacctd(folder, port, flows, rate):
    """Room for twice the keys of a refresh, a quarter of the memory at most; a buffer is full within a
    tenth of a second."""
    room = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 4 // CACHE_ENTRY_BYTES
    entries = max(min(2 * 3 * flows, 2 * REFRESH_S * rate, room), 1000) | 1
    buffer = min(max(rate * QUEUED_BYTES // 10, 8192), 65536)
    (folder / "sfacctd.conf").write_text(
        f"daemonize: false\nsfacctd_ip: 127.0.0.1\nsfacctd_port: {port}\nsfacctd_pipe_size: 4194304\n"
        f"plugins: print\nprint_refresh_time: {REFRESH_S}\nprint_output: json\nprint_output_file_append: true\n"
        f"print_output_file: {folder}/sfacctd.json\nprint_cache_entries: {entries}\n"
        "aggregate: peer_src_ip,src_host,dst_host,src_port,dst_port,proto,in_iface,out_iface\n"
        f"plugin_pipe_size: 67108864\nplugin_buffer_size: {buffer}\n")
    return [found("SFACCTD", "sfacctd"), "-f", folder / "sfacctd.conf"]


def goflow2(folder, port, _flows, _rate):
    return [found("GOFLOW2", "goflow2"), "-listen", f"sflow://127.0.0.1:{port}", "-addr", "", "-format", "json",
            "-transport", "file", "-transport.file", folder / "goflow2.json"]


def written(folder, name):
    """Records that it wrote and the sum of their packets, by the text: goflow2's writers may put two of
    them into one line."""
    packets = []
    with open(folder / f"{name}.json", "rb") as lines:
        for line in lines:
            packets += re.findall(rb'"packets": ?(\d+)', line)
    return len(packets), sum(map(int, packets))


def peer(folder, name, variable, command, flows, rate):
    if not found(variable, name):
        print(f"{name}: not installed, not measured ({variable} names the program)")
        return None
    port = free_port()
    file = folder / f"{name}.json"
    file.unlink(missing_ok=True)
    program = Program(folder, *command(folder, port, flows, rate))
    try:
        until(name, lambda: bound(port), program)
        idle = program.settled()
        samples, seconds = flood([port], flows, rate)
        until("an empty socket", lambda: waiting(port) == 0)
        dropped = int(bound(port)[-1])
        used = program.settled(REFRESH_S + 2) - idle
        records, counted = written(folder, name) if file.exists() else (0, 0)
    finally:
        program.process.send_signal(signal.SIGINT)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.sendto(b"end", ("127.0.0.1", port))
        time.sleep(2)
        try:
            os.killpg(program.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        program.process.wait()
    print(f"{name}: {flows:,} flows, {samples / seconds:,.0f} samples/s: {used / samples * 1e6:.2f} us of CPU a "
          f"sample sent; {dropped:,} datagrams dropped at its socket; {records:,} records written, of "
          f"{100 * counted / samples:.1f} % of the samples; no paths", flush=True)
    if records == 0:
        raise SystemExit(f"e2e.py: {name} wrote nothing: {program.said()}")
    return used / max(counted, 1) * 1e6


def main():
    runs = [tuple(int(n) for n in r.lower().split("x")) for r in ARGS.runs.split(",")]
    peers = [("sfacctd", "SFACCTD", sfacctd), ("goflow2", "GOFLOW2", goflow2)] if ARGS.peers else []
    if peers and not found("GOFLOW2", "goflow2"):
        subprocess.run(["make", "-s", "tests/bench/goflow2"], check=False)
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        write_topology(folder / "topology.yaml")
        if ARGS.kafka:
            stack.callback(broker, "kill", folder)
            broker("start", folder)
        print("    flows samples/s  poller  daemon     all   bytes  close  poller  daemon   right wrong  lost\n"
              "                  us a sample             a rec.  lag s     MiB     MiB       %", flush=True)
        for flows, rate in runs:
            costs = {}
            for _ in range(ARGS.turns):
                costs.setdefault("fabrictrace", []).append(run(folder, folder / "topology.yaml", flows, rate))
                for who, variable, command in peers:
                    costs.setdefault(who, []).append(peer(folder, who, variable, command, flows, rate))
            if ARGS.turns > 1:
                print(f"{flows:,} flows, {rate:,}/s, us a sample, median of {ARGS.turns} at load "
                      f"{os.getloadavg()[1]:.1f}: " + ", ".join(
                          f"{who} {statistics.median(c):.2f} ({min(c):.2f} to {max(c):.2f})"
                          for who, c in costs.items() if None not in c), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", default="10000x100000,100000x150000", metavar="FLOWSxRATE,..")
    parser.add_argument("--seconds", type=int, default=20, help="of datagrams")
    parser.add_argument("--pollers", type=int, default=1)
    parser.add_argument("--turns", type=int, default=1, help="how often each row is measured")
    parser.add_argument("--peers", action="store_true", help="sfacctd and goflow2 as well")
    parser.add_argument("--kafka", action="store_true", help="a broker instead of a file")
    parser.add_argument("--bin", default=".", help="build folder of the programs")
    ARGS = parser.parse_args()
    main()
