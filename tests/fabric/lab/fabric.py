# SPDX-License-Identifier: Apache-2.0
"""The life of a lab: namespaces, links, processes and its run folder, all up and all gone again.

A lab is known by its id. Its namespaces are named ftlab-ID-NODE and its files lie in
${TMPDIR:-/tmp}/fabrictrace-lab-ID; whatever runs in its namespaces is the lab's. So `destroy` finds
everything of a lab that was left behind by a crash.
"""
import ctypes
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import speed

from . import switchrules
from .layout import COLLECTOR, COLLECTOR_IP, MGMT_IFINDEX, Layout

NETNS = Path("/run/netns")
CLONE_NEWNET = 0x40000000
HASH_SEED = Path("/proc/sys/net/ipv4/fib_multipath_hash_seed")
SFLOW_PORT = 6343
ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
ID = re.compile(r"[a-z0-9]{1,16}")
OWNED = ("run", "demo")  # of labs that end with the process whose number follows


class LabError(Exception):
    """Something the lab cannot go on from; its text is for the person at the terminal."""


class LabBusy(LabError):
    """A lab of this id is there already."""


def run(*args, text=None, check=True):
    done = subprocess.run(args, input=text, text=True, capture_output=True)
    if check and done.returncode:
        raise LabError(f"{' '.join(args)}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def ip_batch(lines, netns=None):
    run("ip", *(["-n", netns] if netns else []), "-batch", "-", text="\n".join(lines) + "\n")


def ip_batches(batches):
    """The same for {netns: lines}, all at once."""
    running = {netns: subprocess.Popen(["ip", "-n", netns, "-batch", "-"], text=True,
                                       stdin=subprocess.PIPE, stderr=subprocess.PIPE)
               for netns in batches}
    for netns, process in running.items():
        process.stdin.write("\n".join(batches[netns]) + "\n")
        process.stdin.close()
    for netns, process in running.items():
        error = process.stderr.read()
        process.stderr.close()
        if process.wait():
            raise LabError(f"ip -n {netns}: {error.strip()}")


def in_netns(netns, make):
    """make() called in a network namespace, by a thread of its own, which ends with it."""
    libc = ctypes.CDLL(None, use_errno=True)
    made = []

    def work():
        with open(NETNS / netns, "rb") as file:
            if not libc.setns(file.fileno(), CLONE_NEWNET):
                made.append(make())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    if not made:
        raise LabError(f"{netns}: cannot be entered")
    return made[0]


def wait_until(condition, seconds, what):
    """Polls condition; its true value, or LabError that names what did not come. seconds: on an idle
    machine."""
    deadline = speed.Deadline(seconds)
    while True:
        value = condition()
        if value:
            return value
        if deadline.passed():
            raise LabError(f"{what}: not within {deadline.seconds:.0f} s")
        time.sleep(0.02)


def end_tidily():
    """Makes SIGTERM and SIGHUP end a program as Ctrl-C does: through its `with` blocks."""
    for number in ENDINGS[1:]:
        signal.signal(number, lambda caught, _: sys.exit(128 + caught))


def run_dir(lab_id):
    return Path(tempfile.gettempdir()) / f"fabrictrace-lab-{lab_id}"


def namespaces(lab_id):
    prefix = f"ftlab-{lab_id}-"
    return sorted(p.name for p in NETNS.iterdir() if p.name.startswith(prefix)) \
        if NETNS.is_dir() else []


def lab_ids():
    found = {name.split("-")[1] for name in (p.name for p in NETNS.iterdir())
             if name.startswith("ftlab-")} if NETNS.is_dir() else set()
    found |= {p.name.rpartition("-")[2] for p in run_dir("x").parent.glob("fabrictrace-lab-*")}
    return sorted(found)


def reap():
    """Takes down labs that a process which is no more has left behind: those named after it."""
    for lab_id in lab_ids():
        owner = re.fullmatch(r"[a-z]+([0-9]+)", lab_id)
        if owner and lab_id.startswith(OWNED) and not Path("/proc", owner[1]).exists():
            destroy(lab_id)


def processes_in(names):
    """Process ids that live in these network namespaces."""
    inodes = set()
    for name in names:
        try:
            inodes.add((NETNS / name).stat().st_ino)
        except OSError:
            pass
    found = []
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                if os.stat(f"/proc/{entry.name}/ns/net").st_ino in inodes:
                    found.append(int(entry.name))
            except OSError:
                pass
    return found


def destroy(lab_id):
    """Takes down whatever there is of a lab. Returns how many namespaces it had."""
    names = namespaces(lab_id)
    deadline = time.monotonic() + 60
    while pids := processes_in(names):
        for pid in pids:
            try:
                # uacctd acts on SIGTERM only when the next packet comes.
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        if time.monotonic() > deadline:
            raise LabError(f"lab {lab_id}: processes {pids} do not end")
        time.sleep(0.01)
    for name in names:
        run("ip", "netns", "del", name, check=False)
    shutil.rmtree(run_dir(lab_id), ignore_errors=True)
    return len(names)


class Pusher:
    """uacctd hands samples on when its buffer is full, where a switch does so within a second. Packets of
    no flow, of which each exporter is given some three times a second, fill it."""
    PAUSE_S = 0.3
    PACKETS = 3

    def __init__(self, fabric):
        self.sockets = [in_netns(fabric.netns(switch), self._raw)
                        for switch in fabric.layout.switches]
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._work, daemon=True)
        self.thread.start()

    @staticmethod
    def _raw():
        return socket.socket(socket.AF_INET, socket.SOCK_RAW | socket.SOCK_CLOEXEC,
                             switchrules.PUSH_PROTOCOL)

    def _work(self):
        packet = bytes(switchrules.SNAP_BYTES)
        while not self.over.wait(self.PAUSE_S):
            for sock in self.sockets * self.PACKETS:
                sock.sendto(packet, ("127.0.0.1", 0))

    def close(self):
        self.over.set()
        self.thread.join()
        for sock in self.sockets:
            sock.close()


class Fabric:
    """A lab that is up, or comes up. sampling 1 in N; 0 raises it without exporters. points as in
    switchrules.taps. seed makes ECMP split the same way again, where the kernel can (Linux 6.11).
    prompt: no sample waits in an exporter for the next ones."""

    def __init__(self, lab_id, layout=None, sampling=50, seed=None, points="forward",
                 prompt=False):
        if not ID.fullmatch(lab_id):
            raise LabError(f"lab id '{lab_id}': 1 to 16 small letters and digits")
        self.id = lab_id
        self.layout = layout or Layout()
        self.sampling = sampling
        self.seed = seed
        self.prompt = prompt
        self.dir = run_dir(lab_id)
        self.dead = set()
        self.drained = set()
        self.routes = {}
        self.children = []
        self.exporters = {}
        self.pusher = None
        self.taps = {switch: switchrules.taps(points, self.layout, switch)
                     for switch in self.layout.switches}

    def __enter__(self):
        try:
            self.up()
        except LabBusy:
            raise
        except BaseException:
            self.down()
            raise
        return self

    def __exit__(self, *_):
        self.down()

    def netns(self, node):
        return f"ftlab-{self.id}-{node}"

    def within(self, node, *args):
        """The command line that runs args in a node."""
        return ["nsenter", f"--net={NETNS / self.netns(node)}", *args]

    def run(self, node, *args, text=None, check=True):
        return run(*self.within(node, *args), text=text, check=check)

    def spawn(self, node, name, *args, stdout=None, env=None):
        """Starts a program in a node, in a session of its own so that Ctrl-C reaches only us. Its
        standard error, and its output unless stdout is given, go to NAME.log in the run folder."""
        with open(self.dir / f"{name}.log", "ab") as log:
            child = subprocess.Popen(
                self.within(node, *map(str, args)), stdin=subprocess.DEVNULL,
                stdout=stdout or log, stderr=log, start_new_session=True, env=env,
                text=True if stdout else None)
        self.children.append(child)
        return child

    def up(self):
        if os.geteuid():
            raise LabError("the lab needs root: it makes network namespaces")
        if namespaces(self.id):
            raise LabBusy(f"lab {self.id} is up already, or was left behind: take it down first")
        shutil.rmtree(self.dir, ignore_errors=True)
        self.dir.mkdir(mode=0o755)
        self._make_nodes()
        self._make_links()
        self._configure()
        for switch in self.layout.switches:
            self.run(switch, "nft", "-f", "-",
                     text=switchrules.ruleset(self.sampling, self.taps[switch], self.prompt))
        if self.sampling:
            self._start_exporters()
            if self.prompt:
                self.pusher = Pusher(self)
        (self.dir / "topology.yaml").write_text(self.layout.topology(self.id))

    def down(self):
        # A second Ctrl-C must not stop half way.
        before = {number: signal.signal(number, signal.SIG_IGN) for number in ENDINGS}
        if self.pusher:
            self.pusher.close()
        destroy(self.id)
        for child in self.children:
            child.wait()
        self.children.clear()
        for number, handler in before.items():
            signal.signal(number, handler)

    def _make_nodes(self):
        ip_batch(f"netns add {self.netns(node)}" for node in self.layout.nodes)
        # Before there are links, so that each link starts with them.
        plain = [
            "ipv6/conf/default/accept_dad=0", "ipv6/conf/all/accept_dad=0",
            "ipv6/conf/default/dad_transmits=0", "ipv6/conf/default/router_solicitations=0",
            "ipv6/conf/default/accept_ra=0", "ipv6/auto_flowlabels=0",
        ]
        router = plain + [
            "ipv4/conf/all/rp_filter=0", "ipv4/conf/default/rp_filter=0",
            "ipv4/ip_forward=1", "ipv6/conf/all/forwarding=1",
            "ipv6/conf/default/keep_addr_on_down=1",
            "ipv4/fib_multipath_hash_policy=1", "ipv6/fib_multipath_hash_policy=1",
            "ipv4/conf/all/ignore_routes_with_linkdown=1",
            "ipv4/conf/default/ignore_routes_with_linkdown=1",
            "ipv6/conf/all/ignore_routes_with_linkdown=1",
            "ipv6/conf/default/ignore_routes_with_linkdown=1",
        ]
        for index, node in enumerate(self.layout.nodes):
            values = router if node in self.layout.switches else plain
            if node in self.layout.switches and self.seed is not None and HASH_SEED.exists():
                values = values + [f"ipv4/fib_multipath_hash_seed={self.seed + index + 1}"]
            script = "".join(
                "echo {1} > /proc/sys/net/{0}\n".format(*value.split("=")) for value in values)
            self.run(node, "sh", "-e", text=script)

    def _make_links(self):
        lines = [
            f"link add name {link.a.name} index {link.a.ifindex} netns {self.netns(link.a.node)} "
            f"type veth peer name {link.b.name} index {link.b.ifindex} "
            f"netns {self.netns(link.b.node)}"
            for link in self.layout.host_links + self.layout.fabric_links
        ]
        collector = self.netns(COLLECTOR)
        lines.append(f"link add name br0 netns {collector} type bridge")
        for index, node in enumerate(self.layout.boxes):
            lines.append(f"link add name mgmt0 index {MGMT_IFINDEX} netns {self.netns(node)} "
                         f"type veth peer name m{index} netns {collector}")
        ip_batch(lines)

    def _configure(self):
        lines = {node: ["link set lo up"] for node in self.layout.nodes}
        lines[COLLECTOR] += ["link set br0 up", f"addr add {COLLECTOR_IP}/16 dev br0"]
        for index, node in enumerate(self.layout.boxes):
            lines[COLLECTOR] += [f"link set m{index} master br0", f"link set m{index} up"]
            lines[node] += [f"addr add {self.layout.mgmt(node)}/16 dev mgmt0", "link set mgmt0 up"]
            if node in self.layout.switches:
                lines[node].append(f"addr add {self.layout.second_mgmt(node)}/16 dev mgmt0")
        for link in self.layout.host_links + self.layout.fabric_links:
            for end in (link.a, link.b):
                lines[end.node].append(f"link set {end.name} up")
        for node in self.layout.boxes:
            lines[node] += self.layout.addresses(node)
        for switch in self.layout.switches:
            self.routes[switch] = list(self.layout.routes(switch))
            rules, routes = self.layout.detour_rules(switch)
            lines[switch] += self.routes[switch] + routes
            for rule in rules:
                for family in ("-4", "-6"):
                    run("ip", family, "-n", self.netns(switch), *rule.split())
        for node, batch in lines.items():
            ip_batch(batch, self.netns(node))

    def _start_exporters(self):
        for switch in self.layout.switches:
            self._spawn_exporters(switch, self.layout.mgmt(switch))
        for switch in self.layout.switches:
            self._await_exporters(switch)

    def _exporter_config(self, switch, tap, agent):
        path = self.dir / f"uacctd-{switch}-{tap.sub_agent}.conf"
        # The frame length in a sample is that of the captured bytes, so snaplen covers the MTU.
        path.write_text(
            "daemonize: false\n"
            f"uacctd_group: {tap.group}\n"
            "uacctd_nl_size: 4194304\n"
            f"snaplen: {switchrules.SNAP_BYTES}\n"
            f"uacctd_ext_sampling_rate: {self.sampling}\n"
            "plugins: sfprobe[x]\n"
            "plugin_buffer_size: 2048\n"
            "plugin_pipe_size: 2048000\n"
            f"sfprobe_receiver[x]: {COLLECTOR_IP}:{SFLOW_PORT}\n"
            f"sfprobe_agentip[x]: {agent}\n"
            f"sfprobe_agentsubid[x]: {tap.sub_agent}\n"
            f"sfprobe_source_ip[x]: {self.layout.mgmt(switch)}\n"
            f"sfprobe_ifspeed[x]: {self.layout.speed_bps}\n")

    def _spawn_exporter(self, switch, tap):
        return self.spawn(switch, f"uacctd-{switch}-{tap.sub_agent}", "uacctd", "-f",
                          self.dir / f"uacctd-{switch}-{tap.sub_agent}.conf")

    def _spawn_exporters(self, switch, agent):
        for tap in self.taps[switch]:
            self._exporter_config(switch, tap, agent)
        self.exporters[switch] = [self._spawn_exporter(switch, tap) for tap in self.taps[switch]]

    def _await_exporters(self, switch):
        """Packets that come while uacctd asks for its group may end it ("Failed to set threshold"):
        then it is started again, as a service manager would."""
        def listening():
            for index, tap in enumerate(self.taps[switch]):
                if self.exporters[switch][index].poll() is not None:
                    self.exporters[switch][index] = self._spawn_exporter(switch, tap)
            return self._listening(switch) >= {tap.group for tap in self.taps[switch]}

        wait_until(listening, 90, f"uacctd of {switch}")

    def stop_exporter(self, switch):
        """Kills every exporter of a switch, with what waits in its buffers."""
        for process in self.exporters.pop(switch):
            os.killpg(process.pid, signal.SIGKILL)  # a session of its own: its plugin is a child
            process.wait()
        wait_until(lambda: not self._listening(switch), 90, f"the end of uacctd of {switch}")

    def start_exporter(self, switch, agent=None):
        """Starts them again, under another agent address if one is given."""
        self._spawn_exporters(switch, agent or self.layout.mgmt(switch))
        self._await_exporters(switch)

    def _listening(self, switch):
        """NFLOG groups that somebody listens to."""
        rows = self.run(switch, "cat", "/proc/net/netfilter/nfnetlink_log")
        return {int(row.split()[0]) for row in rows.splitlines() if row.strip()}

    def set_link(self, leaf, spine, up):
        """set_cable of the link between the leaf and the spine of these indices."""
        self.set_cable(*self.layout.between(self.layout.leaves[leaf], self.layout.spines[spine]),
                       up)

    def set_cable(self, link, up):
        """Takes a link down or up, and the routes with it on every switch, as a routing protocol
        would. The port that goes down is the upper switch's; the lower's loses its carrier."""
        (self.dead.discard if up else self.dead.add)(link)
        ip_batch([f"link set {link.b.name} {'up' if up else 'down'}"], self.netns(link.b.node))
        # The kernel forgets routes over a port that goes down.
        self._reroute(self.layout.switches if up else ())

    def set_routed(self, link, routed):
        """Takes a link out of every ECMP group, or in again; the link itself stays up."""
        (self.drained.discard if routed else self.drained.add)(link)
        self._reroute()

    def set_hash(self, switch, seed):
        """Another ECMP hash, so that flows over this switch move at random (Linux 6.11)."""
        self.run(switch, "sh", "-c", f"echo {seed} > {HASH_SEED}")

    def _reroute(self, also=()):
        batches = {}
        for switch in self.layout.switches:
            batch = list(self.layout.routes(switch, self.dead | self.drained))
            if batch and (batch != self.routes[switch] or switch in also):
                batches[self.netns(switch)] = self.routes[switch] = batch
        ip_batches(batches)
