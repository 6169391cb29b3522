"""An authority, a server's certificate, a client's, and the same of a stranger: made with openssl."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from oarlock.broker.connection.tls import TlsFiles


class Certificates:
    """Paths of PEM files in ``folder``. The server's is for localhost and 127.0.0.1, ``elsewhere`` for another name."""

    def __init__(self, folder: Path) -> None:
        if shutil.which("openssl") is None:
            assert not os.environ.get("CI"), "CI is set, and there is no openssl"
            pytest.skip("no openssl on this machine")
        self.folder = folder
        self.ca, self.other_ca = self._authority("ca"), self._authority("other-ca")
        self.server, self.server_key = self._signed("server", "ca", "DNS:localhost,IP:127.0.0.1")
        self.elsewhere, self.elsewhere_key = self._signed("elsewhere", "ca", "DNS:redis.example")
        self.client, self.client_key = self._signed("client", "ca", "DNS:worker")
        self.stranger, self.stranger_key = self._signed("stranger", "other-ca", "DNS:worker")

    @property
    def files(self) -> TlsFiles:
        """What a client of ours is given."""
        return TlsFiles(self.ca, self.client, self.client_key)

    def options(self, port: int) -> dict[str, object]:
        """Of a server that speaks TLS only and asks for certificates."""
        return {
            "tls_port": port,
            "tls_cert_file": self.server,
            "tls_key_file": self.server_key,
            "tls_ca_cert_file": self.ca,
            "tls_auth_clients": "yes",
        }

    def _authority(self, name: str) -> str:
        key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", f"{name}.key")
        self._openssl("req", "-x509", *key, "-days", "2", "-subj", f"/CN={name}", "-out", f"{name}.crt")
        return str(self.folder / f"{name}.crt")

    def _signed(self, name: str, authority: str, names: str) -> tuple[str, str]:
        key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", f"{name}.key")
        self._openssl("req", *key, "-subj", f"/CN={name}", "-out", f"{name}.csr")
        (self.folder / f"{name}.ext").write_text(f"subjectAltName={names}\n")
        by = ("-CA", f"{authority}.crt", "-CAkey", f"{authority}.key", "-CAcreateserial", "-days", "2")
        self._openssl("x509", "-req", "-in", f"{name}.csr", *by, "-extfile", f"{name}.ext", "-out", f"{name}.crt")
        return str(self.folder / f"{name}.crt"), str(self.folder / f"{name}.key")

    def _openssl(self, *words: str) -> None:
        done = subprocess.run(["openssl", *words], cwd=self.folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
