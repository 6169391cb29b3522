"""What a worker process needs of an engine, whatever runs the turns: the fleet's own, or a test's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Protocol

from oarlock.broker.redis_broker import RedisBroker
from oarlock.broker.values import Batch, Claim, Finish, Idle
from oarlock.cluster.http.observer import RequestObserver
from oarlock.workers.process.settings import Settings


class TurnUnderWay(Protocol):
    """One turn. ``waits_for``: what it cannot go on without. ``age_ratios``: of pods it chose to delete."""

    waits_for: Future[Any] | None

    @property
    def age_ratios(self) -> Sequence[int]: ...

    def advance(self) -> Finish | None:
        """Go on as far as that takes no waiting; None: it waits.

        Raises ClaimLost, EpochOver, BrokerUnreachable; anything else is a failed turn, to be tried again.
        """
        ...

    def abandon(self) -> None:
        """Go on no more, and cancel what it waits for."""
        ...


class TurnEngine(Protocol):
    """Claims keys, begins turns, ends them. The holder was registered by whoever renews its leases."""

    def claim(self, holder: str, keys_max: int) -> Batch | Idle:
        """Raises EpochOver; BrokerUnreachable, after which keys may be locked that nobody knows of."""
        ...

    def start(self, batch: Batch, claim: Claim) -> TurnUnderWay:
        """A turn, not yet advanced. Raises as ``TurnUnderWay.advance``."""
        ...

    def finish(self, finishes: Sequence[Finish], /) -> list[int]:
        """Failed turns in a row of each, -1 where the claim was lost."""
        ...

    def wait(self, timeout_s: float) -> bool: ...

    def close(self) -> None: ...


EngineFactory = Callable[[Settings, RedisBroker, Sequence[str], RequestObserver], TurnEngine]
"""Makes the engine of one process for these queues; the observer hears of its requests. Called after the last fork."""


def open_engine(
    settings: Settings, broker: RedisBroker, queues: Sequence[str], observer: RequestObserver
) -> TurnEngine:
    """The engine that talks to the Kubernetes API. Raises ConfigError for unusable credentials, or signing keys."""
    from oarlock.cluster.access import config  # noqa: PLC0415  # `rq info` imports this module and needs no cluster
    from oarlock.workers.process.clock import SystemClock  # noqa: PLC0415
    from oarlock.workers.process.rights import MissingRights, worker_roles  # noqa: PLC0415
    from oarlock.workers.signing.signing_broker import signing_wrapper  # noqa: PLC0415
    from oarlock.workers.turn.engine.api import KubeApi  # noqa: PLC0415
    from oarlock.workers.turn.engine.engine import Engine  # noqa: PLC0415

    cluster = config.load(Path(settings.kubeconfig) if settings.kubeconfig else None)
    clock = SystemClock()
    rights = MissingRights(worker_roles(queues), clock.mono_ms)
    api = KubeApi(cluster, settings, on_forbidden=rights, observer=observer)
    return Engine(signing_wrapper(settings, clock)(broker), api, settings, clock, queues)
