#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records as they change: a reader made from an earlier fabrictrace.proto (Google's protoc, which shares
no code with us) reads what our programs write now, ours reads what was written then, and the file has
only ever grown: no field or word has another number, name or type. usage: check_evolution.py"""
import json
import os
import subprocess
import sys
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "golden" / "daemon"))
from rig import (DAEMON, LAB, NO_CONFIG, POLLER, TRUST, check, equal, failures, run,  # noqa: E402
                 run_tests)

EARLIER, NOW = HERE / "earlier.proto", HERE.parents[1] / "proto" / "fabrictrace.proto"
CODEC = Path("tests/evolution/codec").resolve()
REPEATED, OBJECT, ENUM = 3, 11, 14
TEXT, BYTES, BOOL = 9, 12, 8


def protoc(file, *args, data=b""):
    return subprocess.run(["protoc", "-I", file.parent, *args, file], input=data, check=True,
                          capture_output=True).stdout


def codec(verb, data):
    return subprocess.run([CODEC, verb], input=data, check=True, capture_output=True).stdout


def varint(data, i):
    n = shift = 0
    while True:
        n |= (data[i] & 127) << shift
        shift, i = shift + 7, i + 1
        if data[i - 1] < 128:
            return n, i


def members(data):
    """{number: values} of a descriptor, which has no fixed-size members that matter here."""
    out, i = {}, 0
    while i < len(data):
        tag, i = varint(data, i)
        if tag & 7 == 2:
            size, i = varint(data, i)
            value, i = data[i:i + size], i + size
        else:
            value, i = varint(data, i)
        out.setdefault(tag >> 3, []).append(value)
    return out


def one(fields, number, default=b""):
    value = fields.get(number, [default])[0]
    return value.decode() if isinstance(value, bytes) else value


class Proto:
    """messages[name][number] = (name, label, type, name of the type); enums[name][number] = word."""

    def __init__(self, file):
        self.file, self.messages, self.enums = file, {}, {}
        for f in members(protoc(file, "--descriptor_set_out=/dev/stdout"))[1]:
            f = members(f)
            self.add(f, "." + one(f, 2), 4, 5)

    def add(self, scope, prefix, messages, enums):
        for m in map(members, scope.get(messages, ())):
            name = f"{prefix}.{one(m, 1)}"
            self.messages[name] = {one(f, 3): (one(f, 1), one(f, 4), one(f, 5), one(f, 6))
                                   for f in map(members, m.get(2, ()))}
            self.add(m, name, 3, 4)
        for e in map(members, scope.get(enums, ())):
            self.enums[f"{prefix}.{one(e, 1)}"] = {one(v, 2, 0): one(v, 1)
                                                   for v in map(members, e.get(2, ()))}

    def decode(self, data):
        """A Batch as nested lists of (name or number, value)."""
        stack = [[]]
        text = protoc(self.file, "--decode=fabrictrace.Batch", data=data).decode()
        for line in map(str.strip, text.splitlines()):
            if line.endswith(" {"):
                stack[-1].append((line[:-2], []))
                stack.append(stack[-1][-1][1])
            elif line == "}":
                stack.pop()
            else:
                stack[-1].append(tuple(line.split(": ", 1)))
        return stack[0]

    def sample(self, message, depth=0):
        """(text for protoc, the same as our JSON) with a value in each field; of a oneof the last."""
        text, data = "", {}
        for number, (name, label, kind, of) in self.messages[message].items():
            if kind == OBJECT:
                if depth > 6:
                    continue
                inner, value = self.sample(of, depth + 1)
                text += f"{name} {{ {inner} }} "
            elif kind == ENUM:
                # The highest, for 0 is what is not there.
                value = self.enums[of][max(self.enums[of])]
                text += f"{name}: {value} "
            elif kind == BYTES:  # addresses, all of them
                value = f"10.0.0.{number}"
                text += f'{name}: "\\n\\0\\0\\x{number:02x}" '
            else:
                value = True if kind == BOOL else f"t{number}" if kind == TEXT else number
                if kind != BYTES:
                    text += f"{name}: {json.dumps(value)} "
            data[name] = [value] if label == REPEATED else value
        return text, data


def known(tree, message, proto):
    """What a reader made from this file knows of the tree; a word that is new is a field unknown."""
    fields = {f[0]: f for f in proto.messages[message].values()}
    out = []
    for name, value in tree:
        new_word = (name in fields and fields[name][2] == ENUM
                    and value not in proto.enums[fields[name][3]].values())
        if name in fields and not new_word:
            out.append((name, known(value, fields[name][3], proto) if isinstance(value, list)
                        else value))
    return out


def unknown(tree):
    return sum(name.isdigit() + (unknown(value) if isinstance(value, list) else 0)
               for name, value in tree)


def without_unknown(tree):
    return [(name, without_unknown(value) if isinstance(value, list) else value)
            for name, value in tree if not name.isdigit()]


def test_only_added(_):
    earlier, now = Proto(EARLIER), Proto(NOW)
    check("there were messages", len(earlier.messages) > 40, len(earlier.messages))
    for name, fields in earlier.messages.items():
        changed = {n: (f, now.messages.get(name, {}).get(n)) for n, f in fields.items()
                   if now.messages.get(name, {}).get(n) != f}
        equal(f"{name}: {len(fields)} fields are as they were", changed, {})
    for name, words in earlier.enums.items():
        changed = {n: (w, now.enums.get(name, {}).get(n)) for n, w in words.items()
                   if now.enums.get(name, {}).get(n) != w}
        equal(f"{name}: {len(words)} words are as they were", changed, {})


def test_older_reader(folder):
    out, observations = folder / "out.ndjson", folder / "observations.ndjson"
    equal("the capture", run(POLLER, *NO_CONFIG, "--set", "source_id=golden", "--replay",
                             LAB / "sflow.pcap", "--output", observations).returncode, 0)
    done = run(DAEMON, *NO_CONFIG, *TRUST, "--set", "source_id=golden", "--set", "window=5s",
               "--topology", LAB / "topology.yaml", "--replay", observations,
               "--sink", f"file:{out}")
    equal("a replay", done.returncode, 0)
    earlier, now = Proto(EARLIER), Proto(NOW)
    golden = HERE.parent / "golden"
    for file in (out, golden / "switchpoll" / "fabric.ndjson", golden / "agent" / "rxe.ndjson"):
        data = codec("pack", file.read_bytes())
        then, today = earlier.decode(data), now.decode(data)
        print(f"{file.name}: {len(today)} records, {unknown(then)} fields unknown then", flush=True)
        check(f"{file.name}: records enough to tell", len(today) > 10)
        equal(f"{file.name}: a reader of today knows all", unknown(today), 0)
        equal(f"{file.name}: what one of then knows it reads alike",
              without_unknown(then) == known(today, ".fabrictrace.Batch", earlier), True)
        if file == out:
            check(f"{file.name}: there is what one of then does not know", unknown(then) > 100)


def test_older_reader_of_all(_):
    """Each kind of record with a value in each field of today, also those that no program writes here."""
    earlier, now = Proto(EARLIER), Proto(NOW)
    new = {}
    for _, (name, _, kind, of) in sorted(earlier.messages[".fabrictrace.Record"].items()):
        if kind != OBJECT:
            continue
        data = protoc(NOW, "--encode=fabrictrace.Batch",
                      data=f"records {{ {name} {{ {now.sample(of)[0]} }} }}".encode())
        then, today = earlier.decode(data), now.decode(data)
        new[name] = unknown(then)
        equal(f"{name}: one of then reads what it knows alike, {new[name]} fields unknown",
              without_unknown(then), known(today, ".fabrictrace.Batch", earlier))
    # What was taken in, two of them, and which flows have not all links of a group to choose from; of the flow
    # of an elephant six fields of packet_loss, and the queue pairs, a field with two in it.
    equal("of partial loads one of then does not know twelve fields", new["partial"], 12)


def holds(want, got):
    """The JSON says what was written; our dialect writes words in small letters, some numbers as text."""
    if isinstance(want, dict):
        return isinstance(got, dict) and all(holds(v, got.get(k)) for k, v in want.items())
    if isinstance(want, list):
        return isinstance(got, list) and len(got) == len(want) and all(map(holds, want, got))
    if isinstance(want, str) and want.isupper():
        return isinstance(got, str) and want.endswith(got.upper())
    return got == want or str(got) == str(want)


def test_newer_reader(_):
    earlier = Proto(EARLIER)
    for number, (name, _, kind, of) in sorted(earlier.messages[".fabrictrace.Record"].items()):
        if kind != OBJECT:
            continue
        text, want = earlier.sample(of)
        data = protoc(EARLIER, "--encode=fabrictrace.Batch",
                      data=f"records {{ {name} {{ {text} }} }}".encode())
        got = json.loads(codec("unpack", data))
        missing = {k: (v, got.get(k)) for k, v in want.items() if not holds(v, got.get(k))}
        equal(f"{name}: all that was written then is read, {len(want)} fields", missing, {})


if __name__ == "__main__":
    os.environ.setdefault("LC_ALL", "C.UTF-8")
    sys.exit(run_tests(test_only_added, test_older_reader, test_older_reader_of_all, test_newer_reader)
             or bool(failures))
