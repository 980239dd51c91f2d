#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Dumps as PyTorch's Flight Recorder writes them, by Python's own pickle and json: who stands is named, of
both; what is no plain data is refused and never run. Runs in the build folder."""
import json
import os
import pickle
import pickletools
import random
import subprocess
import sys
import tempfile
from pathlib import Path

TOOL = Path("cli/fabrictrace").resolve()
NS = 1_760_000_000_000_000_000
failures = []


def check(what, good, detail=""):
    print(f"{'ok' if good else 'FAIL'}: {what}{'' if good else f': {detail}'}", flush=True)
    if not good:
        failures.append(what)


def entry(number, group, name, state, at, p2p=False, size=1024):
    end = at + 2_000_000
    return {"record_id": number, "pg_id": 0, "process_group": (group, "default_pg"), "collective_seq_id": number,
            "p2p_seq_id": number if p2p else 0, "op_id": number, "profiling_name": f"nccl:{name}",
            "time_created_ns": at, "duration_ms": None, "input_sizes": [[size, 4]], "input_dtypes": ["Float"],
            "output_sizes": [[size, 4]], "output_dtypes": ["Float"], "state": state,
            "time_discovered_started_ns": at + 1_000_000 if state != "scheduled" else None,
            "time_discovered_completed_ns": end if state == "completed" else None,
            "retired": state == "completed", "timeout_ms": 600000, "is_p2p": p2p,
            "frames": [{"name": "train", "filename": "a \"b\"\\ü.py", "line": 7}] * 3}


def stage(rank, ranks):
    """A pipeline whose first stage stops after 400 messages; each rank numbers its own, and keeps 200."""
    entries, number = [], 0
    for k in range(400):
        for name, is_there in ((f"recv {rank}<-{rank - 1}", rank > 0), (f"send {rank}->{rank + 1}", rank < ranks - 1)):
            if is_there:
                number += 1
                entries.append(entry(number, "0", name, "completed", NS + k * 10_000_000 + rank * 1_000_000, True))
    if rank:
        entries.append(entry(number + 1, "0", f"recv {rank}<-{rank - 1}", "started", NS + 5_000_000_000, True))
    return entries[-200:]


def dump(rank, ranks, fault, first=1):
    """40 all-reduces and then what the fault makes of them."""
    entries = []
    for k in range(first, 41):
        name = "all_gather" if fault == "other" and rank == 2 and k == 40 else "all_reduce"
        state = "completed"
        if k == 40 and fault in ("hang", "other"):
            if fault == "hang" and rank == 2:
                continue
            state = "started"
        entries.append(entry(k, "0", name, state, NS + k * 10_000_000 + rank * 1000))
    if fault == "hang" and rank != 2:
        # Queued behind what stands.
        entries.append(entry(41, "0", "all_reduce", "scheduled", NS + 410_000_000))
    if fault == "pair":
        own = {0: "send 0->3", 3: "recv 3<-0"}.get(rank)
        for k in range(1, 11) if own else ():
            state = "started" if k == 10 else "completed"
            entries.append(entry(k, "0", own, state, NS + 500_000_000 + k * 10_000_000, True))
    if fault == "stage":
        entries = stage(rank, ranks)
    return {"version": "2.4", "pg_config": {"0": {"name": "0", "desc": "default_pg",
                                                  "ranks": str(list(range(ranks)))}},
            "pg_status": {"0": {"last_enqueued_collective": 41, "last_completed_collective": 39}},
            "entries": entries}


def write(folder, way, fault, ranks=4):
    for rank in range(ranks):
        # The rings of the ranks do not go back equally far.
        data = dump(rank, ranks, fault, 1 + 3 * rank)
        path = Path(folder) / f"nccl_trace_rank_{rank}"
        if way == "json":
            path.write_text(json.dumps(data))
        else:
            path.write_bytes(pickle.dumps(data, protocol=way))


def diagnose(path, *more):
    done = subprocess.run([TOOL, "diagnose", "--operations", path, "--json", *more], capture_output=True)
    return done.returncode, [json.loads(x) for x in done.stdout.decode().splitlines()], done.stderr.decode()


def faults():
    for way in ("json", 2, 3, 4, 5):
        for fault, expected in (("none", []), ("hang", [("noncomm_hang", 2)]), ("other", [("mismatch", 2)]),
                                ("pair", [("comm_hang", 0)]), ("stage", [("noncomm_hang", 0)])):
            with tempfile.TemporaryDirectory() as folder:
                write(folder, way, fault)
                code, found, err = diagnose(folder)
                check(f"{way} {fault}", code == 0 and
                      [(r["syndrome"], r.get("rank")) for r in found] == expected, (code, found, err))
                if fault == "hang" and found:
                    check(f"{way}: who waits, and where", found[0]["ranks_waiting"] == [0, 1, 3] and
                          (found[0]["operation"], found[0]["communicator"]) == ("AllReduce", "0"), found)
                if fault == "pair" and found:
                    check(f"{way}: the pair", found[0].get("peer") == 3, found)


class Evil:
    def __reduce__(self):
        return os.system, ("touch ran",)


def hostile():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "nccl_trace_rank_0"
        for protocol in (2, 3, 4, 5):
            path.write_bytes(pickle.dumps({"entries": [Evil()]}, protocol=protocol))
            code, found, err = diagnose(path)
            check(f"a pickle that calls is refused ({protocol})", (code, found) == (65, []) and
                  "plain data" in err, (code, err))
        check("and nothing was run", not Path("ran").exists() and not (Path(folder) / "ran").exists())
        loop = {"entries": []}
        loop["entries"].append(loop)
        path.write_bytes(pickle.dumps(loop))
        check("one that contains itself ends", diagnose(path)[0] in (0, 65))
        whole = pickle.dumps(dump(0, 4, "hang", 38), protocol=4)
        codes = set()
        for cut in range(1, len(whole), 7):
            path.write_bytes(whole[:cut])
            codes.add(diagnose(path)[0])
        check("cut anywhere it is refused", codes == {65}, codes)
        rng = random.Random(5)
        for _ in range(60):
            bad = bytearray(whole)
            for _ in range(3):
                bad[rng.randrange(1, len(bad))] = rng.randrange(256)
            path.write_bytes(bad)
            codes.add(diagnose(path)[0])
        check("damaged it ends in order", codes <= {0, 65}, codes)
        Path(folder, "nccl_trace_rank_0").write_text('{"entries": ' + "[" * 100000)
        check("too deep is refused", diagnose(path)[0] == 65)
        other = Path(folder) / "notes"
        other.write_text("{}")
        code, _, err = diagnose(other)
        check("a dump without a rank's number", code == 65 and "rank" in err, err)


def opcodes():
    """What Python writes of such dumps is what is read: no opcode is missing."""
    seen = {op.name for protocol in (2, 3, 4, 5)
            for op, _, _ in pickletools.genops(pickle.dumps(dump(1, 4, "pair"), protocol=protocol))}
    check("the opcodes are of many kinds", len(seen) > 15, seen)


def main():
    faults()
    hostile()
    opcodes()
    print(f"{len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
