"""`oarlock top`: a live look at a running fleet."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType

import click

from oarlock.cli.look.view import Where, looking, view_options
from oarlock.cli.problems import InputProblem
from oarlock.cli.top.once import print_look
from oarlock.cli.top.sources import metrics_addresses, metrics_option, rq_client, which_addresses
from oarlock.cli.watch.fleet_watch import FleetWatch
from oarlock.cli.watch.reader import ShardReader


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
@metrics_option
@view_options
def top(interval_s: float, once: bool, write: bool, metrics_urls: tuple[str, ...], where: Where, output: str) -> None:
    """Look at a running fleet, live: its epoch, the age of its view, workers, turns, API calls and 429s, Redis; and in
    tabs its keys (why, the oldest first), workers, failing and parked keys, namespaces, Redis. ? says what the keys do;
    Enter explains a key. A look takes as long with 100,000 keys as with 1,000.

    \b
    JSON: {shards: [{shard, epoch, phase, intact, paused, registered, idle, memory_bytes, memory_max_bytes, began (turns
    that began in this epoch; null with Redis before 7), server, unread, ingestors (as in `oarlock epoch`), pauses:
    [{scope, since_ms, by, reason}], now_ms}], away: [[shard, why]], queues, resources, keys: [{shard, queue, key,
    state, age_ms, due_in_ms, why, paused (what, by whom and why), paused_ms}], workers: [{shard, worker, supervisor,
    state, queue, key, held_ms, lease_ms, writes, why, up_ms}], trouble: [{shard, queue, key, state (failing | parked),
    failures, crashes, due_in_ms, did, ended_ms}], namespaces: [{namespace, keys, share, seen, queue, because (kinds of
    triggers, with their events)}], active, sampled, processes, api: [{process, calls, throttled}], at_s}; why as in
    `oarlock explain`, at_s: seconds of a clock that never goes back
    """
    given = metrics_addresses(metrics_urls)
    once = once or output == "json"
    if not once and not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise InputProblem("this is no terminal; print one look with --once, or -o json")
    app = None if once else _terminal()
    with looking(where) as views:
        addresses = which_addresses(given, where)
        if app is None:
            readers = [ShardReader(view.client, view.shard) for view in views]
            print_look(FleetWatch(readers, addresses).look(), output)
            return
        from oarlock.cli.top.fleet import Fleet  # noqa: PLC0415  # one look printed explains no key

        app.Top(Fleet(views, rq_client(views), addresses), interval_s, write).run()


def _terminal() -> ModuleType:
    """The module that draws. Raises InputProblem where its library is not installed."""
    try:
        return import_module("oarlock.cli.top.app")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "textual":
            raise
        raise InputProblem("top draws with Textual, which is not installed: pip install 'oarlock[top]'") from None
