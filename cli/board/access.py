"""Who may ask what: names of this server, the token, requests from other pages, and headers that bind the browser."""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Awaitable, Callable, Collection
from urllib.parse import urlsplit

from aiohttp import web

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
TOKEN_MIN = 16
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self';"
    " img-src 'self' data:; base-uri 'none'; frame-ancestors 'none'; form-action 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Server": "oarlock",
}


class Access:
    """``names``: under which this server is known, besides localhost and IP addresses. ``token``: "" where none is
    needed; else nothing but the page's own files and /healthz is given without it.
    """

    def __init__(self, names: Collection[str], token: str) -> None:
        self._names, self._token = {"localhost", *(name.lower() for name in names)}, token

    @web.middleware
    async def guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Refuse what is not for us, and put the headers on what is. Streams put them on themselves."""
        try:
            self._check(request)
            answer = await handler(request)
        except web.HTTPException as refused:
            refused.headers.update(HEADERS)
            raise
        if not answer.prepared:
            for name, value in HEADERS.items():
                answer.headers.setdefault(name, value)
        return answer

    def check_token(self, request: web.Request) -> None:
        """Raises HTTPUnauthorized."""
        if not self._token:
            return
        scheme, _, given = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not hmac.compare_digest(given.strip().encode(), self._token.encode()):
            raise web.HTTPUnauthorized(text="a token is needed: Authorization: Bearer TOKEN\n")

    def _check(self, request: web.Request) -> None:
        """A page of another name that leads to this address (DNS rebinding) is refused, and what other pages send."""
        if not self._is_ours(host := request.headers.get("Host", "")):
            raise web.HTTPMisdirectedRequest(
                text=f"this server is not known as {host[:100]!r}; start it with --host NAME\n"
            )
        if request.method in ("GET", "HEAD"):
            return
        origin = urlsplit(request.headers.get("Origin", "")).netloc
        if request.headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none") or (
            "Origin" in request.headers and origin != host and _name(origin) not in self._names - {"localhost"}
        ):
            raise web.HTTPForbidden(text="another page asks; only this page may\n")
        if request.content_type != "application/json":
            raise web.HTTPUnsupportedMediaType(text="send application/json\n")

    def _is_ours(self, host: str) -> bool:
        name = _name(host)
        return name in self._names or _is_address(name)


def _name(host: str) -> str:
    """Of HOST or HOST:PORT, without brackets, in lower case; "" for what is none."""
    try:
        return (urlsplit(f"//{host}").hostname or "").rstrip(".")
    except ValueError:
        return ""


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
