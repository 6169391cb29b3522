"""Classes of pods: all that is read of a pod by a turn that has nothing to do about it.

The cache counts the pods of an owner by class. While the owner has as many active pods as it asks for, a turn is handed
these counts in place of the pods, so that it costs the same for three pods and for five thousand. A pod's class and an
owner's word are functions of one object each, as the words of `controllers.ownership.orphans` are.

The text of a class ends with what ends the blobs of its pods: from their phases to their owner references, and how a
text as long as their uids begins. The cache keeps that once, with the count, and not with each pod.
"""

from typing import NamedTuple

import msgspec

from oarlock.controllers.objects.model import Pod, ReplicaSet, is_active, is_finished

ASKED = "="
"""How an owner's word begins that says how many active pods it asks for."""
READY, UNREADY, TERMINATING, FINISHED = "+r", "+u", "-t", "-f"
"""The kinds of pods. Active ones begin with "+": the claim compares their number with what is asked for."""

_KINDS = frozenset((READY, UNREADY, TERMINATING, FINISHED))
_ENCODE = msgspec.msgpack.Encoder().encode
_DECODE = msgspec.msgpack.Decoder(tuple[str, bool, bool, dict[str, str], msgspec.Raw]).decode
_OF_FIVE, _OF_SIX = b"\x95", b"\x96"  # how arrays begin
_LONG = b"\xd9"  # how a text begins that is longer than 31 bytes; its length follows


class PodClass(NamedTuple):
    """What pods of a class have in common, beside their controller."""

    kind: str
    namespace: str
    labels: dict[str, str]


def class_of(pod: Pod) -> bytes:
    """The class of a pod: `+r/default`, and behind that line the end of its blob but for the uid."""
    if is_active(pod):
        kind = READY if pod.ready else UNREADY
    else:
        kind = FINISHED if is_finished(pod) else TERMINATING
    ending = _ENCODE((pod.phase, pod.ready, pod.hangs, pod.labels, pod.owner_refs, pod.uid))
    return f"{kind}/{pod.namespace}\n".encode() + ending.removeprefix(_OF_SIX).removesuffix(pod.uid.encode())


def asked_word(owner: ReplicaSet) -> tuple[str, ...]:
    """The word of an owner whose pods may come as counts. When a pod becomes available by time alone, or the owner is
    going, or its selector says nothing, counts do not suffice.
    """
    selector = owner.selector
    if owner.min_ready_seconds or owner.deleting_ms or selector is None or selector.error:
        return ()
    return (f"{ASKED}{owner.replicas}",)


def read_class(text: bytes) -> PodClass | None:
    """What a class says; None for what no text of ours says."""
    first, _, ending = text.partition(b"\n")
    try:
        kind, _, namespace = first.decode().partition("/")
        facts = ending[:-2] if ending[-2:-1] == _LONG else ending[:-1]
        return PodClass(kind, namespace, _DECODE(_OF_FIVE + facts)[3]) if kind in _KINDS else None
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
