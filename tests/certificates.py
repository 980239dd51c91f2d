# SPDX-License-Identifier: Apache-2.0
"""Certificates for tests, made by openssl: an authority, and what it signs."""
import subprocess
from pathlib import Path

KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2")


class Authority:
    def __init__(self, folder, name="ca"):
        self.folder, self.name = Path(folder), name
        self.ca = self.folder / f"{name}.pem"
        self.openssl("-subj", f"/CN={name}", "-keyout", self.folder / f"{name}.key", "-out", self.ca)

    @staticmethod
    def openssl(*args):
        subprocess.run(["openssl", "req", "-x509", *KEY, *args], check=True, capture_output=True)

    def make(self, name, *names):
        """A certificate with these subject alternative names, none: without. (certificate, key)."""
        cert, key = self.folder / f"{name}.pem", self.folder / f"{name}.key"
        also = ("-addext", f"subjectAltName={','.join(names)}") if names else ()
        self.openssl("-CA", self.ca, "-CAkey", self.folder / f"{self.name}.key", "-subj",
                     f"/CN={name}", *also, "-keyout", key, "-out", cert)
        return cert, key
