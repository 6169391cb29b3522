"""From types to the schemas of CustomResourceDefinitions, a line each; and what no schema can say."""

from __future__ import annotations

import datetime
import decimal
import enum
import uuid
from typing import Annotated, Any, Generic, Literal, NamedTuple, TypedDict, TypeVar

import msgspec
import pytest
from msgspec import Meta

import oarlock
from oarlock.sandbox.apiserver.custom.structural import structural_errors
from oarlock.sdk.types.crd import schema_of
from oarlock.sdk.types.structural import PRESERVE

INT = {"type": "integer", "format": "int64"}
TEXT = {"type": "string"}
FREE = {"nullable": True, PRESERVE: True}


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Tls(oarlock.Struct):
    """How it is encrypted."""

    secret_name: str
    port: int = 443


class Http(oarlock.Struct, tag_field="type", tag="http"):
    path: str
    port: int = 80


class Tcp(oarlock.Struct, tag_field="type", tag="tcp"):
    port: int = 81
    name: str = "x"


class OtherPort(oarlock.Struct, tag_field="type", tag="other"):
    port: str = ""


class Untagged(oarlock.Struct):
    path: str = ""


class Chain(oarlock.Struct):
    rest: Chain | None = None


class InRow(oarlock.Struct, array_like=True):
    x: int
    y: str


class Pair(NamedTuple):
    x: int
    y: int


class Typed(TypedDict, total=False):
    x: int


T = TypeVar("T")


class Box(oarlock.Struct, Generic[T]):
    """Of anything."""

    value: T
    """What is in it."""


class Own:
    pass


class Holder(oarlock.Struct):
    own: Own


def spec_of(annotation: Any, default: Any = msgspec.NODEFAULT) -> dict[str, Any]:
    """The schema of spec.it."""
    fields = [("it", annotation) if default is msgspec.NODEFAULT else ("it", annotation, default)]
    spec = msgspec.defstruct("Spec", fields, bases=(oarlock.Struct,))
    model = msgspec.defstruct("Thing", [("spec", spec)], bases=(oarlock.Object,))
    found: dict[str, Any] = schema_of(oarlock.resource("example.com/v1")(model))
    assert structural_errors(found, "schema") == []
    it: dict[str, Any] = found["properties"]["spec"]["properties"]["it"]
    return it


SAID: list[tuple[Any, dict[str, Any]]] = [
    (str, TEXT),
    (int, INT),
    (float, {"type": "number"}),
    (bool, {"type": "boolean"}),
    (bytes, {"type": "string", "format": "byte"}),
    (Any, FREE),
    (msgspec.Raw, FREE),
    (str | None, {**TEXT, "nullable": True}),
    (None | int, {**INT, "nullable": True}),
    (Annotated[int, Meta(ge=1, le=5)], {**INT, "minimum": 1, "maximum": 5}),
    (
        Annotated[int, Meta(gt=1, lt=5)],
        INT | {"minimum": 1, "exclusiveMinimum": True} | {"maximum": 5, "exclusiveMaximum": True},
    ),
    (Annotated[float, Meta(multiple_of=0.5)], {"type": "number", "multipleOf": 0.5}),
    (Annotated[str, Meta(min_length=1, max_length=3)], {**TEXT, "minLength": 1, "maxLength": 3}),
    (Annotated[str, Meta(pattern="^a")], {**TEXT, "pattern": "^a"}),
    (Annotated[int, Meta(description="Of\n  it.")], {**INT, "description": "Of it."}),
    (Annotated[int, Meta(ge=0)] | None, {**INT, "minimum": 0, "nullable": True}),
    (Color, {"type": "string", "enum": ["blue", "red"]}),
    (Color | None, {"type": "string", "enum": ["blue", "red"]}),
    (Level, {"type": "integer", "enum": [1, 2]}),
    (Literal["b", "a"], {"type": "string", "enum": ["a", "b"]}),
    (Literal["a", 1], {"x-kubernetes-int-or-string": True, "enum": [1, "a"]}),
    (Literal["a", None], {"type": "string", "enum": ["a"]}),  # upstream takes no null there, but drops that of a field
    (Literal["a"] | Level, {"x-kubernetes-int-or-string": True, "enum": ["a", 1, 2]}),
    (int | str, {"x-kubernetes-int-or-string": True}),
    (int | str | None, {"x-kubernetes-int-or-string": True, "nullable": True}),
    (
        Annotated[int, Meta(ge=0)] | Annotated[str, Meta(pattern="%$")],
        {"x-kubernetes-int-or-string": True, "minimum": 0, "pattern": "%$"},
    ),
    (int | Literal["auto", "a.b"], {"x-kubernetes-int-or-string": True, "pattern": r"^(?:a\.b|auto)$"}),
    (int | float, {"type": "number"}),
    (list[int], {"type": "array", "items": INT}),
    (list, {"type": "array", "items": FREE}),
    (list[str | None], {"type": "array", "items": {**TEXT, "nullable": True}}),
    (
        Annotated[list[str], Meta(min_length=1, max_length=2)],
        {"type": "array", "items": TEXT, "minItems": 1, "maxItems": 2},
    ),
    (tuple[str, ...], {"type": "array", "items": TEXT}),
    (tuple[int, int], {"type": "array", "items": INT, "minItems": 2, "maxItems": 2}),
    (Pair, {"type": "array", "items": INT, "minItems": 2, "maxItems": 2}),
    (set[str], {"type": "array", "items": TEXT, "x-kubernetes-list-type": "set"}),
    (frozenset[str | None], {"type": "array", "items": {**TEXT, "nullable": True}}),
    (dict[str, int], {"type": "object", "additionalProperties": INT}),
    (dict[str, Any], {"type": "object", PRESERVE: True}),
    (dict, {"type": "object", PRESERVE: True}),
    (dict[str, list[Tls]], {"type": "object", "additionalProperties": {"type": "array", "items": None}}),
    (
        Annotated[dict[str, str], Meta(max_length=2)],
        {"type": "object", "additionalProperties": TEXT, "maxProperties": 2},
    ),
    (Annotated[datetime.datetime, Meta(tz=True)], {**TEXT, "format": "date-time"}),
    (datetime.datetime, TEXT),  # without a zone, which the server would ask for
    (datetime.date, {**TEXT, "format": "date"}),
    (datetime.timedelta, TEXT),  # PT5S here, 5s there
    (uuid.UUID, {**TEXT, "format": "uuid"}),
    (decimal.Decimal, TEXT),
    (
        Tls | None,
        {
            "description": "How it is encrypted.",
            "type": "object",
            "nullable": True,
            "required": ["secretName"],
            "properties": {"secretName": TEXT, "port": {**INT, "default": 443}},
        },
    ),
    (Typed, {"type": "object", "properties": {"x": INT}}),
    (
        list[Box[int]],
        {
            "type": "array",
            "items": {
                "description": "Of anything.",
                "type": "object",
                "required": ["value"],
                "properties": {"value": {"description": "What is in it.", **INT}},
            },
        },
    ),
    (Box[list[Box[str]]] | None, {"nullable": True}),
    (
        Http | Tcp,
        {
            "type": "object",
            "required": ["type"],
            "properties": {
                "type": {"type": "string", "enum": ["http", "tcp"]},
                "path": TEXT,
                "port": INT,  # their defaults differ
                "name": TEXT,
            },
            "anyOf": [
                {"properties": {"type": {"enum": ["http"]}}, "required": ["type", "path"]},
                {"properties": {"type": {"enum": ["tcp"]}}, "required": ["type"]},
            ],
        },
    ),
    (
        Annotated[str, Meta(extra_json_schema={"x-kubernetes-validations": [{"rule": "self != 'a'"}]})],
        {**TEXT, "x-kubernetes-validations": [{"rule": "self != 'a'"}]},
    ),
    (Annotated[bool | int, Meta(extra_json_schema={PRESERVE: True})], {PRESERVE: True}),
    (Annotated[dict, Meta(extra_json_schema={"x-kubernetes-embedded-resource": True})], None),
]


@pytest.mark.parametrize(("annotation", "schema"), SAID, ids=lambda each: str(each)[:60])
def test_a_type_and_its_schema(annotation: Any, schema: dict[str, Any] | None) -> None:
    said = spec_of(annotation)
    if annotation == dict[str, list[Tls]]:
        assert said["additionalProperties"]["items"]["properties"]["secretName"] == TEXT
    elif annotation == Box[list[Box[str]]] | None:
        assert said["properties"]["value"]["items"]["properties"] == {
            "value": {"description": "What is in it.", **TEXT}
        }
    elif schema is None:
        assert said == {"type": "object", PRESERVE: True, "x-kubernetes-embedded-resource": True}
    else:
        assert said == schema


def test_the_order_of_words_is_one() -> None:
    said = spec_of(Annotated[int, Meta(le=5, ge=1, description="It.")], 3)
    assert list(said) == ["description", "type", "format", "default", "minimum", "maximum"]


DEFAULTS: list[tuple[Any, Any, Any]] = [
    (str, "a", "a"),
    (bool, False, False),
    (bytes, b"", None),  # Kubernetes 1.20 refuses it
    (bytes, b"a", "YQ=="),
    (list[str], [], []),
    (dict[str, str], {}, {}),
    (Color, Color.RED, "red"),
    (tuple[int, int], (1, 2), [1, 2]),
    (str | None, None, None),
    (decimal.Decimal, decimal.Decimal("1.5"), "1.5"),
    (Tls | None, msgspec.field(default_factory=lambda: Tls(secret_name="a")), None),  # a function may say another thing
]


@pytest.mark.parametrize(("annotation", "default", "said"), DEFAULTS, ids=[str(each[0]) for each in DEFAULTS])
def test_defaults(annotation: Any, default: Any, said: Any) -> None:
    assert spec_of(annotation, default).get("default") == said


BAD: list[tuple[Any, str]] = [
    (bool | int, "Thing: spec.it (in Spec): boolean or integer: no schema of Kubernetes says that"),
    (list[str] | str, "Thing: spec.it (in Spec): array or string"),
    (float | str, "number or string"),
    (dict[str, bool | str], "Thing: spec.it.* (in Spec): boolean or string"),
    (list[Chain], "Chain holds itself, which no schema of Kubernetes can say"),
    (Http | OtherPort, "Thing: spec.it.port (in OtherPort): it has another type in another part of the union"),
    (tuple[int, str], "Thing: spec.it (in Spec): a list with another type in each place; use a Struct"),
    (InRow, "Thing: spec.it (in Spec): a list with another type in each place; use a Struct"),
    (None, "Thing: spec.it (in Spec): it can be nothing but None"),
    (Annotated[str, Meta(pattern="^(?!kube-)")], "patterns are Go's (RE2), without look-around"),
    (Annotated[str, Meta(pattern=r"(a)\1")], "patterns are Go's"),
    (Own, "Own'> is not supported; use types that msgspec or pydantic know"),
    (list[Holder], "Thing: Holder.own: type <class"),
    (Annotated[int | None, Meta(ge=1)], "Thing: Spec.it: Can only set `ge` on a numeric type"),
]


@pytest.mark.parametrize(("annotation", "told"), BAD, ids=str)
def test_what_no_schema_says(annotation: Any, told: str) -> None:
    with pytest.raises(oarlock.BadDefinition) as caught:
        spec_of(annotation)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_schema_of_a_field_of_pydantic_is_said_as_the_message_tells() -> None:
    pydantic = pytest.importorskip("pydantic")
    free = pydantic.Field(None, json_schema_extra={PRESERVE: True})
    with pytest.raises(oarlock.BadDefinition, match=r"in a pydantic model with Field\(json_schema_extra=\)"):
        spec_of(pydantic.create_model("Odd", it=(float | str, 1)))
    said = spec_of(pydantic.create_model("Odd", it=(float | str, free)))
    assert said["properties"]["it"] == {PRESERVE: True}
