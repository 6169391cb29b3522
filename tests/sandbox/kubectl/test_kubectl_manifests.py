"""Files of other projects, as their authors wrote them, applied by a real kubectl."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.sandbox.kubectl.kubectl_harness import KUBECTL, MANIFESTS, Kubectl

FILES = sorted(MANIFESTS.glob("*.yaml"))
pytestmark = [*KUBECTL, pytest.mark.skipif(not FILES, reason="the collected manifests are not here")]

Obj = dict[str, Any]


def documents(path: Path) -> list[Obj]:
    return [document for document in yaml.safe_load_all(path.read_text()) if document]


def versions(client: Kubectl, path: Path) -> list[str]:
    shown = client.json("get", "-f", str(path))
    return [obj["metadata"]["resourceVersion"] for obj in shown.get("items", [shown])]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_object_of_a_file_is_taken(kubectl: Kubectl, path: Path) -> None:
    """A second time nothing changes, even where kubectl sends a patch, as for a volume without a source."""
    client = Kubectl(kubectl.binary, kubectl.kubeconfig, kubectl.home, "")
    objects = documents(path)
    brought = {obj["metadata"]["name"] for obj in objects if obj["kind"] == "Namespace"}
    for namespace in {obj["metadata"].get("namespace", "default") for obj in objects} - brought:
        client.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    shown = client.run("apply", "-f", str(path)).splitlines()
    told = [line.split()[-1] for line in shown if not line.startswith("Warning: resource namespaces/")]
    assert len(told) == len(objects)
    assert set(told) <= {"created", "configured", "unchanged"}
    stored = versions(client, path)
    assert len(stored) == len(objects)
    client.run("apply", "-f", str(path))
    assert versions(client, path) == stored


def test_the_files_bring_what_they_are_collected_for() -> None:
    kinds = [obj["kind"] for path in FILES for obj in documents(path)]
    assert len(FILES) >= 35
    assert min(kinds.count(kind) for kind in ("DaemonSet", "Deployment", "ReplicationController", "ReplicaSet")) >= 2
