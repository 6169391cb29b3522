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
_Selecting = TypeVar("_Selecting", ReplicaSet, Deployment)
_DIGEST_BYTES = 15
_LATER_S = 1 << 20
"""Seconds below this are counted from the creation."""
_AS_TEMPLATE = {"=": ""}
"""In a blob, in place of labels that are those of the template. No label has such a name."""

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
_decode_replicaset = decoder(ReplicaSet, "ReplicaSet")
decode_daemonset = decoder(DaemonSet, "DaemonSet")
_decode_deployment = decoder(Deployment, "Deployment")
decode_revision = decoder(ControllerRevision, "ControllerRevision")


def decode_pod(blob: bytes) -> Pod:
    """The pod of a blob. Raises CodecError."""
    pod = _decode_pod(blob)
    if pod.created_ms < 0:
        force_setattr(pod, "created_ms", pod.created_ms * -1_000)
    if pod.ready_since_ms < 0:
        later_s = -1 - pod.ready_since_ms
        since_ms = pod.created_ms + later_s * 1_000 if later_s < _LATER_S else pod.ready_since_ms * -1_000
        force_setattr(pod, "ready_since_ms", since_ms)
    if pod.deleting_ms < 0:
        force_setattr(pod, "deleting_ms", pod.deleting_ms * -1_000)
    return pod


def decode_replicaset(blob: bytes) -> ReplicaSet:
    """The ReplicaSet of a blob, or the ReplicationController in that form. Raises CodecError."""
    owner = _decode_replicaset(blob)
    if owner.labels == _AS_TEMPLATE:
        force_setattr(owner, "labels", owner.template_labels)
    return _completed(owner)


def decode_deployment(blob: bytes) -> Deployment:
    """The Deployment of a blob. Raises CodecError."""
    return _completed(_decode_deployment(blob))


def _completed(owner: _Selecting) -> _Selecting:
    if owner.created_ms < 0:
        force_setattr(owner, "created_ms", owner.created_ms * -1_000)
    if owner.selector is not None and owner.selector.match_labels == _AS_TEMPLATE:
        force_setattr(owner.selector, "match_labels", owner.template_labels)
    return owner


def _with_short_times(pod: Pod) -> tuple[Any, ...]:
    """Its fields, in their order. A tuple is made faster than a Pod."""
    return (
        *(pod.namespace, pod.name, pod.node_name),
        *(_short(pod.created_ms), _short(pod.deleting_ms), _short_since(pod.ready_since_ms, pod.created_ms)),
        *(pod.restarts, pod.sidecar_restarts, pod.deletion_cost, pod.pinned_node),
        *(pod.phase, pod.ready, pod.hangs, pod.labels, pod.owner_refs, pod.uid),
    )


def _short(time_ms: int) -> int:
    """A time of the API is one of whole seconds. Those below zero stand for it: that takes 5 bytes in place of 9."""
    return time_ms if time_ms <= 0 or time_ms % 1_000 else time_ms // -1_000


def _short_since(since_ms: int, created_ms: int) -> int:
    """A pod is ready soon after it was created: -1 stands for the same second, -2 for the next one, in one byte."""
    if since_ms <= _LATER_S * 1_000 or since_ms % 1_000:
        return since_ms
    later_ms = since_ms - created_ms
    return -1 - later_ms // 1_000 if 0 <= later_ms < _LATER_S * 1_000 and not later_ms % 1_000 else since_ms // -1_000


def decode_node(blob: bytes) -> Node:
    """The node of a blob. Raises CodecError. Workers keep all nodes, so equal texts are there once: of their labels few
    differ from node to node, and of those one is the node's name.
    """
    node = _decode_node(blob)
    labels = {intern(label): intern(value) for label, value in node.labels.items()}
    return Node(intern(node.name), node.uid, labels, node.taints)


def encode_apart(owner: Any) -> bytes:
    """The blob of an owner without its template, and without what repeats the template's labels."""
    fields: dict[str, Any] = {"template": _digest(owner.template)}
    if isinstance(owner, ReplicaSet | Deployment):
        fields["created_ms"] = _short(owner.created_ms)
        labels, selector = owner.template_labels, owner.selector
        if labels and selector is not None and selector.match_labels == labels:
            fields["selector"] = msgspec.structs.replace(selector, match_labels=_AS_TEMPLATE)
        if labels and isinstance(owner, ReplicaSet) and owner.labels == labels:
            fields["labels"] = _AS_TEMPLATE
    return encode(msgspec.structs.replace(owner, **fields))


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
