"""Whether tolerations cover taints.

Upstream: `staging/src/k8s.io/api/core/v1/toleration.go` (ToleratesTaint). The operators Lt and Gt are behind a gate
that is off (TaintTolerationComparisonOperators): they cover nothing, as any unknown operator does.
"""

from oarlock.controllers.scheduling.model import Taint, Toleration

NO_SCHEDULE, NO_EXECUTE = "NoSchedule", "NoExecute"
"""The effects that count. PreferNoSchedule is a wish addressed to the scheduler."""


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Whether this toleration covers this taint. With Equal an empty key stands for every key as well, though the API
    lets none in.
    """
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    return toleration.operator == "Exists"


def untolerated(taints: tuple[Taint, ...], tolerations: tuple[Toleration, ...], effect: str) -> bool:
    """Whether a taint with this effect is covered by none of the tolerations."""
    return any(taint.effect == effect and not any(tolerates(t, taint) for t in tolerations) for taint in taints)
