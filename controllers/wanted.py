"""What a controller of one's own wants of an object, and what follows from it: which children to make, change, delete.

A child is as it was wanted if the annotation APPLIED has the digest of what was wanted, and the live object holds all
of it. The digest tells that something was taken out of the wish; the comparison, that somebody changed the object.
"""

from base64 import b64encode
from collections.abc import Collection, Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any

import msgspec

from oarlock.controllers.comparison import Differences, differences
from oarlock.controllers.objects.model import controller_of
from oarlock.controllers.objects.whole import Whole
from oarlock.controllers.pods.events import Event

APPLIED = "oarlock.io/applied"
"""Annotation of a child: `<controller>:<digest>` of what was applied last, and by which controller."""
CHANGED = "oarlock.io/changed"
"""Annotation of a child that was updated: the resourceVersion before it."""
_DIGEST_BYTES = 12
_SORTED = msgspec.json.Encoder(order="deterministic")


class UserError(Exception):
    """A user's function gave no result that can be used.

    `after_ms`: try again after so long; None: the ordinary back-off. `never`: only a change of the object helps.
    """

    def __init__(self, message: str, *, never: bool = False, after_ms: int | None = None) -> None:
        super().__init__(message)
        self.message, self.never, self.after_ms = message, never, after_ms


def said_by(error: BaseException) -> str:
    """What an exception of a user's function says. Its ``__str__`` is the user's as well, and may raise."""
    try:
        return str(error)
    except Exception as other:
        return f"(its __str__ raised {type(other).__name__})"


class WantedChild(msgspec.Struct, frozen=True):
    """A child as it is wanted. `body`: the JSON to apply, with the owner reference and the digest in it."""

    resource: str
    kind: str
    api_version: str
    namespace: str
    name: str
    body: bytes
    digest: str

    @property
    def place(self) -> tuple[str, str, str]:
        """What no two children have in common."""
        return self.resource, self.namespace, self.name


class Wanted(msgspec.Struct, frozen=True):
    """All that is wanted of an object. `status`: its JSON; None leaves it as it is. `again_ms`: look again then."""

    children: tuple[WantedChild, ...] = ()
    status: bytes | None = None
    again_ms: int | None = None
    events: tuple[Event, ...] = ()


class Live(msgspec.Struct, frozen=True):
    """An owned object of the cache, and its resourceVersion."""

    resource: str
    rv: str
    obj: Whole


class Update(msgspec.Struct, frozen=True):
    """A child that differs from what is wanted."""

    child: WantedChild
    live: Live


class Changes(msgspec.Struct, frozen=True):
    """What is to be done. `waits`: a wanted child is being deleted; its end wakes the owner. `taken`: wanted children
    that another controller makes for the same owner, each with its name; they are left alone.
    """

    create: tuple[WantedChild, ...] = ()
    update: tuple[Update, ...] = ()
    delete: tuple[Live, ...] = ()
    waits: bool = False
    taken: tuple[tuple[WantedChild, str], ...] = ()

    @property
    def none(self) -> bool:
        return not (self.create or self.update or self.delete)


def wanted_child(
    resource: str, obj: dict[str, Any], *, namespace: str, owner_reference: dict[str, object], controller: str
) -> WantedChild:
    """A child from the object that a user wants, which is not changed.

    A wish that was made from the live child has the annotations of the last apply. They are no part of it: its digest
    would be another in each turn.
    """
    obj = _as_kept(obj)
    meta = {**obj["metadata"]}
    if namespace:
        meta["namespace"] = namespace
    own = meta.pop("ownerReferences", None) or ()
    others = [ref for ref in own if ref.get("uid") != owner_reference["uid"]]
    annotations = meta.pop("annotations", None) or {}
    annotations = {name: value for name, value in annotations.items() if name not in (APPLIED, CHANGED)}
    if others:
        meta["ownerReferences"] = others
    if annotations:
        meta["annotations"] = annotations
    hashed = blake2b(_SORTED.encode({**obj, "metadata": meta}), digest_size=_DIGEST_BYTES).hexdigest()
    digest = f"{controller}:{hashed}"
    meta["annotations"] = {**annotations, APPLIED: digest}
    meta["ownerReferences"] = [*others, owner_reference]
    body = _SORTED.encode({**obj, "metadata": meta})  # else a set would be another list in each process
    return WantedChild(resource, obj["kind"], obj["apiVersion"], namespace, meta["name"], body, digest)


def _as_kept(obj: dict[str, Any]) -> dict[str, Any]:
    """With a Secret's stringData put into its data, as the server does. What is wrong there the server refuses."""
    plain, data = obj.get("stringData"), obj.get("data") or {}
    if (obj["apiVersion"], obj["kind"]) != ("v1", "Secret") or not isinstance(plain, Mapping):
        return obj
    if not isinstance(data, Mapping) or not all(isinstance(value, str) for value in plain.values()):
        return obj
    encoded = {name: b64encode(value.encode()).decode() for name, value in plain.items()}
    return {**{name: value for name, value in obj.items() if name != "stringData"}, "data": {**data, **encoded}}


def changes(
    owner_uid: str,
    wanted: Wanted,
    owned: Iterable[Live],
    settled: Mapping[tuple[str, str], Differences],
    at_risk: Collection[str] = (),
    *,
    controller: str,
    rivals: Collection[str] = (),
) -> Changes:
    """Compare. `owned`: the cached objects that the owner controls, of the kinds that it may have for children.

    `settled`: by UID and digest, how a child differs since the server itself changed what was applied. `at_risk`: UIDs
    of children that an earlier delete may still take; those that are wanted are changed, whatever they are like.
    `controller`: deletes only what it applied itself; the owner may have children of other controllers, too. `rivals`:
    what one of these applied is left alone, or the two would apply against each other. What a controller applied that
    is not known, as it was renamed, is taken over.
    """
    there = {(each.resource, each.obj.namespace, each.obj.name): each for each in owned if _is_ours(each, owner_uid)}
    create, update, taken, waits = [], [], [], False
    for child in wanted.children:
        live = there.pop(child.place, None)
        if live is None:
            create.append(child)
        elif live.obj.deleting_ms:
            waits = True
        elif (applied_by := _applied(live.obj).partition(":")[0]) in rivals:
            taken.append((child, applied_by))
        elif live.obj.uid in at_risk or not as_wanted(child, live.obj, settled.get((live.obj.uid, child.digest), ())):
            update.append(Update(child, live))
    unwanted = [each for each in there.values() if not each.obj.deleting_ms]
    delete = tuple(each for each in unwanted if _applied(each.obj).startswith(f"{controller}:"))
    return Changes(tuple(create), tuple(update), delete, waits, tuple(taken))


def _is_ours(live: Live, owner_uid: str) -> bool:
    ref = controller_of(live.obj)
    return ref is not None and ref.uid == owner_uid


def _applied(live: Whole) -> str:
    return _applied_of(msgspec.json.decode(live.body))


def _applied_of(body: dict[str, Any]) -> str:
    return str((body["metadata"].get("annotations") or {}).get(APPLIED, ""))


def as_wanted(child: WantedChild, live: Whole, settled: Differences = ()) -> bool:
    """Whether a live object is what is wanted, but for what the server made of it."""
    body = msgspec.json.decode(live.body)
    if _applied_of(body) != child.digest:
        return False
    found = differences(msgspec.json.decode(child.body), body)
    return not found or set(found) <= set(settled)


def status_change(old: Any, new: Any) -> Any:
    """The merge patch that turns one status into another; None if they are equal, as absent and null are."""
    if isinstance(old, dict) and isinstance(new, dict):
        patch: dict[str, Any] = {}
        for name, value in new.items():
            before = old.get(name)
            if isinstance(before, dict) and isinstance(value, dict):
                inner = status_change(before, value)
                if inner is not None:
                    patch[name] = inner
            elif before != value:
                patch[name] = value
        patch |= {name: None for name, value in old.items() if name not in new and value is not None}
        return patch or None
    return None if old == new else new


def stamped(old: Any, new: Any, now: str) -> Any:
    """A status whose conditions have a lastTransitionTime, so that a pure function can have some.

    Where it is missing: that of the old condition, if this has the same status, else now.
    """
    given = new.get("conditions") if isinstance(new, dict) else None
    if not isinstance(given, list):
        return new
    before = old.get("conditions") if isinstance(old, dict) else None
    since = {_state(each): each.get("lastTransitionTime") for each in before or () if isinstance(each, dict)}
    return {**new, "conditions": [_since(each, since.get(_state(each)) or now) for each in given]}


def _state(condition: Any) -> tuple[str, str] | None:
    if not isinstance(condition, dict) or "type" not in condition or "status" not in condition:
        return None
    return str(condition["type"]), str(condition["status"])


def _since(condition: Any, time: str) -> Any:
    if _state(condition) is None or condition.get("lastTransitionTime"):
        return condition
    return {**condition, "lastTransitionTime": time}


def names_of(children: Sequence[WantedChild]) -> str:
    """For messages."""
    return ", ".join(f"{each.kind} {each.name}" for each in children)
