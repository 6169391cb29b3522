"""The status of any owner: its conditions, of which those of other types are never touched, and how it is written.

Upstream: `pkg/controller/replicaset/replica_set_utils.go`.
"""

from collections.abc import Mapping
from typing import Protocol, TypeVar

import msgspec

from oarlock.controllers.objects.model import Condition


class _Typed(Protocol):
    @property
    def type(self) -> str: ...


_Any = TypeVar("_Any", bound=_Typed)
Conditions = tuple[Condition, ...]


def get_condition(conditions: tuple[_Any, ...], type_: str) -> _Any | None:
    """The condition of that type, or None."""
    for condition in conditions:
        if condition.type == type_:
            return condition
    return None


def set_condition(conditions: Conditions, new: Condition) -> Conditions:
    """With `new` at the end in place of one of its type; unchanged if that has the same status and reason."""
    old = get_condition(conditions, new.type)
    if old is not None and old.status == new.status and old.reason == new.reason:
        return conditions
    return (*remove_condition(conditions, new.type), new)


def remove_condition(conditions: tuple[_Any, ...], type_: str) -> tuple[_Any, ...]:
    """Without those of that type."""
    return tuple(condition for condition in conditions if condition.type != type_)


def status_merge_patch(
    uid: str, resource_version: str, fields: Mapping[str, object], annotations: Mapping[str, str] | None = None
) -> bytes:
    """Merge patch for the status subresource that sets `fields`, and removes those that are None.

    It names the UID and the resourceVersion that the status was computed from: the API refuses it with 409 if the
    owner has changed since. `annotations`: to set too; the server persists them only for some kinds.
    """
    metadata: dict[str, object] = {"uid": uid, "resourceVersion": resource_version}
    if annotations:
        metadata["annotations"] = annotations
    return msgspec.json.encode({"metadata": metadata, "status": fields})
