"""The words of a ctx as requests to the turn: which kind is meant, which name, which owner; what differs."""

from __future__ import annotations

import copy
import logging
import time
from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import Any, TypeVar

import orjson

from oarlock.controllers.objects.wire_parts import rfc3339
from oarlock.controllers.requests import Delete, Get, List, LookAgain, Patch, Put, Request, Requests, SetStatus, Tell
from oarlock.controllers.wanted import stamped
from oarlock.sdk.checks import Wrong, as_bytes, as_event, as_ms, as_object, as_status, as_text
from oarlock.sdk.definitions import Definition
from oarlock.sdk.errors import Never
from oarlock.sdk.kinds import BadDefinition, Kind, among, scope_hint, told
from oarlock.sdk.objects import AnyKind, Object

Json = dict[str, Any]
T = TypeVar("T")
_DIGEST_BYTES = 12


class Words:
    """Requests from what a function says. `Context` and `AsyncContext` send them."""

    def __init__(self, definition: Definition, own: Json, requests: Requests) -> None:
        meta = own["metadata"]
        self._definition, self._requests = definition, requests
        self._own, self._meta, self._status = own, meta, copy.deepcopy(own.get("status"))
        self.namespace: str = meta.get("namespace", "")
        """That of the object; empty for one without a namespace."""
        self.key: str = f"{self.namespace}/{meta['name']}" if self.namespace else meta["name"]
        """`namespace/name`, or the name of an object without a namespace."""
        about = {"controller": definition.name, "key": self.key}
        self.log = logging.LoggerAdapter(logging.getLogger(f"oarlock.controller.{definition.name}"), about)
        """A logger whose records have the `controller` and the object's `key`."""

    @property
    def idempotency_key(self) -> str:
        """For effects outside: the same for each run over this version of the object's spec, and for no other object.

        A function runs at least once for a version, so give the key to what it calls, or ask there first. It is
        `<uid>-<generation>`. Of a kind whose objects have no generation, as ConfigMaps, a digest of all but metadata
        and status takes its place, with `-deleting` behind it once the object is being deleted. So there a content that
        comes back has its former key, and the key changes when other fields of the kind are cached.
        """
        version = self._meta.get("generation")
        if not version:
            version = f"{_digest_of(self._own)}{'-deleting' if self._meta.get('deletionTimestamp') else ''}"
        return f"{self._meta.get('uid', '')}-{version}"

    # -- kinds and names -----------------------------------------------------------------------------------------------

    def _kind(self, what: AnyKind) -> Kind:
        """The kind that is meant, one that the definition names. Raises Never: no run will know of another."""
        known = dict.fromkeys(self._kinds())
        try:
            found = among(what, known)
        except BadDefinition as wrong:
            raise self._never(str(wrong)) from None
        if found is None:
            name = self._definition.name
            raise Never(f"{name} knows no {told(what)}: it is none of {told(*known)}; name it in children= or watches=")
        return found

    def _kinds(self) -> tuple[Kind, ...]:
        definition = self._definition
        return (definition.kind, *definition.children, *(each.kind for each in definition.watches))

    def _place(self, kind: Kind, name: str) -> tuple[str, str]:
        """Namespace and name. A bare name is one in the object's own namespace."""
        namespace, slash, bare = self._checked(as_text, name, f"the name of a {kind.kind}").rpartition("/")
        return (namespace if slash else self.namespace if kind.namespaced else ""), bare

    def _place_to_write(self, kind: Kind, name: str, verb: str) -> tuple[str, str]:
        """As `_place`, of an object that there can be."""
        namespace, bare = self._place(kind, name)
        if not bare:
            raise self._never(f"it would {verb} a {kind.kind} with the name {name!r}: give its name, or do not call it")
        if kind.namespaced and not namespace and (self._is_nowhere or name.startswith("/")):
            raise self._never(f"it would {verb} {kind.kind} {name}: give namespace/name{self._why(kind)}")
        if namespace and not kind.namespaced:
            raise self._never(f"it would {verb} {kind.kind} {name}: its kind has no namespace; give the bare name")
        return namespace, bare

    def _namespace(self, kind: Kind, meta: Json, is_child: bool) -> str:
        """Where what is put lives; empty for a kind without namespaces."""
        asked, which = meta.get("namespace") or "", f"{kind.kind} {meta['name']}"
        if not kind.namespaced:
            if asked:
                raise self._never(f"{which} is in namespace {asked}, but its kind has none; leave it out")
            if is_child and self.namespace:
                raise self._never(f"{which} has no namespace: an object in a namespace cannot own it")
            return ""
        if not asked and self._is_nowhere:
            raise self._never(f"{which} needs a metadata.namespace{self._why(kind)}")
        if is_child and self.namespace and asked not in ("", self.namespace):
            named = f"{kind.kind} {asked}/{meta['name']}"
            raise self._never(f"{named}: a child lives in its owner's namespace; leave metadata.namespace out")
        return str(asked or self.namespace)

    @property
    def _is_nowhere(self) -> bool:
        """Whether its kind has no namespace. Else only an object of a test can be without one."""
        return not self._definition.kind.namespaced

    def _why(self, kind: Kind) -> str:
        return f", as {self._definition.kind.kind} {self.key} has none{scope_hint(kind)}" if self._is_nowhere else ""

    def _put(self, verb: str, obj: Json | Object) -> Put:
        body = self._checked(as_object, obj, f"what it would {verb}")
        kind = self._kind(f"{body['apiVersion']} {body['kind']}")
        meta = {**body["metadata"]}
        is_child = kind.resource in {each.resource for each in self._definition.children}
        namespace = self._namespace(kind, meta, is_child)
        for field in ("namespace", "uid", "resourceVersion", "managedFields", "creationTimestamp", "generation"):
            meta.pop(field, None)
        if namespace:
            meta["namespace"] = namespace
        if is_child:
            given = meta.get("ownerReferences") or ()
            others = [each for each in given if each.get("uid") != self._meta["uid"]]
            meta["ownerReferences"] = [*others, self._reference()]
        body["metadata"] = meta
        sent = self._checked(as_bytes, body, f"the {kind.kind} {meta['name']!r}")
        return Put(verb, kind.resource, namespace, meta["name"], sent, is_child)

    def _checked(self, check: Callable[..., T], *given: Any, **options: Any) -> T:
        """What the function gave. Raises Never: it would give the same again."""
        try:
            return check(*given, **options)
        except Wrong as wrong:
            raise self._never(str(wrong)) from None

    def _never(self, wrong: str) -> Never:
        return Never(f"{self._definition.name}: {self._definition.kind.kind} {self.key}: {wrong}")

    def _reference(self) -> Json:
        kind = self._definition.kind
        return {
            "apiVersion": kind.api_version,
            "kind": kind.kind,
            "name": self._meta["name"],
            "uid": self._meta["uid"],
            "controller": True,
            "blockOwnerDeletion": True,
        }

    # -- requests, each with what reads its answer ---------------------------------------------------------------------

    def _get(self, kind: AnyKind, name: str) -> Request:
        found = self._kind(kind)
        return Get(found.resource, *self._place(found, name))

    def _list(self, kind: AnyKind) -> Request:
        return List(self._kind(kind).resource)

    def _patch(self, kind: AnyKind, name: str, change: Mapping[str, Any]) -> Request:
        found = self._kind(kind)
        place, what = self._place_to_write(found, name, "patch"), f"the patch of {found.kind} {name}"
        if not isinstance(change, Mapping):
            raise self._never(f"{what}: a JSON merge patch is a dict, not {type(change).__name__}")
        return Patch(found.resource, *place, self._checked(as_bytes, change, what))

    def _delete(self, kind: AnyKind, name: str) -> Request:
        found = self._kind(kind)
        return Delete(found.resource, *self._place_to_write(found, name, "delete"))

    def _set_status(self, value: Any) -> SetStatus | None:
        """None if the object has that status."""
        wanted = self._status_of(value)
        change = merge_patch(self._status, wanted)
        if change is UNCHANGED:
            return None
        return SetStatus(orjson.dumps({"status": change}))

    def _has_status(self, value: Any) -> None:
        self._status = self._status_of(value)

    def _status_of(self, value: Any) -> Any:
        """As the server will have it: a tuple is a list there."""
        status = orjson.loads(self._checked(as_bytes, self._checked(as_status, value), "the status"))
        return stamped(self._status, status, rfc3339(time.time_ns() // 1_000_000))

    def _tell(self, reason: str, message: str, warning: bool) -> Request:
        return Tell("Warning" if warning else "Normal", *self._checked(as_event, reason, message))

    def _look_again(self, seconds: float) -> Request:
        return LookAgain(self._checked(as_ms, seconds, "again(): seconds", or_now=True))


def _digest_of(obj: Json) -> str:
    """Of what a generation would count the changes of."""
    content = {part: value for part, value in obj.items() if part not in ("metadata", "status")}
    return blake2b(orjson.dumps(content, option=orjson.OPT_SORT_KEYS), digest_size=_DIGEST_BYTES).hexdigest()


UNCHANGED: Any = object()


def merge_patch(has: Any, wants: Any) -> Any:
    """The JSON merge patch from one value to the other; UNCHANGED if they are equal."""
    if not isinstance(has, dict) or not isinstance(wants, dict):
        return UNCHANGED if has == wants and isinstance(has, bool) == isinstance(wants, bool) else wants
    patch: Json = {name: None for name in has if name not in wants}
    for name, value in wants.items():
        change = merge_patch(has.get(name), value)
        if change is not UNCHANGED:
            patch[name] = change
    return patch or UNCHANGED
