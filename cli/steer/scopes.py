"""What a pause is to be over, as people write it, and whether the Lease has it."""

from __future__ import annotations

import getpass
import re
import time
from collections.abc import Callable, Sequence
from typing import Any

import click

from oarlock.broker.pauses import ALL
from oarlock.broker.redis_broker import RedisBroker
from oarlock.cli.look.keys import AskedKey
from oarlock.cli.look.view import View, Views, controller_option
from oarlock.cli.options.options import Option, namespace_option, together
from oarlock.cli.problems import InputProblem, say
from oarlock.controllers.registry import WATCHED, all_queues, resource_of

KEPT_S, LOOK_S = 15.0, 0.2
"""How long is waited until the Lease has a pause, and how often is looked."""

scope_options = together(
    click.argument("keys", nargs=-1, metavar="[KEY...]"),
    click.option("--all", "every", is_flag=True, help="All that the fleet does."),
    controller_option("Alone: all keys of this controller. With KEY: whose key."),
    namespace_option,
)
"""KEY..., --all, --controller, --namespace."""


REASON_MAX = 200
FOR_MAX_MS = 366 * 86_400_000
_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_SPAN = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?")


class Span(click.ParamType[int]):
    """A duration such as 90s, 10m, 1h30m or 2d, as ms."""

    name = "span"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        found = _SPAN.fullmatch(str(value))
        counts = [int(each or 0) for each in found.groups()] if found else [0]
        ms = sum(count * unit for count, unit in zip(counts, (86_400_000, 3_600_000, 60_000, 1_000), strict=False))
        if not 0 < ms <= FOR_MAX_MS:
            self.fail(f"{value!r} is no duration; write one such as 90s, 10m, 1h30m or 2d, a year at most", param, ctx)
        return ms


def for_option(unset: str, default: str | None = None) -> Option:
    """--for: after how long a pause ends by itself. ``unset``: what holds without."""
    return click.option(
        "--for", "for_ms", type=Span(), default=default, metavar="SPAN", help=f"So long, such as 10m. Default: {unset}"
    )


def _short(context: click.Context, parameter: click.Parameter, value: str) -> str:
    if len(value) > REASON_MAX:
        raise InputProblem(f"--reason has {len(value)} characters; {REASON_MAX} are kept")
    return value


reason_option = click.option("--reason", default="", callback=_short, help="Why, for those who ask.")
not_kept_option = click.option("--not-kept", is_flag=True, help="Also where no ingestor writes it into the Lease.")


def by_option(command: Callable[..., Any]) -> Any:
    """--by: who acts, for the audit stream."""
    return click.option("--by", default=_user, show_default="you", help="Who does this, for `oarlock audit`.")(command)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user may have no name
        return "unknown"


def scopes_of(
    views: Views, keys: Sequence[str], every: bool, controller: str | None, namespace: str | None
) -> list[tuple[str, list[View]]]:
    """The scopes that are named, each with the views of the shards that it concerns. Raises InputProblem."""
    if keys:
        if every:
            raise InputProblem("--all is over every key; leave it or the keys out")
        tasks = [task for key in keys for task in AskedKey.parse(key, controller, namespace).tasks(views)]
        return [(f"key {queue}:{key}", views.having(key)) for queue, key in tasks]
    named = [scope for scope, given in (("--all", every), ("-c", controller), ("-n", namespace is not None)) if given]
    if len(named) > 1:
        raise InputProblem(f"{' and '.join(named)}: a pause is over one of them; call the command once for each")
    if every:
        return [(ALL, list(views))]
    if controller:
        return [(f"queue {controller}", list(views))]
    return [] if namespace is None else [(namespace_scope(namespace), views.having(f"{namespace}/"))]


def words_of(scope: str) -> str:
    """The words by which `oarlock pause` and `resume` are told a scope."""
    kind, _, name = scope.partition(" ")
    if kind == "key":
        queue, _, key = name.partition(":")
        return f"{key} -c {queue}"
    return {"queue": f"-c {name}", "namespace": f"-n {name}"}.get(kind, "--all")


def namespace_scope(namespace: str) -> str:
    """The scope of a namespace. Raises InputProblem for what none can be called: it would hold nothing, and say it did.
    An empty one, of a script's unset variable, must not be as none, with which `resume` ends the fleet's own pause.
    """
    if not _NAMESPACE.fullmatch(namespace):
        raise InputProblem(f"-n {namespace!r}: no namespace is called so; write one name, such as shop")
    return f"namespace {namespace}"


def say_missing(views: Views, view: View, queue: str, key: str) -> None:
    """Say on stderr that there is no such object. It may be made later, so it is no reason to refuse; but a name that
    is mistyped, or one that is meant of another kind, must not look like one that is held.
    """
    resource = resource_of(queue)
    if view.inspector.object(resource, key) is not None:
        return
    each, word = WATCHED[resource], WATCHED[resource].kind.lower()
    several = "/" in key and len({*map(resource_of, all_queues())}) > 1
    another = f"; of another kind it is written as KIND/{key}" if several else ""
    say([f"{views.of_shard(view)}there is no {word} {key} in the cache: see `oarlock get {each.plural}`{another}"])


def broker_of(view: View) -> RedisBroker:
    """The broker of the view's epoch."""
    return RedisBroker(view.client, view.seen.epoch, shard=view.shard)


def is_kept(view: View) -> bool:
    """Whether the Lease comes to have the pauses soon. It waits for that."""
    until_s = time.monotonic() + KEPT_S
    while not view.inspector.pauses_kept():
        if time.monotonic() > until_s:
            return False
        time.sleep(LOOK_S)
    return True
