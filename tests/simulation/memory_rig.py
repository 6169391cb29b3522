"""The twin under a virtual clock: many more runs a second, records that expire, and nothing to install."""

from __future__ import annotations

from oarlock.broker.memory.memory_broker import MemoryBroker, MemoryStore
from oarlock.broker.memory.state import FRONT
from oarlock.broker.values.events import class_name
from tests.broker.broker_state import Counts, counted

REMEMBERS_EVERY = 7
"""Of the runs, beginning with the first: a seed that is played by itself has histories. Prime, so that those of each
scenario come by them.
"""


class SimMemoryBroker(MemoryBroker):
    """The twin, with a look at what is not idle and at the cache as a whole."""

    def busy(self, queue: str) -> int:
        return len(self.store.state.queue(queue).state)

    def busy_keys(self, queue: str) -> set[str]:
        """Keys that are queued, in work or parked."""
        return set(self.store.state.queue(queue).state)

    def places(self, queue: str) -> tuple[list[str], list[str]]:
        """The keys in the front of a queue, and those behind it."""
        q = self.store.state.queue(queue)
        return list(q.stream), list(q.backlog)

    def queued_keys(self, queue: str) -> set[str]:
        return {key for key, state in self.store.state.queue(queue).state.items() if state == "queued"}

    def delayed_keys(self, queue: str) -> set[str]:
        return set(self.store.state.queue(queue).delayed)

    def recorded(self, queue: str, key: str) -> dict[str, str]:
        """The record of a key, as it is stored."""
        record = self.store.state.queue(queue).expected(key, self.store.clock())
        return dict(record.fields) if record is not None else {}

    def cached(self, resource: str) -> dict[str, str]:
        """Name -> resourceVersion of everything cached."""
        state = self.store.state
        objects = state.objects.get((resource, state.generation.get(resource, "0")), {})
        return {name: stored.rv for name, stored in objects.items()}

    def counts(self, resource: str) -> tuple[Counts, Counts]:
        """How many objects of each class are under each entry: as it is kept, and by the objects."""
        state = self.store.state
        of = resource, state.generation.get(resource, "0")
        kept = {
            entry: {class_name(kind): count for kind, count in kinds.items()}
            for (*place, entry), kinds in state.summary.items()
            if (*place,) == of
        }
        return kept, counted(stored.entries for stored in state.objects.get(of, {}).values())


class MemoryRig:
    """``broker(epoch)`` begins an epoch and gives a broker of it. One run in ``REMEMBERS_EVERY`` has histories."""

    def __init__(self) -> None:
        self._runs = 0
        self.reset()

    def reset(self, mark: str = "", front: int = FRONT) -> None:
        """Forget everything. ``front``: how many keys the front of a queue takes."""
        self._now, self._front = 0, front
        self._remembers, self._runs = self._runs % REMEMBERS_EVERY == 1, self._runs + 1
        self._store = MemoryStore(lambda: self._now)

    def clock(self, now_ms: int) -> None:
        self._now = now_ms

    def broker(self, number: int) -> SimMemoryBroker:
        self._store.bootstrap(number)
        self._store.state.front, self._store.state.remembers = self._front, self._remembers
        return SimMemoryBroker(self._store, number)
