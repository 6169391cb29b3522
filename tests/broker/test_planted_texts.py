"""Whoever may write to Redis may put there what is no text. It ends no process."""

from __future__ import annotations

import pytest

from oarlock.broker.keys import Keys
from oarlock.broker.values.errors import DataDamaged
from tests.broker.broker_cases import QUEUE, RedisCase, opened

KEY = b"ns/\xff"
TASK = f"{QUEUE}:".encode() + KEY
SHOWN = f"{QUEUE}:ns/\ufffd"


@pytest.fixture
def keys(real: RedisCase) -> Keys:
    opened(real)
    return Keys(real.epoch)


def test_a_lease(real: RedisCase, keys: Keys) -> None:
    real.admin.zadd(keys.of("leases"), {TASK: 1})
    assert real.worker.reclaim() == [SHOWN]


def test_a_lock_of_a_worker(real: RedisCase, keys: Keys) -> None:
    real.admin.sadd(keys.of("holder:w1"), TASK)
    assert real.worker.release("w1") == [SHOWN]


def test_a_worker(real: RedisCase, keys: Keys) -> None:
    real.admin.hset(keys.of("holders"), b"w\xff", "supervisor=s since_ms=1 queues=,q,")
    assert real.worker.drain("drain", "s", "by=somebody") == ["w\ufffd"]


def test_a_phase(real: RedisCase, keys: Keys) -> None:
    real.admin.set(keys.of("phase"), b"\xff")
    assert real.ingestor.pause("") == "\ufffd"


def test_a_watermark_that_a_batch_meets(real: RedisCase, keys: Keys) -> None:
    real.admin.hset(keys.of("watermark"), "pods", b"\xff")
    with pytest.raises(DataDamaged):
        real.ingestor.ingest("pods", "100", "101", [])


def test_a_watermark_that_a_list_meets(real: RedisCase, keys: Keys) -> None:
    real.ingestor.stage("pods", "second", [])
    real.admin.hset(keys.of("watermark"), "pods", b"\xff" * 9)
    with pytest.raises(DataDamaged):
        real.ingestor.commit_list("pods", "second", "200")


@pytest.mark.parametrize("name", ["watermark", "generation"])
def test_what_a_comparison_reads(real: RedisCase, keys: Keys, name: str) -> None:
    real.admin.hset(keys.of(name), "pods", b"\xff")
    with pytest.raises(DataDamaged):
        real.ingestor.compare("pods", "", ())
