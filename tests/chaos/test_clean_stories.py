"""Stories in which nothing is wrong: the checker must find nothing, and count the opportunities."""

from __future__ import annotations

from oarlock.chaos.judge.evidence.evidence import Attached, Dirty, EpochBegun, Lost, Opened, Refused, Renewed
from tests.chaos.story import TASK, Story, kinds


def test_fill_scale_and_shrink() -> None:
    story = Story(2).fill("web-a", "web-b").scale(3).fill("web-c").scale(1).shrink("web-a", "web-b")
    findings = story.check()
    assert kinds(findings) == []
    assert findings.opportunities["creates"] == 3
    assert findings.opportunities["deletes"] == 2
    assert findings.opportunities["rests"] >= 3
    assert findings.answers == {"create 201": 3, "delete 200": 2}


def test_a_killed_worker_and_its_successor_write_the_same() -> None:
    story = Story(2).claim("w-1").record(("create", "web-a"), ("create", "web-b")).creates("web-a").dies()
    story.release().claim("w-2").exists_already("web-a").creates("web-b")
    story.finish(("create", "web-a"), ("create", "web-b"), state="queued").runs().turn()
    findings = story.check()
    assert kinds(findings) == []
    assert findings.opportunities["already_exists"] == 1
    assert findings.opportunities["reissued_writes"] == 1
    assert findings.opportunities["kills_with_write_in_flight"] == 1
    assert len(findings.worker_ms) == 1


def test_a_commit_after_the_sender_died_is_late_and_allowed() -> None:
    story = Story(2).claim("w-1").record(("create", "web-a"), ("create", "web-b"))
    sent_s = story.at_s
    story.dies().release().wait(0.2).creates("web-a", received_s=sent_s)
    story.claim("w-2").exists_already("web-a").creates("web-b")
    story.finish(("create", "web-a"), ("create", "web-b"), state="queued").runs().turn()
    findings = story.check()
    assert kinds(findings) == []
    assert findings.opportunities["late_commits"] == 1


def test_creates_outstanding_at_a_scale_down_count_by_the_former_wish() -> None:
    story = Story(3).claim("w-1").record(*(("create", name) for name in ("web-a", "web-b", "web-c")))
    story.creates("web-a").dies().scale(1).release().claim("w-2").creates("web-b").creates("web-c")
    story.finish(("create", "web-a"), ("create", "web-b"), ("create", "web-c"), state="queued").runs()
    assert kinds(story.shrink("web-b", "web-c").check()) == []


def test_a_create_that_lands_after_all_seemed_at_rest_was_outstanding_then() -> None:
    story = Story(3).claim("w-1").record(*(("create", name) for name in ("web-a", "web-b", "web-c")))
    sent_s = story.at_s
    story.creates("web-a").dies().scale(1).release().claim("w-2").status()
    story.wait(0.5).creates("web-b", received_s=sent_s).creates("web-c", received_s=sent_s)
    story.finish(("create", "web-a"), ("create", "web-b"), ("create", "web-c"), state="queued").runs()
    assert kinds(story.shrink("web-b", "web-c").check()) == []


def test_pods_lost_to_others_are_made_again_and_excuse_a_delete() -> None:
    story = Story(3).fill("web-a", "web-b", "web-c").scale(2)
    story.claim().record(("delete", "web-a"))
    story.becomes("web-b", deleting=True)  # a user's delete, before ours lands
    story.deletes("web-a").finish(("delete", "web-a")).goes("web-a").goes("web-b")
    assert kinds(story.fill("web-d").check()) == []


def test_an_adopted_pod_may_be_one_too_many() -> None:
    story = Story(2).claim().record(("create", "web-a"), ("create", "web-b")).creates("web-a")
    story.stray("stray")  # was adopted meanwhile
    story.creates("web-b").finish(("create", "web-a"), ("create", "web-b")).runs()
    assert kinds(story.shrink("stray").check()) == []


def test_a_refused_step_is_an_opportunity() -> None:
    story = Story(1).claim("w-1").record(("create", "web-a"))
    first = story.nonce
    story.release().claim("w-2").step(Refused(story.at_s, 1, TASK, first, "announce")).creates("web-a")
    story.step(Refused(story.at_s, 1, TASK, first, "finish")).finish(("create", "web-a"), state="queued").runs().turn()
    findings = story.check()
    assert kinds(findings) == []
    assert findings.opportunities["stale_nonce_refusals"] == 2


def test_a_lost_redis_and_a_drained_epoch() -> None:
    story = Story(2).claim("w-1").record(("create", "web-a"), ("create", "web-b"))
    story.creates("web-a").step(Lost(story.at_s, "killed")).wait(1.0)
    story.step(Attached(story.at_s)).step(EpochBegun(story.at_s, 2))
    story.creates("web-b", received_s=story.at_s - 0.9).wait(7.1).step(Opened(story.at_s, 2))
    story.epoch = 2
    findings = story.runs().turn().check()
    assert kinds(findings) == []
    assert findings.opportunities["epochs"] == 2


def test_a_change_during_the_turn_and_a_renewal() -> None:
    story = Story(1).claim("w-1").record(("create", "web-a")).creates("web-a")
    story.step(Renewed(story.at_s, 1, TASK, ("w-0", "w-1"))).step(Dirty(story.at_s, 1, TASK))
    assert kinds(story.finish(("create", "web-a"), state="queued").runs().turn().check()) == []


def test_a_strict_owner_replaces_a_pod_when_it_has_gone() -> None:
    story = Story(2, strict=True).fill("web-a", "web-b")
    story.becomes("web-a", deleting=True).claim().finish().goes("web-a")
    assert kinds(story.fill("web-c").check()) == []


def test_a_late_answer_long_after_its_record_was_settled_is_still_announced() -> None:
    story = Story(1).claim("w-1").record(("create", "web-a")).creates("web-a").finish(("create", "web-a")).runs().turn()
    assert kinds(story.wait(3.0).exists_already("web-a").check()) == []
