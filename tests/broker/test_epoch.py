"""The epoch: one life of the data. Whatever ends it is noticed by the next step, and nothing of it is read again."""

from __future__ import annotations

from collections.abc import Callable
from socket import SHUT_WR
from typing import Any

import pytest
import redis
from redis.client import Pipeline
from redis.connection import Connection
from redis.exceptions import ConnectionError as RedisConnectionError

from oarlock.broker import epoch, keys
from oarlock.broker.connection.client import BadRedisUrl, RunGuard, connect
from oarlock.broker.protocol import Broker
from oarlock.broker.redis_broker import RedisBroker
from oarlock.broker.steps import script_texts
from oarlock.broker.values.claims import Claim, ClaimLimits
from oarlock.broker.values.errors import BrokerUnreachable, ClaimLost, EpochOver
from oarlock.broker.values.events import Event
from oarlock.broker.values.turns import Entry, Finish, Verdict
from oarlock.sandbox.redis.embedded_redis import EmbeddedRedis
from oarlock.workers.epoch.epoch_search import EpochSearch
from oarlock.workers.process.settings import Settings
from tests.broker.broker_cases import LEASE_MS, QUEUE, SPECS, Case, MemoryCase, RedisCase, claim_one, clients_of, opened
from tests.broker.broker_servers import held
from tests.security import planting

STEPS: dict[str, Callable[[Broker], object]] = {
    "add": lambda broker: broker.add(QUEUE, ["ns/a"]),
    "add_after": lambda broker: broker.add_after(QUEUE, "ns/a", 5),
    "add_rate_limited": lambda broker: broker.add_rate_limited(QUEUE, "ns/a"),
    "forget": lambda broker: broker.forget(QUEUE, "ns/a"),
    "register": lambda broker: broker.register("w1", "s", [QUEUE]),
    "claim": lambda broker: broker.claim("w1", "n", SPECS, ClaimLimits(lease_ms=1, drain_ms=1)),
    "announce": lambda broker: broker.announce(
        Claim(QUEUE, "ns/a", "n", None, [], None, "", False, 0), "u", [Entry("create", "pods/x")], lease_ms=1
    ),
    "finish": lambda broker: broker.finish([Finish(QUEUE, "ns/a", "n", Verdict.OK)]),
    "release": lambda broker: broker.release("w1"),
    "reclaim": lambda broker: broker.reclaim(),
    "renew": lambda broker: broker.renew(["w1"], lease_ms=1),
    "due": lambda broker: broker.due(),
    "ingest": lambda broker: broker.ingest("pods", "100", "101", [Event("ns/p", "101", "u", b"p")]),
    "stage": lambda broker: broker.stage("pods", "g", []),
    "commit_list": lambda broker: broker.commit_list("pods", "g", "1"),
    "republish": lambda broker: broker.republish(),
    "open": lambda broker: broker.open([]),
    "pause": lambda broker: broker.pause("why"),
    "page": lambda broker: broker.page("pods", ["owner=u"]),
    "look": lambda broker: broker.look("pods", ids=["ns/p"]),
    "report": lambda broker: broker.report("ingestor-a", "pods=5"),
}
every_step = pytest.mark.parametrize("step", STEPS)


@every_step
def test_a_step_of_an_earlier_epoch_is_refused_and_changes_nothing(case: Case, step: str) -> None:
    opened(case, "ns/a")
    old = case.worker
    case.worker.add(QUEUE, ["ns/a"])
    case.bootstrap()
    before = case.state()
    with pytest.raises(EpochOver):
        STEPS[step](old)
    assert case.state() == before
    assert old.watermark("replicasets") is None or case.worker.watermark("replicasets") is None


def test_what_is_read_whole_is_of_its_epoch_or_refused(case: Case) -> None:
    """Of an epoch that is over nothing is there, and nothing paused would mean that people have resumed everything."""
    opened(case)
    case.worker.steer("pause", "all", "by=me")
    old, read = case.ingestor, [case.ingestor.watermarks(), case.ingestor.pauses().texts]
    assert all(read)
    case.bootstrap()
    for reading in (old.watermarks, old.pauses):
        with pytest.raises(EpochOver):
            reading()


@pytest.mark.real
def test_the_epoch_is_read_in_one_round_trip_where_its_number_is_known(real: RedisCase) -> None:
    client, asked = real.clients["worker"], []
    exchange = client.in_one_go
    client.in_one_go = lambda calls: asked.append([call[0] for call in calls]) or exchange(calls)
    seen = epoch.current(client, likely=real.epoch)
    assert seen == epoch.current(client, likely=real.epoch + 1)
    assert (seen.epoch, seen.phase) == (real.epoch, "DRAIN")
    assert asked == [["GET", "INFO", "INFO", "MGET"]] * 2 + [["MGET"]]


@every_step
def test_the_twin_loses_everything_as_a_server_does(step: str) -> None:
    case = MemoryCase()
    opened(case, "ns/a")
    case.store.flush()
    with pytest.raises(EpochOver):
        STEPS[step](case.worker)
    assert (case.worker.watermark("replicasets"), case.worker.num_requeues(QUEUE, "ns/a")) == (None, 0)


def test_a_new_epoch_is_empty_and_draining(case: Case) -> None:
    opened(case, "ns/a")
    case.worker.add(QUEUE, ["ns/a"])
    case.bootstrap()
    assert case.state() == {"phase": "DRAIN", "timer": 0}


@pytest.mark.real
@every_step
@pytest.mark.parametrize("loss", ["FLUSHALL", "SCRIPT FLUSH"])
def test_a_loss_is_noticed_by_every_step(real: RedisCase, step: str, loss: str) -> None:
    opened(real, "ns/a")
    real.admin.execute_command(loss)
    with pytest.raises(EpochOver):
        STEPS[step](real.worker)


@pytest.mark.real
def test_no_step_loads_a_script(real: RedisCase) -> None:
    """A library that reloads on NOSCRIPT would carry an old script into a new life."""
    opened(real)
    real.admin.script_flush()
    for step in STEPS.values():
        with pytest.raises(EpochOver):
            step(real.worker)
    broker = real.worker
    assert isinstance(broker, RedisBroker)
    assert real.admin.info("memory")["number_of_cached_scripts"] == 0


@pytest.mark.real
@pytest.mark.parametrize("lost", [False, True])
def test_who_sees_the_number_finds_the_scripts(real: RedisCase, monkeypatch: pytest.MonkeyPatch, lost: bool) -> None:
    """Also where the server loses them while the epoch begins."""
    ingestor, worker = real.clients["ingestor"], RedisBroker(real.clients["worker"], real.epoch + 1)
    execute, met = Pipeline.execute, []

    def executed(pipe: Pipeline) -> list[object]:
        begins = pipe.explicit_transaction
        answers: list[object] = execute(pipe)
        if begins:
            met.append(worker.reclaim())
            if lost:
                real.admin.script_flush()
        return answers

    monkeypatch.setattr(Pipeline, "execute", executed)
    epoch.bootstrap(ingestor, real.epoch + 1)
    assert met == [[]]
    assert worker.reclaim() == []


@pytest.mark.real
def test_a_bootstrapper_that_dies_amid_its_scripts_has_loaded_none(
    real: RedisCase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last one, which is asked for, is there only with the others."""
    number, kind = 4_712, type(real.clients["ingestor"].connection_pool.make_connection())
    send = kind.send_packed_command

    def half(connection: Connection, command: Any, check_health: bool = True) -> None:
        sent = b"".join(command)
        if b"SCRIPT" not in sent:
            return send(connection, [sent], check_health)
        send(connection, [sent[: len(sent) // 2]], check_health)
        socket = connection._sock
        socket.shutdown(SHUT_WR)
        while socket.recv(65_536):  # until the server has done what it was sent
            pass
        raise RedisConnectionError("dead")

    monkeypatch.setattr(kind, "send_packed_command", half)
    with pytest.raises(RedisConnectionError, match="dead"):
        epoch.bootstrap(real.clients["ingestor"], number)
    monkeypatch.undo()
    shas = [script_texts.sha(name, number, script_texts.REDIS_TIME) for name in script_texts.NAMES]
    assert real.admin.script_exists(*shas) == [False] * len(shas)
    assert epoch.current(real.admin).epoch == real.epoch


@pytest.mark.real
def test_who_has_found_an_epoch_has_its_scripts_put_together(
    own_server: EmbeddedRedis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So have all that it forks."""
    clients, number = clients_of(own_server), 4_711
    epoch.bootstrap(clients["ingestor"], number)
    assert EpochSearch(Settings(redis_url=own_server.url("worker"))).look(0) is not None
    monkeypatch.setattr(script_texts, "stamped", None)
    for name in script_texts.NAMES:
        assert script_texts.sha(name, number, script_texts.REDIS_TIME)
    assert RedisBroker(clients["worker"], number).reclaim() == [], "a broker asks for the same"


@pytest.mark.real
def test_workers_of_another_fleet_wait_and_say_whose_epoch_it_is(
    own_server: EmbeddedRedis, caplog: pytest.LogCaptureFixture
) -> None:
    clients, url = clients_of(own_server), own_server.url("worker")
    epoch.bootstrap(clients["ingestor"], 4_712, fleet="blue")
    search = EpochSearch(Settings(redis_url=url, fleet_id="green"))
    assert search.look(0) is None
    assert search.look(search.next_ms) is None
    (told,) = [each.getMessage() for each in caplog.records]
    assert "the epoch is of fleet 'blue', this is fleet 'green': give --fleet-id as its ingestors do" in told
    assert EpochSearch(Settings(redis_url=url, fleet_id="blue")).look(0) is not None
    epoch.bootstrap(clients["ingestor"], 4_713)
    assert EpochSearch(Settings(redis_url=url, fleet_id="green")).look(0) is not None, "an older ingestor does not say"


@pytest.mark.real
@pytest.mark.parametrize("kind", planting.KINDS)
def test_a_hostile_name_of_a_fleet_keeps_workers_out_until_it_is_taken_away(
    own_server: EmbeddedRedis, caplog: pytest.LogCaptureFixture, kind: str
) -> None:
    clients, name = clients_of(own_server), keys.base(4_712) + "fleet"
    (spec,) = [each for each in planting.SPECS if each.pattern == "fleet"]
    epoch.bootstrap(clients["ingestor"], 4_712, fleet="blue")
    planting.plant(spec, kind, clients["admin"], name)
    search = EpochSearch(Settings(redis_url=own_server.url("worker"), fleet_id="blue"))
    assert search.look(0) is None
    (told,) = [each.getMessage() for each in caplog.records]
    assert len(told) < 500
    clients["admin"].delete(name)
    assert search.look(search.next_ms) is not None


@pytest.mark.real
def test_restart_kill_and_another_server(own_server: EmbeddedRedis) -> None:
    """A restarted server has neither scripts nor epoch; with a guard the connection itself refuses."""
    clients, guard = clients_of(own_server), RunGuard()
    epoch.bootstrap(clients["ingestor"], 1)
    seen = epoch.current(clients["worker"])
    assert (seen.epoch, seen.phase, seen.intact) == (1, "DRAIN", True)
    guard.expected = seen.run
    guarded = RedisBroker(connect(own_server.url("worker"), guard=guard), 1)
    plain = RedisBroker(clients["worker"], 1)
    assert (guarded.reclaim(), plain.reclaim()) == ([], [])

    own_server.kill()
    for broker in (guarded, plain):
        with pytest.raises(BrokerUnreachable):
            broker.reclaim()
    assert guarded_wait(guarded)

    own_server.restart()
    with pytest.raises(EpochOver, match="the Redis server changed"):
        guarded.reclaim()
    with pytest.raises(EpochOver):
        plain.reclaim()
    lost = epoch.current(connect(own_server.url("worker")))
    assert (lost.epoch, lost.intact) == (0, False)

    epoch.bootstrap(connect(own_server.url("ingestor")), 2)
    with pytest.raises(EpochOver):
        guarded.reclaim()
    with pytest.raises(EpochOver):
        plain.reclaim()
    assert RedisBroker(connect(own_server.url("worker")), 2).reclaim() == []


def guarded_wait(broker: RedisBroker) -> bool:
    """What is not a script is unreachable too, not silent."""
    with pytest.raises(BrokerUnreachable):
        broker.watermark("pods")
    with pytest.raises(BrokerUnreachable):
        broker.num_requeues(QUEUE, "ns/a")
    return True


@pytest.mark.real
def test_data_of_an_earlier_server_are_not_intact(own_server: EmbeddedRedis) -> None:
    """A restart from a file, or a failover: the epoch key is there, the run id is another."""
    clients = clients_of(own_server)
    epoch.bootstrap(clients["ingestor"], 1)
    clients["admin"].set(keys.base(1) + "run", "another")
    seen = epoch.current(clients["worker"])
    assert (seen.epoch, seen.bootstrapped_on, seen.intact) == (1, "another", False)


@pytest.mark.real
def test_a_read_only_replica_is_another_life(own_server: EmbeddedRedis) -> None:
    """Connections that outlive a demotion meet READONLY in their next write."""
    clients = clients_of(own_server)
    epoch.bootstrap(clients["ingestor"], 1)
    broker = RedisBroker(clients["worker"], 1)
    assert epoch.current(clients["worker"]).writable
    clients["admin"].replicaof("127.0.0.1", 1)
    assert not epoch.current(clients["worker"]).writable
    with pytest.raises(EpochOver):
        broker.add(QUEUE, ["ns/a"])


@pytest.mark.real
def test_a_sweep_of_an_earlier_bootstrapper_leaves_the_next_epoch_alone(real: RedisCase) -> None:
    """It runs in the background, and its process may be stopped until another one has bootstrapped and opened."""
    opened(real, "ns/a")
    before = real.state()
    assert epoch.sweep_older(real.clients["ingestor"], real.epoch - 1) == 0
    assert real.state() == before
    assert real.worker.watermark("pods") is not None


@pytest.mark.real
def test_sweeping_leaves_the_current_epoch_and_strangers_alone(real: RedisCase) -> None:
    opened(real, "ns/a")
    real.worker.add(QUEUE, [f"ns/{i}" for i in range(50)])
    old = keys.base(real.epoch)
    real.bootstrap()
    opened(real, "ns/b")
    real.admin.set("rq:workers", "x")
    before = real.state()
    swept = epoch.sweep_older(real.clients["ingestor"], real.epoch)
    assert swept > 5
    assert list(real.admin.scan_iter(old + "*")) == []
    assert (real.state(), real.admin.get("rq:workers")) == (before, b"x")
    assert epoch.sweep_older(real.clients["ingestor"], real.epoch) == 0


def test_a_url_that_is_none_is_one_line() -> None:
    with pytest.raises(BadRedisUrl, match="looks like redis://") as caught:
        connect("http://example")
    assert "\n" not in str(caught.value)


def test_an_absent_server_is_unreachable() -> None:
    client = connect("redis://127.0.0.1:1", timeout_s=0.5)
    with pytest.raises(BrokerUnreachable):
        RedisBroker(client, 1).reclaim()
    with pytest.raises(BrokerUnreachable):
        epoch.current(client)
    with pytest.raises(RedisConnectionError):
        epoch.bootstrap(client, 1)


@pytest.mark.real
def test_a_call_is_sent_once(real: RedisCase) -> None:
    """An answer that does not come is not asked for again: the call may have done its work."""
    opened(real)
    slow = connect(url_of(real.clients["worker"]), timeout_s=0.2)
    broker = RedisBroker(slow, real.epoch, clock=real.worker._clock)  # type: ignore[attr-defined]
    broker.due()  # it is connected
    before = calls(real.admin)
    with held(real.admin.info("server")["process_id"]), pytest.raises(BrokerUnreachable):
        broker.add(QUEUE, ["ns/late"])
    real.admin.ping()
    assert calls(real.admin) - before <= 1
    broker.add(QUEUE, ["ns/next"])
    assert calls(real.admin) - before <= 2


def calls(client: redis.Redis) -> int:
    return int(client.info("commandstats").get("cmdstat_evalsha", {}).get("calls", 0))


def url_of(client: redis.Redis) -> str:
    given = client.connection_pool.connection_kwargs
    return f"redis://{given['username']}:{given['password']}@{given['host']}:{given['port']}"


@pytest.mark.real
def test_a_claim_is_lost_with_its_epoch(real: RedisCase) -> None:
    """EpochOver, not ClaimLost: the worker has to stop, not to go on with the next key."""
    opened(real, "ns/a")
    real.worker.add(QUEUE, ["ns/a"])
    one = claim_one(real)
    with pytest.raises(ClaimLost):
        real.worker.announce(one._replace(nonce="other"), "u", [], lease_ms=LEASE_MS)
    real.admin.flushall()
    with pytest.raises(EpochOver):
        real.worker.announce(one, "u", [], lease_ms=LEASE_MS)


@pytest.mark.real
def test_a_bootstrapper_that_slept_brings_no_old_number_back(own_server: EmbeddedRedis) -> None:
    clients = clients_of(own_server)
    epoch.bootstrap(clients["ingestor"], 5)
    with pytest.raises(EpochOver, match="epoch 5 was begun"):
        epoch.bootstrap(clients["ingestor"], 4)
    assert epoch.current(clients["ingestor"]).epoch == 5


@pytest.mark.real
def test_a_call_that_was_struck_leaves_its_answer_to_nobody(real: RedisCase, monkeypatch: pytest.MonkeyPatch) -> None:
    """A death penalty may strike after a command was sent and before its answer is read for."""
    opened(real, "ns/a")
    real.worker.due()
    read = Connection.read_response

    def strike(*args: object, **options: object) -> None:
        monkeypatch.setattr(Connection, "read_response", read)
        raise Struck

    real.admin.execute_command("CLIENT", "PAUSE", 150, "ALL")
    monkeypatch.setattr(Connection, "read_response", strike)
    with pytest.raises(Struck):
        real.worker.register("w2", "s", [QUEUE])
    assert real.worker.due() == (0, None), "its own answer, not that of the call before"


class Struck(Exception):
    """As a signal handler raises it."""
