"""Finds an epoch to work in: its data belong to the server that runs now, and its scripts are loaded."""

from __future__ import annotations

import logging

from redis.exceptions import RedisError

from oarlock.broker import epoch
from oarlock.broker.connection.client import BadRedisUrl, connect
from oarlock.broker.epoch import Seen
from oarlock.broker.redis_broker import RedisBroker
from oarlock.broker.steps import script_texts
from oarlock.broker.values.errors import BrokerUnreachable, EpochOver
from oarlock.workers.epoch.identity import LEASE_TIMEOUT_S, open_client
from oarlock.workers.process.log_line import line
from oarlock.workers.process.settings import Settings

log = logging.getLogger("oarlock.fleet")

NO_EPOCH = "no epoch: is an ingestor running?"
ANOTHER_FLEET = "give --fleet-id as its ingestors do, or the --redis of your own"
SHOWN = 100
"""Of a fleet's name: anything may be in Redis."""
PAUSE_FIRST_MS, PAUSE_MAX_MS = 100, 500


class EpochSearch:
    """Asks Redis, less and less often, and logs once why no epoch is found."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._client = connect(
            settings.redis_url, timeout_s=LEASE_TIMEOUT_S, shard=settings.tag, tls=settings.redis_tls
        )
        self._pause_ms, self._trouble = PAUSE_FIRST_MS, ""
        self.next_ms = 0
        """CLOCK_BOOTTIME before which ``look`` does not ask."""

    def look(self, now_ms: int) -> Seen | None:
        """The epoch that may be worked in; None: look again at ``next_ms``."""
        if now_ms < self.next_ms:
            return None
        try:
            seen, trouble = self._live()
        except (BrokerUnreachable, RedisError, BadRedisUrl) as error:
            # A user without the right may be given it, and a certificate that is being replaced is there in a moment.
            seen, trouble = None, str(error)
        if seen is not None:
            log.info(line("epoch", number=seen.epoch, phase=seen.phase))
            self._pause_ms, self._trouble, self.next_ms = PAUSE_FIRST_MS, "", 0
            return seen
        if trouble != self._trouble:
            log.warning(line("waiting", reason=trouble))
        self._trouble, self.next_ms = trouble, now_ms + self._pause_ms
        self._pause_ms = min(PAUSE_MAX_MS, self._pause_ms * 2)
        return None

    def _live(self) -> tuple[Seen | None, str]:
        """The epoch, else why there is none to work in. Its scripts have to be there: they are loaded together,
        ``look`` last, so calling it is the test. A worker has no right to ask for them in another way.
        """
        seen = epoch.current(self._client, self._settings.tag)
        if not seen.intact:
            return None, NO_EPOCH
        fleet, ours = epoch.fleet_of(self._client, seen.epoch, self._settings.tag), self._settings.fleet_id
        if fleet not in ("", ours):
            return None, f"the epoch is of fleet {fleet[:SHOWN]!r}, this is fleet {ours!r}: {ANOTHER_FLEET}"
        client = open_client(self._settings, seen, LEASE_TIMEOUT_S)
        try:
            RedisBroker(client, seen.epoch, shard=self._settings.tag).look("")
        except EpochOver:
            return None, NO_EPOCH
        finally:
            client.close()
        script_texts.keep_all(seen.epoch)  # once, not in each worker that is forked
        return seen, ""
