"""Connections that find their server, prove that it is the right one, and leave it when it turns out not to be."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from redis.connection import AbstractConnection, SSLConnection, UnixDomainSocketConnection
from redis.exceptions import AskError, MasterDownError, ReadOnlyError, RedisError, TryAgainError
from redis.exceptions import ConnectionError as RedisConnectionError

from oarlock.broker.connection import server_facts
from oarlock.broker.connection.finders import Finder
from oarlock.broker.connection.named import Named
from oarlock.broker.connection.run_guard import RunGuard
from oarlock.broker.values.errors import EpochOver

WRONG_SERVER = (AskError, TryAgainError, ReadOnlyError, MasterDownError)
"""MOVED is an ASK to redis-py. A server that answers so is no longer the master of our keys, or soon will not be."""


class _Honest:
    """After an answer that says "not here" the next command goes over a new connection."""

    def read_response(self, *args: Any, **options: Any) -> Any:
        try:
            return super().read_response(*args, **options)  # type: ignore[misc]
        except WRONG_SERVER:
            self.mark_for_reconnect()  # type: ignore[attr-defined]
            self._misled()
            raise

    def _misled(self) -> None:
        """No finder led here, so there is none to tell."""


class Found(_Honest):
    """``finder`` says where to connect, each time."""

    def __init__(self, *args: Any, finder: Finder, **options: Any) -> None:
        super().__init__(*args, **options)
        self._finder = finder
        self._ask_at_s = 0.0

    def connect(self) -> None:
        """Called for an open connection too: is its server still the right one?"""
        if self.is_connected and self._displaced():  # type: ignore[attr-defined]
            self.disconnect()  # type: ignore[attr-defined]
        super().connect()  # type: ignore[misc]

    def _connect(self) -> Any:
        self._ask_at_s = time.monotonic() + self._finder.asked_every_s
        self.host, self.port = self._finder.find()
        try:
            return super()._connect()  # type: ignore[misc]
        except (OSError, RedisError):
            self._finder.known.silent_until_s = 0.0  # it is time to ask again
            raise

    def _displaced(self) -> bool:
        every_s, now_s = self._finder.asked_every_s, time.monotonic()
        if not every_s or now_s < self._ask_at_s or now_s < self._finder.known.silent_until_s:
            return False
        displaced = self._finder.displaced((self.host, self.port))
        self._ask_at_s = time.monotonic() + every_s
        return displaced

    def _misled(self) -> None:
        self._finder.known.misled((self.host, self.port))


class Plain(_Honest, Named):
    """TCP."""


class Encrypted(_Honest, SSLConnection, Named):
    """TLS."""


class Local(_Honest, UnixDomainSocketConnection):
    """A Unix socket."""


class PlainFound(Found, Named):
    """TCP to where a finder says."""


class EncryptedFound(Found, SSLConnection, Named):
    """TLS to where a finder says; the name that it gave is verified."""


def greeting(guard: RunGuard | None, finder: Finder | None) -> Callable[[AbstractConnection], None]:
    """What a connection does before its first command: log in, check that it is a master and the epoch's server."""

    def greet(connection: AbstractConnection) -> None:
        guarded = guard is not None and guard.expected is not None
        try:
            connection.on_connect()  # type: ignore[no-untyped-call]
            if not guarded and finder is None:
                return
            told = server_facts.ask_on(connection, *server_facts.LIFE)
            if finder is not None:
                place = connection.__dict__["_host"], connection.__dict__["port"]
                if not server_facts.is_master(told):
                    finder.known.misled(place)
                    raise RedisConnectionError(f"{place[0]}:{place[1]} is no master now")
                finder.known.proved(place)
            if guard is not None:
                guard.check(server_facts.life(told))
        except (EpochOver, RedisError) as error:
            if finder is not None and isinstance(error, RedisError):
                finder.known.silent_until_s = 0.0  # it is time to ask again
            connection.disconnect()  # type: ignore[no-untyped-call]
            raise

    return greet
