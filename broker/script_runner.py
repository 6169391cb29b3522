"""Runs the scripts of one epoch over one client, and says what an error of Redis means for the caller."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import redis
from redis.exceptions import RedisError

from oarlock.broker import keys, refusals, script_texts
from oarlock.broker.values import DataDamaged, EpochOver


class ScriptRunner:
    """Each call is one script and one round trip, sent once. ``client`` must not retry (``connection.client.connect``).

    No script is ever loaded here: only the bootstrap of an epoch loads them (``broker.epoch``).
    """

    def __init__(self, client: redis.Redis, epoch: int, shard: str, clock: str) -> None:
        self.epoch = epoch
        self.keys = keys.Keys(epoch, shard)
        self._client, self._clock = client, clock
        self._keys = (2, self.keys.epoch, self.keys.base)

    def _run(self, name: str, *args: Any) -> list[Any]:
        try:
            reply: list[Any] = self._client.execute_command(  # type: ignore[no-untyped-call]
                "EVALSHA", script_texts.sha(name, self.epoch, self._clock), *self._keys, *args
            )
        except RedisError as error:
            if refusals.keys_move(error):
                self._end_epoch()
            if refusals.damaged(error):
                raise self._damaged(name, str(error)) from None
            told = refusals.meaning(name, error)
            if told is error:
                raise
            raise told from None
        except BaseException:
            # A signal's exception may come between the command and its answer. The next call would take that answer for
            # its own, and an announcement that was refused must not pass for one that was accepted.
            self._client.connection_pool.disconnect()
            raise
        if reply[0] == b"STALE":
            raise EpochOver(f"{name}: epoch {self.epoch} is over")
        return reply

    def _read(self, name: str, key: str, field: str) -> bytes | None:
        """A field of a hash, without a script."""
        found: bytes | None = self._asked(name, lambda: self._client.hget(key, field))
        return found

    def _read_all(self, name: str, key: str) -> dict[str, str]:
        """A hash, without a script."""
        found: dict[bytes, bytes] = self._asked(name, lambda: self._client.hgetall(key))
        return {field.decode(errors="replace"): value.decode(errors="replace") for field, value in found.items()}

    def _asked(self, name: str, ask: Callable[[], Any]) -> Any:
        try:
            return ask()
        except RedisError as error:
            if refusals.damaged(error):
                raise self._damaged(name, str(error)) from None
            raise refusals.meaning(name, error) from None

    @contextmanager
    def _reading(self, name: str) -> Iterator[None]:
        """An answer that cannot be read shows damaged data. The error does not repeat what was read."""
        try:
            yield
        except (ValueError, TypeError, IndexError) as error:
            raise self._damaged(name, f"it cannot be read ({type(error).__name__})") from None

    def _damaged(self, name: str, why: str) -> DataDamaged:
        """End the epoch for all: somebody else wrote the data that were read here, and a new epoch writes all anew."""
        self._end_epoch()
        return DataDamaged(f"{name}: the data of epoch {self.epoch} are damaged, and it is ended: {why[:300]}")

    def _end_epoch(self) -> None:
        """Keys of ours move, or are damaged, and others may never notice: so the first who does ends the epoch for all.

        A key that cannot be deleted is no longer on this node, or is met by another process that can reach it.
        """
        try:
            with self._client.pipeline() as pipe:
                pipe.watch(self.keys.epoch)  # type: ignore[no-untyped-call]  # the next epoch may begin meanwhile
                if int(pipe.get(self.keys.epoch) or 0) == self.epoch:
                    pipe.multi()
                    pipe.delete(self.keys.epoch)
                    pipe.execute()
        except (RedisError, EpochOver, ValueError):
            self._client.connection_pool.disconnect()
