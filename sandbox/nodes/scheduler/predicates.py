"""Whether a pod may run on a node: labels, affinity, taints. Pure.

Upstream: staging/src/k8s.io/component-helpers/scheduling/corev1/{helpers.go,nodeaffinity/nodeaffinity.go},
staging/src/k8s.io/api/core/v1/toleration.go and pkg/scheduler/framework/plugins.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

Obj = dict[str, Any]

NO_SCHEDULE: Final = "NoSchedule"
PREFER_NO_SCHEDULE: Final = "PreferNoSchedule"
NO_EXECUTE: Final = "NoExecute"
UNSCHEDULABLE: Final[Obj] = {"key": "node.kubernetes.io/unschedulable", "effect": NO_SCHEDULE}

MISMATCH: Final = "node(s) didn't match Pod's node affinity/selector"
TAINTED: Final = "node(s) had untolerated taint(s)"
CORDONED: Final = "node(s) were unschedulable"

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


def why_not(spec: Obj, node: Obj) -> str | None:
    """The reason, in the scheduler's words, why a pod of this spec may not go to `node`; None if it may."""
    tolerations = spec.get("tolerations") or ()
    node_spec = node.get("spec") or {}
    if node_spec.get("unschedulable") and not tolerates_any(tolerations, UNSCHEDULABLE):
        return CORDONED
    if untolerated(tolerations, node_spec.get("taints") or (), (NO_SCHEDULE, NO_EXECUTE)) is not None:
        return TAINTED
    return None if matches_node(spec, node) else MISMATCH


def matches_node(spec: Obj, node: Obj) -> bool:
    """Whether nodeSelector and required node affinity allow the node."""
    labels = node["metadata"].get("labels") or {}
    for key, value in (spec.get("nodeSelector") or {}).items():
        if labels.get(key) != value:
            return False
    required = _required_affinity(spec)
    if required is None:
        return True
    return any(_term_matches(term, labels, node) for term in required.get("nodeSelectorTerms") or ())


def pinned_to(spec: Obj) -> frozenset[str] | None:
    """The only nodes required affinity can match when every term names its node; None if it names none.

    Lets the scheduler look at one node instead of all for pods made for one node.
    """
    required = _required_affinity(spec)
    if required is None:
        return None
    names: set[str] = set()
    for term in required.get("nodeSelectorTerms") or ():
        named = [r for r in term.get("matchFields") or () if r.get("operator") == "In"]
        if not named:
            if term.get("matchExpressions") or term.get("matchFields"):
                return None
            continue  # an empty term matches nothing
        names.update(named[0].get("values") or ())
    return frozenset(names)


def _required_affinity(spec: Obj) -> Obj | None:
    node_affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required: Obj | None = node_affinity.get(_REQUIRED)
    return required


def _term_matches(term: Obj, labels: Mapping[str, str], node: Obj) -> bool:
    """All requirements of one term; a term without any matches nothing."""
    expressions, fields = term.get("matchExpressions") or (), term.get("matchFields") or ()
    if not expressions and not fields:
        return False
    by_field = {"metadata.name": node["metadata"]["name"]}
    return all(requirement_matches(r, labels) for r in expressions) and all(
        requirement_matches(r, by_field) for r in fields
    )


def requirement_matches(requirement: Obj, labels: Mapping[str, str]) -> bool:
    """One requirement of a node selector term. An unknown operator, or a bad number, matches nothing."""
    value = labels.get(requirement["key"])
    values: Sequence[str] = requirement.get("values") or ()
    match requirement.get("operator"):
        case "In":
            return value is not None and value in values
        case "NotIn":
            return value is None or value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt" as operator:
            have, limit = _integer(value), _integer(values[0] if len(values) == 1 else None)
            if have is None or limit is None:
                return False
            return have > limit if operator == "Gt" else have < limit
    return False


def _integer(text: str | None) -> int | None:
    if text is None:
        return None
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdigit() else None


def tolerates(toleration: Obj, taint: Obj) -> bool:
    """Whether one toleration covers one taint; tolerationSeconds plays no part in this."""
    effect, key = toleration.get("effect"), toleration.get("key")
    if effect and effect != taint.get("effect"):
        return False
    if key and key != taint.get("key"):
        return False
    operator = toleration.get("operator") or "Equal"
    if operator == "Exists":
        return True
    return operator == "Equal" and (toleration.get("value") or "") == (taint.get("value") or "")


def tolerates_any(tolerations: Iterable[Obj], taint: Obj) -> bool:
    """Whether one of the tolerations covers the taint."""
    return any(tolerates(toleration, taint) for toleration in tolerations)


def untolerated(tolerations: Sequence[Obj], taints: Iterable[Obj], effects: Sequence[str]) -> Obj | None:
    """The first taint with one of `effects` that nothing tolerates, or None."""
    for taint in taints:
        if taint.get("effect") in effects and not tolerates_any(tolerations, taint):
            return taint
    return None


def evict_after_s(tolerations: Sequence[Obj], taints: Iterable[Obj]) -> float | None:
    """How long a pod may stay on a node with these taints: 0 to go at once, None for as long as it likes.

    Upstream: pkg/controller/tainteviction (getMinTolerationTime): the shortest tolerationSeconds among the
    tolerations that are in use.
    """
    limits: list[int] = []
    for taint in taints:
        if taint.get("effect") != NO_EXECUTE:
            continue
        used = [toleration for toleration in tolerations if tolerates(toleration, taint)]
        if not used:
            return 0
        limits += [max(0, t["tolerationSeconds"]) for t in used if t.get("tolerationSeconds") is not None]
    return min(limits, default=None)
