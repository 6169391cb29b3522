"""Runs the scripts of one epoch over one client, and says what an error of Redis means for the caller."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import redis
from redis.exceptions import RedisError

from oarlock.broker import keys
from oarlock.broker.connection.client import in_one_go, send
from oarlock.broker.steps import refusals, script_texts
from oarlock.broker.values.errors import DataDamaged, EpochOver

Call = tuple[str, Sequence[Any]]
"""A script and its arguments."""


class ScriptRunner:
    """Each script is sent once. ``client`` must not retry (``connection.client.connect``).

    No script is ever loaded here: only the bootstrap of an epoch loads them (``broker.epoch``).
    """

    def __init__(self, client: redis.Redis, epoch: int, shard: str, clock: str) -> None:
        self.epoch = epoch
        self.keys = keys.Keys(epoch, shard)
        self._client, self._clock = client, clock
        self._keys = (2, self.keys.epoch, self.keys.base)

    def _run(self, name: str, *args: Any) -> list[Any]:
        command = self._command(name, args)
        return self._answer(
            name,
            self._sent(name, lambda: self._client.execute_command(*command)),  # type: ignore[no-untyped-call]
        )

    def _run_both(self, first: Call, second: Call) -> tuple[list[Any], Callable[[], list[Any]]]:
        """Two scripts in one round trip. The second runs whatever the first answers. Returns the answer of the first,
        and what gives the answer of the second. Either raises as ``_run`` does.
        """
        commands = [self._command(*first), self._command(*second)]
        answer, later = self._sent(first[0], lambda: in_one_go(self._client, commands))
        return self._answer(first[0], answer), lambda: self._answer(second[0], later)

    def _send(self, calls: Sequence[Call]) -> Callable[[], list[list[Any]]]:
        """Scripts that are sent together, and what waits for their answers: it raises as ``_run`` does, and has to be
        called once.
        """
        name = calls[0][0]
        later = self._sent(name, lambda: send(self._client, [self._command(*each) for each in calls]))
        return lambda: [self._answer(name, each) for each in self._sent(name, later)]

    def _command(self, name: str, args: Sequence[Any]) -> tuple[Any, ...]:
        return ("EVALSHA", script_texts.sha(name, self.epoch, self._clock), *self._keys, *args)

    def _sent(self, name: str, send: Callable[[], Any]) -> Any:
        try:
            return send()
        except RedisError as error:
            raise self._meaning(name, error) from None
        except BaseException:
            # A signal's exception may come between the command and its answer. The next call would take that answer for
            # its own, and an announcement that was refused must not pass for one that was accepted.
            self._client.connection_pool.disconnect()
            raise

    def _answer(self, name: str, answer: Any) -> list[Any]:
        if isinstance(answer, RedisError):
            raise self._meaning(name, answer) from None
        reply: list[Any] = answer
        if reply[0] == b"STALE":
            raise EpochOver(f"{name}: epoch {self.epoch} is over")
        return reply

    def _meaning(self, name: str, error: RedisError) -> Exception:
        if refusals.keys_move(error):
            self._end_epoch()
        if refusals.damaged(error):
            return self._damaged(name, str(error))
        return refusals.meaning(name, error)

    def _read(self, name: str, key: str, field: str) -> bytes | None:
        """A field of a hash, without a script."""
        found: bytes | None = self._asked(name, lambda: self._client.hget(key, field))
        return found

    def _read_all(self, name: str, key: str, *more: str) -> tuple[dict[str, str], list[str]]:
        """A hash and some strings, "" for each that is absent, without a script."""
        flat, *texts = self._ask_all(name, [("HGETALL", key), *[("GET", each) for each in more]])
        words = [word.decode(errors="replace") for word in flat]
        return dict(zip(words[::2], words[1::2], strict=True)), [
            (text or b"").decode(errors="replace") for text in texts
        ]

    def _ask_all(self, name: str, commands: Sequence[tuple[Any, ...]]) -> list[Any]:
        """The answers to commands that are sent together, without a script. They are of this epoch: whether it is over
        is asked last.
        """
        asked = [*commands, ("GET", self.keys.epoch)]
        answers: list[Any] = self._sent(name, lambda: in_one_go(self._client, asked))
        for answer in answers:
            if isinstance(answer, RedisError):
                raise self._meaning(name, answer)
        if answers.pop() != str(self.epoch).encode():
            raise EpochOver(f"{name}: epoch {self.epoch} is over")
        return answers

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
