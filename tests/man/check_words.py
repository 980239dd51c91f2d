#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""packaging/check_words.py finds each private word in a comment, in a text of a program and in
a manual page, and leaves their ordinary senses alone."""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

CHECKER = Path(os.environ.get("srcdir", ".")).resolve() / "packaging/check_words.py"
PRIVATE = (
    "what is told of it", "the kernel tells nothing", "takes its place", "known from the wire alone",
    "within a scope", "the first call claims one", "everything that an agent lacks",
    "until all is whole", "a file that is wanted", "settles the window", "behind the gate",
    "a message out of turn", "a number that was astray", "evidence that is young", "a firm path",
    "evidence that is in doubt", "by the word of an agent", "a pause that is longer is no pause",
    "a peer whose name is none", "what ran before runs on", "what goes on", "of some no more than the switch",
    "what a flow wants", "a request that is under way", "what was seen of late", "the oldest gives way",
    "a longer way than needed", "a standing event", "an event that stands", "a switch that is there twice",
)
ORDINARY = (
    "the file is changed in place", "bytes on the wire", "a neighbour claim", "there is no link",
    "it is no longer used", "each in turn", "turn it on", "kernel.yama.ptrace_scope=3",
    "the end of the file", "two ends of a link", "the event takes place", "on its way to the daemon",
    "the other way round", "was late",
)
failures = []


def check(what, good, detail=""):
    if not good:
        print(f"FAIL {what}: {detail}")
        failures.append(what)


def run(header="", source="", page="", comment="", code=""):
    """(status, output) for a tree of three files with these texts."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for name, text in (("lib/base/a.h", f"/* {header} */\nint whole_turns;\n"),
                           ("lib/base/a.c", f'/* {comment} */\nconst char *s = "a text: "\n "{source}";\n{code}\n'),
                           ("man/a.8", f".Dd today\n{page}\n"), ("proto/fabrictrace.proto", "")):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        done = subprocess.run([sys.executable, CHECKER, root], capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr


def main():
    status, said = run(*("the field's terms",) * 4)
    check("plain words pass", status == 0 and said == "", said)
    for words in PRIVATE:
        for where, file in (("header", "lib/base/a.h:1:"), ("source", "lib/base/a.c:2:"),
                            ("comment", "lib/base/a.c:1:"), ("page", "man/a.8:2:")):
            status, said = run(**{where: words})
            check(f"'{words}' in a {where} is found", status == 1 and said.startswith(file), said)
    for name in ("is_told", "wanted", "settle_link", "host_lacks"):
        status, said = run(code=f"int {name};")
        check(f"the name {name} is found", status == 1 and f": {name}" in said, said)
    status, said = run(code="int whole_turns, lacksadaisical, unwanted_x;")
    check("other names pass", status == 0, said)
    for words in ORDINARY:
        status, said = run(words, words, words, words)
        check(f"'{words}' passes", status == 0, said)
    print(f"{4 * len(PRIVATE) + 4} private and {len(ORDINARY)} ordinary ones, {len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
