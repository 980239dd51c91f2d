#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Boots a Debian in a folder, in which the packages are installed, in a virtual machine with its own
systemd, and runs in_machine.sh there. Kernel and boot are those of the Soft-RoCE guest (tests/rxe).

usage: machine.py ROOT WORK     ROOT: the Debian, with /packages; WORK: a folder to make

Prints what the script prints, and ends with its exit status.
"""
import pathlib
import shutil
import struct
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "rxe"))
import vm  # noqa: E402

SECONDS = 900  # on an idle machine
IMAGE_SPARE_MIB = 400

# The first process of the guest's initial system goes here once the disk is there.
STAGE2 = """#!/bin/sh
exec /lib/systemd/systemd
"""

SERVICE = """[Unit]
Description=Test of the packages
After=multi-user.target

[Service]
Type=exec
ExecStart=/packages/run-test
StandardOutput=null

[Install]
WantedBy=graphical.target multi-user.target
"""

# They wait for devices that nobody asks for here.
MASKED = "serial-getty@ttyS0.service", "getty@tty1.service", "proc-sys-fs-binfmt_misc.automount"

RUN_TEST = """#!/bin/bash
modprobe -a 9pnet_virtio 9p af_packet
mkdir -p /mnt/host && mount -t 9p -o trans=virtio,version=9p2000.L,cache=none host /mnt/host || exit
/packages/in_machine.sh >/dev/ttyS0 2>&1 </dev/null
echo $? >/mnt/host/.rc-systemd
sync
systemctl reboot
"""


def datagrams(capture, folder):
    """The payloads of UDP datagrams of a capture, a file each (pcap, Ethernet, IPv4)."""
    data = capture.read_bytes()
    magic, linktype = struct.unpack_from("<I", data)[0], struct.unpack_from("<I", data, 20)[0]
    assert magic in (0xA1B2C3D4, 0xA1B23C4D) and linktype == 1, "no capture of Ethernet"
    at, number = 24, 0
    while at < len(data):
        length = struct.unpack_from("<I", data, at + 8)[0]
        frame = data[at + 16:at + 16 + length]
        at += 16 + length
        if frame[12:14] != b"\x08\x00" or frame[23] != 17:
            continue
        header = 14 + 4 * (frame[14] & 15)
        size = struct.unpack_from(">H", frame, header + 4)[0]
        (folder / f"{number:05d}").write_bytes(frame[header + 8:header + size])
        number += 1
    assert number, "no datagram in the capture"


def prepare(root, guest):
    """Adds to the Debian what boots it and what it runs."""
    (root / "stage2").write_text(STAGE2)
    (root / "stage2").chmod(0o755)
    (root / "etc/systemd/system/packages-test.service").write_text(SERVICE)
    (root / "packages/run-test").write_text(RUN_TEST)
    (root / "packages/run-test").chmod(0o755)
    for name in ("in_machine.sh", "credentials.sh"):
        shutil.copy2(HERE / name, root / "packages")
    wants = root / "etc/systemd/system/multi-user.target.wants"
    wants.mkdir(exist_ok=True)
    (wants / "packages-test.service").symlink_to("../packages-test.service")
    for name in MASKED:
        (root / "etc/systemd/system" / name).symlink_to("/dev/null")
    (root / "etc/machine-id").write_text("")
    (root / "packages/datagrams").mkdir()
    datagrams(root / "packages/lab/sflow.pcap", root / "packages/datagrams")
    subprocess.run(["/sbin/debugfs", "-R", f"rdump /usr/lib/modules {root}/usr/lib", guest / "root.ext4"],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    assert any((root / "usr/lib/modules").iterdir()), "the guest has no modules"


def make_image(root, path):
    mib = int(subprocess.run(["du", "-sxm", root], stdout=subprocess.PIPE, check=True).stdout.split()[0])
    path.unlink(missing_ok=True)
    with open(path, "wb") as image:
        image.truncate((mib * 5 // 4 + IMAGE_SPARE_MIB) << 20)
    subprocess.run(["/sbin/mkfs.ext4", "-q", "-d", root, path], check=True)


def main():
    root, work = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    vm.require_tools()
    guest = vm.make_guest()
    if guest is None:
        return 1
    shutil.rmtree(work, ignore_errors=True)
    share = work / "share"
    share.mkdir(parents=True)
    for name in ("vmlinux", "initrd"):
        (work / name).symlink_to(guest / name)
    prepare(root, guest)
    make_image(root, work / "root.ext4")

    def show(line):
        print(line.rstrip("\r"), flush=True)

    machine = vm.Machine(name="systemd", memory_mib=1536)
    wrong = vm.run(work, share, "none", [machine], SECONDS, show)
    for text in wrong:
        print("FAIL", text)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
