# SPDX-License-Identifier: Apache-2.0
"""An agent that has what net-snmp's has not, served by snmpsimd: EtherLike-MIB's pause frames,
IEEE8021-PFC-MIB and IEEE8023-LAG-MIB. Beside it one without these tables, and one whose ports call
themselves by their ifIndex in LLDP, as Junos does."""
import json
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import speed  # noqa: E402
from ports import free_port  # noqa: E402

AGENTS = {"with": "127.83.9.1", "without": "127.83.9.2", "numbered": "127.83.9.3"}
VARIATIONS = "/usr/share/snmpsim/variation"
PORTS = 3
POLLS = 4
PAUSE = "1.3.6.1.2.1.10.7.10.1"
PFC = "1.3.111.2.802.1.1.21.1.1.1"
# Port 1 counts in 64 bits too, port 2 in 32 alone, port 3 nothing of the kind.
PAUSE_ROWS = {f"{PAUSE}.3.1": (65, 705032704), f"{PAUSE}.4.1": (65, 12),
              f"{PAUSE}.5.1": (70, 5000000000), f"{PAUSE}.6.1": (70, 12),
              f"{PAUSE}.3.2": (65, 21), f"{PAUSE}.4.2": (65, 22),
              f"{PFC}.2.1": (65, 31), f"{PFC}.3.1": (65, 32)}
# Ports 1 and 2 are members of aggregate 3 (dot3adAggPortAttachedAggID), which is in none.
LAG = "1.2.840.10006.300.43.1.2.1.1.13"
LAG_ROWS = {f"{LAG}.1": (2, 3), f"{LAG}.2": (2, 3), f"{LAG}.3": (2, 0)}
MEMBERS = {1: 3, 2: 3}
# Port 513 of the agent "numbered", and its neighbour: lldpLocPortTable, lldpRemTable and the latter's
# addresses under a time mark of their own.
NUMBERED, LLDP = 513, "1.0.8802.1.1.2.1"
NUMBERED_ROWS = {f"{LLDP}.3.7.1.2.{NUMBERED}": (2, 7), f"{LLDP}.3.7.1.3.{NUMBERED}": (4, NUMBERED),
                 f"{LLDP}.4.1.1.4.0.{NUMBERED}.1": (2, 4),
                 f"{LLDP}.4.1.1.5.0.{NUMBERED}.1": (4, "02 00 00 00 00 0A"),
                 f"{LLDP}.4.1.1.6.0.{NUMBERED}.1": (2, 5),
                 f"{LLDP}.4.1.1.7.0.{NUMBERED}.1": (4, "Ethernet1/1"),
                 f"{LLDP}.4.2.1.3.99.{NUMBERED}.1.1.4.192.0.2.9": (2, 2),
                 f"1.3.6.1.2.1.2.2.1.3.{NUMBERED}": (2, 6), f"1.3.6.1.2.1.2.2.1.8.{NUMBERED}": (2, 1),
                 f"1.3.6.1.2.1.31.1.1.1.1.{NUMBERED}": (4, "et-0/0/0")}
ROWS = {"with": PAUSE_ROWS | LAG_ROWS, "without": {}, "numbered": NUMBERED_ROWS}
NEIGHBOR = {"ifindex": NUMBERED, "chassis_kind": "mac", "chassis_id": "02:00:00:00:00:0a",
            "port_kind": "interface_name", "port_id": "Ethernet1/1", "addresses": ["192.0.2.9"]}
WANTED = {1: {"in_pause": 5000000000, "out_pause": 12, "in_pfc": 32, "out_pfc": 31},
          2: {"in_pause": 21, "out_pause": 22}, 3: {}}


def write_agent(folder, rows):
    lines = ["1.3.6.1.2.1.1.3.0|67:numeric|rate=100,initial=100", "1.3.6.1.2.1.1.5.0|4|simulated"]
    for p in range(1, PORTS + 1):
        lines += [f"1.3.6.1.2.1.2.2.1.8.{p}|2|1", f"1.3.6.1.2.1.31.1.1.1.1.{p}|4|swp{p}",
                  f"1.3.6.1.2.1.31.1.1.1.15.{p}|66|400000"]
        lines += [f"1.3.6.1.2.1.31.1.1.1.{column}.{p}|70:numeric|rate=1000000,initial=1000,"
                  "cumulative=1,wrap=1" for column in (6, 10)]
    lines += [f"{oid}|{kind}|{value}" for oid, (kind, value) in rows.items()]
    lines.sort(key=lambda line: [int(x) for x in line.split("|")[0].split(".")])
    folder.mkdir(parents=True)
    (folder / "public.snmprec").write_text("\n".join(lines) + "\n")


def start_agents(folder, port):
    cache = folder / "cache"
    cache.mkdir()
    command = ["snmpsimd", "--process-user=nobody", "--process-group=nogroup",
               "--logging-method=null", f"--cache-dir={cache}",
               f"--variation-modules-dir={VARIATIONS}"]
    for i, (name, address) in enumerate(AGENTS.items()):
        write_agent(folder / name, ROWS[name])
        command += [f"--v3-engine-id=80004fb80500000{i}", f"--data-dir={folder / name}",
                    f"--agent-udpv4-endpoint={address}:{port}"]
    for path in (folder, cache):
        path.chmod(0o777)
    return subprocess.Popen(command, stdout=subprocess.DEVNULL,
                            stderr=(folder / "snmpsimd.log").open("w"))


def start_poller(folder, program, port):
    switches = folder / "switches.yaml"
    switches.write_text("credentials: {sim: {version: 2c, community: public}}\nswitches:\n" + "".join(
        f"  - {{address: {a}, port: {port}}}\n" for a in AGENTS.values()))
    switches.chmod(0o600)
    config = folder / "switchpoll.yaml"
    config.write_text(f"http: off\nlisten: 127.83.9.9:{port}\nsnmp:\n"
                      f"  switches: {switches}\n  interval: 1s\n  timeout: {min(speed.limit(5), 60):.0f}s\n")
    return subprocess.Popen([program, "-c", config, "--output", folder / "records.ndjson"],
                            stderr=(folder / "switchpoll.log").open("w"))


def read_counters(folder):
    """{agent: {ifindex: [record, ...]}}, complete lines only."""
    found = {}
    file = folder / "records.ndjson"
    for line in file.read_text().splitlines(keepends=True) if file.exists() else ():
        if line.endswith("\n") and '"fabrictrace.counters.v1"' in line:
            record = json.loads(line)
            found.setdefault(record["agent"], {}).setdefault(record["ifindex"], []).append(record)
    return found


def last_reports(folder):
    last = {}
    for line in (folder / "records.ndjson").read_text().splitlines(keepends=True):
        if line.endswith("\n") and '"fabrictrace.switch_report.v1"' in line:
            record = json.loads(line)
            last[record["agent"]] = record
    return {name: last.get(address, {}) for name, address in AGENTS.items()}


def members_wrong(reports):
    """The last report of each agent, against the aggregates that its ports are in."""
    wrong = []
    for name, report in reports.items():
        ports = report.get("ports", ())
        have = {p["ifindex"]: p["lag_ifindex"] for p in ports if "lag_ifindex" in p}
        if len(ports) != PORTS + (name == "numbered") or have != (MEMBERS if name == "with" else {}):
            wrong.append(f"{name}: {len(ports)} ports, of which members of aggregates: {have}")
    return wrong


def neighbors_wrong(reports):
    return [f"{name}: neighbours are {report.get('neighbors')}" for name, report in reports.items()
            if report.get("neighbors", []) != ([NEIGHBOR] if name == "numbered" else [])]


def watch(folder):
    deadline = speed.Deadline(90)
    while not deadline.passed():
        found = read_counters(folder)
        if all(len(found.get(a, {}).get(p, ())) >= POLLS
               for a in AGENTS.values() for p in range(1, PORTS + 1)):
            return found
        time.sleep(0.2)
    return read_counters(folder)


def wrong_of(found):
    wrong = []
    for name, address in AGENTS.items():
        for port in range(1, PORTS + 1):
            rows = found.get(address, {}).get(port, [])
            want = WANTED[port] if name == "with" else {}
            if len(rows) < POLLS:
                wrong.append(f"{name}, port {port}: {len(rows)} polls")
            for row in rows:
                have = {k: v for k, v in row.items() if k.endswith(("_pause", "_pfc"))}
                if have != want:
                    wrong.append(f"{name}, port {port}: {have}, not {want}")
    return wrong


def end(process):
    if process:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(timeout=speed.limit(90))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def check_tables(program, tally):
    folder = Path(tempfile.mkdtemp(prefix="ft-snmpsim-"))
    agents = poller = None
    try:
        port = free_port(socket.SOCK_DGRAM, AGENTS["with"])
        agents = start_agents(folder, port)
        poller = start_poller(folder, program, port)
        wrong = wrong_of(watch(folder))
        if wrong:
            wrong += [(folder / f"{name}.log").read_text()[-400:]
                      for name in ("snmpsimd", "switchpoll")]
        tally.check("PAUSE and PFC frames are read from an agent that has them, "
                    "and absent where it has not", wrong)
        reports = last_reports(folder)
        tally.check("members of aggregates are read from an agent that has IEEE8023-LAG-MIB",
                    members_wrong(reports))
        tally.check("the neighbour of a port that calls itself by its ifIndex is read",
                    neighbors_wrong(reports))
    finally:
        end(poller)
        end(agents)
        shutil.rmtree(folder)
