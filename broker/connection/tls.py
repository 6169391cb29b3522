"""The files of a TLS connection to Redis: the authorities to trust, and our own certificate and key."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from oarlock.broker.connection.redis_url import BadRedisUrl


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """Paths of PEM files; "" for none. Without ``ca`` the system's authorities are trusted.

    The server's name is always verified. Each new connection reads the files again, so a renewed certificate is used
    without a restart.
    """

    ca: str = ""
    cert: str = ""
    key: str = ""

    def __bool__(self) -> bool:
        return bool(self.ca or self.cert or self.key)

    def check(self) -> None:
        """Raises BadRedisUrl, with one line that names the file, where one cannot be used."""
        for option, path in (("ca", self.ca), ("cert", self.cert), ("key", self.key)):
            if path:
                _readable(option, path)
        if self.key and not self.cert:
            raise BadRedisUrl(f"--redis-tls-key {self.key!r} needs its certificate: give it with --redis-tls-cert")
        context = ssl.create_default_context()
        try:
            if self.ca:
                context.load_verify_locations(self.ca)
        except (ssl.SSLError, OSError) as error:
            raise BadRedisUrl(
                f"--redis-tls-ca {self.ca!r} holds no certificate ({_said(error)}); give a PEM file of authorities"
            ) from None
        try:
            if self.cert:
                context.load_cert_chain(self.cert, self.key or None, password=_no_password)
        except (ssl.SSLError, OSError, _Encrypted) as error:
            given = f"--redis-tls-cert {self.cert!r}" + (f" with --redis-tls-key {self.key!r}" if self.key else "")
            raise BadRedisUrl(
                f"{given} cannot be used ({_said(error)}); give a PEM certificate and the unencrypted key made for it"
            ) from None

    def options(self) -> dict[str, Any]:
        """For redis-py's connection."""
        return {
            "ssl_cert_reqs": "required",
            "ssl_check_hostname": True,
            "ssl_ca_certs": self.ca or None,
            "ssl_certfile": self.cert or None,
            "ssl_keyfile": self.key or None,
        }


NO_FILES = TlsFiles()


class _Encrypted(Exception):
    pass


def _no_password() -> str:
    """OpenSSL would ask at the terminal."""
    raise _Encrypted("the key is encrypted")


def _readable(option: str, path: str) -> None:
    try:
        with Path(path).open("rb"):
            return
    except OSError as error:
        raise BadRedisUrl(f"--redis-tls-{option} {path!r} cannot be read: {error.strerror}") from None


def _said(error: Exception) -> str:
    reason = getattr(error, "reason", None)
    return str(reason).lower().replace("_", " ") if reason else str(error)
