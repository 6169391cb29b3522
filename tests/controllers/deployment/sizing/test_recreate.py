"""Recreate. Numbers are those of section 23.3 of the upstream cases."""

import pytest

from oarlock.controllers.deployment.model import RECREATE
from oarlock.controllers.deployment.sizing.recreate import step
from tests.controllers.builders import NOW_MS
from tests.controllers.deployment.sizes_builders import dep, pod_of, rollout, sized, sizes_after, writes

AHEAD = {"generation": 2}
THREE = dep(3, strategy=RECREATE)


@pytest.mark.parametrize(
    ("sizes", "after"),
    [
        pytest.param((None, 3), (0,), id="23.3.1 no new one yet"),
        pytest.param((None, 3, 0, 2), (0, 0, 0), id="23.3.1 several, one empty"),
        pytest.param((0, 3), (0, 0), id="the new one waits"),
        pytest.param((3, 1), (3, 0), id="the new one has its size"),
    ],
)
def test_old_ones_go_first(sizes, after):
    """Nothing is created while one of them has a size."""
    given = rollout(*sizes)
    done = step(THREE, given, {}, ())
    assert sizes_after(given, done) == after
    assert not done.may_create


GONE = sized("o1", 0)


@pytest.mark.parametrize(
    ("old", "remembered", "pods", "waits_for"),
    [
        pytest.param(GONE, {}, (), "", id="23.3.2 none"),
        pytest.param(GONE, {}, (pod_of("new"),), "", id="23.3.2 the new one's"),
        pytest.param(GONE, {}, (pod_of("other"),), "", id="another's"),
        pytest.param(sized("o1", 0, pods=1), {}, (), "the pods of ReplicaSet o1 are to go", id="23.3.2 it reports one"),
        *[
            pytest.param(GONE, {}, (pod_of("o1", phase=phase),), "pod o1-x of ReplicaSet o1 is to go", id=phase or "-")
            for phase in ("Running", "Pending", "Unknown", "")
        ],
        pytest.param(GONE, {}, (pod_of("o1", phase="Failed"),), "", id="23.3.2 failed"),
        pytest.param(GONE, {}, (pod_of("o1", phase="Succeeded"),), "", id="23.3.2 succeeded"),
        pytest.param(
            GONE, {}, (pod_of("o1", deleting_ms=NOW_MS),), "pod o1-x of ReplicaSet o1 is to go", id="still ending"
        ),
        pytest.param(GONE, {}, (pod_of("o1", phase="Failed", deleting_ms=NOW_MS),), "", id="failed, and ending"),
        pytest.param(
            GONE, {"o1": (0, 3)}, (), "ReplicaSet o1 is to observe its size", id="it may still act on a larger size"
        ),
        pytest.param(GONE, {"o1": (0, 3, True)}, (), "ReplicaSet o1 is to observe its size", id="a write may land"),
        pytest.param(sized("o1", 0, **AHEAD), {}, (), "ReplicaSet o1 is to observe its size", id="nobody remembers"),
        pytest.param(sized("o1", 0, observed=0), {}, (), "", id="never had a size"),
    ],
)
def test_who_is_waited_for(old, remembered, pods, waits_for):
    """The new one gets its size, or is created, once no old pod is left or can come."""
    for new in (None, 0, 1):
        given = rollout(new, old)
        done = step(THREE, given, writes(**remembered), pods)
        assert done.waiting_for == waits_for
        assert done.may_create is (new is None and not waits_for)
        assert sizes_after(given, done) == ((0,) if new is None else (new if waits_for else 3, 0))


@pytest.mark.parametrize(
    ("sizes", "wants_pods", "may_create"),
    [
        pytest.param((None, 0), True, False, id="an old one"),
        pytest.param((0, 0), True, False, id="an old one, and the new one is there"),
        pytest.param((None,), False, True, id="the first"),
        pytest.param((3, 0), False, False, id="done"),
    ],
)
def test_pods_are_asked_for(sizes, wants_pods, may_create):
    """Only when they decide."""
    done = step(THREE, rollout(*sizes), {}, None)
    assert (done.wants_pods, done.may_create, done.updates) == (wants_pods, may_create, ())


def test_too_many_new_ones():
    """Down to the size."""
    given = rollout(5, 0)
    assert sizes_after(given, step(THREE, given, {}, ())) == (3, 0)
