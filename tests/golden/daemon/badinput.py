#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Bad files given to the real programs: each mistake is told with file, line and key, all at once,
and the daemon opens nothing before everything is good."""
import os
import socket
import sys

sys.dont_write_bytecode = True
import rig  # noqa: E402
from rig import check, equal  # noqa: E402

EX_OK, EX_DATAERR, EX_NOINPUT, EX_UNAVAILABLE, EX_IOERR, EX_CONFIG = 0, 65, 66, 69, 74, 78
GOOD = (rig.LAB / "topology.yaml").read_text()
FABRIC = """fabric: bad
switches:
  - name: leaf1
    ports: [{ifindex: 1, name: E1}, {ifindex: 2, name: E2}, {ifindex: 49, name: E49}]
  - name: leaf2
    ports: [{ifindex: 1, name: E1}, {ifindex: 49, name: E49}]
  - name: spine1
links:
  - {a: leaf1, a_port: E49, b: spine1, b_port: E1}
  - {a: leaf2, a_port: E49, b: spine1, b_port: E2}
"""
HOSTS = """hosts:
  - name: gpu01
    nics:
      - {addresses: [10.0.0.1], attach: [{switch: leaf1, port: E1}]}
"""
# What is put behind FABRIC (10 lines), and what is said of it: "LINE: key ...".
MISTAKES = {
    "unknown switch": (
        "  - {a: leaf9, a_port: E1, b: spine1, b_port: E3}\n",
        ["11: key 'links[2]': switch 'leaf9' is not known"]),
    "duplicate link": (
        "  - {a: leaf1, a_port: E49, b: spine1, b_port: E1}\n",
        ["11: key 'links[2]': the link from 'leaf1' E49 to 'spine1' E1 is defined twice (line 9)"]),
    "port linked twice": (
        "  - {a: leaf1, a_port: E49, b: spine1, b_port: E3}\n",
        ["11: key 'links[2]': port 'E49' of switch 'leaf1' is linked to 'E1' of 'spine1' already "
         "(line 9)"]),
    "NIC on a port that is linked": (
        HOSTS.replace("E1}", "E49}"),
        ["14: key 'hosts[0].nics[0].attach[0]': port 'E49' of switch 'leaf1' is linked to 'E1' of "
         "'spine1' already (line 9)"]),
    "NIC on a port that its switch lacks": (
        HOSTS.replace("E1}", "E7}"),
        ["14: key 'hosts[0].nics[0].attach[0]': switch 'leaf1' has no port 'E7'"]),
    "address on two NICs": (
        HOSTS + "      - {addresses: [10.0.0.1], attach: [{switch: leaf1, port: E2}]}\n",
        ["15: key 'hosts[0].nics[1].addresses[0]': address 10.0.0.1 belongs to a NIC of host "
         "'gpu01' already (line 14)"]),
    "no address": (
        HOSTS.replace("10.0.0.1", "10.0.0.300"),
        ["14: key 'hosts[0].nics[0].addresses[0]': '10.0.0.300' is not an IPv4 or IPv6 address"]),
    "unknown key": (
        "  - {a: leaf1, a_port: E2, b: spine1, b_port: E3, colour: red}\n" + "vlans: []\n",
        ["12: key 'vlans': is not known", "11: key 'links[2].colour': is not known"]),
    "three at once": (
        "  - {a: leaf9, a_port: E1, b: spine1, b_port: E3}\n" + HOSTS.replace("E1}", "E7}")
        + "  - name: gpu01\n",
        ["11: key 'links[2]': switch 'leaf9' is not known",
         "15: key 'hosts[0].nics[0].attach[0]': switch 'leaf1' has no port 'E7'",
         "16: key 'hosts[1]': host 'gpu01' is defined twice (line 13)"]),
}
# Lines of a config file, and what is said of them; {t} is a good topology's file.
BAD_CONFIGS = {
    "unknown key": ("topology: {t}\nwindw: 3s\n",
                    ["2: key 'windw': is not known; did you mean 'window'?"]),
    "wrong type": ("topology: {t}\nflows_max: many\nwindow: [1s]\n",
                   ["2: key 'flows_max': 'many' is not an integer from 1 to 100000000",
                    "3: key 'window': "]),
    "wrong range": ("topology: {t}\nfloor: 7\nwindow: 2h\n",
                    ["2: key 'floor': '7' is not a number from 0 to 1", "3: key 'window': '2h' "]),
    "origins and names that no request has": (
        "http_origins:\n  - https://ops.example\n  - https://ops.example/\n  - ops.example\n"
        "http_names: [proxy.example]\n",
        ["1: key 'http_origins': 'https://ops.example/' is not an origin, https://HOST",
         "1: key 'http_origins': 'ops.example' is not an origin"]),
    "names with a port": (
        "http_names:\n  - proxy.example\n  - proxy.example:9478\n  - http://proxy.example\n  - ''\n",
        [f"1: key 'http_names': '{name}' is not a name of a host, without a port"
         for name in ("proxy.example:9478", "http://proxy.example", "")]),
    "keys that contradict each other": (
        "topology: {t}\ngrace: 20s\ntls: {{cert: x.pem}}\nsinks: [\"pipe:x\"]\n",
        ["2: key 'grace': not shorter than 'window'",
         "3: key 'tls.cert': tls.cert, tls.key and tls.ca belong together",
         "4: key 'sinks': 'pipe:x' is neither file:PATH nor kafka"]),
    "no YAML": ("topology: [\n", ["2: not valid YAML: "]),
}


class Files:
    def __init__(self, folder):
        self.folder = folder
        self.sink = self.folder / "sink.ndjson"
        # Held, so that a daemon that gets as far as listening ends with another exit code.
        self.holder = socket.create_server(("127.0.0.1", 0))

    def write(self, name, text):
        path = self.folder / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def start(self, config, *more):
        """What a daemon that is to run live says; it must not come to listen."""
        where = f"127.0.0.1:{self.holder.getsockname()[1]}"
        return rig.run(rig.DAEMON, "-c", config, "--set", f"listen={where}", "--set",
                       "http=127.0.0.1:1", "--sink", f"file:{self.sink}", *more)


def complaints(done):
    return [line.removeprefix("error: ") for line in done.stderr.splitlines()]


def expect(what, files, config, lines, *more):
    """--check and a start both tell exactly these lines; the start leaves nothing behind."""
    done = rig.run(rig.DAEMON, "--check", "-c", config, *more)
    equal(f"{what}: --check", done.returncode, EX_CONFIG)
    told = complaints(done)
    check(f"{what}: every problem", len(told) == len(lines)
          and all(t.startswith(line) for t, line in zip(told, lines)), told)
    done = files.start(config, *more)
    equal(f"{what}: start", (done.returncode, complaints(done), files.sink.exists()),
          (EX_CONFIG, told, False))


def test_topology(files):
    for what, (text, lines) in MISTAKES.items():
        bad = files.write("bad.yaml", FABRIC + text)
        expect(what, files, os.devnull, [f"{bad}:{line}" for line in lines], "--topology", bad)
    dual = HOSTS.replace("E1}]", "E1}, {switch: leaf2, port: E1}]")
    done = rig.run(rig.DAEMON, "--check", *rig.NO_CONFIG, "--topology",
                   files.write("dual.yaml", FABRIC + dual))
    equal("a NIC on two leaves", (done.returncode, done.stderr), (EX_OK, ""))
    for path, reason in ((files.folder / "none.yaml", "No such file or directory"),
                         (files.folder, "Is a directory")):
        expect(f"topology: {reason}", files, os.devnull, [f"{path}: {reason}"], "--topology", path)


def test_config(files):
    topology = files.write("good.yaml", GOOD)
    for what, (text, lines) in BAD_CONFIGS.items():
        config = files.write("config.yaml", text.format(t=topology))
        expect(what, files, config, [f"{config}:{line}" for line in lines])
    bad = files.write("bad.yaml", FABRIC + MISTAKES["unknown switch"][0])
    config = files.write("config.yaml", f"topology: {bad}\ngrace: 20s\n")
    expect("config and topology", files, config,
           [f"{config}:2: key 'grace'", f"{bad}:11: key 'links[2]': switch 'leaf9'"])
    for path, reason in ((files.folder / "none.yaml", "No such file or directory"),
                         (files.folder, "Is a directory")):
        expect(f"config: {reason}", files, path, [f"{path}: {reason}"])
    config = files.write("config.yaml", f"topology: {topology}\n")
    done = rig.run(rig.DAEMON, "--check", "-c", config)
    equal("good: --check", (done.returncode, done.stderr), (EX_OK, ""))
    equal("good: start comes as far as the port that is held",
          files.start(config).returncode, EX_UNAVAILABLE)


def test_poller_config(files):
    config = files.write("poller.yaml", "lissten: \":6343\"\nfold_interval: fast\nports_max: 1\n")
    done = rig.run(rig.POLLER, "--check", "-c", config)
    equal("poller: --check", done.returncode, EX_CONFIG)
    told = complaints(done)
    want = [f"{config}:1: key 'lissten': is not known; did you mean 'listen'?",
            f"{config}:2: key 'fold_interval': 'fast' is not ",
            f"{config}:3: key 'ports_max': '1' is not an integer from 16 to 16777216"]
    check("poller: every problem", len(told) == 3
          and all(t.startswith(w) for t, w in zip(told, want)), told)
    equal("poller: start", rig.run(rig.POLLER, "-c", config).returncode, EX_CONFIG)


def poll(capture):
    return rig.run(rig.POLLER, *rig.NO_CONFIG, "--log-level", "warning", "--replay", capture)


def test_captures(files):
    whole = (rig.LAB / "sflow.pcap").read_bytes()
    for what, path, code, reason in (
            ("absent", files.folder / "none.pcap", EX_NOINPUT, "No such file or directory"),
            ("a folder", files.folder, EX_DATAERR, "Is a directory"),
            ("empty", files.write("empty.pcap", b""), EX_DATAERR, "no capture file"),
            ("text", files.write("text.pcap", GOOD), EX_DATAERR, "no capture file")):
        done = poll(path)
        equal(f"capture {what}: exit code", done.returncode, code)
        check(f"capture {what}: named, with the reason",
              str(path) in done.stderr and reason in done.stderr, done.stderr)
    cut = files.write("cut.pcap", whole[:100000])
    done = poll(cut)
    equal("cut capture: exit code", done.returncode, EX_DATAERR)
    check("cut capture: named, with the packet", f"{cut}: packet " in done.stderr, done.stderr)
    records = rig.records_of(done.stdout)
    at, packets = 24, 0
    while at + 16 <= 100000 and at + 16 + int.from_bytes(whole[at + 8:at + 12], "little") <= 100000:
        at += 16 + int.from_bytes(whole[at + 8:at + 12], "little")
        packets += 1
    equal("cut capture: every whole packet is processed",
          rig.last_stages(records, "fabrictrace-switchpoll")["datagrams"]["processed"], packets)


def replay(text):
    return rig.run(rig.DAEMON, *rig.NO_CONFIG, "--set", "source_id=golden", "--topology",
                   rig.LAB / "topology.yaml", "--replay", "-", "--sink", "file:-", input=text,
                   stdin=None)


def test_replay(files):
    good = poll(rig.LAB / "sflow.pcap").stdout.splitlines(True)
    broken = ["{\n", "no record\n", "[]\n",
              '{"schema":"fabrictrace.observation.v1","samples":-1}\n',
              good[3][:len(good[3]) // 2] + "\n", '{"schema":"fabrictrace.nothing.v1"}\n']
    mixed, numbers = [], []
    for i, line in enumerate(good):
        if i % 50 == 0 and broken:
            mixed.append(broken.pop())
            numbers.append(len(mixed))
        mixed.append(line)
    equal("all kinds of broken lines are in", broken, [])
    done, clean = replay("".join(mixed)), replay("".join(good))
    equal("broken lines: exit code", (done.returncode, clean.returncode), (EX_DATAERR, EX_OK))
    check("broken lines: the good ones count all the same", done.stdout == clean.stdout)
    told = complaints(done)
    check("broken lines: each with its number", len(told) == len(numbers) + 1 and all(
        t.startswith(f"stdin:{n}: ") for t, n in zip(told, numbers)), told)
    equal("broken lines: the sum", told[-1:],
          [f"stdin: {len(numbers)} of {len(mixed)} lines are not records"])
    done = rig.run(rig.DAEMON, *rig.NO_CONFIG, "--topology", rig.LAB / "topology.yaml", "--replay", "-",
                   "--sink", "file:/dev/full", input="".join(good), stdin=None)
    equal("a full disk: told with the sink's name", (done.returncode, complaints(done)),
          (EX_IOERR, ["sink 'file:/dev/full': No space left on device"]))
    for what, path, reason in (
            ("absent", files.folder / "none.ndjson", "No such file or directory"),
            ("a folder", files.folder, "Is a directory")):
        done = rig.run(rig.DAEMON, *rig.NO_CONFIG, "--topology", rig.LAB / "topology.yaml",
                       "--replay", path)
        equal(f"replay of what is {what}", (done.returncode, complaints(done)),
              (EX_NOINPUT, [f"{path}: {reason}"]))


def test_files(folder):
    files = Files(folder)
    with files.holder:
        for test in (test_topology, test_config, test_poller_config, test_captures, test_replay):
            test(files)


if __name__ == "__main__":
    sys.exit(rig.run_tests(test_files))
