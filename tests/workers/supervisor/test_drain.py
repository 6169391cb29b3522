"""A worker that is drained ends its batch, leaves and is replaced; a supervisor that is drained has no workers then."""

from __future__ import annotations

import os
import signal

from rq.command import send_shutdown_command

from tests.workers.fleet_rig import Rig, until


def supervisor_of(rig: Rig, holder: str) -> str:
    text = rig.admin.hget(rig.broker.keys.of("holders"), holder)
    assert text is not None
    return text.decode().split()[0].removeprefix("supervisor=")


def begin_slow_turn(rig: Rig) -> None:
    rig.add("default/slow-1")
    until(lambda: rig.begun("default/slow-1"))


def test_a_drained_worker_ends_its_turn_and_another_takes_its_place(rig: Rig) -> None:
    rig.fleet(1)
    (holder,) = rig.pids()
    begin_slow_turn(rig)
    assert rig.broker.drain("drain", holder, "by=me") == [holder]
    rig.add("default/ok-1")
    until(lambda: rig.ended("default/ok-1"))
    assert rig.ended("default/slow-1") == rig.begun("default/slow-1") == 1
    assert rig.failures("default/slow-1") == 0
    until(lambda: holder not in rig.pids())  # the list tells of an end with the next beginning
    assert "reason=drained" in rig.log()


def test_an_idle_worker_leaves_too(rig: Rig) -> None:
    rig.fleet(1)
    (holder,) = rig.pids()
    rig.broker.drain("drain", holder, "by=me")
    until(lambda: holder not in rig.workers() and len(rig.workers()) == 1)


def test_a_drained_supervisor_has_no_workers_until_it_is_undrained(rig: Rig) -> None:
    process = rig.fleet(2)
    supervisor = supervisor_of(rig, next(iter(rig.pids())))
    begin_slow_turn(rig)
    assert len(rig.broker.drain("drain", supervisor, "by=me") or ()) == 2
    until(lambda: "drained" in rig.log() and not rig.workers())
    assert rig.ended("default/slow-1") == 1
    rig.add("default/ok-1")
    assert process.poll() is None, "else whatever started it would start it again"
    rig.broker.drain("undrain", supervisor, "by=me")
    until(lambda: rig.ended("default/ok-1"))
    until(lambda: len(rig.pids()) == 2)


def test_a_drained_supervisor_ends_when_it_is_asked_to(rig: Rig) -> None:
    process = rig.fleet(1)
    (holder,) = rig.pids()
    rig.broker.drain("drain", supervisor_of(rig, holder), "by=me")
    until(lambda: not rig.workers())
    os.kill(process.pid, signal.SIGTERM)
    until(lambda: process.poll() is not None)
    assert process.poll() == 0


def test_a_lone_worker_that_is_drained_ends(rig: Rig) -> None:
    process = rig.rq_worker()
    ((holder, _),) = rig.admin.hgetall(rig.broker.keys.of("holders")).items()
    rig.broker.drain("drain", holder.decode(), "by=me")
    until(lambda: process.poll() is not None)
    assert process.poll() == 0
    until(lambda: not rig.admin.exists(rig.broker.keys.of("holders")))  # its watchdog strikes it off, once it has ended


def test_the_request_of_rq_does_the_same_to_a_worker_that_hears_it(rig: Rig) -> None:
    rig.fleet(1)
    (holder,) = rig.pids()
    begin_slow_turn(rig)
    send_shutdown_command(rig.admin, holder)
    until(lambda: holder not in rig.workers() and len(rig.workers()) == 1)
    assert rig.ended("default/slow-1") == 1
    assert rig.state("default/slow-1") is None
