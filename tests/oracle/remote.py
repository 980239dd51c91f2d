#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What ssh is for real switches: remote.py SOCKET SWITCH COMMAND. The other end of the socket runs
the command and answers its exit status, a line feed, and what it wrote."""
import socket
import sys

s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
s.sendall("\n".join(sys.argv[2:]).encode())
s.shutdown(socket.SHUT_WR)
status, _, text = b"".join(iter(lambda: s.recv(4096), b"")).decode().partition("\n")
sys.stdout.write(text)
sys.exit(int(status))
