"""What `oarlock worker` and `oarlock ingest` share: their options, and what is checked before anything is started."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass, replace
from typing import Any

import click

from oarlock.broker.connection.client import BadRedisUrl
from oarlock.broker.connection.named import resolve_briefly
from oarlock.broker.connection.redis_url import parse
from oarlock.cli import logs
from oarlock.cli.options.operator_option import check_no_threads, dry_run_option, operator_option
from oarlock.cli.options.options import (
    check_kubeconfig,
    check_workers,
    log_format_option,
    shard_option,
    shards_option,
    together,
    verbose_option,
    with_shards,
)
from oarlock.cli.options.redis_options import Source, open_redis, redis_option, redis_source
from oarlock.cli.options.setting_options import (
    as_given,
    given,
    in_words_of_flags,
    setting_options,
    settings_in_force,
)
from oarlock.cli.options.unknown_variables import unknown_variables
from oarlock.cli.options.which_up import up_of
from oarlock.cli.problems import InputProblem, say
from oarlock.workers.metrics.serving import bind_address
from oarlock.workers.process.kinds import enabled_queues, queues_by_worker, useful_workers
from oarlock.workers.process.settings import BadSetting, Settings
from oarlock.workers.process.shards import share
from oarlock.workers.signing.signature import BadKeyFile, load_keyring

own_process_options = together(
    setting_options,
    redis_option,
    click.option(
        "--kubeconfig",
        metavar="FILE",
        envvar="OARLOCK_KUBECONFIG",
        help="Default: in a pod its service account, else $KUBECONFIG, else ~/.kube/config.",
    ),
    click.option(
        "--signing-key-file",
        metavar="FILE",
        envvar="OARLOCK_SIGNING_KEY_FILE",
        help="Sign cached objects, and refuse those without a good signature. One key a line, in base64 or hex, of 32"
        " random bytes.",
    ),
    click.option(
        "--metrics-bind-address",
        metavar="HOST:PORT",
        envvar="OARLOCK_METRICS_BIND_ADDRESS",
        default="0",
        show_default=True,
        help="Serve /metrics, /livez and /readyz there; :PORT: on all addresses, 0: nowhere. A second shard, and the"
        " ingestor of an operator, use the next port.",
    ),
    verbose_option,
    log_format_option,
)
"""The options whose values ``prepare`` takes, of a fleet that is not divided."""
process_options = together(operator_option, dry_run_option, shards_option, shard_option, own_process_options)
"""All of them."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """Whatever a process needs to start. ``workers``: how many of those that were asked for have something to do.
    ``listening``: a socket for the metrics of each shard that it serves.
    """

    settings: Settings
    queues: tuple[str, ...]
    workers: int
    listening: list[socket.socket]


def prepare(
    *,
    redis_url: str | None,
    kubeconfig: str | None,
    signing_key_file: str | None,
    metrics_bind_address: str,
    verbose: int,
    log_format: str,
    shards: int | None = None,
    shard: int | None = None,
    workers: int = 0,
    processes: int = 1,
) -> Prepared:
    """Check everything that a process is given, and set up its log. ``workers``: of an ingestor 0. ``processes``: so
    many of each shard serve metrics.

    Raises InputProblem; nothing was started then.
    """
    resolve_briefly()
    say(unknown_variables())
    environment = with_shards(shards, shard)
    if workers:
        check_workers(workers, shards, shard)
    files: dict[str, Any] = {"signing_key_file": signing_key_file, "kubeconfig": kubeconfig}
    files = {name: file for name, file in files.items() if file}
    settings = replace(settings_in_force(environment), **files)
    queues, useful = _served_queues(settings, workers)
    source = redis_source(redis_url, None)
    settings = replace(settings, redis_url=source.url, kubeconfig=_kubeconfig(settings.kubeconfig, source))
    check_kubeconfig(settings.kubeconfig)
    try:
        if settings.signing_key_file:
            load_keyring(settings.signing_key_file)
    except BadKeyFile as error:
        raise InputProblem(str(error)) from None
    open_redis(source, for_data=True).close()
    if workers:
        _check_rq_url(settings)
    if settings.operator:
        check_no_threads(settings.operator)
    try:
        listening = bind_address.given() or bind_address.listen(
            metrics_bind_address, processes * (1 if settings.shard else settings.shards)
        )
    except bind_address.BadBindAddress as error:
        raise InputProblem(as_given(str(error), "metrics_bind_address")) from None
    if source.found:
        say([f"working with the {source.found}; --redis names another"])
    if useful < workers:
        say([f"{useful} of {workers} workers start: concurrency= of the controllers keeps no more of them busy"])
    logs.set_up(verbose, log_format)
    return Prepared(settings, queues, useful, listening)


def _kubeconfig(given: str, source: Source) -> str:
    """Which is used. With the Redis of an `oarlock up` that was found it has to be that of its cluster: the pods that
    another cluster's fleet wants would be made in this one.

    Raises InputProblem.
    """
    if source.up is None:
        return given
    named = [given] if given else [each for each in os.environ.get("KUBECONFIG", "").split(os.pathsep) if each]
    if not named:
        return str(source.up.kubeconfig)
    its = up_of(named)
    if its is None or its.root != source.up.root:
        raise InputProblem(
            f"{os.pathsep.join(named)} is not of the {source.found}, which was found for want of --redis: give --redis,"
            f" or --kubeconfig {source.up.kubeconfig}"
        )
    return given


def check_values(settings: Settings) -> None:
    """What `worker` and `ingest` refuse of these settings before they look at any file or server.

    Raises InputProblem.
    """
    if not settings.operator:  # only its file tells the names of its controllers
        _served_queues(settings, 0)
    try:
        bind_address.check(settings.metrics_bind_address, 1 if settings.shard else settings.shards)
    except bind_address.BadBindAddress as error:
        raise InputProblem(as_given(str(error), "metrics_bind_address")) from None
    try:
        if settings.redis_url:
            parse(settings.redis_url)
    except BadRedisUrl as error:
        raise InputProblem(as_given(str(error), "redis_url")) from None
    if settings.rq_redis_url:
        _check_rq_url(settings)


def _served_queues(settings: Settings, workers: int) -> tuple[tuple[str, ...], int]:
    """The queues of the enabled controllers. ``workers``: among how many they are shared out; 0: nobody takes keys.
    And how many of these workers are of use.

    Raises InputProblem, also where a worker would have nothing to do because of a setting.
    """
    try:
        queues = enabled_queues(settings.controllers)
        useful = useful_workers(settings, queues, workers)
        parts = 1 if settings.serves_one else settings.shards
        for part in range(parts if workers else 0):
            queues_by_worker(settings, queues, share(useful, part, parts))
    except BadSetting as error:
        raise InputProblem(in_words_of_flags(str(error), given(click.get_current_context()))) from None
    return queues, useful


def _check_rq_url(settings: Settings) -> None:
    """Whether RQ can keep its keys where the settings say. Raises InputProblem."""
    from oarlock.workers.rq.client import rq_url  # noqa: PLC0415  # RQ is loaded for the worker only

    try:
        rq_url(settings)
    except BadRedisUrl as error:
        raise InputProblem(as_given(str(error), "rq_redis_url")) from None
