#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""fabrictrace-records(7) against fabrictrace.proto, which is read here anew: each record, object and
enumeration has its part, each field its type and meaning, each enumeration its words, each schema its
row. A field without a comment ends the generator with its name."""
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = Path(os.environ.get("srcdir", ".")).resolve()
PROTO, AWK_SCRIPT = SOURCE / "proto/fabrictrace.proto", SOURCE / "man/records.awk"
ANSWERS = "\n// Answers of the HTTP API that are not published records"
WIRE_ONLY = ("Record", "Batch")
SIMPLE = {"uint32": "integer", "uint64": "integer", "int64": "integer", "sint32": "integer",
          "double": "number", "bool": "true or false", "string": "string", "bytes": "IP address"}
failures = []


def check(what, good, detail=""):
    if not good:
        print(f"FAIL {what}{detail and ': '}{detail}")
        failures.append(what)


def page():
    built = Path("man/fabrictrace-records.7")
    return (built if built.exists() else SOURCE / built).read_text()


def messages(text):
    """{heading of the part: (kind, name, [(field or value, type, repeated)])}"""
    found = {}
    schema = None
    for block in re.finditer(r"^// schema: (\S+)$|^(message|enum) (\w+) \{\n(.*?)^\}", text, re.M | re.S):
        if block[1]:
            schema = block[1]
            continue
        kind, name, body = block[2], block[3], block[4]
        if kind == "enum":
            fields = [(value, None, False) for value in re.findall(r"^  (\w+) = \d+;", body, re.M)]
        else:
            fields = [(field, type_, how == "repeated") for how, type_, field in re.findall(
                r"^  (optional|repeated) (\w+) (\w+) = \d+(?: \[packed = true\])?;", body, re.M)]
        check(f"{name}: no field is passed over", len(fields) == len(re.findall(r"^  \w.*;", body, re.M)))
        if name not in WIRE_ONLY:
            found[schema or name] = kind, name, fields
        schema = None
    return found


def parts(text):
    """{heading: {item: (its line, the first line of its text)}}"""
    found = {}
    for part in text[text.index(".Sh RECORD FIELDS"):text.index(".Sh SEE ALSO")].split("\n.Ss ")[1:]:
        heading, _, body = part.partition("\n")
        items = {}
        for item in re.split(r"^\.It ", body, flags=re.M)[1:]:
            line, _, meaning = item.partition("\n")
            items[line.split()[1]] = line, meaning.split("\n.El")[0].strip()
        found[heading] = items
    return found


def word(enum, value):
    prefix = re.sub(r"([a-z])([A-Z])", r"\1_\2", enum).upper() + "_"
    return value[len(prefix):].lower()


def check_page(text):
    wanted, found = messages(PROTO.read_text()), parts(text)
    check("it has the parts of the definition", list(found) == list(wanted),
          str(set(found) ^ set(wanted)))
    for heading, (kind, name, fields) in wanted.items():
        items = found.get(heading, {})
        names = [word(name, f) if kind == "enum" else f for f, _, _ in fields]
        check(f"{heading}: every field, in order", list(items) == names, str(set(items) ^ set(names)))
        for (field, type_, repeated), shown in zip(fields, names):
            line, meaning = items.get(shown, ("", ""))
            check(f"{heading}.{field}: a meaning", re.search(r"\w{2}", meaning), meaning)
            if kind == "enum":
                continue
            known = "bytes" if line.endswith(", message") else SIMPLE.get(type_, type_)
            check(f"{heading}.{field}: its type", known.split()[0] in line, line)
            check(f"{heading}.{field}: whether it is a list", ("list of" in line) == repeated, line)
            if re.search(r"_(ms|ns|us|bps|bytes)$", field):
                check(f"{heading}.{field}: its unit", ", " in line, line)
    topics = messages(PROTO.read_text().partition(ANSWERS)[0])
    for heading in wanted:
        if heading.startswith("fabrictrace."):
            check(f"{heading} is among the topics if it is published",
                  (f"\n.It {heading} Ta " in text) == (heading in topics))
    return sum(len(fields) for _, _, fields in wanted.values())


def advised():
    """{where its words are listed: (words, the page's text)}: states and the like, each of which has an
    item in a table that says what to do."""
    proto, pages = PROTO.read_text(), (SOURCE / "man/fabrictrace-records.7.in").read_text()
    for enum, heading in (("Verdict", "Imbalance"), ("Kind", "Events"), ("Syndrome", "Diagnoses")):
        body = re.search(rf"^enum {enum} \{{\n(.*?)^\}}", proto, re.M | re.S)[1]
        words = [word(enum, value) for value in re.findall(r"^  (\w+) = [1-9]\d*;", body, re.M)]
        yield enum, words, pages.split(f"\n.Ss {heading}\n")[1].split("\n.Ss ")[0]
    for source, heading, page_ in (
            ("lib/fabric/evidence.c", ".Ss Paths\n", pages),
            ("daemon/pairing/pairing.c", ".It Cm qps\n", (SOURCE / "man/fabrictrace.1").read_text())):
        names = re.findall(r"^ +\[FT_(?:REASON|PAIR)_\w+\] = \"(\w+)\"", (SOURCE / source).read_text(),
                           re.M)
        words = [name for name in names if name not in ("paired", "reported")]
        yield source, words, page_.split(heading)[1].split("\n.Ss ")[0].split("\n.It Cm doctor\n")[0]


def check_advice():
    """Each word's item is there, with an instruction: a sentence that begins with a verb, or that there is
    nothing to do."""
    verbs = r"(?:What to do:|Nothing to do|Look|Check|Compare|Watch|Wait|Run|Load|Set|Let|End|All of these end)"
    count = 0
    for source, words, text in advised():
        items = {}
        for item in re.split(r"^\.It ", text, flags=re.M)[1:]:
            line, _, rest = item.partition("\n")
            for name in re.findall(r"\w+", line):
                items.setdefault(name, []).append(rest)
        check(f"{source}: words are found", len(words) > 3, words)
        for name in words:
            count += 1
            check(f"{source}: {name} has an item that says what to do",
                  any(re.search(rf"(?:^|\.\n|:\n|^says.*\n){verbs}|What to do:|is cleared|says whether the sender",
                                rest, re.M) for rest in items.get(name, [])), items.get(name))
    return count


def generate(text):
    with tempfile.NamedTemporaryFile("w", suffix=".proto") as file:
        file.write(text)
        file.flush()
        return subprocess.run(["awk", "-f", AWK_SCRIPT, file.name, file.name], capture_output=True,
                              text=True)


def check_generator():
    text = PROTO.read_text()
    check("the definition has every comment", generate(text).returncode == 0)
    bare, count = re.subn(r"(optional string fabric = 3;) *//.*", r"\1", text, count=1)
    done = generate(bare)
    check("a field without a comment is an error", count and done.returncode == 1 and
          "Path.fabric has no comment" in done.stderr, done.stderr)


if __name__ == "__main__":
    fields = check_page(page())
    check_generator()
    advice = check_advice()
    print(f"{fields} fields and words, {advice} with what to do, {len(failures)} failed")
    sys.exit(1 if failures or fields < 300 else 0)
