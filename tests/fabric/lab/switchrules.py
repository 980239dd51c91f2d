# SPDX-License-Identifier: Apache-2.0
"""The nftables rules of a switch: counters that are the truth, and the sampling for its exporter.

Sets count packets by (in port, out port, source, destination, UDP source port): all4 and all6 every
forwarded RoCEv2 packet, sampled4 and sampled6 those that the exporter is given. An nftables
concatenation holds five fields at most; destination port and protocol are fixed by the match.
"""
import json

SNAP_BYTES = 1600
FLOWS_MAX = 65536
FIELDS = ("in", "out", "src", "dst", "sport")


def ruleset(sampling, nflog_group):
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
    key4 = "iif . oif . ip saddr . ip daddr . udp sport"
    key6 = "iif . oif . ip6 saddr . ip6 daddr . udp sport"
    sample = f"""
    numgen random mod {sampling} != 0 accept
    meta nfproto ipv4 udp dport 4791 update @sampled4 {{ {key4} }}
    meta nfproto ipv6 udp dport 4791 update @sampled6 {{ {key6} }}
    meta l4proto {{ tcp, udp }} log group {nflog_group} snaplen {SNAP_BYTES} queue-threshold 1"""
    return f"""table inet lab {{{sets}
  chain forwarded {{
    type filter hook forward priority 0
    meta nfproto ipv4 udp dport 4791 update @all4 {{ {key4} }}
    meta nfproto ipv6 udp dport 4791 update @all6 {{ {key6} }}{sample if sampling else ""}
  }}
}}
"""


def flush_rules():
    return "".join(f"flush set inet lab {kind}{family}\n"
                   for kind in ("all", "sampled") for family in (4, 6))


def parse(listing):
    """From `nft -j list table`: {"all": rows, "sampled": rows}, a row being a dict of FIELDS and
    `packets`."""
    rows = {"all": [], "sampled": []}
    for item in json.loads(listing)["nftables"]:
        for element in item.get("set", {}).get("elem", []):
            element = element["elem"]
            row = dict(zip(FIELDS, element["val"]["concat"]))
            row["packets"] = element["counter"]["packets"]
            rows[item["set"]["name"][:-1]].append(row)
    return rows
