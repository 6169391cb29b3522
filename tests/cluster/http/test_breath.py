"""While many answers are awaited they are taken in by handfuls; elsewhere nothing waits."""

import asyncio
from collections.abc import Sequence
from itertools import cycle

import pytest

from oarlock.cluster.http.breath import LEAST_S, MANY, MOST_S, PART, Breath
from oarlock.cluster.http.transport import Transport
from tests.cluster.client_helpers import RawServer, config_of, looped, reply

SLOW_S = 10.0
"""As long as no rest may be."""


def rests_after(under_way: Sequence[int], rounds: int, *answers_s: float) -> list[float]:
    """How long the thread rests where answers take so long and all come in a round of the loop, again and again.
    ``under_way``: how many requests are when the answers come, and when the rest is due.
    """
    rests: list[float] = []
    breath = Breath(rests.append)
    counts = cycle(under_way)

    async def run() -> None:
        for _ in range(rounds):
            for took_s in answers_s:
                breath.answered(lambda: next(counts), took_s, asyncio.get_running_loop())
            for _ in range(10):
                await asyncio.sleep(0)

    asyncio.run(run())
    return rests


@pytest.mark.parametrize(
    ("under_way", "answers_s", "expected"),
    [
        pytest.param((MANY,), [SLOW_S], [MOST_S], id="many are awaited"),
        pytest.param((MANY - 1,), [SLOW_S], [], id="few are awaited"),
        pytest.param((MANY, MANY - 1), [SLOW_S], [], id="few are by the time of the rest"),
        pytest.param((MANY,), [PART * LEAST_S], [LEAST_S], id="a part of what an answer took"),
        pytest.param((MANY,), [PART * LEAST_S * 0.99], [], id="the server is quick: to rest costs more than to wake"),
        pytest.param((MANY,), [SLOW_S] * 5, [MOST_S], id="a rest for all of a round"),
    ],
)
def test_how_long_it_rests(under_way: Sequence[int], answers_s: list[float], expected: list[float]) -> None:
    assert rests_after(under_way, 1, *answers_s) == expected
    assert rests_after(under_way, 3, *answers_s) == 3 * expected


@looped
async def test_a_rest_comes_after_the_next_requests_have_left_and_none_after_the_last():
    """MANY answers at once, with as many requests behind them: the server has those before the thread rests. It may
    rest more than once, as answers may come in several rounds of the loop on a busy machine.
    """
    asked: list[asyncio.StreamWriter] = []
    answered: list[asyncio.StreamWriter] = []
    waiting: list[int] = []
    loop = asyncio.get_running_loop()

    def react(nth: int, writer: asyncio.StreamWriter) -> bool:
        asked.append(writer)
        if len(asked) % MANY == 0:
            loop.call_later(2 * PART * LEAST_S, answer, asked[-MANY:])
        return True

    def answer(writers: list[asyncio.StreamWriter]) -> None:
        for each in writers:
            reply(each)
            answered.append(each)

    async with RawServer(react).running() as url, Transport(config_of(url), writes_max=MANY) as transport:
        assert transport._straight is not None
        transport._straight._breath = Breath(lambda _: waiting.append(len(asked) - len(answered)))
        answers = await asyncio.gather(*(transport.write("POST", "/x", b"{}") for _ in range(2 * MANY)))
        for _ in range(10):
            await asyncio.sleep(0)
    assert [each.code for each in answers] == [200] * (2 * MANY)
    assert set(waiting) == {MANY}, "so many requests wait at the server for as long as there is a rest"
