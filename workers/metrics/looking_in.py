"""Opens the way to the fleet-wide figures of the shards that a process serves."""

from __future__ import annotations

from oarlock.broker.connection.client import connect
from oarlock.workers.metrics.fleet_reader import FleetReader
from oarlock.workers.metrics.latest import Latest
from oarlock.workers.process.settings import Settings

TIMEOUT_S = 1.0
"""A scrape waits ten seconds, a probe often one."""


def open_latest(settings: Settings) -> Latest:
    """With a client of its own. Connecting happens at the first look."""
    client = connect(settings.redis_url, timeout_s=TIMEOUT_S, shard=settings.serves, tls=settings.redis_tls)
    return Latest([FleetReader(client, settings.serves)])
