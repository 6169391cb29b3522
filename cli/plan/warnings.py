"""What a person should know before the file is applied."""

from __future__ import annotations

from typing import Any

import orjson

from oarlock.cli.plan.course import Played
from oarlock.cli.plan.family import Family
from oarlock.cli.plan.live import Read
from oarlock.cli.plan.wanted import Wanted
from oarlock.cli.tables import listed
from oarlock.controllers.objects.model import controller_of, is_active
from oarlock.controllers.pods.slots import slots_of
from oarlock.controllers.registry import WATCHED
from oarlock.sandbox.manifests.checks import Item
from oarlock.workers.ingest.upstream_detector import evidence, mend

Obj = dict[str, Any]


def warnings(item: Item, read: Read, want: Wanted, family: Family, played: Played) -> list[str]:
    """One line each, the gravest last."""
    found = []
    if want.not_asked:
        found.append(
            f"{want.not_asked}: the API server was not asked, so defaults are oarlock's own, and what webhooks and"
            " policies would do is not known"
        )
    if want.dropped:
        found.append(f"the API server does not know, and leaves out: {listed(want.dropped)}")
    spec, meta = want.obj.get("spec", {}), want.obj["metadata"]
    if spec.get("paused"):
        found.append("it is paused: a change of the template leads to nothing until it is resumed")
    if spec.get("updateStrategy", {}).get("type") == "OnDelete":
        found.append("its strategy is OnDelete: pods keep their template until somebody deletes them")
    if meta.get("deletionTimestamp"):
        found.append("it is being deleted")
    found += _of_owner(want.obj, item)
    found += _of_pods(family)
    found += _of_names(family, read)
    found += of_upstream(item.kind.name, read)
    found += played.events
    found += [f"{key}: {why}" for key, why in played.failures.items() if why not in " ".join(played.events)]
    if not played.rests and not played.failures:
        found.append(f"more would happen than was played: {len(played.steps)} steps; --steps plays more")
    return found


def _of_owner(obj: Obj, item: Item) -> list[str]:
    owner = next((ref for ref in obj["metadata"].get("ownerReferences", ()) if ref.get("controller")), None)
    if owner is None:
        return []
    return [f"{owner['kind']} {owner['name']} controls this {item.kind.name}, and may undo the change: change that one"]


def _of_pods(family: Family) -> list[str]:
    waiting = sorted(
        pod.name for pod in family.pods.values() if is_active(pod) and not pod.ready and not pod.uid.startswith("plan")
    )
    return [f"not ready now, and taken to stay so: {listed(waiting)}"] if waiting else []


def _of_names(family: Family, read: Read) -> list[str]:
    """Pods of others that bear names which pods of these ReplicaSets would have got."""
    owners = family.replicasets.values() if family.replicasets else [family.owner]
    slots = [(slots_of(each.name, each.uid), each.replicas) for each in owners if hasattr(each, "replicas")]
    others = [name for pod in read.lists["pods"] if (name := pod["metadata"]["name"]) not in family.pods]
    taken = [name for name in others for of, count in slots if (at := of.index_of(name)) is not None and at < count]
    return [f"names that pods of it would have got, but pods of others have: {listed(taken)}"] if taken else []


def of_upstream(kind: str, read: Read) -> list[str]:
    """kube-controller-manager at work on this owner: pods or ReplicaSets of it that it has created."""
    if read.live is None:
        return []
    uids = {read.live["metadata"]["uid"]}
    newest = None
    for resource in ("replicasets", "controllerrevisions", "pods"):
        for each in read.lists.get(resource, ()):
            raw = orjson.dumps(each)
            obj = WATCHED[resource].from_json(raw)[1]
            ref = controller_of(obj)
            if ref is None or ref.uid not in uids:
                continue
            if resource == "replicasets":
                uids.add(obj.uid)
            seen = evidence(raw, WATCHED[resource].kind, obj)
            newest = seen if seen is not None and (newest is None or seen.at > newest.at) else newest
    if newest is None:
        return []
    return [
        f"{newest}: while it looks after {kind}s, it acts, not a fleet, and names of pods are others; to"
        f" hand over, {mend()}"
    ]
