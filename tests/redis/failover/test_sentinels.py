"""The master that Sentinels name: found anew by every connection, proved, and left when it is another's turn."""

from __future__ import annotations

import signal

import pytest
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError

from oarlock.broker import epoch
from oarlock.broker.connection import fitness
from oarlock.broker.connection.client import RunGuard, connect
from oarlock.broker.connection.redis_url import parse
from oarlock.broker.redis_broker import RedisBroker
from oarlock.broker.values.errors import BrokerUnreachable, EpochOver
from oarlock.workers.process.settings import Settings
from oarlock.workers.rq.client import open_rq_client
from tests.redis.real_servers import PASSWORDS, RealServer, started, until
from tests.redis.sentinel_rig import NAME, SentinelRig


def test_a_failover_ends_the_epoch_and_nothing_of_it_is_believed(sentinels: SentinelRig) -> None:
    """The replica has every key of the epoch, the number too; what it lacks is the run the epoch began on."""
    client = connect(sentinels.url("ingestor"))
    fitness.check_for_data(client, parse(sentinels.url("ingestor")))
    epoch.bootstrap(client, 1)
    seen = epoch.current(client)
    assert seen.intact
    guard = RunGuard()
    guard.expected = seen.run
    guarded = RedisBroker(connect(sentinels.url("worker"), guard=guard), 1)
    plain = RedisBroker(connect(sentinels.url("worker")), 1)
    rq = open_rq_client(Settings(redis_url=sentinels.url("worker")))
    rq.sadd("rq:test", "x")
    assert guarded.reclaim() == plain.reclaim() == []
    master, other = sentinels.master, sentinels.replica
    master.client().wait(1, 5_000)

    master.signal(signal.SIGSTOP)  # it keeps its connections, as one behind a broken network does
    sentinels.await_master(other)
    with pytest.raises(EpochOver, match="the Redis server changed"):
        guarded.reclaim()
    with pytest.raises(EpochOver):  # no script is there
        plain.reclaim()
    after = epoch.current(connect(sentinels.url("worker")))
    assert (after.epoch, after.bootstrapped_on, after.intact) == (1, seen.run, False)
    assert "+" in after.run, "the name of its life tells that it was promoted"
    assert rq.smembers("rq:test") == {b"x"}

    epoch.bootstrap(connect(sentinels.url("ingestor")), 2)
    assert RedisBroker(connect(sentinels.url("worker")), 2).reclaim() == []
    master.signal(signal.SIGCONT)
    sentinels.await_replica()
    for broker in (guarded, plain):
        with pytest.raises(EpochOver):
            broker.reclaim()
    assert epoch.current(client).epoch == 2


def test_a_master_that_was_replaced_is_left_within_a_second(sentinels: SentinelRig) -> None:
    """It answers on, and takes writes, until a Sentinel tells it otherwise; nobody waits for that."""
    ingestor = connect(sentinels.url("ingestor"))
    epoch.bootstrap(ingestor, 1)
    guard = RunGuard()
    guard.expected = epoch.current(ingestor).run
    broker = RedisBroker(connect(sentinels.url("worker"), guard=guard), 1)
    broker.reclaim()
    master, other = sentinels.master, sentinels.replica
    sentinels.order_failover()
    assert sentinels.master is other
    assert until(lambda: _over(broker), limit_s=8.0, what="the broker to leave")
    assert epoch.current(ingestor).intact is False
    assert master.answers()


def _over(broker: RedisBroker) -> bool:
    try:
        broker.reclaim()
    except EpochOver:
        return True
    except BrokerUnreachable:
        return False  # named, but not a master yet
    return False


def test_who_cannot_tell_is_said(sentinels: SentinelRig) -> None:
    hosts = ",".join(f"127.0.0.1:{each.port}" for each in sentinels.sentinels)
    login = f"worker:{PASSWORDS['worker']}@"
    with pytest.raises(RedisConnectionError, match="knows no master 'other'"):
        connect(f"redis+sentinel://{login}{hosts}/other/0").ping()
    with pytest.raises(RedisError, match=r"SENTINEL|sentinel|Authentication"):
        connect(f"redis+sentinel://{login}127.0.0.1:{sentinels.master.port}/{NAME}/0").ping()
    with pytest.raises(RedisConnectionError):
        connect(f"redis+sentinel://{login}127.0.0.1:1,127.0.0.1:2/{NAME}/0", timeout_s=0.5).ping()
    # One that lives is enough, and it is asked first from then on.
    client = connect(f"redis+sentinel://{login}127.0.0.1:1,{hosts}/{NAME}/0")
    assert client.ping()


def test_a_master_demoted_and_promoted_again_is_another_life(server: RealServer, tmp_path: object) -> None:
    """The same process, the same run id, its scripts in place, its data those of another history."""
    ingestor = connect(server.url("ingestor"))
    epoch.bootstrap(ingestor, 1)
    before = epoch.current(ingestor)
    guard = RunGuard()
    guard.expected = before.run
    broker = RedisBroker(connect(server.url("worker"), guard=guard), 1)
    assert broker.reclaim() == []
    other = RealServer(server.folder / "other")
    try:
        started(other)
        link = {"masteruser": "replica", "masterauth": PASSWORDS["replica"]}
        for name, value in link.items():
            server.client().config_set(name, value)
        # The other has an older state of the same epoch: as a replica that was behind.
        state = server.client()
        source = connect(server.url("admin"))
        for name in source.scan_iter("*"):
            connect(other.url("admin")).restore(name, 0, source.dump(name))
        state.replicaof("127.0.0.1", other.port)
        until(lambda: state.info("replication")["master_link_status"] == "up", what="the resynchronisation")
        state.replicaof("NO", "ONE")
    finally:
        other.kill()
    after = epoch.current(ingestor)
    assert (after.epoch, after.bootstrapped_on) == (1, before.run)
    assert after.run.startswith(before.run + "+")
    assert not after.intact
    server.client().client_kill_filter(_type="normal", skipme=True)
    with pytest.raises(EpochOver, match="the Redis server changed"):
        broker.reclaim()
