"""Steps about ReplicaSets, ReplicationControllers and DaemonSets, and the revisions of these."""

from __future__ import annotations

from typing import Any

from oarlock.cluster.client import PatchType
from oarlock.cluster.resources import CONTROLLERREVISIONS
from tests.differential import manifests
from tests.differential.reading import HASH
from tests.differential.writing import Obj, Writer


class OwnerHands(Writer):
    """`kind` and `name` say which owner."""

    async def create_owner(self, kind: str, name: str, **about: Any) -> None:
        await self._create(manifests.RESOURCES[kind], manifests.owner(self._scenario, kind, name, about))

    async def change_spec(self, kind: str, name: str, spec: Obj) -> None:
        """A merge patch of the spec."""
        await self._patch(manifests.RESOURCES[kind], name, {"spec": spec}, PatchType.MERGE)

    async def change_template(self, kind: str, name: str, **about: Any) -> None:
        """Another template altogether, except for the label that the selector needs."""
        app = self._owner(kind, name)["metadata"]["labels"]["app"]
        pool = "daemons" if kind == "DaemonSet" else "replicas"
        made = manifests.template(self._scenario, app, pool, about)
        operations = [{"op": "replace", "path": "/spec/template", "value": made}]
        await self._patch(manifests.RESOURCES[kind], name, operations, PatchType.JSON)

    async def change_selector(self, name: str, app: str) -> None:
        """Of a ReplicationController, with its template."""
        spec = {"selector": {"app": app}, "template": {"metadata": {"labels": {"app": app}}}}
        body = {"metadata": {"labels": {"app": app}}, "spec": spec}
        await self._patch(manifests.RESOURCES["ReplicationController"], name, body, PatchType.MERGE)

    async def undo(self, kind: str, name: str, back: int) -> None:
        """As `kubectl rollout undo`: to the revision so many before the newest, or the oldest there is."""
        found = self._revisions(kind, name)
        if len(found) < 2:
            return
        chosen = found[max(0, len(found) - 1 - back)]
        await self._patch(manifests.RESOURCES[kind], name, chosen["data"], PatchType.STRATEGIC)

    async def write_status(self, kind: str, name: str, status: Obj) -> None:
        """As a stranger might."""
        await self._patch(manifests.RESOURCES[kind], name, {"status": status}, PatchType.MERGE, "status")

    async def delete_owner(self, kind: str, name: str, propagation: str) -> None:
        resource = manifests.RESOURCES[kind]
        answer = await self._client.delete(resource, self._scenario, name, propagation=propagation)
        self._must(answer, f"delete {kind} {name}")
        await self._until(lambda: self._scene.get(kind, name) is None, f"the end of {kind} {name}")

    async def orphan_revision(self, kind: str, name: str, index: int) -> None:
        """Take the owner reference of a set's n-th revision away; it is adopted again."""
        found = self._revisions(kind, name)
        chosen = found[index % len(found)]
        body = {"metadata": {"ownerReferences": None}}
        await self._patch(CONTROLLERREVISIONS, chosen["metadata"]["name"], body, PatchType.MERGE)

    async def duplicate_revision(self, kind: str, name: str, suffix: str) -> None:
        """The newest once more, with `suffix` for its hash and the next number; and wake the owner, whom upstream does
        not wake for a revision that is its own."""
        newest = self._revisions(kind, name)[-1]
        meta = newest["metadata"]
        copied = {field: meta[field] for field in ("ownerReferences", "annotations") if field in meta}
        digest = {HASH: suffix}
        made = {"name": f"{name}-{suffix}", "labels": {**meta["labels"], **digest}, **copied}
        body = {"apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": made, "data": newest["data"]}
        await self._create(CONTROLLERREVISIONS, {**body, "revision": int(newest["revision"]) + 1})
        await self._touch(kind, name)
