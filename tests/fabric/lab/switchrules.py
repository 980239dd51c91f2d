# SPDX-License-Identifier: Apache-2.0
"""The nftables rules of a switch: counters that are the truth, and the sampling for its exporters.

Sets count packets by (in port, out port, source, destination, UDP source port): all4 and all6 every
forwarded RoCEv2 packet, sampled4 and sampled6 those that the exporter is given. An nftables
concatenation holds five fields at most; destination port and protocol are fixed by the match. Where
a packet enters, the port out is not known yet: there sampled4 and sampled6 have the port in twice.
"""
import json
from dataclasses import dataclass

from .layout import MGMT_IFINDEX

SNAP_BYTES = 1600
PUSH_PROTOCOL = 253  # for experiments (RFC 3692): nobody's flow
FLOWS_MAX = 65536
FIELDS = ("in", "out", "src", "dst", "sport")
KEY4 = "ip saddr . ip daddr . udp sport"
KEY6 = "ip6 saddr . ip6 daddr . udp sport"


@dataclass(frozen=True)
class Tap:
    """Where packets are sampled for one exporter: forward (on their way, both ports known), prerouting
    (at entry: the port in alone) or postrouting (at exit); `ports` limits it to these ifindexes in."""
    hook: str
    sub_agent: int = 1
    ports: tuple = ()

    @property
    def group(self):
        """Of NFLOG."""
        return 4 + self.sub_agent


def taps(points, layout, switch):
    """How a switch samples. `points`: forward, ingress, egress, both, cards (two exporters, of which
    each has its own ports) or mixed (switches differ)."""
    if points == "mixed":
        kinds = ("both", "ingress", "egress", "cards")
        points = kinds[layout.switches.index(switch) % len(kinds)]
    if points == "cards":
        ports = [port.ifindex for port in layout.ports(switch)]
        return [Tap("forward", 1, tuple(ports[::2])), Tap("forward", 2, tuple(ports[1::2]))]
    return {"forward": [Tap("forward")], "ingress": [Tap("prerouting")],
            "egress": [Tap("postrouting")],
            "both": [Tap("prerouting", 1), Tap("postrouting", 2)]}[points]


def chain(tap, sampling):
    """The chain of a tap, in which one packet in `sampling` goes on to its exporter."""
    out = "iif" if tap.hook == "prerouting" else "oif"
    own = f"oif {MGMT_IFINDEX} accept" if tap.hook == "postrouting" else ""
    mine = f"iif != {{ {', '.join(map(str, tap.ports))} }} accept" if tap.ports else ""
    return f"""  chain tap{tap.sub_agent} {{
    type filter hook {tap.hook} priority 1
    iif {MGMT_IFINDEX} accept
    {own}
    {mine}
    numgen random mod {sampling} != 0 accept
    meta nfproto ipv4 udp dport 4791 update @sampled4 {{ iif . {out} . {KEY4} }}
    meta nfproto ipv6 udp dport 4791 update @sampled6 {{ iif . {out} . {KEY6} }}
    meta l4proto {{ tcp, udp }} log group {tap.group} snaplen {SNAP_BYTES} queue-threshold 1
  }}
"""


def push_chain(exporters):
    """Packets that push samples out of the exporters' buffers."""
    logs = "".join(f"    meta l4proto {PUSH_PROTOCOL} log group {tap.group} snaplen {SNAP_BYTES} "
                   "queue-threshold 1\n" for tap in exporters)
    return f"""  chain push {{
    type filter hook output priority 1
{logs}  }}
"""


def ruleset(sampling, exporters, prompt=False):
    sets = "".join(
        f"""
  set {kind}{family} {{
    type iface_index . iface_index . ipv{family}_addr . ipv{family}_addr . inet_service
    size {FLOWS_MAX}
    flags dynamic
    counter
  }}"""
        for kind in ("all", "sampled")
        for family in (4, 6)
    )
    chains = "".join(chain(tap, sampling) for tap in exporters if sampling)
    chains += push_chain(exporters) if prompt and sampling else ""
    return f"""table inet lab {{{sets}
  chain forwarded {{
    type filter hook forward priority 0
    meta nfproto ipv4 udp dport 4791 update @all4 {{ iif . oif . {KEY4} }}
    meta nfproto ipv6 udp dport 4791 update @all6 {{ iif . oif . {KEY6} }}
  }}
{chains}}}
"""


def flush_rules():
    return "".join(f"flush set inet lab {kind}{family}\n"
                   for kind in ("all", "sampled") for family in (4, 6))


def parse(listing):
    """From `nft -j list table`: {"all": rows, "sampled": rows}, a row being a dict of FIELDS, `packets`
    and `bytes` (of the IP packets)."""
    rows = {"all": [], "sampled": []}
    for item in json.loads(listing)["nftables"]:
        for element in item.get("set", {}).get("elem", []):
            element = element["elem"]
            row = dict(zip(FIELDS, element["val"]["concat"]))
            row.update((name, element["counter"][name]) for name in ("packets", "bytes"))
            rows[item["set"]["name"][:-1]].append(row)
    return rows
