"""Which taints tolerations cover, and the tolerations that every daemon pod gets beside its template's own.

Upstream: `staging/src/k8s.io/api/core/v1/toleration.go` (ToleratesTaint),
`pkg/controller/daemon/util/daemonset_util.go` (AddOrUpdateDaemonPodTolerations) and
`pkg/apis/core/v1/helper/helpers.go` (AddOrUpdateTolerationInPodSpec). The operators Lt and Gt are behind a gate that is
off (TaintTolerationComparisonOperators): they cover nothing, as any unknown operator does.
"""

import msgspec

from oarlock.controllers.scheduling.model import Placement, Taint, Toleration

NO_SCHEDULE, NO_EXECUTE = "NoSchedule", "NoExecute"
"""The effects that count. PreferNoSchedule is only a wish to the scheduler."""

_ALWAYS = tuple(
    Toleration(f"node.kubernetes.io/{condition}", "Exists", "", effect)
    for condition, effect in (
        ("not-ready", NO_EXECUTE),
        ("unreachable", NO_EXECUTE),
        ("disk-pressure", NO_SCHEDULE),
        ("memory-pressure", NO_SCHEDULE),
        ("pid-pressure", NO_SCHEDULE),
        ("unschedulable", NO_SCHEDULE),
    )
)
_ON_HOST_NETWORK = Toleration("node.kubernetes.io/network-unavailable", "Exists", "", NO_SCHEDULE)


class _TolerationJson(msgspec.Struct, rename="camel", omit_defaults=True):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


def tolerations_for_pods(placement: Placement) -> tuple[Toleration, ...]:
    """The template's tolerations with the added ones merged in, in the order in which pods carry them.

    An added one replaces a toleration of the template that differs only in its seconds.
    """
    merged = placement.tolerations
    for added in _ALWAYS:
        merged = _merged(merged, added)
    return _merged(merged, _ON_HOST_NETWORK) if placement.host_network else merged


def tolerations_json(placement: Placement) -> bytes:
    """`tolerations_for_pods` as the JSON of a pod's spec.tolerations; what is empty is left out."""
    return msgspec.json.encode(
        [
            _TolerationJson(t.key, t.operator, t.value, t.effect, t.toleration_seconds)
            for t in tolerations_for_pods(placement)
        ]
    )


def _merged(present: tuple[Toleration, ...], added: Toleration) -> tuple[Toleration, ...]:
    """With `added` in place of every toleration alike, or at the end if there is none."""
    if not any(_alike(one, added) for one in present):
        return (*present, added)
    return tuple(added if _alike(one, added) else one for one in present)


def _alike(one: Toleration, other: Toleration) -> bool:
    return (one.key, one.effect, one.operator, one.value) == (other.key, other.effect, other.operator, other.value)


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Whether this toleration covers this taint. With Equal, too, an empty key stands for every key, although the API
    refuses one.
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
