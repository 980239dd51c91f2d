#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether each package that packaging/install-deps names is in the archive of its distribution.

usage: check_names.py SRCDIR [DISTRIBUTION...]

Reads the archives' indices over HTTP; $DEBIAN_MIRROR and $UBUNTU_MIRROR name others. Ends with
"N passed, N failed, N skipped".
"""
import lzma
import os
import re
import subprocess
import sys
import urllib.request

DEBIAN = os.environ.get("DEBIAN_MIRROR", "http://deb.debian.org/debian")
UBUNTU = os.environ.get("UBUNTU_MIRROR", "http://archive.ubuntu.com/ubuntu")
DISTRIBUTIONS = {
    "debian:12": (DEBIAN, "bookworm", ("main",)),
    "debian:13": (DEBIAN, "trixie", ("main",)),
    "ubuntu:22.04": (UBUNTU, "jammy", ("main", "universe")),
    "ubuntu:24.04": (UBUNTU, "noble", ("main", "universe")),
}


def packages(archive, suite, components):
    """Names in the indices, those that are provided too."""
    names = set()
    for component in components:
        url = f"{archive}/dists/{suite}/{component}/binary-amd64/Packages.xz"
        with urllib.request.urlopen(url, timeout=120) as answer:
            text = lzma.decompress(answer.read()).decode()
        names.update(re.findall(r"^Package: (\S+)$", text, re.MULTILINE))
        for provided in re.findall(r"^Provides: (.*)$", text, re.MULTILINE):
            names.update(part.split()[0] for part in provided.split(","))
    return names


def wanted(srcdir, what, distribution):
    text = subprocess.run([f"{srcdir}/packaging/install-deps", "--list", what, distribution],
                          stdout=subprocess.PIPE, text=True, check=True).stdout
    return text.split()


def main():
    passed = failed = 0
    for distribution in sys.argv[2:] or DISTRIBUTIONS:
        there = packages(*DISTRIBUTIONS[distribution])
        for what in ("build", "test", "bare", "packages"):
            names = wanted(sys.argv[1], what, distribution)
            missing = sorted(set(names) - there)
            passed += not missing
            failed += bool(missing)
            print("FAIL" if missing else "ok  ", f"{distribution}: {len(names)} packages of '{what}'",
                  *(["not there:", *missing] if missing else []))
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
