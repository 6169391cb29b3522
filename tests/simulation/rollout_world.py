"""The cluster of the simulation of Deployments: Deployments, their ReplicaSets and pods as JSON, and who else is there.

The API server is that of the DaemonSets' simulation; here are the patches that Deployments bring with them.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import orjson

from oarlock.cluster.answer import Answer
from oarlock.controllers.deployment.find import replicaset_name
from oarlock.controllers.history.model import revision_hash
from oarlock.controllers.objects.model import Pod, ReplicaSet, controller_of
from oarlock.controllers.registry import WATCHED
from oarlock.workers.turn.steps import Write
from tests.simulation.daemon_docs import Doc, rfc3339, template
from tests.simulation.daemon_world import FINISHED, DaemonWorld, Stored
from tests.simulation.world import is_active


@dataclass
class RolloutWorld(DaemonWorld):
    """A new ReplicaSet begins with generation 1; a change of a spec raises it. ``on_size`` is told of the ReplicaSet
    before a patch of ours, and by its UID it is found after it.
    """

    on_size: Callable[[ReplicaSet], None] = lambda before: None

    def _create(self, write: Write) -> Answer:
        if write.resource == "replicasets":
            doc = orjson.loads(write.body)
            doc["metadata"]["generation"] = 1
            doc["status"] = {}
            write = write._replace(body=orjson.dumps(doc))
        return super()._create(write)

    def _patch(self, write: Write, stored: Stored) -> Answer:
        answer = super()._patch(write, stored)
        if answer.ok and write.resource == "replicasets":
            self.on_size(stored.obj)
        return answer

    def _merge(self, doc: Doc, patch: Doc) -> None:
        meta, told = doc["metadata"], patch["metadata"]
        annotations = meta.get("annotations", {}) | told.get("annotations", {})
        meta["annotations"] = {name: value for name, value in annotations.items() if value is not None}
        if "spec" in patch:
            self.specify(doc, **patch["spec"])

    @staticmethod
    def specify(doc: Doc, **spec: Any) -> None:
        """As the API server does: counts up the generation where the spec changes."""
        if any(doc["spec"].get(field) != value for field, value in spec.items()):
            doc["metadata"]["generation"] += 1
        doc["spec"] |= spec

    # -- what there is

    def deployments(self) -> list[Stored]:
        return list(self.tables["deployments"].values())

    def replicasets_of(self, uid: str) -> list[ReplicaSet]:
        found = [stored.obj for stored in self.tables["replicasets"].values()]
        return [each for each in found if (ref := controller_of(each)) is not None and ref.uid == uid]

    def pods_below(self, uid: str) -> list[Pod]:
        """The pods of all ReplicaSets of a Deployment."""
        return [pod for replicaset in self.replicasets_of(uid) for pod in self.pods_of(replicaset.uid)]

    def deployment_of(self, pod: Pod) -> str:
        """UID of the Deployment two levels up; empty if there is none."""
        ref = controller_of(pod)
        stored = self.tables["replicasets"].get(ref.name) if ref is not None else None
        above = controller_of(stored.obj) if stored is not None and ref is not None else None
        return above.uid if above is not None else ""

    def is_available(self, pod: Pod, min_ready_s: int) -> bool:
        return is_active(pod) and self.was_ready(pod, min_ready_s, self.wall_ms())

    @staticmethod
    def was_ready(pod: Pod, min_ready_s: int, at_ms: int) -> bool:
        """Whether by then a pod that is ready now had been so for long enough."""
        return pod.ready and (not min_ready_s or at_ms - pod.ready_since_ms >= min_ready_s * 1000)


@dataclass(frozen=True)
class Habits:
    """What users and kubelets do, and how likely it is. ``limits``: maxSurge and maxUnavailable; None for Recreate."""

    deeds: tuple[str, ...] = ("image", "image", "scale")
    limits: tuple[tuple[int | str, int | str] | None, ...] = ((1, 1), (2, 0), (0, 1), ("50%", "25%"))
    images: tuple[str, ...] = ("a", "b", "c")
    sizes: tuple[int, ...] = (0, 1, 3, 5)
    min_ready_s: tuple[int, ...] = (0, 0, 2)
    history: tuple[int, ...] = (2, 0, 10)
    unreadies: float = 0.0
    hangs: float = 0.3


def strategy(limits: tuple[int | str, int | str] | None) -> Doc:
    if limits is None:
        return {"type": "Recreate"}
    return {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": limits[0], "maxUnavailable": limits[1]}}


class Cluster:
    """Everything but the fleet. ``on_taken`` is told of the pods that a Deployment loses because somebody scales one of
    its ReplicaSets.
    """

    def __init__(self, world: RolloutWorld, rng: random.Random, habits: Habits) -> None:
        self.world, self._random, self.habits = world, rng, habits
        self.on_taken: Callable[[str, int], None] = lambda uid, pods: None

    def found(self, name: str) -> None:
        """A Deployment is made."""
        pick, habits = self._random.choice, self.habits
        spec = {
            "replicas": pick(habits.sizes),
            "selector": {"matchLabels": {"app": name}},
            "template": template(name, pick(habits.images)),
            "strategy": strategy(pick(habits.limits)),
            "minReadySeconds": pick(habits.min_ready_s),
            "revisionHistoryLimit": pick(habits.history),
            "progressDeadlineSeconds": 60,
        }
        meta = {"name": name, "uid": self.world.uid("deployment"), "generation": 1}
        kind = {"apiVersion": "apps/v1", "kind": "Deployment"}
        self.world.put("deployments", {**kind, "metadata": meta, "spec": spec, "status": {}})

    # -- users

    def user(self) -> None:
        stored = self._random.choice(self.world.deployments())
        getattr(self, f"_{self._random.choice(self.habits.deeds)}")(stored)

    def specify(self, stored: Stored, **spec: Any) -> None:
        doc = stored.doc
        self.world.specify(doc, **spec)
        self.world.put("deployments", doc)

    def _image(self, stored: Stored) -> None:
        self.specify(stored, template=template(stored.obj.name, self._random.choice(self.habits.images)))

    def _scale(self, stored: Stored) -> None:
        self.specify(stored, replicas=self._random.choice(self.habits.sizes))

    def _limits(self, stored: Stored) -> None:
        self.specify(stored, strategy=strategy(self._random.choice(self.habits.limits)))

    def _ready(self, stored: Stored) -> None:
        self.specify(stored, minReadySeconds=self._random.choice(self.habits.min_ready_s))

    def _pause(self, stored: Stored) -> None:
        self.specify(stored, paused=not stored.obj.paused)

    def _delete(self, stored: Stored) -> None:
        pods = self.world.pods_below(stored.obj.uid)
        if pods:
            self.world.end_pod(self._random.choice(pods).name)

    def _fail(self, stored: Stored) -> None:
        pods = [pod for pod in self.world.pods_below(stored.obj.uid) if is_active(pod)]
        if pods:
            self._put_status(self._random.choice(pods), "Failed", ready=False)

    def _orphan(self, stored: Stored) -> None:
        """A ReplicaSet loses its owner, and is to be taken again."""
        mine = self.world.replicasets_of(stored.obj.uid)
        if mine:
            doc = self.world.tables["replicasets"][self._random.choice(mine).name].doc
            doc["metadata"]["ownerReferences"] = []
            self.world.put("replicasets", doc)
            self.world.count("orphaned")

    def _resize(self, stored: Stored) -> None:
        """Somebody scales a ReplicaSet."""
        mine = self.world.replicasets_of(stored.obj.uid)
        if mine:
            doc = self.world.tables["replicasets"][self._random.choice(mine).name].doc
            self.on_taken(stored.obj.uid, doc["spec"]["replicas"])
            self.world.specify(doc, replicas=0)
            self.world.put("replicasets", doc)

    def _collide(self, stored: Stored) -> None:
        """The name that the next ReplicaSet would get is taken, by one of another template and of nobody."""
        owner = stored.obj
        image = self._random.choice(self.habits.images)
        doc = stored.doc
        doc["spec"]["template"] = template(owner.name, image)
        digest = WATCHED["deployments"].from_json(orjson.dumps(doc))[1].template_digest
        name = replicaset_name(owner.name, revision_hash(digest, owner.status.collision_count))
        if name in self.world.tables["replicasets"]:
            return
        uid = self.world.uid("planted")
        labels = {"app": "stranger"}
        spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template("stranger", "z")}
        meta = {"name": name, "uid": uid, "generation": 1, "labels": labels}
        kind = {"apiVersion": "apps/v1", "kind": "ReplicaSet"}
        self.world.put("replicasets", {**kind, "metadata": meta, "spec": spec, "status": {}})

    # -- kubelets

    def kubelet(self) -> None:
        if not self.world.pods:
            return
        pod = self._random.choice(self.world.pods)
        if pod.deleting_ms:
            if self._random.random() >= self.habits.hangs:
                self.world.remove("pods", pod.name)
        elif pod.phase in FINISHED:
            self.world.remove("pods", pod.name)
        elif not pod.ready:
            self._put_status(pod, "Running", ready=True)
        elif self._random.random() < self.habits.unreadies:
            self._put_status(pod, "Running", ready=False)

    def _put_status(self, pod: Pod, phase: str, *, ready: bool) -> None:
        doc = self.world.tables["pods"][pod.name].doc
        doc["spec"]["nodeName"] = "n1"
        since = rfc3339(self.world.wall_ms())
        condition = {"type": "Ready", "status": "True" if ready else "False", "lastTransitionTime": since}
        doc["status"] = {"phase": phase, "conditions": [condition]}
        self.world.put("pods", doc)

    def calm(self) -> None:
        """What becomes of pods where nothing goes wrong; nothing stays paused."""
        for pod in self.world.pods:
            if pod.deleting_ms or pod.phase in FINISHED:
                self.world.remove("pods", pod.name)
            elif not pod.ready:
                self._put_status(pod, "Running", ready=True)
        for stored in self.world.deployments():
            if stored.obj.paused:
                self.specify(stored, paused=False)
