"""The function alone, then the same in a cluster."""

from __future__ import annotations

import msgspec
import pytest

import oarlock
from examples.operators.website import Website, WebsiteSpec, deployment, website
from oarlock.testing import Cluster, Refused, gone
from tests.examples.conftest import OPERATORS

MANIFEST = OPERATORS / "website.yaml"


def site(**spec: object) -> Website:
    return Website(
        metadata=oarlock.Meta(name="shop", namespace="n", generation=3),
        spec=msgspec.convert({"image": "nginx:1.27", **spec}, WebsiteSpec),
    )


def test_wants_a_deployment_and_a_service() -> None:
    result = website(site(replicas=2, env={"B": "2", "A": "1"}), oarlock.Children())
    assert [each["kind"] for each in result.children] == ["Deployment", "Service"]
    container = result.children[0]["spec"]["template"]["spec"]["containers"][0]
    assert container["env"] == [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]
    assert result.status.address == "http://shop.n.svc"
    assert result.status.observed_generation == 3


def test_of_one_that_is_not_public_the_service_is_not_wanted() -> None:
    result = website(site(public=False), oarlock.Children())
    assert [each["kind"] for each in result.children] == ["Deployment"]
    assert result.status.address == ""


def test_tells_how_many_are_ready() -> None:
    there = {**deployment(site()), "status": {"readyReplicas": 1}}
    assert website(site(), oarlock.Children([there])).status.ready == 1


def test_in_a_cluster(cluster: Cluster) -> None:
    cluster.create(MANIFEST)
    cluster.wait("website/shop", lambda it: it.get("status", {}).get("ready") == 2)
    cluster.wait("deployment/shop")
    assert cluster.get("service/shop")["spec"]["ports"][0]["targetPort"] == 8080

    cluster.patch("website/shop", {"spec": {"replicas": 1, "image": "nginx:1.28", "public": False}})
    cluster.wait("service/shop", gone)
    cluster.wait("website/shop", lambda it: it["status"]["ready"] == 1 and it["status"]["observedGeneration"] == 2)

    cluster.patch("deployment/shop", {"spec": {"replicas": 5}})  # by hand
    cluster.wait("deployment/shop", lambda it: it["spec"]["replicas"] == 1)

    cluster.delete("website/shop")
    cluster.wait("deployment/shop", gone)


def test_a_spec_that_does_not_fit_is_refused(cluster: Cluster) -> None:
    with pytest.raises(Refused, match="replicas"):
        cluster.create(
            {
                "apiVersion": "example.com/v1",
                "kind": "Website",
                "metadata": {"name": "x"},
                "spec": {"image": "i", "replicas": 1000},
            }
        )
