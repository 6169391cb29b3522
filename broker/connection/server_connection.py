"""Connections that find their server, prove that it is the right one, and leave it when it turns out not to be."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from redis.connection import AbstractConnection, Connection, SSLConnection, UnixDomainSocketConnection
from redis.exceptions import AskError, MasterDownError, ReadOnlyError, RedisError, TryAgainError
from redis.exceptions import ConnectionError as RedisConnectionError

from oarlock.broker.connection import server_facts
from oarlock.broker.connection.finders import Finder
from oarlock.broker.values.errors import EpochOver

WRONG_SERVER = (AskError, TryAgainError, ReadOnlyError, MasterDownError)
"""MOVED is an ASK to redis-py. A server that answers so is no longer the master of our keys, or soon will not be."""

UNANSWERED_S = 5.0
"""After nobody has told where the server is, the next question comes after this time."""


class RunGuard:
    """The life of the server that the epoch is on. Once it is known, every new connection must lead to it."""

    def __init__(self) -> None:
        self.expected: str | None = None

    def check(self, run: str) -> None:
        """Raises EpochOver where the server of a new connection is another, was restarted, or was promoted again."""
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
        return super()._connect()  # type: ignore[misc]

    def _displaced(self) -> bool:
        every_s = self._finder.asked_every_s
        if not every_s or time.monotonic() < self._ask_at_s:
            return False
        try:
            found = self._finder.find()
        except RedisError:
            # Nobody tells, so the proof that this connection gave still counts. The question may have taken as long as
            # the timeouts of all servers: if every call did that, leases would end.
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
    """TLS to where a finder says; the name that it gave is verified."""


def greeting(guard: RunGuard | None, finder: Finder | None) -> Callable[[AbstractConnection], None]:
    """What a connection does before its first command: log in, check that it is a master and the epoch's server."""

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
