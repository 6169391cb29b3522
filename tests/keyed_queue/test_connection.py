"""How a queue reaches its Redis, with which rights, and what it does when Redis is full, forgets or is away."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from oarlock.broker.connection.client import BadRedisUrl, connect
from oarlock.queue import Context, KeyedQueue, NotAQueue, QueueFull, QueueUnreachable
from oarlock.queue.values import Policy, Verdict
from tests import ROOT
from tests.keyed_queue.test_kills import await_that
from tests.redis.real_servers import RealServer, started

pytestmark = pytest.mark.real
POLICY = Policy()


def run_all(queue: KeyedQueue) -> list[str]:
    seen: list[str] = []
    queue.run(lambda key, ctx: seen.append(key), burst=True)
    return seen


def test_a_client_of_the_users_own(url: str) -> None:
    """Whatever its options: its server and login are taken, nothing else."""
    queue = KeyedQueue("invoices", redis.Redis.from_url(url, decode_responses=True, protocol=3))
    queue.add("a")
    assert run_all(queue) == ["a"]


def test_a_client_that_a_url_says_better() -> None:
    sentinel = redis.sentinel.Sentinel([("localhost", 1)]).master_for("mymaster")  # type: ignore[no-untyped-call]
    with pytest.raises(BadRedisUrl, match="SentinelConnectionPool: give a URL in its place"):
        KeyedQueue("invoices", sentinel)


def test_no_connection_at_all() -> None:
    """As of a variable of the environment that is not set."""
    with pytest.raises(BadRedisUrl, match="'invoices' on a NoneType: give a URL"):
        KeyedQueue("invoices", None)  # type: ignore[arg-type]


def test_the_rights_that_the_page_names_are_enough(url: str) -> None:
    (rules,) = re.findall(r"^    user invoices on >secret (.+)$", (ROOT / "docs/keyed-queue.md").read_text(), re.M)
    admin = connect(url)
    admin.execute_command("ACL", "SETUSER", "invoices", "on", ">secret", *rules.split())
    admin.script_flush()
    queue = KeyedQueue("invoices", re.sub(r"//.*@", "//invoices:secret@", url))

    def sync(key: str, ctx: Context) -> None:
        raise RuntimeError

    queue.add("eu/a")
    queue.add_after("eu/b", 60)
    queue.worker(retries=0)(sync).run(should_stop=lambda: bool(queue.parked()))
    assert queue.requeue(queue.parked()[0].key) == 1
    assert queue.look("eu/a").state == "queued"
    assert queue.stats().delayed == 1
    for refused in (("FLUSHALL",), ("GET", "rq:queues"), ("KEYS", "*"), ("CONFIG", "GET", "*")):
        with pytest.raises(redis.exceptions.NoPermissionError):
            connect(re.sub(r"//.*@", "//invoices:secret@", url)).execute_command(*refused)  # type: ignore[no-untyped-call]
    admin.execute_command("ACL", "DELUSER", "invoices")


def test_what_ends_works_though_redis_is_full(url: str) -> None:
    admin, queue = connect(url), KeyedQueue("invoices", url)
    queue.add("a", "b", "c")
    claims = queue.steps.claim("h", 30_000, POLICY, 2)
    assert isinstance(claims, list)
    admin.config_set("maxmemory", 1)
    try:
        with pytest.raises(QueueFull, match="raise its maxmemory"):
            queue.add("d")
        assert queue.steps.renew("h", 30_000, claims) == []
        assert queue.steps.finish(claims[0], Verdict.OK, POLICY) == ("idle", 0)
        assert queue.steps.finish(claims[1], Verdict.FAILED, POLICY, error="e") == ("delayed", 1)
        assert isinstance(queue.steps.claim("h", 30_000, POLICY), list)
    finally:
        admin.config_set("maxmemory", 0)


def test_scripts_that_redis_forgot(url: str) -> None:
    queue = KeyedQueue("invoices", url)
    queue.add("a")
    connect(url).script_flush()
    assert run_all(queue) == ["a"]


@pytest.mark.parametrize("name", ["state", "locks", "delayed", "ring", "token"])
def test_data_of_somebody_else_are_named(url: str, name: str) -> None:
    queue = KeyedQueue("invoices", url)
    connect(url).xadd(f"oarlock:queue:{{invoices}}:{name}", {"not": "ours"})

    def use() -> None:
        queue.add("a")
        run_all(queue)

    with pytest.raises(NotAQueue, match=r"oarlock:queue:\{invoices\}:\* were changed by hand"):
        use()


def test_two_queues_share_a_redis(url: str) -> None:
    one, other = KeyedQueue("one", url), KeyedQueue("other", url)
    one.add("a")
    other.add("a", "b")
    assert run_all(one) == ["a"]
    assert run_all(other) == ["a", "b"]


@pytest.fixture
def durable(tmp_path: Path) -> Iterator[RealServer]:
    """A server that keeps its data. Redis reads its append-only file with the rights of the default user."""
    server = RealServer(tmp_path / "redis", appendonly="yes", appendfsync="always")
    users = tmp_path / "redis/users.acl"
    users.write_text(re.sub(r"^user default .*$", "user default off ~* &* +@all", users.read_text(), flags=re.M))
    try:
        started(server)
        yield server
    finally:
        server.kill()


@pytest.mark.parametrize("kept", [True, False], ids=["with its data", "empty"])
def test_redis_is_killed_and_started_again(durable: RealServer, kept: bool) -> None:
    """A key is in work, one waits, and one that is in work was added again. Nothing is drained, nobody is restarted."""
    queue, theirs = KeyedQueue("invoices", durable.url()), KeyedQueue("invoices", durable.url())
    begun, go_on, runs = threading.Barrier(3, timeout=20), threading.Event(), list[tuple[str, int]]()

    def sync(key: str, ctx: Context) -> None:
        runs.append((key, ctx.token))
        if len(runs) <= 2:
            begun.wait()
            assert go_on.wait(30)

    queue.add("in-work", "changed", "waiting")
    stop = threading.Event()
    consumer = threading.Thread(
        target=lambda: queue.worker(threads=2)(sync).run(should_stop=stop.is_set, own_signals=False)
    )
    consumer.start()
    begun.wait()
    theirs.add("changed")
    durable.kill()
    with pytest.raises(QueueUnreachable):
        theirs.add("not there")
    if not kept:
        for each in durable.folder.rglob("*.aof*"):
            each.unlink(missing_ok=True)
    started(durable)
    go_on.set()
    expected = ["changed", "changed", "in-work", "waiting"] if kept else ["changed", "changed", "in-work", "in-work"]
    try:
        await_that(lambda: sorted(key for key, _ in runs) == expected and theirs.stats().running == 0, f"it is {runs}")
    finally:
        stop.set()
        consumer.join()
    assert sorted(key for key, _ in runs) == expected
    tokens = [token for _, token in runs]
    assert tokens == sorted(set(tokens)), "they go on growing"
