"""Which address a new connection goes to, where the URL does not say it: a master named by Sentinels, or by a cluster.

redis-py has clients for both. Its Sentinel client does not rotate after a wrong answer, and its cluster client follows
redirections; here a redirection ends the epoch.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from redis.backoff import NoBackoff
from redis.connection import Connection, SSLConnection
from redis.crc import key_slot
from redis.exceptions import AuthenticationError, NoPermissionError, RedisError, ResponseError
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.retry import Retry

from oarlock.broker import keys
from oarlock.broker.connection.redis_url import RedisUrl
from oarlock.broker.connection.tls import TlsFiles

Place = tuple[str, int]


class Finder(ABC):
    """Asks the servers that know the way, first the one that answered last: for each new connection, in any thread."""

    asked_every_s: float
    """How often an open connection asks whether it still leads to the right server. 0: never, the server would tell."""

    def __init__(
        self, url: RedisUrl, username: str | None, password: str | None, tls: TlsFiles, timeout_s: float
    ) -> None:
        self._places = tuple(url.places)
        self._class = SSLConnection if url.tls else Connection
        self._options: dict[str, Any] = {
            "username": username,
            "password": password,
            "protocol": 2,
            "retry": Retry(NoBackoff(), 0),
            # Half of the time that the caller waits: where the first is dead, the second is still asked in time.
            "socket_timeout": timeout_s / 2,
            "socket_connect_timeout": timeout_s / 2,
            **(tls.options() if url.tls else {}),
        }

    @abstractmethod
    def find(self) -> Place:
        """Host and port. Raises RedisError where nobody tells."""

    @abstractmethod
    def _read(self, answer: Any, place: Place) -> Place:
        """The place that an answer names; ``place`` gave it. Raises RedisError where it names none."""

    def misled(self) -> None:
        """The place that was found was wrong: ask another server first next time."""
        self._places = (*self._places[1:], *self._places[:1])

    def _ask(self, *question: str) -> Place:
        """The answer of the first server that knows. Raises RedisError: why the last one could not tell."""
        last: RedisError | None = None
        for place in self._places:
            host, port = place
            try:
                found = self._read(self._answer(place, question), place)
            except (AuthenticationError, NoPermissionError) as error:
                raise type(error)(f"{host}:{port}: {error}") from None  # the others have the same users
            except RedisError as error:
                last = error
                continue
            self._places = (place, *(each for each in self._places if each != place))
            return found
        raise RedisConnectionError(f"{question[0].lower()}: {last}" if last else "nobody knows")

    def _learn(self, places: Sequence[Place]) -> None:
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


class SentinelFinder(Finder):
    """The master that Sentinels name. ``url`` is of the kind SENTINEL.

    A Sentinel may be behind the others, so a server that was found has to prove itself: first its role, then, by the
    guard, that it is the server of our epoch. A master that was replaced goes on answering until a Sentinel tells it
    so, which takes ten seconds (upstream: src/sentinel.c, +convert-to-slave). So open connections ask as well.
    """

    asked_every_s = 1.0

    def __init__(self, url: RedisUrl, tls: TlsFiles, timeout_s: float) -> None:
        super().__init__(url, url.sentinel_username, url.sentinel_password, tls, timeout_s)
        self._master = url.master

    def find(self) -> Place:
        return self._ask("SENTINEL", "GET-MASTER-ADDR-BY-NAME", self._master)

    def _read(self, answer: Any, place: Place) -> Place:
        if answer is None:
            raise RedisConnectionError(f"the Sentinel {place[0]}:{place[1]} knows no master {self._master!r}")
        if not isinstance(answer, list) or len(answer) != 2:
            raise ResponseError(f"{place[0]}:{place[1]} is no Sentinel")
        return answer[0].decode(), int(answer[1])


def slot_of(shard: str) -> int:
    """The slot that all keys of a shard are in."""
    return key_slot(keys.epoch(shard).encode())


class SlotFinder(Finder):
    """The one node of a cluster that a shard lives on: the master of its slot. ``url`` is of the kind CLUSTER.

    All keys of a shard are in one slot, so a client speaks to one node and never follows a redirection: that would mean
    that the slot has moved, and with it the epoch has ended. A master that was replaced, or is cut off, says so by
    itself. The nodes that a node tells of are asked when none of the URL's answers.
    """

    asked_every_s = 0.0

    def __init__(self, url: RedisUrl, shard: str, tls: TlsFiles, timeout_s: float) -> None:
        super().__init__(url, url.username, url.password, tls, timeout_s)
        self._slot = slot_of(shard)

    def find(self) -> Place:
        return self._ask("CLUSTER", "SLOTS")

    def _read(self, answer: Any, place: Place) -> Place:
        masters = [(first, last, _place(node, place)) for first, last, node, *_ in answer]
        self._learn([master for _, _, master in masters])
        for first, last, master in masters:
            if first <= self._slot <= last:
                return master
        raise RedisConnectionError(f"the cluster has no master for slot {self._slot}, says {place[0]}:{place[1]}")


def _place(node: list[Any], asked: Place) -> Place:
    """A node without a name is the one that was asked (upstream: CLUSTER SLOTS, preferred endpoint)."""
    host = (node[0] or b"").decode()
    return (asked[0] if host in ("", "?") else host), int(node[1])
