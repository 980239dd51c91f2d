#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Traces that we write, run by a real ASTRA-sim, which ASTRA_SIM names: the congestion-aware analytical
binary (ASTRA_SIM_UNAWARE: the other one as well). Every rank has to come to its end; the times of single
collectives have to be those of our model, to the nanosecond. Without one it is skipped, and says so. Run
by ./check astra, or by hand in the build folder."""
import json
import os
import pathlib
import re
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import chakra  # noqa: E402
import check_astra  # noqa: E402
import check_traces  # noqa: E402

SIMULATORS = {name: os.environ[name] for name in ("ASTRA_SIM", "ASTRA_SIM_UNAWARE") if os.environ.get(name)}


def finished(simulator, prefix, network, system, memory, groups=None):
    """When each rank ended, by the simulator's own lines: it exits with 0 where ranks wait for ever, too."""
    words = [f"--workload-configuration={prefix}", f"--network-configuration={network}",
             f"--system-configuration={system}", f"--remote-memory-configuration={memory}"]
    if groups:
        words.append(f"--comm-group-configuration={groups}")
    done = subprocess.run([simulator, *words], text=True, capture_output=True)
    if done.returncode:
        raise AssertionError(done.stdout + done.stderr)
    return {int(rank): int(ns) for rank, ns in
            re.findall(r"sys\[(\d+)\] finished, (\d+) cycles", done.stdout + done.stderr)}


class Known(check_astra.Whatif):
    """Each trace whose times check_astra.py knows, by the simulator itself."""

    def times(self, ranks, shape, count, *words, **more):
        ours = super().times(ranks, shape, count, *words, **more)
        memory = self.folder / "m.json"
        memory.write_text(json.dumps({"memory-type": "NO_MEMORY_EXPANSION"}))
        simulator = SIMULATORS.get("ASTRA_SIM_UNAWARE" if "--unaware" in words else "ASTRA_SIM")
        if simulator and not self.differs(shape, count, words):
            found = finished(simulator, self.prefix, self.folder / "n.yml", self.folder / "s.json", memory,
                             self.folder / "g.json" if more.get("groups") else None)
            self.assertEqual(found, dict(enumerate(ours)))
        return ours

    def differs(self, shape, count, words):
        """What it refuses, or does not do though the trace says so."""
        if "--unaware" not in words and (isinstance(shape, list) or (shape, count) == ("Ring", 2)):
            return True
        return self._testMethodName in ("test_control_dependencies", "test_group_0_is_all_ranks")


class Exported(check_traces.Traces):
    def test_simulated(self):
        self.assertEqual(self.export(self.STEP, "train")[0], 0)
        ours = self.simulate()
        for name, simulator in SIMULATORS.items():
            found = finished(simulator, self.prefix, f"{self.prefix}.network.yml",
                             f"{self.prefix}.system.json", f"{self.prefix}.memory.json",
                             f"{self.prefix}.groups.json")
            print(f"{name}: {found}, our model: {ours}")
            self.assertEqual(sorted(found), list(range(len(ours))))
            if name == "ASTRA_SIM":
                self.assertEqual(found, dict(enumerate(ours)))


if __name__ == "__main__":
    if not SIMULATORS:
        print("skipped: a real ASTRA-sim: set ASTRA_SIM to its analytical, congestion-aware binary\n"
              "0 passed, 0 failed, 1 skipped")
        sys.exit(0)
    suite = unittest.TestSuite([unittest.defaultTestLoader.loadTestsFromTestCase(Known), Exported("test_simulated")])
    result = unittest.TextTestRunner().run(suite)
    failed = len(result.failures) + len(result.errors)
    print(f"{max(0, result.testsRun - failed)} passed, {failed} failed, 0 skipped")
    sys.exit(1 if failed else 0)
