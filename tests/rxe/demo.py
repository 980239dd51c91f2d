#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What ./demo --rdma shows: queue pairs of perftest on Soft-RoCE, over a leaf-spine with the kernel's
ECMP, in a virtual machine; and each one's tuple, path and owner beside what tcpdump saw.
Exit: 0, 1 when something is wrong, 77 when this machine cannot run a guest."""
import argparse
import pathlib
import signal
import shutil
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(HERE))
import guestfabric  # noqa: E402
import vm  # noqa: E402
from fabricwire import FabricJudge  # noqa: E402
from guestfabric import Layout  # noqa: E402

SECONDS = 300  # until the guest counts as stuck
HEAD = ("DEVICE", "QP", "FLOW", "TUPLE", "PATH", "OWNER", "VERDICT")


def say(text):
    print(text, flush=True)


def section(title):
    bold = ("\033[1m", "\033[0m") if sys.stdout.isatty() else ("", "")
    say(f"\n{bold[0]}{title}{bold[1]}")


def the_plan(qps):
    """Both leaves send to each other, over IPv4 and IPv6; the ends' numbers differ."""
    layout = Layout(spines=2, leaves=2, hosts=2)
    one, two, three, four = layout.hosts
    return guestfabric.Plan(layout, ((one, three, 4), (one, four, 6), (four, two, 4)), qps,
                            sampling=1, window_s=4)


def rows(judge):
    """A row a queue pair's end, and texts of what is wrong."""
    wrong = []
    for end in sorted(judge.ends, key=lambda end: (end.host.name, end.row["lqpn"])):
        record = judge.of_flow[end.flow][-1] if judge.of_flow.get(end.flow) else {}
        of_end = judge.wrong_end(end) + (judge.unresolved([end.flow]) if end.flow else [])
        wrong += of_end
        path = " > ".join(f"{hop['switch']} {hop.get('out', '?')}" for hop in record.get("hops", ()))
        owner = (record.get("comm", "?"), f"pid {record.get('pid', '?')}", record.get("job", "no job"))
        yield (end.row["ifname"], f"{end.row['lqpn']}>{end.row['rqpn']}", str(end.flow),
               record.get("tuple_source", "unknown"), path or record.get("state", "no record"),
               ", ".join(owner), "WRONG" if of_end else "right"), wrong


def table(lines):
    widths = [max(map(len, column)) for column in zip(*lines)]
    for line in lines:
        say("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip())


def show(out, plan):
    """Returns whether all is right."""
    section("fabrictrace imbalance")
    say((out / "imbalance.txt").read_text().rstrip())
    section(f"fabrictrace explain {(out / 'flow').read_text().strip()}")
    say((out / "explain.txt").read_text().rstrip())
    section("Queue pairs, as fabrictrace knows them, beside tcpdump on the spines and the rdma tool")
    judge = FabricJudge(out, plan)
    lines, wrong = [HEAD], []
    for line, wrong in rows(judge):
        lines.append(line)
    table(lines)
    fim, times = judge.imbalance()
    wrong += judge.captures() + judge.queue_pairs() + judge.one_path() + judge.invented() + \
        judge.ever_wrong() + fim
    section("Verdict against the capture")
    say(f"  {sum(line[-1] == 'right' for line in lines)} of {plan.ends} ends right: tuple, queue "
        f"pair, owner, path\n  FIM of each ECMP group compared {times}")
    for text in wrong[:10]:
        say(f"  WRONG {text}")
    say(f"  {'WRONG' if wrong else 'RIGHT'}")
    return not wrong


def run(guest, args):
    plan = the_plan(args.queue_pairs)
    build = args.build.resolve()
    with tempfile.TemporaryDirectory(prefix="fabrictrace-rxe-") as folder:
        share = pathlib.Path(folder)
        vm.fill(share, [build / program for program in guestfabric.PROGRAMS],
                [HERE / "demo.sh", HERE / "common.sh"])
        guestfabric.write(share, plan)
        (share / "plan" / "seconds").write_text(f"{args.seconds}\n")
        machine = vm.Machine(memory_mib=640)
        try:
            wrong = vm.run(guest, share, "demo.sh", (machine,), SECONDS + args.seconds,
                           lambda line: say(f"  {line}"))
        except vm.StoodStill as why:
            wrong = [str(why)]
        if args.keep:
            shutil.copytree(share, args.keep, dirs_exist_ok=True)
        for text in wrong:
            say(f"demo: {text}")
        return 0 if not wrong and show(share / "out", plan) else 1


def main():
    parser = argparse.ArgumentParser(prog="demo --rdma", description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build"),
                        help=argparse.SUPPRESS)
    parser.add_argument("--seconds", type=int, default=16, help="of traffic (default: 16)")
    parser.add_argument("--queue-pairs", type=int, default=4,
                        help="of each of the three ib_write_bw (default: 4)")
    parser.add_argument("--keep", type=pathlib.Path, help="leave what was recorded here")
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    missing = [path for path in guestfabric.PROGRAMS if not (args.build / path).exists()]
    try:
        if missing:
            raise vm.Lacks(f"{', '.join(missing)} is not there")
        vm.require_tools()
    except vm.Lacks as why:
        say(f"skipped: {why}; real RDMA needs a virtual machine with Soft-RoCE. ./demo runs without")
        return 77
    say("a guest of Debian's own kernel ...")
    guest = vm.make_guest()
    return run(guest, args) if guest else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("\ndemo: interrupted; the guest is gone")
        sys.exit(130)
