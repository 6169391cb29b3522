"""What all steps are made of: requests that end when the watch has seen them, and finding what they are about."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import orjson

from oarlock.cluster.answer import Answer
from oarlock.cluster.client import Client, PatchType
from oarlock.cluster.resources import NAMESPACES, PODS, Resource
from tests.differential import manifests
from tests.differential.reading import is_active, is_owned, is_ready, revision_number
from tests.differential.scene import Scenes
from tests.differential.step import StepRefused

Obj = dict[str, Any]
SEEN_WITHIN_S = 180.0


class Writer:
    """One scenario on one side."""

    def __init__(self, client: Client, scenes: Scenes, scenario: str) -> None:
        self._client, self._scenes, self._scenario = client, scenes, scenario
        self._scene = scenes[scenario]

    async def _touch(self, kind: str, name: str) -> None:
        """A change of the spec that asks for nothing, to wake the owner."""
        seconds = self._owner(kind, name)["spec"].get("minReadySeconds", 0)
        spec = {"minReadySeconds": 1 if seconds == 0 else seconds - 1}
        await self._patch(manifests.RESOURCES[kind], name, {"spec": spec}, PatchType.MERGE)

    def _owner(self, kind: str, name: str) -> Obj:
        found = self._scene.get(kind, name)
        if found is None:
            raise StepRefused(f"there is no {kind} {name}")
        return found

    def _pods(self, kind: str, name: str) -> list[Obj]:
        """Active pods of an owner. Those of a DaemonSet by readiness, template and only then the names of their nodes:
        while an update has not ended, which nodes it has reached is chance, and how many pods are of each sort is not.
        Those of a Deployment by the revision of their ReplicaSets.
        """
        owner = self._owner(kind, name)
        if kind == "Deployment":
            replicasets = sorted(self._replicasets(name), key=revision_number)
            return [pod for each in replicasets for pod in self._pods("ReplicaSet", each["metadata"]["name"])]
        found = [pod for pod in self._scene.all("Pod") if is_owned(pod, owner) and is_active(pod)]
        if kind == "DaemonSet":
            found.sort(
                key=lambda pod: (
                    is_ready(pod),
                    str(pod["spec"]["containers"][0]["image"]),
                    str(pod["spec"].get("nodeName", "")),
                )
            )
        return found

    def _replicasets(self, name: str) -> list[Obj]:
        """A Deployment's."""
        owner = self._owner("Deployment", name)
        return [each for each in self._scene.all("ReplicaSet") if is_owned(each, owner)]

    def _pod(self, kind: str, name: str, index: int) -> Obj | None:
        found = self._pods(kind, name)
        return found[index % len(found)] if found else None

    def _revisions(self, kind: str, name: str) -> list[Obj]:
        """Those of a DaemonSet, in the order of their numbers."""
        owner = self._owner(kind, name)
        found = [each for each in self._scene.all("ControllerRevision") if is_owned(each, owner)]
        return sorted(found, key=lambda each: int(each["revision"]))

    def _is_active(self, pod: Obj) -> bool:
        now = self._scene.get("Pod", pod["metadata"]["name"])
        return now is not None and now["metadata"]["uid"] == pod["metadata"]["uid"] and is_active(now)

    async def _create(self, resource: Resource, body: Obj) -> None:
        namespace = self._scenario if resource.namespaced else ""
        answer = await self._client.create(resource, namespace, orjson.dumps(body))
        self._must(answer, f"create {resource.kind} {body['metadata']['name']}")
        if resource is not NAMESPACES:
            await self._seen(resource, answer)

    async def _patch(self, resource: Resource, name: str, body: Any, how: PatchType, part: str = "") -> None:
        namespace = self._scenario if resource.namespaced else ""
        answer = await self._client.patch(resource, namespace, name, orjson.dumps(body), how, subresource=part)
        self._must(answer, f"patch {resource.kind} {name}")
        await self._seen(resource, answer)

    async def _change_status(self, pod: Obj, body: Obj) -> None:
        await self._patch(PODS, pod["metadata"]["name"], {"status": body}, PatchType.STRATEGIC, "status")

    async def _seen(self, resource: Resource, answer: Answer) -> None:
        """Until the watch has come to the write. Versions of one server compare as numbers."""
        version = int(answer.resource_version or 0)
        what = f"the watch of {resource.plural} at version {version}"
        await self._until(lambda: self._scenes.version(resource) >= version, what)

    async def _until(self, reached: Callable[[], bool], what: str) -> None:
        ends_s = time.monotonic() + SEEN_WITHIN_S
        while not reached():
            if time.monotonic() > ends_s:
                raise StepRefused(f"not within {SEEN_WITHIN_S:g} s: {what}")
            await asyncio.sleep(0.01)

    @staticmethod
    def _must(answer: Answer, what: str) -> None:
        if not answer.ok and answer.code != 404:
            raise StepRefused(f"{what}: {answer.code} {answer.message}")
