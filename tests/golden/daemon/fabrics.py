# SPDX-License-Identifier: Apache-2.0
"""Topology files of generated leaf-spines: host H of leaf L has the address 10.0.L.H."""


def leaf_spine(leaves, spines, hosts, speeds=None, missing=(), head=""):
    """A topology file: port N of a leaf leads to spine N, whose port M leads to leaf M; host H of a leaf is at its port
    50 + H. speeds: Gbit/s of the links to each spine, hosts have 100; missing: links that are not there, as (leaf,
    spine)."""
    out = f"fabric: small\n{head}switches:\n"
    for kind, count, ports, net in (("leaf", leaves, spines, 2), ("spine", spines, leaves, 3)):
        for i in range(1, count + 1):
            names = [(p, speeds and speeds[p - 1 if kind == "leaf" else i - 1]) for p in range(1, ports + 1)]
            names += [(50 + h, speeds and 100) for h in range(1, hosts + 1)] if kind == "leaf" else []
            described = [f"{{ifindex: {n}, name: Ethernet{n}" + (f", speed_bps: {speed * 10 ** 9}}}" if speed else "}")
                         for n, speed in names]
            out += (f"  - {{name: {kind}{i}, tier: {kind}, addresses: [192.0.{net}.{i}], ports: ["
                    + ", ".join(described) + "]}\n")
    out += "links:\n"
    for leaf in range(1, leaves + 1):
        for spine in range(1, spines + 1):
            if (leaf, spine) not in missing:
                out += f"  - {{a: leaf{leaf}, a_port: Ethernet{spine}, b: spine{spine}, b_port: Ethernet{leaf}}}\n"
    out += "hosts:\n"
    for leaf in range(1, leaves + 1):
        for h in range(1, hosts + 1):
            out += (f"  - {{name: h{leaf}{h}, nics: [{{addresses: [10.0.{leaf}.{h}], "
                    f"attach: [{{switch: leaf{leaf}, port: Ethernet{50 + h}}}]}}]}}\n")
    return out


def hosts_first(leaves, spines, hosts):
    """A topology file: host H of a leaf is at its port H, and its port 50 + N leads to spine N."""
    text = "fabric: small\nspeed_bps: 100000000000\nswitches:\n"
    for leaf in range(1, leaves + 1):
        ports = ", ".join(f"{{name: Ethernet{i}, ifindex: {i}}}"
                          for i in [*range(1, hosts + 1), *range(51, 51 + spines)])
        text += f"  - {{name: leaf{leaf}, addresses: [192.0.2.{leaf}], ports: [{ports}]}}\n"
    for spine in range(1, spines + 1):
        ports = ", ".join(f"{{name: Ethernet{i}, ifindex: {i}}}" for i in range(1, leaves + 1))
        text += f"  - {{name: spine{spine}, addresses: [192.0.2.{100 + spine}], ports: [{ports}]}}\n"
    text += "links:\n"
    for leaf in range(1, leaves + 1):
        for spine in range(1, spines + 1):
            text += (f"  - {{a: leaf{leaf}, a_port: Ethernet{50 + spine}, b: spine{spine}, "
                     f"b_port: Ethernet{leaf}}}\n")
    text += "hosts:\n"
    for leaf in range(1, leaves + 1):
        for host in range(1, hosts + 1):
            text += (f"  - {{name: h{leaf}-{host}, nics: [{{addresses: [10.0.{leaf}.{host}], "
                     f"attach: [{{switch: leaf{leaf}, port: Ethernet{host}}}]}}]}}\n")
    return text
