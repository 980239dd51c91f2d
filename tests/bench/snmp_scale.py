#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How fast the SNMP poller is: N real snmpd with 64 ports each, polled by fabrictrace-switchpoll on
one core of its own where there is more than one. Prints the time of a whole poll of all, varbinds a
second, CPU seconds and peak memory, and what 1,000 switches would take by that. Figures, not a test.
"""
import argparse
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PORTS = 64
ROUNDS = 5
INTERVAL_S = 10
AUTH = "authentication secret"
PRIV = "privacy secret"
MODULES = ("ifTable,ifXTable,system_mib,sysORTable,snmpv3,usmUser,vacm_vars,vacm_conf,usmConf,"
           "snmpEngine,ip")
ENTIRE = 1000
SETTLED_CPU_S = 0.1


def batch(lines, netns=None):
    done = subprocess.run(["ip", *(["-n", netns] if netns else []), "-batch", "-"],
                          input="\n".join(lines) + "\n", text=True, capture_output=True)
    if done.returncode:
        sys.exit(f"ip: {done.stderr.strip()}")


def address(i):
    return f"172.30.{i // 200 + 1}.{i % 200 + 1}"


class Farm:
    """Agents in namespaces of their own, on one bridge with the poller."""

    def __init__(self, count):
        self.count = count
        self.prefix = f"ftscale{os.getpid()}-"
        self.dir = Path(tempfile.mkdtemp(prefix="fabrictrace-scale-"))
        self.agents = []

    def name(self, i):
        return f"{self.prefix}{i}"

    def __enter__(self):
        try:
            self._up()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _up(self):
        hub = self.name("hub")
        batch([f"netns add {hub}"] + [f"netns add {self.name(i)}" for i in range(self.count)])
        links = [f"link add name br0 netns {hub} type bridge"]
        for i in range(self.count):
            links.append(f"link add name mgmt0 index 900 netns {self.name(i)} type veth "
                         f"peer name m{i} netns {hub}")
            links += [f"link add name Ethernet{p} index {1000 + p} netns {self.name(i)} type veth "
                      f"peer name Ethernet{p + 1} index {1001 + p} netns {self.name(i)}"
                      for p in range(1, PORTS, 2)]
        batch(links)
        batch(["link set lo up", "link set br0 up", "addr add 172.30.0.1/16 dev br0"]
              + [f"link set m{i} {what}" for i in range(self.count) for what in ("master br0", "up")],
              hub)
        for i in range(self.count):
            batch(["link set lo up", f"addr add {address(i)}/16 dev mgmt0", "link set mgmt0 up"]
                  + [f"link set Ethernet{p} up" for p in range(1, PORTS + 1)], self.name(i))
            self._agent(i)

    def _agent(self, i):
        config = self.dir / f"{i}.conf"
        config.write_text(f"agentaddress udp:{address(i)}:161\n"
                          f'createUser bench SHA-256 "{AUTH}" AES "{PRIV}"\nrouser bench priv\n'
                          'rocommunity "bench"\n')
        self.agents.append(subprocess.Popen(
            ["ip", "netns", "exec", self.name(i), "snmpd", "-f", "-C", "-c", config, "-Lf",
             "/dev/null", "-I", MODULES], stdin=subprocess.DEVNULL,
            env={**os.environ, "SNMP_PERSISTENT_DIR": str(self.dir / f"p{i}"), "MIBS": ""}))

    def settle(self):
        """Waits until the agents have nothing more to do."""
        busy = self.cpu_seconds()
        while True:
            time.sleep(1)
            before, busy = busy, self.cpu_seconds()
            if busy - before < SETTLED_CPU_S:
                return

    def cpu_seconds(self):
        return sum(cpu_of(agent.pid) for agent in self.agents)

    def __exit__(self, *_):
        for agent in self.agents:
            agent.kill()
        for agent in self.agents:
            agent.wait()
        for i in ["hub", *range(self.count)]:
            subprocess.run(["ip", "netns", "del", self.name(i)], capture_output=True)
        shutil.rmtree(self.dir, ignore_errors=True)


def cpu_of(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def figure(pid, name):
    match = re.search(rf"^{name}:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(), re.M)
    return int(match.group(1)) * 1024


class Poller:
    def __init__(self, farm, program, version):
        self.records = farm.dir / f"{version}.ndjson"
        switches = farm.dir / "switches.yaml"
        secrets = {"3": f'user: bench, auth: SHA-256, auth_secret: {AUTH}, priv: AES, '
                        f'priv_secret: {PRIV}', "2c": "community: bench"}
        switches.write_text(f"credentials:\n  all: {{version: {version}, {secrets[version]}}}\n"
                            "switches:\n"
                            + "".join(f"  - {address(i)}\n" for i in range(farm.count)))
        switches.chmod(0o600)
        config = farm.dir / "switchpoll.yaml"
        config.write_text(f"listen: 127.0.0.1:0\nhttp: off\nsnmp: {{switches: {switches}, "
                          f"interval: {INTERVAL_S}s, timeout: 5s, parallel: 1000}}\n")
        args = ["ip", "netns", "exec", farm.name("hub")]
        if os.cpu_count() > 1:
            args += ["taskset", "-c", "0"]
        self.count = farm.count
        self.log = open(farm.dir / "switchpoll.log", "w+")
        self.began = time.time()
        self.process = subprocess.Popen([*args, program, "-c", config, "--output", self.records],
                                        stderr=self.log)

    def reports(self):
        """[(time, agent, reachable, ports)]"""
        found = []
        with open(self.records) as file:
            for line in file:
                if line.endswith("\n") and '"fabrictrace.switch' in line[:40]:
                    r = json.loads(line)
                    found.append((r["time_ms"] / 1000, r["agent"], r["reachable"],
                                  len(r.get("ports", ()))))
        return found

    def await_rounds(self, rounds, seconds):
        """Reports once each switch has `rounds` of them."""
        end = time.monotonic() + seconds
        while True:
            self.alive()
            reports = self.reports() if self.records.exists() else []
            if len(reports) >= rounds * self.count:
                return reports
            if time.monotonic() > end:
                sys.exit(f"{len(reports)} reports of {rounds * self.count} in {seconds} s")
            time.sleep(0.05 if rounds == 1 else 0.5)

    def burst(self, seconds):
        """Polls all at once: a reload begins with a round of all. Returns when each was first
        reported, as seconds since then."""
        began = time.time()
        self.process.send_signal(signal.SIGHUP)
        end = time.monotonic() + seconds
        while True:
            self.alive()
            first = {}
            for at, agent, reachable, _ in self.reports():
                if at > began and reachable:
                    first.setdefault(agent, at - began)
            if len(first) == self.count:
                return sorted(first.values())
            if time.monotonic() > end:
                sys.exit(f"{len(first)} switches of {self.count} polled in {seconds} s")
            time.sleep(0.2)

    def alive(self):
        if self.process.poll() is not None:
            self.log.seek(0)
            sys.exit(f"switchpoll ended: {self.log.read()}")

    def stage(self):
        """The last accounting of SNMP requests."""
        stages = [s for line in open(self.records) if '"fabrictrace.loss' in line[:40]
                  for s in json.loads(line)["stages"] if s["name"] == "snmp"]
        return stages[-1] if stages else {}

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=30)


def measure(farm, program, version):
    poller = Poller(farm, program, version)
    first = poller.await_rounds(1, 120)
    bad = [agent for _, agent, reachable, ports in first if not reachable or ports < PORTS]
    # The first round reads names too; later ones do not, and are spread over the interval.
    before = cpu_of(poller.process.pid)
    poller.await_rounds(1 + ROUNDS, (ROUNDS + 2) * INTERVAL_S)
    cpu = (cpu_of(poller.process.pid) - before) / ROUNDS
    before, agents_before = cpu_of(poller.process.pid), farm.cpu_seconds()
    burst = poller.burst(120)
    cpu_burst, agents = cpu_of(poller.process.pid) - before, farm.cpu_seconds() - agents_before
    peak = figure(poller.process.pid, "VmHWM")
    poller.stop()
    stage = poller.stage()
    per_switch = cpu / farm.count
    print(f"SNMP v{version}, {farm.count} switches of {PORTS} ports, {len(bad)} not read whole, load "
          f"{os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print(f"  all at once, names too    {burst[-1]:8.2f} s wall (half of them after "
          f"{burst[len(burst) // 2]:.2f} s); CPU {cpu_burst:.2f} s ours, {agents:.2f} s the agents'")
    print(f"  a usual round of all      {cpu:8.2f} s CPU, {1000 * per_switch:.2f} ms a switch")
    print(f"  peak memory               {peak / 2**20:8.1f} MiB")
    print(f"  varbinds                  {varbinds(farm):8d} a round, "
          f"{varbinds(farm) / cpu:.0f} a second of CPU")
    print(f"  requests                  {stage.get('received', 0):8d}, drops "
          f"{stage.get('drops', [])}")
    print(f"  {ENTIRE} switches, by CPU time {ENTIRE * per_switch:8.2f} s a round on one core",
          flush=True)


def varbinds(farm):
    """Of IF-MIB's counters alone: 14 columns for 64 ports, lo and mgmt0."""
    return farm.count * 14 * (PORTS + 2)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build", help="build folder (default: build)")
    parser.add_argument("--switches", type=int, default=100)
    args = parser.parse_args()
    lacks = [tool for tool in ("ip", "snmpd", "taskset") if not shutil.which(tool)]
    if os.geteuid() or lacks:
        print(f"{', '.join(lacks)} is not installed: packaging/install-deps test" if lacks
              else "it needs root, for network namespaces")
        return 1
    program = Path(args.build).resolve() / "switchpoll/fabrictrace-switchpoll"
    if not program.exists():
        sys.exit(f"not built: {program}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # through `with`, which cleans up
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with Farm(args.switches) as farm:
        farm.settle()
        for version in ("2c", "3"):
            measure(farm, program, version)
    return 0


if __name__ == "__main__":
    sys.exit(main())
