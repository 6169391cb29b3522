"""`oarlock worker`: supervised RQ workers against any Redis and any cluster."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from oarlock.cli.options.process_options import prepare, process_options
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
@process_options
@click.option(
    "--state-dir",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Keep workers.json there: [{role, pid, name}].",
)
def worker(workers: int, state_dir: Path | None, **given: Any) -> int:
    """Run supervised RQ workers: keys are claimed from Redis streams, decisions written to the cluster.

    SIGTERM lets each finish its turn; SIGKILL of any of them loses nothing. They show in `rq info`.
    """
    # RQ and all it brings are loaded for this command only
    from oarlock.workers.supervisor.worker_command import run_fleet  # noqa: PLC0415

    ready = prepare(workers=workers, **given)
    return run_fleet(
        ready.settings,
        ready.workers,
        queues=ready.queues,
        state_dir=state_dir,
        on_change=reporter(),
        listening=ready.listening,
    )


def reporter() -> OnChange | None:
    """Reports each change as a JSON line to the `oarlock up` that started us, on the pipe that it gave us."""
    fd = os.environ.pop("OARLOCK_REPORT_FD", "")
    if not fd:
        return None
    descriptor = int(fd)

    def report(processes: Sequence[Process]) -> None:
        line = json.dumps([process._asdict() for process in processes]) + "\n"
        os.write(descriptor, line.encode())

    return report
