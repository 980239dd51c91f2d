# SPDX-License-Identifier: Apache-2.0
"""A real schema registry for the tests: Apicurio, by its API that is compatible with Confluent's, and
Confluent's own consumer for Python to read with. What is fetched, from Maven Central and PyPI, is kept
in the cache of broker.py. The last Apicurio that runs on Java 17."""
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request

from broker import HERE, Lacking, START_SECONDS, STOP_SECONDS, cache, need
import speed  # noqa: E402  (found by broker)
from ports import free_port  # noqa: E402

APICURIO = "3.0.9"
CLIENT = "2.16.0"
CONTENT_TYPE = "application/vnd.schemaregistry.v1+json"
direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def keep(folder, fetch):
    """Has fetch() fill the folder, unless it is there."""
    if folder.is_dir():
        return folder
    parts = folder.with_name(f"{folder.name}.{os.getpid()}")
    parts.mkdir(parents=True)
    try:
        fetch(parts)
        try:
            parts.rename(folder)
        except OSError:
            if not folder.is_dir():  # another one may have been faster
                raise
    finally:
        shutil.rmtree(parts, ignore_errors=True)
    return folder


def run(what, *command):
    done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise Lacking(f"{what} cannot be fetched:\n{done.stdout[-2000:]}")


def fetch_apicurio(folder):
    shutil.copy(HERE / "pom.xml", folder / "pom.xml")
    run("Apicurio", need("mvn", "maven"), "-B", "-q", "-f", folder / "pom.xml", "dependency:copy",
        f"-Dartifact=io.apicurio:apicurio-registry-app:{APICURIO}:tar.gz:all",
        f"-DoutputDirectory={folder}")
    packed = folder / f"apicurio-registry-app-{APICURIO}-all.tar.gz"
    shutil.unpack_archive(packed, folder)
    packed.unlink()


def fetch_client(folder):
    run("Confluent's consumer", sys.executable, "-m", "pip", "install", "-q", "--target", folder,
        f"confluent-kafka[json,protobuf,schemaregistry]=={CLIENT}")


def client():
    """Makes Confluent's modules importable."""
    name = f"confluent-{CLIENT}-{sys.version_info.major}.{sys.version_info.minor}"
    sys.path.insert(0, str(keep(cache().with_name(name), fetch_client)))


class Registry:
    """What it was told it knows again after an end, in whatever way."""

    def __init__(self, folder):
        self.folder, self.port, self.child = folder, free_port(), None
        self.url = f"http://127.0.0.1:{self.port}/apis/ccompat/v7"
        self.home = keep(cache().with_name(f"apicurio-{APICURIO}"), fetch_apicurio)

    def start(self):
        env = dict(os.environ, APICURIO_STORAGE_KIND="sql", APICURIO_STORAGE_SQL_KIND="h2",
                   APICURIO_DATASOURCE_URL=f"jdbc:h2:file:{self.folder / 'registry'};WRITE_DELAY=0")
        with open(self.folder / "registry.log", "ab") as log:
            self.child = subprocess.Popen(
                [need("java", "openjdk-17-jre-headless"), "-Xmx512m", "-XX:+UseSerialGC",
                 "-XX:TieredStopAtLevel=1", "-Dquarkus.http.host=127.0.0.1",
                 f"-Dquarkus.http.port={self.port}", "-jar",
                 self.home / f"apicurio-registry-app-{APICURIO}-runner.jar"],
                cwd=self.folder, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        deadline = speed.Deadline(START_SECONDS)
        while not self.answers():
            if self.child.poll() is not None or deadline.passed():
                tail = (self.folder / "registry.log").read_text(errors="replace")[-2000:]
                self.stop()
                sys.exit("the registry does not come up:\n" + tail)
            time.sleep(0.2)
        return self

    def stop(self, number=signal.SIGKILL):
        if self.child and self.child.poll() is None:
            self.child.send_signal(number)
            self.child.wait(STOP_SECONDS)

    def ask(self, path, body=None, method=None):
        request = urllib.request.Request(
            self.url + path, data=json.dumps(body).encode() if body else None,
            headers={"Content-Type": CONTENT_TYPE}, method=method)
        with direct.open(request, timeout=30) as answer:
            return json.load(answer)

    def answers(self):
        try:
            return self.ask("/subjects") is not None
        except (OSError, urllib.error.URLError):
            return False
