"""Renewals, releases and timers, on a clock moved by hand."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Sequence

import pytest
from redis.exceptions import NoPermissionError

from oarlock.broker.connection.client import BadRedisUrl
from oarlock.broker.epoch import Seen
from oarlock.broker.values.errors import BrokerUnreachable, EpochOver
from oarlock.workers.epoch.epoch_search import EpochSearch
from oarlock.workers.process.child import NOT_STARTED_PAUSE_MS
from oarlock.workers.process.settings import Settings
from oarlock.workers.supervisor import position, supervisor
from oarlock.workers.supervisor.lease_manager import RETRY_MS, LeaseManager
from oarlock.workers.supervisor.process_list import Process
from oarlock.workers.supervisor.queue_anew import QueueAnew
from tests.manual_clock import ManualClock


class ScriptedBroker:
    """Notes every call; ``silent`` and ``over`` make calls fail."""

    def __init__(self) -> None:
        self.calls: list[tuple[object, ...]] = []
        self.silent = self.over = False
        self.lost: list[str] = []
        self.next_in_ms: int | None = None

    def _call(self, *call: object) -> None:
        if self.silent:
            raise BrokerUnreachable("silent")
        if self.over:
            raise EpochOver("over")
        self.calls.append(call)

    def register(self, holder: str, supervisor: str, queues: Sequence[str]) -> bool:
        self._call("register", holder)
        return True

    def renew(self, holders: Sequence[str], *, lease_ms: int) -> list[str]:
        self._call("renew", tuple(holders), lease_ms)
        return self.lost

    def release(self, holder: str, *, blamed: str = "", ended: str = "") -> list[str]:
        self._call("release", holder, blamed)
        return ["replicaset:a/b"]

    def reclaim(self, limit: int = 200) -> list[str]:
        self._call("reclaim")
        return []

    def due(self, limit: int = 500) -> tuple[int, int | None]:
        self._call("due")
        return 0, self.next_in_ms

    def count(self, name: str) -> int:
        return sum(call[0] == name for call in self.calls)


class ScriptedTimer:
    def __init__(self) -> None:
        self.socket, self.other = socket.socketpair()
        self.starts, self.token, self.broken = 0, True, False

    def start(self) -> socket.socket:
        self.starts += 1
        return self.socket

    def take(self) -> bool:
        if self.broken:
            raise BrokerUnreachable("hung up")
        return self.token

    def close(self) -> None: ...


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def broker() -> ScriptedBroker:
    return ScriptedBroker()


@pytest.fixture
def timer() -> ScriptedTimer:
    return ScriptedTimer()


@pytest.fixture
def leases(broker: ScriptedBroker, timer: ScriptedTimer, clock: ManualClock) -> LeaseManager:
    return LeaseManager(broker, timer, Settings(), clock)


def test_all_holders_are_renewed_in_one_call_a_second(
    leases: LeaseManager, broker: ScriptedBroker, clock: ManualClock
) -> None:
    for _ in range(50):
        leases.run_due(["w-1", "w-2"])
        clock.advance(100)
    assert [call for call in broker.calls if call[0] == "renew"] == [("renew", ("w-1", "w-2"), 5_000)] * 5
    assert broker.count("reclaim") == 5


def test_lost_holders_are_reported(leases: LeaseManager, broker: ScriptedBroker) -> None:
    broker.lost = ["w-2"]
    assert leases.run_due(["w-1", "w-2"]) == ["w-2"]


def test_renewals_expire_a_second_before_the_lease_counted_from_before_they_were_sent(
    leases: LeaseManager, broker: ScriptedBroker, clock: ManualClock
) -> None:
    leases.run_due(["w-1"])
    broker.silent = True
    clock.advance(3_999)
    leases.run_due(["w-1"])
    assert not leases.expired(clock.mono_ms())
    clock.advance(1)
    assert leases.expired(clock.mono_ms())
    assert not leases.answered
    broker.silent = False
    clock.advance(200)
    leases.run_due(["w-1"])
    assert not leases.expired(clock.mono_ms())
    assert leases.answered


@pytest.mark.parametrize(("lease_ms", "renew_every_ms", "expires_ms"), [(3_000, 900, 2_000), (900, 250, 600)])
def test_those_of_a_short_lease_expire_a_third_of_it_before(
    broker: ScriptedBroker, clock: ManualClock, lease_ms: int, renew_every_ms: int, expires_ms: int
) -> None:
    settings = Settings(lease_ms=lease_ms, renew_every_ms=renew_every_ms, request_timeout_ms=200, send_margin_ms=100)
    leases = LeaseManager(broker, ScriptedTimer(), settings, clock)
    leases.run_due(["w-1"])
    broker.silent = True
    clock.advance(expires_ms - 1)
    assert not leases.expired(clock.mono_ms())
    clock.advance(1)
    assert leases.expired(clock.mono_ms())


def test_a_silent_redis_is_asked_again_five_times_a_second_not_in_a_busy_loop(
    leases: LeaseManager, broker: ScriptedBroker, clock: ManualClock
) -> None:
    broker.silent = True
    rounds = 0
    end_ms = clock.mono_ms() + 3_000
    while clock.mono_ms() < end_ms:
        leases.run_due([])
        rounds += 1
        clock.advance(max(0, leases.next_ms() - clock.mono_ms()))
        assert rounds < 20
    assert 14 <= rounds <= 16


def test_a_release_that_was_not_answered_is_made_up_for_with_its_blame(
    leases: LeaseManager, broker: ScriptedBroker, clock: ManualClock
) -> None:
    leases.run_due(["w-1"])
    broker.silent = True
    assert leases.release("w-1", "replicaset:a/b") == []
    assert leases.release("w-2", "") == []
    assert leases.owes_release
    broker.silent = False
    clock.advance(1_000)
    leases.run_due([])
    assert ("release", "w-1", "replicaset:a/b") in broker.calls
    assert ("release", "w-2", "") in broker.calls
    assert not leases.owes_release
    clock.advance(1_000)
    leases.run_due([])
    assert broker.count("release") == 2


def test_delayed_keys_are_queued_at_their_time_and_no_call_is_made_in_between(
    leases: LeaseManager, broker: ScriptedBroker, clock: ManualClock
) -> None:
    broker.next_in_ms = 300
    leases.run_due([])
    assert leases.next_ms() - clock.mono_ms() == 300
    before = len(broker.calls)
    clock.advance(299)
    leases.run_due([])
    assert len(broker.calls) == before
    clock.advance(1)
    broker.next_in_ms = None
    leases.run_due([])
    assert broker.calls[before:] == [("due",)]
    assert leases.next_ms() - clock.mono_ms() == 700  # the next renewal


def test_a_timer_token_makes_it_look_what_is_due(
    leases: LeaseManager, broker: ScriptedBroker, timer: ScriptedTimer
) -> None:
    leases.run_due([])
    assert leases.timer_socket is timer.socket
    before = broker.count("due")
    broker.next_in_ms = 40
    leases.timer_ready()
    assert broker.count("due") == before + 1
    timer.token = False
    leases.timer_ready()
    assert broker.count("due") == before + 1


def test_a_timer_connection_that_breaks_is_made_again(
    leases: LeaseManager, timer: ScriptedTimer, clock: ManualClock
) -> None:
    leases.run_due([])
    timer.broken = True
    leases.timer_ready()
    assert leases.timer_socket is None
    clock.advance(1)
    leases.run_due([])
    assert leases.timer_socket is timer.socket
    assert timer.starts == 2


def test_the_end_of_an_epoch_is_not_swallowed(leases: LeaseManager, broker: ScriptedBroker) -> None:
    broker.over = True
    with pytest.raises(EpochOver):
        leases.run_due(["w-1"])
    with pytest.raises(EpochOver):
        leases.release("w-1")


@pytest.mark.parametrize(
    "refusal",
    [
        pytest.param(NoPermissionError("no permissions to run evalsha"), id="a user without the rights"),
        pytest.param(BadRedisUrl("--redis-tls-cert 'tls.crt' cannot be read"), id="a certificate that is replaced"),
    ],
)
def test_what_may_pass_is_said_and_waited_for(
    refusal: Exception, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A supervisor that ended over it would take its workers' release with it, and be started again for nothing."""
    search, answers = EpochSearch(Settings()), [refusal, None]

    def live() -> tuple[Seen | None, str]:
        answer = answers.pop(0)
        if answer is not None:
            raise answer
        return Seen(1, "r", "r", "OPEN"), ""

    monkeypatch.setattr(search, "_live", live)
    assert search.look(1_000) is None
    assert search.next_ms > 1_000
    assert str(refusal) in caplog.text
    found = search.look(search.next_ms)
    assert found is not None
    assert found.epoch == 1


def test_where_no_worker_can_be_forked_its_holder_is_released_and_the_others_live(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fork(*_: object) -> None:
        raise BlockingIOError("Resource temporarily unavailable")

    monkeypatch.setattr(position, "fork_process", fork)
    clock = ManualClock()
    one = supervisor.Supervisor(Settings(), 1, lambda identity: 0, clock=clock)
    one._seen = Seen(1, "r", "r", "OPEN")
    broker, (place,) = ScriptedBroker(), one._positions
    leases = LeaseManager(broker, ScriptedTimer(), Settings(), clock)
    one._fill(place, leases, 1_000)
    (registered, holder), (released, same, _) = broker.calls
    assert (registered, released, holder) == ("register", "release", same)
    assert place.process is None
    assert place.start_at_ms == clock.mono_ms() + NOT_STARTED_PAUSE_MS
    one._fill(place, leases, 2_000)
    assert caplog.text.count("start_failed") == 1, "it is tried again each second, and told once"


@pytest.mark.parametrize("settings", [Settings(), Settings(fleet_api_qps=10.0)], ids=["alone", "with an API budget"])
def test_a_supervisor_with_a_worker_to_start_waits_for_a_silent_redis_without_a_busy_loop(settings: Settings) -> None:
    clock, broker = ManualClock(), ScriptedBroker()
    broker.silent = True
    one = supervisor.Supervisor(settings, 1, lambda identity: 0, clock=clock)
    one._leases = leases = LeaseManager(broker, ScriptedTimer(), settings, clock)
    one._anew = QueueAnew(["replicaset"])
    rounds, end_ms = 0, clock.mono_ms() + 3_000
    while clock.mono_ms() < end_ms:
        one._keep_workers(leases, clock.mono_ms())
        rounds += 1
        clock.advance(max(0, one._next_ms() - clock.mono_ms()))
        assert rounds < 20


def test_the_list_of_processes_is_told_once_there_is_room_again(caplog: pytest.LogCaptureFixture) -> None:
    clock, told, asked = ManualClock(), [], []
    refusals = [OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) for _ in range(3)]

    def write(processes: Sequence[Process]) -> None:
        asked.append(clock.mono_ms())
        if refusals:
            raise refusals.pop()
        told.append([each.role for each in processes])

    one = supervisor.Supervisor(Settings(), 1, lambda identity: 0, on_change=[write], clock=clock)
    begun_ms = clock.mono_ms()
    for _ in range(60):
        one._tell()
        clock.advance(100)
    assert told == [["supervisor"]]
    assert [ms - begun_ms for ms in asked] == [0, 1_000, 2_000, 3_000]
    assert caplog.text.count("event=untold") == 1


def test_a_supervisor_that_is_to_end_waits_no_longer_than_a_lease_for_a_silent_redis() -> None:
    """From then on others take back what its workers held; Kubernetes kills it after 30 s."""
    clock, broker = ManualClock(), ScriptedBroker()
    one = supervisor.Supervisor(Settings(), 1, lambda identity: 0, clock=clock)
    one._leases = LeaseManager(broker, ScriptedTimer(), Settings(), clock)
    broker.silent = True
    one._leases.release("w-1")
    clock.advance(60_000)
    one._stop()
    assert not one._done()
    clock.advance(Settings().lease_ms)
    assert not one._done()
    clock.advance(1)
    assert one._done()


def test_a_supervisor_without_workers_keeps_no_core_busy_while_redis_refuses() -> None:
    """Workers are due, and none is started before Redis answers: it comes round when Redis is asked again."""
    clock, broker = ManualClock(), ScriptedBroker()
    one = supervisor.Supervisor(Settings(), 1, lambda identity: 0, clock=clock)
    one._leases = leases = LeaseManager(broker, ScriptedTimer(), Settings(), clock)
    broker.silent = True
    for _ in range(2):  # the timer is started in a round of its own
        leases.run_due([])
    assert one._next_ms() - clock.mono_ms() == RETRY_MS
    broker.silent = False
    clock.advance(RETRY_MS)
    leases.run_due([])
    assert one._next_ms() <= clock.mono_ms(), "now one is started at once"
