"""Small builders for Deployments and the sizes of their ReplicaSets, so that a case is one line."""

from collections.abc import Mapping
from typing import Any

from oarlock.controllers.deployment import annotations
from oarlock.controllers.deployment.model import Deployment
from oarlock.controllers.deployment.plan import Rollout, SizeWrite
from oarlock.controllers.deployment.sizing.sizes import Step
from oarlock.controllers.objects.model import OwnerRef, Pod, ReplicaSet, ReplicaSetStatus, label_selector
from tests.controllers.builders import NOW_MS, TEMPLATE, WEB, S


def dep(replicas: int = 10, **fields: Any) -> Deployment:
    """A Deployment default/web under RollingUpdate, without limits unless they are given."""
    base: dict[str, Any] = {
        "namespace": "default",
        "name": "web",
        "uid": "uid-web",
        "generation": 1,
        "replicas": replicas,
        "selector": label_selector(WEB),
        "template": TEMPLATE,
        "template_digest": "new",
        "template_labels": dict(WEB),
    }
    return Deployment(**(base | fields))


def sized(name: str, replicas: int, **fields: Any) -> ReplicaSet:
    """A ReplicaSet whose status has observed its size and has so many pods, all available. `desired`, `most`: what it
    remembers of the Deployment; `pods`, `available`: what its status says.
    """
    pods = fields.pop("pods", replicas)
    status = ReplicaSetStatus(pods, pods, pods, fields.pop("available", pods), None, fields.pop("observed", 1))
    remembered = {
        annotations.DESIRED_REPLICAS: fields.pop("desired", None),
        annotations.MAX_REPLICAS: fields.pop("most", None),
    }
    base: dict[str, Any] = {
        "namespace": "default",
        "name": name,
        "uid": f"uid-{name}",
        "generation": 1,
        "replicas": replicas,
        "selector": label_selector(WEB),
        "template": TEMPLATE,
        "template_labels": dict(WEB),
        "status": status,
        "annotations": {key: str(value) for key, value in remembered.items() if value is not None},
    }
    return ReplicaSet(**(base | fields))


def rollout(new: int | ReplicaSet | None, *olds: int | ReplicaSet) -> Rollout:
    """Newest first, as the tables have it: the new ReplicaSet (None: there is none), then the old ones."""
    count = len(olds)
    made = [
        sized(f"o{count - i}", each, created_ms=NOW_MS + (count - i) * S) if isinstance(each, int) else each
        for i, each in enumerate(olds)
    ]
    newest = sized("new", new, created_ms=NOW_MS + (count + 1) * S) if isinstance(new, int) else new
    return Rollout(newest, tuple(reversed(made)))


def sizes_after(given: Rollout, step: Step) -> tuple[int, ...]:
    """The sizes if all of it lands, newest first; the new ReplicaSet, if there is one, leads."""
    changed = {update.replicaset.uid: update.replicas for update in step.updates}
    newest_first = [*([given.new] if given.new else []), *reversed(given.old)]
    return tuple(changed.get(each.uid, each.replicas) for each in newest_first)


def writes(**by_name: tuple[int, int] | tuple[int, int, bool]) -> Mapping[str, SizeWrite]:
    """What is remembered of size writes, by the ReplicaSet's name."""
    return {f"uid-{name}": SizeWrite(*each) for name, each in by_name.items()}


def pod_of(replicaset: str, **fields: Any) -> Pod:
    """A running pod of a ReplicaSet."""
    ref = OwnerRef("apps/v1", "ReplicaSet", replicaset, f"uid-{replicaset}", True, True)
    base: dict[str, Any] = {"labels": dict(WEB), "owner_refs": (ref,), "phase": "Running"}
    return Pod("default", f"{replicaset}-x", uid=f"uid-{replicaset}-x", **(base | fields))
