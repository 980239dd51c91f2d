#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Judges paths that the daemon infers from counters (infer_paths) on generated fabrics without a sample,
whose every true path is known.

    tests/fidelity/inferred.py --build build [--seed 1] [--seeds 3] [--windows 120]

Each leaf of a fabric has a regime of its own: how much flows vary beside what all have in common, how
exact counters are, when counters are read and agents report, what no agent reports, links that routes
change in the middle. A line for each regime: FLOWS, of which ANSWERED had an inferred path in some window;
RECORDS with one, RIGHT ones, STALE ones (the path of less than --stale windows ago) and WRONG ones, of
which at most one in a thousand may be; and records that a path was called known of, which must be none.
No further seed is begun after --seconds of processor time. Of fewer than a thousand records the limit of
one in a thousand would say little: that is a failure, too.
Exit: 0; 1 when a limit is broken; 69 when the daemon fails."""
import argparse
import collections
import json
import os
import random
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

WINDOW_S = 10
START_MS = 1700000000000
RATE = 1e9 / 8  # bytes in a second
WRONG_MOST = 0.001
RECORDS_LEAST = 1000


@dataclass(frozen=True)
class Regime:
    name: str
    own: float           # variation of a flow beside the common one, as a part
    error: float         # of counters, as a part
    apart: bool = False  # counters are read, and agents report, at times of their own
    hidden: float = 0.0  # traffic that no agent reports, as a part of the rest
    moves: bool = False
    alike: bool = False


REGIMES = (
    Regime("varied, exact", 0.05, 0.001),
    Regime("varied, 0.2 %", 0.02, 0.002),
    Regime("varied, 1 %", 0.02, 0.01),
    Regime("steady, 1 %", 0.005, 0.01),
    Regime("alike", 0.0, 0.002, alike=True),
    Regime("read apart", 0.1, 0.002, apart=True),
    Regime("a fifth hidden", 0.05, 0.002, hidden=0.2),
    Regime("twice hidden", 0.05, 0.002, hidden=2.0),
    Regime("routes change", 0.05, 0.002, moves=True),
    Regime("changing, 1 %", 0.02, 0.01, moves=True),
)


class World:
    """Leaves 1 to n, one for each regime, that send to one more leaf."""

    def __init__(self, seed, windows):
        self.rng = random.Random(seed)
        self.windows = windows
        self.rates = {}  # leaf: (of its flows, of what nobody reports), bytes a second
        self.true, self.told = collections.Counter(), collections.Counter()  # at the last reading
        self.spines = self.rng.choice((2, 4, 8))
        self.target = len(REGIMES) + 1
        self.flows = {leaf: self.rng.choice((4, 8, 12)) for leaf in range(1, self.target)}
        self.moved_at = self.rng.randrange(windows // 3, windows // 2)
        self.paths = {(leaf, n): self.rng.sample(range(1, self.spines + 1), 2)
                      for leaf in self.flows for n in range(self.flows[leaf])}

    def spine(self, leaf, number, window):
        moved = REGIMES[leaf - 1].moves and number % 2 == 0 and window >= self.moved_at
        return self.paths[leaf, number][moved]

    def flow(self, leaf, number):
        return {"src": f"10.0.{leaf}.{number + 1}", "dst": f"10.0.{self.target}.{number + 1}",
                "sport": 50000 + number, "dport": 4791, "proto": 17}

    def topology(self):
        most = max(self.flows.values())
        lines = ["fabric: inferred", "speed_bps: 400000000000", "switches:"]
        for leaf in range(1, self.target + 1):
            ports = [*range(1, most + 1), *range(51, 51 + self.spines)]
            lines.append(f"  - {{name: leaf{leaf}, addresses: [192.0.2.{leaf}], ports: [" + ", ".join(
                f"{{name: Ethernet{i}, ifindex: {i}}}" for i in ports) + "]}")
        for spine in range(1, self.spines + 1):
            lines.append(f"  - {{name: spine{spine}, addresses: [192.0.2.{100 + spine}], ports: [" + ", ".join(
                f"{{name: Ethernet{i}, ifindex: {i}}}" for i in range(1, self.target + 1)) + "]}")
        lines.append("links:")
        lines += [f"  - {{a: leaf{leaf}, a_port: Ethernet{50 + spine}, b: spine{spine}, b_port: Ethernet{leaf}}}"
                  for leaf in range(1, self.target + 1) for spine in range(1, self.spines + 1)]
        lines.append("hosts:")
        lines += [f"  - {{name: h{leaf}-{n}, nics: [{{addresses: [10.0.{leaf}.{n}], "
                  f"attach: [{{switch: leaf{leaf}, port: Ethernet{n}}}]}}]}}"
                  for leaf in range(1, self.target + 1) for n in range(1, most + 1)]
        return "\n".join(lines) + "\n"

    def records(self):
        """What agents report and counters show, second by second, in the order of time."""
        rng, out = self.rng, []
        counted = collections.Counter()
        phase = {leaf: rng.randrange(WINDOW_S) if REGIMES[leaf - 1].apart else 0 for leaf in self.flows}
        reports = {key: rng.randrange(2) for key in self.paths}
        sent = collections.Counter()
        for second in range(self.windows * WINDOW_S + 1):
            now_ms, window = START_MS + second * 1000, second // WINDOW_S
            for leaf, count in self.flows.items():
                regime = REGIMES[leaf - 1]
                if second % WINDOW_S == phase[leaf]:
                    out += self.counters(leaf, now_ms, counted, regime.error)
                if second % WINDOW_S == 0:
                    common = 0.5 + rng.random()
                    rates = [RATE * common * (1 if regime.alike else 1 + rng.gauss(0, regime.own))
                             for _ in range(count)]
                    self.rates[leaf] = rates, regime.hidden * sum(rates) * rng.random()
                rates, hidden = self.rates[leaf]
                for number in range(count):
                    key = leaf, number
                    every = 2 if regime.apart else WINDOW_S
                    if second % every == (reports[key] if regime.apart else 0) and sent[key]:
                        out.append(self.report(key, now_ms - 10, every, sent.pop(key)))
                    sent[key] += round(rates[number])
                    counted[leaf, self.spine(leaf, number, window)] += round(rates[number])
                counted[leaf, 1] += round(hidden)
        return out

    def report(self, key, at_ms, every, size):
        return {"schema": "fabrictrace.flow.v1", "time_ms": at_ms, "interval_ms": every * 1000,
                "host": f"h{key[0]}-{key[1] + 1}", "flow": self.flow(*key), "direction": "tx",
                "tuple_source": "computed", "data_packets": size // 4096, "bytes": size}

    def counters(self, leaf, now_ms, counted, error):
        for spine in range(1, self.spines + 1):
            # An error of what was counted since the last time; totals never fall.
            key = leaf, spine
            growth = counted[key] - self.true[key]
            self.told[key] += max(0, round(growth * (1 + self.rng.gauss(0, error))))
            self.true[key] = counted[key]
            yield {"schema": "fabrictrace.counters.v1", "time_ms": now_ms, "agent": f"192.0.2.{leaf}",
                   "ifindex": 50 + spine, "source": "snmp", "speed_bps": 400000000000, "in_bytes": 0,
                   "out_bytes": self.told[key]}


def replay(daemon, folder, world):
    (folder / "t.yaml").write_text(world.topology())
    text = "".join(json.dumps(r) + "\n" for r in world.records())
    done = subprocess.run(
        [daemon, "-c", "/dev/null", "--set", "source_id=paper", "--set", f"window={WINDOW_S}s", "--set",
         "path_refresh=10s", "--set", "infer_paths=true", "--set", "verify_topology=false", "--topology",
         folder / "t.yaml", "--replay", "-", "--sink", "file:-"],
        input=text, capture_output=True, text=True, check=False)
    if done.returncode:
        print(done.stderr, file=sys.stderr)
        sys.exit(69)
    return [json.loads(line) for line in done.stdout.splitlines() if '"fabrictrace.path.v1"' in line]


def judge(world, records, stale, counts):
    answered = collections.defaultdict(set)
    for r in records:
        leaf, number = int(r["flow"]["src"].split(".")[2]), int(r["flow"]["src"].split(".")[3]) - 1
        count = counts[REGIMES[leaf - 1].name]
        count["known"] += r["state"] == "resolved"
        likely = r.get("likely")
        if not likely or likely[0]["evidence"] != "inferred":
            continue
        window = (r["window_start_ms"] - START_MS) // (WINDOW_S * 1000)
        answered[leaf].add(number)
        count["records"] += 1
        said = [(h["switch"], h.get("out")) for h in likely]
        paths = [[(f"leaf{leaf}", f"Ethernet{50 + spine}"), (f"spine{spine}", f"Ethernet{world.target}"),
                  (f"leaf{world.target}", f"Ethernet{number + 1}")]
                 for spine in (world.spine(leaf, number, window),
                               world.spine(leaf, number, max(0, window - stale)))]
        count["right" if said == paths[0] else "stale" if said == paths[1] else "wrong"] += 1
    for leaf, flows in world.flows.items():
        counts[REGIMES[leaf - 1].name]["flows"] += flows
        counts[REGIMES[leaf - 1].name]["answered"] += len(answered[leaf])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=".", help="build folder with daemon/fabrictraced")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--windows", type=int, default=120)
    parser.add_argument("--stale", type=int, default=6, help="windows until a change has to show")
    a = parser.parse_args()
    counts = collections.defaultdict(collections.Counter)
    done = 0
    for seed in range(a.seed, a.seed + a.seeds):
        if done and sum(os.times()[:4]) > a.seconds:
            break
        done += 1
        world = World(seed, a.windows)
        with tempfile.TemporaryDirectory() as folder:
            judge(world, replay(Path(a.build, "daemon/fabrictraced").resolve(), Path(folder), world), a.stale,
                  counts)
    columns = "flows", "answered", "records", "right", "stale", "wrong", "known"
    print(f"{'REGIME':16}" + "".join(f"{c.upper():>9}" for c in columns))
    total = sum((counts[r.name] for r in REGIMES), collections.Counter())
    for name, count in [*((r.name, counts[r.name]) for r in REGIMES), ("all", total)]:
        print(f"{name:16}" + "".join(f"{count[c]:9}" for c in columns))
    print(f"{done} of {a.seeds} seeds from {a.seed} on, {sum(os.times()[:4]):.1f} s of processor time")
    good = total["records"] >= RECORDS_LEAST and total["wrong"] <= WRONG_MOST * total["records"] and not total["known"]
    print("the limits hold" if good else "FAIL a limit is broken")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
