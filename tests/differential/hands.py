"""Steps, applied to one side by direct requests.

What a step is about is the same on both sides; which pod it is there is found by rules that mean the same on both:
the n-th in the order of creation, or the one on a node.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import orjson

from cluster.answer import Answer
from cluster.client import Client, PatchType
from cluster.resources import CONTROLLERREVISIONS, EVENTS, NAMESPACES, NODES, PODS, Resource
from differential import manifests
from differential.reading import ENDED, HASH, is_active, is_deleting, is_owned, phase, status, taints
from differential.scene import QUOTAS, Scenes

Obj = dict[str, Any]
SEEN_WITHIN_S = 180.0
COST = "controller.kubernetes.io/pod-deletion-cost"


@dataclass(frozen=True)
class Step:
    """`what`: name of a method of Hands; `about`: its arguments, as JSON would have them."""

    what: str
    about: Obj = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.what} {orjson.dumps(self.about).decode()}"


class StepRefused(Exception):
    """The server did not do what a step asks for."""


class Hands:
    """The user of one scenario on one side."""

    def __init__(self, client: Client, scenes: Scenes, scenario: str) -> None:
        self._client, self._scenes, self._scenario = client, scenes, scenario
        self._scene = scenes[scenario]

    async def apply(self, step: Step) -> None:
        """Returns when the scene shows the write, so that what follows can be waited for. Raises StepRefused."""
        method: Callable[..., Awaitable[None]] = getattr(self, step.what)
        await method(**step.about)

    async def begin(self) -> None:
        await self._create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self._scenario}})

    async def clear(self) -> None:
        """Take everything away but the namespace, whose end would cost more than all the rest."""
        for resource in (*manifests.RESOURCES.values(), PODS, CONTROLLERREVISIONS, QUOTAS, EVENTS):
            path = f"{resource.collection(self._scenario)}?propagationPolicy=Background&gracePeriodSeconds=0"
            await self._client.transport.write("DELETE", path)
        for name in list(self._scene.objects["Node"]):
            await self._client.delete(NODES, "", name)

    # -- owners ------------------------------------------------------------------------------------

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

    # -- pods --------------------------------------------------------------------------------------

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

    # -- nodes, quota, revisions ---------------------------------------------------------------------

    async def create_node(self, name: str, pool: str, labels: dict[str, str]) -> None:
        await self._create(NODES, manifests.node(self._scenario, f"{self._scenario}-{name}", pool, labels))

    async def delete_node(self, name: str) -> None:
        node = f"{self._scenario}-{name}"
        self._must(await self._client.delete(NODES, "", node), "delete a node")
        await self._until(lambda: self._scene.get("Node", node) is None, f"the end of node {node}")

    async def relabel_node(self, name: str, labels: dict[str, str | None]) -> None:
        await self._patch(NODES, f"{self._scenario}-{name}", {"metadata": {"labels": labels}}, PatchType.MERGE)

    async def taint_node(self, name: str, key: str, effect: str) -> None:
        """Take the taint with this key away, and set it again if `effect` is one."""
        node = f"{self._scenario}-{name}"
        found = self._scene.get("Node", node)
        if found is None:
            raise StepRefused(f"there is no node {node}")
        others = [each for each in taints(found) if each["key"] != key]
        more = [{"key": key, "effect": effect}] if effect else []
        await self._patch(NODES, node, {"spec": {"taints": others + more}}, PatchType.MERGE)

    async def cordon_node(self, name: str, cordoned: bool) -> None:
        await self._patch(NODES, f"{self._scenario}-{name}", {"spec": {"unschedulable": cordoned}}, PatchType.MERGE)

    async def set_quota(self, more: int) -> None:
        """Room for so many pods beyond those that are there."""
        pods = sum(phase(pod) not in ENDED for pod in self._scene.all("Pod"))
        await self._create(QUOTAS, manifests.quota(pods + more))
        await self._until(lambda: "hard" in status(self._scene.get("ResourceQuota", "quota") or {}), "the quota")

    async def drop_quota(self) -> None:
        self._must(await self._client.delete(QUOTAS, self._scenario, "quota"), "delete the quota")
        await self._until(lambda: self._scene.get("ResourceQuota", "quota") is None, "the end of the quota")

    async def drop_quota_and_touch(self, kind: str, name: str) -> None:
        """And wake the owner, who would otherwise try again after a while that grows with the time it had to wait."""
        await self.drop_quota()
        await self._touch(kind, name)

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

    # -- inside ------------------------------------------------------------------------------------

    async def _touch(self, kind: str, name: str) -> None:
        """A change of the spec that asks for nothing."""
        seconds = self._owner(kind, name)["spec"].get("minReadySeconds", 0)
        await self.change_spec(kind, name, {"minReadySeconds": 1 if seconds == 0 else seconds - 1})

    def _owner(self, kind: str, name: str) -> Obj:
        found = self._scene.get(kind, name)
        if found is None:
            raise StepRefused(f"there is no {kind} {name}")
        return found

    def _pods(self, kind: str, name: str) -> list[Obj]:
        """Active pods of an owner; those of a DaemonSet in the order of their nodes' names."""
        owner = self._owner(kind, name)
        found = [pod for pod in self._scene.all("Pod") if is_owned(pod, owner) and is_active(pod)]
        if kind == "DaemonSet":
            found.sort(key=lambda pod: str(pod["spec"].get("nodeName", "")))
        return found

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
