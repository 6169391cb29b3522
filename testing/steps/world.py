"""The objects that a function under test sees and changes: the cache and the API of its turn, in a dict.

Writes have the meaning that they have for the API server, as far as a function can tell: names that are taken,
preconditions, merge patches, server-side apply. Nothing is validated or defaulted: that is the cluster's part.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
import orjson

from oarlock.broker.values.objects import Cached
from oarlock.cluster.answer import NO_ANSWER, Answer
from oarlock.controllers.objects.whole import Whole
from oarlock.controllers.watched import Watched
from oarlock.sandbox.apiserver.apply.field_sets import FieldSet
from oarlock.sandbox.apiserver.apply.field_types import type_of_kind
from oarlock.sandbox.apiserver.apply.managers import Writer, applied
from oarlock.sandbox.apiserver.errors import OBJECT_MODIFIED, ApiError, already_exists, conflict, not_found
from oarlock.sandbox.apiserver.patches import apply_merge_patch
from oarlock.workers.turn.steps import Look, Write

Obj = dict[str, Any]
Place = tuple[str, str, str]
"""Resource, namespace and name."""
SOME_TIME = "1970-01-01T00:00:00Z"
VERBS = ("create", "apply", "patch", "delete", "status")
_REASONS = {403: "Forbidden", 404: "NotFound", 409: "Conflict", 422: "Invalid", 429: "TooManyRequests"}
_UNRESET: FieldSet = {}


class World:
    """``kinds``: those that ``controller`` declares. ``refuse``: verb -> the code that answers such writes."""

    def __init__(
        self, controller: str, kinds: Iterable[Watched[Any]], namespace: str, refuse: Mapping[str, int]
    ) -> None:
        self._controller, self._kinds = controller, {each.resource: each for each in kinds}
        self._namespace, self._refuse, self._rv = namespace, refuse, 0
        self._objects: dict[Place, Obj] = {}
        for verb, code in refuse.items():
            if verb not in VERBS or not (code == NO_ANSWER or 400 <= code < 600):
                raise ValueError(f"refuse={{{verb!r}: {code}}}: a verb of {', '.join(VERBS)}; a code from 400 on, or 0")

    # -- objects of the test -------------------------------------------------------------------------------------------

    def add(self, given: Obj, owner: Obj | None = None) -> Place:
        """Let it be there; of ``owner`` it is a child. Raises ValueError for a kind that is not declared."""
        kind = self._kind(given)
        meta: Obj = {**given["metadata"]}
        meta["uid"] = meta.get("uid") or f"uid-{len(self._objects)}"
        if kind.namespaced:
            meta.setdefault("namespace", self._namespace)
        if owner is not None:
            meta.setdefault("ownerReferences", [owner])
        place = (kind.resource, meta.get("namespace", ""), meta["name"])
        self._keep(place, {**given, "apiVersion": kind.api_version, "metadata": meta})
        fault = self.whole(place).fault
        if fault:
            raise ValueError(f"{kind.kind} {meta['name']}: {fault}")
        return place

    def _kind(self, given: Obj) -> Watched[Any]:
        name, group = given.get("kind"), str(given.get("apiVersion", "")).rpartition("/")[0]
        for each in self._kinds.values():
            if each.kind == name and ("apiVersion" not in given or each.group == group):
                return each
        known = ", ".join(f'"{each.api_version} {each.kind}"' for each in self._kinds.values())
        asked = f"{given.get('apiVersion', '')} {name}".strip()
        raise ValueError(f'"{asked}" is none of the kinds that {self._controller} knows: {known}')

    def kind(self, resource: str) -> str:
        return self._kinds[resource].kind

    def object(self, place: Place) -> Obj:
        return self._objects[place]

    # -- the turn's side -----------------------------------------------------------------------------------------------

    def whole(self, place: Place) -> Whole:
        """The object as it would be cached."""
        whole: Whole = self._kinds[place[0]].from_json(orjson.dumps(self._objects[place]))[1]
        return whole

    def cached(self, place: Place) -> Cached:
        whole = self.whole(place)
        return Cached(
            self._objects[place]["metadata"]["resourceVersion"], whole.uid, self._kinds[place[0]].encode(whole)
        )

    def owned(self, resource: str, uid: str) -> list[Cached]:
        """The children of an owner."""
        return [
            self.cached(place)
            for place in self._of(resource)
            if any(ref.controller and ref.uid == uid for ref in self.whole(place).owner_refs)
        ]

    def look(self, look: Look) -> list[Cached]:
        """What the cache has under these ids and index entries."""
        found = [(place, self.whole(place)) for place in self._of(look.resource)]
        return [
            self.cached(place)
            for place, whole in found
            if whole.key in look.ids or not set(look.entries).isdisjoint(whole.keys)
        ]

    def read(self, place: Place) -> Answer:
        """A get."""
        obj = self._objects.get(place)
        return _refused(self._not_found(place)) if obj is None else Answer(200, orjson.dumps(obj))

    def write(self, write: Write) -> Answer:
        """Carry it out, or say why not."""
        place = (write.resource, write.namespace, write.name)
        code = self._refuse.get("patch" if write.verb == "merge" else write.verb)
        if code == NO_ANSWER:
            return Answer(NO_ANSWER, error="no answer")
        try:
            if code is not None:
                reason = "AlreadyExists" if (write.verb, code) == ("create", 409) else _REASONS.get(code, "")
                raise ApiError(code, reason, f"the test refuses to {write.verb} it")
            return self._done(write, place)
        except ApiError as error:
            return _refused(error)

    def _done(self, write: Write, place: Place) -> Answer:
        live = self._objects.get(place)
        if write.verb == "delete":
            return self._delete(write, place, live)
        body: Obj = orjson.loads(write.body)
        meta = body.get("metadata", {})
        uid, rv = meta.pop("uid", ""), meta.pop("resourceVersion", "")
        if live is None and (uid or write.verb in ("merge", "status")):
            raise self._not_found(place)
        if live is not None:
            self._check(place, live, uid, rv)
        if write.verb == "create":
            if live is not None:
                raise already_exists(self._kinds[place[0]].plural, self._kinds[place[0]].group, place[2])
            return self._answer(place, {**body, "metadata": {"uid": f"uid-{self._rv + 1}", **meta}}, 201)
        if write.verb == "apply":
            writer = Writer(write.manager, self._kinds[place[0]].api_version, "", SOME_TIME)
            type_ = type_of_kind(self._kinds[place[0]].kind)
            obj, entries = applied(live, body, writer, type_, force=write.force, reset=_UNRESET)
            uid = obj["metadata"].get("uid") or f"uid-{self._rv + 1}"
            return self._answer(place, {**obj, "metadata": {**obj["metadata"], "uid": uid, "managedFields": entries}})
        return self._answer(place, apply_merge_patch(live, body))

    def _delete(self, write: Write, place: Place, live: Obj | None) -> Answer:
        if live is None:
            raise self._not_found(place)
        self._check(place, live, write.uid, write.rv)
        if live["metadata"].get("finalizers"):
            return self._answer(place, apply_merge_patch(live, {"metadata": {"deletionTimestamp": SOME_TIME}}))
        del self._objects[place]
        return Answer(200, b'{"kind":"Status","apiVersion":"v1","status":"Success"}')

    def _check(self, place: Place, live: Obj, uid: str, rv: str) -> None:
        meta, kind = live["metadata"], self._kinds[place[0]]
        if (uid and uid != meta["uid"]) or (rv and rv != meta["resourceVersion"]):
            raise conflict(kind.plural, kind.group, place[2], OBJECT_MODIFIED)

    def _answer(self, place: Place, obj: Obj, code: int = 200) -> Answer:
        self._keep(place, obj)
        return Answer(code, orjson.dumps(self._objects[place]))

    def _keep(self, place: Place, obj: Obj) -> None:
        self._rv += 1
        self._objects[place] = {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(self._rv)}}

    def _of(self, resource: str) -> list[Place]:
        return [place for place in self._objects if place[0] == resource]

    def _not_found(self, place: Place) -> ApiError:
        kind = self._kinds[place[0]]
        return not_found(kind.plural, kind.group, place[2])


def _refused(error: ApiError) -> Answer:
    return Answer(error.code, msgspec.json.encode(error.status()))
