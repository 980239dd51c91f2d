#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_tested.py finds what it is there to find: in a small tree that it lets pass, one fault at a
time."""
import sys

sys.dont_write_bytecode = True
from rooms import report  # noqa: E402

MODULE = "#ifndef A\n#define A\n/* What ft_b() needs; */\n#include \"x.h\"\nint ft_a(int x,\n         int y);\n#endif\n"
TYPES = """/* Types: ft_f(x); is not declared here. */
#define FT_ALL(x) \\
    ft_all(x);
typedef void ft_each(void *arg);
struct ft_x {
    void (*each)(void *arg);
    int a;
};
static inline int ft_x(int a)
{
    return ft_y(a);
}
"""
TREE = {
    "lib/base/a.h": MODULE,
    "lib/base/types.h": TYPES,
    "lib/base/a_impl.h": "int ft_part(void);\n",
    "proto/fabrictrace.pb-c.h": "int ft_made(void);\n",
    "daemon/join/b.h": "struct ft_b *ft_b_new(void);\n",
    "agent/nccl/c.h": "int ft_c(void);\n",
    "agent/nccl/d.h": "int ft_d(void);\n",
    "tests/unit/check_a.c": '#include "lib/base/a.h"\n',
    "tests/unit/check_join.c": "int main(void) { return 0; }\n",
    "tests/nccl/live.py": "",
    "tests/headers/tested": "# Why\n\ndaemon/join/b.h  unit/check_join.c nccl/live.py\nagent/nccl/  nccl/live.py\n",
}
ROWS = TREE["tests/headers/tested"]
FAULTS = {
    "a new module": (
        {"lib/io/new.h": MODULE}, "lib/io/new.h: no C file of tests/ includes it, and tests/headers/tested"),
    "a module whose test is gone": (
        {"tests/unit/check_a.c": "int main(void) { return 0; }\n"}, "lib/base/a.h: no C file of tests/"),
    "a benchmark is no test": (
        {"tests/unit/check_a.c": "int main(void) { return 0; }\n", "tests/bench/a.c": '#include "lib/base/a.h"\n'},
        "lib/base/a.h: no C file of tests/"),
    "a row of a module that is gone": (
        {"tests/headers/tested": ROWS + "lib/base/gone.h  nccl/live.py\n"},
        "lib/base/gone.h: there is no such module"),
    "a row that is not needed any more": (
        {"tests/headers/tested": ROWS + "lib/base/a.h  nccl/live.py\n"}, "lib/base/a.h: there is no such module"),
    "a row of a folder that is not needed": (
        {"tests/headers/tested": ROWS + "lib/  nccl/live.py\n"}, "lib/: there is no such module"),
    "a row whose test is gone": (
        {"tests/headers/tested": ROWS.replace("unit/check_join.c", "unit/check_gone.c")},
        "daemon/join/b.h: there is no tests/unit/check_gone.c"),
    "a row without a test": (
        {"tests/headers/tested": ROWS.replace("  unit/check_join.c nccl/live.py", "")}, "daemon/join/b.h: no test"),
}

if __name__ == "__main__":
    sys.exit(report("check_tested.py", TREE, FAULTS))
