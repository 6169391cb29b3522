"""Limits how fast one process calls the API: a token bucket like upstream's.

Upstream: client-go/util/flowcontrol/throttle.go; defaults of kube-controller-manager: 20 per second, burst 30.
The tokens of a write are taken *before* the write is announced (`try_take`), so that nothing is announced that may not
be sent now; every other request waits for its token (`take`).
"""

import asyncio
import math
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Protocol

from oarlock.cluster.answer import Answer

QPS_DEFAULT = 20.0
BURST_DEFAULT = 30
PORTION_S, PORTION_MAX = 0.5, 7
"""Who wants many tokens where there are few waits for those of half a second, or for seven, which are three waves of a
slow start: a turn costs as much for one write as for seven. It may be that others take each token as it comes; so who
asks after so long gets what there is.
"""


class Limiter(Protocol):
    """Gives the client the tokens of its requests."""

    def try_take(self, n: int = 1, wanted: int = 1) -> int:
        """Take up to n tokens that are there now, by who soon wants ``wanted``; returns how many were taken (0..n).
        None also where it pays to wait for more of those that are wanted, for as long as ``wait_s`` says.
        """

    def give_back(self, n: int) -> None:
        """Return tokens whose requests were not made."""

    def wait_s(self, n: int = 1) -> float:
        """Seconds until `try_take` gives some to who wants n, if nobody else takes any."""

    async def take(self) -> None:
        """Take one token, waiting for it in order of arrival."""

    async def carry(self, send: Callable[[], Awaitable[Answer]]) -> Answer:
        """Send a request for which there is a token, once it may be under way, and return its answer."""


class TokenBucket:
    """`qps` tokens a second, at most `burst` saved up. Clock in seconds, monotonic; sleep injected. For any thread."""

    def __init__(
        self,
        qps: float = QPS_DEFAULT,
        burst: int = BURST_DEFAULT,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        if qps <= 0 or burst < 1:
            raise ValueError(f"qps must be above 0 and burst at least 1: {qps}, {burst}")
        self._qps, self._burst = qps, burst
        self._clock, self._sleep = clock, sleep
        self._tokens = float(burst)  # below 0 while callers of take() wait for tokens promised to them
        self._seen_s = clock()
        self._short = (math.inf, 0)
        """Since when there have been too few for a portion, and the largest that was asked for."""
        self._lock = threading.RLock()

    def try_take(self, n: int = 1, wanted: int = 1) -> int:
        with self._lock:
            self._refill()
            there = int(self._tokens + 1e-9)  # sums of fractions fall a hair short of the whole token
            since_s, most = self._short
            portion, since_s = self._portion(max(n, wanted)), min(since_s, self._seen_s)
            if there < portion and self._seen_s < since_s + PORTION_S:
                self._short = since_s, max(most, portion)
                return 0
            taken = max(0, min(n, there))
            if taken and portion >= most:
                self._short = math.inf, 0
            self._tokens -= taken
            return taken

    def give_back(self, n: int) -> None:
        with self._lock:
            self._tokens = min(self._tokens + n, float(self._burst))

    def wait_s(self, n: int = 1) -> float:
        with self._lock:
            self._refill()
            return max(0.0, (self._portion(n) - self._tokens) / self._qps)

    async def take(self) -> None:
        with self._lock:
            wait_s = self.wait_s(1)
            self._tokens -= 1
        if wait_s <= 0:
            return
        try:
            await self._sleep(wait_s)
        except BaseException:
            self.give_back(1)  # cancelled while waiting: the token promised to us serves the next caller
            raise

    async def carry(self, send: Callable[[], Awaitable[Answer]]) -> Answer:
        return await send()

    def _portion(self, n: int) -> int:
        """Of n tokens, how many at once where they are scarce."""
        return max(1, min(n, self._burst, PORTION_MAX, int(self._qps * PORTION_S)))

    def _refill(self) -> None:
        now_s = self._clock()
        earned = (now_s - self._seen_s) * self._qps
        self._seen_s = now_s
        if earned > 0:
            self._tokens = min(self._tokens + earned, float(self._burst))


class Unlimited:
    """No limit: for the server of the sandbox, which nobody else uses."""

    def try_take(self, n: int = 1, wanted: int = 1) -> int:
        return n

    def give_back(self, n: int) -> None:
        return None

    def wait_s(self, n: int = 1) -> float:
        return 0.0

    async def take(self) -> None:
        return None

    async def carry(self, send: Callable[[], Awaitable[Answer]]) -> Answer:
        return await send()


def limiter(qps: float | None = QPS_DEFAULT, burst: int = BURST_DEFAULT) -> Limiter:
    """A bucket, or no limit at all when qps is None."""
    return Unlimited() if qps is None else TokenBucket(qps, burst)
