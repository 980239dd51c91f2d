#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Raises and removes labs by hand: a leaf-spine of network namespaces with kernel ECMP, IPv4 and
IPv6, an sFlow exporter in every switch and a collector that all of them and all hosts reach."""
import argparse
import subprocess
import sys
import time

from lab.fabric import (Fabric, LabBusy, LabError, destroy, end_tidily, lab_ids, namespaces,
                        run_dir)
from lab.layout import Layout


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    up = verbs.add_parser("up", help="raise a lab; it stays until `down`")
    up.add_argument("--spines", type=int, default=4)
    up.add_argument("--leaves", type=int, default=4)
    up.add_argument("--hosts", type=int, default=2, help="hosts a leaf")
    up.add_argument("--sampling", type=int, default=50, help="one packet in N (0: no exporters)")
    up.add_argument("--seed", type=int,
                    help="ECMP hash seed, for the same split again (Linux 6.11)")
    down = verbs.add_parser("down", help="remove a lab, also what a crash left of it")
    down.add_argument("--all", action="store_true", help="every lab of this machine")
    verbs.add_parser("list", help="the labs of this machine")
    execute = verbs.add_parser("exec", help="run a command in a node")
    execute.add_argument("node", help="leaf1, spine1, gpu01, collector ...")
    execute.add_argument("command", nargs=argparse.REMAINDER)
    for verb in (up, down, execute):
        verb.add_argument("--id", default="lab", help="which lab (default: lab)")
    args = parser.parse_args()
    end_tidily()
    start = time.monotonic()
    if args.verb == "up":
        lab = Fabric(args.id, Layout(args.spines, args.leaves, args.hosts),
                     sampling=args.sampling, seed=args.seed)
        try:
            lab.up()
        except LabBusy:
            raise
        except BaseException:
            lab.down()
            raise
        print(f"lab {args.id}: {len(lab.layout.nodes)} nodes up in "
              f"{time.monotonic() - start:.2f} s, files in {lab.dir}")
    elif args.verb == "down":
        for lab_id in lab_ids() if args.all else [args.id]:
            count = destroy(lab_id)
            print(f"lab {lab_id}: {count} nodes gone in {time.monotonic() - start:.2f} s")
    elif args.verb == "list":
        for lab_id in lab_ids():
            print(f"{lab_id}: {len(namespaces(lab_id))} nodes, {run_dir(lab_id)}")
    else:
        return subprocess.run(Fabric(args.id).within(args.node, *args.command)).returncode
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (LabError, ValueError) as error:
        sys.exit(f"fabric: {error}")
