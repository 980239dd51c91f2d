#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every file that `make install` installs belongs to exactly one package, of Debian's and of rpm's, or is
named as in none; and nothing is listed that is not installed. In the build folder, in a second: what
builds the packages themselves is ./check packages."""
import fnmatch
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

TOP = Path(os.environ.get("srcdir", ".")).resolve()
PACKAGING = TOP / "packaging"
LIBDIR = "/usr/lib/x86_64-linux-gnu"
# Debian's rules and rpm's spec make these themselves, or take them away.
UNITS = "/usr/lib/systemd/system/"
DAEMONS = {"fabrictraced": "daemon", "fabrictrace-switchpoll": "switchpoll", "fabrictrace-agent": "agent"}


def installed():
    """As both would, to a folder: the paths there."""
    env = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    with tempfile.TemporaryDirectory() as root:
        subprocess.run(
            ["make", "-s", "install", f"DESTDIR={root}", "prefix=/usr", f"libdir={LIBDIR}",
             "systemdsystemunitdir=/usr/lib/systemd/system", "docdir=/usr/share/doc/fabrictrace-doc",
             "bashcompletiondir=/usr/share/bash-completion/completions",
             "zshcompletiondir=/usr/share/zsh/site-functions"],
            check=True, env=env, stdout=subprocess.DEVNULL)
        return sorted(f"/{p.relative_to(root)}" for p in Path(root).rglob("*") if p.is_file())


def debian():
    """(package, pattern) of Debian's."""
    for path in sorted((PACKAGING / "debian").glob("*.install")):
        for line in path.read_text().splitlines():
            if " " in line:  # what is built and not installed, and where it goes
                continue
            yield path.stem, "/" + line.replace("/vendor-completions/", "/site-functions/")
    for line in (PACKAGING / "debian/not-installed").read_text().split():
        yield "none", "/" + line
    for unit, package in DAEMONS.items():
        yield package, f"{UNITS}{unit}.*"
    yield "fabrictrace-tools", f"{UNITS}fabrictrace.target"


def rpm():
    """The same of rpm's."""
    spec = (PACKAGING / "rpm/fabrictrace.spec.in").read_text()
    macros = {"_sbindir": "/usr/sbin", "_bindir": "/usr/bin", "_libdir": LIBDIR, "_datadir": "/usr/share",
              "_mandir": "/usr/share/man", "_prefix": "/usr", "_docdir": "/usr/share/doc", "_unitdir": UNITS.rstrip("/"),
              "_sysconfdir": "/etc", "name": "fabrictrace", "_sysusersdir": "/usr/lib/sysusers.d", "_tmpfilesdir": "/usr/lib/tmpfiles.d",
              "_libexecdir": "/usr/libexec", "buildroot": ""}

    def expanded(text):
        return re.sub(r"%\{(\w+)\}", lambda m: macros[m[1]], text)

    for gone in re.search(r"^rm (.*)$", spec, re.M)[1].split():
        yield "none", expanded(gone)
    package = None
    for line in spec.splitlines():
        if line.startswith("%"):
            section = re.match(r"%files (\S+)", line)
            if section or not re.match(r"%(config|dir|license|\{)", line):
                package = section[1] if section else None
        if package and line.startswith("%{") and not re.search(r"/((sysusers|tmpfiles)\.d|catalog)/", expanded(line)):
            yield package, expanded(line)


def judge(kind, listed, files):
    listed, faults = list(listed), []
    hits = {row: 0 for row in listed}
    for file in files:
        owners = set()
        for row in listed:
            if fnmatch.fnmatch(file, row[1]) or file.startswith(row[1].rstrip("/") + "/"):
                owners.add(row[0])
                hits[row] += 1
        if len(owners) != 1 and "none" not in owners:
            faults.append(f"{kind}: {file} is in {sorted(owners) or 'no package'}")
    return faults + [f"{kind}: {package} lists {pattern}, which is not installed"
                     for (package, pattern), count in hits.items() if not count]


def main():
    files = installed()
    kinds = {"debian": list(debian()), "rpm": list(rpm())}
    faults = [fault for kind, listed in kinds.items() for fault in judge(kind, listed, files)]
    # That each fault is found.
    for kind, listed in kinds.items():
        if not judge(kind, listed, files + ["/usr/sbin/new"]) or not judge(kind, listed, files[1:]):
            faults.append(f"{kind}: a file too many, or one too few, is not told")
    for fault in faults:
        print("FAIL", fault)
    print(f"{len(files)} files, {len(faults)} faults")
    return 1 if faults or len(files) < 30 else 0


sys.exit(main())
