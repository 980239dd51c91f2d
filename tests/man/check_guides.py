#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What fabrictrace-deploy(7) and fabrictrace-switches(7) show is so: each configuration is accepted by
its program, each command of the tool answers, packages, units and scripts that are named there are.
And the manual for a browser has every page, with links that lead somewhere."""
import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import yaml

sys.dont_write_bytecode = True
TOP = Path(os.environ.get("srcdir", ".")).resolve()
for folder in ("tests", "tests/golden/daemon"):
    sys.path.insert(0, str(TOP / folder))
import rig  # noqa: E402
from certificates import Authority  # noqa: E402
from ports import free_port  # noqa: E402
from rig import check, equal  # noqa: E402

PAGES = [TOP / "man" / name for name in ("fabrictrace-deploy.7", "fabrictrace-switches.7")]
BLOCK = re.compile(r"^\.Bd -literal[^\n]*\n(.*?)^\.Ed$", re.M | re.S)
TOOL = Path("cli/fabrictrace").resolve()


def blocks():
    for page in PAGES:
        for block in BLOCK.findall(page.read_text()):
            yield page.stem, block.replace("\\e\n", "\\\n")


def etc(folder):
    """What configurations name beneath /etc/fabrictrace."""
    authority = Authority(folder, "ca")
    for name, path in zip(("cert.pem", "key.pem"), authority.make("own", "IP:127.0.0.1")):
        path.rename(folder / name)
    authority.make("switchpoll", f"URI:fabrictrace://switchpoll/{os.uname().nodename}")
    shutil.copy(rig.LAB / "topology.yaml", folder)
    for name in ("snmp.auth", "snmp.priv"):
        (folder / name).write_text("a-secret-of-16-characters\n")
        (folder / name).chmod(0o600)


def test_configurations(folder):
    etc(folder)
    programs = {p.name: p for p in (rig.DAEMON, rig.AGENT, rig.POLLER)}
    seen = []
    configurations = [(page, *re.match(r"# /etc/fabrictrace/(\S+)\.yaml\n", text).groups(), text)
                      for page, text in blocks() if text.startswith("# /etc/")]
    # The switches first: the poller's configuration names them.
    for page, name, text in sorted(configurations, key=lambda row: row[1] != "switches"):
        path = folder / f"{name}.yaml"
        path.write_text(text.replace("/etc/fabrictrace", str(folder)))
        words = ["-c", path]
        if name == "switches":
            name, words = "fabrictrace-switchpoll", [
                *rig.NO_CONFIG, "--set", f"snmp.switches={path}", "--set", "daemon.endpoint=127.0.0.1:9477"]
        done = rig.run(programs[name], "--check", *words)
        check(f"{page}: {name} accepts configuration {len(seen) + 1}", done.returncode == 0,
              done.stdout + done.stderr)
        seen.append(name)
    equal("configurations of", sorted(set(seen)), sorted(programs))
    check("of three sizes", seen.count("fabrictraced") == 3, seen)


def test_connected(folder):
    """In each size that has both, the daemon takes what the poller sends."""
    etc(folder)
    seen = 0
    for size, section in re.findall(r"^\.Ss (\d.*)\n((?:.*\n)*?)(?=\.S[sh] )", PAGES[0].read_text(), re.M):
        found = [re.match(r"# /etc/fabrictrace/(fabrictrace\S+)\.yaml\n", text) for text in BLOCK.findall(section)]
        made = {m[1]: yaml.safe_load(m.string.replace("/etc/fabrictrace", str(folder))) for m in found if m}
        if len(made) < 2:
            continue
        seen += 1
        port, http, own = free_port(), free_port(), folder / f"size{seen}"
        own.mkdir()
        made["fabrictraced"] |= {"listen": f"127.0.0.1:{port}", "http": f"127.0.0.1:{http}",
                                 "sinks": [f"file:{own}/records"]}
        poller = made["fabrictrace-switchpoll"]
        poller |= {"listen": f"127.0.0.1:{free_port(socket.SOCK_DGRAM)}", "http": f"127.0.0.1:{free_port()}"}
        poller["daemon"]["endpoint"] = f"127.0.0.1:{port}"
        poller.pop("snmp", None)
        programs = []
        try:
            for name, command in (("fabrictraced", rig.DAEMON), ("fabrictrace-switchpoll", rig.POLLER)):
                programs.append(rig.Program(own, name, [command], yaml.safe_dump(made[name])))
                programs[-1].http = made[name]["http"].rpartition(":")[2]
                programs[-1].start()
            rig.until(f"{size}: the poller is connected", programs[-1].healthy)
            for program in reversed(programs):
                program.stop()
        finally:
            for program in programs:
                print(program.log.read_text() if rig.failures else "", end="")
                program.kill()
    equal("sizes with both", seen, 2)


def test_sockets(_folder):
    """A poller ends where its socket unit has not one socket for each worker."""
    unit = (TOP / "packaging/systemd/fabrictrace-switchpoll.socket.in").read_text()
    more, size, seen = [], "", 0
    for line in PAGES[0].read_text().splitlines():
        size = line if line.startswith(".Ss ") else size
        if size and (line.startswith("ListenDatagram=") or line == "ReusePort=yes"):
            more.append((size, line))
        if workers := re.match(r"workers: (\d+)", line):
            seen, of = int(workers[1]), size
    lines = [line for size, line in more if size == of]
    equal("a socket for each worker", unit.count("\nListenDatagram=6343\n") + lines.count("ListenDatagram=6343"), seen)
    check("which share the port", lines.count("ReusePort=yes") == 1, lines)


def test_commands(folder):
    commands = [line[2:] for _, text in blocks() for line in text.splitlines() if line.startswith("$ ")]
    check("there are commands", len(commands) >= 5, commands)
    daemon = rig.Daemon(folder, (rig.LAB / "topology.yaml").read_text()).start()
    try:
        for command in sorted(set(commands)):
            words = command.split()
            equal(f"'{command}' is of the tool", words[0], "fabrictrace")
            done = rig.run(TOOL, *words[1:], "--endpoint", f"127.0.0.1:{daemon.http}")
            check(f"'{command}' answers", done.returncode in (0, 1) and done.stdout,
                  (done.returncode, done.stdout, done.stderr))
        daemon.stop()
    finally:
        daemon.kill()


def test_authentication(_folder):
    """Each vendor's user is authenticated by what a credential of the poller says, and its SNMP runs."""
    page = PAGES[1].read_text()
    said = set(re.findall(r"^    auth: (\S+)$", page, re.M))
    sections = dict(re.findall(r"^\.Sh ([A-Z .-]+)\n(.*?)(?=^\.Sh )", page, re.M | re.S))
    users = {name: kind for name, text in sections.items()
             for kind in re.findall(r"(?:snmp.*(?:auth |auth-|authentication-| RO ))(sha\d*)\b", text, re.I)}
    equal("vendors", len(users), 5)
    for name, kind in users.items():
        check(f"{name}: a credential has {kind}", re.sub(r"(\d+)", r"-\1", kind.upper()) in said, said)
    check("Cumulus: the server is on", "nv set system snmp-server state enabled" in sections["CUMULUS LINUX"])


def test_names(_folder):
    text = "".join(text for _, text in blocks())
    control = (TOP / "packaging/debian/control.in").read_text()
    for package in set(re.findall(r"\./(fabrictrace-[a-z-]+)_\*\.deb", text)):
        check(f"package {package}", f"\nPackage: {package}\n" in control)
    for unit in set(re.findall(r"systemctl enable --now (.*)", text)):
        for name in unit.split():
            check(f"unit {name}", (TOP / f"packaging/systemd/{name}.service.in").exists())
    for script in set(re.findall(r"^packaging/\S+", text, re.M)):
        check(f"script {script}", os.access(TOP / script, os.X_OK))


def at_least(text, pattern):
    """{library: its oldest version}, by the name that pkg-config has for it."""
    same = {"libevent_core": "libevent", "libevent_extra": "libevent", "libevent_openssl": "libevent"}
    return {same.get(name, name): version for name, version in re.findall(pattern, text)}


def test_requirements(_folder):
    """What the page says is what configure asks for, and the packages of both kinds are built with."""
    table = PAGES[0].read_text().split(".Sh REQUIREMENTS", 1)[1].split(".El", 1)[0]
    told = at_least(table, r"(?m)^\.It (\S+) Ta ([\d.]+) Ta")
    configure = (TOP / "configure.ac").read_text()
    asked = at_least("".join(re.findall(r"PKG_CHECK_MODULES\(\[(?!CHECK)\w+\], \[[^]]*\]", configure)),
                     r"([\w-]+) >= ([\d.]+)")
    equal("versions by configure.ac", told, asked)
    # Of each it is said with which the tests ran: none that is older than what is taken.
    tested = at_least(table, r"(?m)^\.It (\S+) Ta [\d.]+ Ta ([\d.]+) Ta")
    equal("the oldest that was tested is told of each", set(tested), set(told))
    for name, version in tested.items():
        check(f"{name}: tested with what is taken", [int(n) for n in version.split(".")]
              >= [int(n) for n in told[name].split(".")], (version, told[name]))
    equal("by the spec of rpm", at_least((TOP / "packaging/rpm/fabrictrace.spec.in").read_text(),
                                         r"pkgconfig\(([\w.-]+)\) >= ([\d.]+)"), told)
    debian = {"openssl": "libssl", "rdkafka": "librdkafka", "netsnmp": "libsnmp", "libcurl": "libcurl4-openssl",
              "jansson": "libjansson"}
    control = dict(re.findall(r"^ ([\w.-]+)-dev \(>= ([\d.]+)\),$", (TOP / "packaging/debian/control.in").read_text(),
                              re.M))
    # Debian numbers libibverbs by the source that it comes from.
    equal("by Debian's control", control,
          {debian.get(name, name): version for name, version in told.items() if name != "libibverbs"})


def test_html(folder):
    env = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    done = subprocess.run(["make", "-s", "html"], capture_output=True, text=True, env=env, check=False)
    equal("make html", (done.returncode, done.stderr), (0, ""))
    files = {p.name: p.read_text() for p in Path("html").glob("*.html")}
    pages = {p.name for p in (TOP / "man").glob("*.[1578]")} | {p.name for p in Path("man").glob("*.[1578]")}
    equal("every page, and the index", set(files), {f"{p}.html" for p in pages} | {"index.html"})
    dead = []
    for name, text in files.items():
        for link in re.findall(r'href="([^"]+)"', text):
            where, _, anchor = link.partition("#")
            if where.startswith("https:") or where == "manual.css":
                continue
            target = files.get(where or name)
            if target is None or (anchor and f'id="{anchor}"' not in target):
                dead.append(f"{name}: {link}")
    equal("links that lead nowhere", dead, [])
    check("the index leads to all", all(f'href="{p}.html"' in files["index.html"] for p in pages))


if __name__ == "__main__":
    sys.exit(rig.run_tests(test_configurations, test_connected, test_sockets, test_commands, test_authentication, test_names,
                           test_requirements, test_html))
