"""Steps about Deployments and their ReplicaSets, beside those of `hands_owners`.

`name` is the Deployment's. Which of its ReplicaSets it is goes by revision: `back` 0 is the newest.
"""

from __future__ import annotations

from typing import Any

from oarlock.cluster.client import PatchType
from oarlock.cluster.resources import REPLICASETS
from tests.differential import manifests
from tests.differential.naming import template_of
from tests.differential.reading import annotated, labels, revision_number
from tests.differential.scene import DEPLOYMENTS
from tests.differential.writing import Obj, Writer

_OWN = ("revision", "revision-history", "desired-replicas", "max-replicas")
APART = (*(f"deployment.kubernetes.io/{each}" for each in _OWN), "kubectl.kubernetes.io/last-applied-configuration")
"""Annotations that a Deployment and its ReplicaSets do not share."""
DESIRED = "deployment.kubernetes.io/desired-replicas"
ROLL_BACK = "deprecated.deployment.rollback.to"


class RolloutHands(Writer):
    """The user of Deployments."""

    async def annotate_owner(self, kind: str, name: str, annotations: dict[str, str | None]) -> None:
        await self._patch(manifests.RESOURCES[kind], name, {"metadata": {"annotations": annotations}}, PatchType.MERGE)

    async def undo_rollout(self, kind: str, name: str, back: int) -> None:
        """As `kubectl rollout undo`: template and annotations of a ReplicaSet."""
        deployment, chosen = self._owner(kind, name), self._replicaset(name, back)
        if chosen is None:
            return
        kept = {key: value for key, value in annotated(deployment).items() if key in APART}
        shared = {key: value for key, value in annotated(chosen).items() if key not in APART}
        operations = [
            {"op": "replace", "path": "/spec/template", "value": template_of(chosen)},
            {"op": "replace", "path": "/metadata/annotations", "value": {**shared, **kept}},
        ]
        await self._patch(DEPLOYMENTS, name, operations, PatchType.JSON)

    async def roll_back(self, kind: str, name: str, revision: int) -> None:
        """Ask the controller for it, as clients of extensions/v1beta1 did; it may be there no more."""
        await self.annotate_owner(kind, name, {ROLL_BACK: str(revision)})

    async def scale_replicaset(self, kind: str, name: str, back: int, replicas: int) -> None:
        await self._change_replicaset(name, back, {"spec": {"replicas": replicas}})

    async def relabel_replicaset(self, kind: str, name: str, back: int, labels: dict[str, str | None]) -> None:
        await self._change_replicaset(name, back, {"metadata": {"labels": labels}})

    async def relabel_replicasets(self, app: str, labels: dict[str, str | None]) -> None:
        """Every ReplicaSet with this label, whoever owns it."""
        for found in self._labelled(app):
            await self._patch(REPLICASETS, found["metadata"]["name"], {"metadata": {"labels": labels}}, PatchType.MERGE)

    async def delete_replicaset(self, kind: str, name: str, back: int) -> None:
        if found := self._replicaset(name, back):
            await self._delete_set(found)

    async def delete_replicasets(self, app: str) -> None:
        """Every ReplicaSet with this label, whoever owns it."""
        for found in self._labelled(app):
            await self._delete_set(found)

    # -- parts -------------------------------------------------------------------------------------

    def _labelled(self, app: str) -> list[Obj]:
        return [each for each in self._scene.all("ReplicaSet") if labels(each).get("app") == app]

    def _replicaset(self, name: str, back: int) -> Obj | None:
        found = sorted(self._replicasets(name), key=revision_number, reverse=True)
        return found[min(back, len(found) - 1)] if found else None

    async def _change_replicaset(self, name: str, back: int, body: Obj) -> None:
        if found := self._replicaset(name, back):
            await self._patch(REPLICASETS, found["metadata"]["name"], body, PatchType.MERGE)

    async def _delete_set(self, replicaset: Obj) -> None:
        meta = replicaset["metadata"]
        answer = await self._client.delete(REPLICASETS, self._scenario, meta["name"], uid=meta["uid"])
        self._must(answer, "delete a ReplicaSet")
        await self._until(lambda: not self._is_there("ReplicaSet", meta), "the ReplicaSet's end")

    def _is_there(self, kind: str, meta: Obj) -> bool:
        now: Any = self._scene.get(kind, meta["name"])
        return now is not None and now["metadata"]["uid"] == meta["uid"]
