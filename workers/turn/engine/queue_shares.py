"""Which queue a worker asks first: the one that has had the least of it, of those that have keys.

Each batch counts as one, so queues take turns. A turn of a DaemonSet of thousands makes 250 pods, and those of a batch
of usual ReplicaSets not half as many together. So what is large in a turn counts as further batches. Else the statuses
of the ReplicaSets are late for as long as such a DaemonSet grows (docs/benchmarks.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from oarlock.broker.values import LoadSpec

REQUESTS, CHILDREN = 64, 5_000
"""As many requests sent together are as much work as a batch, and as many children of one owner."""


class QueueShares:
    """Of one worker. Queues are asked in turn where they have had the same."""

    def __init__(self, specs: Iterable[LoadSpec]) -> None:
        self.specs = list(specs)
        self._had = dict.fromkeys((each.queue for each in self.specs), 0)

    def next_order(self) -> list[LoadSpec]:
        """All of them, in the order in which they are to be asked now."""
        self.specs.append(self.specs.pop(0))
        return sorted(self.specs, key=lambda each: self._had[each.queue])

    def served(self, queue: str, asked: Sequence[LoadSpec]) -> None:
        """The queue had a batch, and none of those that were ``asked`` before it had keys: they save up nothing."""
        for each in asked:
            if each.queue == queue:
                break
            self._had[each.queue] = max(self._had[each.queue], self._had[queue])
        self._had[queue] += 1

    def begun(self, queue: str, children: int) -> None:
        """A turn of the queue has begun, over so many children."""
        self._had[queue] += children // CHILDREN

    def sent(self, queue: str, requests: int) -> None:
        """A turn of the queue sends so many requests together."""
        self._had[queue] += requests // REQUESTS
