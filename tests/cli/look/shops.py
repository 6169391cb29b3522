"""Controllers of one's own for the tests of the inspection commands: some of one kind, some of others."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

import oarlock


class Spec(oarlock.Struct):
    image: str
    hosts: list[str] = []


@oarlock.resource("example.com/v1", columns={"Image": "spec.image", "Hosts": "spec.hosts"})
class Website(oarlock.Object):
    """Of the controllers site and audit."""

    spec: Spec


class TeamSpec(oarlock.Struct):
    size: Annotated[int, Meta(ge=1)]


@oarlock.resource("example.com/v1", namespaced=False)
class Team(oarlock.Object):
    """Without a namespace."""

    spec: TeamSpec


@oarlock.desired(Website, children=["v1 ConfigMap"])
def site(obj: Website, children: oarlock.Children) -> oarlock.Result:
    """Nothing is wanted."""
    return oarlock.Result([])


@oarlock.desired(Website)
def audit(obj: Website, children: oarlock.Children) -> oarlock.Result:
    """It fails."""
    raise RuntimeError("no auditor")


@oarlock.steps("v1 Secret", rate_per_s=0.01)
def rotate(obj: dict[str, Any], ctx: oarlock.Context) -> None:
    """Of objects without a type."""


@oarlock.steps(Team, watches=[oarlock.watch("v1 Secret", names=lambda team: [f"shop/{team.name}"])])
def team(obj: Team, ctx: oarlock.Context) -> None:
    """Of a kind without a namespace."""


@oarlock.desired("v1 ConfigMap")
def later(obj: dict[str, Any], children: oarlock.Children) -> oarlock.Result:
    """It waits."""
    raise oarlock.Later(seconds=60, reason="there is no page yet")


@oarlock.resource("example.com/v1")
class Record(oarlock.Object):
    """Of the controllers publish and enroll."""

    spec: Spec


@oarlock.steps(Record, finalizer="example.com/record")
def publish(obj: Record, ctx: oarlock.Context) -> None:
    """With an undo of typed objects."""


@publish.finalize
def forget(obj: Record, ctx: oarlock.Context) -> None:
    """Of those that fit alone."""


@oarlock.steps(Record, finalizer="example.com/entry")
def enroll(obj: Record, ctx: oarlock.Context) -> None:
    """With an undo of plain dicts."""


@enroll.finalize(raw=True)
def remove(obj: dict[str, Any], ctx: oarlock.Context) -> None:
    """Of all."""
