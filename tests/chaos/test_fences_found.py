"""Locks, nonces, epochs and announcements: each kind of violation is found."""

from __future__ import annotations

import pytest

from oarlock.chaos.judge.evidence.evidence import (
    Answered,
    Attached,
    Blow,
    Claimed,
    Dirty,
    End,
    EpochBegun,
    LiveList,
    Lost,
    Opened,
    Recorded,
    Renewed,
    Unlocked,
    Watermark,
)
from tests.chaos.story import TASK, Story, kinds


def overtaken() -> tuple[Story, str]:
    """A key that was claimed anew, and the nonce of its first holder."""
    story = Story(1).claim("w-1")
    first = story.nonce
    return story.release().claim("w-2"), first


def test_a_record_of_an_earlier_holder() -> None:
    story, first = overtaken()
    story.record(("create", "web-a"), nonce=first).creates("web-a").finish(("create", "web-a")).runs().turn()
    findings = story.check()
    assert kinds(findings) == ["overlap"]
    assert "w-2 holds the key" in findings.violations[0].text


def test_a_renewal_by_record_of_an_earlier_holder() -> None:
    story, first = overtaken()
    story.record(nonce=first).record(("create", "web-a")).creates("web-a").finish(("create", "web-a")).runs().turn()
    assert kinds(story.check()) == ["overlap"]


def test_a_finish_of_an_earlier_holder() -> None:
    story, first = overtaken()
    story.finish(nonce=first)
    assert kinds(story.fill("web-a").check()) == ["overlap"]


def test_a_record_of_a_key_nobody_holds() -> None:
    story = Story(1).fill("web-a").record(("create", "web-b"))
    assert kinds(story.step(Answered(story.at_s, 1, TASK, "")).check()) == ["overlap"]


def test_two_locks_on_a_key() -> None:
    story = Story(1).claim("w-1").claim("w-2").finish()
    findings = story.fill("web-a").check()
    assert kinds(findings) == ["overlap"]
    assert "while w-1 has held it" in findings.violations[0].text


def test_a_nonce_that_comes_again() -> None:
    story = Story(1).claim("w-1").release()
    story.step(Claimed(story.at_s, 1, TASK, "w-2", story.nonce)).finish()
    assert kinds(story.fill("web-a").check()) == ["overlap"]


def test_a_release_that_takes_anothers_lock() -> None:
    assert kinds(Story(1).claim("w-1").release("w-0").fill("web-a").check()) == ["overlap"]


@pytest.mark.parametrize("by", ["", "ingest", "?"])
def test_a_lock_that_something_else_takes_away(by: str) -> None:
    story = Story(1).claim("w-1")
    story.step(Unlocked(story.at_s, 1, TASK, by, state="queued"))
    assert kinds(story.fill("web-a").check()) == ["overlap"]


def test_a_reclaim_of_a_lock_that_does_not_stand() -> None:
    story = Story(1).fill("web-a")
    story.step(Unlocked(story.at_s, 1, TASK, "reclaim", state="queued"))
    assert kinds(story.check()) == ["overlap"]


def test_a_renewal_for_others() -> None:
    story, _ = overtaken()
    story.step(Renewed(story.at_s, 1, TASK, ("w-1",))).finish()
    assert kinds(story.fill("web-a").check()) == ["overlap"]


def test_steps_of_an_epoch_that_is_over() -> None:
    story = Story(1).claim("w-1").step(Lost(1_001.0, "flushed")).wait(1.0)
    story.step(EpochBegun(story.at_s, 2)).record(("create", "web-a")).creates("web-a").wait(7.0)
    story.step(Opened(story.at_s, 2))
    story.epoch = 2
    story.runs().turn()
    findings = story.check()
    assert kinds(findings) == ["overlap", "unannounced_write"]
    assert "epoch 2 is the current one" in findings.violations[0].text


def test_steps_after_the_data_were_lost() -> None:
    story = Story(1).claim("w-1").step(Lost(1_001.0, "flushed"))
    story.finish().wait(1.0).step(EpochBegun(story.at_s, 2)).wait(7.1).step(Opened(story.at_s, 2))
    story.epoch = 2
    findings = story.fill("web-a").check()
    assert kinds(findings) == ["overlap"]
    assert "the data were lost" in findings.violations[0].text


def test_an_epoch_that_begins_twice() -> None:
    story = Story(1).step(Lost(1_001.0, "flushed")).wait(1.0).step(EpochBegun(1_002.0, 1)).wait(8.0)
    story.step(Opened(story.at_s, 1))
    assert kinds(story.fill("web-a").check()) == ["overlap"]


def test_a_claim_before_the_epoch_is_open() -> None:
    story = Story(1).step(Lost(1_001.0, "flushed")).wait(1.0)
    story.step(EpochBegun(story.at_s, 2))
    story.epoch = 2
    story.fill("web-a").wait(7.0).step(Opened(story.at_s, 2))
    assert kinds(story.turn().check()) == ["overlap"]


def test_an_epoch_opened_before_its_drain_is_over() -> None:
    story = Story(1).step(Lost(1_001.0, "flushed")).wait(1.0)
    story.step(EpochBegun(story.at_s, 2)).wait(6.9).step(Opened(story.at_s, 2))
    story.epoch = 2
    assert kinds(story.fill("web-a").check()) == ["early_open"]


def test_the_first_epoch_needs_no_drain() -> None:
    assert kinds(Story(1).fill("web-a").check()) == []


def test_a_watermark_that_goes_back() -> None:
    story = Story(1).fill("web-a")
    story.step(Watermark(story.at_s, 1, "pods", story.rv - 5))
    assert kinds(story.turn().check()) == ["watermark_backwards"]


def test_a_watermark_may_go_back_in_another_epoch() -> None:
    story = Story(1).fill("web-a").step(Lost(1_001.0, "flushed")).wait(1.0)
    story.step(EpochBegun(story.at_s, 2)).step(Watermark(story.at_s, 2, "pods", 5)).wait(7.1)
    story.step(Opened(story.at_s, 2))
    story.epoch = 2
    assert kinds(story.turn().check()) == []


@pytest.mark.parametrize("how", ["release", "reclaim"])
def test_a_release_that_only_unlocks(how: str) -> None:
    story = Story(1).claim("w-1")
    story.step(Unlocked(story.at_s, 1, TASK, how, holder="w-1", state="idle"))
    findings = story.fill("web-a").check()
    assert kinds(findings) == ["lost_key"]
    assert "must give it back" in findings.violations[0].text


def test_a_parked_key_is_not_lost() -> None:
    assert kinds(Story(1).claim("w-1").release(state="parked").fill("web-a").check()) == []


def test_a_finish_that_forgets_a_change_that_came_meanwhile() -> None:
    story = Story(1).claim("w-1").step(Dirty(1_000.5, 1, TASK)).finish()
    assert kinds(story.fill("web-a").check()) == ["lost_key"]


def test_a_finish_that_forgets_an_unanswered_write() -> None:
    story = Story(1).claim("w-1").record(("create", "web-a")).finish(state="idle").creates("web-a").runs()
    story.claim().finish(("create", "web-a")).turn()
    assert kinds(story.check()) == ["lost_key"]


def test_an_unanswered_write_that_is_retried_is_not_forgotten() -> None:
    story = Story(1).claim("w-1").record(("create", "web-a")).finish(state="delayed").creates("web-a").runs()
    story.claim().exists_already("web-a").finish(("create", "web-a"), state="queued").turn()
    assert kinds(story.check()) == []


def test_a_lock_that_stands_in_the_end() -> None:
    story = Story(1).fill("web-a").claim("w-1").wait(40.0)
    assert kinds(story.check()) == ["stuck_key"]


def test_a_trace_that_broke_off_in_an_epoch_is_a_gap() -> None:
    story = Story(1).fill("web-a")
    story.step(Attached(story.at_s, 1, "OPEN"))
    assert kinds(story.turn().check()) == ["gap"]


def test_a_trace_that_begins_after_the_opening_is_a_gap_unless_it_is_the_first() -> None:
    story = Story(1).fill("web-a").step(Lost(1_001.0, "killed"))
    story.step(Attached(story.at_s + 9.0, 2, "OPEN")).wait(9.1)
    story.epoch = 2
    assert kinds(story.turn().check()) == ["gap"]
    first = Story(1)
    first.trace[:] = [Attached(first.at_s, 1, "OPEN")]
    assert kinds(first.fill("web-a").check()) == []


def test_a_trace_that_begins_in_a_drain_misses_nothing() -> None:
    story = Story(1).fill("web-a").step(Lost(1_001.0, "killed")).step(Attached(1_002.0, 2, "DRAIN")).wait(9.0)
    story.step(Opened(story.at_s, 2))
    story.epoch = 2
    assert kinds(story.turn().check()) == []


def test_live_lists_are_counted() -> None:
    story = Story(1).fill("web-a").step(LiveList(1_001.0, 1, TASK))
    assert story.check().opportunities["live_lists"] == 1


def test_a_name_announced_again_while_it_is_pending_is_one_announcement() -> None:
    story = Story(1).claim("w-1").record(("create", "web-a"))
    story.step(Recorded(story.at_s, 1, TASK, story.nonce, (("create pods/web-a", ""),)))
    story.creates("web-a").finish(("create", "web-a")).runs().turn()
    assert kinds(story.check()) == []


def test_a_supervisor_that_ends_by_itself() -> None:
    story = Story(1).fill("web-a")
    story.blows += [Blow(1_001.0, "ingestor", 7), Blow(1_001.0, "pause", 8, until_s=1_002.0)]
    assert kinds(story.check(ends=[End(1_001.1, "ingestor", 7)])) == []
    assert kinds(story.check(ends=[End(1_001.1, "supervisor", 9)])) == ["crash"]
    assert kinds(story.check(ends=[End(1_001.1, "supervisor", 8)])) == ["crash"]


def test_a_process_that_finds_no_redis_when_it_starts_has_not_crashed() -> None:
    story = Story(1).fill("web-a")
    story.blows.append(Blow(1_010.0, "redis", 5))
    assert kinds(story.check(ends=[End(1_010.4, "ingestor", 9, 1_008.7)])) == []
    assert kinds(story.check(ends=[End(1_010.4, "ingestor", 9, 1_000.0)])) == ["crash"]  # it had held out before
    assert kinds(story.check(ends=[End(1_020.0, "ingestor", 9, 1_009.5)])) == ["crash"]
    assert kinds(story.check(ends=[End(1_009.9, "ingestor", 9, 1_009.5)])) == ["crash"]
