# SPDX-License-Identifier: Apache-2.0
"""What came out, held against what the honest put in."""
import json
import re
from collections import Counter

import honest
import rig
from kit import check, equal

UNITS = {"fabrictraced": "fabrictraced", "fabrictrace-agent": "fabrictrace-agent",
         "fabrictrace-switchpoll": "fabrictrace-switchpoll"}
SCALE = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
HONEST = {("fabrictraced", "main"), ("fabrictrace-switchpoll", "golden"),
          ("fabrictrace-agent", honest.HOST)}


def memory_max(program):
    """Of the unit that this program is installed with."""
    unit = honest.TESTS.parent / "packaging" / "systemd" / f"{UNITS[program]}.service.in"
    found = re.search(r"^MemoryMax=(\d+)([KMG])$", unit.read_text(), re.M)
    return int(found.group(1)) * SCALE[found.group(2)]


class Records:
    """The daemon's output, of one or several lives; pid: of the honest job."""

    def __init__(self, sent, pid):
        self.sent, self.pid = sent, pid
        self.resolved, self.wrong = Counter(), []
        self.known = {}  # {key of an elephant: windows in which its path was known}
        self.life, self.mice, self.wires = 0, {}, Counter()
        self.numbered = Counter()
        self.operations, self.events = Counter(), 0
        self.stages, self.unbalanced = 0, []
        self.lines = 0

    def read(self, path):
        """Of one life. The last line may be half, where it was killed."""
        self.life += 1
        with open(path, "rb") as out:
            for line in out:
                if line.endswith(b"\n"):
                    self.take(json.loads(line))
        return self

    def take(self, record):
        self.lines += 1
        kind = record["schema"].split(".")[1]
        if kind == "path":
            self.path(record)
        elif kind == "loss":
            self.account(record)
        elif kind == "collective":
            self.collective(record)

    def path(self, record):
        flow = record["flow"]
        key = flow.get("src"), flow.get("dst"), flow.get("sport")
        known = self.sent.elephants.get(key) or self.sent.mice.get(key)
        if key in self.sent.mice:
            # What is known of a flow is told again; it stays that of its window.
            windows = self.mice.setdefault(key, {})
            windows[self.life, record["window_start_ms"]] = record.get("bytes", 0)
        elif key[0] == honest.HOST_ADDRESS and key[2] in honest.WIRE_SPORTS:
            self.wires[key[2]] += record.get("bytes", 0)
        if not known or record["state"] != "resolved":
            return
        self.resolved[key] += 1
        if key in self.sent.elephants:
            self.known.setdefault(key, set()).add((record["window_start_ms"], record["window_end_ms"]))
        hops = [(h.get("switch"), h.get("in"), h.get("out")) for h in record["hops"]]
        if hops != known.path():
            self.wrong.append((known, record))

    def account(self, record):
        if (record["program"], record["source"]) not in HONEST:
            return
        for stage in record.get("stages", ()):
            self.stages += 1
            out = stage["processed"] + stage["pending"] + sum(rig.drops(stage).values())
            if stage["received"] != out:
                self.unbalanced.append((record["program"], stage))

    def collective(self, record):
        if record.get("host") == honest.OTHER_HOST:
            self.numbered[record["sequence"]] += 1
        elif record.get("host") == honest.HOST and record.get("pid") == self.pid:
            self.events += record.get("events", 0)
            self.operations[json.dumps(record, sort_keys=True)] += 1

    # Verdicts

    def check_paths(self):
        equal("wrong paths", [repr(w) for w in self.wrong[:5]], [])
        resolved = sum(1 for key in self.sent.elephants if self.resolved[key])
        check(f"{resolved} of {len(self.sent.elephants)} elephants and "
              f"{len(self.resolved) - resolved} of {len(self.sent.mice)} mice are resolved",
              resolved > len(self.sent.elephants) / 2)

    def longest_outage(self):
        """For how long an elephant had no path that it had before and after that, in seconds; and how many
        had none for longer than a window. Only where paths are told again each window."""
        longest_ms = interrupted = 0
        for windows in self.known.values():
            windows = sorted(windows)
            gaps = [(after[0] - before[1], before) for before, after in zip(windows, windows[1:])]
            longest_ms = max([longest_ms, *(gap for gap, _ in gaps)])
            interrupted += any(gap > end - start for gap, (start, end) in gaps)
        check(f"{len(self.known)} elephants had a path; {interrupted} had none for longer than a window meanwhile, "
              f"for {longest_ms / 1000:.1f} s at most", self.known)
        return longest_ms / 1000

    def check_accounts(self):
        check(f"received = processed + pending + dropped in {self.stages} stages of honest accounts",
              self.stages and not self.unbalanced, self.unbalanced[:5])

    def lost_mice(self):
        """How many lack bytes; none has more than it sent."""
        told = {key: sum(windows.values()) for key, windows in self.mice.items()}
        doubled = [(key, n) for key, n in told.items() if n > honest.ONE_SAMPLE_BYTES]
        equal("mice with more bytes than their one sample", doubled[:5], [])
        return sum(1 for key in self.sent.mice
                   if told.get(key) != honest.ONE_SAMPLE_BYTES)


def check_memory(peaks):
    for name, peak in peaks.items():
        most = memory_max(name)
        check(f"peak memory of {name}: {peak >> 20} of {most >> 20} MiB", 0 < peak < most)
