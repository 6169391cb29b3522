"""A worker started by RQ's own command line, handled with RQ's own tools: it is one of RQ's workers."""

from __future__ import annotations

import json
import os
import pickle
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from rq.command import send_command, send_shutdown_command, send_stop_job_command
from rq.job import Job
from rq.registry import FailedJobRegistry
from rq.results import Result

from oarlock.workers.rq.job import FUNCTION, KeyJob, MsgpackSerializer, job_id
from tests.workers.fleet_puppet import BATCHES, CANCELLED, QUEUE, SICK
from tests.workers.fleet_rig import PUPPET_WORKER, RQ, Rig, alive, until

KEY_QUEUE = ("--queue-class", "oarlock.workers.rq_queue.KeyQueue")


def only_worker(rig: Rig) -> str:
    (name,) = until(rig.workers)
    return name


def failed(rig: Rig) -> list[str]:
    return FailedJobRegistry(QUEUE, connection=rig.admin).get_job_ids()


def watchdogs_of(pid: int) -> list[int]:
    """Children of a process."""
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_rq_info_shows_the_worker_its_state_and_the_keys_that_wait(rig: Rig) -> None:
    rig.rq_worker("--name", "tom")
    rig.add(*(f"default/ok-{n}" for n in range(20)))
    until(lambda: rig.ended("default/ok-19"))
    # The count may come with the worker's last word of being busy: it says once a second what it does.
    finished = ("jobs: 20 finished, 0 failed", ": idle replicaset.")
    until(lambda: all(each in rig.rq("info", *KEY_QUEUE) for each in finished))
    said = rig.rq("info", *KEY_QUEUE)
    assert "tom (" in said
    assert "1 workers, 1 queues" in said
    assert "tom (" in rig.rq("info", *KEY_QUEUE, "-w", "oarlock.workers.rq_worker.FleetWorker")

    rig.rq("suspend")
    until(lambda: "suspended replicaset" in rig.rq("info", *KEY_QUEUE))
    rig.add(*(f"default/ok-wait{n}" for n in range(7)))
    assert "replicaset   |███████ 7, 0 executing, 0 finished, 0 failed" in rig.rq("info", *KEY_QUEUE)
    time.sleep(0.3)
    assert rig.ended("default/ok-wait0") == 0
    rig.rq("resume")
    until(lambda: rig.ended("default/ok-wait6"))


def test_a_key_that_keeps_failing_is_in_the_failed_registry_once_and_leaves_it_when_it_is_well(rig: Rig) -> None:
    rig.admin.set(SICK, 1)
    rig.rq_worker()
    rig.add("default/sick-1")
    until(lambda: failed(rig))
    assert rig.failures("default/sick-1") >= 5
    assert failed(rig) == [job_id(QUEUE, "default/sick-1")]
    assert "0 finished, 1 failed" in rig.rq("info")

    job = Job.fetch(failed(rig)[0], connection=rig.admin, serializer=MsgpackSerializer)
    assert job.description == "replicaset default/sick-1"
    result = Result.fetch_latest(job, serializer=MsgpackSerializer)
    assert result is not None
    assert 'raise RuntimeError(f"{key} is sick")' in str(result.exc_string)
    assert result.worker_name == only_worker(rig)

    rig.admin.delete(SICK)
    rig.add("default/sick-1")
    until(lambda: rig.ended("default/sick-1"))
    until(lambda: not failed(rig))
    assert not rig.admin.exists(job.key)


@pytest.mark.parametrize("words", [("--all",), (job_id(QUEUE, "default/sick-1"),)])
def test_rq_requeue_with_default_classes_brings_another_turn_at_once(rig: Rig, words: tuple[str, ...]) -> None:
    rig.admin.set(SICK, 1)
    rig.rq_worker()
    rig.add("default/sick-1")
    until(lambda: rig.failures("default/sick-1") >= 6 and failed(rig))
    an_hour_later = {"default/sick-1": time.time() * 1_000 + 3_600_000}
    until(lambda: rig.admin.zadd(rig.broker.keys.delayed(QUEUE), an_hour_later, xx=True, ch=True), what="its delay")
    assert rig.state("default/sick-1") is None
    rig.admin.delete(SICK)
    assert "Requeueing 1 jobs" in rig.rq("requeue", "--queue", QUEUE, *words)
    until(lambda: rig.ended("default/sick-1"))
    until(lambda: rig.failures("default/sick-1") == 0)
    until(lambda: not rig.admin.exists("rq:queue:replicaset") and not failed(rig))


def test_a_turn_that_overruns_its_time_is_ended_on_both_threads_and_its_key_tried_again(
    make_rig: Callable[..., Rig],
) -> None:
    rig = make_rig(turn_limit_ms=1_000)
    rig.rq_worker()
    rig.add("default/held-1")
    until(lambda: rig.failures("default/held-1") >= 1)
    until(lambda: rig.admin.lrange(CANCELLED, 0, 0) == [b"default/held-1"])
    until(lambda: "TurnTookTooLong: Task exceeded maximum timeout value (1 seconds)" in rig.log())
    until(lambda: rig.begun("default/held-1") >= 2)
    rig.add("default/ok-1")
    assert rig.ended("default/held-1") == 0


def test_stop_job_ends_the_running_turn_and_no_other(rig: Rig) -> None:
    rig.rq_worker()
    name = only_worker(rig)
    rig.add("default/held-1")
    until(lambda: rig.begun("default/held-1"))
    send_command(rig.admin, name, "stop-job", job_id=job_id(QUEUE, "default/other"))
    send_command(rig.admin, name, "kill-horse")
    time.sleep(0.1)
    assert rig.failures("default/held-1") == 0
    send_command(rig.admin, name, "stop-job", job_id=job_id(QUEUE, "default/held-1"))
    until(lambda: rig.failures("default/held-1") == 1)
    until(lambda: rig.admin.lrange(CANCELLED, 0, -1) == [b"default/held-1"])
    until(lambda: rig.begun("default/held-1") == 2)


def test_a_long_turn_is_shown_as_a_job_in_work_and_can_be_stopped_by_its_id(rig: Rig) -> None:
    rig.rq_worker()
    name = only_worker(rig)
    rig.add("default/held-1")
    identifier = job_id(QUEUE, "default/held-1")
    until(lambda: rig.admin.hget(f"rq:worker:{name}", "current_job") == identifier.encode())
    assert 0 < rig.admin.ttl(f"rq:job:{identifier}") <= 90
    rig.broker.steer("pause", "all", "by=test")  # else its next turn is shown a second later
    send_stop_job_command(rig.admin, identifier, serializer=MsgpackSerializer)
    until(lambda: rig.failures("default/held-1") == 1)
    until(lambda: rig.admin.hget(f"rq:worker:{name}", "current_job") is None)


def test_warm_stop_ends_the_claimed_batch_and_leaves_nothing_locked(rig: Rig) -> None:
    keys = [f"default/crawl-{n}" for n in range(6)]
    rig.add(*keys)
    worker = rig.rq_worker()
    until(lambda: rig.begun(keys[1]))
    claimed = set(rig.locks())
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(30) == 0
    assert all(rig.ended(key) for key in claimed)
    assert rig.locks() == {}
    assert rig.workers() == set()
    assert all(rig.state(key) in (None, "queued") for key in keys)
    until(lambda: rig.admin.hlen(rig.broker.keys.of("holders")) == 0)


def test_a_stop_while_idle_is_immediate(rig: Rig) -> None:
    worker = rig.rq_worker()
    time.sleep(0.2)
    begun = time.monotonic()
    worker.send_signal(signal.SIGINT)
    assert worker.wait(30) == 0
    assert time.monotonic() - begun < 10, "RQ itself waits for minutes"


def test_a_second_signal_stops_in_the_middle_of_a_turn_and_the_keys_go_back_unblamed(rig: Rig) -> None:
    worker = rig.rq_worker()
    rig.add("default/held-1")
    until(lambda: rig.begun("default/held-1"))
    worker.send_signal(signal.SIGTERM)
    until(lambda: "warm shut down requested" in rig.log())
    time.sleep(1.1)  # RQ takes a second signal within a second for the same one
    assert worker.poll() is None
    worker.send_signal(signal.SIGTERM)
    worker.wait(10)
    until(lambda: rig.state("default/held-1") == "queued")
    assert rig.locks() == {}
    assert not rig.admin.exists(rig.broker.keys.crashes(QUEUE))


def test_remote_shutdown(rig: Rig) -> None:
    worker = rig.rq_worker()
    send_shutdown_command(rig.admin, only_worker(rig))
    assert worker.wait(20) == 0
    assert rig.workers() == set()


def test_a_killed_worker_s_keys_go_to_another_at_once_and_its_own_is_blamed(make_rig: Callable[..., Rig]) -> None:
    rig = make_rig(lease_ms=20_000)
    worker = rig.rq_worker()
    rig.add("default/held-1")
    until(lambda: rig.begun("default/held-1"))
    (watchdog,) = watchdogs_of(worker.pid)
    begun = time.monotonic()
    worker.kill()
    until(lambda: rig.state("default/held-1") == "queued")
    assert time.monotonic() - begun < 15, "the lease ends after 20 s: it must have been given back"
    assert rig.admin.hgetall(rig.broker.keys.crashes(QUEUE)) == {b"default/held-1": b"1"}
    until(lambda: not alive(watchdog))
    assert rig.workers() == set(), "RQ's lists do not show the dead"
    rig.rq_worker()
    until(lambda: rig.begun("default/held-1") == 2)


def test_a_worker_whose_watchdog_is_killed_leaves(rig: Rig) -> None:
    worker = rig.rq_worker()
    (watchdog,) = watchdogs_of(worker.pid)
    os.kill(watchdog, signal.SIGKILL)
    assert worker.wait(20) == 78
    assert "the watchdog is gone" in rig.log()


def test_a_watchdog_kills_its_stalled_worker(make_rig: Callable[..., Rig]) -> None:
    rig = make_rig(stall_ms=1_500, turn_limit_ms=1_000)
    worker = rig.rq_worker()
    rig.add("default/stop-1")
    assert worker.wait(30) == -signal.SIGKILL
    until(lambda: rig.state("default/stop-1") == "queued")
    assert not rig.admin.exists(rig.broker.keys.crashes(QUEUE)), "a kill by the watchdog carries no blame"


def test_a_watchdog_kills_its_worker_a_lease_after_a_signal_stopped_it(make_rig: Callable[..., Rig]) -> None:
    rig = make_rig(lease_ms=4_000, renew_every_ms=400)
    worker = rig.rq_worker()
    rig.add("default/stop-1")
    assert worker.wait(30) == -signal.SIGKILL
    until(lambda: rig.state("default/stop-1") == "queued")
    assert "stopped by a signal" in rig.log()


def test_a_worker_leaves_when_the_epoch_is_over(rig: Rig) -> None:
    worker = rig.rq_worker()
    rig.bootstrap()
    assert worker.wait(20) in (75, -signal.SIGKILL)


def test_burst_mode_works_until_the_queue_is_empty(rig: Rig) -> None:
    rig.add(*(f"default/ok-{n}" for n in range(30)))
    worker = rig.rq_worker("--burst")
    assert worker.wait(30) == 0
    assert all(rig.ended(f"default/ok-{n}") for n in range(30))


def test_a_worker_pool_of_rq_runs_them_too(rig: Rig) -> None:
    words = ("worker-pool", "-u", rig.url, "-w", PUPPET_WORKER, "-n", "2", QUEUE)
    pool = rig.start(RQ, *words)
    until(lambda: len(rig.workers()) == 2)
    rig.add("default/ok-1")
    until(lambda: rig.ended("default/ok-1"))
    pool.send_signal(signal.SIGTERM)
    pool.wait(30)
    until(lambda: rig.workers() == set())
    assert rig.admin.keys("rq:scheduler*") == []


def test_a_queue_without_a_controller_is_refused_with_the_names_there_are(rig: Rig) -> None:
    worker = rig.start(RQ, "worker", "-u", rig.url, "-w", PUPPET_WORKER, "nonsense")
    assert worker.wait(20) == 1
    assert "no such queue: nonsense; there are: replicaset" in rig.log()


def test_requests_that_are_no_keys_are_thrown_away_and_run_nothing(rig: Rig, tmp_path: Path) -> None:
    """Each attack would succeed on a stock worker of the same queue; the last one is a real request."""
    marker = tmp_path / "ran"
    command = f"touch {marker}"
    rig.rq_worker()

    def push(identifier: str, data: bytes) -> None:
        rig.admin.hset(KeyJob.key_for(identifier), mapping={"data": data, "origin": QUEUE, "created_at": ""})
        rig.admin.rpush(f"rq:queue:{QUEUE}", identifier)

    push("by-name", MsgpackSerializer.dumps(("os.system", None, [command], {})))
    push("json", json.dumps(["os.system", None, [command], {}]).encode())
    push("pickle", pickle.dumps(("os.system", None, (command,), {})))
    push("injected", MsgpackSerializer.dumps(("os.system", None, ["default/ok-injected"], {})))
    push(job_id(QUEUE, "a/b"), MsgpackSerializer.dumps((FUNCTION, None, ["default/ok-other"], {})))
    rig.admin.rpush(f"rq:queue:{QUEUE}", "no-such-job", b"\xff\xfe")
    push(job_id(QUEUE, "default/ok-real"), MsgpackSerializer.dumps((FUNCTION, None, ["default/ok-real"], {})))

    until(lambda: rig.ended("default/ok-real"))
    until(lambda: not rig.admin.exists(f"rq:queue:{QUEUE}"))
    assert rig.log().count("event=refused") == 7
    assert not rig.begun("default/ok-injected") + rig.begun("default/ok-other")
    assert not marker.exists()


def test_an_exception_handler_of_rq_hears_of_failed_turns(rig: Rig) -> None:
    rig.rq_worker("--exception-handler", "tests.workers.rq.fleet_handlers.note")
    rig.add("default/boom-1")
    until(lambda: rig.admin.lrange("rq:test:handled", 0, 0) == [b"replicaset default/boom-1: boom over default/boom-1"])


def test_keys_are_claimed_one_at_a_time_while_turns_are_slow(make_rig: Callable[..., Rig]) -> None:
    rig = make_rig(slow_turn_ms=95)  # what crawls takes longer on any machine, what ends at once hardly ever
    rig.add(*(f"default/crawl-{n}" for n in range(10)), *(f"default/ok-{n}" for n in range(50)))
    rig.rq_worker("--burst")
    until(lambda: rig.ended("default/ok-49"))
    # Eight slow ones before it is known; one by one until the first quick turn; then eight again. A machine that
    # stalls makes a quick turn slow, and then it is one by one until the next.
    sizes = [int(each) for each in rig.admin.lrange(BATCHES, 0, -1)]
    assert sizes[:4] == [8, 1, 1, 1]
    assert next(size for size in sizes[4:-1] if size > 1) == 8


def test_a_worker_started_before_any_epoch_waits_for_one(rig: Rig) -> None:
    rig.admin.flushall()
    worker = rig.start(Path(sys.executable).with_name("rq"), "worker", "-u", rig.url, "-w", PUPPET_WORKER, QUEUE)
    time.sleep(0.7)
    assert worker.poll() is None
    assert rig.workers() == set()
    rig.bootstrap()
    rig.add("default/ok-1")
    until(lambda: rig.ended("default/ok-1"))
