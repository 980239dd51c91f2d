#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Real RDMA: our programs in virtual machines with Soft-RoCE and perftest's queue pairs.

A scenario NAME is two files: NAME.sh runs in the guest (and may source common.sh), judge_NAME.py judges on the host what it
left in out/, by tcpdump, nft, the rdma tool and the kernel, never by our own code. The guest is
made from Debian's own kernel and packages and kept in a cache.
Exit: 0, or 1 when a check failed or a scenario could not run.

A judge module has
  judge(out, build)      returns (passed, failed)
and may have
  PROGRAMS               what runs in the guest, below the build folder (default: the agent), or
                         with an absolute path: of the host, which then must have it
  prepare(share, build)  puts further files into the guest's folder; vm.Lacks fails the scenario
  machines(share)        the virtual machines (default: one); the script finds its name in $MACHINE
"""
import argparse
import importlib
import pathlib
import shutil
import signal
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(HERE))
import vm  # noqa: E402
from vm import speed  # noqa: E402

SCENARIOS = ("flows", "fabric", "switches", "pairing", "ranks", "vms", "lag", "churn", "plan", "ucx")
LONG = ("collide", "learnt")  # run when they are named
AGENT = ("agent/fabrictrace-agent",)
SECONDS = 600  # until a guest counts as stuck, on an idle machine


def run(name, guest, build, keep):
    """Runs a scenario, up to twice more where its guest stood still. Returns (passed, failed)."""
    for again in (True, True, False):
        try:
            return run_once(name, guest, build, keep)
        except vm.StoodStill as why:
            print(f"{name}: {why}: once more" if again else f"FAIL {name}: {why}", flush=True)
    return 0, 1


def run_once(name, guest, build, keep):
    """Returns (passed, failed)."""
    module = importlib.import_module(f"judge_{name}")
    programs = [build / program for program in getattr(module, "PROGRAMS", AGENT)]
    missing = [program.name for program in programs if not program.exists()]
    if missing:
        print(f"FAIL {name}: {', '.join(missing)} is not installed or not built: packaging/install-deps test")
        return 0, 1
    begin = time.monotonic()
    speed.measure_anew()
    with tempfile.TemporaryDirectory(prefix="fabrictrace-rxe-") as folder:
        share = pathlib.Path(folder)
        vm.fill(share, programs, [HERE / script for script in (f"{name}.sh", "common.sh", "guestrouter.sh")])
        try:
            getattr(module, "prepare", lambda *_: None)(share, build)
        except vm.Lacks as why:
            print(f"FAIL {name}: {why}")
            return 0, 1
        machines = getattr(module, "machines", lambda _: (vm.Machine(),))(share)
        wrong = vm.run(guest, share, f"{name}.sh", machines, SECONDS)
        if keep:
            shutil.copytree(share, keep / name, dirs_exist_ok=True)
        passed, failed = (0, len(wrong)) if wrong else module.judge(share / "out", build)
    for text in wrong:
        print(f"FAIL {name}: {text}")
    print(f"{name}: {time.monotonic() - begin:.0f} s", flush=True)
    return passed, failed


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO",
                        help=f"which (default: all of {', '.join(SCENARIOS)}; further: {', '.join(LONG)})")
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("."))
    parser.add_argument("--keep", type=pathlib.Path, help="leave what was recorded here")
    args = parser.parse_args()
    unknown = [name for name in args.scenarios if name not in SCENARIOS + LONG]
    if unknown:
        parser.error(f"no scenario {', '.join(unknown)}; there are {', '.join(SCENARIOS + LONG)}")
    # So that no guest outlives us.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        vm.require_tools()
    except vm.Lacks as why:
        print(f"FAIL {why}\n0 passed, 1 failed, 0 skipped")
        return 1
    guest = vm.make_guest()
    if not guest:
        print("FAIL the guest could not be built\n0 passed, 1 failed, 0 skipped")
        return 1
    results = [run(name, guest, args.build.resolve(), args.keep)
               for name in args.scenarios or SCENARIOS]
    passed, failed = map(sum, zip(*results))
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
