# SPDX-License-Identifier: Apache-2.0
"""Two daemons behind nginx, each below a path of its own, one of which wants a token: for check_proxy.mjs."""
import json
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent)]
import speed  # noqa: E402
from ports import free_port  # noqa: E402

ROOT = HERE.parent.parent
WINDOW_S = 1
START_S = 30

NGINX = """\
user root;
daemon off;
pid {dir}/nginx.pid;
error_log {dir}/error.log;
events {{ }}
http {{
    log_format asked '$request_uri';
    access_log {dir}/access.log asked;
    client_body_temp_path {dir}/body;
    proxy_temp_path {dir}/proxy;
    fastcgi_temp_path {dir}/fastcgi;
    uwsgi_temp_path {dir}/uwsgi;
    scgi_temp_path {dir}/scgi;
    server {{
        listen 127.0.0.1:{port};
        location /fabrictrace/ {{ proxy_pass http://127.0.0.1:{first}/; }}
        location /other/ {{ proxy_pass http://127.0.0.1:{second}/; }}
    }}
}}
"""


class Proxied:
    def __init__(self, build):
        self.dir = Path(tempfile.mkdtemp(prefix="fabrictrace-proxied-"))
        self.token = secrets.token_urlsafe(32)
        self.processes = []
        self.program = build / "daemon" / "fabrictraced"
        self.port = free_port()

    def __enter__(self):
        (self.dir / "token").write_text(f"{self.token}\n")
        (self.dir / "token").chmod(0o600)
        first = self.daemon("first", f"http_token_file: {self.dir}/token\n")
        second = self.daemon("second", "")
        config = self.dir / "nginx.conf"
        config.write_text(NGINX.format(dir=self.dir, port=self.port, first=first, second=second))
        self.start("nginx", ["nginx", "-e", str(self.dir / "error.log"), "-c", str(config)])
        for path in ("fabrictrace", "other"):
            self.wait(f"http://127.0.0.1:{self.port}/{path}/healthz")
        return self

    def daemon(self, name, more):
        """One that closes windows of the fabric of its topology; the port of its HTTP out."""
        port = free_port()
        config = self.dir / f"{name}.yaml"
        config.write_text(f"listen: 127.0.0.1:{free_port()}\nhttp: 127.0.0.1:{port}\n"
                          f"window: {WINDOW_S}s\ngrace: 200ms\n"
                          f"topology: {ROOT}/packaging/examples/topology.yaml\n{more}")
        self.start(name, [str(self.program), "--config", str(config)])
        self.wait(f"http://127.0.0.1:{port}/healthz")
        return port

    def start(self, name, words):
        log = open(self.dir / f"{name}.log", "w", encoding="utf-8")
        self.processes.append(subprocess.Popen(words, stdout=log, stderr=subprocess.STDOUT))

    def wait(self, url):
        deadline = time.monotonic() + speed.limit(START_S)
        while True:
            try:
                with urllib.request.urlopen(url, timeout=5):
                    return
            except OSError:
                if time.monotonic() > deadline:
                    said = [f"{log.name}: {log.read_text()}" for log in self.dir.glob("*.log")]
                    self.__exit__()
                    raise SystemExit(f"FAIL: {url} does not answer; {' '.join(said)}") from None
                time.sleep(0.05)

    def told(self):
        return json.dumps({"url": f"http://127.0.0.1:{self.port}", "token": self.token, "window_ms": WINDOW_S * 1000})

    def logs_with_token(self):
        return [f.name for f in self.dir.iterdir() if f.suffix == ".log" and self.token in f.read_text()]

    def end(self):
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            process.wait()

    def __exit__(self, *_):
        self.end()
        shutil.rmtree(self.dir)
