"""The cluster of the simulation of a controller of one's own: sites, their children, and objects of others.

Server-side apply as far as it matters here: an apply replaces what its manager said before, an unforced one that meets
another manager's object is refused, and one that changes nothing leaves the resourceVersion as it is.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import orjson

import oarlock
from oarlock.cluster.answer import Answer
from oarlock.controllers.objects.model import controller_of
from oarlock.controllers.objects.whole import Whole
from oarlock.workers.turn.steps import Write
from tests.simulation.daemon_docs import Doc
from tests.simulation.daemon_world import DaemonWorld, Stored
from tests.simulation.traffic import refusal
from tests.simulation.world import NAMESPACE

SITES, MAPS, SERVICES = "sites.example.com", "configmaps.v1", "services.v1"
CHILDREN = {MAPS: "ConfigMap", SERVICES: "Service"}
PARTS = ("a", "b", "c")
THEIRS = "others"


@oarlock.desired(oarlock.Kind("example.com/v1", "Site"), children=["v1 ConfigMap", "v1 Service"])
def site(obj: Doc, children: oarlock.Children) -> oarlock.Result:
    """A ConfigMap a part, a Service for each part whose value is even; the status counts the maps there are."""
    wanted: list[Doc] = []
    for part, value in sorted(obj["spec"]["parts"].items()):
        name = f"{obj['metadata']['name']}-{part}"
        wanted.append({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"v": str(value)}})
        if value % 2 == 0:
            wanted.append({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": {"v": value}})
    return oarlock.Result(wanted, {"maps": len(children.of("ConfigMap"))})


def wanted_of(doc: Doc) -> dict[tuple[str, str], Doc]:
    """What a site is to have, by resource and name."""
    found = site(doc, oarlock.Children()).children
    resources = {kind: resource for resource, kind in CHILDREN.items()}
    return {(resources[each["kind"]], each["metadata"]["name"]): each for each in found}  # type: ignore[index, misc]


@dataclass
class WholeWorld(DaemonWorld):
    """``on_apply`` is told of every apply of ours that changes an object, which is None if it was not there."""

    on_apply: Callable[[Whole | None, Write], None] = lambda obj, write: None

    def handle(self, write: Write) -> Answer:
        if write.verb == "apply":
            return self._apply(write, self.tables[write.resource].get(write.name))
        return super().handle(write)

    def _apply(self, write: Write, stored: Stored | None) -> Answer:
        config = orjson.loads(write.body)
        asked = config["metadata"]
        uid, rv = asked.pop("uid", ""), asked.pop("resourceVersion", "")
        if stored is None:
            if uid:
                return refusal(409, "Conflict")
            return self._applied(201, write, None, {**config, "manager": write.manager})
        doc = stored.doc
        if self.checks_preconditions and ((rv and rv != str(stored.rv)) or (uid and uid != stored.obj.uid)):
            self.count("precondition refused")
            return refusal(409, "Conflict")
        if doc["manager"] != write.manager and not write.force:
            self.count("apply refused")
            return refusal(409, "Conflict")
        kept = {name: doc["metadata"][name] for name in ("uid", "creationTimestamp", "namespace")}
        if doc["metadata"].get("deletionTimestamp"):
            kept["deletionTimestamp"] = doc["metadata"]["deletionTimestamp"]
        return self._applied(200, write, stored, {**config, "metadata": asked | kept, "manager": write.manager})

    def _applied(self, code: int, write: Write, stored: Stored | None, new: Doc) -> Answer:
        meta = new["metadata"]
        if stored is not None:
            meta["resourceVersion"] = str(stored.rv)
            if orjson.dumps(new, option=orjson.OPT_SORT_KEYS) == orjson.dumps(stored.doc, option=orjson.OPT_SORT_KEYS):
                return Answer(code, stored.raw)
        else:
            meta["uid"] = self.uid(write.resource)
        self.put(write.resource, new)
        made = self.tables[write.resource][write.name]
        self.on_apply(None if stored is None else stored.obj, write)
        return Answer(code, made.raw)

    # -- what there is

    def sites(self) -> list[Stored]:
        return list(self.tables[SITES].values())

    def children_of(self, uid: str) -> dict[tuple[str, str], Stored]:
        return {
            (resource, name): stored
            for resource in CHILDREN
            for name, stored in self.tables[resource].items()
            if owner_uid(stored.obj) == uid
        }


def owner_uid(obj: Whole) -> str:
    """Of its controller; empty for an orphan."""
    ref = controller_of(obj)
    return ref.uid if ref is not None else ""


class Cluster:
    """Users, other programs and the garbage collector."""

    def __init__(self, world: WholeWorld, rng: random.Random, deeds: tuple[str, ...], parts: tuple[int, ...]) -> None:
        self.world, self._random, self._deeds, self._values = world, rng, deeds, parts
        self._names: list[str] = []

    def found(self, name: str) -> None:
        meta = {"name": name, "uid": self.world.uid("site"), "generation": 1}
        spec = {"parts": {part: self._random.choice(self._values) for part in PARTS[:2]}}
        kind = {"apiVersion": "example.com/v1", "kind": "Site"}
        self.world.put(SITES, {**kind, "metadata": meta, "spec": spec, "status": {}})

    def user(self) -> None:
        sites = self.world.sites()
        if sites:
            getattr(self, f"_{self._random.choice(self._deeds)}")(self._random.choice(sites))

    def _set(self, stored: Stored) -> None:
        self._with(stored, self._random.choice(PARTS), self._random.choice(self._values))

    def _drop(self, stored: Stored) -> None:
        self._with(stored, self._random.choice(PARTS), None)

    def _with(self, stored: Stored, part: str, value: int | None) -> None:
        doc = stored.doc
        doc["spec"]["parts"].pop(part, None)
        if value is not None:
            doc["spec"]["parts"][part] = value
        doc["metadata"]["generation"] += 1
        self.world.put(SITES, doc)

    def _edit(self, stored: Stored) -> None:
        """Somebody changes a child."""
        mine = list(self.world.children_of(stored.obj.uid).items())
        if mine:
            (resource, _), child = self._random.choice(mine)
            doc = child.doc
            doc["data" if resource == MAPS else "spec"]["v"] = "edited"
            self.world.put(resource, doc)

    def _take(self, stored: Stored) -> None:
        """Somebody deletes a child."""
        mine = list(self.world.children_of(stored.obj.uid))
        if mine:
            self.world.remove(*self._random.choice(mine))

    def _plant(self, stored: Stored) -> None:
        """Somebody else takes a name that the site may want."""
        name = f"{stored.obj.name}-{self._random.choice(PARTS)}"
        if name not in self.world.tables[MAPS]:
            meta = {"name": name, "uid": self.world.uid("planted")}
            doc: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "manager": THEIRS}
            self.world.put(MAPS, doc | {"data": {"v": "theirs"}})
            self.world.count("planted")

    def _again(self, stored: Stored) -> None:
        """The site is deleted, and another one of its name is made."""
        self.world.remove(SITES, stored.obj.name)
        self.found(stored.obj.name)

    def collect(self) -> None:
        """The garbage collector takes one child whose site has gone."""
        uids = {stored.obj.uid for stored in self.world.sites()}
        for resource in CHILDREN:
            for name, stored in list(self.world.tables[resource].items()):
                uid = owner_uid(stored.obj)
                if uid and uid not in uids:
                    self.world.remove(resource, name)
                    return

    def calm(self) -> None:
        """What others have taken is given back."""
        for resource in CHILDREN:
            for name, stored in list(self.world.tables[resource].items()):
                if stored.doc["manager"] == THEIRS:
                    self.world.remove(resource, name)
        self.collect()


def key_of(name: str) -> str:
    return f"{NAMESPACE}/{name}"
