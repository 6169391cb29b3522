"""Where a look at a fleet comes from: its shards in Redis, RQ's keys, and the /metrics of its processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import click
import redis

from oarlock.broker.connection.redis_url import BadRedisUrl, Kind, parse
from oarlock.cli.look.view import Views, Where
from oarlock.cli.options.setting_options import settings_in_force
from oarlock.cli.options.which_up import found_up
from oarlock.cli.problems import InputProblem
from oarlock.cli.watch.api_calls import metrics_address
from oarlock.cli.watch.fleet_watch import no_addresses
from oarlock.sandbox.up.state_dir import StateDir

metrics_option = click.option(
    "--metrics",
    "metrics_urls",
    multiple=True,
    metavar="URL",
    help="Where a process serves /metrics, for API calls and 429s; can be repeated. Default: of the `oarlock up`.",
)


def metrics_addresses(urls: Sequence[str]) -> list[str]:
    """The values of --metrics. Raises InputProblem."""
    try:
        return [metrics_address(url) for url in urls]
    except ValueError as error:
        raise InputProblem(f"--metrics: {error}") from None


def rq_client(views: Views) -> redis.Redis | None:
    """A client of RQ's keys; None where the fleet's are in a cluster, and nothing names RQ's. Raises InputProblem."""
    url = next(iter(views)).source.url
    settings = replace(settings_in_force(), redis_url=url)
    if not settings.rq_redis_url and parse(url).kind is Kind.CLUSTER:
        return None
    from oarlock.workers.rq.client import open_rq_client  # noqa: PLC0415  # RQ is slow to load

    try:
        return open_rq_client(settings)
    except BadRedisUrl as error:
        raise InputProblem(f"OARLOCK_RQ_REDIS_URL: {error}") from None


def which_addresses(given: Sequence[str], where: Where) -> Callable[[], Sequence[str]]:
    """Those that --metrics names, else what the `oarlock up` that is looked at says at each look."""
    if given:
        return lambda: given
    if where.redis_url is not None:
        return no_addresses
    state = StateDir(where.state_dir) if where.state_dir is not None else found_up()
    if state is None:
        return no_addresses
    return lambda: [metrics_address(url) for url in state.read_up().get("metrics", {}).values()]
