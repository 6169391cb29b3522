"""What the steps promise, over the twin and every real server."""

from __future__ import annotations

import pytest

from oarlock.queue.values import Claim, Empty, Finished, Policy, Verdict
from tests.keyed_queue.queue_cases import Case

LEASE_MS = 30_000
POLICY = Policy(retries=2, back_off_ms=1_000, back_off_max_ms=1_500)


def add(case: Case, *keys: str, delay_ms: int = 0) -> int:
    return case.steps.add([(key, key.rpartition("/")[0]) for key in keys], delay_ms)


def claim(case: Case, keys_max: int = 1, holder: str = "h1") -> list[Claim]:
    found = case.steps.claim(holder, LEASE_MS, POLICY, keys_max)
    return [] if isinstance(found, Empty) else found


def names(claims: list[Claim]) -> list[str]:
    return [each.key for each in claims]


def ok(case: Case, claimed: Claim, again_ms: int | None = None) -> Finished | None:
    return case.steps.finish(claimed, Verdict.OK, POLICY, again_ms=again_ms)


def failed(case: Case, claimed: Claim) -> Finished | None:
    return case.steps.finish(claimed, Verdict.FAILED, POLICY, error="Traceback ...")


def test_a_queued_key_is_queued_once(case: Case) -> None:
    assert add(case, "a", "b", "a") == 2
    assert add(case, "a") == 0
    assert names(claim(case, 9)) == ["a", "b"]


def test_one_holder_a_key(case: Case) -> None:
    add(case, "a")
    assert names(claim(case)) == ["a"]
    add(case, "a")
    assert claim(case, holder="h2") == []


def test_added_while_it_runs_it_runs_again(case: Case) -> None:
    add(case, "a")
    (first,) = claim(case)
    assert add(case, "a") == 0
    assert case.steps.look("a").state == "running+"
    assert ok(case, first) == Finished("queued", 0)
    (second,) = claim(case)
    assert second.token > first.token
    assert ok(case, second) == Finished("idle", 0)
    assert claim(case) == []


def test_nothing_is_left_of_idle_keys(case: Case) -> None:
    add(case, "eu/a", "b")
    for each in claim(case, 9):
        ok(case, each)
    state = case.state()
    left = {name: value for name, value in state.items() if value and name not in ("token", "tick", "consumers")}
    assert left == {}


def test_a_delayed_key_is_due_in_time_and_the_earlier_time_wins(case: Case) -> None:
    add(case, "a", delay_ms=2_000)
    add(case, "a", delay_ms=1_000)
    add(case, "a", delay_ms=3_000)
    assert case.steps.claim("h1", LEASE_MS, POLICY) == Empty(1_000)
    case.jump(999)
    assert claim(case) == []
    case.jump(1)
    assert names(claim(case)) == ["a"]
    case.jump(3_000)
    assert claim(case, holder="h2") == []


@pytest.mark.parametrize("delay_ms", [0, -5])
def test_a_delay_that_is_over_is_none(case: Case, delay_ms: int) -> None:
    assert add(case, "a", delay_ms=delay_ms) == 1


def test_again_is_no_failure(case: Case) -> None:
    add(case, "a")
    failed(case, claim(case)[0])
    case.jump(1_000)
    (second,) = claim(case)
    assert second.failures == 1
    assert ok(case, second, again_ms=500) == Finished("delayed", 0)
    case.jump(500)
    assert claim(case)[0].failures == 0


def test_back_off_and_parking(case: Case) -> None:
    """1 s, then 2 s cut down to 1.5 s; the third failure is one more than two retries."""
    add(case, "a")
    for failures, pause_ms in ((1, 1_000), (2, 1_500)):
        assert failed(case, claim(case)[0]) == Finished("delayed", failures)
        case.jump(pause_ms - 1)
        assert claim(case) == []
        case.jump(1)
    assert failed(case, claim(case)[0]) == Finished("parked", 3)
    assert add(case, "a") == 0
    (parked,) = case.steps.parked(9)
    assert (parked.key, parked.failures, parked.error) == ("a", 3, "Traceback ...")
    assert case.steps.requeue(["a", "b"]) == (1, 2)
    (again, _) = claim(case, 9)
    assert (again.key, again.failures) == ("a", 0)


@pytest.mark.parametrize(
    ("error", "kept"),
    [
        ("OSError: caf\udce9.txt", "OSError: caf\\udce9.txt"),
        ("Fehler: Größe 日本", "Fehler: Größe 日本"),
        ("first" + "x" * 7_996 + "last", "x" * 7_996 + "last"),
        ("\udce9" * 8_000 + "last", "dce9" + "\\udce9" * 1_332 + "last"),
    ],
    ids=["a lone surrogate", "UTF-8", "long", "long once it is spelled out"],
)
def test_any_text_of_a_failure_can_be_kept(case: Case, error: str, kept: str) -> None:
    add(case, "a")
    (first,) = claim(case)
    case.steps.finish(first, Verdict.FAILED, POLICY, error=error)
    assert case.steps.look("a").error == kept


def test_a_failure_while_it_was_added_again_is_retried_at_once(case: Case) -> None:
    add(case, "a")
    (first,) = claim(case)
    add(case, "a")
    assert failed(case, first) == Finished("queued", 1)
    assert names(claim(case)) == ["a"]


def silent(case: Case, ms: int) -> None:
    """Time passes, in which another consumer goes on looking."""
    for _ in range(ms // 1_000):
        case.jump(1_000)
        case.steps.renew("h2", LEASE_MS, [])


def test_the_keys_of_a_dead_consumer_come_back_after_the_lease(case: Case) -> None:
    add(case, "a")
    (first,) = claim(case)
    silent(case, LEASE_MS - 1_000)
    assert claim(case, holder="h2") == []
    silent(case, 1_000)
    (second,) = claim(case, holder="h2")
    assert (second.key, second.failures) == ("a", 1)
    assert second.token > first.token
    assert ok(case, first) is None, "fenced"
    assert case.steps.renew("h1", LEASE_MS, [first, second]) == [first.token]
    assert ok(case, second) == Finished("idle", 0)


def test_a_key_that_kills_its_consumers_is_parked(case: Case) -> None:
    add(case, "a")
    for _ in range(3):
        assert names(claim(case)) == ["a"]
        silent(case, LEASE_MS)
        claim(case, 0, holder="h2")
        silent(case, 2_000)
        claim(case, 0, holder="h2")
    (parked,) = case.steps.parked(9)
    assert "h1 died" in parked.error


def test_a_renewed_lease_does_not_end(case: Case) -> None:
    add(case, "a")
    (first,) = claim(case)
    for _ in range(40):
        case.jump(1_000)
        assert case.steps.renew("h1", LEASE_MS, [first]) == []
    assert claim(case, holder="h2") == []
    assert ok(case, first) == Finished("idle", 0)


@pytest.mark.parametrize("jump_ms", [3_600_000, -3_600_000, 5_001], ids=["on", "back", "away"])
def test_a_clock_that_jumps_takes_no_key_from_its_holder(case: Case, jump_ms: int) -> None:
    """Also a Redis that was away: each lease begins anew, so the holder has time to renew."""
    add(case, "a")
    (first,) = claim(case)
    case.jump(jump_ms)
    assert claim(case, holder="h2") == []
    facts = case.steps.look("a")
    assert facts.lease_left_ms == LEASE_MS
    assert case.steps.renew("h1", LEASE_MS, [first]) == []
    silent(case, LEASE_MS)
    assert names(claim(case, holder="h2")) == ["a"], "nor does it keep a key longer than a lease"


@pytest.mark.parametrize("every_ms", [5_001, 60_000, 3_600_000], ids=["5 s", "a minute", "an hour"])
def test_a_dead_consumer_keeps_its_key_for_one_lease_more_though_others_come_seldom(case: Case, every_ms: int) -> None:
    """As ``run(burst=True)`` from cron does: each call is one after a time in which nobody could renew."""
    add(case, "a")
    claim(case)
    waited_ms = 0
    while not (found := claim(case, holder="h2")):
        case.jump(every_ms)
        waited_ms += every_ms
        assert waited_ms <= 2 * (LEASE_MS + every_ms), "one lease more, once"
    assert (found[0].key, found[0].failures) == ("a", 1)


def test_a_holder_that_renews_is_safe_from_each_jump(case: Case) -> None:
    add(case, "a")
    (first,) = claim(case)
    for jump_ms in (60_000, 60_000, -3_600_000, 3_600_000):
        case.jump(jump_ms)
        assert claim(case, holder="h2") == []
        assert case.steps.renew("h1", LEASE_MS, [first]) == []
    assert ok(case, first) == Finished("idle", 0)


def test_a_clock_that_jumps_on_and_back_keeps_no_key_longer_than_a_lease(case: Case) -> None:
    add(case, "a")
    claim(case)
    for jump_ms in (3_600_000, -3_600_000):
        case.jump(jump_ms)
        assert claim(case, holder="h2") == []
        assert case.steps.look("a").lease_left_ms == LEASE_MS
    silent(case, LEASE_MS)
    assert names(claim(case, holder="h2")) == ["a"]


def test_tokens_grow_though_the_clock_goes_back(case: Case) -> None:
    add(case, "a", "b")
    (first,) = claim(case)
    case.jump(-3_600_000)
    (second,) = claim(case)
    assert second.token == first.token + 1


def test_groups_take_turns(case: Case) -> None:
    add(case, *(f"flood/{n}" for n in range(50)))
    add(case, "lone/1", "x", "lone/2")
    assert names(claim(case, 7)) == ["flood/0", "lone/1", "x", "flood/1", "lone/2", "flood/2", "flood/3"]


def test_a_key_keeps_its_group(case: Case) -> None:
    case.steps.add([("a", "g1")])
    (first,) = claim(case)
    case.steps.add([("a", "g2")])
    ok(case, first)
    assert case.steps.look("a").group == "g2"
    assert case.state()["streams"] == [("g2", ["a"])]


def test_stats_and_look(case: Case) -> None:
    add(case, "g/a", "g/b", "c", "d")
    add(case, "e", delay_ms=500)
    claimed = claim(case, 2)
    failed(case, claimed[1])
    stats = case.steps.stats()
    assert (stats.queued, stats.running, stats.delayed, stats.parked, stats.failing) == (2, 1, 2, 0, 1)
    assert (stats.groups, stats.consumers) == (2, 1)
    case.jump(100)
    facts = case.steps.look("g/a")
    assert (facts.state, facts.group, facts.token, facts.holder) == ("running", "g", claimed[0].token, "h1")
    assert (facts.running_ms, facts.lease_left_ms, facts.due_in_ms) == (100, LEASE_MS - 100, None)
    facts = case.steps.look("c")
    assert (facts.state, facts.due_in_ms, facts.failures, facts.error) == ("idle", 900, 1, "Traceback ...")
    assert case.steps.look("nobody").state == "idle"
    case.jump(6_000)
    assert case.steps.stats().consumers == 0
