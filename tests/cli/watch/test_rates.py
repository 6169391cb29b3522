"""Rates between two looks, a line a case."""

from __future__ import annotations

import pytest

from oarlock.cli.watch.fleet_look import ApiCalls, FleetLook
from oarlock.cli.watch.rates import Rates, rates
from tests.cli.watch.looks import look, shard


def at(seconds: float, *shards: tuple[str, int, int | None], api: tuple[tuple[str, int, int], ...] = ()) -> FleetLook:
    """``shards``: (shard, epoch, turns that began)."""
    made = tuple(shard(shard=name, epoch=epoch, began=began) for name, epoch, began in shards)
    return look(at_s=seconds, shards=made, api=tuple(ApiCalls(*each) for each in api))


BEFORE = at(10.0, ("0", 7, 100), ("1", 7, 40), api=(("a", 50, 2), ("b", 10, 0)))


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param(None, BEFORE, Rates(), id="the first look"),
        pytest.param(BEFORE, at(10.0, ("0", 7, 999)), Rates(), id="no time between them"),
        pytest.param(BEFORE, at(12.0, ("0", 7, 160), ("1", 7, 60)), Rates(40.0), id="the turns of all shards"),
        pytest.param(BEFORE, at(12.0, ("0", 8, 5), ("1", 7, 60)), Rates(10.0), id="a shard's epoch is new"),
        pytest.param(BEFORE, at(12.0, ("0", 7, 160)), Rates(30.0), id="a shard is away"),
        pytest.param(BEFORE, at(12.0, ("0", 7, None)), Rates(), id="a Redis that does not count"),
        pytest.param(BEFORE, at(12.0, api=(("a", 70, 6), ("b", 12, 0))), Rates(None, 11.0, 2.0), id="API calls"),
        pytest.param(BEFORE, at(12.0, api=(("a", 3, 0), ("b", 12, 0))), Rates(None, 1.0, 0.0), id="one began anew"),
        pytest.param(BEFORE, at(12.0, api=(("c", 70, 6),)), Rates(), id="another process"),
        pytest.param(BEFORE, at(12.0, ("0", 7, 100)), Rates(0.0), id="nothing happens"),
    ],
)
def test_rates(before: FleetLook | None, after: FleetLook, expected: Rates) -> None:
    assert rates(before, after) == expected
