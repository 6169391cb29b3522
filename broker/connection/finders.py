"""Which address a new connection goes to, where the URL does not say it: a master named by Sentinels, or by a cluster.

redis-py has clients for both. Its Sentinel client does not rotate after a wrong answer, and its cluster client follows
redirections; here a redirection ends the epoch.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from redis.backoff import NoBackoff
from redis.connection import SSLConnection
from redis.crc import key_slot
from redis.exceptions import AuthenticationError, NoPermissionError, RedisError, ResponseError
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.retry import Retry

from oarlock.broker import keys
from oarlock.broker.connection.named import Named, driver
from oarlock.broker.connection.redis_url import RedisUrl
from oarlock.broker.connection.tls import NO_FILES, TlsFiles
from oarlock.broker.connection.whereabouts import Place, Whereabouts, whereabouts


class _Encrypted(SSLConnection, Named):
    """TLS."""


class Finder(ABC):
    """Asks the servers that know the way, first the one that answered last, in any thread: for each new connection, and
    now and then for an open one.
    """

    asked_every_s: float
    """How often an open connection asks whether it still leads to the right server. 0: never, the server would tell."""

    def __init__(
        self,
        url: RedisUrl,
        known: Whereabouts,
        login: tuple[str | None, str | None],
        *,
        timeout_s: float,
        tls: TlsFiles = NO_FILES,
        may_reuse: Callable[[], bool] = lambda: False,
    ) -> None:
        self.known, self._may_reuse = known, may_reuse
        self._class: type[Named] = _Encrypted if url.tls else Named
        # Half of the time that the caller waits: where the first is dead, the second is still asked in time.
        self._timeout_s = timeout_s / 2
        self._options: dict[str, Any] = {
            "username": login[0],
            "password": login[1],
            "protocol": 2,
            "driver_info": driver(),
            "retry": Retry(NoBackoff(), 0),
            **(tls.options() if url.tls else {}),
        }

    def find(self) -> Place:
        """Host and port for a new connection. Raises RedisError: why the last one that was asked could not tell.

        Where none of them answers, and ``may_reuse`` allows it, it is the last master that was found.
        """
        spare, silent = self.known.proven if self._may_reuse() else None, self._all_silent()
        if spare is not None and silent:
            return spare
        refusal: RedisError = RedisConnectionError("nobody knows")
        if spare is not None:
            rounds_s = [self._patience_s]
        else:  # all that is left is to wait: briefly for each, and then for long, which is enough where all are silent
            rounds_s = [self._timeout_s] if silent else sorted({self._patience_s, self._timeout_s})
        for patience_s in rounds_s:
            for place in self.known.places:
                try:
                    return self._ask(place, patience_s)
                except (AuthenticationError, NoPermissionError) as error:
                    raise type(error)(f"{place[0]}:{place[1]}: {error}") from None  # the others have the same users
                except RedisError as error:
                    refusal = error
                if spare is not None and self._all_silent():
                    break  # none of the others has answered either
        if spare is None or self.known.proven is None:
            raise RedisConnectionError(f"{self._question()[0].lower()}: {refusal}")
        return self.known.proven

    def displaced(self, place: Place) -> bool:
        """Whether the first one that is asked names another place than that of an open connection. False, too, where it
        does not tell: then the proof that the connection gave still counts, and another one is asked the next time.
        """
        try:
            return self._ask(self.known.places[0], self._patience_s) != place
        except RedisError:
            return False

    def _all_silent(self) -> bool:
        return time.monotonic() < self.known.silent_until_s

    @property
    def _patience_s(self) -> float:
        return min(self.known.patience_s, self._timeout_s)

    @abstractmethod
    def _question(self) -> tuple[str, ...]:
        """The command."""

    @abstractmethod
    def _read(self, answer: Any, place: Place) -> Place:
        """The place that an answer names; ``place`` gave it. Raises RedisError where it names none."""

    def _ask(self, place: Place, patience_s: float) -> Place:
        began_s = time.monotonic()
        try:
            found = self._read(self._answer(place, patience_s), place)
        except RedisError:
            self.known.unanswered(place, time.monotonic())
            raise
        self.known.answered(place, found, time.monotonic() - began_s)
        return found

    def _answer(self, place: Place, patience_s: float) -> Any:
        waits: dict[str, Any] = {"socket_timeout": patience_s, "socket_connect_timeout": patience_s}
        connection = self._class(host=place[0], port=place[1], may_reuse=self._may_reuse, **waits, **self._options)
        try:
            connection.connect()  # type: ignore[no-untyped-call]
            connection.send_command(*self._question(), check_health=False)  # type: ignore[no-untyped-call]
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

    def __init__(self, url: RedisUrl, **options: Any) -> None:
        super().__init__(url, whereabouts(url, ""), (url.sentinel_username, url.sentinel_password), **options)
        self._master = url.master

    def _question(self) -> tuple[str, ...]:
        return ("SENTINEL", "GET-MASTER-ADDR-BY-NAME", self._master)

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

    def __init__(self, url: RedisUrl, shard: str, **options: Any) -> None:
        super().__init__(url, whereabouts(url, shard), (url.username, url.password), **options)
        self._slot = slot_of(shard)

    def _question(self) -> tuple[str, ...]:
        return ("CLUSTER", "SLOTS")

    def _read(self, answer: Any, place: Place) -> Place:
        masters = [(first, last, _place(node, place)) for first, last, node, *_ in answer]
        self.known.learn([master for _, _, master in masters])
        for first, last, master in masters:
            if first <= self._slot <= last:
                return master
        raise RedisConnectionError(f"the cluster has no master for slot {self._slot}, says {place[0]}:{place[1]}")


def _place(node: list[Any], asked: Place) -> Place:
    """A node without a name is the one that was asked (upstream: CLUSTER SLOTS, preferred endpoint)."""
    host = (node[0] or b"").decode()
    return (asked[0] if host in ("", "?") else host), int(node[1])
