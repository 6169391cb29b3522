"""Who sends a request, by a token, a client certificate or a header of a proxy in front; else the anonymous user."""

from __future__ import annotations

import hmac
from typing import Final

from aiohttp import web

from oarlock.sandbox.apiserver.errors import unauthorized

ANONYMOUS: Final = "system:anonymous"
ADMIN: Final = "admin"  # the user of the one token


IN_PATH: Final = "/token/"
"""kubectl sends no bearer token where there is no TLS (upstream: client-go/tools/clientcmd/client_config.go,
IsConfigTransportTLS), but it keeps the path of its server's URL in front of every request's."""


class Identity:
    """`token`: every request must bear it. `certificates`: the common name of a client certificate names the user."""

    def __init__(self, token: str | None = None, *, certificates: bool = False) -> None:
        self._token = token
        self._certificates = certificates

    def user(self, request: web.BaseRequest, path: str) -> tuple[str, str]:
        """The user name, and the path without a token in front. `path`: as asked for.

        Raises ApiError 401 if a token is demanded and another or none was given.
        """
        if self._token is None:
            return self._named(request), path
        scheme, _, given = request.headers.get("Authorization", "").partition(" ")
        if path.startswith(IN_PATH):
            scheme = "bearer"
            given, slash, path = path.removeprefix(IN_PATH).partition("/")
            path = slash + path
        if scheme.lower() != "bearer" or not hmac.compare_digest(
            given.encode(errors="surrogateescape"), self._token.encode()
        ):
            raise unauthorized()
        return ADMIN, path or "/"

    def _named(self, request: web.BaseRequest) -> str:
        headers = request.headers
        if said := headers.get("X-Remote-User"):
            return said
        if not self._certificates or request.transport is None:
            return ANONYMOUS
        certificate = request.transport.get_extra_info("peercert") or {}
        for part in certificate.get("subject", ()):
            for name, value in part:
                if name == "commonName":
                    return str(value)
        return ANONYMOUS


def without_token(path: str) -> str:
    """The path as it may be shown in logs."""
    if not path.startswith(IN_PATH):
        return path
    _, slash, rest = path.removeprefix(IN_PATH).partition("/")
    return slash + rest
