# SPDX-License-Identifier: Apache-2.0
"""A file whose file system does not answer when it is closed, sent over a Unix socket. To be run as root in a
mount namespace of its own, which ends with it: usage: hanging.py FILE SOCKET MESSAGE (in hexadecimal).
Prints "sent", and "asked" each time that another process closes the file, which it then waits for; at the end
of the standard input it goes away, with the file system."""
import ctypes
import os
import socket
import struct
import sys
import threading

OPEN, FLUSH, INIT = 14, 25, 26  # enum fuse_opcode of linux/fuse.h
SILENT = (2, 42)                # FORGET, BATCH_FORGET: nobody waits for an answer
REGULAR = 0o100644
MS_NOSUID_NODEV = 2 | 4


def serve(device):
    while True:
        request = os.read(device, 1 << 17)
        _, opcode, unique, _, _, _, pid = struct.unpack_from("<IIQQIII", request)
        if opcode == FLUSH and pid != os.getpid():
            print("asked", flush=True)
            continue
        if opcode in SILENT:
            continue
        error, body = 0, b""
        if opcode == INIT:
            body = struct.pack("<IIIIHHIIHHI28x", 7, 31, 0, 0, 1, 1, 4096, 1, 1, 0, 0)
        elif opcode == OPEN:
            body = struct.pack("<QII", 1, 0, 0)
        elif opcode != FLUSH:
            error = -38  # ENOSYS
        os.write(device, struct.pack("<IiQ", 16 + len(body), error, unique) + body)


def main():
    path, to, message = sys.argv[1], sys.argv[2], bytes.fromhex(sys.argv[3])
    device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    words = f"fd={device},rootmode={REGULAR:o},user_id=0,group_id=0".encode()
    with open(path, "wb"):
        pass
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"hanging", path.encode(), b"fuse", MS_NOSUID_NODEV, words):
        raise OSError(ctypes.get_errno(), "mount")
    threading.Thread(target=serve, args=(device,), daemon=True).start()
    file = os.open(path, os.O_RDONLY)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
        s.connect(to)
        socket.send_fds(s, [message], [file])
        os.close(file)  # its end must not wait for itself
        print("sent", flush=True)
        sys.stdin.read()
    os._exit(0)


main()
