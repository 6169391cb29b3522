"""Which parts a structural schema has, and what makes a schema structural.

Upstream: staging/src/k8s.io/apiextensions-apiserver/pkg/apiserver/schema (validation.go) and
pkg/apis/apiextensions/validation/validation.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from oarlock.sandbox.apiserver.errors import FieldError

Schema = dict[str, Any]

PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"
EMBEDDED: Final = "x-kubernetes-embedded-resource"
INT_OR_STRING: Final = "x-kubernetes-int-or-string"
LIST_TYPE: Final = "x-kubernetes-list-type"
LIST_MAP_KEYS: Final = "x-kubernetes-list-map-keys"
JUNCTORS: Final = ("allOf", "anyOf", "oneOf")
_TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")
_NOT_IN_LOGIC: Final = (
    *("type", "default", "additionalProperties", "nullable", "title", "description"),
    *(PRESERVE, EMBEDDED, INT_OR_STRING, LIST_TYPE, LIST_MAP_KEYS, "x-kubernetes-map-type", "x-kubernetes-validations"),
)
_UNSUPPORTED: Final = ("$ref", "definitions", "dependencies", "id", "patternProperties")
_METADATA_FIELDS: Final = frozenset({"name", "generateName"})
_NO_STRUCTURE: Final = "must be empty to be structural"


def properties(schema: Schema) -> dict[str, Schema]:
    """The fields it names."""
    found: dict[str, Schema] = schema.get("properties") or {}
    return found


def of_others(schema: Schema) -> Schema | None:
    """The schema of fields that are not named; None if there is none."""
    others = schema.get("additionalProperties")
    return others if isinstance(others, dict) else None


def structural_errors(schema: Any, path: str) -> list[FieldError]:
    """Why the whole schema at `path` is not structural; empty if it is."""
    if not isinstance(schema, dict):
        return [FieldError.required(path, "schemas are required")]
    errors = []
    if not schema.get("type"):
        errors.append(FieldError.required(f"{path}.type", "must not be empty at the root"))
    elif schema["type"] != "object":
        errors.append(FieldError.invalid(f"{path}.type", schema["type"], "must be object at the root"))
    metadata = properties(schema).get("metadata") or {}
    if set(properties(metadata)) - _METADATA_FIELDS:
        why = "must not specify anything other than name and generateName, but metadata is implicitly specified"
        errors.append(FieldError.forbidden(f"{path}.properties[metadata]", why))
    return [*errors, *_node_errors(schema, path, "")]


def _node_errors(schema: Any, path: str, within: str) -> Iterator[FieldError]:
    """`within`: of what this is a part, for a type that is missing; empty at the root."""
    if not isinstance(schema, dict):
        yield FieldError.invalid(path, schema, "must be a schema")
        return
    yield from _type_errors(schema, path, within)
    for field in _UNSUPPORTED:
        if schema.get(field):
            yield FieldError.forbidden(f"{path}.{field}", f"{field} is not supported")
    if schema.get("uniqueItems"):
        why = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield FieldError.forbidden(f"{path}.uniqueItems", why)
    others = schema.get("additionalProperties")
    if others is False:
        yield FieldError.forbidden(f"{path}.additionalProperties", "additionalProperties cannot be set to false")
    if properties(schema) and isinstance(others, dict):
        why = "additionalProperties and properties are mutual exclusive"
        yield FieldError.forbidden(f"{path}.additionalProperties", why)
    for name, part in properties(schema).items():
        yield from _node_errors(part, f"{path}.properties[{name}]", "object fields")
    if isinstance(others, dict):
        yield from _node_errors(others, f"{path}.additionalProperties", "object fields")
    if schema.get("items"):
        yield from _node_errors(schema["items"], f"{path}.items", "array items")
    yield from _list_errors(schema, path)
    for junctor, part, where in _logic(schema, path):
        yield from _logic_errors(part, schema, where, junctor)


def _type_errors(schema: Schema, path: str, within: str) -> Iterator[FieldError]:
    type_ = schema.get("type")
    if type_ and type_ not in _TYPES:
        yield FieldError.unsupported(f"{path}.type", type_, _TYPES)
    if within and not type_ and not schema.get(PRESERVE) and not schema.get(INT_OR_STRING):
        yield FieldError.required(f"{path}.type", f"must not be empty for specified {within}")
    if type_ and schema.get(INT_OR_STRING):
        yield FieldError.forbidden(f"{path}.type", f"must be empty if {INT_OR_STRING} is true")
    if schema.get(EMBEDDED) and type_ != "object":
        why = f"must be object if {EMBEDDED} is true"
        yield (
            FieldError.invalid(f"{path}.type", type_ or "", why) if type_ else FieldError.required(f"{path}.type", why)
        )
    if type_ == "array" and not schema.get("items"):
        yield FieldError.required(f"{path}.items", "must be specified")


def _list_errors(schema: Schema, path: str) -> Iterator[FieldError]:
    kind, keys = schema.get(LIST_TYPE), schema.get(LIST_MAP_KEYS)
    if kind is not None and kind not in ("atomic", "set", "map"):
        yield FieldError.unsupported(f"{path}.{LIST_TYPE}", kind, ["atomic", "set", "map"])
    if kind is not None and schema.get("type") != "array":
        yield FieldError.invalid(f"{path}.type", schema.get("type") or "", f"must be array if {LIST_TYPE} is specified")
    if kind == "map" and not keys:
        yield FieldError.required(f"{path}.{LIST_MAP_KEYS}", f"must not be empty if {LIST_TYPE} is map")
    if keys and kind != "map":
        yield FieldError.invalid(f"{path}.{LIST_TYPE}", kind or "", f"must be map if {LIST_MAP_KEYS} is non-empty")
    items = schema.get("items")
    for position, key in enumerate(keys or ()):
        if isinstance(items, dict) and key not in properties(items):
            where = f"{path}.{LIST_MAP_KEYS}[{position}]"
            yield FieldError.invalid(where, key, "entries must all be names of item properties")


def _logic(schema: Schema, path: str) -> Iterator[tuple[str, Any, str]]:
    for junctor in JUNCTORS:
        for position, part in enumerate(schema.get(junctor) or ()):
            yield junctor, part, f"{path}.{junctor}[{position}]"
    if schema.get("not"):
        yield "not", schema["not"], f"{path}.not"


def _logic_errors(part: Any, whole: Schema, path: str, junctor: str) -> Iterator[FieldError]:
    """Logic may restrict values and must not bring structure of its own: every field it names is in `whole`, too."""
    if not isinstance(part, dict):
        yield FieldError.invalid(path, part, "must be a schema")
        return
    for field in _NOT_IN_LOGIC:
        # The types of an int-or-string may be told this way, as generators of definitions do.
        if part.get(field) and not (field == "type" and whole.get(INT_OR_STRING)):
            yield FieldError.forbidden(f"{path}.{field}", _NO_STRUCTURE)
    structure = path.rpartition(f".{junctor}")[0]
    for name, inner in properties(part).items():
        of_whole = properties(whole).get(name)
        here = f"{path}.properties[{name}]"
        if of_whole is None:
            if not whole.get(PRESERVE):
                where = f"{structure}.properties[{name}]"
                yield FieldError.required(where, f"because it is defined in {here}")
            of_whole = {}
        yield from _logic_errors(inner, of_whole, here, "properties")
    if part.get("items"):
        yield from _logic_errors(part["items"], whole.get("items") or {}, f"{path}.items", "items")
    for inner_junctor, inner, where in _logic(part, path):
        yield from _logic_errors(inner, whole, where, inner_junctor)
