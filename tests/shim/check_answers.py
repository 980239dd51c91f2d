#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The wrap of libibverbs before a socket that answers as no agent should, or goes away at each point of
the conversation: the job's queue pairs are made ready as without a plan, in bounded time. Runs in the
build folder."""
import os
import pathlib
import socket
import struct
import sys
import tempfile
import threading
import time
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from check_shim import HERE, SHIM, Program, label_of  # noqa: E402

MAGIC, ASK, ANSWER, DONE = 0x6674706c616e0001, 1, 2, 3
ASK_BYTES, PORT, QUEUE_PAIRS = 116, 0xd123, 50
# More than any answer needs, less than the wait that is asked for.
BOUND_S = 120


def answer(qp, port=PORT, magic=MAGIC, kind=ANSWER):
    return struct.pack(">QIII", magic, kind, qp, port)


class Peer:
    """Answers each question by what reply makes of (connection, queue pair); keeps what it was sent."""

    def __init__(self, folder, reply, accepts=True):
        self.socket = folder / "plan.sock"
        self.reply, self.asked, self.done, self.connections = reply, [], [], 0
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(str(self.socket))
        self.listener.listen(256)
        self.kept = []
        if accepts:
            threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self.talk, args=(connection,), daemon=True).start()

    def talk(self, connection):
        self.kept.append(connection)
        try:
            if self.reply is None:
                connection.close()
                return
            ask = connection.recv(1024)
            self.asked.append(ask)
            self.reply(connection, struct.unpack_from(">I", ask, 12)[0])
            more = connection.recv(1024)
            if more:
                self.done.append(more)
        except OSError:
            pass

    def close(self):
        self.listener.close()
        for connection in self.kept:
            connection.close()


class Answers(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def peer(self, reply, accepts=True):
        for old in self.folder.iterdir():
            old.unlink()
        peer = Peer(self.folder, reply, accepts)
        self.addCleanup(peer.close)
        return peer

    def program(self, peer, **more):
        job = Program(peer, "linked", program=HERE / "job", shim=SHIM, **more)
        self.addCleanup(lambda: job.process.poll() is None and job.process.kill())
        return job

    def test_answer(self):
        """One as it has to be is followed, so that those below would be, too, if they were believed."""
        peer = self.peer(lambda c, qp: c.send(answer(qp)))
        job = self.program(peer)
        self.assertEqual(job.until_label(2), label_of(PORT))
        self.assertEqual(job.end(), 0)
        self.assertEqual({len(a) for a in peer.asked}, {ASK_BYTES})
        self.assertEqual({struct.unpack_from(">QI", a) for a in peer.asked}, {(MAGIC, ASK)})

    def test_no_answers(self):
        """Of another protocol, of another queue pair, a port that no label gives, bytes too few or many."""
        for name, reply in {
                "nothing": lambda c, qp: c.close(),
                "no port": lambda c, qp: c.send(answer(qp, 0)),
                "another version": lambda c, qp: c.send(answer(qp, magic=MAGIC + 1)),
                "another kind": lambda c, qp: c.send(answer(qp, kind=DONE)),
                "an unknown kind": lambda c, qp: c.send(answer(qp, kind=0xffffffff)),
                "another queue pair": lambda c, qp: c.send(answer(qp + 1)),
                "a low port": lambda c, qp: c.send(answer(qp, 0xbfff)),
                "a high port": lambda c, qp: c.send(answer(qp, 0x10000 | PORT)),
                "cut": lambda c, qp: c.send(answer(qp)[:-1]),
                "one byte": lambda c, qp: c.send(b"\0"),
                "the question": lambda c, qp: c.send(bytes(ASK_BYTES))}.items():
            with self.subTest(name):
                peer = self.peer(reply)
                job = self.program(peer)
                made = [job.ready(2) for _ in range(5)]
                self.assertEqual([(m[2], len(m[1])) for m in made], [(0, 1)] * 5)
                self.assertTrue(all("label 0x0 " in m[1][0] for m in made), made)
                self.assertEqual(job.end(), 0)
                self.assertGreaterEqual(len(peer.asked), 1)
                self.assertEqual(peer.done, [])

    def test_gone_at_each_point(self):
        """Nobody listens, nobody accepts, gone when it has accepted, when it was asked, when it has answered
        (then the port is had, and the report of it goes nowhere): the job runs on."""
        def answers(c, qp):
            c.send(answer(qp))
            c.close()

        for name, reply, accepts, label in (("listens not", None, None, 0), ("accepts not", None, False, 0),
                                            ("accepts", None, True, 0),
                                            ("was asked", lambda c, qp: c.close(), True, 0),
                                            ("answered", answers, True, label_of(PORT))):
            with self.subTest(name):
                peer = self.peer(reply, accepts)
                if accepts is None:
                    peer.close()
                job = self.program(peer, FABRICTRACE_PLAN_WAIT_MS="200")
                # A machine that stands still for the wait gives none.
                self.assertLessEqual({job.label(2) for _ in range(20)}, {0, label})
                self.assertTrue(not label or job.until_label(2) == label)
                said, status, _ = job.ask(f"rts {job.next}")
                self.assertEqual((len(said), status), (1, 0))
                self.assertEqual(job.end(), 0)

    def test_bounded(self):
        """One that never answers is waited for twice, then none is asked for ten seconds; and no longer than
        a second, whatever the environment says."""
        peer = self.peer(lambda c, qp: None)
        job = self.program(peer, FABRICTRACE_PLAN_WAIT_MS="600000")
        began = time.monotonic()
        made = [job.ready(2) for _ in range(QUEUE_PAIRS)]
        spent = time.monotonic() - began
        self.assertEqual({m[2] for m in made}, {0})
        self.assertEqual(job.end(), 0)
        self.assertLess(spent, BOUND_S)
        # A machine that needs ten seconds for the others has begun to ask again.
        self.assertLessEqual(peer.connections, 2 + 2 * int(spent / 10))
        self.assertGreaterEqual(peer.connections, 2)


if __name__ == "__main__":
    if not SHIM.exists():
        sys.exit(f"{SHIM} is missing: {os.getcwd()} is no build folder")
    unittest.main()
