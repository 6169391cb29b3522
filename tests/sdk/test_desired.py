"""A controller that says what is wanted, in a whole cluster."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from oarlock.testing import Cluster
from oarlock.testing.until import gone
from tests.sdk.website import website

TAKEN = ("NameTaken", "ApplyFailed")


@pytest.fixture(scope="module")
def running() -> Iterator[Cluster]:
    with Cluster(operator=[website]) as cluster:
        yield cluster


@pytest.fixture
def cluster(running: Cluster, request: pytest.FixtureRequest) -> Iterator[Cluster]:
    with running.fresh(request.node.name) as fresh:
        yield fresh


def site(name: str = "shop", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "example.com/v1",
        "kind": "Website",
        "metadata": {"name": name},
        "spec": {"image": "nginx:1", "replicas": 2, **spec},
    }


def is_ready(count: int = 2) -> Any:
    return lambda obj: obj.get("status", {}).get("ready") == count


def test_children_come_and_the_status_tells(cluster: Cluster) -> None:
    cluster.create(site())
    shop = cluster.wait("websites/shop", is_ready())
    assert shop["status"]["url"] == f"http://shop.{cluster.namespace}"
    for what in ("deployment/shop", "service/shop"):
        (ref,) = cluster.get(what)["metadata"]["ownerReferences"]
        assert (ref["kind"], ref["uid"], ref["controller"], ref["blockOwnerDeletion"]) == (
            "Website",
            shop["metadata"]["uid"],
            True,
            True,
        )


def test_a_changed_spec_is_applied(cluster: Cluster) -> None:
    cluster.create(site())
    cluster.wait("websites/shop", is_ready())
    cluster.patch("websites/shop", {"spec": {"image": "nginx:2", "replicas": 3}})
    cluster.wait("websites/shop", is_ready(3))
    deployment = cluster.get("deployment/shop")
    assert deployment["spec"]["template"]["spec"]["containers"][0]["image"] == "nginx:2"


def test_a_child_that_is_not_wanted_any_more_is_deleted(cluster: Cluster) -> None:
    cluster.create(site(pages={"index.html": "hello"}))
    cluster.wait("configmaps/shop-pages", lambda obj: obj["data"] == {"index.html": "hello"})
    cluster.patch("websites/shop", {"spec": {"pages": None}})
    cluster.wait("configmaps/shop-pages", gone)


def test_what_is_taken_out_of_a_wish_is_taken_out_of_the_child(cluster: Cluster) -> None:
    cluster.create(site(pages={"a": "1", "b": "2"}))
    cluster.wait("configmaps/shop-pages", lambda obj: obj["data"] == {"a": "1", "b": "2"})
    cluster.patch("websites/shop", {"spec": {"pages": {"b": None}}})
    cluster.wait("configmaps/shop-pages", lambda obj: obj["data"] == {"a": "1"})


def test_a_child_edited_by_hand_is_put_right(cluster: Cluster) -> None:
    cluster.create(site())
    cluster.wait("websites/shop", is_ready())
    cluster.patch("service/shop", {"spec": {"selector": {"site": "another"}}})
    cluster.wait("service/shop", lambda obj: obj["spec"]["selector"] == {"site": "shop"})


def test_a_child_deleted_by_hand_comes_again(cluster: Cluster) -> None:
    cluster.create(site())
    cluster.wait("websites/shop", is_ready())
    before = cluster.get("service/shop")["metadata"]["uid"]
    cluster.delete("service/shop")
    cluster.wait("service/shop", lambda obj: obj["metadata"]["uid"] != before)


def test_a_foreign_object_of_a_childs_name_is_left_alone(cluster: Cluster) -> None:
    theirs = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "shop"},
        "spec": {"ports": [{"port": 1}], "selector": {"theirs": "yes"}},
    }
    before = cluster.create(theirs)
    cluster.create(site())
    events = cluster.wait("events", lambda events: any(each["reason"] in TAKEN for each in events))
    assert any("Service shop" in each["message"] for each in events if each["reason"] in TAKEN)
    assert cluster.get("service/shop") == before
    cluster.wait("deployment/shop")


def test_children_go_with_their_owner(cluster: Cluster) -> None:
    cluster.create(site())
    cluster.wait("websites/shop", is_ready())
    cluster.delete("websites/shop")
    cluster.wait("deployment/shop", gone)
    cluster.wait("service/shop", gone)
