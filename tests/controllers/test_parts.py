"""Decisions in parts. A turn may decide on more by the snapshot it has, with what it has created as creates without an
answer. Together the parts are what one decision without a bound on its creates would be: no name twice, none left out.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oarlock.controllers.daemonset import decide as daemon_decide
from oarlock.controllers.flavour import DAEMONSET, REPLICASET
from oarlock.controllers.plan import Plan, Unanswered
from oarlock.controllers.replicaset import decide
from tests.controllers.builders import NOW_MS
from tests.controllers.daemonset.daemon_builders import ds, laid, numbered, slot, snap, surging
from tests.controllers.replicaset.test_invariants import snapshots

NODES = numbered(7)
AT_LARGE = 1_000


def parts(snapshot: Any, decided: Callable[[Any, int], Plan]) -> list[Plan]:
    """The plans of a turn that goes on until there is nothing to create, or anything to delete."""
    plans: list[Plan] = []
    while (plan := decided(snapshot, NOW_MS)).create and not plan.delete:
        plans.append(plan)
        snapshot = msgspec.structs.replace(snapshot, unanswered=snapshot.unanswered.with_created(plan))
        assert len(plans) < AT_LARGE, "it never ends"
    return plans


def together(plans: list[Plan]) -> list[tuple[str, str]]:
    """Name and node of each create, in the order of sending."""
    return [(name, plan.nodes.get(name, "")) for plan in plans for name in plan.create]


def replicas(burst: int) -> Callable[[Any, int], Plan]:
    return partial(decide.decide, flavour=msgspec.structs.replace(REPLICASET, burst=burst))


def daemons(burst: int) -> Callable[[Any, int], Plan]:
    return partial(daemon_decide.decide, flavour=msgspec.structs.replace(DAEMONSET, burst=burst))


@settings(max_examples=150)
@given(snapshots(strict=st.just(False), satisfied=st.just(True), deleting=st.just(0)), st.integers(1, 5))
def test_of_a_replicaset(snapshot: Any, burst: int) -> None:
    found = together(parts(snapshot, replicas(burst)))
    assert found == together(parts(snapshot, replicas(AT_LARGE)))
    assert len({name for name, _ in found}) == len(found)


@settings(max_examples=150)
@given(snapshots(strict=st.just(True), satisfied=st.just(True), deleting=st.just(0)), st.integers(1, 5))
def test_of_a_strict_one(snapshot: Any, burst: int) -> None:
    """Refused names go last in each part, so the order may be another one."""
    found = together(parts(snapshot, replicas(burst)))
    assert sorted(found) == sorted(together(parts(snapshot, replicas(AT_LARGE))))
    assert len({name for name, _ in found}) == len(found)


@st.composite
def daemon_snapshots(draw: Any) -> Any:
    """Any pods on seven nodes, and creates that may or may not have landed, each for its node."""
    letters = st.sampled_from(["", "", "", "R", "n", "p", "O", "o", "RO", "t", "x", "?"])
    pods = laid({name: draw(letters) for name in NODES})
    names = {slot(name, k): name for name in NODES for k in (0, 1)}
    some = st.frozensets(st.sampled_from(sorted(names)), max_size=4)
    creates = draw(some)
    quiet = draw(st.frozensets(st.sampled_from(sorted(creates)), max_size=2)) if creates else frozenset()
    unanswered = Unanswered(
        creates, quiet=quiet, passed=draw(some), resting=draw(some), nodes={name: names[name] for name in creates}
    )
    owner = draw(st.sampled_from([ds(), ds(max_unavailable=3), surging(), surging(max_surge=3)]))
    return snap(NODES, pods, owner, unanswered=unanswered)


@settings(max_examples=150)
@given(daemon_snapshots(), st.integers(1, 5))
def test_of_a_daemonset(snapshot: Any, burst: int) -> None:
    """Names that were sent before go first in each part, refused ones last."""
    found = together(parts(snapshot, daemons(burst)))
    assert sorted(found) == sorted(together(parts(snapshot, daemons(AT_LARGE))))
    assert len({name for name, _ in found}) == len(found)


@pytest.mark.parametrize("burst", [1, 2, 3, 7, 8])
def test_a_node_for_each_pod_of_a_new_daemonset(burst: int) -> None:
    plans = parts(snap(NODES), daemons(burst))
    assert [name for _, name in together(plans)] == list(NODES)
    assert all(len(plan.create) == burst for plan in plans[:-1])
