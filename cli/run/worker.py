"""`oarlock worker`: supervised RQ workers against any Redis and any cluster."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

import click

from oarlock.cli import logs
from oarlock.cli.options.metrics_option import metrics_option, open_metrics
from oarlock.cli.options.options import (
    check_kubeconfig,
    check_rq_url,
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
from oarlock.cli.options.shard_options import check_workers, shard_option, shards_option, with_shards
from oarlock.workers.supervisor.process_list import OnChange, Process


@click.command(
    epilog="\b\nExamples:\n  oarlock worker --redis redis://worker:secret@redis:6379/0 --workers 4\n"
    "  OARLOCK_REDIS_URL=... OARLOCK_KUBECONFIG=... oarlock worker\n"
    "\b\nEvery setting can be given as OARLOCK_<NAME>, such as OARLOCK_KUBE_API_QPS=50 or OARLOCK_LEASE_MS=5000."
)
@click.option(
    "--workers",
    type=click.IntRange(1, 256),
    default=os.cpu_count() or 1,
    show_default="cores",
    envvar="OARLOCK_WORKERS",
    help="Worker processes.",
)
@setting_options
@redis_option
@kubeconfig_option
@signing_option
@click.option(
    "--state-dir",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Keep workers.json there: [{role, pid, name}].",
)
@shards_option
@shard_option
@metrics_option
@verbose_option
@log_format_option
def worker(
    workers: int,
    redis_url: str | None,
    kubeconfig: str | None,
    signing_key_file: str | None,
    state_dir: Path | None,
    shards: int | None,
    shard: int | None,
    metrics_bind_address: str,
    verbose: int,
    log_format: str,
) -> int:
    """Run supervised RQ workers: keys are claimed from Redis streams, decisions written to the cluster.

    SIGTERM lets each finish its turn; SIGKILL of any of them loses nothing. They show in `rq info`.
    """
    from oarlock.cli.options.controller_options import served_queues  # noqa: PLC0415
    from oarlock.workers.supervisor.worker_command import run_fleet  # noqa: PLC0415  # RQ and all it brings are loaded for this command only

    source = redis_source(redis_url, None)
    settings = settings_from(source, kubeconfig, signing_key_file, with_shards(shards, shard))
    check_workers(workers, shards, shard)
    chosen = served_queues(settings, workers)
    check_kubeconfig(settings.kubeconfig)
    check_signing_keys(settings)
    open_redis(source, for_data=True).close()
    check_rq_url(settings)
    listening = open_metrics(metrics_bind_address, settings)
    logs.set_up(verbose, log_format)
    return run_fleet(settings, workers, queues=chosen, state_dir=state_dir, on_change=_reporter(), listening=listening)


def _reporter() -> OnChange | None:
    """Where `oarlock up` listens: a JSON line on the pipe it gave us for each change."""
    fd = os.environ.pop("OARLOCK_REPORT_FD", "")
    if not fd:
        return None
    descriptor = int(fd)

    def report(processes: Sequence[Process]) -> None:
        line = json.dumps([process._asdict() for process in processes]) + "\n"
        os.write(descriptor, line.encode())

    return report
