"""A kind whose definition is deleted under a running controller, and comes again."""

from __future__ import annotations

from typing import Any

import oarlock
from oarlock.sdk.types.crd import crd_of
from oarlock.testing import Cluster
from oarlock.testing.until import gone
from tests.sdk.test_desired import is_ready, site
from tests.sdk.website import Website, website


def test_a_kind_that_vanishes_and_comes_again() -> None:
    with Cluster(operator=[website]) as cluster:
        cluster.create(site())
        cluster.wait("websites/shop", is_ready())
        cluster.delete("customresourcedefinitions/websites.example.com")
        cluster.wait("customresourcedefinitions/websites.example.com", gone)
        cluster.create(DEPLOYMENT)
        cluster.wait("deployment/other")  # all others work on
        cluster.wait("deployment/other", lambda _: not cached(cluster))
        cluster.delete("deployment/shop")
        cluster.wait("deployment/shop", gone)
        cluster.wait("pods", count=1)  # its owner went with the kind: it does not come again
        cluster.create(crd_of(Website))
        cluster.wait("customresourcedefinitions/websites.example.com", lambda crd: crd["status"]["conditions"])
        cluster.create(site("again"))
        cluster.wait("websites/again", is_ready(), timeout_s=25)


def cached(cluster: Cluster) -> bool:
    """Whether a website is in the cache, which is in memory here."""
    state = cluster._running.fleet._data._store.state  # type: ignore[union-attr]
    return bool(state.objects.get(("websites.example.com", state.generation["websites.example.com"])))


DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "other"},
    "spec": {
        "replicas": 1,
        "selector": {"matchLabels": {"app": "other"}},
        "template": {
            "metadata": {"labels": {"app": "other"}},
            "spec": {"containers": [{"name": "c", "image": "nginx"}]},
        },
    },
}


@oarlock.desired(oarlock.Kind("example.com/v1", "Ghost"), children=["v1 ConfigMap"])
def ghost(obj: dict[str, Any], children: oarlock.Children) -> oarlock.Result:
    """Of a kind that is not defined yet."""
    name = obj["metadata"]["name"]
    return oarlock.Result([{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"v": "1"}}])


def test_a_kind_that_is_defined_after_its_controller_has_started() -> None:
    with Cluster(operator=[ghost]) as cluster:
        cluster.create(DEPLOYMENT)
        cluster.wait("deployment/other")
        cluster.create(GHOSTS)
        cluster.wait("customresourcedefinitions/ghosts.example.com", lambda crd: crd["status"]["conditions"])
        cluster.create({"apiVersion": "example.com/v1", "kind": "Ghost", "metadata": {"name": "boo"}})
        cluster.wait("configmaps/boo", lambda obj: obj["data"] == {"v": "1"}, timeout_s=25)


GHOSTS = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "ghosts.example.com"},
    "spec": {
        "group": "example.com",
        "names": {"plural": "ghosts", "singular": "ghost", "kind": "Ghost"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}
