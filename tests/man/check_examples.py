#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each example of the manual is run: configurations and a topology are accepted by their programs, requests
are answered, commands of the tool do what they say, expressions are Prometheus'. Those of the guides (deploy,
switches, security, troubleshooting) are check_recipes.py's; what cannot be run here is listed with
what shows it instead, so that no example comes without either."""
import json
import os
import re
import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path

sys.dont_write_bytecode = True
TOP = Path(os.environ.get("srcdir", ".")).resolve()
for folder in ("tests", "tests/golden/daemon"):
    sys.path.insert(0, str(TOP / folder))
import rig  # noqa: E402
from rig import check, equal, until  # noqa: E402

# In check_recipes.py.
ELSEWHERE = tuple(f"fabrictrace-{name}.7" for name in ("deploy", "switches", "security", "troubleshooting"))
# (page, how it begins): what shows it.
NOT_RUN = {
    ("fabrictraced.8", "# nginx: "): "tests/page/check_proxy.mjs: nginx with the same lines",
    ("fabrictraced.8", "    proxy_set_header Auth"): "tests/page/check_proxy.mjs",
    ("libibverbs-fabrictrace.7", "label = port"): "a formula: unit/check_rdma_nldev",
    ("libnccl-profiler-fabrictrace.7", "export NCCL_PROFILER"): "Slurm; tests/nccl, tests/install/check_deploy.py",
    ("fabrictrace-oracle.7", "# sudo -u fabrictrace"): "a switch's answer: tests/oracle/check_adapters.py",
    ("fabrictrace-incident.5", "i.ftr: at byte"): "what the tool prints: golden/daemon/incident.py",
    ("fabrictrace-ingest.7", "$ fabrictraced --topics"): "kafka-topics.sh: tests/kafka/check_topics.py",
    ("fabrictrace-topics.7", "$ fabrictraced --topics"): "kafka-topics.sh: tests/kafka/check_topics.py",
    ("fabrictrace-ingest.7", "$ kafka-consumer-groups.sh"): "Kafka's own program",
    ("fabrictrace-api.7", '{"fabric":"lab"'): "an answer, shortened: golden/daemon/api.py",
}
PAGES = {p.name: p for p in [*(TOP / "man").glob("*.[1578]"), *Path("man").glob("*.[57]")]}


def plain(text):
    return text.replace("\\e\n", "\\\n").replace("\\(dq", '"')


def examples():
    """(page, text) of each."""
    for name in sorted(set(PAGES) - set(ELSEWHERE)):
        for text in blocks_of(name):
            yield name, text


def blocks_of(name):
    text = PAGES[name].read_text()
    for block in re.findall(r"^\.Bd -literal[^\n]*\n(.*?)^\.Ed$", text, re.M | re.S):
        yield plain(block)
    for line in re.findall(r"^\.Dl (.*)$", text, re.M):
        yield plain(line)


def accept(what, folder, text, *more):
    """By the daemon's own check, with the files that it names."""
    (folder / "var").mkdir(exist_ok=True)
    credentials = folder / "credentials"
    credentials.mkdir(exist_ok=True)
    for name in re.findall(r"credential:(\w+)", text):
        (credentials / name).write_text("a secret\n")
        (credentials / name).chmod(0o400)
    for name, source in ((n, s) for s in (TOP / "packaging/scheduler", TOP / "daemon/oracle/adapters")
                         for n in re.findall(r"[\w-]+", text) if (s / n).exists()):
        shutil.copy(source / name, folder)
    if "kafka-ca.pem" in text:
        from certificates import Authority
        shutil.copy(Authority(folder, "authority").ca, folder / "kafka-ca.pem")
    path = folder / "example.yaml"
    path.write_text(re.sub(r"/etc/fabrictrace|/usr/libexec/fabrictrace", str(folder), text)
                    .replace("/var/lib/fabrictrace", str(folder / "var")))
    done = subprocess.run([rig.DAEMON, "--check", "-c", path, *more], capture_output=True, text=True,
                          env={**os.environ, "CREDENTIALS_DIRECTORY": str(credentials)}, check=False)
    equal(what, (done.returncode, done.stderr), (0, ""))


def run_configuration(name, text, folder):
    first = text.split(":")[0]
    accept(f"{name}: the configuration of '{first}'", folder, text, *(("--sink", "kafka") if first == "kafka" else ()))


def run_pairs(text, folder):
    """Several configurations, each behind a comment that names it."""
    parts = dict(re.findall(r"^# (\S+)\n(.*?)(?=^# |\Z)", text, re.M | re.S))
    check("each has a name", len(parts) == 2, text)
    for name, part in parts.items():
        path = folder / "part.yaml"
        path.write_text(part)
        program = rig.POLLER if name == "switchpoll.yaml" else rig.DAEMON
        done = rig.run(program, "--check", "-c", path)
        equal(f"fabrictrace-ingest.7: {name}", (done.returncode, done.stderr), (0, ""))


def run_topology(text, folder):
    path = folder / "example-topology.yaml"
    path.write_text(text)
    done = rig.run(rig.DAEMON, "--check", *rig.NO_CONFIG, "--topology", path)
    equal("the topology", (done.returncode, done.stderr), (0, ""))


def run_request(text, _folder, daemon):
    url = text.split()[-1].strip("'").replace("127.0.0.1:9478", f"127.0.0.1:{daemon.http}")
    if "at_ms=" in url:  # a moment that is kept
        windows = []
        until("a window is closed", lambda: windows.extend(json.loads(daemon.get("/api/v1/windows"))["records"])
              or windows)
        url = re.sub("at_ms=[0-9]+", f"at_ms={windows[-1]['window_start_ms']}", url)
    with urllib.request.urlopen(url, timeout=rig.WAIT_S) as answer:
        check(f"{text}: is answered", answer.status == 200 and (url.endswith("/stream") or answer.read(1) == b"{"))


def run_script(name, text, folder, daemon):
    """As a reader types it, among files of these names."""
    files = {"night.pcap.zst": None, "fabric.yaml": "topology.yaml", "t.yaml": "topology.yaml", "x.pcap": "sflow.pcap"}
    for file, source in files.items():
        if source:
            shutil.copy(rig.LAB / source, folder / file)
    subprocess.run(["zstd", "-q", "-f", rig.LAB / "sflow.pcap", "-o", folder / "night.pcap.zst"], check=True)
    path = [str(p.parent) for p in (rig.DAEMON, rig.POLLER, Path("cli/fabrictrace").resolve())]
    env = {**os.environ, "PATH": ":".join([*path, os.environ["PATH"]]),
           "FABRICTRACE_ENDPOINT": f"127.0.0.1:{daemon.http}"}
    done = subprocess.run(["bash", "-o", "pipefail", "-c", text], cwd=folder, capture_output=True, text=True, env=env,
                          stdin=subprocess.DEVNULL, timeout=600, check=False)
    if "https://ops1" in text:  # all is taken: what it lacks is the file that it reads first
        check(f"{name}: {text}", "--token-file: token: No such file" in done.stderr, (done.returncode, done.stderr))
        return
    if "jq" in text:
        expected = (0,), True  # no group has a fault
    else:
        expected = (0, 1) if text.startswith("fabrictrace imbalance") else (0,), False
    check(f"{name}: {text.splitlines()[0]}", done.returncode in expected[0] and (done.stdout or expected[1])
          and all(line.startswith("info: ") for line in done.stderr.splitlines()), (done.returncode, done.stdout[-300:], done.stderr))
    if "path.v1" in text or "--replay" in text:
        check(f"{name}: it shows paths", "fabrictrace.path.v1" in done.stdout, done.stdout[:300])


def run_expression(text, folder):
    rules = folder / "rules.yaml"
    indented = text.replace("\n", "\n          ")
    rules.write_text(f"groups:\n  - name: example\n    rules:\n      - record: example\n        expr: |\n"
                     f"          {indented}\n")
    done = subprocess.run(["promtool", "check", "rules", rules], capture_output=True, text=True, check=False)
    equal(f"fabrictrace-metrics.7: {text.split()[0]}", (done.returncode, done.stderr), (0, ""))
    page = PAGES["fabrictrace-metrics.7"].read_text()
    for series in re.findall(r"\bfabrictrace\w+(?=\b(?!\.))", text):
        if re.search(r"[.*]", text[text.index(series) + len(series):][:2]):
            continue  # a pattern of names
        check(f"{series} is a series", re.search(rf"^\.It (?:Ic|Li|Cm)? ?{series}\b", page, re.M)
              or page.count(series) > 1, series)


def run_openssl(text, folder):
    done = subprocess.run(["sh", "-euc", text + "openssl verify -CAfile ca.pem gpu01.pem"], cwd=folder,
                          capture_output=True, text=True, check=False)
    check("fabrictraced.8: the certificates", done.returncode == 0 and "gpu01.pem: OK" in done.stdout, done.stderr)


def dispatch(name, text, folder, daemon):
    """Runs it; what was done, or None."""
    if text.startswith("curl "):
        return run_request(text, folder, daemon)
    if re.match(r"fabrictrace(-switchpoll)? ", text):
        return run_script(name, text, folder, daemon)
    if text.startswith("$ fabrictraced --topology topology.yaml --check"):
        shutil.copy(rig.LAB / "topology.yaml", folder)
        return run_script(name, text[2:], folder, daemon)
    if name == "fabrictrace-topology.5":
        return run_topology(text, folder)
    if name == "fabrictrace-metrics.7":
        return run_expression(text, folder)
    if text.startswith("openssl "):
        return run_openssl(text, folder)
    if re.match(r"# \S+\n\w+:", text):
        return run_pairs(text, folder)
    if re.match(r"\w+:\n", text):
        return run_configuration(name, text, folder)
    return check(f"{name}: something runs this example", False, text)


def test_examples(folder):
    daemon = rig.Daemon(folder, (rig.LAB / "topology.yaml").read_text()).start()
    left, seen = dict(NOT_RUN), 0
    try:
        for name, text in examples():
            why = next((key for key in NOT_RUN if key[0] == name and text.startswith(key[1])), None)
            if why:
                left.pop(why, None)
                continue
            where = folder / str(seen)
            where.mkdir()
            dispatch(name, text, where, daemon)
            seen += 1
        check("there are examples", seen >= 18, seen)
        equal("what is not run is there", left, {})
        daemon.stop()
    finally:
        daemon.kill()


if __name__ == "__main__":
    sys.exit(rig.run_tests(test_examples))
