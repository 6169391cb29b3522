"""`oarlock ingest`: an ingestor against any Redis and any cluster."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from oarlock.cli.options.process_options import prepare, process_options


@click.command(
    epilog="\b\nExamples:\n  oarlock ingest --redis redis://ingestor:secret@redis:6379/0 --kubeconfig ~/.kube/config\n"
    "\b\nRun two or more, anywhere: they need not know of one another."
)
@process_options
@click.option(
    "--alongside-upstream",
    is_flag=True,
    envvar="OARLOCK_ALONGSIDE_UPSTREAM",
    help="Work on although kube-controller-manager is seen at work on the same kinds.",
)
@click.option("--embedded", is_flag=True, envvar="OARLOCK_EMBEDDED", hidden=True, help="Redis 6.2 will do.")
def ingest(alongside_upstream: bool, embedded: bool, **given: Any) -> int:
    """Run an ingestor: it lists and watches the cluster, keeps the cache in Redis and queues the keys that changed."""
    # aiohttp and uvloop are loaded for this command only
    from oarlock.workers.supervisor.ingest_command import run_ingestor  # noqa: PLC0415

    ready = prepare(**given)
    settings = replace(ready.settings, alongside_upstream=alongside_upstream)
    return run_ingestor(settings, embedded=embedded, listening=ready.listening)
