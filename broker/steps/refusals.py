"""What an error of Redis means for the caller of a step."""

from __future__ import annotations

import re

from redis.exceptions import AskError, NoScriptError, OutOfMemoryError, ReadOnlyError, ResponseError, TryAgainError
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from oarlock.broker.values.errors import BrokerBusy, BrokerFull, BrokerUnreachable, EpochOver

_NOT_NOW = ("CLUSTERDOWN", "MASTERDOWN", "NOREPLICAS", "MISCONF")
"""For a while the server takes no commands, or no writes: it is cut off from the others, or out of disk."""
_BUSY = "BUSY Redis is busy"
"""It runs some script for too long, and does nothing else meanwhile."""
_ELSEWHERE = "Script attempted to"
"""In a cluster: a script met a key that is not on this node, or no longer."""


_DAMAGE = re.compile(
    r"WRONGTYPE|NOGROUP|damaged: |attempt to (?:index|call|compare|perform|concatenate|get length)|bad argument #\d"
    r"|(?:hash )?value is not (?:an integer|a valid float)|increment or decrement would overflow"
    r"|min or max is not a float"
    r"|The stream has exhausted the last possible ID|The ID specified in XADD|wrong number of arguments|Number of keys"
)
"""The errors of a script that meets a value which no script wrote. Errors about its own arguments read otherwise."""


def damaged(error: Exception) -> bool:
    """Whether a step met data that no script of ours can have written. Then nobody knows what else is wrong."""
    return isinstance(error, ResponseError) and _DAMAGE.search(str(error)) is not None


def keys_move(error: Exception) -> bool:
    """Whether keys of the shard move to another node, or have moved.

    While a slot moves, some of its keys are on one node and some on the other. A move may be cancelled, and keys that
    have gone do not come back. So an epoch that has met a move is never trusted again.
    """
    return isinstance(error, AskError | TryAgainError) or _ELSEWHERE in str(error)


def told(name: str, error: Exception) -> str:
    """The server's message, with the code that redis-py takes off."""
    code = getattr(error, "status_code", None)
    return f"{name}: {code} {error}" if code else f"{name}: {error}"


def meaning(name: str, error: Exception) -> Exception:
    """EpochOver, BrokerFull, BrokerUnreachable (as BrokerBusy, too), or else ``error`` itself. ``name``: the step."""
    text = told(name, error)
    if isinstance(error, RedisConnectionError | RedisTimeoutError):
        return BrokerUnreachable(text)
    if isinstance(error, NoScriptError | ReadOnlyError) or keys_move(error):
        return EpochOver(text)
    # 6.2 wraps what a command says into an error of the script; redis-py knows only the bare words.
    if isinstance(error, OutOfMemoryError) or "-OOM command not allowed" in str(error):
        return BrokerFull(f"{name}: Redis is full: raise its maxmemory")
    if "-READONLY " in str(error):
        return EpochOver(text)
    if isinstance(error, ResponseError) and str(error).startswith(_BUSY):
        return BrokerBusy(text)
    if isinstance(error, ResponseError) and any(word in text for word in _NOT_NOW):
        return BrokerUnreachable(text)
    return error
