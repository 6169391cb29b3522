"""Connections that find their server, give it up when it turns out to be the wrong one, and prove what it is."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from redis.connection import AbstractConnection, Connection, SSLConnection, UnixDomainSocketConnection
from redis.exceptions import AskError, MasterDownError, ReadOnlyError, RedisError, TryAgainError
from redis.exceptions import ConnectionError as RedisConnectionError

from oarlock.broker.connection import server_facts
from oarlock.broker.connection.finders import Finder
from oarlock.broker.values import EpochOver

WRONG_SERVER = (AskError, TryAgainError, ReadOnlyError, MasterDownError)
"""MOVED is an ASK to redis-py. Whoever answers so is, or is about to be, no longer the master of our keys."""

UNANSWERED_S = 5.0
"""Until it is asked again where the server is, after nobody has answered."""


class RunGuard:
    """Life of the server the epoch lives on. Unset until known; then every new connection must meet it."""

    def __init__(self) -> None:
        self.expected: str | None = None

    def check(self, run: str) -> None:
        """Raises EpochOver when the server behind a new connection is another, was restarted, or promoted again."""
        if self.expected is not None and run != self.expected:
            raise EpochOver(f"the Redis server changed (run {self.expected[:8]} -> {run[:8]})")


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
        """Nobody showed us the way."""


class Found(_Honest):
    """``finder`` says where to connect, each time."""

    def __init__(self, *args: Any, finder: Finder, **options: Any) -> None:
        super().__init__(*args, **options)
        self._finder = finder
        self._ask_at_s = 0.0

    def connect(self) -> None:
        """Also of a connection that is open: is its server still the one?"""
        if self.is_connected and self._displaced():  # type: ignore[attr-defined]
            self.disconnect()  # type: ignore[attr-defined]
        super().connect()  # type: ignore[misc]

    def _connect(self) -> Any:
        self._ask_at_s = time.monotonic() + self._finder.asked_every_s
        self.host, self.port = self._finder.find()
        return super()._connect()  # type: ignore[misc]

    def _displaced(self) -> bool:
        every_s = self._finder.asked_every_s
        if not every_s or time.monotonic() < self._ask_at_s:
            return False
        try:
            found = self._finder.find()
        except RedisError:
            # Nobody to ask: what this connection was proved to be still holds. To ask may have taken all their
            # timeouts, which leases do not survive where every call does so.
            self._ask_at_s = time.monotonic() + UNANSWERED_S
            return False
        self._ask_at_s = time.monotonic() + every_s
        return found != (self.host, self.port)

    def _misled(self) -> None:
        self._finder.misled()


class Plain(_Honest, Connection):
    """TCP."""


class Encrypted(_Honest, SSLConnection):
    """TLS."""


class Local(_Honest, UnixDomainSocketConnection):
    """A Unix socket."""


class PlainFound(Found, Connection):
    """TCP to where a finder says."""


class EncryptedFound(Found, SSLConnection):
    """TLS to where a finder says; the name verified is the one it said."""


def greeting(guard: RunGuard | None, finder: Finder | None) -> Callable[[AbstractConnection], None]:
    """What a connection does before its first command: log in, prove to be a master, prove to be the epoch's server."""

    def greet(connection: AbstractConnection) -> None:
        connection.on_connect()  # type: ignore[no-untyped-call]
        guarded = guard is not None and guard.expected is not None
        if not guarded and finder is None:
            return
        try:
            told = server_facts.ask_on(connection, *server_facts.LIFE)
            if finder is not None and not server_facts.is_master(told):
                finder.misled()
                host, port = connection.__dict__["_host"], connection.__dict__["port"]
                raise RedisConnectionError(f"{host}:{port} is no master now")
            if guard is not None:
                guard.check(server_facts.life(told))
        except (EpochOver, RedisError):
            connection.disconnect()  # type: ignore[no-untyped-call]
            raise

    return greet
