"""Reading and changing status.conditions; conditions of other types are never touched.

Upstream: `pkg/controller/replicaset/replica_set_utils.go`.
"""

from oarlock.controllers.objects.model import Condition

Conditions = tuple[Condition, ...]


def get_condition(conditions: Conditions, type_: str) -> Condition | None:
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


def remove_condition(conditions: Conditions, type_: str) -> Conditions:
    """Without those of that type."""
    return tuple(condition for condition in conditions if condition.type != type_)
