"""Which fields of an object are cached: those that a controller asks for, or those that its type names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from oarlock.controllers.objects import field_paths
from oarlock.sdk.kinds import BadDefinition
from oarlock.sdk.types.structural import PRESERVE, Schema, part_at

if TYPE_CHECKING:
    from oarlock.sdk.objects import Object

_METADATA = ("metadata.annotations",)
"""Beside the identity, which is always kept."""


def paths_of(model: type[Object]) -> tuple[str, ...]:
    """All that a type names, and so all that its controller can see. Raises BadDefinition."""
    from oarlock.sdk.types.crd import schema_of  # noqa: PLC0415 - it imports definitions, which may check their fields here

    properties = schema_of(model)["properties"]
    own = [path for name in properties if name not in _WITHOUT for path in _leaves(properties[name], name)]
    return (*_METADATA, *own)


_WITHOUT = ("apiVersion", "kind", "metadata")


def _leaves(schema: Schema, path: str) -> Iterator[str]:
    items = schema.get("items")
    if isinstance(items, dict):
        yield from _leaves(items, path)
    elif schema.get("properties") and not schema.get(PRESERVE):
        for name, part in schema["properties"].items():
            yield from _leaves(part, f"{path}.{name}" if "." not in name else f"{path}[{name}]")
    else:
        yield path


def check(fields: Sequence[str], model: type[Object] | None, of: str) -> None:
    """The fields are paths, the type has them, and they leave out nothing that it requires. Raises BadDefinition."""
    for path in fields:
        try:
            field_paths.steps(path)
        except ValueError as error:
            raise BadDefinition(f"{of}: fields: {error}") from None
    if model is None or not fields:
        return
    from oarlock.sdk.types.crd import schema_of  # noqa: PLC0415

    schema = schema_of(model)
    for path in fields:
        if field_paths.steps(path)[0] not in _WITHOUT and part_at(_without_lists(schema), path) is None:
            raise BadDefinition(f"{of}: fields: {model.__name__} has no field {path}")
    for missing in _left_out(schema, field_paths.tree((*field_paths.IDENTITY, "status", *fields)), ""):
        raise BadDefinition(f"{of}: fields leave out {missing}, which {model.__name__} requires; add it to them")


def _without_lists(schema: Schema) -> Schema:
    """A schema in which the items of lists stand where the lists are: paths go through lists by themselves."""
    while isinstance(schema.get("items"), dict):
        schema = schema["items"]
    if "properties" not in schema:
        return schema
    return {**schema, "properties": {name: _without_lists(part) for name, part in schema["properties"].items()}}


def _left_out(schema: Schema, asked: field_paths.Tree | None, path: str) -> Iterator[str]:
    if asked is None:
        return
    schema = _without_lists(schema)
    for name, part in schema.get("properties", {}).items():
        here = f"{path}.{name}" if path else name
        if name in asked:
            yield from _left_out(part, asked[name], here)
        elif name in schema.get("required", ()):
            yield here
