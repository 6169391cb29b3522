"""`oarlock ingest`: an ingestor against any Redis and any cluster."""

from __future__ import annotations

from dataclasses import replace

import click

from oarlock.cli import logs
from oarlock.cli.options.metrics_option import metrics_option, open_metrics
from oarlock.cli.options.options import (
    check_kubeconfig,
    check_signing_keys,
    kubeconfig_option,
    log_format_option,
    open_redis,
    redis_option,
    redis_source,
    settings_from,
    signing_option,
    verbose_option,
)
from oarlock.cli.options.setting_options import setting_options
from oarlock.cli.options.shard_options import shard_option, shards_option, with_shards


@click.command(
    epilog="\b\nExamples:\n  oarlock ingest --redis redis://ingestor:secret@redis:6379/0 --kubeconfig ~/.kube/config\n"
    "\b\nRun two or more, anywhere: they need not know of one another."
)
@setting_options
@redis_option
@kubeconfig_option
@signing_option
@click.option(
    "--alongside-upstream",
    is_flag=True,
    envvar="OARLOCK_ALONGSIDE_UPSTREAM",
    help="Work on although kube-controller-manager is seen at work on the same kinds.",
)
@click.option("--embedded", is_flag=True, envvar="OARLOCK_EMBEDDED", hidden=True, help="Redis 6.2 will do.")
@shards_option
@shard_option
@metrics_option
@verbose_option
@log_format_option
def ingest(
    redis_url: str | None,
    kubeconfig: str | None,
    signing_key_file: str | None,
    alongside_upstream: bool,
    embedded: bool,
    shards: int | None,
    shard: int | None,
    metrics_bind_address: str,
    verbose: int,
    log_format: str,
) -> int:
    """Run an ingestor: it lists and watches the cluster, keeps the cache in Redis and queues the keys that changed."""
    from oarlock.cli.options.controller_options import served_queues  # noqa: PLC0415
    from oarlock.workers.supervisor.ingest_command import run_ingestor  # noqa: PLC0415  # aiohttp and uvloop are loaded for this command only

    source = redis_source(redis_url, None)
    settings = settings_from(source, kubeconfig, signing_key_file, with_shards(shards, shard))
    settings = replace(settings, alongside_upstream=alongside_upstream)
    served_queues(settings)
    check_kubeconfig(settings.kubeconfig)
    check_signing_keys(settings)
    open_redis(source, for_data=True).close()
    listening = open_metrics(metrics_bind_address, settings)
    logs.set_up(verbose, log_format)
    return run_ingestor(settings, embedded=embedded, listening=listening)
