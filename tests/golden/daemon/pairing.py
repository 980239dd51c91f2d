#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Queue pairs whose hosts do not know where they send to, from the agents' lists to paths with their
owners: inside a communicator, by samples, and taken back when it is not certain any more. What has to
come out was worked out by hand. All queue pairs have the numbers 17 and 18."""
import json
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
import rig  # noqa: E402
from rig import check, equal, of_kind  # noqa: E402

TOPOLOGY = """
fabric: small
speed_bps: 1000000000
switches:
  - {name: leaf1, addresses: [192.0.2.11], ports: [{name: host1, ifindex: 1}, {name: host2, ifindex: 2},
                                                   {name: up1, ifindex: 49}, {name: up2, ifindex: 50}]}
  - {name: leaf2, addresses: [192.0.2.12], ports: [{name: host3, ifindex: 1}, {name: host4, ifindex: 2},
                                                   {name: up1, ifindex: 49}, {name: up2, ifindex: 50}]}
  - {name: spine1}
  - {name: spine2}
links:
  - {a: leaf1, a_port: up1, b: spine1, b_port: a}
  - {a: leaf1, a_port: up2, b: spine2, b_port: a}
  - {a: leaf2, a_port: up1, b: spine1, b_port: b}
  - {a: leaf2, a_port: up2, b: spine2, b_port: b}
hosts:
  - {name: h1, nics: [{addresses: [10.0.1.1], attach: [{switch: leaf1, port: host1}]}]}
  - {name: h2, nics: [{addresses: [10.0.2.1], attach: [{switch: leaf1, port: host2}]}]}
  - {name: h3, nics: [{addresses: [10.0.3.1], attach: [{switch: leaf2, port: host3}]}]}
  - {name: h4, nics: [{addresses: [10.0.4.1], attach: [{switch: leaf2, port: host4}]}]}
"""
START_MS = 1795200000000
REFRESH_S = 15
WINDOW_S = 5
SPORT = 0xC000 | 17 * 18  # of queue pairs 17 and 18, by the kernel's formula
NUMBER = {"h1": 17, "h2": 17, "h3": 18, "h4": 18}
OTHER = {"h1": 18, "h2": 18, "h3": 17, "h4": 17}
LEAF1, LEAF2 = "192.0.2.11", "192.0.2.12"


def address(host):
    return f"10.0.{host[1:]}.1"


class World:
    """Records in the order of time; `qps` are the hosts that have a queue pair, since when."""

    def __init__(self, hosts=("h1", "h2", "h3", "h4")):
        self.lines, self.hosts, self.qps, self.members = [], hosts, {}, {}
        self.flows, self.numbers = {}, True

    def say(self, schema, ms, **members):
        self.lines.append(json.dumps({"schema": f"fabrictrace.{schema}.v1", "time_ms": ms, **members}))

    def list(self, host, ms, **ended):
        since = self.qps.get(host)
        pairs = [{"local": NUMBER[host], "remote": OTHER[host], "state": "rts", "sport": SPORT,
                  "tuple_source": "computed", "pid": 4121, "comm": "train.py", "job": "88",
                  "since_ms": since, "begun": True}] if since else []
        pairs += [{"local": NUMBER[host], "remote": OTHER[host], "since_ms": 1, **ended}] if ended else []
        self.say("queue_pairs", ms, interval_ms=1000 * REFRESH_S, source=f"{host}-agent", host=host,
                 device="mlx5_0", port=1, driver="mlx5", computed=True,
                 addresses=["fe80::" + host[1:], address(host)], queue_pairs=pairs,
                 listed=1 if since else 0)

    def second(self, s, new=(), gone=()):
        ms = START_MS + 1000 * s
        for host in gone:
            del self.qps[host]
            self.list(host, ms, ended=True)
        for host in new:
            self.qps[host] = ms
            self.list(host, ms)
        if s % REFRESH_S == 0:
            for host in self.hosts:
                self.list(host, ms)
            for rank, host in enumerate(self.members):
                self.say("communicator", ms, since_ms=START_MS, host=host, pid=4121, job="88",
                         comm_id="00000000000000c0", rank=rank, ranks=len(self.members))
        for (src, dst), (agent, i, o) in self.flows.items():
            self.say("observation", ms, interval_ms=1000, agent=agent, in_ifindex=i, out_ifindex=o,
                     point="ingress", samples=5, packets=500, bytes=500000,
                     **({"data_samples": 5, "dst_qp": NUMBER[dst]} if self.numbers else {}),
                     flow={"src": address(src), "dst": address(dst), "sport": SPORT, "dport": 4791,
                           "proto": 17})
        self.say("loss", ms, source="clock", program="test", stages=[])

    def play(self, *settings):
        with tempfile.TemporaryDirectory() as folder:
            topology = Path(folder) / "t.yaml"
            topology.write_text(TOPOLOGY)
            done = rig.run(rig.DAEMON, *rig.NO_CONFIG, *rig.TRUST, "--set", f"window={WINDOW_S}s", *settings,
                           "--topology", topology, "--replay", "-", "--sink", "file:-",
                           input="\n".join(self.lines) + "\n", stdin=None)
        equal("exit code", done.returncode, 0)
        return rig.records_of(done.stdout)


def paths_of(records, src, dst):
    return [r for r in of_kind(records, "path")
            if (r["flow"]["src"], r["flow"]["dst"]) == (address(src), address(dst))]


def test_inside_a_communicator(_):
    """Two jobs by the same numbers; one is h1 and h3 in a communicator, of the other nothing is known
    but its ends."""
    world = World()
    world.members = ["h1", "h3"]
    for s in range(60):
        world.second(s, new=["h1", "h3", "h2", "h4"] if s == 2 else ())
    records = world.play()
    there, back = paths_of(records, "h1", "h3"), paths_of(records, "h3", "h1")
    check("both directions are known", there and back)
    equal("the destination is computed, not observed", {r["tuple_source"] for r in there + back},
          {"computed"})
    last = there[-1]
    equal("how it was found", last["pairing"],
          {"by": "communicator", "host": "h3", "device": "mlx5_0", "qp": 18,
           "comm_id": "00000000000000c0"})
    equal("whose it is", (last["pid"], last["comm"], last["job"], last["qp"], last["src_host"]),
          (4121, "train.py", "88", {"local": 17, "remote": 18}, "h1"))
    equal("no samples, no path", (last["state"], last["reason"]), ("unresolved", "no_samples"))
    equal("the other job is not guessed", {(r["flow"]["src"], r["flow"]["dst"]) for r in
                                           of_kind(records, "path")},
          {(address("h1"), address("h3")), (address("h3"), address("h1"))})
    rig.check_balance("lists", records)
    stage = rig.last_stages(records, "fabrictraced")["queue_pairs"]
    equal("ends", (stage["received"], stage["pending"]), (4, 4))


def test_samples_tell(_):
    """The switches sample data of h2 to h4 and the acknowledgements: both ends list each other."""
    world = World()
    for s in range(30):
        if s == 8:
            world.flows = {("h2", "h4"): (LEAF1, 2, 50), ("h4", "h2"): (LEAF2, 2, 49)}
        world.second(s, new=["h1", "h3", "h2", "h4"] if s == 2 else ())
    records = world.play()
    for src, dst, spine in (("h2", "h4", "spine2"), ("h4", "h2", "spine1")):
        last = paths_of(records, src, dst)[-1]
        equal(f"{src} to {dst}", (last["state"], [h["switch"] for h in last["hops"]],
                                  last["tuple_source"], last["pairing"]["by"],
                                  last["pairing"]["host"], last["pid"]),
              ("resolved", ["leaf1", spine, "leaf2"] if src == "h2" else ["leaf2", spine, "leaf1"],
               "observed", "both_hosts", dst, 4121))


def test_taken_back(_):
    """h1 and h3 are alone with their numbers in the communicator until h2 comes to it."""
    world = World()
    world.members = ["h1", "h3", "h2"]
    for s in range(75):
        world.second(s, new=["h1", "h3"] if s == 2 else ["h2"] if s == 50 else ())
    records = world.play()
    there = paths_of(records, "h1", "h3")
    equal("it was published", there[0]["pairing"]["by"], "communicator")
    equal("the last says that it is not so", there[-1]["pairing"], {"withdrawn": True})
    check("and names no owner", not {"pid", "comm", "job", "qp"} & set(there[-1]), there[-1])
    check("nothing after it", [r.get("pairing", {}).get("withdrawn", False) for r in there].index(True)
          == len(there) - 1)
    world = World()
    world.members = ["h1", "h3"]
    for s in range(75):
        world.second(s, new=["h1", "h3"] if s == 2 else (), gone=["h3"] if s == 50 else ())
    records = world.play()
    there = paths_of(records, "h1", "h3")
    check("what ended is not withdrawn", there and not any("withdrawn" in r.get("pairing", {})
                                                           for r in there))


def test_taken_back_with_a_rate(_):
    """The same after samples that show no number, and have stopped: the rate that is told last is of
    its window still."""
    world = World()
    world.numbers = False
    world.members = ["h1", "h3", "h2"]
    for s in range(75):
        world.flows = {("h1", "h3"): (LEAF1, 2, 50)} if 8 <= s < 30 else {}
        world.second(s, new=["h1", "h3"] if s == 2 else ["h2"] if s == 50 else ())
    there = paths_of(world.play(), "h1", "h3")
    back = [r for r in there if r.get("pairing", {}).get("withdrawn")]
    rated = [r for r in there if "bytes" in r and r["window_start_ms"] < START_MS + 30000]
    check("it is taken back with its rate", back and "bytes" in back[0], back)
    equal("of the same window", (back[0]["window_start_ms"], back[0]["bytes"]),
          (rated[-1]["window_start_ms"], rated[-1]["bytes"]))


def test_off(_):
    world = World()
    world.members = ["h1", "h3"]
    for s in range(60):
        world.second(s, new=["h1", "h3"] if s == 2 else ())
    records = world.play("--set", "pairing.ends_max=0")
    equal("no path without pairing", of_kind(records, "path"), [])


if __name__ == "__main__":
    sys.exit(rig.run_tests(test_inside_a_communicator, test_samples_tell, test_taken_back,
                           test_taken_back_with_a_rate, test_off))
