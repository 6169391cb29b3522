"""Steps about nodes and quota."""

from __future__ import annotations

from oarlock.cluster.client import PatchType
from oarlock.cluster.resources import NODES
from tests.differential import manifests
from tests.differential.reading import ENDED, phase, status, taints
from tests.differential.scene import QUOTAS
from tests.differential.step import StepRefused
from tests.differential.writing import Writer


class NodeHands(Writer):
    """Names of nodes are those within the scenario."""

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
