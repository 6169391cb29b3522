"""Which objects belong to an owner: what to keep, adopt and release, and the requests that do it.

Ownership is decided by the UID of the controller reference alone. Upstream:
`pkg/controller/controller_ref_manager.go`.
"""

from collections.abc import Collection, Iterable, Sequence
from enum import Enum
from typing import Generic, Protocol, TypeVar

import msgspec

from oarlock.controllers.flavour import Flavour
from oarlock.controllers.objects.model import LabelSelector, Owned, OwnerRef
from oarlock.controllers.objects.wire_parts import rfc3339


class _Object(Owned, Protocol):
    @property
    def namespace(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def key(self) -> str: ...
    @property
    def uid(self) -> str: ...
    @property
    def deleting_ms(self) -> int: ...


class Claimable(_Object, Protocol):
    """An object that an owner may hold: a pod, a revision."""

    @property
    def labels(self) -> dict[str, str]: ...


class Claimer(_Object, Protocol):
    """An owner. An empty namespace is that of a cluster-scoped owner, which may claim in any namespace."""

    @property
    def selector(self) -> LabelSelector | None: ...
    @property
    def waits_for_pods(self) -> bool: ...
    @property
    def is_observed(self) -> bool: ...


T = TypeVar("T", bound=Claimable)


class Claims(Generic[T]):
    """`kept`: ours already. `adopt`: orphans to take. `release`: ours, to let go. All in the order given.

    `claimed` is what counts as ours when all adoptions succeed: kept and adopt together, in the order given.
    """

    __slots__ = ("adopt", "claimed", "kept", "release")

    def __init__(self, kept: list[T], adopt: list[T], release: list[T], claimed: list[T]) -> None:
        self.kept, self.adopt, self.release, self.claimed = kept, adopt, release, claimed

    def carried_out(self, adopted: Collection[str] | None) -> "Claims[T]":
        """What is left after the claims were made: `adopted` are the UIDs of the orphans that were adopted, and every
        other orphan stays one. None: they are still to be made.
        """
        if adopted is None:
            return self
        missed = {obj.uid for obj in self.adopt if obj.uid not in adopted}
        claimed = [obj for obj in self.claimed if obj.uid not in missed] if missed else self.claimed
        return Claims(self.kept, [], [], claimed)


class Done(Enum):
    """What the answer to an adoption or a release means."""

    YES = "yes"
    GONE = "gone"  # nothing left to adopt or to release: not an error
    ERROR = "error"  # ends the turn before anything is created, deleted or written to the status


_OK_FROM, _OK_BELOW, _NOT_FOUND, _INVALID = 200, 300, 404, 422


def claim(owner: Claimer, objects: Iterable[T]) -> Claims[T]:
    """Sort candidates into kept, to adopt and to release. All others are left out: objects of other owners, of other
    namespaces, and orphans that the owner does not select.

    An owner that is being deleted adopts and releases nothing, and keeps what it owns and selects. Raises
    InvalidSelector for a selector that failed validation.
    """
    selector, uid, deleting, namespace = owner.selector, owner.uid, owner.deleting_ms, owner.namespace
    kept: list[T] = []
    adopt: list[T] = []
    release: list[T] = []
    claimed: list[T] = []
    for obj in objects:
        for ref in obj.owner_refs:
            if ref.controller:
                break
        else:
            ref = None  # an orphan
        if (ref is not None and ref.uid != uid) or (namespace and obj.namespace != namespace):
            continue  # a reference across namespaces names nobody
        matches = selector is not None and selector.matches(obj.labels)
        if ref is not None:
            if matches:
                kept.append(obj)
                claimed.append(obj)
            elif not deleting:
                release.append(obj)
        elif matches and not deleting and not obj.deleting_ms:
            adopt.append(obj)
            claimed.append(obj)
    return Claims(kept, adopt, release, claimed)


def gate_error(owner: Claimer, kind: str, live_uid: str, live_deleting_ms: int) -> str:
    """Why the owner, as just read from the API, may not adopt; empty when it may.

    Called at most once a turn, before the first adoption. If the read failed, that is the reason.
    """
    if live_uid != owner.uid:
        return f"original {kind} {owner.namespace}/{owner.name} is gone: got uid {live_uid}, wanted {owner.uid}"
    if live_deleting_ms:
        return f"{owner.namespace}/{owner.name} has just been deleted at {rfc3339(live_deleting_ms)}"
    return ""


def cannot_adopt(kind: str, obj: Claimable, cause: str) -> str:
    """The error of an adoption that is not tried. `kind`: the object's, such as Pod."""
    return f"can't adopt {kind} {obj.namespace}/{obj.name} ({obj.uid}): {cause}"


def controller_ref_of(owner: Claimer, flavour: Flavour) -> OwnerRef:
    """The reference that makes the owner the controller, and lets foreground deletion wait."""
    return OwnerRef(flavour.api_version, flavour.kind, owner.name, owner.uid, True, True)


def reference_json(ref: OwnerRef) -> dict[str, object]:
    """Its entry of ownerReferences."""
    return {
        "apiVersion": ref.api_version,
        "kind": ref.kind,
        "name": ref.name,
        "uid": ref.uid,
        "controller": ref.controller,
        "blockOwnerDeletion": ref.block_owner_deletion,
    }


def owner_reference(owner: Claimer, flavour: Flavour) -> dict[str, object]:
    """The entry of ownerReferences of an owner's objects."""
    return reference_json(controller_ref_of(owner, flavour))


def adopt_patch(owner: Claimer, flavour: Flavour, obj_uid: str, finalizers: Sequence[str] = ()) -> bytes:
    """Strategic merge patch that makes the owner the controller. The API refuses it if the UID is another's."""
    metadata: dict[str, object] = {"ownerReferences": [owner_reference(owner, flavour)], "uid": obj_uid}
    if finalizers:
        metadata["finalizers"] = list(finalizers)
    return msgspec.json.encode({"metadata": metadata})


def release_patch(obj_uid: str, owner_uids: Sequence[str], finalizers: Sequence[str] = ()) -> bytes:
    """Strategic merge patch that removes the owners' references (and finalizers) from an object; others stay."""
    gone = [{"$patch": "delete", "uid": uid} for uid in owner_uids]
    metadata: dict[str, object] = {"uid": obj_uid, "ownerReferences": gone}
    if finalizers:
        metadata["$deleteFromPrimitiveList/finalizers"] = list(finalizers)
    return msgspec.json.encode({"metadata": metadata})


def adopted(code: int) -> Done:
    """What the HTTP status of an adoption means; 0 stands for no answer."""
    if _OK_FROM <= code < _OK_BELOW:
        return Done.YES
    return Done.GONE if code == _NOT_FOUND else Done.ERROR


def released(code: int) -> Done:
    """What the HTTP status of a release means. Invalid: no longer ours, or recreated under the same name."""
    if _OK_FROM <= code < _OK_BELOW:
        return Done.YES
    return Done.GONE if code in (_NOT_FOUND, _INVALID) else Done.ERROR
