"""What the tests of Deployments share: how far one is, its ReplicaSets, and whether its limits were kept."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.cluster.acceptance.following import Following
from tests.e2e.e2e_kubectl import Kubectl, Obj, controlled_by, template, until

REVISION = "deployment.kubernetes.io/revision"
DESIRED = "deployment.kubernetes.io/desired-replicas"
TEMPLATE_HASH = "pod-template-hash"
COUNTS = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")


def deployment(name: str = "web", replicas: int = 2, image: str = "nginx:1", **spec: Any) -> Obj:
    """Its pods are ready soon, unless ``template`` says otherwise."""
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": template(name, image),
            **spec,
        },
    }


def rolling(surge: int | str, unavailable: int | str) -> Obj:
    limits = {"maxSurge": surge, "maxUnavailable": unavailable}
    return {"strategy": {"type": "RollingUpdate", "rollingUpdate": limits}}


def status(kubectl: Kubectl, name: str = "web") -> dict[str, Any]:
    """Its status; empty while it speaks of an earlier generation."""
    found = kubectl.json("get", "deploy", name)
    said: dict[str, Any] = found.get("status") or {}
    return said if said.get("observedGeneration", 0) >= found["metadata"]["generation"] else {}


def counts(kubectl: Kubectl, name: str = "web") -> list[int]:
    """Replicas, updated, ready, available; empty while nothing is said of the present generation."""
    said = status(kubectl, name)
    return [said.get(field, 0) for field in COUNTS] if said else []


def condition(kubectl: Kubectl, kind: str, name: str = "web") -> tuple[str, str]:
    """Status and reason of one of its conditions; empty texts where it has none."""
    found = (each for each in status(kubectl, name).get("conditions") or () if each["type"] == kind)
    return next(((each["status"], each["reason"]) for each in found), ("", ""))


def rolled_out(kubectl: Kubectl, count: int, name: str = "web", limit_s: float = 40) -> list[Obj]:
    """Wait until all there is are ``count`` available pods of the present template. Returns them."""
    until(lambda: counts(kubectl, name) == [count] * 4, limit_s, f"{name} has {count} available pods of its template")
    return pods_of(kubectl, name)


def pods_of(kubectl: Kubectl, name: str = "web") -> list[Obj]:
    """Those that bear its label and are not on their way out."""
    return [pod for pod in kubectl.items("pods", "-l", f"app={name}") if not pod["metadata"].get("deletionTimestamp")]


def replicasets(kubectl: Kubectl, name: str = "web") -> list[Obj]:
    """Those it controls, by their revision."""
    uid = kubectl.json("get", "deploy", name)["metadata"]["uid"]
    return sorted((each for each in kubectl.items("rs") if controlled_by(each) == uid), key=revision)


def revision(obj: Obj) -> int:
    """0 where it has none."""
    return int((obj["metadata"].get("annotations") or {}).get(REVISION, 0))


def sizes(kubectl: Kubectl, name: str = "web") -> list[int]:
    """What its ReplicaSets ask for, the oldest revision first."""
    return [each["spec"]["replicas"] for each in replicasets(kubectl, name)]


def images(pods: list[Obj]) -> set[str]:
    return {pod["spec"]["containers"][0]["image"] for pod in pods}


def is_active(pod: Obj) -> bool:
    return not pod["metadata"].get("deletionTimestamp") and pod["status"].get("phase") not in ("Failed", "Succeeded")


def is_ready(pod: Obj) -> bool:
    return any(each["type"] == "Ready" and each["status"] == "True" for each in pod["status"].get("conditions") or ())


def states(followed: Following) -> Iterator[list[Obj]]:
    """The active pods after each change that was heard of."""
    there = {pod["metadata"]["uid"]: pod for pod in followed.before}
    for moment in followed.moments:
        there.pop(moment.pod["metadata"]["uid"], None)
        if not moment.gone:
            there[moment.pod["metadata"]["uid"]] = moment.pod
        yield [pod for pod in there.values() if is_active(pod)]


def extremes(followed: Following) -> tuple[int, int]:
    """The most active pods there ever were, and the fewest of them ready."""
    followed.catch_up()
    seen = [(len(active), sum(map(is_ready, active))) for active in states(followed)]
    return max(active for active, _ in seen), min(ready for _, ready in seen)
