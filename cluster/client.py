"""The API as the fleet uses it: reads, writes that are sent at most once, lists and watches.

No method raises because of an HTTP status or a broken connection: it returns an Answer, and `cluster/outcome.py` sorts
the answers to writes. A 2xx without an object of the kind asked for proves nothing and comes
back as NO_ANSWER. Bodies are JSON bytes prepared by the caller.
"""

import time
from collections.abc import AsyncGenerator, Callable
from enum import StrEnum
from typing import Any, TypedDict, Unpack
from urllib.parse import urlencode

import orjson

from oarlock.cluster.access.config import ClusterConfig
from oarlock.cluster.answer import Answer, proven
from oarlock.cluster.forbidden import OnForbidden, log_missing
from oarlock.cluster.http.frames import WatchEvent
from oarlock.cluster.http.session import RequestObserver, Unobserved
from oarlock.cluster.http.throttle import Limiter, Unlimited
from oarlock.cluster.http.transport import REQUEST_TIMEOUT_S, WRITES_MAX, Transport, boottime_s
from oarlock.cluster.lease import LeaseCell
from oarlock.cluster.listing import PAGE_LIMIT, Page, Selection, list_pages
from oarlock.cluster.resources import Resource
from oarlock.cluster.watch import IDLE_S, watch_batches

_OF_THE_KIND = ("", "status")
"""Subresources that are answered with the object itself; others have kinds of their own, such as Scale."""


class PatchType(StrEnum):
    """Content types of the patches a server accepts."""

    MERGE = "application/merge-patch+json"
    JSON = "application/json-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"


class WriteOptions(TypedDict, total=False):
    """deadline_s: on `client.clock`; from then on the write is not sent (Answer code TOO_LATE).

    prepaid: the caller took the write's token from `client.limiter` before it announced the write.
    """

    deadline_s: float | None
    prepaid: bool


class Client:
    """One server, one pool, one rate limit. Use inside one event loop, as `async with Client(config)`.

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

    async def __aenter__(self) -> "Client":
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
        return proven(await self.transport.read(resource.item(namespace, name)), resource)

    def list_pages(
        self, resource: Resource, *, limit: int = PAGE_LIMIT, **selection: Unpack[Selection]
    ) -> AsyncGenerator[Page, None]:
        """A consistent list, see `cluster/listing.py`. Raises ListError."""
        return list_pages(self.transport, self.limiter, resource, limit=limit, **selection)

    def watch_batches(
        self, resource: Resource, rv: str, *, idle_s: float = IDLE_S, life_s: float | None = None
    ) -> AsyncGenerator[list[WatchEvent], None]:
        """Events after rv in lists of those that arrived together, see `cluster/watch.py`. Raises WatchError."""
        return watch_batches(self.transport, resource, rv, idle_s=idle_s, life_s=life_s)

    def lease(self, namespace: str, name: str) -> LeaseCell:
        """One Lease, to be read and replaced by compare-and-swap."""
        return LeaseCell(self.transport, namespace, name)

    async def create(self, resource: Resource, namespace: str, body: bytes, **options: Unpack[WriteOptions]) -> Answer:
        """POST an object. Sort the answer with `outcome.of_create`."""
        if resource.namespaced and not namespace:
            raise ValueError(f"a {resource.kind} is created in a namespace")
        return proven(await self._write("POST", resource.collection(namespace), body, **options), resource)

    async def put(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        body: bytes,
        *,
        subresource: str = "",
        **options: Unpack[WriteOptions],
    ) -> Answer:
        """PUT a whole object, with the resourceVersion it was computed from. See `outcome.of_change`.

        Never repeat it on a fresh resourceVersion: compute it again.
        """
        answer = await self._write("PUT", resource.item(namespace, name, subresource), body, **options)
        return proven(answer, resource) if subresource in _OF_THE_KIND else answer

    async def patch(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        body: bytes,
        patch_type: PatchType = PatchType.MERGE,
        *,
        subresource: str = "",
        **options: Unpack[WriteOptions],
    ) -> Answer:
        """PATCH an object or a subresource. See `outcome.of_change`."""
        path = resource.item(namespace, name, subresource)
        answer = await self._write("PATCH", path, body, patch_type.value, **options)
        return proven(answer, resource) if subresource in _OF_THE_KIND else answer

    async def apply(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        body: bytes,
        *,
        manager: str,
        force: bool = False,
        subresource: str = "",
        **options: Unpack[WriteOptions],
    ) -> Answer:
        """Server-side apply; it creates an object that is not there. See `outcome.of_apply`.

        manager: in whose name the fields are managed; force: take over fields that others manage with other values.
        """
        query = urlencode({"fieldManager": manager, **({"force": "true"} if force else {})})
        path = f"{resource.item(namespace, name, subresource)}?{query}"
        answer = await self._write("PATCH", path, body, PatchType.APPLY.value, **options)
        return proven(answer, resource) if subresource in _OF_THE_KIND else answer

    async def delete(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        *,
        uid: str = "",
        resource_version: str = "",
        grace_s: int | None = None,
        propagation: str = "",
        **options: Unpack[WriteOptions],
    ) -> Answer:
        """DELETE one object, only if it (still) has this uid and resourceVersion. See `outcome.of_delete`.

        grace_s: None for the object's own; propagation: Background, Foreground, Orphan or "" for the default.
        """
        body = delete_options(uid, resource_version, grace_s, propagation)
        return proven(
            await self._write("DELETE", resource.item(namespace, name), body, **options), resource, deleted=True
        )

    async def _write(
        self,
        method: str,
        path: str,
        body: bytes,
        content_type: str = "application/json",
        *,
        deadline_s: float | None = None,
        prepaid: bool = False,
    ) -> Answer:
        if not prepaid:
            await self._take(method)
        return await self.transport.write(method, path, body, content_type, deadline_s=deadline_s)

    async def _take(self, method: str) -> None:
        begun_s = time.perf_counter()
        await self.limiter.take()
        self._observer.limited(method, time.perf_counter() - begun_s)


def delete_options(uid: str, resource_version: str, grace_s: int | None, propagation: str) -> bytes:
    """The body of a DELETE: metav1.DeleteOptions with what was given."""
    options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions"}
    preconditions = {}
    if uid:
        preconditions["uid"] = uid
    if resource_version:
        preconditions["resourceVersion"] = resource_version
    if preconditions:
        options["preconditions"] = preconditions
    if grace_s is not None:
        options["gracePeriodSeconds"] = grace_s
    if propagation:
        options["propagationPolicy"] = propagation
    return orjson.dumps(options)
