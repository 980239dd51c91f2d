#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The examples of a deployment: what the DaemonSet and the Ansible role configure is what the agent
accepts, the DaemonSet's agent runs with the privileges that it is given there and no others, and the
image is made of packages that there are. Neither Kubernetes nor Ansible is needed."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import jinja2
import yaml

TOP = Path(os.environ.get("srcdir", ".")).resolve()
sys.path.insert(0, str(TOP / "tests"))
sys.dont_write_bytecode = True
from certificates import Authority  # noqa: E402

AGENT = Path("agent/fabrictrace-agent").resolve()
PLUGIN = Path("agent/nccl/libnccl-profiler-fabrictrace.so")
PACKAGING = TOP / "packaging"
failed = []


def check(what, held, more=""):
    print("ok  " if held else "FAIL", what, "" if held else more)
    if not held:
        failed.append(what)


def accepts(what, text, folder):
    """The agent's own check, with the files that the configuration names in a folder."""
    path = folder / "agent.yaml"
    path.write_text(text)
    done = subprocess.run([AGENT, "--check", "-c", path], capture_output=True, text=True, check=False)
    check(what, done.returncode == 0 and "daemon" in text, done.stdout + done.stderr)
    return path


def certificates(folder):
    (folder / "tls").mkdir()
    authority = Authority(folder / "tls", "ca")
    for name, path in zip(("cert.pem", "key.pem"), authority.make("agent", "URI:fabrictrace://agent/gpu01")):
        path.rename(folder / "tls" / name)
    (folder / "tls/key.pem").chmod(0o440)


def kubernetes(folder):
    kinds = {d["kind"]: d for d in yaml.safe_load_all((PACKAGING / "kubernetes/fabrictrace-agent.yaml").read_text())}
    spaces = {d["metadata"].get("namespace", d["metadata"]["name"]) for d in kinds.values()}
    check("all is of one namespace", spaces == {"fabrictrace"}, spaces)
    pod = kinds["DaemonSet"]["spec"]["template"]["spec"]
    check("the DaemonSet selects its own pods", kinds["DaemonSet"]["spec"]["selector"]["matchLabels"]
          == kinds["DaemonSet"]["spec"]["template"]["metadata"]["labels"])
    container = pod["containers"][0]
    volumes = {v["name"]: v for v in pod["volumes"]}
    mounts = {m["name"]: m for m in container["volumeMounts"]}
    check("each mount is of a volume, each volume is mounted", volumes.keys() == mounts.keys(), volumes)
    data = kinds["ConfigMap"]["data"]
    check("the configuration is the map's", volumes["config"]["configMap"]["name"] == kinds["ConfigMap"]["metadata"]["name"]
          and mounts["config"]["subPath"] in data)
    words = container["command"] + container["args"]
    check("the agent is told where it lies", mounts["config"]["mountPath"] in words, words)
    config = data[mounts["config"]["subPath"]]
    check("certificates and socket lie in what is mounted",
          all(yaml.safe_load(config)["daemon"][k].startswith(mounts["tls"]["mountPath"] + "/")
              for k in ("cert", "key", "ca"))
          and yaml.safe_load(config)["nccl"]["socket"].startswith(mounts["run"]["mountPath"] + "/"))
    config = config.replace(mounts["tls"]["mountPath"], str(folder / "tls")) \
        .replace(mounts["run"]["mountPath"], str(folder / "run")).replace("eth0", "lo") \
        .replace("fabrictraced.example:9477", "127.0.0.1:1")
    # The daemon takes a certificate from the host that it names alone; a secret is one for all nodes.
    check("each node has a certificate of its own", "hostPath" in volumes["tls"], volumes["tls"])
    path = accepts("the agent accepts the DaemonSet's configuration", config, folder)
    if os.geteuid() != 0:
        print("skipped: privileges of the DaemonSet: needs root")
        return
    runs(container, path, folder)


def reached(run):
    """A job without any right reaches the socket in a folder that it has mounted for reading alone."""
    connect = ("import socket, sys; "
               "socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET).connect(sys.argv[1] + '/nccl.sock')")
    done = subprocess.run(
        ["unshare", "-m", "sh", "-ec", 'mount --bind "$1" "$1"; mount -o remount,bind,ro "$1"; ! touch "$1/a"; '
         'exec setpriv --reuid=65534 --regid=65534 --clear-groups --bounding-set=-all --no-new-privs "$2" -c "$3" "$1"',
         "sh", run, sys.executable, connect], capture_output=True, text=True, check=False)
    check("a job's pod reaches the agent", done.returncode == 0, done.stderr)
    return done.returncode == 0


def pod():
    """The job's pod of fabrictrace-deploy(7): plugin and socket are where they are looked for."""
    kinds = list(yaml.safe_load_all((PACKAGING / "kubernetes/fabrictrace-agent.yaml").read_text()))
    agent = next(d for d in kinds if d["kind"] == "DaemonSet")["spec"]["template"]["spec"]
    space = next(d for d in kinds if d["kind"] == "Namespace")["metadata"]
    label = "pod-security.kubernetes.io/enforce"
    check("the agent's namespace allows what it needs", space.get("labels", {}).get(label) == "privileged", space)
    page = (TOP / "man/fabrictrace-deploy.7").read_text()
    found = re.search(r"^(apiVersion: v1\nkind: Pod\n.*?)^\.Ed$", page, re.M | re.S)
    check("the manual has a job's pod", bool(found))
    if not found:
        return
    made = yaml.safe_load(found[1])
    spec, (job,), (copies,) = made["spec"], made["spec"]["containers"], made["spec"]["initContainers"]
    volumes = {v["name"]: v for v in spec["volumes"]}
    mounts = {m["mountPath"]: m["name"] for m in job["volumeMounts"]}
    check("the pod mounts each volume", set(mounts.values()) == set(volumes), volumes)
    env = {e["name"]: e for e in job["env"]}
    plugin = Path(env["NCCL_PROFILER_PLUGIN"]["value"])
    installed = (PACKAGING / "debian/fabrictrace-nccl-plugin.install").read_text().split()[0]
    pattern, target = re.search(r"cp (\S+) (\S+)$", copies["command"][-1]).groups()
    check("what is copied is the package's plugin", Path("/" + installed).match(pattern)
          and Path(installed).name == plugin.name, (installed, pattern))
    check("to where NCCL is to look for it", {m["mountPath"]: m["name"] for m in copies["volumeMounts"]}
          == {target.rstrip("/"): mounts[str(plugin.parent)]}, target)
    check("from the agent's image", copies["image"] == agent["containers"][0]["image"], copies["image"])
    # Packages are built with /run, this may be built with another folder.
    folder = "/run/" + re.search(rb"([^/]+)/nccl\.sock\0", PLUGIN.read_bytes())[1].decode()
    node = {v["name"]: v for v in agent["volumes"]}["run"]["hostPath"]
    check("the agent's folder is where the plugin looks",
          folder in mounts and volumes[mounts[folder]]["hostPath"] == node, mounts)
    field = re.fullmatch(r"metadata\.labels\['(.*)'\]", env["FABRICTRACE_JOB"]["valueFrom"]["fieldRef"]["fieldPath"])
    check("the job's name is the pod's label", field and field[1] in made["metadata"]["labels"])


def runs(container, path, folder):
    """With the DaemonSet's capabilities the agent captures, as the user it is told, with one of them."""
    wanted = container["securityContext"]["capabilities"]
    check("all other capabilities are dropped", wanted["drop"] == ["ALL"])
    (folder / "run").mkdir()
    log = folder / "log"
    words = [w.replace("user=fabrictrace", "user=nobody") for w in container["args"][2:]]
    with log.open("w") as out:
        agent = subprocess.Popen(
            ["setpriv", "--no-new-privs", "--inh-caps", "-all", "--bounding-set",
             "-all," + ",".join("+" + c.lower() for c in wanted["add"]),
             AGENT, "-c", path, "--set", "http=off", *words], stdout=out, stderr=out,
            # LeakSanitizer cannot look into a process that has changed its user.
            env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0"})
    end, status = time.monotonic() + 120, ""
    while time.monotonic() < end and agent.poll() is None and "capturing on 1 interface" not in log.read_text():
        time.sleep(0.05)
    if agent.poll() is None:
        status = Path(f"/proc/{agent.pid}/status").read_text()
    socket = reached(folder / "run")
    agent.send_signal(signal.SIGTERM)
    agent.wait(timeout=120)
    check("with these privileges it captures", "capturing on 1 interface" in log.read_text(), log.read_text())
    check("as another user, with CAP_NET_RAW alone",
          "CapEff:\t0000000000002000" in status and not re.search(r"^Uid:\t0", status, re.M), status)
    check("training jobs have their socket", socket)


def ansible(folder):
    role = PACKAGING / "ansible/fabrictrace_agent"
    defaults = yaml.safe_load((role / "defaults/main.yaml").read_text())
    tasks = yaml.safe_load((role / "tasks/main.yaml").read_text())
    handlers = {h["name"]: h["ansible.builtin.systemd"]["state"]
                for h in yaml.safe_load((role / "handlers/main.yaml").read_text())}
    notified = {t["notify"] for t in tasks if "notify" in t}
    check("what tasks notify there is", notified == set(handlers))
    # Not everybody who becomes root has /usr/sbin in PATH, and a run with --diff shows what it copies.
    written, = (t["ansible.builtin.template"] for t in tasks if "ansible.builtin.template" in t)
    check("the agent is asked where it is installed", written["validate"].split()[0].removeprefix("/") in
          (PACKAGING / "debian/fabrictrace-agent.install").read_text().split(), written)
    keys, = (t for t in tasks if "key.pem" in str(t.get("loop")))
    check("no key is shown", keys.get("diff") is False, keys)
    # A reload refuses another endpoint, and nobody would hear of it.
    state, = (handlers[t["notify"]] for t in tasks if "ansible.builtin.template" in t)
    fixed = re.findall(r'\{"([\w.]+)", ', (TOP / "agent/settings.c").read_text())
    check("what only a restart changes is restarted for", "daemon.endpoint" in fixed
          and state == "restarted", state)
    text = "".join(p.read_text() for p in role.rglob("*") if p.is_file())
    used = set(re.findall(r"\bfabrictrace_[a-z]\w*", text)) - {"fabrictrace_copied"}
    check("each variable has a default", used == set(defaults), used ^ set(defaults))
    env = jinja2.Environment(trim_blocks=True, undefined=jinja2.StrictUndefined)
    env.filters["to_json"] = json.dumps
    template = env.from_string((role / "templates/fabrictrace-agent.yaml.j2").read_text())
    for what, own in (("as it comes", {}), ("without certificates", {"fabrictrace_certificates": ""}),
                      ("with interfaces", {"fabrictrace_interfaces": ["lo", "eth1"]})):
        config = template.render(ansible_managed="Ansible", **{**defaults, **own})
        accepts(f"the agent accepts what the role writes {what}",
                config.replace("/etc/fabrictrace", str(folder / "tls")), folder)


def folder_of_sockets():
    """Containers of jobs have it mounted: they keep the one that was there when they began."""
    page = (TOP / "man/libnccl-profiler-fabrictrace.7").read_text()
    unit = (PACKAGING / "systemd/fabrictrace-agent.service.in").read_text().splitlines()
    mounted, = re.findall(r"--container-mounts=/run/([^,\s]+)", page)
    check("the folder that containers mount is the agent's", f"RuntimeDirectory={mounted}" in unit, mounted)
    check("and stays when the agent ends", "RuntimeDirectoryPreserve=yes" in unit)
    page = (TOP / "man/fabrictrace-agent.8").read_text()
    for hides, shows in (("PrivateTmp=yes", "PrivateTmp=no"), ("ProtectHome=yes", "ProtectHome=read-only")):
        check(f"the manual says what {hides} hides", (hides in unit) == (f".Cm {shows}" in page))


def rotation():
    """The example for logrotate is of the example's sink, and reloads the daemon's unit."""
    path = PACKAGING / "examples/fabrictraced.logrotate"
    sinks = yaml.safe_load((PACKAGING / "examples/fabrictraced.yaml").read_text())["sinks"]
    lines = [line.strip() for line in path.read_text().splitlines()]
    check("what is rotated is the file of the sink", "file:" + lines[3].removesuffix(" {") in sinks, lines[3])
    # A daemon that does not run is no failure of the rotation.
    reloaded, = re.findall(r"^ *systemctl try-reload-or-restart (\S+)$", path.read_text(), re.M)
    unit = PACKAGING / f"systemd/{reloaded}.in"
    check("its unit is reloaded", unit.exists() and "ExecReload=/bin/kill -HUP" in unit.read_text(), reloaded)
    check("the old file is neither truncated nor packed while it is written to",
          {"nocreate", "nocopytruncate", "delaycompress"} <= set(lines), lines)
    check("the manual names it", f"/examples/{path.name}" in (TOP / "man/fabrictraced.8").read_text())


def container():
    control = (PACKAGING / "debian/control.in").read_text()
    there = set(re.findall(r"^Package: (\S+)$", control, re.M))
    named = set(re.findall(r"(fabrictrace-[a-z-]+)_\*\.deb", (PACKAGING / "container/Containerfile").read_text()))
    check("the image is made of packages that there are", named and named <= there, named - there)
    check("and has every program", there - named == {"fabrictrace-doc"}, there - named)


folder = Path(tempfile.mkdtemp())
try:
    certificates(folder)
    folder.chmod(0o755)
    kubernetes(folder)
    ansible(folder)
    container()
    pod()
    folder_of_sockets()
    rotation()
finally:
    shutil.rmtree(folder)
sys.exit(1 if failed else 0)
