"""Requests for another turn that come through RQ: `rq requeue` pushes job ids on the list ``rq:queue:<queue>``.

Everybody who can write to Redis can write there, so an entry counts as mere data until it is shown to name a key.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

import redis
from redis.exceptions import ResponseError
from rq.utils import as_text

from oarlock.broker.protocol import Broker
from oarlock.broker.steps import refusals
from oarlock.workers.process.log_line import line
from oarlock.workers.rq.job import DATA_BYTES_MAX, KeyJob, NotAKey, key_of, shard_of_job
from oarlock.workers.rq.queue import KeyQueue

log = logging.getLogger("oarlock.worker")

READ_AT_ONCE = 100


class Requests:
    """Reads the list and adds the keys. A request leaves the list after its key was added, so none is lost."""

    def __init__(self, connection: redis.Redis, broker: Broker, shard: str = "0", shards: int = 1) -> None:
        self._connection, self._broker = connection, broker
        self._shard, self._shards = shard, shards

    def admit(self, queue: KeyQueue, identifiers: Sequence[bytes | str]) -> int:
        """Add the keys of these jobs, parked ones too. Returns how many were keys. Another shard's are left to it.

        Raises RedisError; EpochOver and BrokerUnreachable, after which the requests are still on the list.
        """
        admitted = 0
        for raw in identifiers:
            try:
                key = self._key(queue, raw)
            except NotAKey as error:
                log.warning(line("refused", queue=queue.name, reason=error))
                self._connection.lrem(queue.key, 1, raw)  # type: ignore[arg-type]
                continue
            if shard_of_job(as_text(raw), key, self._shards) != self._shard:
                continue
            self._broker.add(queue.name, [key], unpark=True)
            with self._connection.pipeline() as pipe:
                pipe.lrem(queue.key, 0, raw)  # type: ignore[arg-type]
                pipe.delete(KeyJob.key_for(as_text(raw)))
                pipe.execute()
            log.info(line("requeued", queue=queue.name, key=key))
            admitted += 1
        return admitted

    def _key(self, queue: KeyQueue, raw: bytes | str) -> str:
        identifier = raw.decode(errors="replace") if isinstance(raw, bytes) else raw
        job = KeyJob.key_for(identifier)
        try:
            with self._connection.pipeline(transaction=False) as pipe:
                pipe.hstrlen(job, "data")
                pipe.hstrlen(job, "origin")
                size = max(pipe.execute())
            if size > DATA_BYTES_MAX:  # asked first: large data are refused without being fetched
                raise NotAKey(f"{size} bytes are too many for a job")
            data, origin = self._connection.hmget(job, "data", "origin")
        except ResponseError as error:
            if refusals.meaning("requests", error) is not error:
                raise  # it says nothing about the job, which stays where it is
            raise NotAKey(f"no job: {error}") from None
        if not isinstance(data, bytes):
            raise NotAKey(f"no such job: {identifier[:80]!r}")
        if origin != queue.name.encode():
            raise NotAKey(f"{identifier[:80]!r} is not of this queue")
        return key_of(queue.name, identifier, data)
