"""Who asks: a bearer token, a client certificate, a header set by a proxy in front, or nobody in particular."""

from __future__ import annotations

import hmac
from typing import Final

from aiohttp import web

from cluster.embedded.errors import unauthorized

ANONYMOUS: Final = "system:anonymous"
ADMIN: Final = "admin"  # whoever holds the token, of which there is one


class Identity:
    """`token`: demanded of every request. `certificates`: the common name of a client certificate is a user."""

    def __init__(self, token: str | None = None, *, certificates: bool = False) -> None:
        self._token = token
        self._certificates = certificates

    def user(self, request: web.BaseRequest) -> str:
        """The user name. Raises ApiError 401 if a token is demanded and another or none was given."""
        headers = request.headers
        if self._token is not None:
            scheme, _, given = headers.get("Authorization", "").partition(" ")
            if scheme.lower() != "bearer" or not hmac.compare_digest(given.encode(), self._token.encode()):
                raise unauthorized()
            return ADMIN
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
