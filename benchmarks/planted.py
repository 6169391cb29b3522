"""A Redis in which owners and their pods lie in the cache, all of them at rest: a turn over any of them finds nothing.

Planted the way an ingestor does it: JSON of the API through the same projection, staged and committed.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from typing import Any

import redis

from oarlock.broker import epoch
from oarlock.broker.redis_broker import RedisBroker
from oarlock.broker.values.events import Event
from oarlock.controllers.builtin import PODS, REPLICASETS
from oarlock.controllers.pods.slots import slots_of
from oarlock.controllers.registry import all_queues, resource_of
from oarlock.workers.ingest.known_owners import KnownOwners
from oarlock.workers.ingest.projection import Projector

EPOCH = 1
NAMESPACE = "shop"
_AT = "2026-01-05T08:00:00Z"
_CHUNK = 400
_TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": {}, "annotations": {"prometheus.io/scrape": "true", "prometheus.io/port": "9102"}},
    "spec": {
        "containers": [
            {
                "name": "web",
                "image": "example/web:1.27.3",
                "ports": [{"name": "http", "containerPort": 8080}],
                "env": [{"name": "LOG_LEVEL", "value": "info"}, {"name": "REGION", "value": "eu-central-1"}],
                "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
                "readinessProbe": {"httpGet": {"path": "/healthz", "port": 8080}, "periodSeconds": 5},
            }
        ],
        "terminationGracePeriodSeconds": 30,
    },
}


def plant(client: redis.Redis, groups: dict[str, tuple[int, int]], number: int = EPOCH) -> RedisBroker:
    """Begin an epoch on an empty server and fill its cache. ``groups``: prefix of names -> (owners, pods an owner).
    ``number``: of the epoch.

    The phase stays DRAIN; ``RedisBroker.open`` lets turns begin.
    """
    epoch.bootstrap(client, number)
    broker = RedisBroker(client, number)
    owners = KnownOwners()
    sets = [(name, pods) for group, (count, pods) in groups.items() for name in names(group, count)]
    stage(broker, Projector(REPLICASETS, owners), (replicaset(name, pods) for name, pods in sets))
    stage(broker, Projector(PODS, owners), (pod for name, pods in sets for pod in pods_of(name, pods)))
    while broker.republish(2_000):
        pass
    return broker


def open_turns(broker: RedisBroker) -> None:
    """Let turns begin: what was not planted is listed, and there is none of it."""
    for resource in {resource_of(queue) for queue in all_queues()} | {"pods", "controllerrevisions"}:
        if broker.watermark(resource) is None:
            broker.stage(resource, "none", [])
            broker.commit_list(resource, "none", "1000")
    broker.open([])


def names(group: str, count: int) -> list[str]:
    """Names of a group's ReplicaSets."""
    return [f"{group}-{number:05d}" for number in range(count)]


def keys(group: str, count: int) -> list[str]:
    """Their keys in the queue."""
    return [f"{NAMESPACE}/{name}" for name in names(group, count)]


def stage(broker: RedisBroker, projector: Projector, objects: Iterator[dict[str, Any]]) -> None:
    """A whole list of a resource, committed."""
    resource = projector.resource.resource
    events: list[Event] = []
    for obj in objects:
        events += projector.listed([json.dumps(obj).encode()])
        if len(events) >= _CHUNK:
            broker.stage(resource, "planted", events)
            events = []
    broker.stage(resource, "planted", events)
    broker.commit_list(resource, "planted", "1000")


def _uid(name: str) -> str:
    """The same in every run."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, name))


def replicaset(name: str, pods: int, namespace: str = NAMESPACE) -> dict[str, Any]:
    """As the API has it."""
    labels = {"app.kubernetes.io/name": name, "app.kubernetes.io/part-of": NAMESPACE, "tier": "web"}
    template = {**_TEMPLATE, "metadata": {**_TEMPLATE["metadata"], "labels": labels}}
    return {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": _uid(name if namespace == NAMESPACE else f"{namespace}/{name}"),
            "resourceVersion": "900",
            "generation": 1,
            "creationTimestamp": _AT,
            "labels": labels,
        },
        "spec": {"replicas": pods, "selector": {"matchLabels": labels}, "template": template},
        "status": {
            "replicas": pods,
            "fullyLabeledReplicas": pods,
            "readyReplicas": pods,
            "availableReplicas": pods,
            "terminatingReplicas": 0,
            "observedGeneration": 1,
        },
    }


def pods_of(owner: str, count: int) -> Iterator[dict[str, Any]]:
    """An owner's pods, ready, as the API has them."""
    labels = {"app.kubernetes.io/name": owner, "app.kubernetes.io/part-of": NAMESPACE, "tier": "web"}
    reference = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": owner,
        "uid": _uid(owner),
        "controller": True,
        "blockOwnerDeletion": True,
    }
    free = slots_of(owner, _uid(owner)).free(frozenset())
    for number in range(count):
        name = next(free)
        yield {
            "metadata": {
                "name": name,
                "namespace": NAMESPACE,
                "uid": _uid(name),
                "resourceVersion": "950",
                "creationTimestamp": _AT,
                "labels": labels,
                "ownerReferences": [reference],
            },
            "spec": {"nodeName": f"node-{number % 5}"},
            "status": {
                "phase": "Running",
                "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": _AT}],
                "containerStatuses": [{"name": "web", "restartCount": 0}],
            },
        }
