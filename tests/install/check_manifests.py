#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The DaemonSet, and the pod of a job in fabrictrace-deploy(7), by the strict schema of Kubernetes: no field that it
does not know. check_deploy.py sees to what they say.

usage: check_manifests.py SRCDIR

The schemas come from PyPI and are kept in ~/.cache/fabrictrace. Ends with "N passed, N failed, N skipped".
"""
import copy
import re
import subprocess
import sys
from pathlib import Path

sys.dont_write_bytecode = True
import yaml  # noqa: E402

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "kafka"))
import registry  # noqa: E402

SCHEMAS = "1.37.0"  # kubernetes-validate
VERSIONS = "1.29", "1.33", "1.37"
tally = {True: 0, False: 0}


def check(what, held, more=""):
    print("ok  " if held else "FAIL", what, "" if held else more)
    tally[held] += 1


def fetch(folder):
    registry.run("Kubernetes' schemas", sys.executable, "-m", "pip", "install", "-q", "--target", folder,
                 f"kubernetes-validate=={SCHEMAS}")


def manifests(top):
    yield from yaml.safe_load_all((top / "packaging/kubernetes/fabrictrace-agent.yaml").read_text())
    page = (top / "man/fabrictrace-deploy.7").read_text()
    yield yaml.safe_load(re.search(r"^(apiVersion: v1\nkind: Pod\n.*?)^\.Ed$", page, re.M | re.S)[1])


def main(top):
    where = Path("~/.cache/fabrictrace").expanduser()
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    sys.path.insert(0, str(registry.keep(where / f"kubernetes-validate-{SCHEMAS}-{version}", fetch)))
    import kubernetes_validate as schema

    def wrong(made, version):
        try:
            schema.validate(made, version, strict=True)
        except schema.ValidationError as error:
            return error.message
        return ""

    found = list(manifests(top))
    check("kinds", [m["kind"] for m in found] == ["Namespace", "ConfigMap", "DaemonSet", "Pod"],
          [m["kind"] for m in found])
    for version in VERSIONS:
        for made in found:
            why = wrong(made, version)
            check(f"{made['kind']} by Kubernetes {version}", not why, why)
        other = copy.deepcopy(found[2])
        spec = other["spec"]["template"]["spec"]
        spec["hostPid"] = spec.pop("hostPID")
        check(f"{version}: a field of another name is refused", "hostPid" in wrong(other, version))
    print(f"{tally[True]} passed, {tally[False]} failed, 0 skipped")
    return 1 if tally[False] else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
