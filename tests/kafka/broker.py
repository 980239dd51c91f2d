#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A real Apache Kafka broker (KRaft, one node, loopback) for the tests and the demo.

  broker.py fetch                 get Kafka from Maven Central into the cache, once
  broker.py start DIR [PORT]      run a broker on DIR (made when missing; what is in it stays);
                                  PORT 0 or none: a free one, the same again after a restart.
                                  Returns when it answers; prints HOST:PORT
  broker.py kill DIR              kill -9
  broker.py stop DIR              orderly
  broker.py address DIR           print HOST:PORT
  broker.py topics DIR ARG...     kafka-topics.sh, with these arguments
  broker.py consume DIR TOPIC     the whole topic as lines KEY<TAB>VALUE, read by kcat

The cache is $FABRICTRACE_KAFKA_CACHE, else fabrictrace/kafka under $XDG_CACHE_HOME or ~/.cache.
Exit code 69: something that is needed is not installed or cannot be fetched; stderr says what.
"""
import hashlib
import os
import pathlib
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import speed  # noqa: E402
from ports import free_port  # noqa: E402

# On an idle machine.
START_SECONDS = 240
STOP_SECONDS = 60

PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={data}
num.partitions=3
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
auto.create.topics.enable=true
broker.heartbeat.interval.ms=300
broker.session.timeout.ms=1500
transaction.abort.timed.out.transaction.cleanup.interval.ms=1000
"""


class Lacking(Exception):
    """What the machine does not have."""


def need(tool, package):
    path = shutil.which(tool)
    if not path:
        raise Lacking(f"{tool} is not installed (Debian: {package}): packaging/install-deps test")
    return path


def cache():
    base = os.environ.get("FABRICTRACE_KAFKA_CACHE")
    if not base:
        home = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
        base = pathlib.Path(home) / "fabrictrace" / "kafka"
    # Another pom.xml is another set of jars.
    return pathlib.Path(base) / hashlib.sha256((HERE / "pom.xml").read_bytes()).hexdigest()[:16]


def fetch():
    jars = cache()
    if jars.is_dir():
        return jars
    mvn = need("mvn", "maven")
    parts = jars.with_name(f"{jars.name}.{os.getpid()}")
    parts.mkdir(parents=True)
    try:
        # A copy: Maven writes next to the pom, and the source tree may be read-only.
        shutil.copy(HERE / "pom.xml", parts / "pom.xml")
        done = subprocess.run(
            [mvn, "-B", "-q", "-f", parts / "pom.xml", "dependency:copy-dependencies",
             "-DincludeScope=runtime", f"-DoutputDirectory={parts / 'jars'}"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            raise Lacking("Kafka cannot be fetched:\n" + done.stdout[-2000:])
        try:
            (parts / "jars").rename(jars)
        except OSError:
            if not jars.is_dir():  # another one may have been faster
                raise
    finally:
        shutil.rmtree(parts, ignore_errors=True)
    return jars


def java(jars, *args):
    return [need("java", "openjdk-17-jre-headless"), "-Xms256m", "-Xmx384m", "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=info",
            "-Dorg.slf4j.simpleLogger.showDateTime=true", "-cp", f"{jars}/*", *map(str, args)]


def pid_of(folder):
    """The running broker's pid, None when it is gone."""
    try:
        pid = int((folder / "pid").read_text())
        line = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
    except (OSError, ValueError):
        return None
    # Another process may have the number by now; a zombie has no command line.
    return pid if str(folder / "server.properties").encode() in line else None


def end(folder, number, seconds):
    pid = pid_of(folder)
    if pid is None:
        return False
    os.kill(pid, number)
    return speed.wait(lambda: pid_of(folder) is None, seconds, 0.02)


def address(folder):
    return f"127.0.0.1:{(folder / 'port').read_text().strip()}"


def answers(port):
    """True when the broker tells of itself: Metadata v1 without topics (API key 3)."""
    request = struct.pack(">hhih4si", 3, 1, 7, 4, b"test", 0)
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=2) as s:
            s.sendall(struct.pack(">i", len(request)) + request)
            head = s.recv(12, socket.MSG_WAITALL)
    except OSError:
        return False
    return len(head) == 12 and struct.unpack(">iii", head)[2] >= 1


def prepare(folder, port, jars, more="", scram=()):
    """Writes the settings and formats the storage of a new folder. Returns the port. more: further
    settings, which win; scram: users, "SCRAM-SHA-256=[name=...,password=...]"."""
    if (folder / "port").exists():
        known = int((folder / "port").read_text())
        if port not in (0, known):
            sys.exit(f"broker.py: {folder} belongs to port {known}")
        return known
    folder.mkdir(parents=True, exist_ok=True)
    port = port or free_port()
    settings = folder / "server.properties"
    settings.write_text((PROPERTIES + more).format(port=port, controller=free_port(),
                                                   data=folder / "data"))
    users = [word for user in scram for word in ("--add-scram", user)]
    done = subprocess.run(
        java(jars, "kafka.tools.StorageTool", "format", "-t", "MkU3OEVBNTcwNTJENDM2Qg", "-c",
             settings, *users), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        sys.exit("broker.py: the storage cannot be formatted:\n" + done.stdout[-2000:])
    (folder / "port").write_text(f"{port}\n")
    return port


def launch(folder, jars):
    """A broker on a folder that is prepared; it may not answer yet."""
    with open(folder / "broker.log", "ab") as log:
        child = subprocess.Popen(java(jars, "kafka.Kafka", folder / "server.properties"),
                                 stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                 start_new_session=True)
    (folder / "pid").write_text(f"{child.pid}\n")
    return child


def start(folder, port=0, more="", scram=()):
    jars = fetch()
    if pid_of(folder) is not None:
        sys.exit(f"broker.py: a broker runs on {folder} already")
    port = prepare(folder, port, jars, more, scram)
    child = launch(folder, jars)
    deadline = speed.Deadline(START_SECONDS)
    while not answers(port):
        if child.poll() is not None or deadline.passed():
            tail = (folder / "broker.log").read_text(errors="replace")[-2000:]
            end(folder, signal.SIGKILL, 5)
            sys.exit("broker.py: the broker does not come up:\n" + tail)
        time.sleep(0.1)
    print(address(folder), flush=True)


def consume(folder, topic):
    kcat = need("kcat", "kcat")
    sys.stdout.flush()
    os.execv(kcat, [kcat, "-C", "-q", "-e", "-b", address(folder), "-t", topic, "-o", "beginning",
                    "-m", "60", "-f", "%k\\t%s\\n"])


def topics(args):
    command = java(fetch(), "org.apache.kafka.tools.TopicCommand", *args)
    sys.stdout.flush()
    os.execv(command[0], command)


def main(args):
    verb = args[0] if args else "help"
    folder = pathlib.Path(args[1]).resolve() if len(args) > 1 else None
    try:
        if verb == "fetch" and len(args) == 1:
            print(fetch())
        elif verb == "start" and len(args) in (2, 3):
            start(folder, int(args[2]) if len(args) == 3 else 0)
        elif verb == "kill" and len(args) == 2:
            return 0 if end(folder, signal.SIGKILL, STOP_SECONDS) else 1
        elif verb == "stop" and len(args) == 2:
            return 0 if end(folder, signal.SIGTERM, STOP_SECONDS) else \
                0 if end(folder, signal.SIGKILL, STOP_SECONDS) else 1
        elif verb == "address" and len(args) == 2:
            print(address(folder))
        elif verb == "topics" and len(args) > 2:
            topics(["--bootstrap-server", address(folder), *args[2:]])
        elif verb == "consume" and len(args) == 3:
            consume(folder, args[2])
        else:
            print(__doc__, file=sys.stderr)
            return 64
    except Lacking as lack:
        print(f"broker.py: {lack}", file=sys.stderr)
        return 69
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
