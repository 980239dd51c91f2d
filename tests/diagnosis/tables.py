# SPDX-License-Identifier: Apache-2.0
"""What the generators of tables share: the table as text, the records that come of it, the command line."""
import argparse
import csv
import io
import json
import pathlib
import subprocess
import sys

PROGRAM = pathlib.Path("cli/fabrictrace").resolve()
COLUMNS = ("rank", "host", "communicator", "function", "sequence", "bytes", "start_ns", "end_ns", "peer")


def csv_of(columns, rows, line_end="\r\n"):
    """Lines of these columns; one that a row has not is "x"."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator=line_end)
    writer.writerow(columns)
    writer.writerows([row.get(c, "x") for c in columns] for row in rows)
    return out.getvalue()


def diagnose(text):
    """The records for a table."""
    done = subprocess.run([PROGRAM, "diagnose", "--operations", "-", "--json"], input=text.encode(),
                          capture_output=True, check=False)
    if done.returncode:
        sys.exit(f"exit {done.returncode}: {done.stderr.decode()}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def options(cases, argv=None, about=None):
    """Which cases and seeds are asked for, and where the last table is to be written."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--write", help="the last table, to a file")
    parser.add_argument("cases", nargs="*")
    args = parser.parse_args(argv)
    unknown = [c for c in args.cases if c not in cases]
    if unknown:
        sys.exit(f"no case {unknown[0]!r}; there are: {', '.join(cases)}")
    return args
