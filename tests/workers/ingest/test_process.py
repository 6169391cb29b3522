"""Ingestors as users run them: processes, a real API over HTTP, a real Redis with its users and rights."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.workers.ingest.ingest_processes import QUICK, RUN, Child, Stage, until

START_LIMIT_S = 30.0
"""Until a process on a busy machine has loaded its code."""
DRAIN_S = QUICK.drain_ms / 1000
LONG_DRAIN_S = replace(QUICK, request_timeout_ms=5_000).drain_ms / 1000
"""What takes less has waited for no epoch; on a busy machine it takes more than a moment."""


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    made = Stage(tmp_path)
    yield made
    made.close()


def next_epoch(ingestors: Sequence[Child], after: int) -> int:
    """The one in which all of them are open. On a busy machine it may be a later one: who does not renew the Lease in
    time while it bootstraps is succeeded.
    """
    opened = {each: each.said()["epoch"] for each in ingestors}
    while len(set(opened.values())) > 1:
        behind = min(ingestors, key=lambda each: opened[each])
        opened[behind] = behind.said()["epoch"]
    (number,) = set(opened.values())
    assert number > after
    return int(number)


def test_two_ingestors_keep_the_cache_whatever_befalls_one_of_them(stage: Stage) -> None:
    uid = stage.cluster.create_owner("web", "a")
    for i in range(20):
        stage.cluster.create_pod(f"web-{i}", "a", "web", uid)
    first = stage.ingestor(request_timeout_ms=5_000)
    opened = first.said()
    assert (opened["event"], opened["epoch"]) == ("open", 1)
    second = stage.ingestor(request_timeout_ms=5_000)
    assert second.said()["epoch"] == 1
    assert stage.in_step()

    stage.cluster.create_pod("stray", "a")
    assert until(stage.in_step) < LONG_DRAIN_S
    first.end(signal.SIGKILL)
    stage.cluster.ask("DELETE", "/api/v1/namespaces/default/pods/web-0", {"gracePeriodSeconds": 0})
    assert until(stage.in_step) < LONG_DRAIN_S
    assert stage.server.epoch().epoch == 1

    stage.cluster.ask("POST", "/_oarlock/faults", {"action": "cutHistory"})
    for i in range(5):
        stage.cluster.create_pod(f"later-{i}", "a", "web", uid)
    until(stage.in_step)

    code, took_s = second.end()
    assert code == 0, second.errors
    assert took_s < LONG_DRAIN_S
    assert stage.ingestor(request_timeout_ms=5_000).said()["epoch"] == 1, "the epoch outlives its ingestors"


def test_a_flush_and_a_restart_of_redis_each_end_in_a_new_epoch(stage: Stage) -> None:
    uid = stage.cluster.create_owner("web", "a")
    ingestors = [stage.ingestor(), stage.ingestor()]
    first = next_epoch(ingestors, 0)
    lost_s = time.monotonic()
    stage.server.admin.flushall()
    second = next_epoch(ingestors, first)
    assert time.monotonic() - lost_s >= DRAIN_S
    stage.redis.kill()
    time.sleep(0.3)
    stage.redis.start()
    stage.cluster.create_pod("late", "a", "web", uid)
    next_epoch(ingestors, second)
    until(stage.in_step)
    assert [each.process.poll() for each in ingestors] == [None, None]


def test_a_bootstrapper_killed_in_the_drain_is_succeeded(stage: Stage) -> None:
    ingestors = [stage.ingestor(request_timeout_ms=2_500), stage.ingestor(request_timeout_ms=2_500)]  # D: seven seconds
    first = next_epoch(ingestors, 0)
    stage.server.admin.flushall()
    until(lambda: stage.server.epoch().epoch > first)
    lease = stage.cluster.ask("GET", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/oarlock")
    assert lease["metadata"]["annotations"]["oarlock.io/phase"] == "DRAIN"
    pid = lease["spec"]["holderIdentity"].split("-")[-2]
    bootstrapper = next(each for each in ingestors if str(each.process.pid) == pid)
    bootstrapper.end(signal.SIGKILL)
    ingestors.remove(bootstrapper)
    next_epoch(ingestors, first + 1)


def test_an_api_server_that_lost_its_history_is_a_new_epoch(stage: Stage) -> None:
    uid = stage.cluster.create_owner("web", "a")
    for i in range(10):
        stage.cluster.create_pod(f"web-{i}", "a", "web", uid)
    ingestor = stage.ingestor()
    assert ingestor.said()["epoch"] == 1
    until(stage.in_step)
    stage.cluster.child.end(signal.SIGKILL)
    stage.cluster.start()
    assert ingestor.said(30.0)["epoch"] == 2
    until(stage.in_step)
    assert stage.server.cache(2, "pods") == {}
    # The Lease went with the history: whichever of the two is missed first.
    why = ("went back", 'event=left epoch=1 why="there is no Lease"')
    until(lambda: any(each in text for each in why for text in list(ingestor.errors)), what="".join(ingestor.errors))


def test_a_second_fleet_is_refused_with_one_line(stage: Stage) -> None:
    assert stage.ingestor().said()["epoch"] == 1
    assert stage.server.admin.get("oarlock:1:{0}:fleet") == b"oarlock"
    other = stage.ingestor(fleet_id="blue")
    assert other.ended(START_LIMIT_S) == 2
    told = [text for text in other.errors if text.startswith("oarlock: ")]
    assert len(told) == 1
    assert "fleet 'oarlock'" in told[0]
    assert "fleet 'blue'" in told[0]


def test_a_redis_that_is_absent_or_refuses_the_password_is_told_in_one_line(stage: Stage) -> None:
    port = stage.redis.port
    for url, told in (
        ("redis://127.0.0.1:1/0", "cannot use the Redis"),
        (f"redis://ingestor:wrong@127.0.0.1:{port}/0", "password"),
        ("http://127.0.0.1/", "it looks like redis://"),
    ):
        child = stage.ingestor(redis_url=url)
        assert child.ended(START_LIMIT_S) == 2
        lines = [text for text in child.errors if not text.startswith("INFO")]
        assert len(lines) == 1, lines
        assert told in lines[0]
        assert "wrong" not in lines[0]


def test_a_redis_that_comes_late_is_waited_for_where_that_is_asked(stage: Stage) -> None:
    stage.redis.kill()
    child = stage.ingestor(wait_for_redis_s=30.0)
    time.sleep(0.5)
    stage.redis.start()
    assert child.said()["epoch"] == 1


def test_a_kubeconfig_that_is_not_there_is_told_in_one_line(stage: Stage) -> None:
    child = stage.ingestor(kubeconfig="/nowhere/kubeconfig")
    assert child.ended(START_LIMIT_S) == 2
    assert [text for text in child.errors if "/nowhere/kubeconfig" in text]
    assert stage.server.epoch().epoch == 0, "nothing half done"


def test_who_cannot_say_that_an_epoch_is_open_ingests_all_the_same(stage: Stage) -> None:
    """Its output is on a full disk, or a pipe whose reader has gone."""
    full = "import os, sys; os.dup2(os.open('/dev/full', os.O_WRONLY), sys.stdout.fileno()); "
    child = Child([sys.executable, "-c", full + RUN, "0"], stage.settings.to_env())
    stage.children.append(child)
    stage.cluster.create_pod("stray", "a")
    until(lambda: "event=untold" in "".join(child.errors), START_LIMIT_S)
    until(stage.in_step)
    code, _ = child.end()
    assert (code, sum("event=untold" in text for text in child.errors)) == (0, 1)


def test_a_second_signal_while_it_closes_leaves_no_bootstrap_behind(stage: Stage) -> None:
    twice = (
        "import os, signal; from oarlock.workers.epoch.coordinator import EpochCoordinator as C; resign = C.resign; "
        "C.resign = lambda self: (os.kill(os.getpid(), signal.SIGTERM), resign(self))[1]; "
    )
    child = Child([sys.executable, "-c", twice + RUN, "0"], stage.settings.to_env())
    stage.children.append(child)
    assert child.said()["epoch"] == 1
    stage.server.admin.flushall()
    until(lambda: stage.server.epoch().epoch >= 2)
    code, _ = child.end()
    assert code == 0, "".join(child.errors)
    lease = stage.cluster.ask("GET", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/oarlock")
    assert lease["metadata"]["annotations"]["oarlock.io/phase"] == "DRAIN"
    assert not lease["spec"].get("holderIdentity"), "another may take over at once"
