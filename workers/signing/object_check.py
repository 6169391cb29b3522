"""Checks cached objects before a worker believes them: signature, place, age, and that none is there twice."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from oarlock.broker.values.objects import Cached, Delta
from oarlock.broker.versions import newer
from oarlock.controllers.objects.codec import names_template
from oarlock.controllers.registry import WATCHED
from oarlock.workers.signing.signature import Signer

REMEMBERED_MAX = 4_096
"""Objects of a resource in a generation. One takes about 0.5 kB, which bounds the memory that this costs a worker."""
OWNERS_MAX = 4_096


class _Named(msgspec.Struct, array_like=True, gc=False):
    """The first fields of the projection of a namespaced object."""

    namespace: str
    name: str


class _Bare(msgspec.Struct, array_like=True, gc=False):
    """The first field of the projection of a node."""

    name: str


_NAMED, _BARE = msgspec.msgpack.Decoder(_Named), msgspec.msgpack.Decoder(_Bare)


def key_in(resource: str, blob: bytes) -> str:
    """The key of the object in a projection, ``namespace/name`` or the bare name; "" where there is none."""
    try:
        watched = WATCHED[resource]
        if not (watched.namespaced or watched.whole):
            return _BARE.decode(blob).name
        named = _NAMED.decode(blob)
        return f"{named.namespace}/{named.name}" if watched.namespaced else named.name
    except (msgspec.MsgspecError, RecursionError):
        return ""


class Remembered:
    """Objects of one resource whose signatures were found good, so that an unchanged object is checked only once.

    They are found by signature and compared as a whole: another object with the same signature is not trusted. Two
    generations bound the memory, as in a blob memo.
    """

    __slots__ = ("_older", "_resource", "_signer", "_younger")

    def __init__(self, signer: Signer, resource: str) -> None:
        self._signer, self._resource = signer, resource
        self._younger: dict[str, Cached] = {}
        self._older: dict[str, Cached] = {}

    def __len__(self) -> int:
        return len(self._younger) + len(self._older)

    def fault(self, cached: Cached) -> str:
        """Why the object is not to be believed; "" where its signature is good."""
        signature = cached.signature
        if self._younger.get(signature) == cached:
            return ""
        if self._older.get(signature) != cached:
            fault = self._signer.fault(self._resource, cached)
            if fault:
                return fault
        self._younger[signature] = cached
        return ""

    def forget_some(self) -> None:
        """Drop the older generation, once the younger one is full. Called between claims."""
        if len(self._younger) >= REMEMBERED_MAX:
            self._younger, self._older = {}, self._younger


class ObjectCheck:
    """Finds the fault of cached objects. Each method returns why they must not be believed; "" if all are good."""

    def __init__(self, signer: Signer) -> None:
        self._signer = signer
        self._remembered: dict[str, Remembered] = {}
        self._owners: dict[tuple[str, str], tuple[str, str]] = {}

    def fault_of_owner(self, resource: str, key: str, owner: Cached) -> str:
        """Also checks that it is the owner of this key, with its own template, and no older than one seen before."""
        remembered = self.remembered(resource)
        fault = remembered.fault(owner)
        remembered.forget_some()
        if not fault and key_in(resource, owner.blob) != key:
            fault = "it is another object's: it was moved here"
        if not fault and WATCHED[resource].template_apart and not names_template(owner.blob, owner.apart):
            fault = "the template beside it is another's"
        if fault:
            return fault
        before = self._owners.get((resource, key))
        if before is not None and before[0] == owner.uid and newer(before[1], owner.rv):
            return f"it is of resourceVersion {owner.rv}, but {before[1]} was seen before: it was put back"
        if before is None and len(self._owners) >= OWNERS_MAX:
            self._owners.clear()
        self._owners[resource, key] = owner.uid, owner.rv
        return ""

    def fault_of_delta(self, resource: str, delta: Delta) -> str:
        """Of the changes of a local cache; also checks that each object lies under its own key."""
        for object_id, cached in delta.changed:
            fault = self._signer.fault(resource, cached)
            if fault:
                return fault
            if key_in(resource, cached.blob) != object_id:
                return "it is another object's: it was moved here"
        return ""

    def fault_of_many(self, resource: str, many: Sequence[Cached]) -> str:
        """Also checks that each object is there only once: otherwise it would count twice."""
        if len(many) > 1 and len({each.uid for each in many}) < len(many):
            return "it is there twice: an index was changed"
        remembered = self.remembered(resource)
        for each in many:
            fault = remembered.fault(each)
            if fault:
                return fault
        remembered.forget_some()
        return ""

    def remembered(self, resource: str) -> Remembered:
        """The good objects of a resource."""
        found = self._remembered.get(resource)
        if found is None:
            found = self._remembered[resource] = Remembered(self._signer, resource)
        return found
