"""A fleet in a cluster, through moves of its slot and failovers under load."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.redis.cluster_rig import ClusterRig
from tests.redis.failover.fleet_stage import DRAIN_S, FleetStage
from tests.redis.real_servers import RealServer, started


@pytest.fixture
def shards() -> int:
    return 1


@pytest.fixture
def stage(cluster: ClusterRig, tmp_path: Path, shards: int) -> Iterator[FleetStage]:
    rq = RealServer(tmp_path / "rq")
    started(rq)
    urls = {user: cluster.url(user) for user in ("ingestor", "worker")}
    one = FleetStage(tmp_path / "fleet", urls, {"OARLOCK_RQ_REDIS_URL": rq.url("worker")}, shards)
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
            stage.await_made(51)
        took[fault]["rest_s"] = round(stage.await_rest(), 2)
    print(f"D {DRAIN_S} s, {took}, {stage.judge.created()} pods made")
    assert stage.judge.over_creations() == []
    assert stage.judge.created() > 50, "too little was done to prove anything"
    assert stage.epoch()["epoch"] >= 5


@pytest.mark.timeout(400)
@pytest.mark.parametrize("shards", [3])
def test_what_befalls_one_shard_under_load(cluster: ClusterRig, stage: FleetStage) -> None:
    """A slot is moved, a master dies: the shards on them begin anew, and nobody makes a pod too many."""
    for shard in range(3):
        stage.await_open(after=0, shard=shard)
    stage.await_rest()
    before = [stage.epoch(shard)["epoch"] for shard in range(3)]
    master = cluster.master_of("1")
    other = next(each for each in cluster.masters() if each is not master)
    stage.load()
    cluster.begin_move(master, other, "1")
    assert cluster.move_keys(master, other, "1") > 0
    cluster.end_move(other, "1")
    took = {"moved": stage.await_open(after=before[1], shard=1)}
    stage.await_rest()
    assert [stage.epoch(shard)["epoch"] for shard in (0, 2)] == [before[0], before[2]]

    before = [stage.epoch(shard)["epoch"] for shard in range(3)]
    master = cluster.master_of("2")
    struck = [shard for shard in range(3) if cluster.master_of(str(shard)) is master]
    successor = cluster.replica_of(master)
    stage.load()
    master.kill()
    for shard in struck:
        took[f"killed {shard}"] = stage.await_open(after=before[shard], shard=shard)
    cluster.await_master(successor, "2")
    master.start()
    stage.await_made(51)
    stage.await_rest()
    for shard in set(range(3)) - set(struck):
        assert stage.epoch(shard)["epoch"] == before[shard]
    print(f"D {DRAIN_S} s, {took}, {stage.judge.created()} pods made")
    assert stage.judge.over_creations() == []
    assert stage.judge.created() > 50, "too little was done to prove anything"
