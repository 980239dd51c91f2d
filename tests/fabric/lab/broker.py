# SPDX-License-Identifier: Apache-2.0
"""A Kafka broker in the lab's collector, by the scripts of tests/kafka."""
import subprocess
import sys
from pathlib import Path

from .fabric import LabError
from .layout import COLLECTOR

SCRIPT = Path(__file__).resolve().parents[2] / "kafka" / "broker.py"


class Broker:
    """Starts at once; ends with the lab, as all that runs in it does."""

    @staticmethod
    def fetch():
        """Fetches the broker's files, once for all labs: in here there is no way out of the lab."""
        done = subprocess.run([sys.executable, SCRIPT, "fetch"], stdout=subprocess.DEVNULL)
        if done.returncode:
            raise LabError("the Kafka broker could not be fetched")

    def __init__(self, fabric):
        self.fabric = fabric
        self.dir = fabric.dir / "kafka"
        self.endpoint = self._call("start", self.dir).strip()

    def _call(self, verb, *args):
        return self.fabric.run(COLLECTOR, sys.executable, SCRIPT, verb, *map(str, args))

    def consume(self, kind):
        """The (key, value) texts of the topic fabrictrace.KIND.v1, from its beginning."""
        text = self._call("consume", self.dir, f"fabrictrace.{kind}.v1")
        return [tuple(line.split("\t", 1)) for line in text.splitlines()]
