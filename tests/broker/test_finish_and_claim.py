"""The end of some turns and the claim of other keys in one round trip: each is as if it had come alone."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from oarlock.broker.values.claims import Batch, Claim, ClaimLimits, Idle
from oarlock.broker.values.errors import DataDamaged, EpochOver
from oarlock.broker.values.turns import Finish, Verdict
from tests.broker.broker_cases import DRAIN_MS, LEASE_MS, QUEUE, SPECS, Case, RedisCase, claim, opened, state_of

LIMITS = ClaimLimits(LEASE_MS, DRAIN_MS)


def both(case: Case, ended: list[Claim], nonce: str = "next") -> tuple[list[int], Callable[[], Batch | Idle]]:
    finishes = [Finish(one.queue, one.key, one.nonce, Verdict.OK) for one in ended]
    return case.worker.finish_and_claim(finishes, "w1", nonce, SPECS, LIMITS)


def keys_of(found: Batch | Idle) -> list[str]:
    return [one.key for one in found.claims] if isinstance(found, Batch) else []


def test_turns_end_and_keys_are_taken(case: Case) -> None:
    opened(case, "ns/a", "ns/b")
    case.worker.add(QUEUE, ["ns/a", "ns/b"])
    first = claim(case, keys_max=1)
    failures, claimed = both(case, first)
    found = claimed()
    assert failures == [0]
    assert keys_of(found) == ["ns/b"]
    assert [state_of(case, key) for key in ("ns/a", "ns/b")] == ["idle", "running"]
    assert both(case, found.claims)[0] == [0]  # type: ignore[union-attr]


def test_the_ends_come_first(case: Case) -> None:
    """A key that an event marked while its turn was under way is taken by the claim that comes with its end."""
    opened(case, "ns/a")
    case.worker.add(QUEUE, ["ns/a"])
    first = claim(case)
    case.worker.add(QUEUE, ["ns/a"])
    assert keys_of(both(case, first)[1]()) == ["ns/a"]


def test_a_turn_that_is_lost_does_not_keep_the_worker_from_other_keys(case: Case) -> None:
    opened(case, "ns/a", "ns/b")
    case.worker.add(QUEUE, ["ns/a"])
    first = claim(case)
    case.worker.release("w1")
    case.worker.register("w1", "supervisor", [QUEUE])
    failures, claimed = both(case, first)
    assert failures == [-1]
    assert keys_of(claimed()) == ["ns/a"]


def test_where_there_is_no_key_it_says_so(case: Case) -> None:
    opened(case, "ns/a")
    case.worker.add(QUEUE, ["ns/a"])
    assert both(case, claim(case))[1]() is Idle.EMPTY
    assert set(case.state()["waiters"]) == {"w1"}, "it waits, as after any such claim"


def test_after_the_epoch_neither_is_done(case: Case) -> None:
    opened(case, "ns/a")
    case.worker.add(QUEUE, ["ns/a"])
    first, worker = claim(case), case.worker
    case.bootstrap()
    with pytest.raises(EpochOver):
        worker.finish_and_claim([Finish(QUEUE, first[0].key, first[0].nonce, Verdict.OK)], "w1", "n", SPECS, LIMITS)


def test_what_the_claim_meets_does_not_hide_what_became_of_the_turns(real: RedisCase) -> None:
    opened(real, "ns/a", "ns/b")
    real.worker.add(QUEUE, ["ns/a", "ns/b"])
    first = claim(real, keys_max=1)
    real.admin.set(f"{real.worker.keys.base}waiters", "no zset")  # type: ignore[attr-defined]
    failures, claimed = both(real, first)
    assert failures == [0]
    with pytest.raises(DataDamaged, match="claim: the data of epoch"):
        claimed()


def test_where_the_end_fails_it_says_what_the_end_met(real: RedisCase) -> None:
    opened(real, "ns/a", "ns/b")
    real.worker.add(QUEUE, ["ns/a", "ns/b"])
    first = claim(real, keys_max=1)
    real.admin.delete(real.worker.keys.failures(QUEUE))  # type: ignore[attr-defined]
    real.admin.set(real.worker.keys.failures(QUEUE), "no hash")  # type: ignore[attr-defined]
    with pytest.raises(DataDamaged, match="finish: the data of epoch"):
        both(real, first)
