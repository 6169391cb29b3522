"""Rolling a DaemonSet to another revision and back, by the requests that kubectl sends."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import orjson

from oarlock.cluster.answer import Answer
from oarlock.cluster.client import Client, PatchType
from oarlock.cluster.listing import list_all
from oarlock.cluster.resources import CONTROLLERREVISIONS, DAEMONSETS
from oarlock.sandbox.manifests.applying import NotApplied

RESTARTED_AT = "kubectl.kubernetes.io/restartedAt"
Obj = dict[str, Any]


async def restart(client: Client, key: str) -> tuple[int, int]:
    """Change the template as `kubectl rollout restart` does. Returns (revision, generation) of the DaemonSet then.

    ``key``: namespace/name. Raises NotApplied.
    """
    at = {"annotations": {RESTARTED_AT: datetime.now(UTC).isoformat(timespec="milliseconds")}}
    body = {"spec": {"template": {"metadata": at}}}
    return await _patched(client, key, orjson.dumps(body), "restarted")


async def undo(client: Client, key: str, uid: str) -> tuple[int, int]:
    """Go back to the last revision but one as `kubectl rollout undo` does. As ``restart``.

    Upstream: kubectl pkg/polymorphichelpers/rollback.go: the data of the revision is a patch of the DaemonSet.
    """
    found = await _revisions(client, key, uid)
    if len(found) < 2:
        raise NotApplied(f"DaemonSet {key}: it has {len(found)} revisions, and there is none to go back to")
    return await _patched(client, key, orjson.dumps(found[-2]["data"]), "rolled back")


async def revision_numbers(client: Client, key: str, uid: str) -> dict[str, int]:
    """The numbers of its revisions by their names, the oldest first."""
    return {each["metadata"]["name"]: int(each["revision"]) for each in await _revisions(client, key, uid)}


async def _revisions(client: Client, key: str, uid: str) -> list[Obj]:
    """The revisions that it controls, in the order of their numbers."""
    namespace = key.partition("/")[0]
    _, items = await list_all(client.list_pages(CONTROLLERREVISIONS, namespace=namespace))
    found = [
        obj
        for obj in map(orjson.loads, items)
        if any(ref["uid"] == uid and ref.get("controller") for ref in obj["metadata"].get("ownerReferences") or ())
    ]
    return sorted(found, key=lambda obj: obj["revision"])


async def _patched(client: Client, key: str, body: bytes, what: str) -> tuple[int, int]:
    namespace, _, name = key.partition("/")
    answer: Answer = await client.patch(DAEMONSETS, namespace, name, body, PatchType.STRATEGIC)
    if not answer.ok:
        raise NotApplied(f"DaemonSet {key} to be {what}: {answer.message}")
    meta = answer.object()["metadata"]
    return int(meta["resourceVersion"]), int(meta["generation"])
