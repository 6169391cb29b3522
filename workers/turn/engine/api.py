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
from typing import Any

from oarlock.cluster.access.config import ClusterConfig
from oarlock.cluster.answer import PAST_DEADLINE, Answer
from oarlock.cluster.client import Client, PatchType, WriteOptions
from oarlock.cluster.event_correlator import Note, ObjectRef
from oarlock.cluster.events import EventRecorder
from oarlock.cluster.forbidden import OnForbidden, log_missing
from oarlock.cluster.http.flight import RequestObserver
from oarlock.cluster.resources import Resource
from oarlock.controllers.flavour import Flavour
from oarlock.controllers.ownership.claim import Claimer
from oarlock.controllers.pods.events import Event
from oarlock.controllers.registry import WATCHED
from oarlock.workers.budget.limiter import FleetLimiter
from oarlock.workers.process.io_loop import IoLoop
from oarlock.workers.process.kinds import cluster_resource
from oarlock.workers.process.settings import Settings
from oarlock.workers.tracing.tracer import current_turn
from oarlock.workers.turn.engine.cluster_proof import ClusterProof
from oarlock.workers.turn.engine.read_api import ReadApi
from oarlock.workers.turn.steps import Grant, Write

LATE_MS = 1_000
"""When a turn looks again that was promised nothing in its time."""
BUSY_S = 0.1
"""So long after a write of a turn there may be another one. Events wait for that long, to keep out of its way."""


class KubeApi(ReadApi):
    """A ReadApi that also writes. ``clock_ns``: unix time, for events. ``budget`` makes the limiter of a fleet's API
    budget, on the I/O thread; without it the process has a limit of its own.
    """

    _client: Client
    _budget: FleetLimiter | None

    def __init__(
        self,
        config: ClusterConfig,
        settings: Settings,
        on_forbidden: OnForbidden = log_missing,
        observer: RequestObserver | None = None,
        io: IoLoop | None = None,
        clock_ns: Callable[[], int] = time.time_ns,
        budget: Callable[[], FleetLimiter] | None = None,
    ) -> None:
        self._clock_ns = clock_ns
        self._make_budget, self._budget = budget, None
        self._proof = ClusterProof()
        self._writing, self._wrote_s = 0, -math.inf
        """Sends under way, and when the last one ended. The I/O thread's."""
        self._host = socket.gethostname()
        super().__init__(config, settings, on_forbidden, observer, io)

    async def _open(self) -> Client:
        if self._make_budget is not None:
            self._budget = self._make_budget()
        sender = Client(
            self._config,
            role="worker",
            limiter=self._budget or self._new_limiter(),
            request_timeout_s=self._settings.request_timeout_ms / 1000,
            writes_max=self._settings.writes_in_flight,
            on_forbidden=self._on_forbidden,
            observer=self._observer,
        )
        # Events go through a client of their own, and slowly while a turn writes, so that they never hold up a pod.
        self._teller = Client(
            self._config,
            role="worker events",
            limiter=self._budget.for_events() if self._budget is not None else self._new_limiter(),
            on_forbidden=self._on_forbidden,
            observer=self._observer,
        )
        self._events = EventRecorder(self._teller, busy=self._busy, clock_ns=self._clock_ns)
        self._events.start()
        self._greeting = asyncio.ensure_future(sender.transport.greet())
        return sender

    def _busy(self) -> bool:
        return self._writing > 0 or time.monotonic() - self._wrote_s < BUSY_S

    def send(self, writes: tuple[Write, ...], deadline_ms: int, prepaid: bool) -> Future[list[Answer]]:
        """Send all at the same time, none after the deadline (CLOCK_BOOTTIME). Cancelling cuts requests off."""
        return self.io.submit(self._send(writes, {"deadline_s": deadline_ms / 1000, "prepaid": prepaid}))

    @property
    def is_proven(self) -> bool:
        """Whether this is known to be the cluster whose objects are in Redis. Until then: ``send_first``."""
        return self._proof.given

    def probe(self) -> bool:
        """Whether the server answers at all, and there is a chance that an owner is found there."""
        return not self._proof.pauses and super().probe()

    def send_first(
        self, owner: Any, resource: str, writes: tuple[Write, ...], deadline_ms: int, prepaid: bool
    ) -> Future[list[Answer]]:
        """As ``send``, if the owner of the cache is in this cluster; else the answers say that nothing was sent."""
        options: WriteOptions = {"deadline_s": deadline_ms / 1000, "prepaid": prepaid}
        return self.io.submit(self._send_first(owner, cluster_resource(WATCHED[resource]), writes, options))

    async def _send_first(
        self, owner: Any, resource: Resource, writes: tuple[Write, ...], options: WriteOptions
    ) -> list[Answer]:
        refusal = await self._proof.refusal(self._client, resource, owner)
        return [refusal] * len(writes) if refusal is not None else await self._send(writes, options)

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
        told = current_turn.get().write(write.verb, write.resource, write.namespace, write.name)
        if told.traceparent:
            options = {**options, "traceparent": told.traceparent}
        if self._budget is not None:
            in_time = await self._budget.take_until(
                options.get("deadline_s") or math.inf, options.get("prepaid", False)
            )
            options = {**options, "prepaid": True}
            if not in_time:
                told.answered(PAST_DEADLINE.code, PAST_DEADLINE.message)
                return PAST_DEADLINE
        answer = await self._sent(write, options)
        told.answered(answer.code, "" if answer.ok else answer.message)
        return answer

    async def _sent(self, write: Write, options: WriteOptions) -> Answer:
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

    def promise(self, count: int, wait_s: float) -> Future[Grant] | None:
        """Under a fleet's API budget: how many writes may be announced, said within the time. None: there is none."""
        return None if self._budget is None else self.io.submit(self._promise(self._budget, count, wait_s))

    async def _promise(self, budget: FleetLimiter, count: int, wait_s: float) -> Grant:
        promised = await budget.promise(count, wait_s)
        return Grant(promised, 1 if promised else LATE_MS)

    def redeem(self, count: int) -> None:
        """So many writes were promised and are not sent."""
        if self._budget is not None and count > 0:
            self._budget.redeem(count)

    def tell(self, owner: Claimer, owner_rv: str, flavour: Flavour, events: Iterable[Event]) -> None:
        """Queue events about an owner. They are sent in the background and may be dropped."""
        about = ObjectRef(flavour.api_version, flavour.kind, owner.namespace, owner.name, owner.uid, owner_rv)
        for event in events:
            self._events.tell(Note(about, event.type, event.reason, event.message, flavour.component, self._host))

    async def _shut(self) -> None:
        """Send the queued events, for a second at most, and close."""
        self._greeting.cancel()
        await self._events.close()
        await self._teller.close()
        await self._client.close()
