# SPDX-License-Identifier: Apache-2.0
"""In front of a registry: TLS, and for each request a name and password, or a token and a certificate."""
import base64
import http.server
import ssl
import threading
import urllib.error
import urllib.request

from registry import direct


def basic(user, password):
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


class Front:
    def __init__(self, registry, cert, key, wanted, clients=None):
        """wanted: the header Authorization; clients: the authority of their certificates."""
        front = self
        self.wanted = wanted
        self.refused = self.passed = 0

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers["Authorization"] != front.wanted:
                    front.refused += 1
                    self.answer(401, b'{"error_code":401,"message":"who are you"}')
                    return
                front.passed += 1
                request = urllib.request.Request(
                    registry.url + self.path, data=body,
                    headers={"Content-Type": self.headers["Content-Type"]})
                try:
                    with direct.open(request, timeout=30) as answer:
                        self.answer(answer.status, answer.read())
                except urllib.error.HTTPError as error:
                    self.answer(error.code, error.read())

            def answer(self, status, body):
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.handle_error = lambda *args: None  # a client that went
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert, key)
        if clients:
            context.load_verify_locations(clients)
            context.verify_mode = ssl.CERT_REQUIRED
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True,
                                                 do_handshake_on_connect=False)
        self.url = f"https://localhost:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
