"""The tolerations that every daemon pod gets beside its template's own.

Upstream: `pkg/controller/daemon/util/daemonset_util.go` (AddOrUpdateDaemonPodTolerations) and
`pkg/apis/core/v1/helper/helpers.go` (AddOrUpdateTolerationInPodSpec).
"""

import msgspec

from oarlock.controllers.scheduling.model import Placement, Toleration
from oarlock.controllers.scheduling.taints import NO_EXECUTE, NO_SCHEDULE

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

    A toleration of the template that differs from an added one in no more than its seconds is replaced by it.
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
    """With `added` in the place of every one that is like it, or at the end where there is none."""
    if not any(_alike(one, added) for one in present):
        return (*present, added)
    return tuple(added if _alike(one, added) else one for one in present)


def _alike(one: Toleration, other: Toleration) -> bool:
    return (one.key, one.effect, one.operator, one.value) == (other.key, other.effect, other.operator, other.value)
