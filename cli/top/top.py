"""`oarlock top`: a live look at a running fleet."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import import_module
from types import ModuleType

import click
import redis

from oarlock.broker.connection.redis_url import BadRedisUrl, Kind, parse
from oarlock.cli.look.view import Views, Where, looking, view_options
from oarlock.cli.options.setting_options import settings_in_force
from oarlock.cli.options.which_up import found_up
from oarlock.cli.problems import InputProblem
from oarlock.cli.top.once import print_look
from oarlock.cli.watch.api_calls import metrics_address
from oarlock.cli.watch.fleet_watch import FleetWatch, no_addresses
from oarlock.cli.watch.reader import ShardReader
from oarlock.sandbox.up.state_dir import StateDir

RQ_WITHIN_S = 2.0


@click.command(
    epilog="\b\nExamples:\n  oarlock top\n  oarlock top --write --redis redis://worker:secret@redis:6379/0\n"
    "  oarlock top --metrics http://worker-0:8080 --metrics http://worker-1:8080\n"
    "  oarlock top --once -o json | jq '.namespaces[0]'"
)
@click.option(
    "--interval-s", type=click.FloatRange(0.2, 3_600), default=1.0, show_default=True, help="Seconds between looks."
)
@click.option("--once", is_flag=True, help="Print one look and end, for scripts; so does -o json.")
@click.option("--write", is_flag=True, help="Let upper-case keys change something: R requeues a key.")
@click.option(
    "--metrics",
    "metrics_urls",
    multiple=True,
    metavar="URL",
    help="Where a process serves /metrics, for API calls and 429s; can be repeated. Default: of the `oarlock up`.",
)
@view_options
def top(interval_s: float, once: bool, write: bool, metrics_urls: tuple[str, ...], where: Where, output: str) -> None:
    """Look at a running fleet, live: its epoch, the age of its view, workers, turns, API calls and 429s, Redis; and in
    tabs its keys (why, the oldest first), workers, failing and parked keys, namespaces, Redis. ? says what the keys do;
    Enter explains a key. A look takes as long with 100,000 keys as with 1,000.

    \b
    JSON: {shards: [{shard, epoch, phase, intact, paused, registered, idle, memory_bytes, memory_max_bytes, began (turns
    that began in this epoch; null with Redis before 7), server, unread, ingestors (as in `oarlock epoch`)}], away:
    [[shard, why]], queues, resources, keys: [{shard, queue, key, state, age_ms, due_in_ms, why, paused (what, by whom
    and why), paused_ms}], workers: [{shard, worker, supervisor, state, queue, key, held_ms, lease_ms, writes, why}],
    trouble: [{shard, queue, key, state (failing | parked), failures, crashes, due_in_ms, did, ended_ms}], namespaces:
    [{namespace, keys, share, seen, queue, because (kinds of triggers, with their events)}], active, sampled, processes,
    api: [{process, calls, throttled}], at_s}; why as in `oarlock explain`, at_s: seconds of a clock that never goes
    back
    """
    try:
        given = [metrics_address(url) for url in metrics_urls]
    except ValueError as error:
        raise InputProblem(f"--metrics: {error}") from None
    once = once or output == "json"
    if not once and not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise InputProblem("this is no terminal; print one look with --once, or -o json")
    app = None if once else _terminal()
    with looking(where) as views:
        addresses = _addresses(given, where)
        if app is None:
            readers = [ShardReader(view.client, view.shard) for view in views]
            print_look(FleetWatch(readers, addresses).look(), output)
            return
        from oarlock.cli.top.fleet import Fleet  # noqa: PLC0415  # one look printed explains no key

        app.Top(Fleet(views, _rq_client(views), addresses), interval_s, write).run()


def _terminal() -> ModuleType:
    """The module that draws. Raises InputProblem where its library is not installed."""
    try:
        return import_module("oarlock.cli.top.app")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "textual":
            raise
        raise InputProblem("top draws with Textual, which is not installed: pip install 'oarlock[top]'") from None


def _rq_client(views: Views) -> redis.Redis | None:
    """A client of RQ's keys; None where the fleet's are in a cluster, and nothing names RQ's. Raises InputProblem."""
    url = next(iter(views)).source.url
    settings = replace(settings_in_force(), redis_url=url)
    if not settings.rq_redis_url and parse(url).kind is Kind.CLUSTER:
        return None
    from oarlock.workers.rq.client import open_rq_client  # noqa: PLC0415  # one look printed needs no RQ

    try:
        return open_rq_client(settings, timeout_s=RQ_WITHIN_S)
    except BadRedisUrl as error:
        raise InputProblem(f"OARLOCK_RQ_REDIS_URL: {error}") from None


def _addresses(given: Sequence[str], where: Where) -> Callable[[], Sequence[str]]:
    """Those that --metrics names, else what the `oarlock up` that is looked at says at each look."""
    if given:
        return lambda: given
    if where.redis_url is not None:
        return no_addresses
    state = StateDir(where.state_dir) if where.state_dir is not None else found_up()
    if state is None:
        return no_addresses
    return lambda: [metrics_address(url) for url in state.read_up().get("metrics", {}).values()]
