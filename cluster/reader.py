"""The API as a process uses it that writes no object: reads, lists and watches.

It has no method that writes an object, so who holds a Reader can change nothing but a Lease.
"""

import time
from collections.abc import AsyncGenerator, Callable
from typing import Self, Unpack

from oarlock.cluster.access.config import ClusterConfig
from oarlock.cluster.answer import Answer, proven
from oarlock.cluster.forbidden import OnForbidden, log_missing
from oarlock.cluster.http.flight import RequestObserver, Unobserved
from oarlock.cluster.http.frames import WatchEvent
from oarlock.cluster.http.throttle import Limiter, Unlimited
from oarlock.cluster.http.transport import REQUEST_TIMEOUT_S, WRITES_MAX, Transport, boottime_s
from oarlock.cluster.lease import LeaseCell
from oarlock.cluster.listing import PAGE_LIMIT, PAGE_TIMEOUT_S, Page, Selection, list_pages
from oarlock.cluster.resources import Resource
from oarlock.cluster.watch import IDLE_S, watch_batches


class Reader:
    """One server, one pool, one rate limit. Use inside one event loop, as `async with Reader(config)`.

    limiter: every request takes one token, except prepaid writes, watches and Leases. Others: see Transport.
    """

    def __init__(
        self,
        config: ClusterConfig,
        *,
        role: str = "client",
        limiter: Limiter | None = None,
        request_timeout_s: float = REQUEST_TIMEOUT_S,
        writes_max: int = WRITES_MAX,
        clock: Callable[[], float] = boottime_s,
        on_forbidden: OnForbidden = log_missing,
        observer: RequestObserver | None = None,
    ) -> None:
        self.limiter: Limiter = limiter or Unlimited()
        self._observer: RequestObserver = observer or Unobserved()
        self.transport = Transport(
            config,
            role=role,
            request_timeout_s=request_timeout_s,
            writes_max=writes_max,
            clock=clock,
            on_forbidden=on_forbidden,
            observer=self._observer,
        )
        self.clock = clock

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections; writes under way end without an answer."""
        await self.transport.close()

    async def probe(self) -> Answer:
        """Ask for the server's version, to see whether it answers us. Takes no token."""
        return await self.transport.read("/version")

    async def get(self, resource: Resource, namespace: str, name: str) -> Answer:
        """The object as etcd has it now (no resourceVersion is sent, so never from a lagging cache)."""
        await self._take("GET")
        path = resource.item(namespace, name)
        return proven(await self.limiter.carry(lambda: self.transport.read(path)), resource)

    def list_pages(
        self,
        resource: Resource,
        *,
        limit: int = PAGE_LIMIT,
        timeout_s: float = PAGE_TIMEOUT_S,
        **selection: Unpack[Selection],
    ) -> AsyncGenerator[Page, None]:
        """A consistent list, see `cluster/listing.py`. Raises ListError."""
        return list_pages(self.transport, self.limiter, resource, limit=limit, timeout_s=timeout_s, **selection)

    def watch_batches(
        self, resource: Resource, rv: str, *, idle_s: float = IDLE_S, life_s: float | None = None
    ) -> AsyncGenerator[list[WatchEvent], None]:
        """Events after rv in lists of those that arrived together, see `cluster/watch.py`. Raises WatchError."""
        return watch_batches(self.transport, resource, rv, idle_s=idle_s, life_s=life_s)

    def lease(self, namespace: str, name: str) -> LeaseCell:
        """One Lease, to be read and replaced by compare-and-swap."""
        return LeaseCell(self.transport, namespace, name)

    async def _take(self, method: str) -> None:
        begun_s = time.perf_counter()
        await self.limiter.take()
        self._observer.limited(method, time.perf_counter() - begun_s)
