"""Counting pods too many from what a watch saw."""

from __future__ import annotations

import pytest

from workers.up.history import PodSeen, Seen, SetSeen, pods_too_many


def history(text: str) -> list[Seen]:
    """``r3``: the set asks for 3; ``s3``: and its status says all is there; ``+a``: pod a is active; ``-a``: it is not
    any more; ``~a``: it is changed.
    """
    events: list[Seen] = []
    for rv, word in enumerate(text.split(), start=1):
        count = int(word[1:]) if word[1:].isdigit() else 0
        if word[0] == "r":
            events.append(SetSeen(rv, "u", "ns/web", count, generation=1))
        elif word[0] == "s":
            events.append(SetSeen(rv, "u", "ns/web", count, ready=count, available=count, created=count))
        else:
            events.append(PodSeen(rv, word[1:], "u", word[0] in "+~"))
    return events


@pytest.mark.parametrize(
    ("text", "excess"),
    [
        pytest.param("r2 +a +b", {}, id="as many as asked for"),
        pytest.param("r2 +a +b +c", {"ns/web": 1}, id="one too many"),
        pytest.param("r2 +a +b +c +d -a -b", {"ns/web": 2}, id="the most there ever were counts"),
        pytest.param("r2 +a +b -a +c", {}, id="a replacement"),
        pytest.param("r2 +a +b ~a ~b", {}, id="a change of a pod is no new pod"),
        pytest.param("r2 +a +b r4 +c +d", {}, id="scaled up"),
        pytest.param("r4 +a +b +c +d r2 ~a ~b -c -d", {}, id="scaled down: the others are on their way out"),
        pytest.param("r4 +a +b r2 +c +d -c -d", {}, id="scaled down while creates were under way"),
        pytest.param("r4 +a +b r2 s2 +c", {"ns/web": 1}, id="the status says that nothing is under way"),
        pytest.param(
            "r4 +a +b +c +d r2 -c -d s2 +e", {"ns/web": 1}, id="at rest after a scale-down, the old bound is void"
        ),
        pytest.param("r1 +a r0 -a s0 +b", {"ns/web": 1}, id="a pod for a set that asks for none"),
    ],
)
def test_pods_too_many(text: str, excess: dict[str, int]) -> None:
    assert pods_too_many(history(text)) == excess


def test_a_pod_that_is_released_counts_no_more() -> None:
    events = [*history("r1 +a"), PodSeen(3, "a", "", True), PodSeen(4, "b", "u", True)]
    assert pods_too_many(events) == {}


def test_a_set_is_settled_when_its_status_says_so_for_this_generation() -> None:
    done = SetSeen(1, "u", "ns/web", 2, generation=3, observed=3, ready=2, available=2, created=2)
    assert done.settled
    assert not SetSeen(1, "u", "ns/web", 2, generation=4, observed=3, ready=2, available=2, created=2).settled
    assert not SetSeen(1, "u", "ns/web", 2, generation=3, observed=3, ready=2, available=1, created=2).settled
    assert not SetSeen(1, "u", "ns/web", 2, generation=3, observed=3, ready=2, available=2, created=3).settled
