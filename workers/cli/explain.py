"""`oarlock explain`: why has nothing happened to default/web?"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from controllers.model import Pod, controller_of
from controllers.registry import CONTROLLERS, RESOURCES
from workers.cli.get import as_json
from workers.cli.options import namespace_option
from workers.cli.problems import InputProblem
from workers.cli.sentences import Fleet, Owner
from workers.cli.sentences import explain as explain_key
from workers.cli.tables import show_json
from workers.cli.view import View, full_key, looking, view_options

SUSPENDED = "rq:suspended"


@click.command(epilog="\b\nExamples:\n  oarlock explain shop/cart\n  oarlock explain cart -n shop -o json")
@click.argument("key")
@click.option(
    "--controller",
    "-c",
    type=click.Choice(list(CONTROLLERS)),
    default="replicaset",
    show_default=True,
    help="Whose key.",
)
@namespace_option
@view_options
def explain(
    key: str, controller: str, namespace: str | None, redis_url: str | None, state_dir: Path | None, output: str
) -> None:
    """Why has nothing happened to KEY (namespace/name)? All that Redis knows of it, in sentences.

    \b
    JSON: {key, queue, sentences, state, lock, delayed_in_ms, parked_in_ms, failures, crashes, needs,
    unsettled_age_ms, record, phase, epoch, workers, object}; object is null or as `oarlock get` prints it
    """
    wanted = full_key(key, namespace)
    with looking(redis_url, state_dir) as view:
        facts = look(view, controller, wanted)
    if output == "json":
        show_json(facts)
        return
    for sentence in facts["sentences"]:
        click.echo(sentence)


def look(view: View, controller: str, key: str) -> dict[str, Any]:
    """Everything about one key, as `-o json` prints it. Raises BrokerUnreachable and redis's errors."""
    inspector, kind = view.inspector, CONTROLLERS[controller].flavour.kind
    about = inspector.key(controller, key)
    ahead = 0
    if about.state == "queued":
        queued = [line.key for line in inspector.keys_of(controller) if line.state == "queued"]
        ahead = queued.index(key) if key in queued else 0
    fleet = Fleet(
        view.seen.phase,
        view.seen.intact,
        int(view.client.hlen(inspector.keys.of("holders"))),
        _suspended(view),
        ahead,
        inspector.resources(),
    )
    owner, cached = None, inspector.object(CONTROLLERS[controller].resource, key)
    if cached is not None:
        obj = RESOURCES[CONTROLLERS[controller].resource].decode(cached.blob)
        pods = [
            pod
            for pod_key, each in inspector.objects("pods")
            if pod_key.startswith(f"{obj.namespace}/") and _owned(pod := RESOURCES["pods"].decode(each.blob), obj.uid)
        ]
        leaving = sum(1 for pod in pods if pod.deleting_ms)
        finished = sum(1 for pod in pods if not pod.deleting_ms and pod.phase in ("Succeeded", "Failed"))
        owner = Owner(obj, cached.rv, len(pods) - leaving - finished, leaving)
    return {
        **asdict(about),
        "sentences": explain_key(about, owner, fleet, kind),
        "phase": fleet.phase,
        "epoch": view.seen.epoch,
        "workers": fleet.workers,
        "object": as_json(cached, owner.obj) if cached is not None and owner is not None else None,
    }


def sentences_of(redis_url: str, key: str, controller: str = "replicaset") -> list[str]:
    """The sentences alone; what hinders the look instead where there can be none."""
    try:
        with looking(redis_url, None) as view:
            sentences: list[str] = look(view, controller, key)["sentences"]
            return sentences
    except InputProblem as problem:
        return list(problem.lines)


def _owned(pod: Pod, uid: str) -> bool:
    ref = controller_of(pod)
    return ref is not None and ref.uid == uid


def _suspended(view: View) -> bool:
    return bool(view.client.exists(SUSPENDED))
