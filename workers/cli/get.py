"""`oarlock get`: objects as the fleet's cache has them."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import msgspec

from broker.values import Cached
from controllers.model import Pod, ReplicaSet, controller_of
from controllers.registry import RESOURCES, Resource
from workers.cli.options import namespace_option
from workers.cli.problems import InputProblem, NotDone
from workers.cli.tables import Row, show, show_json, span
from workers.cli.view import View, full_key, looking, view_options

SHORT = {"po": "pods", "rs": "replicasets", "rc": "replicationcontrollers"}


@click.command(
    epilog="\b\nExamples:\n  oarlock get pods -n shop\n  oarlock get rs shop/cart -o json\n\n"
    "What is shown is what the workers decide on: only the fields they read."
)
@click.argument("kind")
@click.argument("name", required=False)
@namespace_option
@view_options
def get(
    kind: str,
    name: str | None,
    namespace: str | None,
    redis_url: str | None,
    state_dir: Path | None,
    output: str,
) -> None:
    """Objects of KIND (pods, replicasets, ...) from the cache, all or the one named NS/NAME.

    \b
    JSON: a list of objects, or the one object; each has rv, uid, namespace, name and the fields of controllers/model.py
    """
    resource = _resource(kind)
    with looking(redis_url, state_dir) as view:
        if name is not None:
            _one(view, resource, full_key(name, namespace), output)
            return
        found = [
            (key, cached)
            for key, cached in dict(view.inspector.objects(resource.plural)).items()
            if not namespace or key.startswith(f"{namespace}/")
        ]
    objects = [(cached, resource.decode(cached.blob)) for _, cached in sorted(found)]
    if output == "json":
        show_json([as_json(cached, obj) for cached, obj in objects])
        return
    now_ms = time.time_ns() // 1_000_000
    show([_row(cached, obj, now_ms) for cached, obj in objects], _COLUMNS[resource.plural], output, empty="none")


def _resource(kind: str) -> Resource[Any]:
    word = kind.lower()
    for resource in RESOURCES.values():
        if SHORT.get(word, word) in (resource.plural, resource.kind.lower()):
            return resource
    raise InputProblem(f"KIND {kind!r} is not in the cache; there are: {', '.join(RESOURCES)}")


def _one(view: View, resource: Resource[Any], key: str, output: str) -> None:
    cached = view.inspector.object(resource.plural, key)
    if cached is None:
        at = next((each for each in view.inspector.resources() if each.resource == resource.plural), None)
        far = (
            f"the cache is at revision {at.rv}, {span(at.age_ms)} old"
            if at
            else f"no {resource.plural} were listed yet"
        )
        raise NotDone(f"{resource.kind} {key} is not in the cache ({far})")
    obj = resource.decode(cached.blob)
    if output == "json":
        show_json(as_json(cached, obj))
        return
    for name, value in as_json(cached, obj).items():
        click.echo(f"{name:20} {value if isinstance(value, str) else json.dumps(value)}")


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


def _row(cached: Cached, obj: Any, now_ms: int) -> Row:
    row: dict[str, Any] = {"namespace": obj.namespace, "name": obj.name, "rv": cached.rv}
    if isinstance(obj, Pod):
        owner = controller_of(obj)
        row |= {
            "phase": "Terminating" if obj.deleting_ms else obj.phase,
            "ready": obj.ready,
            "node": obj.node_name,
            "owner": f"{owner.kind}/{owner.name}" if owner is not None else "",
            "age": span(now_ms - obj.created_ms),
        }
    elif isinstance(obj, ReplicaSet):
        row |= {
            "desired": obj.replicas,
            "current": obj.status.replicas,
            "ready": obj.status.ready,
            "available": obj.status.available,
            "age": span(now_ms - obj.created_ms),
        }
    return row


_POD = {
    **{"namespace": "NAMESPACE", "name": "NAME", "phase": "PHASE", "ready": "READY"},
    **{"node": "NODE", "owner": "OWNER", "age": "AGE", "rv": "RV"},
}
_SET = {
    **{"namespace": "NAMESPACE", "name": "NAME", "desired": "DESIRED", "current": "CURRENT", "ready": "READY"},
    **{"available": "AVAILABLE", "age": "AGE", "rv": "RV"},
}
_COLUMNS: Mapping[str, Mapping[str, str]] = {"pods": _POD, "replicasets": _SET, "replicationcontrollers": _SET}
