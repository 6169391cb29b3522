"""Model <-> msgpack, the form in which projections are kept: positional, so a blob holds no field names.

Of an owner that is kept for all to read the template lies apart, for it is large, few readers need it, and many owners
have the same: in the blob its digest stands in its place.
"""

from hashlib import blake2b
from typing import TypeVar

import msgspec

from oarlock.controllers.daemonset.model import DaemonSet
from oarlock.controllers.history.model import ControllerRevision
from oarlock.controllers.objects.model import Pod, ReplicaSet
from oarlock.controllers.scheduling.model import Node

_T = TypeVar("_T")
_Owner = TypeVar("_Owner", ReplicaSet, DaemonSet)
_DIGEST_BYTES = 20

_ENCODER = msgspec.msgpack.Encoder()
_POD = msgspec.msgpack.Decoder(Pod)
_REPLICASET = msgspec.msgpack.Decoder(ReplicaSet)
_NODE = msgspec.msgpack.Decoder(Node)
_DAEMONSET = msgspec.msgpack.Decoder(DaemonSet)
_REVISION = msgspec.msgpack.Decoder(ControllerRevision)


class CodecError(ValueError):
    """The blob is not what the decoder was asked for."""


def encode(obj: Pod | ReplicaSet | Node | DaemonSet | ControllerRevision) -> bytes:
    """The blob of a projection; equal projections give equal blobs when their maps have equal order."""
    return _ENCODER.encode(obj)


def encode_apart(owner: ReplicaSet | DaemonSet) -> bytes:
    """The blob of an owner without its template."""
    return encode(msgspec.structs.replace(owner, template=_digest(owner.template)))


def template_apart(owner: ReplicaSet | DaemonSet) -> tuple[str, bytes]:
    """What lies apart: a name that no other template has, and the template."""
    return _digest(owner.template).hex(), owner.template


def with_template(owner: _Owner, template: bytes) -> _Owner:
    """The owner of a blob and what lay apart from it, if anything did. Raises CodecError where that is another's."""
    if not template:
        return owner
    if _digest(template) != owner.template:
        raise CodecError(f"the template beside {owner.key} is another's")
    return msgspec.structs.replace(owner, template=template)


def names_template(blob: bytes, template: bytes) -> bool:
    """Whether the blob can be that of an owner with this template; ``with_template`` is who knows."""
    return _digest(template) in blob


def _digest(template: bytes) -> bytes:
    return blake2b(template, digest_size=_DIGEST_BYTES).digest()


def decode_pod(blob: bytes) -> Pod:
    """The pod in a blob. Raises CodecError."""
    try:
        return _POD.decode(blob)
    except msgspec.MsgspecError as error:
        raise CodecError(f"not a pod blob: {error}") from error


def decode_replicaset(blob: bytes) -> ReplicaSet:
    """The ReplicaSet, or the ReplicationController in that form, in a blob. Raises CodecError."""
    return _decoded(_REPLICASET, blob, "ReplicaSet")


def decode_node(blob: bytes) -> Node:
    """The node in a blob. Raises CodecError."""
    return _decoded(_NODE, blob, "node")


def decode_daemonset(blob: bytes) -> DaemonSet:
    """The DaemonSet in a blob. Raises CodecError."""
    return _decoded(_DAEMONSET, blob, "DaemonSet")


def decode_revision(blob: bytes) -> ControllerRevision:
    """The ControllerRevision in a blob. Raises CodecError."""
    return _decoded(_REVISION, blob, "ControllerRevision")


def _decoded(decoder: msgspec.msgpack.Decoder[_T], blob: bytes, what: str) -> _T:
    try:
        return decoder.decode(blob)
    except msgspec.MsgspecError as error:
        raise CodecError(f"not a {what} blob: {error}") from error
