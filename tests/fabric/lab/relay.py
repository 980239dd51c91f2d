# SPDX-License-Identifier: Apache-2.0
"""A way from this machine's loopback to a server in a lab's namespace, for who looks from outside:
a browser, or a person with one."""
import selectors
import socket
import threading

from .fabric import in_netns

PIECE = 1 << 16


class Relay:
    """Listens on 127.0.0.1:port (0: any) and hands each connection on to 127.0.0.1:inner in the
    namespace of node. close() ends them all."""

    def __init__(self, fabric, node, inner, port=0):
        self.netns = fabric.netns(node)
        self.inner = inner
        self.listener = socket.create_server(("127.0.0.1", port))
        self.port = self.listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/"
        self.open = set()
        self.lock = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                outer, _ = self.listener.accept()
            except OSError:
                return  # closed
            threading.Thread(target=self._serve, args=(outer,), daemon=True).start()

    def _serve(self, outer):
        with outer:
            try:
                inner = in_netns(self.netns, lambda: socket.create_connection(
                    ("127.0.0.1", self.inner), timeout=30))
            except Exception:  # the server or the lab is gone: so is the connection
                return
            with inner:
                with self.lock:
                    self.open |= {outer, inner}
                try:
                    self._pass(outer, inner)
                except OSError:
                    pass
                with self.lock:
                    self.open -= {outer, inner}

    @staticmethod
    def _pass(outer, inner):
        """Both ways until either end is done."""
        inner.settimeout(None)
        with selectors.DefaultSelector() as ready:
            ready.register(outer, selectors.EVENT_READ, inner)
            ready.register(inner, selectors.EVENT_READ, outer)
            while True:
                for key, _ in ready.select():
                    piece = key.fileobj.recv(PIECE)
                    if not piece:
                        return
                    key.data.sendall(piece)

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        with self.lock:
            for end in self.open:
                end.shutdown(socket.SHUT_RDWR)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
