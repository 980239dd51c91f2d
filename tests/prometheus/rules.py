#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The alerts that are shipped: promtool takes them, fires them as their tests say, and each of them
is tested and in the guide.

usage: rules.py"""
import re
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCES = HERE.parents[1]
RULES = SOURCES / "packaging" / "prometheus" / "fabrictrace.rules.yaml"
TESTS = HERE / "rules_test.yaml"
failures = []


def check(what, good, detail=""):
    print(f"{'ok' if good else 'FAIL'}: {what}{'' if good else f': {detail}'}")
    if not good:
        failures.append(what)


def promtool(*arguments):
    path = shutil.which("promtool")
    if not path:
        return False, "promtool is missing: packaging/install-deps test"
    result = subprocess.run([path, *map(str, arguments)], capture_output=True, text=True, timeout=300)
    return result.returncode == 0, result.stdout + result.stderr


check("promtool check rules", *promtool("check", "rules", RULES))
check("promtool check config", *promtool("check", "config", RULES.parent / "prometheus.yaml"))
check("promtool test rules", *promtool("test", "rules", TESTS))
alerts = set(re.findall(r"^ +- alert: (\w+)", RULES.read_text(), re.M))
tests, guide = TESTS.read_text(), (SOURCES / "man" / "fabrictrace-monitoring.7").read_text()
check("there are alerts", len(alerts) > 10, alerts)
fired = set(re.findall(r'\{alertname="(\w+)"', tests))
check("each is made to fire", alerts == fired, alerts ^ fired)
told = set(re.findall(r"\bFabrictrace[A-Z]\w+", guide))
check("the guide has each", alerts == told, alerts ^ told)
sys.exit(1 if failures else 0)
