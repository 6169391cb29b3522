"""`oarlock operator`: a user's own controllers against any Redis and any cluster, all in one command."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import click

from oarlock.cli.options.operator_option import check_no_threads, know
from oarlock.cli.options.options import check_kubeconfig
from oarlock.cli.options.process_options import Prepared, own_process_options, prepare
from oarlock.cli.options.which_up import found_up
from oarlock.cli.problems import InputProblem, say
from oarlock.cli.run.worker import reporter
from oarlock.cli.tables import show_json
from oarlock.cluster.client import Client
from oarlock.cluster.resources import Resource
from oarlock.controllers.registry import WATCHED
from oarlock.sandbox.manifests.applying import NotApplied
from oarlock.sandbox.manifests.defining import define, not_served
from oarlock.sdk.definitions import Definition
from oarlock.sdk.kinds import BadDefinition
from oarlock.sdk.loading import files_of
from oarlock.sdk.types.crd import crds_of, models_of
from oarlock.workers.process.kinds import cluster_resource

INGESTOR, WORKERS = "ingestor", "workers"


@click.command(
    epilog="\b\nExamples:\n  oarlock operator site.py --workers 8 --redis redis://redis:6379/0 --install-crds\n"
    "  oarlock operator shop.operators.site\n"
    "\b\nStart it as often as you like, anywhere: all that have one Redis and one --fleet-id share the work.\n"
    "Every setting can be given as OARLOCK_<NAME>, such as OARLOCK_KUBE_API_QPS=50."
)
@click.argument("what", metavar="FILE|MODULE", envvar="OARLOCK_OPERATOR")
@click.option(
    "--workers",
    type=click.IntRange(1, 256),
    default=os.cpu_count() or 1,
    show_default="cores",
    envvar="OARLOCK_WORKERS",
    help="Worker processes.",
)
@click.option("--install-crds", is_flag=True, help="First define the kinds of its types in the cluster.")
@click.option("--check", is_flag=True, help="Only load it, print what is in it as JSON, and end.")
@own_process_options
@click.option("--embedded", is_flag=True, envvar="OARLOCK_EMBEDDED", hidden=True, help="Redis 6.2 will do.")
@click.pass_context
def operator(
    context: click.Context,
    /,
    what: str,
    workers: int,
    install_crds: bool,
    check: bool,
    embedded: bool,
    **given: Any,
) -> int:
    """Run the controllers of FILE (site.py), or of the dotted MODULE (shop.site): an ingestor and supervised workers.

    They are a fleet of their own, named after the file (--fleet-id names another), beside others on the same Redis and
    cluster. Without --redis and --kubeconfig it works with the running `oarlock up`. SIGTERM lets each worker finish
    its turn; SIGKILL of any process loses nothing.

    \b
    JSON of --check: {controllers: [{name, style, kind, resource, children, watches}], kinds: [{apiVersion, kind,
    plural, namespaced, own}], files: [...], crds: [...]}
    """
    threads = threading.enumerate()
    definitions = know(context, what)
    try:
        crds = crds_of(models_of(definitions))
    except BadDefinition as error:
        raise InputProblem(f"{what}: {error}") from None
    if check:
        check_no_threads(what, threads)  # what a start refuses: `oarlock dev` ends what runs if the check is passed
        controllers, files = [_told(each) for each in definitions], [str(each) for each in files_of(definitions)]
        show_json({"controllers": controllers, "kinds": _kinds(definitions), "files": files, "crds": crds})
        return 0
    # RQ, aiohttp and all that they bring are loaded for those who run it
    from oarlock.workers.supervisor.ingest_command import run_ingestor  # noqa: PLC0415
    from oarlock.workers.supervisor.shard_processes import run_each  # noqa: PLC0415
    from oarlock.workers.supervisor.worker_command import run_fleet  # noqa: PLC0415

    up = found_up() if given["redis_url"] is None and given["kubeconfig"] is None else None
    ready = prepare(workers=workers, processes=2, **given)
    _make_sure_of_kinds(what, ready, crds, install=install_crds)
    settings = replace(ready.settings, alongside_upstream=True)  # upstream's manager has no controllers of these kinds
    say([f"fleet {settings.fleet_id}: {', '.join(each.name for each in definitions)}; workers: {ready.workers}"])
    report = reporter()

    def live(part: str) -> int:
        if part == INGESTOR:
            small = embedded or up is not None
            return run_ingestor(settings, embedded=small, announce=lambda facts: None, listening=ready.listening[1:])
        return run_fleet(settings, ready.workers, queues=ready.queues, on_change=report, listening=ready.listening[:1])

    return run_each((INGESTOR, WORKERS), live, "part")


def _make_sure_of_kinds(what: str, ready: Prepared, crds: Sequence[dict[str, Any]], *, install: bool) -> None:
    """Define what is to be defined. Raises InputProblem for a kind that the cluster does not serve then."""

    async def look() -> list[Resource]:
        async with Client(check_kubeconfig(ready.settings.kubeconfig), role="operator") as client:
            await define(client, crds if install else ())
            return await not_served(client, [*map(cluster_resource, WATCHED.values())])

    try:
        missing = asyncio.run(look())
    except NotApplied as error:
        raise InputProblem(f"--install-crds: the API server refused {error}") from None
    own = {each["metadata"]["name"] for each in crds}
    others = [each for each in missing if f"{each.plural}.{each.api_version.rpartition('/')[0]}" not in own]
    if others:
        named = ", ".join(f"{each.plural} ({each.api_version} {each.kind})" for each in others)
        raise InputProblem(
            f"{what}: the cluster does not serve {named}: apply what defines it first; where its plural is another one,"
            f' name it as oarlock.Kind("{others[0].api_version}", "{others[0].kind}", plural=...)'
        )
    if missing:
        raise InputProblem(
            f"{what}: the cluster does not serve {', '.join(each.plural for each in missing)}; define them with"
            f" --install-crds, or: oarlock crd {what} | kubectl apply -f -"
        )


def _told(definition: Definition) -> dict[str, Any]:
    return {
        "name": definition.name,
        "style": definition.style,
        "kind": str(definition.kind),
        "resource": definition.kind.resource,
        "children": [str(each) for each in definition.children],
        "watches": [str(each.kind) for each in definition.watches],
    }


def _kinds(definitions: Sequence[Definition]) -> list[dict[str, Any]]:
    """Of all that is watched; ``own``: a controller's objects are of it."""
    own = {each.kind.resource for each in definitions}
    return [
        {
            "apiVersion": each.api_version,
            "kind": each.kind,
            "plural": each.plural,
            "namespaced": each.namespaced,
            "own": name in own,
        }
        for name, each in WATCHED.items()
    ]
