# SPDX-License-Identifier: Apache-2.0
"""A leaf-spine fabric inside one guest, as files for the guest's shell: switches are namespaces with
kernel ECMP and a real sFlow exporter each; hosts are network devices with Soft-RoCE in the first
namespace, where alone it works (Linux 6.1), so that rules make their packets go out by the leaves.

The shape, the addresses and the routes are those of tests/fabric.
"""
import ipaddress
import pathlib
import shutil
import sys
from dataclasses import dataclass

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "fabric"))
from lab import switchrules  # noqa: E402
from lab.layout import COLLECTOR_IP, MGMT_IFINDEX, Layout  # noqa: E402,F401

NFLOG_GROUP = 5
FIRST_PORT = 20001  # of perftest's own connections
FIRST_TABLE = 101  # routes of the first host
PROGRAMS = ("agent/fabrictrace-agent", "daemon/fabrictraced", "switchpoll/fabrictrace-switchpoll",
            "cli/fabrictrace", "/usr/sbin/uacctd", "/usr/sbin/nft")
# Before there are links, so that each link starts with them.
SWITCH_SYSCTLS = (
    "ipv4/ip_forward=1", "ipv6/conf/all/forwarding=1", "ipv4/conf/all/rp_filter=0",
    "ipv4/conf/default/rp_filter=0", "ipv4/fib_multipath_hash_policy=1",
    "ipv6/fib_multipath_hash_policy=1", "ipv6/conf/all/accept_dad=0",
    "ipv6/conf/default/accept_dad=0",
)
HOST_SYSCTLS = (
    "ipv4/conf/all/rp_filter=0", "ipv4/conf/default/rp_filter=0", "ipv4/conf/all/accept_local=1",
    "ipv4/conf/default/accept_local=1", "ipv4/conf/all/arp_ignore=1",
    "ipv4/conf/all/arp_announce=2", "ipv6/conf/all/accept_dad=0",
    "ipv6/conf/default/accept_dad=0", "ipv6/conf/default/accept_ra=0",
    "core/netdev_max_backlog=100000",
)


def _sysctls(values):
    return "".join("echo {1} >/proc/sys/net/{0}\n".format(*value.split("=")) for value in values)


def _links(layout):
    yield from (f"netns add {switch}" for switch in layout.switches)
    for link in layout.host_links:
        yield (f"link add name {link.a.name} index {link.a.ifindex} netns {link.a.node} "
               f"type veth peer name {link.b.node}")
    for link in layout.fabric_links:
        yield (f"link add name {link.a.name} index {link.a.ifindex} netns {link.a.node} type veth "
               f"peer name {link.b.name} index {link.b.ifindex} netns {link.b.node}")
    for switch in layout.switches:
        yield (f"link add name mgmt0 index {MGMT_IFINDEX} netns {switch} "
               f"type veth peer name m-{switch}")


def _mac(host):
    """Of the switch port that a host hangs on."""
    return f"02:00:00:00:{host.leaf:02x}:{host.slot:02x}"


def _switch(layout, switch):
    yield "link set lo up"
    for host in layout.hosts:
        if layout.host_port(host).node == switch:
            yield f"link set {layout.host_port(host).name} address {_mac(host)}"
    yield from (f"link set {port.name} up" for port in layout.ports(switch))
    yield from (f"addr add {layout.mgmt(switch)}/16 dev mgmt0", "link set mgmt0 up")
    yield from layout.addresses(switch)
    yield from layout.routes(switch)


def _hosts(layout):
    """Lines for both families, and those for IPv4 and IPv6 alone."""
    both, rules = [], []
    for switch in layout.switches:
        both += [f"link set m-{switch} up", f"addr add {COLLECTOR_IP}/32 dev m-{switch}",
                 f"route add {layout.mgmt(switch)} dev m-{switch} src {COLLECTOR_IP}"]
    for table, host in enumerate(layout.hosts, FIRST_TABLE):
        name = host.name
        net4 = ipaddress.ip_interface(f"{host.ip4}/30").network
        net6 = ipaddress.ip_interface(f"{host.ip6}/64").network
        both += [
            f"addr add {host.ip4}/30 dev {name} noprefixroute",
            f"addr add {host.ip6}/64 dev {name} nodad noprefixroute",
            f"link set {name} up",
            f"route add {net4} dev {name} src {host.ip4} table {table}",
            f"route add default via {host.gateway4} dev {name} table {table}",
            f"route add {net6} dev {name} table {table}",
            f"route add default via {host.gateway6} dev {name} table {table}",
            # The kernel gives a queue pair one second to find its neighbour.
            f"neigh add {host.gateway4} lladdr {_mac(host)} dev {name} nud permanent",
            f"neigh add {host.gateway6} lladdr {_mac(host)} dev {name} nud permanent",
        ]
        rules += [f"rule add pref 10 oif {name} lookup {table}",
                  f"rule add pref 20 iif {name} lookup local"]
    return both, rules + ["rule add pref 1000 lookup local", "rule del pref 0"]


def _exporter(layout, switch, sampling):
    return (f"daemonize: false\nuacctd_group: {NFLOG_GROUP}\nuacctd_nl_size: 4194304\n"
            # The frame length in a sample is that of the captured bytes.
            f"snaplen: {switchrules.SNAP_BYTES}\nuacctd_ext_sampling_rate: {sampling}\n"
            "plugins: sfprobe[x]\nplugin_buffer_size: 2048\nplugin_pipe_size: 2048000\n"
            f"sfprobe_receiver[x]: {COLLECTOR_IP}:6343\n"
            f"sfprobe_agentip[x]: {layout.mgmt(switch)}\n"
            f"sfprobe_source_ip[x]: {layout.mgmt(switch)}\n"
            f"sfprobe_ifspeed[x]: {layout.speed_bps}\n")


def device(host):
    """The RDMA device of a host."""
    return f"rxe_{host.name}"


def gid(address):
    """An IP address as the kernel writes it in a table of RoCE addresses."""
    ip = ipaddress.ip_address(address)
    return ipaddress.ip_address(f"::ffff:{ip}" if ip.version == 4 else ip).exploded


def job(host):
    """The job of the client on a host; servers have none."""
    return f"job-{host.name}"


@dataclass(frozen=True)
class Plan:
    """A fabric and what is driven over it. pairs: (client, server, IP version)."""
    layout: Layout
    pairs: tuple
    qps: int
    sampling: int
    window_s: int

    @property
    def ends(self):
        return 2 * self.qps * len(self.pairs)


def put(folder, name, lines):
    (folder / name).write_text("".join(f"{line}\n" for line in lines))


def write(share, plan):
    """Puts into the guest's folder what guestfabric.sh reads: routers of the kernel, whose exporters
    are pmacct's, and a topology file."""
    folder, layout = share / "plan", plan.layout
    write_fabric(share, plan)
    for switch in layout.switches:
        put(folder, f"{switch}.batch", _switch(layout, switch))
        (folder / f"{switch}.uacctd").write_text(_exporter(layout, switch, plan.sampling))
    (folder / "switch.nft").write_text(switchrules.ruleset(plan.sampling, [switchrules.Tap("forward")]))
    (folder / "topology.yaml").write_text(layout.topology("rxe"))


def write_fabric(share, plan, topology="topology: plan/topology.yaml", poller=""):
    """All but what the switches are made of. topology and poller: lines for the files of the daemon
    and of switchpoll."""
    folder, layout = share / "plan", plan.layout
    folder.mkdir()
    shutil.copy2(HERE / "guestfabric.sh", share)
    (folder / "hosts.sysctl").write_text(_sysctls(HOST_SYSCTLS))
    (folder / "switch.sysctl").write_text(_sysctls(SWITCH_SYSCTLS))
    put(folder, "links.batch", _links(layout))
    both, rules = _hosts(layout)
    put(folder, "hosts.batch", both)
    put(folder, "rules.batch", rules)
    put(folder, "switches", layout.switches)
    put(folder, "spines", layout.spines)
    put(folder, "ends", [plan.ends])
    put(folder, "pairs", (
        f"{port} {plan.qps} {device(server)} {gid(server.address(version))} "
        f"{device(client)} {gid(client.address(version))} {job(client)}"
        for port, (client, server, version) in enumerate(plan.pairs, FIRST_PORT)))
    put(folder, "hosts", (host.name for host in layout.hosts))
    (folder / "fabrictraced.yaml").write_text(
        f"listen: 127.0.0.1:9477\nwindow: {plan.window_s}s\nfloor: 0\n{topology}\n")
    (folder / "fabrictrace-switchpoll.yaml").write_text(
        f"listen: {COLLECTOR_IP}:6343\ndaemon:\n  endpoint: 127.0.0.1:9477\n{poller}")
    for host in layout.hosts:
        (folder / f"{host.name}.yaml").write_text(
            f"host: {host.name}\nhttp: 'off'\ndaemon:\n  endpoint: 127.0.0.1:9477\n"
            f"rdma:\n  devices: [{device(host)}]\n  query: true\n  counters_interval: 10s\n")
