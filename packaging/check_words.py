#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Finds words of our own where the field has a term: in comments, in names, in texts that programs
print (logs, errors, findings, help) and in the manual pages. HACKING.md's glossary has the terms.

usage: check_words.py SRCDIR     one line for each find; status 1 when there is one"""
import re
import sys
from pathlib import Path

FOLDERS = ("agent", "cli", "daemon", "lib", "proto", "switchpoll")
# (what it looks like, what to write). An ordinary sense of a word is excluded by what is around it.
PRIVATE = [
    (r"\bt(old|ells?|elling)\b", "reports, shows, logs; is known; distinguishes"),
    (r"(?<![Ii]n )(?<!take )(?<!takes )\bplaces?\b(?!holder)", "position, location, slot, room, port"),
    (r"(?<!on the )\bwires?\b", "samples, packets; on the wire"),
    (r"\bscopes?\b(?!/name)", "namespace; communicator group"),
    (r"(?<!neighbour )\bclaim(s|ed|ing)?\b", "neighbour claim; reports, reserves"),
    (r"\black(s|ed|ing)?\b", "missing capability; has no, needs"),
    (r"\bwhol(e|ly)\b", "complete, all of"),
    (r"\bwanted\b", "requested, followed, used"),
    (r"\bsettl(e|es|ed|ing)\b", "flush, finish, finalise"),
    (r"\bgates?\b", "barrier, condition"),
    (r"(?<!in )\bturns?\b(?!( it| them)? (on|off)\b)", "slot, order; returns"),
    (r"\bastray\b", "outlier"),
    (r"\byoung\b", "recent"),
    (r"\bfirm(ly)?\b", "confirmed"),
    (r"\bdoubt(s|ed|ful)?\b", "uncertain"),
    (r"\b(by the|the|an?|its|their) word (of|counts)\b", "state, report; according to"),
    (r"(?<!there )\bis no (?!longer\b|more\b)[a-z]", "is not a"),
    (r"\bwhose\b[^.;:]*\bis none\b|\bis none of\b", "without; must be one of"),
    (r"\b(goes|go) on\b|\bran before runs on\b", "continues"),
    (r"\bof some no more than\b", "only, alone"),
    (r"\bwants?\b", "needs, requires, requests"),
    (r"\bunder way\b", "in progress, in flight"),
    (r"\bof late\b", "recently, recent"),
    (r"\b(gives?|giving|gave) way\b", "is removed, is replaced"),
    (r"\b(longer|shorter|shortest|short|data's|flow's|packet's|samples') ways?\b", "path"),
    (r"\bstanding (events?|diagnos[ei]s|conditions?)\b|\bevents? that stands?\b", "active event"),
    (r"\bis there (already|twice)\b", "is defined twice, is given twice"),
]
# Parts of names in code: what a text would not say, a name does not either.
PRIVATE_NAMES = re.compile(r"(?:^|_)(told|untold|tells?|telling|wanted|settled?|settling|astray|lacks|lacking|(?<!one_)ways?"
                           r"|places?)(?:_|$)", re.I)
# An option, a field or a system's own name in which such a word stands.
ALLOWED = re.compile(r"ptrace_scope|\.Ql scope\b|^scope$"
                     r"|Scope scope|imbalance Pq Cm scope|\.It Ql scope")
COMPILED = [(re.compile(pattern), advice) for pattern, advice in PRIVATE]


def joined_literals(code):
    """(offset, text) of string literals, one for those that stand side by side."""
    pattern = re.compile(r'"(?:[^"\\\n]|\\.)*"(?:\s*"(?:[^"\\\n]|\\.)*")*')
    for match in pattern.finditer(code):
        yield match.start(), "".join(re.findall(r'"((?:[^"\\\n]|\\.)*)"', match[0]))


def c_texts(text):
    """(offset, text) of what is read: comments, literals that are sentences."""
    comment = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
    for match in comment.finditer(text):
        yield match.start(), re.sub(r"\s*\n\s*\*?\s*", " ", match[0])
    code = comment.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)
    code = re.sub(r"^#\s*include[^\n]*", lambda m: " " * len(m[0]), code, flags=re.M)
    for offset, literal in joined_literals(code):
        if " " in literal.strip():
            yield offset, literal


def page_texts(text):
    for match in re.finditer(r"^(?!\.\\\").+$", text, re.M):
        yield match.start(), match[0]


def names(text):
    """(offset, name) of the names in code, without comments and literals."""
    code = re.sub(r"/\*.*?\*/|//[^\n]*|\"(?:[^\"\\\n]|\\.)*\"", lambda m: re.sub(r"[^\n]", " ", m[0]), text,
                  flags=re.S)
    for match in re.finditer(r"[A-Za-z_]\w*", code):
        yield match.start(), match[0]


def finds(path, text):
    """(line, word, advice, what it stands in) of each private word."""
    texts = c_texts(text) if path.suffix in (".c", ".h") else page_texts(text)
    for offset, piece in texts:
        for pattern, advice in COMPILED:
            for match in pattern.finditer(piece):
                around = piece[max(0, match.start() - 30):match.end() + 30]
                if not ALLOWED.search(around):
                    yield text.count("\n", 0, offset) + 1, match[0], advice, around.strip()
    for offset, name in names(text) if path.suffix in (".c", ".h") else ():
        match = PRIVATE_NAMES.search(name)
        if match:
            yield text.count("\n", 0, offset) + 1, match[1], "what its text would say", name


def files(root):
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*.[ch]")):
            if not path.name.endswith((".pb-c.c", ".pb-c.h")):
                yield path
    yield from sorted(p for p in (root / "man").glob("*") if re.search(r"\.[1578](\.in)?$", p.name))
    yield root / "proto/fabrictrace.proto"


def main():
    root, count = Path(sys.argv[1]), 0
    for path in files(root):
        for line, word, advice, around in finds(path, path.read_text()):
            print(f"{path.relative_to(root)}:{line}: '{word}': write {advice}: {around}")
            count += 1
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
