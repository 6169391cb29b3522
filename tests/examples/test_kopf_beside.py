"""The example of kopf's documentation, run by kopf, beside its port: whatever a user does, both have the same."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from oarlock.testing import Cluster
from oarlock.workers.process.death_signal import command_dying_with_this_process
from tests.examples.conftest import OPERATORS

pytest.importorskip("kopf", reason="pip install 'oarlock[kopf]'")
START_S = 60.0
GROUPS = {"scratch": "example.com", "kopfs": "kopf.example.com"}
"""Name of the claim -> whose kind it is: the port's, kopf's."""

DEFINITION: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "ephemeralvolumeclaims.kopf.example.com"},
    "spec": {
        "group": "kopf.example.com",
        "scope": "Namespaced",
        "names": {
            "plural": "ephemeralvolumeclaims",
            "singular": "ephemeralvolumeclaim",
            "kind": "EphemeralVolumeClaim",
        },
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


@pytest.fixture
def kopf(cluster: Cluster, tmp_path: Path) -> Iterator[Path]:
    """kopf at work in the test's namespace; its log."""
    cluster.create(DEFINITION)
    log = tmp_path / "kopf.log"
    command = [sys.executable, "-m", "kopf", "run", "--standalone", "-n", cluster.namespace]
    with log.open("wb") as said:
        process = subprocess.Popen(
            command_dying_with_this_process([*command, str(OPERATORS / "ephemeralvolumeclaim_kopf.py")]),
            env={**os.environ, "KUBECONFIG": str(cluster.kubeconfig)},
            stdout=said,
            stderr=said,
        )
    yield log
    process.terminate()
    process.wait(30)


def size_of(pvc: dict[str, Any]) -> str:
    size: str = pvc["spec"]["resources"]["requests"]["storage"]
    return size


def test_both_have_the_same(cluster: Cluster, kopf: Path) -> None:
    def change(what: dict[str, Any]) -> None:
        for name, group in GROUPS.items():
            cluster.patch(f"ephemeralvolumeclaims.{group}/{name}", what)

    def both(has: Any) -> None:
        for name in GROUPS:
            cluster.wait(f"pvc/{name}", has, timeout_s=START_S)

    for name, group in GROUPS.items():
        meta = {"name": name, "labels": {"team": "web"}}
        claim = {"apiVersion": f"{group}/v1", "kind": "EphemeralVolumeClaim", "metadata": meta, "spec": {"size": "1Gi"}}
        cluster.create(claim)
    both(lambda pvc: size_of(pvc) == "1Gi" and pvc["metadata"]["labels"] == {"team": "web"})
    cluster.wait("ephemeralvolumeclaims.kopf.example.com/kopfs", lambda it: "create" in it.get("status", {}))
    change({"spec": {"size": "2Gi"}})
    both(lambda pvc: size_of(pvc) == "2Gi")
    change({"metadata": {"labels": {"team": None, "tier": "gold"}}})
    both(lambda pvc: pvc["metadata"].get("labels") == {"tier": "gold"})

    found = [cluster.get(f"pvc/{name}") for name in GROUPS]
    assert [each["spec"]["accessModes"] for each in found] == [["ReadWriteOnce"]] * 2
    assert [each["metadata"]["ownerReferences"][0]["kind"] for each in found] == ["EphemeralVolumeClaim"] * 2
