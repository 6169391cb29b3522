"""The audit log against the trace, and changes against claims: each kind of violation is found."""

from __future__ import annotations

import pytest

from oarlock.chaos.judge.evidence.evidence import CUT, Blow, Claimed, Lost, Request, Watermark
from tests.chaos.story import DRAIN_S, TASK, UID, Story, kinds


def test_a_create_that_no_record_named() -> None:
    story = Story(2).claim().record(("create", "web-a")).creates("web-a").creates("web-b")
    findings = story.finish(("create", "web-a")).runs().turn().check()
    assert kinds(findings) == ["unannounced_write"]
    assert "web-b" in findings.violations[0].text


def test_a_create_sent_before_its_record() -> None:
    story = Story(1).claim()
    sent_s = story.at_s
    story.wait(0.1).record(("create", "web-a")).creates("web-a", received_s=sent_s).finish(("create", "web-a"))
    assert kinds(story.runs().turn().check()) == ["unannounced_write"]


def test_a_create_named_for_another_owner() -> None:
    story = Story(1).claim().record(("create", "web-a")).creates("web-a").finish(("create", "web-a")).runs().turn()
    story.requests[0] = story.requests[0]._replace(task="replicaset:shop/other")
    assert kinds(story.check()) == ["unannounced_write"]


def test_a_create_without_a_name() -> None:
    story = Story(1).claim().record(("create", "web-a")).creates("web-a").finish(("create", "web-a")).runs().turn()
    story.requests[0] = story.requests[0]._replace(name="")
    assert kinds(story.check()) == ["unannounced_write"]


def test_a_create_long_after_its_record_was_settled() -> None:
    story = Story(1).fill("web-a").wait(DRAIN_S + 1.0).exists_already("web-a")
    assert kinds(story.check()) == ["unannounced_write"]


def test_a_write_of_a_lost_epoch_is_announced_for_as_long_as_it_may_land() -> None:
    story = Story(1).claim().record(("create", "web-a"))
    story.creates("web-a").finish(("create", "web-a")).runs().turn().step(Lost(story.at_s, "flushed"))
    story.wait(DRAIN_S + 1.0).exists_already("web-a")
    assert kinds(story.check()) == ["unannounced_write"]


def test_a_write_whose_record_died_with_the_trace() -> None:
    """Redis was killed between its answer to a record and the line of the trace that would have told of it."""
    story = Story(1).claim().wait(0.001).creates("web-a").runs()
    story.step(Lost(story.at_s, CUT))
    findings = story.check()
    assert "unannounced_write" not in kinds(findings)
    assert findings.opportunities["unproved_writes"] == 1


@pytest.mark.parametrize("later_s", [0.5, DRAIN_S - 1.0], ids=["by a slow recorder", "by a slow request"])
def test_a_write_whose_record_never_got_out(later_s: float) -> None:
    """What Redis had told of but not yet sent died with it, and the request was long on its way."""
    story = Story(1).claim().wait(0.001)
    if later_s < 1.0:
        story.creates("web-a").runs().wait(later_s).step(Lost(story.at_s, CUT))
    else:
        story.step(Lost(story.at_s, CUT)).wait(later_s).creates("web-a").runs()
    findings = story.check()
    assert "unannounced_write" not in kinds(findings)
    assert findings.opportunities["unproved_writes"] == 1


def test_a_write_without_a_record_after_the_drain() -> None:
    story = Story(1).claim().step(Lost(1_001.0, CUT)).wait(DRAIN_S + 2.0).creates("web-a").runs()
    assert "unannounced_write" in kinds(story.check())


def test_a_kill_of_redis_is_noticed_late() -> None:
    story = Story(1).claim().creates("web-a")
    story.blows.append(Blow(story.at_s, "redis", 5))
    story.runs().wait(1.0).step(Lost(story.at_s, CUT))
    assert story.check().opportunities["unproved_writes"] == 1


def test_a_write_without_a_record_while_the_trace_was_whole() -> None:
    story = Story(1).claim().creates("web-a").finish().runs().turn()
    story.wait(1.0).step(Lost(story.at_s, CUT))
    assert "unannounced_write" in kinds(story.check())


def test_a_delete_that_no_record_named() -> None:
    story = Story(2).fill("web-a", "web-b").scale(1).claim().deletes("web-a").finish().goes("web-a").turn()
    assert kinds(story.check()) == ["unannounced_write"]


def test_a_delete_announced_for_another_uid() -> None:
    story = Story(2).fill("web-a", "web-b").scale(1).claim().record(("delete", "web-a"))
    story.deletes("web-a", asked_uid="another").finish(("delete", "web-a")).goes("web-a").turn()
    assert kinds(story.check()) == ["unannounced_write"]


@pytest.mark.parametrize("wanting", ["asked_uid", "asked_rv"])
def test_a_delete_without_a_precondition(wanting: str) -> None:
    story = Story(2).fill("web-a", "web-b").scale(1).claim().record(("delete", "web-a"))
    story.deletes("web-a", **{wanting: ""}).finish(("delete", "web-a")).goes("web-a").turn()
    assert "unguarded_delete" in kinds(story.check())


@pytest.mark.parametrize(("later_s", "found"), [(4.9, ["unannounced_write", "gap"]), (5.1, [])])
def test_a_fleet_goes_on_when_the_recorders_have_ended(later_s: float, found: list[str]) -> None:
    """The evidence of the story ends 5 s after its last step."""
    story = Story(2).fill("web-a", "web-b")
    at_s = story.at_s + later_s
    story.requests.append(Request(at_s, at_s, "create", "pods", "shop", "web-x", 201, True, True, rv=90_000, owner=UID))
    assert kinds(story.check()) == found


def test_writes_of_others_are_their_own_affair() -> None:
    story = Story(1).fill("web-a")
    story.requests.append(Request(story.at_s, story.at_s, "delete", "pods", "shop", "x", 200, True, False, 7, "u"))
    assert kinds(story.check()) == []


def status(story: Story, **more: str) -> Request:
    return Request(
        story.at_s, story.at_s, "patch", "replicasets/status", "shop", "web", 200, True, True, story.rv, UID, **more
    )


def test_a_status_without_its_resource_version() -> None:
    story = Story(1).fill("web-a")
    story.requests.append(status(story, asked_uid=UID))
    assert kinds(story.check()) == ["status_backwards"]
    story.requests[-1] = status(story, asked_uid=UID, asked_rv="7")
    assert kinds(story.check()) == []


def test_a_write_without_its_body_is_a_gap() -> None:
    story = Story(1).fill("web-a")
    story.requests[0] = story.requests[0]._replace(body=False)
    assert "gap" in kinds(story.check())


def test_a_change_no_claim_had_read() -> None:
    story = Story(2).fill("web-a", "web-b").becomes("web-a", labels="app=other").becomes("web-a", labels="")
    findings = story.check()
    assert kinds(findings) == ["lost_key"]
    assert "pod web-a changed (and 1 more changes)" in findings.violations[0].text


def test_a_claim_on_an_old_view_does_not_count() -> None:
    story = Story(2).fill("web-a", "web-b")
    old = story.rv
    story.becomes("web-a", ready=False).becomes("web-a", ready=True)
    story.step(Watermark(story.at_s, 1, "pods", old)).step(Claimed(story.at_s, 1, TASK, "w-9", "n-old"))
    story.nonce = "n-old"
    assert kinds(story.finish().check()) == ["lost_key"]


def test_a_change_of_the_owner_no_claim_had_read() -> None:
    story = Story(2).fill("web-a", "web-b").owner(generation=2, observed=2)
    findings = story.check()
    assert kinds(findings) == ["lost_key"]
    assert "generation 2" in findings.violations[0].text


def test_a_change_that_matters_to_nobody() -> None:
    story = Story(1).fill("web-a").becomes("web-a")
    assert kinds(story.check()) == []


def test_a_change_claimed_only_after_a_long_open_time() -> None:
    story = Story(2).fill("web-a", "web-b").becomes("web-a", ready=False).wait(31.0).becomes("web-a", ready=True)
    findings = story.turn().check(faults_ended_s=1_000.0)
    assert "lost_key" in kinds(findings)
    assert "claimed only after 31" in findings.violations[0].text


def test_a_change_of_just_now_may_still_be_claimed() -> None:
    story = Story(1).fill("web-a").wait(4.0)
    evidence = story.becomes("web-a", labels="x=y").wait(-4.5).evidence()
    assert evidence.facts.ended_s - story.history[-1].at_s < 1.5
    from oarlock.chaos.judge.checker import check

    assert kinds(check(evidence)) == []
