#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How many bytes the records of agents and pollers take in the ingest topics, kind by kind: what hosts
of 8 GPUs and switches of 64 ports send, put by the senders of our programs into a real broker, and its
messages counted by kcat. Bytes are those of keys and values before they are compressed.
usage: sizes.py (in the build folder)"""
import functools
import json
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "golden" / "daemon"), str(TESTS / "diagnosis"), str(TESTS / "kafka")]
import admin  # noqa: E402
import broker  # noqa: E402
from check_ingest import FEEDER  # noqa: E402
from daemon import Reports, on_fabric  # noqa: E402

PARTITIONS = 12
GPUS, PORTS, PEERS = 8, 64, 4
# As mlx5_core names them.
COUNTERS = """VL15_dropped excessive_buffer_overrun_errors link_downed link_error_recovery local_link_integrity_errors
    multicast_rcv_packets multicast_xmit_packets port_rcv_constraint_errors port_rcv_data port_rcv_errors
    port_rcv_packets port_rcv_remote_physical_errors port_rcv_switch_relay_errors port_xmit_constraint_errors
    port_xmit_data port_xmit_discards port_xmit_packets port_xmit_wait symbol_error unicast_rcv_packets
    unicast_xmit_packets duplicate_request implied_nak_seq_err local_ack_timeout_err np_cnp_sent
    np_ecn_marked_roce_packets out_of_buffer out_of_sequence packet_seq_err req_cqe_error req_cqe_flush_error
    req_remote_access_errors req_remote_invalid_request resp_cqe_error resp_cqe_flush_error
    resp_local_length_error resp_remote_access_errors rnr_nak_retry_err roce_adp_retrans roce_adp_retrans_to
    roce_slow_restart roce_slow_restart_cnps roce_slow_restart_trans rp_cnp_handled rp_cnp_ignored
    rx_atomic_requests rx_dct_connect rx_icrc_encapsulated rx_read_requests rx_write_requests""".split()


def queue_pairs(t, host):
    """All of each of a host's ports, as every refresh_interval: its flows to PEERS others, both ways."""
    for port in range(GPUS):
        yield {"schema": "fabrictrace.queue_pairs.v1", "time_ms": t, "interval_ms": 15000, "source": f"gpu{host:04}",
               "host": f"gpu{host:04}", "device": f"mlx5_{port}", "port": 1, "interface": f"eth{port}",
               "driver": "mlx5_core", "computed": True, "addresses": [f"10.{port}.{host // 250}.{host % 250 + 1}"],
               "listed": GPUS * PEERS, "queue_pairs": [
                   {"local": 4096 + 7 * i, "remote": 9000 + 11 * i, "state": "rts",
                    "src": f"10.{port}.{host // 250}.{host % 250 + 1}", "dst": f"10.{port}.9.{i + 1}",
                    "sport": 49152 + 1000 * i, "tuple_source": "computed", "pid": 40000 + port, "comm": "python3",
                    "job": "184467", "since_ms": t - 3600000, "begun": True} for i in range(PEERS)]}


def host_counters(t, host):
    for port in range(GPUS):
        yield {"schema": "fabrictrace.host.v1", "time_ms": t, "interval_ms": 10000, "source": f"gpu{host:04}",
               "host": f"gpu{host:04}", "device": f"mlx5_{port}", "port": 1, "interface": f"eth{port}",
               "driver": "mlx5_core", "active": True, "speed_bps": 400000000000, "counters": [
                   {"name": name, "total": 10 ** (i % 13), "growth": 10 ** (i % 13) // 3}
                   for i, name in enumerate(COUNTERS)],
               "cnp_sent": 0, "cnp_handled": 0, "ecn_marked": 12, "out_of_sequence": 0, "retransmissions": 0,
               "timeouts": 0}


def port_counters(t, switch):
    for port in range(PORTS):
        yield {"schema": "fabrictrace.counters.v1", "time_ms": t, "agent": f"192.0.2.{switch % 250 + 1}",
               "ifindex": 100 + port, "port": f"Ethernet{port}", "source": "snmp", "speed_bps": 400000000000,
               "oper_up": True, "in_bytes": 10 ** 15 + port, "out_bytes": 10 ** 15 + port, "in_packets": 10 ** 12,
               "out_packets": 10 ** 12, "in_discards": 0, "out_discards": 12, "in_errors": 0, "out_errors": 0,
               "in_pfc": 1000, "out_pfc": 1000}


def switch_reports(t, switch):
    yield {"schema": "fabrictrace.switch_report.v1", "time_ms": t, "interval_ms": 60000,
           "agent": f"192.0.2.{switch % 250 + 1}", "addresses": [f"192.0.2.{switch % 250 + 1}"],
           "name": f"leaf{switch}", "chassis_kind": "mac", "chassis_id": "02:00:00:00:10:01", "uptime_ms": 8640000000,
           "reachable": True, "has_lldp": True, "ports": [
               {"ifindex": 100 + p, "name": f"Ethernet{p}", "alias": f"to spine{p}", "mac": f"02:00:00:00:20:{p:02x}",
                "speed_bps": 400000000000, "oper_up": True, "lldp_id_kind": "interface_name", "lldp_id": f"Ethernet{p}"}
               for p in range(PORTS)],
           "neighbors": [{"ifindex": 100 + p, "chassis_kind": "mac", "chassis_id": f"02:00:00:00:30:{p:02x}",
                          "port_kind": "interface_name", "port_id": f"Ethernet{p}", "port_description": f"to leaf{switch}",
                          "name": f"spine{p}", "addresses": [f"198.51.100.{p + 1}"], "forwards": True}
                         for p in range(PORTS)]}


@functools.cache
def job_of_64():
    """What the hosts of 64 ranks report, traced by the plugin."""
    job = on_fabric(1, shape=(2, 8, 4))
    return [json.loads(line) for line in Reports(job, job.run()).lines()]


def of_a_job(schema):
    return [r for r in job_of_64() if r["schema"] == schema][:2000]


def many(make):
    """What 20 of them report."""
    return [r for i in range(20) for r in make(1700000000000, i)]


KINDS = {"flow": lambda: of_a_job("fabrictrace.flow.v1"),
         "communicator": lambda: of_a_job("fabrictrace.communicator.v1"),
         "collective": lambda: of_a_job("fabrictrace.collective.v1"),
         "queue_pairs": lambda: many(queue_pairs), "host": lambda: many(host_counters),
         "counters": lambda: many(port_counters), "switch_report": lambda: many(switch_reports)}


def sizes(endpoint, topic):
    out = subprocess.run(["kcat", "-C", "-q", "-e", "-b", endpoint, "-t", topic, "-o", "beginning", "-m", "60",
                          "-f", "%S %K\n"], capture_output=True, text=True, check=True).stdout
    return [sum(max(int(n), 0) for n in line.split()) for line in out.splitlines()]


def main():
    with tempfile.TemporaryDirectory() as folder:
        home, file = Path(folder) / "kafka", Path(folder) / "records.ndjson"
        broker.start(home)
        try:
            endpoint = broker.address(home)
            for kind, make in KINDS.items():
                records = make()
                file.write_text("".join(json.dumps(r) + "\n" for r in records))
                topics = [f"{kind}.fabrictrace.ingest.{t}" for t in ("flows", "state", "reports")]
                admin.create_topics(endpoint, topics, partitions=PARTITIONS)
                subprocess.run([FEEDER, file, "kafka", endpoint, f"{kind}.", str(PARTITIONS)], check=True,
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
                for topic in topics:
                    found = sizes(endpoint, topic)
                    if found:
                        print(f"{topic.split('.', 1)[1]:28} {kind:14} {len(records):6} records {len(found):6} messages "
                              f"{sum(found) / len(records):8.1f} bytes a record", flush=True)
        finally:
            broker.end(home, 15, 60)


if __name__ == "__main__":
    main()
