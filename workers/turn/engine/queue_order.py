"""In which order a worker asks its queues for keys: in turn, and last those that have had more than a batch of it.

A turn of a DaemonSet of thousands makes 250 pods, and those of a batch of usual ReplicaSets not half as many together.
Were the queues asked in turn whatever their turns cost, the statuses of the ReplicaSets would be late for as long as
such a DaemonSet grows (docs/design/tried.md).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from oarlock.broker.values.claims import LoadSpec

REQUESTS, CHILDREN = 64, 5_000
"""As many requests sent together are as much work as a batch, and as many children of one owner."""
OWED_MAX = 8
"""Batches that a queue may owe: then it is its turn again, whatever it had."""


@dataclass(slots=True)
class _Debt:
    """Batches that a queue has had too many. ``since``: other queues that had a batch since the last one was paid."""

    batches: int = 0
    since: set[str] = field(default_factory=set)


class QueueOrder:
    """Of one worker. A queue that owes batches pays one each time another queue has had a further one."""

    def __init__(self, specs: Iterable[LoadSpec]) -> None:
        self._specs = list(specs)
        self._debts: dict[str, _Debt] = {}

    def in_full(self) -> None:
        """From now on children are asked for in full."""
        self._specs = [each.in_full for each in self._specs]

    def following(self) -> list[LoadSpec]:
        """All of them, as they are to be asked now. One that owes is asked all the same: others may have no keys."""
        return sorted(self._specs, key=lambda each: self.owes(each.queue))

    def owes(self, queue: str) -> bool:
        """Whether others come first."""
        return queue in self._debts

    def served(self, queue: str) -> None:
        """The queue had a batch: the next one after it is asked first."""
        at = next(at for at, each in enumerate(self._specs) if each.queue == queue) + 1
        self._specs = [*self._specs[at:], *self._specs[:at]]
        for other, debt in list(self._debts.items()):
            if other == queue:
                continue
            if queue in debt.since:
                debt.batches -= 1
                debt.since.clear()
            debt.since.add(queue)
            if not debt.batches:
                del self._debts[other]

    def begun(self, queue: str, children: int) -> None:
        """A turn of the queue has begun, over so many children."""
        self._owe(queue, children // CHILDREN)

    def sent(self, queue: str, requests: int) -> None:
        """A turn of the queue sends so many requests together."""
        self._owe(queue, requests // REQUESTS)

    def _owe(self, queue: str, batches: int) -> None:
        if batches:
            debt = self._debts.setdefault(queue, _Debt())
            debt.batches = min(OWED_MAX, debt.batches + batches)
