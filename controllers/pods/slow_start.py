"""Batches of 1, 2, 4, 8, ... creates, so that a situation in which all fail costs one request and not the
burst.

Upstream: `pkg/controller/replicaset/replica_set.go` (slowStartBatch).
"""

LARGEST = 256
"""The largest batch of a sync of upstream's, which creates 500 pods at most."""


class SlowStart:
    """How many to send next. A batch is sent whole; after one with a failure nothing more is sent.

    `successes` + `failures` + `skipped` is `total` at any time, counting what is yet to be sent as skipped.
    """

    __slots__ = ("_size", "failures", "successes", "total")

    def __init__(self, total: int = 0, first: int = 1) -> None:
        self.total = total
        self.successes = 0
        self.failures = 0
        self._size = first

    @property
    def skipped(self) -> int:
        """Not sent: all of it at the start, the rest after a failure."""
        return self.total - self.successes - self.failures

    @property
    def batch(self) -> int:
        """Size of the next batch; 0 when all are sent or one has failed."""
        return 0 if self.failures else min(self._size, self.skipped)

    def add(self, count: int) -> None:
        """So many more are to be sent."""
        self.total += count

    def answered(self, failures: int) -> None:
        """The batch has been sent and answered, with that many failures. Raises ValueError for an impossible
        number of failures."""
        size = self.batch
        if not 0 <= failures <= size:
            raise ValueError(f"{failures} failures in a batch of {size}")
        self.successes += size - failures
        self.failures += failures
        self._size = min(2 * size, LARGEST)
