"""A fleet through Sentinel failovers under load: every pod asked for, never one too many."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.redis.failover.fleet_stage import DRAIN_S, FleetStage
from tests.redis.sentinel_rig import SentinelRig


@pytest.fixture
def stage(sentinels: SentinelRig, tmp_path: Path) -> Iterator[FleetStage]:
    one = FleetStage(tmp_path / "fleet", {user: sentinels.url(user) for user in ("ingestor", "worker")})
    try:
        yield one
    except BaseException:
        print(one.logs())
        raise
    finally:
        one.close()


@pytest.mark.timeout(300)
def test_failovers_under_load(sentinels: SentinelRig, stage: FleetStage) -> None:
    """One where the master dies, one by order of the Sentinels, one where the master hangs and comes back."""
    stage.await_open(after=0)
    stage.await_rest()
    took = {}
    for fault in ("killed", "ordered", "hanging"):
        before, master = stage.epoch()["epoch"], sentinels.master
        other = sentinels.replica
        stage.load()
        if fault == "killed":
            master.kill()
        elif fault == "ordered":
            sentinels.order_failover()
        else:
            master.signal(signal.SIGSTOP)
        took[fault] = stage.await_open(after=before)
        sentinels.await_master(other)
        if fault == "killed":
            master.start()
        elif fault == "hanging":
            master.signal(signal.SIGCONT)
        took[fault]["rest_s"] = round(stage.await_rest(), 2)
        sentinels.await_replica()
    print(f"D {DRAIN_S} s, {took}, {stage.judge.created()} pods made")
    assert stage.judge.over_creations() == []
    assert stage.judge.created() > 50, "too little was done to prove anything"
    assert stage.epoch()["epoch"] >= 4
