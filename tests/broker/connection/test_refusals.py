"""What errors of a server mean, and that a server which takes no writes has taken none."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable

import pytest
import redis
from redis.exceptions import (
    AskError,
    ClusterDownError,
    MasterDownError,
    MovedError,
    NoScriptError,
    OutOfMemoryError,
    ReadOnlyError,
    ResponseError,
    TryAgainError,
)
from redis.exceptions import ConnectionError as RedisConnectionError

from oarlock.broker import epoch
from oarlock.broker.connection.client import connect
from oarlock.broker.redis_broker import RedisBroker
from oarlock.broker.steps import refusals
from oarlock.broker.values.claims import ClaimLimits, LoadSpec
from oarlock.broker.values.errors import BrokerBusy, BrokerFull, BrokerUnreachable, EpochOver
from oarlock.workers.supervisor.timer_wait import TimerWait
from tests.redis.real_servers import RealServer, until

BUSY = "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."
OVER: list[Exception] = [
    NoScriptError("No matching script.", status_code="NOSCRIPT"),
    ReadOnlyError("You can't write against a read only replica.", status_code="READONLY"),
    ResponseError("Error running script: -READONLY You can't write against a read only replica."),
    MovedError("1 h:1", status_code="MOVED"),
    AskError("1 h:1", status_code="ASK"),
    TryAgainError("Multiple keys request during rehashing of slot", status_code="TRYAGAIN"),
    ResponseError("Script attempted to access a non local key in a cluster node script: x"),
    ResponseError("Script attempted to access keys that do not hash to the same slot"),
]
UNREACHABLE: list[Exception] = [
    ClusterDownError("The cluster is down", status_code="CLUSTERDOWN"),
    MasterDownError("Link with MASTER is down", status_code="MASTERDOWN"),
    ResponseError("NOREPLICAS Not enough good replicas to write. script: x"),
    ResponseError("MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk."),
    ResponseError(BUSY),
    RedisConnectionError("gone"),
]


@pytest.mark.parametrize("error", OVER, ids=str)
def test_what_ends_an_epoch(error: Exception) -> None:
    assert isinstance(refusals.meaning("step", error), EpochOver)
    here = isinstance(error, NoScriptError | ReadOnlyError) or "READONLY" in str(error)
    assert refusals.keys_move(error) is not here


@pytest.mark.parametrize("error", UNREACHABLE, ids=str)
def test_what_is_to_be_waited_out(error: Exception) -> None:
    meant = refusals.meaning("step", error)
    assert isinstance(meant, BrokerUnreachable)
    assert str(error) in str(meant)
    assert not refusals.keys_move(error)


def test_a_server_in_a_long_script_does_nothing_else_and_says_so(server: RealServer) -> None:
    """Every step, a wait and the look at the epoch: an error of the broker, which whoever calls it waits out."""
    client = connect(server.url("ingestor"))
    epoch.bootstrap(client, 1)
    broker = RedisBroker(client, 1, blocking=connect(server.url("ingestor")))
    broker.open([])
    broker.register("w", "s", ["replicaset"])
    admin = connect(server.url("admin"), timeout_s=30)
    admin.config_set("lua-time-limit", 20)
    long = threading.Thread(target=_for_ever, args=(admin,))
    long.start()
    killer = connect(server.url("admin"))
    until(lambda: _busy(killer), what="the script to have run for too long")
    steps: dict[str, Callable[[], object]] = {
        "add": lambda: broker.add("replicaset", ["ns/a"]),
        "claim": lambda: broker.claim(
            "w", "n", [LoadSpec("replicaset", "replicasets")], ClaimLimits(lease_ms=1, drain_ms=1)
        ),
        "renew": lambda: broker.renew(["w"], lease_ms=1_000),
        "release": lambda: broker.release("w"),
        "due": broker.due,
        "wait": lambda: broker.wait(["q"], 0.1),
        "watermark": lambda: broker.watermark("pods"),
        "watermarks": broker.watermarks,
        "pauses": broker.pauses,
        "failures": lambda: broker.num_requeues("replicaset", "ns/a"),
    }
    try:
        for step in steps.values():
            with pytest.raises(BrokerBusy, match="BUSY"):
                step()
        with pytest.raises(BrokerUnreachable, match="BUSY"):
            epoch.current(client)
        timer = TimerWait(client, broker.keys.of("timer"))
        timer.start()
        with pytest.raises(BrokerUnreachable, match="BUSY"):
            timer.take()
        timer.close()
    finally:
        killer.script_kill()
        long.join()
    assert broker.add("replicaset", ["ns/a"]) == 1, "nothing was done before"


def _for_ever(client: redis.Redis) -> None:
    with contextlib.suppress(ResponseError):  # it was killed
        client.eval("while true do end", 0)


def _busy(client: redis.Redis) -> bool:
    try:
        client.ping()
    except ResponseError as error:
        return str(error).startswith("BUSY")
    return False


def test_what_else_there_is() -> None:
    assert isinstance(refusals.meaning("step", OutOfMemoryError("command not allowed")), BrokerFull)
    for text in ("ERR wrong number of arguments", "BUSYGROUP Consumer Group name already exists"):
        other = ResponseError(text)
        assert refusals.meaning("step", other) is other


def test_a_master_without_its_replicas_takes_no_part_of_a_step(server: RealServer) -> None:
    """min-replicas-to-write stops a master that was cut off; a script ends at its first write."""
    client = connect(server.url("ingestor"))
    epoch.bootstrap(client, 1)
    broker = RedisBroker(client, 1)
    broker.open([])
    broker.register("w", "s", ["replicaset"])
    admin = connect(server.url("admin"))

    def content() -> dict[bytes, bytes]:
        return {name: admin.dump(name) for name in admin.scan_iter("*")}

    before = content()
    admin.config_set("min-replicas-to-write", 1)
    for step in (
        lambda: broker.add("replicaset", ["ns/a", "ns/b"]),
        lambda: broker.renew(["w"], lease_ms=1_000),
        lambda: broker.release("w"),
        lambda: broker.register("w2", "s", ["replicaset"]),
    ):
        with pytest.raises(BrokerUnreachable, match="NOREPLICAS"):
            step()
    assert content() == before
    admin.config_set("min-replicas-to-write", 0)
    assert broker.add("replicaset", ["ns/a"]) == 1
