"""The last traceback of a key whose turns keep failing, from RQ's registry of failed jobs. Nothing there is run."""

from __future__ import annotations

import binascii
import zlib
from base64 import b64decode
from typing import Any

import redis
from redis.exceptions import RedisError
from rq.results import get_key as results_key

from oarlock.broker.looks.inspect import raw_answers
from oarlock.broker.values.errors import BrokerUnreachable
from oarlock.workers.rq.job import job_id

BYTES_MAX = 64_000


def traceback_of(client: redis.Redis, queue: str, key: str, shard: str = "0") -> str:
    """The text as it was kept; "" where there is none. Raises BrokerUnreachable."""
    try:
        (found,) = raw_answers(client, [("XREVRANGE", results_key(job_id(queue, key, shard)), "+", "-", "COUNT", 1)])
    except RedisError as error:
        raise BrokerUnreachable(f"RQ's registry: {error}") from None
    return traceback_in(found[0][1]) if found else ""


def traceback_in(fields: list[Any]) -> str:
    """The traceback of one result as RQ stores it: base64 of compressed text, of which so much is read."""
    packed = dict(zip(fields[::2], fields[1::2], strict=False)).get(b"exc_string", b"")
    if not packed:
        return ""
    try:
        plain = zlib.decompressobj().decompress(b64decode(packed), BYTES_MAX)
    except (binascii.Error, zlib.error) as error:
        return f"(no traceback can be read: {error})"
    return plain.decode(errors="replace")
