"""What the inspection commands share: a look into the current epoch of one Redis, and keys as people write them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any

import click
import redis
from redis.exceptions import NoPermissionError, ResponseError

from oarlock.broker import epoch
from oarlock.broker.epoch import Seen
from oarlock.broker.inspect import Inspector
from oarlock.broker.values import BrokerUnreachable, EpochOver
from oarlock.cli import logs
from oarlock.cli.options.options import output_option, state_dir_option
from oarlock.cli.options.redis_options import Source, open_redis, redis_option, redis_source
from oarlock.cli.options.shard_options import shards_option
from oarlock.cli.problems import InputProblem, say
from oarlock.controllers.registry import WATCHED, all_queues, resource_of
from oarlock.workers.process.shards import has_key, names, shard_of

verbose_option = click.option(
    "-v",
    "--verbose",
    count=True,
    expose_value=False,
    callback=lambda ctx, parameter, count: logs.set_up(count) if count else None,
    help="Log what is done on stderr; -vv: what libraries do, too.",
)


@dataclass(frozen=True, slots=True)
class View:
    """A client, where it came from, and the epoch that it shows of a shard."""

    client: redis.Redis
    source: Source
    seen: Seen
    inspector: Inspector
    shard: str = "0"


@dataclass(frozen=True, slots=True)
class Views:
    """A look at every shard that has an epoch; ``shards``: how many there are to be. Of one there is one look, and what
    is told says nothing of shards.
    """

    each: Sequence[View]
    shards: int = 1

    def __iter__(self) -> Iterator[View]:
        return iter(self.each)

    def of(self, key: str) -> View:
        """The one whose key this is; of those that every shard has (of nodes) the first. Raises InputProblem."""
        for view in self.each:
            if has_key(key, view.shard, self.shards):
                return view
        shard = shard_of(key.partition("/")[0], self.shards)
        raise InputProblem(f"{key} is of shard {shard}, which has no epoch; is an ingestor of it running?")

    def told(self, view: View, facts: dict[str, Any]) -> dict[str, Any]:
        """``facts`` with the shard they are of."""
        return {"shard": view.shard, **facts} if self.shards > 1 else facts

    def columns(self, columns: Mapping[str, str]) -> Mapping[str, str]:
        """A table's columns, with that of the shard."""
        return {"shard": "SHARD", **columns} if self.shards > 1 else columns

    def held(self) -> list[str]:
        """A line for each shard in which nobody works."""
        reasons = [(view, view.inspector.pause_reason()) for view in self.each]
        return [self.of_shard(view) + held_line(reason) for view, reason in reasons if reason]

    def of_shard(self, view: View) -> str:
        """What a line about one of several begins with."""
        return f"shard {view.shard}: " if self.shards > 1 else ""


@dataclass(frozen=True, slots=True)
class Where:
    """Which Redis, or whose, and how many shards of it: as the options say."""

    redis_url: str | None = None
    state_dir: Path | None = None
    shards: int | None = None


def where_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """--redis, --state-dir and --shards, which the command is given as ``where``."""

    @wraps(command)
    def with_where(redis_url: str | None, state_dir: Path | None, shards: int | None, **given: Any) -> Any:
        return command(where=Where(redis_url, state_dir, shards), **given)

    return redis_option(state_dir_option(shards_option(with_where)))


def view_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Those, -o and -v."""
    return where_options(output_option(verbose_option(command)))


class QueueName(click.ParamType[str]):
    """One of the queues that are registered when the option is read."""

    name = "queue"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return click.Choice(all_queues()).convert(value, param, ctx)

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str | None:
        return click.Choice(all_queues()).get_metavar(param, ctx)


def controller_option(
    text: str = "Only this controller. Default: all there are.",
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """--controller: one queue. ``text``: its help."""
    return click.option("--controller", "-c", type=QueueName(), help=text)


@contextmanager
def looking(where: Where) -> Iterator[Views]:
    """Views for one command; what goes wrong on the way is said in one line. Without --shards there are as many as the
    `oarlock up` has that was found, else one.

    Raises InputProblem: no Redis, no epoch in it, a user without the rights.
    """
    source = redis_source(where.redis_url, where.state_dir)
    count = where.shards or source.shards
    given = source.given_by or "Redis"
    with ExitStack() as opened:
        try:
            views = _views(source, count, opened)
            found = Views([view for view in views if view.seen.epoch], count)
            if not found.each:
                raise InputProblem(
                    f"{given}: the Redis at {source.place} has no oarlock epoch;"
                    " start an ingestor with `oarlock ingest`"
                )
            for view in views:
                if not view.seen.epoch:
                    say([f"shard {view.shard} of {count} has no epoch; is an ingestor of it running?"])
            if source.found:
                options = "--state-dir" if source.given_by else "--redis or --state-dir"
                say([f"asking the {source.found}; {options} names another"])
            yield found
        except BrokerUnreachable as error:
            raise InputProblem(f"{given}: the Redis at {source.place} stopped answering ({error}); ask again") from None
        except EpochOver as error:
            raise InputProblem(
                f"{given}: the data of the Redis at {source.place} were lost just now ({error}); ask again"
            ) from None
        except NoPermissionError as error:
            raise InputProblem(
                f"{given}: this user of the Redis at {source.place} may not do this ({error});"
                " use another, such as admin"
            ) from None
        except ResponseError as error:
            raise InputProblem(f"{given}: the Redis at {source.place} says: {error}") from None


def _views(source: Source, count: int, opened: ExitStack) -> list[View]:
    """Of each shard that can be reached; the others are named. Raises what is wrong with the first where none can."""
    found: list[View] = []
    problems: list[tuple[str, Exception]] = []
    for shard in names(count):
        try:
            found.append(_view(source, shard, opened))
        except (InputProblem, BrokerUnreachable) as problem:
            problems.append((shard, problem))
    if not found:
        raise problems[0][1]
    say([f"shard {shard} of {count}: {problem}" for shard, problem in problems])
    return found


def _view(source: Source, shard: str, opened: ExitStack) -> View:
    client = open_redis(source, shard=shard)
    opened.callback(client.close)
    seen = epoch.current(client, shard)
    return View(client, source, seen, Inspector(client, seen.epoch, shard), shard)


def queues_of(views: Views, controller: str | None) -> list[str]:
    """The queue asked for, or all that are known here or there."""
    if controller:
        return [controller]
    return sorted({*all_queues(), *(queue for view in views for queue in view.inspector.queues())})


def is_namespaced(resource: str) -> bool:
    """Whether the keys of a cached resource are ``namespace/name``; those of nodes are bare names."""
    return WATCHED[resource].namespaced


def key_of(resource: str, text: str, namespace: str | None) -> str:
    """The key that a person means by ``text``. Raises InputProblem."""
    if is_namespaced(resource):
        return full_key(text, namespace)
    if "/" in text or not text:
        raise InputProblem(f"{text!r} is no name of a node: nodes have no namespace; write the bare name")
    return text


def queue_of_key(views: Views, text: str, namespace: str | None) -> str:
    """The queue of the object that a person means by ``text``: the first that has it in the cache, else the first.

    Raises InputProblem.
    """
    for queue in all_queues():
        resource = resource_of(queue)
        if not is_namespaced(resource) and ("/" in text or namespace):
            continue
        key = key_of(resource, text, namespace)
        if views.of(key).inspector.object(resource, key) is not None:
            return queue
    return all_queues()[0]


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
