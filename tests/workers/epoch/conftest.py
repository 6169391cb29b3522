"""The ingestors' rig: they are what keeps an epoch."""

from tests.workers.ingest.conftest import make_rig, redis_server, rig

__all__ = ["make_rig", "redis_server", "rig"]
