# SPDX-License-Identifier: Apache-2.0
"""What the tables of the poller and of the agent take of memory at their caps had been worked out, and
measured of neither: a cost too low in the budget would have had the kernel kill them at their unit's
limit.

Here they are filled to their caps while no daemon takes what they report, and held against the budget
that --check prints: table by table, and in all."""
import os
import socket
import struct
import time
from concurrent.futures import ThreadPoolExecutor

import honest
import kit
import rig
from honest import sflow
from kit import budget, check, equal, resident, until
from segment import Layout

MIB = 1 << 20
POLLER_MEMORY, AGENT_MEMORY = 160 * MIB, 192 * MIB
AWAY = "127.0.0.1:9"  # where nobody takes records
EXPORTERS = 200
MADE_UP = 8000
SAMPLES = 20  # of a datagram
NUMBER_AT = 16  # bytes, of a datagram's number in it
LOOK_S = 0.005
FOLD_S = 60
WAITING = 8   # jobs that wait for the agent to look at them
READ_BYTES = 8 * MIB  # datagrams read at a time, and an answer
BURST = 200   # datagrams, for which the socket has room
FRAMES = 2000
TRANSFERS = 60  # of an operation
RINGS = 8       # of a job that are filled


def metric(program, name):
    return program.metric(f"{honest.PREFIX[program.name]}_{name}")


def agent_of(i):
    return f"172.20.{i >> 8}.{i & 255}"


class Filler:
    """Datagrams of many exporters; `at` counts over what was sent."""

    def __init__(self, poller):
        self.poller, self.sequence, self.sent = poller, [0] * EXPORTERS, 0
        self.record = sflow.roce("10.0.0.1", "10.9.9.9", 50000)
        self.made = []  # datagrams of counters
        self.source_at = self.record.index(socket.inet_aton("10.0.0.1"))

    def send(self, exporter, samples):
        self.number(exporter, bytearray(sflow.datagram(agent_of(exporter), 0, 1000, samples)))

    def number(self, exporter, made):
        self.sequence[exporter] += 1
        struct.pack_into(">I", made, NUMBER_AT, self.sequence[exporter])
        self.poller.send(made)
        self.sent += 1
        if self.sent % BURST == 0:
            self.taken()

    def taken(self):
        until("the poller takes what was sent",
              lambda: metric(self.poller, "datagrams_received_total") >= self.sent, pause_s=LOOK_S)

    def flows(self, at, count):
        """Each of another flow, and of another data source as long as there are such."""
        for first in range(at, at + count, SAMPLES):
            samples = []
            for i in range(first, first + SAMPLES):
                packet = bytearray(self.record)
                packet[self.source_at:self.source_at + 4] = struct.pack(">I", 0x0A000000 + i)
                port = first // SAMPLES // EXPORTERS * SAMPLES + i % SAMPLES + 1
                samples.append(sflow.flow_sample(1, (0, port), port, 7, [bytes(packet)]))
            self.send(first // SAMPLES % EXPORTERS, samples)
        self.taken()
        return at + count

    def counters(self, count):
        """The same of each port each time, but for the numbers of the datagrams: making them takes longer
        than the poller takes for them."""
        if not self.made:
            for first in range(0, count, SAMPLES):
                base = first // SAMPLES // EXPORTERS * SAMPLES + 1
                self.made.append(bytearray(sflow.datagram(agent_of(first // SAMPLES % EXPORTERS), 0, 1000, [
                    sflow.counter_sample(1, (0, base + n), [sflow.generic_counters(base + n, 1000, 2000)])
                    for n in range(SAMPLES)])))
        for i, made in enumerate(self.made):
            self.number(i % EXPORTERS, made)
        self.taken()


def new_poller(folder, interval):
    folder.mkdir()
    poller = rig.Poller(folder)
    poller.command = poller.command[:1]
    poller.config.write_text(
        poller.config.read_text().replace("fold_interval: 200ms",
                                          f"fold_interval: {interval}\nfold_longest: {interval}")
        + f"memory_max: {POLLER_MEMORY}\nexporters_max: {EXPORTERS}\ndaemon:\n  endpoint: {AWAY}\n")
    return poller


def within(program, limit):
    peak = kit.peak_bytes(program)
    check(f"{program.name} took {peak / MIB:.0f} MiB of {limit / MIB:.0f}", peak <= limit)


def fill_sums(folder):
    """Within one fold. They end with the minute: where one ends meanwhile, its records wait as well, and
    it is done once more."""
    while not sums_filled(folder):
        folder = folder.with_name(f"{folder.name}-again")


def sums_filled(folder):
    poller = new_poller(folder, "60s")
    caps = budget(poller)
    check("what it costs is known", {"sums of samples", "data sources"} <= set(caps), caps)
    poller.start()
    try:
        filler, begun = Filler(poller), int(time.time()) // FOLD_S
        before, at = resident(poller), 0
        (sums, sum_bytes), (sources, source_bytes) = caps["sums of samples"], caps["data sources"]

        def full():
            nonlocal at
            at = filler.flows(at, 20 * BURST * SAMPLES)
            return (metric(poller, "samples_dropped_total") > 0
                    and metric(poller, "data_sources") >= sources)

        until("sums and data sources are at their caps", full, 600)
        grown = resident(poller) - before
        if int(time.time()) // FOLD_S != begun:
            return False
        most = sums * sum_bytes + sources * source_bytes + 1.1 * metric(poller, "queue_bytes")
        check(f"sums and data sources: {grown / MIB:.0f} MiB of {most / MIB:.0f}",
              most / 2 < grown <= most + READ_BYTES, grown)
        within(poller, POLLER_MEMORY)
        poller.stop()
        return True
    finally:
        poller.kill()


def fill_queue(folder):
    poller = new_poller(folder, "200ms")
    ports, port_bytes = budget(poller)["ports with counters"]
    poller.start()
    try:
        filler = Filler(poller)
        before, queue = resident(poller), metric(poller, "queue_limit_bytes")

        def waiting():
            filler.counters(int(ports * 1.05))
            return metric(poller, "queue_bytes") > 0.9 * queue

        until("records for the daemon are at their cap", waiting, 600)
        grown, most = resident(poller) - before, 1.1 * queue + ports * port_bytes
        check(f"ports and records: {grown / MIB:.0f} MiB of {most / MIB:.0f}",
              queue / 2 < grown <= most + READ_BYTES, grown)
        within(poller, POLLER_MEMORY)
        poller.stop()
    finally:
        poller.kill()


def make_up_exporters(folder):
    """As many as the table takes: each had series of its own, and the page was too long to be answered
    from then on."""
    poller = new_poller(folder, "200ms")
    poller.config.write_text(poller.config.read_text().replace(
        f"exporters_max: {EXPORTERS}\n", f"exporters_max: {MADE_UP}\n"))
    poller.start()
    try:
        for i in range(MADE_UP):
            poller.send(sflow.datagram(f"100.{64 + (i >> 16)}.{i >> 8 & 255}.{i & 255}", 1, 1000, []))
            if i % BURST == 0:
                until("the poller takes what was sent",
                      lambda n=i: metric(poller, "datagrams_received_total") > n)
        until("all are known", lambda: metric(poller, "exporters") == MADE_UP)
        equal("without series of their own", metric(poller, "exporters_unlisted"), MADE_UP - 2048)
        equal("with them", poller.get("/metrics").count("_exporter_datagrams_total{"), 2048)
        poller.stop()
    finally:
        poller.kill()


def captured(wire, at):
    """Packets between ever new addresses, as the interface has them."""
    for i in range(at, at + FRAMES):
        packet = sflow.udp("10.0.1.2", "10.9.9.9", 40000 + i % 20000, sflow.bth(10, 7) + bytes(64))
        packet = packet[:16] + struct.pack(">I", 0x0A800000 + i) + packet[20:]
        wire.send(sflow.ethernet(packet))
    return at + FRAMES


def jobs(agent, path, layout, count):
    """Connected, with rings full of operations that have many peers and do not end."""
    for n in range(count):
        records = []
        for ring in range(RINGS):
            some = []
            while len(some) + 1 + TRANSFERS <= layout.slots:
                op = ring * layout.slots + len(some) + 1
                some.append(layout.operation(op))
                some += [layout.transfer(op, n, n % 4) for n in range(TRANSFERS)]
            records.append(some)
        fd = layout.memory(records)
        s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        s.connect(os.fspath(path))
        socket.send_fds(s, [layout.hello()], [fd])
        os.close(fd)
        yield s
        if n % WAITING == WAITING - 1 or n == count - 1:
            until("the jobs are followed", lambda n=n: metric(agent, "nccl_jobs") > n, pause_s=LOOK_S)


def fill_agent(folder):
    folder.mkdir()
    path, layout = folder / "nccl.sock", Layout()
    agent = rig.Agent(folder, rig.Daemon(folder, kit.TOPOLOGY))
    text = agent.config.read_text()
    agent.config.write_text(text[:text.index("daemon:")] + f"memory_max: {AGENT_MEMORY}\n"
                            f"daemon:\n  endpoint: {AWAY}\nrdma: {{enabled: false}}\n"
                            f"nccl: {{socket: {path}}}\n")
    caps = budget(agent)
    check("what it costs is known", {"captured flows", "jobs", "peers in operations"} <= set(caps),
          caps)
    agent.start()
    wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    wire.bind(("lo", 0))
    connected = []
    try:
        until("the agent listens to jobs", path.exists)
        before, at = resident(agent), 0
        most_jobs, job_bytes = caps["jobs"]
        _, peer_bytes = caps["peers in operations"]
        most_peers = caps["peers in operations"][0]
        # A quarter of the places is kept for other users.
        connected += jobs(agent, path, layout, most_jobs * 3 // 4)
        most_flows, flow_bytes = caps["captured flows"]

        def full():
            nonlocal at
            at = captured(wire, at)
            return metric(agent, "flows") >= most_flows

        until("flows are at their cap", full, 600)
        until("records for the daemon are at their cap",
              lambda: metric(agent, "queue_bytes") > 0.9 * metric(agent, "queue_limit_bytes"), 600)
        grown = resident(agent) - before
        most = (most_flows * flow_bytes + most_jobs * job_bytes + most_peers * peer_bytes
                + 1.1 * metric(agent, "queue_limit_bytes"))
        check(f"jobs, flows and records: {grown / MIB:.0f} MiB of {most / MIB:.0f}", grown <= most)
        within(agent, AGENT_MEMORY)
        agent.stop()
    finally:
        agent.kill()
        for s in connected:
            s.close()


def run(folder):
    honest.own_network()
    with ThreadPoolExecutor() as pool:
        for part in [pool.submit(fill, folder / name) for name, fill in (
                ("agent", fill_agent), ("sums", fill_sums), ("queue", fill_queue), ("made-up", make_up_exporters))]:
            part.result()
