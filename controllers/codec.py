"""Model <-> msgpack, the form in which projections are kept: positional, so a blob holds no field names."""

import msgspec

from controllers.model import Pod, ReplicaSet

_ENCODER = msgspec.msgpack.Encoder()
_POD = msgspec.msgpack.Decoder(Pod)
_REPLICASET = msgspec.msgpack.Decoder(ReplicaSet)


class CodecError(ValueError):
    """The blob is not what the decoder was asked for."""


def encode(obj: Pod | ReplicaSet) -> bytes:
    """The blob of a projection; equal projections give equal blobs when their maps have equal order."""
    return _ENCODER.encode(obj)


def decode_pod(blob: bytes) -> Pod:
    """The pod in a blob. Raises CodecError."""
    try:
        return _POD.decode(blob)
    except msgspec.MsgspecError as error:
        raise CodecError(f"not a pod blob: {error}") from error


def decode_replicaset(blob: bytes) -> ReplicaSet:
    """The ReplicaSet in a blob. Raises CodecError."""
    try:
        return _REPLICASET.decode(blob)
    except msgspec.MsgspecError as error:
        raise CodecError(f"not a ReplicaSet blob: {error}") from error
