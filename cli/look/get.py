"""`oarlock get`: objects as the fleet's cache has them."""

from __future__ import annotations

import json
import time
from typing import Any

import click
import msgspec

from oarlock.broker.values import Cached
from oarlock.cli.look.keys import key_of
from oarlock.cli.look.view import View, Where, looking, view_options
from oarlock.cli.options.options import namespace_option
from oarlock.cli.problems import InputProblem, NotDone
from oarlock.cli.tables import Row, show, show_json, span
from oarlock.controllers.entries import Watched
from oarlock.controllers.registry import WATCHED


@click.command(
    epilog="\b\nExamples:\n  oarlock get pods -n shop\n  oarlock get rs shop/cart -o json\n"
    "  oarlock get ds -n kube-system\n  oarlock get controllerrevisions\n  oarlock get node node-3\n\n"
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
    JSON: a list of objects, or the one object; each has rv, uid, name and the fields of its class in controllers/
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
        show_json([as_json(cached, obj) for cached, obj in objects])
        return
    now_ms = time.time_ns() // 1_000_000
    rows = [_row(resource, cached, obj, now_ms) for cached, obj in objects]
    show(rows, {heading: heading for row in rows[:1] for heading in row}, output, empty="none")


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
        show_json(as_json(cached, obj))
        return
    for name, value in as_json(cached, obj).items():
        click.echo(f"{name:20} {value if isinstance(value, str) else json.dumps(value)}")


def decoded(resource: Watched[Any], cached: Cached) -> Any:
    """The projection as it is shown: with the template that is kept beside it."""
    obj = resource.decode(cached.blob)
    if not resource.template_apart:
        return obj
    return msgspec.structs.replace(obj, template=cached.apart)  # which is empty if it went meanwhile


def as_json(cached: Cached, obj: Any) -> dict[str, Any]:
    """A cached object as JSON: its revision, and every field of its projection by name."""
    return {"rv": cached.rv, **_plain(obj)}


def _plain(value: Any) -> Any:
    if isinstance(value, msgspec.Struct):
        return {name: _plain(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, bytes):
        return json.loads(value) if value else None
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    return value
