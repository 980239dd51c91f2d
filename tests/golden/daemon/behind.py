#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A daemon that cannot keep up: while it stands still the poller folds over longer, says so, and
loses nothing; once it keeps up again the poller folds as before. Paths stay what they are, each
stage's account adds up. Real poller and daemon; the daemon is stopped by a signal. Needs no root."""
import signal
import sys

sys.dont_write_bytecode = True
import rig  # noqa: E402
from rig import check, equal, of_kind, until  # noqa: E402
from standby import Feed, TOPOLOGY, resolved, taken  # noqa: E402


def interval(poller):
    return poller.metric("fabrictrace_switchpoll_fold_interval_seconds")


def path_of(daemon):
    """The last path of each flow that was resolved, by its ends."""
    return {(r["flow"]["src"], r["flow"]["dst"], r["flow"]["sport"]):
            [(h["switch"], h.get("in"), h.get("out")) for h in r["hops"]]
            for r in of_kind(daemon.records(), "path") if r["state"] == "resolved"}


def findings(daemon):
    return daemon.get("/api/v1/doctor")


def says_so(daemon):
    return "folds samples over 2.0 s: this daemon cannot keep up" in findings(daemon)


def fall_behind(daemon, poller, feed):
    """On a slow machine the poller may give the connection up before enough records wait."""
    def connected():
        return poller.metric("fabrictrace_switchpoll_daemon_connected") == 1

    for _ in range(10):
        until("the daemon is connected", connected)
        daemon.process.send_signal(signal.SIGSTOP)
        feed.until("records wait", lambda: interval(poller) == 2 or not connected())
        daemon.process.send_signal(signal.SIGCONT)
        if interval(poller) == 2:
            break
    poller.log_says("samples are folded over 2.0 s instead of 0.1 s")


def test_behind(folder):
    daemon = rig.Daemon(folder, TOPOLOGY).start()
    poller = rig.Poller(folder, daemon)
    poller.config.write_text(poller.config.read_text().replace("200ms\nloss", "100ms\nloss") + "fold_longest: 2s\n")
    poller.start()
    feed = Feed(poller)
    try:
        feed.until("paths are known", lambda: resolved(daemon))
        feed.rest()
        known = path_of(daemon)
        equal("folds as configured", interval(poller), 0.1)
        check("and the doctor says nothing of it", "cannot keep up" not in findings(daemon))
        for _ in range(5):
            fall_behind(daemon, poller, feed)
            # On a slow machine it may fold as before again before anybody has asked.
            feed.until("the doctor is told", lambda: says_so(daemon) or interval(poller) != 2)
            if says_so(daemon):
                break
        check("the doctor says who folds over longer", says_so(daemon), findings(daemon))
        until("and so does its loss record",
              lambda: any(r.get("fold_ms") == 2000 for r in of_kind(daemon.records(), "loss")))
        feed.until("it folds as before", lambda: interval(poller) == 0.1)
        poller.log_says("the daemon keeps up: samples are folded over 0.1 s")
        feed.until("paths are known once more", lambda: path_of(daemon).keys() >= known.keys())
        made = feed.rest()
        until("each record came to the daemon", lambda: taken(daemon) == made)
        equal("the poller dropped none",
              poller.metric("fabrictrace_switchpoll_records_dropped_total"), 0)
        poller.stop()
        daemon.stop()
        equal("no path changed", {k: v for k, v in path_of(daemon).items() if k in known}, known)
        rig.check_balance("accounts", daemon.records())
    finally:
        for program in (poller, daemon):
            program.kill()


if __name__ == "__main__":
    sys.exit(rig.run_tests(test_behind))
