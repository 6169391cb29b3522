"""Statuses of kinds that have no status subresource, in a whole cluster: refused, and told of."""

from __future__ import annotations

from typing import Any

import oarlock
from oarlock.testing import Cluster
from tests.sdk.test_kinds_that_vanish import GHOSTS

NO_STATUS = "its kind has no status subresource"


@oarlock.steps("v1 ConfigMap")
def stamp(obj: dict[str, Any], ctx: oarlock.Context) -> None:
    if obj["metadata"]["name"] == "mine":
        ctx.status({"seen": True})


@oarlock.desired(oarlock.Kind("example.com/v1", "Ghost"))
def seen(obj: dict[str, Any], children: oarlock.Children) -> oarlock.Result:
    return oarlock.Result(status={"seen": True})


def test_a_status_that_the_kind_does_not_have_is_told_of() -> None:
    with Cluster(operator=[stamp, seen], controllers="") as cluster:
        cluster.create(GHOSTS)
        cluster.wait("customresourcedefinitions/ghosts.example.com", lambda crd: crd["status"]["conditions"])
        cluster.create({"apiVersion": "example.com/v1", "kind": "Ghost", "metadata": {"name": "boo"}})
        cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "mine"}})
        for reason, kind in (("Failed", "ConfigMap"), ("StatusFailed", "Ghost")):

            def told(events: list[dict[str, Any]], of: tuple[str, str] = (reason, kind)) -> list[dict[str, Any]]:
                return [each for each in events if (each["reason"], each["involvedObject"]["kind"]) == of]

            found = cluster.wait("events", told, timeout_s=25)
            assert NO_STATUS in told(found)[0]["message"]
