"""The record: what a turn announced is not forgotten while it matters, on the twin and on real servers."""

from __future__ import annotations

from typing import Any

import pytest

from oarlock.broker.expectations import ExpectedDelete, OpenWrite, SizeEntry
from oarlock.broker.values.claims import Batch, Claim, Idle, LoadSpec
from oarlock.broker.values.events import Event
from oarlock.broker.values.objects import Cached
from oarlock.broker.values.turns import Change, Entry, NameTaken, Verdict
from tests.broker.broker_cases import (
    DRAIN_MS,
    LEASE_MS,
    QUEUE,
    Case,
    claim,
    claim_one,
    claim_reply,
    finish,
    opened,
    state_of,
)

KEY, UID = "ns/web", "uid-ns/web"
FIVE_MINUTES_MS = 300_000
EIGHT_DAYS_MS = 691_200_000


def begun(case: Case) -> Claim:
    """A cached owner, claimed."""
    opened(case, KEY, holders=("w1", "w2"))
    case.worker.add(QUEUE, [KEY])
    return claim_one(case)


def announce(case: Case, one: Claim, *entries: Entry) -> list[NameTaken]:
    return case.worker.announce(one, UID, entries, lease_ms=LEASE_MS)


def fields(case: Case) -> dict[str, str]:
    found: dict[str, str] = case.state().get("records", {}).get(QUEUE, {}).get(KEY, {})
    return found


def ttl_ms(case: Case) -> int:
    return int(case.state()["record_ttl"][QUEUE][KEY])


def claimed_again(case: Case, one: Claim, holder: str = "w2") -> Claim:
    """Its worker died; the key was claimed by another."""
    lock = case.state()["locks"][QUEUE][KEY]
    case.worker.release(lock.split()[0].removeprefix("holder="))
    again = claim_one(case, holder)
    assert again.key == one.key
    return again


def retried(case: Case, holder: str) -> Claim:
    """The key after its back-off."""
    case.advance(case.worker.due()[1] or 0)
    case.worker.due()
    return claim_one(case, holder)


def pending(case: Case, detail: str = "", *, since_ms: int = 0, tries: int = 1) -> str:
    """The text of a write announced now."""
    now = case.now_ms()
    return f"pending since_ms={since_ms or now} sent_ms={now} tries={tries}" + (f" {detail}" if detail else "")


def test_a_record_reads_like_a_sentence(case: Case) -> None:
    one = begun(case)
    assert announce(case, one, Entry("create", "pods/web-a"), Entry("delete", "pods/web-b", "u7", "55")) == []
    now = case.now_ms()
    assert fields(case) == {
        "owner": UID,
        "create pods/web-a": pending(case),
        "delete pods/web-b": pending(case, "uid=u7 rv=55"),
    }
    assert case.state()["unsettled"] == {QUEUE: {KEY: now}}
    assert abs(ttl_ms(case) - EIGHT_DAYS_MS) < 2_000, "no jump of a clock takes an open write along"


def test_a_hint_stands_beside_its_create(case: Case) -> None:
    """And beside the name that stays reserved: the name alone does not say for which node it is."""
    one = begun(case)
    announce(case, one, Entry("create", "pods/a", hint="node=n1"), Entry("create", "pods/b"))
    assert fields(case)["create pods/a"] == pending(case, "node=n1")
    again = claimed_again(case, one)
    assert again.expectations is not None
    assert sorted(again.expectations.creates) == ["pods/a", "pods/b"]
    assert again.expectations.hints == {"pods/a": "node=n1"}
    finish(case, again, Verdict.OK, 0, Change.drop("create pods/a"), Change.drop("create pods/b"))
    later = claim_one(case, "w2")
    assert later.expectations is not None
    assert later.expectations.hints == {"pods/a": "node=n1"}
    assert later.expectations.reserved == {"pods/a": False, "pods/b": False}


BACK_OFF = "generation=1 delay_ms=1000 at_ms=1795186629975"
HALF_AN_HOUR_MS = 1_800_000


def test_a_back_off_is_announced_with_the_delete_it_follows_from(case: Case) -> None:
    one = begun(case)
    announce(case, one, Entry("delete", "pods/b", "u7", "55"), Entry("backoff", "n1", hint=BACK_OFF))
    assert fields(case) == {
        "owner": UID,
        "delete pods/b": pending(case, "uid=u7 rv=55"),
        "backoff n1": BACK_OFF,
    }
    again = claimed_again(case, one)
    assert again.expectations is not None
    assert again.expectations.back_offs == {"n1": BACK_OFF}
    assert [each.target for each in again.expectations.deletes] == ["pods/b"]
    assert again.expectations.pending_others == ()


def test_a_back_off_is_never_pending(case: Case) -> None:
    """It neither keeps its key delayed nor its owner unsettled, whatever its text says."""
    one = begun(case)
    for text in (BACK_OFF, "pending since_ms=5"):
        announce(case, one, Entry("create", "pods/a"), Entry("backoff", "n1", hint=text))
        assert finish(case, one, Verdict.OK, None, Change.drop("create pods/a")) == 0
        assert case.worker.due() == (0, None)
        assert state_of(case, KEY) == "idle"
        assert "unsettled" not in case.state()
        assert fields(case) == {"owner": UID, "backoff n1": text}
        case.worker.add(QUEUE, [KEY])
        one = claim_one(case)
        assert one.expectations is not None
        assert (one.expectations.unanswered, one.unsettled, one.expectations.back_offs) == (0, False, {"n1": text})


def test_back_offs_alone_announce_no_write(case: Case) -> None:
    one = begun(case)
    announce(case, one, Entry("backoff", "n1", hint=BACK_OFF))
    assert "unsettled" not in case.state()
    assert case.state()["leases"][f"{QUEUE}:{KEY}"] == case.now_ms() + LEASE_MS


def test_a_turn_changes_and_drops_back_offs(case: Case) -> None:
    one = begun(case)
    announce(case, one, Entry("backoff", "n1", hint=BACK_OFF), Entry("backoff", "n2", hint=BACK_OFF))
    finish(
        case, one, Verdict.OK, 0, Change.set("backoff n1", "generation=2 delay_ms=1 at_ms=2"), Change.drop("backoff n2")
    )
    again = claim_one(case)
    assert again.expectations is not None
    assert again.expectations.back_offs == {"n1": "generation=2 delay_ms=1 at_ms=2"}
    finish(case, again, Verdict.OK, None, Change.drop("backoff n1"))
    assert fields(case) == {}, "a record with nothing but its owner is dropped"


def test_back_offs_outlive_their_last_touch_by_half_an_hour(case: Case) -> None:
    """As long as upstream remembers them: twice the longest. Every step that touches the record begins anew."""
    one = begun(case)
    announce(case, one, Entry("backoff", "n1", hint=BACK_OFF))
    assert abs(ttl_ms(case) - HALF_AN_HOUR_MS) < 2_000
    steps = (
        lambda: announce(case, one, Entry("create", "pods/a")),
        lambda: finish(case, one, Verdict.RETRY, 1_000, Change.drop("create pods/a")),
        lambda: case.worker.add(QUEUE, [KEY]) and claim_one(case),
        lambda: [crash_of(case, nth) for nth in range(3)],
    )
    for step in steps:
        case.advance(1_000_000)
        step()
        left_ms = EIGHT_DAYS_MS if "unsettled" in case.state() else HALF_AN_HOUR_MS
        assert abs(ttl_ms(case) - left_ms) < 2_000
    case.advance(HALF_AN_HOUR_MS - 2_000)
    assert fields(case) != {}
    case.advance(2_000)
    assert fields(case) == {}


def crash_of(case: Case, nth: int) -> None:
    """The worker that has the key dies over it, and the next one takes it."""
    holder = case.state()["locks"][QUEUE][KEY].split()[0].removeprefix("holder=")
    case.worker.release(holder, blamed=f"{QUEUE}:{KEY}")
    if nth == 2:
        return
    case.advance(case.worker.due()[1] or 0)
    case.worker.due()
    case.worker.register(f"next{nth}", "s", [QUEUE])
    claim_one(case, f"next{nth}")


def test_a_long_pause_still_counts_with_back_offs(case: Case) -> None:
    one = begun(case)
    announce(case, one, Entry("backoff", "n1", hint=BACK_OFF))
    finish(case, one, Verdict.OK, 3_000_000)
    assert abs(ttl_ms(case) - 3_000_000 - FIVE_MINUTES_MS) < 2_000


def test_an_answered_delete_is_kept_until_the_cache_shows_it(case: Case) -> None:
    """No jump of the clock takes it along: on a cache that still shows its pod, another would go in its place."""
    one = begun(case)
    announce(case, one, Entry("delete", "pods/a", "u", "5"), Entry("backoff", "n1", hint=BACK_OFF))
    finish(case, one, Verdict.OK, 0, Change.set("delete pods/a", "answered uid=u rv=5"), Change.drop("backoff n1"))
    assert "unsettled" not in case.state()
    assert abs(ttl_ms(case) - EIGHT_DAYS_MS) < 2_000


def scale(rv: str) -> Entry:
    return Entry("scale", "replicasets/a", "u", rv, "low=0 high=3")


def test_a_scale_names_a_version_and_sizes_and_outlives_its_answer(case: Case) -> None:
    """Its ReplicaSet may follow an earlier size for as long as its status has not observed the last one."""
    one = begun(case)
    announce(case, one, scale("5"))
    assert fields(case)["scale replicasets/a"] == pending(case, "uid=u rv=5 low=0 high=3")
    assert case.state()["unsettled"] == {QUEUE: {KEY: case.now_ms()}}
    again = claimed_again(case, one)
    assert again.expectations is not None
    now = case.now_ms()
    assert again.expectations.scales == (SizeEntry("replicasets/a", "u", "5", 0, 3, OpenWrite(now, now, 1)),)
    assert (again.expectations.unanswered, again.expectations.reserved) == (1, {})
    finish(case, again, Verdict.OK, None)
    assert case.worker.due() == (0, DRAIN_MS), "never idle while it is open"
    case.advance(DRAIN_MS)
    case.worker.due()
    over = claim_one(case, "w2")
    assert over.expectations is not None
    [entry] = over.expectations.scales
    assert entry.open == OpenWrite(now, now, 1, over=True)
    finish(case, over, Verdict.OK, None, Change.set(entry.field, entry.answered_text))
    assert fields(case) == {"owner": UID, "scale replicasets/a": "answered uid=u low=0 high=3"}
    assert "unsettled" not in case.state()
    assert abs(ttl_ms(case) - EIGHT_DAYS_MS) < 2_000


def test_a_scale_is_announced_anew_over_an_answered_one(case: Case) -> None:
    one = begun(case)
    announce(case, one, scale("5"))
    finish(case, one, Verdict.OK, 0, Change.set(scale("5").field, "answered uid=u low=0 high=3"))
    later = claim_one(case)
    for tries in (1, 2):
        announce(case, later, scale("6"))
        assert fields(case)[scale("6").field] == pending(case, "uid=u rv=6 low=0 high=3", tries=tries)


def test_without_back_offs_expectations_live_as_long_as_ever(case: Case) -> None:
    one = begun(case)
    announce(case, one, Entry("backoff", "n1", hint=BACK_OFF), Entry("backoff", "n2", hint=BACK_OFF))
    finish(
        case, one, Verdict.OK, 0, Change.set("blocked pods/a", "uid=u"), *(Change.drop(f"backoff n{n}") for n in (1, 2))
    )
    assert abs(ttl_ms(case) - FIVE_MINUTES_MS) < 2_000


def test_a_vanished_owner_takes_its_back_offs_along(case: Case) -> None:
    one = begun(case)
    announce(case, one, Entry("backoff", "n1", hint=BACK_OFF))
    finish(case, one, Verdict.GONE)
    assert fields(case) == {}


def test_the_next_holder_reads_it_and_reserves_the_names(case: Case) -> None:
    one = begun(case)
    announce(
        case, one, Entry("create", "pods/a"), Entry("delete", "pods/b", "u", "5"), Entry("status", "replicasets/web")
    )
    announced_ms, announced = case.now_ms(), fields(case)
    case.advance(1_000)
    again = claimed_again(case, one)
    found, until = again.expectations, f"until_ms={case.now_ms() + DRAIN_MS}"
    assert found is not None
    opened = OpenWrite(announced_ms, announced_ms, 1, False)
    assert (found.owner_uid, found.creates, found.reserved) == (UID, {"pods/a": opened}, {"pods/a": False})
    assert found.deletes == (ExpectedDelete("pods/b", "u", "5", False, opened),)
    assert found.pending_others == (("status", "replicasets/web"),)
    assert (found.unanswered, again.unsettled, again.now_ms) == (3, True, case.now_ms())
    assert fields(case) == {"owner": UID, "reserved pods/a": until} | {
        name: f"{text} {until}" for name, text in announced.items() if name != "owner"
    }


def test_what_was_sent_may_land_until_d_after_the_first_claim_since(case: Case) -> None:
    """Whoever announced it may send it until its lease and requests have ended. Later claims change nothing."""
    one = begun(case)
    announce(case, one, Entry("create", "pods/a"))
    case.advance(1_000)
    again = claimed_again(case, one)
    for passed_ms, over in ((DRAIN_MS - 1, False), (1, True)):
        finish(case, again, Verdict.OK, 0)
        case.advance(passed_ms)
        case.worker.due()
        again = claim_one(case, "w2")
        assert again.expectations is not None
        assert (again.expectations.creates["pods/a"].over, again.expectations.reserved) == (over, {"pods/a": over})
    assert {text.split()[-1] for name, text in fields(case).items() if name != "owner"} == {"over"}


def test_a_name_stays_reserved_when_its_create_has_its_answer(case: Case) -> None:
    one = begun(case)
    announce(case, one, Entry("create", "pods/a"))
    again = claimed_again(case, one)
    finish(case, again, Verdict.OK, None, Change.drop("create pods/a"))
    assert set(fields(case)) == {"owner", "reserved pods/a"}
    assert case.worker.due() == (0, DRAIN_MS), "the key comes back when it is over"
    assert "unsettled" in case.state()
    case.advance(DRAIN_MS)
    case.worker.due()
    again = claim_one(case, "w2")
    assert again.expectations is not None
    assert again.expectations.reserved == {"pods/a": True}
    finish(case, again, Verdict.OK, None, Change.drop("reserved pods/a"))
    assert (fields(case), case.worker.due()) == ({}, (0, None))
    assert "unsettled" not in case.state()


def test_a_write_that_is_sent_again_may_land_as_long_again(case: Case) -> None:
    """The time begins with the first claim after it. Since when it is open and how often it was sent is kept."""
    one = begun(case)
    announce(case, one, Entry("create", "pods/a"), Entry("delete", "pods/b", "u", "5"))
    since_ms = case.now_ms()
    again = claimed_again(case, one)
    case.advance(2_000)
    announce(case, again, Entry("create", "pods/a"), Entry("delete", "pods/b", "u", "5"))
    assert fields(case)["create pods/a"] == pending(case, since_ms=since_ms, tries=2)
    assert fields(case)["delete pods/b"] == pending(case, "uid=u rv=5", since_ms=since_ms, tries=2)
    case.worker.register("w3", "s", [QUEUE])
    claimed_again(case, again, "w3")
    until = f"until_ms={case.now_ms() + DRAIN_MS}"
    assert fields(case)["reserved pods/a"] == until
    assert fields(case)["create pods/a"].endswith(until)


@pytest.mark.parametrize("node", ["dover", "over", "n1"])
def test_no_name_of_a_node_is_taken_for_the_word_over(case: Case, node: str) -> None:
    one = begun(case)
    announce(case, one, Entry("create", "pods/a", hint=f"node={node}"))
    again = claimed_again(case, one)
    assert again.expectations is not None
    assert again.expectations.reserved == {"pods/a": False}
    assert fields(case)["create pods/a"].endswith(f" until_ms={case.now_ms() + DRAIN_MS}")


def test_a_name_that_is_sent_again_late_stays_reserved_as_long_again(case: Case) -> None:
    """Its earlier time ends with the very claim that gives it the new one."""
    one = begun(case)
    announce(case, one, Entry("create", "pods/a"))
    again = claimed_again(case, one)
    case.advance(DRAIN_MS - 1)
    announce(case, again, Entry("create", "pods/a"))
    case.advance(1)
    case.worker.register("w3", "s", [QUEUE])
    third = claimed_again(case, again, "w3")
    assert third.expectations is not None
    assert (third.expectations.creates["pods/a"].over, third.expectations.reserved) == (False, {"pods/a": False})


def test_a_clock_that_goes_back_keeps_no_key_waiting(case: Case) -> None:
    """The time was given an hour ahead of what the clock says now: the claim that cuts it comes within a minute."""
    one = begun(case)
    announce(case, one, Entry("create", "pods/a"))
    again = claimed_again(case, one)
    ahead = f"until_ms={case.now_ms() + 3_600_000}"
    changes = (Change.drop("create pods/a"), Change.set("reserved pods/a", ahead))
    finish(case, again, Verdict.OK, None, *changes)
    assert case.worker.due() == (0, 60_000)


def test_another_pod_of_the_same_name_is_another_delete(case: Case) -> None:
    one = begun(case)
    announce(case, one, Entry("delete", "pods/b", "u", "5"))
    case.advance(1_000)
    announce(case, one, Entry("delete", "pods/b", "v", "6"))
    assert fields(case)["delete pods/b"] == pending(case, "uid=v rv=6")


def test_no_time_ends_by_a_clock_that_jumps(case: Case) -> None:
    """Redis's clock goes a minute forward: an earlier holder's request may still land, so its name stays reserved."""
    one = begun(case)
    case.worker.renew([], lease_ms=LEASE_MS)
    announce(case, one, Entry("create", "pods/a"))
    again = claimed_again(case, one)
    finish(case, again, Verdict.OK, 0, Change.drop("create pods/a"))
    case.advance(60_000)
    for renewed in (False, True):
        if renewed:
            case.worker.renew([], lease_ms=LEASE_MS)
        later = claim_one(case, "w2")
        assert later.expectations is not None
        assert later.expectations.reserved == {"pods/a": False}
        finish(case, later, Verdict.OK, 0)
    for _ in range(10):  # a second a tick, as a supervisor does
        case.advance(2_000)
        case.worker.renew([], lease_ms=LEASE_MS)
    later = claim_one(case, "w2")
    assert later.expectations is not None
    assert later.expectations.reserved == {"pods/a": True}


@pytest.mark.parametrize("planted", ["until_ms={ahead}", "garbage", "until_ms=99999999999999999999999"])
def test_a_time_that_lies_too_far_ahead_is_cut(case: Case, planted: str) -> None:
    """It was written while the clock was an hour ahead, or by nobody of ours: D from now is the most it can be."""
    one = begun(case)
    ahead = planted.format(ahead=case.now_ms() + 3_600_000)
    finish(case, one, Verdict.OK, 0, Change.set("reserved pods/a", ahead))
    case.advance(5)
    case.worker.due()
    claim_one(case)
    assert fields(case)["reserved pods/a"] == f"until_ms={case.now_ms() + DRAIN_MS}"


def test_an_unanswered_write_is_never_left_idle(case: Case) -> None:
    """A good verdict with a write still unanswered is retried, with the back-off of a failure."""
    one = begun(case)
    announce(case, one, Entry("create", "pods/a"), Entry("create", "pods/b"))
    assert finish(case, one, Verdict.OK, None, Change.drop("create pods/a")) == 1
    assert case.worker.due() == (0, 5)
    assert set(fields(case)) == {"owner", "create pods/b"}
    assert state_of(case, KEY) == "idle"
    assert "unsettled" in case.state()


def test_a_rest_is_announced_with_the_delete_and_never_pending(case: Case) -> None:
    one = begun(case)
    announce(case, one, Entry("delete", "pods/b", "u7", "55"), Entry("rest", "pods/b", hint="uid=u7"))
    assert fields(case)["rest pods/b"] == "uid=u7"
    finish(case, one, Verdict.OK, None, Change.drop("delete pods/b"))
    assert ("unsettled" in case.state(), case.worker.due()) == (False, (0, None))
    case.worker.add(QUEUE, [KEY])
    again = claim_one(case)
    assert again.expectations is not None
    assert (again.expectations.rests, again.expectations.unanswered) == ({"pods/b": "uid=u7"}, 0)


def test_the_claim_after_a_send_does_not_wait_for_many_failures(case: Case) -> None:
    """The time in which it may land begins with that claim; without it nothing ever ends it."""
    one = begun(case)
    for _ in range(20):
        finish(case, one, Verdict.RETRY)
        one = retried(case, "w1")
    announce(case, one, Entry("delete", "pods/a", "u", "5"))
    finish(case, one, Verdict.RETRY)
    assert case.worker.due() == (0, 10_000)


@pytest.mark.parametrize(
    ("verdict", "delay_ms", "again_ms", "due_ms"),
    [
        pytest.param(Verdict.RETRY, 60_000, 40, 40, id="sooner than the back-off"),
        pytest.param(Verdict.RETRY, 40, 60_000, 40, id="later than it"),
        pytest.param(Verdict.RETRY, None, 60_000, 5, id="later than the least there is"),
        pytest.param(Verdict.OK, None, 40, 40, id="a good turn"),
    ],
)
def test_a_look_that_no_verdict_puts_off(
    case: Case, verdict: Verdict, delay_ms: int | None, again_ms: int, due_ms: int
) -> None:
    one = begun(case)
    finish(case, one, verdict, delay_ms, Change.again(again_ms))
    assert case.worker.due() == (0, due_ms)


def test_a_vanished_owner_is_not_looked_at_again(case: Case) -> None:
    one = begun(case)
    finish(case, one, Verdict.GONE, None, Change.again(40))
    assert case.worker.due() == (0, None)


def test_answered_writes_leave_nothing_but_what_the_cache_must_pass(case: Case) -> None:
    one = begun(case)
    announce(case, one, Entry("create", "pods/a"))
    finish(case, one, Verdict.OK, None, Change.drop("create pods/a"), Change.min_rv("pods", "120"))
    state = case.state()
    assert ("records" in state, "unsettled" in state, state["needs"]) == (False, False, {QUEUE: {KEY: "pods=120"}})


def test_an_answered_delete_stays_until_the_turn_drops_it(case: Case) -> None:
    """Answered is not pending: nothing is retried, but the next turn still has to see the pod go."""
    one = begun(case)
    announce(case, one, Entry("delete", "pods/b", "u", "5"))
    finish(case, one, Verdict.OK, None, Change.set("delete pods/b", "answered uid=u rv=5"))
    assert case.worker.due() == (0, None)
    case.worker.add(QUEUE, [KEY])
    again = claim_one(case)
    assert again.expectations is not None
    assert again.expectations.deletes[0].answered
    assert (again.expectations.unanswered, again.unsettled) == (0, False)


def test_names_borne_by_any_cached_object_come_back_and_nothing_is_recorded(case: Case) -> None:
    """In the key's namespace only; a name announced before is re-issued, not asked for again."""
    one = begun(case)
    pods = [
        Event("ns/a", "101", "ua", b"blob of a"),
        Event("other/b", "102", "ub", b"b"),
        Event("ns/c", "103", "uc", b"c"),
    ]
    case.ingestor.ingest("pods", "100", "103", pods)
    before = case.state()
    assert announce(case, one, Entry("create", "pods/a"), Entry("create", "pods/b"), Entry("create", "pods/c")) == [
        NameTaken("pods/a", Cached("101", "ua", b"blob of a")),
        NameTaken("pods/c", Cached("103", "uc", b"c")),
    ]
    assert case.state() == before
    assert announce(case, one, Entry("create", "pods/b"), Entry("delete", "pods/a", "ua", "101")) == []
    case.ingestor.ingest("pods", "103", "104", [Event("ns/b", "104", "ub", b"our own")])
    assert announce(case, one, Entry("create", "pods/b")) == [], "it is ours: announced already"


def test_a_record_without_entries_renews_the_lease_and_nothing_else(case: Case) -> None:
    one = begun(case)
    case.advance(2_000)
    before = case.state()
    assert announce(case, one) == []
    after = case.state()
    assert after.pop("leases") == {f"{QUEUE}:{KEY}": case.now_ms() + LEASE_MS}
    before.pop("leases")
    assert after == before


def test_a_blocked_name_is_kept(case: Case) -> None:
    one = begun(case)
    finish(case, one, Verdict.OK, 0, Change.set("blocked pods/a", "uid=other"))
    assert abs(ttl_ms(case) - FIVE_MINUTES_MS) < 2_000, "a record made by finish has its end too"
    again = claim_one(case)
    assert again.expectations is not None
    assert (again.expectations.blocked, again.expectations.unanswered) == ({"pods/a": "other"}, 0)
    finish(case, again, Verdict.OK, None, Change.drop("blocked pods/a"))
    assert fields(case) == {}


@pytest.mark.parametrize(
    ("delay_ms", "verdict", "ttl"),
    [
        pytest.param(None, Verdict.OK, FIVE_MINUTES_MS, id="no delay"),
        pytest.param(600_000, Verdict.OK, FIVE_MINUTES_MS + 600_000, id="look again"),
        pytest.param(90_000, Verdict.RETRY, FIVE_MINUTES_MS + 90_000, id="retry"),
    ],
)
def test_a_record_outlives_the_pause_of_its_key(case: Case, delay_ms: int | None, verdict: Verdict, ttl: int) -> None:
    one = begun(case)
    announce(case, one, Entry("create", "pods/a"))
    finish(case, one, verdict, delay_ms, Change.set("blocked pods/a", "uid=u"), Change.drop("create pods/a"))
    assert abs(ttl_ms(case) - ttl) < 2_000


def test_a_record_outlives_the_parking_of_its_key(case: Case) -> None:
    one = begun(case)
    announce(case, one, Entry("create", "pods/a"))
    for nth in range(12):
        holder = f"victim{nth}"
        state = case.state()
        assert KEY in state["locks"][QUEUE]
        case.worker.release(state["locks"][QUEUE][KEY].split()[0].removeprefix("holder="), blamed=f"{QUEUE}:{KEY}")
        pause = case.worker.due()[1] or 0
        assert ttl_ms(case) > pause, "never gone before its key is tried again"
        case.advance(pause)
        case.worker.due()
        case.worker.register(holder, "s", [QUEUE])
        assert claim_one(case, holder).expectations is not None
    assert ttl_ms(case) > 295_000


def test_every_step_that_touches_a_record_renews_it(case: Case) -> None:
    one = begun(case)
    announce(case, one, Entry("create", "pods/a"))
    for _ in range(4):
        case.advance(EIGHT_DAYS_MS - 1_000)
        assert announce(case, one, Entry("create", "pods/b")) == []
        assert abs(ttl_ms(case) - EIGHT_DAYS_MS) < 2_000
    case.advance(EIGHT_DAYS_MS - 1_000)
    one = claimed_again(case, one)
    assert abs(ttl_ms(case) - EIGHT_DAYS_MS) < 2_000


def test_a_lost_record_leaves_its_mark_until_a_live_list(case: Case) -> None:
    """Never "expired, so satisfied": the mark stands, through good turns too, until a turn acted on a live list."""
    one = begun(case)
    announce(case, one, Entry("create", "pods/a"))
    case.advance(EIGHT_DAYS_MS + 1_000)
    again = claimed_again(case, one)
    assert (again.expectations, again.unsettled) == (None, True)
    for changes in ((), (Change.min_rv("pods", "90"),), (Change.set("blocked pods/z", "uid=other"),)):
        finish(case, again, Verdict.OK, 0, *changes)
        again = claim_one(case, "w2")
        assert again.unsettled, changes
    finish(case, again, Verdict.OK, 0, Change.settled())
    assert not claim_one(case, "w2").unsettled


def test_a_new_record_does_not_clear_the_mark_of_a_lost_one_by_itself(case: Case) -> None:
    """Once it is recorded and answered under a claim, the earlier loss was dealt with by that turn's live list."""
    one = begun(case)
    announce(case, one, Entry("create", "pods/a"))
    case.advance(EIGHT_DAYS_MS + 1_000)
    again = claimed_again(case, one)
    announce(case, again, Entry("create", "pods/b"))
    finish(case, again)
    third = retried(case, "w2")
    assert third.unsettled
    finish(case, third, Verdict.OK, 0, Change.drop("create pods/b"), Change.drop("reserved pods/b"))
    assert not claim_one(case, "w2").unsettled


def test_answers_that_come_after_a_loss_do_not_clear_its_mark(case: Case) -> None:
    """What a finish stores in a hash that was lost under its turn is not what was announced: that has an owner."""
    one = begun(case)
    announce(case, one, Entry("delete", "pods/a", "uid=u rv=5"), Entry("delete", "pods/b", "uid=v rv=6"))
    case.advance(EIGHT_DAYS_MS + 1_000)
    finish(case, one, Verdict.OK, 0, Change.set("delete pods/a", "answered uid=u rv=5"))
    for _ in range(2):
        again = claim_one(case, "w2")
        assert again.expectations is not None
        assert (again.expectations.owner_uid, again.unsettled) == ("", True)
        finish(case, again, Verdict.OK, 0, Change.set("blocked pods/z", "uid=other"))
    finish(case, claim_one(case, "w2"), Verdict.OK, 0, Change.settled())
    assert not claim_one(case, "w2").unsettled


def test_an_owner_that_is_gone_takes_its_record_along(case: Case) -> None:
    one = begun(case)
    announce(case, one, Entry("create", "pods/a"))
    finish(case, one, Verdict.OK, None, Change.min_rv("pods", "120"))
    again = retried(case, "w1")
    announce(case, again, Entry("create", "pods/b"))
    case.worker.add(QUEUE, [KEY])
    finish(case, again, Verdict.GONE)
    state = case.state()
    assert [part for part in ("records", "needs", "unsettled", "failures") if part in state] == []
    fresh = claim_one(case)
    assert (fresh.expectations, fresh.min_rv, fresh.unsettled) == (None, "", False)


# -- reading one's own writes ------------------------------------------------------------------------------------------


def test_a_need_is_handed_over_until_the_cache_has_passed_it(case: Case) -> None:
    one = begun(case)
    finish(case, one, Verdict.OK, 0, Change.min_rv("pods", "120"), Change.min_rv("replicasets", "99"))
    again = claim_one(case)
    assert again.min_rv == "pods=120"
    case.ingestor.ingest("pods", "100", "119", [])
    finish(case, again, Verdict.OK, 0)
    again = claim_one(case)
    assert again.min_rv == "pods=120"
    finish(case, again)
    case.ingestor.ingest("pods", "119", "120", [])
    again = claim_one(case)
    assert again.min_rv == ""
    assert "needs" not in case.state(), "what was read is forgotten"


def test_needs_only_grow(case: Case) -> None:
    """As (length, text): 1000 is above 999, whatever numbers would say of larger ones."""
    one = begun(case)
    large = "9" * 20
    finish(case, one, Verdict.OK, 0, Change.min_rv("pods", "1000"), Change.min_rv("pods", "999"))
    again = claim_one(case)
    assert again.min_rv == "pods=1000"
    finish(case, again, Verdict.OK, 0, Change.min_rv("pods", large), Change.min_rv("replicasets", "500"))
    again = claim_one(case)
    assert again.min_rv == f"pods={large} replicasets=500"
    finish(case, again, Verdict.OK, 0, Change.min_rv("pods", "1" + "0" * 19))
    assert claim_one(case).min_rv == f"pods={large} replicasets=500"


def test_passing_a_need_wakes_its_owner(case: Case) -> None:
    """Whatever the batch holds: no event need name the owner."""
    one = begun(case)
    finish(case, one, Verdict.OK, None, Change.min_rv("pods", "120"))
    case.ingestor.ingest("pods", "100", "119", [])
    assert state_of(case, KEY) == "idle"
    case.ingestor.ingest("pods", "119", "125", [])
    assert state_of(case, KEY) == "queued"
    assert "unread" not in case.state()


def test_a_list_that_passes_a_need_wakes_its_owner(case: Case) -> None:
    one = begun(case)
    finish(case, one, Verdict.OK, None, Change.min_rv("pods", "120"))
    case.ingestor.stage("pods", "g2", [])
    case.ingestor.commit_list("pods", "g2", "130")
    assert state_of(case, KEY) == "queued"


def test_a_need_already_passed_does_not_wait(case: Case) -> None:
    one = begun(case)
    finish(case, one, Verdict.OK, None, Change.min_rv("pods", "100"))
    assert "unread" not in case.state()
    case.worker.add(QUEUE, [KEY])
    assert claim_one(case).min_rv == ""


# -- what a claim hands over -------------------------------------------------------------------------------------------


def test_a_claim_brings_owner_children_and_how_far_the_cache_is(case: Case) -> None:
    opened(case, KEY)
    pods: list[Any] = [
        Event("ns/p1", "101", "u1", b"mine", (f"owner={UID}",)),
        Event("ns/p2", "102", "u2", b"orphan here", ("orphan=ns",)),
        Event("other/p3", "103", "u3", b"orphan elsewhere", ("orphan=other",)),
        Event("ns/p4", "104", "u4", b"of another", ("owner=uid-else",)),
    ]
    case.ingestor.ingest("pods", "100", "110", pods)
    case.advance(700)
    case.worker.add(QUEUE, [KEY, "ns/unknown"])
    batch = claim_reply(case)
    assert isinstance(batch, Batch)
    assert {resource: (mark.rv, mark.age_ms) for resource, mark in batch.watermarks.items()} == {
        "replicasets": ("100", 700),
        "pods": ("110", 700),
    }
    web, unknown = batch.claims
    assert web.owner == Cached("10", UID, b"owner of " + KEY.encode())
    assert sorted(child.blob for child in web.children) == [b"mine", b"orphan here"]
    assert (unknown.owner, unknown.children) == (None, [])
    assert (web.expectations, web.min_rv, web.unsettled, web.crashes) == (None, "", False, 0)


REVISIONS = "controllerrevisions"
SPEC = LoadSpec(
    QUEUE,
    "replicasets",
    (
        ("pods", "owner", "uid"),
        (REVISIONS, "owner", "uid"),
        ("pods", "orphan", "wanted"),
        ("things", "owner", "uid"),
        ("pods", "node", "name"),
    ),
)


def with_revisions(case: Case) -> None:
    opened(case, KEY)
    for resource in (REVISIONS, "things"):
        case.ingestor.stage(resource, f"first-{resource}", [])
        case.ingestor.commit_list(resource, f"first-{resource}", "100")
    pods: list[Any] = [
        Event("ns/p1", "101", "u1", b"mine", (f"owner={UID}",)),
        Event("ns/p2", "102", "u2", b"orphan", ("orphan=ns",)),
        Event("other/p3", "103", "u3", b"on web", ("owner=x", "node=web")),
    ]
    case.ingestor.ingest("pods", "100", "110", pods)
    case.ingestor.ingest(REVISIONS, "100", "120", [Event("ns/r1", "115", "u9", b"first", (f"owner={UID}",))])


def test_children_are_grouped_by_resource(case: Case) -> None:
    """In the order in which the LoadSpec first names a resource, however often it does."""
    with_revisions(case)
    case.worker.add(QUEUE, [KEY])
    one = claim_one(case, specs=(SPEC,))
    assert sorted(child.blob for child in one.children) == [b"mine", b"on web", b"orphan"]
    assert one.others == {REVISIONS: [Cached("115", "u9", b"first")], "things": []}


@pytest.mark.parametrize("key", ["web", "ns/none/web"])
def test_children_by_name_are_read_without_an_owner(case: Case, key: str) -> None:
    """A node is gone, and its pods still stand under its name; of an owner that is gone nothing is known."""
    with_revisions(case)
    case.worker.add(QUEUE, [key])
    one = claim_one(case, specs=(SPEC,))
    assert (one.key, one.owner) == (key, None)
    assert [child.blob for child in one.children] == [b"on web"]
    assert one.others == {REVISIONS: [], "things": []}


def test_children_of_one_resource_only(case: Case) -> None:
    with_revisions(case)
    case.worker.add(QUEUE, [KEY, "ns/none"])
    for one in claim(case, specs=(LoadSpec(QUEUE, "replicasets", ((REVISIONS, "owner", "uid"),)),)):
        assert [child.blob for child in one.children] == ([b"first"] if one.key == KEY else [])
        assert one.others == {}
        finish(case, one, Verdict.OK, 0)
    for one in claim(case, specs=(LoadSpec(QUEUE, "replicasets"),)):
        assert (one.children, one.others) == ([], {})


def test_the_further_children_of_a_claim_cannot_be_changed_for_all() -> None:
    one = Claim(QUEUE, KEY, "n", None, [], None, "", False, 0)
    with pytest.raises(TypeError):
        one.others["pods"] = []  # type: ignore[index]


def test_blobs_are_bytes_of_any_kind(case: Case) -> None:
    blob = bytes(range(256)) + b"\n\n\n"
    opened(case, KEY)
    case.ingestor.ingest("pods", "100", "101", [Event("ns/p", "101", "", blob, (f"owner={UID}",), (f"{QUEUE}:{KEY}",))])
    one = claim_one(case)
    assert one.children == [Cached("101", "", blob)]


def test_children_by_the_thousand(case: Case) -> None:
    """Lua's unpack fails near 8000 arguments."""
    opened(case, KEY, holders=("w1", "w2"))
    pods = [Event(f"ns/p{i}", f"{101 + i}", f"u{i}", b"p", (f"owner={UID}",)) for i in range(9_000)]
    for at in range(0, 9_000, 1_000):
        case.ingestor.ingest("pods", str(100 + at), str(100 + at + 1_000), pods[at : at + 1_000])
    case.worker.add(QUEUE, [KEY])
    one = claim_one(case)
    assert len({child.uid for child in one.children}) == 9_000
    assert announce(case, one, *(Entry("create", f"pods/new{i}") for i in range(5_000))) == []
    assert len(fields(case)) == 5_001
    assert claimed_again(case, one).expectations is not None
    assert claim_reply(case) is Idle.UNKNOWN
