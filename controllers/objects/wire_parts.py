"""What the JSON of several kinds has in common: metadata, times, owner references, selectors, conditions.

As in Go's decoding, null counts as absent.
"""

from datetime import datetime
from typing import Annotated, TypeVar

import msgspec

from oarlock.controllers.objects.model import Condition, LabelSelector, OwnerRef
from oarlock.controllers.objects.selector import Requirement, label_selector
from oarlock.controllers.replicaset import deletion_cost

STRICT_ANNOTATION = "oarlock.io/strict"
TEMPLATE_GENERATION_ANNOTATION = "deprecated.daemonset.template.generation"

Time = Annotated[datetime, msgspec.Meta(tz=True)]
_T = TypeVar("_T")


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

    cost: str | None = msgspec.field(default=None, name=deletion_cost.ANNOTATION)
    strict: str | None = msgspec.field(default=None, name=STRICT_ANNOTATION)
    template_generation: str | None = msgspec.field(default=None, name=TEMPLATE_GENERATION_ANNOTATION)


class Meta(msgspec.Struct, rename="camel"):
    """The metadata of an object that lives in a namespace."""

    name: str
    namespace: str
    uid: str
    resource_version: str
    generation: int | None = None
    labels: dict[str, str] | None = None
    annotations: Annotations | None = None
    owner_references: tuple[Owner, ...] | None = None
    creation_timestamp: Time | None = None
    deletion_timestamp: Time | None = None
    finalizers: tuple[str, ...] | None = None


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


def owner_refs(meta: Meta) -> tuple[OwnerRef, ...]:
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
