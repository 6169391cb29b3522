"""A worker's part of the API budget, by lanes: what its supervisor was lent becomes tokens here.

A worker asks nobody for a token. The rates come through shared memory, about twice a second, and count until the lease
of the shares ends. From then on only a tenth of the last rates counts, so a fleet that has lost Redis stays far below
its budget.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from oarlock.workers.counters.layout import LaneCells
from oarlock.workers.counters.table import Row

BURST_S = 1.0
"""Tokens of so long are saved up."""
LAPSED = 0.1
"""What counts of a share whose lease has ended."""
FIRST = 0.01
"""What counts of the whole budget before the first share has come."""
LOOK_S = 1.0
"""Shares change more often, so no wait is longer."""
AHEAD_S = 3.0
"""Writes are announced that have tokens in so long: well within the lease in which they may be sent."""
PROMISE_MS = 6_000
"""A promise that was not kept in so long is forgotten, whatever became of its turn."""
PATIENT_MS = 1_500
"""A lane that had to wait in so long is one of whose want the supervisor knows."""
_MILLI = 1_000


class _Bucket:
    """Tokens that were earned and not used."""

    __slots__ = ("seen_ms", "tokens")

    def __init__(self, now_ms: int) -> None:
        self.tokens, self.seen_ms = 0.0, now_ms

    def earn(self, rate: float, now_ms: int) -> None:
        earned = rate * max(0, now_ms - self.seen_ms) / 1_000
        most = max(1.0, rate * BURST_S) if rate > 0 else 0.0
        self.tokens, self.seen_ms = min(self.tokens + earned, most), now_ms


class Buckets:
    """Of one process; for any thread. ``most``: the fleet's rate at most. ``now_ms``: CLOCK_BOOTTIME."""

    def __init__(self, row: Row, most: int, lease_ms: int, now_ms: Callable[[], int]) -> None:
        self._lease_ms = lease_ms
        self.cells, self.ints, self._most, self.now_ms = row.layout.budget, row.ints, most, now_ms
        begun_ms = now_ms()
        self._of = {lane: _Bucket(begun_ms) for lane in self.cells.lanes}
        self._spare = _Bucket(begun_ms)
        self._promises: dict[str, deque[tuple[int, int]]] = {lane: deque() for lane in self.cells.lanes}
        """Until when, and how many writes that have yet to take their tokens."""
        self._hungry: dict[str, tuple[int, int]] = dict.fromkeys(self.cells.lanes, (0, -PATIENT_MS))
        """Since when a lane has had to wait, again and again, and when it did last."""
        self._lock = threading.RLock()
        self.ints[self.cells.told_until_ms] = 0  # what the last worker in this position had been told
        for cells in self.cells.lanes.values():
            self.ints[cells.waiting] = 0

    def take(self, lane: str, n: int) -> int:
        """Take up to n tokens that are there now; returns how many. Those of the lane go first."""
        with self._lock:
            now_ms, own, spare = self.now_ms(), self._of[lane], self._spare
            share, left_over = self._rates(self.cells.lanes[lane], now_ms)
            own.earn(share, now_ms)
            spare.earn(left_over, now_ms)
            if self.wait_ms(now_ms):
                return 0
            taken = max(0, min(n, int(own.tokens + spare.tokens + 1e-9)))
            of_spare = max(0.0, taken - own.tokens)
            own.tokens -= taken - of_spare
            spare.tokens -= of_spare
            self.ints[self.cells.lanes[lane].taken] += taken
            return taken

    def give_back(self, lane: str, n: int) -> None:
        """Tokens whose requests were not made."""
        with self._lock:
            self._of[lane].tokens += n
            self.ints[self.cells.lanes[lane].taken] -= n

    def waits(self, lane: str, change: int) -> None:
        """So many more tokens are waited for now; or, below 0, so many fewer."""
        with self._lock:
            cells = self.cells.lanes[lane]
            self.ints[cells.waiting] += change
            self.ints[cells.waited] += max(0, change)
            now_ms, (since_ms, last_ms) = self.now_ms(), self._hungry[lane]
            self._hungry[lane] = since_ms if now_ms - last_ms < PATIENT_MS else now_ms, now_ms

    def promise(self, lane: str, wanted: int) -> int:
        """Promise tokens to writes that are to be announced now: as many as there will be soon. Returns how many."""
        with self._lock:
            now_ms, promises = self.now_ms(), self._promises[lane]
            while promises and promises[0][0] <= now_ms:
                promises.popleft()
            if self.wait_ms(now_ms):
                return 0
            soon = sum(self._rates(self.cells.lanes[lane], now_ms)) * AHEAD_S - sum(n for _, n in promises)
            promised = max(0, min(wanted, int(soon) if promises else max(1, int(soon))))
            if promised:
                promises.append((now_ms + PROMISE_MS, promised))
            return promised

    def redeem(self, lane: str, n: int) -> None:
        """Promised tokens were taken, or will not be."""
        with self._lock:
            promises = self._promises[lane]
            while n > 0 and promises:
                until_ms, first = promises.popleft()
                if first > n:
                    promises.appendleft((until_ms, first - n))
                n -= first

    def is_known(self, lane: str) -> bool:
        """Whether the shares are those of a lane that waits: its supervisor has asked since it began to wait."""
        with self._lock:
            asked_ms, (since_ms, last_ms) = self.ints[self.cells.until_ms] - self._lease_ms, self._hungry[lane]
            return self.now_ms() - last_ms < PATIENT_MS and asked_ms > since_ms

    def told_to_wait(self, wait_s: float) -> None:
        """A 429: nobody sends for so long. The supervisor tells the rest of the fleet."""
        with self._lock:
            until_ms = self.now_ms() + round(wait_s * 1_000)
            self.ints[self.cells.refused] += 1
            self.ints[self.cells.told_until_ms] = max(self.ints[self.cells.told_until_ms], until_ms)

    def wait_ms(self, now_ms: int) -> int:
        """For how long the server asked for no request."""
        return max(0, max(self.ints[self.cells.told_until_ms], self.ints[self.cells.wait_until_ms]) - now_ms)

    def wait_s(self, lane: str, n: int) -> float:
        """Seconds until n tokens may be there, at most LOOK_S."""
        with self._lock:
            now_ms = self.now_ms()
            rate = sum(self._rates(self.cells.lanes[lane], now_ms))
            missing = n - self._of[lane].tokens - self._spare.tokens
            earning_s = max(0.0, missing) / rate if rate > 0 else LOOK_S
            return min(LOOK_S, max(earning_s, self.wait_ms(now_ms) / 1_000))

    def _rates(self, lane: LaneCells, now_ms: int) -> tuple[float, float]:
        """Tokens a second of the lane, and of what any lane may use."""
        until_ms = self.ints[self.cells.until_ms]
        if not until_ms:
            return 0.0, FIRST * self._most / _MILLI
        counts = 1.0 if now_ms < until_ms else LAPSED
        return counts * self.ints[lane.rate] / _MILLI, counts * self.ints[self.cells.spare] / _MILLI
