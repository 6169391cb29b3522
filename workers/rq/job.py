"""A key as RQ sees it: the job of a failed or long turn, and nothing else.

Stock RQ runs what it finds in Redis: pickles, functions, callbacks and webhooks by name. A KeyJob is data. It is
written in msgpack, says one fixed word instead of a function, and names a key; what runs for a key is chosen by its
queue's name (``controllers.registry``), never by anything read from Redis.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from typing import Any, NoReturn

import msgpack  # type: ignore[import-untyped]
from rq.exceptions import DeserializationError, InvalidJobOperation
from rq.job import Job

from oarlock.workers.process.shards import shard_of

FUNCTION = "oarlock.turn"
"""Stands where RQ keeps a function's name. It is compared, never imported."""

DATA_BYTES_MAX = 4096
_KEY = re.compile(r"(?:[A-Za-z0-9][-A-Za-z0-9.]{0,252}/)?[A-Za-z0-9][-A-Za-z0-9.]{0,252}")
_SHARD = re.compile(r"-s([0-9]{1,2})$")


class MsgpackSerializer:
    """RQ's serializer: plain values only, small."""

    @staticmethod
    def dumps(value: Any) -> bytes:
        packed: bytes = msgpack.packb(value, use_bin_type=True)
        return packed

    @staticmethod
    def loads(data: bytes) -> Any:
        """Raises ValueError or an error of msgpack for data that are not msgpack, or too long."""
        if len(data) > DATA_BYTES_MAX:
            raise ValueError(f"{len(data)} bytes are too many")
        return msgpack.unpackb(data, raw=False, strict_map_key=True)


class NotAKey(Exception):
    """Job data that does not name a key of the queue it lies in."""


def job_id(queue: str, key: str, shard: str = "0") -> str:
    """The one id a key has: RQ allows letters, digits, _ and - only.

    A key without namespace is in the queue of every shard, so its job says whose it is: ``...-s1``; without: shard 0's.
    """
    own = "" if shard == "0" or "/" in key else f"-s{shard}"
    return f"{queue}-{hashlib.blake2b(key.encode(), digest_size=16).hexdigest()}{own}"


def shard_of_job(identifier: str, key: str, shards: int) -> str:
    """The shard of the key that a job names."""
    namespace, slash, _ = key.partition("/")
    if slash or shards == 1:
        return shard_of(namespace, shards)
    return identifier.rpartition("-s")[2] if _SHARD.search(identifier) else "0"


def key_of(queue: str, identifier: str, data: bytes) -> str:
    """The key that a stored job of ``queue`` names. Raises NotAKey unless it is exactly what ``KeyJob.of`` writes."""
    try:
        function, instance, args, kwargs = MsgpackSerializer.loads(_unpacked(data))
    except (ValueError, TypeError, zlib.error, msgpack.UnpackException) as error:
        raise NotAKey(f"not the data of a key: {error}") from None
    if function != FUNCTION or instance is not None or kwargs != {}:
        raise NotAKey(f"not a turn: {str(function)[:80]!r}")
    if not isinstance(args, list) or len(args) != 1 or not isinstance(args[0], str):
        raise NotAKey("not one key")
    if not _KEY.fullmatch(args[0]):
        raise NotAKey(f"not a key: {args[0][:80]!r}")
    shard = _SHARD.search(identifier)
    if identifier != job_id(queue, args[0], shard[1] if shard else "0"):
        raise NotAKey(f"{identifier[:80]!r} is not the job of {args[0]} in {queue}")
    return args[0]


def _unpacked(data: bytes) -> bytes:
    """RQ stores data compressed; bounded, so that a small value cannot become a large one."""
    inflater = zlib.decompressobj()
    try:
        plain = inflater.decompress(data, DATA_BYTES_MAX)
    except zlib.error:
        return data
    if inflater.unconsumed_tail:
        raise ValueError("too much data")
    return plain


class KeyJob(Job):  # type: ignore[misc]
    """A job that names a key. It cannot be performed, has no callbacks and depends on nothing."""

    def __init__(self, id: str | None = None, connection: Any = None, serializer: Any = None) -> None:
        super().__init__(id, connection, MsgpackSerializer)

    @classmethod
    def of(cls, queue: str, key: str, connection: Any, shard: str = "0") -> KeyJob:
        """The job of a key, not yet stored anywhere."""
        job: KeyJob = cls.create(
            FUNCTION,
            args=(key,),
            connection=connection,
            id=job_id(queue, key, shard),
            origin=queue,
            description=f"{queue} {key}",
        )
        return job

    def perform(self) -> NoReturn:
        raise InvalidJobOperation(f"{self.id} names a key: only a turn of its queue can be run")

    func = property(perform)
    success_callback = failure_callback = stopped_callback = property(lambda self: None)

    def send_webhooks(self, status: Any, *, exc_string: str | None = None) -> None:
        """None: its webhooks would be addresses that somebody wrote to Redis."""

    def restore(self, raw_data: Any) -> None:
        """Read what Redis holds, and drop all that would run, call, send, retry or repeat something."""
        super().restore(raw_data)
        self._success_callback_name = self._failure_callback_name = self._stopped_callback_name = None
        self.webhooks: list[Any] = []
        self._dependency_ids: list[str] = []
        self.group_id = self.retries_left = self.retry_intervals = None
        self.repeats_left = self.repeat_intervals = None

    def _deserialize_data(self) -> None:
        try:
            key = key_of(self.origin, self.id, self.data)
        except NotAKey as error:
            raise DeserializationError(str(error)) from None
        self._func_name, self._instance, self._args = FUNCTION, None, (key,)
        self._kwargs: dict[str, Any] = {}
