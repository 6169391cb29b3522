"""What a dry run keeps in Redis: what none of ours wrote there ends the epoch, and is nothing to people."""

from __future__ import annotations

import pytest

from oarlock.broker import epoch
from oarlock.broker.shadow_store import Difference, Kept, ShadowStore
from oarlock.broker.values.errors import DataDamaged
from tests.broker.broker_cases import QUEUE, RedisCase

pytestmark = pytest.mark.real
LEFT = Kept({"shop/a": b"course", "shop/b": None}, {"same": 1}, [Difference(5, QUEUE, "shop/a", "why", "text")])


def test_what_was_kept_is_read(real: RedisCase) -> None:
    store = real.worker.shadow()
    assert store.keep(QUEUE, LEFT)
    assert store.courses(QUEUE, ["shop/b", "shop/a"]) == [None, b"course"]
    assert store.windows() == {(QUEUE, "same"): 1}
    assert store.differences() == list(LEFT.differences)


@pytest.mark.parametrize("name", [f"shadow:{QUEUE}", "shadow_windows", "shadow_differences"])
def test_a_worker_that_meets_another_type_ends_the_epoch(name: str, real: RedisCase) -> None:
    real.admin.rpush(real.worker.keys.of(name), "x")
    with pytest.raises(DataDamaged):
        real.worker.shadow().keep(QUEUE, LEFT)
    assert not epoch.current(real.admin).intact


def test_a_course_that_cannot_be_read_ends_the_epoch(real: RedisCase) -> None:
    real.admin.rpush(real.worker.keys.shadow(QUEUE), "x")
    with pytest.raises(DataDamaged):
        real.worker.shadow().courses(QUEUE, ["shop/a"])
    assert not epoch.current(real.admin).intact


@pytest.mark.parametrize("count", ["many", "9" * 5_000, "\u00b2"])
def test_a_count_that_is_none_is_nothing_to_people(count: str, real: RedisCase) -> None:
    keys = real.worker.keys
    real.admin.hset(keys.of("shadow_windows"), f"{QUEUE} same", count)
    real.admin.xadd(keys.of("shadow_differences"), {"at_ms": count})
    store = ShadowStore(real.admin, keys)
    assert store.windows() == {(QUEUE, "same"): 0}
    assert store.differences() == [Difference(0, "", "", "", "")]
