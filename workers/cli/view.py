"""What the inspection commands share: a look into the current epoch of one Redis, and keys as people write them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click
import redis
from redis.exceptions import NoPermissionError, ResponseError

from broker import epoch
from broker.epoch import Seen
from broker.inspect import Inspector
from broker.values import BrokerUnreachable, EpochOver
from cluster.resources import NODES
from controllers.registry import QUEUES, resource_of
from workers.cli import logs
from workers.cli.options import (
    Source,
    open_redis,
    output_option,
    redis_option,
    redis_source,
    state_dir_option,
)
from workers.cli.problems import InputProblem

verbose_option = click.option(
    "-v",
    "--verbose",
    count=True,
    expose_value=False,
    callback=lambda ctx, parameter, count: logs.set_up(count) if count else None,
    help="Log what is done on stderr; -vv: what libraries do, too.",
)
F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class View:
    """A client, where it came from, and the epoch it shows."""

    client: redis.Redis
    source: Source
    seen: Seen
    inspector: Inspector


def view_options(command: F) -> F:
    """--redis, --state-dir, -o, -v."""
    for option in (verbose_option, output_option, state_dir_option, redis_option):
        command = option(command)
    return command


controller_option = click.option(
    "--controller", "-c", type=click.Choice(QUEUES), help="Only this controller. Default: all there are."
)


@contextmanager
def looking(redis_url: str | None, state_dir: Path | None) -> Iterator[View]:
    """A view for one command; what goes wrong on the way is said in one line.

    Raises InputProblem: no Redis, no epoch in it, a user without the rights.
    """
    source = redis_source(redis_url, state_dir)
    client = open_redis(source)
    given = source.given_by or "Redis"
    try:
        seen = epoch.current(client)
        if seen.epoch == 0:
            raise InputProblem(
                f"{given}: the Redis at {source.place} has no oarlock epoch; start an ingestor with `oarlock ingest`"
            )
        yield View(client, source, seen, Inspector(client, seen.epoch))
    except BrokerUnreachable as error:
        raise InputProblem(f"{given}: the Redis at {source.place} stopped answering ({error}); ask again") from None
    except EpochOver as error:
        raise InputProblem(
            f"{given}: the data of the Redis at {source.place} were lost just now ({error}); ask again"
        ) from None
    except NoPermissionError as error:
        raise InputProblem(
            f"{given}: this user of the Redis at {source.place} may not do this ({error}); use another, such as admin"
        ) from None
    except ResponseError as error:
        raise InputProblem(f"{given}: the Redis at {source.place} says: {error}") from None
    finally:
        client.close()


def queues_of(view: View, controller: str | None) -> list[str]:
    """The queue asked for, or all that are known here or there."""
    return [controller] if controller else sorted({*QUEUES, *view.inspector.queues()})


def is_namespaced(resource: str) -> bool:
    """Whether the keys of a cached resource are ``namespace/name``; those of nodes are bare names."""
    return resource != NODES.plural


def key_of(resource: str, text: str, namespace: str | None) -> str:
    """The key that a person means by ``text``. Raises InputProblem."""
    if is_namespaced(resource):
        return full_key(text, namespace)
    if "/" in text or not text:
        raise InputProblem(f"{text!r} is no name of a node: nodes have no namespace; write the bare name")
    return text


def queue_of_key(view: View, text: str, namespace: str | None) -> str:
    """The queue of the object that a person means by ``text``: the first that has it in the cache, else the first.

    Raises InputProblem.
    """
    for queue in QUEUES:
        resource = resource_of(queue)
        if not is_namespaced(resource) and ("/" in text or namespace):
            continue
        if view.inspector.object(resource, key_of(resource, text, namespace)) is not None:
            return queue
    return QUEUES[0]


def full_key(text: str, namespace: str | None) -> str:
    """``namespace/name``; a bare name is in --namespace, else in default. Raises InputProblem."""
    parts = text.split("/")
    if len(parts) == 1 and parts[0]:
        return f"{namespace or 'default'}/{text}"
    if len(parts) != 2 or not all(parts):
        raise InputProblem(f"{text!r} is no key; write namespace/name, such as default/web")
    if namespace and parts[0] != namespace:
        raise InputProblem(f"{text!r} is not in --namespace {namespace}; leave one of them out")
    return text


def held_line(reason: str) -> str:
    """For a person: that there is a hold, why, and how it ends."""
    return f"HELD, nobody works: {reason}; switch upstream's controllers off (docs/take-over.md), then `oarlock resume`"


def in_namespace(keys: Sequence[str], namespace: str | None) -> list[str]:
    """Those of the namespace; all without one."""
    return [key for key in keys if not namespace or key.startswith(f"{namespace}/")]
