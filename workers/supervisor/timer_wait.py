"""Waiting for the broker's "timer" list without a thread: a connection whose socket a selector can watch.

A token on the list means that a delayed key is due earlier than the reader would wake up.
"""

from __future__ import annotations

import selectors
import socket
from typing import Protocol

import redis
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import ResponseError
from redis.exceptions import TimeoutError as RedisTimeoutError

from oarlock.broker.steps import refusals
from oarlock.broker.values.errors import BrokerUnreachable

BLOCK_S = 30
"""A wait is renewed so often; of a connection that died quietly keepalive tells."""


class Timer(Protocol):
    """What a lease manager hears by that a delayed key is due earlier."""

    def start(self) -> socket.socket: ...
    def take(self) -> bool: ...
    def close(self) -> None: ...


class TimerWait:
    """One BLPOP at a time. ``client`` lends its settings; the connection is our own."""

    def __init__(self, client: redis.Redis, list_key: str) -> None:
        self._connection = client.connection_pool.make_connection()
        self._list_key = list_key

    def start(self) -> socket.socket:
        """Ask, and return the socket that becomes readable with the answer. Raises BrokerUnreachable, EpochOver."""
        try:
            self._connection.connect()  # type: ignore[no-untyped-call]
            self._ask()
        except (RedisConnectionError, RedisTimeoutError) as error:
            raise BrokerUnreachable(f"timer: {error}") from None
        watched: socket.socket = self._connection._get_socket()  # type: ignore[attr-defined]
        return watched

    def _ask(self) -> None:
        self._connection.send_command("BLPOP", self._list_key, BLOCK_S, check_health=False)  # type: ignore[no-untyped-call]

    def take(self) -> bool:
        """Read the answer of a readable socket and ask again. Whether there was a token.

        Raises BrokerUnreachable, EpochOver and redis's errors.
        """
        try:
            try:
                found = self._connection.read_response() is not None
            except ResponseError as error:
                if not str(error).startswith("UNBLOCKED"):  # the list was unlinked; nothing else is known
                    raise refusals.meaning("timer", error) from None
                found = True
            self._ask()
        except (RedisConnectionError, RedisTimeoutError) as error:
            raise BrokerUnreachable(f"timer: {error}") from None
        return found

    def close(self) -> None:
        """Hang up."""
        self._connection.disconnect()  # type: ignore[no-untyped-call]


def watch_instead(
    selector: selectors.BaseSelector, watched: socket.socket | None, wanted: socket.socket | None
) -> socket.socket | None:
    """Let a selector follow the timer's socket as it comes and goes. Returns what is watched now."""
    if wanted is not watched:
        if watched is not None:
            selector.unregister(watched)
        if wanted is not None:
            selector.register(wanted, selectors.EVENT_READ)
    return wanted
