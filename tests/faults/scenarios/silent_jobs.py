# SPDX-License-Identifier: Apache-2.0
"""64 connections to the agent's socket, which every user may reach, that said nothing shut NCCL out for
good: each held the place of a job, and none was ever asked what it wanted."""
import os
import socket

import kit
import rig
from kit import check, equal, until

CONNECTIONS = 70


def closed(s):
    try:
        return s.recv(1) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


def run(folder):
    path = folder / "nccl.sock"
    daemon = kit.daemon(folder).start()
    agent = rig.Agent(folder, daemon)
    agent.config.write_text(agent.config.read_text().replace("interfaces: [lo]\n", "")
                            + f"nccl: {{socket: {path}}}\nrdma: {{enabled: false}}\n")
    agent.start()
    silent = []
    try:
        for _ in range(CONNECTIONS):
            s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            s.connect(os.fspath(path))
            s.setblocking(False)
            silent.append(s)
        until("most are turned away", lambda: closed(silent[-1]))
        check("at once: the first are still waited for", not closed(silent[0]))
        until("and counted", lambda: agent.metric("fabrictrace_agent_nccl_refused_total") >= CONNECTIONS - 8)
        until("the rest when they go on being silent", lambda: all(map(closed, silent)))
        equal("refused", agent.metric("fabrictrace_agent_nccl_refused_total"), CONNECTIONS)
        check("the agent is well", agent.healthy())
        agent.stop()
        daemon.stop()
    finally:
        agent.kill()
        daemon.kill()
