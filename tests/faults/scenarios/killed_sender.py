# SPDX-License-Identifier: Apache-2.0
"""What a program had in memory when it was killed: the daemon learns of it by the numbers of records, which say
how many there were by then, and by the next life of the same program, which never sends them. Tests of the
transport alone had that, and none of a running daemon.

A peer says that it has more records than it sends, goes without a word, and comes again. What is missing is in
the account, and the numbers add up; what nobody said there was is in no account. Meanwhile the
honest work, and only the window in which the daemon began is marked as partial."""
import json
import struct

import honest
import kit
import rig
from kit import check, data, equal, number, record, until

RECORDS = 6  # a frame of records that are numbered
SENT, NEWEST, AGAIN = 40, 5000, 10
HOST = "gpu03"


def send(peer, last, count, newest):
    peer.sequence += 1
    body = b"".join(record(kit.LOSS, number(1, 1) + data(2, HOST) + data(3, "fabrictrace-agent")) for _ in range(count))
    peer.socket.sendall(kit.frame(RECORDS, struct.pack(">QQIQ", peer.sequence, last, count, newest) + body))


def stage_of_peers(daemon):
    own = [r for r in json.loads(daemon.get("/api/v1/loss"))["records"] if r["program"] == "fabrictraced"]
    return {s["name"]: s for s in own[0]["stages"]}["peers"] if own else {}


def lost(daemon):
    return rig.drops(stage_of_peers(daemon)).get("lost_with_sender", 0)


def life(programs, boot_id, *numbers):
    peer = honest.Peer(programs.daemon.port, HOST, "fabrictrace-agent", boot_id, programs.context("agent", HOST))
    equal("it is welcome", peer.answer[0], kit.WELCOME)
    send(peer, *numbers)
    check("what it sends is taken", peer.settled())
    return peer


def run(folder):
    honest.own_network()
    programs, work = honest.Programs(folder), None
    daemon = programs.daemon
    try:
        programs.start()
        work = honest.Work(programs, honest.new_rng(), numbered=False)
        first = life(programs, 1, SENT, SENT, NEWEST)
        until("what it has is awaited", lambda: stage_of_peers(daemon).get("pending", 0) >= NEWEST - SENT)
        equal("and not lost as long as it may come", lost(daemon), 0)
        first.close()
        second = life(programs, 2, AGAIN, AGAIN, AGAIN)
        until("what went with the first is counted", lambda: lost(daemon) > 0)
        equal("as many as its numbers say", lost(daemon), NEWEST - SENT)
        second.close()
        work.stop()
        programs.settle()
        programs.stop()
        judge(daemon.records())
    finally:
        if work:
            work.over.set()
        programs.kill()


def judge(records):
    rig.check_balance("with a sender that was killed", records)
    figures = rig.of_kind(records, "imbalance")
    starts = sorted({r["window_start_ms"] for r in figures})
    equal("windows that are partial", sorted({r["window_start_ms"] for r in figures if r.get("partial")}), starts[:1])
    check(f"of {len(starts)}", len(starts) > 3)
