# SPDX-License-Identifier: Apache-2.0
"""A switch that chooses by CRC32, learnt from queue pairs, and a collision that is planned away by that: what
the tool and the daemon said is held against the links by which the kernel sent each flow, and those against
the judge's own CRC32."""
import ipaddress
import json
import re
import struct
import zlib

import guestfabric
import judge_collide
from judge_collide import HOSTS, PROGRAMS, SPINES, Judge, confirmed, fim  # noqa: F401

LEARN = 12  # queue pairs of each of the three connections at once
PORT, PROTOCOL, MARK = 4791, 17, 0x100
UP = [f"Ethernet{51 + i}" for i in range(SPINES)]


def index(src, dst, sport):
    key = ipaddress.ip_address(src).packed + ipaddress.ip_address(dst).packed
    return zlib.crc32(key + struct.pack(">HHB", sport, PORT, PROTOCOL)) % SPINES


def rules(src, dst):
    """CRC32 is affine: the hash of a header of zeros, and what each bit of it that is one adds. Of the bits
    of addresses those count that hosts of the fabric have."""
    zeros = tuple(ipaddress.ip_network(f"{ip}/24", strict=False)[0] for ip in (src, dst))
    base = index(*zeros, 0)
    yield f"meta mark set {MARK | base:#x}"
    for bit in range(16):
        yield from _rule(f"udp sport & {1 << bit:#x} != 0", base ^ index(*zeros, 1 << bit))
    for name, number in (("saddr", 0), ("daddr", 1)):
        for bit in range(8):
            one = list(zeros)
            one[number] += 1 << bit
            yield from _rule(f"ip {name} & 0.0.0.{1 << bit} != 0.0.0.0", base ^ index(*one, 0))


def _rule(condition, column):
    if column:
        yield f"{condition} meta mark set meta mark ^ {column:#x}"


def prepare(share, build):
    judge_collide.prepare(share, build)
    plan, folder = judge_collide.the_plan(), share / "plan"
    client, server, _ = plan.pairs[0]
    guestfabric.put(folder, "learn", [LEARN])
    lines = "\n".join(f"        {rule}" for rule in rules(client.ip4, server.ip4))
    away = ipaddress.ip_network(f"{server.ip4}/24", strict=False)
    (folder / "crc.nft").write_text(
        "table ip crc {\n    chain choose {\n        type filter hook prerouting priority mangle;\n"
        f"        ip daddr != {away} accept\n        udp dport != {PORT} accept\n{lines}\n    }}\n}}\n")
    route = next(r for r in plan.layout.routes("leaf1") if f" {away} " in r)
    hops = dict(map(reversed, re.findall(r"via (\S+) dev (\S+)", route)))
    guestfabric.put(folder, "crc.batch", [
        *(f"rule add pref {10 + i} fwmark {MARK | i:#x} lookup {200 + i}" for i in range(SPINES)),
        *(f"route add {away} via {hops[UP[i]]} dev {UP[i]} table {200 + i}" for i in range(SPINES))])
    for client, server, _ in plan.pairs:
        sport = next(p for p in range(0xc000, 0x10000) if index(client.ip4, server.ip4, p) == 0)
        text = (folder / f"collision-{client.name}.json").read_text()
        for name, value in (("SPORT", sport), ("LINK", 51), ("SPINE", 1)):
            text = text.replace(f"@{name}@", str(value))
        (folder / f"0@{judge_collide.JOB}@{client.name}.plan").write_text(text)


def by_crc(j, name):
    """Flows that the kernel did not send where CRC32 says."""
    to = {c.ip4: s.ip4 for c, s, _ in judge_collide.the_plan().pairs}
    return [f"{src}:{sport}: {sorted(links)}, by CRC32 {UP[index(src, to[src], sport)]}"
            for (src, sport), links in j.flows(name).items() if links != {UP[index(src, to[src], sport)]}]


def judge(out, _):
    j = Judge(out)
    j.check(f"the switch chooses by CRC32: {len(j.flows('learn'))} queue pairs, by the kernel's count",
            by_crc(j, "learn") or ([] if len(j.flows("learn")) >= 64 else [len(j.flows("learn"))]))
    leaf = next((r for r in map(json.loads, (out / "hash.json").read_text().splitlines())
                 if r.get("switch") == "leaf1"), {})
    j.check(f"learnt from {leaf.get('observations')} flows: right for {leaf.get('accuracy')} of "
            f"{leaf.get('predicted')} that it did not know",
            [] if leaf.get("model") == "linear" and leaf.get("accuracy", 0) >= 0.99 and
            leaf.get("predicted", 0) >= 32 and "sport" in leaf.get("inputs", []) else [leaf])
    before = j.taken("collided")
    j.check("the collision is one: all flows on one link", [] if max(before.values()) == HOSTS else [before])
    j.imbalance("collided", before)
    plan = j.plan("planned")
    j.check(f"planned: {HOSTS - 1} of {HOSTS} flows move, as few as can, and no switch was asked",
            [] if len(plan["moves"]) == HOSTS - 1 and "asked" not in plan else [plan])
    said = plan["before"].get("fim_up"), plan["after"].get("fim_up")
    j.check("planned: FIM 150 before, 50 after, which is the least of 3 flows over 4 links",
            [] if said == (fim([3, 0, 0, 0]), fim([1, 1, 1, 0])) else [said])
    after = j.taken("planned")
    j.check("planned: no link has two flows", [] if max(after.values()) == 1 else [after])
    j.check("planned: each port leads where the plan says", j.leads("planned", j.flows("planned")))
    j.check("planned: and where CRC32 says", by_crc(j, "planned"))
    j.imbalance("planned", after)
    slow, fast = (min(j.rates(name).values()) for name in ("collided", "planned"))
    j.check(f"planned: the slowest flow has {fast / 1000:.0f} kb/s, before {slow / 1000:.0f}: at least twice as much",
            [] if fast >= 2 * slow > 0 else [j.rates("collided"), j.rates("planned")])
    j.check("planned: samples confirm every port", confirmed(out, "planned", HOSTS))
    refused = j.plan("failed")
    j.check("with a link down, of which nothing was learnt, planning is refused",
            [] if "was not seen" in " ".join(refused.get("refused", [])) and "moves" not in refused else [refused])
    return j.passed, j.failed
