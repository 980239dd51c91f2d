# SPDX-License-Identifier: Apache-2.0
"""Mutants of a C source: one operator or constant changed in each.

Tokens, not a parser: what the tree's style writes in one manner alone (a binary operator has a blank on
both sides, a pointer's star has not) is told apart by that, and what does not compile is no mutant.
"""

import re
from dataclasses import dataclass

# Each with what stands for it in a mutant.
OPERATORS = {
    "<": ("<=", ">="), "<=": ("<", ">"), ">": (">=", "<="), ">=": (">", "<"),
    "==": ("!=",), "!=": ("==",), "&&": ("||",), "||": ("&&",),
    "+": ("-",), "-": ("+",), "*": ("/",), "/": ("*",), "%": ("/",),
    "&": ("|",), "|": ("&",), "^": ("|",), "<<": (">>",), ">>": ("<<",),
    "+=": ("-=",), "-=": ("+=",), "|=": ("&=",), "&=": ("|=",),
}
TOKEN = re.compile(
    r"(?P<blank>\s+|/\*.*?\*/|//[^\n]*)"
    r"|(?P<directive>(?<![^\n])[ \t]*#(?:[^\n\\]|\\.)*)"
    r"|(?P<text>\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*')"
    r"|(?P<word>[A-Za-z_]\w*)"
    r"|(?P<number>0[xX][0-9a-fA-F]+[uUlL]*|\d+\.?\d*(?:[eE][-+]?\d+)?[uUlLfF]*)"
    r"|(?P<sign>->|\+\+|--|<<=|>>=|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|.)",
    re.S | re.M)


@dataclass(frozen=True)
class Mutant:
    """`size` characters from `start` on become `text`."""

    start: int
    size: int
    text: str

    def apply(self, source):
        return source[:self.start] + self.text + source[self.start + self.size:]

    def line(self, source):
        return source.count("\n", 0, self.start) + 1

    def lines(self, source):
        """The line before and after."""
        begin = source.rfind("\n", 0, self.start) + 1
        end = source.find("\n", self.start)
        old = source[begin:end]
        return old.strip(), (old[:self.start - begin] + self.text + old[self.start - begin + self.size:]).strip()


def tokens(source):
    """(kind, text, where), without blanks, comments and directives."""
    return [(match.lastgroup, match[0], match.start()) for match in TOKEN.finditer(source)
            if match.lastgroup not in ("blank", "directive")]


def is_binary(source, where, text):
    return source[where - 1] in " \n" and source[where + len(text)] in " \n"


def of_number(text):
    """Another number in the same notation; None for those of floating point."""
    match = re.fullmatch(r"(0[xX][0-9a-fA-F]+|\d+)([uUlL]*)", text)
    if not match:
        return None
    value = int(match[1], 0) if not re.fullmatch(r"0\d+", match[1]) else int(match[1], 8)
    return [f"{other}{match[2]}" for other in ([1] if value == 0 else [value + 1, value - 1])]


def mutants(source):
    """All mutants of a source, in its order."""
    found = []
    depth = 0  # of braces: declarations of the file are no code
    previous = ""
    for kind, text, where in tokens(source):
        others = ()
        if kind == "sign" and text in OPERATORS and depth and is_binary(source, where, text):
            others = OPERATORS[text]
        elif kind == "sign" and text in ("++", "--"):
            others = ("--" if text == "++" else "++",)
        elif kind == "sign" and text == "!" and depth:
            others = ("",)
        elif kind == "number" and previous != "case":
            others = of_number(text) or ()
        elif kind == "word" and text in ("true", "false"):
            others = ("false" if text == "true" else "true",)
        elif kind == "word" and text in ("continue", "break") and depth:
            others = ("",)
        found += [Mutant(where, len(text), other) for other in others]
        depth += {"{": 1, "}": -1}.get(text, 0) if kind == "sign" else 0
        previous = text
    return found
