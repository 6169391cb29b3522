"""How a reflector learns of all owners: a page a step, from the watermark of the first, whatever happens in between."""

from __future__ import annotations

from typing import Any

import pytest

from oarlock.broker.values.objects import Page
from oarlock.controllers.objects.model import Pod
from oarlock.workers.ingest.reflector import ReflectorState
from tests.workers.ingest.ingest_api import pod_json, replicaset_json
from tests.workers.ingest.ingest_rig import PODS, REPLICASETS, Process, Rig

OWNERS = 1_200
AT_ONCE = 600
"""More than a page holds, by what Redis adds to it."""


def named(i: int, app: str = "") -> dict[str, Any]:
    return replicaset_json("x", f"web{i}", f"rs{i}", labels={"app": app or f"a{i}"})


def selecting(process: Process, app: str) -> list[str]:
    return process.owners.table.selecting("replicaset", Pod("x", "p", labels={"app": app}, uid="u"))


@pytest.fixture
def opened(rig: Rig) -> Rig:
    """An open epoch over many owners, and process "a" in it."""
    for i in range(OWNERS):
        rig.api.put(REPLICASETS, named(i))
    started(rig, "a")
    rig.work()
    return rig


def started(rig: Rig, name: str) -> Process:
    process = rig.start(name)
    for source in process.sources.values():
        source.page_items = 500
    rig.open(process)
    return process


def recorded(process: Process, between: Any = None) -> list[int]:
    """Objects of each page that the process reads from now on; ``between`` is called after the first."""
    sizes: list[int] = []
    broker: Any = process.coordinator.broker
    page = broker.page

    def read(resource: str, *what: Any, **how: Any) -> Page | None:
        found: Page | None = page(resource, *what, **how)
        if resource == REPLICASETS:
            sizes.append(-1 if found is None else len(found.objects))
            if between is not None and len(sizes) == 1:
                between()
        return found

    def whole(*what: Any, **how: Any) -> Any:
        raise AssertionError("all owners in one script")

    broker.page, broker.look = read, whole
    return sizes


def learn_anew(process: Process) -> None:
    """As after a gap: what led to the watermark was not seen here."""
    reflector = process.reflectors[REPLICASETS]
    reflector._watch_from(process.coordinator.broker, reflector.position)  # type: ignore[arg-type]
    assert reflector.state is ReflectorState.LEARNING


def test_all_owners_are_read_a_page_a_step(opened: Rig) -> None:
    process = opened.processes[0]
    process.owners.table.clear()
    sizes = recorded(process)
    learn_anew(process)
    opened.settle()
    assert sum(sizes) == OWNERS
    assert max(sizes) < AT_ONCE
    assert [selecting(process, f"a{i}") for i in (0, 700, 1_199)] == [["x/web0"], ["x/web700"], ["x/web1199"]]


def test_the_position_is_that_of_the_first_page(opened: Rig) -> None:
    """What another ingestor applies between two pages comes again: it may be of an owner whose page was read before."""
    process, other = opened.processes[0], started(opened, "b")
    reflector, before = process.reflectors[REPLICASETS], process.reflectors[REPLICASETS].position

    def meanwhile() -> None:
        for i in range(OWNERS):
            opened.api.put(REPLICASETS, named(i, f"b{i}"))
        opened.api.delete(REPLICASETS, "x/web5")
        other.catch_up()
        opened.settle(other)

    sizes = recorded(process, meanwhile)
    learn_anew(process)
    while reflector.state is ReflectorState.LEARNING:
        process.round()
    assert len(sizes) >= 2
    assert reflector.position == before
    process.catch_up()
    opened.run_for(2_000)  # a batch and a rest each time, as another is ahead
    assert [selecting(process, f"b{i}") for i in range(OWNERS)] == [
        [f"x/web{i}"] if i != 5 else [] for i in range(OWNERS)
    ]
    assert not any(selecting(process, f"a{i}") for i in range(OWNERS))
    opened.api.put(PODS, pod_json("x", "stray", "u", labels={"app": "b7"}))
    process.catch_up()
    opened.run_for(200)
    opened.work()
    opened.check_turns()


def test_a_list_committed_between_two_pages_begins_the_walk_anew(opened: Rig) -> None:
    process, other = opened.processes[0], started(opened, "b")

    def meanwhile() -> None:
        opened.api.put(REPLICASETS, named(7, "new"))
        other.reflectors[REPLICASETS].relist()
        opened.settle(other)

    sizes = recorded(process, meanwhile)
    learn_anew(process)
    opened.settle(process)
    assert sizes[1] == -1
    assert sum(sizes[2:]) == OWNERS
    assert (selecting(process, "new"), selecting(process, "a7")) == (["x/web7"], [])
