"""What all kinds share: scalars, metadata, selectors, conditions."""

from __future__ import annotations

from typing import Annotated

import msgspec

Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
Text = str | None
Number = Int32 | None
IntOrPercent = Number | str
Flag = bool | None
Strings = list[str] | None
StringMap = dict[str, str] | None
Quantities = dict[str, str | int | float] | None


class Shape(msgspec.Struct, rename="camel"):
    """Unknown fields are ignored."""


class Owner(Shape):
    api_version: Text = None
    kind: Text = None
    name: Text = None
    uid: Text = None
    controller: Flag = None
    block_owner_deletion: Flag = None


class Metadata(Shape):
    name: Text = None
    generate_name: Text = None
    namespace: Text = None
    uid: Text = None
    resource_version: Text = None
    generation: int | None = None
    deletion_grace_period_seconds: int | None = None
    creation_timestamp: Text = None
    deletion_timestamp: Text = None
    labels: StringMap = None
    annotations: StringMap = None
    owner_references: list[Owner] | None = None
    finalizers: Strings = None


class Requirement(Shape):
    key: Text = None
    operator: Text = None
    values: Strings = None


class LabelSelector(Shape):
    match_labels: StringMap = None
    match_expressions: list[Requirement] | None = None


class Condition(Shape):
    type: Text = None
    status: Text = None
    reason: Text = None
    message: Text = None
    last_transition_time: Text = None
