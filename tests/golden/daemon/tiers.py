#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The effective number of paths over two tiers, from generated samples of a fabric of three: connections that
are sprayed, each with shares of its own over 4 links and 4 behind each, some even, some far from it, and two
that two tiers choose for alike. Leaves and aggregation switches sample at different rates. The truth is the
entropy of the shares that packets were drawn by; its exponential lies in the interval as often as that
says. Nothing is said where an aggregation switch takes no samples."""
import json
import math
import random
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
import rig  # noqa: E402
from rig import check, equal, of_kind  # noqa: E402

PODS, LEAVES, AGGS, CORES, HOSTS = 2, 2, 4, 4, 8
START_MS, WINDOW_S, WINDOWS = 1700000000000, 5, 30
RATES = {"leaf": 90, "agg": 60}  # samples a second of a connection
BLIND = 8  # host whose traffic no aggregation switch samples


def topology():
    text, links = "fabric: pods\nspeed_bps: 100000000000\nswitches:\n", ""
    for pod in range(1, PODS + 1):
        for leaf in range(1, LEAVES + 1):
            ports = ", ".join(f"{{name: E{i}, ifindex: {i}}}" for i in [*range(1, HOSTS + 1), *range(51, 51 + AGGS)])
            text += f"  - {{name: leaf{pod}{leaf}, tier: leaf, addresses: [192.0.2.{pod}{leaf}], ports: [{ports}]}}\n"
        for agg in range(1, AGGS + 1):
            ports = ", ".join(f"{{name: E{i}, ifindex: {i}}}" for i in [*range(1, LEAVES + 1), *range(51, 51 + CORES)])
            text += f"  - {{name: agg{pod}{agg}, tier: spine, addresses: [192.0.3.{pod}{agg}], ports: [{ports}]}}\n"
            for leaf in range(1, LEAVES + 1):
                links += f"  - {{a: leaf{pod}{leaf}, a_port: E{50 + agg}, b: agg{pod}{agg}, b_port: E{leaf}}}\n"
            for core in range(1, CORES + 1):
                links += f"  - {{a: agg{pod}{agg}, a_port: E{50 + core}, b: core{agg}{core}, b_port: E{pod}}}\n"
    for agg in range(1, AGGS + 1):
        for core in range(1, CORES + 1):
            ports = ", ".join(f"{{name: E{i}, ifindex: {i}}}" for i in range(1, PODS + 1))
            text += f"  - {{name: core{agg}{core}, tier: superspine, addresses: [192.0.4.{agg}{core}], ports: [{ports}]}}\n"
    text += "links:\n" + links + "hosts:\n"
    for pod in range(1, PODS + 1):
        for leaf in range(1, LEAVES + 1):
            for host in range(1, HOSTS + 1):
                text += (f"  - {{name: h{pod}{leaf}{host}, nics: [{{addresses: [10.{pod}.{leaf}.{host}], "
                         f"attach: [{{switch: leaf{pod}{leaf}, port: E{host}}}]}}]}}\n")
    return text


def shares(rng, host):
    """{(agg, core): share} of the traffic of a host."""
    if host in (1, 2):  # even; polarised: the second tier chooses as the first did
        return {(a, c): 1 / 16 if host == 1 else 1 / 4 * (a == c) for a in range(1, 5) for c in range(1, 5)}
    weights = {(a, c): rng.gammavariate((3, 0.7, 0.4)[host % 3], 1) + 0.01 for a in range(1, 5) for c in range(1, 5)}
    total = sum(weights.values())
    return {k: w / total for k, w in weights.items()}


def flow(host):
    return {"src": f"10.1.1.{host}", "dst": f"10.2.1.{host}", "sport": 50000 + host, "dport": 4791, "proto": 17}


def observation(host, second, agent, came, went, moments):
    at = START_MS + 1000 * second
    return {"schema": "fabrictrace.observation.v1", "time_ms": at, "interval_ms": 1000, "first_ms": at + min(moments),
            "last_ms": at + max(moments), "agent": agent, "flow": flow(host), "in_ifindex": came, "out_ifindex": went,
            "samples": len(moments), "packets": 2000 * len(moments), "bytes": 2000 * 4170 * len(moments),
            "data_samples": len(moments)}


def lines(rng, of):
    for second in range(WINDOWS * WINDOW_S):
        for host, dealt in of.items():
            paths, weights = list(dealt), list(dealt.values())
            for tier, rate in RATES.items():
                seen = {}
                for a, c in rng.choices(paths, weights, k=rng.randint(rate * 3 // 4, rate * 5 // 4)):
                    hop = (("192.0.2.11", host, 50 + a) if tier == "leaf" else (f"192.0.3.1{a}", 1, 50 + c))
                    seen.setdefault(hop, []).append(rng.randrange(1000))
                if tier == "agg" and host == BLIND:
                    continue
                for (agent, came, went), moments in seen.items():
                    yield observation(host, second, agent, came, went, moments)
            if second % WINDOW_S == 0:
                yield {"schema": "fabrictrace.flow.v1", "time_ms": START_MS + 1000 * second, "interval_ms": 1000,
                       "host": f"h11{host}", "flow": flow(host), "direction": "tx", "tuple_source": "computed",
                       "data_packets": 1000, "bytes": 4096000, "job": f"job{host}"}


def main():
    rng = random.Random(17)
    of = {host: shares(rng, host) for host in range(1, HOSTS + 1)}
    text = "".join(json.dumps(r) + "\n" for r in lines(rng, of))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "t.yaml"
        file.write_text(topology())
        done = rig.run(rig.DAEMON, *rig.NO_CONFIG, "--set", "source_id=golden", "--set", f"window={WINDOW_S}s",
                       "--topology", file, "--replay", "-", "--sink", "file:-", input=text, stdin=None)
    equal("exit code", done.returncode, 0)
    records = [r for r in of_kind(rig.records_of(done.stdout), "spread") if r["of"] != "qp"]
    told = {host: {"connection": [], "job": []} for host in of}
    for r in records:
        host = int((r.get("src_host") or r["job"])[-1])
        if "end_to_end_paths" in r:
            equal("it stands at the first switch", r["switch"], "leaf11") if r["switch"] != "leaf11" else None
            told[host][r["of"]].append(r)
    within, total = 0, 0
    for host, dealt in of.items():
        truth = math.exp(-sum(p * math.log(p) for p in dealt.values() if p))
        for what, got in told[host].items():
            if host == BLIND:
                check(f"{what} of h11{host}: nothing of tiers without samples", not got, got[:1])
                continue
            held = sum(r["end_to_end_lo"] <= truth <= r["end_to_end_hi"] for r in got)
            n = max(len(got), 1)
            print(f"{what} of h11{host}: {truth:.2f} paths, told {sum(r['end_to_end_paths'] for r in got) / n:.2f} in "
                  f"{len(got)} windows, {held} intervals hold it, "
                  f"+-{sum(r['end_to_end_hi'] - r['end_to_end_lo'] for r in got) / n / 2:.2f}")
            check(f"{what} of h11{host}: in nearly each window", len(got) >= WINDOWS - 2, len(got))
            if what == "connection":
                within, total = within + held, total + len(got)
    part = within / max(total, 1)
    print(f"{within} of {total} intervals hold the truth")
    check("intervals hold the truth as often as they say", 0.92 <= part <= 0.995, part)
    return 1 if rig.failures else 0


if __name__ == "__main__":
    sys.exit(main())
