"""Nothing is deleted for what a node was like before the fleet lost sight of the nodes."""

from __future__ import annotations

from oarlock.controllers.daemonset.manage import CONFIRMED_AGAIN_MS
from tests.simulation.daemon_docs import Doc
from tests.workers.turn.daemon_rig import SETTINGS, DaemonRig


def confirmed(rig: DaemonRig, resource: str) -> None:
    """As by a bookmark: nothing has changed."""
    mark = rig.broker.watermark(resource)
    assert mark is not None
    assert rig.broker.ingest(resource, mark, mark, []).verdict == "OK"


def test_a_pod_stays_until_the_nodes_are_confirmed() -> None:
    rig = DaemonRig(nodes=2)
    rig.rest()
    [pod] = rig.pods("n1")

    def taint(node: Doc) -> None:
        node["spec"] = {"taints": [{"key": "own", "effect": "NoExecute"}]}

    rig.change("nodes", "n1", taint)
    rig.read("nodes")
    rig.later(SETTINGS.view_age_max_ms + 1)
    confirmed(rig, "pods")
    before = len(rig.api.writes)
    rig.turns()
    rig.read("daemonsets")  # its status, which says that the pod is where none may be
    rig.turns()
    assert [write.verb for write in rig.api.writes[before:] if write.resource == "pods"] == []

    rig.later(CONFIRMED_AGAIN_MS)
    confirmed(rig, "pods")
    rig.turns()
    assert not any(each.deleting_ms for each in rig.pods("n1")), "it has looked again, and the nodes are as old"

    confirmed(rig, "nodes")
    confirmed(rig, "pods")
    rig.later(CONFIRMED_AGAIN_MS)
    rig.turns()
    [delete] = [write for write in rig.api.writes[before:] if write.resource == "pods"]
    assert (delete.verb, delete.uid) == ("delete", pod.uid)
