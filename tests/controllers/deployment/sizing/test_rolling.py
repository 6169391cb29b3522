"""Steps of a rolling update. Numbers are those of sections 23.2 and 23.5 of the upstream cases."""

import pytest

from oarlock.controllers.deployment.model import RECREATE
from oarlock.controllers.deployment.sizing.rolling import roll, size_of_new
from tests.controllers.deployment.sizes_builders import dep, rollout, sized, sizes_after, writes

AHEAD = {"generation": 2}


@pytest.mark.parametrize(
    ("replicas", "limits", "sizes", "after"),
    [
        pytest.param(10, (0, 0), (0, 10), (0, 9), id="23.2.1 no surge: no more, so the old side moves"),
        pytest.param(10, (2, 0), (0, 10), (2, 10), id="23.2.1 the surge"),
        pytest.param(10, (2, 0), (0, 5), (7, 5), id="23.2.1 what is missing, and the surge"),
        pytest.param(10, (2, 0), (2, 10), (2, 8), id="23.2.1 the surge is used up, so the old side moves"),
        pytest.param(10, (0, 0), (11, 2), (10, 2), id="23.2.1 too large: down to the size, alone"),
        pytest.param(10, (20, 0), (0, 10), (10, 10), id="never beyond the size"),
        pytest.param(10, (0, 0), (10,), (10,), id="done"),
        pytest.param(10, (0, 0), (10, 0, 0), (10, 0, 0), id="done, with old ones that are empty"),
        pytest.param(10, (2, 0), (5, 5, 2), (5, 5, 0), id="oldest first"),
        pytest.param(10, (2, 2), (5, 5, 2), (5, 3, 0), id="then the next"),
        pytest.param(0, (0, 0), (0, 3), (0, 0), id="of none: all old ones go"),
        pytest.param(10, (2, 2), (2, 8), (4, 6), id="both sides at once"),
        pytest.param(2, ("25%", "25%"), (0, 2), (1, 2), id="the defaults"),
    ],
)
def test_step(replicas, limits, sizes, after):
    """The new side, and the old one where enough pods stay without counting on it. All pods are available."""
    given = rollout(*sizes)
    step = roll(dep(replicas, max_surge=limits[0], max_unavailable=limits[1]), given, {})
    assert sizes_after(given, step) == after
    assert not step.waiting_for


@pytest.mark.parametrize(
    ("unavailable", "new", "olds", "after"),
    [
        pytest.param(0, (0, 0), [(10, 10)], [9], id="23.2.2 neither limit: one at a time"),
        pytest.param(2, (0, 0), [(10, 10)], [8], id="23.2.2 all available"),
        pytest.param(2, (0, 0), [(10, 8)], [8], id="23.2.2 the two that are not available go"),
        pytest.param(2, (0, 0), [(10, 9)], [8], id="23.2.2 the one, and one that is available"),
        pytest.param(2, (2, 0), [(8, 8)], [8], id="23.2.2 new pods that are not available use the budget up"),
        pytest.param(1, (0, 0), [(10, 8)], [9], id="23.2.3 budget 1: one of two that are not available"),
        pytest.param(3, (0, 0), [(10, 8)], [7], id="23.2.3 budget 3: both, and one that is available"),
        pytest.param(3, (3, 0), [(7, 5)], [7], id="23.2.3 budget 0: none"),
        pytest.param(1, (0, 0), [(10, 10)], [9], id="23.2.4 ten, nine have to stay"),
        pytest.param(1, (1, 0), [(9, 9)], [9], id="23.2.4 at the minimum"),
        pytest.param(1, (2, 0), [(8, 8)], [8], id="23.2.4 below the minimum"),
        pytest.param(1, (10, 0), [(0, 0)], [0], id="23.2.4 no old pods"),
        pytest.param(2, (4, 4), [(3, 0), (3, 3)], [1, 3], id="first where they are not available, though older"),
        pytest.param(2, (4, 4), [(3, 3), (3, 0)], [3, 1], id="first where they are not available, though younger"),
        pytest.param(5, (4, 4), [(3, 3), (3, 0)], [1, 0], id="then the oldest"),
    ],
)
def test_old_side(unavailable, new, olds, after):
    """Ten are wanted. Size and available pods of the new one, and of the old ones, oldest first."""
    made = [sized(f"o{i}", size, available=ready, created_ms=i) for i, (size, ready) in enumerate(olds)]
    given = rollout(sized("new", new[0], available=new[1]), *reversed(made))
    step = roll(dep(10, max_surge=0, max_unavailable=unavailable), given, {})
    assert list(sizes_after(given, step)) == [new[0], *reversed(after)]


@pytest.mark.parametrize(
    ("strategy", "replicas", "surge", "sizes", "expected"),
    [
        pytest.param("RollingUpdate", 1, 1, (5,), 5, id="23.5.6 no room: it stays"),
        pytest.param("RollingUpdate", 6, 10, (2, 3), 6, id="23.5.6 up to the size"),
        pytest.param(RECREATE, 3, 0, (1,), 3, id="23.5.6 Recreate"),
        pytest.param("RollingUpdate", 10, 3, (None, 10), 3, id="not made yet"),
        pytest.param("RollingUpdate", 10, 0, (None, 10), 0, id="not made yet, no room"),
        pytest.param("RollingUpdate", 10, 3, (None,), 10, id="the first"),
    ],
)
def test_size_of_new(strategy, replicas, surge, sizes, expected):
    """What the new one may have beside the others."""
    given = dep(replicas, max_surge=surge, max_unavailable=1, strategy=strategy)
    assert size_of_new(given, rollout(*sizes), {}) == expected


@pytest.mark.parametrize(
    ("new", "olds", "remembered", "after", "waits_for"),
    [
        pytest.param(2, (8,), {"o1": (8, 10)}, (2, 6), "", id="old pods may be ten still: no new ones"),
        pytest.param(2, (8,), {}, (4, 6), "", id="they are eight, and two of the ten may go"),
        pytest.param(4, (8,), {}, (4, 4), "", id="new pods make up for four old ones"),
        pytest.param(4, (8,), {"new": (2, 4)}, (4, 6), "", id="two of them for certain"),
        pytest.param(4, (8,), {"new": (0, 4)}, (4, 8), "new", id="none of them for certain: none go"),
        pytest.param(
            sized("new", 4, available=2), (8,), {"o1": (6, 8, True)}, (4, 6), "", id="asked for again, no pod more"
        ),
        pytest.param(
            sized("new", 4, available=1), (8,), {"o1": (6, 8, True)}, (4, 7), "", id="again, as far as it may go now"
        ),
        pytest.param(
            sized("new", 4, available=1),
            (sized("o1", 8, available=6),),
            {"o1": (6, 8, True)},
            (4, 7),
            "",
            id="the same of pods that are not available",
        ),
        pytest.param(
            sized("new", 0, pods=0),
            (sized("o1", 10, available=0),),
            {"o1": (0, 10, True)},
            (2, 8),
            "",
            id="asked for eight or nine, and made from none before: that is not asked for again",
        ),
        pytest.param(
            sized("new", 2, available=0),
            (8, 2),
            {"o2": (0, 8, True)},
            (2, 6, 2),
            "",
            id="reckoned anew for that one alone: the other stays",
        ),
        pytest.param(2, (8,), {"new": (2, 4, True)}, (4, 6), "", id="more new ones, asked for again"),
        pytest.param(2, (sized("o1", 8, pods=10),), {}, (2, 6), "", id="old pods beyond their size have not gone"),
        pytest.param(2, (7, sized("o0", 0, pods=2)), {}, (3, 6, 0), "", id="old pods of an empty one count"),
        pytest.param(
            2, (6, sized("o0", 0, **AHEAD)), {}, (2, 6, 0), "o0", id="nobody knows what o0 may have: no new ones"
        ),
        pytest.param(sized("new", 4, **AHEAD), (8,), {}, (4, 8), "new", id="nobody knows it of the new one: none go"),
        pytest.param(
            4, (sized("o1", 4, **AHEAD), 8), {}, (4, 4, 4), "", id="nor of an old one: it stays, and does not count"
        ),
        pytest.param(
            sized("new", 2, available=0),
            (sized("o2", 5, available=0), sized("o1", 10, available=10)),
            {"o1": (1, 10)},
            (2, 0, 10),
            "",
            id="not available ones go; those of one that was smaller for a while may be, and stay",
        ),
    ],
)
def test_not_yet_observed(new, olds, remembered, after, waits_for):
    """Ten are wanted, two more allowed, two may be unavailable. The most pods where some come, the fewest where some
    go.
    """
    given = rollout(new, *olds)
    step = roll(dep(10, max_surge=2, max_unavailable=2), given, writes(**remembered))
    assert sizes_after(given, step) == after
    assert step.waiting_for == (f"ReplicaSet {waits_for} is to observe its size" if waits_for else "")


def test_limits_that_cannot_be_read():
    """Nothing is decided."""
    with pytest.raises(ValueError, match="maxSurge"):
        roll(dep(10, max_surge="x"), rollout(0, 10), {})
