# SPDX-License-Identifier: Apache-2.0
"""Three Kafka brokers (KRaft, each broker and controller) on loopback, to be killed one by one and
together: each topic has a copy on each of them, two must have a message before it is taken."""
import json
import signal
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import broker  # noqa: E402
from ports import free_port  # noqa: E402  (found by broker)
from rig import check, until  # noqa: E402  (the caller's path has it)

NODES = 3
WAIT_S = 240  # on an idle machine
# A name as it may stand in a file of properties that broker.py formats.
SETTINGS = """\
node.id={node}
controller.quorum.voters={voters}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
default.replication.factor=3
min.insync.replicas=2
offsets.topic.replication.factor=3
transaction.state.log.replication.factor=3
transaction.state.log.min.isr=2
broker.session.timeout.ms=4000
"""


class Cluster:
    def __init__(self, folder):
        self.jars = broker.fetch()
        self.folders = [folder / f"broker{n}" for n in range(1, NODES + 1)]
        self.children = {}
        controllers = [free_port() for _ in self.folders]
        voters = ",".join(f"{n}@127.0.0.1:{port}" for n, port in enumerate(controllers, 1))
        for n, own in enumerate(self.folders, 1):
            port = free_port()
            broker.prepare(own, port, self.jars, SETTINGS.format(
                node=n, voters=voters, port=port, controller=controllers[n - 1]))
        self.addresses = [broker.address(own) for own in self.folders]
        self.brokers = ",".join(self.addresses)

    def launch(self, *nodes):
        """1 to 3; none: all."""
        for n in nodes or range(1, NODES + 1):
            if n in self.children:
                self.children[n].wait()
            self.children[n] = broker.launch(self.folders[n - 1], self.jars)

    def start(self):
        self.launch()
        self.whole("three brokers are up")
        return self

    def kill(self, *nodes):
        """All at once, with -9."""
        for n in nodes:
            self.children[n].send_signal(signal.SIGKILL)
        for n in nodes:
            self.children[n].wait()

    def stop(self):
        for child in self.children.values():
            if child.poll() is None:
                child.kill()
            child.wait()

    def controller(self):
        """(epoch, node) of the active controller, as the nodes have it on disk; (0, 0): none."""
        found = (0, 0)
        for own in self.folders:
            try:
                state = json.loads((own / "data/__cluster_metadata-0/quorum-state").read_text())
            except (OSError, ValueError):
                continue
            if state.get("leaderId", -1) > 0:
                found = max(found, (state["leaderEpoch"], state["leaderId"]))
        return found

    def metadata(self):
        """What kcat hears of a broker; {}: nothing yet."""
        done = subprocess.run(["kcat", "-L", "-J", "-m", "10", "-b", self.brokers],
                              capture_output=True, text=True)
        return json.loads(done.stdout) if done.returncode == 0 else {}

    def whole(self, what):
        """Until each broker is there, and each partition's three copies are in step."""
        def is_so():
            known = self.metadata()
            return len(known.get("brokers", ())) == NODES and all(
                len(p["isrs"]) == NODES for t in known["topics"] for p in t["partitions"])
        if not until(what, is_so, WAIT_S):
            for n, child in self.children.items():
                check(f"broker {n} runs", child.poll() is None,
                      (self.folders[n - 1] / "broker.log").read_text(errors="replace")[-1500:])
            raise RuntimeError(what)

    def console(self, topics):
        """Lines HEADERS<TAB>KEY<TAB>VALUE of the topics (a regular expression), as the console
        consumer of Apache Kafka gets them, committed messages alone."""
        done = subprocess.run(
            broker.java(self.jars, "kafka.tools.ConsoleConsumer", "--bootstrap-server", self.brokers,
                        "--include", topics, "--from-beginning", "--isolation-level",
                        "read_committed", "--timeout-ms", 20000, "--property", "print.headers=true",
                        "--property", "print.key=true"), capture_output=True, text=True)
        return done.stdout.splitlines()
