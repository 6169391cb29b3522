"""Model <-> msgpack, the form in which projections are kept: positional, so a blob holds no field names."""

from typing import TypeVar

import msgspec

from controllers.daemonset.model import DaemonSet
from controllers.history.model import ControllerRevision
from controllers.model import Pod, ReplicaSet
from controllers.scheduling.model import Node

_T = TypeVar("_T")

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
