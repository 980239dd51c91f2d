#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Paths of flows without samples, inferred from generated counters and hosts' figures: a leaf whose
flows vary, one whose flows send alike, one in which samples come late and show an answer wrong
(its links were swapped meanwhile), and one without counters. Off, nothing is inferred."""
import json
import random
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
import rig  # noqa: E402
from fabrics import hosts_first  # noqa: E402
from rig import check, equal, of_kind  # noqa: E402

LEAVES, SPINES, HOSTS = 5, 4, 6
VARIED, ALIKE, SWAPPED, UNCOUNTED, TARGET = range(1, LEAVES + 1)
WINDOW_MS, WINDOWS = 10000, 90
START_MS = 1700000000000
# Windows in which links are swapped, which counters have shown by then, and from which samples come.
SWAP, NOTICED, SAMPLED = 70, 76, 84
RATE = 1e9 / 8 * WINDOW_MS / 1000  # bytes in a window


def address(leaf, host):
    return f"10.0.{leaf}.{host}"


def flow(leaf, host):
    return {"src": address(leaf, host), "dst": address(TARGET, host), "sport": 50000 + host,
            "dport": 4791, "proto": 17}


def spine(leaf, host, window):
    """The truth."""
    at = 1 + (leaf + host * host) % SPINES
    return at % SPINES + 1 if leaf == SWAPPED and window >= SWAP else at


def report(leaf, host, end_ms, size):
    return {"schema": "fabrictrace.flow.v1", "time_ms": end_ms, "interval_ms": WINDOW_MS,
            "host": f"h{leaf}-{host}", "flow": flow(leaf, host), "direction": "tx",
            "tuple_source": "computed", "data_packets": size // 4096, "bytes": size}


def counters(leaf, port, ms, size):
    return {"schema": "fabrictrace.counters.v1", "time_ms": ms, "agent": f"192.0.2.{leaf}",
            "ifindex": port, "source": "snmp", "speed_bps": 100000000000, "in_bytes": 0,
            "out_bytes": size}


def observation(leaf, host, window):
    at_ms = START_MS + WINDOW_MS * window + 4000
    return {"schema": "fabrictrace.observation.v1", "time_ms": at_ms, "interval_ms": 1000,
            "first_ms": at_ms + 10, "last_ms": at_ms + 900, "agent": f"192.0.2.{leaf}",
            "flow": flow(leaf, host), "in_ifindex": host,
            "out_ifindex": 50 + spine(leaf, host, window), "samples": 9, "packets": 9000,
            "bytes": 9000000, "data_samples": 9}


def lines():
    rng = random.Random(18)
    counted = {(leaf, port): 0 for leaf in range(1, TARGET) for port in range(51, 51 + SPINES)}
    records = [counters(leaf, port, START_MS, 0) for leaf, port in counted if leaf != UNCOUNTED]
    for window in range(WINDOWS):
        end_ms = START_MS + WINDOW_MS * (window + 1)
        common = 0.5 + rng.random()
        for leaf in range(1, TARGET):
            for host in range(1, HOSTS + 1):
                own = 1 if leaf == ALIKE else rng.gauss(1, 0.05)
                size = round(RATE * common * own)
                counted[leaf, 50 + spine(leaf, host, window)] += size
                records.append(report(leaf, host, end_ms - 10, size))
        if window >= SAMPLED:
            records.append(observation(SWAPPED, 1, window))
            records.append(observation(VARIED, 1, window))
        # Read shortly after the window, and by as much each time.
        records += [counters(leaf, port, end_ms, round(size * 1.001))
                    for (leaf, port), size in counted.items() if leaf != UNCOUNTED]
    return "".join(json.dumps(r) + "\n" for r in sorted(records, key=lambda r: r["time_ms"]))


def replay(file, text, *more):
    done = rig.run(rig.DAEMON, *rig.NO_CONFIG, *rig.TRUST, "--set", "source_id=golden", "--set",
                   f"window={WINDOW_MS // 1000}s", "--set", "path_refresh=10s", *more, "--topology", file, "--replay", "-",
                   "--sink", "file:-", input=text, stdin=None)
    equal("exit code", done.returncode, 0)
    return done.stdout


def window_of(record):
    return (record["window_start_ms"] - START_MS) // WINDOW_MS


def test_answers(records):
    paths = {leaf: [r for r in of_kind(records, "path")
                    if r["flow"]["src"].startswith(f"10.0.{leaf}.")] for leaf in range(1, TARGET)}
    for leaf in (ALIKE, UNCOUNTED):
        check(f"leaf{leaf}: nothing is inferred",
              paths[leaf] and not any(r.get("likely") for r in paths[leaf]))
    found, wrong, states = set(), [], set()
    for leaf in (VARIED, SWAPPED):
        for r in paths[leaf]:
            host = int(r["flow"]["src"].split(".")[3])
            if not r.get("likely") or r["likely"][0]["evidence"] != "inferred":
                continue
            states.add(r["state"])
            # What was inferred before links are swapped is not known to be wrong at once.
            if leaf == SWAPPED and SWAP <= window_of(r) < NOTICED:
                continue
            hop = spine(leaf, host, window_of(r))
            found.add((leaf, host))
            got = [(h["switch"], h.get("out"), h["evidence"]) for h in r["likely"]]
            want = [(f"leaf{leaf}", f"Ethernet{50 + hop}", "inferred"),
                    (f"spine{hop}", f"Ethernet{TARGET}", "inferred"),
                    (f"leaf{TARGET}", f"Ethernet{host}", "inferred")]
            if got != want:
                wrong.append((got, want))
    equal("wrong paths", wrong, [])
    equal("flows that have one", len(found), 2 * HOSTS)
    equal("none of them is resolved", states, {"unresolved"})
    return paths


def test_contradiction(paths):
    """One sample that differs, and nothing is inferred at its leaf until it has windows again."""
    late = [r for r in paths[SWAPPED] if window_of(r) > SAMPLED and
            r.get("likely") and r["likely"][0]["evidence"] == "inferred"]
    check("after a sample that contradicts it nothing is inferred at the leaf", not late, late[:1])
    last = [r for r in paths[VARIED] if r["flow"] == flow(VARIED, 1)][-1]
    check("a flow that has samples shows these", last["state"] == "resolved" and
          last["hops"][0]["evidence"] == "sampled" and not last.get("likely"), last)


def main():
    text = lines()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "t.yaml"
        file.write_text(hosts_first(LEAVES, SPINES, HOSTS))
        got = replay(file, text, "--set", "infer_paths=true")
        check("twice the same", got == replay(file, text, "--set", "infer_paths=true"))
        test_contradiction(test_answers(rig.records_of(got)))
        off = rig.records_of(replay(file, text))
        check("off, nothing is inferred", not any(r.get("likely") for r in of_kind(off, "path")))
        for setting, why in (("counters_max=0", "counters_max"), ("group.role=aggregator", "group")):
            done = rig.run(rig.DAEMON, *rig.NO_CONFIG, "--set", "infer_paths=true", "--set", setting,
                           "--topology", file, "--check")
            check(f"refused with {setting}", done.returncode == 78 and
                  "infer_paths" in done.stderr and why in done.stderr, done.stderr)
    return 1 if rig.failures else 0


if __name__ == "__main__":
    sys.exit(main())
