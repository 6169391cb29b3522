"""What is wrong with a value by its structural schema, in upstream's words.

The checking is done by jsonschema-rs (JSON schema draft 4, of which OpenAPI v3 is a dialect). This module translates
a structural schema into that dialect, and errors into field errors. Upstream:
staging/src/k8s.io/apiextensions-apiserver/pkg/apiserver/validation/validation.go and
k8s.io/kube-openapi/pkg/validation.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from oarlock.sandbox.apiserver.custom.structural import (
    EMBEDDED,
    INT_OR_STRING,
    JUNCTORS,
    LIST_MAP_KEYS,
    LIST_TYPE,
    Schema,
    of_others,
    properties,
)
from oarlock.sandbox.apiserver.errors import ApiError, FieldError

if TYPE_CHECKING:
    from jsonschema_rs import ValidationError, Validator

_KEPT: Final = (
    *("type", "enum", "required", "pattern", "format", "multipleOf", "minimum", "maximum"),
    *("exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength", "minItems", "maxItems"),
    *("minProperties", "maxProperties"),
)
_BASE64: Final = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")
_MAC: Final = re.compile(r"[0-9A-Fa-f]{2}([:-][0-9A-Fa-f]{2}){5}")
_DURATION: Final = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h|d|w)([\d.]+(ns|us|µs|ms|s|m|h|d|w))*|0")
_GO_TYPES: Final[Mapping[type, str]] = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
    type(None): "null",
}


def _is_cidr(text: str) -> bool:
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        return False
    return "/" in text


_OWN_FORMATS: Final[dict[str, Callable[[str], bool]]] = {
    "byte": lambda text: bool(_BASE64.fullmatch(text)),
    "cidr": _is_cidr,
    "duration": lambda text: bool(_DURATION.fullmatch(text)),
    "mac": lambda text: bool(_MAC.fullmatch(text)),
}
_FORMATS: Final = frozenset({*_OWN_FORMATS, "date", "date-time", "email", "hostname", "ipv4", "ipv6", "uri", "uuid"})


class SchemaCheck:
    """The errors of values by one structural schema. Raises ApiError 500 where the library is not installed."""

    __slots__ = ("_lists", "_schema", "_validator")

    def __init__(self, schema: Schema) -> None:
        try:
            from jsonschema_rs import Draft4Validator  # noqa: PLC0415 - an extra that only custom resources need
        except ImportError:
            why = "custom resources need the package jsonschema-rs: pip install 'oarlock[testing]'"
            raise ApiError(500, "InternalError", why) from None
        self._schema = schema
        self._lists = _has_list_types(schema)
        self._validator: Validator = Draft4Validator(_translated(schema), validate_formats=True, formats=_OWN_FORMATS)

    def errors(self, value: Any, path: str = "") -> list[FieldError]:
        """What is wrong with `value`, which stands at `path`."""
        errors = [] if self._validator.is_valid(value) else list(self._told(value, path))
        return [*errors, *_list_errors(value, self._schema, path)] if self._lists else errors

    def _told(self, value: Any, path: str) -> Iterator[FieldError]:
        for error in self._validator.iter_errors(value):
            yield _field_error(error, path)


def _translated(schema: Schema) -> Schema:
    """The schema as draft 4. Annotations go, `nullable` becomes a type."""
    done: Schema = {key: schema[key] for key in _KEPT if schema.get(key) is not None}
    if done.get("format") not in _FORMATS:
        done.pop("format", None)
    if schema.get(INT_OR_STRING):
        done["type"] = ["integer", "string"]
    if schema.get("nullable") and "type" in done:
        types = done["type"]
        done["type"] = [*(types if isinstance(types, list) else [types]), "null"]
    if known := properties(schema):
        done["properties"] = {name: _translated(part) for name, part in known.items()}
    if (others := of_others(schema)) is not None:
        done["additionalProperties"] = _translated(others)
    if isinstance(schema.get("items"), dict):
        done["items"] = _translated(schema["items"])
    for junctor in JUNCTORS:
        if schema.get(junctor):
            done[junctor] = [_translated(part) for part in schema[junctor]]
    if schema.get("not"):
        done["not"] = _translated(schema["not"])
    if schema.get(EMBEDDED):
        done["required"] = sorted({*done.get("required", ()), "apiVersion", "kind"})
    return done


def at(path: str, steps: list[str | int]) -> str:
    """`spec` and ["hosts", 0, "name"]: `spec.hosts[0].name`."""
    for step in steps:
        path += f"[{step}]" if isinstance(step, int) else f".{step}" if path else step
    return path


def _field_error(error: ValidationError, root: str) -> FieldError:
    path = at(root, error.instance_path)
    kind: Any = error.kind
    value: Any = error.instance
    name, limit = kind.name, getattr(kind, "limit", None)
    if name == "required":
        return FieldError.required(at(path, [kind.property]))
    if name == "enum":
        return FieldError.unsupported(path, value, [str(option) for option in kind.options])
    if name == "maxLength":
        return FieldError.too_long(path, limit or 0)
    if name == "maxItems":
        why = f"Too many: {len(value)}: must have at most {limit} items"
        return FieldError(path, "FieldValueTooMany", why)
    if name == "type":
        wanted = [type_ for type_ in kind.types if type_ != "null"]
        shown = _GO_TYPES[type(value)]
        why = f'Invalid value: "{shown}": {path} in body must be of type {",".join(wanted)}: "{shown}"'
        return FieldError(path, "FieldValueTypeInvalid", why)
    return FieldError.invalid(path or "<nil>", value, _reason(name, path, value, kind, limit))


def _reason(name: str, path: str, value: Any, kind: Any, limit: Any) -> str:
    here = f"{path} in body"
    texts: dict[str, Callable[[], str]] = {
        "minimum": lambda: f"{here} should be greater than or equal to {limit}",
        "exclusiveMinimum": lambda: f"{here} should be greater than {limit}",
        "maximum": lambda: f"{here} should be less than or equal to {limit}",
        "exclusiveMaximum": lambda: f"{here} should be less than {limit}",
        "minLength": lambda: f"{here} should be at least {limit} chars long",
        "pattern": lambda: f"{here} should match '{kind.pattern}'",
        "minItems": lambda: f"{here} should have at least {limit} items",
        "minProperties": lambda: f"{here} should have at least {limit} properties",
        "maxProperties": lambda: f"{here} should have at most {limit} properties",
        "multipleOf": lambda: f"{here} should be a multiple of {kind.multiple_of}",
        "format": lambda: f'{here} must be of type {kind.format}: "{value}"',
        "oneOf": lambda: f'"{path}" must validate one and only one schema (oneOf). Found none valid',
        "anyOf": lambda: f'"{path}" must validate at least one schema (anyOf)',
        "not": lambda: f'"{path}" must not validate the schema (not)',
    }
    if type(kind).__name__ == "OneOfMultipleValid":
        return f'"{path}" must validate one and only one schema (oneOf). Found several valid alternatives'
    return texts[name]() if name in texts else f"{here} is not valid ({name})"


# -- lists that are sets or maps: what JSON schema has no words for


def _has_list_types(schema: Schema) -> bool:
    parts = [*properties(schema).values(), of_others(schema), schema.get("items")]
    is_one = schema.get(LIST_TYPE) in ("set", "map")
    return is_one or any(_has_list_types(part) for part in parts if isinstance(part, dict))


def _list_errors(value: Any, schema: Schema, path: str) -> Iterator[FieldError]:
    if isinstance(value, dict):
        for name, inner in value.items():
            part = properties(schema).get(name, of_others(schema))
            if part is not None:
                yield from _list_errors(inner, part, at(path, [name]))
    items = schema.get("items")
    if not isinstance(value, list) or not isinstance(items, dict):
        return
    kind, seen = schema.get(LIST_TYPE), []
    for index, item in enumerate(value):
        if kind in ("set", "map"):
            key = _key(item, schema) if kind == "map" else item
            if key in seen:
                yield FieldError.duplicate(f"{path}[{index}]", key)
            seen.append(key)
        yield from _list_errors(item, items, f"{path}[{index}]")


def _key(item: Any, schema: Schema) -> Any:
    return (
        {key: item[key] for key in schema.get(LIST_MAP_KEYS) or () if key in item} if isinstance(item, dict) else item
    )
