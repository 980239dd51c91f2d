#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Where a running program of ours spends its processor time: by the folder that the code is of, which is a
stage of the pipeline. Linux's perf looks (package linux-perf); needs root, or the user's own processes.

usage: rooms.py [--seconds N] [--each COUNT] PID...      COUNT: of observations, say, in that time
Prints a row a folder: seconds of a processor, its share, and microseconds for each of COUNT."""
import argparse
import collections
import os
import re
import subprocess
import tempfile
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
HERTZ = 997  # no multiple of what timers do
MMAP = re.compile(r"PERF_RECORD_MMAP2 \d+/\d+: \[0x([0-9a-f]+)\(0x([0-9a-f]+)\) @ (0x[0-9a-f]+|0) .*\]: r-xp (\S+)")


def used_s(pids):
    """Processor time of all threads so far, as the scheduler has it to the nanosecond."""
    return sum(int(stat.read_text().split()[0]) for pid in pids
               for stat in Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e9


def samples(pids, seconds):
    """Counter of (file, address) as they were mapped, and [(begin, end, offset, file)] of our programs."""
    with tempfile.NamedTemporaryFile(suffix=".perf") as data:
        subprocess.run(["perf", "record", "-q", "-e", "cpu-clock", "-F", str(HERTZ), "-o", data.name,
                        *(word for pid in pids for word in ("-p", str(pid))), "--", "sleep", str(seconds)],
                       check=True, stderr=subprocess.DEVNULL)
        text = subprocess.run(["perf", "script", "-i", data.name, "--show-mmap-events", "-F", "pid,ip,dso"],
                              check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    found, maps = collections.Counter(), []
    for line in text.splitlines():
        mapped = MMAP.search(line)
        if mapped:
            begin, length = int(mapped[1], 16), int(mapped[2], 16)
            maps.append((begin, begin + length, int(mapped[3], 16), mapped[4]))
        elif (words := line.split()) and len(words) == 3 and words[2].startswith("("):
            found[words[2][1:-1], int(words[1], 16)] += 1
    return found, maps


def text_shift(program):
    """What is to be added to an offset in the file for the address that it is linked at."""
    segments = subprocess.run(["readelf", "-lW", program], check=True, stdout=subprocess.PIPE, text=True).stdout
    for line in segments.splitlines():
        words = line.split()
        if words[:1] == ["LOAD"] and "E" in words[6:-1]:
            return int(words[2], 16) - int(words[1], 16)
    return 0


def rooms_of(program, offsets):
    """{offset in the file: folder of the source}"""
    shift = text_shift(program)
    addresses = "".join(f"{offset + shift:x}\n" for offset in offsets)
    lines = subprocess.run(["addr2line", "-e", program], input=addresses, check=True, stdout=subprocess.PIPE,
                           text=True).stdout.splitlines()
    rooms = {}
    for offset, line in zip(offsets, lines):
        path = os.path.realpath(line.rpartition(":")[0])
        inside = path.startswith(f"{SOURCE}/")
        rooms[offset] = os.path.dirname(path[len(str(SOURCE)) + 1:]) if inside else "headers of libraries"
    return rooms


def by_room(found, maps):
    offsets, count = collections.defaultdict(set), collections.Counter()
    where = {}
    for (name, ip), _ in found.items():
        for begin, end, offset, file in maps:
            if begin <= ip < end and file == name and "/fabrictrace" in file:
                where[name, ip] = ip - begin + offset
                offsets[name].add(ip - begin + offset)
    rooms = {name: rooms_of(name, sorted(its)) for name, its in offsets.items()}
    for (name, ip), times in found.items():
        if (name, ip) in where:
            count[rooms[name][where[name, ip]]] += times
        else:
            count["the kernel" if name.startswith("[") else Path(name).name] += times
    return count


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--each", type=int, metavar="COUNT")
    parser.add_argument("pids", nargs="+", type=int, metavar="PID")
    args = parser.parse_args()
    begun_s = used_s(args.pids)
    looked_at = samples(args.pids, args.seconds)
    spent_s = used_s(args.pids) - begun_s
    count = by_room(*looked_at)
    total = count.total()
    print(f"{'room':<28} {'seconds':>9} {'share':>7}" + (f" {'us each':>9}" if args.each else ""))
    for room, times in count.most_common():
        room_s = spent_s * times / total
        print(f"{room:<28} {room_s:>9.3f} {times / total:>7.1%}" +
              (f" {room_s / args.each * 1e6:>9.3f}" if args.each else ""))
    print(f"{'all':<28} {spent_s:>9.3f} {len(looked_at[0]):>7} places in {total} samples")


if __name__ == "__main__":
    main()
