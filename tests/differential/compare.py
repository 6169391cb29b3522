"""The differences of two snapshots, each with a path. Pure.

What the rules leave open is not compared: which nodes an update that has not ended has reached, how often a create was
refused, and events beyond what a source tells of one object.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import orjson

from tests.differential.scene import REFUSED
from tests.differential.snapshot import Snapshot

Obj = dict[str, Any]
GENERATION = "pod-template-generation"
_TOLD_ENOUGH = 20
"""Events of the other side when one has told all that it tells of an object."""


@dataclass(frozen=True, order=True)
class Difference:
    """`path`: section, owner, and what of it. Values are None where a side has nothing."""

    path: tuple[str, ...]
    upstream: Any
    fleet: Any

    def __str__(self) -> str:
        *where, what = self.path
        return f"{' > '.join([*where, _short(what)])}: upstream {self.upstream!r}, fleet {self.fleet!r}"


def differences(upstream: Snapshot, fleet: Snapshot) -> list[Difference]:
    """All of them, in the order of their paths."""
    return sorted(
        [
            *_of_owners(upstream["owners"], fleet["owners"]),
            *_of_groups("pods", upstream["pods"], fleet["pods"]),
            *_of_groups("revisions", upstream["revisions"], fleet["revisions"]),
            *_of_events(upstream["events"], fleet["events"]),
        ],
        key=lambda each: each.path,
    )


def _of_owners(upstream: Obj, fleet: Obj) -> Iterator[Difference]:
    for title in sorted(upstream.keys() | fleet.keys()):
        ours, theirs = fleet.get(title), upstream.get(title)
        if ours is None or theirs is None:
            yield Difference(("owners", title), _presence(theirs), _presence(ours))
            continue
        for name in sorted(theirs.keys() | ours.keys()):
            if name == "status":
                yield from _of_fields(("owners", title, "status"), theirs[name], ours[name])
            elif theirs.get(name) != ours.get(name):
                yield Difference(("owners", title, name), theirs.get(name), ours.get(name))


def _of_fields(path: tuple[str, ...], upstream: Obj, fleet: Obj) -> Iterator[Difference]:
    for name in sorted(upstream.keys() | fleet.keys()):
        if upstream.get(name) != fleet.get(name):
            yield Difference((*path, name), upstream.get(name), fleet.get(name))


def _of_groups(section: str, upstream: Obj, fleet: Obj) -> Iterator[Difference]:
    for title in sorted(upstream.keys() | fleet.keys()):
        theirs, ours = upstream.get(title, {}), fleet.get(title, {})
        if theirs == ours or (section == "pods" and _are_alike_under_way(theirs, ours)):
            continue
        for described in sorted(theirs.keys() | ours.keys()):
            if theirs.get(described, 0) != ours.get(described, 0):
                yield Difference((section, title, described), theirs.get(described, 0), ours.get(described, 0))


def _are_alike_under_way(upstream: dict[str, int], fleet: dict[str, int]) -> bool:
    """Daemon pods of several revisions, or of one in several goes: the same nodes, and the same pods but for which node
    has which."""
    theirs, ours = _unfolded(upstream), _unfolded(fleet)
    if len({(pod["revision"], pod["labels"].get(GENERATION)) for pod in theirs}) < 2:
        return False
    nodes = [sorted(str(pod["node"]) for pod in pods) for pods in (theirs, ours)]
    bare = [sorted(_text(_without_node(pod)) for pod in pods) for pods in (theirs, ours)]
    return nodes[0] == nodes[1] and bare[0] == bare[1]


def _unfolded(group: dict[str, int]) -> list[Obj]:
    return [orjson.loads(described) for described, count in group.items() for _ in range(count)]


def _without_node(pod: Obj) -> Obj:
    return {**pod, "node": None, "spec": {key: value for key, value in pod["spec"].items() if key != "affinity"}}


def _text(value: Obj) -> str:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()


def _of_events(upstream: Obj, fleet: Obj) -> Iterator[Difference]:
    for title in sorted(upstream.keys() & fleet.keys()):
        theirs, ours = upstream[title], fleet[title]
        if theirs["spam"] or ours["spam"]:
            if title.startswith("Deployment/"):
                continue  # in how many steps a rollout goes is chance
            totals = [sum(side["counts"].values()) for side in (theirs, ours)]
            refused = REFUSED in theirs["counts"] or REFUSED in ours["counts"]
            if not refused and min(totals) < _TOLD_ENOUGH:
                yield Difference(("events", title, "all"), *totals)
            continue
        for reason in sorted(theirs["counts"].keys() | ours["counts"].keys()):
            told = [side["counts"].get(reason, 0) for side in (theirs, ours)]
            if reason == REFUSED:
                told = [min(1, count) for count in told]
            if told[0] != told[1]:
                yield Difference(("events", title, reason), *told)


def _presence(value: Obj | None) -> str:
    return "is not there" if value is None else "is there"


def _short(described: str) -> str:
    """A description without what a reader seldom asks for; the snapshots have all of it."""
    if not described.startswith("{"):
        return described
    said = {key: value for key, value in orjson.loads(described).items() if value}
    for name in ("spec", "references", "assigned", "data"):
        said.pop(name, None)
    return _text(said)
