#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`fabrictrace export chakra` and `import chakra`: what is written, read by protoc with messages of
the published schema; run by the program's own model of the simulator; and read back as flows. Runs in
the build folder."""
import csv
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import chakra  # noqa: E402
import hashed  # noqa: E402

TOOL = os.environ.get("FABRICTRACE", "cli/fabrictrace")
MIB = 1 << 20
AT_MS = 1700000000000


def record(op, rank, start_ms, took_ms, comm="c1", ranks=4, host=None, size=MIB, **more):
    return {"schema": "fabrictrace.collective.v1", "time_ms": AT_MS + start_ms + took_ms,
            "start_ms": AT_MS + start_ms, "duration_us": 1000 * took_ms, "host": host or f"h{rank}",
            "pid": 100 + rank, "job": "train", "comm_id": comm, "rank": rank, "ranks": ranks,
            "op": op, "bytes": size, "algo": "RING", **more}


def delimited(data):
    """The messages of a file, and their bytes."""
    at = 0
    while at < len(data):
        size = shift = 0
        while True:
            byte = data[at]
            at += 1
            size |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
        yield data[at:at + size]
        at += size


def decode(kind, data):
    return subprocess.run(["protoc", f"--decode={kind}", f"--proto_path={HERE}", "et_def.proto"],
                          input=data, capture_output=True, check=True).stdout.decode()


def nodes_of(path):
    """Nodes as protoc reads them: id, type, deps, duration, attributes by name."""
    head, *nodes = delimited(path.read_bytes())
    assert decode("GlobalMetadata", head) == 'version: "0.0.4"\n'
    found = []
    for node in nodes:
        text = decode("Node", node)
        assert not re.search(r"^ *\d+[:{ ]", text, re.M), text  # nothing that the schema does not know
        found.append({
            "id": int(re.search(r"^id: (\d+)", text, re.M)[1]),
            "type": re.search(r"^type: (\w+)", text, re.M)[1],
            "deps": [int(x) for x in re.findall(r"^data_deps: (\d+)", text, re.M)],
            "duration": sum(map(int, re.findall(r"^duration_micros: (\d+)", text, re.M))),
            **{name: (member, value.strip('"')) for name, member, value in
               re.findall(r'name: "(\w+)"\n +(\w+): (.+)', text)}})
    return found


class Traces(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.prefix = self.folder / "t"
        self.topology = self.folder / "t.yaml"
        self.topology.write_text(hashed.topology())

    def tool(self, *words):
        done = subprocess.run([TOOL, *map(str, words)], text=True, capture_output=True)
        return done.returncode, done.stdout, done.stderr

    def export(self, records, *words):
        file = self.folder / "r.ndjson"
        file.write_text("".join(json.dumps(r) + "\n" for r in records))
        return self.tool("export", "chakra", "--output", self.prefix, "--topology", self.topology,
                         "--records", file, *words)

    def simulate(self):
        rc, out, err = self.tool("whatif", "--chakra", self.prefix, "--network",
                                 f"{self.prefix}.network.yml", "--system",
                                 f"{self.prefix}.system.json", "--groups",
                                 f"{self.prefix}.groups.json", "--json")
        self.assertEqual((rc, err), (0, ""))
        return [json.loads(line)["finished_ns"] for line in out.splitlines()]

    # A collective of all, 2 ms later one of two pairs of ranks, a transfer beside the latter.
    STEP = [*(record("AllReduce", r, 0, 3, sequence=5) for r in range(4)),
            *(record("AllGather", i, 5, 2, "c2", 2, f"h{r}", 4 * MIB, sequence=1, pid=100 + r)
              for i, r in ((0, 1), (1, 3))),
            record("Send", 0, 6, 4, peer=2, size=3 * MIB, sequence=9),
            record("Recv", 2, 6, 4, peer=0, size=3 * MIB, sequence=9)]

    def test_what_takes_for_ever_is_refused(self):
        """Rates and delays that make times which no number of nanoseconds holds."""
        self.assertEqual(self.export(self.STEP)[0], 0)
        network = pathlib.Path(f"{self.prefix}.network.yml")
        text = network.read_text()
        for key, value in ("bandwidth", "1e-300"), ("latency", "1e300"), ("latency", "4e18"):
            network.write_text(re.sub(f"(?m)^{key}:.*", f"{key}: [{value}]", text))
            rc, out, err = self.tool("whatif", "--chakra", self.prefix, "--network", network, "--system",
                                     f"{self.prefix}.system.json", "--groups", f"{self.prefix}.groups.json",
                                     "--json")
            self.assertEqual((rc, out), (65, ""), (key, value))
            self.assertIn("takes more than a century", err)

    def test_written(self):
        rc, out, err = self.export(self.STEP, "train")
        self.assertEqual((rc, err), (0, ""))
        self.assertEqual(out, f"{self.prefix}: 4 ranks, 3 operations, 12 nodes\n")
        zero, one, two, three = (nodes_of(self.folder / f"t.{r}.et") for r in range(4))
        reduce = zero[0]
        self.assertEqual((reduce["id"], reduce["type"], reduce["deps"]), (1, "COMM_COLL_NODE", []))
        self.assertEqual((reduce["is_cpu_op"], reduce["comm_type"], reduce["comm_size"]),
                         (("bool_val", "false"), ("int64_val", "0"), ("int64_val", str(MIB))))
        self.assertNotIn("pg_name", reduce)
        # The pause of 3 ms, and then the transfer.
        self.assertEqual([(n["type"], n["deps"], n["duration"]) for n in zero[1:]],
                         [("COMP_NODE", [1], 3000), ("COMM_SEND_NODE", [2], 0)])
        self.assertEqual({k: zero[2][k] for k in ("comm_src", "comm_dst", "comm_size")},
                         {"comm_src": ("int32_val", "0"), "comm_dst": ("int32_val", "2"),
                          "comm_size": ("int64_val", str(3 * MIB))})
        self.assertEqual(two[2]["type"], "COMM_RECV_NODE")
        self.assertEqual(two[2]["comm_tag"], zero[2]["comm_tag"])
        # Of the gathered 4 MiB each of the two gives half.
        for rank in (one, three):
            self.assertEqual((rank[1]["duration"], rank[2]["comm_type"][1], rank[2]["comm_size"][1],
                              rank[2]["pg_name"]), (2000, "2", str(2 * MIB), ("string_val", "2")))
        self.assertEqual(json.loads((self.folder / "t.groups.json").read_text()), {"2": [1, 3]})
        self.assertEqual(json.loads((self.folder / "t.memory.json").read_text()),
                         {"memory-type": "NO_MEMORY_EXPANSION"})

    def test_runs(self):
        """Nobody waits for ever, and pauses count."""
        self.assertEqual(self.export(self.STEP)[0], 0)
        finished = self.simulate()
        self.assertEqual(len(finished), 4)
        self.assertGreater(min(finished), 2_000_000)
        self.assertLess(max(finished), 6_000_000)

    def test_overlap(self):
        """What began before the other had ended does not wait for it."""
        records = [*(record("AllReduce", r, 0, 9, sequence=1) for r in range(4)),
                   *(record("AllReduce", r, 3, 2, "c2", sequence=1) for r in range(4)),
                   *(record("AllReduce", r, 9, 2, "c3", sequence=1) for r in range(4))]
        self.assertEqual(self.export(records)[0], 0)
        self.assertEqual([n["deps"] for n in nodes_of(self.folder / "t.2.et")], [[], [], [1]])

    def test_round_trip(self):
        """Exported, read back: the edges and their bytes are those of the operations."""
        self.assertEqual(self.export(self.STEP)[0], 0)
        rc, out, err = self.tool("import", "chakra", self.prefix, "--topology", self.topology)
        self.assertEqual((rc, err), (0, ""))
        rows = list(csv.DictReader(out.splitlines()))
        nics = [hashed.address(1, h) for h in (1, 2, 3, 4)]
        ring = 1.5 * MIB
        want = {(0, 1): ring, (0, 2): 3 * MIB, (1, 2): ring, (1, 3): 2 * MIB, (2, 3): ring,
                (3, 0): ring, (3, 1): 2 * MIB}
        got = {(nics.index(r["src"]), nics.index(r["dst"])): int(r["rate_bps"]) for r in rows}
        self.assertEqual(set(got), set(want))
        for (src, dst), size in want.items():
            share = size / sum(v for (s, _), v in want.items() if s == src)
            self.assertAlmostEqual(got[src, dst], hashed.SPEED * share, delta=1)
        flows = self.folder / "f.csv"
        flows.write_text(out)
        rc, out, err = self.tool("whatif", "--topology", self.topology, "--flows", flows, "--json",
                                 "--policy", "plan")
        self.assertEqual((rc, err), (0, ""))

    def test_left_out(self):
        """What not all ranks reported would wait for ever; what the simulator lacks it refuses."""
        records = [*self.STEP, *(record("AllReduce", r, 20, 1, sequence=6) for r in range(3)),
                   *(record("Reduce", r, 30, 1, sequence=7) for r in range(4)),
                   record("Send", 1, 40, 1, peer=9, sequence=8)]
        rc, out, err = self.export(records)
        self.assertEqual(rc, 0)
        self.assertIn("3 operations, 12 nodes", out)
        self.assertIn("2 operations left out: reported by some of the ranks only", err)
        self.assertIn("1 operation left out: ASTRA-sim runs no such", err)
        self.assertEqual(len(self.simulate()), 4)

    def test_bad_input(self):
        self.assertEqual(self.export(self.STEP, "other")[0], 65)
        self.assertIn("no collective of job 'other'", self.export(self.STEP, "other")[2])
        self.assertEqual(self.export(self.STEP)[0], 0)

        def read_back():
            return self.tool("import", "chakra", self.prefix, "--topology", self.topology)

        trace = self.folder / "t.1.et"
        whole = trace.read_bytes()
        trace.unlink()
        rc, out, err = read_back()
        self.assertEqual((rc, out), (65, ""))
        self.assertIn("a trace of rank 2, and none of rank 1", err)
        trace.write_bytes(chakra.trace([], "0.0.9"))
        rc, out, err = read_back()
        self.assertEqual((rc, out), (65, ""))
        self.assertIn("t.1.et", err)
        trace.write_bytes(whole[:-3])
        self.assertEqual(read_back()[0], 65)
        for words in (("export", "chakra"), ("export", "x", "--output", "y"), ("import", "chakra"),
                      ("import", "chakra", "x")):
            self.assertEqual(self.tool(*words)[0], 64)
        rc, _, err = self.tool("import", "chakra", self.folder / "none", "--topology",
                               self.topology)
        self.assertEqual(rc, 66)
        self.assertIn("no trace of rank 0", err)


if __name__ == "__main__":
    unittest.main()
