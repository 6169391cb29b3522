"""Objects that no longer fit their type, in a whole cluster: none is dropped in silence, and each can be let go."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import oarlock
from oarlock.sdk.types.crd import crd_of
from oarlock.testing import Cluster, gone

undone: list[tuple[type, dict[str, Any]]] = []


def assert_undone(kind: type, spec: dict[str, Any]) -> None:
    """Once at least: a turn that comes before the cache knows that the object may go undoes it again."""
    found = [each for of, each in undone if of is kind]
    assert found[:1] == [spec]
    assert all(each == spec for each in found)


class Spec(oarlock.Struct):
    address: str


@oarlock.resource("misfit.example.com/v1")
class Permit(oarlock.Object):
    spec: Spec


@oarlock.resource("misfit.example.com/v1")
class Ticket(oarlock.Object):
    spec: Spec


@oarlock.steps(Permit, finalizer="misfit.example.com/permit")
def permit(obj: Permit, ctx: oarlock.Context) -> None: ...


@permit.finalize
def end(obj: Permit, ctx: oarlock.Context) -> None:
    undone.append((Permit, {"address": obj.spec.address}))


@oarlock.steps(Ticket, finalizer="misfit.example.com/ticket")
def ticket(obj: Ticket, ctx: oarlock.Context) -> None: ...


@ticket.finalize(raw=True)
def close(obj: dict[str, Any], ctx: oarlock.Context) -> None:
    undone.append((Ticket, obj["spec"]))


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Its definitions were widened since the types were written, and a field has another name."""
    with Cluster(operator=[permit, ticket], controllers="") as cluster:
        for model in (Permit, Ticket):
            (version,) = crd_of(model)["spec"]["versions"]
            version["schema"]["openAPIV3Schema"]["properties"]["spec"] = {
                "type": "object",
                "x-kubernetes-preserve-unknown-fields": True,
            }
            cluster.patch(f"customresourcedefinitions/{model.kind.resource}", {"spec": {"versions": [version]}})
        yield cluster


def misfit(cluster: Cluster, kind: str, name: str) -> None:
    """One that fitted when the finalizer was set."""
    word = f"{kind.lower()}s/{name}"
    made = {"apiVersion": "misfit.example.com/v1", "kind": kind, "metadata": {"name": name}}
    cluster.create({**made, "spec": {"address": "192.0.2.1"}})
    cluster.wait(word, lambda it: it["metadata"]["finalizers"])
    cluster.patch(word, {"spec": {"address": None, "addr": "192.0.2.2"}})
    cluster.delete(word)


def test_an_undo_that_takes_plain_dicts_lets_it_go(cluster: Cluster) -> None:
    misfit(cluster, "Ticket", "raw")
    cluster.wait("tickets/raw", gone)
    assert_undone(Ticket, {"addr": "192.0.2.2"})


def test_a_typed_one_is_not_called_and_an_event_says_what_to_do(cluster: Cluster) -> None:
    misfit(cluster, "Permit", "typed")
    held = "the finalizer misfit.example.com/permit stays: mend the object, or have end take any object"
    cluster.wait("events", lambda events: any(held in each["message"] for each in events))
    assert cluster.get("permits/typed")["metadata"]["finalizers"] == ["misfit.example.com/permit"]
    cluster.patch("permits/typed", {"spec": {"address": "192.0.2.3"}})
    cluster.wait("permits/typed", gone)
    assert_undone(Permit, {"address": "192.0.2.3"})
