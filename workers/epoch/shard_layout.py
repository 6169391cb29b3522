"""Whether the cluster has as many shards as this process believes. Ingestors of other shards ask shard 0's Lease.

They begin an epoch only while it says so, and open one only if it has said so after that epoch began. An ingestor that
changes the division swaps that Lease first and ends every shard's epoch afterwards. So each epoch of the old division
is either not opened here, or ended there before D is counted.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future

from oarlock.cluster.lease import HeldLease, LeaseError
from oarlock.workers.epoch.fleet_lease import FleetLease, LeaseStore

SEEK_MS = 300
"""Until the next read while somebody waits for its answer."""


class Layout:
    """Reads shard 0's Lease without blocking, every ``every_ms`` while all is well.

    ``wake`` is called, on another thread, when an answer has come.
    """

    def __init__(
        self, root: LeaseStore, fleet: str, shards: int, every_ms: int, wake: Callable[[], None] = lambda: None
    ) -> None:
        self._root, self._fleet, self._shards, self._every_ms, self._wake = root, fleet, shards, every_ms, wake
        self._reading: Future[HeldLease | None] | None = None
        self._asked_ms = 0
        self.next_ms = 0
        self.refusal = "the Lease of shard 0 was not read yet"
        """Why this shard may have no epoch, as last known; "" if it may."""
        self.settled_ms = -1
        """When the last request was sent whose answer confirmed our number of shards; -1 for none."""

    def step(self, now_ms: int, *, hurry: bool = False) -> None:
        """Take an answer; ask again when it is time. ``hurry``: somebody waits for a new answer."""
        if self._reading is not None and self._reading.done():
            reading, self._reading = self._reading, None
            try:
                self._hear(reading.result())
            except LeaseError as error:
                if self.settled_ms < 0:
                    self.refusal = str(error)
            pause_ms = SEEK_MS if self.refusal or hurry else self._every_ms
            self.next_ms = self._asked_ms + pause_ms
        if hurry:
            self.next_ms = min(self.next_ms, self._asked_ms + SEEK_MS)
        if self._reading is None and now_ms >= self.next_ms:
            self._asked_ms = now_ms
            self._reading = self._root.read()
            self._reading.add_done_callback(lambda _: self._wake())

    @property
    def answered(self) -> bool:
        """Whether an answer has come that ``step`` will take."""
        return self._reading is not None and self._reading.done()

    def _hear(self, held: HeldLease | None) -> None:
        self.refusal = self._why_not(FleetLease.of(held.spec) if held is not None else None)
        if not self.refusal:
            self.settled_ms = self._asked_ms

    def _why_not(self, root: FleetLease | None) -> str:
        if root is None:
            return "shard 0 has no Lease yet"
        if root.fleet != self._fleet:
            return f"the Lease of shard 0 belongs to fleet {root.fleet!r}"
        if root.shards != self._shards:
            return f"the fleet is divided into {root.shards}, this process into {self._shards}"
        if root.moving:
            return f"shard 0 waits until the last writes of a division into {root.moving} have landed"
        return ""
