"""What the owner in a file would be in the cluster: defaulted and admitted, over the live one where there is one.

The server is asked, by a dry run of the write that `kubectl apply` would make: only it knows its defaults, its webhooks
and its policies, and so whether a template really changes. Where these credentials may not write, or the namespace does
not exist yet, the defaults of the embedded API server are used instead, which are upstream's, and that is said.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from oarlock.cli.plan.cluster_copy import PLANNED
from oarlock.cli.plan.kubectl_patch import kubectl_patch
from oarlock.cli.plan.live import LiveCluster
from oarlock.cli.problems import InputProblem, NotDone
from oarlock.cluster.answer import Answer
from oarlock.cluster.forbidden import missing_permission
from oarlock.cluster.resources import Resource
from oarlock.sandbox.apiserver import defaulting, validation
from oarlock.sandbox.apiserver.errors import ApiError
from oarlock.sandbox.apiserver.kinds.strategies import after_defaults, for_create, for_update
from oarlock.sandbox.apiserver.patches import apply_strategic_patch, schema_of
from oarlock.sandbox.manifests.checks import Item

Obj = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Wanted:
    """``not_asked``: why the server did not say this itself; empty if it did. ``dropped``: fields of the file that it
    left out, because it does not know them.
    """

    obj: Obj
    not_asked: str = ""
    dropped: tuple[str, ...] = field(default=())


def wanted(cluster: LiveCluster, item: Item, where: str, live: Obj | None) -> Wanted:
    """``where``: names the document in messages. Raises InputProblem where the server would refuse the object, NotDone
    where it does not answer.
    """
    kind = item.kind
    resource = Resource(kind.api_version, kind.plural, kind.name, kind.namespaced)
    if live is None:
        patch = item.obj
        answer = cluster.dry_create(resource, item.namespace, item.obj)
        path = resource.collection(item.namespace)
    else:
        patch = kubectl_patch(kind.name, item.obj, live)
        answer = cluster.dry_patch(resource, item.namespace, item.name, patch)
        path = resource.item(item.namespace, item.name)
    if answer.ok:
        found = answer.object()
        return Wanted(found if live is not None else _planned(found), dropped=tuple(_dropped(item.obj, found, "")))
    why = _why_not_asked(answer, path, item)
    if not why:
        raise _refused(answer, item, where)
    return Wanted(_as_embedded(item, patch, live, where), why)


def _why_not_asked(answer: Answer, path: str, item: Item) -> str:
    lacks = missing_permission(answer, path)
    if lacks is not None:
        return f"these credentials may not {lacks.verb} {lacks.resource}"
    details = answer.status.details if answer.status is not None else None
    if answer.code == 404 and details is not None and details.kind == "namespaces":
        return f"the namespace {item.namespace} does not exist yet"
    return ""


def _refused(answer: Answer, item: Item, where: str) -> InputProblem:
    if answer.code < 400 or answer.code >= 500 or answer.code == 429:
        return NotDone(f"{where} ({item.title}): the dry run of the write was not answered: {answer.message}")
    mend = "mend the file"
    if answer.code == 403:
        mend = "a policy or a webhook of the cluster says so: follow it, or ask who keeps it"
    elif "immutable" in answer.message:
        mend = "leave that field as it is, give the object another name, or delete the object first"
    return InputProblem(f"{where} ({item.title}): the API server would refuse it: {answer.message}; {mend}")


def _as_embedded(item: Item, patch: Obj, live: Obj | None, where: str) -> Obj:
    """With the defaults of the embedded API server, after its checks."""
    kind = item.kind
    try:
        if live is None:
            return _planned(defaulting.apply(kind.name, for_create(kind, item.obj)))
        merged = apply_strategic_patch(live, patch, schema_of(kind.name))
        obj = after_defaults(kind, "", defaulting.apply(kind.name, for_update(kind, "", merged, live)), live)
    except ApiError as error:
        raise InputProblem(f"{where} ({item.title}): {error.message}; mend the file") from None
    problems = validation.validate_update(kind.name, obj, live)
    for problem in problems:
        raise InputProblem(f"{where} ({item.title}): {problem.field}: {problem.message}; mend the file")
    changed = obj.get("spec") != live.get("spec")
    meta = {**obj["metadata"], "generation": live["metadata"].get("generation", 0) + changed}
    return {**obj, "metadata": meta}


def _planned(obj: Obj) -> Obj:
    """With a UID that says that it does not exist yet: the one of a dry run is not the one that it will get."""
    meta = {**obj["metadata"], "uid": f"{PLANNED}owner", "generation": 1, "creationTimestamp": None}
    return {**obj, "metadata": meta}


def _dropped(given: Any, found: Any, path: str) -> Iterator[str]:
    """Fields that the server did not take over. A list that it changed is compared by position."""
    if isinstance(given, dict) and isinstance(found, dict):
        for key, value in given.items():
            below = f"{path}.{key}" if path else key
            if key in found:
                yield from _dropped(value, found[key], below)
            elif value not in (None, {}, [], "", False, 0) and below not in ("status", "metadata.creationTimestamp"):
                yield below
    elif isinstance(given, list) and isinstance(found, list) and len(given) == len(found):
        for at, (one, other) in enumerate(zip(given, found, strict=True)):
            yield from _dropped(one, other, f"{path}[{at}]")
