"""What the inspection commands share: the options, and a view of each shard's current epoch."""

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
from oarlock.broker.looks.inspect import Inspector
from oarlock.broker.pauses import Pause
from oarlock.broker.values.errors import BrokerUnreachable, EpochOver
from oarlock.cli import logs
from oarlock.cli.options.operator_option import check_fleet_has_file, dry_run_option, fleet_option, operator_option
from oarlock.cli.options.options import Option, output_option, shards_option, state_dir_option, together
from oarlock.cli.options.redis_options import Source, open_redis, redis_option, redis_source
from oarlock.cli.options.setting_options import settings_in_force
from oarlock.cli.problems import InputProblem, say
from oarlock.cli.tables import a_second, span
from oarlock.controllers.registry import all_queues
from oarlock.workers.process.log_line import printable
from oarlock.workers.process.shards import has_key, names, shard_of

verbose_option = click.option(
    "-v",
    "--verbose",
    count=True,
    expose_value=False,
    callback=lambda ctx, parameter, count: logs.set_up(count) if count else None,
    help="Log on stderr; -vv: also what libraries log.",
)


@dataclass(frozen=True, slots=True)
class View:
    """The current epoch of a shard, with the client that reads it. ``source``: where its URL came from."""

    client: redis.Redis
    source: Source
    seen: Seen
    inspector: Inspector
    shard: str = "0"


@dataclass(frozen=True, slots=True)
class Views:
    """A view of every shard that has an epoch. ``shards``: how many there should be. With one shard the output does not
    mention shards.
    """

    each: Sequence[View]
    shards: int = 1

    def __iter__(self) -> Iterator[View]:
        return iter(self.each)

    def of(self, key: str) -> View:
        """The view of the key's shard. Nodes are in every shard: the first. Raises InputProblem."""
        if having := self.having(key):
            return having[0]
        shard = shard_of(key.partition("/")[0], self.shards)
        raise InputProblem(f"{key} is of shard {shard}, which has no epoch; is an ingestor of it running?")

    def having(self, key: str) -> list[View]:
        """The views of all shards that the key belongs to: of one, or for a node of each."""
        return [view for view in self.each if has_key(key, view.shard, self.shards)]

    def told(self, view: View, facts: dict[str, Any]) -> dict[str, Any]:
        """``facts`` with their shard."""
        return {"shard": view.shard, **facts} if self.shards > 1 else facts

    def columns(self, columns: Mapping[str, str]) -> Mapping[str, str]:
        """The columns of a table, with one for the shard."""
        return {"shard": "SHARD", **columns} if self.shards > 1 else columns

    def paused(self) -> list[str]:
        """A line for each paused shard, and for each pause that people asked for."""
        reasons = [(view, view.inspector.pause_reason()) for view in self.each]
        return [self.of_shard(view) + paused_line(reason) for view, reason in reasons if reason] + self.pauses()

    def pauses(self) -> list[str]:
        """A line for each pause, rate and weight that people asked for."""
        return [
            self.of_shard(view) + asked_pause_line(pause, view.inspector.now_ms())
            for view in self.each
            for pause in view.inspector.pauses()
        ]

    def of_shard(self, view: View) -> str:
        """The beginning of a line about this shard."""
        return f"shard {view.shard}: " if self.shards > 1 else ""


@dataclass(frozen=True, slots=True)
class Where:
    """The values of --redis, --state-dir and --shards."""

    redis_url: str | None = None
    state_dir: Path | None = None
    shards: int | None = None


def where_options(command: Callable[..., Any]) -> Any:
    """--redis, --state-dir, --operator, --dry-run and --shards, of which the command is given some as ``where``."""

    @wraps(command)
    def with_where(redis_url: str | None, state_dir: Path | None, shards: int | None, **given: Any) -> Any:
        return command(where=Where(redis_url, state_dir, shards), **given)

    return together(redis_option, state_dir_option, operator_option, dry_run_option, fleet_option, shards_option)(
        with_where
    )


view_options = together(where_options, output_option, verbose_option)
"""Those, -o and -v."""


class QueueName(click.ParamType[str]):
    """One of the queues that are registered when the option is read."""

    name = "queue"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return click.Choice(all_queues()).convert(value, param, ctx)

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str | None:
        return click.Choice(all_queues()).get_metavar(param, ctx)


def controller_option(text: str = "Only this controller. Default: all there are.") -> Option:
    """--controller: one queue. ``text``: its help."""
    return click.option("--controller", "-c", type=QueueName(), help=text)


@contextmanager
def looking(where: Where, *, only_read: bool = False, needs_epoch: bool = True) -> Iterator[Views]:
    """Views for one command. Without --shards there are as many as the `oarlock up` that was found has, else one.

    ``only_read``: of an `oarlock up` as the user that may only read. ``needs_epoch``: False for a command that stays,
    and tells itself where there is none. Raises InputProblem with one line: no Redis, no epoch in it, or a user without
    the rights; also while they are used.
    """
    source = redis_source(where.redis_url, where.state_dir, only_read=only_read)
    settings = settings_in_force()
    check_fleet_has_file(settings)
    alone = settings.operator or settings.dry_run
    tags = settings.tags if alone else names(where.shards or source.shards)
    count = len(tags)
    given = source.given_by or "Redis"
    with ExitStack() as opened:
        try:
            views = _views(source, tags, opened)
            found = Views([view for view in views if view.seen.epoch or not needs_epoch], count)
            if not found.each:
                whose, mend = ("no oarlock epoch", "start an ingestor with `oarlock ingest`")
                if settings.operator:
                    whose, mend = f"no epoch of the fleet {settings.fleet_id}", "is its `oarlock operator` running?"
                elif settings.dry_run:
                    whose = f"no epoch of the dry run {settings.fleet_id}"
                    mend = "is its `oarlock ingest --dry-run` running?"
                raise InputProblem(f"{given}: the Redis at {source.place} has {whose}; {mend}")
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


def _views(source: Source, tags: Sequence[str], opened: ExitStack) -> list[View]:
    """A view of each reachable shard; the others are named on stderr. If none is, raises the first problem."""
    found: list[View] = []
    problems: list[tuple[str, Exception]] = []
    for shard in tags:
        try:
            found.append(_view(source, shard, opened))
        except (InputProblem, BrokerUnreachable) as problem:
            problems.append((shard, problem))
    if not found:
        raise problems[0][1]
    say([f"shard {shard} of {len(tags)}: {problem}" for shard, problem in problems])
    return found


def _view(source: Source, shard: str, opened: ExitStack) -> View:
    client = open_redis(source, shard=shard)
    opened.callback(client.close)
    seen = epoch.current(client, shard)
    return View(client, source, seen, Inspector(client, seen.epoch, shard), shard)


def queues_of(views: Views, controller: str | None) -> list[str]:
    """The given queue, or all that the registry or a shard knows."""
    if controller:
        return [controller]
    return sorted({*all_queues(), *(queue for view in views for queue in view.inspector.queues())})


def paused_line(reason: str) -> str:
    """Says that the fleet is paused, why, and how to resume it."""
    mend = "switch upstream's controllers off (docs/take-over.md), then `oarlock resume`"
    return f"paused, nobody works: {reason}; {mend}"


def asked_pause_line(pause: Pause, now_ms: int) -> str:
    """Says what is paused, bounded by a rate or has a weight, since when, by whom and why."""
    since = f" since {span(max(0, now_ms - pause.since_ms))}" if pause.since_ms else ""
    what, why = f"paused: {pause.scope}", pause.reason
    if pause.until_ms is not None:
        left = span(max(0, pause.until_ms - now_ms))
        what = f"{'parked' if pause.parked else 'paused'}: {pause.scope} for another {left},"
    if pause.rate_per_s is not None:
        what = f"limited: {pause.scope.removeprefix('rate ')} to {a_second(pause.rate_per_s, 'turn')}"
    elif pause.weight is not None:
        what = f"weight {pause.weight:g}: {pause.scope.removeprefix('weight ')}"
    if pause.rate_per_s is not None or pause.weight is not None:
        why = why.partition(" ")[2]
    return printable(f"{what}{since}, by {pause.by or 'somebody'}{why and f': {why}'}")
