"""The cluster of the simulation: pods and owners with the API's checks, a journal to watch, and writes still under way.

A write is committed at a moment of the scheduler's choosing, also after its sender died, and its answer may be lost.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import msgspec
import orjson

from oarlock.cluster.answer import Answer
from oarlock.controllers.objects.model import OwnerRef, Pod, ReplicaSet, ReplicaSetStatus, controller_of, label_selector
from oarlock.workers.turn.steps import Write
from tests.simulation.traffic import Traffic, accepted, refusal

NAMESPACE = "default"
TEMPLATE = b'{"metadata":{"labels":{"app":"%s"}},"spec":{"containers":[{"name":"c","image":"i"}]}}'


@dataclass(slots=True)
class Change:
    """One line of the journal. ``obj`` None: gone."""

    rv: int
    resource: str
    name: str
    uid: str
    obj: Any

    @property
    def key(self) -> str:
        return f"{NAMESPACE}/{self.name}"

    @property
    def gone(self) -> bool:
        return self.obj is None


@dataclass
class World(Traffic):
    """``on_create`` and ``on_delete`` are told of our own commits, ``on_other`` of pods others took away or added."""

    rv: int = 10
    pods: dict[str, tuple[int, Pod]] = field(default_factory=dict)
    owners: dict[str, tuple[int, ReplicaSet]] = field(default_factory=dict)
    journal: list[Change] = field(default_factory=list)
    serial: int = 0
    on_create: Callable[[Pod], None] = lambda pod: None
    on_delete: Callable[[Pod, Write], None] = lambda pod, write: None
    on_other: Callable[[str, int], None] = lambda uid, by: None
    quota: int | None = None
    checks_preconditions: ClassVar[bool] = True

    # -- objects

    def _commit(self, resource: str, name: str, obj: Any) -> int:
        self.rv += 1
        table: dict[str, Any] = self.pods if resource == "pods" else self.owners
        if obj is None:
            _, old = table.pop(name)
            self.journal.append(Change(self.rv, resource, name, old.uid, None))
        else:
            table[name] = (self.rv, obj)
            self.journal.append(Change(self.rv, resource, name, obj.uid, obj))
        return self.rv

    def add_owner(self, name: str, replicas: int, *, strict: bool = False) -> str:
        self.serial += 1
        uid = f"owner-{self.serial}"
        owner = ReplicaSet(
            NAMESPACE,
            name,
            uid,
            1,
            replicas,
            label_selector({"app": name}),
            TEMPLATE % name.encode(),
            {"app": name},
            status=ReplicaSetStatus(),
            strict=strict,
        )
        self._commit("replicasets", name, owner)
        return uid

    def change_owner(self, name: str, **changes: Any) -> None:
        _, owner = self.owners[name]
        self._commit("replicasets", name, msgspec.structs.replace(owner, generation=owner.generation + 1, **changes))

    def change_pod(self, name: str, **changes: Any) -> None:
        _, pod = self.pods[name]
        self._commit("pods", name, msgspec.structs.replace(pod, **changes))

    def remove_pod(self, name: str) -> None:
        self._commit("pods", name, None)

    def active(self, uid: str) -> list[Pod]:
        """Pods the owner controls that neither end nor have ended."""
        return [pod for _, pod in self.pods.values() if _controlled(pod, uid) and is_active(pod)]

    def existing(self, uid: str) -> list[Pod]:
        return [pod for _, pod in self.pods.values() if _controlled(pod, uid)]

    def outstanding(self, uid: str) -> bool:
        """Whether a create or delete for this owner may still land."""
        for flight in self.flights:
            if flight.answer is None and flight.write.verb == "create" and uid.encode() in flight.write.body:
                return True
            victim = self.pods.get(flight.write.name) if flight.write.verb == "delete" else None
            if flight.answer is None and victim is not None and _controlled(victim[1], uid):
                return True
        return False

    # -- requests

    def handle(self, write: Write) -> Answer:
        match write.verb:
            case "create":
                return self._create(write)
            case "delete":
                return self._delete(write)
            case "patch":
                return self._patch(write)
            case "status":
                return self._status(write)
        raise AssertionError(write)

    def _create(self, write: Write) -> Answer:
        body = orjson.loads(write.body)
        if write.name in self.pods:
            return refusal(409, "AlreadyExists")
        ref = body["metadata"]["ownerReferences"][0]
        if self.quota is not None and len(self.pods) >= self.quota:
            return refusal(403, "Forbidden")
        self.serial += 1
        pod = Pod(
            NAMESPACE,
            write.name,
            phase="Pending",
            created_ms=self.clock_ms(),
            labels=body["metadata"]["labels"],
            owner_refs=(OwnerRef(ref["apiVersion"], ref["kind"], ref["name"], ref["uid"], True, True),),
            uid=f"pod-{self.serial}",
        )
        rv = self._commit("pods", write.name, pod)
        self.on_create(pod)
        return accepted(201, pod.uid, rv)

    def _delete(self, write: Write) -> Answer:
        if write.name not in self.pods:
            return refusal(404, "NotFound")
        rv, pod = self.pods[write.name]
        if self.checks_preconditions and (pod.uid != write.uid or write.rv != str(rv)):
            self.count("precondition refused")
            return refusal(409, "Conflict")
        self.on_delete(pod, write)
        if pod.node_name and pod.phase == "Running":
            new_rv = self._commit("pods", write.name, msgspec.structs.replace(pod, deleting_ms=self.clock_ms()))
        else:
            new_rv = self._commit("pods", write.name, None)
        return accepted(200, pod.uid, new_rv)

    def _patch(self, write: Write) -> Answer:
        if write.name not in self.pods:
            return refusal(404, "NotFound")
        _, pod = self.pods[write.name]
        meta = orjson.loads(write.body)["metadata"]
        if meta["uid"] != pod.uid:
            return refusal(409, "Conflict")
        (ref,) = meta["ownerReferences"]
        others = tuple(each for each in pod.owner_refs if each.uid != ref["uid"])
        if ref.get("$patch") == "delete":
            refs = others
        elif any(each.controller for each in others):
            return refusal(422, "Invalid")
        else:
            refs = (*others, OwnerRef(ref["apiVersion"], ref["kind"], ref["name"], ref["uid"], True, True))
            self.on_other(ref["uid"], +1)
        rv = self._commit("pods", write.name, msgspec.structs.replace(pod, owner_refs=refs))
        return accepted(200, pod.uid, rv)

    def _status(self, write: Write) -> Answer:
        if write.name not in self.owners:
            return refusal(404, "NotFound")
        rv, owner = self.owners[write.name]
        patch = orjson.loads(write.body)
        if patch["metadata"]["resourceVersion"] != str(rv) or patch["metadata"]["uid"] != owner.uid:
            self.count("status conflicts")
            return refusal(409, "Conflict")
        new = patch["status"]
        status = ReplicaSetStatus(
            new["replicas"] or 0,
            new["fullyLabeledReplicas"] or 0,
            new["readyReplicas"] or 0,
            new["availableReplicas"] or 0,
            new.get("terminatingReplicas"),
            new["observedGeneration"] or 0,
        )
        new_rv = self._commit("replicasets", write.name, msgspec.structs.replace(owner, status=status))
        return accepted(200, owner.uid, new_rv)

    def get(self, resource: str, name: str) -> Answer:
        table: dict[str, Any] = self.pods if resource == "pods" else self.owners
        if name not in table:
            return refusal(404, "NotFound")
        rv, obj = table[name]
        return Answer(200, orjson.dumps(as_json(rv, obj)))


def is_active(pod: Pod) -> bool:
    return not pod.deleting_ms and pod.phase not in ("Succeeded", "Failed")


def _controlled(pod: Pod, uid: str) -> bool:
    ref = controller_of(pod)
    return ref is not None and ref.uid == uid


def as_json(rv: int, obj: Pod | ReplicaSet) -> dict[str, Any]:
    """Enough of the wire form for a live look."""
    meta: dict[str, Any] = {
        "name": obj.name,
        "namespace": obj.namespace,
        "uid": obj.uid,
        "resourceVersion": str(rv),
        "ownerReferences": [
            {"apiVersion": r.api_version, "kind": r.kind, "name": r.name, "uid": r.uid, "controller": r.controller}
            for r in obj.owner_refs
        ],
    }
    if obj.deleting_ms:
        meta["deletionTimestamp"] = "2030-01-01T00:00:00Z"
    if isinstance(obj, Pod):
        meta["labels"] = obj.labels
        conditions = [{"type": "Ready", "status": "True"}] if obj.ready else []
        status = {"phase": obj.phase, "conditions": conditions}
        return {"metadata": meta, "spec": {"nodeName": obj.node_name}, "status": status}
    return {"metadata": meta, "spec": {"replicas": obj.replicas, "template": {}}}
