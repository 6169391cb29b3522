"""Answers are taken in by handfuls while many are awaited.

A server that has many requests to answer sends each answer by itself, and to wake up for it costs a process more than
to read it. The next request goes out with the next handful, so the server, too, is woken for several at once.
"""

import asyncio
import time
from collections.abc import Callable

MANY = 32  # requests under way
# Of the time that an answer took. An answer waits for half a rest on average, so the rate falls by 1/32 at most.
PART = 16
LEAST_S, MOST_S = 0.001, 0.008
# Of the loop, from an answer until the request that takes its place has left, if nothing holds that back.
ROUNDS = 3


class Breath:
    """Lets the thread of an event loop rest after answers, between two looks at its sockets. ``rest`` blocks it for so
    many seconds.
    """

    def __init__(self, rest: Callable[[float], None] = time.sleep) -> None:
        self._rest, self._due = rest, False

    def answered(self, under_way: Callable[[], int], took_s: float, loop: asyncio.AbstractEventLoop) -> None:
        """An answer has come, so long after it was asked for. ``under_way``: how many requests are, at any time."""
        rest_s = min(MOST_S, took_s / PART)
        if rest_s >= LEAST_S and not self._due and under_way() >= MANY:
            self._due = True
            self._after(ROUNDS, rest_s, under_way, loop)

    def _after(self, rounds: int, rest_s: float, under_way: Callable[[], int], loop: asyncio.AbstractEventLoop) -> None:
        if rounds:
            loop.call_soon(self._after, rounds - 1, rest_s, under_way, loop)
            return
        self._due = False
        if under_way() >= MANY:  # else these were the last, and the next requests wait for the thread
            self._rest(rest_s)
