"""Steps about pods.

Which pod of an owner it is is found by rules that mean the same on both sides: the n-th in the order of creation, for
a DaemonSet in that of readiness, template and node.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

from oarlock.cluster.client import PatchType
from oarlock.cluster.resources import PODS
from tests.differential import manifests
from tests.differential.reading import ENDED, is_deleting, is_owned, phase, status
from tests.differential.writing import Writer


class PodHands(Writer):
    """`kind` and `name` say whose pods, `index` which; `app`: pods with this label, whoever owns them."""

    async def create_pod(self, name: str, **about: Any) -> None:
        await self._create(PODS, manifests.bare_pod(self._scenario, name, about))

    async def delete_pod(self, kind: str, name: str, index: int) -> None:
        """Of the owner's active pods, the n-th."""
        if pod := self._pod(kind, name, index):
            uid = pod["metadata"]["uid"]
            answer = await self._client.delete(PODS, self._scenario, pod["metadata"]["name"], uid=uid)
            self._must(answer, "delete a pod")
            await self._until(lambda: not self._is_active(pod), "the pod's end")

    async def delete_bare(self, app: str) -> None:
        """Every pod with this label, whoever owns it."""
        for pod in self._scene.all("Pod"):
            if (pod["metadata"].get("labels") or {}).get("app") == app:
                self._must(await self._client.delete(PODS, self._scenario, pod["metadata"]["name"]), "delete a pod")

    async def end_pod(self, kind: str, name: str, index: int, phase: str) -> None:
        """As if its containers had ended."""
        if pod := self._pod(kind, name, index):
            await self._change_status(pod, {"phase": phase})

    async def relabel_pod(self, kind: str, name: str, index: int, labels: dict[str, str | None]) -> None:
        if pod := self._pod(kind, name, index):
            await self._patch(PODS, pod["metadata"]["name"], {"metadata": {"labels": labels}}, PatchType.MERGE)

    async def relabel_bare(self, app: str, labels: dict[str, str | None], wait_ms: int = 0) -> None:
        """Every pod with this label, `wait_ms` later."""
        await asyncio.sleep(wait_ms / 1000)
        for pod in self._scene.all("Pod"):
            if (pod["metadata"].get("labels") or {}).get("app") == app:
                await self._patch(PODS, pod["metadata"]["name"], {"metadata": {"labels": labels}}, PatchType.MERGE)

    async def annotate_pods(self, kind: str, name: str, annotations: list[dict[str, str | None]]) -> None:
        """The first pods, one dictionary each."""
        for pod, more in zip(self._pods(kind, name), annotations, strict=False):
            await self._patch(PODS, pod["metadata"]["name"], {"metadata": {"annotations": more}}, PatchType.MERGE)

    async def rank_pods(self, kind: str, name: str, ages_s: list[int], restarts: list[int]) -> None:
        """Have the first pods be ready for so long, by one reading of the clock, with so many restarts."""
        now_s = time.time()
        for pod, age_s, count in zip(self._pods(kind, name), ages_s, restarts, strict=False):
            since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now_s - age_s))
            conditions = [
                {**each, "lastTransitionTime": since} for each in status(pod)["conditions"] if each["type"] == "Ready"
            ]
            containers = [{**each, "restartCount": count} for each in status(pod)["containerStatuses"]]
            await self._change_status(pod, {"conditions": conditions, "containerStatuses": containers})

    async def hold_pod(self, kind: str, name: str, index: int) -> None:
        """Give it a finalizer and delete it."""
        if pod := self._pod(kind, name, index):
            body = {"metadata": {"finalizers": ["example.com/hold"]}}
            await self._patch(PODS, pod["metadata"]["name"], body, PatchType.MERGE)
            self._must(await self._client.delete(PODS, self._scenario, pod["metadata"]["name"]), "delete a pod")
            await self._until(lambda: not self._is_active(pod), "the pod's end")

    async def disown_pod(self, kind: str, name: str, index: int) -> None:
        """Take its owner references away."""
        if pod := self._pod(kind, name, index):
            body = {"metadata": {"ownerReferences": None}}
            await self._patch(PODS, pod["metadata"]["name"], body, PatchType.MERGE)

    async def delete_ended(self, kind: str, name: str) -> None:
        """The owner's pods that have ended and are not deleted."""
        owner = self._owner(kind, name)
        for pod in self._scene.all("Pod"):
            if is_owned(pod, owner) and phase(pod) in ENDED and not is_deleting(pod):
                self._must(await self._client.delete(PODS, self._scenario, pod["metadata"]["name"]), "delete a pod")

    async def let_pods_go(self) -> None:
        """Take the finalizers of those that are held."""
        for pod in self._scene.all("Pod"):
            if pod["metadata"].get("finalizers"):
                body = {"metadata": {"finalizers": None}}
                await self._patch(PODS, pod["metadata"]["name"], body, PatchType.MERGE)
