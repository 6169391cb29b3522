"""`oarlock worker`: supervised RQ workers against any Redis and any cluster."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

import click

from workers.cli import logs
from workers.cli.options import (
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
from workers.cli.shard_options import check_workers, shard_option, shards_option, with_shards
from workers.process_list import OnChange, Process


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
@click.option("--queues", help="Only these controllers, such as replicaset; separated by commas. Default: all.")
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
@verbose_option
@log_format_option
def worker(
    workers: int,
    queues: str | None,
    redis_url: str | None,
    kubeconfig: str | None,
    signing_key_file: str | None,
    state_dir: Path | None,
    shards: int | None,
    shard: int | None,
    verbose: int,
    log_format: str,
) -> int:
    """Run supervised RQ workers: keys are claimed from Redis streams, decisions written to the cluster.

    SIGTERM lets each finish its turn; SIGKILL of any of them loses nothing. They show in `rq info`.
    """
    from controllers.registry import QUEUES  # noqa: PLC0415
    from workers.fleet import run_fleet  # noqa: PLC0415  # RQ and all it brings are loaded for this command only

    chosen = _queues(queues, QUEUES)
    source = redis_source(redis_url, None)
    settings = settings_from(source, kubeconfig, signing_key_file, with_shards(shards, shard))
    check_workers(workers, shards, shard)
    check_kubeconfig(settings.kubeconfig)
    check_signing_keys(settings)
    open_redis(source).close()
    logs.set_up(verbose, log_format)
    return run_fleet(settings, workers, queues=chosen, state_dir=state_dir, on_change=_reporter())


def _queues(text: str | None, known: Sequence[str]) -> tuple[str, ...]:
    if text is None:
        return tuple(known)
    chosen = tuple(word.strip() for word in text.split(",") if word.strip())
    wrong = [word for word in chosen if word not in known]
    if wrong or not chosen:
        raise click.BadParameter(
            f"{', '.join(wrong) or 'nothing'} is no controller of ours; there are: {', '.join(known)}",
            param_hint="--queues",
        )
    return chosen


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
