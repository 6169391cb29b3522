"""A queue of keys as RQ's tools see it: `rq info --queue-class oarlock.workers.rq_queue.KeyQueue`.

The keys themselves are in a stream of the broker. The list RQ keeps at ``rq:queue:<name>`` stays what it is for RQ's
own tools, and takes requests: `rq requeue` pushes job ids there (see ``workers.rq.requests``).
"""

from __future__ import annotations

from typing import Any, NoReturn

from rq.queue import Queue

from oarlock.broker import keys
from oarlock.broker.connection.client import connect
from oarlock.workers.process.settings import Settings
from oarlock.workers.rq.job import KeyJob, MsgpackSerializer


class KeyQueue(Queue):  # type: ignore[misc]
    """Counts keys, holds no jobs of its own, and reads whatever jobs it meets as KeyJobs."""

    job_class = KeyJob

    def __init__(self, name: str = "default", connection: Any = None, *args: Any, **options: Any) -> None:
        options.update(job_class=KeyJob, serializer=MsgpackSerializer)
        super().__init__(name, connection, *args, **options)

    @property
    def count(self) -> int:
        """Queued keys, of all shards, and requests on the list that no worker has read yet."""
        requests = int(self.connection.llen(self.key))
        settings = Settings.from_env()
        return requests + sum(self._queued(settings, shard) for shard in settings.tags)

    def _queued(self, settings: Settings, shard: str) -> int:
        elsewhere = settings.rq_redis_url
        client = connect(settings.redis_url, shard=shard, tls=settings.redis_tls) if elsewhere else self.connection
        number = int(client.get(keys.epoch(shard)) or 0)
        of_epoch = keys.Keys(number, shard)
        return int(client.xlen(of_epoch.stream(self.name)) + client.zcard(of_epoch.backlog(self.name))) if number else 0

    def _refuse(self, *args: Any, **options: Any) -> NoReturn:
        raise NotImplementedError(
            "keys are published by ingestors; `oarlock requeue` or `rq requeue` asks for another turn"
        )

    enqueue_call = enqueue_many = enqueue_job = enqueue_at = enqueue_in = _enqueue_job = create_job = run_job = _refuse
