# SPDX-License-Identifier: Apache-2.0
"""fabrictrace's own programs in a lab: switchpoll and the daemon in the collector, an agent in each
host, all talking over the management bridge."""
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import speed

from .fabric import COLLECTOR_IP, SFLOW_PORT, LabError, wait_until
from .layout import COLLECTOR

INGEST = f"{COLLECTOR_IP}:9477"
HTTP = "127.0.0.1:9478"
POLLER_METRICS = "http://127.0.0.1:9480/metrics"
POLL_S = 2
PROGRAMS = {
    "fabrictraced": "daemon",
    "fabrictrace-switchpoll": "switchpoll",
    "fabrictrace-agent": "agent",
    "fabrictrace": "cli",
    "rocegen": "tests/fabric",
}


def find_programs(build):
    """{name: path} under a build folder, or LabError that names all that is missing."""
    found = {}
    for name, folder in PROGRAMS.items():
        there = Path(build).resolve() / folder / name
        found[name] = there if there.exists() else Path(build).resolve() / name
    missing = [name for name, path in found.items() if not os.access(path, os.X_OK)]
    if missing:
        raise LabError(f"not built in {build}: {', '.join(missing)}")
    return found


class Pipeline:
    """Starts at once; stop() ends it in the order in which data flows. Without a topology file the
    poller asks the switches' agents, and the daemon finds the fabric by itself. Without hosts no
    agent runs there, and what flows carry is known from samples alone. poller, daemon and agent: lines
    for their files, the agent's with {host} for its name."""

    def __init__(self, fabric, programs, window_s, kafka=None, agents=None, hosts=True, poller="",
                 daemon="", agent=""):
        self.fabric = fabric
        self.programs = programs
        self.records = fabric.dir / "records.ndjson"
        self.processes = {}
        sinks = ["--sink", f"file:{self.records}"]
        config = (f"listen: {INGEST}\nlisten_plain: true\nhttp: {HTTP}\n"
                  f"window: {window_s}s\n{daemon}")
        if kafka:
            sinks += ["--sink", "kafka"]
            config += f"kafka:\n  brokers: {kafka}\n"
        topology = [] if agents else ["--topology", fabric.dir / "topology.yaml"]
        # Namespaces' links claim 10 Gb/s, of which none of the mice here is worth counting.
        config += 'topology: ""\nfloor: 0\n' if agents else ""
        self._start(COLLECTOR, "fabrictraced", *topology, *sinks, config=config)
        wait_until(lambda: self._listens(int(INGEST.rpartition(":")[2])), 90, "fabrictraced")
        snmp = ""
        if agents:
            switches = fabric.dir / "switches.yaml"
            agents.config(switches)
            snmp = f"snmp:\n  switches: {switches}\n  interval: {POLL_S}s\n"
        self._start(COLLECTOR, "fabrictrace-switchpoll",
                    config=f"listen: {COLLECTOR_IP}:{SFLOW_PORT}\ndaemon:\n  endpoint: {INGEST}\n{snmp}{poller}")
        for host in fabric.layout.hosts if hosts else ():
            self._start(host.name, "fabrictrace-agent",
                        config=f"host: {host.name}\ninterfaces: [eth0]\n"
                               f"daemon:\n  endpoint: {INGEST}\n" + agent.format(host=host.name))

    def _start(self, node, program, *args, config):
        path = self.fabric.dir / f"{program}-{node}.yaml"
        path.write_text(config)
        self.processes[program, node] = self.fabric.spawn(
            node, f"{program}-{node}", self.programs[program], "-c", path, *args)

    def _listens(self, port):
        self.check_alive()
        rows = self.fabric.run(COLLECTOR, "cat", "/proc/net/tcp", "/proc/net/tcp6").splitlines()
        return any(f":{port:04X} " in row and " 0A " in row for row in rows)

    def check_alive(self):
        """LabError with the end of its log when a program has ended by itself."""
        for (program, node), process in self.processes.items():
            if process.poll() is not None:
                log = (self.fabric.dir / f"{program}-{node}.log").read_text(errors="replace")
                raise LabError(f"{program} in {node} ended with {process.returncode}:\n"
                               + "\n".join(log.splitlines()[-10:]))

    def tool(self, *args):
        """What the fabrictrace tool prints."""
        done = subprocess.run(
            self.fabric.within(COLLECTOR, self.programs["fabrictrace"], *args),
            env={**os.environ, "FABRICTRACE_ENDPOINT": HTTP}, capture_output=True, text=True)
        # 1: of doctor and events, something stands.
        if done.returncode and not (done.returncode == 1 and args[0] in ("doctor", "events")):
            raise LabError(f"fabrictrace {' '.join(args)}: {done.stderr.strip()}")
        return done.stdout

    def pause_poller(self, seconds):
        """Its process stands still: what comes meanwhile must wait in the socket."""
        process = self.processes["fabrictrace-switchpoll", COLLECTOR]
        process.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        process.send_signal(signal.SIGCONT)

    def poller_dropped(self):
        """What the kernel dropped of what was for its sockets (proc_net_udp, last column)."""
        rows = (line.split() for file in ("udp", "udp6")
                for line in self.fabric.run(COLLECTOR, "cat", f"/proc/net/{file}").splitlines()[1:])
        return sum(int(row[-1]) for row in rows if row[1].endswith(f":{SFLOW_PORT:04X}"))

    def poller_metrics(self):
        """{metric with its labels: value} of switchpoll."""
        fetch = "import sys, urllib.request as r; print(r.urlopen(sys.argv[1]).read().decode())"
        text = self.fabric.run(COLLECTOR, sys.executable, "-c", fetch, POLLER_METRICS)
        rows = (line.rpartition(" ") for line in text.splitlines() if line and line[0] != "#")
        return {name: float(value) for name, _, value in rows}

    def stop(self):
        """SIGTERM to each, agents and switchpoll first. Returns texts: who did not end well."""
        wrong = []
        last = [key for key in self.processes if key[0] == "fabrictraced"]
        for keys in ([key for key in self.processes if key not in last], last):
            for key in keys:
                self.processes[key].send_signal(signal.SIGTERM)
            for program, node in keys:
                try:
                    code = self.processes[program, node].wait(timeout=speed.limit(90))
                except subprocess.TimeoutExpired:
                    code = f"no end within {speed.limit(90):.0f} s"
                if code:
                    wrong.append(f"{program} in {node}: exit {code}")
        self.processes = {}
        return wrong
