"""Controllers with a clock in their status, in a whole cluster: their own writes do not wake them without end."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

import oarlock
from oarlock.testing import Cluster
from oarlock.workers.turn.custom import rewrites
from oarlock.workers.turn.custom.rewrites import FREE

runs: Counter[str] = Counter()


class Spec(oarlock.Struct):
    ticks: bool = True


class Status(oarlock.Struct):
    at: int = 0


@oarlock.resource("example.com/v1")
class Clock(oarlock.Object):
    spec: Spec
    status: Status | None = None


@oarlock.resource("example.com/v1")
class Ticker(oarlock.Object):
    spec: Spec
    status: Status | None = None


@oarlock.resource("example.com/v1")
class Mirror(oarlock.Object):
    """It looks at itself, too, as one does that looks at all of its group."""

    spec: Spec
    status: Status | None = None


def tick(obj: Clock | Ticker | Mirror) -> Status:
    """Another one each time, as the time would be."""
    key = obj.metadata.key
    runs[key] += 1
    return Status(runs[key] if obj.spec.ticks else 1)


@oarlock.desired(Clock)
def clock(obj: Clock, children: oarlock.Children) -> oarlock.Result:
    return oarlock.Result(status=tick(obj))


@oarlock.steps(Ticker)
def ticker(obj: Ticker, ctx: oarlock.Context) -> None:
    ctx.status(tick(obj))


@oarlock.desired(Mirror, watches=[oarlock.watch(Mirror, names=lambda obj: [obj.name])])
def mirror(obj: Mirror, children: oarlock.Children) -> oarlock.Result:
    assert children.watched(Mirror, obj.name) is not None
    return oarlock.Result(status=tick(obj))


@pytest.mark.parametrize("kind", ["Clock", "Ticker", "Mirror"])
def test_a_clock_in_the_status_is_slowed_down_and_told(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rewrites, "FIRST_MS", 60_000)  # longer than anything holds this process up

    def made(name: str, *, ticks: bool) -> dict[str, Any]:
        meta = {"name": name}
        return {"apiVersion": "example.com/v1", "kind": kind, "metadata": meta, "spec": {"ticks": ticks}}

    where = f"{kind.lower()}s"
    with Cluster(operator=[clock, ticker, mirror]) as cluster:
        key = f"{cluster.namespace}/a"
        runs.clear()
        cluster.create(made("a", ticks=True))
        events = cluster.wait("events", lambda found: any(each["reason"] == "StatusRewritten" for each in found))
        assert any("leave times" in each["message"] for each in events)
        assert runs[key] == FREE + 1
        cluster.time.advance(60.1)
        cluster.wait(f"{where}/a", lambda it: it["status"]["at"] == FREE + 2)
        cluster.create(made("b", ticks=False))
        cluster.wait(f"{where}/b", lambda it: it.get("status") == {"at": 1})
        assert runs[key] == FREE + 2
        cluster.patch(f"{where}/a", {"spec": {"ticks": False}})
        cluster.wait(f"{where}/a", lambda it: it["status"] == {"at": 1})
