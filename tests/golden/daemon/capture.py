#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes lab/ anew: the sFlow datagrams of a real fabric as its collector gets them, the fabric's
topology file, and the paths that the kernel chose. Needs root, pmacct's uacctd and tcpdump.

usage: capture.py BUILD    (the build folder, for the traffic generator)
Then renew lab/expected.ndjson with `make golden-update`."""
import json
import random
import shutil
import signal
import sys
from collections import defaultdict
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(HERE.parents[1] / "fabric"))
import sflow  # noqa: E402
from lab import truth  # noqa: E402
from lab.fabric import Fabric, LabError, end_tidily, wait_until  # noqa: E402
from lab.layout import COLLECTOR, COLLECTOR_IP, Layout  # noqa: E402
from lab.traffic import Load, Traffic, plan  # noqa: E402

FLOWS, ELEPHANTS = 24, 4
SECONDS = 12
SEED = 20
# Links are stated as 5 Mb/s, so that elephants need few packets and the capture stays small.
SPEED_BPS = 5_000_000
BIG = Load.of_rate(1024, 2_000_000)
SMALL = Load(256, 30)
# Without a socket the collector's ICMP refusals lose datagrams.
SINK = (f"import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); "
        f"s.bind(('{COLLECTOR_IP}', 6343))\nwhile True: s.recv(65535)")


def loads(paths, rng):
    """{Flow: Load}: two elephants share a leaf's uplink, the others are anywhere but leaf-local."""
    on_link = defaultdict(list)
    for flow, path in paths.items():
        if len(path) > 1:
            on_link[path[0][0], path[0][2]].append(flow)
    big = max(on_link.values(), key=len)[:2]
    rest = [flow for some in on_link.values() for flow in some if flow not in big]
    big += rng.sample(rest, ELEPHANTS - len(big))
    return {flow: BIG if flow in big else SMALL for flow in paths}


def readable(capture):
    """The bytes of a capture that is still being written, without a packet that is not whole."""
    data, end = capture.read_bytes(), 24
    while end + 16 <= len(data) and end + 16 + int.from_bytes(data[end + 8:end + 12],
                                                              sys.byteorder) <= len(data):
        end += 16 + int.from_bytes(data[end + 8:end + 12], sys.byteorder)
    return data[:end]


def spans_s(capture):
    """Seconds from its first datagram to its last."""
    times = [at_ms for at_ms, _ in sflow.datagrams(readable(capture))]
    return (times[-1] - times[0]) / 1000 if times else 0


def captured(capture):
    """Its samples of RoCEv2 packets."""
    return sum(sample.dport == sflow.BTH_DPORT for sample in sflow.read(readable(capture))[1])


def record(fabric, rocegen):
    """Drives the flows and captures. Returns their loads, and the paths of data flows and of
    acknowledgements."""
    rng = random.Random(SEED)
    data = truth.kernel_paths(fabric, plan(fabric.layout, FLOWS, 0, rng))
    acks = truth.kernel_paths(fabric, [flow.reverse for flow in data])
    flows = loads(data, rng)
    capture = fabric.dir / "sflow.pcap"
    fabric.spawn(COLLECTOR, "sink", sys.executable, "-c", SINK)
    tcpdump = fabric.spawn(COLLECTOR, "tcpdump", "tcpdump", "-Z", "root", "-U", "-n", "-i", "br0",
                           "-w", capture, "udp", "dst", "port", "6343")
    wait_until(lambda: capture.exists() and capture.stat().st_size >= 24, 5, "tcpdump")
    traffic = Traffic(fabric, rocegen)
    traffic.start(flows)
    wait_until(lambda: spans_s(capture) >= SECONDS, 10 * SECONDS, f"a capture of {SECONDS} s")
    traffic.stop()
    wait_until(lambda: captured(capture) >= sum(truth.Counters(fabric).samples().values()), 30,
               "every packet that was sampled in the capture")
    tcpdump.send_signal(signal.SIGTERM)
    tcpdump.wait()
    wrong = truth.Counters(fabric).disagreements({**data, **acks})
    if wrong:
        raise LabError("\n".join(wrong))
    return flows, data, acks, capture


def write_truth(path, flows, data, acks):
    rows = [{"src": flow.src, "dst": flow.dst, "sport": flow.sport, "role": role,
             "elephant": flows.get(flow) is BIG, "path": path}
            for role, paths in (("data", data), ("ack", acks)) for flow, path in paths.items()]
    path.write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")


def main():
    build = Path(sys.argv[1]).resolve()
    end_tidily()
    lab = HERE / "lab"
    lab.mkdir(exist_ok=True)
    with Fabric("capture", Layout(speed_bps=SPEED_BPS), sampling=50, seed=SEED,
                prompt=True) as fabric:
        flows, data, acks, capture = record(fabric, build / "tests/fabric/rocegen")
        shutil.copyfile(capture, lab / "sflow.pcap")
        shutil.copyfile(fabric.dir / "topology.yaml", lab / "topology.yaml")
        write_truth(lab / "truth.json", flows, data, acks)


if __name__ == "__main__":
    try:
        main()
    except (LabError, ValueError) as error:
        sys.exit(f"capture: {error}")
