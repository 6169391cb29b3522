"""An object of any kind as the cache keeps it for controllers of one's own: whole, but for what the server notes.

Without metadata.managedFields and metadata.resourceVersion, which change with every write and mean nothing to a
controller: an event that changes nothing else must leave the projection as it was.
"""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from oarlock.controllers.objects import field_paths
from oarlock.controllers.objects.codec import decoder
from oarlock.controllers.objects.model import LabelSelector, Namespaced, OwnerRef
from oarlock.controllers.objects.wire_parts import Owner, Time, WireError, decoded, ms_of, owner_refs

Json = dict[str, Any]
Index = Callable[[Json], Sequence[str]]
"""An index function of a user: what it says of an object, as words of `Whole.keys`. It may raise anything."""

_LEFT_OUT = ("managedFields", "resourceVersion", "selfLink")
_FAULT_MAX = 200


class IndexFault(Exception):
    """What an index function did wrong, in one line that says whose it is."""


class Whole(Namespaced, frozen=True):
    """An object of any kind; of one without a namespace `namespace` is empty.

    `body`: its JSON, or that of the fields that were asked for. `keys`: what index functions said of it, as
    `ref=<controller>/<resource>/<key>` and `for=<queue>:<key>`. `fault`: why an index function said nothing; empty if
    all is well.
    """

    labels: dict[str, str] = {}  # noqa: RUF012 - msgspec copies it
    owner_refs: tuple[OwnerRef, ...] = ()
    deleting_ms: int = 0
    created_ms: int = 0
    generation: int = 0
    finalizers: tuple[str, ...] = ()
    body: bytes = b"{}"
    keys: tuple[str, ...] = ()
    fault: str = ""

    @property
    def key(self) -> str:
        """`namespace/name`, or the bare name."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def selector(self) -> LabelSelector | None:
        """It adopts nothing."""
        return None


class _Meta(msgspec.Struct, rename="camel"):
    name: str
    uid: str
    resource_version: str
    namespace: str = ""
    generation: int | None = None
    labels: dict[str, str] | None = None
    owner_references: tuple[Owner, ...] | None = None
    creation_timestamp: Time | None = None
    deletion_timestamp: Time | None = None
    finalizers: tuple[str, ...] | None = None


class _Object(msgspec.Struct):
    metadata: _Meta


_OBJECT = msgspec.json.Decoder(_Object)
_JSON = msgspec.json.Decoder(Json)
_ENCODER = msgspec.json.Encoder()

decode_whole = decoder(Whole, "whole object")


def reader(
    api_version: str, kind: str, fields: Sequence[str] = (), index: Sequence[Index] = ()
) -> Callable[[bytes], tuple[str, Whole]]:
    """A function from an object's JSON to its resourceVersion and projection; it raises WireError.

    `api_version`, `kind`: an object in a list does not say them. `fields`: paths such as `spec.replicas` that alone are
    kept beside the identity; none: all. `index`: each is called with the object, whatever became of the others.
    """
    asked = field_paths.tree((*field_paths.IDENTITY, *fields)) if fields else None

    def from_json(raw: bytes) -> tuple[str, Whole]:
        meta = decoded(_OBJECT, raw, kind).metadata
        stored: Json = decoded(_JSON, raw, kind)
        obj = {"apiVersion": api_version, "kind": kind, **stored}
        for name in _LEFT_OUT:
            obj["metadata"].pop(name, None)
        keys, fault = _said(index, obj)
        return meta.resource_version, Whole(
            namespace=meta.namespace,
            name=meta.name,
            uid=meta.uid,
            labels=meta.labels or {},
            owner_refs=owner_refs(meta),
            deleting_ms=ms_of(meta.deletion_timestamp),
            created_ms=ms_of(meta.creation_timestamp),
            generation=meta.generation or 0,
            finalizers=meta.finalizers or (),
            body=_body(obj, asked, kind),
            keys=keys,
            fault=fault,
        )

    return from_json


def _body(obj: Json, asked: field_paths.Tree | None, kind: str) -> bytes:
    try:
        return _ENCODER.encode(field_paths.projected(obj, asked))
    except RecursionError as error:  # lists in lists, just shallow enough to be decoded
        raise WireError(f"not a {kind}: {error}") from error


def _said(index: Sequence[Index], obj: Json) -> tuple[tuple[str, ...], str]:
    words: dict[str, None] = {}
    fault = ""
    for function in index:
        try:
            words |= dict.fromkeys(function(obj))
        except Exception as error:  # a user's function: one object that it cannot read must not stop all the others
            fault = fault or _told(error)[:_FAULT_MAX]
    return tuple(words), fault


def _told(error: Exception) -> str:
    told = str(error) if isinstance(error, IndexFault) else f"{type(error).__name__}: {error}"
    return told.encode(errors="backslashreplace").decode()  # it may quote what has no UTF-8


def without_noise(raw: bytes, what: str) -> Json:
    """The JSON of an object as `Whole.body` has it. Raises WireError."""
    obj = decoded(_JSON, raw, what)
    meta = obj.get("metadata")
    if isinstance(meta, dict):
        for name in _LEFT_OUT:
            meta.pop(name, None)
    return obj
