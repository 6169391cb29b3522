"""An API for turns of which a test looks at the writes alone."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Future

from oarlock.cluster.answer import Answer
from oarlock.controllers.flavour import Flavour
from oarlock.controllers.objects.model import ReplicaSet
from oarlock.controllers.objects.selector import LabelSelector
from oarlock.controllers.pods.events import Event
from oarlock.workers.turn.steps import Grant, Listed, Write


class QuietApi:
    """Grants everything, and is asked for nothing."""

    is_proven = True

    def send(self, writes: tuple[Write, ...], deadline_ms: int, prepaid: bool) -> Future[list[Answer]]:
        raise NotImplementedError

    def read(self, resource: str, namespace: str, names: tuple[str, ...]) -> Future[list[Answer]]:
        raise AssertionError(names)

    def list_live(self, resource: str, namespace: str, selector: LabelSelector | None = None) -> Future[Listed]:
        raise AssertionError(namespace)

    def reserve(self, count: int, behind: int = 0) -> Grant:
        return Grant(count, 0)

    def tell(self, owner: ReplicaSet, owner_rv: str, flavour: Flavour, events: Iterable[Event]) -> None:
        pass

    def probe(self) -> bool:
        return True

    def close(self) -> None:
        pass
