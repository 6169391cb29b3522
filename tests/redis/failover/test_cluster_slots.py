"""A shard in a cluster is on one node; when its slot moves, its epoch is over for everyone."""

from __future__ import annotations

from typing import Any

import pytest
from redis.exceptions import RedisError

from oarlock.broker import epoch, keys
from oarlock.broker.connection import fitness
from oarlock.broker.connection.client import RunGuard, connect
from oarlock.broker.connection.finders import slot_of
from oarlock.broker.connection.redis_url import parse
from oarlock.broker.redis_broker import RedisBroker
from oarlock.broker.values.errors import BrokerUnreachable, EpochOver
from oarlock.broker.values.events import Event
from tests.redis.cluster_rig import ClusterRig
from tests.redis.real_servers import PASSWORDS, until

QUEUE = "replicaset"


def begin(cluster: ClusterRig, number: int, shard: str = "0") -> tuple[RedisBroker, RedisBroker]:
    """An open epoch with a queued key, as the ingestor and as a worker has it."""
    client = connect(cluster.url("ingestor"), shard=shard)
    epoch.bootstrap(client, number, shard)
    feeding = RedisBroker(client, number, shard=shard)
    feeding.stage("replicasets", "g", [Event("ns/a", "5", "u", b"blob", (), (f"{QUEUE}:ns/a",))])
    feeding.commit_list("replicasets", "g", "5")
    until(lambda: feeding.republish() == 0, what="the list to be published")
    assert feeding.open(["replicasets"]) == ""
    guard = RunGuard()
    guard.expected = epoch.current(client, shard).run
    working = RedisBroker(connect(cluster.url("worker"), guard=guard, shard=shard), number, shard=shard)
    working.register("w", "s", [QUEUE])
    return feeding, working


def look(cluster: ClusterRig, shard: str = "0") -> epoch.Seen:
    return epoch.current(connect(cluster.url("ingestor"), shard=shard), shard)


def test_each_shard_is_on_the_node_of_its_slot(cluster: ClusterRig) -> None:
    """Every script of every shard works there, and every key it makes is in the shard's slot."""
    nodes = set()
    for shard in ("0", "1", "2", "3"):
        begin(cluster, 1, shard)
        node = cluster.master_of(shard)
        nodes.add(node.port)
        names = node.client().execute_command("CLUSTER GETKEYSINSLOT", slot_of(shard), 100)
        assert keys.epoch(shard) in names
        assert {f"{{{shard}}}" in name for name in names} == {True}
    assert len(nodes) > 1
    assert sum(cluster._by_port(port).client().dbsize() for port in nodes) > 40
    client = connect(cluster.url("metrics"))
    fitness.check_for_data(client, parse(cluster.url("metrics")))
    one = connect(cluster.nodes[0].url("metrics"))
    with pytest.raises(fitness.UnfitServer, match=r"write redis\+cluster://"):
        fitness.check(one, parse(cluster.nodes[0].url("metrics")))


def test_a_step_is_refused_whole_once_a_move_begins(cluster: ClusterRig) -> None:
    """The prefix of the keys is declared as a key and never exists: so a slot that is open to be moved refuses a script
    before its first command, whichever keys it would have touched. And whoever meets that ends the epoch for all.
    """
    feeding, working = begin(cluster, 1)
    source, target = cluster.master_of(), next(each for each in cluster.masters() if each is not cluster.master_of())
    before = _content(source)
    cluster.begin_move(source, target)
    with pytest.raises(EpochOver, match=r"TRYAGAIN|ASK"):
        working.add(QUEUE, ["ns/b"])
    assert _content(source) == {name: value for name, value in before.items() if name != keys.epoch()}
    cluster.cancel_move(source, target)
    for broker in (feeding, working):
        with pytest.raises(EpochOver, match="epoch 1 is over"):
            broker.reclaim()
    assert (look(cluster).epoch, look(cluster).intact) == (0, False)
    begin(cluster, 2)


def test_a_move_that_is_cancelled_half_way_is_not_forgotten(cluster: ClusterRig) -> None:
    """Keys have gone, the epoch's number among those that stayed; one worker was refused once. All have to stop."""
    feeding, working = begin(cluster, 1)
    source, target = cluster.master_of(), next(each for each in cluster.masters() if each is not cluster.master_of())
    cluster.begin_move(source, target)
    names = [name for name in _content(source) if name.endswith((":state", ":stream", ":queues"))]
    assert names
    login = ("AUTH2", "admin", PASSWORDS["admin"])
    source.client().execute_command("MIGRATE", "127.0.0.1", target.port, "", 0, 5_000, *login, "KEYS", *names)
    with pytest.raises(EpochOver):
        working.renew(["w"], lease_ms=1_000)
    cluster.cancel_move(source, target)
    with pytest.raises(EpochOver):
        feeding.republish()
    assert not look(cluster).intact


def test_a_slot_that_has_moved_is_found_and_its_data_are_not_believed(cluster: ClusterRig) -> None:
    feeding, working = begin(cluster, 1)
    source, target = cluster.master_of(), next(each for each in cluster.masters() if each is not cluster.master_of())
    run = look(cluster).run
    cluster.begin_move(source, target)
    assert cluster.move_keys(source, target) > 5
    cluster.end_move(target)
    seen = look(cluster)
    assert (seen.epoch, seen.bootstrapped_on, seen.intact) == (1, run, False)
    with pytest.raises(EpochOver, match="MOVED"):
        feeding.reclaim()
    with pytest.raises(EpochOver, match="MOVED"):
        working.reclaim()
    with pytest.raises(EpochOver, match="the Redis server changed"):
        working.reclaim()
    begin(cluster, 2)
    assert target.client().get(keys.epoch()) == "2"


def test_a_failover_and_a_cluster_that_is_down(cluster: ClusterRig) -> None:
    _, working = begin(cluster, 1)
    master = cluster.master_of()
    other = cluster.replica_of(master)
    cluster.order_failover(other)
    cluster.await_master(other)
    with pytest.raises(EpochOver, match=r"MOVED|the Redis server changed"):
        working.reclaim()
    assert (look(cluster).epoch, look(cluster).intact) == (1, False)
    _, working = begin(cluster, 2)
    stranger = next(each for each in cluster.masters() if each is not other)
    for node in (cluster.replica_of(stranger), stranger):
        node.kill()
    until(lambda: cluster.state(other) == "fail", what="the cluster to notice")
    with pytest.raises(BrokerUnreachable, match="CLUSTERDOWN"):
        working.reclaim()
    stranger.start()
    until(lambda: cluster.state(other) == "ok", what="the cluster to be well")
    assert until(lambda: _works(working), what="the same epoch to go on")


def _works(broker: RedisBroker) -> bool:
    try:
        return broker.reclaim() == []
    except BrokerUnreachable:
        return False


def test_seeds_that_are_gone_are_passed_over(cluster: ClusterRig) -> None:
    login = f"worker:{PASSWORDS['worker']}@"
    client = connect(f"redis+cluster://{login}127.0.0.1:1,127.0.0.1:{cluster.nodes[0].port}/")
    assert client.ping()
    with pytest.raises(RedisError):
        connect(f"redis+cluster://{login}127.0.0.1:1/", timeout_s=0.5).ping()


def _content(node: Any) -> dict[str, bytes]:
    client = connect(node.url("admin"))
    return {name.decode(): client.dump(name) for name in client.scan_iter("*")}
