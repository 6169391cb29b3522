"""An owner without a namespace that makes a Namespace and what is inside it."""

from __future__ import annotations

from typing import Any

import oarlock
from oarlock.testing import Cluster, exists, gone


@oarlock.resource("example.com/v1", namespaced=False)
class Team(oarlock.Object):
    status: dict[str, Any] | None = None


@oarlock.desired(Team, children=["v1 ConfigMap", "v1 Namespace"])
def team(obj: Team, children: oarlock.Children) -> oarlock.Result:
    inside = {"name": "about", "namespace": f"team-{obj.name}"}
    about = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": inside, "data": {"team": obj.name}}
    return oarlock.Result([about, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": inside["namespace"]}}])


def test_what_is_inside_is_made_after_its_namespace() -> None:
    """It was sent beside it, refused, and told as a failure."""
    with Cluster(operator=[team], controllers="", nodes=0) as cluster:
        with cluster.fault(500, resource="namespaces", by="controllers", times=1):  # so nobody can be lucky
            cluster.create({"apiVersion": "example.com/v1", "kind": "Team", "metadata": {"name": "blue"}})
            cluster.wait("configmap/about", exists, namespace="team-blue")
        cluster.wait("events", count=2)
        told = sorted(cluster.list("events"), key=lambda each: int(each["metadata"]["resourceVersion"]))
        assert [each["message"] for each in told] == ["Created Namespace team-blue", "Created ConfigMap about"]
        cluster.delete("team/blue")
        cluster.wait("namespace/team-blue", gone)
