"""A look into Redis, to choose whom to hit: which workers hold locks, and which writes they have announced."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Collection
from typing import NamedTuple, cast

import redis
from redis.exceptions import RedisError

from oarlock.broker import keys
from oarlock.broker.connection.client import connect
from oarlock.chaos.judge.evidence.sightings import NODE_QUEUE, QUEUE_OF_KIND

QUEUES = (*QUEUE_OF_KIND.values(), NODE_QUEUE)
_HOLDER = re.compile(rb"holder=(\S+)")


class Lock(NamedTuple):
    """A lock as it stands: whose, and how many writes of its key are announced and unanswered."""

    task: str
    holder: str
    pending: int


class RedisView:
    """``url`` gives the admin's URL."""

    def __init__(self, url: Callable[[], str], chance: random.Random) -> None:
        self._url, self._chance = url, chance
        self._client: redis.Redis | None = None

    def busy(self, among: Collection[str]) -> str | None:
        """Choose a worker with announced, unanswered writes; the more it has, the likelier. None: nobody has any."""
        writes: Counter[str] = Counter()
        for lock in self.locks():
            writes[lock.holder] += lock.pending
        found = {holder: count for holder, count in writes.items() if holder in among and count}
        if not found:
            return None
        (holder,) = self._chance.choices(list(found), [min(count, 20) for count in found.values()])
        return holder

    def locks(self) -> list[Lock]:
        """All locks that are held now; none where Redis does not answer."""
        try:
            return self._locks()
        except (RedisError, OSError):
            self.close()
            return []

    def at_work(self) -> bool:
        """Whether any key is queued, locked, or about to be queued; so too where Redis does not answer."""
        try:
            client, number = self._epoch()
            of_epoch = keys.Keys(number)
            with client.pipeline(transaction=False) as pipe:
                pipe.llen(of_epoch.of("republish"))
                for queue in QUEUES:
                    pipe.hlen(of_epoch.locks(queue))
                    pipe.xlen(of_epoch.stream(queue))
                    pipe.zcard(of_epoch.backlog(queue))
                return any(pipe.execute())
        except (RedisError, OSError):
            self.close()
            return True

    def queued(self) -> int:
        """How many keys are queued; 0 where Redis does not answer."""
        try:
            client, number = self._epoch()
            of_epoch = keys.Keys(number)
            with client.pipeline(transaction=False) as pipe:
                for queue in QUEUES:
                    pipe.xlen(of_epoch.stream(queue))
                    pipe.zcard(of_epoch.backlog(queue))
                return sum(pipe.execute())
        except (RedisError, OSError):
            self.close()
            return 0

    def phase(self) -> str:
        """OPEN or DRAIN; "" where there is no epoch or no answer."""
        try:
            client, number = self._epoch()
            phase = client.get(keys.Keys(number).of("phase")) if number else None
        except (RedisError, OSError):
            self.close()
            return ""
        return phase.decode() if isinstance(phase, bytes) else ""

    def flushall(self) -> bool:
        """Empty the server. False where it did not answer."""
        try:
            self._epoch()[0].flushall()
        except (RedisError, OSError):
            self.close()
            return False
        return True

    def say(self, word: str) -> None:
        """Make a command that MONITOR shows. Raises RedisError."""
        self._epoch()[0].echo(word)

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    def _epoch(self) -> tuple[redis.Redis, int]:
        if self._client is None:
            self._client = connect(self._url(), timeout_s=1.0)
        return self._client, int(self._client.get(keys.epoch()) or 0)

    def _locks(self) -> list[Lock]:
        client, number = self._epoch()
        of_epoch, found = keys.Keys(number), []
        for queue in QUEUES:
            locks = cast(dict[bytes, bytes], client.hgetall(of_epoch.locks(queue)))
            if not locks:
                continue
            with client.pipeline(transaction=False) as pipe:
                for key in locks:
                    pipe.hvals(of_epoch.expect(queue, key.decode()))
                records = pipe.execute()
            for (key, text), values in zip(locks.items(), records, strict=True):
                holder = _HOLDER.search(text)
                if holder is not None:
                    pending = sum(value.startswith(b"pending ") for value in values)
                    found.append(Lock(f"{queue}:{key.decode()}", holder[1].decode(), pending))
        return found
