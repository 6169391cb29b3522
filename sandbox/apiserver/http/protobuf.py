"""Kubernetes' protobuf bodies, as far as typed creates of newer kubectl send them.

`kubectl create namespace|configmap|secret|serviceaccount|quota|deployment` posts protobuf since 1.32 and does not
repeat the request as JSON when refused. The few messages behind those commands are decoded here by a table
of field numbers (upstream: the generated.proto of core/v1, apps/v1 and apimachinery meta/v1); everything else is
answered 415 with the way out.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from oarlock.sandbox.apiserver.errors import bad_request, unsupported_media_type
from oarlock.sandbox.apiserver.text.times import rfc3339

Obj = dict[str, Any]
_MAGIC: Final = b"k8s\x00"
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return value, at
        shift += 7


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """(field number, value) for each field: an int, or the bytes of a string or message."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, wire = tag >> 3, tag & 7
        if wire == _VARINT:
            value, at = _varint(data, at)
            yield number, value
        elif wire == _BYTES:
            length, at = _varint(data, at)
            if at + length > len(data):
                raise ValueError("a field is longer than its message")
            yield number, data[at : at + length]
            at += length
        elif wire in (_FIXED64, _FIXED32):
            at += 8 if wire == _FIXED64 else 4
        else:
            raise ValueError(f"unknown wire type {wire}")


class _Unread(Exception):
    """A field that has no line in a table here, and may not be lost."""


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    read: Callable[[Any], Any]
    many: bool = False  # repeated: a list
    pairs: bool = False  # map<string, X>: an object


_Message = Mapping[int, _Field]


def _text(value: bytes) -> str:
    return value.decode()


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value


def _message(schema: _Message, *, in_part: bool = False) -> Callable[[bytes], Obj]:
    """`in_part`: fields that the schema lacks are of use to somebody, and raise _Unread where they say something."""

    def read(data: bytes) -> Obj:
        obj: Obj = {}
        for number, value in _fields(data):
            field = schema.get(number)
            if field is None and in_part and value:
                raise _Unread
            if field is None or value == b"":
                continue  # plain strings are written even when empty; JSON omits them
            if field.pairs:
                entry = dict(_fields(value)) if isinstance(value, bytes) else {}
                obj.setdefault(field.name, {})[_text(entry.get(1, b""))] = field.read(entry.get(2, b""))  # type: ignore[arg-type]
            elif field.many:
                obj.setdefault(field.name, []).append(field.read(value))
            else:
                decoded = field.read(value)
                if decoded not in ({}, None):
                    obj[field.name] = decoded
        return obj

    return read


def _time(data: bytes) -> str | None:
    seconds = dict(_fields(data)).get(1)
    return rfc3339(seconds) if isinstance(seconds, int) and seconds > 0 else None


def _quantity(data: bytes) -> str:
    value = dict(_fields(data)).get(1, b"")
    return _text(value) if isinstance(value, bytes) else ""


_OWNER: Final = _message(
    {
        1: _Field("kind", _text),
        3: _Field("name", _text),
        4: _Field("uid", _text),
        5: _Field("apiVersion", _text),
        6: _Field("controller", bool),
        7: _Field("blockOwnerDeletion", bool),
    }
)
_META: Final = _message(
    {
        1: _Field("name", _text),
        2: _Field("generateName", _text),
        3: _Field("namespace", _text),
        5: _Field("uid", _text),
        6: _Field("resourceVersion", _text),
        8: _Field("creationTimestamp", _time),
        11: _Field("labels", _text, pairs=True),
        12: _Field("annotations", _text, pairs=True),
        13: _Field("ownerReferences", _OWNER, many=True),
        14: _Field("finalizers", _text, many=True),
    }
)
_METADATA: Final = _Field("metadata", _META)
_REFERENCE: Final = _message({3: _Field("name", _text), 1: _Field("kind", _text)})
_QUOTA_SPEC: Final = _message({1: _Field("hard", _quantity, pairs=True), 2: _Field("scopes", _text, many=True)})
_NAMESPACE_SPEC: Final = _message({1: _Field("finalizers", _text, many=True)})

_SELECTOR: Final = _message({1: _Field("matchLabels", _text, pairs=True)}, in_part=True)
_PORT: Final = _message(
    {1: _Field("name", _text), 3: _Field("containerPort", _signed), 4: _Field("protocol", _text)}, in_part=True
)
_CONTAINER: Final = _message(
    {
        1: _Field("name", _text),
        2: _Field("image", _text),
        3: _Field("command", _text, many=True),
        4: _Field("args", _text, many=True),
        6: _Field("ports", _PORT, many=True),
    },
    in_part=True,
)
_POD_SPEC: Final = _message({2: _Field("containers", _CONTAINER, many=True)}, in_part=True)
_DEPLOYMENT_SPEC: Final = _message(
    {
        1: _Field("replicas", _signed),
        2: _Field("selector", _SELECTOR),
        3: _Field("template", _message({1: _METADATA, 2: _Field("spec", _POD_SPEC)})),
        4: _Field("strategy", _message({1: _Field("type", _text)}, in_part=True)),
    },
    in_part=True,
)
_NOTHING: Final = _message({}, in_part=True)

_KINDS: Final[Mapping[tuple[str, str], Callable[[bytes], Obj]]] = {
    ("v1", "Namespace"): _message({1: _METADATA, 2: _Field("spec", _NAMESPACE_SPEC)}),
    ("v1", "ConfigMap"): _message(
        {
            1: _METADATA,
            2: _Field("data", _text, pairs=True),
            3: _Field("binaryData", _base64, pairs=True),
            4: _Field("immutable", bool),
        }
    ),
    ("v1", "Secret"): _message(
        {
            1: _METADATA,
            2: _Field("data", _base64, pairs=True),
            3: _Field("type", _text),
            4: _Field("stringData", _text, pairs=True),
            5: _Field("immutable", bool),
        }
    ),
    ("v1", "ServiceAccount"): _message(
        {
            1: _METADATA,
            2: _Field("secrets", _REFERENCE, many=True),
            3: _Field("imagePullSecrets", _message({1: _Field("name", _text)}), many=True),
            4: _Field("automountServiceAccountToken", bool),
        }
    ),
    ("v1", "ResourceQuota"): _message({1: _METADATA, 2: _Field("spec", _QUOTA_SPEC)}),
    ("apps/v1", "Deployment"): _message(
        {1: _METADATA, 2: _Field("spec", _DEPLOYMENT_SPEC), 3: _Field("status", _NOTHING)}
    ),
    ("v1", "DeleteOptions"): _message(
        {
            1: _Field("gracePeriodSeconds", _signed),
            2: _Field("preconditions", _message({1: _Field("uid", _text), 2: _Field("resourceVersion", _text)})),
            3: _Field("orphanDependents", bool),
            4: _Field("propagationPolicy", _text),
            5: _Field("dryRun", _text, many=True),
        }
    ),
}


def decode(body: bytes) -> Obj:
    """The object in a protobuf body. Raises ApiError 415 for a kind that is not read here, 400 if damaged."""
    try:
        if not body.startswith(_MAGIC):
            raise ValueError("the prefix is missing")
        envelope = dict(_fields(body[len(_MAGIC) :]))
        type_meta, raw = envelope.get(1, b""), envelope.get(2, b"")
        if not isinstance(type_meta, bytes) or not isinstance(raw, bytes):
            raise ValueError("the envelope has fields of the wrong type")
        said = dict(_fields(type_meta))
        version, kind = (value.decode() if isinstance(value, bytes) else "" for value in (said.get(1), said.get(2)))
        read = _KINDS.get((version, kind))
        obj = read(raw) if read is not None else None
    except _Unread:
        obj = None
    except (ValueError, IndexError) as error:
        raise bad_request(f"couldn't read the body of the request as protobuf: {error}") from None
    if obj is None:
        raise unsupported_media_type(
            f"a protobuf body of kind {kind or 'unknown'} cannot be read here; send JSON: write the object "
            "to a file (add --dry-run=client -o yaml) and use kubectl create -f FILE"
        )
    return {"apiVersion": version, "kind": kind, **obj}
