"""Hand-made evidence of a Deployment. Its ReplicaSets are called web-<version>, their pods web-<version>-<anything>."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

from oarlock.chaos.judge.evidence.evidence import Answered, Claimed, Recorded, Request, Unlocked
from oarlock.chaos.judge.evidence.sightings import DEPLOYMENTS, DeploymentSeen, OwnerSeen, PodSeen
from tests.chaos.story import Story

TASK = f"{DEPLOYMENTS}:shop/web"


@dataclass
class RolloutStory(Story):
    """It begins with the Deployment and its first ReplicaSet, without a pod. ``spec``: fields of DeploymentSeen."""

    replicas: int = 4
    task: str = TASK
    uid: str = "deployment-uid"
    spec: dict[str, Any] = field(default_factory=lambda: {"surge": "1", "unavailable": "1"})
    resources = ("pods", "replicasets", "deployments")

    def _begin(self) -> None:
        self.sets: dict[str, OwnerSeen] = {}
        place = (self._next(), self.at_s, False, self.task, self.uid)
        self.deployment = DeploymentSeen(*place, 1, self.replicas, version="0", digest="digest-0", **self.spec)
        self.history.append(self.deployment)
        self.makes("0")

    # -- the cluster

    def change(self, **changes: Any) -> Self:
        """The Deployment's spec after one."""
        return self.now(generation=self.deployment.generation + 1, **changes)

    def now(self, **changes: Any) -> Self:
        self.deployment = self.deployment._replace(rv=self._next(), at_s=self.at_s, **changes)
        self.history.append(self.deployment)
        return self

    def roll(self, version: str, **changes: Any) -> Self:
        return self.change(version=version, digest=f"digest-{version}", **changes)

    def makes(self, version: str, **more: Any) -> Self:
        """A ReplicaSet without pods."""
        fields = {"owner": self.uid, "owner_task": self.task, "digest": f"digest-{version}", **more}
        place = (self._next(), self.at_s, False, f"replicaset:shop/web-{version}", f"set-{version}")
        self.sets[version] = OwnerSeen(*place, 1, 0, **fields)
        self.history.append(self.sets[version])
        self._asks_set("create", version, self.rv, task=self.task)
        return self

    def set(self, version: str, **changes: Any) -> Self:
        """A ReplicaSet after a change."""
        self.sets[version] = self.sets[version]._replace(rv=self._next(), at_s=self.at_s, **changes)
        self.history.append(self.sets[version])
        return self

    def prunes(self, version: str) -> Self:
        rv = self.sets[version].rv
        self.set(version, gone=True)
        self._asks_set("delete", version, self.rv, asked_uid=f"set-{version}", asked_rv=str(rv))
        del self.sets[version]
        return self

    def _asks_set(self, verb: str, version: str, rv: int, **more: Any) -> None:
        place = ("replicasets", "shop", f"web-{version}", 201 if verb == "create" else 200, True, True)
        self.requests.append(Request(self.at_s, self.at_s, verb, *place, rv, f"set-{version}", **more))

    def appears(self, name: str, uid: str = "", **more: Any) -> PodSeen:
        owner = self.sets[name.split("-")[1]]
        pod = super().appears(name, uid, **more)._replace(owner=owner.uid, task=owner.task)
        self.history[-1] = self.pods[name] = pod
        return pod

    def runs(self, *names: str) -> Self:
        for name in names:
            self.becomes(name, phase="Running", ready=True, ready_since_s=float(int(self.at_s)), node="node-1")
        return self

    def ends(self, *names: str) -> Self:
        """Whatever ends them is not ours."""
        for name in names:
            self.becomes(name, deleting=True).goes(name)
        return self

    # -- whole turns

    def size(self, version: str, replicas: int, **more: Any) -> Self:
        """A turn of the Deployment that gives a ReplicaSet its size."""
        seen = self.sets[version]
        self.claim()
        name = f"scale replicasets/web-{version}"
        self.step(Recorded(self.at_s, self.epoch, self.task, self.nonce, ((name, seen.uid),)))
        self.wait(0.001)
        self.set(version, replicas=replicas, generation=seen.generation + 1)
        fields = {"asked_uid": seen.uid, "asked_rv": str(seen.rv), "spec": True, **more}
        self._asks_set("patch", version, self.rv, **fields)
        self.step(Answered(self.at_s, self.epoch, self.task, name))
        self.finish()
        return self

    def fills(self, version: str, *names: str) -> Self:
        """A turn of the ReplicaSet that creates these."""
        return self._writes(version, "create", [f"web-{version}-{name}" for name in names])

    def drops(self, version: str, *names: str, lost: tuple[str, ...] = ()) -> Self:
        """A turn of the ReplicaSet that deletes these; they have gone when it ends. ``lost``: to others, meanwhile."""
        return self._writes(version, "delete", [f"web-{version}-{name}" for name in names], lost)

    def _writes(self, version: str, verb: str, names: list[str], lost: tuple[str, ...] = ()) -> Self:
        deployment, owner = (self.task, self.uid), self.sets[version]
        self.task, self.uid = owner.task, owner.uid
        self.claim("w-2").record(*((verb, name) for name in names))
        self.ends(*(f"web-{version}-{name}" for name in lost))
        for name in names:
            self.creates(name) if verb == "create" else self.deletes(name, graceful=False)
        self.finish(*((verb, name) for name in names))
        self.task, self.uid = deployment
        return self

    def looks(self) -> Self:
        """A turn of each ReplicaSet that writes its status, then one of the Deployment; and those that see it."""
        for version, owner in self.sets.items():
            active = [pod for pod in self.pods.values() if pod.owner == owner.uid and pod.active]
            ready = sum(pod.ready for pod in active)
            self._turn(owner.task)
            counts = {"status_replicas": len(active), "status_ready": ready, "status_available": ready}
            self.set(version, observed=owner.generation, **counts)
            self._turn(owner.task)
        self._turn(self.task)
        active = [pod for pod in self.pods.values() if pod.active]
        ready = sum(pod.ready for pod in active)
        new = [pod for pod in active if self.sets[pod.name.split("-")[1]].digest == self.deployment.digest]
        asked = sum(owner.replicas for owner in self.sets.values())
        said = (len(active), len(new), ready, ready, max(0, asked - ready))
        self.now(observed=self.deployment.generation, said=said)
        self._turn(self.task)
        return self

    def _turn(self, task: str) -> None:
        self.read()
        self.nonces += 1
        nonce = f"n{self.nonces}"
        self.step(Claimed(self.at_s, self.epoch, task, "w-1", nonce))
        self.step(Unlocked(self.at_s, self.epoch, task, "finish", nonce=nonce))

    def begins(self) -> Self:
        """All pods of the first template, at rest."""
        names = [f"p{index}" for index in range(self.replicas)]
        return self.size("0", self.replicas).fills("0", *names).up("0", *names).looks()

    def up(self, version: str, *names: str) -> Self:
        """These run and are ready."""
        return self.runs(*(f"web-{version}-{name}" for name in names))

    def with_set(self, version: str, **more: Any) -> Self:
        """Another template, and its ReplicaSet made by a turn."""
        self.roll(version).claim()
        self.makes(version, **more).finish()
        return self

    def unseen(self, **changes: Any) -> Self:
        """The last request with other fields."""
        self.requests[-1] = self.requests[-1]._replace(**changes)
        return self
