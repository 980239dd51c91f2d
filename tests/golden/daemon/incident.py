#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An incident kept and replayed: the file that a running daemon gives leads a replay to the same
answers, byte for byte; what is cut short, damaged or foreign is reported, and what is whole of it
served."""
import itertools
import json
import math
import os
import re
import signal
import struct
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

sys.dont_write_bytecode = True
import rig  # noqa: E402
import sflow  # noqa: E402
from ports import free_port  # noqa: E402
from rig import check, equal, of_kind, until  # noqa: E402

TOPOLOGY = (rig.LAB / "topology.yaml").read_text()
TOOL = Path("cli/fabrictrace").resolve()
HEAD = 20  # of a section
KINDS = {1: "head", 2: "topology", 3: "records", 4: "history", 5: "events", 6: "end"}


def feed(poller, seconds):
    payloads = [payload for _, payload in sflow.datagrams((rig.LAB / "sflow.pcap").read_bytes())]
    end = time.monotonic() + seconds
    number = feed.number
    while time.monotonic() < end:
        for payload in payloads[:40]:
            number += 1
            poller.send(payload[:16] + struct.pack(">II", number, 1000 * number) + payload[24:])
            time.sleep(0.005)
    feed.number = number


feed.number = 0


def sections(data):
    """(offset, kind, length with its head) of each."""
    at, found = 8, []
    while at < len(data):
        kind, _, _, _, packed = struct.unpack(">BBHII", data[at:at + 12])
        found.append((at, KINDS.get(kind, kind), HEAD + packed))
        at += HEAD + packed
    return found


def targets(daemon):
    """Every answer of what is known now and of the windows that are kept."""
    at = json.loads(daemon.get("/api/v1/windows"))["records"]
    path = json.loads(daemon.get("/api/v1/paths?state=resolved&limit=1"))["records"][0]["flow"]
    link = json.loads(daemon.get("/api/v1/links"))["records"][0]
    key = f"{link['switch']}/{link['port']}"
    text = "[{src}]:{sport}-[{dst}]:{dport}" if ":" in path["src"] else "{src}:{sport}-{dst}:{dport}"
    yield from ("topology", "paths", "paths?sort=flow", "links", "imbalance", "windows", "events",
                "events?from_ms=0", "collisions", "collectives", "ranks", "matrix", "qps", "hosts",
                "loss", "doctor", f"history?kind=link&key={key}",
                "history?kind=imbalance&key=fabric/capture", f"explain?link={key}",
                "explain?group=leaf1/up",
                "explain?flow=" + urllib.parse.quote(text.format(**path)))
    for window in at:
        for what in ("links", "imbalance", "events"):
            yield f"{what}?at_ms={window['window_start_ms']}"


class Replay(rig.Program):
    def __init__(self, folder, file, *options):
        self.http = free_port()
        super().__init__(folder, "replay", [rig.DAEMON, "--incident", file, *options],
                         f"http: 127.0.0.1:{self.http}\n")


def fetch(daemon, path):
    with urllib.request.urlopen(f"http://127.0.0.1:{daemon.http}{path}", timeout=rig.WAIT_S) as answer:
        return answer.read()


def ask(daemon, target):
    """An answer. The account's own time is that of asking, to a tenth of a second."""
    answer = daemon.get(f"/api/v1/{target}")
    return re.sub(r'"time_ms":\d+,', "", answer) if target == "loss" else answer


def frozen(daemon):
    """The file of the daemon, and its answers of the same moment: no window may close, nothing come
    and no link be confirmed in between."""
    def moment():
        return [ask(daemon, target) for target in ("windows", "loss", "topology")]

    for _ in range(20):
        before = moment()
        data = fetch(daemon, "/api/v1/incident")
        answers = {target: ask(daemon, target) for target in targets(daemon)}
        if before == moment():
            return data, answers
    check("a moment at which nothing changes", False)
    return data, answers


def same(what, replay, answers):
    differ = [target for target, answer in answers.items() if ask(replay, target) != answer]
    check(f"{what}: {len(answers)} answers are the same, byte for byte", not differ,
          [(t, answers[t][:300], replay.get(f"/api/v1/{t}")[:300]) for t in differ[:3]])


def replayed(folder, data, what, answers, look=None):
    """A replay of a complete file."""
    file = folder / f"{what}.ftr"
    file.write_bytes(data)
    replay = Replay(folder, file).start()
    try:
        same(what, replay, answers)
        check(f"{what}: it is ready", replay.get("/readyz") == "ok\n")
        if look:
            look(replay)
        try:
            fetch(replay, "/api/v1/incident")
            check(f"{what}: a replay keeps nothing itself", False)
        except urllib.error.HTTPError as error:
            equal(f"{what}: a replay keeps nothing itself", error.code, 404)
        return replay.log.read_text()
    finally:
        replay.stop()


def broken(folder, what, data, said, whole=None):
    """A file that is not as it should be: what of it is whole is served, or it ends."""
    file = folder / "broken.ftr"
    file.write_bytes(data)
    if whole is None:
        run = rig.run(rig.DAEMON, "--incident", file, *rig.NO_CONFIG)
        check(f"{what}: exit code 65, and why", run.returncode == 65 and said in run.stderr,
              (run.returncode, run.stderr))
        return
    replay = Replay(folder, file).start()
    try:
        check(f"{what}: says where", said in replay.log.read_text(), replay.log.read_text())
        whole(replay)
    finally:
        replay.stop()


def test_broken(folder, data, answers):
    found = sections(data)
    last = next(at for at, kind, _ in found if kind == "history")
    windows = json.loads(answers["windows"])["total"]

    def no_history(replay):
        """What the replay made itself: the same windows, by the same records."""
        got = json.loads(replay.get("/api/v1/windows"))["total"]
        check("the windows of the records are there", got >= windows - 1, (got, windows))

    broken(folder, "cut in a section", data[:last + 30], f"at byte {last + 30}: the file ends "
           "within a section: it was cut short", no_history)
    broken(folder, "cut between two", data[:last], f"at byte {last}: the file ends within the head "
           "of a section", no_history)
    records = next(at for at, kind, _ in found if kind == "records")
    broken(folder, "cut before the records", data[:records], f"at byte {records}: ",
           lambda replay: equal("nothing is known", json.loads(replay.get("/api/v1/paths"))["total"],
                                0))
    flipped = bytearray(data)
    flipped[last + HEAD + 5] ^= 1
    broken(folder, "one bit", bytes(flipped), f"at byte {last}: the section is damaged: its checksum",
           no_history)
    broken(folder, "empty", b"", "at byte 0: the file ends within its first bytes")
    broken(folder, "another file", TOPOLOGY.encode(), "at byte 0: this is not the file of an incident")
    broken(folder, "a later version", data[:7] + b"2" + data[8:], "is of version 2")
    broken(folder, "without its head", data[:8] + data[found[1][0]:], "does not begin with its head")


def test_incident(folder):
    """From the daemon's start on: all of it follows from what came in."""
    daemon = rig.Daemon(folder, TOPOLOGY).start()
    poller = rig.Poller(folder, daemon).start()
    try:
        feed(poller, 3)
        daemon.topology.write_text(TOPOLOGY.replace("fabric: capture", "fabric: other"))
        daemon.hang_up()
        daemon.log_says("reloaded the topology")
        until("windows and an event", lambda: feed(poller, 1) or json.loads(
            daemon.get("/api/v1/windows"))["total"] >= 3 and json.loads(
                daemon.get("/api/v1/events?from_ms=0"))["total"])
        poller.stop()
        data, answers = frozen(daemon)
        out = of_kind(daemon.records(), "path")
    finally:
        poller.kill()
        daemon.kill()
    check("there are paths, windows and events to compare",
          out and json.loads(answers["windows"])["total"] >= 3 and
          json.loads(answers["events?from_ms=0"])["total"], {t: a[:200] for t, a in answers.items()})
    # Events are those that stood at that moment: on a slow machine none may.
    stood = ["events"] if json.loads(answers["events"])["total"] else []
    equal("the file", [k for k, _ in itertools.groupby(k for _, k, _ in sections(data))],
          ["head", "topology", "records", "history", *stood, "end"])
    log = replayed(folder, data, "whole", answers)
    check("whole: the same went out", "the replay published the same" in log, log)
    test_broken(folder, data, answers)


def test_later(folder):
    """Of a daemon that ran long before: windows and events are as they were published."""
    daemon = rig.Daemon(folder, TOPOLOGY)
    daemon.config.write_text(daemon.config.read_text() + "incident: 2s\n")
    daemon.start()
    poller = rig.Poller(folder, daemon).start()
    try:
        feed(poller, 6)
        until("what came first is too old", lambda: daemon.metric("fabrictraced_incident_seconds") < 4)
        poller.stop()
        data, answers = frozen(daemon)
    finally:
        poller.kill()
        daemon.kill()
    past = {t: a for t, a in answers.items() if t.split("?")[0] in
            ("links", "imbalance", "windows", "history", "events", "collisions")}
    check("later: there is an event", json.loads(past["events?from_ms=0"])["total"], past)
    said = []
    log = replayed(folder, data, "later", past,
                   lambda replay: said.append(json.loads(replay.get("/api/v1/doctor"))["records"]))
    check("later: said", "the daemon was started before this recording" in log, log)
    recording = [f for f in said[0] if f["text"].startswith("this is a recording that began after")]
    head = json.loads(answers["windows"])["records"][0]
    check("later: the doctor says since when, and what is missing", len(recording) == 1 and
          recording[0]["since_ms"] > head["window_start_ms"] and "queue pairs" in recording[0]["text"],
          (recording, head))
    check("later: the daemon itself did not say so", "this is a recording" not in answers["doctor"],
          answers["doctor"])


COMMANDS = (("paths", "--json"), ("links",), ("imbalance", "--wide"), ("events", "--json"), ("qps",),
            ("topology", "--export"), ("doctor",), ("explain", "leaf1/up"), ("whatif", "--json", "--draws", "3"))


def tool(*args, **how):
    return rig.run(TOOL, *args, **how)


def check_interrupted(file):
    """A command of a replay that still reads its input; it reads once the pipe is not full any more."""
    command = subprocess.Popen([TOOL, "replay", file, "whatif", "--topology", rig.LAB / "topology.yaml",
                                "--flows", "-"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    try:
        command.stdin.write(b"src,dst,rate_bps\n" + 20000 * b"gpu01,gpu03,1000\n")
        command.stdin.flush()
        children = Path(f"/proc/{command.pid}/task/{command.pid}/children").read_text().split()
        command.send_signal(signal.SIGTERM)
        until("replay: SIGTERM ends a command", lambda: command.poll() == -signal.SIGTERM)
        until("replay: and its daemon", lambda: children and not Path(f"/proc/{children[0]}/exe").exists())
    finally:
        command.kill()
        command.stdin.close()
        command.wait()


def check_times(file):
    """They count back from the end of the last window, however long that was ago."""
    windows = [json.loads(line) for line in tool("replay", file, "imbalance", "--json").stdout.splitlines()]
    end_s = max(w["window_end_ms"] for w in windows) // 1000
    env = {**os.environ, "TZ": "UTC"}
    for ago_s in (60, 600):
        out = tool("replay", file, "events", "--since", f"{ago_s}s", env=env).stdout
        since = time.strftime("%H:%M:%S", time.gmtime(end_s - ago_s))
        check(f"replay: --since {ago_s}s is before its end", f"{since}: " in out or f"{since} " in out, out)
    out = tool("replay", file, "imbalance", "--at", "1s", env=env)
    check("replay: --at 1s is in its last window", out.returncode == 0, out.stderr)


def test_tool(folder):
    """fabrictrace record and replay: one command as it was, or the page until Ctrl-C."""
    # No window may close between the answers and the recording: it is long for what these take here.
    began = time.monotonic()
    tool("--version")
    window_s = max(2, math.ceil(60 * (time.monotonic() - began)))
    daemon = rig.Daemon(folder, TOPOLOGY)
    daemon.config.write_text(daemon.config.read_text().replace("window: 2s", f"window: {window_s}s"))
    daemon.start()
    poller = rig.Poller(folder, daemon).start()
    at, file = ("--endpoint", f"127.0.0.1:{daemon.http}"), folder / "i.ftr"
    try:
        until("a window with flows", lambda: feed(poller, 1) or any(
            g.get("flows") for g in json.loads(daemon.get("/api/v1/imbalance"))["records"]))
        poller.stop()
        for _ in range(20):
            before = [tool(*command, *at) for command in COMMANDS]
            recorded = tool("record", "--last", "5m", "-o", file, *at)
            if [(r.stdout, r.returncode) for r in before] == [
                    (r.stdout, r.returncode) for r in (tool(*c, *at) for c in COMMANDS)]:
                break
    finally:
        poller.kill()
        daemon.kill()
    check("record: it says where and how much", recorded.returncode == 0 and
          f"{file}: " in recorded.stdout, (recorded.stdout, recorded.stderr))
    equal("record: for its owner alone", file.stat().st_mode & 0o777, 0o600)
    for command, was in zip(COMMANDS, before):
        now = tool("replay", file, *command)
        equal(f"replay {' '.join(command)}", (now.stdout, now.returncode),
              (was.stdout, was.returncode))
    check_times(file)
    page = subprocess.Popen([TOOL, "replay", file], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True)
    try:
        address = page.stdout.readline().split()[-1]
        with urllib.request.urlopen(address + "api/v1/paths", timeout=rig.WAIT_S) as answer:
            check("replay: it answers", json.loads(answer.read())["total"] > 0)
        page.send_signal(signal.SIGINT)
        _, log = page.communicate(timeout=rig.WAIT_S)
        check("replay: Ctrl-C ends it, and it says what it replayed", page.returncode == 0 and
              "the replay published the same" in log, (page.returncode, log))
    finally:
        page.kill()
    check_interrupted(file)
    file.write_bytes(file.read_bytes()[:-40])
    cut = tool("replay", file, "paths", "--json")
    check("replay: of what is cut short it says so, and answers", cut.returncode == 0 and
          "it was cut short" in cut.stderr and cut.stdout, (cut.returncode, cut.stderr))
    for what, args, code, said in (
            ("no daemon", ("record", "-o", file, "--endpoint", "127.0.0.1:1"), 69, "does not answer"),
            ("no file", ("replay", folder / "none.ftr"), 66, "none.ftr: No such file"),
            ("another file", ("replay", rig.LAB / "topology.yaml"), 65, "not the file of an incident"),
            ("no name", ("replay",), 64, "takes the file"),
            ("a time that is none", ("record", "--last", "3x"), 64, "such as 90s"),
            ("no place", ("record", "-o", folder / "none" / "i.ftr", *at), 73, "No such file")):
        run = tool(*args)
        check(f"{what}: exit code {code}, and why", run.returncode == code and said in run.stderr,
              (run.returncode, run.stderr))


def test_off(folder):
    daemon = rig.Daemon(folder, TOPOLOGY)
    daemon.config.write_text(daemon.config.read_text() + "incident: 0\n")
    daemon.start()
    try:
        fetch(daemon, "/api/v1/incident")
        check("off: refused", False)
    except urllib.error.HTTPError as error:
        detail = json.loads(error.read())["detail"]
        check("off: 404, and which setting", error.code == 404 and "'incident' is 0" in detail,
              (error.code, detail))
    finally:
        daemon.stop()


if __name__ == "__main__":
    sys.exit(rig.run_tests(test_incident, test_later, test_tool, test_off))
