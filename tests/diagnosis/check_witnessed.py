#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What switches and hosts counted, from their records to a person: a job on paper (daemon.py) over a link that
damages frames. The record that is published says so, the API answers with it, and the tool prints it. Runs in the
build folder."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]
import daemon  # noqa: E402
import speed  # noqa: E402
from ports import free_port  # noqa: E402

TOOL = pathlib.Path("cli/fabrictrace").resolve()
SEED = 4
failures = []


def check(what, wrong):
    print(f"{'FAIL' if wrong else 'ok'}: {what}{f': {wrong}' if wrong else ''}", flush=True)
    if wrong:
        failures.append(what)


def answer(url):
    try:
        with urllib.request.urlopen(url, timeout=speed.limit(20)) as reply:
            return json.load(reply)
    except OSError:
        return None


def look(job, lines, folder):
    http = f"127.0.0.1:{free_port()}"
    files = {name: folder / name for name in ("records", "topology", "sink", "log")}
    files["records"].write_text("\n".join(lines) + "\n")
    files["topology"].write_text(job.fabric.topology())
    with open(files["log"], "w", encoding="utf-8") as log:
        served = subprocess.Popen(
            [daemon.DAEMON, "--topology", files["topology"], "--set", "verify_topology=false", "--set", f"http={http}",
             "--replay", files["records"], "--serve", "--sink", f"file:{files['sink']}"], stderr=log)
    try:
        found = speed.wait(lambda: (answer(f"http://{http}/api/v1/diagnoses") or {}).get("records"), 120) or []
        text = subprocess.run([TOOL, "diagnose", "88"], capture_output=True, text=True, check=False,
                              env={**os.environ, "FABRICTRACE_ENDPOINT": http}).stdout
    finally:
        served.terminate()
        served.wait()
    published = [json.loads(line) for line in files["sink"].read_text().splitlines() if "diagnosis.v1" in line]
    return published, found, text


def main():
    job = daemon.CASES["lossy link"][0](SEED)
    lines = daemon.Reports(job, job.run()).lines()
    with tempfile.TemporaryDirectory(prefix="ft-witnessed-") as name:
        published, found, text = look(job, lines, pathlib.Path(name))
    told = [r for r in published if not r.get("cleared") and daemon.is_of_link(r, job.fault)]
    lacks = [daemon.unwitnessed(r, "lossy") for r in told]
    check("a record says what switches and hosts counted", [] if told and [] in lacks else lacks or "there is none")
    found = [r for r in found if daemon.is_of_link(r, job.fault)]
    lacks = [daemon.unwitnessed(r, "lossy") for r in found]
    check("the API answers with it", [] if found and [] in lacks else lacks or "there is none")
    # The first text is in the message.
    missing = [t for r in found for t in r["evidence_for"][1:] + [r["message"]] if t not in text]
    check("the tool prints all of it", missing if found else "nothing was found")
    return len(failures) > 0


if __name__ == "__main__":
    sys.exit(main())
