"""What an error of Redis means for whoever called a step."""

from __future__ import annotations

import re

from redis.exceptions import AskError, NoScriptError, OutOfMemoryError, ReadOnlyError, ResponseError, TryAgainError
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from oarlock.broker.values import BrokerBusy, BrokerFull, BrokerUnreachable, EpochOver

_NOT_NOW = ("CLUSTERDOWN", "MASTERDOWN", "NOREPLICAS", "MISCONF")
"""The server takes nothing, or no writes, for a while: cut off from the others, or out of disk."""
_BUSY = "BUSY Redis is busy"
"""It runs a script of somebody's for too long, and nothing else meanwhile."""
_ELSEWHERE = "Script attempted to"
"""Of a cluster: a script met a key that is not, or not any more, on this node."""


_DAMAGE = re.compile(
    r"WRONGTYPE|NOGROUP|damaged: |attempt to (?:index|call|compare|perform|concatenate|get length)|bad argument #\d"
    r"|(?:hash )?value is not (?:an integer|a valid float)|increment or decrement would overflow"
    r"|min or max is not a float"
    r"|The stream has exhausted the last possible ID|The ID specified in XADD|wrong number of arguments|Number of keys"
)
"""What a script dies of that meets a value which no script wrote. What it says of its own arguments reads otherwise."""


def damaged(error: Exception) -> bool:
    """Whether a step met data that none of ours can have left there: nobody knows what else is wrong then."""
    return isinstance(error, ResponseError) and _DAMAGE.search(str(error)) is not None


def keys_move(error: Exception) -> bool:
    """Whether keys of the shard are on their way to another node, or are there already.

    While a slot moves, some of its keys are here and some there. Such a move may be cancelled, and what has gone does
    not come back: an epoch that has met one is never trusted again.
    """
    return isinstance(error, AskError | TryAgainError) or _ELSEWHERE in str(error)


def told(name: str, error: Exception) -> str:
    """What the server said, with the code that redis-py takes off."""
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
