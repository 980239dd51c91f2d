#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Requests made at random from the daemon's own description of its API: valid, at the edges, broken;
filters, cursors, methods, headers, tokens. Whatever is asked, the daemon answers as it says, stays
up and does not grow.

    api_random.py [--seed N] [--requests N | --minutes N]
"""
import os
import argparse
import gzip
import http.client
import json
import random
import sys
import time
import urllib.parse
import warnings
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.append("/usr/lib/python3/dist-packages")  # Debian's, for another python3 in front
warnings.filterwarnings("ignore", category=DeprecationWarning)  # of newer ones than Debian's
import jsonschema  # noqa: E402
import rig  # noqa: E402
import sflow  # noqa: E402
from rig import check, equal, until  # noqa: E402

TOPOLOGY = (rig.LAB / "topology.yaml").read_text()
TOKEN = "correct-horse-battery-staple"
REQUESTS = 600
GROWTH_BYTES = 16 << 20
# In a build with ASan memory that was freed is not kept back: it is no growth.
os.environ["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=1"
# Of a well-formed request; 500 is none of them.
STATUSES = {200, 304, 400, 401, 404, 405, 406, 414, 421, 431, 501, 503}
ODD = ["", "0", "-1", "1", "1.5", "1e9", "18446744073709551615", "18446744073709551616", "9" * 400,
       "NaN", "null", "true", "[]", "{}", "\0", "\x1b[31m", "%", "%zz", "a" * 3000, "ä€😀", "\udcff",
       "'", '"', "<b>", "../../etc/passwd", "a&b=c", "a/b", "/", "leaf1/", "/up", "10.0.1.1", "::1",
       "10.0.1.1:1-10.0.3.1", "10.0.1.1-", "[::1]:4791-[::2]:1", "0-0", "0-10", "7-", "-7", "1-1-1",
       "999999999999-1", "0-18446744073709551615"]
SENT = ("leaf1", "spine1", "Ethernet1", "leaf1/up", "gpu01", "resolved", "partial", "idle", "group",
        "fabric", "capture", "collision", "loss", "link", "path", "imbalance", "event", "rate", "flow",
        "AllReduce", "paired", "fault")


class Random:
    def __init__(self, daemon, seed):
        self.daemon, self.rng = daemon, random.Random(seed)
        self.description = json.loads(daemon.get("/api/v1/openapi.json"))
        self.resolver = jsonschema.RefResolver("", self.description)
        self.cursors, self.tags, self.texts = ["0-10"], ['"x"'], list(SENT)
        self.statuses, self.answered = {}, set()

    def value(self, name):
        """What may stand for a parameter: of the kind that it takes, or anything."""
        rng = self.rng
        if rng.random() < 0.15:
            return rng.choice(ODD)
        if name == "cursor":
            cursor = rng.choice(self.cursors)
            return cursor if rng.random() < 0.6 else self.broken(cursor)
        if name == "kind" and rng.random() < 0.7:
            return rng.choice(["link", "imbalance", "path", "event", "collision"])
        if name == "limit":
            return str(rng.choice([1, 2, 3, 10, 1000, 1000000, 0, 1000001]))
        if name.endswith("_ms"):
            return str(int(time.time() * 1000) - rng.choice([0, 1, 2000, 3000, 5000, 10**7, -10**7]))
        return rng.choice(self.texts) if rng.random() < 0.9 else self.broken(rng.choice(self.texts))

    def broken(self, text):
        at = self.rng.randrange(len(text) + 1)
        return self.rng.choice([text[:at], text[at:], text + text, text[:at] + "%" + text[at:],
                                text[:at] + chr(self.rng.randrange(1, 0x300)) + text[at:]])

    def target(self):
        """(path of the description, target)"""
        rng = self.rng
        path = rng.choice([p for p in self.description["paths"] if p != "/api/v1/stream"])
        names = [p["name"] for p in self.description["paths"][path]["get"].get("parameters", ())]
        chosen = rng.sample(names, min(len(names), rng.choice([0, 1, 1, 1, 2, 2, 3])))
        if path.endswith("/history") and rng.random() < 0.7:
            chosen = ["kind", "key"]
        if chosen and rng.random() < 0.05:
            chosen.append(rng.choice(chosen))  # twice
        if rng.random() < 0.05:
            chosen.append(rng.choice(["nonsense", "", "limit ", "Limit"]))
        query = "&".join(f"{urllib.parse.quote(n)}=" + urllib.parse.quote(
            self.value(n), errors="surrogateescape") for n in chosen)
        if rng.random() < 0.03:
            query += rng.choice(["&", "&&=", "=", "%", "#x", "?", ";"])
        return path, path + ("?" + query if query else "")

    def headers(self):
        rng, headers = self.rng, {}
        if rng.random() < 0.2:
            headers["If-None-Match"] = rng.choice([*self.tags, "*", "", '"', "x" * 500])
        if rng.random() < 0.3:
            headers["Accept-Encoding"] = rng.choice(["gzip", "*", "gzip;q=0", "br, gzip;q=0.1", ";;q"])
        if rng.random() < 0.05:
            headers["Host"] = rng.choice(["evil.example", "", "localhost:1", "[::1"])
        if rng.random() < 0.1:
            headers["Authorization"] = rng.choice(["", "Bearer", "Bearer x", "Basic eDp5", "x" * 2000])
        return headers

    def ask(self, target, headers, method="GET"):
        connection = http.client.HTTPConnection("127.0.0.1", self.daemon.http, timeout=rig.WAIT_S)
        try:
            connection.request(method, target, headers=headers)
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        finally:
            connection.close()

    def judge(self, path, status, headers, body):
        """What is wrong with an answer; None: nothing."""
        if status not in STATUSES:
            return f"status {status}"
        if status in (304, 501) or not body:
            return None
        if headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        form = headers.get("Content-Type", "")
        responses = self.description["paths"][path]["get"]["responses"]
        if status != 200:
            problem = json.loads(body)
            if form != "application/problem+json" or problem.get("status") != status:
                return f"{status} is no problem of RFC 9457: {form} {body[:200]}"
            return None
        content = responses["200"]["content"]
        if form not in content:
            return f"its form is {form}"
        if form != "application/json":
            return None
        answer = json.loads(body)
        errors = list(jsonschema.Draft202012Validator(
            content[form]["schema"], resolver=self.resolver).iter_errors(answer))
        if errors:
            return f"not as described: {[e.message[:200] for e in errors[:2]]}"
        self.learn(answer, headers)
        return None

    def learn(self, answer, headers):
        """Cursors, tags and names to ask with."""
        if isinstance(answer, dict) and answer.get("next"):
            self.cursors = (self.cursors + [answer["next"]])[-50:]
        if "ETag" in headers:
            self.tags = (self.tags + [headers["ETag"]])[-50:]
        records = answer.get("records", ()) if isinstance(answer, dict) else ()
        for record in self.rng.sample(list(records), min(len(records), 3)):
            texts = [v for v in record.values() if isinstance(v, str) and len(v) < 200]
            if "flow" in record:
                flow = record["flow"]
                texts.append("[{src}]:{sport}-[{dst}]:{dport}".format(**flow) if ":" in flow["src"]
                             else "{src}:{sport}-{dst}:{dport}".format(**flow))
            if record.get("switch") and record.get("port"):
                texts.append(f"{record['switch']}/{record['port']}")
            self.texts = (self.texts + texts)[-300:]

    def one(self):
        """A request and its answer. False: it was wrong."""
        path, target = self.target()
        headers, method = self.headers(), "GET"
        if self.rng.random() < 0.05:
            method = self.rng.choice(["HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"])
        try:
            status, got, body = self.ask(target, headers, method)
            wrong = self.judge(path, status, got, body)
        except (OSError, ValueError, http.client.HTTPException) as error:
            status, wrong = "none", f"{type(error).__name__}: {error}"
        self.statuses[status] = self.statuses.get(status, 0) + 1
        if status == 200:
            self.answered.add(path)
        return wrong is None or check(f"{method} {target[:400]} {headers}", False, wrong)


def resident(daemon):
    status = Path(f"/proc/{daemon.process.pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) << 10


def feed(poller, seconds):
    payloads = [payload for _, payload in sflow.datagrams((rig.LAB / "sflow.pcap").read_bytes())]
    end, number = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        for payload in payloads[:40]:
            number += 1
            poller.send(payload[:16] + number.to_bytes(4, "big") + (1000 * number).to_bytes(4, "big")
                        + payload[24:])
            time.sleep(0.005)


def test_random(folder, options):
    daemon = rig.Daemon(folder, TOPOLOGY)
    daemon.config.write_text(daemon.config.read_text() + "flow_idle: 1h\nincident: 10s\n")
    daemon.start()
    poller = rig.Poller(folder, daemon).start()
    try:
        feed(poller, 4)
        poller.stop()
        until("paths come", lambda: json.loads(daemon.get("/api/v1/paths"))["total"])
        asked, made = Random(daemon, options.seed), 0
        end = time.monotonic() + 60 * options.minutes
        before = good = 0

        def more():
            """By chance an endpoint may be left out for long: it goes on until it had its turn."""
            if options.minutes:
                return time.monotonic() < end
            return made < options.requests or (missing() and made < 20 * options.requests)

        def missing():
            return set(asked.description["paths"]) - asked.answered - {"/api/v1/stream"}
        while more() and len(rig.failures) < 10:
            good += asked.one()
            made += 1
            if made == options.requests // 3:
                before = resident(daemon)
        grown = resident(daemon) - before
        equal(f"{made} requests of seed {options.seed} are answered as described: "
              f"{dict(sorted((str(s), n) for s, n in asked.statuses.items()))}", good, made)
        check("they are of every kind", asked.statuses.get(200, 0) > made / 5 and
              asked.statuses.get(400, 0) > made / 20, asked.statuses)
        check("every endpoint answered once", not missing(), missing())
        check(f"memory grew by {grown >> 10} KiB, at most {GROWTH_BYTES >> 10}", grown < GROWTH_BYTES)
        check("it still takes part", json.loads(daemon.get("/api/v1/paths"))["total"] > 0)
        daemon.stop()
    finally:
        poller.kill()
        daemon.kill()


def test_tokens(folder, options):
    """Whatever is shown for the token: only the token opens."""
    file = folder / "token"
    file.write_text(TOKEN + "\n")
    file.chmod(0o600)
    daemon = rig.Daemon(folder, TOPOLOGY)
    daemon.config.write_text(daemon.config.read_text() + f"http_token_file: {file}\n")
    daemon.start()
    rng = random.Random(options.seed)
    paths = ("/api/v1/paths", "/api/v1/incident", "/metrics", "/api/v1/stream",
             "/api/v1/links?limit=-1")
    wrong = []
    try:
        for _ in range(100):
            at = rng.randrange(len(TOKEN))
            token = rng.choice(["", TOKEN[:at], TOKEN + "x", TOKEN.upper(), " " + TOKEN + "\t\t",
                                TOKEN[:at] + chr(rng.randrange(33, 126)) + TOKEN[at:], "x" * 4000])
            if token.strip() == TOKEN:
                continue
            header = rng.choice([f"Bearer {token}", f"bearer  {token}", token, f"Basic {token}",
                                 f"Bearer {token}, Bearer {token}"])
            path = rng.choice(paths)
            connection = http.client.HTTPConnection("127.0.0.1", daemon.http, timeout=rig.WAIT_S)
            connection.request("GET", path, headers={"Authorization": header})
            answer = connection.getresponse()
            if answer.status != 401 or b"records" in answer.read():
                wrong.append((path, header[:100], answer.status))
            connection.close()
        equal("wrong tokens: 401", wrong, [])
        connection = http.client.HTTPConnection("127.0.0.1", daemon.http, timeout=rig.WAIT_S)
        connection.request("GET", "/api/v1/paths", headers={"Authorization": f"Bearer {TOKEN}"})
        equal("the token: 200", connection.getresponse().status, 200)
        connection.close()
        daemon.stop()
    finally:
        daemon.kill()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--requests", type=int, default=REQUESTS)
    parser.add_argument("--minutes", type=float, default=0)
    options = parser.parse_args()

    def random_requests(folder):
        test_random(folder, options)

    def tokens(folder):
        test_tokens(folder, options)
    return rig.run_tests(random_requests, tokens)


if __name__ == "__main__":
    sys.exit(main())
