"""The queue as its users see it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Unpack

import redis

from oarlock.broker.connection.client import BadRedisUrl, TlsFiles, connect, connect_like
from oarlock.queue import keys as key_names
from oarlock.queue.explain import explain
from oarlock.queue.memory_steps import MemorySteps
from oarlock.queue.redis_steps import RedisSteps
from oarlock.queue.steps import Steps
from oarlock.queue.values import KeyFacts, Parked, Stats
from oarlock.queue.worker import Function, GivenOptions, Options, Worker

if TYPE_CHECKING:
    from rq import Queue as RqQueue

MEMORY = "memory://"
KEY_BYTES_MAX = 1_024


class KeyedQueue:
    """Keys that need a look. A key is in work at most once at a time; added meanwhile, it runs once more afterwards.

    ``connection``: a URL (``broker.connection.redis_url`` says which), a ``redis.Redis`` whose server and login are
    used, or "memory://" for tests within one process. Nothing is sent before the first call. ``group``: what separates
    a key's group from the rest ("/": ``eu/17`` is in group ``eu``), or a function of the key; groups take turns.
    Raises ValueError for a name that cannot be used and BadRedisUrl for such a connection.
    """

    def __init__(
        self,
        name: str,
        connection: str | redis.Redis,
        *,
        group: str | Callable[[str], str] = "/",
        tls: TlsFiles | None = None,
    ) -> None:
        if not key_names.NAME.fullmatch(name):
            raise ValueError(f"queue {name!r}: a name has letters, digits, '_', '.' and '-', at most 100")
        self.name = name
        self._group = group
        self._worker: Worker | None = None
        if connection == MEMORY:
            self.steps: Steps = MemorySteps(name)
        elif isinstance(connection, str):
            self.steps = RedisSteps(connect(connection, shard=name, tls=tls or TlsFiles()), name)
        elif isinstance(connection, redis.Redis):
            self.steps = RedisSteps(connect_like(connection), name)
        else:
            raise BadRedisUrl(f"queue {name!r} on a {type(connection).__name__}: give a URL or a redis.Redis")

    # -- producers -----------------------------------------------------------------------------------------------

    def add(self, *keys: str) -> int:
        """These keys need a look. Returns how many were idle and are queued now. May be repeated at any time.

        Raises ValueError for a key that cannot be used, QueueUnreachable, QueueFull.
        """
        return self.add_all(keys)

    def add_all(self, keys: Iterable[str]) -> int:
        """As ``add``, for many keys: 500 a call of Redis."""
        if isinstance(keys, str):
            raise ValueError(f"add_all({keys!r:.120}): give a list of keys; add() takes a single one")
        pairs = [self._pair(key) for key in keys]
        return sum(self.steps.add(pairs[at : at + 500]) for at in range(0, len(pairs), 500))

    def add_after(self, key: str, seconds: float) -> None:
        """This key needs a look after a while; the earlier of two times wins."""
        if not -1e9 < seconds < 1e9:
            raise ValueError(f"add_after({key!r}, {seconds!r}): give seconds")
        self.steps.add([self._pair(key)], int(seconds * 1000))

    # -- consumers -----------------------------------------------------------------------------------------------

    def worker(self, **options: Unpack[GivenOptions]) -> Callable[[Function], Worker]:
        """Decorate the function that runs for each key. ``worker.Options`` says what may be given. Raises ValueError
        for a second function: nothing would say which of the two a key is for. One of the same name is taken anew.
        """
        chosen = Options(**options)

        def make(function: Function) -> Worker:
            known, named = self._worker and _called(self._worker.function), _called(function)
            if known not in (None, named):
                raise ValueError(
                    f"queue {self.name!r} has the function {known} already: give {named} a queue of its own"
                )
            self._worker = Worker(self, function, chosen)
            return self._worker

        return make

    def run(
        self,
        function: Function | Worker | None = None,
        *,
        burst: bool = False,
        for_s: float | None = None,
        **options: Unpack[GivenOptions],
    ) -> int:
        """Make this process a consumer of the decorated function, or of the one given; options given here win. It
        returns as ``Worker.run`` does.
        """
        known = self._decorated() if function is None else function
        if isinstance(known, Worker):
            worker = Worker(self, known.function, replace(known.options, **options))
        else:
            worker = Worker(self, known, Options(**options))
        return worker.run(burst=burst, for_s=for_s)

    def enqueue_workers(self, rq_queue: RqQueue, workers: int, *, for_s: float = 60.0) -> int:
        """Have ``workers`` RQ workers of ``rq_queue`` run the decorated function: each by an RQ job that consumes for
        ``for_s`` seconds and is then enqueued again, behind the other jobs. Returns how many jobs were missing and are
        enqueued now, so it may be called at any time. Raises ValueError for a function that RQ cannot import.
        """
        from oarlock.queue import rq_jobs  # noqa: PLC0415  # a process that has no RQ worker needs no RQ

        return rq_jobs.enqueue(self._decorated(), rq_queue, workers, for_s)

    # -- people --------------------------------------------------------------------------------------------------

    def stats(self) -> Stats:
        """How many keys are in which state."""
        return self.steps.stats()

    def look(self, key: str) -> KeyFacts:
        """All that is known of a key."""
        return self.steps.look(key)

    def explain(self, key: str) -> list[str]:
        """The same in sentences: why does nothing happen to this key?"""
        return explain(self.name, self.look(key))

    def parked(self, keys_max: int = 1_000) -> list[Parked]:
        """The keys that failed too often, the longest parked first."""
        return self.steps.parked(keys_max)

    def requeue(self, *keys: str) -> int:
        """Let parked keys run again, now. Returns how many of these were parked; the others are just added."""
        self.add_all(keys)  # a key that is not parked needs its group
        return self.steps.requeue(keys)[0]

    def _pair(self, key: str) -> tuple[str, str]:
        """The key and its group, checked."""
        if not isinstance(key, str) or not key or not key.isprintable() or len(key.encode()) > KEY_BYTES_MAX:
            raise ValueError(f"key {key!r:.120}: give printable text of 1 to {KEY_BYTES_MAX} bytes")
        if isinstance(self._group, str):
            head, separator, _ = key.partition(self._group) if self._group else ("", "", "")
            return key, head if separator else ""
        group = self._group(key)
        if not isinstance(group, str) or len(group.encode()) > KEY_BYTES_MAX:
            raise ValueError(f"group {group!r:.120} of {key!r:.120}: give text of at most {KEY_BYTES_MAX} bytes")
        return key, group

    def _decorated(self) -> Worker:
        if self._worker is None:
            raise ValueError(f"queue {self.name!r} has no function yet: decorate one with @queue.worker()")
        return self._worker


def _called(function: Function) -> str:
    return str(getattr(function, "__qualname__", type(function).__qualname__))
