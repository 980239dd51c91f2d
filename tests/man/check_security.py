#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""fabrictrace-security(7) is true: its table of sockets is what the running programs have open, with
caps that are settings; it names every fuzz target, and every decoder has one; and its recipes for
certificates give what it says: who is accepted, and who is refused with which reason, counted, with
nobody else disturbed."""
import os
import re
import socket
import ssl
import subprocess
import sys
from pathlib import Path

sys.dont_write_bytecode = True
TOP = Path(os.environ.get("srcdir", ".")).resolve()
for folder in ("tests", "tests/golden/daemon"):
    sys.path.insert(0, str(TOP / folder))
import identity  # noqa: E402
import rig  # noqa: E402
from rig import check, equal, until  # noqa: E402

PAGE = (TOP / "man/fabrictrace-security.7").read_text()
PROGRAMS = {p.name: p for p in (rig.DAEMON, rig.AGENT, rig.POLLER)}
TCP_LISTEN = "0A"
# How a source begins to read what others wrote.
BEGINS = re.compile(r"\bft_reader_init\(|\bjson_load|\byaml_parser_initialize|\binflateInit|\bZSTD_decompressStream")


def rows(after):
    """Cells of the first table behind that text."""
    table = PAGE.split(after, 1)[1].split(".Bl -column", 1)[1].split(".El", 1)[0]
    return [line[4:].split(" Ta ") for line in table.splitlines() if line.startswith(".It ")][1:]


def recipes(section):
    """The commands of a section, block by block, as a reader would type them."""
    text = re.split(rf"^\.S[hs] {section}$", PAGE, flags=re.M)[1]
    text = re.split(r"^\.S[hs] ", text, flags=re.M)[0]
    return [block.replace("\\e\n", "\\\n") for block in
            re.findall(r"^\.Bd -literal[^\n]*\n(.*?)^\.Ed$", text, re.M | re.S)]


def test_fuzz(_folder):
    named = {name.strip() for row in rows(".Sh SOCKETS") for name in row[3].split(",")}
    named |= {name.strip() for row in rows("Files that are read") for name in row[1].split(",")}
    there = {p.stem.removeprefix("fuzz_") for p in (TOP / "tests/fuzz").glob("fuzz_*.c")}
    equal("the page names each fuzz target", named - {"-"}, there)


def calls(text, source):
    """Whether a text names a function that a source gives others."""
    gives = set(re.findall(r"^(?!static\b)\w[^\n;={}]*?\b(ft_\w+)\(", source, re.M))
    return bool(gives & set(re.findall(r"\bft_\w+", text)))


def decoders():
    """Rows of tests/fuzz/decoders: the targets of a source, and through which file; None: it needs none."""
    for line in (TOP / "tests/fuzz/decoders").read_text().splitlines():
        if line.startswith("#"):
            continue
        name, rest = line.split(maxsplit=1)
        if rest.startswith("-: "):
            yield name, None, None
        else:
            targets, _, through = rest.partition(" > ")
            yield name, targets.split(", "), through


def test_decoders(_folder):
    table = list(decoders())
    equal("a source has one row", len({name for name, *_ in table}), len(table))
    begins = {str(path.relative_to(TOP)) for room in ("lib", "agent", "daemon", "switchpoll", "cli", "proto")
              for path in (TOP / room).rglob("*.c") if BEGINS.search(path.read_text())}
    equal("each source that begins to read has a row", begins - {name for name, *_ in table}, set())
    for name, targets, through in table:
        source = (TOP / name).read_text()
        if through:
            check(f"{through} calls {name}", calls((TOP / through).read_text(), source))
            source = (TOP / through).read_text()
        for target in targets or ():
            check(f"fuzz_{target} calls {through or name}",
                  calls((TOP / f"tests/fuzz/fuzz_{target}.c").read_text(), source))


def address(text, v6):
    """Of /proc/net: words of the host's order."""
    host, port = text.split(":")
    raw = b"".join(bytes.fromhex(host[i:i + 8])[::-1] for i in range(0, len(host), 8))
    host = socket.inet_ntop(socket.AF_INET6 if v6 else socket.AF_INET, raw)
    return f"{'*' if host in ('::', '0.0.0.0') else host}:{int(port, 16)}"


def table_of(pid, name):
    path = Path(f"/proc/{pid}/net/{name}")
    return [line.split() for line in path.read_text().splitlines()[1:]] if path.exists() else []


def sockets_of(pid, folder):
    """What others can send to, of one program."""
    inodes = set()
    for fd in Path(f"/proc/{pid}/fd").iterdir():
        match = re.match(r"socket:\[(\d+)\]", os.readlink(fd))
        if match:
            inodes.add(match[1])
    seen = set()
    for kind in ("tcp", "tcp6", "udp", "udp6"):
        for line in table_of(pid, kind):
            if line[9] in inodes and (kind.startswith("udp") or line[3] == TCP_LISTEN):
                seen.add(f"{kind[:3].upper()} {address(line[1], kind.endswith('6'))}")
    for line in table_of(pid, "unix"):
        # Listening; what libsystemd sends by is not.
        if line[6] in inodes and int(line[3], 16) & 0x10000:
            seen.add("UNIX " + line[7].replace(str(folder), "RUNDIR"))
    # Of IPPROTO_RAW nothing is received.
    for kind in ("raw", "raw6"):
        for line in table_of(pid, kind):
            protocol = int(line[1].rsplit(":", 1)[1], 16)
            if line[9] in inodes and protocol != socket.IPPROTO_RAW:
                seen.add({socket.IPPROTO_ICMP: "RAW ICMP", socket.IPPROTO_ICMPV6: "RAW ICMPv6"}.get(
                    protocol, f"RAW {protocol}"))
    seen |= {"PACKET" for line in table_of(pid, "packet") if line[8] in inodes}
    seen |= {"NETLINK" for line in table_of(pid, "netlink") if line[9] in inodes}
    return seen


def test_sockets(folder):
    """In a network of their own, where the standard ports are free."""
    if os.geteuid() != 0:
        print("skipped: sockets: needs root")
        return
    told = {}
    # The agent asks the kernel about RDMA devices where there are any.
    rdma = Path("/sys/class/infiniband").is_dir() and any(Path("/sys/class/infiniband").iterdir())
    for program, where, setting, _fuzz, caps in rows(".Sh SOCKETS"):
        told.setdefault(program, set()).update({where} if where != "NETLINK" or rdma else ())
        config = rig.run(PROGRAMS[program], "--print-config", *rig.NO_CONFIG).stdout
        keys = re.findall(r"^(?:# )?([\w.]+):|^( +[\w.]+):", config, re.M)
        names, room = set(), ""
        for outer, inner in keys:
            room = outer or room
            names.add(outer or f"{room}.{inner.strip()}")
        for name in [setting, *caps.split(", ")]:
            check(f"{program}: {name} is a setting", name == "-" or name in names, sorted(names))
    agent = folder / "agent.yaml"
    agent.write_text(f"interfaces: [lo]\ndaemon: {{endpoint: '127.0.0.1:9477'}}\n"
                     f"nccl: {{socket: {folder}/nccl.sock}}\n"
                    f"plan: {{socket: {folder}/plan.sock, folder: {folder}}}\n"
                    f"probe: {{socket: {folder}/probe.sock}}\n")
    words = {"fabrictraced": rig.NO_CONFIG, "fabrictrace-switchpoll":
             [*rig.NO_CONFIG, "--set", "daemon.endpoint=127.0.0.1:9477"], "fabrictrace-agent": ["-c", agent]}
    equal("each program is in the table", set(told), set(words))
    for program, more in words.items():
        process = subprocess.Popen(
            ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh", PROGRAMS[program], *more],
            stdout=subprocess.DEVNULL, stderr=(folder / program).open("w"))
        seen = set()

        def as_told():
            nonlocal seen
            try:
                seen = sockets_of(process.pid, folder)
            except OSError:  # it closed a file that was just listed
                return False
            return process.poll() is not None or seen == told[program]
        until(f"the sockets of {program} are those of the table", as_told)
        equal(f"sockets of {program}", seen, told[program])
        process.terminate()
        process.wait(timeout=120)


class Fabric(identity.Fabric):
    """A daemon with the files that the page's recipes have made."""

    def __init__(self, folder):
        self.folder = folder
        self.daemon = rig.Daemon(folder, identity.TOPOLOGY)
        self.daemon.config.write_text(
            self.daemon.config.read_text()
            + f"tls:\n  cert: {folder}/fabrictraced.pem\n  key: {folder}/fabrictraced.key\n"
            f"  ca: {folder}/ca.pem\n  crl: {folder}/ca.crl\n")
        self.daemon.start()

    def come(self, name, source=None):
        """The answer to who comes with that certificate."""
        files = self.folder / f"{name}.pem", self.folder / f"{name}.key"
        peer = identity.Peer(self.daemon.port, identity.AGENT, source or name, files, self.folder / "ca.pem",
                             "fabrictraced.example")
        return peer

    def refused(self):
        text = self.daemon.get("/metrics")
        return int(re.search(r"^fabrictraced_connections_refused_total (\d+)$", text, re.M)[1])


def shell(folder, script):
    done = subprocess.run(["sh", "-euc", script], cwd=folder, capture_output=True, text=True, check=False)
    check("the recipe runs", done.returncode == 0, script + done.stderr)


def as_host(script, name):
    return script.replace("gpu01", name)


EXPIRED = """openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=gpu04 \
    -keyout gpu04.key -out gpu04.csr
echo subjectAltName=URI:fabrictrace://agent/gpu04 >gpu04.ext
openssl x509 -req -in gpu04.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days -1 \
    -extfile gpu04.ext -out gpu04.pem
"""


def test_certificates(folder):
    authority, daemon, agent = recipes("CERTIFICATES")
    first_list, revoke = recipes("Revocation")[:2]
    for script in (authority, daemon, *(as_host(agent, f"gpu0{i}") for i in (1, 2, 3)), first_list, EXPIRED):
        shell(folder, script)
    (folder / "other").mkdir()
    shell(folder / "other", authority + as_host(agent, "gpu05") + "mv gpu05.* ..\n")
    reasons = {who.removeprefix("with ").removeprefix("that "): why for who, why in rows("Who is refused")}
    fabric = Fabric(folder)
    try:
        stays = fabric.come("gpu02")
        equal("the right certificate is welcome", stays.answer[0], identity.WELCOME)
        revoked = fabric.come("gpu01")
        equal("so is the one that will be revoked", revoked.answer[0], identity.WELCOME)
        shell(folder, revoke)
        fabric.daemon.hang_up()
        fabric.daemon.log_says("its certificate is no longer accepted: " + reasons["a revoked one"])
        equal("its connection is closed, with a reason", revoked.receive()[0], identity.REFUSE)
        cases = (
            ("a revoked one", lambda: fabric.come("gpu01")),
            ("an expired one", lambda: fabric.come("gpu04")),
            ("one of another authority", lambda: fabric.come("gpu05")),
            ("the name of another host", lambda: fabric.come("gpu03", "gpu02")),
            ("without a certificate", lambda: client(fabric, "-tls1_3")),
            ("speaks TLS 1.2 or older", lambda: client(fabric, "-tls1_2", folder / "gpu02")),
        )
        equal("the page has a reason for each", set(reasons), {what for what, _ in cases})
        for what, comes in cases:
            before, said = fabric.refused(), fabric.daemon.log.read_text().count(reasons[what])
            # With TLS 1.3 a client learns of it only when it reads on.
            try:
                peer = comes()
                check(f"{what}: not welcome", peer is None or peer.answer[0] == identity.REFUSE)
            except (OSError, EOFError, ssl.SSLError):
                pass
            until(f"{what}: counted", lambda n=before: fabric.refused() == n + 1)
            # Others may have been refused for the same before.
            fabric.daemon.log_says(reasons[what], said + 1)
        before = fabric.fate("unauthorized")
        stays.report(identity.loss(identity.AGENT, "gpu02"))
        equal("nobody else was disturbed", fabric.fate("unauthorized"), before)
        stays.close()
        fabric.daemon.stop()
    finally:
        fabric.daemon.kill()


def client(fabric, version, files=None):
    """openssl's own, for what Python's would not do."""
    own = ["-cert", f"{files}.pem", "-key", f"{files}.key"] if files else []
    subprocess.run(["openssl", "s_client", "-connect", f"127.0.0.1:{fabric.daemon.port}", version, *own],
                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                   timeout=300, check=False)


if __name__ == "__main__":
    sys.exit(rig.run_tests(test_fuzz, test_decoders, test_sockets, test_certificates))
