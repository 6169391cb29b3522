"""What a fleet that runs dry keeps of each owner: the course of its comparison with upstream, and the differences.

The courses are bytes that only ``workers.turn.shadow`` reads. No script touches them: a key is in one worker's hands
while its course is read and written, and a course that is lost begins anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import redis

from oarlock.broker.keys import Keys
from oarlock.broker.values.errors import BrokerFull

DIFFERENCES_MAX = 10_000
COUNT_DIGITS = 18


class Difference(NamedTuple):
    """``text``: for people, hostile as everything that names objects of the cluster."""

    at_ms: int
    queue: str
    key: str
    reason: str
    text: str


class Kept(NamedTuple):
    """What a batch of turns leaves. ``courses``: by key; None: the owner has gone. ``windows``: how many closed, by
    verdict.
    """

    courses: Mapping[str, bytes | None]
    windows: Mapping[str, int]
    differences: Sequence[Difference]


Asked = Callable[[str, Callable[[], Any]], Any]
"""Asks Redis, and raises what its error means; of damaged data, after it has ended their epoch."""


class ShadowStore:
    """Of one epoch. A worker's raises what the broker raises; what is for people raises RedisError, too."""

    def __init__(self, client: redis.Redis, keys: Keys, asked: Asked = lambda name, ask: ask()) -> None:
        self._client, self._keys, self._asked = client, keys, asked

    def courses(self, queue: str, key_names: Sequence[str]) -> list[bytes | None]:
        """In order; None where nothing is known of the owner."""
        return list(self._asked("courses", lambda: self._client.hmget(self._keys.shadow(queue), list(key_names))))

    def keep(self, queue: str, kept: Kept) -> bool:
        """In one call. False: Redis has no memory left, and nothing is kept."""
        with self._client.pipeline(transaction=False) as pipe:
            gone = [key for key, course in kept.courses.items() if course is None]
            courses: Any = {key: course for key, course in kept.courses.items() if course is not None}
            if gone:
                pipe.hdel(self._keys.shadow(queue), *gone)
            if courses:
                pipe.hset(self._keys.shadow(queue), mapping=courses)
            for verdict, count in kept.windows.items():
                pipe.hincrby(self._keys.of("shadow_windows"), f"{queue} {verdict}", count)
            for each in kept.differences:
                fields: Any = {"queue": each.queue, "key": each.key, "reason": each.reason, "text": each.text}
                pipe.xadd(
                    self._keys.of("shadow_differences"),
                    {"at_ms": each.at_ms, **fields},
                    maxlen=DIFFERENCES_MAX,
                    approximate=True,
                )
            try:
                self._asked("keep courses", pipe.execute)
            except BrokerFull:
                return False
        return True

    # -- for people

    def all_courses(self, queue: str) -> Iterator[tuple[str, bytes]]:
        """Every owner of a queue, in no order."""
        for key, course in self._client.hscan_iter(self._keys.shadow(queue), count=200):
            yield key.decode(errors="replace"), course

    def windows(self) -> dict[tuple[str, str], int]:
        """(queue, verdict) -> how many windows have closed so."""
        found: Any = self._client.hgetall(self._keys.of("shadow_windows"))
        texts = {name.decode(errors="replace").partition(" ")[::2]: _count(count) for name, count in found.items()}
        return {(queue, verdict): count for (queue, verdict), count in texts.items()}

    def differences(self, newest: int = DIFFERENCES_MAX) -> list[Difference]:
        """The newest first."""
        found: Any = self._client.xrevrange(self._keys.of("shadow_differences"), count=newest)
        return [_difference(fields) for _, fields in found]


def _difference(fields: Mapping[bytes, bytes]) -> Difference:
    text = {name.decode(errors="replace"): value.decode(errors="replace") for name, value in fields.items()}
    words = [text.get(name, "") for name in ("queue", "key", "reason", "text")]
    return Difference(_count(fields.get(b"at_ms", b"")), *words)


def _count(text: bytes) -> int:
    """0 for what none of ours has written."""
    return int(text) if text.isdigit() and len(text) <= COUNT_DIGITS else 0
