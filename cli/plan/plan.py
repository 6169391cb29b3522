"""`oarlock plan`: what would happen if this file were applied."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Sequence

import click

from oarlock.cli.options.options import check_kubeconfig, output_option
from oarlock.cli.plan.live import LiveCluster
from oarlock.cli.plan.report import plan_of
from oarlock.cli.plan.sentences import lines_of
from oarlock.cli.problems import InputProblem, say
from oarlock.cli.tables import show_json
from oarlock.cluster.access.credentials import ConfigError
from oarlock.controllers.registry import QUEUE_OF_KIND
from oarlock.sandbox.manifests.checks import Item, check
from oarlock.sandbox.manifests.documents import Document, read_all

STEPS = 100


@click.command(
    epilog="\b\nExamples:\n  oarlock plan -f web.yaml\n  oarlock plan -f shop/ -n shop -o json\n"
    "  helm template mine ./chart | oarlock plan -f - --exit-code"
)
@click.option(
    "--filename",
    "-f",
    "filenames",
    multiple=True,
    required=True,
    metavar="FILE|DIR|-",
    help="Owners of pods, YAML or JSON, several documents a file; can be repeated.",
)
@click.option("--namespace", "-n", help="For objects that name none. Default: that of the kubeconfig.")
@click.option(
    "--kubeconfig",
    metavar="FILE",
    envvar="OARLOCK_KUBECONFIG",
    help="Default: in a pod its service account, else $KUBECONFIG, else ~/.kube/config.",
)
@click.option(
    "--steps", type=click.IntRange(1, 100_000), default=STEPS, show_default=True, help="Play so many steps at most."
)
@click.option("--exit-code", "by_exit_code", is_flag=True, help="End with 1 if anything would change.")
@output_option
def plan(
    filenames: tuple[str, ...],
    namespace: str | None,
    kubeconfig: str | None,
    steps: int,
    by_exit_code: bool,
    output: str,
) -> int:
    """Say what a fleet would do if these files were applied: which fields change, whether that means a rollout, and
    step by step which ReplicaSets and pods would be created, scaled, adopted and deleted, and why these.

    Nothing is written. The cluster is read, and the API server is asked by dry runs what it would make of each object
    and of a pod of it. No Redis and no fleet is needed. Each object is planned by itself, against the cluster as it is.

    \b
    Two things are assumed: after each step the pods that it created are ready, and those that it deleted are gone.

    Exit code: 0, with --exit-code 1 if anything would change; 2 for bad input. JSON: docs/plan.md.
    """
    logging.getLogger("oarlock").addHandler(logging.NullHandler())  # the plan itself tells what goes wrong
    config = check_kubeconfig(kubeconfig)
    items = _owners(filenames, namespace or config.namespace)
    try:
        cluster = LiveCluster(config)
    except ConfigError as error:
        raise InputProblem(str(error)) from None
    now_ms = time.time_ns() // 1_000_000
    try:
        plans = [plan_of(cluster, item, where, steps, now_ms) for item, where in items]
    finally:
        cluster.close()
    would_change = any(each["would_change"] for each in plans)
    if output == "json":
        show_json({"would_change": would_change, "plans": plans})
    else:
        for at, each in enumerate(plans):
            click.echo(("\n" if at else "") + "\n".join(lines_of(each)))
    return int(would_change and by_exit_code)


def _owners(filenames: Sequence[str], namespace: str) -> list[tuple[Item, str]]:
    """The owners of pods in the files, each with its place. Raises InputProblem with a line for each problem."""
    documents, problems = read_all(filenames)
    ours = [each for each in documents if _kind_of(each) in (*QUEUE_OF_KIND, "")]
    found: list[tuple[Item, str]] = []
    for document in ours:
        checked = check([document], namespace=namespace)
        problems += checked.problems
        found += [(item, f"{document.source}: {document.name}") for item in checked.items]
    if not problems and not found:
        problems = [f"-f {' '.join(filenames)}: no {', '.join(QUEUE_OF_KIND)} in it; give a file with at least one"]
    if problems:
        raise InputProblem(*problems)
    others = Counter(_kind_of(each) for each in documents if each not in ours)
    if others:
        say([f"left out, as no controller of oarlock looks after them: {_counted(others)}"])
    return found


def _kind_of(document: Document) -> str:
    """Empty for what is no object: that is a problem to be told."""
    kind = document.value.get("kind") if isinstance(document.value, dict) else None
    return kind if isinstance(kind, str) else ""


def _counted(kinds: Counter[str]) -> str:
    return ", ".join(f"{kind} ({count})" if count > 1 else kind for kind, count in sorted(kinds.items()))
