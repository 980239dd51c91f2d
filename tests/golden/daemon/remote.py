#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tool against a daemon that speaks HTTPS and wants a token: what it shows, and what it says of a
token that is refused, of certificates that are not accepted, and of servers that speak something else."""
import os
import shutil
import socket
import subprocess
import sys
import threading
from pathlib import Path

sys.dont_write_bytecode = True
import rig  # noqa: E402
from certificates import Authority  # noqa: E402
from rig import check, equal  # noqa: E402

TOOL = Path("cli/fabrictrace").resolve()
TOKEN = "correct-horse-battery"
ENV = {k: v for k, v in os.environ.items() if not k.startswith("FABRICTRACE_")}


def secret(path, text):
    path.write_text(f"{text}\n")
    path.chmod(0o600)
    return path


class Secure(rig.Daemon):
    """With its certificate and a token."""

    def __init__(self, folder, cert, key, token):
        super().__init__(folder, (rig.LAB / "topology.yaml").read_text())
        self.cert, self.key = folder / "own.pem", folder / "own.key"
        self.take(cert, key)
        self.config.write_text(self.config.read_text() + f"http_token_file: {token}\n"
                               f"http_tls: {{cert: {self.cert}, key: {self.key}}}\n")

    def take(self, cert, key):
        shutil.copy(cert, self.cert)
        shutil.copy(key, self.key)
        self.key.chmod(0o600)

    def answers(self):
        try:
            socket.create_connection(("127.0.0.1", self.http)).close()
            return True
        except OSError:
            return False


def tool(*words, **env):
    done = rig.run(TOOL, *words, env={**ENV, **env})
    return done.returncode, done.stdout, done.stderr


class Listener:
    """Reads what comes first of a connection, says `word`, and ends it; `word` None: says nothing
    until it is released."""

    def __init__(self, word):
        self.word, self.heard = word, b""
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.endpoint = f"https://127.0.0.1:{self.socket.getsockname()[1]}"
        self.release = threading.Event()
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        peer, _ = self.socket.accept()
        self.heard = peer.recv(4096)
        if self.word is None:
            self.release.wait(rig.WAIT_S)
        else:
            peer.sendall(self.word)
        peer.close()


def test_remote(folder):
    ours, foreign = Authority(folder), Authority(folder, "foreign")
    good = ours.make("good", "DNS:localhost", "IP:127.0.0.1")
    token = secret(folder / "token", TOKEN)
    daemon = Secure(folder, *good, token)
    at = ("--endpoint", f"https://127.0.0.1:{daemon.http}")
    known = (*at, "--ca", ours.ca)
    try:
        daemon.start()
        code, out, err = tool("topology", *known, "--token-file", token)
        equal("with authority and token", (code, err), (0, ""))
        check("it shows the fabric", "leaf1" in out, out)
        equal("a name as well as an address",
              tool("topology", "--endpoint", f"https://localhost:{daemon.http}/", "--ca", ours.ca,
                   "--token-file", token)[:2], (0, out))
        equal("by the environment", tool(
            "topology", FABRICTRACE_ENDPOINT=at[1], FABRICTRACE_CA=str(ours.ca),
            FABRICTRACE_TOKEN_FILE=str(token))[:2], (0, out))
        equal("an answer in many slices", tool("links", "--json", *known, "--token-file", token)[0], 0)
        where = f"https://127.0.0.1:{daemon.http}"
        equal("without a token", tool("topology", *known),
              (77, "", f"fabrictrace: fabrictraced at {where} requires a token: --token-file FILE\n"))
        other = secret(folder / "other", "another-horse-battery")
        equal("with another", tool("topology", *known, "--token-file", other),
              (77, "", f"fabrictrace: fabrictraced at {where} refuses the token of --token-file\n"))
        other.chmod(0o644)
        code, _, err = tool("topology", *known, "--token-file", other)
        check("with one that everybody may read", code == 77 and "chmod" in err, (code, err))
        code, _, err = tool("topology", *known, "--token-file", folder / "none")
        check("with none there", code == 77 and str(folder / "none") in err, (code, err))
        code, _, err = tool("topology", *at, "--token-file", token, "--ca", folder / "none")
        check("an authority that is not there", code == 66 and "No such file" in err, (code, err))
        code, _, err = tool("topology", *at, "--token-file", token, "--ca", token)
        check("an authority that is none", code == 66 and str(token) in err, (code, err))
        for what, more, text in (
                ("another authority", ("--ca", foreign.ca), "is not accepted: "),
                ("the system's authorities", (), "is not accepted: ")):
            code, out, err = tool("topology", *at, *more, "--token-file", token)
            check(what, (code, out) == (76, "") and f"{where}: its certificate {text}" in err,
                  (code, err))
        code, _, err = tool("topology", "--endpoint", f"127.0.0.1:{daemon.http}")
        check("plain HTTP to a server of HTTPS", code in (69, 76) and err, (code, err))
    finally:
        daemon.kill()
    past = folder / "past.pem", folder / "past.key"
    subprocess.run(["openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                    "-nodes", "-subj", "/CN=past", "-keyout", past[1], "-out", folder / "past.csr"],
                   check=True, capture_output=True)
    (folder / "past.ext").write_text("subjectAltName=IP:127.0.0.1\n")
    # Valid for no day at all: since yesterday's end.
    subprocess.run(["openssl", "x509", "-req", "-in", folder / "past.csr", "-CA", ours.ca, "-CAkey",
                    folder / "ca.key", "-CAcreateserial", "-days", "-1", "-extfile",
                    folder / "past.ext", "-out", past[0]], check=True, capture_output=True)
    for what, pair, text in (
            ("a certificate that has expired", past, "certificate has expired"),
            ("one of another name", ours.make("named", "DNS:elsewhere.example"), "mismatch")):
        daemon = Secure(folder, *pair, token)
        try:
            daemon.start()
            code, out, err = tool("topology", "--endpoint", f"https://127.0.0.1:{daemon.http}",
                                  "--ca", ours.ca, "--token-file", token)
            check(what, (code, out) == (76, "") and text in err, (code, err))
        finally:
            daemon.kill()


def test_others(folder):
    """Servers that speak no TLS, or nothing; and no token in the clear."""
    ours = Authority(folder)
    token = secret(folder / "token", TOKEN)
    plain = Listener(b"HTTP/1.0 400 Bad Request\r\n\r\n")
    code, _, err = tool("links", "--endpoint", plain.endpoint, "--ca", ours.ca, "--token-file", token)
    check("a server of plain HTTP", code == 76 and "does not speak TLS" in err, (code, err))
    check("it has not heard the token", plain.heard and TOKEN.encode() not in plain.heard)
    gone = Listener(b"")
    code, _, err = tool("links", "--endpoint", gone.endpoint, "--ca", ours.ca)
    check("one that hangs up", code in (69, 76) and gone.endpoint in err, (code, err))
    mute = Listener(None)
    code, _, err = tool("links", "--endpoint", mute.endpoint, "--ca", ours.ca)
    check("one that says nothing", code == 69 and "no answer within 5 seconds" in err, (code, err))
    mute.release.set()
    code, _, err = tool("links", "--endpoint", "192.0.2.1:9478", "--token-file", token)
    check("the token goes nowhere in the clear", code == 64 and "in the clear" in err, (code, err))
    for endpoint in ("https://", "https://nothing", "https://127.0.0.1:9478/page", "ftp://a:1"):
        code, _, err = tool("links", "--endpoint", endpoint)
        check(f"'{endpoint}' is no endpoint", code == 64 and "HOST:PORT" in err, (code, err))


def test_cut_off(folder):
    """An answer that ends before its end is none, whichever of the two ends it has."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
    whole = b'{"schema":"fabrictrace.topology.v1","fabric":"f","switches":[],"hosts":[]}\n'
    for what, sent in (("nothing", b""), ("half a head", head),
                       ("a chunk, and no last one",
                        head + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n" % (len(whole), whole)),
                       ("a byte less than promised",
                        head + b"Content-Length: %d\r\n\r\n%b" % (len(whole) + 1, whole))):
        server = Listener(sent)
        code, out, err = tool("topology", "--json", "--endpoint", server.endpoint[8:])
        check(what, (code, out) == (69, "") and "the answer was cut off" in err, (code, out, err))
    server = Listener(head + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(whole), whole))
    code, out, err = tool("topology", "--json", "--endpoint", server.endpoint[8:])
    check("a whole one", code == 0 and '"fabric"' in out, (code, out, err))


def test_secrecy(folder):
    """While it waits for an answer, nobody sees the token in what the kernel shows of it."""
    token = secret(folder / "token", TOKEN)
    mute = Listener(None)
    process = subprocess.Popen([TOOL, "links", "--endpoint", mute.endpoint[8:], "--token-file", token],
                               env=ENV, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        rig.until("the request is there", lambda: mute.heard)
        check("with its token", f"Authorization: Bearer {TOKEN}\r\n".encode() in mute.heard)
        for name in ("cmdline", "environ"):
            shown = Path(f"/proc/{process.pid}/{name}").read_bytes()
            check(f"not in /proc/PID/{name}", TOKEN.encode() not in shown)
    finally:
        process.kill()
        process.wait()
        mute.release.set()


if __name__ == "__main__":
    sys.exit(rig.run_tests(test_remote, test_others, test_cut_off, test_secrecy))
