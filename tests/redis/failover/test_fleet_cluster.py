"""A fleet in a cluster, through moves of its slot and failovers under load."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster_rig import ClusterRig
from fleet_stage import DRAIN_S, FleetStage
from real_servers import RealServer, started


@pytest.fixture
def stage(cluster: ClusterRig, tmp_path: Path) -> Iterator[FleetStage]:
    rq = RealServer(tmp_path / "rq")
    started(rq)
    urls = {user: cluster.url(user) for user in ("ingestor", "worker")}
    one = FleetStage(tmp_path / "fleet", urls, {"OARLOCK_RQ_REDIS_URL": rq.url("worker")})
    try:
        yield one
    except BaseException:
        print(one.logs())
        raise
    finally:
        one.close()
        rq.kill()


@pytest.mark.timeout(400)
def test_moves_and_failovers_under_load(cluster: ClusterRig, stage: FleetStage) -> None:
    """A move of the slot, one that is cancelled half-way, a failover by order, one by death."""
    stage.await_open(after=0)
    stage.await_rest()
    took = {}
    for fault in ("moved", "cancelled", "ordered", "killed"):
        before, master = stage.epoch()["epoch"], cluster.master_of()
        other = next(each for each in cluster.masters() if each is not master)
        stage.load()
        if fault in ("moved", "cancelled"):
            cluster.begin_move(master, other)
            went = cluster.move_keys(master, other, limit=1 << 30 if fault == "moved" else 12)
            assert went > 0
            if fault == "moved":
                cluster.end_move(other)
            else:
                cluster.cancel_move(master, other)
        elif fault == "ordered":
            other = cluster.replica_of(master)
            cluster.order_failover(other)
        else:
            other = cluster.replica_of(master)
            master.kill()
        took[fault] = stage.await_open(after=before)
        if fault == "killed":
            cluster.await_master(other)
            master.start()
        took[fault]["rest_s"] = round(stage.await_rest(), 2)
    print(f"D {DRAIN_S} s, {took}, {stage.judge.created()} pods made")
    assert stage.judge.over_creations() == []
    assert stage.judge.created() > 50, "too little was done to prove anything"
    assert stage.epoch()["epoch"] >= 5
