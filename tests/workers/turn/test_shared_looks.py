"""Turns about nodes that were claimed together look at the DaemonSets once; the next batch looks again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson
import pytest

from oarlock.broker.values.claims import Batch
from oarlock.broker.values.events import Event
from oarlock.controllers.builtin import DAEMONSETS, NODE_QUEUE, NODES
from oarlock.controllers.entries import Watched
from oarlock.workers.ingest.known_owners import KnownOwners
from oarlock.workers.ingest.projection import Projector
from tests.workers.turn.turn_rig import WORKER, Rig

NAMES = ("n1", "n2", "n3")


@pytest.fixture
def rig() -> Rig:
    """Serves the queue of nodes; two DaemonSets, one of them only where zone is a, and three nodes in the queue."""
    rig = Rig((NODE_QUEUE,))
    put(rig, DAEMONSETS, [daemonset("all"), daemonset("some", "a")])
    put(rig, NODES, [node("n1", "a"), node("n2", "b"), node("n3", "a")])
    rig.broker.add(NODE_QUEUE, NAMES)
    return rig


def put(rig: Rig, resource: Watched[Any], objects: Sequence[dict[str, Any]]) -> None:
    """As a list of an ingestor. What it wakes is not awaited."""
    events: list[Event] = Projector(resource, KnownOwners()).listed([orjson.dumps(each) for each in objects])
    rv = max(each.rv for each in events)
    rig.broker.stage(resource.plural, f"list-{rv}", events)
    assert rig.broker.commit_list(resource.plural, f"list-{rv}", rv).verdict == "OK"


def daemonset(name: str, zone: str = "", rv: str = "900") -> dict[str, Any]:
    spec = {"nodeSelector": {"zone": zone}} if zone else {}
    return {
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}", "resourceVersion": rv},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": spec},
        },
    }


def node(name: str, zone: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "uid": f"uid-{name}", "resourceVersion": "900", "labels": {"zone": zone}}}


def counted(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> tuple[list[str], list[tuple[str, ...]]]:
    """Resources looked at, and keys queued, from here on."""
    looks: list[str] = []
    wakes: list[tuple[str, ...]] = []
    page, add = rig.broker.page, rig.broker.add

    def looked(resource: str, *what: Any, **how: Any) -> Any:
        looks.append(resource)
        return page(resource, *what, **how)

    def added(queue: str, keys: Sequence[str], **how: Any) -> int:
        wakes.append(tuple(keys))
        return add(queue, keys, **how)

    monkeypatch.setattr(rig.broker, "page", looked)
    monkeypatch.setattr(rig.broker, "add", added)
    return looks, wakes


def test_a_batch_looks_once(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    looks, wakes = counted(rig, monkeypatch)
    batch = rig.claim()
    assert [claim.key for claim in batch.claims] == list(NAMES)
    for claim in batch.claims:
        assert rig.run(batch, claim).error == ""
    assert looks == ["daemonsets"]
    assert wakes == [("default/all", "default/some"), ("default/all",), ("default/all", "default/some")]


def test_what_comes_between_two_batches_is_seen(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    looks, wakes = counted(rig, monkeypatch)
    first = rig.engine.claim(WORKER, 2)
    assert isinstance(first, Batch)
    for claim in first.claims:
        rig.run(first, claim)
    put(rig, DAEMONSETS, [daemonset("all"), daemonset("new", "a", rv="901")])
    second = rig.claim()
    (last,) = second.claims
    rig.run(second, last)
    assert looks == ["daemonsets", "daemonsets"]
    assert wakes[-1] == ("default/all", "default/new")


def test_many_daemonsets_are_read_in_pages(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    put(rig, DAEMONSETS, [daemonset(f"s{i}", rv=f"{1_000 + i}") for i in range(1_100)])
    sizes: list[int] = []
    page = rig.broker.page

    def read(*what: Any, **how: Any) -> Any:
        found = page(*what, **how)
        assert found is not None
        sizes.append(len(found.objects))
        return found

    _, wakes = counted(rig, monkeypatch)
    monkeypatch.setattr(rig.broker, "page", read)
    batch = rig.claim()
    for claim in batch.claims:
        assert rig.run(batch, claim).error == ""
    assert sizes == [500, 500, 100], "once for the batch"
    assert [len(keys) for keys in wakes] == [1_100] * 3
