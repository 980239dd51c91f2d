#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make check-headers: what an object file offers to others is used by a program.

A function or variable with external linkage that no other object of the programs needs is
- static, when its own file uses it and no test does;
- dead, or a test's own business, when its own file does not use it.

usage: check_unused.py SRCDIR BUILDDIR    after `make`"""
import collections
import pathlib
import re
import sys

sys.dont_write_bytecode = True
from check_rooms import objects_of, symbols_of  # noqa: E402

# Exceptions, and why.
EXCEPT = {
    "ft_batch_known": "for its tests: a batch is taken whole, or nothing of it",
    "ft_discovery_looks": "for its test: the work of a build must not grow with the fabric's square",
}


def words_of(path):
    """How often each identifier stands in the code of a file, comments and texts apart."""
    text = path.read_text(encoding="utf-8")
    text = re.sub(r'"(?:[^"\\\n]|\\.)*"|/\*.*?\*/|//[^\n]*', " ", text, flags=re.S)
    return collections.Counter(re.findall(r"[A-Za-z_]\w*", text))


def faults_of(src, build):
    """Sentences about symbols that nobody uses, and how many symbols there are."""
    symbols = {source: symbols_of(path) for source, path in objects_of(src, build)}
    needed = collections.Counter(name for _, names in symbols.values() for name in names)
    tested = collections.Counter()
    for path in sorted((src / "tests").rglob("*.[ch]")):
        tested.update(words_of(path))
    faults, count = [], 0
    for source, (defined, _) in symbols.items():
        own = words_of(src / source)
        for name in sorted(defined - {"main"}):
            count += 1
            if needed[name] or name in EXCEPT:
                continue
            if own[name] > 1:
                if not tested[name]:
                    faults.append(f"{source}: {name} is used in this file alone: make it static")
            else:
                who = "tests alone use" if tested[name] else "nobody uses"
                faults.append(f"{source}: {who} {name}: remove it")
    return faults, count


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    faults, count = faults_of(*(pathlib.Path(arg) for arg in sys.argv[1:]))
    for fault in faults:
        print(fault, file=sys.stderr)
    if not count:
        sys.exit(f"{sys.argv[2]}: no object files: make first")
    print(f"{count - len(faults)} passed, {len(faults)} failed, 0 skipped")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
