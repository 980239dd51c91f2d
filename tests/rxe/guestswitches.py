# SPDX-License-Identifier: Apache-2.0
"""The fabric of guestfabric.py with managed switches: each is an Open vSwitch that spreads flows by a
select group and samples them itself, with an snmpd and an lldpd beside it; there is no topology file.
"""
import shutil

import guestfabric
from guestfabric import HERE, put
from lab import agents
from vm import speed

PROGRAMS = tuple(program for program in guestfabric.PROGRAMS if not program.startswith("/"))
# On an idle machine. An answer that comes later than the poller waits is asked for again.
POLL_S = 4
TIMEOUT_S = 2
LLDP_TTL_S = 120  # as by default (IEEE 802.1AB, 10.5): here no link goes down, and lldpd may have to wait
USERS = ("v3",)  # a key takes a while where the processor is emulated
FIELDS = {4: "ip_src,ip_dst,nw_proto,udp_src,udp_dst", 6: "ipv6_src,ipv6_dst,nw_proto,udp_src,udp_dst"}


def _mac(host):
    return f"02:00:00:01:{host.leaf:02x}:{host.slot:02x}"


def _number(port):
    """Of a port in OpenFlow."""
    return int(port.name.removeprefix("Ethernet"))


def _links(layout, switch):
    yield "link set lo up"
    yield from (f"link set {port.name} up" for port in layout.ports(switch))
    yield from (f"addr add {layout.mgmt(switch)}/16 dev mgmt0", "link set mgmt0 up")


def _groups(layout, switch):
    """A leaf's ECMP over its uplinks, of IPv4 and of IPv6. Each switch has a hash of its own."""
    if switch not in layout.leaves:
        return
    leaf = layout.leaves.index(switch)
    ports = [_number(layout.uplink(leaf, spine)) for spine in range(len(layout.spines))]
    buckets = "".join(f",bucket=bucket_id:{port},actions=output:{port}" for port in ports)
    for version, fields in FIELDS.items():
        yield (f"group_id={version},type=select,selection_method=hash,"
               f"selection_method_param={1000 + leaf},fields({fields}){buckets}")


def _flows(layout, switch):
    yield "priority=0,actions=drop"
    for host in layout.hosts:
        if switch in layout.spines:
            out = f"output:{_number(layout.downlink(host.leaf, layout.spines.index(switch)))}"
        elif layout.host_port(host).node == switch:
            out = f"mod_dl_dst:{_mac(host)},output:{_number(layout.host_port(host))}"
        else:
            out = ""
        yield f"priority=10,ip,nw_dst={host.ip4},actions=dec_ttl,{out or 'group:4'}"
        yield f"priority=10,ipv6,ipv6_dst={host.ip6},actions=dec_ttl,{out or 'group:6'}"


def write(share, plan):
    """Puts into the guest's folder what guestfabric.sh and guestswitches.sh read."""
    folder, layout = share / "plan", plan.layout
    guestfabric.write_fabric(
        share, plan, topology='topology: ""',
        poller=f"snmp:\n  switches: plan/switches.yaml\n  interval: {speed.limit(POLL_S):.0f}s\n"
               f"  timeout: {min(speed.limit(TIMEOUT_S), 60):.0f}s\n")
    shutil.copy2(HERE / "guestswitches.sh", share)
    put(folder, "macs.batch", (f"link set {host.name} address {_mac(host)}" for host in layout.hosts))
    put(folder, "sampling", [plan.sampling])
    agents.write_switches(folder / "switches.yaml", layout)
    for switch in layout.switches:
        put(folder, f"{switch}.batch", _links(layout, switch))
        put(folder, f"{switch}.groups", _groups(layout, switch))
        put(folder, f"{switch}.flows", _flows(layout, switch))
        put(folder, f"{switch}.ports", (f"{port.name} {_number(port)}" for port in layout.ports(switch)))
        put(folder, f"{switch}.address", [layout.mgmt(switch)])
        (folder / switch).mkdir()
        agents.write_agent(folder / switch, layout, switch, f"/run/{switch}", USERS,
                           LLDP_TTL_S // agents.TX_INTERVAL_S)
