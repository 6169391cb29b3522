"""The Kubernetes API as turns use it: called from the main thread, carried out by the client on the I/O thread.

It does what the steps say. It never sends a write twice.
"""

from __future__ import annotations

import asyncio
import math
import socket
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from functools import partial

from oarlock.cluster.access.config import ClusterConfig
from oarlock.cluster.answer import Answer
from oarlock.cluster.client import Client, PatchType, WriteOptions
from oarlock.cluster.event_correlator import Note, ObjectRef
from oarlock.cluster.events import EventRecorder
from oarlock.cluster.forbidden import OnForbidden, log_missing
from oarlock.cluster.http.session import RequestObserver
from oarlock.cluster.http.throttle import limiter
from oarlock.cluster.listing import list_all
from oarlock.controllers.flavour import Flavour
from oarlock.controllers.ownership.claim import Claimer
from oarlock.controllers.pods.events import Event
from oarlock.controllers.registry import WATCHED
from oarlock.workers.process.io_loop import IoLoop
from oarlock.workers.process.kinds import cluster_resource
from oarlock.workers.process.settings import Settings
from oarlock.workers.turn.steps import Grant, Listed, Write

BUSY_S = 0.1
"""So long after a write of a turn there may be another one. Events wait for that long, to keep out of its way."""


class KubeApi:
    """One process's connection to the cluster. Make it after a fork. Raises ConfigError for unusable credentials.

    ``on_forbidden`` is told, on the I/O thread, of every answer that says we lack a permission; ``observer`` of every
    request. ``io``: a loop that others use, too, and that outlives this; without it an own one is made. ``clock_ns``:
    unix time, for events. Tests and the simulation give the engine another object with the same methods.
    """

    def __init__(
        self,
        config: ClusterConfig,
        settings: Settings,
        on_forbidden: OnForbidden = log_missing,
        observer: RequestObserver | None = None,
        io: IoLoop | None = None,
        clock_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._owns_io = io is None
        self.io = io or IoLoop()
        self._writing, self._wrote_s = 0, -math.inf
        """Sends under way, and when the last one ended. The I/O thread's."""
        self._listing = asyncio.Lock()
        client = partial(Client, config, on_forbidden=on_forbidden, observer=observer)
        try:
            opened = self.io.run(self._open(client, settings, clock_ns))
        except BaseException:
            self._close_io()
            raise
        self._client, self._teller, self._events = opened
        self._limiter = self._client.limiter
        self._host = socket.gethostname()

    async def _open(
        self, client: Callable[..., Client], settings: Settings, clock_ns: Callable[[], int]
    ) -> tuple[Client, Client, EventRecorder]:
        qps, burst = settings.kube_api_qps or None, settings.kube_api_burst
        sender = client(
            role="worker",
            limiter=limiter(qps, burst),
            request_timeout_s=settings.request_timeout_ms / 1000,
            writes_max=settings.writes_in_flight,
        )
        # Events go through a client of their own, and slowly while a turn writes, so that they never hold up a pod.
        teller = client(role="worker events", limiter=limiter(qps, burst))
        recorder = EventRecorder(teller, busy=self._busy, clock_ns=clock_ns)
        recorder.start()
        return sender, teller, recorder

    def _busy(self) -> bool:
        return self._writing > 0 or time.monotonic() - self._wrote_s < BUSY_S

    def send(self, writes: tuple[Write, ...], deadline_ms: int, prepaid: bool) -> Future[list[Answer]]:
        """Send all at the same time, none after the deadline (CLOCK_BOOTTIME). Cancelling cuts requests off."""
        return self.io.submit(self._send(writes, {"deadline_s": deadline_ms / 1000, "prepaid": prepaid}))

    async def _send(self, writes: tuple[Write, ...], options: WriteOptions) -> list[Answer]:
        self._writing += 1
        try:
            if len(writes) == 1:
                return [await self._write(writes[0], options)]
            return list(await asyncio.gather(*(self._write(each, options) for each in writes)))
        finally:
            self._writing -= 1
            self._wrote_s = time.monotonic()

    async def _write(self, write: Write, options: WriteOptions) -> Answer:
        client, resource = self._client, cluster_resource(WATCHED[write.resource])
        namespace, name = write.namespace, write.name
        match write.verb:
            case "create":
                return await client.create(resource, namespace, write.body, **options)
            case "delete":
                return await client.delete(
                    resource,
                    namespace,
                    name,
                    uid=write.uid,
                    resource_version=write.rv,
                    propagation=write.propagation,
                    **options,
                )
            case "apply":
                return await client.apply(
                    resource, namespace, name, write.body, manager=write.manager, force=write.force, **options
                )
            case "merge":
                return await client.patch(resource, namespace, name, write.body, **options)
            case "patch":
                return await client.patch(resource, namespace, name, write.body, PatchType.STRATEGIC, **options)
            case "status":
                return await client.patch(resource, namespace, name, write.body, subresource="status", **options)
        raise AssertionError(f"no such verb: {write.verb}")

    def read(self, resource: str, namespace: str, names: tuple[str, ...]) -> Future[list[Answer]]:
        """Live, at the same time."""

        async def all_of_them() -> list[Answer]:
            kind = cluster_resource(WATCHED[resource])
            return list(await asyncio.gather(*(self._client.get(kind, namespace, name) for name in names)))

        return self.io.submit(all_of_them())

    def list_live(self, resource: str, namespace: str) -> Future[Listed]:
        """A consistent list, or ListError. One at a time: each is a whole namespace, and read only after trouble."""

        async def all_of_it() -> Listed:
            async with self._listing:
                kind = cluster_resource(WATCHED[resource])
                return Listed(*await list_all(self._client.list_pages(kind, namespace=namespace)))

        return self.io.submit(all_of_it())

    def reserve(self, count: int) -> Grant:
        """Take the tokens that are there now. If they are too few, also tell the wait for a useful number more."""
        granted = self._limiter.try_take(count)
        missing = count - granted
        return Grant(granted, int(self._limiter.wait_s(min(missing, 10)) * 1000) + 1 if missing else 0)

    def tell(self, owner: Claimer, owner_rv: str, flavour: Flavour, events: Iterable[Event]) -> None:
        """Queue events about an owner. They are sent in the background and may be dropped."""
        about = ObjectRef(flavour.api_version, flavour.kind, owner.namespace, owner.name, owner.uid, owner_rv)
        for event in events:
            self._events.tell(Note(about, event.type, event.reason, event.message, flavour.component, self._host))

    def probe(self) -> bool:
        """Whether the server answers at all. A 403 for its version is an answer too."""
        answer = self.io.run(self._client.probe())
        return answer.ok or answer.code == 403

    def close(self) -> None:
        """Send the queued events, for a second at most, and close."""

        async def shut() -> None:
            await self._events.close()
            await self._teller.close()
            await self._client.close()

        self.io.run(shut())
        self._close_io()

    def _close_io(self) -> None:
        if self._owns_io:
            self.io.close()
