"""A key's job says which shard it is of; a worker leaves the requests and the failures of other shards alone."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import fakeredis
import pytest
from rq.registry import FailedJobRegistry

from oarlock.workers.process.settings import BadSetting, Settings
from oarlock.workers.process.shards import has_key, names
from oarlock.workers.rq.failed_turns import FailedTurns
from oarlock.workers.rq.job import KeyJob, NotAKey, job_id, key_of, shard_of_job
from oarlock.workers.rq.queue import KeyQueue
from oarlock.workers.rq.requests import Requests
from oarlock.workers.rq.shell import RqShell

QUEUE, NODES = "replicaset", "daemonset-node-updates"
KEYS = [f"team-{i}/web" for i in range(8)]


@pytest.fixture
def connection() -> Any:
    return fakeredis.FakeRedis(protocol=2)


class Added:
    """A broker that notes what was added."""

    def __init__(self) -> None:
        self.keys: list[str] = []

    def add(self, queue: str, key_names: Iterable[str], *, unpark: bool = False, why: str = "asked") -> int:
        self.keys += key_names
        return 1


def store(connection: Any, queue: str, key: str, shard: str = "0") -> str:
    """The job of a key, as a failed turn leaves it. Returns its id."""
    job = KeyJob.of(queue, key, connection, shard)
    FailedTurns(connection, "w").add(job, "Traceback: x")
    return str(job.id)


def test_the_job_of_a_key_in_a_namespace_is_the_same_everywhere() -> None:
    assert {job_id(QUEUE, "team-0/web", shard) for shard in names(3)} == {job_id(QUEUE, "team-0/web")}
    assert shard_of_job(job_id(QUEUE, "team-0/web"), "team-0/web", 3) in names(3)


def test_the_job_of_a_node_says_whose_it_is(connection: Any) -> None:
    ids = [job_id(NODES, "node-3", shard) for shard in names(12)]
    assert len(set(ids)) == 12
    assert ids[0] == job_id(NODES, "node-3")
    assert ids[11].endswith("-s11")
    assert [shard_of_job(each, "node-3", 12) for each in ids] == list(names(12))
    for shard in ("0", "1", "11"):
        job = KeyJob.of(NODES, "node-3", connection, shard)
        job.save()
        assert key_of(NODES, job.id, connection.hget(job.key, "data")) == "node-3"
    with pytest.raises(NotAKey):
        key_of(NODES, job_id(NODES, "node-4", "1"), connection.hget(job.key, "data"))


def test_each_shard_admits_its_own_requests_and_leaves_the_others_there(connection: Any) -> None:
    queue = KeyQueue(QUEUE, connection)
    wanted = [store(connection, QUEUE, key).encode() for key in KEYS]
    connection.rpush(queue.key, *wanted)
    seen: list[str] = []
    for shard in names(3):
        broker = Added()
        Requests(connection, broker, shard, 3).admit(queue, connection.lrange(queue.key, 0, -1))
        assert broker.keys == [key for key in KEYS if has_key(key, shard, 3)]
        seen += broker.keys
    assert sorted(seen) == KEYS
    assert connection.llen(queue.key) == 0


def test_each_shard_heals_its_own_failures(connection: Any) -> None:
    registry = FailedJobRegistry.key_template.format(QUEUE)
    for key in KEYS:
        store(connection, QUEUE, key)
    FailedTurns(connection, "w", "1", 3).sweep(KeyQueue(QUEUE, connection), lambda queue, key: 0)
    left = {each.decode() for each in connection.zrange(registry, 0, -1)}
    assert left == {job_id(QUEUE, key) for key in KEYS if not has_key(key, "1", 3)}
    assert len(left) < len(KEYS)


def test_a_node_that_fails_in_one_shard_is_not_healed_by_another(connection: Any) -> None:
    registry = FailedJobRegistry.key_template.format(NODES)
    failing = store(connection, NODES, "node-3", "1")
    queue = KeyQueue(NODES, connection)
    FailedTurns(connection, "w", "0", 3).sweep(queue, lambda queue, key: 0)
    assert connection.zrange(registry, 0, -1) == [failing.encode()]
    FailedTurns(connection, "w", "1", 3).sweep(queue, lambda queue, key: 0)
    assert connection.zrange(registry, 0, -1) == []


def test_a_worker_of_rqs_own_command_has_to_be_told_its_shard(
    connection: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OARLOCK_SHARDS", "3")
    with pytest.raises(SystemExit) as ended:
        RqShell([QUEUE], "w", connection=connection)
    assert ended.value.code == 2
    told = capsys.readouterr().err
    assert told == "oarlock: OARLOCK_SHARD is not given: this process serves one shard, 0 to 2\n"
    monkeypatch.setenv("OARLOCK_SHARD", "2")
    assert RqShell([QUEUE], "w", connection=connection)._shard == "2"


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"OARLOCK_SHARDS": "0"}, "OARLOCK_SHARDS=0"),
        ({"OARLOCK_SHARDS": "17"}, "OARLOCK_SHARDS=17"),
        ({"OARLOCK_SHARDS": "two"}, "OARLOCK_SHARDS='two'"),
        ({"OARLOCK_SHARDS": "3", "OARLOCK_SHARD": "3"}, "OARLOCK_SHARD='3'"),
        ({"OARLOCK_SHARD": "1"}, "OARLOCK_SHARD='1'"),
        ({"OARLOCK_SHARDS": "3", "OARLOCK_SHARD": "01"}, "OARLOCK_SHARD='01'"),
    ],
)
def test_what_is_no_shard_is_told_in_one_line(given: dict[str, str], named: str) -> None:
    with pytest.raises(BadSetting, match=named) as told:
        Settings.from_env(given)
    assert "\n" not in str(told.value)


def test_one_shard_needs_no_word() -> None:
    assert Settings.from_env({}).serves == "0"
    assert Settings(shards=3, shard="2").serves == "2"
    with pytest.raises(BadSetting, match="OARLOCK_SHARD is not given"):
        assert Settings(shards=3).serves
