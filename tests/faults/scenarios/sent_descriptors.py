# SPDX-License-Identifier: Apache-2.0
"""A process that sent the agent a connection that lingers, or a file of a file system that does not answer, over a
socket that every user may reach, had the agent close it, and stand for as long as that took: its watchdog
killed it."""
import os
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

import kit
import rig
from kit import check, equal, until
from segment import Layout

HANGING = Path(__file__).resolve().parent.parent / "hanging.py"
LINGER_S = 600
OURS_S = 60  # the agent would stand for LINGER_S


def lingering():
    """A connection with much to send, whose peer reads nothing; and that peer."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        s = socket.create_connection(server.getsockname())
        peer = server.accept()[0]
    s.setblocking(False)
    try:
        while True:
            s.send(bytes(1 << 16))
    except BlockingIOError:
        pass
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, LINGER_S))
    return s, peer


def connected(path):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.connect(os.fspath(path))
    return s


def send_lingering(to, message):
    s, peer = lingering()
    socket.send_fds(to, [message], [s.fileno()])
    s.close()
    return peer


def hanging(folder, path, hello):
    child = subprocess.Popen(["unshare", "--mount", sys.executable, HANGING, folder / "file", path, hello.hex()],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    # Either may come first.
    equal("a file is sent, and closed in vain", {child.stdout.readline().strip() for _ in range(2)}, {"sent", "asked"})
    return child


def metric(agent, name, where):
    return agent.metric(f'fabrictrace_agent_{name}{{socket="{where}"}}')


def run(folder):
    nccl, plan = folder / "nccl.sock", folder / "plan.sock"
    layout, kept, child = Layout(), [], None
    daemon = kit.daemon(folder).start()
    agent = rig.Agent(folder, daemon)
    agent.config.write_text(agent.config.read_text().replace("interfaces: [lo]\n", "")
                            + f"nccl: {{socket: {nccl}}}\nrdma: {{enabled: false}}\n"
                            f"plan: {{socket: {plan}, folder: {folder}}}\n")
    agent.start()
    try:
        began = time.monotonic()
        for path, messages in ((nccl, (layout.hello(), b"?")), (plan, (bytes(56), b""))):
            for message in messages:
                s = connected(path)
                kept += [s, send_lingering(s, message)]
        until("each is closed with what was in it",
              lambda: (metric(agent, "unwanted_descriptors_total", "nccl"),
                       metric(agent, "unwanted_descriptors_total", "plan")) == (2, 2))
        job = connected(nccl)
        socket.send_fds(job, [layout.hello()], [layout.memory([])])
        until("a job is followed", lambda: agent.metric("fabrictrace_agent_nccl_jobs") == 1)
        if os.path.exists("/dev/fuse"):
            child = hanging(folder, nccl, layout.hello())
            until("it alone is still being closed", lambda: metric(agent, "closing_descriptors", "nccl") == 1)
            check("the agent is well", agent.healthy())
            other = connected(nccl)
            socket.send_fds(other, [layout.hello()], [layout.memory([])])
            until("another job is followed", lambda: agent.metric("fabrictrace_agent_nccl_jobs") == 2)
            child.stdin.close()
            child.wait()
            until("it is closed when its file system is gone",
                  lambda: metric(agent, "closing_descriptors", "nccl") == 0)
            other.close()
        job.close()
        check("nobody stood for as long as they linger", time.monotonic() - began < OURS_S)
        # What was sent and not accepted yet keeps the agent from ending no more.
        s = connected(nccl)
        kept += [s, send_lingering(s, b"")]
        agent.stop()
        daemon.stop()
    finally:
        if child:
            child.kill()
        agent.kill()
        daemon.kill()
