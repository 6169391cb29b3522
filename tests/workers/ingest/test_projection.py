"""What is told of an object beside its projection."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from oarlock.broker.values.events import ending_of
from oarlock.cluster.http.frames import WatchEvent
from oarlock.controllers.registry import WATCHED
from oarlock.workers.ingest.known_owners import KnownOwners
from oarlock.workers.ingest.projection import Projector


def owner(observed: int | None) -> dict[str, Any]:
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    return {
        "metadata": {"namespace": "shop", "name": "web", "uid": "u", "resourceVersion": "7", "generation": 2},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template, "strategy": {}},
        "status": {} if observed is None else {"observedGeneration": observed},
    }


@pytest.mark.parametrize(
    ("type_", "observed", "trigger"),
    [
        ("ADDED", None, "set"),
        ("MODIFIED", 1, "set"),
        ("MODIFIED", 2, "observed"),
        ("ADDED", 2, "observed"),
        ("DELETED", 2, "del"),
    ],
)
@pytest.mark.parametrize("resource", ["replicasets", "replicationcontrollers", "daemonsets", "deployments"])
def test_an_owner_is_observed_once_its_status_tells_of_its_generation(
    resource: str, type_: str, observed: int | None, trigger: str
) -> None:
    body = owner(observed)
    if resource == "replicationcontrollers":
        body["spec"]["selector"] = body["spec"]["selector"]["matchLabels"]
    projector = Projector(WATCHED[resource], KnownOwners())
    batch, taken = projector.batch([WatchEvent(type_, "7", orjson.dumps(body))], "6", "6", 1 << 20)
    assert taken == 1
    (event,) = batch.events
    assert event.word == trigger
    assert event.wakes == (f"{WATCHED[resource].owner_queue}:shop/web",), "and its own key is the first"


@pytest.mark.parametrize(
    ("type_", "owned", "word"),
    [("ADDED", True, "added"), ("ADDED", False, "set"), ("MODIFIED", True, "set"), ("DELETED", True, "del")],
)
def test_what_has_come_with_a_controller_is_added(type_: str, owned: bool, word: str) -> None:
    """An orphan is to be adopted, perhaps. A pod is never observed."""
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "o", "controller": True}
    body = {
        "metadata": {
            **{"namespace": "shop", "name": "web-1", "uid": "p", "resourceVersion": "7", "generation": 1},
            "ownerReferences": [owner] if owned else [],
        },
        "spec": {},
        "status": {},
    }
    batch, _ = Projector(WATCHED["pods"], KnownOwners()).batch(
        [WatchEvent(type_, "7", orjson.dumps(body))], "6", "6", 1 << 20
    )
    assert [event.word for event in batch.events] == [word]


@pytest.mark.parametrize(
    ("uid", "counts"), [("o", True), pytest.param("o o", False, id="not the entry that it would count under")]
)
def test_a_pod_counts_under_its_owner(uid: str, counts: bool) -> None:
    """What ends its blob is then left to its class."""
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": uid, "controller": True}
    meta = {"namespace": "shop", "name": "web-1", "uid": "p", "resourceVersion": "7", "ownerReferences": [owner]}
    body = orjson.dumps({"metadata": meta, "spec": {}, "status": {}})
    projector = Projector(WATCHED["pods"], KnownOwners())
    batch, _ = projector.batch([WatchEvent("ADDED", "7", body)], "6", "6", 1 << 20)
    for event in (*batch.events, *projector.listed([body])):
        assert bool(event.kind) is counts
        assert event.blob is not None
        whole = event.blob + (ending_of(event.kind, "p") if counts else b"")
        assert whole == WATCHED["pods"].encode(WATCHED["pods"].from_json(body)[1])
