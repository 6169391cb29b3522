"""Jobs as data: what a KeyJob takes, what it refuses, and that nothing found in Redis is ever run."""

from __future__ import annotations

import json
import os
import pickle
import zlib
from pathlib import Path
from typing import Any

import msgpack
import pytest
from rq.exceptions import DeserializationError, InvalidJobOperation
from rq.job import Callback, Job
from rq.registry import StartedJobRegistry

from oarlock.workers.rq.job import FUNCTION, KeyJob, MsgpackSerializer, NotAKey, job_id, key_of
from oarlock.workers.rq.queue import KeyQueue
from tests.workers.fleet_rig import Rig

QUEUE = "replicaset"
KEY = "default/web"
ID = job_id(QUEUE, KEY)


def packed(*parts: Any) -> bytes:
    return zlib.compress(MsgpackSerializer.dumps(parts))


class Marker:
    """Unpickling it makes a file: the proof that something ran."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch {self.path}",)


@pytest.mark.parametrize("key", ["default/web", "web", "kube-system/a.b-c.9"])
def test_a_key_survives_the_way_through_a_job(key: str) -> None:
    assert key_of(QUEUE, job_id(QUEUE, key), packed(FUNCTION, None, [key], {})) == key


@pytest.mark.parametrize(
    ("identifier", "data"),
    [
        pytest.param(ID, packed("os.system", None, [KEY], {}), id="another function"),
        pytest.param(ID, packed(FUNCTION, "instance", [KEY], {}), id="an instance"),
        pytest.param(ID, packed(FUNCTION, None, [KEY], {"a": 1}), id="keyword arguments"),
        pytest.param(ID, packed(FUNCTION, None, [KEY, KEY], {}), id="two keys"),
        pytest.param(ID, packed(FUNCTION, None, [], {}), id="no key"),
        pytest.param(ID, packed(FUNCTION, None, KEY, {}), id="a key that is no list"),
        pytest.param(ID, packed(FUNCTION, None, [7], {}), id="a number"),
        pytest.param(ID, packed(FUNCTION, None, ["default/other"], {}), id="the id of another key"),
        pytest.param("forged", packed(FUNCTION, None, [KEY], {}), id="a foreign id"),
        pytest.param(job_id("daemonset", KEY), packed(FUNCTION, None, [KEY], {}), id="the id of another queue"),
        pytest.param(ID, packed(FUNCTION, None), id="too few parts"),
        pytest.param(ID, packed(7), id="no parts"),
        pytest.param(ID, pickle.dumps((FUNCTION, None, (KEY,), {})), id="a pickle"),
        pytest.param(ID, zlib.compress(pickle.dumps((FUNCTION, None, (KEY,), {}))), id="a compressed pickle"),
        pytest.param(ID, json.dumps([FUNCTION, None, [KEY], {}]).encode(), id="JSON"),
        pytest.param(ID, zlib.compress(b"\x00" * 10_000_000), id="a small value that becomes a large one"),
        pytest.param(ID, b"\xdd\xff\xff\xff\xff", id="a list said to have four thousand million parts"),
        pytest.param(ID, b"", id="nothing"),
    ],
)
def test_anything_but_a_key_of_the_queue_is_refused(identifier: str, data: bytes) -> None:
    with pytest.raises(NotAKey):
        key_of(QUEUE, identifier, data)


@pytest.mark.parametrize(
    "key", ["a/b/c", "a b", "../x", "a/b\nc", "", "/", "a/" + "b" * 300, "a:b/c", "a/b;", "\u00fc/b"]
)
def test_texts_that_are_no_keys_are_refused(key: str) -> None:
    with pytest.raises(NotAKey):
        key_of(QUEUE, job_id(QUEUE, key), packed(FUNCTION, None, [key], {}))


def test_ids_are_what_rq_allows_and_differ_by_key_and_queue(rig: Rig) -> None:
    ids = {job_id(queue, key) for queue in ("replicaset", "daemonset") for key in ("a/b", "ab", "a/B")}
    assert len(ids) == 6
    for each in ids:
        Job(each, connection=rig.admin)  # RQ checks it


def store(rig: Rig, job: Job) -> None:
    job.save()
    rig.admin.hset(job.key, "origin", QUEUE)


def poisoned(rig: Rig, marker: Path, how: str) -> str:
    """A stored job that makes ``marker`` when stock RQ reads or runs it. Returns its id."""
    job = Job.create("os.system", args=(f"touch {marker}",), connection=rig.admin, id=ID, origin=QUEUE, timeout=5)
    match how:
        case "pickle in the data":
            job._data = pickle.dumps(Marker(marker))
        case "pickle in the meta":
            job.meta = {"x": Marker(marker)}
        case "callback":
            command = Callback("os.system")
            job._failure_callback_name = job._success_callback_name = job._stopped_callback_name = command.name
        case "instance":
            job._func_name, job._instance, job._args = "system", os, (f"touch {marker}",)
            job._data = pickle.dumps(("system", Marker(marker), (), {}))
    store(rig, job)
    return ID


ATTACKS = ["function by name", "pickle in the data", "pickle in the meta", "instance"]


@pytest.mark.parametrize("how", ATTACKS)
def test_stock_rq_would_run_the_attack_and_a_keyjob_does_not(rig: Rig, tmp_path: Path, how: str) -> None:
    """The control shows that the attack is one."""
    marker = tmp_path / "ran"
    identifier = poisoned(rig, marker, how)

    job = KeyJob.fetch(identifier, connection=rig.admin)
    with pytest.raises(DeserializationError):
        _ = job.func_name
    with pytest.raises(InvalidJobOperation):
        _ = job.func
    with pytest.raises(InvalidJobOperation):
        job.perform()
    assert not marker.exists()

    Job.fetch(identifier, connection=rig.admin).perform() if how == "function by name" else read_all(rig, identifier)
    assert marker.exists()


def read_all(rig: Rig, identifier: str) -> None:
    try:
        _ = Job.fetch(identifier, connection=rig.admin).func_name
    except DeserializationError:
        pass


def test_callbacks_webhooks_retries_and_dependencies_are_dropped_on_reading(rig: Rig, tmp_path: Path) -> None:
    poisoned(rig, tmp_path / "ran", "callback")
    rig.admin.hset(
        KeyJob.key_for(ID),
        mapping={
            "webhooks": json.dumps([{"url": "http://127.0.0.1:1/", "job_status": "failed"}]),
            "retries_left": 3,
            "repeats_left": 3,
            "dependency_ids": json.dumps(["x"]),
            "group_id": "g",
        },
    )
    job = KeyJob.fetch(ID, connection=rig.admin)
    assert (job.success_callback, job.failure_callback, job.stopped_callback) == (None, None, None)
    assert (job.webhooks, job._dependency_ids) == ([], [])
    assert (job.retries_left, job.repeats_left, job.group_id) == (None, None, None)


def test_cleaning_the_started_registry_through_our_queue_runs_no_callback(
    rig: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What an operator's `rq info` does with an expired entry; with stock classes it runs the callback."""
    marker, registry = tmp_path / "ran", StartedJobRegistry.key_template.format(QUEUE)
    monkeypatch.setenv("FLEET_ATTACK_MARKER", str(marker))
    poisoned(rig, marker, "callback")
    rig.admin.hset(KeyJob.key_for(ID), "failure_callback_name", "tests.workers.rq.fleet_attack.mark")

    rig.admin.zadd(registry, {f"{ID}:1": 1})
    queue = KeyQueue(QUEUE, connection=rig.admin)
    StartedJobRegistry(queue=queue, job_class=queue.job_class, serializer=queue.serializer).cleanup()
    assert rig.admin.zcard(registry) == 0  # the entry was dealt with
    assert not marker.exists()

    rig.admin.hset(
        KeyJob.key_for(ID), "failure_callback_name", "tests.workers.rq.fleet_attack.mark"
    )  # reading it had dropped it
    rig.admin.zadd(registry, {f"{ID}:1": 1})
    StartedJobRegistry(QUEUE, connection=rig.admin).cleanup()
    assert marker.exists()


def test_nothing_can_be_enqueued_on_a_queue_of_keys(rig: Rig) -> None:
    queue = KeyQueue(QUEUE, connection=rig.admin)
    with pytest.raises(NotImplementedError, match="oarlock requeue"):
        queue.enqueue("os.getpid")
    assert rig.admin.llen(queue.key) == 0


def test_msgpack_with_more_than_a_job_needs_is_refused() -> None:
    with pytest.raises(ValueError, match="too many"):
        MsgpackSerializer.loads(msgpack.packb("x" * 5_000))
