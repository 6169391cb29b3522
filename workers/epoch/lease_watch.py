"""What this process knows of the fleet's Lease, and its requests on it: one at a time, without blocking."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from enum import StrEnum

from oarlock.cluster.lease import HeldLease, LeaseError, Swap
from oarlock.workers.epoch.fleet_lease import FleetLease, LeaseStore, Swapped


class News(StrEnum):
    """How a request on the Lease ended."""

    READ = "read"
    UNREAD = "unread"  # the API did not say
    WON = "won"
    LOST = "lost"  # another process wrote it, or may have: read it before anything else
    REFUSED = "refused"  # rights, validation, throttling: not written


@dataclass(frozen=True, slots=True)
class Heard:
    """``purpose``: of the swap; ``text``: why not; ``unknown``: the swap may have been made after all."""

    news: News
    purpose: str = ""
    text: str = ""
    unknown: bool = False


class LeaseWatch:
    """``lease``: as last seen. ``wake`` is called, on another thread, when a request has ended.

    ``confirmed_ms``: when the last request was sent that proved the Lease to be ours. Swaps set it here; the caller
    sets it after a read that proves the same.
    """

    def __init__(self, store: LeaseStore, duration_ms: int, wake: Callable[[], None]) -> None:
        self._store, self._duration_ms, self._wake = store, duration_ms, wake
        self.lease: FleetLease | None = None
        self.changed = False
        """Whether this process ever saw it change."""
        self.doubtful = True
        """Whether it must be read before a decision is based on it."""
        self.confirmed_ms = self.asked_ms = self._since_ms = 0
        self._held: HeldLease | None = None
        self._looked = False
        self._reading: Future[HeldLease | None] | None = None
        self._swapping: tuple[Future[Swapped], str] | None = None

    def unchanged_ms(self, now_ms: int) -> int:
        """For how long this process has seen it unchanged, on its own clock."""
        return now_ms - self._since_ms

    @property
    def busy(self) -> bool:
        """Whether a request is under way."""
        return self._reading is not None or self._swapping is not None

    @property
    def answered(self) -> bool:
        """Whether ``take`` would return an answer."""
        future = self._reading or (self._swapping and self._swapping[0])
        return future is not None and future.done()

    def read(self, now_ms: int) -> None:
        """Send a read."""
        assert not self.busy
        self.asked_ms = now_ms
        self._reading = self._store.read()
        self._reading.add_done_callback(lambda _: self._wake())

    def swap(self, after: FleetLease, purpose: str, now_ms: int) -> Future[Swapped]:
        """Send a write that succeeds only if the Lease is still as last seen."""
        assert not self.busy
        self.asked_ms = now_ms
        before = self._held
        spec = after.spec(self._duration_ms, before.spec if before is not None else None)
        future = self._store.swap(before, spec)
        self._swapping = (future, purpose)
        future.add_done_callback(lambda _: self._wake())
        return future

    def take(self, now_ms: int) -> Heard | None:
        """The answer that has come; None while there is none."""
        if not self.answered:
            return None
        if self._reading is not None:
            reading, self._reading = self._reading, None
            try:
                self._observe(reading.result(), now_ms)
            except LeaseError as error:
                return Heard(News.UNREAD, text=str(error))
            self.doubtful = False
            return Heard(News.READ)
        assert self._swapping is not None
        (swapping, purpose), self._swapping = self._swapping, None
        result, held, answer = swapping.result()
        if result is Swap.WON and held is not None:
            self._observe(held, now_ms)
            self.confirmed_ms = self.asked_ms
            return Heard(News.WON, purpose)
        if result is Swap.REFUSED:
            return Heard(News.REFUSED, purpose, answer.message)
        self.doubtful = True
        return Heard(News.LOST, purpose, answer.message, unknown=result is not Swap.LOST)

    def _observe(self, held: HeldLease | None, now_ms: int) -> None:
        before = self._held.resource_version if self._held is not None else ""
        after = held.resource_version if held is not None else ""
        if self._looked and before == after:
            return
        self.changed, self._looked = self._looked, True
        self._held, self._since_ms = held, now_ms
        self.lease = FleetLease.of(held.spec) if held is not None else None
