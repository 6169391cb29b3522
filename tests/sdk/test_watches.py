"""Watches in both directions, and owners without a namespace, in a whole cluster."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import oarlock
from oarlock.testing import Cluster
from oarlock.testing.until import gone

TEAM = "team.example.com/name"


class PageSpec(oarlock.Struct):
    secret: str = ""


@oarlock.resource("example.com/v1")
class Page(oarlock.Object):
    """A page whose ConfigMap has the length of a secret that it names."""

    spec: PageSpec


@oarlock.desired(
    Page,
    children=["v1 ConfigMap"],
    watches=[
        oarlock.watch(
            "v1 Secret",
            names=lambda page: [f"{page.metadata.namespace}/{page.spec.secret}"] if page.spec.secret else [],
        )
    ],
)
def page(obj: Page, children: oarlock.Children) -> oarlock.Result:
    """Only the secret that it names is among those watched."""
    secret = children.watched("Secret", f"{obj.namespace}/{obj.spec.secret}")
    seen = sorted(each["metadata"]["name"] for each in children.all_watched("Secret"))
    data = {"seen": ",".join(seen), "length": str(len(secret.get("data", {}).get("key", ""))) if secret else "none"}
    return oarlock.Result([{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": obj.name}, "data": data}])


class TeamSpec(oarlock.Struct):
    namespaces: list[str]


@oarlock.resource("example.com/v1", namespaced=False)
class Team(oarlock.Object):
    """A team, with a ConfigMap of one name in each of its namespaces."""

    spec: TeamSpec


@oarlock.desired(
    Team,
    children=["v1 ConfigMap"],
    watches=[
        oarlock.watch(
            "v1 ServiceAccount",
            wakes=lambda account: filter(None, [account["metadata"].get("labels", {}).get(TEAM)]),
            fields=["metadata.labels"],
        )
    ],
)
def team(obj: Team, children: oarlock.Children) -> oarlock.Result:
    """Each map says how many there are, and who is in the team."""
    members = ",".join(sorted(each["metadata"]["name"] for each in children.all_watched("ServiceAccount")))
    return oarlock.Result(
        [
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": obj.name, "namespace": namespace},
                "data": {"members": members, "maps": str(len(children))},
            }
            for namespace in obj.spec.namespaces
        ]
    )


@pytest.fixture(scope="module")
def running() -> Iterator[Cluster]:
    with Cluster(operator=[page, team]) as cluster:
        yield cluster


@pytest.fixture
def cluster(running: Cluster, request: pytest.FixtureRequest) -> Iterator[Cluster]:
    with running.fresh(request.node.name) as fresh:
        yield fresh


def made(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "example.com/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def secret(name: str, key: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": {"key": key}}


def says(**data: str) -> Any:
    return lambda obj: obj["data"] == data


def test_what_an_object_names_wakes_it(cluster: Cluster) -> None:
    cluster.create(secret("other", "AAAA"))
    cluster.create(made("Page", "home", {"secret": "tls"}))
    cluster.wait("configmaps/home", says(seen="", length="none"))
    cluster.create(secret("tls", "AAAA"))
    cluster.wait("configmaps/home", says(seen="tls", length="4"))
    cluster.patch("secrets/tls", {"data": {"key": "AAAAAAAA"}})
    cluster.wait("configmaps/home", says(seen="tls", length="8"))
    cluster.delete("secrets/tls")
    cluster.wait("configmaps/home", says(seen="", length="none"))


def test_an_object_that_names_another_sees_that(cluster: Cluster) -> None:
    cluster.create(secret("one", "AAAA"))
    cluster.create(secret("two", "AAAAAAAA"))
    cluster.create(made("Page", "home", {"secret": "one"}))
    cluster.wait("configmaps/home", says(seen="one", length="4"))
    cluster.patch("pages/home", {"spec": {"secret": "two"}})
    cluster.wait("configmaps/home", says(seen="two", length="8"))


def account(name: str, labels: dict[str, str]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "labels": labels}}


def test_what_concerns_an_object_wakes_it(cluster: Cluster) -> None:
    name = cluster.namespace
    cluster.create(account("ann", {TEAM: name}))
    cluster.create(made("Team", name, {"namespaces": [name]}), namespace="")
    cluster.wait(f"configmaps/{name}", says(members="ann", maps="1"))
    cluster.create(account("bob", {TEAM: name}))
    cluster.wait(f"configmaps/{name}", says(members="ann,bob", maps="1"))
    cluster.patch("serviceaccounts/ann", {"metadata": {"labels": {TEAM: "another"}}})
    cluster.wait(f"configmaps/{name}", says(members="bob", maps="1"))
    cluster.delete("serviceaccounts/bob")
    cluster.wait(f"configmaps/{name}", says(members="", maps="1"))


def test_an_owner_without_a_namespace_has_children_of_one_name_in_several(running: Cluster) -> None:
    with running.fresh("a") as one, running.fresh("b") as two:
        running.create(made("Team", "red", {"namespaces": [one.namespace, two.namespace]}), namespace="")
        for each in (one, two):
            each.wait("configmaps/red", says(members="", maps="2"))
        running.patch("teams/red", {"spec": {"namespaces": [two.namespace]}})
        one.wait("configmaps/red", gone)
        two.wait("configmaps/red", says(members="", maps="1"))
        running.delete("teams/red")
        two.wait("configmaps/red", gone)
