"""The Redis of the fleet as an ingestor sees it: which epoch it shows, how a new one begins."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable

import redis
from redis.exceptions import RedisError

from oarlock.broker import epoch, refusals, script_texts
from oarlock.broker.connection.client import RunGuard
from oarlock.broker.epoch import Seen
from oarlock.broker.protocol import Broker
from oarlock.broker.redis_broker import RedisBroker
from oarlock.broker.values import BrokerUnreachable, EpochOver
from oarlock.workers.process.log_line import line

log = logging.getLogger("oarlock.ingest")


class RedisSide:
    """One shard through one client; ``guard`` is the one the client was made with. ``clock``: of the scripts.

    ``client_of``: a new client that reaches another shard's data; without one it is taken to lie beside ours.
    ``wrap``: what makes of each broker the one that is handed out.
    """

    def __init__(
        self,
        client: redis.Redis,
        guard: RunGuard,
        *,
        shard: str = "0",
        clock: str = script_texts.REDIS_TIME,
        client_of: Callable[[str], redis.Redis] | None = None,
        wrap: Callable[[RedisBroker], Broker] = lambda broker: broker,
    ) -> None:
        self._client, self._guard, self._shard, self._clock = client, guard, shard, clock
        self._client_of, self._wrap = client_of, wrap

    def look(self) -> Seen:
        """What Redis shows now. Raises BrokerUnreachable; EpochOver where the server trusted was replaced."""
        return epoch.current(self._client, self._shard)

    def distrust(self) -> None:
        """Speak to whichever server answers: what it holds is to be found out."""
        self._expect(None)

    def broker(self, seen: Seen) -> Broker:
        """A broker of this epoch; from now on a connection to another server is refused with EpochOver."""
        self._expect(seen.run)
        return self._wrap(RedisBroker(self._client, seen.epoch, shard=self._shard, clock=self._clock))

    def _expect(self, run: str | None) -> None:
        """A guard asks new connections only: those there are may lead to another server, so they are given up."""
        if self._guard.expected != run:
            self._guard.expected = run
            self._client.connection_pool.disconnect()

    def bootstrap(self, number: int) -> None:
        """Begin an epoch, after the Lease was won. Raises BrokerUnreachable: it may have begun or not."""
        try:
            epoch.bootstrap(self._client, number, self._shard, self._clock)
        except RedisError as error:
            raise BrokerUnreachable(refusals.told("bootstrap", error)) from None

    def end_others(self, others: Iterable[str]) -> None:
        """End the epochs of these shards: a division of the cluster in which they had work is over.

        Raises BrokerUnreachable and EpochOver: some may not have ended; all of them are to be ended again.
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
        """Unlink what earlier epochs left, in a thread of its own: nobody waits for it."""
        threading.Thread(target=self._sweep, args=(number,), name="sweep", daemon=True).start()

    def _sweep(self, number: int) -> None:
        try:
            swept = epoch.sweep_older(self._client, number, self._shard)
        except (RedisError, EpochOver) as error:  # what is left costs memory only; the next epoch sweeps it too
            log.warning(line("sweep failed", epoch=number, why=error))
        else:
            log.info(line("swept", epoch=number, keys=swept))
