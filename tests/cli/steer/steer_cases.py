"""The commands that steer, called against a Redis, and the worker that sees what becomes of keys."""

from __future__ import annotations

from oarlock.broker.redis_broker import RedisBroker
from oarlock.broker.values.claims import Batch, ClaimLimits, Idle, LoadSpec
from oarlock.broker.values.events import Event
from oarlock.broker.values.turns import Finish, Verdict
from oarlock.sandbox.redis.embedded_redis import EmbeddedRedis
from tests.cli.cli_helpers import call, problems

QUEUE = "replicaset"


def oarlock(server: EmbeddedRedis, *words: str, code: int = 0, stdin: str | None = None) -> str:
    """What a command prints that ends with this exit code."""
    result = call(*words, "--redis", server.url("admin"), stdin=stdin)
    assert result.exit_code == code, result.output
    return result.stdout


def refused(server: EmbeddedRedis, *words: str, user: str = "admin", code: int = 2) -> str:
    """The one line that a command says which ends with this exit code."""
    result = call(words[0], "--redis", server.url(user), *words[1:])
    assert result.exit_code == code, result.output
    (line,) = problems(result)
    return line


def claimed(broker: RedisBroker, holder: str = "w-1") -> list[str] | Idle:
    """The keys that a worker is given now, or why it is given none."""
    reply = broker.claim(holder, "n", [LoadSpec(QUEUE, "replicasets")], ClaimLimits(5_000, 14_000))
    return [each.key for each in reply.claims] if isinstance(reply, Batch) else reply


def cached(broker: RedisBroker, *keys: str, resource: str = "replicasets") -> None:
    """Objects are in the cache, and nothing is queued."""
    broker.stage(resource, f"g-{resource}", [Event(key, "10", f"u-{key}", b"x") for key in keys])
    broker.commit_list(resource, f"g-{resource}", "10")
    while isinstance(found := claimed(broker), list):
        broker.finish([Finish(QUEUE, key, "n", Verdict.OK) for key in found])
