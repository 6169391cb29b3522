"""The JSON schema of a user's type: msgspec's, with pydantic's models inside, and texts from below the fields.

A text below a field (`'''What it is for.'''`) describes it, as ``msgspec.Meta(description=...)`` does.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any, get_args, get_origin, get_type_hints

import msgspec

from oarlock.sdk.kinds import BadDefinition
from oarlock.sdk.types import pydantic_models
from oarlock.sdk.types.structural import Schema, structural

if TYPE_CHECKING:
    from oarlock.sdk.objects import Object

_OF_EVERY_OBJECT = ("metadata",)


def fields_of(model: type[Object]) -> tuple[dict[str, Schema], list[str]]:
    """The structural schema of each field of a kind, without the metadata; and which of them are required.

    Raises BadDefinition.
    """
    name = model.__name__
    try:
        whole = msgspec.json.schema(model, schema_hook=pydantic_models.schema_hook)
    except (TypeError, ValueError, NameError) as error:
        raise BadDefinition(f"{name}: {_told(model, set()) or _one_line(error)}") from None
    named: Mapping[str, Schema] = whole["$defs"]
    for cls in _structs(msgspec.inspect.type_info(model)):
        _describe(named.get(_schema_name(cls), {}), get_origin(cls) or cls)
    root = named[whole["$ref"].rpartition("/")[2]]
    fields = {
        field: structural(part, named, name, field)
        for field, part in sorted(root["properties"].items(), key=lambda each: each[0] == "status")
        if field not in _OF_EVERY_OBJECT
    }
    return fields, [field for field in fields if field in root["required"]]


def _told(cls: type, seen: set[type]) -> str:
    """Which field of a class or of those that it holds has no schema, and why; empty if it is none alone."""
    seen.add(cls)
    try:
        hints = get_type_hints(cls, include_extras=True)
    except NameError as error:
        return f"{cls.__name__}: {_one_line(error)}"
    for field in cls.__struct_fields__:  # type: ignore[attr-defined]
        try:
            msgspec.json.schema(hints[field], schema_hook=pydantic_models.schema_hook)
        except (TypeError, ValueError, NameError) as error:
            inner = (_told(each, seen) for each in _classes(hints[field]) if each not in seen)
            return next(filter(None, inner), "") or f"{cls.__name__}.{field}: {_one_line(error)}"
    return ""


def _classes(hint: Any) -> Iterator[type]:
    """The Structs that an annotation names."""
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        yield hint
    for each in get_args(hint):
        yield from _classes(each)


def _one_line(error: Exception) -> str:
    lines = str(error).splitlines()
    first, last = lines[0], lines[-1]
    if first.startswith("Generating JSON schema"):
        return f"{last}; use types that msgspec or pydantic know"
    return first


def _structs(info: Any, seen: set[type] | None = None) -> Iterator[type]:
    """Every Struct that a type holds, itself among them."""
    seen = set() if seen is None else seen
    if isinstance(info, msgspec.inspect.StructType):
        if info.cls in seen:
            return
        seen.add(info.cls)
        yield info.cls
        for field in info.fields:
            yield from _structs(field.type, seen)
        return
    for inner in ("type", "types", "item_type", "item_types", "key_type", "value_type", "fields"):
        parts = getattr(info, inner, ())
        for part in parts if isinstance(parts, tuple) else (parts,):
            yield from _structs(part, seen)


def _schema_name(cls: Any) -> str:
    """What msgspec calls the schema of a Struct: one with type parameters has a schema for each use, `Box_int_`."""
    if not get_args(cls):
        return str(cls.__name__)
    told = ", ".join(each.__name__ if isinstance(each, type) else repr(each) for each in get_args(cls))
    return re.sub(r"[^a-zA-Z0-9._-]", "_", f"{get_origin(cls).__name__}[{told}]")


def _describe(schema: Schema, cls: type) -> None:
    """Add the texts below the fields of a class and of those that it is derived from."""
    names = dict(zip(cls.__struct_fields__, cls.__struct_encode_fields__, strict=True))  # type: ignore[attr-defined]
    for base in cls.__mro__:
        for field, text in _texts(base):
            part = schema.get("properties", {}).get(names.get(field))
            if part is not None:
                part.setdefault("description", text)


def _texts(cls: type) -> Iterator[tuple[str, str]]:
    """(field, the text below it); none where the source is not at hand."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(cls)))
    except (OSError, TypeError, SyntaxError):
        return
    body = tree.body[0].body if isinstance(tree.body[0], ast.ClassDef) else []
    for field, below in pairwise(body):
        if not isinstance(field, ast.AnnAssign) or not isinstance(field.target, ast.Name):
            continue
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant) and isinstance(below.value.value, str):
            yield field.target.id, below.value.value
