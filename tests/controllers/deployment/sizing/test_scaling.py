"""A Deployment that gets another size. Numbers are those of section 23.1 of the upstream cases."""

from typing import Any

import pytest

from oarlock.controllers.deployment.model import RECREATE, DeploymentStatus
from oarlock.controllers.deployment.plan import Rollout
from oarlock.controllers.deployment.sizing.scaling import _fraction, is_scaling, scale
from tests.controllers.builders import NOW_MS, with_fields
from tests.controllers.deployment.sizes_builders import dep, pod_of, rollout, sized, sizes_after, writes

AHEAD = {"generation": 2}


def decided_for(given: Rollout, replicas: int, surge: int = 0, **others: tuple[int, int]) -> Rollout:
    """All remember this size of the Deployment; some, by name, another: desired, most."""

    def remembering(each):
        desired, most = others.get(each.name, (replicas, replicas + surge))
        return with_fields(each, annotations=sized("x", 0, desired=desired, most=most).annotations)

    return Rollout(given.new and remembering(given.new), tuple(remembering(each) for each in given.old))


@pytest.mark.parametrize(
    ("before", "replicas", "sizes", "after"),
    [
        pytest.param(10, 12, (10,), (12,), id="23.1.1 up"),
        pytest.param(10, 5, (10,), (5,), id="23.1.2 down"),
        pytest.param(5, 10, (2, 3), (4, 6), id="23.1.3 in proportion"),
        pytest.param(5, 3, (2, 3), (1, 2), id="23.1.4 in proportion, down"),
        pytest.param(9, 4, (8, 1), (4, 0), id="23.1.5"),
        pytest.param(7, 10, (2, 3, 2), (3, 4, 3), id="23.1.6 three"),
        pytest.param(13, 8, (2, 8, 3), (1, 5, 2), id="23.1.7 three, down"),
        pytest.param(3, 4, (1, 1, 1), (2, 1, 1), id="23.1.8 the newest gets what is left over"),
        pytest.param(3, 2, (1, 1, 1), (1, 1, 0), id="23.1.9 the oldest loses it"),
        pytest.param(4, 5, (None, 2, 2), (3, 2), id="23.1.10 no new one"),
        pytest.param(6, 0, (3, 2, 1), (0, 0, 0), id="23.1.11 to none"),
        pytest.param(0, 6, (0, 0, 0), (6, 0, 0), id="23.1.12 from none: the new one gets all"),
        pytest.param(0, 6, (None, 0, 0), (6, 0), id="from none without a new one: the youngest"),
        pytest.param(10, 14, (None, 7, 3), (10, 4), id="23.1.16 size and template at once"),
    ],
)
def test_shares(before, replicas, sizes, after):
    """Newest first."""
    given = decided_for(rollout(*sizes), before)
    assert sizes_after(given, scale(dep(replicas), given, {})) == after


def test_a_change_made_in_part():
    """23.1.13: each goes by what its own size was decided for."""
    given = decided_for(rollout(2, 1, 1), 5, o2=(3, 3))
    step = scale(dep(5), given, {})
    assert sizes_after(given, step) == (2, 2, 1)
    assert [update.replicaset.name for update in step.updates] == ["o2"]


@pytest.mark.parametrize(
    ("before", "now", "sizes", "after"),
    [
        pytest.param((10, 2), (20, 2), (6, 6), (11, 11), id="23.1.14 with a surge"),
        pytest.param((10, 3), (50, 6), (5, 8), (22, 34), id="23.1.15 size and surge at once"),
    ],
)
def test_shares_of_the_surge(before, now, sizes, after):
    """The surge is shared too."""
    given = decided_for(rollout(*sizes), *before)
    assert sizes_after(given, scale(dep(now[0], max_surge=now[1]), given, {})) == after


@pytest.mark.parametrize(
    ("available", "desired", "after"),
    [
        pytest.param(0, 2, (2, 1), id="23.1.17 none available: the old ones stay"),
        pytest.param(1, 2, (2, 1), id="one is not"),
        pytest.param(2, 2, (2, 0), id="23.5.16 all are: the old ones go"),
        pytest.param(2, 3, (2, 1), id="its size was decided for another one of the Deployment"),
    ],
)
def test_saturated(available, desired, after):
    """The new one has all the Deployment wants."""
    new = sized("new", 2, available=available, desired=desired, most=3)
    given = Rollout(new, decided_for(rollout(None, 1), 2, 1).old)
    assert sizes_after(given, scale(dep(2, max_surge=1, max_unavailable=1), given, {})) == after


@pytest.mark.parametrize(
    ("replicas", "surge", "size", "most", "pods", "expected"),
    [
        (0, 0, 10, None, 0, -10),
        (10, 0, 5, None, 0, 0),
        (10, 0, 5, 0, 0, 0),
        (120, 0, 50, None, 100, 10),
        (120, 0, 50, 0, 100, 10),
        (120, 0, 50, 100, 0, 10),
        (120, 10, 50, 110, 0, 9),
        (10, 0, 6, 12, 0, -1),
        (100, 10, 50, 130, 0, -8),
    ],
)
def test_fraction(replicas, surge, size, most, pods, expected):
    """23.5.18, the table of 13.3."""
    given = dep(replicas, max_surge=surge, max_unavailable=1, status=DeploymentStatus(pods))
    assert _fraction(given, sized("a", size, most=most)) == expected


@pytest.mark.parametrize(
    ("desired", "sizes", "strategy", "expected"),
    [
        pytest.param(10, (10,), "RollingUpdate", False, id="the same"),
        pytest.param(8, (10,), "RollingUpdate", True, id="another"),
        pytest.param(8, (0, 0), "RollingUpdate", False, id="none has a size"),
        pytest.param(8, (0, 3), "RollingUpdate", True, id="an old one"),
        pytest.param(None, (10,), "RollingUpdate", False, id="it remembers none"),
        pytest.param(-1, (10,), "RollingUpdate", False, id="what it remembers is no size"),
        pytest.param(8, (10,), RECREATE, True, id="Recreate"),
        pytest.param(8, (6, 4), RECREATE, False, id="Recreate with several: they are replaced at once"),
    ],
)
def test_is_scaling(desired, sizes, strategy, expected):
    """13.1: the size of one with pods was decided for another size of the Deployment."""
    given = rollout(*sizes)
    annotated = sized("x", 0, desired=desired).annotations
    given = Rollout(
        with_fields(given.new, annotations=annotated),
        tuple(with_fields(each, annotations=annotated) for each in given.old),
    )
    assert is_scaling(dep(10, strategy=strategy), given) is expected


def test_it_ends_though_the_size_is_right():
    """Somebody else gave the only one this size: what it remembers is brought up to date, without an event."""
    given = rollout(sized("new", 7, desired=5, most=5))
    (update,) = scale(dep(7), given, {}).updates
    assert (update.replicas, update.event) == (7, None)
    after = with_fields(given.new, annotations=update.annotations)
    assert not is_scaling(dep(7), Rollout(after))
    assert scale(dep(7), Rollout(after), {}).updates == ()


def test_no_pods_of_several_under_recreate():
    """13.2.4: nothing."""
    given = decided_for(rollout(2, 3), 5)
    assert scale(dep(8, strategy=RECREATE), given, {}).updates == ()


def test_no_replicasets():
    """Nothing to scale."""
    assert scale(dep(8), Rollout(), {}).updates == ()


@pytest.mark.parametrize(
    ("replicas", "sizes", "fields", "remembered", "after", "waits"),
    [
        pytest.param(10, (2, 3), {}, {"o1": (3, 7)}, (2, 6), True, id="old pods may be seven: no more new ones fit"),
        pytest.param(10, (2, 3), {}, {"new": (0, 6)}, (4, 3), True, id="more new ones fit within what there may be"),
        pytest.param(10, (2, 3), {}, {"o1": (3, 6, True)}, (4, 6), False, id="asked for again"),
        pytest.param(3, (2, 3), {}, {"o1": (3, 6)}, (1, 2), False, id="down whatever there may be"),
        pytest.param(
            10, (2, 3), {"o1": AHEAD}, {}, (2, 6), True, id="nobody knows what one may have: no more of others"
        ),
        pytest.param(3, (2, 3), {"o1": AHEAD}, {}, (1, 2), False, id="down all the same"),
        pytest.param(8, (5, 0), {"o1": {"pods": 2}}, {}, (5, 0), True, id="old pods have not gone: not more"),
        pytest.param(8, (5, 0), {}, {}, (8, 0), False, id="they have"),
        pytest.param(8, (5, 0), {}, {"o1": (0, 3, True)}, (5, 0), True, id="they may come"),
        pytest.param(4, (5, 0), {}, {"o1": (0, 3, True)}, (4, 0), False, id="down whatever may come"),
    ],
)
def test_not_yet_observed(replicas, sizes, fields, remembered, after, waits):
    """Five became `replicas`. What does not fit waits, and remembers what it was decided for."""
    made: dict[str, Any] = {"new": sized("new", sizes[0]), "o1": sized("o1", sizes[1])}
    for name, changed in fields.items():
        made[name] = sized(name, made[name].replicas, **changed)
    given = decided_for(Rollout(made["new"], (made["o1"],)), 5)
    step = scale(dep(replicas), given, writes(**remembered))
    assert sizes_after(given, step) == after
    assert bool(step.waiting_for) is waits


@pytest.mark.parametrize(
    ("sizes", "pods", "after", "waits_for"),
    [
        pytest.param((0, 0), (), (3, 0), "", id="none left"),
        pytest.param((0, 0), (pod_of("o1", deleting_ms=NOW_MS),), (0, 0), "o1-x", id="an old pod is ending"),
        pytest.param((2, 0), (pod_of("o1", deleting_ms=NOW_MS),), (3, 0), "", id="new ones run already"),
        pytest.param((None, 0, 0), (pod_of("o1"),), (0, 0), "o1-x", id="the youngest old one would start"),
    ],
)
def test_first_pods_under_recreate(sizes, pods, after, waits_for):
    """No pods of two templates, also while it is paused."""
    given = rollout(*sizes)
    given = Rollout(given.new and with_fields(given.new, annotations=sized("x", 0, desired=2).annotations), given.old)
    paused = dep(3, strategy=RECREATE, paused=True)
    step = scale(paused, given, {}, pods)
    assert sizes_after(given, step) == after
    assert waits_for in step.waiting_for
    assert scale(paused, given, {}).wants_pods is (not sizes[0])
