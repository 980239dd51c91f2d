#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""That what the compiler made for arm64 has the barriers of the shared memory between NCCL and the agent.

On x86 they cost nothing and their loss shows nowhere; under emulation neither. So they are counted in
the functions that hold one, as the compiler of Debian 12 makes them.

usage: fences.py PLUGIN RINGS_OBJECT
"""

import collections
import re
import subprocess
import sys

# {function: {instruction: how many at least}}
WRITER = {  # the odd number of a sequence is seen before what it protects
    "ft_trace_open": {"dmb ish": 1},
    "ft_trace_close": {"dmb ish": 2},
    "ft_entry_show": {"dmb ish": 1},
    "ft_entry_open": {"dmb ish": 1},
}
READER = {  # what was read is read before the number is compared; what lies below head, after head
    "ft_rings_comm": {"ldar": 1, "dmb ishld": 1},
    "ft_rings_flights": {"dmb ishld": 2},
    "ft_rings_read": {"ldar": 1, "stlr": 1},
}


def barriers(path):
    """{function: {instruction: how many}}"""
    text = subprocess.run(["aarch64-linux-gnu-objdump", "-d", "--no-show-raw-insn", path], check=True,
                          capture_output=True, text=True).stdout
    found = collections.defaultdict(collections.Counter)
    function = ""
    for line in text.splitlines():
        begin = re.match(r"[0-9a-f]+ <([^>]+)>:", line)
        if begin:
            function = begin[1].split(".")[0]
        made = re.search(r"\t(dmb)\s+(\w+)|\t(ldar|stlr)[bh]?\s", line)
        if made:
            found[function][made[3] or f"{made[1]} {made[2]}"] += 1
    return found


def main():
    failed = 0
    for path, expected in zip(sys.argv[1:3], (WRITER, READER), strict=True):
        found = barriers(path)
        for function, least in expected.items():
            for instruction, count in least.items():
                has = found[function][instruction]
                good = has >= count
                failed += not good
                print(f"{'ok  ' if good else 'FAIL'} {function}: {instruction}: {has}, at least {count}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
