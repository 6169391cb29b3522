"""The cluster of the simulation of DaemonSets: pods, nodes, DaemonSets and ControllerRevisions as JSON.

Each is brought into the form the product knows by the product's own reading, so that what is ingested, looked up and
listed went the whole way from the wire. The API makes the checks it makes: names, UIDs, resourceVersions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

import msgspec
import orjson

from oarlock.cluster.answer import Answer
from oarlock.controllers.objects.model import Pod, controller_of
from oarlock.controllers.registry import WATCHED
from oarlock.workers.turn.steps import Write
from tests.simulation.daemon_docs import Doc, rfc3339
from tests.simulation.traffic import Traffic, accepted, refusal
from tests.simulation.world import NAMESPACE

FINISHED = ("Succeeded", "Failed")


class Stored(NamedTuple):
    """An object as it is: its JSON, and what the product makes of that."""

    rv: int
    raw: bytes
    obj: Any

    @property
    def doc(self) -> Doc:
        """To be changed and put back."""
        doc: Doc = orjson.loads(self.raw)
        return doc


class Change(NamedTuple):
    """One line of the journal: an object as it is from ``rv`` on, or as it was when it went."""

    rv: int
    resource: str
    key: str
    raw: bytes
    obj: Any
    gone: bool


def reading_once() -> dict[str, Any]:
    """The kinds that are watched; each remembers what it read, as several ingestors are shown the same JSON."""
    kinds = {}
    for name, kind in WATCHED.items():
        once: Any = lru_cache(maxsize=1024)(kind.from_json)
        kinds[name] = msgspec.structs.replace(kind, from_json=once)
    return kinds


@dataclass
class DaemonWorld(Traffic):
    """``on_change`` is told of every commit, the others of requests of ours that are committed."""

    wall_ms: Callable[[], int] = int
    rv: int = 10
    kinds: dict[str, Any] = field(default_factory=reading_once)
    tables: dict[str, dict[str, Stored]] = field(default_factory=lambda: {name: {} for name in WATCHED})
    journal: list[Change] = field(default_factory=list)
    serial: int = 0
    on_change: Callable[[Change], None] = lambda change: None
    on_create: Callable[[Any, Write], None] = lambda obj, write: None
    on_delete: Callable[[Any, Write], None] = lambda obj, write: None
    on_status: Callable[[Any, Doc], None] = lambda owner, patch: None
    checks_preconditions: ClassVar[bool] = True

    # -- objects

    @property
    def pods(self) -> list[Pod]:
        return [stored.obj for stored in self.tables["pods"].values()]

    def pods_of(self, uid: str) -> list[Pod]:
        return [pod for pod in self.pods if (ref := controller_of(pod)) is not None and ref.uid == uid]

    def uid(self, kind: str) -> str:
        """A new one."""
        self.serial += 1
        return f"{kind}-{self.serial}"

    def put(self, resource: str, doc: Doc) -> int:
        """Add an object, or change it. Returns its resourceVersion."""
        self.rv += 1
        meta = doc["metadata"]
        meta["resourceVersion"] = str(self.rv)
        meta.setdefault("namespace", "" if resource == "nodes" else NAMESPACE)
        if "creationTimestamp" not in meta:
            meta["creationTimestamp"] = rfc3339(self.wall_ms())
        raw = orjson.dumps(doc)
        _, obj = self.kinds[resource].from_json(raw)
        self.tables[resource][meta["name"]] = Stored(self.rv, raw, obj)
        self._note(Change(self.rv, resource, obj.key, raw, obj, False))
        return self.rv

    def remove(self, resource: str, name: str) -> int:
        """It is gone."""
        self.rv += 1
        stored = self.tables[resource].pop(name)
        self._note(Change(self.rv, resource, stored.obj.key, stored.raw, stored.obj, True))
        return self.rv

    def _note(self, change: Change) -> None:
        self.journal.append(change)
        self.on_change(change)

    def end_pod(self, name: str) -> int:
        """Somebody deletes a pod: it is gone at once where nothing of it runs and nothing holds it."""
        doc = self.tables["pods"][name].doc
        runs = doc["spec"].get("nodeName") and doc["status"].get("phase") not in FINISHED
        if not runs and not doc["metadata"].get("finalizers"):
            return self.remove("pods", name)
        doc["metadata"].setdefault("deletionTimestamp", rfc3339(self.wall_ms()))
        return self.put("pods", doc)

    # -- requests

    def get(self, resource: str, name: str) -> Answer:
        stored = self.tables[resource].get(name)
        return refusal(404, "NotFound") if stored is None else Answer(200, stored.raw)

    def handle(self, write: Write) -> Answer:
        if write.verb == "create":
            return self._create(write)
        stored = self.tables[write.resource].get(write.name)
        if stored is None:
            return refusal(404, "NotFound")
        match write.verb:
            case "delete":
                return self._delete(write, stored)
            case "patch":
                return self._patch(write, stored)
            case "status":
                return self._status(write, stored)
        raise AssertionError(write)

    def _create(self, write: Write) -> Answer:
        if write.name in self.tables[write.resource]:
            return refusal(409, "AlreadyExists")
        doc = orjson.loads(write.body)
        doc["metadata"]["uid"] = self.uid(write.resource)
        if write.resource == "pods":
            doc["status"] = {"phase": "Pending"}
        self.put(write.resource, doc)
        made = self.tables[write.resource][write.name]
        self.on_create(made.obj, write)
        return Answer(201, made.raw)

    def _delete(self, write: Write, stored: Stored) -> Answer:
        obj = stored.obj
        if self.checks_preconditions and (obj.uid != write.uid or write.rv not in ("", str(stored.rv))):
            self.count("precondition refused")
            return refusal(409, "Conflict")
        self.on_delete(obj, write)
        rv = self.end_pod(write.name) if write.resource == "pods" else self.remove(write.resource, write.name)
        return accepted(200, obj.uid, rv)

    def _patch(self, write: Write, stored: Stored) -> Answer:
        """The part of a strategic merge patch that is used: references, labels, the number of a revision."""
        patch, doc = orjson.loads(write.body), stored.doc
        meta, told = doc["metadata"], patch["metadata"]
        if (
            told["uid"] != meta["uid"]
            or told.get("resourceVersion", meta["resourceVersion"]) != meta["resourceVersion"]
        ):
            self.count("precondition refused")
            return refusal(409, "Conflict")
        refs = {ref["uid"]: ref for ref in meta.get("ownerReferences", ())}
        for ref in told.get("ownerReferences", ()):
            if ref.get("$patch") == "delete":
                refs.pop(ref["uid"], None)
            else:
                refs[ref["uid"]] = ref
        if sum(bool(ref.get("controller")) for ref in refs.values()) > 1:
            return refusal(422, "Invalid")
        meta["ownerReferences"] = list(refs.values())
        meta["labels"] = meta.get("labels", {}) | told.get("labels", {})
        self._merge(doc, patch)
        return accepted(200, meta["uid"], self.put(write.resource, doc))

    def _merge(self, doc: Doc, patch: Doc) -> None:
        """What a patch says beside the metadata of every object."""
        if "revision" in patch:
            doc["revision"] = patch["revision"]

    def _status(self, write: Write, stored: Stored) -> Answer:
        patch, doc = orjson.loads(write.body), stored.doc
        told = patch["metadata"]
        if told["resourceVersion"] != str(stored.rv) or told["uid"] != stored.obj.uid:
            self.count("status conflicts")
            return refusal(409, "Conflict")
        self.on_status(stored.obj, patch["status"])
        status = doc["status"] | patch["status"]
        doc["status"] = {name: value for name, value in status.items() if value is not None}
        if "annotations" in told:
            doc["metadata"]["annotations"] = doc["metadata"].get("annotations", {}) | told["annotations"]
        return accepted(200, stored.obj.uid, self.put(write.resource, doc))
