"""The CustomResourceDefinition of a user's type: `oarlock crd FILE` prints it.

Upstream: https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from oarlock.sdk.kinds import BadDefinition
from oarlock.sdk.objects import Object
from oarlock.sdk.types.model_schema import fields_of
from oarlock.sdk.types.structural import INT_OR_STRING, Schema, part_at, without_defaults

if TYPE_CHECKING:
    from oarlock.sdk.definitions import Definition

Json = dict[str, Any]

_COLUMN_TYPES = ("boolean", "integer", "number", "string")
_SELECTABLE_MAX = 8
_STABILITY = {"": 2, "beta": 1, "alpha": 0}


def crd_of(model: type[Object]) -> Json:
    """The definition of one kind, in one version. Raises BadDefinition, which names the type and the field."""
    return crds_of([model])[0]


def crds_of(models: Iterable[type[Object]]) -> list[Json]:
    """The definitions of some kinds. Types of one kind are its versions; the most stable is stored.

    Raises BadDefinition.
    """
    by_name: dict[str, list[type[Object]]] = {}
    for model in models:
        if getattr(model, "served", None) is None:
            raise BadDefinition(f'{model.__name__}: put @oarlock.resource("<group>/<version>") above the class')
        by_name.setdefault(f"{model.kind.plural}.{model.kind.group}", []).append(model)
    return [_definition(name, each) for name, each in by_name.items()]


def models_of(definitions: Iterable[Definition]) -> list[type[Object]]:
    """The types whose definitions a file of controllers needs: those of its controllers and those beside them."""
    found: dict[type[Object], None] = {}
    for definition in definitions:
        if definition.model is not None:
            found[definition.model] = None
        module = definition.function.__module__
        for each in vars(sys.modules[module]).values() if module in sys.modules else ():
            is_kind = isinstance(each, type) and issubclass(each, Object) and hasattr(each, "served")
            if is_kind and each.__module__ == module:
                found[each] = None
    return list(found)


def schema_of(model: type[Object]) -> Schema:
    """The structural schema of a whole object. Raises BadDefinition."""
    fields, required = fields_of(model)
    if "status" in required:
        raise BadDefinition(f"{model.__name__}: status needs a default, such as None: a new object has no status yet")
    if "status" in fields:
        fields["status"] = without_defaults(fields["status"])
    whole: Schema = {"description": model.served.description} if model.served.description else {}
    whole |= {"type": "object", **({"required": required} if required else {})}
    every = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"}}
    return {**whole, "properties": {**every, **fields}}


def _definition(name: str, models: list[type[Object]]) -> Json:
    models = sorted(models, key=lambda each: _priority(each.kind.version), reverse=True)
    kind = models[0].kind
    for other in models[1:]:
        if (other.kind.kind, other.kind.namespaced) != (kind.kind, kind.namespaced):
            raise BadDefinition(f"{other.__name__}: the versions of {name} differ in their kind or namespaced=")
        if other.kind.version == kind.version:
            raise BadDefinition(f"{other.__name__}: {name} has its version {kind.version} twice")
    names: Json = {
        "plural": kind.plural,
        "singular": kind.kind.lower(),
        "kind": kind.kind,
        "listKind": f"{kind.kind}List",
    }
    if short := list(dict.fromkeys(each for model in models for each in model.served.short_names)):
        names["shortNames"] = short
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": name},
        "spec": {
            "group": kind.group,
            "names": names,
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "versions": [_version(model, stored=model is models[0]) for model in models],
        },
    }


def _priority(version: str) -> tuple[int, int, int]:
    """v2 before v1 before v1beta2 before v1alpha1, as apimachinery has it."""
    found = re.fullmatch(r"v(\d+)(?:(alpha|beta)(\d+))?", version)
    return (_STABILITY[found[2] or ""], int(found[1]), int(found[3] or 0)) if found else (-1, 0, 0)


def _version(model: type[Object], *, stored: bool) -> Json:
    schema = schema_of(model)
    served = model.served
    version: Json = {
        "name": model.kind.version,
        "served": True,
        "storage": stored,
        "schema": {"openAPIV3Schema": schema},
    }
    subresources: Json = {"status": {}} if "status" in schema["properties"] else {}
    if served.scale is not None:
        subresources["scale"] = _scale(model, schema)
    if subresources:
        version["subresources"] = subresources
    if served.columns:
        version["additionalPrinterColumns"] = list(_columns(model, schema))
    if served.selectable:
        version["selectableFields"] = [{"jsonPath": _selectable(model, schema, path)} for path in served.selectable]
        if len(served.selectable) > _SELECTABLE_MAX:
            raise BadDefinition(
                f"{model.__name__}: more than {_SELECTABLE_MAX} selectable fields; the server takes no more"
            )
    return version


def _columns(model: type[Object], schema: Schema) -> Iterator[Json]:
    """Those that the type asks for, and the age behind them: a list of one's own columns drops it."""
    ages = {"Age": "metadata.creationTimestamp"} if "Age" not in model.served.columns else {}
    for heading, path in {**model.served.columns, **ages}.items():
        if path.startswith("metadata."):
            type_ = "date" if path.endswith("Timestamp") else "string"
        else:
            found = _at(model, schema, path, f"the column {heading!r}")
            type_ = "date" if found.get("format") == "date-time" else found.get("type", "string")
            type_ = type_ if type_ in (*_COLUMN_TYPES, "date") else "string"
        yield {"name": heading, "type": type_, "jsonPath": _json_path(path)}


def _selectable(model: type[Object], schema: Schema, path: str) -> str:
    found = _at(model, schema, path, "selectable")
    if path.startswith("metadata") or found.get("type") not in ("boolean", "integer", "string") or "[" in path:
        why = "of the fields of spec and status, those with a text, a whole number or a boolean are selectable"
        raise BadDefinition(f"{model.__name__}: {path}: {why}")
    return _json_path(path)


def _scale(model: type[Object], schema: Schema) -> Json:
    assert model.served.scale is not None
    replicas, observed, selector = model.served.scale
    for path, root in ((replicas, "spec."), (observed, "status.")):
        if not path.startswith(root) or _at(model, schema, path, "scale").get("type") != "integer":
            raise BadDefinition(f"{model.__name__}: scale: {path!r} has to be a whole number below {root[:-1]}")
    done = {"specReplicasPath": _json_path(replicas), "statusReplicasPath": _json_path(observed)}
    if selector:
        if _at(model, schema, selector, "scale").get("type") != "string":
            raise BadDefinition(f"{model.__name__}: scale: {selector!r} has to be a text, the selector in one line")
        done["labelSelectorPath"] = _json_path(selector)
    return done


def _at(model: type[Object], schema: Schema, path: str, what: str) -> Schema:
    found = part_at(schema, path)
    if found is None:
        raise BadDefinition(f"{model.__name__}: {what}: there is no field {path}")
    return {"type": "string"} if found.get(INT_OR_STRING) else found


def _json_path(path: str) -> str:
    return path if path.startswith(".") else f".{path}"
