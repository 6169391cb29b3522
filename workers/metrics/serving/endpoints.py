"""What is served where: /metrics in the format that is asked for, and the health endpoints."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from prometheus_client.exposition import choose_encoder

from oarlock.workers.metrics.latest import Latest, Look
from oarlock.workers.metrics.samples import Samples
from oarlock.workers.metrics.serving.health import Check, Endpoint
from oarlock.workers.metrics.serving.http_server import Request, Response

Put = Callable[[Samples, Look], None]
"""Adds the samples of a process."""


class Endpoints:
    """The handler of one process. Redis is read in a thread, once at a time, however many requests wait for it.

    ``alive``: checks of the process itself; ``ready``: whether it can work. Both are made from the look at Redis.
    """

    def __init__(
        self,
        latest: Latest,
        put: Put,
        alive: Callable[[], dict[str, Check]],
        ready: Callable[[Look], dict[str, Check]],
    ) -> None:
        self._latest, self._put, self._alive, self._ready = latest, put, alive, ready
        self._asking = asyncio.Lock()

    async def __call__(self, request: Request) -> Response:
        name, _, below = request.path.removeprefix("/").partition("/")
        match name:
            case "metrics" if not below:
                return self._metrics(await self._look(), request.headers.get("accept", ""))
            case "livez" | "healthz":  # never Redis: starting again would not bring it back
                return Endpoint(name, self._alive()).answer(below, request.query)
            case "readyz":
                return Endpoint(name, self._ready(await self._look())).answer(below, request.query)
            case "" if not below:
                return Response(200, b"/metrics\n/livez\n/readyz\n/healthz\n")
        return Response(404, b"there are /metrics, /livez, /readyz and /healthz\n")

    async def _look(self) -> Look:
        async with self._asking:
            return await asyncio.to_thread(self._latest.look)

    def _metrics(self, look: Look, accept: str) -> Response:
        samples = Samples()
        self._put(samples, look)
        encode, content_type = choose_encoder(accept)
        return Response(200, encode(samples), content_type)


def redis_answers(look: Look) -> Check:
    """A check that Redis answered."""
    return lambda: "" if look.fleets is not None else "Redis did not answer"


def epoch_open(look: Look) -> Check:
    """A check that turns may begin, in every shard that is served."""

    def check() -> str:
        if look.fleets is None:
            return "not known: Redis did not answer"
        for fleet in look.fleets:
            if not fleet.epoch:
                return "there is no epoch: no ingestor has begun one"
            if not fleet.intact:
                return f"epoch {fleet.epoch} is of another Redis server: the next one has not begun"
            if fleet.phase != "OPEN":
                return f"epoch {fleet.epoch} is in phase {fleet.phase or 'NONE'}"
        return ""

    return check


def ticking(age_ms: Callable[[], int], limit_ms: int) -> Check:
    """A check that a loop has come round lately."""

    def check() -> str:
        return "" if (late_ms := age_ms()) <= limit_ms else f"has not come round for {late_ms / 1_000:.0f} s"

    return check
