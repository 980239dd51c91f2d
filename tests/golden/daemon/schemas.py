#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""fabrictraced --schemas, held against others: records that the daemon writes keep to the JSON Schemas by
the rules of jsonschema, and protoc finds in each proto text what it finds in fabrictrace.proto."""
import json
import os
import re
import sys
from pathlib import Path

import jsonschema

from rig import (DAEMON, HERE, NO_CONFIG, check, equal, failures, records_of, run, run_tests)

PROTO = Path(os.environ.get("srcdir", Path(__file__).parents[3])).resolve() / "proto"
MISSING = {"fabrictrace.partial.v1"}  # between daemons


def schemas(kind):
    done = run(DAEMON, *NO_CONFIG, "--set", f"kafka.format={kind}", "--set", "kafka.topic_prefix=x.",
               "--schemas")
    equal(f"--schemas of {kind}: exit code", (done.returncode, done.stderr), (0, ""))
    return records_of(done.stdout)


def test_json(folder):
    made = schemas("json")
    named = {s["subject"]: json.loads(s["schema"]) for s in made}
    equal("all are JSON", {s["schemaType"] for s in made}, {"JSON"})
    topics = {line.split()[1] for line in run(DAEMON, *NO_CONFIG, "--topics").stdout.splitlines()
              if line.startswith("## ")}
    equal("one for each topic", set(named), {f"x.{t}-value" for t in topics - MISSING})
    for schema in named.values():
        jsonschema.Draft7Validator.check_schema(schema)
    seen = set()
    # What the replays of this folder are held to.
    for record in (r for file in HERE.glob("**/expected*.ndjson")
                   for r in records_of(file.read_text())):
        schema = named[f"x.{record['schema']}-value"]
        jsonschema.Draft7Validator(schema).validate(record)
        seen.add(record["schema"])
        wrong = dict(record, stranger=1)
        if jsonschema.Draft7Validator(schema).is_valid(wrong):
            check(f"{record['schema']}: a stranger is refused", False)
    check("records of several kinds", {"fabrictrace.path.v1", "fabrictrace.link.v1",
                                       "fabrictrace.imbalance.v1"} <= seen, seen)


def parts(folder, name, text):
    """The messages and enums of a proto text, each as protoc says it."""
    (folder / name).write_text(text)
    made = folder / f"{name}.set"
    done = run("protoc", f"-I{folder}", f"--descriptor_set_out={made}", name)
    if not equal(f"{name}: protoc takes it", (done.returncode, done.stderr), (0, "")):
        return set()
    said = run("protoc", "--decode_raw", text=False, stdin=None, input=made.read_bytes())
    # Of FileDescriptorProto 4 are the messages, 5 the enums. What is in one has its number; in which
    # order it comes says nothing.
    return {tuple(sorted(re.split(r"^    (?=\d)", part, flags=re.M)))
            for part in re.findall(r"^  [45] \{\n(.*?)^  \}\n", said.stdout.decode(), re.M | re.S)}


def test_protobuf(folder):
    text = (PROTO / "fabrictrace.proto").read_text()
    whole = parts(folder, "fabrictrace.proto", text)
    check("the file has many", len(whole) > 80, len(whole))
    of_schema = dict(re.findall(r"schema: (fabrictrace\.\w+\.v1)\b.*?^message (\w+)", text, re.M | re.S))
    for schema in schemas("protobuf"):
        name = schema["subject"]
        got = parts(folder, f"{name}.proto", schema["schema"])
        check(f"{name}: it has parts", got)
        equal(f"{name}: as in the file", got - whole, set())
        equal(f"{name}: the record comes first", schema["schema"].split("\nmessage ", 1)[1].split()[0],
              of_schema[name[2:-len("-value")]])


if __name__ == "__main__":
    code = run_tests(test_json, test_protobuf)
    print(f"{'FAIL' if failures else 'PASS'}: schemas for a registry")
    sys.exit(code)
