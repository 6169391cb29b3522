"""The fleet's Redis as an ingestor uses it: look at its epoch, begin a new one, end those of other shards."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from typing import Protocol

import redis
from redis.exceptions import RedisError

from oarlock.broker import epoch
from oarlock.broker.connection.client import RunGuard
from oarlock.broker.epoch import Seen
from oarlock.broker.protocol import Broker
from oarlock.broker.redis_broker import RedisBroker
from oarlock.broker.steps import refusals, script_texts
from oarlock.broker.values.errors import BrokerUnreachable, EpochOver
from oarlock.workers.process.log_line import line

log = logging.getLogger("oarlock.ingest")


class EpochStore(Protocol):
    """Where the epoch and its data are kept. Each may raise BrokerUnreachable. ``RedisSide`` says what each is for."""

    def look(self) -> Seen: ...
    def distrust(self) -> None: ...
    def broker(self, seen: Seen) -> Broker: ...
    def bootstrap(self, number: int) -> None: ...
    def end_others(self, others: Iterable[str]) -> None: ...
    def sweep(self, number: int) -> None: ...


class RedisSide:
    """One shard through one client. ``guard``: the one that the client was made with. ``clock``: of the scripts.
    ``fleet``: whose epochs it begins.

    ``client_of``: makes a client for another shard's data; without it that data lies beside ours. ``wrap``: is applied
    to each new broker, such as the wrapper that signs.
    """

    def __init__(
        self,
        client: redis.Redis,
        guard: RunGuard,
        *,
        shard: str = "0",
        fleet: str = "",
        clock: str = script_texts.REDIS_TIME,
        client_of: Callable[[str], redis.Redis] | None = None,
        wrap: Callable[[RedisBroker], Broker] = lambda broker: broker,
    ) -> None:
        self._client, self._guard, self._shard, self._clock = client, guard, shard, clock
        self._fleet = fleet
        self._client_of, self._wrap = client_of, wrap
        self._seen = 1

    def look(self) -> Seen:
        """What Redis shows now. Raises BrokerUnreachable; EpochOver where the server trusted was replaced."""
        seen = epoch.current(self._client, self._shard, likely=self._seen)
        self._seen = seen.epoch
        if not seen.writable:
            self._client.connection_pool.disconnect()  # a new connection may find the master
            raise BrokerUnreachable("epoch: the server is a replica now, and takes no writes")
        return seen

    def distrust(self) -> None:
        """Accept any server that answers again, so that its content can be looked at."""
        self._expect(None)

    def broker(self, seen: Seen) -> Broker:
        """A broker of this epoch. From now on a connection to another server fails with EpochOver."""
        self._expect(seen.run)
        return self._wrap(RedisBroker(self._client, seen.epoch, shard=self._shard, clock=self._clock))

    def _expect(self, run: str | None) -> None:
        """The guard checks new connections only. Open ones may lead to another server, so they are closed."""
        if self._guard.expected != run:
            self._guard.expected = run
            self._client.connection_pool.disconnect()

    def bootstrap(self, number: int) -> None:
        """Begin an epoch, after the Lease was won. After BrokerUnreachable it may have begun or not."""
        try:
            epoch.bootstrap(self._client, number, self._shard, self._clock, self._fleet)
        except RedisError as error:
            raise BrokerUnreachable(refusals.told("bootstrap", error)) from None

    def end_others(self, others: Iterable[str]) -> None:
        """End the epochs of these shards, because the division of the cluster to which they belong is over.

        After BrokerUnreachable or EpochOver some may not have ended: call it again for all.
        """
        for shard in others:
            client = self._client_of(shard) if self._client_of is not None else self._client
            try:
                ended = epoch.end(client, shard)
            except RedisError as error:
                raise BrokerUnreachable(f"end shard {shard}: {error}") from None
            finally:
                if self._client_of is not None:
                    client.close()
            if ended:
                log.warning(line("shard ended", shard=shard, epoch=ended))

    def sweep(self, number: int) -> None:
        """Unlink what earlier epochs left, in a thread of its own that nobody waits for."""
        threading.Thread(target=self._sweep, args=(number,), name="sweep", daemon=True).start()

    def _sweep(self, number: int) -> None:
        try:
            swept = epoch.sweep_older(self._client, number, self._shard)
        except (RedisError, EpochOver) as error:  # what is left costs memory only; the next epoch sweeps it too
            log.warning(line("sweep failed", epoch=number, why=error))
        else:
            log.info(line("swept", epoch=number, keys=swept))
