# SPDX-License-Identifier: Apache-2.0
"""A fabric of two tiers whose leaves hash by CRC32, as records for a daemon: flows that come and go,
and those of a job, which stay; what agents and switches report of them."""
import json
import os
import random
import signal
import string
import struct
import subprocess
import sys
import zlib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import speed  # noqa: E402
from ports import free_port  # noqa: E402

LEAVES = SPINES = HOSTS = 4
SPEED = 100 * 10 ** 9
START_MS = 1700000000000
SECONDS = 40
JOB = "train"


# A hash that no linear function is, and the same for the shell of a switch that is asked: it starts no program.
KEYED = """keyed() {  # TURN SWITCH SRC DST SPORT: in $h
    h=$1 IFS=.
    for n in ${2##*[a-z]} ${#2} $3 $4 $5; do
        h=$(((h ^ n) * 16777619 & 0x7fffffff))
        h=$((h ^ h >> 15))
    done
    unset IFS
}
"""


def keyed(turn, switch, flow):
    value = turn
    for n in (switch.strip(string.ascii_letters), len(switch), *flow[0].split("."), *flow[1].split("."), flow[2]):
        if n != "":
            value = (value ^ int(n)) * 16777619 & 0x7fffffff
            value ^= value >> 15
    return value


def address(leaf, host):
    return f"10.0.{leaf}.{host}"


def topology():
    text = f"fabric: hashed\nspeed_bps: {SPEED}\nswitches:\n"
    for leaf in range(1, LEAVES + 1):
        ports = ", ".join(f"{{name: Ethernet{i}, ifindex: {i}}}"
                          for i in [*range(1, HOSTS + 1), *range(51, 51 + SPINES)])
        text += f"  - {{name: leaf{leaf}, addresses: [192.0.2.{leaf}], ports: [{ports}]}}\n"
    for spine in range(1, SPINES + 1):
        ports = ", ".join(f"{{name: Ethernet{i}, ifindex: {i}}}" for i in range(1, LEAVES + 1))
        text += (f"  - {{name: spine{spine}, addresses: [192.0.2.{100 + spine}], "
                 f"ports: [{ports}]}}\n")
    text += "links:\n" + "".join(
        f"  - {{a: leaf{x}, a_port: Ethernet{50 + y}, b: spine{y}, b_port: Ethernet{x}}}\n"
        for x in range(1, LEAVES + 1) for y in range(1, SPINES + 1))
    return text + "hosts:\n" + "".join(
        f"  - {{name: h{x}-{y}, nics: [{{addresses: [{address(x, y)}], attach: "
        f"[{{switch: leaf{x}, port: Ethernet{y}}}]}}]}}\n"
        for x in range(1, LEAVES + 1) for y in range(1, HOSTS + 1))


def crc(flow):
    src, dst, sport = flow
    key = bytes(map(int, (src + "." + dst).split("."))) + struct.pack(">HHB", sport, 4791, 17)
    return zlib.crc32(key)


def spine_of(flow, function=crc):
    return 1 + function(flow) % SPINES


def path(flow, function=crc):
    """(agent, in, out) at each switch."""
    src, dst = (list(map(int, a.split("."))) for a in flow[:2])
    if src[2] == dst[2]:
        return [(f"192.0.2.{src[2]}", src[3], dst[3])]
    spine = spine_of(flow, function)
    return [(f"192.0.2.{src[2]}", src[3], 50 + spine),
            (f"192.0.2.{100 + spine}", src[2], dst[2]),
            (f"192.0.2.{dst[2]}", 50 + spine, dst[3])]


def churn(seed, each=70):
    """Short flows of every leaf, from which hashes are learnt: (flow, first second)."""
    rng = random.Random(seed)
    return [((address(leaf, rng.randint(1, HOSTS)),
              address(rng.choice([x for x in range(1, LEAVES + 1) if x != leaf]),
                      rng.randint(1, HOSTS)), rng.randint(0xc000, 0xffff)),
             rng.randrange(0, SECONDS - 12))
            for leaf in range(1, LEAVES + 1) for _ in range(each)]


def permutation(seed):
    """Each host of the job sends to one of the next leaf: a collision is never needed."""
    rng = random.Random(seed)
    return [(address(leaf, host), address(leaf % LEAVES + 1, host), rng.randint(0xc000, 0xffff))
            for leaf in range(1, LEAVES + 1) for host in range(1, HOSTS + 1)]


def tuple_of(flow):
    return {"src": flow[0], "dst": flow[1], "sport": flow[2], "dport": 4791, "proto": 17}


def observations(flow, second, bps, function=crc):
    return sampled(flow, path(flow, function), second, bps)


def sampled(flow, hops, second, bps):
    """Of a flow at each of these hops: (address of the switch, port in, port out)."""
    for agent, came, went in hops:
        at_ms = START_MS + 1000 * second
        yield {"schema": "fabrictrace.observation.v1", "time_ms": at_ms, "interval_ms": 1000,
               "first_ms": at_ms + 10, "last_ms": at_ms + 990, "agent": agent,
               "flow": tuple_of(flow), "in_ifindex": came, "out_ifindex": went, "samples": 20,
               "packets": 20000, "bytes": int(bps / 8), "data_samples": 20}


def report(flow, second, bps, qp, job):
    host = "h{}-{}".format(*flow[0].split(".")[2:])
    return {"schema": "fabrictrace.flow.v1", "time_ms": START_MS + 1000 * (second + 1) - 1,
            "interval_ms": 1000, "first_seen_ms": START_MS, "host": host, "interface": "eth0",
            "flow": tuple_of(flow), "direction": "tx", "tuple_source": "observed",
            "data_packets": 20000, "bytes": int(bps / 8), "qp": {"local": qp, "remote": 1000 + qp},
            "pid": 4711, "comm": "python", "job": job}


def rates(flows, function=crc):
    """Of flows of equal demand: a part of the fullest of the two links between switches."""
    loads = {}
    for flow in flows:
        for hop in path(flow, function)[:2]:
            loads[hop[0], hop[2]] = loads.get((hop[0], hop[2]), 0) + 1
    return {flow: SPEED / max(loads[hop[0], hop[2]] for hop in path(flow, function)[:2])
            for flow in flows}


def records(job, seed=1, function=crc, begin=SECONDS - 12, end=SECONDS):
    share = rates(job, function)
    flows = churn(seed)
    for second in range(SECONDS):
        for flow, since in flows:
            if since <= second < since + 5:
                yield from observations(flow, second, SPEED / 5000, function)
        if begin <= second < end:
            for number, flow in enumerate(job):
                yield report(flow, second, share[flow], number, JOB)
                yield from observations(flow, second, share[flow], function)


class Daemon:
    """A daemon that has read the records, and answers; cables: what its topology file says."""

    def __init__(self, folder, lines, cables=None):
        self.http = free_port()
        (folder / "t.yaml").write_text(cables or topology())
        (folder / "r.ndjson").write_text("".join(json.dumps(r) + "\n" for r in lines))
        self.log = open(folder / "log", "w+", encoding="utf-8")
        self.process = subprocess.Popen(
            ["daemon/fabrictraced", "-c", os.devnull, "--set", f"http=127.0.0.1:{self.http}",
             "--set", "window=5s", "--set", "verify_topology=false", "--topology",
             str(folder / "t.yaml"), "--replay", str(folder / "r.ndjson"), "--serve", "--sink",
             "file:" + str(folder / "out.ndjson")], stdin=subprocess.DEVNULL, stderr=self.log)
        done = speed.wait(lambda: self.process.poll() is not None or
                          self.ask("topology").returncode == 0, 120)
        if not done or self.process.poll() is not None:
            self.log.seek(0)
            raise AssertionError(self.log.read())

    def ask(self, *words):
        return subprocess.run(
            [os.environ.get("FABRICTRACE", "cli/fabrictrace"), *words, "--endpoint",
             f"127.0.0.1:{self.http}"], text=True, capture_output=True)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()
        self.log.close()
