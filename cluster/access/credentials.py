"""Who we are to the API server: what each request carries, and when to read it again.

Three sources: fixed values, files that rotate (a mounted service account token), and an exec plugin
(`cluster/access/exec_plugin.py`). Secrets never appear in a repr, a log line or an error.
"""

import base64
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

REREAD_S = 60.0  # upstream: client-go/transport/token_source.go re-reads a token file each minute

log = logging.getLogger("oarlock.cluster.access.credentials")


class ConfigError(Exception):
    """A kubeconfig, credential or certificate that cannot be used: one line, without secrets, for whoever mends it."""

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.split()))


@dataclass(frozen=True, slots=True)
class Auth:
    """Headers of a request, and a client certificate with its key (PEM) for TLS."""

    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    certificate_pem: bytes = field(default=b"", repr=False)
    key_pem: bytes = field(default=b"", repr=False)


class Credentials(Protocol):
    """A source of Auth. `current` is asked before every request and must be cheap."""

    def current(self) -> Auth | None:
        """The Auth to use now, or None if it must be fetched first."""

    async def fetch(self) -> Auth:
        """Fetch what is missing. Raises ConfigError with one line if that fails."""

    def suspect(self, auth: Auth) -> None:
        """The server answered 401 to this Auth: look again before the next request."""


def bearer(token: str) -> tuple[str, str]:
    """The Authorization header of a token."""
    return ("Authorization", f"Bearer {token}")


def basic(username: str, password: str) -> tuple[str, str]:
    """The Authorization header of a user name and password."""
    encoded = base64.b64encode(f"{username}:{password}".encode()).decode()
    return ("Authorization", f"Basic {encoded}")


class FixedCredentials:
    """Values that do not change while the process lives, or none at all."""

    def __init__(self, auth: Auth | None = None) -> None:
        self._auth = auth or Auth()

    def current(self) -> Auth | None:
        return self._auth

    async def fetch(self) -> Auth:
        return self._auth

    def suspect(self, auth: Auth) -> None:
        return None


class FileCredentials:
    """A token file and/or a client certificate in files, read again each minute and after a 401.

    The first read happens in the constructor and raises ConfigError. Later failures keep what was read last
    (a rotation replaces the file, which may be absent for a moment); each is logged.
    """

    def __init__(
        self,
        base: Auth,
        *,
        token_path: Path | None = None,
        certificate_path: Path | None = None,
        key_path: Path | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._base, self._clock = base, clock
        self._token_path = token_path
        self._certificate_path, self._key_path = certificate_path, key_path
        self._auth = self._read()
        self._read_again_s = clock() + REREAD_S

    def current(self) -> Auth | None:
        now_s = self._clock()
        if now_s >= self._read_again_s:
            self._read_again_s = now_s + REREAD_S
            try:
                fresh = self._read()
            except ConfigError as error:
                log.warning("keeping the credentials read last: %s", error)
            else:
                # The same object while nothing changed: the TLS context is kept per Auth.
                self._auth = self._auth if fresh == self._auth else fresh
        return self._auth

    async def fetch(self) -> Auth:
        return self._auth

    def suspect(self, auth: Auth) -> None:
        if auth is self._auth:
            self._read_again_s = self._clock()

    def _read(self) -> Auth:
        auth = self._base
        if self._token_path is not None:
            token = read_file(self._token_path, "the token file").decode("utf-8", "replace").strip()
            if not token:
                raise ConfigError(f"the token file {self._token_path} is empty")
            auth = replace(auth, headers=(*auth.headers, bearer(token)))
        if self._certificate_path is not None:
            auth = replace(auth, certificate_pem=read_file(self._certificate_path, "the client certificate"))
        if self._key_path is not None:
            auth = replace(auth, key_pem=read_file(self._key_path, "the client key"))
        return auth


def read_file(path: Path, what: str) -> bytes:
    """Contents of a file. Raises ConfigError naming `what` and the path."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"cannot read {what} {path}: {(error.strerror or 'failed').lower()}") from error
