#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_rooms.py finds what it is there to find: in a small tree of C files that it lets pass, one
fault at a time."""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent

HACKING = """
| layer | is | may use |
|---|---|---|
| `daemon/` | a program | all below |
| `lib/io/` | input | `lib/base/` |
| `proto/` | messages | `lib/base/` |
| `lib/base/` | basics | libc |

| room | is |
|---|---|
| `lib/io/near/` | near |
| `lib/io/far/` | far |
| `daemon/join/` | first |
| `daemon/api/` | last |
"""

TREE = {
    "HACKING.md": HACKING,
    "lib/base/a.c": "struct ft_a {\n    int a;\n};\nint ft_a(void) { return 1; }\n",
    "lib/io/b.c": "int ft_a(void);\nint ft_b(void) { return ft_a(); }\n",
    "proto/c.c": "int ft_a(void);\nint ft_c(void) { return ft_a(); }\n",
    "daemon/join/d.c": "int ft_b(void);\nint ft_d(void) { return ft_b(); }\n",
    "daemon/api/e.c": "int ft_d(void);\nint ft_e(void) { return ft_d(); }\n",
    "daemon/main.c": "int ft_e(void);\nint main(void) { return ft_e(); }\n",
    # Another program may have a symbol of the same name.
    "cli/main.c": "int ft_d(void) { return 0; }\nint main(void) { return ft_d(); }\n",
}

FAULTS = {
    "a lower room needs a higher one": (
        {"daemon/join/f.c": "int ft_e(void);\nint ft_f(void) { return ft_e(); }\n"},
        "daemon/join/f.c: needs ft_e of daemon/api/e.c, but daemon/api/ comes after daemon/join/"),
    "a room needs what lies outside": (
        {"daemon/join/f.c": "int ft_g(void);\nint ft_f(void) { return ft_g(); }\n",
         "daemon/g.c": "int ft_g(void) { return 1; }\n"},
        "daemon/join/f.c: needs ft_g of daemon/g.c, but daemon/ comes after daemon/join/"),
    "two objects of a room need each other": (
        {"daemon/join/f.c": "int ft_g(void);\nint ft_f(void) { return ft_g(); }\n",
         "daemon/join/g.c": "int ft_f(void);\nint ft_g(void) { return ft_f(); }\n"},
        "a circle: daemon/join/f.c needs ft_g of daemon/join/g.c, daemon/join/g.c needs ft_f of daemon/join/f.c"),
    "three objects need one another": (
        {"lib/io/f.c": "int ft_g(void);\nint ft_f(void) { return ft_g(); }\n",
         "lib/io/g.c": "extern int ft_h;\nint ft_g(void) { return ft_h; }\n",
         "lib/io/h.c": "int ft_f(void);\nint ft_h;\nint ft_i(void) { return ft_f(); }\n"},
        "a circle: lib/io/f.c needs ft_g of lib/io/g.c"),
    "a layer needs its sibling": (
        {"lib/io/b.c": "int ft_c(void);\nint ft_b(void) { return ft_c(); }\n"},
        "lib/io/b.c: needs ft_c of proto/c.c, but lib/io/ may not use proto/"),
    "a room of a layer needs what comes after it": (
        {"lib/io/near/f.c": "int ft_g(void);\nint ft_f(void) { return ft_g(); }\n",
         "lib/io/far/g.c": "int ft_a(void);\nint ft_g(void) { return ft_a(); }\n"},
        "lib/io/near/f.c: needs ft_g of lib/io/far/g.c, but lib/io/far/ comes after lib/io/near/"),
    "a room of a layer needs another layer": (
        {"lib/io/near/f.c": "int ft_c(void);\nint ft_f(void) { return ft_c(); }\n"},
        "lib/io/near/f.c: needs ft_c of proto/c.c, but lib/io/ may not use proto/"),
    "HACKING names a file that is gone": (
        {"HACKING.md": HACKING + "\nThe walk: `e.c`, then `daemon/api/gone.c`.\n"},
        "HACKING.md: there is no daemon/api/gone.c"),
    "a layer that is in no table": (
        {"lib/more/f.c": "int ft_f(void) { return 1; }\n"}, "lib/more/f.c: in no room or layer"),
    "a name of two types": (
        {"daemon/api/e.h": "struct ft_a {\n    char b;\n};\n"},
        "ft_a: defined in lib/base/a.c and in daemon/api/e.h"),
    "sources outside the rooms": (
        {f"daemon/f{i}.c": f"int ft_f{i}(void) {{ return 1; }}\n" for i in range(5)},
        "daemon/: 6 sources outside its rooms, over 5"),
}


def verdict(check, files):
    """Exit code and complaints of a check about a tree."""
    with tempfile.TemporaryDirectory() as name:
        src, build = Path(name, "src"), Path(name, "build")
        for path, text in files.items():
            (src / path).parent.mkdir(parents=True, exist_ok=True)
            (src / path).write_text(text, encoding="ascii")
            if path.endswith(".c") and not path.startswith("tests/"):
                (build / path).parent.mkdir(parents=True, exist_ok=True)
                subprocess.run([*os.environ.get("CC", "cc").split(), "-c", src / path, "-o",
                                (build / path).with_suffix(".o")], check=True)
        # What a removed source has left behind counts for nothing.
        (build / "daemon").mkdir(parents=True, exist_ok=True)
        (build / "daemon/gone.o").write_bytes(b"")
        done = subprocess.run([HERE / check, src, build], capture_output=True, text=True, check=False)
        return done.returncode, done.stderr


def report(check, tree, faults):
    """Tries a check on a tree without a fault, and on one with each of the faults."""
    failed = 0
    for case, (files, wanted) in {"a tree without a fault": ({}, ""), **faults}.items():
        code, said = verdict(check, {**tree, **files})
        ok = code == (1 if wanted else 0) and (wanted in said if wanted else said == "")
        ok = ok and len(said.splitlines()) == (1 if wanted else 0)
        print(f"{'ok' if ok else 'FAIL'}: {case}" + ("" if ok else f": {code}: {said}"))
        failed += not ok
    print(f"{failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(report("check_rooms.py", TREE, FAULTS))
