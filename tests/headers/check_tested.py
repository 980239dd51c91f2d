#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make check-headers: each module has a test.

A module is a header that declares functions. A C file below tests/ includes it, or a row of
tests/headers/tested says which test runs it: of one module, or of a folder whose modules a program's
test runs. What needs no test of its own: headers of types, of inline functions and of macros, and
NAME_impl.h, which share out one module between several sources. A row of a module that is gone, or
that a C file includes meanwhile, goes; so does one of a test that is gone.

usage: check_tested.py SRCDIR BUILDDIR
"""
import pathlib
import re
import sys

FOLDERS = ("lib", "proto", "daemon", "agent", "switchpoll", "cli")
NO_TESTS = ("tests/bench/",)  # figures, which nothing is held against
ROWS = "tests/headers/tested"


def declares(text):
    """Whether a header declares a function that is defined elsewhere."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.S)
    text = re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", "", text, flags=re.M)
    depth, flat = 0, []
    for c in text:
        depth += (c == "{") - (c == "}")
        if depth == 0:
            flat.append(";" if c == "}" else c)
    return any(re.search(r"\bft_\w+\s*\(", part) and not re.match(r"\s*(typedef|static)\b", part)
               for part in "".join(flat).split(";"))


def modules_of(src):
    """The headers that declare functions, with what they are to."""
    for folder in FOLDERS:
        for path in sorted((src / folder).rglob("*.h")):
            if not path.name.endswith(("_impl.h", ".pb-c.h")) and declares(path.read_text(encoding="utf-8")):
                yield str(path.relative_to(src))


def included_of(src):
    """What the C files of tests include."""
    names = set()
    for path in (src / "tests").rglob("*.[ch]"):
        if not str(path.relative_to(src)).startswith(NO_TESTS):
            names.update(re.findall(r'^#include "([^"]+)"', path.read_text(encoding="utf-8"), re.M))
    return names


def rows_of(src):
    """Module or folder, and its tests."""
    for line in (src / ROWS).read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            name, *tests = line.split()
            yield name, tests


def faults_of(src):
    modules, included, rows = list(modules_of(src)), included_of(src), dict(rows_of(src))
    open_modules = [module for module in modules if module not in included]
    used = set()
    for module in open_modules:
        names = [name for name in rows if name == module or (name.endswith("/") and module.startswith(name))]
        used.update(sorted(names, key=len)[-1:])
        if not names:
            yield f"{module}: no C file of tests/ includes it, and {ROWS} names no test that runs it"
    for name, tests in rows.items():
        if name not in used:
            yield f"{ROWS}: {name}: there is no such module without a test of its own: the row goes"
        if not tests:
            yield f"{ROWS}: {name}: no test"
        for test in tests:
            if not (src / "tests" / test).is_file():
                yield f"{ROWS}: {name}: there is no tests/{test}"


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    src = pathlib.Path(sys.argv[1])
    faults = list(faults_of(src))
    for fault in faults:
        print(fault, file=sys.stderr)
    print(f"{max(0, len(list(modules_of(src))) - len(faults))} passed, {len(faults)} failed, 0 skipped")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
