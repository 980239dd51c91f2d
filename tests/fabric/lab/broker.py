# SPDX-License-Identifier: Apache-2.0
"""A Kafka broker in the lab's collector, by the scripts of tests/kafka."""
import subprocess
import sys
from collections import Counter
from pathlib import Path

from .fabric import LabError
from .layout import COLLECTOR

SCRIPT = Path(__file__).resolve().parents[2] / "kafka" / "broker.py"
PORT = 9092
SHOWN = 2


class Broker:
    """Starts at once; ends with the lab, as all that runs in it does."""

    endpoint = f"127.0.0.1:{PORT}"

    @staticmethod
    def fetch():
        """Fetches the broker's files, once for all labs: in here there is no way out of the lab."""
        done = subprocess.run([sys.executable, SCRIPT, "fetch"])
        if done.returncode:
            raise LabError("the Kafka broker could not be fetched")

    def __init__(self, fabric):
        self.fabric = fabric
        self.dir = fabric.dir / "kafka"
        fabric.run(COLLECTOR, sys.executable, SCRIPT, "start", self.dir, str(PORT))

    def consume(self, kind):
        """The (key, value) texts of the topic fabrictrace.KIND.v1, from its beginning."""
        text = self.fabric.run(COLLECTOR, sys.executable, SCRIPT, "consume",
                               f"fabrictrace.{kind}.v1", str(PORT))
        return [tuple(line.split("\t", 1)) for line in text.splitlines()]

    def show(self, kinds):
        count = Counter()
        for kind in kinds:
            rows = self.consume(kind)
            count[kind] = len(rows)
            print(f"  fabrictrace.{kind}.v1: {len(rows)} records")
            for key, value in rows[-SHOWN:]:
                print(f"    {key}\n      {value if len(value) < 400 else value[:400] + ' ...'}")
        return count
