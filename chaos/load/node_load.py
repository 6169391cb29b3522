"""The load of nodes: labels and taints that change, cordons, nodes that go and come back, kubelets that reject pods.

Only nodes that the load has added itself are touched; nothing but daemon pods is on them.
"""

from __future__ import annotations

import asyncio
import random
from typing import Any

from oarlock.chaos.judge.evidence.sightings import NodeSeen
from oarlock.chaos.load.plans import AWAY, HOLD, NODES, REJECT, ZONE, node_body
from oarlock.chaos.load.user import User
from oarlock.cluster import resources

NAMES = tuple(f"chaos-node-{index}" for index in range(NODES))
ZONES = ("a", "b")
_NODES = resources.NODES


class NodeLoad:
    """``begin`` adds them; ``run`` goes on until it is cancelled; ``finish`` brings back what is missing."""

    def __init__(self, user: User, seed: int) -> None:
        self._user, self._live, self._seed = user, user.live, seed

    async def begin(self) -> None:
        for index, name in enumerate(NAMES):
            await self._user.create(_NODES, "", node_body(name, ZONES[index % len(ZONES)]))

    async def run(self) -> None:
        """Disturb all of them at the same time."""
        async with asyncio.TaskGroup() as group:
            for name in NAMES:
                group.create_task(self._disturb(name))

    async def finish(self) -> None:
        """Have all nodes there and taking pods; labels, and taints that keep new pods away, stay as they are."""
        for index, name in enumerate(NAMES):
            node = self._live.nodes.get(name)
            if node is None:
                await self._user.create(_NODES, "", node_body(name, ZONES[index % len(ZONES)]))
                continue
            change = {"metadata": {"annotations": {REJECT: None}}, "spec": {"taints": _taints(node, without=AWAY)}}
            await self._change(node, change)

    async def _disturb(self, name: str) -> None:
        chance = random.Random(f"nodes {self._seed} {name}")
        while True:
            await asyncio.sleep(chance.uniform(1.0, 6.0) * self._user.pace)
            node = self._live.nodes.get(name)
            if node is None:
                await self._add(name, chance)
                continue
            (way,) = chance.choices(list(_WAYS), list(_WAYS.values()))
            await getattr(self, f"_{way}")(node, chance)

    async def _change(self, node: NodeSeen, change: dict[str, Any], what: str = "") -> None:
        await self._user.merge(_NODES, "", node.name, change, what)

    # -- what is done

    async def _label(self, node: NodeSeen, chance: random.Random) -> None:
        zone = chance.choice([each for each in (*ZONES, None) if each != dict(node.labels).get(ZONE)])
        await self._change(node, {"metadata": {"labels": {ZONE: zone}}}, "nodes relabelled")

    async def _hold(self, node: NodeSeen, chance: random.Random) -> None:
        held = any(taint.key == HOLD for taint in node.taints)
        taints = _taints(node, without=HOLD) + ([] if held else [{"key": HOLD, "effect": "NoSchedule"}])
        await self._change(node, {"spec": {"taints": taints}}, "nodes tainted or not")

    async def _away(self, node: NodeSeen, chance: random.Random) -> None:
        """Evict all pods by a taint, and take it away soon."""
        taints = [*_taints(node, without=AWAY), {"key": AWAY, "effect": "NoExecute"}]
        await self._change(node, {"spec": {"taints": taints}}, "nodes emptied by a taint")
        await asyncio.sleep(chance.uniform(0.05, 1.5))
        now = self._live.nodes.get(node.name, node)
        await self._change(node, {"spec": {"taints": _taints(now, without=AWAY)}})

    async def _cordon(self, node: NodeSeen, chance: random.Random) -> None:
        await self._change(node, {"spec": {"unschedulable": True}}, "nodes cordoned")
        await asyncio.sleep(chance.uniform(0.2, 2.0))
        await self._change(node, {"spec": {"unschedulable": None}})

    async def _reject(self, node: NodeSeen, chance: random.Random) -> None:
        await self._change(node, {"metadata": {"annotations": {REJECT: "chaos"}}}, "nodes rejecting")
        await asyncio.sleep(chance.uniform(0.5, 2.5))
        await self._change(node, {"metadata": {"annotations": {REJECT: None}}})

    async def _remove(self, node: NodeSeen, chance: random.Random) -> None:
        answer = await self._user.client.delete(_NODES, "", node.name)
        self._user.done["nodes removed"] += answer.ok
        await self._user.until(lambda: node.name not in self._live.nodes)
        await asyncio.sleep(chance.uniform(0.0, 3.0))
        await self._add(node.name, chance)

    async def _add(self, name: str, chance: random.Random) -> None:
        await self._user.create(_NODES, "", node_body(name, chance.choice(ZONES)), "nodes added")


def _taints(node: NodeSeen, *, without: str) -> list[dict[str, Any]]:
    return [
        {"key": taint.key, "effect": taint.effect, **({"value": taint.value} if taint.value else {})}
        for taint in node.taints
        if taint.key != without
    ]


_WAYS = {"label": 5, "hold": 3, "away": 2, "cordon": 2, "reject": 2, "remove": 2}
