"""While all turns under way wait for functions of users, or wait for long, a worker claims further keys beside them."""

from __future__ import annotations

from collections.abc import Collection
from concurrent.futures import Future
from typing import Any

import pytest

from oarlock.broker.values.claims import Batch, Claim, Idle
from oarlock.broker.values.errors import EpochOver
from oarlock.broker.values.objects import Cached
from oarlock.workers.turn.engine.runner import ASK_FIRST_MS, ASK_MS
from oarlock.workers.turn.engine.waiting_turns import LONG_MS, OBJECTS_MAX, PLACES, SLOW_MS
from tests.manual_clock import ManualClock
from tests.workers.turn.engine.test_runner import QUEUE, Rig, Script, Turn, answered, claim_of


class Function(Future[Any]):
    """What a turn waits for while a function runs."""


class FunctionTurn(Turn):
    @property
    def in_function(self) -> bool:
        return isinstance(self.waits_for, Function)


class TickingClock(ManualClock):
    """Each look at it takes a millisecond."""

    def mono_ms(self) -> int:
        self.advance(1)
        return super().mono_ms()


class FunctionRig(Rig):
    """``more``: batches for each time it asks; after them none. ``rooms``: what it had room for. ``buts``: of which
    queues it wanted none. ``crowded``: and of which namespaces.
    """

    def __init__(self, *more: list[Claim] | Idle, **settings: Any) -> None:
        super().__init__(**settings)
        self.clock = self.runner._clock = TickingClock()
        self._batches, self.rooms, self.buts = list(more), list[int](), list[list[str]]()
        self.crowded = list[list[str]]()

    def start(self, batch: Batch, claim: Claim) -> Turn:
        return FunctionTurn(claim, self.scripts[claim.key], self.told)

    def more(self, keys_max: int, but: Collection[str], crowded: Collection[str]) -> Batch | Idle:
        self.told.append("asks")
        self.rooms.append(keys_max)
        self.buts.append(sorted(but))
        self.crowded.append(sorted(crowded))
        found = self._batches.pop(0) if self._batches else Idle.EMPTY
        return found if isinstance(found, Idle) else Batch(found[0].queue, found, {})

    def run_beside(self, *first: Claim, **scripts: Script) -> list[str]:
        self.scripts = scripts
        self.runner.run(Batch(QUEUE, list(first), {}), self.more)
        return self.told


def test_further_keys_run_beside_a_function() -> None:
    function = Function()
    rig = FunctionRig([claim_of("b")])
    told = rig.run_beside(claim_of("a"), a=[function], b=[answered(function)])
    assert told[:3] == ["a", "asks", "b"]
    assert told.index("b") < told.index("a", 1)
    assert rig.rooms[0] == rig.settings.batch_keys - 1


def test_what_is_over_is_ended_before_it_asks() -> None:
    function = Function()
    rig = FunctionRig([claim_of("c")])
    told = rig.run_beside(claim_of("a"), claim_of("b"), a=[function], b=[], c=[answered(function)])
    assert told[:4] == ["a", "b", "end of b", "asks"]
    assert rig.failures == {"a": None, "b": None, "c": None}


def test_nothing_is_claimed_beside_a_request_to_the_api_that_was_just_sent() -> None:
    function, request = Function(), Future[Any]()
    rig = FunctionRig([claim_of("c")])
    rig.runner._waiting.next = _answering(rig, [lambda: rig.clock.advance(SLOW_MS // 2), answered(request)])  # type: ignore[method-assign]
    told = rig.run_beside(claim_of("a"), claim_of("b"), a=[function], b=[request], c=[answered(function)])
    assert told.index("b", 2) < told.index("asks")


def test_further_keys_run_beside_requests_that_take_long() -> None:
    request, later = Future[Any](), Future[Any]()
    rig = FunctionRig([claim_of("b")])
    rig.runner._waiting.next = _answering(rig, [lambda: rig.clock.advance(SLOW_MS)])  # type: ignore[method-assign]
    told = rig.run_beside(claim_of("a"), a=[request, later], b=[answered(request), answered(later)])
    assert told == ["a", "asks", "b", "a", "a", "end of b a"]


def test_each_wait_of_a_turn_counts_from_its_own_beginning() -> None:
    first, second = Future[Any](), Future[Any]()
    rig = FunctionRig()
    pause = [lambda: rig.clock.advance(SLOW_MS // 2)]
    acts = [*pause, answered(first), *pause, answered(second)]
    rig.runner._waiting.next = _answering(rig, acts)  # type: ignore[method-assign]
    assert rig.run_beside(claim_of("a"), a=[first, second]) == ["a", "a", "a", "end of a"]


def test_further_keys_run_beside_a_turn_that_began_long_ago() -> None:
    """However short each of its waits is."""
    waits = [Future[Any]() for _ in range(1 + LONG_MS // (SLOW_MS // 2))]
    rig = FunctionRig()
    acts = [act for each in waits for act in (lambda: rig.clock.advance(SLOW_MS // 2), answered(each))]
    rig.runner._waiting.next = _answering(rig, acts)  # type: ignore[method-assign]
    told = rig.run_beside(claim_of("a"), a=waits)
    assert told.index("asks") == len(waits) - 1, told


def test_where_a_key_waits_that_is_claimed_alone_nothing_more_is_asked_for() -> None:
    request = Future[Any]()
    rig = FunctionRig(Idle.ALONE, [claim_of("b")])
    pauses = [lambda: rig.clock.advance(SLOW_MS)] * 5
    rig.runner._waiting.next = _answering(rig, [*pauses, answered(request)])  # type: ignore[method-assign]
    assert rig.run_beside(claim_of("a"), a=[request]) == ["a", "asks", "a", "end of a"]
    again = Future[Any]()
    rig.runner._waiting.next = _answering(rig, pauses)  # type: ignore[method-assign]
    told = rig.run_beside(claim_of("c"), c=[again], b=[answered(again)])
    assert told[4:7] == ["c", "asks", "b"], "the next time it is"


@pytest.mark.parametrize(("reply", "pauses"), [(Idle.EMPTY, 1), (Idle.LIMITED, 1), (Idle.SERVED, 5)])
def test_where_another_worker_waits_for_keys_it_asks_less_often(reply: Idle, pauses: int) -> None:
    request = Future[Any]()
    rig = FunctionRig(reply)
    pause = [lambda: rig.clock.advance(ASK_MS)] * pauses
    acts = [lambda: rig.clock.advance(SLOW_MS), *pause, answered(request)]
    rig.runner._waiting.next = _answering(rig, acts)  # type: ignore[method-assign]
    told = rig.run_beside(claim_of("a"), a=[request])
    assert told == ["a", "asks", "asks", "a", "end of a"]


def of(namespace: str, count: int) -> list[Claim]:
    return [claim_of(f"{namespace}/{number}") for number in range(count)]


def _crowded(*waiting: Claim) -> tuple[int, list[str]]:
    """How many keys a worker asks for beside these turns, and which namespaces are crowded."""
    rig = FunctionRig(Idle.ALONE)
    requests = {each.key: Future[Any]() for each in waiting}
    acts: list[Any] = [lambda: [each.children.clear() for each in waiting]]  # as turns over pods do
    acts += [lambda: rig.clock.advance(SLOW_MS)] * 2
    acts += [answered(each) for each in requests.values()]
    rig.runner._waiting.next = _answering(rig, acts)  # type: ignore[method-assign]
    rig.run_beside(*waiting, **{key: [each] for key, each in requests.items()})
    return (rig.rooms[0], rig.crowded[0]) if rig.rooms else (0, [])


@pytest.mark.parametrize(
    ("waiting", "asked_for", "crowded"),
    [
        (of("slow", 23), 8, []),
        (of("slow", 24), 8, ["slow"]),
        (of("slow", 24) + of("other", 16), 8, ["other", "slow"]),
        (of("slow", 24) + of("other", 7), 8, ["slow"]),
        (of("slow", 24) + of("other", 12) + of("third", 9), 3, ["other", "slow", "third"]),
        (of("slow", 24) + of("other", 12) + of("third", 12), 0, []),
    ],
)
def test_a_namespace_has_no_more_places_than_are_left(waiting: list[Claim], asked_for: int, crowded: list[str]) -> None:
    assert PLACES == 48
    assert _crowded(*waiting) == (asked_for, crowded)


def test_waiting_turns_leave_connections_to_others() -> None:
    rig = FunctionRig(writes_in_flight=8)
    requests = {f"a/{number}": Future[Any]() for number in range(6)}
    pauses = [lambda: rig.clock.advance(SLOW_MS)] * 3
    first, *others = (answered(each) for each in requests.values())
    rig.runner._waiting.next = _answering(rig, [*pauses, first, *pauses, *others])  # type: ignore[method-assign]
    rig.run_beside(*map(claim_of, requests), **{key: [each] for key, each in requests.items()})
    assert (rig.rooms[0], rig.crowded[0]) == (1, ["a"]), "once one of the six was answered"


def test_turns_that_hold_many_objects_are_waited_for() -> None:
    pods = [Cached("p", "1", "u", b"")] * (OBJECTS_MAX // 2)
    large = [each._replace(children=[*pods]) for each in of("slow", 3)]
    assert _crowded(large[0]) == (8, [])
    assert _crowded(*large[1:]) == (0, [])


def _answering(rig: FunctionRig, acts: list[Any]) -> Any:
    """The waits of a runner, which do one thing after the other before they really wait."""
    wait = rig.runner._waiting.next

    def next_one(timeout_s: float) -> Any:
        if acts:
            acts.pop(0)()
        return wait(min(timeout_s, 0.001))

    return next_one


def test_it_waits_no_longer_than_until_it_asks() -> None:
    """For other keys nothing else would end the wait."""
    function, waits = Function(), list[float]()
    rig = FunctionRig([claim_of("b")])
    wait = rig.runner._waiting.next

    def next_one(timeout_s: float) -> Any:
        if "asks" not in rig.told:
            waits.append(timeout_s)
        return wait(min(timeout_s, 0.001))

    rig.runner._waiting.next = next_one  # type: ignore[method-assign]
    rig.run_beside(claim_of("a"), a=[function], b=[answered(function)])
    assert 0 < max(waits) <= ASK_FIRST_MS / 1_000


def test_where_there_were_keys_it_asks_again_soon() -> None:
    functions = [Function(), Function()]
    rig = FunctionRig([claim_of("b")], [claim_of("c")])
    asked_ms, more = list[int](), rig.more

    def timed(*asked: Any) -> Batch | Idle:
        asked_ms.append(ManualClock.mono_ms(rig.clock))
        return more(*asked)

    rig.more = timed  # type: ignore[method-assign]
    rig.run_beside(claim_of("a"), a=[functions[0]], b=[functions[1]], c=[*map(answered, functions)])
    assert ASK_FIRST_MS <= asked_ms[1] - asked_ms[0] < ASK_MS


def test_a_key_that_crashed_a_worker_stays_alone() -> None:
    function = Function()
    rig = FunctionRig([claim_of("b")])
    rig.runner._waiting.next = _answering(rig, [*[lambda: rig.clock.advance(100)] * 5, answered(function)])  # type: ignore[method-assign]
    told = rig.run_beside(claim_of("a")._replace(crashes=1), a=[function])
    assert told == ["a", "a", "end of a"]


def test_there_is_room_for_as_many_as_a_batch_has() -> None:
    functions = {f"f{number}": Function() for number in range(3)}
    rig = FunctionRig([claim_of("f2")], batch_keys=3)
    rig.runner._waiting.next = _answering(  # type: ignore[method-assign]
        rig, [*[lambda: rig.clock.advance(100)] * 9, *(answered(each) for each in functions.values())]
    )
    rig.run_beside(claim_of("f0"), claim_of("f1"), **{name: [each] for name, each in functions.items()})
    assert rig.rooms[0] == 1
    assert all(room > 0 for room in rig.rooms)


def test_an_epoch_that_is_over_cuts_off_the_functions() -> None:
    function = Function()
    rig = FunctionRig()

    def over(keys_max: int, but: Collection[str], crowded: Collection[str]) -> Batch | Idle:
        raise EpochOver("stale")

    rig.scripts = {"a": [function]}
    with pytest.raises(EpochOver):
        rig.runner.run(Batch(QUEUE, [claim_of("a")], {}), over)
    assert rig.told == ["a", "a abandoned"]


BOUNDED = {"concurrent_syncs": {"daemonset": 1}}


def bounded(key: str) -> Claim:
    return claim_of(key)._replace(queue="daemonset")


def test_a_bounded_queue_has_its_turn_beside_functions_that_never_cease() -> None:
    """Else a worker whose functions always overlap would never claim of it again."""
    endless = Function()
    rig = FunctionRig([bounded("b1"), bounded("b2")], **BOUNDED)
    one, two = Function(), Function()
    later = [lambda: rig.clock.advance(100)] * 4
    ends = [*later, answered(one), *later, answered(two), *later, answered(endless)]
    rig.runner._waiting.next = _answering(rig, ends)  # type: ignore[method-assign]
    told = rig.run_beside(claim_of("a"), a=[endless], b1=[one], b2=[two])
    assert [each for each in told if each in ("b1", "b2")] == ["b1", "b1", "b2", "b2"], "one at a time"
    assert rig.buts[0] == []
    assert ["daemonset"] in rig.buts, "none more of it while one is under way"
    assert rig.buts[-1] == [], "and again thereafter"
    assert rig.failures == {"a": None, "b1": None, "b2": None}


def test_what_waits_for_its_turn_takes_room_too() -> None:
    function = Function()
    rig = FunctionRig(batch_keys=3, **BOUNDED)
    rig.runner._waiting.next = _answering(rig, [*[lambda: rig.clock.advance(100)] * 4, answered(function)])  # type: ignore[method-assign]
    rig.scripts = {"a": [function], "b": [], "c": []}
    rig.runner.run(Batch("daemonset", [bounded("a"), bounded("b"), bounded("c")], {}), rig.more)
    assert rig.rooms == []
