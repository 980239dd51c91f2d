# SPDX-License-Identifier: Apache-2.0
"""Real SNMP agents in the switches of a lab: net-snmp's snmpd with LLDP-MIB from lldpd over AgentX.

Each switch has a mount and a host name of its own, so that every lldpd finds its own /run. What runs
here is the lab's: the lab's end ends it.
"""
import os
import shutil
import signal
import subprocess

import speed

from .fabric import LabError, wait_until
from .layout import COLLECTOR

PORT = 161
USER = "fabrictrace"
AUTH = "authentication secret"
PRIV = "privacy secret"
# (user, authentication, privacy) that every agent knows, beside the community of COMMUNITY.
USERS = {
    "v3": (USER, "SHA-256", "AES"),
    "v3strong": ("strong", "SHA-512", "AES-256"),
    "v3sha": ("plain", "SHA", "AES"),
    "v3auth": ("authonly", "SHA-256", None),
}
COMMUNITY = "lab community"
WRITER = ("writer", "SHA", "AES")
TX_INTERVAL_S = 2

SNMPD = """agentaddress udp:{ip}:{port}
sysLocation lab
master agentx
agentXSocket {folder}/agentx
agentXPerms 0777 0777
agentXTimeout {timeout}
rocommunity "{community}"
createUser writer SHA "{auth}" AES "{priv}"
rwuser writer priv
"""
LLDPD = """configure system hostname {name}
configure lldp portidsubtype ifname
configure lldp tx-interval {interval}
configure lldp tx-hold {hold}
"""
# A mount namespace for /run and one for the host name, which snmpd answers as sysName.
PREPARE = """set -e
hostname {name}
mount -t tmpfs tmpfs /run
mkdir -p /run/lldpd
chown _lldpd:_lldpd /run/lldpd 2>/dev/null || true
exec "$@"
"""
CACHE_TIMEOUT = ".1.3.6.1.4.1.8072.1.5.3.1.2.1.3.6.1.2.1.2.2"
FROZEN_S = 3600
TOOLS = ("snmpd", "lldpd", "snmpset", "snmpget")


def write_agent(folder, layout, switch, runs_in=None, users=tuple(USERS), hold=None):
    """Writes the files of a switch's snmpd and lldpd, which find each other in runs_in (default: the
    same folder). hold: for how many intervals lldpd keeps what a neighbor told."""
    lines = SNMPD.format(ip=layout.mgmt(switch), port=PORT, folder=runs_in or folder,
                         community=COMMUNITY, auth=AUTH, priv=PRIV, timeout=round(speed.limit(2)))
    for user, auth, priv in (USERS[name] for name in users):
        lines += f'createUser {user} {auth} "{AUTH}"' + (f' {priv} "{PRIV}"' if priv else "")
        lines += f"\nrouser {user} {'priv' if priv else 'auth'}\n"
    (folder / "snmpd.conf").write_text(lines)
    # A slow machine skips some intervals.
    (folder / "lldpd.conf").write_text(LLDPD.format(
        name=switch, interval=TX_INTERVAL_S, hold=hold or round(speed.limit(4))))


def write_switches(path, layout, credentials="v3", also=()):
    """Writes the poller's file of switches, all with these credentials (or a dict by switch), and of
    further addresses; a secret file each beside it."""
    lines = ["credentials:"]
    for name, (user, auth, priv) in USERS.items():
        lines += [f"  {name}:", "    version: 3", f"    user: {user}", f"    auth: {auth}",
                  "    auth_secret_file: snmp.auth"]
        if priv:
            lines += [f"    priv: {priv}", "    priv_secret_file: snmp.priv"]
    lines += ["  wrong:", "    version: 3", f"    user: {USER}", "    auth: SHA-256",
              "    auth_secret_file: snmp.wrong", "    priv: AES",
              "    priv_secret_file: snmp.priv", "  v2c:", "    version: 2c",
              "    community_file: snmp.community", "switches:"]
    for switch in layout.switches:
        mine = credentials if isinstance(credentials, str) else credentials[switch]
        lines.append(f"  - {{address: {layout.mgmt(switch)}, credentials: {mine}}}")
    lines += [f"  - {{address: {address}, credentials: v3}}" for address in also]
    path.write_text("\n".join(lines) + "\n")
    for name, secret in (("auth", AUTH), ("priv", PRIV), ("wrong", "some other secret"),
                         ("community", COMMUNITY)):
        file = path.parent / f"snmp.{name}"
        file.write_text(secret + "\n")
        file.chmod(0o600)


class Agents:
    """Starts an snmpd and an lldpd in each switch at once."""

    def __init__(self, fabric):
        self.fabric = fabric
        self.snmpd = {}
        self.lldpd = {}
        for switch in fabric.layout.switches:
            self._prepare(switch)
            self.start_snmpd(switch)
        for switch in fabric.layout.switches:
            self.start_lldpd(switch)

    def folder(self, switch):
        return self.fabric.dir / f"agent-{switch}"

    def _prepare(self, switch):
        folder = self.folder(switch)
        folder.mkdir()
        write_agent(folder, self.fabric.layout, switch)

    def _spawn(self, switch, name, *args):
        folder = self.folder(switch)
        env = {**os.environ, "SNMP_PERSISTENT_DIR": str(folder / "persist"),
               "SNMPCONFPATH": str(folder), "MIBS": ""}
        return self.fabric.spawn(
            switch, f"{name}-{switch}", "unshare", "--uts", "--mount", "sh", "-c",
            PREPARE.format(name=switch), "sh", *args, env=env)

    def start_snmpd(self, switch):
        folder = self.folder(switch)
        (folder / "agentx").unlink(missing_ok=True)
        self.snmpd[switch] = self._spawn(
            switch, "snmpd", "snmpd", "-f", "-C", "-c", folder / "snmpd.conf", "-Le")
        wait_until((folder / "agentx").exists, 90, f"snmpd of {switch}")

    def start_lldpd(self, switch):
        folder = self.folder(switch)
        self.lldpd[switch] = self._spawn(
            switch, "lldpd", "lldpd", "-d", "-x", "-X", folder / "agentx", "-u",
            folder / "lldpd.sock", "-I", "Ethernet*", "-C", "Ethernet1", "-m",
            self.fabric.layout.mgmt(switch), "-S", "lab switch", "-O", folder / "lldpd.conf")

    @staticmethod
    def _stop(process, how):
        try:
            os.killpg(process.pid, how)  # a session of its own: lldpd has a child
        except ProcessLookupError:
            pass
        process.wait()

    def stop_snmpd(self, switch, how=signal.SIGKILL):
        self._stop(self.snmpd.pop(switch), how)

    def forget(self, switch):
        """The stopped agent's engine id and boots are lost."""
        shutil.rmtree(self.folder(switch) / "persist")

    def stop_lldpd(self, switch, how=signal.SIGKILL):
        self._stop(self.lldpd.pop(switch), how)

    def pause(self, switch, stopped):
        """The agent is there and says nothing, as a switch that is far too slow."""
        os.killpg(self.snmpd[switch].pid, signal.SIGSTOP if stopped else signal.SIGCONT)

    def _snmp(self, tool, switch, *args):
        user, auth, priv = WRITER
        done = subprocess.run(
            self.fabric.within(COLLECTOR, tool, "-v3", "-l", "authPriv", "-u", user, "-a", auth,
                               "-A", AUTH, "-x", priv, "-X", PRIV, "-Oqvn", "-t", "10",
                               self.fabric.layout.mgmt(switch), *args),
            capture_output=True, text=True, env={**os.environ, "MIBS": ""})
        if done.returncode:
            raise LabError(f"{tool} {switch} {' '.join(args)}: {done.stderr.strip()}")
        return done.stdout

    def set_cache_seconds(self, switch, seconds):
        """How old counters may be that the agent answers."""
        self._snmp("snmpset", switch, CACHE_TIMEOUT, "i", str(seconds))

    def freeze(self, switch, frozen):
        """Counters stand still while the agent goes on to answer: its cache hardly ever expires."""
        self.set_cache_seconds(switch, FROZEN_S if frozen else 1)

    def config(self, path, credentials="v3", also=()):
        """Writes the poller's file of switches; see write_switches."""
        write_switches(path, self.fabric.layout, credentials, also)
