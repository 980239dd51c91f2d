#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The HTTP API of the daemon as it runs, on loopback: each answer against the description that the
daemon itself serves, history against what was published, pages, filters, and what is new."""
import gzip
import http.client
import json
import ssl
import struct
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
import warnings
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.append("/usr/lib/python3/dist-packages")  # Debian's, for another python3 in front
warnings.filterwarnings("ignore", category=DeprecationWarning)  # of newer ones than Debian's
import jsonschema  # noqa: E402
import rig  # noqa: E402
import sflow  # noqa: E402
from certificates import Authority  # noqa: E402
from rig import check, equal, of_kind, until  # noqa: E402

TOPOLOGY = (rig.LAB / "topology.yaml").read_text()


class Api:
    def __init__(self, daemon):
        self.daemon = daemon
        self.description = json.loads(daemon.get("/api/v1/openapi.json"))
        self.resolver = jsonschema.RefResolver("", self.description)
        self.judged = set()

    def ask(self, target, headers=(), method="GET"):
        """(status, headers, body) of a request."""
        connection = http.client.HTTPConnection("127.0.0.1", self.daemon.http, timeout=rig.WAIT_S)
        connection.request(method, target, headers=dict(headers))
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        return answer.status, dict(answer.getheaders()), body

    def get(self, target, status=200):
        """The answer, which is as the description says."""
        got, headers, body = self.ask(target)
        if not check(f"{target}: {status}", got == status, (got, body[:300])):
            return {}
        answer = json.loads(body)
        path = self.description["paths"][urllib.parse.urlsplit(target).path]["get"]
        form = "application/json" if status == 200 else "application/problem+json"
        equal(f"{target}: its form", headers["Content-Type"], form)
        schema = path["responses"][str(status)]["content"][form]["schema"]
        errors = list(jsonschema.Draft202012Validator(schema, resolver=self.resolver)
                      .iter_errors(answer))
        check(f"{target}: as described", not errors, [e.message[:300] for e in errors[:3]])
        self.judged.add(urllib.parse.urlsplit(target).path)
        return answer


def feed(folder, seconds, settings=""):
    """A daemon that has seen the capture's traffic for so long, and what it published."""
    daemon = rig.Daemon(folder, TOPOLOGY)
    # On a slow machine the flows are still to be there at the end.
    daemon.config.write_text(daemon.config.read_text() + "flow_idle: 1h\n" + settings)
    daemon.start()
    poller = rig.Poller(folder, daemon).start()
    payloads = [payload for _, payload in sflow.datagrams((rig.LAB / "sflow.pcap").read_bytes())]
    number, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        for payload in payloads[:40]:
            number += 1
            poller.send(payload[:16] + struct.pack(">II", number, 1000 * number) + payload[24:])
            time.sleep(0.005)
    until("a collision stands", lambda: json.loads(daemon.get("/api/v1/collisions"))["total"])
    return daemon, poller


def test_answers(api):
    """Each endpoint answers as it says."""
    link = api.get("/api/v1/links")["records"][0]
    key = f"{link['switch']}/{link['port']}"
    path = api.get("/api/v1/paths?state=resolved&limit=1")["records"][0]
    flow = path["flow"]
    text = "[{src}]:{sport}-[{dst}]:{dport}" if ":" in flow["src"] else "{src}:{sport}-{dst}:{dport}"
    at = api.get("/api/v1/windows")["records"][-2]["window_start_ms"]
    for target in (
            "topology", "flows", "paths", "paths?sort=flow", "paths?switch=spine1", "links",
            f"links?switch={link['switch']}&port={link['port']}", f"links?at_ms={at}",
            "links?group=leaf1/up", "imbalance", "imbalance?scope=fabric", f"imbalance?at_ms={at}",
            "elephants", f"elephants?at_ms={at}", "windows", f"windows?from_ms={at}", f"history?kind=link&key={key}",
            "history?kind=imbalance&key=group/leaf1/up", "events", "events?kind=loss",
            "events?from_ms=0", f"events?at_ms={at}", "collisions", "collectives", "ranks",
            "matrix", "hosts", "qps", "hashes", "diagnoses", "rhythms", "spread", "plans", "moves", "probes",
            "probes?flow=10.0.1.1:49441-10.0.3.1", "whatif",
            "whatif?policy=plan,crc32&seeds=3&pairs=2&spray=2", "loss", "doctor",
            f"explain?link={key}",
            "explain?group=leaf1/up", "explain?job=none",
            "explain?flow=" + urllib.parse.quote(text.format(**flow))):
        api.get(f"/api/v1/{target}")
    rest = {path for path in api.description["paths"] if path not in api.judged}
    equal("what is installed is what is served",
          json.loads(Path("daemon/api/openapi.json").read_text()), api.description)
    equal("all that is described was judged", rest,
          {"/api/v1/stream", "/api/v1/openapi.json", "/api/v1/incident"})
    for path, item in api.description["paths"].items():
        if path in rest:
            continue
        wrong = api.get(f"{path}?nonsense=1", 400)
        check(f"{path}: names what it does not know", "nonsense" in wrong.get("detail", ""), wrong)
        for parameter in item["get"]["parameters"]:
            status, _, body = api.ask(f"{path}?{parameter['name']}=1")
            check(f"{path}: knows {parameter['name']}",
                  b"is not a filter here" not in body and status in (200, 400, 404), body[:200])


def test_wrong(api):
    for target, status in (
            ("links?cursor=x", 400), ("links?cursor=1-", 400), ("links?cursor=99999-0", 400),
            ("links?limit=-1", 400), ("links?limit=1e9", 400), ("links?limit=1&limit=2", 400),
            ("links?at_ms=1", 404), ("links?at_ms=now", 400), ("paths?cursor=rate1-00", 400),
            ("paths?state=lost", 400), ("paths?sort=size", 400), ("paths?rank=x", 400),
            ("paths?rank=4294967295", 200), ("paths?rank=4294967296", 400), ("ranks?rank=4294967296", 400),
            ("events?rank=4294967297", 400), ("imbalance?scope=pod", 400), ("spread?of=flow", 400),
            ("spread?of=job", 200),
            ("events?kind=none", 400), ("events?at_ms=1&from_ms=1", 400), ("history", 400),
            ("history?kind=flow&key=x", 400), ("events?from_ms=2&to_ms=1", 400),
            ("qps?state=none", 400), ("explain", 400), ("explain?link=leaf1", 404),
            ("explain?flow=1&link=2", 400), ("explain?group=none", 404),
            ("imbalance?state=none", 400), ("whatif?policy=none", 400), ("whatif?seeds=0", 400),
            ("whatif?seeds=101", 400), ("whatif?pairs=9", 400), ("whatif?spray=65", 400)):
        api.get(f"/api/v1/{target}", status)


def test_history(api, daemon):
    """What is kept is what was published."""
    windows = api.get("/api/v1/windows")["records"]
    check("windows are kept", len(windows) >= 3, windows)
    spans = {w["window_start_ms"] for w in windows}
    between = f"from_ms={min(spans)}&to_ms={max(spans) + 1}"
    until("what is kept is in the file as well", lambda: [
        r for r in of_kind(daemon.records(), "imbalance")
        if r["scope"] == "fabric" and r["window_start_ms"] == max(spans)])
    published = [r for r in daemon.records() if r.get("window_start_ms") in spans]
    links = of_kind(published, "link")
    for window in windows:
        at = window["window_start_ms"]
        equal(f"links of {at}", api.get(f"/api/v1/links?at_ms={at}")["records"],
              [r for r in links if r["window_start_ms"] == at])
        equal(f"imbalance of {at}", api.get(f"/api/v1/imbalance?at_ms={at}")["records"],
              [r for r in of_kind(published, "imbalance") if r["window_start_ms"] == at])
    for switch, port in sorted({(r["switch"], r["port"]) for r in links})[:3]:
        equal(f"history of {switch}/{port}",
              api.get(f"/api/v1/history?kind=link&key={switch}/{port}&{between}")["records"],
              [r for r in links if (r["switch"], r["port"]) == (switch, port)])
    elephants = sum(w["elephants"] for w in windows)
    check("elephants are kept", elephants > 0, windows)
    event = api.get("/api/v1/collisions?from_ms=0")["records"][0]
    key = f"collision/{event['subject']}"
    kept = api.get(f"/api/v1/history?kind=event&key={key}")["records"]
    check(f"history of {key}: it is there", kept)

    def told():
        """Of these the file may have more already, or not yet all."""
        events = [r for r in of_kind(daemon.records(), "event")
                  if r["kind"] == "collision" and r["subject"] == event["subject"]]
        return events[:len(kept)] if len(events) >= len(kept) else None

    equal(f"history of {key}: as it was published", kept, until("it is in the file", told))
    flow = api.get("/api/v1/paths?state=resolved")["records"][0]["flow"]
    key = "{src},{dst},{sport},{dport},{proto}".format(**flow)
    for record in api.get(f"/api/v1/history?kind=path&key={key}&{between}")["records"]:
        if record["flow"] != flow or record["window_start_ms"] not in spans:
            check(f"history of {key}", False, record)


def pages(api, target):
    """The records of all pages of a few, and how many there are."""
    records, cursor, count, separator = [], "", 0, "&" if "?" in target else "?"
    while True:
        answer = api.get(f"{target}{separator}limit=7{cursor}")
        records += answer["records"]
        count += 1
        if len(answer["records"]) > 7 or count > 200:
            check(f"{target}: a page's length", False, len(answer["records"]))
            return records, count
        if "next" not in answer:
            return records, count
        cursor = f"&cursor={answer['next']}"


def test_pages(api):
    at = api.get("/api/v1/windows")["records"][-1]["window_start_ms"]
    for target in (f"/api/v1/links?at_ms={at}", f"/api/v1/imbalance?at_ms={at}",
                   f"/api/v1/events?at_ms={at}"):
        whole = api.get(target)["records"]
        records, count = pages(api, target)
        check(f"{target}: all is on one page", records[:len(whole)] == whole, (records, whole))
        equal(f"{target}: pages", count, max(1, (len(whole) + 6) // 7))
    flows = [json.dumps(r["flow"]) for r in api.get("/api/v1/paths?sort=flow")["records"]]
    paged = [json.dumps(r["flow"]) for r in pages(api, "/api/v1/paths?sort=flow")[0]]
    check("paths: each once, in order", paged == flows and len(set(paged)) == len(paged),
          (paged, flows))
    paged = [json.dumps(r["flow"]) for r in pages(api, "/api/v1/paths")[0]]
    equal("paths by rate: each once", sorted(paged), sorted(flows))


def test_forms(api):
    """Packed, not sent again, and without a body."""
    at = api.get("/api/v1/windows")["records"][-1]["window_start_ms"]
    target = f"/api/v1/links?at_ms={at}"
    _, headers, plain = api.ask(target)
    tag = headers["ETag"]
    status, headers, packed = api.ask(target, {"Accept-Encoding": "gzip"})
    equal("packed", (status, headers["Content-Encoding"]), (200, "gzip"))
    equal("packed: the same", gzip.decompress(packed), plain)
    status, headers, body = api.ask(target, {"If-None-Match": tag})
    equal("not sent again", (status, body), (304, b""))
    status, headers, body = api.ask(target, method="HEAD")
    equal("without a body", (status, headers["ETag"], body), (200, tag, b""))
    status, headers, body = api.ask(target, {"Origin": "http://example.org"})
    check("no other page may read it", not any("Access-Control" in h for h in headers), headers)
    status, _, body = api.ask(target, method="POST")
    equal("nothing is written", (status, json.loads(body)["status"]), (405, 405))
    for path in ("/healthz", "/readyz"):
        equal(path, api.ask(path)[::2], (200, b"ok\n"))


def test_stream(api, daemon):
    """What is new is told: windows with their imbalance, as it was published."""
    connection = http.client.HTTPConnection("127.0.0.1", daemon.http, timeout=rig.WAIT_S)
    connection.request("GET", "/api/v1/stream")
    answer = connection.getresponse()
    equal("stream", (answer.status, answer.getheader("Content-Type")), (200, "text/event-stream"))
    windows, kind = [], None
    while len(windows) < 3:
        line = answer.readline().decode().rstrip("\n")
        if line.startswith("event: "):
            kind = line[7:]
        elif line.startswith("data: ") and kind == "window":
            windows.append(json.loads(line[6:]))
    answer.close()
    connection.close()
    starts = [w["window_start_ms"] for w in windows]
    equal("stream: each window, in order", starts, [starts[0] + 2000 * i for i in range(3)])
    for window in windows:
        at = window["window_start_ms"]
        equal(f"stream: window {at}", window["imbalance"],
              api.get(f"/api/v1/imbalance?scope=fabric&at_ms={at}")["records"][0])


def test_api(folder):
    daemon, poller = feed(folder, 8)
    try:
        api = Api(daemon)
        test_answers(api)
        test_wrong(api)
        test_history(api, daemon)
        test_pages(api)
        test_forms(api)
        test_stream(api, daemon)
        poller.stop()
        daemon.stop()
        rig.check_balance("api", daemon.records())
    finally:
        poller.kill()
        daemon.kill()


def test_kept(folder):
    """The history outlives the daemon; a broken file is told, and harms nothing."""
    kept = folder / "history"
    daemon = rig.Daemon(folder, TOPOLOGY)
    daemon.config.write_text(daemon.config.read_text() + f"history_file: {kept}\n")
    daemon.start()
    try:
        windows = until("windows", lambda: (lambda r: r if len(r) >= 3 else None)(
            json.loads(daemon.get("/api/v1/windows"))["records"]))
        at = windows[1]["window_start_ms"]
        links = json.loads(daemon.get(f"/api/v1/links?at_ms={at}"))["records"]
        daemon.stop()
        daemon.start()
        again = json.loads(daemon.get("/api/v1/windows"))["records"]
        equal("the windows are there again", again[:len(windows)], windows)
        equal("and their links", json.loads(daemon.get(f"/api/v1/links?at_ms={at}"))["records"],
              links)
        daemon.stop()
        kept.write_bytes(kept.read_bytes()[:-100] + bytes(100))
        daemon.start()
        daemon.log_says("is damaged: starting empty")
        until("windows come anew", lambda: (lambda r: r and r[0]["window_start_ms"] > at)(
            json.loads(daemon.get("/api/v1/windows"))["records"]))
        daemon.stop()
        equal("nothing is left beside it", sorted(p.name for p in folder.glob("history*")),
              ["history"])
    finally:
        daemon.kill()


def test_inherited(folder):
    """What stands when the daemon ends stands for the next one, who clears it or goes on with it."""
    daemon, poller = feed(folder, 4, f"history_file: {folder}/history\n")
    try:
        poller.kill()
        daemon.stop()
        active = {}
        for r in of_kind(daemon.records(), "event"):
            active[r["kind"], r["subject"]] = None if r.get("cleared") else r.get("since_ms")
        active = {key: since for key, since in active.items() if since}
        check("something stood", any(kind == "collision" for kind, _ in active), active)
        daemon.start()
        daemon.log_says(f"and {len(active)} active events")
        got = {(r["kind"], r["subject"]): r["since_ms"]
               for r in json.loads(daemon.get("/api/v1/events"))["records"]}
        equal("it stands", {key: got.get(key) for key in active}, active)
        daemon.stop()
    finally:
        poller.kill()
        daemon.kill()


def judge(folder, *settings):
    """What --check says of these settings."""
    done = rig.run(rig.DAEMON, *rig.NO_CONFIG, "--check",
                   *(part for setting in settings for part in ("--set", setting)))
    return done.returncode, done.stdout + done.stderr


def test_secure(folder):
    """HTTPS and a token; nothing less beyond loopback unless somebody says so."""
    cert, key = Authority(folder).make("server", "DNS:localhost", "IP:127.0.0.1")
    token = folder / "token"
    token.write_text("correct-horse-battery\n")
    token.chmod(0o600)
    tls = (f"http_tls.cert={cert}", f"http_tls.key={key}")
    for what, code, text, settings in (
            ("plain beyond loopback", 78, "is beyond loopback", ("http=:9478",)),
            ("TLS without a token", 78, "is beyond loopback", ("http=:9478", *tls)),
            ("a token without TLS", 78, "is beyond loopback",
             ("http=:9478", f"http_token_file={token}")),
            ("both", 0, "", ("http=:9478", *tls, f"http_token_file={token}")),
            ("plain, and said so", 0, "", ("http=:9478", "http_plain=true")),
            ("half of TLS", 78, "belong together", (f"http_tls.cert={cert}",)),
            ("no token there", 78, "http_token_file", (f"http_token_file={folder}/none",)),
            ("no such credential", 78, "http_token_file", ("http_token_file=credential:x",))):
        got = judge(folder, *settings)
        check(f"--check: {what}", got[0] == code and text in got[1], got)
    token.chmod(0o644)
    got = judge(folder, f"http_token_file={token}")
    check("--check: a token that everybody may read", got[0] == 78 and "chmod" in got[1], got)
    token.chmod(0o600)
    daemon = rig.Daemon(folder, TOPOLOGY)
    daemon.config.write_text(daemon.config.read_text() + f"http_token_file: {token}\n"
                             f"http_tls: {{cert: {cert}, key: {key}}}\n")
    trusted = ssl.create_default_context(cafile=str(folder / "ca.pem"))

    def get(path, *, context=trusted, headers=()):
        request = urllib.request.Request(f"https://127.0.0.1:{daemon.http}{path}",
                                         headers=dict(headers))
        try:
            with urllib.request.urlopen(request, timeout=rig.WAIT_S, context=context) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()
        except OSError as error:
            return None, str(error)

    daemon.answers = lambda: get("/healthz")[0]
    daemon.start()
    bearer = {"Authorization": "Bearer correct-horse-battery"}
    try:
        equal("health needs no token", get("/healthz"), (200, b"ok\n"))
        equal("the API needs one", get("/api/v1/links")[0], 401)
        equal("Prometheus too", get("/metrics")[0], 401)
        equal("another is none", get("/api/v1/links", headers={"Authorization": "Bearer x"})[0], 401)
        equal("with it", get("/api/v1/links", headers=bearer)[0], 200)
        for _ in range(20):
            if get("/api/v1/topology", headers=bearer)[0] != 200:
                check("again and again", False)
        status, why = get("/healthz", context=ssl.create_default_context())
        check("who does not know the authority hears nothing", status is None, why)
        try:
            plain = http.client.HTTPConnection("127.0.0.1", daemon.http, timeout=rig.WAIT_S)
            plain.request("GET", "/healthz")
            check("plain HTTP is not answered", plain.getresponse().status is None)
        except (http.client.HTTPException, OSError):
            check("plain HTTP is not answered", True)
        token.write_text("another-horse-battery\n")
        daemon.hang_up()
        until("the new token counts", lambda: get("/api/v1/links", headers={
            "Authorization": "Bearer another-horse-battery"})[0] == 200)
        equal("the old one does not", get("/api/v1/links", headers=bearer)[0], 401)
        daemon.stop()
    finally:
        daemon.kill()


if __name__ == "__main__":
    sys.exit(rig.run_tests(test_api, test_kept, test_inherited, test_secure))
