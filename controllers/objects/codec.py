"""Model <-> msgpack, the form in which the cache keeps projections: positional, so a blob holds no field names.

The template of an owner is kept apart from its blob: it is large, few readers need it, and many owners have the same.
The blob has its digest instead. What is kept apart is deflated.
"""

from collections.abc import Callable
from hashlib import blake2b
from sys import intern
from typing import Any, TypeVar

import msgspec
from msgspec.structs import force_setattr

from oarlock.controllers.daemonset.model import DaemonSet
from oarlock.controllers.deployment.model import Deployment
from oarlock.controllers.history.model import ControllerRevision
from oarlock.controllers.objects.deflated import deflated, inflated
from oarlock.controllers.objects.model import Pod, ReplicaSet
from oarlock.controllers.scheduling.model import Node

_T = TypeVar("_T")
_Owner = TypeVar("_Owner", ReplicaSet, DaemonSet, Deployment)
_DIGEST_BYTES = 20

_ENCODER = msgspec.msgpack.Encoder()


class CodecError(ValueError):
    """The blob is not what the decoder was asked for."""


def encode(obj: Any) -> bytes:
    """The blob of a projection; equal projections give equal blobs when their maps have equal order."""
    return _ENCODER.encode(_with_short_times(obj) if type(obj) is Pod else obj)


def decoder(model: type[_T], what: str) -> Callable[[bytes], _T]:
    """A function from a blob to such a projection. It raises CodecError, which names `what` was expected."""
    decode = msgspec.msgpack.Decoder(model).decode

    def decoded(blob: bytes) -> _T:
        try:
            return decode(blob)
        except msgspec.MsgspecError as error:
            raise CodecError(f"not a {what} blob: {error}") from error

    return decoded


_decode_pod = decoder(Pod, "pod")
_decode_node = decoder(Node, "node")
decode_replicaset = decoder(ReplicaSet, "ReplicaSet")  # and the ReplicationController in that form
decode_daemonset = decoder(DaemonSet, "DaemonSet")
decode_deployment = decoder(Deployment, "Deployment")
decode_revision = decoder(ControllerRevision, "ControllerRevision")


def decode_pod(blob: bytes) -> Pod:
    """The pod of a blob. Raises CodecError."""
    pod = _decode_pod(blob)
    if pod.created_ms < 0:
        force_setattr(pod, "created_ms", pod.created_ms * -1_000)
    if pod.ready_since_ms < 0:
        force_setattr(pod, "ready_since_ms", pod.ready_since_ms * -1_000)
    if pod.deleting_ms < 0:
        force_setattr(pod, "deleting_ms", pod.deleting_ms * -1_000)
    return pod


def _with_short_times(pod: Pod) -> Pod:
    return msgspec.structs.replace(
        pod,
        created_ms=_short(pod.created_ms),
        ready_since_ms=_short(pod.ready_since_ms),
        deleting_ms=_short(pod.deleting_ms),
    )


def _short(time_ms: int) -> int:
    """A time of the API is one of whole seconds. Those below zero stand for it: that takes 5 bytes in place of 9."""
    return time_ms if time_ms <= 0 or time_ms % 1_000 else time_ms // -1_000


def decode_node(blob: bytes) -> Node:
    """The node of a blob. Raises CodecError. Workers keep all nodes, so equal texts are there once: of their labels few
    differ from node to node, and of those one is the node's name.
    """
    node = _decode_node(blob)
    labels = {intern(label): intern(value) for label, value in node.labels.items()}
    return Node(intern(node.name), node.uid, labels, node.taints)


def encode_apart(owner: Any) -> bytes:
    """The blob of an owner without its template."""
    return encode(msgspec.structs.replace(owner, template=_digest(owner.template)))


def template_apart(owner: Any) -> tuple[str, bytes]:
    """What is kept apart: a name that no other template has, and the template, deflated."""
    return _digest(owner.template).hex(), deflated(owner.template)


def template_name(owner: _Owner) -> str:
    """Under which name the template is kept apart, of the owner of a blob."""
    return owner.template.hex()


def with_template(owner: _Owner, apart: bytes) -> _Owner:
    """The owner of a blob, with the template that was kept apart, if any. Raises CodecError for another's template."""
    if not apart:
        return owner
    try:
        template = inflated(apart)
    except ValueError as error:
        raise CodecError(f"the template beside {owner.key} cannot be read: {error}") from None
    if _digest(template) != owner.template:
        raise CodecError(f"the template beside {owner.key} is another's")
    return msgspec.structs.replace(owner, template=template)


def names_template(blob: bytes, apart: bytes) -> bool:
    """Whether the blob may be that of an owner with this template; only ``with_template`` knows for certain."""
    try:
        return _digest(inflated(apart)) in blob
    except ValueError:
        return False


def _digest(template: bytes) -> bytes:
    return blake2b(template, digest_size=_DIGEST_BYTES).digest()
