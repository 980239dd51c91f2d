#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`fabrictrace plan JOB` where a source port does not determine the path: it is refused, the reason is
given, and nothing is laid down. Each switch here does something that the planner is not told of. Runs in
the build folder."""
import json
import pathlib
import random
import struct
import sys
import tempfile
import unittest
import zlib

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import hashed  # noqa: E402

NOT_BY_PORT = "does not follow from addresses and ports alone"


def crc_with(number, width):
    """CRC32 over the header and one more field, which each flow has a value of its own of."""
    def function(flow):
        src, dst, sport = flow
        key = bytes(map(int, (src + "." + dst).split("."))) + struct.pack(">HHB", sport, 4791, 17)
        return zlib.crc32(key + number(flow).to_bytes(width, "big"))
    return function


def queue_pair(flow):
    """Numbers of receiving queue pairs are of no order that addresses and ports know."""
    return random.Random(repr(flow)).randrange(1 << 24)


def ttl(flow):
    """Of programs that set their own, and hosts behind a router more."""
    return random.Random(repr(flow)).choice((62, 63, 64, 127, 128, 254, 255))


class Refused(unittest.TestCase):
    JOB = hashed.permutation(4)

    def refused(self, lines, flows=len(JOB)):
        """The reasons, of a plan that is asked to be applied."""
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as plans:
            daemon = hashed.Daemon(pathlib.Path(folder), lines)
            try:
                done = daemon.ask("plan", hashed.JOB, "--json", "--apply", plans)
                text = daemon.ask("plan", hashed.JOB)
            finally:
                daemon.stop()
            self.assertEqual(list(pathlib.Path(plans).iterdir()), [])
        self.assertEqual((done.returncode, text.returncode), (65, 65), done.stdout + done.stderr)
        plan = json.loads(done.stdout)
        self.assertEqual(plan["flows"], flows)
        self.assertNotIn("moves", plan)
        self.assertIn("No plan: a source port does not determine the path.", text.stdout)
        for reason in plan["refused"]:
            self.assertIn(reason[:40], text.stdout)
        return plan["refused"]

    def test_queue_pair_in_the_hash(self):
        """As with hash_roce_qpn: a new queue pair has another number, and with it another link."""
        lines = hashed.records(self.JOB, function=crc_with(queue_pair, 3))
        for reason in self.refused(lines):
            self.assertIn(NOT_BY_PORT, reason)
            self.assertIn("the destination queue pair or TTL in the hash", reason)

    def test_ttl_in_the_hash(self):
        lines = hashed.records(self.JOB, function=crc_with(ttl, 1))
        for reason in self.refused(lines):
            self.assertIn(NOT_BY_PORT, reason)
            self.assertIn("the destination queue pair or TTL in the hash", reason)

    def test_the_same_ttl_of_all(self):
        """A field that all packets have alike is no reason."""
        with tempfile.TemporaryDirectory() as folder:
            daemon = hashed.Daemon(pathlib.Path(folder), hashed.records(
                self.JOB, function=crc_with(lambda _: 63, 1)))
            try:
                done = daemon.ask("plan", hashed.JOB, "--json")
            finally:
                daemon.stop()
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertNotIn("refused", json.loads(done.stdout))

    @staticmethod
    def spread(flow, second, bps, moments):
        """A flow's packets over two spines: samples of both paths, with half of the bytes each."""
        src, dst = (list(map(int, a.split("."))) for a in flow[:2])
        for spine, (first, last) in zip((1, 3), moments):
            for line in hashed.sampled(flow, [
                    (f"192.0.2.{src[2]}", src[3], 50 + spine), (f"192.0.2.{100 + spine}", src[2], dst[2]),
                    (f"192.0.2.{dst[2]}", 50 + spine, dst[3])], second, bps / 2):
                yield {**line, "first_ms": line["time_ms"] + first, "last_ms": line["time_ms"] + last}

    def sprayed(self, moments):
        """The reasons where two flows of the job are sprayed, as by adaptive routing; all others are by
        the hash."""
        rest, flows = self.JOB[2:], self.JOB[:2]
        lines = [*hashed.records(rest)]
        for second in range(hashed.SECONDS - 12, hashed.SECONDS):
            for number, flow in enumerate(flows):
                lines.append(hashed.report(flow, second, hashed.SPEED / 2, 100 + number, hashed.JOB))
                lines += self.spread(flow, second, hashed.SPEED / 2, moments)
        lines.sort(key=lambda line: line["time_ms"])
        return self.refused(lines, len(rest))

    def test_several_paths(self):
        """Samples of either path between those of the other, again and again: the packets are spread."""
        self.assertEqual(self.sprayed(((10, 400), (500, 990))), [
            "2 flows take several paths at once: packets are sprayed, or switches route adaptively"])

    def test_path_not_settled(self):
        """Samples of both at the same time, which may be of a flow that moves: there is no plan either."""
        self.assertEqual(self.sprayed(((10, 990), (10, 990))), [
            "2 flows are changing their path: ask again when they stay on one, which they never do where "
            "switches route adaptively"])

    def test_paths_that_change(self):
        """Adaptive routing by flowlets: each second a flow may go elsewhere."""
        def adaptive(flow, second):
            return random.Random(f"{flow} {second // 2}").randrange(hashed.SPINES)

        lines = []
        for second in range(hashed.SECONDS):
            flows = [(f, hashed.SPEED / 5000) for f, since in hashed.churn(1) if since <= second < since + 5]
            if second >= hashed.SECONDS - 12:
                flows += [(f, hashed.SPEED / 4) for f in self.JOB]
                lines += [hashed.report(f, second, hashed.SPEED / 4, n, hashed.JOB)
                          for n, f in enumerate(self.JOB)]
            for flow, bps in flows:
                lines += hashed.observations(flow, second, bps, lambda f, s=second: adaptive(f, s))
        text = " ".join(self.refused(lines, flows=self.counted(lines)))
        self.assertTrue(NOT_BY_PORT in text or "several paths at once" in text or "too few flows" in text, text)

    def counted(self, lines):
        """Flows of the job with a path, which are not all where paths change all the time."""
        with tempfile.TemporaryDirectory() as folder:
            daemon = hashed.Daemon(pathlib.Path(folder), lines)
            try:
                return json.loads(daemon.ask("plan", hashed.JOB, "--json").stdout)["flows"]
            finally:
                daemon.stop()

    def test_tunnels(self):
        """What switches hash is the outer header, whose port the tunnel's end chooses."""
        lines = []
        for line in hashed.records(self.JOB):
            flow = line["flow"]
            if line["schema"] == "fabrictrace.observation.v1" and \
                    (flow["src"], flow["dst"], flow["sport"]) in self.JOB[:3]:
                line["outer"] = {"src": "192.0.2.201", "dst": "192.0.2.202", "sport": 55555, "dport": 4789,
                                 "proto": 17}
            lines.append(line)
        self.assertIn("3 flows run in tunnels, whose outer header is what switches hash", self.refused(lines))

    def test_source_routed(self):
        """Whose address bears its path (SRv6) goes there whatever its source port is."""
        lines = []
        for line in hashed.records(self.JOB):
            flow = line["flow"]
            if line["schema"] == "fabrictrace.observation.v1" and \
                    (flow["src"], flow["dst"], flow["sport"]) in self.JOB[:3]:
                line["source_routed"] = True
            lines.append(line)
        self.assertIn("3 flows bear their path in their address: their source port decides nothing",
                      self.refused(lines, len(self.JOB) - 3))


if __name__ == "__main__":
    unittest.main()
