"""What a server says of itself with INFO, as text: redis-py would take an id of digits for a number."""

from __future__ import annotations

from collections.abc import Mapping

import redis
from redis.connection import AbstractConnection

_NEVER = "-1"
_SAID_BY_NOBODY = ("", "0" * 40)


def facts(text: bytes | str) -> dict[str, str]:
    """The lines ``name:value`` of an INFO answer."""
    lines = (text.decode(errors="replace") if isinstance(text, bytes) else text).splitlines()
    pairs = (line.partition(":") for line in lines if line and not line.startswith("#"))
    return {name: value.strip() for name, colon, value in pairs if colon}


def ask(client: redis.Redis, *sections: str) -> dict[str, str]:
    """INFO of these sections. Raises RedisError."""
    told: dict[str, str] = {}
    for section in sections:
        # A name in bytes has no callback, so the answer comes as it was sent.
        told |= facts(client.execute_command(b"INFO", section))  # type: ignore[no-untyped-call]
    return told


def ask_on(connection: AbstractConnection, *sections: str) -> dict[str, str]:
    """The same over a connection that is being greeted. Raises RedisError."""
    told: dict[str, str] = {}
    for section in sections:
        connection.send_command("INFO", section, check_health=False)  # type: ignore[no-untyped-call]
        told |= facts(connection.read_response())
    return told


LIFE = ("server", "replication")
"""The sections ``life`` and ``is_master`` need."""


def life(told: Mapping[str, str]) -> str:
    """The name of one life of a server's data: its run id, and its last promotion if there was one; "" if unknown.

    The run id ends with the process. But a process that was demoted, took over the data of another master and was
    promoted again keeps it. So the last promotion is part of the name: from which history it came, and at which offset
    (upstream: src/replication.c, shiftReplicationId). The replication id alone will not do: it also changes when the
    first replica comes, and an hour after the last one has gone.
    """
    run = told.get("run_id", "")
    if run in _SAID_BY_NOBODY:
        return ""
    offset = told.get("second_repl_offset", _NEVER)
    return run if offset == _NEVER else f"{run}+{told.get('master_replid2', '')[:12]}.{offset}"


def is_master(told: Mapping[str, str]) -> bool:
    """Whether it takes writes."""
    return told.get("role") == "master"
