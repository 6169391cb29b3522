"""Whether a node is one that a pod template asks for: its nodeSelector and its required node affinity.

Upstream: `staging/src/k8s.io/component-helpers/scheduling/corev1/nodeaffinity/nodeaffinity.go`
(GetRequiredNodeAffinity), `staging/src/k8s.io/apimachinery/pkg/labels/selector.go` (NewRequirement, Matches); the
DaemonSet controller goes by the answer alone and drops what was malformed.
"""

from collections.abc import Callable, Mapping

from oarlock.controllers.objects.selector import Requirement, label_selector
from oarlock.controllers.objects.wire_parts import parse_int64
from oarlock.controllers.scheduling.model import NodeRequirement, NodeTerm, Placement
from oarlock.controllers.scheduling.wire import NODE_NAME_FIELD

_COMPARISONS = ("Gt", "Lt")

Check = Callable[[Mapping[str, str], str], bool]
"""Whether the node with these labels and this name fulfils one requirement."""


class MalformedTerm(ValueError):
    """The term breaks a rule of the API; it matches no node."""


class NodeFilter:
    """The nodeSelector and the terms of a placement, prepared once for many nodes."""

    __slots__ = ("_pairs", "_terms", "everything")

    def __init__(self, placement: Placement) -> None:
        self._pairs = tuple(placement.node_selector.items())
        self._terms = None if placement.terms is None else _well_formed(placement.terms)
        self.everything = not self._pairs and self._terms is None
        """Whether it matches every possible node."""

    def matches(self, labels: Mapping[str, str], name: str) -> bool:
        """Every pair of the nodeSelector is among the labels, and one of the terms holds if there is an affinity."""
        for key, value in self._pairs:
            if labels.get(key) != value:
                return False
        if self._terms is None:
            return True
        for checks in self._terms:
            for check in checks:
                if not check(labels, name):
                    break
            else:
                return True
        return False


def _well_formed(terms: tuple[NodeTerm, ...]) -> tuple[tuple[Check, ...], ...]:
    """Without the terms that match nothing: empty and malformed ones. The other terms stay valid."""
    ready = []
    for term in terms:
        try:
            checks = checks_of(term)
        except MalformedTerm:
            continue
        if checks:
            ready.append(checks)
    return tuple(ready)


def checks_of(term: NodeTerm) -> tuple[Check, ...]:
    """The checks that one node must pass together. Raises MalformedTerm."""
    return (*[_label_check(r) for r in term.expressions], *[_field_check(r) for r in term.fields])


def _label_check(requirement: NodeRequirement) -> Check:
    """An absent label is looked up as None, which no list of values has: so In fails and NotIn holds."""
    key, operator, values = requirement.key, requirement.operator, frozenset(requirement.values)
    # Upstream checks the keys and values of every operator by the rules for labels. So Gt and Lt take no negative
    # bound: "-5" is no label value.
    checked_as = "In" if operator in _COMPARISONS else operator
    if error := label_selector(None, (Requirement(key, checked_as, requirement.values),)).error:
        raise MalformedTerm(error)
    match operator:
        case "In":
            return lambda labels, _: labels.get(key) in values
        case "NotIn":
            return lambda labels, _: labels.get(key) not in values
        case "Exists":
            return lambda labels, _: key in labels
        case "DoesNotExist":
            return lambda labels, _: key not in labels
        case "Gt":
            bound = _bound(requirement)
            return lambda labels, _: (number := _number(labels, key)) is not None and number > bound
        case _:
            bound = _bound(requirement)
            return lambda labels, _: (number := _number(labels, key)) is not None and number < bound


def _field_check(requirement: NodeRequirement) -> Check:
    if requirement.key != NODE_NAME_FIELD:
        raise MalformedTerm(f"{requirement.key!r} is not a field of nodes that can be matched")
    if len(requirement.values) != 1:
        raise MalformedTerm(f"a field is matched with exactly one value, not {len(requirement.values)}")
    value = requirement.values[0]
    match requirement.operator:
        case "In":
            return lambda _, name: name == value
        case "NotIn":
            return lambda _, name: name != value
        case _:
            raise MalformedTerm(f"{requirement.operator!r} is not an operator for fields")


def _bound(requirement: NodeRequirement) -> int:
    if len(requirement.values) == 1 and (number := parse_int64(requirement.values[0])) is not None:
        return number
    raise MalformedTerm(f"{requirement.operator} on {requirement.key!r} takes one integer")


def _number(labels: Mapping[str, str], key: str) -> int | None:
    return parse_int64(labels[key]) if key in labels else None
