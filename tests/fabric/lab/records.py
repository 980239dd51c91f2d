# SPDX-License-Identifier: Apache-2.0
"""The daemon's records as they appear in its NDJSON file, and what they say of paths."""
import json
import time
from dataclasses import dataclass

from .traffic import Flow
from .waited import Waited


@dataclass(frozen=True)
class Seen:
    """A record and when it was read, in Unix milliseconds."""
    at_ms: float
    record: dict

    @property
    def flow(self):
        return flow_of(self.record)


class RecordFile:
    """Follows a file that is being written. A line counts once it is complete."""

    def __init__(self, path):
        self.path = path
        self.file = None
        self.rest = b""
        self.seen = {}
        self.waited = Waited()

    def poll(self):
        """Reads what is new. Returns self, so that a condition can go on from it."""
        self.waited.look(time.time() * 1000)
        if not self.file:
            try:
                self.file = open(self.path, "rb")
            except FileNotFoundError:
                return self
        now = time.time() * 1000
        *lines, self.rest = (self.rest + self.file.read()).split(b"\n")
        for line in lines:
            record = json.loads(line)
            self.seen.setdefault(record["schema"], []).append(Seen(now, record))
        return self

    def close(self):
        if self.file:
            self.file.close()

    def follow(self, seconds):
        """Reads for a while, often enough that at_ms is good to 50 ms."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            time.sleep(min(0.05, left))
            self.poll()
        return self

    def of(self, kind, since_ms=0):
        """Seen records of fabrictrace.KIND.v1."""
        return [s for s in self.seen.get(f"fabrictrace.{kind}.v1", ()) if s.at_ms >= since_ms]


def flow_of(holder):
    flow = holder["flow"]
    return Flow(flow["src"], flow["dst"], flow["sport"])


def path_of(hops):
    """A record's hops as a path of lab.truth."""
    return tuple((hop.get("switch"), hop.get("in"), hop.get("out")) for hop in hops)


def latest_paths(records, since_ms=0):
    """{Flow: its newest path record}."""
    return {seen.flow: seen.record for seen in records.of("path", since_ms)}
