"""A proxy between the fleet and the API server that answers some writes of pods 500, with a word that tells nothing:
the request may have been forwarded or not. What others ask the server for, kubectl among them, passes it by.
"""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
import yaml
from aiohttp import ClientSession, ClientTimeout, TCPConnector, web

from oarlock.cluster.access.config import load
from oarlock.cluster.access.tls import tls_context
from tests.e2e.e2e_kubectl import Obj

SAID = "something went wrong"
_HOPS = ("connection", "content-length", "host", "keep-alive", "transfer-encoding")


@dataclass
class Rule:
    """Which writes are answered 500: `method` of the pods of one namespace that `takes` says so of (name, body).

    `first`: of that many names at most, those that come first, and of these always. `forwards`: the server hears of
    them all the same. `met`: the names, with how many requests for each were answered so.
    """

    method: str
    namespace: str
    takes: Callable[[str, Any], bool]
    first: int | None
    forwards: bool
    met: dict[str, int] = field(default_factory=dict)

    def holds_for(self, method: str, namespace: str, name: str, body: Any) -> bool:
        if (method, namespace) != (self.method, self.namespace) or not self.takes(name, body):
            return False
        if name not in self.met and self.first is not None and len(self.met) >= self.first:
            return False
        self.met[name] = self.met.get(name, 0) + 1
        return True


class Middleman:
    """Serves in a thread of its own while it is entered."""

    def __init__(self, kubeconfig: Path) -> None:
        self._kubeconfig = kubeconfig
        self._config = load(kubeconfig, environment={})
        self._rules: list[Rule] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self.url = ""

    def write_kubeconfig(self, path: Path) -> Path:
        """As the server's own, but that it leads here."""
        config = yaml.safe_load(self._kubeconfig.read_text())
        for each in config["clusters"]:
            each["cluster"] = {"server": self.url}
        path.write_text(yaml.safe_dump(config))
        path.chmod(0o600)
        return path

    @contextmanager
    def answering_500(
        self,
        method: str,
        namespace: str,
        takes: Callable[[str, Any], bool] = lambda name, body: True,
        *,
        first: int | None = None,
        forwards: bool = False,
    ) -> Iterator[Rule]:
        """See Rule. To every one of them, as long as this lasts."""
        rule = Rule(method, namespace, takes, first, forwards)
        self._rules.append(rule)
        try:
            yield rule
        finally:
            self._rules.remove(rule)

    def __enter__(self) -> Middleman:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._begin(), self._loop).result(10)
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    # -- inside the thread -----------------------------------------------------------------------

    async def _begin(self) -> None:
        secure: ssl.SSLContext | bool = True
        if self._config.server.startswith("https"):
            secure = tls_context(self._config.tls)
        connector = TCPConnector(limit=0, ssl=secure)
        self._session = ClientSession(connector=connector, auto_decompress=False, timeout=ClientTimeout(total=None))
        app = web.Application(client_max_size=16 << 20)
        app.router.add_route("*", "/{tail:.*}", self._serve)
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def _end(self) -> None:
        await self._runner.cleanup()
        await self._session.close()

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        rule = self._rule_for(request, body)
        if rule is not None and not rule.forwards:
            return _told_nothing()
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _HOPS}
        url = f"{self._config.server}{request.raw_path}"
        async with self._session.request(request.method, url, headers=headers, data=body or None) as answer:
            if rule is not None:
                await answer.read()
                return _told_nothing()
            kept = {name: value for name, value in answer.headers.items() if name.lower() not in _HOPS}
            passed_on = web.StreamResponse(status=answer.status, headers=kept)
            await passed_on.prepare(request)
            async for chunk in answer.content.iter_any():
                await passed_on.write(chunk)
            await passed_on.write_eof()
            return passed_on

    def _rule_for(self, request: web.Request, body: bytes) -> Rule | None:
        parts = request.path.strip("/").split("/")  # api v1 namespaces NAMESPACE pods [NAME]
        if parts[:3] != ["api", "v1", "namespaces"] or parts[4:5] != ["pods"] or len(parts) > 6:
            return None
        sent: Obj = orjson.loads(body) if body else {}
        name = parts[5] if len(parts) == 6 else sent.get("metadata", {}).get("name", "")
        held = (rule for rule in list(self._rules) if rule.holds_for(request.method, parts[3], name, sent))
        return next(held, None)


def _told_nothing() -> web.Response:
    status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 500}
    told = {**status, "reason": "InternalError", "message": SAID}
    return web.Response(status=500, body=orjson.dumps(told), content_type="application/json")
