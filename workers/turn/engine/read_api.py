"""The Kubernetes API as turns read it: called from the main thread, carried out by the client on the I/O thread.

It has no method that writes, and its client has none.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import Future

from oarlock.cluster.access.config import ClusterConfig
from oarlock.cluster.answer import Answer
from oarlock.cluster.forbidden import OnForbidden, log_missing
from oarlock.cluster.http.flight import RequestObserver
from oarlock.cluster.http.throttle import Limiter, limiter
from oarlock.cluster.listing import list_all
from oarlock.cluster.reader import Reader
from oarlock.controllers.objects.selector import LabelSelector
from oarlock.controllers.registry import WATCHED
from oarlock.workers.process.io_loop import IoLoop
from oarlock.workers.process.kinds import cluster_resource
from oarlock.workers.process.settings import Settings
from oarlock.workers.turn.steps import Grant, Listed


class ReadApi:
    """One process's connection to the cluster. Make it after a fork. Raises ConfigError for unusable credentials.

    ``on_forbidden`` is told, on the I/O thread, of every answer that says we lack a permission; ``observer`` of every
    request. ``io``: a loop that others use, too, and that outlives this; without it an own one is made. Tests and the
    simulation give the engine another object with the same methods.
    """

    def __init__(
        self,
        config: ClusterConfig,
        settings: Settings,
        on_forbidden: OnForbidden = log_missing,
        observer: RequestObserver | None = None,
        io: IoLoop | None = None,
    ) -> None:
        self._config, self._settings = config, settings
        self._on_forbidden, self._observer = on_forbidden, observer
        self._owns_io = io is None
        self.io = io or IoLoop()
        self._listing, self._reading = asyncio.Lock(), asyncio.Semaphore(settings.writes_in_flight)
        try:
            self._client = self.io.run(self._open())
        except BaseException:
            self._close_io()
            raise
        self._limiter = self._client.limiter

    async def _open(self) -> Reader:
        return Reader(
            self._config,
            role="dry-run worker",
            limiter=self._new_limiter(),
            request_timeout_s=self._settings.request_timeout_ms / 1000,
            on_forbidden=self._on_forbidden,
            observer=self._observer,
        )

    def _new_limiter(self) -> Limiter:
        return limiter(self._settings.kube_api_qps or None, self._settings.kube_api_burst)

    def read(self, resource: str, namespace: str, names: tuple[str, ...]) -> Future[list[Answer]]:
        """Live, at the same time: as many as writes may be, since each has a connection."""
        kind = cluster_resource(WATCHED[resource])

        async def one(name: str) -> Answer:
            async with self._reading:
                return await self._client.get(kind, namespace, name)

        async def all_of_them() -> list[Answer]:
            return list(await asyncio.gather(*map(one, names)))

        return self.io.submit(all_of_them())

    def list_live(self, resource: str, namespace: str, selector: LabelSelector | None = None) -> Future[Listed]:
        """A consistent list, or ListError. One at a time: each may be a whole namespace, and is read only after
        trouble. ``selector``: a valid one; only what it selects is listed.
        """

        async def all_of_it() -> Listed:
            async with self._listing:
                kind = cluster_resource(WATCHED[resource])
                query = selector.query if selector is not None else ""
                pages = self._client.list_pages(kind, namespace=namespace, label_selector=query)
                return Listed(*await list_all(pages))

        return self.io.submit(all_of_it())

    def reserve(self, count: int, behind: int = 0) -> Grant:
        """Take the tokens that are there now, unless it pays to wait for a few more. If they are too few, also tell
        the wait for the next ones. ``behind``: how many will be wanted after these.
        """
        granted = self._limiter.try_take(count, count + behind)
        missing = count - granted
        return Grant(granted, int(self._limiter.wait_s(missing + behind) * 1000) + 1 if missing else 0)

    def has_tokens(self) -> bool:
        """Whether a request could be sent at once."""
        return self._limiter.wait_s(1) <= 0

    def probe(self) -> bool:
        """Whether the server answers at all. A 403 for its version is an answer too."""
        answer = self.io.run(self._client.probe())
        return answer.ok or answer.code == 403

    def version(self) -> bytes:
        """What the server says to /version; "" where it does not answer."""
        answer = self.io.run(self._client.probe())
        return answer.body if answer.ok else b""

    def close(self) -> None:
        """Close the connection."""
        self.io.run(self._shut())
        self._close_io()

    async def _shut(self) -> None:
        await self._client.close()

    def _close_io(self) -> None:
        if self._owns_io:
            self.io.close()
