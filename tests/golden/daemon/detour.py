#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A spine that sends what is for leaf2 through leaf3, from generated samples of three leaves and two
spines: one event with the hops, however many flows there are, cleared when it is over; of the flows
none has a path meanwhile, and the others all have theirs. Twice the same output."""
import json
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
import rig  # noqa: E402
from rig import check, equal, of_kind  # noqa: E402

LEAVES, SPINES = ("leaf1", "leaf2", "leaf3"), ("spine1", "spine2")
START_MS = 1700000000000
WINDOW_S = 5
TURNS, ENDS, OVER = 20, 60, 100  # seconds: spine1 turns, is right again, end
FLOWS = 8  # of each leaf to the next: half of them by each spine
DETOURING = [("spine1", "Ethernet1", "Ethernet3"), ("leaf3", "Ethernet51", "Ethernet52"),
             ("spine2", "Ethernet3", "Ethernet2"), ("leaf2", "Ethernet52", "Ethernet1")]


def address(switch):
    return f"192.0.2.{10 * (SPINES + LEAVES).index(switch) + 1}"


def topology():
    text = "fabric: small\nspeed_bps: 1000000000\nswitches:\n"
    for switch in LEAVES + SPINES:
        indices = (1, 51, 52) if switch in LEAVES else (1, 2, 3)
        ports = ", ".join(f"{{name: Ethernet{i}, ifindex: {i}}}" for i in indices)
        text += f"  - {{name: {switch}, addresses: [{address(switch)}], ports: [{ports}]}}\n"
    text += "links:\n"
    for leaf in LEAVES:
        for spine in SPINES:
            text += (f"  - {{a: {leaf}, a_port: Ethernet5{spine[-1]}, b: {spine}, "
                     f"b_port: Ethernet{leaf[-1]}}}\n")
    text += "hosts:\n"
    for leaf in LEAVES:
        text += (f"  - {{name: h{leaf[-1]}, nics: [{{addresses: [10.0.{leaf[-1]}.1], "
                 f"attach: [{{switch: {leaf}, port: Ethernet1}}]}}]}}\n")
    return text


def path(src, dst, spine):
    return [(src, "Ethernet1", f"Ethernet5{spine[-1]}"),
            (spine, f"Ethernet{src[-1]}", f"Ethernet{dst[-1]}"),
            (dst, f"Ethernet5{spine[-1]}", "Ethernet1")]


def flows():
    """{(src, dst, source port): true path, but for the detour}."""
    return {(src, dst, 50000 + i): path(src, dst, SPINES[i % 2])
            for src in LEAVES for dst in LEAVES if src != dst for i in range(FLOWS)}


def turned(flow, hops):
    """leaf1's flows to leaf2 that come by spine1."""
    return flow[:2] == ("leaf1", "leaf2") and hops[1][0] == "spine1"


def observation(at_ms, flow, hop):
    switch, came, went = hop
    src, dst, sport = flow
    return {"schema": "fabrictrace.observation.v1", "time_ms": at_ms, "interval_ms": 1000,
            "first_ms": at_ms + 10, "last_ms": at_ms + 990, "agent": address(switch),
            "flow": {"src": f"10.0.{src[-1]}.1", "dst": f"10.0.{dst[-1]}.1", "sport": sport,
                     "dport": 4791, "proto": 17}, "in_ifindex": int(came[8:]),
            "out_ifindex": int(went[8:]), "samples": 3, "packets": 3000, "bytes": 3000000,
            "data_samples": 3}


def samples():
    for second in range(OVER):
        for flow, hops in flows().items():
            if TURNS <= second < ENDS and turned(flow, hops):
                hops = hops[:1] + DETOURING
            for hop in hops:
                yield observation(START_MS + 1000 * second, flow, hop)


def replay(file, lines):
    done = rig.run(rig.DAEMON, *rig.NO_CONFIG, "--set", "source_id=golden", "--set",
                   f"window={WINDOW_S}s", "--set", "path_refresh=5s", "--topology", file, "--replay",
                   "-", "--sink", "file:-", input=lines, stdin=None)
    equal("exit code", done.returncode, 0)
    return done.stdout


def names(hops):
    return [(h["switch"], h["in"], h["out"]) for h in hops]


def test_event(records):
    told = [e for e in of_kind(records, "event") if e["kind"] == "detour"]
    equal("one event, cleared in the end", [(e["subject"], e.get("cleared", False)) for e in told],
          [("spine1/leaf2", False), ("spine1/leaf2", True)])
    if not told:
        return
    evidence, last = told[0]["evidence"], told[-1]["evidence"]
    equal("its hops", names(evidence["new_hops"]), path("leaf1", "leaf2", "spine1")[:1] + DETOURING)
    equal("who turns", [evidence[k] for k in ("switch", "port", "peer", "peer_port")],
          ["spine1", "Ethernet3", "leaf3", "Ethernet51"])
    equal("how many flows", last["count"], FLOWS // 2)
    check("in words", "by leaf3, spine2: 5 switches instead of 3" in told[0]["message"],
          told[0]["message"])
    at = [(e["time_ms"] - START_MS) / 1000 for e in told]
    check("when it was so", TURNS < at[0] <= TURNS + 15 and ENDS < at[1] <= ENDS + 25, at)


def test_paths(records):
    """Only what certainly holds is judged: long after the turns, and before them."""
    by_key = {(f"10.0.{src[-1]}.1", f"10.0.{dst[-1]}.1", sport): (hops, turned((src, dst), hops))
              for (src, dst, sport), hops in flows().items()}
    wrong, stray, right = [], set(), 0
    for r in of_kind(records, "path"):
        hops, detour = by_key[tuple(r["flow"][k] for k in ("src", "dst", "sport"))]
        end = (r["window_end_ms"] - START_MS) / 1000
        if detour and TURNS + 15 <= end <= ENDS:
            stray.add((r["state"], r.get("reason")))
        elif r["state"] == "resolved":
            right += 1
            if names(r["hops"]) != hops:
                wrong.append(r)
    check(f"{right} resolved paths of others, none wrong", right > 0 and not wrong, wrong[:1])
    check("flows on the detour have no path, and go where none leads",
          ("unresolved", "off_path") in stray and
          not {state for state, _ in stray} & {"resolved", "multipath"}, stray)


def main():
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "t.yaml"
        file.write_text(topology())
        lines = "".join(json.dumps(r) + "\n" for r in samples())
        got = replay(file, lines)
        check("twice the same", got == replay(file, lines))
    records = rig.records_of(got)
    test_event(records)
    test_paths(records)
    return 1 if rig.failures else 0


if __name__ == "__main__":
    sys.exit(main())
