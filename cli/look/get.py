"""`oarlock get`: objects as the fleet's cache has them."""

from __future__ import annotations

import json
import time
from typing import Any

import click

from oarlock.broker.values.objects import Cached
from oarlock.cli.look.keys import key_of
from oarlock.cli.look.objects import as_json, decoded, misfit_of
from oarlock.cli.look.view import View, Where, looking, view_options
from oarlock.cli.options.options import namespace_option
from oarlock.cli.problems import InputProblem, NotDone
from oarlock.cli.tables import Row, show, show_json, span
from oarlock.controllers.entries import Watched
from oarlock.controllers.objects.whole import Whole
from oarlock.controllers.registry import WATCHED

MISFIT = "DOES NOT FIT"
"""The heading over why an object does not fit its type; there is no such column where all fit."""


@click.command(
    epilog="\b\nExamples:\n  oarlock get pods -n shop\n  oarlock get rs shop/cart -o json\n"
    "  oarlock get ds -n kube-system\n  oarlock get controllerrevisions\n  oarlock get node node-3\n"
    "  oarlock get websites --operator website.py\n\n"
    "What is shown is what the workers decide on: only the fields they read."
)
@click.argument("kind")
@click.argument("name", required=False)
@namespace_option
@view_options
def get(kind: str, name: str | None, namespace: str | None, where: Where, output: str) -> None:
    """Objects of KIND from the cache, all or the one named NS/NAME (a node: NAME). KIND is a word that kubectl takes
    too, such as pods, replicaset or ds, of a kind that the fleet watches.

    \b
    JSON: a list of objects, or the one object; each has rv, uid, name and the fields of its class in controllers/;
    with --operator also misfit: why it does not fit its type. The values of Secrets are never shown
    """
    resource = _resource(kind)
    with looking(where) as views:
        if name is not None:
            key = key_of(resource.resource, name, namespace)
            _one(views.of(key), resource, key, output)
            return
        found = {  # nodes are in every shard's cache, and once in the list
            key: cached
            for view in views
            for key, cached in view.inspector.objects(resource.resource)
            if not namespace or not resource.namespaced or key.startswith(f"{namespace}/")
        }
    objects = [(cached, decoded(resource, cached)) for _, cached in sorted(found.items())]
    if output == "json":
        show_json([as_json(resource, cached, obj) for cached, obj in objects])
        return
    now_ms = time.time_ns() // 1_000_000
    rows = [_row(resource, cached, obj, now_ms) for cached, obj in objects]
    columns = {heading: heading for row in rows[:1] for heading in row}
    misfits = [misfit_of(resource, obj) if isinstance(obj, Whole) else "" for _, obj in objects]
    if any(misfits):
        rows = [{**row, MISFIT: why} for row, why in zip(rows, misfits, strict=True)]
        columns[MISFIT] = MISFIT
    show(rows, columns, output, empty="none")


def _row(resource: Watched[Any], cached: Cached, obj: Any, now_ms: int) -> Row:
    """One object: heading -> cell."""
    place = {"NAMESPACE": obj.namespace} if resource.namespaced else {}
    cells = {heading: cell(obj) for heading, cell in resource.columns.items()}
    age = {"AGE": span(now_ms - obj.created_ms)} if hasattr(obj, "created_ms") else {}
    return {**place, "NAME": obj.name, **cells, **age, "RV": cached.rv}


def _resource(kind: str) -> Watched[Any]:
    for resource in WATCHED.values():
        if resource.is_called(kind.lower()):
            return resource
    raise InputProblem(f"KIND {kind!r} is not in the cache; there are: {', '.join(WATCHED)}")


def _one(view: View, resource: Watched[Any], key: str, output: str) -> None:
    cached = view.inspector.object(resource.resource, key)
    if cached is None:
        at = next((each for each in view.inspector.resources() if each.resource == resource.resource), None)
        far = (
            f"the cache is at revision {at.rv}, {span(at.age_ms)} old"
            if at
            else f"no {resource.resource} were listed yet"
        )
        raise NotDone(f"{resource.kind} {key} is not in the cache ({far})")
    obj = decoded(resource, cached)
    if output == "json":
        show_json(as_json(resource, cached, obj))
        return
    for name, value in as_json(resource, cached, obj).items():
        click.echo(f"{name:20} {value if isinstance(value, str) else json.dumps(value)}")
