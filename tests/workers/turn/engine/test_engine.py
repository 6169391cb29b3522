"""The engine: until when it sends, what it does in an outage, whom it serves, what it tells."""

from __future__ import annotations

from concurrent.futures import Future
from functools import partial
from typing import Any

import msgspec
import pytest

from oarlock.broker.memory.state import ExpectHash
from oarlock.broker.values.claims import Batch, Claimed, ClaimLimits, Idle
from oarlock.broker.values.errors import BrokerUnreachable, ClaimLost, EpochOver
from oarlock.broker.values.turns import Finish, Verdict
from oarlock.cluster.answer import NO_ANSWER, NOT_SENT, PAST_DEADLINE, Answer
from oarlock.cluster.listing import ListError
from oarlock.cluster.resources import PODS
from oarlock.controllers.objects.selector import LabelSelector
from oarlock.controllers.registry import CONTROLLERS
from oarlock.workers.turn.engine.engine import Engine
from oarlock.workers.turn.engine.turn_engine import LOAD_MIN, OUTAGE_AFTER, load_spec
from oarlock.workers.turn.steps import Grant, TurnFailed, Write
from tests.simulation.world import refusal
from tests.workers.turn.turn_rig import UNANSWERED, WORKER, Rig, RigApi, fail_with
from tests.workers.turn.turns import arrived, through

KEY = "default/web"


def slowed(rig: Rig, step: str, by_ms: int, monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """Calls of a step of the broker take so long. Returns the calls."""
    real, calls = getattr(rig.broker, step), []

    def slow(*args: Any, **kwargs: Any) -> Any:
        calls.append(args)
        result = real(*args, **kwargs)
        rig.clock.advance(by_ms)
        return result

    monkeypatch.setattr(rig.broker, step, slow)
    return calls


# -- until when


def test_the_lease_counts_from_before_the_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the call took is lost: Redis may have begun the lease as soon as it was sent."""
    rig = Rig()
    rig.owner(0)
    slowed(rig, "claim", 700, monkeypatch)
    asked_ms = rig.clock.mono_ms()
    rig.turns()
    ((status,), deadline_ms, prepaid) = rig.api.sends[0]
    assert (status.verb, prepaid) == ("status", False)
    assert deadline_ms == asked_ms + rig.settings.lease_ms - rig.settings.send_margin_ms


def test_a_record_begins_the_lease_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Rig()
    rig.owner(40)
    records = slowed(rig, "announce", 300, monkeypatch)
    begun_ms = rig.clock.mono_ms()
    rig.turns()
    deadlines = [deadline_ms - begun_ms for writes, deadline_ms, _ in rig.api.sends if writes[0].verb == "create"]
    assert deadlines == [*[4_500] * 5, 4_800], "each wave from before the record that names it"
    assert len(records) == 2


def test_a_wave_that_comes_late_looks_whether_the_claim_is_still_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was announced with the first one. Now somebody else may have the key, and counts the time in which it lands
    from there: nothing of it is sent.
    """
    rig = Rig()
    rig.owner(3)
    rig.api.refuse = lambda _: rig.clock.advance(2_001)  # refuses nothing: the answer takes its time
    records = slowed(rig, "announce", 0, monkeypatch)
    begun_ms = rig.clock.mono_ms()
    batch = rig.claim()
    through(rig.engine, batch, batch.claims[0])
    assert [len(args[2]) for args in records][:2] == [3, 0]
    assert rig.api.sends[1][1] == begun_ms + 2_001 + 4_500, "the lease began anew"

    other = Rig()
    other.owner(3)

    def lose(_: Write) -> None:
        other.broker.release(WORKER)
        other.clock.advance(2_001)

    other.api.refuse = lose
    batch = other.claim()
    with pytest.raises(ClaimLost):
        through(other.engine, batch, batch.claims[0])
    assert [len(writes) for writes, _, _ in other.api.sends] == [1]


def test_what_is_not_recorded_looks_whether_the_claim_is_still_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """When half of the lease is over: an empty record begins it anew, or says that it is lost."""
    rig = Rig()
    rig.owner(0)
    slowed(rig, "claim", 2_001, monkeypatch)
    records = slowed(rig, "announce", 0, monkeypatch)
    asked_ms = rig.clock.mono_ms()
    rig.turns()
    assert [(args[1], args[2]) for args in records] == [("", ())]
    assert rig.api.sends[0][1] == asked_ms + 2_001 + 4_500
    assert rig.queue.expectations == {}, "it announced nothing"


def test_a_young_lease_is_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Rig()
    rig.owner(0)
    slowed(rig, "claim", 2_000, monkeypatch)
    records = slowed(rig, "announce", 0, monkeypatch)
    rig.turns()
    assert (len(rig.api.sends), records) == (1, [])


def test_a_lost_claim_writes_nothing_more(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Rig()
    rig.owner(0)
    batch = rig.claim()
    rig.broker.release(WORKER)  # its supervisor takes it for dead
    rig.clock.advance(2_001)
    with pytest.raises(ClaimLost):
        through(rig.engine, batch, batch.claims[0])
    assert rig.api.sends == []


def test_a_create_needs_the_claim() -> None:
    rig = Rig()
    rig.owner(1)
    batch = rig.claim()
    rig.broker.release(WORKER)
    with pytest.raises(ClaimLost):
        through(rig.engine, batch, batch.claims[0])
    assert (rig.api.sends, rig.queue.expectations) == ([], {})


@pytest.mark.parametrize("waited_ms", [0, 2_000, 2_001, 60_000])
def test_what_is_not_announced_looks_whether_the_claim_is_still_ours(
    waited_ms: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A status, here: keys of a batch wait for each other, and this one may be lost."""
    rig = Rig()
    rig.owner(0)
    slowed(rig, "claim", waited_ms, monkeypatch)
    records = slowed(rig, "announce", 0, monkeypatch)
    batch = rig.claim()
    asked_ms = rig.clock.mono_ms() - waited_ms
    through(rig.engine, batch, batch.claims[0])
    looked = waited_ms > 2_000
    assert [args[2] for args in records] == [()] * looked
    assert [write.verb for write in rig.api.sends[0][0]] == ["status"]
    assert rig.api.sends[0][1] == asked_ms + waited_ms * looked + 4_500


# -- side by side


class LateApi(RigApi):
    """Answers writes when it is told to, in the order of ``open``."""

    def __init__(self, rig: Rig) -> None:
        super().__init__(rig.world, rig.clock)
        self.open: list[tuple[Future[list[Answer]], tuple[Write, ...]]] = []

    def send(self, writes: tuple[Write, ...], deadline_ms: int, prepaid: bool) -> Future[list[Answer]]:
        self.sends.append((writes, deadline_ms, prepaid))
        self.open.append((Future(), writes))
        return self.open[-1][0]

    def answer(self, at: int = 0) -> None:
        future, writes = self.open.pop(at)
        future.set_result([self.world.handle(write) for write in writes])


def beside(rig: Rig) -> tuple[LateApi, Engine]:
    """A second worker, whose API takes its time."""
    api = LateApi(rig)
    engine = Engine(rig.broker, api, rig.settings, rig.clock)
    engine.register("late", "supervisor")
    return api, engine


def test_a_turn_waits_while_others_go_on_each_with_a_deadline_of_its_own() -> None:
    rig = Rig()
    uids = [rig.owner(1, name) for name in ("a", "b")]
    api, engine = beside(rig)
    batch = engine.claim("late", 8)
    assert isinstance(batch, Batch)
    first = engine.start(batch, batch.claims[0])
    assert first.advance() is None
    rig.clock.advance(700)
    second = engine.start(batch, batch.claims[1])
    assert second.advance() is None
    assert [deadline_ms for _, deadline_ms, _ in api.sends] == [api.sends[0][1], api.sends[0][1] + 700]
    assert first.waits_for is not None
    assert not first.waits_for.done()
    api.answer(1)
    finish = second.advance()
    assert finish is not None
    assert [change.op for change in finish.changes] == ["drop", "need"], "of its own create alone"
    assert engine.finish([finish]) == [0]
    api.answer()
    assert (finish := first.advance()) is not None
    assert engine.finish([finish]) == [0]
    assert [len(rig.pods(uid)) for uid in uids] == [1, 1]
    assert rig.queue.expectations == {}


def test_a_later_claim_makes_the_leases_of_an_earlier_one_no_longer() -> None:
    """Claims of a bounded queue begin one by one, and further keys may be claimed before the last has begun."""
    rig = Rig()
    rig.owner(1, "a")
    _api, engine = beside(rig)
    claimed_ms = rig.clock.mono_ms()
    batch = engine.claim("late", 8)
    assert isinstance(batch, Batch)
    rig.clock.advance(700)
    rig.owner(1, "b")
    assert isinstance(engine.claim("late", 8), Batch)
    running = engine.start(batch, batch.claims[0])
    assert running.deadline_ms == claimed_ms + rig.settings.lease_ms - rig.settings.send_margin_ms


def test_one_that_has_used_up_half_its_time_ends_with_what_it_has() -> None:
    """Struck at the end of its time it would lose the answers it has, and the next turn would send all of it again."""
    rig = Rig()
    uid = rig.owner(7)
    api, engine = beside(rig)
    batch = engine.claim("late", 8)
    assert isinstance(batch, Batch)
    turn = engine.start(batch, batch.claims[0])
    assert turn.advance() is None
    api.answer()
    assert turn.advance() is None
    rig.clock.advance(rig.settings.turn_limit_ms // 2 + 1)
    rig.broker.renew(["late"], lease_ms=rig.settings.lease_ms)
    api.answer()
    finish = turn.advance()
    assert finish is not None
    assert [write.verb for writes, _, _ in api.sends for write in writes] == ["create"] * 3
    assert engine.finish([finish]) == [0]
    assert rig.queue.expectations == {}, "all answers are entered"
    rig.later(1)
    rig.rest()
    assert len(rig.pods(uid)) == 7
    assert len(rig.api.writes) - rig.count("status") == 4, "none was sent twice"


def test_room_that_was_lost_is_there_again_for_the_next_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """A signal may strike where it is given back."""
    rig = Rig(writes_in_flight=1)
    rig.owner(7, "a")
    api, engine = beside(rig)
    batch = engine.claim("late", 8)
    assert isinstance(batch, Batch)
    turn = engine.start(batch, batch.claims[0])
    turn.advance()
    monkeypatch.setattr(engine, "ended", lambda running: None)
    turn.abandon()
    rig.owner(7, "b")
    again = engine.claim("late", 8)
    assert isinstance(again, Batch)
    other = engine.start(again, again.claims[0])
    for _ in range(3):
        assert other.advance() is None
        api.answer(-1)
    assert [len(writes) for writes, _, _ in api.sends] == [1, 1, 2, 4]


def test_one_that_is_abandoned_leaves_its_writes_announced_and_lets_others_in() -> None:
    """Their answers are not waited for, so nobody knows; what it knew is told."""
    rig = Rig(writes_in_flight=1)
    for name in ("a", "b"):
        rig.owner(7, name)
    api, engine = beside(rig)
    batch = engine.claim("late", 8)
    assert isinstance(batch, Batch)
    first, second = (engine.start(batch, claim) for claim in batch.claims)
    for _ in range(2):
        first.advance()
        api.answer()
    assert first.advance() is None
    assert len(api.open[0][1]) == 4, "1, 2, 4: the window of four is full"
    assert second.advance() is None
    assert len(api.sends) == 3, "it waits before it announces anything"
    assert second.waits_for is not None
    first.abandon()
    assert second.waits_for.done()
    assert second.advance() is None
    assert len(api.sends) == 4
    assert api.open[0][0].cancelled()
    assert [event.reason for _, _, event in api.told] == ["SuccessfulCreate"] * 3
    pending = [field for field in rig.record("default/a") if field.startswith("create ")]
    assert len(pending) == 7, "also the three that were answered: a turn enters answers at its end"
    first.abandon()
    assert len(api.told) == 3, "it is over once"


# -- under a budget of the fleet


class LendingApi(RigApi):
    """Promises what is wanted, and keeps what it was asked for, and what it was given back."""

    def __init__(self, rig: Rig) -> None:
        super().__init__(rig.world, rig.clock)
        self.promises: list[tuple[int, float]] = []
        self.given_back: list[int] = []

    def promise(self, count: int, wait_s: float) -> Any:
        self.promises.append((count, wait_s))
        return arrived(Grant(count, 1))

    def redeem(self, count: int) -> None:
        self.given_back += [count] * (count > 0)


def lending() -> tuple[Rig, LendingApi, Engine, Batch]:
    """A worker whose turn is to create three pods."""
    rig = Rig(fleet_api_qps=50.0)
    rig.owner(3)
    api = LendingApi(rig)
    engine = Engine(rig.broker, api, rig.settings, rig.clock)
    engine.register("lent", "supervisor")
    batch = engine.claim("lent", 8)
    assert isinstance(batch, Batch)
    return rig, api, engine, batch


@pytest.mark.parametrize(
    ("took_ms", "left_s"), [pytest.param(2_001, 20.499, id="less of it"), pytest.param(30_000, 0.0, id="none")]
)
def test_a_wave_waits_for_its_tokens_while_the_turn_has_time(took_ms: int, left_s: float) -> None:
    """Half of the turn's time, from its begin: what it has learned by then must not be lost with the rest."""
    rig, api, engine, batch = lending()
    api.refuse = lambda write: rig.clock.advance(took_ms) if write.verb == "create" else None
    through(engine, batch, batch.claims[0])
    assert api.promises[0] == (1, 22.5)
    assert api.promises[1] == (2, left_s)
    assert api.given_back == [], "all that was promised was sent"
    assert engine.may_go_on()


def test_what_was_promised_and_is_not_sent_is_for_others() -> None:
    rig, api, engine, batch = lending()
    rig.broker.release("lent")  # so nothing can be announced
    with pytest.raises(ClaimLost):
        through(engine, batch, batch.claims[0])
    assert (api.promises, api.given_back, api.sends) == ([(1, 22.5)], [1], [])
    assert engine.may_go_on()


# -- an outage


@pytest.mark.parametrize(
    ("answer", "outage"),
    [
        pytest.param(UNANSWERED, True, id="no answer"),
        pytest.param(Answer(NOT_SENT, error="cannot connect"), True, id="not connected"),
        pytest.param(Answer(503, b"<html>no healthy upstream</html>"), True, id="of a proxy before the server"),
        pytest.param(refusal(503, "ServiceUnavailable"), False, id="of the server: it is there"),
        pytest.param(PAST_DEADLINE, False, id="too late: our own fault"),
        pytest.param(Answer(500), False, id="a server error is an answer"),
        pytest.param(refusal(409, "Conflict"), False, id="a conflict is an answer"),
    ],
)
def test_three_transport_errors_in_a_row(answer: Answer, outage: bool) -> None:
    """After them no key is used up by failing fast: nothing is claimed until the API answers a probe."""
    rig = Rig()
    for number in range(5):
        rig.owner(0, f"web{number}")
    rig.api.refuse = fail_with(answer, "status", OUTAGE_AFTER)
    batch = rig.engine.claim(WORKER, OUTAGE_AFTER)
    assert isinstance(batch, Batch)
    for claim in batch.claims:
        rig.run(batch, claim)
    rig.api.answers_probes = False
    queued = list(rig.queue.stream)
    if not outage:
        assert isinstance(rig.engine.claim(WORKER, 8), Batch)
        assert rig.api.probes == 0
        return
    assert [rig.engine.claim(WORKER, 8) for _ in range(3)] == [Idle.WAIT] * 3
    assert (rig.api.probes, rig.queue.stream) == (3, queued), "keys stay where they are"
    rig.api.answers_probes = True
    assert isinstance(rig.engine.claim(WORKER, 8), Batch)
    rig.api.answers_probes = False
    assert isinstance(rig.engine.claim(WORKER, 8), Idle)
    assert rig.api.probes == 4, "it counts from the start"


def test_an_answer_ends_the_row() -> None:
    rig = Rig()
    for number in range(6):
        rig.owner(0, f"web{number}")
    script = iter([UNANSWERED, UNANSWERED, None, UNANSWERED, UNANSWERED, None])
    rig.api.refuse = lambda write: next(script)
    rig.api.answers_probes = False
    batch = rig.claim()
    for claim in batch.claims:
        rig.run(batch, claim)
    assert rig.engine.claim(WORKER, 8) is Idle.EMPTY
    assert rig.api.probes == 0


def test_one_burst_can_be_an_outage() -> None:
    rig = Rig()
    rig.owner(7)
    rig.api.refuse = lambda write: Answer(NO_ANSWER) if rig.count("create") > 3 else None
    batch = rig.claim()
    rig.run(batch, batch.claims[0])
    rig.api.answers_probes = False
    assert rig.engine.claim(WORKER, 8) is Idle.WAIT


# -- queues

SETS = CONTROLLERS["replicaset"]
OTHER = msgspec.structs.replace(SETS, name="other", owners=msgspec.structs.replace(SETS.owners, owner_queue="other"))


def test_queues_rotate(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each queue is asked first in its turn, so that a busy one starves none."""
    monkeypatch.setitem(CONTROLLERS, "other", OTHER)
    rig = Rig(queues=("replicaset", "other"))
    for queue in ("replicaset", "other"):
        rig.broker.add(queue, [f"default/web{number}" for number in range(3)])
    served = []
    for _ in range(6):
        batch = rig.engine.claim(WORKER, 1)
        assert isinstance(batch, Batch)
        served.append(batch.queue)
        rig.run(batch, batch.claims[0])
    assert served[:4] in (["other", "replicaset"] * 2, ["replicaset", "other"] * 2)
    assert sorted(served) == ["other"] * 3 + ["replicaset"] * 3


@pytest.mark.parametrize("queues", [("replicaset", "other"), ("other", "replicaset")])
def test_a_claim_begins_with_the_queue_whose_token_woke_it(
    queues: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A token that is spent on another queue leaves its own key to nobody."""
    monkeypatch.setitem(CONTROLLERS, "other", OTHER)
    rig = Rig(queues=queues)
    assert rig.engine.claim(WORKER, 8) is Idle.EMPTY
    rig.broker.add("other", [KEY])
    assert rig.engine.wait(1.0) is True
    rig.broker.add("replicaset", [KEY])
    served = []
    while isinstance(batch := rig.engine.claim(WORKER, 8), Batch):
        served.append(batch.queue)
    assert served == ["other", "replicaset"]


def test_of_a_bounded_queue_of_functions_one_key_is_taken_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """They run one after the other and may take long: other workers are to have the rest meanwhile."""
    monkeypatch.setitem(CONTROLLERS, "other", OTHER)
    rig = Rig(queues=("replicaset", "other"), concurrent_syncs={"other": 1})
    monkeypatch.setitem(rig.engine._custom, "other", None)
    for queue in ("replicaset", "other"):
        rig.broker.add(queue, [f"default/web{number}" for number in range(3)])
    served = []
    while isinstance(batch := rig.engine.claim(WORKER, 8), Batch):
        served.append((batch.queue, len(batch.claims)))
    assert sorted(served) == [("other", 1)] * 3 + [("replicaset", 3)]
    assert served.index(("replicaset", 3)) < 2, "each queue is asked first in its turn"
    rig.broker.add("other", ["default/web9"])
    assert rig.engine.claim(WORKER, 8, but=["other"]) is Idle.EMPTY


def test_keys_taken_with_the_end_of_turns_are_of_the_queue_whose_turn_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CONTROLLERS, "other", OTHER)
    rig = Rig(queues=("replicaset", "other"))
    for queue in ("replicaset", "other"):
        rig.broker.add(queue, [f"default/web{number}" for number in range(3)])
    batch, served = rig.engine.claim(WORKER, 1), []
    while isinstance(batch, Batch):
        served.append(batch.queue)
        ended = [Finish(each.queue, each.key, each.nonce, Verdict.OK) for each in batch.claims]
        failures, claimed = rig.engine.finish_and_claim(ended, WORKER, 1)
        assert failures == [0]
        batch = claimed()
        assert not isinstance(batch, Batch) or batch.deadline_ms > rig.clock.mono_ms()
    assert served in (["other", "replicaset"] * 3, ["replicaset", "other"] * 3)


def test_after_a_turn_that_sent_many_requests_together_others_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CONTROLLERS, "other", OTHER)
    rig = Rig(queues=("replicaset", "other"))
    rig.owner(500)
    batch = rig.claim()
    rig.engine.finish([through(rig.engine, batch, batch.claims[0])])
    for queue in ("replicaset", "other"):
        rig.broker.add(queue, [f"default/key{number}" for number in range(100)])
    served = []
    while "replicaset" not in served:
        batch = rig.claim()
        served.append(batch.queue)
        rig.engine.finish([Finish(each.queue, each.key, each.nonce, Verdict.OK) for each in batch.claims])
    owed = 1 + 2 + 3  # by waves of 64, 128 and 245
    assert owed <= len(served) - 1 <= owed + 2


def test_where_a_claim_is_several_calls_they_come_after_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CONTROLLERS, "other", OTHER)
    rig = Rig(queues=("replicaset", "other"), concurrent_syncs={"other": 1})
    monkeypatch.setitem(rig.engine._custom, "other", None)
    for queue in ("replicaset", "other"):
        rig.broker.add(queue, [f"default/web{number}" for number in range(3)])
    served: list[tuple[str, int]] = []
    claimed: Claimed = partial(rig.engine.claim, WORKER, 8)
    while isinstance(batch := claimed(), Batch):
        served.append((batch.queue, len(batch.claims)))
        ended = [Finish(each.queue, each.key, each.nonce, Verdict.OK) for each in batch.claims]
        claimed = rig.engine.finish_and_claim(ended, WORKER, 8)[1]
    assert sorted(served) == [("other", 1)] * 3 + [("replicaset", 3)]
    assert served.index(("replicaset", 3)) < 2, "each queue is asked first in its turn"


def test_what_owes_is_asked_after_a_queue_that_is_served_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CONTROLLERS, "other", OTHER)
    rig = Rig(queues=("daemonset", "replicaset", "other"), concurrent_syncs={"other": 1})
    monkeypatch.setitem(rig.engine._custom, "other", None)
    for queue in ("replicaset", "other"):
        rig.broker.add(queue, [f"default/web{number}" for number in range(40)])
    rig.engine._order.sent("replicaset", 200)
    served = []
    for _ in range(6):
        batch = rig.engine.claim(WORKER, 8)
        assert isinstance(batch, Batch)
        served.append(batch.queue)
    assert served == ["other"] * 4 + ["replicaset", "other"]


def test_while_the_api_does_not_answer_no_key_is_taken_with_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Rig()
    rig.broker.add("replicaset", ["default/a", "default/b"])
    batch = rig.engine.claim(WORKER, 1)
    assert isinstance(batch, Batch)
    rig.engine._transport_errors = OUTAGE_AFTER
    monkeypatch.setattr(rig.api, "probe", lambda: False)
    ended = [Finish(each.queue, each.key, each.nonce, Verdict.OK) for each in batch.claims]
    failures, claimed = rig.engine.finish_and_claim(ended, WORKER, 1)
    assert (failures, claimed()) == ([0], Idle.WAIT)


def test_a_queue_without_keys_costs_no_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CONTROLLERS, "other", OTHER)
    rig = Rig(queues=("replicaset", "other"))
    rig.broker.add("replicaset", ["default/a", "default/b"])
    assert [ended.key for ended in rig.turns()] == ["default/a", "default/b"]


def test_a_worker_serves_the_queues_it_was_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CONTROLLERS, "other", OTHER)
    rig = Rig(queues=("other",))
    rig.broker.add("replicaset", ["default/a"])
    assert rig.turns() == []
    assert rig.engine.queues == ("other",)


def test_what_a_claim_hands_over() -> None:
    spec = load_spec(CONTROLLERS["replicaset"])
    assert spec.text == "replicaset replicasets pods/owner/counts pods/orphan/wanted"


def test_claims_say_how_much_and_for_how_long(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Rig(lease_ms=6_000, batch_bytes=1_000)
    seen: list[tuple[str, ClaimLimits]] = []

    def claim(holder: str, nonce: str, specs: Any, limits: ClaimLimits) -> Idle:
        seen.append((nonce, limits))
        return Idle.EMPTY

    monkeypatch.setattr(rig.broker, "claim", claim)
    rig.engine.claim(WORKER, 5)
    rig.engine.claim(WORKER, 5)
    assert seen[0][1] == ClaimLimits(6_000, 15_000, 5, 1_000, load_min=LOAD_MIN)
    nonces = {nonce for nonce, _ in seen}
    assert len(nonces) == 2, "a claim call has a nonce of its own"
    assert all(len(nonce) == 32 for nonce in nonces)


# -- failures


def test_a_live_list_that_fails_fails_the_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is deleted on an old view; what was learned before stays."""
    rig = Rig()
    uid = rig.owner(2)
    rig.rest()
    rig.world.change_owner("web", replicas=1)
    rig.read("replicasets")
    rig.clock.advance(rig.settings.view_age_max_ms + 1)

    def list_live(resource: str, namespace: str, selector: LabelSelector | None) -> Any:
        raise ListError(PODS, Answer(500))

    monkeypatch.setattr(rig.api, "list_live", list_live)
    batch = rig.claim()
    with pytest.raises(TurnFailed, match="live list: cannot list pods: the server answered 500") as failure:
        through(rig.engine, batch, batch.claims[0])
    assert rig.engine.finish([failure.value.finish]) == [1]
    assert (rig.count("delete"), len(rig.pods(uid)), list(rig.queue.delayed)) == (0, 2, [KEY])


def test_the_age_of_the_view_is_that_of_the_pods() -> None:
    """Confirmed is what an ingestor has said of it lately, though nothing happened."""
    rig = Rig()
    rig.owner(2)
    rig.rest()
    rig.world.change_owner("web", replicas=1)
    rig.clock.advance(rig.settings.view_age_max_ms + 1)
    rig.read()
    rig.turns()
    assert (rig.count("delete"), rig.api.lists) == (1, 0)


@pytest.mark.parametrize("error", [EpochOver("over"), BrokerUnreachable("no answer"), ClaimLost("lost")])
@pytest.mark.parametrize("step", ["announce", "look"])
def test_what_the_broker_raises_ends_the_turn(step: str, error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is for whoever runs the turn to say what comes of it; nothing is sent after it."""
    rig = Rig()
    rig.owner(1)
    if step == "look":
        rig.queue.expectations[KEY] = ExpectHash({"blocked pods/x": "uid=y"}, rig.clock.wall_ms() + 1_000)

    def fail(*args: Any, **kwargs: Any) -> Any:
        raise error

    monkeypatch.setattr(rig.broker, step, fail)
    batch = rig.claim()
    with pytest.raises(type(error)):
        through(rig.engine, batch, batch.claims[0])
    assert rig.api.writes == []


def test_events_are_told_whatever_becomes_of_the_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """About the owner as the turn read it; also when the claim was lost in the middle of a burst."""
    rig = Rig()
    rig.owner(40)
    real, calls = rig.broker.announce, iter(range(2))

    def record(*args: Any, **kwargs: Any) -> Any:
        if next(calls) == 1:
            raise ClaimLost(KEY)
        return real(*args, **kwargs)

    monkeypatch.setattr(rig.broker, "announce", record)
    batch = rig.claim()
    with pytest.raises(ClaimLost):
        through(rig.engine, batch, batch.claims[0])
    told = {(name, rv, event.reason) for name, rv, event in rig.api.told}
    assert told == {("web", batch.claims[0].owner.rv, "SuccessfulCreate")}  # type: ignore[union-attr]
    assert len(rig.api.told) == 31

    failing = Rig()
    failing.owner(1)
    failing.api.refuse = fail_with(refusal(403, "Forbidden"), "create")
    failing.turns()
    assert [event.message for _, _, event in failing.api.told] == ["Error creating: Forbidden"]


def test_nothing_to_tell() -> None:
    rig = Rig()
    rig.owner(0)
    rig.turns()
    assert rig.api.told == []


# -- the rest


def test_a_finish_of_a_lost_claim_is_refused() -> None:
    rig = Rig()
    rig.owner(0)
    batch = rig.claim()
    finish = through(rig.engine, batch, batch.claims[0])
    rig.broker.release(WORKER)
    assert rig.engine.finish([finish]) == [-1]


def test_one_that_is_not_registered_gets_nothing() -> None:
    rig = Rig()
    rig.owner(0)
    assert rig.engine.claim("nobody", 8) is Idle.UNKNOWN


def test_nothing_is_claimed_while_an_epoch_drains() -> None:
    rig = Rig()
    rig.store.state.phase = "DRAIN"
    assert rig.engine.claim(WORKER, 8) is Idle.WAIT


def test_waiting_takes_a_token() -> None:
    rig = Rig()
    assert rig.engine.claim(WORKER, 8) is Idle.EMPTY
    assert rig.engine.wait(1.0) is False
    rig.broker.add("replicaset", [KEY])
    assert rig.engine.wait(1.0) is True


def test_closing() -> None:
    rig = Rig()
    rig.engine.close()
    assert rig.api.closed
