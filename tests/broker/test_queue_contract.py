"""The work queue: client-go's semantics on the twin, on real servers and on fakeredis.

Cases of upstream's tests that mean something else here are listed in deviations.md.
"""

from __future__ import annotations

import pytest

from oarlock.broker import keys
from oarlock.broker.values.claims import Batch, ClaimLimits, Idle, LoadSpec
from oarlock.broker.values.errors import ClaimLost
from oarlock.broker.values.events import Event
from oarlock.broker.values.turns import Change, Entry, Finish, Verdict
from tests.broker import broker_state
from tests.broker.broker_cases import (
    DRAIN_MS,
    LEASE_MS,
    QUEUE,
    SPECS,
    Case,
    RedisCase,
    claim,
    claim_one,
    claim_reply,
    crash,
    finish,
    opened,
    park,
    state_of,
)

OTHER = "daemonset"


def stream(case: Case, queue: str = QUEUE) -> list[str]:
    return broker_state.queued(case.state(), queue)


def names(case: Case, **limits: int) -> list[str]:
    """The keys a claim brings."""
    return [one.key for one in claim(case, **limits)]


# -- add -------------------------------------------------------------------------------------------------------------


def test_a_key_added_twice_is_claimed_once(queue_case: Case) -> None:
    case = opened(queue_case)
    assert case.worker.add(QUEUE, ["ns/a", "ns/a"]) == 1
    assert case.worker.add(QUEUE, ["ns/a"]) == 0
    assert stream(case) == ["ns/a"]
    assert names(case) == ["ns/a"]
    assert claim_reply(case) is Idle.EMPTY


def test_a_key_added_twice_keeps_its_place(queue_case: Case) -> None:
    case = opened(queue_case)
    case.worker.add(QUEUE, ["ns/a", "ns/b"])
    case.worker.add(QUEUE, ["ns/a", "ns/c"])
    assert names(case) == ["ns/a", "ns/b", "ns/c"]


def test_keys_of_one_name_in_two_queues_are_two_keys(queue_case: Case) -> None:
    case = opened(queue_case)
    case.worker.register("w1", "s", [QUEUE, OTHER])
    assert (case.worker.add(QUEUE, ["ns/a"]), case.worker.add(OTHER, ["ns/a"])) == (1, 1)
    claim(case)
    assert (state_of(case, "ns/a"), state_of(case, "ns/a", OTHER)) == ("running", "queued")


def test_a_key_added_while_running_is_queued_again_at_its_end(queue_case: Case) -> None:
    """Re-insert: however often it was added meanwhile, it comes once more, and then no more."""
    case = opened(queue_case)
    case.worker.add(QUEUE, ["ns/a"])
    first = claim_one(case)
    assert [case.worker.add(QUEUE, ["ns/a"]) for _ in range(3)] == [0, 0, 0]
    assert state_of(case, "ns/a") == "running+"
    assert claim_reply(case) is Idle.EMPTY, "a second worker must not get it before the first is done"
    assert finish(case, first) == 0
    assert stream(case) == ["ns/a"]
    finish(case, claim_one(case))
    assert state_of(case, "ns/a") == "idle"
    assert claim_reply(case) is Idle.EMPTY


def test_nothing_is_left_of_a_finished_key(queue_case: Case) -> None:
    case = opened(queue_case)
    before = case.state()
    case.worker.add(QUEUE, ["ns/a"])
    finish(case, claim_one(case))
    after = case.state()
    for_people = {"turns", "histories", "history_bytes"}
    assert {part for part, value in after.items() if before.get(part) != value} == for_people


@pytest.mark.parametrize(
    ("verdict", "delay_ms", "added", "state", "delayed"),
    [
        pytest.param(Verdict.OK, None, False, "idle", None, id="ok"),
        pytest.param(Verdict.OK, None, True, "queued", None, id="ok, changed meanwhile"),
        pytest.param(Verdict.OK, 700, False, "idle", 700, id="ok, look again"),
        pytest.param(Verdict.OK, 700, True, "queued", 700, id="ok, look again, changed meanwhile"),
        pytest.param(Verdict.OK, 0, False, "queued", None, id="ok, look again at once"),
        pytest.param(Verdict.RETRY, None, False, "idle", 5, id="retry"),
        pytest.param(Verdict.RETRY, None, True, "queued", 5, id="retry, changed meanwhile"),
        pytest.param(Verdict.RETRY, 900, False, "idle", 900, id="retry, not before"),
        pytest.param(Verdict.RETRY, 2, False, "idle", 5, id="retry, not before less than the back-off"),
        pytest.param(Verdict.GONE, None, False, "idle", None, id="gone"),
        pytest.param(Verdict.GONE, None, True, "queued", None, id="gone, changed meanwhile"),
    ],
)
def test_where_a_key_goes_at_its_end(
    queue_case: Case, verdict: Verdict, delay_ms: int | None, added: bool, state: str, delayed: int | None
) -> None:
    case = opened(queue_case)
    case.worker.add(QUEUE, ["ns/a"])
    one = claim_one(case)
    if added:
        case.worker.add(QUEUE, ["ns/a"])
    assert finish(case, one, verdict, delay_ms) == (1 if verdict is Verdict.RETRY else 0)
    assert state_of(case, "ns/a") == state
    due = case.state().get("delayed", {}).get(QUEUE, {}).get("ns/a")
    assert (None if due is None else due - case.now_ms()) == delayed


@pytest.mark.parametrize("before", ["idle", "queued", "running", "running+", "parked"])
@pytest.mark.parametrize("step", ["add", "add_after", "due delayed", "unpark"])
def test_states(queue_case: Case, before: str, step: str) -> None:
    """Every step from every state: the whole table."""
    case = opened(queue_case)
    if before in ("queued", "running", "running+"):
        case.worker.add(QUEUE, ["ns/a"])
    if before.startswith("running"):
        claim(case)
    if before == "running+":
        case.worker.add(QUEUE, ["ns/a"])
    if before == "parked":
        park(case, "ns/a")
    assert state_of(case, "ns/a") == before
    if step == "add":
        case.worker.add(QUEUE, ["ns/a"])
    elif step == "unpark":
        case.worker.add(QUEUE, ["ns/a"], unpark=True)
    else:
        case.worker.add_after(QUEUE, "ns/a", 50)
        assert state_of(case, "ns/a") == before, "a delay leaves the state alone"
        if step == "due delayed":
            case.advance(50)
            assert case.worker.due()[0] == 1
            assert "delayed" not in case.state()
    after = {"idle": "queued", "running": "running+"}.get(before, before)
    if step == "add_after":
        after = before
    if step == "unpark" and before == "parked":
        after = "queued"
    assert state_of(case, "ns/a") == after


# -- add_after -------------------------------------------------------------------------------------------------------


def test_a_delayed_key_comes_in_its_time_and_once(queue_case: Case) -> None:
    case = opened(queue_case)
    case.worker.add_after(QUEUE, "ns/a", 50)
    assert claim_reply(case) is Idle.EMPTY
    assert case.worker.due() == (0, 50)
    case.advance(49)
    assert case.worker.due() == (0, 1)
    case.advance(1)
    assert case.worker.due() == (1, None)
    finish(case, claim_one(case))
    case.advance(10_000)
    assert case.worker.due() == (0, None)
    assert claim_reply(case) is Idle.EMPTY


@pytest.mark.parametrize("delay_ms", [0, -1])
def test_no_delay_is_an_add(queue_case: Case, delay_ms: int) -> None:
    case = opened(queue_case)
    case.worker.add_after(QUEUE, "ns/a", delay_ms)
    assert (stream(case), case.state().get("delayed")) == (["ns/a"], None)


@pytest.mark.parametrize(("first", "second", "due"), [(50, 70, 50), (50, 30, 30), (50, 50, 50)])
def test_the_earlier_of_two_delays_wins(queue_case: Case, first: int, second: int, due: int) -> None:
    case = opened(queue_case)
    case.worker.add_after(QUEUE, "ns/a", first)
    case.worker.add_after(QUEUE, "ns/a", second)
    assert case.worker.due() == (0, due)
    case.advance(due)
    assert case.worker.due() == (1, None)


def test_delayed_keys_come_in_the_order_of_their_times(queue_case: Case) -> None:
    case = opened(queue_case)
    for key, delay_ms in (("ns/a", 1000), ("ns/b", 500), ("ns/c", 250), ("ns/d", 5000)):
        case.worker.add_after(QUEUE, key, delay_ms)
    case.advance(1000)
    assert case.worker.due() == (3, 4000)
    assert stream(case) == ["ns/c", "ns/b", "ns/a"]


def test_an_add_leaves_the_delay_alone(queue_case: Case) -> None:
    """client-go: the key comes a second time when its delay has ripened."""
    case = opened(queue_case)
    case.worker.add_after(QUEUE, "ns/a", 50)
    case.worker.add(QUEUE, ["ns/a"])
    finish(case, claim_one(case))
    case.advance(50)
    assert case.worker.due() == (1, None)
    assert stream(case) == ["ns/a"]


def test_due_takes_as_many_as_it_is_told_and_says_that_more_are_waiting(queue_case: Case) -> None:
    case = opened(queue_case)
    for i in range(5):
        case.worker.add_after(QUEUE, f"ns/{i}", 10 + i)
    case.advance(100)
    assert [case.worker.due(2) for _ in range(4)] == [(2, 0), (2, 0), (1, None), (0, None)]
    assert stream(case) == [f"ns/{i}" for i in range(5)]


def test_the_timer_is_told_of_an_earlier_time_only(queue_case: Case) -> None:
    """One token is enough; a supervisor asleep until 500 ms need not wake for 900."""
    case = opened(queue_case)
    case.worker.add_after(QUEUE, "ns/a", 500)
    assert case.state()["timer"] == 1
    assert case.worker.wait_timer()
    case.worker.add_after(QUEUE, "ns/b", 900)
    case.worker.add_after(QUEUE, "ns/a", 600)
    assert case.state()["timer"] == 0
    case.worker.add_after(QUEUE, "ns/c", 100)
    case.worker.add_after(QUEUE, "ns/d", 50)
    assert case.state()["timer"] == 1


# -- rate limits -----------------------------------------------------------------------------------------------------


def test_back_off_doubles_to_a_thousand_seconds(queue_case: Case) -> None:
    """Upstream's default limiter: 5 ms, 10, ... 655.36 s, then 1000 s for ever. Time passes, so the bucket is full."""
    case = opened(queue_case)
    expected = [min(5 * 2**i, 1_000_000) for i in range(25)]
    found = []
    for _ in expected:
        found.append(case.worker.add_rate_limited(QUEUE, "ns/a"))
        case.advance(1_000)
    assert found == expected
    assert expected[16:20] == [327_680, 655_360, 1_000_000, 1_000_000]
    assert case.worker.num_requeues(QUEUE, "ns/a") == 25


def test_back_off_is_of_each_key_and_forgotten(queue_case: Case) -> None:
    case = opened(queue_case)
    add = case.worker.add_rate_limited
    assert [add(QUEUE, "ns/a"), add(QUEUE, "ns/a"), add(QUEUE, "ns/b"), add(OTHER, "ns/a")] == [5, 10, 5, 5]
    assert [case.worker.num_requeues(QUEUE, key) for key in ("ns/a", "ns/b", "ns/c")] == [2, 1, 0]
    case.worker.forget(QUEUE, "ns/a")
    assert case.worker.num_requeues(QUEUE, "ns/a") == 0
    assert add(QUEUE, "ns/a") == 5


def test_forget_neither_dequeues_nor_ends_a_turn(queue_case: Case) -> None:
    case = opened(queue_case)
    case.worker.add(QUEUE, ["ns/a", "ns/b"])
    claim_one(case)
    case.worker.add_rate_limited(QUEUE, "ns/c")
    for key in ("ns/a", "ns/b", "ns/c"):
        case.worker.forget(QUEUE, key)
    assert (state_of(case, "ns/a"), state_of(case, "ns/b")) == ("running", "queued")
    assert case.worker.due() == (0, 5)


def test_the_bucket_is_shared_by_the_queue(queue_case: Case) -> None:
    """Burst 100, then 10 a second: at one instant the 101st waits 100 ms, the next 200. Other queues have their own."""
    case = opened(queue_case)
    delays = [case.worker.add_rate_limited(QUEUE, f"ns/{i}") for i in range(104)]
    assert delays == [5] * 100 + [100, 200, 300, 400]
    assert case.worker.add_rate_limited(OTHER, "ns/0") == 5
    case.advance(250)  # 2.5 tokens back
    assert case.worker.add_rate_limited(QUEUE, "ns/next") == 250
    case.advance(3_600_000)
    assert [case.worker.add_rate_limited(QUEUE, f"ns/then{i}") for i in range(101)][-2:] == [5, 100]


def test_a_failing_key_takes_a_token_even_where_its_own_delay_is_longer(queue_case: Case) -> None:
    case = opened(queue_case)
    for _ in range(100):
        case.worker.add_rate_limited(QUEUE, "ns/a")
    assert case.worker.add_rate_limited(QUEUE, "ns/b") == 100


def test_the_bucket_survives_a_clock_that_goes_back(queue_case: Case) -> None:
    case = opened(queue_case)
    for i in range(100):
        case.worker.add_rate_limited(QUEUE, f"ns/{i}")
    case.jump(-3_600_000)
    assert case.worker.add_rate_limited(QUEUE, "ns/x") == 100
    case.jump(1_000)  # refills again at once, not after the hour
    assert case.worker.add_rate_limited(QUEUE, "ns/y") == 5


def test_failed_turns_back_off_and_a_good_one_forgets(queue_case: Case) -> None:
    case = opened(queue_case)
    case.worker.add(QUEUE, ["ns/a"])
    for failures, delay_ms in enumerate((5, 10, 20, 40), 1):
        assert finish(case, claim_one(case), Verdict.RETRY) == failures
        assert case.worker.due() == (0, delay_ms)
        case.advance(delay_ms)
        assert case.worker.due() == (1, None)
    assert finish(case, claim_one(case)) == 0
    case.worker.add(QUEUE, ["ns/a"])
    finish(case, claim_one(case), Verdict.RETRY)
    assert case.worker.due() == (0, 5)


# -- claims ----------------------------------------------------------------------------------------------------------


def test_a_claim_takes_at_most_so_many_in_order(queue_case: Case) -> None:
    case = opened(queue_case)
    case.worker.add(QUEUE, [f"ns/{i}" for i in range(20)])
    assert names(case) == [f"ns/{i}" for i in range(8)]
    assert names(case, keys_max=1) == ["ns/8"]
    assert len(names(case, keys_max=100)) == 11


def test_a_batch_ends_where_its_bytes_would(queue_case: Case) -> None:
    """Owners of 10 kB each: three fit into 32 kB; one too large for any batch goes alone."""
    case = opened(queue_case)
    owners = [Event(f"ns/{i}", f"{101 + i}", "uid", b"x" * 10_000) for i in range(5)]
    owners.append(Event("ns/5", "106", "uid", b"y" * 300_000))
    assert case.ingestor.ingest("replicasets", "100", "106", owners).verdict == "OK"
    case.worker.add(QUEUE, [f"ns/{i}" for i in range(6)])
    assert names(case, bytes_max=32_000) == ["ns/0", "ns/1", "ns/2"]
    assert names(case, bytes_max=32_000) == ["ns/3", "ns/4"]
    assert names(case, bytes_max=32_000) == ["ns/5"]


def test_children_count_for_the_bytes_of_a_batch(queue_case: Case) -> None:
    """300 bytes each are assumed, so that an owner's children need not be read before it is taken."""
    case = opened(queue_case, "ns/a", "ns/b", "ns/c")
    pods = [Event(f"ns/p{i}", f"{101 + i}", "u", b"p", (f"owner=uid-ns/{'ab'[i % 2]}",)) for i in range(20)]
    case.ingestor.ingest("pods", "100", "120", pods)
    case.worker.add(QUEUE, ["ns/a", "ns/b", "ns/c"])
    assert names(case, bytes_max=5_000) == ["ns/a"]
    assert names(case, bytes_max=5_000) == ["ns/b", "ns/c"]


def test_a_key_that_crashed_is_claimed_alone(queue_case: Case) -> None:
    case = opened(queue_case)
    case.worker.add(QUEUE, ["ns/bad"])
    claim(case)
    case.worker.release("w1", blamed=f"{QUEUE}:ns/bad")
    case.worker.register("w2", "s", [QUEUE])
    case.worker.add(QUEUE, ["ns/a", "ns/b"])
    assert names(case, holder="w2") == ["ns/bad"]
    assert names(case, holder="w2") == ["ns/a", "ns/b"]


def test_a_key_that_crashed_ends_a_batch_before_it(queue_case: Case) -> None:
    case = opened(queue_case, holders=("w1", "w2"))
    case.worker.add(QUEUE, ["ns/bad"])
    claim(case)
    case.worker.add(QUEUE, ["ns/a"])
    case.worker.release("w1", blamed=f"{QUEUE}:ns/bad")
    case.worker.add(QUEUE, ["ns/b"])
    assert [names(case, holder="w2") for _ in range(3)] == [["ns/a"], ["ns/bad"], ["ns/b"]]


def test_queues_are_asked_in_the_order_given(queue_case: Case) -> None:
    """Fairness is the caller's rotation: the first queue with a key is served, and only that one in a call."""
    case = opened(queue_case)
    case.worker.register("w1", "s", [QUEUE, OTHER])
    case.worker.add(QUEUE, ["ns/a"])
    case.worker.add(OTHER, ["ns/b", "ns/c"])
    other = LoadSpec(OTHER, "daemonsets")
    batch = claim_reply(case, specs=(other, *SPECS))
    assert isinstance(batch, Batch)
    assert (batch.queue, [one.key for one in batch.claims]) == (OTHER, ["ns/b", "ns/c"])
    batch = claim_reply(case, specs=(other, *SPECS))
    assert isinstance(batch, Batch)
    assert (batch.queue, [one.key for one in batch.claims]) == (QUEUE, ["ns/a"])


def test_only_registered_holders_claim(queue_case: Case) -> None:
    case = opened(queue_case)
    case.worker.add(QUEUE, ["ns/a"])
    assert claim_reply(case, "stranger") is Idle.UNKNOWN
    case.worker.release("w1")
    assert claim_reply(case) is Idle.UNKNOWN
    assert stream(case) == ["ns/a"]


def test_nothing_is_claimed_while_draining(queue_case: Case) -> None:
    case = queue_case
    case.worker.register("w1", "s", [QUEUE])
    case.worker.add(QUEUE, ["ns/a"])
    assert claim_reply(case) is Idle.WAIT
    assert case.ingestor.open(["pods"]) == "pods"
    assert claim_reply(case) is Idle.WAIT
    assert case.ingestor.open([]) == ""
    assert claim_one(case).key == "ns/a"


# -- crashes ---------------------------------------------------------------------------------------------------------


def test_crashes_park_a_key_for_longer_and_longer_never_for_ever(queue_case: Case) -> None:
    """At once, 1 s, 2 s, ... 300 s at most."""
    case = opened(queue_case)
    case.worker.add(QUEUE, ["ns/bad"])
    pauses = []
    for nth in range(1, 14):
        crash(case, "ns/bad", nth)
        moved, pause = case.worker.due()
        assert moved == 0
        pauses.append(pause)
        if pause is not None:
            assert state_of(case, "ns/bad") == "parked"
            case.worker.add(QUEUE, ["ns/bad"])
            assert stream(case) == [], "an event does not free a parked key"
            case.advance(pause)
            assert case.worker.due() == (1, None)
    assert pauses == [None, 1000, 2000, 4000, 8000, 16_000, 32_000, 64_000, 128_000, 256_000, 300_000, 300_000, 300_000]
    assert claim_one(case).crashes == 13


def test_parking_wakes_the_supervisors_timer(queue_case: Case) -> None:
    case = opened(queue_case)
    park(case, "ns/bad")
    assert case.state()["timer"] == 1


@pytest.mark.parametrize("verdict", Verdict)
def test_any_finish_clears_the_crashes(queue_case: Case, verdict: Verdict) -> None:
    """The worker lived through the turn, however the turn went."""
    case = opened(queue_case)
    case.worker.add(QUEUE, ["ns/a"])
    crash(case, "ns/a", 1)
    one = claim_one(case)
    assert one.crashes == 1
    finish(case, one, verdict)
    assert "crashes" not in case.state()


def test_a_parked_key_is_freed_by_hand(queue_case: Case) -> None:
    case = opened(queue_case)
    park(case, "ns/bad")
    assert case.worker.add(QUEUE, ["ns/bad"], unpark=True) == 1
    assert (stream(case), case.state().get("parked"), case.state().get("crashes")) == (["ns/bad"], None, None)


def test_only_the_blamed_key_is_blamed(queue_case: Case) -> None:
    case = opened(queue_case)
    case.worker.add(QUEUE, ["ns/a", "ns/b", "ns/c"])
    claim(case)
    tasks = [f"{QUEUE}:ns/{each}" for each in "abc"]
    assert case.worker.release("w1", blamed=f"{QUEUE}:ns/b") == tasks
    assert case.state()["crashes"] == {QUEUE: {"ns/b": 1}}
    assert sorted(stream(case)) == ["ns/a", "ns/b", "ns/c"]


def test_blame_for_a_key_the_holder_did_not_have_is_no_crash(queue_case: Case) -> None:
    case = opened(queue_case, holders=("w1", "w2"))
    case.worker.add(QUEUE, ["ns/a"])
    claim(case, "w2")
    assert case.worker.release("w1", blamed=f"{QUEUE}:ns/a") == []
    assert state_of(case, "ns/a") == "running"
    assert "crashes" not in case.state()


def test_a_delay_never_unparks(queue_case: Case) -> None:
    case = opened(queue_case)
    park(case, "ns/bad")
    case.worker.add_after(QUEUE, "ns/bad", 10)
    case.advance(10)
    assert case.worker.due() == (1, 990)
    assert state_of(case, "ns/bad") == "parked"


# -- locks and leases ------------------------------------------------------------------------------------------------


def test_release_gives_everything_back_and_unregisters(queue_case: Case) -> None:
    case = opened(queue_case, holders=("w1", "w2"))
    case.worker.add(QUEUE, ["ns/a", "ns/b"])
    claim(case)
    case.worker.add(QUEUE, ["ns/a", "ns/c"])
    assert case.worker.release("w1") == [f"{QUEUE}:ns/a", f"{QUEUE}:ns/b"]
    assert sorted(stream(case)) == ["ns/a", "ns/b", "ns/c"]
    assert case.worker.release("w1") == []
    assert claim_reply(case, "w1") is Idle.UNKNOWN
    assert len(names(case, holder="w2")) == 3


def test_reclaim_ends_leases_nobody_renewed(queue_case: Case) -> None:
    case = opened(queue_case, holders=("w1", "w2"))
    case.worker.add(QUEUE, ["ns/a", "ns/b"])
    first, second = claim_one(case), claim_one(case, "w2")
    for _ in range(2):
        case.advance(LEASE_MS // 2)
        case.worker.renew(["w2"], lease_ms=LEASE_MS)
    assert case.worker.reclaim() == [f"{QUEUE}:ns/a"]
    assert (state_of(case, "ns/a"), state_of(case, "ns/b")) == ("queued", "running")
    assert finish(case, first) == -1, "its claim was lost"
    assert state_of(case, "ns/a") == "queued"
    assert finish(case, second) == 0


def expire(case: Case, holder: str) -> list[str]:
    """A worker claims and is never heard of again, nor who could say why. Returns its keys."""
    case.worker.renew([], lease_ms=LEASE_MS)
    case.worker.register(holder, "s", [QUEUE])
    held = names(case, holder=holder)
    for _ in range(2):
        case.advance(LEASE_MS // 2)
        case.worker.renew([], lease_ms=LEASE_MS)
    assert sorted(case.worker.reclaim()) == sorted(f"{QUEUE}:{key}" for key in held)
    return held


def test_keys_whose_lease_ended_are_suspect_until_a_turn_of_theirs_ends(queue_case: Case) -> None:
    """The death of a host blames none of its keys; each that comes to an end is like any other again."""
    case = opened(queue_case, holders=("w2",))
    case.worker.add(QUEUE, ["ns/a", "ns/b"])
    assert expire(case, "w1") == ["ns/a", "ns/b"]
    assert case.state()["crashes"] == {QUEUE: {"ns/a": 0, "ns/b": 0}}
    first, second = claim(case, "w2")
    assert [(each.key, each.crashes) for each in (first, second)] == [("ns/a", 0), ("ns/b", 0)]
    finish(case, first)
    assert case.state()["crashes"] == {QUEUE: {"ns/b": 0}}
    finish(case, second)
    assert "crashes" not in case.state()


def test_keys_whose_lease_ended_twice_in_a_row_are_claimed_alone(queue_case: Case) -> None:
    case = opened(queue_case, holders=("w3",))
    case.worker.add(QUEUE, ["ns/a", "ns/b"])
    assert expire(case, "w1") == expire(case, "w2") == ["ns/a", "ns/b"]
    case.worker.add(QUEUE, ["ns/c"])
    for alone in ("ns/a", "ns/b"):
        (one,) = claim(case, "w3")
        assert (one.key, one.crashes) == (alone, 1)
        finish(case, one)
    assert "crashes" not in case.state()
    assert names(case, holder="w3") == ["ns/c"]


def test_a_key_that_takes_whole_containers_down_is_parked_and_its_neighbours_are_not(queue_case: Case) -> None:
    case = opened(queue_case, holders=("w2",))
    case.worker.add(QUEUE, ["ns/bad", "ns/ok"])
    assert expire(case, "w1-1") == expire(case, "w1-2") == ["ns/bad", "ns/ok"]
    seen = []
    for nth in range(2, 5):
        if nth > 2:
            assert expire(case, f"w1-{nth}") == ["ns/bad"], "alone"
        if nth == 2:
            assert state_of(case, "ns/bad") == "queued", "the first crash is tried again at once"
        else:
            assert state_of(case, "ns/bad") == "parked"
            pause_ms = case.worker.due()[1]
            assert pause_ms is not None
            seen.append(pause_ms)
            case.advance(pause_ms)
            case.worker.due()
        if nth == 3:
            finish(case, claim_one(case, "w2"))  # the other one is innocent
        assert case.state()["crashes"][QUEUE]["ns/bad"] == nth - 1
    assert case.state()["crashes"] == {QUEUE: {"ns/bad": 3}}
    assert seen == [1_000, 2_000]


def test_a_suspect_that_is_released_without_blame_stays_suspect(queue_case: Case) -> None:
    case = opened(queue_case)
    case.worker.add(QUEUE, ["ns/a"])
    expire(case, "w1")
    case.worker.register("w2", "s", [QUEUE])
    claim_one(case, "w2")
    case.worker.release("w2")
    assert case.state()["crashes"] == {QUEUE: {"ns/a": 0}}


def test_holders_that_nobody_renews_are_struck_off(queue_case: Case) -> None:
    """Their host is dead: nobody is left who could release them. Afterwards they may claim nothing."""
    case = opened(queue_case, holders=("dead", "idle", "living"))
    case.worker.add(QUEUE, ["ns/a"])
    assert names(case, holder="dead") == ["ns/a"]
    claim_reply(case, "idle")
    for second in range(60):
        assert sorted(case.state()["holders"]) == ["dead", "idle", "living"], second
        case.advance(1_000)
        case.worker.renew(["living"], lease_ms=LEASE_MS)
        case.worker.reclaim()
    state = case.state()
    assert (list(state["holders"]), list(state["seen"])) == (["living"], ["living"])
    assert claim_reply(case, "dead") is Idle.UNKNOWN
    assert case.worker.renew(["idle", "living"], lease_ms=LEASE_MS) == ["idle"]
    assert names(case, holder="living") == ["ns/a"]


def test_the_stream_keeps_no_consumer_of_a_dead_host(real: RedisCase) -> None:
    case = opened(real, holders=("dead",))
    case.worker.add(QUEUE, ["ns/a"])
    expire(case, "dead-too")
    claim(case, "dead")

    def consumers() -> list[str]:
        found = real.admin.xinfo_consumers(keys.Keys(real.epoch).stream(QUEUE), "workers")
        return sorted(each["name"].decode() for each in found)  # type: ignore[union-attr]

    assert consumers() == ["dead", "dead-too"]
    for _ in range(62):
        case.advance(1_000)
        case.worker.renew([], lease_ms=LEASE_MS)
        case.worker.reclaim()
    assert consumers() == []


def test_a_jump_of_the_clock_strikes_nobody_off(queue_case: Case) -> None:
    case = opened(queue_case)
    case.worker.renew(["w1"], lease_ms=LEASE_MS)
    case.jump(3_600_000)
    for _ in range(10):
        case.worker.reclaim()
        case.worker.renew(["w1"], lease_ms=LEASE_MS)
        case.advance(1_000)
    case.jump(-3_600_000)
    for _ in range(10):
        case.worker.reclaim()
        case.worker.renew(["w1"], lease_ms=LEASE_MS)
        case.advance(1_000)
    assert list(case.state()["holders"]) == ["w1"]


def test_reclaim_takes_the_oldest_first_and_so_many(queue_case: Case) -> None:
    case = opened(queue_case)
    case.worker.add(QUEUE, ["ns/b", "ns/a", "ns/c"])
    claim_one(case)
    case.advance(1)
    claim(case)
    case.advance(LEASE_MS)
    assert [case.worker.reclaim(2), case.worker.reclaim(2)] == [[f"{QUEUE}:ns/b", f"{QUEUE}:ns/a"], [f"{QUEUE}:ns/c"]]


def test_renew_names_the_holders_that_are_gone(queue_case: Case) -> None:
    case = opened(queue_case, holders=("w1", "w2"))
    case.worker.release("w2")
    assert case.worker.renew(["w1", "w2", "nobody"], lease_ms=LEASE_MS) == ["w2", "nobody"]


def test_a_fenced_claim_can_do_nothing(queue_case: Case) -> None:
    """After the key was claimed anew, the earlier holder's steps are refused, even under the same holder name."""
    case = opened(queue_case, holders=("w1", "w2"))
    case.worker.add(QUEUE, ["ns/a"])
    old = claim_one(case)
    case.worker.release("w1")
    new = claim_one(case, "w2")
    before = case.state()
    for entries in ([Entry("create", "pods/x")], []):
        with pytest.raises(ClaimLost, match="replicaset:ns/a"):
            case.worker.announce(old, "uid", entries, lease_ms=LEASE_MS)
    assert finish(case, old, Verdict.RETRY) == -1
    assert case.state() == before
    case.worker.register("w1", "s", [QUEUE])
    case.advance(1000)
    case.worker.renew(["w1"], lease_ms=LEASE_MS)
    assert case.state()["leases"] == before["leases"], "w1 holds nothing any more, so nothing is renewed for it"
    assert finish(case, new) == 0


def test_one_call_ends_many_turns_each_by_its_own_nonce(queue_case: Case) -> None:
    case = opened(queue_case)
    case.worker.add(QUEUE, ["ns/a", "ns/b", "ns/c"])
    a, b, c = claim(case)
    turns = [
        Finish(QUEUE, a.key, a.nonce, Verdict.OK),
        Finish(QUEUE, b.key, "not its nonce", Verdict.OK),
        Finish(QUEUE, c.key, c.nonce, Verdict.RETRY),
        Finish(QUEUE, a.key, a.nonce, Verdict.RETRY),
        Finish(QUEUE, "ns/never", "n", Verdict.OK),
    ]
    assert case.worker.finish(turns) == [0, -1, 1, -1, -1]
    assert [state_of(case, key) for key in ("ns/a", "ns/b", "ns/c")] == ["idle", "running", "idle"]
    assert case.worker.finish([]) == []


def test_turns_that_end_in_one_call_have_changes_of_their_own(queue_case: Case) -> None:
    case = opened(queue_case)
    case.worker.add(QUEUE, ["ns/a", "ns/b", "ns/c"])
    turns = []
    for one in claim(case):
        name = one.key.removeprefix("ns/")
        case.worker.announce(one, f"uid-{name}", [Entry("create", f"pods/{name}")], lease_ms=LEASE_MS)
        turns.append(Finish(QUEUE, one.key, one.nonce, Verdict.OK, None, (Change.drop(f"create pods/{name}"),)))
    assert case.worker.finish(turns) == [0, 0, 0]
    state = case.state()
    assert not {"records", "unsettled", "state"} & state.keys()


def test_a_claim_after_its_release_leaves_no_lock_behind(queue_case: Case) -> None:
    """A claim call still under way when its worker's death was noticed comes too late."""
    case = opened(queue_case)
    case.worker.add(QUEUE, ["ns/a"])
    case.worker.release("w1")
    assert case.worker.claim("w1", "n", SPECS, ClaimLimits(lease_ms=LEASE_MS, drain_ms=DRAIN_MS)) is Idle.UNKNOWN
    assert "leases" not in case.state()


# -- the clock -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("jump_ms", [3_600_000, -3_600_000, 3_001, -1])
def test_after_a_jump_of_the_clock_nothing_is_reclaimed_for_one_lease(queue_case: Case, jump_ms: int) -> None:
    case = opened(queue_case, holders=("w1", "w2"))
    case.worker.add(QUEUE, ["ns/a", "ns/dead"])
    claim_one(case)
    claim_one(case, "w2")
    case.worker.renew(["w1"], lease_ms=LEASE_MS)
    case.worker.add_after(QUEUE, "ns/later", 60_000)
    case.jump(jump_ms)
    assert case.worker.reclaim() == [], "the jump shows before any renewal noticed it"
    case.worker.renew(["w1"], lease_ms=LEASE_MS)
    assert case.worker.reclaim() == []
    assert case.worker.due()[0] == 1, "what was delayed need not wait an hour longer"
    case.advance(2_500)
    case.worker.renew(["w1"], lease_ms=LEASE_MS)
    assert case.worker.reclaim() == []
    case.advance(2_500)
    case.worker.renew(["w1"], lease_ms=LEASE_MS)
    assert case.worker.reclaim() == [f"{QUEUE}:ns/dead"], "a dead worker's lease ends one lease later at most"


def test_a_parked_key_waits_no_longer_than_it_may_after_the_clock_went_back(queue_case: Case) -> None:
    case = opened(queue_case)
    park(case, "ns/bad")
    case.worker.renew([], lease_ms=LEASE_MS)
    case.jump(-3_600_000)
    case.worker.renew([], lease_ms=LEASE_MS)
    assert case.worker.due() == (0, 300_000)


def test_after_a_jump_every_delayed_key_comes_a_page_a_renewal(queue_case: Case) -> None:
    """None waits out the hour because others stand before it; what the right clock entered since keeps its time."""
    delayed = 4_500
    case = opened(queue_case)
    case.worker.renew([], lease_ms=LEASE_MS)
    case.jump(3_600_000)
    case.worker.renew([], lease_ms=LEASE_MS)
    for n in range(delayed):
        case.worker.add_after(QUEUE, f"ns/{n}", 600_000 + n // 2)
    case.jump(-3_600_000)
    due = []
    for round_ in range(4):
        case.worker.renew([], lease_ms=LEASE_MS)
        if round_ == 0:
            case.worker.add_after(QUEUE, "ns/new", 7_200_000)
        moved, _ = case.worker.due(delayed)
        due.append(moved)
        case.advance(1_000)
    assert due == [2_000, 2_000, 500, 0]
    assert "capping" not in case.state()
    assert list(case.state()["delayed"][QUEUE]) == ["ns/new"]


def test_regular_renewals_are_no_jump(queue_case: Case) -> None:
    case = opened(queue_case)
    case.worker.add(QUEUE, ["ns/a"])
    claim(case)
    case.worker.renew([], lease_ms=LEASE_MS)
    case.advance(3_000)
    case.worker.renew([], lease_ms=LEASE_MS)
    assert "no_reclaim_until" not in case.state()
    case.advance(2_000)
    assert case.worker.reclaim() == [f"{QUEUE}:ns/a"]


# -- waiting ---------------------------------------------------------------------------------------------------------


def tokens(case: Case, queue: str = QUEUE) -> int:
    return int(case.state().get("wake", {}).get(queue, 0))


def test_a_token_a_key_for_those_who_wait_and_no_more(queue_case: Case) -> None:
    case = opened(queue_case, holders=("w1", "w2", "w3"))
    case.worker.add(QUEUE, ["ns/a"])
    assert tokens(case) == 0, "nobody waits"
    finish(case, claim_one(case))
    for holder in ("w1", "w2"):
        assert claim_reply(case, holder) is Idle.EMPTY
    case.worker.add(QUEUE, ["ns/a"])
    assert tokens(case) == 1
    case.worker.add(QUEUE, ["ns/a"])
    assert tokens(case) == 1, "it was queued already"
    case.worker.add(QUEUE, [f"ns/{i}" for i in range(10)])
    assert tokens(case) == 2, "at most as many as wait"


def two_queues(case: Case, **served: tuple[str, ...]) -> Case:
    """Workers that serve these queues have claimed in this order, and wait."""
    opened(case, holders=())
    for holder, queues in served.items():
        case.worker.register(holder, "s", queues)
        specs = [LoadSpec(queue, "replicasets") for queue in queues]
        assert claim_reply(case, holder, specs=specs) is Idle.EMPTY
    return case


def test_a_key_wakes_a_worker_that_serves_its_queue(queue_case: Case) -> None:
    """Whoever else waits, and waited first."""
    case = two_queues(queue_case, w1=(QUEUE,), w2=(OTHER,))
    case.worker.add(OTHER, ["ns/a"])
    assert case.worker.wait([QUEUE], 0.01) is None
    assert case.worker.wait([OTHER], 0.01) == OTHER
    case.worker.add(OTHER, ["ns/b"])
    case.worker.add(OTHER, ["ns/c"])
    assert (tokens(case), tokens(case, OTHER)) == (0, 1), "as many as wait for its keys"


def test_a_key_wakes_the_one_worker_that_serves_its_queue_among_many(queue_case: Case) -> None:
    case = two_queues(queue_case, **{f"w{number:02}": (QUEUE,) for number in range(40)}, last=(OTHER,))
    case.worker.add(OTHER, ["ns/a"])
    case.worker.add(QUEUE, [f"ns/{number}" for number in range(38)])
    case.worker.add(QUEUE, ["ns/a", "ns/b", "ns/c"])
    assert (tokens(case), tokens(case, OTHER)) == (40, 1)


def test_a_worker_waits_for_each_of_its_queues(queue_case: Case) -> None:
    case = two_queues(queue_case, both=(OTHER, QUEUE), one=(QUEUE,))
    case.worker.add(QUEUE, ["ns/a", "ns/b", "ns/c"])
    case.worker.add(OTHER, ["ns/d"])
    assert (tokens(case), tokens(case, OTHER)) == (2, 1)
    assert [case.worker.wait((OTHER, QUEUE), 0.01) for _ in range(4)] == [OTHER, QUEUE, QUEUE, None]


def test_a_worker_that_claims_waits_for_none_of_its_queues(queue_case: Case) -> None:
    case = two_queues(queue_case, both=(OTHER, QUEUE))
    case.worker.add(QUEUE, ["ns/a"])
    assert names(case, holder="both") == ["ns/a"]
    case.worker.add(OTHER, ["ns/b"])
    assert tokens(case, OTHER) == 0


@pytest.mark.parametrize("by", ["hand", "time"])
def test_what_concerns_all_wakes_each_once(queue_case: Case, by: str) -> None:
    case = two_queues(queue_case, w1=(QUEUE, OTHER), w2=(OTHER, QUEUE), w3=(OTHER,))
    case.worker.steer("pause", "all", "by=me", for_ms=50)
    assert (tokens(case), tokens(case, OTHER)) == (0, 0)
    if by == "hand":
        case.worker.steer("resume", "all", "by=me")
    else:
        case.advance(50)
        case.worker.due()
    assert (tokens(case), tokens(case, OTHER)) == (1, 2)


def test_no_wake_up_is_lost_between_an_empty_claim_and_the_wait(queue_case: Case) -> None:
    case = opened(queue_case)
    assert claim_reply(case) is Idle.EMPTY
    case.worker.add(QUEUE, ["ns/a"])
    assert case.worker.wait([QUEUE])
    assert claim_one(case).key == "ns/a"


def test_whoever_claims_waits_no_more(queue_case: Case) -> None:
    case = opened(queue_case)
    claim_reply(case)
    case.advance(100)
    claim_reply(case)
    assert len(case.state()["waiters"]) == 1
    case.worker.add(QUEUE, ["ns/a"])
    claim(case)
    assert "waiters" not in case.state()


def test_a_waiter_is_forgotten_in_its_time(queue_case: Case) -> None:
    """1.5 s, above the longest wait of 1 s: one that died gets no tokens for ever."""
    case = opened(queue_case)
    claim_reply(case)
    case.advance(1_501)
    case.worker.add(QUEUE, ["ns/a"])
    assert tokens(case) == 0
    case.worker.renew([], lease_ms=LEASE_MS)
    assert "waiters" not in case.state()


def test_a_token_swallowed_by_a_dead_waiter_is_given_again(queue_case: Case) -> None:
    """It took the only token and never claims. The next tick of any supervisor wakes another, while a key is queued."""
    case = opened(queue_case, holders=("dead", "w2"))
    claim_reply(case, "dead")
    case.worker.add(QUEUE, ["ns/a"])
    assert case.worker.wait([QUEUE])
    claim_reply(case, "w2", specs=(LoadSpec(OTHER, "daemonsets"),))  # w2 waits: its own queue is empty
    assert tokens(case) == 0
    case.worker.renew(["dead", "w2"], lease_ms=LEASE_MS)
    assert tokens(case) == 1


def test_a_release_wakes_one_more_for_the_token_its_holder_may_have_taken(queue_case: Case) -> None:
    case = opened(queue_case, holders=("dead", "w2"))
    for holder in ("dead", "w2"):
        claim_reply(case, holder)
    case.worker.add(QUEUE, ["ns/a"])
    assert case.worker.wait([QUEUE])  # taken by the one that dies
    assert tokens(case) == 0
    case.worker.release("dead")
    assert tokens(case) == 1


def test_an_idle_fleet_stays_idle(queue_case: Case) -> None:
    """Ticks push no tokens where nothing is queued."""
    case = opened(queue_case)
    claim_reply(case)
    for _ in range(3):
        case.worker.renew(["w1"], lease_ms=LEASE_MS)
        case.worker.due()
        case.worker.reclaim()
    assert (tokens(case), case.state()["timer"]) == (0, 0)


def test_a_claim_that_leaves_keys_behind_wakes_the_next(queue_case: Case) -> None:
    case = opened(queue_case, holders=("w1", "w2"))
    case.worker.add(QUEUE, ["ns/bad"])
    claim(case)
    case.worker.release("w1", blamed=f"{QUEUE}:ns/bad")
    case.worker.register("w3", "s", [QUEUE])
    case.worker.add(QUEUE, ["ns/a"])
    while tokens(case):
        case.worker.wait([QUEUE])
    state = case.state()
    assert state["stream"] == {QUEUE: ["ns/bad", "ns/a"]}
    assert claim_reply(case, "w2", specs=(LoadSpec(OTHER, "daemonsets"),)) is Idle.EMPTY  # w2 waits
    assert names(case, holder="w3") == ["ns/bad"]
    assert tokens(case) == 1


@pytest.mark.parametrize("step", ["release", "reclaim", "due", "finish", "add_after", "open"])
def test_every_way_into_the_stream_wakes(queue_case: Case, step: str) -> None:
    case = opened(queue_case, holders=("w1", "w2"))
    case.worker.add(QUEUE, ["ns/a"])
    one = claim_one(case)
    claim_reply(case, "w2")
    assert tokens(case) == 0
    if step == "release":
        case.worker.release("w1")
    elif step == "reclaim":
        case.advance(LEASE_MS)
        claim_reply(case, "w2")
        case.worker.reclaim()
    elif step == "due":
        case.worker.add_after(QUEUE, "ns/b", 5)
        case.advance(5)
        case.worker.due()
    elif step == "finish":
        case.worker.add(QUEUE, ["ns/a"])
        finish(case, one)
    elif step == "add_after":
        case.worker.add_after(QUEUE, "ns/b", 0)
    else:
        case.ingestor.open([])
    assert tokens(case) == 1
