#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two daemons without a broker: poller and agent go to the second when the first is killed, which
then knows the paths, and back when the first is there again, without a restart of anything. Every
record is at exactly one of them. Needs no root."""
import sys

sys.dont_write_bytecode = True
import rig  # noqa: E402
import sflow  # noqa: E402
from live import numbered  # noqa: E402
from rig import check, equal, of_kind, until  # noqa: E402

TOPOLOGY = (rig.LAB / "topology.yaml").read_text()
PAYLOADS = [p for _, p in sflow.datagrams((rig.LAB / "sflow.pcap").read_bytes())]


def daemons(folder):
    made = []
    for name in "ab":
        (folder / name).mkdir()
        made.append(rig.Daemon(folder / name, TOPOLOGY).start())
    return made


def link(first, second):
    return (f"daemon: {{endpoint: \"127.0.0.1:{first.port}\", "
            f"standby: [\"127.0.0.1:{second.port}\"], retry_min: 100ms, retry_max: 200ms, "
            "return: 500ms}\n")


def taken(daemon):
    return daemon.metric("fabrictraced_records_total")


class Feed:
    """The capture's datagrams to the poller, again and again."""

    def __init__(self, poller):
        self.poller, self.sent = poller, 0

    def metric(self, name):
        return self.poller.metric(f"fabrictrace_switchpoll_{name}")

    def once(self):
        for payload in PAYLOADS:
            self.poller.send(numbered(payload, self.sent))
            self.sent += 1
        until("datagrams are read",
              lambda: self.metric("datagrams_received_total") >= self.sent)

    def until(self, what, condition):
        def fed():
            if not condition():
                self.once()
            return condition()
        until(what, fed, 240)

    def rest(self):
        """All that was sent is folded and acknowledged. Returns how many records that made."""
        quiet = []

        def settled():
            now = (self.metric("records_total"), self.metric("records_delivered_total"))
            quiet.append(now)
            return now[0] == now[1] and len(quiet) > 10 and len(set(quiet[-10:])) == 1
        until("all is delivered", settled, 240)
        return self.metric("records_delivered_total")


def resolved(daemon):
    return {(r["flow"]["src"], r["flow"]["dst"], r["flow"]["sport"])
            for r in of_kind(daemon.records(), "path") if r["state"] == "resolved"}


def windows(daemon):
    """[(beginning, whether it says that it is of a part)] of those with flows, in their order."""
    found = {}
    for r in of_kind(daemon.records(), "imbalance"):
        if r.get("flows"):
            found[r["window_start_ms"]] = bool(r.get("partial"))
    return sorted(found.items())


def check_first(feed, daemon, what):
    """The poller came in the middle of its first window: what was before is not here."""
    feed.until(f"{what}: a window that is whole", lambda: not all(part for _, part in windows(daemon)))
    check(f"{what}: the first window says that it is of a part", windows(daemon)[0][1], windows(daemon))


def test_poller(folder):
    a, b = daemons(folder)
    poller = rig.Poller(folder, a)
    # Loss records would go on while nothing is fed.
    text = poller.config.read_text().replace("loss_interval: 1s", "loss_interval: 1h")
    poller.config.write_text(text[:text.index("daemon: ")] + link(a, b))
    poller.start()
    feed = Feed(poller)
    try:
        feed.until("the first daemon knows paths", lambda: resolved(a))
        sent = feed.rest()
        until("it has all", lambda: taken(a) == sent)
        equal("the second has none", taken(b), 0)
        known = resolved(a)
        a.kill()
        feed.until("the second knows the paths", lambda: resolved(b) >= known)
        check_first(feed, b, "the second")
        all_ = feed.rest()
        until("and has what the first did not get", lambda: taken(b) == all_ - sent)
        a.take_records()
        a.start()
        until("the poller goes back by itself", lambda: a.metric("fabrictraced_peers") == 1)
        until("and leaves the second", lambda: b.metric("fabrictraced_peers") == 0)
        before = taken(b)
        feed.until("the first knows the paths again", lambda: resolved(a) >= known)
        check_first(feed, a, "the first")
        equal("the second gets no more", taken(b), before)
        all_ = feed.rest()
        until("each record is at one daemon", lambda: sent + taken(b) + taken(a) == all_)
        check("none was sent to both", "fabrictrace_switchpoll_records_repeated_total 0\n" in
              poller.get("/metrics"), poller.get("/metrics"))
        poller.stop()
        for daemon in (a, b):
            daemon.stop()
            rig.check_balance(daemon.folder.name, daemon.records())
    finally:
        for program in (poller, a, b):
            program.kill()


def test_agent(folder):
    a, b = daemons(folder)
    http = rig.free_port()
    agent = rig.Program(folder, "fabrictrace-agent", [rig.AGENT],
                        "host: gpu01\ninterfaces: []\nrdma: {enabled: false}\nloss_interval: 1s\n"
                        f"nccl: {{socket: {folder}/nccl.sock}}\nhttp: 127.0.0.1:{http}\n" + link(a, b))
    agent.http = http
    agent.start()

    def heard(daemon):
        return [r for r in of_kind(daemon.records(), "loss") if r["program"] == "fabrictrace-agent"]
    try:
        until("the first daemon hears of the agent", lambda: heard(a))
        equal("the second does not", heard(b), [])
        a.kill()
        until("the second hears of it", lambda: heard(b))
        agent.log_says(f"'127.0.0.1:{b.port}': connected")
        a.take_records()
        a.start()
        until("and then the first again", lambda: heard(a))
        until("and the second no more", lambda: b.metric("fabrictraced_peers") == 0)
        agent.stop()
        last = rig.last_stages(heard(a), "fabrictrace-agent")
        check("the agent dropped nothing", all(not sum(rig.drops(s).values())
                                               for s in last.values()), last)
    finally:
        for program in (agent, a, b):
            program.kill()


if __name__ == "__main__":
    sys.exit(rig.run_tests(test_poller, test_agent))
