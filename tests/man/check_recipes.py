#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each example of the guides (deploy, switches, security, troubleshooting) has its judge: configurations are
accepted by their program, commands of the tool are taken by it and answered by a daemon, recipes of openssl
run one after the other, drop-ins of units are what systemd verifies, manifests are YAML, and each line of a
shell is bash's. What needs packages, a service manager or a vendor's switch stands in a list with what shows
it instead. check_guides.py, check_security.py and check_troubleshooting.py say more of what comes of them. The files of
packaging/examples are accepted, too, as they are and with the settings that they have commented out."""
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import yaml

sys.dont_write_bytecode = True
TOP = Path(os.environ.get("srcdir", ".")).resolve()
for folder in ("tests", "tests/golden/daemon", "tests/man"):
    sys.path.insert(0, str(TOP / folder))
import check_guides  # noqa: E402
import rig  # noqa: E402
from check_examples import ELSEWHERE, blocks_of  # noqa: E402
from rig import check, equal  # noqa: E402

PROGRAMS = {p.name: p for p in (rig.DAEMON, rig.AGENT, rig.POLLER)}
USAGE = 64  # exit status of a command line that is not one
# How an example begins that is a shell's and not run here: where its like is.
SHELL = {
    "packaging/install-deps packages": "tests/install/check_packages.sh",
    "apt install ./fabrictrace-agent_": "tests/install/in_debian.sh",
    "dpkg-deb -x fabrictrace-daemon_": "tests/install/in_debian.sh",
    "apt purge ": "tests/install/in_debian.sh",
    "journalctl FABRICTRACE_SWITCH": "tests/install/check_journal.py",
    "systemctl restart fabrictrace.target": "tests/install/in_machine.sh",
}
# What is typed at a switch: whose. check_guides.py sees to users and credentials; no such system is here.
SWITCH = {
    "sflow sample ": "Arista EOS",
    "config feature state sflow": "SONiC",
    "nv set system sflow collector": "Cumulus Linux",
    "set protocols sflow agent-id": "Junos",
    "set protocols lldp port-id-subtype": "Junos",
    "feature sflow": "Cisco NX-OS",
}


def run_configuration(name, text, folder, path):
    """By the program of that name; what it names beneath /etc/fabrictrace is there."""
    check_guides.etc(folder)
    made = folder / path
    made.write_text(text.replace("/etc/fabrictrace", str(folder)))
    if path == "switches.yaml":
        program, words = rig.POLLER, [*rig.NO_CONFIG, "--set", f"snmp.switches={made}",
                                      "--set", "daemon.endpoint=127.0.0.1:9477"]
    else:
        program, words = PROGRAMS[path.removesuffix(".yaml")], ["-c", made]
    if f"switches: {folder}/switches.yaml" in made.read_text():
        shown, = (block for block in blocks_of("fabrictrace-switches.7")
                  if block.startswith("# /etc/fabrictrace/switches"))
        (folder / "switches.yaml").write_text(shown)
    done = rig.run(program, "--check", *words)
    check(f"{name}: {path} is accepted", done.returncode == 0, done.stdout + done.stderr)


def run_tool(name, text, daemon):
    """Its commands, with an answer of a daemon that knows another fabric: lines behind them are of
    check_troubleshooting.py."""
    for line in re.findall(r"^\$ fabrictrace (.*)$", text, re.M):
        done = rig.run(check_guides.TOOL, *line.split(), "--endpoint", f"127.0.0.1:{daemon.http}")
        # A name that this daemon does not have is a mistake of whoever typed it, too.
        taken = done.returncode in (0, 1) or (done.returncode == USAGE
                                              and re.search(r"no \w+ '.*' is known", done.stderr))
        check(f"{name}: 'fabrictrace {line}' is a command", taken and (done.stdout or done.stderr),
              (done.returncode, done.stdout[-300:], done.stderr))


def run_recipe(name, text, folder):
    """In the folder of those before it on the page."""
    done = subprocess.run(["sh", "-euc", text], cwd=folder, capture_output=True, text=True, check=False)
    check(f"{name}: '{text.split(chr(10))[0]}' runs", done.returncode == 0, done.stderr)


def run_drop_in(name, text, folder):
    """Of a unit as it is built, in a root with its program."""
    section = text.split("]")[0].lstrip("[")
    # What the text before it says that it is for.
    unit = {"Socket": "fabrictrace-switchpoll.socket", "Service": "fabrictraced.service"}[section]
    units = folder / "lib/systemd/system"
    (units / f"{unit}.d").mkdir(parents=True)
    (folder / "etc").mkdir()
    (folder / "etc/passwd").write_text("root:x:0:0::/:/bin/sh\nfabrictrace:x:999:999::/:/bin/sh\n")
    (folder / "etc/group").write_text("root:x:0:\nfabrictrace:x:999:\n")
    for target in ("basic", "sysinit", "multi-user", "shutdown", "network-online", "network", "sockets"):
        shutil.copy(f"/lib/systemd/system/{target}.target", units)
    for built in Path("packaging/systemd").glob("*.s*[et]"):
        shutil.copy(built, units)
        for program in re.findall(r"^Exec\w+=(\S+)", built.read_text(), re.M):
            where = folder / program.lstrip("/")
            where.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy("/bin/true", where)
    (units / f"{unit}.d/example.conf").write_text(text)
    verify = ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", f"--root={folder}", unit]
    done = rig.run(*verify)
    equal(f"{name}: {unit} with the drop-in is verified", (done.returncode, done.stdout + done.stderr), (0, ""))
    (units / f"{unit}.d/example.conf").write_text(text + "NoSuchKey=1\n")
    check(f"{name}: a key that is none is found", "NoSuchKey" in rig.run(*verify).stderr)


def run_manifest(name, text):
    made = yaml.safe_load(text)
    check(f"{name}: a manifest", {"apiVersion", "kind", "metadata", "spec"} <= set(made), made)


def is_bash(name, text):
    done = subprocess.run(["bash", "-n"], input=text, capture_output=True, text=True, check=False)
    equal(f"{name}: '{text.split(chr(10))[0]}' is bash's", (done.returncode, done.stderr), (0, ""))


def judge(name, text, folder, daemon, recipes):
    """Whoever judges it; False when nobody does."""
    if config := re.match(r"# /etc/fabrictrace/(\S+\.yaml)\n", text):
        run_configuration(name, text, folder, config[1])
    elif text.startswith("$ fabrictrace "):
        run_tool(name, text, daemon)
    elif re.match(r"openssl |cat >ca.conf ", text):
        is_bash(name, text)
        run_recipe(name, text, recipes)
    elif re.match(r"\[\w+\]\n", text):
        run_drop_in(name, text, folder)
    elif text.startswith("apiVersion: "):
        run_manifest(name, text)
    else:
        return False
    return True


def test_recipes(folder):
    daemon = rig.Daemon(folder, (rig.LAB / "topology.yaml").read_text()).start()
    left = {**SHELL, **SWITCH}
    seen = {page: 0 for page in ELSEWHERE}
    try:
        for page in ELSEWHERE:
            (folder / page).mkdir()
            for text in blocks_of(page):
                where = folder / f"{page}-{seen[page]}"
                where.mkdir()
                seen[page] += 1
                why = next((begin for begin in left if text.startswith(begin)), None)
                if why is None:
                    judged = judge(page, text, where, daemon, folder / page)
                    check(f"{page}: something judges this example", judged, text)
                    continue
                place = left.pop(why)
                if why in SHELL:
                    is_bash(page, text)
                    check(f"{page}: '{why}' is shown elsewhere", (TOP / place).exists(), place)
        equal("what is not run is there", left, {})
        check("each guide has examples", all(n >= 5 for n in seen.values()), seen)
        daemon.stop()
    finally:
        daemon.kill()


def accepted(what, folder, text, *words, program=None):
    """A configuration by --check, in a folder with what it names."""
    path = folder / "example.yaml"
    path.write_text(text.replace("/etc/fabrictrace", str(folder)).replace("/var/lib/fabrictrace", str(folder / "var"))
                    .replace("/run/fabrictrace", str(folder)).replace("[eth0]", "[lo]"))
    words = [word.replace("EXAMPLE", str(path)) for word in words] or ["-c", path]
    done = rig.run(program, "--check", *words)
    check(f"{what} is accepted", done.returncode == 0, done.stdout + done.stderr)


def test_files(folder):
    """A file without a judge is a failure; logrotate's is check_deploy.py's."""
    check_guides.etc(folder)
    (folder / "var").mkdir()
    for name in ("snmp.community", "switchpoll.secret"):
        (folder / name).write_text("public\n")
        (folder / name).chmod(0o600)
    # Lines of prose have one blank behind their '#'.
    more = re.compile(r"^#(?! \S)(?=.*:|  - )", re.M)
    for path in sorted((TOP / "packaging/examples").iterdir()):
        text = path.read_text()
        if path.name == "switches.yaml":
            accepted(path.name, folder, text, *rig.NO_CONFIG, "--set", "daemon.endpoint=127.0.0.1:9477", "--set",
                     "snmp.switches=EXAMPLE", program=rig.POLLER)
            shutil.copy(folder / "example.yaml", folder / path.name)
        elif path.name == "topology.yaml":
            accepted(path.name, folder, text, *rig.NO_CONFIG, "--topology", "EXAMPLE", program=rig.DAEMON)
        elif path.stem in PROGRAMS and path.suffix == ".yaml":
            shutil.copy(TOP / "packaging/examples/switches.yaml", folder)
            accepted(path.name, folder, text, program=PROGRAMS[path.stem])
            check(f"{path.name} has something commented out", more.search(text))
            accepted(f"{path.name} with that", folder, more.sub("", text), program=PROGRAMS[path.stem])
        else:
            equal("another file is logrotate's", path.name, "fabrictraced.logrotate")


if __name__ == "__main__":
    sys.exit(rig.run_tests(test_recipes, test_files))
