"""Controllers that do things one by one, in a whole cluster: the real turns on threads."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from oarlock.broker.memory.state import EpochState
from oarlock.testing import Cluster
from oarlock.testing.fleet.data import MemoryData
from oarlock.testing.until import gone
from tests.sdk import records
from tests.sdk.records import check, dns, outside, poll, provider, runs, watchman

FINALIZER = "dns.example.com/record"


@pytest.fixture(scope="module")
def running() -> Iterator[Cluster]:
    with Cluster(operator=[dns, check, watchman, poll], controllers="") as cluster:
        yield cluster


@pytest.fixture
def cluster(running: Cluster, request: pytest.FixtureRequest) -> Iterator[Cluster]:
    with running.fresh(request.node.originalname) as fresh:
        yield fresh


def record(value: str = "192.0.2.1", name: str = "www") -> dict[str, Any]:
    return {
        "apiVersion": "dns.example.com/v1",
        "kind": "DnsRecord",
        "metadata": {"name": name},
        "spec": {"value": value},
    }


def checks(*wants: str, name: str = "a", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "test.example.com/v1",
        "kind": "Check",
        "metadata": {"name": name},
        "spec": {"wants": list(wants), **spec},
    }


def done(obj: Any) -> bool:
    return bool(obj and obj.get("status", {}).get("done"))


def events(cluster: Cluster, reason: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = cluster.wait(
        "events", lambda listed: [each for each in listed if each["reason"] == reason]
    )
    return [each for each in found if each["reason"] == reason]


def test_a_dns_record_is_written_and_undone(cluster: Cluster) -> None:
    key = f"{cluster.namespace}/www"
    cluster.create(record())
    www = cluster.wait("dnsrecords/www", lambda obj: obj.get("status") == {"value": "192.0.2.1"})
    assert provider.records[key] == "192.0.2.1"
    assert www["metadata"]["finalizers"] == [FINALIZER]
    (ref,) = cluster.get("configmap/www-record")["metadata"]["ownerReferences"]
    assert (ref["kind"], ref["uid"], ref["controller"]) == ("DnsRecord", www["metadata"]["uid"], True)
    assert events(cluster, "RecordWritten")[0]["involvedObject"]["uid"] == www["metadata"]["uid"]
    cluster.patch("dnsrecords/www", {"spec": {"value": "192.0.2.2"}})
    cluster.wait("dnsrecords/www", lambda obj: obj["status"] == {"value": "192.0.2.2"})
    assert provider.records[key] == "192.0.2.2"
    uid = www["metadata"]["uid"]
    assert {key.removeprefix(f"{uid}-") for key in provider.told[key]} == {"1", "2"}  # one for each generation
    cluster.delete("dnsrecords/www")
    cluster.wait("dnsrecords/www", gone)
    assert key not in provider.records


def test_the_finalizer_stays_until_what_was_done_outside_is_undone(cluster: Cluster) -> None:
    key = f"{cluster.namespace}/www"
    cluster.create(record())
    cluster.wait("dnsrecords/www", lambda obj: obj.get("status") == {"value": "192.0.2.1"})
    records.deletion_fails.set()
    try:
        cluster.delete("dnsrecords/www")
        assert "the provider is down" in events(cluster, "Failed")[0]["message"]
        assert cluster.get("dnsrecords/www")["metadata"]["finalizers"] == [FINALIZER]
        assert key in provider.records
    finally:
        records.deletion_fails.clear()
    cluster.wait("dnsrecords/www", gone)
    assert key not in provider.records


def test_an_object_without_our_finalizer_that_is_being_deleted_is_left_alone(cluster: Cluster) -> None:
    held = record()
    held["metadata"]["finalizers"] = ["example.com/other"]
    cluster.create(held)
    cluster.wait("dnsrecords/www", lambda obj: obj.get("status") == {"value": "192.0.2.1"})
    cluster.delete("dnsrecords/www")
    cluster.wait("dnsrecords/www", lambda obj: obj["metadata"]["finalizers"] == ["example.com/other"])
    cluster.patch("dnsrecords/www", {"metadata": {"finalizers": None}})
    cluster.wait("dnsrecords/www", gone)


def test_a_timer_runs_the_function_again_and_again(cluster: Cluster) -> None:
    key = f"{cluster.namespace}/clock"
    cluster.create({"apiVersion": "test.example.com/v1", "kind": "Watchman", "metadata": {"name": "clock"}})
    for count in (2, 3):
        until(lambda: waits(cluster, "watchman", key))
        cluster.time.advance(3601)
        until(lambda count=count: runs[key] == count)


def test_again_after_some_seconds(cluster: Cluster) -> None:
    key = f"{cluster.namespace}/a"
    cluster.create(checks("again", seconds=500.0))
    cluster.wait("checks/a", done)
    before = settled(cluster, key)
    cluster.time.advance(501)
    until(lambda: runs[key] > before)


def test_an_exception_is_tried_again_with_the_controllers_back_off(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR, "oarlock.worker"):
        cluster.create(checks("raise 4"))
        cluster.wait("checks/a", done)
    assert runs[f"{cluster.namespace}/a"] >= 5
    assert "KeyError: 'what was looked for'" in events(cluster, "Failed")[0]["message"]
    said = [each for each in caplog.records if "function_failed" in each.message]
    assert len(said) == 4
    assert "controller=check key=" in said[0].message
    assert said[0].exc_info is not None  # the traceback is in the log, not in the event


def test_never_holds_until_the_object_changes(cluster: Cluster) -> None:
    key = f"{cluster.namespace}/a"
    cluster.create(checks("never"))
    assert events(cluster, "Failed")[0]["message"] == "there is no such region"
    assert runs[key] == 1
    cluster.patch("checks/a", {"status": {"touched": True}}, subresource="status")
    cluster.create(checks(name="other"))
    cluster.wait("checks/other", done)
    assert runs[key] == 1  # its status is not the object's wish
    cluster.patch("checks/a", {"spec": {"wants": []}})
    cluster.wait("checks/a", done)


def test_generate_name_is_refused_with_the_reason(cluster: Cluster) -> None:
    cluster.create(checks("generate"))
    assert "nobody knows before the answer" in events(cluster, "Failed")[0]["message"]
    assert cluster.list("configmaps") == []
    assert runs[f"{cluster.namespace}/a"] == 1


def test_later_looks_again_when_it_said(cluster: Cluster) -> None:
    key = f"{cluster.namespace}/a"
    cluster.create(checks("later"))
    assert events(cluster, "Waiting")[0]["message"] == "it is being made"
    assert runs[key] == 1
    until(lambda: waits(cluster, "check", key))
    cluster.time.advance(61)
    cluster.wait("checks/a", done)


def test_create_patch_and_delete(cluster: Cluster) -> None:
    cluster.create(checks("create web", "patch web"))
    cluster.wait("configmap/web", lambda obj: obj and obj.get("data") == {"by": "patch"})
    cluster.wait("checks/a", done)
    cluster.patch("checks/a", {"spec": {"wants": ["delete web"]}})
    cluster.wait("configmap/web", gone)


def test_a_create_of_a_name_that_is_anothers_is_refused(cluster: Cluster) -> None:
    theirs = cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web"}, "data": {"a": "1"}})
    cluster.create(checks("conflict web"))
    obj = cluster.wait("checks/a", done)
    assert obj["status"]["refused"] == 409
    assert cluster.get("configmap/web") == theirs


def test_functions_that_block_hold_up_nobody(cluster: Cluster) -> None:
    keys = [f"{cluster.namespace}/slow-{number}" for number in range(3)]
    for number in range(3):
        cluster.create(checks("wait", name=f"slow-{number}"))
    until(lambda: all(outside[key] for key in keys))
    assert not any(done(each) for each in cluster.list("checks"))
    for key in keys:
        records.gates[key].set()
    for number in range(3):
        cluster.wait(f"checks/slow-{number}", done)


def test_async_functions_run_side_by_side_and_are_undone(cluster: Cluster) -> None:
    kind = {"apiVersion": "test.example.com/v1", "kind": "Poll"}
    for number in range(4):
        cluster.create({**kind, "metadata": {"name": f"p{number}"}})
    for number in range(4):
        cluster.wait(f"polls/p{number}", lambda obj: obj.get("status") == {"polled": True})
        assert cluster.get(f"configmap/p{number}")["data"] == {"a": "b"}
    assert records.met.done()
    cluster.delete("polls/p0")
    cluster.wait("polls/p0", gone)
    # At least once: the API answers the patch that lets an object go with the version before that, so a turn that comes
    # before the cache knows it undoes it again.
    assert set(outside[f"{cluster.namespace}/p0"]) == {"stopped"}


def test_a_claim_that_is_lost_meanwhile_ends_the_function_at_its_next_word(cluster: Cluster) -> None:
    key = f"{cluster.namespace}/a"
    cluster.create(checks("wait", "mine"))
    until(lambda: outside[key] == ["waits"])
    take_away(cluster, key)
    records.gates[key].set()
    until(lambda: "lost" in outside[key])
    cluster.wait("checks/a", done)  # by the run of the next claim, which began meanwhile
    assert outside[key].count("lost") == 1
    assert "mine" in outside[key]


def take_away(cluster: Cluster, key: str) -> None:
    """As if nobody had renewed the lease of the key: it is unlocked and queued for another worker."""
    with data_of(cluster) as state:
        lock = state.queue("check").locks[key]
        state.unlock("check", key, lock.holder)
        state.append("check", key, lock.since_ms)


def waits(cluster: Cluster, queue: str, key: str) -> bool:
    """Whether the turn over the key has ended, so that its timer runs."""
    with data_of(cluster) as state:
        return key in state.queue(queue).delayed


@contextmanager
def data_of(cluster: Cluster) -> Iterator[EpochState]:
    """The fleet's data, which nobody changes meanwhile."""
    fleet = cluster._running.fleet
    assert fleet is not None
    data = fleet._data
    assert isinstance(data, MemoryData)
    with data._store.changed:
        yield data._store.state


def until(condition: Any, limit_s: float = 30.0) -> None:
    """Wait for what no object tells."""
    end = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.003)


def settled(cluster: Cluster, key: str) -> int:
    """How often the function ran, once a later object is done."""
    name = f"after-{runs[key]}-{len(cluster.list('checks'))}"
    cluster.create(checks(name=name))
    cluster.wait(f"checks/{name}", done)
    return runs[key]
