# SPDX-License-Identifier: Apache-2.0
"""A fabric on paper under a job (job.py): leaves, spines, a network card for each rank, and a queue pair
for each rank that another one sends to, whose path follows from chance. Gives the topology's text and what
agents and switches would report: who is who, flows, samples, steps of the network, counters of ports."""
import math
import random
import zlib

STEP_BYTES = 512 << 10
SPEED = 20.0  # bytes a nanosecond
HOST_MS = 10000  # of a report of a host's counters
MS = 1_000_000


def name_of(link):
    return f"{link[0]} {link[1]}"


class Fabric:
    def __init__(self, seed, job, leaves=4, spines=4, noise=0.08):
        self.random = random.Random(f"fabric{seed}")
        self.job, self.leaves, self.spines, self.noise = job, leaves, spines, noise
        self.seed = seed
        self.hosts = (job.ranks + job.gpus - 1) // job.gpus
        self.edges = {}  # (from, to): number of its queue pair
        self.wrong = {}  # link: {counter: growth a second}, from fault_ms on
        self.felt = {}   # host: {counter of fabrictrace.host.v1: growth a second}, likewise
        self.fault_ms = None

    # Who is where.
    def leaf(self, rank):
        return self.job.host(rank) % self.leaves

    def card(self, rank):
        """Its number among the ports of its leaf."""
        return self.job.host(rank) // self.leaves * self.job.gpus + rank % self.job.gpus + 1

    def address(self, rank):
        return f"10.{self.leaf(rank)}.{self.job.host(rank)}.{rank % self.job.gpus + 1}"

    def spine(self, source, target):
        return zlib.crc32(f"{self.seed} {source} {target}".encode()) % self.spines

    def path(self, source, target):
        """Ports that what source sends to target leaves switches by."""
        last = (f"leaf{self.leaf(target)}", f"Ethernet{self.card(target)}")
        if self.leaf(source) == self.leaf(target):
            return [last]
        spine = self.spine(source, target)
        return [(f"leaf{self.leaf(source)}", f"Ethernet{100 + spine}"),
                (f"spine{spine}", f"Ethernet{1 + self.leaf(target)}"), last]

    def topology(self):
        cards = max(self.card(r) for r in range(self.job.ranks))
        text = "fabric: paper\nspeed_bps: 400000000000\nswitches:\n"
        for leaf in range(self.leaves):
            ports = [*range(1, cards + 1), *range(100, 100 + self.spines)]
            text += f"  - {{name: leaf{leaf}, addresses: [192.0.2.{1 + leaf}], ports: [" + ", ".join(
                f"{{name: Ethernet{i}, ifindex: {i}}}" for i in ports) + "]}\n"
        for spine in range(self.spines):
            text += f"  - {{name: spine{spine}, addresses: [192.0.2.{101 + spine}], ports: [" + ", ".join(
                f"{{name: Ethernet{1 + i}, ifindex: {1 + i}}}" for i in range(self.leaves)) + "]}\n"
        text += "links:\n"
        for leaf in range(self.leaves):
            for spine in range(self.spines):
                text += (f"  - {{a: leaf{leaf}, a_port: Ethernet{100 + spine}, b: spine{spine}, "
                         f"b_port: Ethernet{1 + leaf}}}\n")
        text += "hosts:\n"
        for host in range(self.hosts):
            ranks = [r for r in range(self.job.ranks) if self.job.host(r) == host]
            text += f"  - name: gpu{host:02}\n    nics:\n" + "".join(
                f"      - {{addresses: [{self.address(r)}], attach: [{{switch: leaf{self.leaf(r)}, "
                f"port: Ethernet{self.card(r)}}}]}}\n" for r in ranks)
        return text

    # What is seen of it.
    def queue_pair(self, source, target):
        return self.edges.setdefault((source, target), 1000 + len(self.edges))

    def peers(self, row, members, rank):
        """What the transfers of an operation say, as its rank's agent puts it."""
        source = row["rank"]
        local = {"peer": (rank + 1) % len(members), "channel": 0, "sent_bytes": 1, "sent_messages": 1}
        if row["function"] == "Recv":
            return [{"peer": members.index(row["peer"]), "channel": 0, "received_bytes": row["bytes"],
                     "received_messages": max(1, row["bytes"] // STEP_BYTES)}]
        target = row["peer"] if row["function"] == "Send" else members[(rank + 1) % len(members)]
        if self.job.host(source) == self.job.host(target):
            return [local]
        share = 1 if row["function"] == "Send" else 2 * (len(members) - 1) / len(members)
        sent = max(1, round(row["bytes"] * share))
        messages = max(1, sent // STEP_BYTES)
        ns = (2000 + sent / messages / SPEED * self.job.slow_edge(source, target, row["step"])) * max(
            0.3, self.random.gauss(1, self.noise))
        # An agent gives the median to within a fifth.
        ns = round(1.2 ** round(math.log(ns) / math.log(1.2)))
        return [{"peer": members.index(target), "channel": 0, "sent_bytes": sent, "sent_messages": messages,
                 "step_min_ns": ns, "step_median_ns": ns, "step_max_ns": 2 * ns,
                 "local_qps": [self.queue_pair(source, target)]}]

    def reports(self, members, comm_id, start_ms, end_ms):
        """Records with their times: who is who, flows, samples and counters."""
        out = []
        for t in range(start_ms, end_ms, 30000):
            for name, ranks in members.items():
                for i, rank in enumerate(ranks):
                    out.append((t, {"schema": "fabrictrace.communicator.v1", "time_ms": t, "since_ms": start_ms,
                                    "host": f"gpu{self.job.host(rank):02}", "pid": 1000 + rank, "job": "88",
                                    "comm_id": comm_id(name), "rank": i, "ranks": len(ranks)}))
        for t in range(start_ms, end_ms, 1000):
            out += [(t + 900, r) for edge, number in self.edges.items() for r in self.seen(t, *edge, number)]
        for t in range(start_ms, end_ms, 5000):
            out += [(t, r) for r in self.counters(t, start_ms)]
        if self.felt:
            for t in range(start_ms + HOST_MS, end_ms, HOST_MS):
                out += [(t, self.host_counters(t, f"gpu{host:02}")) for host in range(self.hosts)]
        return out

    def host_counters(self, t, host):
        """What a host's card counted in the last interval; of one that feels nothing, zeros."""
        seconds = min(HOST_MS, max(0, t - self.fault_ms)) / 1000
        felt = self.felt.get(host, {})
        record = {"schema": "fabrictrace.host.v1", "time_ms": t, "interval_ms": HOST_MS, "source": host, "host": host,
                  "device": "mlx5_0", "port": 1, "driver": "mlx5_core", "active": True,
                  "counters": [{"name": name, "total": int(growth * max(0, t - self.fault_ms) / 1000),
                                "growth": int(growth * seconds)} for name, growth in felt.items() if "rnr" in name]}
        return {**record, **{name: int(felt.get(name, 0) * seconds) for name in (
            "retransmissions", "timeouts", "out_of_sequence", "cnp_sent", "cnp_handled")}}

    def seen(self, t, source, target, number):
        flow = {"src": self.address(source), "dst": self.address(target), "sport": 40000 + number,
                "dport": 4791, "proto": 17}
        yield {"schema": "fabrictrace.flow.v1", "time_ms": t + 900, "interval_ms": 1000, "first_seen_ms": t,
               "host": f"gpu{self.job.host(source):02}", "flow": flow, "direction": "tx",
               "tuple_source": "observed", "data_packets": 1000, "bytes": 4170000, "pid": 1000 + source,
               "job": "88", "qp": {"local": number, "remote": number}}
        first = self.path(source, target)[0]
        yield {"schema": "fabrictrace.observation.v1", "time_ms": t, "interval_ms": 1000, "first_ms": t + 100,
               "last_ms": t + 800, "agent": f"192.0.2.{1 + self.leaf(source)}", "flow": flow,
               "in_ifindex": self.card(source), "out_ifindex": int(first[1][8:]), "samples": 5,
               "packets": 10000, "bytes": 41700000, "data_samples": 5}

    def counters(self, t, start_ms):
        for link, growth in self.wrong.items():
            seconds = max(0, t - self.fault_ms) / 1000
            kind, number = link[0][:4], int(link[0][4:] if link[0][0] == "l" else link[0][5:])
            yield {"schema": "fabrictrace.counters.v1", "time_ms": t,
                   "agent": f"192.0.2.{1 + number if kind == 'leaf' else 101 + number}",
                   "ifindex": int(link[1][8:]), "port": link[1], "source": "snmp",
                   "speed_bps": 400000000000, "oper_up": True, "in_bytes": (t - start_ms) * 10000,
                   "out_bytes": (t - start_ms) * 10000 + int(growth.get("out_bytes", 0) * seconds),
                   "in_packets": (t - start_ms) * 10, "out_packets": (t - start_ms) * 10,
                   **{k: int(growth.get(k, 0) * seconds) for k in (
                       "in_discards", "out_discards", "in_errors", "out_errors", "in_pfc", "out_pfc")}}
