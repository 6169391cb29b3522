"""Steps, applied to one side by direct requests."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from oarlock.cluster.resources import CONTROLLERREVISIONS, EVENTS, NAMESPACES, NODES, PODS
from tests.differential import manifests
from tests.differential.hands_nodes import NodeHands
from tests.differential.hands_owners import OwnerHands
from tests.differential.hands_pods import PodHands
from tests.differential.hands_rollouts import RolloutHands
from tests.differential.scene import QUOTAS
from tests.differential.step import Step


class Hands(OwnerHands, RolloutHands, PodHands, NodeHands):
    """The user of one scenario on one side."""

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
