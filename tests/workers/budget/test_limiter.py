"""The limiter of one worker: tokens of its lanes, requests under way, and what it learns from answers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import Context
from typing import TypeVar

import pytest

from oarlock.broker.budget import EVENTS
from oarlock.cluster.answer import NO_ANSWER, Answer
from oarlock.workers.budget.answers import AnswerTimes
from oarlock.workers.budget.buckets import Buckets
from oarlock.workers.budget.flights import AHEAD, Flights
from oarlock.workers.budget.limiter import FleetLimiter, current_lane
from oarlock.workers.counters.table import Row, own_row
from tests.manual_clock import ManualClock

T = TypeVar("T")


class Bench:
    """A limiter with shares set by hand; a sleep moves its clock."""

    def __init__(self, flights: int = 0) -> None:
        self.clock, self.row = ManualClock(), own_row()
        self.buckets = Buckets(self.row, 100_000, 5_000, self.clock.mono_ms)
        self.flights = Flights(self.buckets, flights > 0)
        self.limiter = FleetLimiter(self.buckets, self.flights, sleep=self.sleep)
        self.lend(flights=flights)

    async def sleep(self, seconds: float) -> None:
        self.clock.advance(round(seconds * 1_000))
        await asyncio.sleep(0)

    def lend(self, spare: int = 0, flights: int = 0, **rates: int) -> None:
        cells, ints = self.row.layout.budget, self.row.ints
        ints[cells.spare], ints[cells.flights] = spare, flights
        for lane, rate in rates.items():
            ints[cells.lanes[lane].rate] = rate
        ints[cells.until_ms] = self.clock.mono_ms() + 5_000

    def cell(self, name: str) -> int:
        return self.row.ints[getattr(self.row.layout.budget, name)]


def in_lane(lane: str, make: Callable[[], Awaitable[T]]) -> Awaitable[T]:
    async def of_it() -> T:
        current_lane.set(lane)
        return await make()

    return asyncio.ensure_future(of_it())


async def answered(code: int = 200, retry_after_s: float | None = None) -> Answer:
    return Answer(code, b"", retry_after_s)


def test_a_turn_is_promised_what_its_share_brings_within_the_time_to_send_it() -> None:
    async def run() -> tuple[int, int]:
        bench = Bench()
        bench.lend(replicaset=10_000)
        begun_ms = bench.clock.mono_ms()
        promised = await in_lane("replicaset", lambda: bench.limiter.promise(30, 60.0))
        return promised, bench.clock.mono_ms() - begun_ms

    assert asyncio.run(run()) == (30, 0), "ten a second, three seconds long"


def test_a_turn_that_wants_more_waits_until_its_supervisor_has_told_of_it() -> None:
    async def run() -> tuple[int, int]:
        bench = Bench()
        bench.lend(replicaset=10_000)
        lane, begun_ms = bench.row.layout.budget.lanes["replicaset"], bench.clock.mono_ms()
        task = in_lane("replicaset", lambda: bench.limiter.promise(200, 60.0))
        while bench.clock.mono_ms() - begun_ms < 500:
            await asyncio.sleep(0)
        assert not task.done()
        assert bench.row.ints[lane.waiting] == 1, "so that the supervisor asks for more"
        bench.lend(replicaset=96_000)
        promised = await task
        assert bench.row.ints[lane.waiting] == 0
        return promised, bench.clock.mono_ms() - begun_ms

    promised, took_ms = asyncio.run(run())
    assert promised == 200
    assert took_ms <= 600


def test_a_turn_whose_share_does_not_grow_is_promised_a_part() -> None:
    async def run() -> int:
        bench = Bench()
        bench.lend(replicaset=10_000)
        task = in_lane("replicaset", lambda: bench.limiter.promise(200, 60.0))
        await asyncio.sleep(0)
        await bench.sleep(0.5)
        bench.lend(replicaset=10_000)
        return await task

    assert asyncio.run(run()) == 30


def test_promises_that_are_kept_or_given_up_make_room_for_others() -> None:
    async def run() -> list[int]:
        bench, found = Bench(), []

        async def promise(wanted: int) -> None:
            found.append(await bench.limiter.promise(wanted, 0.0))

        current_lane.set("replicaset")
        bench.lend(replicaset=10_000)
        await promise(25)
        await promise(25)
        await promise(25)
        bench.limiter.redeem(20)
        await promise(25)
        bench.clock.advance(1_000)
        deadline_s = bench.clock.mono_ms() / 1_000 + 1
        assert await bench.limiter.take_until(deadline_s, promised=True)
        await promise(25)
        bench.clock.advance(6_000)
        bench.lend(replicaset=10_000)
        await promise(25)
        return found

    assert asyncio.run(run()) == [25, 5, 0, 20, 1, 25], "and one that nobody kept is forgotten"


def test_a_write_whose_time_is_over_takes_no_token() -> None:
    async def run() -> tuple[bool, int]:
        bench = Bench()
        current_lane.set("replicaset")
        bench.lend(replicaset=1_000)
        in_time = await bench.limiter.take_until(bench.clock.mono_ms() / 1_000 + 0.5, promised=False)
        lane = bench.row.layout.budget.lanes["replicaset"]
        assert bench.row.ints[lane.waiting] == 0
        bench.clock.advance(600)
        return in_time, bench.buckets.take("replicaset", 5)

    assert asyncio.run(run()) == (False, 1)


def test_requests_take_their_tokens_in_order_and_evenly() -> None:
    async def run() -> list[int]:
        bench, came_ms = Bench(), []
        current_lane.set("replicaset")
        bench.lend(replicaset=10_000)
        begun_ms = bench.clock.mono_ms()

        async def take() -> None:
            await bench.limiter.take()
            came_ms.append(bench.clock.mono_ms() - begun_ms)

        await asyncio.gather(*(take() for _ in range(10)))
        return came_ms

    assert asyncio.run(run()) == [100 * i for i in range(1, 11)]


def test_lanes_have_tokens_of_their_own_and_share_what_is_spare() -> None:
    bench = Bench()
    bench.lend(spare=2_000, replicaset=3_000)
    bench.clock.advance(1_000)
    assert bench.buckets.take("deployment", 9) == 2, "what is spare"
    assert bench.buckets.take("replicaset", 9) == 3
    bench.clock.advance(1_000)
    assert bench.buckets.take("replicaset", 9) == 5
    assert bench.buckets.take("deployment", 9) == 0
    assert bench.limiter.for_events().try_take(1) == 0


def test_requests_that_are_no_turn_s_are_in_the_lane_of_events() -> None:
    bench = Bench()
    bench.lend(**{EVENTS: 4_000})
    bench.clock.advance(1_000)
    assert Context().run(bench.limiter.try_take, 9) == 4


def test_no_more_are_under_way_than_the_share() -> None:
    async def run() -> tuple[list[int], int]:
        bench, seen, over = Bench(flights=3), [], asyncio.Event()

        async def send() -> Answer:
            seen.append(bench.cell("under_way"))
            await over.wait()
            return await answered()

        requests = [asyncio.ensure_future(bench.limiter.carry(send)) for _ in range(8)]
        for _ in range(20):
            await asyncio.sleep(0)
        assert len(seen) == 3
        wanted = bench.cell("wanted")
        over.set()
        await asyncio.gather(*requests)
        assert bench.cell("under_way") == 0
        return seen, wanted

    seen, wanted = asyncio.run(run())
    assert max(seen) == 3
    assert len(seen) == 8
    assert wanted == 8, "so that the supervisor can ask for more"


def test_a_turn_announces_a_few_times_its_share_of_requests_under_way() -> None:
    assert Bench(flights=3).flights.announced(500) == 3 * AHEAD
    assert Bench().flights.announced(500) == 500


def test_a_request_that_is_cut_off_is_no_longer_under_way() -> None:
    async def run() -> int:
        bench = Bench(flights=1)
        task = asyncio.ensure_future(bench.limiter.carry(lambda: asyncio.sleep(60, Answer(200, b""))))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return bench.cell("under_way")

    assert asyncio.run(run()) == 0


def test_a_429_stops_all_requests_for_as_long_as_it_says() -> None:
    async def run() -> Bench:
        bench = Bench()
        bench.lend(replicaset=10_000)
        await bench.limiter.carry(lambda: answered(429, 2.0))
        return bench

    bench = asyncio.run(run())
    assert bench.cell("refused") == 1
    bench.clock.advance(1_999)
    assert bench.buckets.take("replicaset", 1) == 0
    assert bench.buckets.wait_s("replicaset", 1) <= 0.01
    bench.clock.advance(1)
    assert bench.buckets.take("replicaset", 1) == 1


def test_answers_are_judged_once_a_second_by_their_median() -> None:
    times = AnswerTimes()

    def second(at_s: int, *took_s: float) -> list[bool]:
        found = [times.add(each, at_s * 1_000 + i) for i, each in enumerate((*took_s, took_s[0]))]
        return [each for each in found if each is not None]

    for at_s in range(1, 5):
        assert second(at_s, *[0.01] * 20) == [False]
    second(5, *[0.01] * 15, *[5.0] * 6)
    assert second(6, *[0.01] * 20) == [False], "a slow webhook makes a few of them slow"
    second(7, *[0.2] * 20)
    assert second(8, *[0.2] * 20) == [True]
    assert times.usual_s == pytest.approx(0.01, rel=0.2)
    fresh = AnswerTimes()
    assert [fresh.add(0.01, at_s * 1_000) for at_s in range(7)] == [None] * 7, "so few are no judgement"
    assert fresh.add(0.01, 7_000) is False


def test_slowness_is_noted_for_the_supervisor() -> None:
    async def run() -> Row:
        bench = Bench()
        for took_s in (0.01, 0.01, 0.3, 0.3):
            for _ in range(12):

                async def send(took_s: float = took_s) -> Answer:
                    await bench.sleep(took_s)
                    return Answer(NO_ANSWER if took_s > 0.1 else 200, b"")

                await bench.limiter.carry(send)
            bench.clock.advance(1_000)
        return bench.row

    row = asyncio.run(run())
    assert row.ints[row.layout.budget.slow] == 1
    assert row.ints[row.layout.budget.judged_ms] > 0
