"""The shape of a CustomResourceDefinition, down to the last part of its schemas."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from oarlock.sandbox.apiserver.shapes.fields import CONDITIONS, Int32, Strings, kind, many, shape

Number = int | float


class Props(msgspec.Struct):
    """JSONSchemaProps: a structural schema or a part of one (upstream: apiextensions/v1/types_jsonschema.go)."""

    type: str | None = None
    format: str | None = None
    pattern: str | None = None
    title: str | None = None
    description: str | None = None
    properties: dict[str, Props | None] | None = None
    additionalProperties: Props | bool | None = None
    items: Props | None = None
    allOf: list[Props] | None = None
    anyOf: list[Props] | None = None
    oneOf: list[Props] | None = None
    not_: Props | None = msgspec.field(default=None, name="not")
    enum: list[Any] | None = None
    required: Strings | None = None
    minimum: Number | None = None
    maximum: Number | None = None
    multipleOf: Number | None = None
    exclusiveMinimum: bool | None = None
    exclusiveMaximum: bool | None = None
    minLength: int | None = None
    maxLength: int | None = None
    minItems: int | None = None
    maxItems: int | None = None
    minProperties: int | None = None
    maxProperties: int | None = None
    uniqueItems: bool | None = None
    nullable: bool | None = None
    preserve: bool | None = msgspec.field(default=None, name="x-kubernetes-preserve-unknown-fields")
    embedded: bool | None = msgspec.field(default=None, name="x-kubernetes-embedded-resource")
    int_or_string: bool | None = msgspec.field(default=None, name="x-kubernetes-int-or-string")
    list_type: str | None = msgspec.field(default=None, name="x-kubernetes-list-type")
    list_map_keys: Strings | None = msgspec.field(default=None, name="x-kubernetes-list-map-keys")


_NAMES: Final = shape({"plural singular kind listKind": str, "shortNames categories": Strings})
_SCALE: Final = shape({"specReplicasPath statusReplicasPath labelSelectorPath": str})
_VERSION: Final = shape(
    {
        "name deprecationWarning": str,
        "served storage deprecated": bool,
        "schema": shape({"openAPIV3Schema": Props}),
        "subresources": shape({"status": dict[str, Any], "scale": _SCALE}),
        "additionalPrinterColumns": many(shape({"name type format description jsonPath": str, "priority": Int32})),
        "selectableFields": many(shape({"jsonPath": str})),
    }
)

DEFINITION: Final = kind(
    {
        "spec": shape(
            {
                "group scope": str,
                "names": _NAMES,
                "versions": many(_VERSION),
                "conversion": shape({"strategy": str}),
                "preserveUnknownFields": bool,
            }
        ),
        "status": shape({"conditions": CONDITIONS, "acceptedNames": _NAMES, "storedVersions": Strings}),
    }
)
