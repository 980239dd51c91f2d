#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_unused.py finds what it is there to find: in a small tree of C files that it lets pass, one
fault at a time."""
import sys

sys.dont_write_bytecode = True
from rooms import report  # noqa: E402

TREE = {
    "lib/base/a.c": "int ft_a(void) { return 1; }\n",
    "daemon/main.c": "int ft_a(void);\nint main(void) { return ft_a(); }\n",
    # Used by its own file, and called by its test.
    "lib/base/b.c": "int ft_b(void) { return 1; }\nint ft_c(void) { return ft_b(); }\n",
    "lib/io/d.c": "int ft_c(void);\nstatic int d(void) { return ft_c(); }\n"
                  "int (*const ft_d)(void) = d;\n",
    "cli/main.c": "extern int (*const ft_d)(void);\nint main(void) { return ft_d(); }\n",
    "tests/unit/check_b.c": "int ft_b(void);\nint test(void) { return ft_b(); }\n",
}

FAULTS = {
    "nobody uses a function": (
        {"lib/base/e.c": "/* ft_e() */\nint ft_e(void) { return 1; }\n"},
        "lib/base/e.c: nobody uses ft_e: remove it"),
    "tests alone use a function": (
        {"lib/base/e.c": "int ft_e(void) { return 1; }\n",
         "tests/unit/check_e.c": "int ft_e(void);\nint test_e(void) { return ft_e(); }\n"},
        "lib/base/e.c: tests alone use ft_e: remove it"),
    "a function of one file is not static": (
        {"lib/base/e.c": "int ft_e(void) { return 1; }\nint ft_a(void);\n",
         "lib/io/d.c": TREE["lib/io/d.c"] + "int ft_f(void) { return 1; }\n"
                       "static int f(void) { return ft_f(); }\nint (*const ft_g)(void) = f;\n",
         "cli/main.c": "extern int (*const ft_d)(void), (*const ft_g)(void);\nint ft_e(void);\n"
                       "int main(void) { return ft_d() + ft_g() + ft_e(); }\n"},
        "lib/io/d.c: ft_f is used in this file alone: make it static"),
    "nobody uses a variable": (
        {"daemon/e.c": "int ft_e = 1;\n"}, "daemon/e.c: nobody uses ft_e: remove it"),
}

if __name__ == "__main__":
    sys.exit(report("check_unused.py", TREE, FAULTS))
