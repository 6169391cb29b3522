"""What the JSON of several kinds has in common: metadata, times, numbers, owner references, selectors, conditions.

As in Go's decoding, null counts as absent.
"""

from datetime import UTC, datetime
from typing import Annotated, Protocol, TypeVar

import msgspec

from oarlock.controllers.objects.model import Condition, LabelSelector, OwnerRef
from oarlock.controllers.objects.selector import Requirement, label_selector

DELETION_COST_ANNOTATION = "controller.kubernetes.io/pod-deletion-cost"
STRICT_ANNOTATION = "oarlock.io/strict"
TEMPLATE_GENERATION_ANNOTATION = "deprecated.daemonset.template.generation"
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"

Time = Annotated[datetime, msgspec.Meta(tz=True)]
_T = TypeVar("_T")
_INT64_DIGITS_MAX = 19


class WireError(ValueError):
    """The bytes are not the JSON of the kind of object asked for."""


class Owner(msgspec.Struct, rename="camel"):
    """An entry of metadata.ownerReferences."""

    uid: str
    name: str = ""
    kind: str = ""
    api_version: str = ""
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class Annotations(msgspec.Struct):
    """The annotations that are read."""

    cost: str | None = msgspec.field(default=None, name=DELETION_COST_ANNOTATION)
    strict: str | None = msgspec.field(default=None, name=STRICT_ANNOTATION)
    template_generation: str | None = msgspec.field(default=None, name=TEMPLATE_GENERATION_ANNOTATION)


class _Meta(msgspec.Struct, rename="camel"):
    name: str
    namespace: str
    uid: str
    resource_version: str
    generation: int | None = None
    labels: dict[str, str] | None = None
    owner_references: tuple[Owner, ...] | None = None
    creation_timestamp: Time | None = None
    deletion_timestamp: Time | None = None
    finalizers: tuple[str, ...] | None = None


class Meta(_Meta, rename="camel"):
    """The metadata of an object that lives in a namespace."""

    annotations: Annotations | None = None


class AnnotatedMeta(_Meta, rename="camel"):
    """The same with all annotations, where they are copied from object to object."""

    annotations: dict[str, str] | None = None


class HasOwners(Protocol):
    """Metadata with owner references."""

    @property
    def owner_references(self) -> tuple[Owner, ...] | None: ...


class WireCondition(msgspec.Struct, rename="camel"):
    """An entry of status.conditions."""

    type: str
    status: str
    reason: str | None = None
    message: str | None = None
    last_transition_time: Time | None = None


class Expression(msgspec.Struct):
    """A requirement of a selector, on labels or on fields."""

    key: str
    operator: str
    values: tuple[str, ...] | None = None


class Selector(msgspec.Struct, rename="camel"):
    """A label selector."""

    match_labels: dict[str, str] | None = None
    match_expressions: tuple[Expression, ...] | None = None


def decoded(decoder: msgspec.json.Decoder[_T], raw: bytes | msgspec.Raw, what: str) -> _T:
    """Decode, or raise WireError that says `what` the bytes are not."""
    try:
        return decoder.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise WireError(f"not a {what}: {error}") from error


def ms_of(moment: datetime | None) -> int:
    """Unix milliseconds; 0 when absent, which in Go may also be spelled as a date in the year 1."""
    return 0 if moment is None else max(0, round(moment.timestamp() * 1000))


def rfc3339(unix_ms: int) -> str:
    """Whole seconds in UTC, such as 2024-05-01T10:00:00Z; the fraction is cut off."""
    return datetime.fromtimestamp(unix_ms // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_int64(text: str) -> int | None:
    """A decimal integer as Go reads it (strconv.ParseInt, 64 bits). None where Go refuses the text: anything but a sign
    and ASCII digits, or out of range.

    Leading zeros are allowed; blanks and underscores, which int() takes, are not.
    """
    digits = text[1:] if text.startswith(("+", "-")) else text
    if not (digits.isascii() and digits.isdigit()):
        return None
    digits = digits.lstrip("0")
    if len(digits) > _INT64_DIGITS_MAX:  # int() raises ValueError for some thousand digits
        return None
    number = int(digits or "0")
    if text[0] == "-":
        number = -number
    return number if -(2**63) <= number < 2**63 else None


def annotations_of(meta: AnnotatedMeta) -> dict[str, str]:
    """All annotations but the configuration that kubectl applied last, which is as large as the object."""
    annotations = meta.annotations or {}
    annotations.pop(_LAST_APPLIED, None)
    return annotations


def owner_refs(meta: HasOwners) -> tuple[OwnerRef, ...]:
    """The owner references, in their order."""
    return tuple(
        OwnerRef(ref.api_version, ref.kind, ref.name, ref.uid, bool(ref.controller), bool(ref.block_owner_deletion))
        for ref in meta.owner_references or ()
    )


def selector_of(wire: Selector | None) -> LabelSelector | None:
    """The selector with its verdict; None stays None, which differs from an empty one."""
    if wire is None:
        return None
    expressions = tuple(Requirement(e.key, e.operator, e.values or ()) for e in wire.match_expressions or ())
    return label_selector(wire.match_labels, expressions)


def template_of(raw: msgspec.Raw) -> bytes:
    """The JSON of a pod template as it came; of none, that of an empty one."""
    template = bytes(raw)
    return b"{}" if template == b"null" else template


def conditions_of(wire: tuple[WireCondition, ...] | None) -> tuple[Condition, ...]:
    """The conditions, in their order."""
    return tuple(
        Condition(c.type, c.status, c.reason or "", c.message or "", ms_of(c.last_transition_time)) for c in wire or ()
    )
