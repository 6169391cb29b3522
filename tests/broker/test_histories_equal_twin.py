"""Long histories of one key, on a real server and in the twin: the same text after each turn, and what it says is so.

The other twins' test has turns of all sorts, but never as many over one key as a history can hold.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest

from oarlock.broker.looks.history import PastTurn, past_turns
from oarlock.broker.values.turns import Finish, Verdict
from tests.broker.broker_cases import QUEUE, Case, MemoryCase, RedisCase, claim_one, opened

KEY = "shop/web"
TURNS = 200
DONE = ("", "", "", "status", "status", "status", "create pods x3", "delete pods", "create pods: 403 " + "quota " * 20)
HOLDERS = ("w-host-1a2b-0", "w-host-1a2b-11", "w-other-3c4d-0", "odd")
TRIGGERS = ("asked", "due", "set pods/shop/web-abcde", "del pods/shop/web-abcde", "replicaset shop/web", "read pods")


@dataclass(frozen=True)
class Done:
    """A turn as it was carried out."""

    did: str
    verdict: str
    ended_ms: int
    waited_ms: int
    took_ms: int
    holder: str
    trigger: str


def texts(case: Case) -> tuple[str, str]:
    """The newest turns and the older ones."""
    newest, older = (case.state().get(half, {}).get(QUEUE, {}).get(KEY, "") for half in ("turns", "history"))
    return newest, older


def carry_out(cases: tuple[Case, ...], chosen: random.Random) -> Done:
    did, holder, trigger = chosen.choice(DONE), chosen.choice(HOLDERS), chosen.choice(TRIGGERS)
    verdict = chosen.choice((Verdict.OK, Verdict.OK, Verdict.OK, Verdict.RETRY, Verdict.GONE))
    waited_ms, took_ms, lost = chosen.choice((0, 3, 70_000)), chosen.choice((1, 12, 900)), chosen.random() < 0.05
    for case in cases:
        case.worker.register(holder, "supervisor", [QUEUE])
        case.worker.add(QUEUE, [KEY], why=trigger)
        case.advance(waited_ms)
        one = claim_one(case, holder)
        claimed_ms = case.now_ms()
        case.advance(took_ms)
        if lost:
            case.worker.release(holder)
            case.worker.register(holder, "supervisor", [QUEUE])
            again = claim_one(case, holder)
            case.worker.finish([Finish(QUEUE, KEY, again.nonce, Verdict.OK, did="after a loss")])
        else:
            case.worker.finish([Finish(QUEUE, KEY, one.nonce, verdict, did=did)])
    if lost:
        return Done("after a loss", "ok", cases[0].now_ms(), 0, 0, holder, f"lost {holder} {claimed_ms}")
    return Done(did or "-", verdict, cases[0].now_ms(), waited_ms, took_ms, holder, trigger)


def told(line: PastTurn, was: Done) -> bool:
    if line.verdict == "lost":
        return line.holder == was.holder
    of_line = (line.verdict, line.holder, line.triggers.first, line.waited_ms, line.took_ms)
    return of_line == (was.verdict, was.holder, was.trigger, was.waited_ms, was.took_ms)


@pytest.mark.real
@pytest.mark.parametrize("seed", [1, 2])
def test_a_long_history(seed: int, real: RedisCase) -> None:
    chosen, twin = random.Random(seed), MemoryCase()
    cases = (opened(real), opened(twin))
    done: list[Done] = []
    for _ in range(TURNS):
        done.insert(0, carry_out(cases, chosen))
        assert texts(real) == texts(twin)
        assert sum(map(len, texts(real))) <= 1_000
        assert real.state()["history_bytes"] == twin.state()["history_bytes"]
        lines = past_turns(*texts(real), KEY)
        known = {each.ended_ms: number for number, each in enumerate(done)}
        for line in lines:
            number = known[line.ended_ms]
            alike = enumerate(done[number : number + line.turns])
            late = [was for at, was in alike if at < 10 or line.ended_ms - was.ended_ms <= 10_000]
            assert any(told(line, was) for was in late), line
            did = done[number].did
            assert line.verdict == "lost" or line.did == did or (line.did == "quiet" and did in ("-", "status"))
        assert lines[0].ended_ms == done[0].ended_ms
        assert [line.ended_ms for line in lines] == sorted((line.ended_ms for line in lines), reverse=True)
