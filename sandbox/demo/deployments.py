"""What `oarlock run` shows of a Deployment: rolled to another template; a bad image, stopped by the progress deadline;
back again. By the requests that kubectl sends.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import orjson

from oarlock.cluster.client import Client, PatchType
from oarlock.cluster.listing import list_all
from oarlock.controllers.deployment.annotations import REVISION
from oarlock.controllers.objects.model import HASH_LABEL
from oarlock.controllers.registry import WATCHED
from oarlock.sandbox.demo.progress import Goal
from oarlock.sandbox.demo.rollout import RESTARTED_AT
from oarlock.sandbox.demo.seen import DeploymentSeen
from oarlock.sandbox.manifests.applying import NotApplied
from oarlock.workers.process.kinds import cluster_resource

if TYPE_CHECKING:
    from oarlock.sandbox.demo.demo import Demo

Obj = dict[str, Any]
DEADLINE_S = 3
"""The progress deadline that the bad image brings along: the usual 600 s are too long to wait for."""
BAD_TAG = "nonexistent"
"""The simulated nodes cannot pull an image with this tag."""


@dataclass(slots=True)
class RolledOut:
    """How it went. Times in seconds; ``most``, ``fewest``: active pods, and available ones, None while not counted.

    ``available_stuck``: pods that were available when the deadline had passed. ``from_rv``: when it began.
    """

    title: str
    uid: str
    pods: int
    surge: int
    unavailable: int
    min_ready_s: int
    from_rv: int
    rolled_s: float = 0.0
    stuck_s: float = 0.0
    available_stuck: int = 0
    back_s: float = 0.0
    most: int | None = None
    fewest: int | None = None

    @property
    def kept_limits(self) -> bool:
        """Whether there were never more pods, nor fewer available ones, than its strategy allows."""
        return (self.most or 0) <= self.pods + self.surge and (
            self.fewest is None or self.fewest >= self.pods - self.unavailable
        )

    def as_json(self) -> dict[str, Any]:
        return {
            "title": self.title,
            "pods": self.pods,
            "max_surge": self.surge,
            "max_unavailable": self.unavailable,
            "most_pods": self.most,
            "fewest_available": self.fewest,
            "rolled_s": self.rolled_s,
            "deadline_s": DEADLINE_S,
            "stopped_s": self.stuck_s,
            "available_when_stopped": self.available_stuck,
            "back_s": self.back_s,
        }


def roll(demo: Demo, seen: DeploymentSeen, say: Callable[[str], None]) -> RolledOut:
    """Play the act with one Deployment. Raises DidNotConverge, NotApplied."""
    client, key = demo.client, seen.key
    limits = f"{seen.surge} more and {seen.unavailable} fewer at a time"
    say(f"rolling {key} ({seen.wanted} pods, {limits}) to another template, as kubectl rollout restart does")
    from_rv, done = demo.run(restart(client, key))
    result = RolledOut(
        *(seen.title, seen.uid, seen.wanted, seen.surge, seen.unavailable, seen.min_ready_s), from_rv=from_rv
    )
    result.rolled_s = _settled(demo, seen, Goal(None, done), "waiting until every pod is of the new template")
    say(f"setting an image that no node can pull, and {DEADLINE_S} s of time to get on (progressDeadlineSeconds)")
    _, done = demo.run(set_bad_image(client, key))
    result.stuck_s = _settled(demo, seen, Goal(None, done, stuck=True), "waiting until the controller gives it up")
    stuck = demo.history.owners()[seen.title]
    result.available_stuck = stuck.available
    say(f"it has timed out progressing; {stuck.available} of {stuck.wanted} pods are available")
    say("and back, as kubectl rollout undo does")
    _, done = demo.run(undo(client, key, seen.uid))
    result.back_s = _settled(demo, seen, Goal(None, done), "waiting until every pod is of the good template")
    return result


def _settled(demo: Demo, seen: DeploymentSeen, goal: Goal, title: str) -> float:
    """Wait for the goal. Returns how many seconds it took."""
    demo.goals[seen.title] = goal
    began = time.monotonic()
    demo.settle(title, f"{seen.title}: {title}")
    return round(time.monotonic() - began, 2)


async def restart(client: Client, key: str) -> tuple[int, int]:
    """Change the template. Returns (revision, generation) of the Deployment then. Raises NotApplied."""
    at = {"annotations": {RESTARTED_AT: datetime.now(UTC).isoformat(timespec="milliseconds")}}
    return await _patched(client, key, {"spec": {"template": {"metadata": at}}}, PatchType.STRATEGIC)


async def set_bad_image(client: Client, key: str) -> tuple[int, int]:
    """Give its first container an image that cannot be pulled, and the Deployment a short deadline. As ``restart``."""
    namespace, _, name = key.partition("/")
    answer = await client.get(cluster_resource(WATCHED["deployments"]), namespace, name)
    if not answer.ok:
        raise NotApplied(f"Deployment {key} to be read: {answer.message}")
    container = answer.object()["spec"]["template"]["spec"]["containers"][0]
    folder, slash, image = container["image"].rpartition("/")
    bad = f"{folder}{slash}{re.split('[:@]', image)[0]}:{BAD_TAG}"
    template = {"spec": {"containers": [{"name": container["name"], "image": bad}]}}
    body = {"spec": {"progressDeadlineSeconds": DEADLINE_S, "template": template}}
    return await _patched(client, key, body, PatchType.STRATEGIC)


async def undo(client: Client, key: str, uid: str) -> tuple[int, int]:
    """Go back to the last revision but one. As ``restart``.

    Upstream: kubectl pkg/polymorphichelpers/rollback.go: the template of that ReplicaSet, without the hash.
    """
    namespace = key.partition("/")[0]
    _, items = await list_all(client.list_pages(cluster_resource(WATCHED["replicasets"]), namespace=namespace))
    own = [
        obj
        for obj in map(orjson.loads, items)
        if any(ref["uid"] == uid and ref.get("controller") for ref in obj["metadata"].get("ownerReferences") or ())
    ]
    if len(own) < 2:
        raise NotApplied(f"Deployment {key}: it has {len(own)} ReplicaSets, and there is none to go back to")
    template = sorted(own, key=lambda each: int(each["metadata"]["annotations"][REVISION]))[-2]["spec"]["template"]
    del template["metadata"]["labels"][HASH_LABEL]
    return await _patched(client, key, [{"op": "replace", "path": "/spec/template", "value": template}], PatchType.JSON)


async def _patched(client: Client, key: str, body: Any, content: PatchType) -> tuple[int, int]:
    namespace, _, name = key.partition("/")
    resource = cluster_resource(WATCHED["deployments"])
    answer = await client.patch(resource, namespace, name, orjson.dumps(body), content)
    if not answer.ok:
        raise NotApplied(f"Deployment {key} to be changed: {answer.message}")
    meta = answer.object()["metadata"]
    return int(meta["resourceVersion"]), int(meta["generation"])
