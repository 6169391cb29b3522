"""When who sleeps is a table; the cluster shows that it happens."""

from __future__ import annotations

from datetime import UTC, datetime, time

import pytest

import oarlock
from examples.operators.nightly import ASLEEP, BY_DAY, SINCE, change_at, hours, next_change, night
from oarlock.testing import Cluster
from tests.examples.conftest import OPERATORS


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


Marks = dict[str, str | None]
EVENING = "2024-03-05T20:00:00+00:00"
ASLEEP_NOW: Marks = {BY_DAY: "3", SINCE: EVENING}
AWAKE: Marks = {BY_DAY: None, SINCE: None}


@pytest.mark.parametrize(
    ("now", "window", "since"),
    [
        ("2024-03-05 19:59", "20:00-07:00", None),
        ("2024-03-05 20:00", "20:00-07:00", "2024-03-05 20:00"),
        ("2024-03-06 06:59", "20:00-07:00", "2024-03-05 20:00"),
        ("2024-03-06 07:00", "20:00-07:00", None),
        ("2024-03-05 13:00", "12:00-14:00", "2024-03-05 12:00"),
        ("2024-03-05 11:00", "12:00-14:00", None),
        ("2024-03-05 11:00", "00:00-00:00", "2024-03-05 00:00"),
    ],
)
def test_nights(now: str, window: str, since: str | None) -> None:
    assert night(at(now), *hours(window)) == (at(since) if since else None)


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        ("2024-03-05 12:00", "2024-03-05 20:00"),
        ("2024-03-05 20:00", "2024-03-06 07:00"),
        ("2024-03-06 01:00", "2024-03-06 07:00"),
        ("2024-03-06 07:00", "2024-03-06 20:00"),
    ],
)
def test_next_change(now: str, expected: str) -> None:
    assert next_change(at(now), time(20), time(7)) == at(expected)


@pytest.mark.parametrize(
    ("now", "annotations", "replicas", "change"),
    [
        pytest.param("2024-03-05 12:00", {}, 3, None, id="day"),
        pytest.param("2024-03-05 21:00", {}, 3, (ASLEEP_NOW, 0), id="evening"),
        pytest.param("2024-03-05 22:00", ASLEEP_NOW, 0, None, id="asleep"),
        pytest.param("2024-03-05 22:00", ASLEEP_NOW, 2, None, id="woken by hand"),
        pytest.param("2024-03-06 08:00", ASLEEP_NOW, 0, (AWAKE, 3), id="morning"),
        pytest.param(
            "2024-03-06 08:00",
            ASLEEP_NOW,
            2,
            (AWAKE, None),
            id="morning, woken",
        ),
        pytest.param("2024-03-05 21:00", {}, 0, ({BY_DAY: None, SINCE: EVENING}, 0), id="asleep of itself"),
        pytest.param("2024-03-06 08:00", {SINCE: EVENING}, 0, (AWAKE, None), id="stays asleep"),
    ],
)
def test_changes(now: str, annotations: dict[str, str], replicas: int, change: tuple[Marks, int | None] | None) -> None:
    found = change_at(at(now), {ASLEEP: "20:00-07:00", **annotations}, replicas)
    if change is None:
        assert found is None
        return
    marks, size = change
    assert found == {"metadata": {"annotations": marks}, **({} if size is None else {"spec": {"replicas": size}})}


def test_hours_that_cannot_be_read() -> None:
    with pytest.raises(oarlock.Never, match="like"):
        hours("at night")


def test_in_a_cluster(cluster: Cluster) -> None:
    cluster.create(OPERATORS / "nightly.yaml")
    cluster.patch("deployment/office", {"metadata": {"annotations": {ASLEEP: "00:00-00:00"}}})  # all day
    cluster.wait("deployment/office", lambda it: it["spec"]["replicas"] == 0)
    assert cluster.get("deployment/office")["metadata"]["annotations"][BY_DAY] == "3"

    hour = datetime.now(UTC).hour  # a night that is twelve hours away
    awake = f"{(hour + 11) % 24:02}:00-{(hour + 12) % 24:02}:00"
    cluster.patch("deployment/office", {"metadata": {"annotations": {ASLEEP: awake}}})
    cluster.wait("deployment/office", lambda it: it["spec"]["replicas"] == 3)
    assert SINCE not in cluster.get("deployment/office")["metadata"]["annotations"]
