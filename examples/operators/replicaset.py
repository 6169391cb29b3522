"""A ReplicaSet by the SDK's own means: a kind that keeps so many pods of a template, under a name of its own, PodSet.

It is what oarlock's built-in one does in essence: the name of a pod is the owner's and the lowest free index, so a
create that is repeated after a kill meets a name that is taken. A change of the template concerns new pods only, as
upstream has it. That is why it is written in steps: a desired state would want the old pods changed too.

Deleting a PodSet needs no code: its pods have an owner reference, and the garbage collector deletes them. The built-in
one does more: it adopts pods that it selects, has a slow start where creates fail, ranks surplus pods by all of
upstream's rules, and announces its writes. Use that one for a workload.
"""

from typing import Annotated, Any

from msgspec import Meta

import oarlock

ENDED = ("Succeeded", "Failed")


class PodSetSpec(oarlock.Struct):
    template: dict[str, Any]
    replicas: Annotated[int, Meta(ge=0)] = 1


class PodSetStatus(oarlock.Struct):
    observed_generation: int = 0
    replicas: int = 0
    ready_replicas: int = 0


@oarlock.resource(
    "example.com/v1",
    scale=("spec.replicas", "status.replicas", ""),
    columns={"Desired": "spec.replicas", "Current": "status.replicas", "Ready": "status.readyReplicas"},
)
class PodSet(oarlock.Object):
    """So many pods of one template."""

    spec: PodSetSpec
    status: PodSetStatus | None = None


@oarlock.steps(PodSet, children=["v1 Pod"])
def podset(owner: PodSet, ctx: oarlock.Context) -> None:
    pods = ctx.list("Pod")
    for name in missing(owner.name, owner.spec.replicas, pods):
        ctx.create(pod(owner.spec.template, name))
    for name in surplus(owner.spec.replicas, pods):
        ctx.delete("Pod", name)
    counted = alive(pods)
    ctx.status(PodSetStatus(owner.metadata.generation, len(counted), sum(ready(each) for each in counted)))


def missing(owner: str, replicas: int, pods: list[dict[str, Any]]) -> list[str]:
    """Names of the pods to create: the lowest free indexes. A pod that ended or is going keeps its name until gone."""
    taken = {each["metadata"]["name"] for each in pods}
    free = (name for name in (f"{owner}-{index}" for index in range(replicas + len(pods))) if name not in taken)
    return [name for name, _ in zip(free, range(replicas - len(alive(pods))), strict=False)]


def surplus(replicas: int, pods: list[dict[str, Any]]) -> list[str]:
    """Names of the pods to delete: those without a node first, then those that are not ready, then the youngest."""
    ranked = sorted(alive(pods), key=lambda each: each["metadata"].get("creationTimestamp", ""), reverse=True)
    ranked.sort(key=lambda each: (bool(each["spec"].get("nodeName")), ready(each)))
    return [each["metadata"]["name"] for each in ranked[: max(0, len(ranked) - replicas)]]


def alive(pods: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those that count: neither ended nor being deleted."""
    return [
        each
        for each in pods
        if not each["metadata"].get("deletionTimestamp") and each.get("status", {}).get("phase") not in ENDED
    ]


def ready(pod: dict[str, Any]) -> bool:
    conditions = pod.get("status", {}).get("conditions", [])
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def pod(template: dict[str, Any], name: str) -> dict[str, Any]:
    return {**template, "apiVersion": "v1", "kind": "Pod", "metadata": {**template.get("metadata", {}), "name": name}}
