"""A fleet through Sentinel failovers under load: every pod asked for, never one too many."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.redis.failover.fleet_stage import DRAIN_S, FleetStage
from tests.redis.real_servers import until
from tests.redis.sentinel_rig import SentinelRig

REST_S = 10.0
"""Each server that was asked in vain used to hold a connection up for 2 s, and all of them for ever."""


@pytest.fixture
def stage(sentinels: SentinelRig, tmp_path: Path) -> Iterator[FleetStage]:
    one = FleetStage(tmp_path / "fleet", {user: sentinels.url(user) for user in ("ingestor", "worker")})
    try:
        yield one
    except BaseException:
        print(one.logs())
        raise
    finally:
        one.close()


@pytest.mark.timeout(300)
def test_failovers_under_load(sentinels: SentinelRig, stage: FleetStage) -> None:
    """One where the master dies, one by order of the Sentinels, one where the master hangs and comes back."""
    stage.await_open(after=0)
    stage.await_rest()
    took = {}
    for fault in ("killed", "ordered", "hanging"):
        before, master = stage.epoch()["epoch"], sentinels.master
        other = sentinels.replica
        stage.load()
        if fault == "killed":
            master.kill()
        elif fault == "ordered":
            sentinels.order_failover()
        else:
            master.signal(signal.SIGSTOP)
        took[fault] = stage.await_open(after=before)
        sentinels.await_master(other)
        if fault == "killed":
            master.start()
        elif fault == "hanging":
            master.signal(signal.SIGCONT)
            stage.await_made(51)
        took[fault]["rest_s"] = round(stage.await_rest(), 2)
        sentinels.await_replica()
    print(f"D {DRAIN_S} s, {took}, {stage.judge.created()} pods made")
    assert stage.judge.over_creations() == []
    assert stage.judge.created() > 50, "too little was done to prove anything"
    assert stage.epoch()["epoch"] >= 4


@pytest.mark.timeout(300)
def test_the_fleet_works_on_while_its_sentinels_say_nothing(sentinels: SentinelRig, stage: FleetStage) -> None:
    """One of them, two, all: they accept connections and never answer. Workers that begin then, and connections that
    are made anew, find the master where it was, and prove that it is the one of the epoch.
    """
    stage.await_open(after=0)
    stage.await_rest()
    epoch, master = stage.epoch()["epoch"], sentinels.master
    took = []
    for each in sentinels.sentinels:
        each.signal(signal.SIGSTOP)
        stage.load()
        before = set(stage.workers())
        for worker in before:
            os.kill(worker, signal.SIGKILL)
        until(lambda before=before: len(set(stage.workers()) - before) == 2, what="workers in place of those")
        took.append(stage.await_rest(REST_S))
        master.client().client_kill_filter(_type="normal", skipme=True)
        stage.load()
        goal = stage.judge.created() + 5
        until(lambda goal=goal: stage.judge.created() >= goal, REST_S, "pods")
        took.append(stage.await_rest(REST_S))
    print(f"rest after {took} s, {stage.judge.created()} pods made")
    for each in sentinels.sentinels:
        each.signal(signal.SIGCONT)
    assert stage.judge.over_creations() == []
    assert stage.epoch()["epoch"] == epoch
