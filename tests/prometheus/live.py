#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A real Prometheus scrapes all three programs on loopback: their pages are what `promtool check
metrics` wants and what their tables say, the imbalance series are the published records of the same
windows, and every query of the dashboards and alerts is run against it.

usage: live.py    in the build folder"""
import json
import math
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "golden" / "daemon"), str(HERE)]
import fabric  # noqa: E402
import rig  # noqa: E402
from ports import free_port  # noqa: E402
from rig import check, equal, until  # noqa: E402

PACKAGING = HERE.parents[1] / "packaging"
RULES = PACKAGING / "prometheus" / "fabrictrace.rules.yaml"
DASHBOARDS = sorted((PACKAGING / "grafana").glob("*.json"))
# figure of a record: its series
FIGURES = {"fim": ("imbalance_fim_ratio", 100), "fim_bytes": ("imbalance_fim_bytes_ratio", 100),
           "fim_expected": ("imbalance_fim_expected_ratio", 100), "p_value": ("imbalance_p_value", 1),
           "max_over_mean": ("imbalance_max_over_mean_ratio", 1), "cov": ("imbalance_cov_ratio", 1),
           "jain": ("imbalance_jain_ratio", 1), "flows": ("imbalance_flows", 1),
           "effective_links": ("imbalance_effective_links", 1),
           "bottleneck_ratio": ("imbalance_bottleneck_ratio", 1), "links": ("imbalance_links", 1)}
SAMPLE = re.compile(r'^([a-z_:]+)(?:\{((?:[a-z_]+="(?:[^"\\]|\\.)*",?)*)\})? (\S+)$')


class Traffic(threading.Thread):
    """Sends the fabric's samples, a second's each second, until it is over."""

    def __init__(self, poller):
        super().__init__(daemon=True)
        self.poller, self.over = poller, threading.Event()

    def run(self):
        number = 0
        while not self.over.wait(1):
            number += 1
            for datagram in fabric.second(number):
                self.poller.send(datagram)


class Prometheus:
    """Debian's own, on loopback, with the rules that we ship."""

    def __init__(self, folder, targets):
        self.port, self.folder = free_port(), folder
        jobs = "".join(f"  - job_name: {name}\n    static_configs: [{{targets: ['127.0.0.1:{port}']}}]\n"
                       for name, port in targets.items())
        config = folder / "prometheus.yaml"
        config.write_text(f"global: {{scrape_interval: 1s, evaluation_interval: 1s}}\n"
                          f"rule_files: ['{RULES}']\nscrape_configs:\n{jobs}")
        self.log = open(folder / "prometheus.log", "w+")
        self.process = subprocess.Popen(
            [program("prometheus"), f"--config.file={config}", f"--storage.tsdb.path={folder}/tsdb",
             f"--web.listen-address=127.0.0.1:{self.port}", "--log.level=warn"],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)

    def stop(self):
        self.process.terminate()
        self.process.wait(timeout=rig.WAIT_S)
        self.log.close()

    def ask(self, path, **query):
        url = f"http://127.0.0.1:{self.port}/api/v1/{path}?{urllib.parse.urlencode(query)}"
        try:
            with urllib.request.urlopen(url, timeout=rig.WAIT_S) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise ValueError(f"{query}: {error.read().decode()}") from None

    def query(self, expression):
        return self.ask("query", query=expression)["result"]

    def ready(self):
        try:
            return self.process.poll() is not None or self.query("vector(1)")
        except (OSError, ValueError):  # 503 while it starts
            return False


def program(name):
    path = shutil.which(name)
    if not path:
        raise FileNotFoundError(f"{name} is missing: packaging/install-deps test")
    return path


def series_of(page):
    """[(name, labels as text)] of a page's samples."""
    found = []
    for line in page.splitlines():
        if not line.startswith("#"):
            match = SAMPLE.match(line)
            check("a line is a sample", match, line) if not match else found.append(match.groups()[:2])
    return found


def check_page(name, page, table, said):
    result = subprocess.run([program("promtool"), "check", "metrics"], input=page, text=True,
                            capture_output=True, timeout=300)
    check(f"{name}: promtool is content", result.returncode == 0 and not result.stderr,
          result.stdout + result.stderr)
    series = series_of(page)
    equal(f"{name}: no series twice", len(set(series)), len(series))
    families = re.findall(r"^# TYPE (\S+) ", page, re.M)
    equal(f"{name}: each family once", len(set(families)), len(families))
    equal(f"{name}: each family is in the manual page", sorted(set(families) - set(table)), [])
    allowed = {f + end for f in families for end in ("", "_sum", "_count")}
    equal(f"{name}: each series has its family", {n for n, _ in series} - allowed, set())
    check(f"{name}: no more series than --check says", len(series) <= said, (len(series), said))
    # Nothing of a flow: no label with a source port, a tuple or a queue pair.
    labels = {label for _, text in series if text for label in re.findall(r'([a-z_]+)="', text)}
    known = {"version", "stage", "unit", "reason", "fate", "table", "kind", "severity", "subject",
             "state", "sink", "switch", "port", "peer", "peer_port", "tier", "direction", "group",
             "scope", "name", "verdict", "training_job", "agent", "sub_agent", "record", "interface",
             "fabric", "syndrome", "samples", "outcome", "socket"}
    equal(f"{name}: labels", sorted(labels - known), [])
    check(f"{name}: no source port", not re.search(r"49[1-5]\d\d[^0-9]", page.replace("e+", "")) or
          not re.search(r'="[^"]*49[1-5]\d\d', page), "a label holds a source port")


def table_of(program_path):
    """What the program's table lists for the manual page."""
    return re.findall(r"^\.It Va (\S+)", rig.run(program_path, "--print-metrics").stdout, re.M)


def most_of(part):
    """The number of series that --check prints."""
    text = rig.run(*part.command, "--check", "-c", part.config).stdout
    match = re.search(r"/metrics: at most (\d+) series", text)
    return int(match.group(1)) if check(f"{part.name}: --check says how many series", match, text) else 0


def by_scrape(prometheus, name):
    """{(labels, time of the scrape): value} of a series' raw samples."""
    return {(s["metric"].get("scope"), s["metric"].get("name"), at): float(value)
            for s in prometheus.query(f"fabrictraced_{name}[10m]") for at, value in s["values"]}


def check_imbalance(prometheus, daemon):
    """A scrape is of one window; its figures are those of the records of that window."""
    ends = {at: round(1000 * end) for (_, _, at), end in
            by_scrape(prometheus, "window_end_timestamp_seconds").items()}
    records = {(r["scope"], r["name"], r["window_end_ms"]): r
               for r in rig.of_kind(daemon.records(), "imbalance")}
    compared, windows = 0, set()
    for figure, (name, times) in FIGURES.items():
        for (scope, who, at), value in by_scrape(prometheus, name).items():
            if at > max(ends):
                continue  # scraped since then
            record = records.get((scope, who, ends[at]))
            if not check("a series' window is published", record, (scope, who, ends[at])):
                return
            want = record.get(figure)
            windows.add(ends[at])
            compared += 1
            # Records have six significant digits.
            if want is None or not math.isclose(times * value, want, rel_tol=1e-5, abs_tol=1e-9):
                check(f"{figure} of {who}", False, f"{times * value} in the series, {want} published")
                return
    check("the series are the records of the same windows", compared > 100 and len(windows) >= 3,
          f"{compared} figures of {len(windows)} windows")


def selected(expression):
    """The metrics that an expression names."""
    return set(re.findall(r"\b((?:fabrictrace|process)[a-z_]*)\b", re.sub(r'"[^"]*"', '""', expression)))


def check_queries(prometheus, tables):
    empty = re.compile(r"event|job|oracle|diagnos|drop|discard|refused|failed|missing|rdma|snmp|nccl|plan|capture|pause|pfc"
                       r"|queue_max|transit|slow|cut_off|unplaced|crossings|restarts")
    for path in DASHBOARDS:
        board = json.loads(path.read_text())
        names = {v["name"] for v in board["templating"]["list"]}
        count = 0
        for panel in board["panels"]:
            for target in panel.get("targets", ()):
                text = re.sub(r"\$__rate_interval|\$__interval|\$__range", "1m", target["expr"])
                used = set(re.findall(r"\$\{?(\w+)", text))
                equal(f"{path.name}, {panel['title']}: variables", used - names, set())
                text = re.sub(r"\$\{?\w+(?::regex)?\}?", ".+", text)
                unknown = {n for n in selected(text) if n not in tables and
                           re.sub("_(sum|count)$", "", n) not in tables}
                equal(f"{path.name}, {panel['title']}: metrics", unknown, set())
                result = prometheus.query(text)
                count += 1
                if not empty.search(text):
                    check(f"{path.name}, {panel['title']}: series", result, text)
        for variable in board["templating"]["list"]:
            if variable["type"] == "query" and not empty.search(str(variable["query"])):
                match = re.match(r"label_values\((.*), *(\w+)\)", variable["query"]["query"])
                text = re.sub(r"\$\{?\w+(?::regex)?\}?", ".+", match.group(1))
                check(f"{path.name}: ${variable['name']} has values", any(
                    match.group(2) in s["metric"] for s in prometheus.query(text)), text)
        check(f"{path.name}: has queries", count > 3, count)


def check_rules(prometheus, tables):
    groups = prometheus.ask("rules")["groups"]
    rules = [r for g in groups for r in g["rules"] if r["type"] == "alerting"]
    check("there are alerts", len(rules) > 10, len(rules))
    for rule in rules:
        equal(f"{rule['name']}: evaluated", rule["health"], "ok")
        equal(f"{rule['name']}: metrics", selected(rule["query"]) - set(tables), set())
        prometheus.query(rule["query"])
        for part in ("summary", "cause", "evidence", "advice"):
            check(f"{rule['name']}: says its {part}", rule["annotations"].get(part))
    # leaf1 puts every flow on one uplink; leaf2 spreads its own, and nothing is said of it.
    def found():
        return {a["labels"].get("name") for a in prometheus.ask("alerts")["alerts"]
                if a["labels"]["alertname"] == "FabrictraceGroupFault"}
    until("the fault is an alert", lambda: "leaf1/up" in found())
    equal("and the even group is none", "leaf2/up" in found(), False)


def test_prometheus(folder):
    daemon = rig.Daemon(folder, fabric.topology())
    daemon.config.write_text(daemon.config.read_text() + "floor: 0\nverify_topology: false\n")
    poller = rig.Poller(folder, daemon)
    agent = rig.Agent(folder, daemon)
    if os.geteuid():
        agent.config.write_text(agent.config.read_text().replace("[lo]", "[]"))
    parts = {"fabrictraced": daemon, "fabrictrace-switchpoll": poller, "fabrictrace-agent": agent}
    prometheus = traffic = None
    try:
        for part in parts.values():
            part.start()
        traffic = Traffic(poller)
        traffic.start()
        prometheus = Prometheus(folder, {n: p.http for n, p in parts.items()})
        until("Prometheus answers", prometheus.ready)
        until("all three are scraped", lambda: len(prometheus.query("up == 1")) == 3)
        until("leaf1 is at fault", lambda: prometheus.query(
            'fabrictraced_imbalance_verdict{name="leaf1/up", verdict="fault"} == 1'))
        until("some windows are scraped", lambda: len({v for s in prometheus.query(
            "fabrictraced_window_end_timestamp_seconds[10m]") for _, v in s["values"]}) >= 5)
        tables = []
        for name, part in parts.items():
            table = table_of(part.command[0])
            tables += table
            check_page(name, part.get("/metrics"), table, most_of(part))
        check_rules(prometheus, tables)
        check_queries(prometheus, tables)
        check_imbalance(prometheus, daemon)
    finally:
        if traffic:
            traffic.over.set()
        if prometheus:
            prometheus.stop()
        for part in parts.values():
            part.stop()


if __name__ == "__main__":
    sys.exit(rig.run_tests(test_prometheus))
