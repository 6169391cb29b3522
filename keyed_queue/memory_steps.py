"""The twin in memory: the same steps for tests without a Redis, within one process.

It says in Python what each script says in Lua; Hypothesis compares the two after each step.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from oarlock.queue.values import Claim, Empty, Finished, KeyFacts, Parked, Policy, Stats, Verdict, kept_error

CLOCK_JUMP_MS = 5_000
SILENT_MS = 60_000


def _wall_ms() -> int:
    return int(time.time() * 1000)


@dataclass(slots=True)
class _Lock:
    token: int
    holder: str
    since_ms: int
    lease_ms: int
    anew: bool = False
    """Its lease was begun anew, and its holder has not renewed since."""


class MemorySteps:
    """The queue ``name``. ``now_ms``: its clock."""

    def __init__(self, name: str, now_ms: Callable[[], int] = _wall_ms) -> None:
        self.name = name
        self._now_ms = now_ms
        self._changed = threading.Condition()
        self._wakes = 0
        self.state: dict[str, str] = {}
        self.streams: dict[str, deque[tuple[str, int]]] = {}
        """group -> (key, ms it was queued), in the order of the groups' turns"""
        self.groups: dict[str, str] = {}
        self.delayed: dict[str, int] = {}
        self.locks: dict[str, _Lock] = {}
        self.leases: dict[str, int] = {}
        self.failures: dict[str, int] = {}
        self.errors: dict[str, str] = {}
        self.parked_at: dict[str, int] = {}
        self.consumers: dict[str, int] = {}
        self.token = 0
        self.tick: int | None = None

    def add(self, keys: Iterable[tuple[str, str]], delay_ms: int = 0) -> int:
        with self._changed:
            added = 0
            for key, group in keys:
                if group:
                    self.groups[key] = group
                else:
                    self.groups.pop(key, None)
                added += self._add_after(key, delay_ms)
            return added

    def claim(self, holder: str, lease_ms: int, policy: Policy, keys_max: int = 1) -> list[Claim] | Empty:
        with self._changed:
            now = self._now_ms()
            self._seen(holder, now)
            self._steady(now)
            for key in _first(self.leases, now):
                lock, dirty = self.locks[key], self.state.get(key) == "running+"
                self._unlock(key)
                told = f"the lease ended: {lock.holder} died, or was cut off, while it had the key"
                self._fail(key, told, dirty, True, policy)
            for key in _first(self.delayed, now):
                del self.delayed[key]
                self._add(key)
            claims: list[Claim] = []
            while len(claims) < keys_max and self.streams:
                claims.append(self._take(holder, lease_ms, now))
            if claims:
                return claims
            times = [*self.delayed.values(), *self.leases.values()]
            return Empty(max(0, min(times) - now) if times else None)

    def finish(
        self, claim: Claim, verdict: Verdict, policy: Policy, *, again_ms: int | None = None, error: str = ""
    ) -> Finished | None:
        with self._changed:
            key = claim.key
            if key not in self.locks or self.locks[key].token != claim.token:
                return None
            dirty = self.state.get(key) == "running+"
            self._unlock(key)
            if verdict is Verdict.FAILED:
                return self._fail(key, kept_error(error), dirty, False, policy)
            self.failures.pop(key, None)
            self.errors.pop(key, None)
            added = self._add_after(key, again_ms) if again_ms is not None else 0
            if dirty:
                added += self._add(key)
            if added:
                return Finished("queued", 0)
            if again_ms is not None:
                return Finished("delayed", 0)
            if key not in self.delayed:
                self.groups.pop(key, None)
            return Finished("idle", 0)

    def renew(self, holder: str, lease_ms: int, claims: Sequence[Claim]) -> list[int]:
        with self._changed:
            now, lost = self._now_ms(), []
            self._seen(holder, now)
            self._steady(now)
            for claim in claims:
                if claim.key in self.locks and self.locks[claim.key].token == claim.token:
                    self.locks[claim.key].anew = False
                    self.leases[claim.key] = now + lease_ms
                else:
                    lost.append(claim.token)
            return lost

    def requeue(self, keys: Sequence[str]) -> tuple[int, int]:
        with self._changed:
            parked = added = 0
            for key in keys:
                if self.parked_at.pop(key, None) is not None:
                    for table in (self.state, self.failures, self.errors):
                        table.pop(key, None)
                    parked += 1
                added += self._add(key)
            return parked, added

    def look(self, key: str) -> KeyFacts:
        with self._changed:
            now, lock, group = self._now_ms(), self.locks.get(key), self.groups.get(key, "")
            return KeyFacts(
                key,
                self.state.get(key, "idle"),
                group,
                lock.token if lock else None,
                lock.holder if lock else None,
                max(0, now - lock.since_ms) if lock else None,
                max(0, self.leases[key] - now) if lock else None,
                max(0, self.delayed[key] - now) if key in self.delayed else None,
                max(0, now - self.parked_at[key]) if key in self.parked_at else None,
                self.failures.get(key, 0),
                self.errors.get(key, ""),
                len(self.streams.get(group, ())),
                len(self.streams),
                self._present(now),
            )

    def stats(self) -> Stats:
        with self._changed:
            now = self._now_ms()
            return Stats(
                len(self.state) - len(self.locks) - len(self.parked_at),
                len(self.locks),
                len(self.delayed),
                len(self.parked_at),
                len(self.failures),
                len(self.streams),
                self._present(now),
                max((now - stream[0][1] for stream in self.streams.values()), default=None),
            )

    def parked(self, keys_max: int) -> list[Parked]:
        with self._changed:
            found = sorted(self.parked_at, key=lambda key: (self.parked_at[key], key))[:keys_max]
            return [Parked(key, self.parked_at[key], self.failures[key], self.errors[key]) for key in found]

    def wait(self, timeout_s: float) -> bool:
        with self._changed:
            before = self._wakes
            return self._changed.wait_for(lambda: self._wakes != before or bool(self.streams), timeout_s)

    # -- the moves, as lib/*.lua ---------------------------------------------------------------------------------

    def _append(self, key: str) -> None:
        self.streams.setdefault(self.groups.get(key, ""), deque()).append((key, self._now_ms()))
        self.state[key] = "queued"
        self._wake()

    def _add(self, key: str) -> int:
        state = self.state.get(key)
        if state is None:
            self._append(key)
            return 1
        if state == "running":
            self.state[key] = "running+"
        return 0

    def _add_after(self, key: str, delay_ms: int) -> int:
        if delay_ms <= 0:
            return self._add(key)
        due = self._now_ms() + delay_ms
        self.delayed[key] = min(due, self.delayed.get(key, due))
        self._wake()
        return 0

    def _take(self, holder: str, lease_ms: int, now: int) -> Claim:
        """The oldest key of the group whose turn it is; the group goes to the end of the ring."""
        group = next(iter(self.streams))
        stream = self.streams.pop(group)
        key, queued_ms = stream.popleft()
        if stream:
            self.streams[group] = stream
        self.token = max(self.token + 1, now * 1000)
        self.locks[key] = _Lock(self.token, holder, now, lease_ms)
        self.leases[key] = now + lease_ms
        self.state[key] = "running"
        return Claim(key, self.token, self.failures.get(key, 0), max(0, now - queued_ms))

    def _unlock(self, key: str) -> None:
        del self.locks[key], self.leases[key], self.state[key]

    def _fail(self, key: str, error: str, dirty: bool, died: bool, policy: Policy) -> Finished:
        failures = self.failures[key] = self.failures.get(key, 0) + 1
        self.errors[key] = error
        if failures > policy.retries:
            self.state[key] = "parked"
            self.parked_at[key] = self._now_ms()
            return Finished("parked", failures)
        if dirty or (died and failures == 1):
            self._append(key)
            return Finished("queued", failures)
        pause = policy.back_off_ms * 2 ** min(failures - 1, 40)
        self._add_after(key, max(1, min(pause, policy.back_off_max_ms)))
        return Finished("delayed", failures)

    def _steady(self, now: int) -> None:
        """If the clock has not gone on as it should since the last call, each lease begins anew, but only once until
        its holder renews it.
        """
        last, self.tick = now if self.tick is None else self.tick, now
        if not last <= now <= last + CLOCK_JUMP_MS:
            for key, lock in self.locks.items():
                anew_at = now + lock.lease_ms
                self.leases[key] = min(self.leases[key], anew_at) if lock.anew else anew_at
                lock.anew = True

    def _seen(self, holder: str, now: int) -> None:
        self.consumers = {each: at for each, at in self.consumers.items() if at > now - SILENT_MS}
        self.consumers[holder] = now

    def _present(self, now: int) -> int:
        return sum(at >= now - CLOCK_JUMP_MS for at in self.consumers.values())

    def _wake(self) -> None:
        self._wakes += 1
        self._changed.notify_all()


def _first(times: dict[str, int], now: int) -> list[str]:
    return sorted((key for key, at in times.items() if at <= now), key=lambda key: (times[key], key))[:200]
