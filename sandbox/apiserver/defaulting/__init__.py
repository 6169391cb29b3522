"""Defaults by kind, applied to every object before it is validated and stored.

Wiring: `shapes.check_shape(kind, body)` as soon as a body is parsed or patched, before anything looks into it;
then the server's own fields; then `apply(kind, obj)`, which drops nulls (to the API null is absent) and fills in
defaults. What is handed in is never changed; parts that lack nothing are shared with the answer, so applying it
to a stored object gives that very object.

A new kind is an entry in `_DEFAULTS`; kinds without one have no defaults.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import orjson

from oarlock.sandbox.apiserver.defaulting.pod import default_pod
from oarlock.sandbox.apiserver.defaulting.pod_spec import with_defaults
from oarlock.sandbox.apiserver.defaulting.stored_kinds import STORED_DEFAULTS
from oarlock.sandbox.apiserver.defaulting.templates import default_template, within

Obj = dict[str, Any]

# Raw JSON of others, whose nulls mean something to its readers.
_VERBATIM: Final[Mapping[str, str]] = {"ControllerRevision": "data"}
_ZEROS_LEFT_OUT: Final = ("minReadySeconds", "paused")
# Their defaults depend on nothing but their spec.
_OF_SPEC: Final = frozenset({"Pod", "ReplicaSet", "DaemonSet", "Deployment"})


def apply(kind: str, obj: Obj, old: Obj | None = None) -> Obj:
    """The object with its defaults. Its fields must have the right types (`check_shape`).

    `old`: the stored object that `obj` replaces; what the two share has its defaults.
    """
    verbatim = _VERBATIM.get(kind)
    if verbatim is not None and verbatim in obj:
        kept = obj[verbatim]
        obj = apply(kind, {field: value for field, value in obj.items() if field != verbatim}, old)
        return obj if kept is None else {**obj, verbatim: kept}
    changed = obj
    if old is not None:
        changed = {field: value for field, value in obj.items() if value is None or value is not old.get(field)}
    # A null has to stand after a colon or in a list; the check costs a microsecond, a walk twenty.
    text = orjson.dumps(changed)
    if b":null" in text or b"null," in text or b"null]" in text:
        kept_fields = {field: value for field, value in obj.items() if field not in changed}
        obj = {**kept_fields, **drop_nulls(changed)} if kept_fields else drop_nulls(obj)
    default = _DEFAULTS.get(kind)
    if default is None or (old is not None and kind in _OF_SPEC and obj.get("spec") is old.get("spec")):
        return obj
    return default(obj)


def drop_nulls(value: Any) -> Any:
    """`value` without fields that are null; itself if there are none. Elements of lists stay."""
    if isinstance(value, dict):
        changed = {key: drop_nulls(item) for key, item in value.items() if item is not None}
        same = len(changed) == len(value) and all(changed[key] is value[key] for key in changed)
        return value if same else changed
    if isinstance(value, list):
        items = [drop_nulls(item) for item in value]
        return value if all(new is old for new, old in zip(items, value, strict=True)) else items
    return value


def _templated(spec: Obj) -> Obj:
    """The spec of an owner of pods: with a template, and without zeros that upstream's types leave out.

    So a write of such a zero changes nothing, and does not count as another generation.
    """
    left_out = [field for field in _ZEROS_LEFT_OUT if field in spec and not spec[field]]
    if left_out:
        spec = {field: value for field, value in spec.items() if field not in left_out}
    return within(spec, "template", default_template)


def _replicaset(obj: Obj) -> Obj:
    return within(obj, "spec", _replicaset_spec)


def _replicaset_spec(spec: Obj) -> Obj:
    return _templated(with_defaults(spec, {"replicas": 1}))


def _replicationcontroller(obj: Obj) -> Obj:
    """The template's labels serve as selector, and as labels of the controller itself, where it has none."""
    spec = obj.get("spec") or {}
    filled = with_defaults(spec, {"replicas": 1})
    template = spec.get("template")
    if template is not None:
        filled = _templated(filled)
        labels = (template.get("metadata") or {}).get("labels")
        if labels:
            if not filled.get("selector"):
                filled = {**filled, "selector": labels}
            if not obj["metadata"].get("labels"):
                obj = {**obj, "metadata": {**obj["metadata"], "labels": labels}}
    return obj if filled is spec else {**obj, "spec": filled}


def _daemonset(obj: Obj) -> Obj:
    return within(obj, "spec", _daemonset_spec)


def _daemonset_spec(spec: Obj) -> Obj:
    spec = _templated(with_defaults(spec, {"revisionHistoryLimit": 10}))
    return within(spec, "updateStrategy", _daemonset_strategy)


def _daemonset_strategy(strategy: Obj) -> Obj:
    """Default to one node at a time; OnDelete has no numbers."""
    strategy = with_defaults(strategy, {"type": "RollingUpdate"})
    if strategy["type"] != "RollingUpdate":
        return strategy
    return within(strategy, "rollingUpdate", lambda old: with_defaults(old, {"maxUnavailable": 1, "maxSurge": 0}))


def _deployment(obj: Obj) -> Obj:
    return within(obj, "spec", _deployment_spec)


def _deployment_spec(spec: Obj) -> Obj:
    spec = with_defaults(spec, {"replicas": 1, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600})
    return within(_templated(spec), "strategy", _deployment_strategy)


def _deployment_strategy(strategy: Obj) -> Obj:
    """Default to a quarter each way; an empty text is a limit, too, and a bad one."""
    strategy = with_defaults(strategy, {"type": "RollingUpdate"})
    if strategy["type"] != "RollingUpdate":
        return strategy
    limits = strategy.get("rollingUpdate") or {}
    absent = {field: "25%" for field in ("maxUnavailable", "maxSurge") if limits.get(field) is None}
    return {**strategy, "rollingUpdate": {**limits, **absent}} if absent else strategy


def _controllerrevision(obj: Obj) -> Obj:
    return with_defaults(obj, {"revision": 0})


def _node(obj: Obj) -> Obj:
    def status(old: Obj) -> Obj:
        capacity = old.get("capacity")
        return {**old, "allocatable": capacity} if capacity and not old.get("allocatable") else old

    return within(obj, "status", status) if obj.get("status") else obj


def _secret(obj: Obj) -> Obj:
    return with_defaults(obj, {"type": "Opaque"})


_DEFAULTS: Final[Mapping[str, Callable[[Obj], Obj]]] = {
    "Pod": default_pod,
    "ReplicaSet": _replicaset,
    "ReplicationController": _replicationcontroller,
    "DaemonSet": _daemonset,
    "Deployment": _deployment,
    "ControllerRevision": _controllerrevision,
    "Node": _node,
    "Secret": _secret,
    **STORED_DEFAULTS,
}
