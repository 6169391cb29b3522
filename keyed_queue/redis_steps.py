"""The steps on Redis: each is one script and one round trip, sent once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import redis
from redis.exceptions import NoScriptError, RedisError

from oarlock.broker.steps import refusals
from oarlock.broker.steps.script_texts import REDIS_TIME
from oarlock.broker.values.errors import BrokerFull, BrokerUnreachable, EpochOver
from oarlock.queue import keys, script_texts
from oarlock.queue.values import (
    Claim,
    Empty,
    Finished,
    KeyFacts,
    NotAQueue,
    Parked,
    Policy,
    QueueFull,
    QueueUnreachable,
    Stats,
    Verdict,
    kept_error,
)


class RedisSteps:
    """The queue ``name``. ``client`` must not retry (``broker.connection.client``)."""

    def __init__(self, client: redis.Redis, name: str, clock: str = REDIS_TIME) -> None:
        self.name = name
        self._client, self._base, self._clock = client, keys.base(name), clock

    def add(self, keys: Iterable[tuple[str, str]], delay_ms: int = 0) -> int:
        """Add (key, group) pairs, now or after a delay. Returns how many entered a stream. May be repeated."""
        return int(self._run("add", delay_ms, *(word for pair in keys for word in pair))[1])

    def claim(self, holder: str, lease_ms: int, policy: Policy, keys_max: int = 1) -> list[Claim] | Empty:
        """Take up to ``keys_max`` keys. Without an answer keys may have been taken: their leases end by themselves."""
        reply = self._run("claim", holder, lease_ms, keys_max, *policy)
        with self._reading("claim"):
            if reply[0] == b"EMPTY":
                return Empty(None if reply[1] < 0 else int(reply[1]))
            return [Claim(key.decode(), int(token), failures, waited) for key, token, failures, waited in reply[1:]]

    def finish(
        self, claim: Claim, verdict: Verdict, policy: Policy, *, again_ms: int | None = None, error: str = ""
    ) -> Finished | None:
        """End a run. None: the lock is no longer ours, and nothing was done. Of a long ``error`` the end is kept."""
        delay = "" if again_ms is None else again_ms
        reply = self._run("finish", claim.key, claim.token, verdict.value, delay, *policy, kept_error(error))
        return None if reply[0] == b"LOST" else Finished(reply[1].decode(), int(reply[2]))

    def renew(self, holder: str, lease_ms: int, claims: Sequence[Claim]) -> list[int]:
        """Begin these leases anew. Returns the tokens of those that are no longer ours."""
        pairs = (word for claim in claims for word in (claim.key, claim.token))
        return [int(token) for token in self._run("renew", holder, lease_ms, *pairs)[1:]]

    def requeue(self, keys: Sequence[str]) -> tuple[int, int]:
        """Let parked keys run again; add any other. Returns how many were parked, and how many entered a stream."""
        _, parked, added = self._run("requeue", *keys)
        return int(parked), int(added)

    def look(self, key: str) -> KeyFacts:
        """All that is known of a key."""
        reply = self._run("look", key)
        with self._reading("look"):
            state, group, lock = (each.decode() for each in reply[1:4])
            lease, due, parked, failures = (int(each) for each in reply[4:8])
            lock_words = dict(word.split("=", 1) for word in lock.split())
            return KeyFacts(
                key,
                state or "idle",
                group,
                int(lock_words["token"]) if lock else None,
                lock_words["holder"] if lock else None,
                _time(int(reply[12])),
                _time(lease),
                _time(due),
                _time(parked),
                failures,
                reply[8].decode(errors="replace"),
                *(int(each) for each in reply[9:12]),
            )

    def stats(self) -> Stats:
        """How many keys are in which state."""
        queued, running, delayed, parked, failing, groups, consumers, oldest = map(int, self._run("stats")[1:])
        return Stats(queued, running, delayed, parked, failing, groups, consumers, _time(oldest))

    def parked(self, keys_max: int) -> list[Parked]:
        """The keys that failed too often, the longest parked first."""
        reply = self._run("parked", keys_max)
        with self._reading("parked"):
            return [
                Parked(key.decode(), int(since), int(failures), error.decode(errors="replace"))
                for key, since, failures, error in reply[1:]
            ]

    def wait(self, timeout_s: float) -> bool:
        """Block until a key may be there, or the time is over; for an idle consumer. At least 10 ms."""
        try:
            return self._client.blpop([f"{self._base}wake"], max(timeout_s, 0.01)) is not None
        except RedisError as error:
            if str(error).startswith("UNBLOCKED"):  # the list was unlinked while we slept
                return False
            raise self._told("wait", error) from None

    def _run(self, name: str, *args: Any) -> list[Any]:
        command = (1, self._base, *args)
        try:
            try:
                reply: list[Any] = self._client.execute_command(  # type: ignore[no-untyped-call]
                    "EVALSHA", script_texts.sha(name, self._clock), *command
                )
            except NoScriptError:  # Redis was restarted or is another one; what it does not know, it has not run
                reply = self._client.execute_command(  # type: ignore[no-untyped-call]
                    "EVAL", script_texts.text(name, self._clock), *command
                )
        except RedisError as error:
            raise self._told(name, error) from None
        except BaseException:
            # A signal's exception may come between the command and its answer. The next call must not take that answer
            # for its own.
            self._client.connection_pool.disconnect()
            raise
        return reply

    def _told(self, name: str, error: RedisError) -> Exception:
        """The error that our callers know. One that is nobody's is given back as it is."""
        if refusals.damaged(error):
            return NotAQueue(f"queue {self.name!r}, {name}: the keys {self._base}* were changed by hand: {error}")
        told = refusals.meaning(name, error)
        if isinstance(told, BrokerFull):
            return QueueFull(f"queue {self.name!r}, {told}")
        if isinstance(told, BrokerUnreachable | EpochOver):
            return QueueUnreachable(f"queue {self.name!r}, {told}")
        return told

    @contextmanager
    def _reading(self, name: str) -> Iterator[None]:
        try:
            yield
        except (ValueError, TypeError, KeyError, IndexError) as error:
            why = f"the keys {self._base}* were changed by hand ({type(error).__name__})"
            raise NotAQueue(f"queue {self.name!r}, {name}: {why}") from None


def _time(ms: int) -> int | None:
    return None if ms < 0 else ms
