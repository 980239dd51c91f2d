#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Real RDMA: our agent in a virtual machine with Soft-RoCE, perftest's and rping's queue pairs.

The guest is made from Debian's own kernel and packages and kept in a cache. What the agents report
is judged by what tcpdump saw on the wire and by what iproute2's rdma tool says of queue pairs,
never by our own code. Exit: 0, 1 when a check failed, 77 when it cannot run here (and says why).

usage: run.py [--build FOLDER] [--keep FOLDER] [--timeout SECONDS]
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import judge  # noqa: E402

MEMORY_MIB = 768


def skip(why):
    print(f"skipped: {why}")
    print("0 passed, 0 failed, 1 skipped")
    sys.exit(77)


def tools():
    for tool in ("qemu-system-x86_64", "apt-get", "dpkg-deb"):
        if not shutil.which(tool):
            skip(f"{tool} is not installed")
    for tool in ("depmod", "mkfs.ext4"):
        if not shutil.which(tool, path=os.environ["PATH"] + ":/sbin:/usr/sbin"):
            skip(f"{tool} is not installed")
    if os.uname().machine != "x86_64":
        skip("the guest is an x86-64 machine")


def cache():
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return pathlib.Path(base) / "fabrictrace" / "rxe"


def make_guest(folder):
    """Runs of two users of one cache wait for each other."""
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "build.log"
    with open(log, "wb") as out:
        rc = subprocess.run(["flock", str(folder), str(HERE / "build-guest.sh"), str(folder)],
                            stdout=out, stderr=subprocess.STDOUT, check=False).returncode
    if rc:
        sys.stdout.write(log.read_text(errors="replace")[-3000:])
        print("the guest could not be built")
        print("0 passed, 1 failed, 0 skipped")
        sys.exit(1)


def libraries(program):
    """The program's shared libraries, without those that every Debian has in the guest too."""
    text = subprocess.run(["ldd", program], stdout=subprocess.PIPE, text=True, check=True).stdout
    for line in text.splitlines():
        name, _, path = line.strip().partition(" => ")
        path = path.split(" (")[0]
        if path.startswith("/") and not name.startswith(("libc.so", "libm.so", "ld-linux")):
            yield path


def share_folder(share, build):
    program = build / "agent" / "fabrictrace-agent"
    (share / "lib").mkdir()
    shutil.copy2(program, share)
    for path in libraries(program):
        shutil.copy2(path, share / "lib")
    shutil.copy2(HERE / "flows.sh", share)


def accelerator():
    """A device file alone does not mean that the processor can."""
    flags = pathlib.Path("/proc/cpuinfo").read_text()
    if os.access("/dev/kvm", os.W_OK) and (" vmx" in flags or " svm" in flags):
        return ["-accel", "kvm", "-cpu", "host"]
    return ["-accel", "tcg,thread=multi,tb-size=128", "-cpu", "max"]


def boot(guest, share, script, seconds):
    command = [
        "qemu-system-x86_64", "-machine", "q35", *accelerator(), "-smp", "2", "-m", str(MEMORY_MIB),
        "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
        "-chardev", "stdio,id=console,signal=off", "-serial", "chardev:console",
        "-device", "virtio-rng-pci", "-kernel", guest / "vmlinux", "-initrd", guest / "initrd",
        "-drive", f"if=none,id=root,file={guest}/root.ext4,format=raw,snapshot=on",
        "-device", "virtio-blk-pci,drive=root",
        "-fsdev", f"local,id=share,path={share},security_model=none",
        "-device", "virtio-9p-pci,fsdev=share,mount_tag=host",
        # A guest that trusts the emulated TSC runs too fast.
        "-append", "console=ttyS0 quiet loglevel=3 panic=-1 mitigations=off nokaslr "
                   f"clocksource=hpet tsc=unstable run={script}",
    ]
    with open(share / "console.log", "wb") as out:
        try:
            subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=out,
                           stderr=subprocess.STDOUT, timeout=seconds, check=False)
        except subprocess.TimeoutExpired:
            return "the guest did not end in time"
    code = share / ".rc"
    if not code.exists():
        return "the guest ended without a result"
    return "" if code.read_text().strip() == "0" else "the guest's script failed"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("."))
    parser.add_argument("--keep", type=pathlib.Path, help="leave what was recorded here")
    parser.add_argument("--timeout", type=int, default=180)
    args = parser.parse_args()
    tools()
    guest = cache()
    make_guest(guest)
    with tempfile.TemporaryDirectory(prefix="fabrictrace-rxe-") as folder:
        share = pathlib.Path(folder)
        share_folder(share, args.build.resolve())
        wrong = boot(guest, share, "flows.sh", args.timeout)
        print((share / "console.log").read_text(errors="replace"), end="")
        passed, failed = judge.judge(share / "out", args.build.resolve()) if not wrong else (0, 1)
        if wrong:
            print(f"FAIL {wrong}")
        if args.keep:
            shutil.copytree(share, args.keep, dirs_exist_ok=True)
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
