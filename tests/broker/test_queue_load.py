"""The queue under load, and waits that block: threads on a real server with its own clock."""

from __future__ import annotations

import threading
import time
from collections import Counter

import pytest
import redis

from oarlock.broker import epoch, keys
from oarlock.broker.connection.client import connect
from oarlock.broker.redis_broker import RedisBroker
from oarlock.broker.values.claims import Batch, ClaimLimits, Idle
from oarlock.broker.values.turns import Finish, Verdict
from oarlock.sandbox.redis.embedded_redis import EmbeddedRedis
from tests.broker.broker_cases import DRAIN_MS, QUEUE, SPECS, RedisCase, clients_of
from tests.broker.broker_servers import server_binaries

pytestmark = pytest.mark.real


@pytest.fixture
def live(own_server: EmbeddedRedis) -> RedisBroker:
    """A broker with the released scripts, opened."""
    clients = clients_of(own_server)
    epoch.bootstrap(clients["ingestor"], 1)
    broker = new_broker(own_server)
    RedisBroker(clients["ingestor"], 1).open([])
    return broker


def new_broker(server: EmbeddedRedis) -> RedisBroker:
    return RedisBroker(connect(server.url("worker")), 1, blocking=connect(server.url("worker"), timeout_s=30.0))


def claim(broker: RedisBroker, holder: str, nonce: str, keys_max: int = 8) -> Batch | Idle:
    return broker.claim(holder, nonce, SPECS, ClaimLimits(lease_ms=30_000, drain_ms=DRAIN_MS, keys_max=keys_max))


def test_fifty_producers_and_ten_consumers(own_server: EmbeddedRedis, live: RedisBroker) -> None:
    """Upstream's first case: every key is processed, none by two at once, and an add during its turn is not lost."""
    items = 50
    running: Counter[str] = Counter()
    done: Counter[str] = Counter()
    overlaps: list[str] = []
    guard = threading.Lock()
    producing = threading.Event()
    failures: list[BaseException] = []

    def consume(name: str) -> None:
        try:
            broker = new_broker(own_server)
            broker.register(name, "test", [QUEUE])
            turn = 0
            while True:
                turn += 1
                batch = claim(broker, name, f"{name}-{turn}", 3)
                if not isinstance(batch, Batch):
                    if producing.is_set() and live_work(broker) == 0:
                        return
                    broker.wait([QUEUE], 0.1)
                    continue
                with guard:
                    for one in batch.claims:
                        running[one.key] += 1
                        if running[one.key] > 1:
                            overlaps.append(one.key)
                with guard:
                    for one in batch.claims:
                        running[one.key] -= 1
                        done[one.key] += 1
                answers = broker.finish([Finish(QUEUE, one.key, one.nonce, Verdict.OK) for one in batch.claims])
                assert answers == [0] * len(answers)
        except BaseException as error:
            failures.append(error)

    def produce(number: int) -> None:
        try:
            broker = new_broker(own_server)
            for i in range(items):
                broker.add(QUEUE, [f"ns/{number}-{i}", "ns/shared"])
        except BaseException as error:
            failures.append(error)

    consumers = [threading.Thread(target=consume, args=(f"c{i}",)) for i in range(10)]
    producers = [threading.Thread(target=produce, args=(i,)) for i in range(50)]
    for thread in (*consumers, *producers):
        thread.start()
    for thread in producers:
        thread.join()
    producing.set()
    for thread in consumers:
        thread.join(30)
    assert (failures, overlaps) == ([], [])
    assert {key: count for key, count in done.items() if key != "ns/shared"} == {
        f"ns/{number}-{i}": 1 for number in range(50) for i in range(items)
    }
    assert done["ns/shared"] >= 1


def live_work(broker: RedisBroker) -> int:
    """Keys queued or running."""
    client = broker._client
    state: int = client.hlen(keys.Keys(1).state(QUEUE))  # type: ignore[assignment]
    return state


def test_a_blocked_waiter_is_woken_at_once(own_server: EmbeddedRedis, live: RedisBroker) -> None:
    live.register("w1", "test", [QUEUE])
    assert claim(live, "w1", "n1") is Idle.EMPTY
    adder = threading.Timer(0.1, lambda: new_broker(own_server).add(QUEUE, ["ns/a"]))
    began = time.monotonic()
    adder.start()
    assert live.wait(["daemonset", QUEUE], 20.0) == QUEUE
    assert 0.05 < time.monotonic() - began < 10
    assert isinstance(claim(live, "w1", "n2"), Batch)
    adder.join()


def test_one_key_wakes_one_waiter(own_server: EmbeddedRedis, live: RedisBroker) -> None:
    woken: list[str] = []

    def sleep(name: str) -> None:
        broker = new_broker(own_server)
        broker.register(name, "test", [QUEUE])
        assert claim(broker, name, name) is Idle.EMPTY
        asleep.release()
        if broker.wait([QUEUE], 20.0):
            woken.append(name)

    asleep = threading.Semaphore(0)
    threads = [threading.Thread(target=sleep, args=(f"w{i}",)) for i in range(4)]
    for thread in threads:
        thread.start()
    for _ in threads:
        assert asleep.acquire(timeout=20)
    admin = connect(own_server.url("admin"))

    def waiting(count: int) -> None:
        end_s = time.monotonic() + 15
        while admin.info("clients")["blocked_clients"] != count:  # type: ignore[index]
            assert time.monotonic() < end_s, woken
            time.sleep(0.005)

    waiting(4)
    live.add(QUEUE, ["ns/a"])
    waiting(3)
    time.sleep(0.2)
    waiting(3)
    admin.rpush(keys.Keys(1).wake(QUEUE), "end", "end", "end")
    for thread in threads:
        thread.join()
    assert len(woken) == 4


def test_a_wait_ends_in_its_time(live: RedisBroker) -> None:
    began = time.monotonic()
    assert not live.wait([QUEUE], 0.2)
    assert 0.15 < time.monotonic() - began < 10


def test_a_wait_on_a_list_that_is_unlinked_goes_on(own_server: EmbeddedRedis, live: RedisBroker) -> None:
    flusher = threading.Timer(0.05, lambda: connect(own_server.url("admin")).flushall())
    flusher.start()
    assert not live.wait([QUEUE], 0.3)
    flusher.join()


def test_a_wait_that_is_refused_says_so(own_server: EmbeddedRedis, live: RedisBroker) -> None:
    """Not taken for a wait that brought nothing: that would be a busy loop."""
    connect(own_server.url("admin")).set(keys.Keys(1).wake(QUEUE), "not a list")
    with pytest.raises(redis.exceptions.ResponseError, match="WRONGTYPE"):
        live.wait([QUEUE], 0.2)


def test_the_clock_of_released_scripts_is_rediss_own(live: RedisBroker) -> None:
    live.add_after(QUEUE, "ns/late", 60_000)
    live.register("w1", "test", [QUEUE])
    moved, next_ms = live.due()
    assert moved == 0
    assert next_ms is not None
    assert 0 < next_ms <= 60_000
    live.add_after(QUEUE, "ns/a", 100)
    deadline = time.monotonic() + 20
    while live.due()[0] == 0:
        assert time.monotonic() < deadline
        time.sleep(0.005)
    batch = claim(live, "w1", "n")
    assert isinstance(batch, Batch)
    assert batch.claims[0].key == "ns/a"


def test_there_is_a_server_of_each_kind() -> None:
    """The suite means little on a machine that has only one of them."""
    assert server_binaries()


def test_a_broker_without_a_blocking_client_does_not_wait(real: RedisCase) -> None:
    with pytest.raises(AssertionError, match="without a blocking client"):
        RedisBroker(real.clients["worker"], real.epoch).wait([QUEUE])
