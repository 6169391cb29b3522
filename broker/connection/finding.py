"""Which address a new connection goes to, where that is not written in the URL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from redis.backoff import NoBackoff
from redis.connection import Connection, SSLConnection
from redis.exceptions import AuthenticationError, NoPermissionError, RedisError
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.retry import Retry

from oarlock.broker.connection.tls import TlsFiles

Place = tuple[str, int]


class Finder(Protocol):
    """Asked for each new connection, from any thread."""

    asked_every_s: float
    """How often an open connection asks whether it still leads to the right server; 0: never, the server would tell."""

    def find(self) -> Place:
        """Host and port. Raises RedisError where nobody tells."""

    def misled(self) -> None:
        """What was found was wrong: ask somebody else next time."""


class Guides:
    """Servers that may be asked for the way, the one that answered last first."""

    def __init__(
        self,
        places: Sequence[Place],
        *,
        username: str | None,
        password: str | None,
        tls: TlsFiles | None,
        timeout_s: float,
    ) -> None:
        self._places = tuple(places)
        self._class = Connection if tls is None else SSLConnection
        self._options: dict[str, Any] = {
            "username": username,
            "password": password,
            "protocol": 2,
            "retry": Retry(NoBackoff(), 0),
            # Half of what the caller waits for: where the first is dead, the second is still asked in time.
            "socket_timeout": timeout_s / 2,
            "socket_connect_timeout": timeout_s / 2,
            **({} if tls is None else tls.options()),
        }

    def ask(self, question: tuple[str, ...], read: Callable[[Any, Place], Place | None]) -> Place:
        """What the first of them says that knows. Raises RedisError: why the last one could not tell.

        ``read`` makes a place of an answer and of who gave it; None: this one does not know.
        """
        last: RedisError | None = None
        for place in self._places:
            host, port = place
            try:
                found = read(self._answer(place, question), place)
            except (AuthenticationError, NoPermissionError) as error:
                raise type(error)(f"{host}:{port}: {error}") from None  # the others have the same users
            except RedisError as error:
                last = error
                continue
            if found is not None:
                self._places = (place, *(each for each in self._places if each != place))
                return found
        raise RedisConnectionError(f"{question[0].lower()}: {last}" if last else "nobody knows")

    def rotate(self) -> None:
        """Ask another one first."""
        self._places = (*self._places[1:], *self._places[:1])

    def learn(self, places: Sequence[Place]) -> None:
        """Ask these too, after all others."""
        self._places = (*self._places, *(place for place in dict.fromkeys(places) if place not in self._places))

    def _answer(self, place: Place, question: tuple[str, ...]) -> Any:
        connection = self._class(host=place[0], port=place[1], **self._options)
        try:
            connection.connect()  # type: ignore[no-untyped-call]
            connection.send_command(*question, check_health=False)  # type: ignore[no-untyped-call]
            return connection.read_response()
        finally:
            connection.disconnect()  # type: ignore[no-untyped-call]
