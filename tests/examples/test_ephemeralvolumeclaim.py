"""The port of kopf's example: what that one does in three handlers."""

from __future__ import annotations

import pytest

import oarlock
from examples.operators.ephemeralvolumeclaim import ClaimSpec, EphemeralVolumeClaim, ephemeralvolumeclaim
from oarlock.testing import Cluster, Refused, gone
from tests.examples.conftest import OPERATORS


def test_wants_one_claim() -> None:
    meta = oarlock.Meta(name="scratch", namespace="n", labels={"team": "web"})
    result = ephemeralvolumeclaim(EphemeralVolumeClaim(metadata=meta, spec=ClaimSpec(size="1Gi")), oarlock.Children())
    (pvc,) = result.children
    assert pvc["metadata"] == {"name": "scratch", "labels": {"team": "web"}}
    assert pvc["spec"]["resources"]["requests"] == {"storage": "1Gi"}
    assert (result.status.pvc_name, result.status.phase) == ("scratch", "Pending")


def test_in_a_cluster(cluster: Cluster) -> None:
    cluster.create(OPERATORS / "ephemeralvolumeclaim.yaml")
    cluster.wait("pvc/scratch", lambda it: it["metadata"]["labels"] == {"team": "web"})
    cluster.wait("ephemeralvolumeclaim/scratch", lambda it: it.get("status", {}).get("pvcName") == "scratch")
    cluster.patch("ephemeralvolumeclaim/scratch", {"spec": {"size": "2Gi"}})
    cluster.wait("pvc/scratch", lambda it: it["spec"]["resources"]["requests"]["storage"] == "2Gi")
    cluster.patch("ephemeralvolumeclaim/scratch", {"metadata": {"labels": {"team": None, "tier": "gold"}}})
    cluster.wait("pvc/scratch", lambda it: it["metadata"]["labels"] == {"tier": "gold"})
    cluster.delete("pvc/scratch")  # by hand: kopf's example would not notice
    cluster.wait("pvc/scratch", lambda it: not it["metadata"].get("deletionTimestamp"))
    cluster.delete("ephemeralvolumeclaim/scratch")
    cluster.wait("pvc/scratch", gone)


def test_a_size_that_is_none(cluster: Cluster) -> None:
    claim = {
        "apiVersion": "example.com/v1",
        "kind": "EphemeralVolumeClaim",
        "metadata": {"name": "x"},
        "spec": {"size": "big"},
    }
    with pytest.raises(Refused, match="size"):
        cluster.create(claim)
