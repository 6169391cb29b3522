"""Classes of pods: all that is read of a pod by a turn that has nothing to do about it.

The cache counts the pods of an owner by class. While the owner has as many active pods as it asks for, a turn is handed
these counts in place of the pods, so that it costs the same for three pods and for five thousand. A pod's class and an
owner's word are functions of one object each, as the words of `controllers.ownership.orphans` are.
"""

from typing import NamedTuple

import msgspec

from oarlock.controllers.objects.model import Pod, ReplicaSet, is_active, is_finished

ASKED = "="
"""How an owner's word begins that says how many active pods it asks for."""
READY, UNREADY, TERMINATING, FINISHED = "+r", "+u", "-t", "-f"
"""The kinds of pods. Active ones begin with "+": the claim compares their number with what is asked for."""

_KINDS = frozenset((READY, UNREADY, TERMINATING, FINISHED))
_ENCODE = msgspec.json.Encoder().encode
_DECODE = msgspec.json.Decoder(dict[str, str]).decode


class PodClass(NamedTuple):
    """What pods of a class have in common, beside their controller."""

    kind: str
    namespace: str
    labels: dict[str, str]


def class_of(pod: Pod) -> str:
    """The class of a pod, as `+r/default/{"app":"web"}`."""
    if is_active(pod):
        kind = READY if pod.ready else UNREADY
    else:
        kind = FINISHED if is_finished(pod) else TERMINATING
    return f"{kind}/{pod.namespace}/{_ENCODE(pod.labels).decode()}"


def asked_word(owner: ReplicaSet) -> tuple[str, ...]:
    """The word of an owner whose pods may come as counts. When a pod becomes available by time alone, or the owner is
    going, or its selector says nothing, counts do not suffice.
    """
    selector = owner.selector
    if owner.min_ready_seconds or owner.deleting_ms or selector is None or selector.error:
        return ()
    return (f"{ASKED}{owner.replicas}",)


def read_class(text: str) -> PodClass | None:
    """What a class says; None for what no text of ours says."""
    kind, _, rest = text.partition("/")
    namespace, _, labels = rest.partition("/")
    if kind not in _KINDS:
        return None
    try:
        return PodClass(kind, namespace, _DECODE(labels))
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
