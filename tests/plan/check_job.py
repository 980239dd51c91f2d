#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What-if by learnt hashes, and plans of source ports for a job, from a daemon that saw a fabric whose
hash this test knows: what is predicted is held against that hash. Runs in the build folder."""
import json
import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import hashed  # noqa: E402


class Learnt(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.job = hashed.permutation(3)
        cls.daemon = hashed.Daemon(pathlib.Path(cls.folder.name), hashed.records(cls.job))

    @classmethod
    def tearDownClass(cls):
        cls.daemon.stop()
        cls.folder.cleanup()

    def whatif(self, *words):
        done = self.daemon.ask("whatif", "--json", *words)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return {r["figures"]["policy"]: r for r in map(json.loads, done.stdout.splitlines())}

    def test_learnt_is_what_was_observed(self):
        """The first draw has the ports that there were: each link carries what it carried."""
        found = self.whatif("--policy", "learnt,crc32", "--draws", "1")
        observed, learnt = found["observed"]["figures"], found["learnt"]["figures"]
        self.assertEqual(found["learnt"]["guessed"], 0)
        self.assertEqual(found["observed"]["flows"], len(self.job))
        for name in ("layers", "flows_most", "collisions", "hottest", "hottest_load"):
            self.assertEqual(learnt[name], observed[name])
            # The switches' hash by its name.
            self.assertEqual(found["crc32"]["figures"][name], observed[name])

    def test_other_ports(self):
        """Over many draws of ports a good hash is as chance."""
        found = self.whatif("--draws", "200")
        self.assertIn("learnt", found)
        learnt, ecmp = (found[p]["figures"]["flows_most"] for p in ("learnt", "ecmp"))
        self.assertEqual(found["learnt"]["figures"]["draws"], 200)
        self.assertAlmostEqual(learnt["mean"], ecmp["mean"], delta=0.3)
        self.assertGreater(learnt["max"], learnt["min"])

    def test_function_is_asked_for(self):
        done = self.daemon.ask("hash", "--json")
        self.assertNotIn('"function"', done.stdout)
        self.assertEqual(done.stdout.count('"model":"linear"'), hashed.LEAVES, done.stdout)


if __name__ == "__main__":
    unittest.main()
