# SPDX-License-Identifier: Apache-2.0
"""Virtual machines of Debian's own kernel and packages that run a script in a shared folder."""
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import speed  # noqa: E402

KEPT_S = 7 * 86400


class Lacks(Exception):
    """This machine cannot run guests; the text says what it lacks."""


@dataclass(frozen=True)
class Machine:
    """name is $MACHINE for the script; devices are further arguments of QEMU; it starts once the
    sockets that earlier machines listen on are there."""
    name: str = "guest"
    memory_mib: int = 768
    processors: int = 2
    devices: tuple = ()
    sockets: tuple = ()


def require_tools():
    for tool in ("qemu-system-x86_64", "apt-get", "dpkg-deb"):
        if not shutil.which(tool):
            raise Lacks(f"{tool} is not installed: packaging/install-deps test")
    for tool in ("depmod", "mkfs.ext4"):
        if not shutil.which(tool, path=os.environ["PATH"] + ":/sbin:/usr/sbin"):
            raise Lacks(f"{tool} is not installed: packaging/install-deps test")
    if os.uname().machine != "x86_64":
        raise Lacks("the guest is an x86-64 machine")


def cache():
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return pathlib.Path(base) / "fabrictrace" / "rxe"


def recipe():
    """Changes with what the guest is made of, as build-guest.sh sees it."""
    parts = (HERE / name for name in ("build-guest.sh", "guest-packages", "guest-init", "guest-stage2"))
    return hashlib.sha256(b"".join(part.read_bytes() for part in parts)).hexdigest()


def make_guest():
    """Builds what is not in the cache, where each recipe has its folder; runs of two users of one
    folder wait for each other. Guests that nobody booted for a week go.
    Returns the folder of the images, or None after it printed why there are none."""
    folder = cache() / recipe()[:12]
    folder.mkdir(parents=True, exist_ok=True)
    os.utime(folder)
    for other in cache().iterdir():
        if other.is_dir() and other.stat().st_mtime < time.time() - KEPT_S:
            shutil.rmtree(other, ignore_errors=True)
    log = folder / "build.log"
    with open(log, "wb") as out:
        rc = subprocess.run(["flock", str(folder), str(HERE / "build-guest.sh"), str(folder)],
                            stdout=out, stderr=subprocess.STDOUT, check=False).returncode
    if rc:
        print(log.read_text(errors="replace")[-3000:])
        return None
    return folder


def libraries(program):
    """The program's shared libraries, without those that every Debian has in the guest too."""
    text = subprocess.run(["ldd", program], stdout=subprocess.PIPE, text=True, check=True).stdout
    for line in text.splitlines():
        name, _, path = line.strip().partition(" => ")
        path = path.split(" (")[0]
        if path.startswith("/") and not name.startswith(("libc.so", "libm.so", "ld-linux")):
            yield path


def fill(share, programs, files):
    """Puts programs as built on the host, their libraries (in lib/) and files into a folder."""
    (share / "lib").mkdir()
    (share / "out").mkdir()
    for program in programs:
        shutil.copy2(program, share)
        for path in libraries(program):
            shutil.copy2(path, share / "lib")
    for path in files:
        shutil.copy2(path, share)


def compile_for_guest(program, *words):
    """Compiles a C program that uses libibverbs. One that does not compile is a fault, not a lack."""
    probe = subprocess.run(["gcc", "-E", "-xc", "-", "-o", "/dev/null"], text=True, check=False,
                           input="#include <infiniband/verbs.h>\n", stderr=subprocess.DEVNULL)
    if probe.returncode:
        raise Lacks("libibverbs-dev is not installed: packaging/install-deps")
    subprocess.run(["gcc", "-std=gnu11", "-O1", "-o", program, *words, "-libverbs", "-ldl",
                    "-lpthread"], check=True)


def accelerator():
    """A device file alone does not mean that the processor can."""
    flags = pathlib.Path("/proc/cpuinfo").read_text()
    if os.access("/dev/kvm", os.W_OK) and (" vmx" in flags or " svm" in flags):
        return ["-accel", "kvm", "-cpu", "host"]
    return ["-accel", "tcg,thread=multi,tb-size=128", "-cpu", "max"]


def command(guest, share, script, machine):
    words = [
        "qemu-system-x86_64", "-machine", "q35", *accelerator(), "-smp", machine.processors,
        "-m", machine.memory_mib,
        "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
        "-chardev", "stdio,id=console,signal=off", "-serial", "chardev:console",
        "-device", "virtio-rng-pci", "-kernel", guest / "vmlinux", "-initrd", guest / "initrd",
        "-drive", f"if=none,id=root,file={guest}/root.ext4,format=raw,snapshot=on",
        "-device", "virtio-blk-pci,drive=root",
        "-fsdev", f"local,id=share,path={share},security_model=none",
        "-device", "virtio-9p-pci,fsdev=share,mount_tag=host", *machine.devices,
        # A guest that trusts the emulated TSC runs too fast.
        "-append", "console=ttyS0 quiet loglevel=3 panic=-1 mitigations=off nokaslr "
                   f"clocksource=hpet tsc=unstable run={script} machine={machine.name}",
    ]
    return [str(word) for word in words]


def start(guest, share, script, machine):
    with open(share / f"console-{machine.name}.log", "wb") as out:
        return subprocess.Popen(command(guest, share, script, machine), stdin=subprocess.DEVNULL,
                                stdout=out, stderr=subprocess.STDOUT)


def result(share, machine):
    """Empty, or what went wrong in a machine that has ended."""
    code = share / f".rc-{machine.name}"
    if not code.exists():
        return f"machine '{machine.name}' ended without a result"
    if code.read_text().strip() != "0":
        return f"machine '{machine.name}': its script failed"
    return ""


class Console:
    """What a machine has printed since the last look, in complete lines."""

    def __init__(self, share, machine):
        self.path = share / f"console-{machine.name}.log"
        self.at = 0

    def lines(self):
        new = self.path.read_bytes()[self.at:]
        new = new[:new.rfind(b"\n") + 1]
        self.at += len(new)
        return new.decode(errors="replace").splitlines()


def wait(process, console, show, deadline):
    """Until the process ends or the time is over."""
    while process.poll() is None and not deadline.passed():
        for line in console.lines():
            show(line)
        time.sleep(0.1)
    for line in console.lines():
        show(line)
    return process.poll() is not None


class StoodStill(Exception):
    """A machine did not come to its end: at times an emulated guest does not go on, or its own kernel
    fails (rdma_rxe, when a packet is freed after its queue pair)."""


def panic(share, machine):
    """What the machine's kernel died of, "" where it did not."""
    text = (share / f"console-{machine.name}.log").read_text(errors="replace")
    found = re.search(r"(?:BUG|Oops|RIP): .*", text) if "Kernel panic - not syncing" in text else None
    return found[0].strip() if found else ""


def run(guest, share, script, machines, seconds, show=print):
    """Boots all machines on one shared folder and waits for their end; show gets each line that they
    print. seconds: on an idle machine. Returns texts of what went wrong. Raises StoodStill."""
    deadline = speed.Deadline(seconds)
    running = []
    wrong = []
    try:
        for machine in machines:
            while not all(path.exists() for path in machine.sockets) and not deadline.passed():
                time.sleep(0.05)
            running.append((machine, start(guest, share, script, machine)))
        for machine, process in running:
            if not wait(process, Console(share, machine), show, deadline):
                raise StoodStill(f"machine '{machine.name}' did not end in {deadline.seconds:.0f} s")
            if panic(share, machine):
                raise StoodStill(f"the kernel of machine '{machine.name}' failed: {panic(share, machine)}")
            wrong.append(result(share, machine))
    finally:
        for _, process in running:
            if process.poll() is None:
                process.kill()
            process.wait()
    return [text for text in wrong if text]
