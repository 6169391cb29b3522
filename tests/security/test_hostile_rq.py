"""Hostile values in RQ's keys, beneath a worker at work: they show what happens and decide nothing, so it works on.

Nothing in them is run, imported, fetched or called, and what is no request for a key is thrown away with a line.
"""

from __future__ import annotations

import logging
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgpack
import pytest
import redis

from oarlock.sandbox.redis.embedded_redis import EmbeddedRedis
from oarlock.sandbox.redis.redis_binary import NoRedisBinary
from oarlock.workers.rq.job import FUNCTION, job_id
from tests.security.mini_fleet import KEY, QUEUE, Fleet
from tests.security.planting import BINARY, HUGE

pytestmark = pytest.mark.real

REQUESTS = f"rq:queue:{QUEUE}"
FAILED = f"rq:failed:{QUEUE}"
JOB = job_id(QUEUE, KEY)


class Payload:
    """Makes a file when it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self._marker = marker

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self._marker,)


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    try:
        server = EmbeddedRedis(tmp_path_factory.mktemp("hostile-rq")).start()
    except NoRedisBinary as error:
        pytest.skip(str(error))
    yield Fleet(server)
    server.stop()


def works_on(fleet: Fleet) -> None:
    """One more thing to do, and it is done by the same worker."""
    assert fleet.worker is not None
    holder = fleet.worker._holder
    fleet.forget_history()
    fleet.want(4 if fleet.replicas == 3 else 3)
    fleet.run(1_500)
    assert fleet.run(3_000, until_healthy=True), fleet.story()
    assert (fleet.crashes, fleet.leaves, fleet.cluster.wrong) == ([], [], [])
    assert fleet.worker._holder == holder


WORKER = "rq:worker:<name>"
KEYS = (REQUESTS, FAILED, f"rq:wip:{QUEUE}", "rq:queues", "rq:workers", f"rq:workers:{QUEUE}", WORKER, f"rq:job:{JOB}")


@pytest.mark.parametrize("name", KEYS)
@pytest.mark.parametrize("kind", ["another type", "binary", "huge"])
def test_a_hostile_value(fleet: Fleet, name: str, kind: str) -> None:
    assert fleet.worker is not None
    name = name.replace("<name>", fleet.worker._holder)
    admin = fleet.admin
    value: bytes | str = BINARY if kind == "binary" else "x" * HUGE
    if kind == "another type":
        admin.delete(name)
        admin.rpush(name, "x") if name != REQUESTS else admin.set(name, "x")
    elif name in (REQUESTS,):
        admin.rpush(name, value)
    elif name in (FAILED, f"rq:wip:{QUEUE}"):
        admin.zadd(name, {value: float("inf")})
    elif name.startswith(("rq:worker:", "rq:job:")):
        admin.delete(name)
        admin.hset(name, mapping={"birth": value, "last_heartbeat": value, "data": value, "origin": value})
        admin.rpush(REQUESTS, JOB)
        admin.zadd(FAILED, {JOB: float("inf")})
    else:
        admin.sadd(name, value)
    works_on(fleet)
    fleet.worker.run_maintenance_tasks()
    admin.delete(name, REQUESTS, FAILED)
    works_on(fleet)


def _job(**fields: bytes | str) -> dict[str, bytes | str]:
    return {"origin": QUEUE, "status": "failed", **fields}


def _of_function(function: str, *args: Any) -> bytes:
    packed: bytes = msgpack.packb([function, None, list(args), {}])
    return packed


NESTED = b"\x91" * 4_000

JOBS: dict[str, Callable[[Path], dict[str, bytes | str]]] = {
    "os.system": lambda marker: _job(data=_of_function("os.system", f"touch {marker}")),
    "a function of ours": lambda marker: _job(data=_of_function("oarlock.cli.main")),
    "a pickle": lambda marker: _job(data=pickle.dumps(Payload(marker))),
    "a pickle in its meta": lambda marker: _job(data=_of_function(FUNCTION, KEY), meta=pickle.dumps(Payload(marker))),
    "a callback": lambda marker: _job(
        data=_of_function("os.system", "true"), success_callback_name="os.system", failure_callback_name="os.system"
    ),
    "a deep nest": lambda marker: _job(data=NESTED),
    "too much": lambda marker: _job(data=b"\x00" * HUGE),
    "too long an origin": lambda marker: _job(data=_of_function(FUNCTION, KEY), origin="x" * HUGE),
    "another key under this id": lambda marker: _job(data=_of_function(FUNCTION, "kube-system/other")),
    "of another queue": lambda marker: {**_job(data=_of_function(FUNCTION, KEY)), "origin": "default"},
    "a key that is none": lambda marker: _job(data=_of_function(FUNCTION, "../../etc")),
    "numbers": lambda marker: _job(data=msgpack.packb([float("nan"), 2**64 - 1, -(2**63), {}])),
}
WELCOME = ("a pickle in its meta",)
"""The key is named as we name it; the rest is never read."""


@pytest.mark.parametrize("what", JOBS)
def test_a_hostile_job(fleet: Fleet, what: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    marker = tmp_path / "marker"
    caplog.set_level(logging.INFO, logger="oarlock.worker")
    fleet.admin.hset(f"rq:job:{JOB}", mapping=JOBS[what](marker))  # type: ignore[arg-type]
    fleet.admin.rpush(REQUESTS, JOB)
    fleet.admin.zadd(FAILED, {JOB: float("inf")})
    works_on(fleet)
    said = "event=requeued" if what in WELCOME else "event=refused"
    assert any(said in record.getMessage() for record in caplog.records), caplog.text
    assert all(len(record.getMessage()) < 500 for record in caplog.records)
    assert fleet.admin.llen(REQUESTS) == 0
    assert not marker.exists()
    fleet.admin.delete(f"rq:job:{JOB}", FAILED)


def test_a_worker_is_born_though_rqs_keys_are_not_rqs(fleet: Fleet) -> None:
    """And is entered once they are."""
    assert fleet.worker is not None
    assert fleet.leases is not None
    fleet.admin.delete("rq:workers")
    fleet.admin.set("rq:workers", "x")
    fleet.leases.release(fleet.worker._holder)
    fleet.worker = None
    fleet.run(1_000)
    assert fleet.worker is not None
    works_on(fleet)
    fleet.admin.delete("rq:workers", fleet.worker.key)
    works_on(fleet)
    members: set[bytes] = fleet.admin.smembers("rq:workers")  # type: ignore[assignment]
    assert fleet.worker.key.encode() in members
    assert isinstance(fleet.admin, redis.Redis)
