"""Another API group may have a kind of that name, and a DaemonSet a predecessor: their pods are not its own."""

from __future__ import annotations

from typing import Any

import pytest

from tests.simulation import daemon_docs
from tests.workers.turn.daemon_rig import DaemonRig


def strangers_pod(on: str, api_version: str) -> dict[str, Any]:
    """A pod on a node whose controller is another DaemonSet ``agent``."""
    doc = daemon_docs.pod("stranger", "uid-stranger", "other", on, None)
    ref = {"apiVersion": api_version, "kind": "DaemonSet", "name": "agent", "uid": "another", "controller": True}
    doc["metadata"]["ownerReferences"] = [ref]
    return doc


@pytest.mark.parametrize("api_version", ["apps/v1", "apps.example.com/v1"])
def test_a_node_that_comes_to_fit_gets_a_pod_beside_that_of_a_namesake(api_version: str) -> None:
    rig = DaemonRig(nodes=1)
    rig.change("daemonsets", "agent", lambda doc: doc["spec"]["template"]["spec"].update(nodeSelector={"gpu": "yes"}))
    rig.world.put("pods", strangers_pod("n1", api_version))
    rig.rest()
    assert rig.pods() == []
    rig.node("n1", gpu="yes")
    rig.rest()
    assert [pod.target_node for pod in rig.pods()] == ["n1"]
