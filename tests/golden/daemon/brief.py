#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Flows of two seconds, a few samples each. Where they are sprayed none of them lasts long enough to show
it alone: together they do, and soon none is said to have a path, though some are seen on one alone. Where
each keeps to its path all have one, also when all routes change at once."""
import json
import os
import random
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

sys.dont_write_bytecode = True
import rig  # noqa: E402
from rig import check, equal, of_kind  # noqa: E402

START_MS, SECONDS, LIFE_MS = 1700000000000, 40, 2000
SPINES, HOSTS, FLOWS, SAMPLES = 8, 8, 1000, 5
LEARNT_S = 5  # in which so many flows show it
CHANGE_MS = 20000


def topology():
    spines = [50 + i for i in range(1, SPINES + 1)]
    out = "fabric: small\nswitches:\n"
    for leaf in (1, 2):
        ports = ", ".join(f"{{name: Ethernet{i}, ifindex: {i}}}" for i in [*range(1, HOSTS + 1), *spines])
        out += f"  - {{name: leaf{leaf}, addresses: [192.0.2.{leaf}], ports: [{ports}]}}\n"
    for spine in range(1, SPINES + 1):
        ports = ", ".join(f"{{name: Ethernet{i}, ifindex: {i}}}" for i in (1, 2))
        out += f"  - {{name: spine{spine}, addresses: [192.0.2.{100 + spine}], ports: [{ports}]}}\n"
    out += "links:\n" + "".join(
        f"  - {{a: leaf{leaf}, a_port: Ethernet{50 + spine}, b: spine{spine}, b_port: Ethernet{leaf}}}\n"
        for leaf in (1, 2) for spine in range(1, SPINES + 1))
    return out + "hosts:\n" + "".join(
        f"  - {{name: h{leaf}-{host}, nics: [{{addresses: [10.0.{leaf}.{host}], "
        f"attach: [{{switch: leaf{leaf}, port: Ethernet{host}}}]}}]}}\n"
        for leaf in (1, 2) for host in range(1, HOSTS + 1))


def generate(rng, sprayed):
    """(observations of leaf1, {source port: when the flow begins})."""
    lines, begins = [], {}
    for port in range(40000, 40000 + FLOWS):
        begins[port] = begin = rng.randrange(1000 * SECONDS)
        host, paths = 1 + port % HOSTS, [rng.randint(1, SPINES) for _ in range(2)]
        seen = defaultdict(list)
        for at in (begin + rng.randrange(LIFE_MS) for _ in range(SAMPLES)):
            spine = rng.randint(1, SPINES) if sprayed else paths[at >= CHANGE_MS]
            seen[at // 1000, spine].append(at)
        lines += [{"schema": "fabrictrace.observation.v1", "time_ms": START_MS + 1000 * second,
                   "interval_ms": 1000, "first_ms": START_MS + min(times), "last_ms": START_MS + max(times),
                   "agent": "192.0.2.1", "in_ifindex": host, "out_ifindex": 50 + spine,
                   "flow": {"src": f"10.0.1.{host}", "dst": f"10.0.2.{host}", "sport": port, "dport": 4791,
                            "proto": 17},
                   "samples": len(times), "packets": 2000 * len(times), "bytes": 2000 * 4170 * len(times),
                   "data_samples": len(times)} for (second, spine), times in seen.items()]
    return sorted(lines, key=lambda line: line["time_ms"]), begins


def resolved(lines):
    """Source ports of the flows that were said to have a path."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "t.yaml"
        file.write_text(topology())
        done = rig.run(rig.DAEMON, "-c", os.devnull, *rig.TRUST, "--set", "source_id=golden", "--set", "window=5s",
                       "--topology", file, "--replay", "-", "--sink", "file:-", stdin=None,
                       input="".join(json.dumps(line) + "\n" for line in lines))
    equal("exit code", done.returncode, 0)
    return {r["flow"]["sport"] for r in of_kind(rig.records_of(done.stdout), "path") if r["state"] == "resolved"}


def main():
    for seed in range(3):
        observed, begun = generate(random.Random(seed), sprayed=True)
        found = resolved(observed)
        equal(f"seed {seed}: sprayed flows of which a path was said, from then on",
              sorted(p for p in found if begun[p] >= 1000 * LEARNT_S), [])
        observed, begun = generate(random.Random(seed), sprayed=False)
        found = resolved(observed)
        moving = {p for p, at in begun.items() if at < CHANGE_MS <= at + LIFE_MS}
        check(f"seed {seed}: others have one: {len(found - moving)} of {FLOWS - len(moving)}",
              len(found - moving) == FLOWS - len(moving))
    return 1 if rig.failures else 0


if __name__ == "__main__":
    sys.exit(main())
