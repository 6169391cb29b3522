"""Conditions of controllers of one's own: when they have changed is noted for them."""

from __future__ import annotations

from typing import Any

import pytest

import oarlock
from oarlock.testing import Cluster, condition


class Spec(oarlock.Struct):
    volts: int


class Status(oarlock.Struct):
    conditions: list[oarlock.Condition] = []


@oarlock.resource("example.com/v1")
class Lamp(oarlock.Object):
    spec: Spec
    status: Status | None = None


@oarlock.resource("example.com/v1")
class Motor(oarlock.Object):
    spec: Spec
    status: Status | None = None


def safe(obj: Lamp | Motor) -> Status:
    reason = f"Volts{obj.spec.volts}"
    status = "True" if obj.spec.volts <= 50 else "False"
    return Status(conditions=[oarlock.Condition(type="Safe", status=status, reason=reason)])


@oarlock.desired(Lamp)
def lamp(obj: Lamp, children: oarlock.Children) -> oarlock.Result:
    return oarlock.Result(status=safe(obj))


@oarlock.steps(Motor)
def motor(obj: Motor, ctx: oarlock.Context) -> None:
    ctx.status(safe(obj))


@pytest.mark.parametrize("kind", ["Lamp", "Motor"])
def test_the_time_of_a_condition_changes_with_its_status_only(kind: str) -> None:
    what = f"{kind.lower()}s/a"

    def has(reason: str) -> Any:
        return lambda it: it["status"]["conditions"][0]["reason"] == reason

    with Cluster(operator=[lamp, motor]) as cluster:
        cluster.create({"apiVersion": "example.com/v1", "kind": kind, "metadata": {"name": "a"}, "spec": {"volts": 12}})
        (first,) = cluster.wait(what, condition("Safe"))["status"]["conditions"]
        assert first["lastTransitionTime"].endswith("Z")
        old = [{**first, "lastTransitionTime": "2026-01-05T08:00:00Z"}]
        cluster.patch(what, {"status": {"conditions": old}}, subresource="status")
        cluster.patch(what, {"spec": {"volts": 24}})
        (same,) = cluster.wait(what, has("Volts24"))["status"]["conditions"]
        assert same["lastTransitionTime"] == "2026-01-05T08:00:00Z"
        cluster.patch(what, {"spec": {"volts": 230}})
        (other,) = cluster.wait(what, has("Volts230"))["status"]["conditions"]
        assert other["status"] == "False"
        assert other["lastTransitionTime"] >= first["lastTransitionTime"]
