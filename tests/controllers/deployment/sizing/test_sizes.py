"""ReplicaSets counted both ways, and what is remembered of a size write."""

import pytest

from oarlock.controllers.deployment.sizing.sizes import UNKNOWN, Counted, awaited, count, most_pods, resize
from tests.controllers.deployment.sizes_builders import dep, sized, writes

AHEAD = {"generation": 2}  # its status has observed generation 1


@pytest.mark.parametrize(
    ("fields", "remembered", "expected"),
    [
        pytest.param({}, {}, Counted(5, 5, 5), id="observed: it has its size"),
        pytest.param({"available": 3}, {}, Counted(5, 5, 3), id="two are not available"),
        pytest.param({"pods": 7}, {}, Counted(7, 5, 5), id="two are still to go"),
        pytest.param({"pods": 7, "available": 6}, {}, Counted(7, 5, 5), id="two of them, one not available"),
        pytest.param({"pods": 3}, {}, Counted(5, 5, 3), id="two are still to come"),
        pytest.param({"generation": 2, "observed": 2}, {}, Counted(5, 5, 5), id="observed again"),
        pytest.param({"observed": 0}, {}, Counted(5, 5, 5), id="never observed, and never changed"),
        pytest.param(AHEAD, {}, Counted(UNKNOWN, 0, 0), id="changed, and nobody remembers from what"),
        pytest.param(AHEAD, {"a": (5, 8)}, Counted(8, 5, 5), id="it was larger"),
        pytest.param(AHEAD, {"a": (2, 5)}, Counted(5, 2, 2), id="it was smaller"),
        pytest.param(AHEAD, {"a": (2, 8)}, Counted(8, 2, 2), id="it was both"),
        pytest.param(AHEAD | {"available": 1}, {"a": (2, 8)}, Counted(8, 2, 1), id="fewer are available than its size"),
        pytest.param(AHEAD | {"pods": 9}, {"a": (2, 8)}, Counted(9, 2, 2), id="more pods than any of its sizes"),
        pytest.param({}, {"a": (3, 5, True)}, Counted(5, 3, 3), id="a smaller size may land"),
        pytest.param({}, {"a": (5, 8, True)}, Counted(8, 5, 5), id="a larger size may land"),
        pytest.param({}, {"b": (0, 9)}, Counted(5, 5, 5), id="another one's"),
    ],
)
def test_count(fields, remembered, expected):
    """The most pods, the smallest size, and the pods that stay available."""
    assert count(sized("a", 5, **fields), writes(**remembered)) == expected


@pytest.mark.parametrize(
    ("size", "replicas", "remembered", "expected"),
    [
        pytest.param(5, 8, {}, (5, 8), id="up"),
        pytest.param(5, 3, {}, (3, 5), id="down"),
        pytest.param(5, 5, {}, (5, 5), id="only what it remembers of the Deployment"),
        pytest.param(5, 8, {"a": (2, 6)}, (2, 8), id="up, after it was smaller"),
        pytest.param(5, 1, {"a": (2, 6)}, (1, 6), id="down, after it was larger"),
        pytest.param(5, 4, {"a": (2, 9, True)}, (2, 9), id="beside a write that may land"),
    ],
)
def test_remembered(size, replicas, remembered, expected):
    """No size is forgotten that pods may still follow."""
    update = resize(dep(10, max_surge=3), sized("a", size), replicas, writes(**remembered))
    assert (update.low, update.high) == expected
    assert update.annotations == {
        "deployment.kubernetes.io/desired-replicas": "10",
        "deployment.kubernetes.io/max-replicas": "13",
    }


def test_what_nobody_knows_stays_unknown():
    """Until it is observed: a size of ours does not tell what it had before."""
    update = resize(dep(10), sized("a", 5, **AHEAD), 3, {})
    assert (update.low, update.high) == (0, UNKNOWN)


@pytest.mark.parametrize(
    ("replicas", "text"),
    [
        pytest.param(7, "Scaled up replica set a from 5 to 7", id="up"),
        pytest.param(2, "Scaled down replica set a from 5 to 2", id="down"),
        pytest.param(5, None, id="as it is"),
    ],
)
def test_told(replicas, text):
    """23.1.18: the event has both sizes."""
    event = resize(dep(10), sized("a", 5), replicas, {}).event
    assert (event and (event.reason, event.message)) == (text and ("ScalingReplicaSet", text))


@pytest.mark.parametrize(
    ("remembered", "most", "waits_for"),
    [
        pytest.param({}, 8, "", id="settled"),
        pytest.param({"a": (5, 7)}, 10, "ReplicaSet a is to observe its size", id="one was larger"),
        pytest.param({"b": (3, 4, True)}, 9, "ReplicaSet b is to observe its size", id="one may get larger"),
    ],
)
def test_together(remembered, most, waits_for):
    """The sum of what each may have, and who is waited for."""
    given = (sized("a", 5), sized("b", 3))
    assert most_pods(given, writes(**remembered)) == most
    assert awaited(given, writes(**remembered)) == waits_for


def test_one_unknown_makes_the_sum_unknown():
    """No limit leaves room beside it."""
    given = (sized("a", 5), sized("b", 0, **AHEAD))
    assert most_pods(given, {}) > UNKNOWN
    assert awaited(given, {}) == "ReplicaSet b is to observe its size"
