# SPDX-License-Identifier: Apache-2.0
"""A training job of 64 ranks over the lab of namespaces (tests/diagnosis/labjob.py), whose page is looked at."""
import random
import signal
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "fabric")]
sys.path.append(str(HERE.parent / "diagnosis"))
import labjob  # noqa: E402
import speed  # noqa: E402
from lab.fabric import Fabric, LabError  # noqa: E402
from lab.layout import COLLECTOR, Layout  # noqa: E402
from lab.pipeline import HTTP, Pipeline, find_programs  # noqa: E402
from lab.relay import Relay  # noqa: E402

WINDOW_S = 5
STEPS = 25  # until each communicator was used, several times
SAMPLING = 20
NAME = "train-1"


def fabric(seed):
    return Fabric(f"train{time.monotonic_ns() % 10**9}", Layout(spines=4, leaves=4, hosts=2),
                  sampling=SAMPLING, seed=seed)


class Training:
    """The pipeline over a fabric, and the job, which is well."""

    def __init__(self, fabric, build, seed):
        self.fabric, self.build, rng = fabric, Path(build).resolve(), random.Random(seed)
        self.plugin = labjob.program(self.build, "agent/nccl/libnccl-profiler-fabrictrace.so")
        self.pipeline = Pipeline(fabric, find_programs(build), WINDOW_S,
                                 agent=f"nccl:\n  socket: {fabric.dir}/{{host}}.sock\n")
        self.owners = labjob.Owners(fabric)
        self.stopped = rng.randrange(labjob.RANKS)
        self.job = labjob.Job(self, NAME, rng.randrange(1 << 32), compute=60, jitter=0.02)
        deadline = speed.Deadline(60 + 3 * STEPS)
        while min(self.job.steps()) < STEPS:
            if deadline.passed():
                raise LabError(f"{NAME}: steps {sorted(self.job.steps())[:4]} ... of {STEPS}")
            time.sleep(0.2)
            self.job.check_alive()

    def relay(self):
        return Relay(self.fabric, COLLECTOR, int(HTTP.rpartition(":")[2]))

    def host(self, rank):
        return self.fabric.layout.hosts[labjob.host_of(rank)].name

    def told(self):
        """What is true of it, for who looks at the page: by the processes that were started and the routes
        of the kernel."""
        flows = {self.job.flow(rank, slot) for rank in range(labjob.RANKS) for slot in range(labjob.SLOTS)}
        return {"job": NAME, "processes": labjob.RANKS, "hosts": [h.name for h in self.fabric.layout.hosts],
                "flows": len(flows), "rank": self.stopped, "host": self.host(self.stopped)}

    def stop_a_rank(self):
        self.job.ranks[self.stopped].send_signal(signal.SIGSTOP)

    def end(self):
        """What did not end well."""
        self.job.end()
        self.owners.close()
        return self.pipeline.stop()
