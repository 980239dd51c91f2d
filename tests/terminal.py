# SPDX-License-Identifier: Apache-2.0
"""What a program writes to a terminal."""
import fcntl
import os
import pty
import struct
import termios
import threading


def written(start, width=80):
    """start(terminal) makes the process; returns its exit code and all that it wrote to the terminal,
    which is so many columns wide."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    text = bytearray()

    def read():
        while not text.endswith(b"\0"):
            text.extend(os.read(master, 65536))

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    # Where nobody has the other end open any more, Linux may drop what was not read. So it stays
    # open, and a byte that no program writes says that this was all.
    with start(slave) as process:
        process.wait()
        os.write(slave, b"\0")
    reader.join()
    os.close(slave)
    os.close(master)
    return process.returncode, text[:-1].decode()
