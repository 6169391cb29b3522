"""Over-creation, over-deletion and what else the watch history shows: each kind is found."""

from __future__ import annotations

import pytest

from oarlock.chaos.judge.evidence.sightings import PodSeen
from tests.chaos.story import DRAIN_S, TASK, UID, Story, kinds


def test_one_pod_more_than_was_wanted() -> None:
    story = Story(2).fill("web-a", "web-b").claim().record(("create", "web-c")).creates("web-c")
    findings = story.finish(("create", "web-c")).runs("web-c").shrink("web-c").check()
    assert kinds(findings) == ["over_creation"]
    (violation,) = findings.violations
    assert (violation.task, violation.rv) == (TASK, story.requests[2].rv)
    assert "made 3 active pods; at most 2" in violation.text


def test_a_replacement_beside_the_pod_whose_create_was_unanswered() -> None:
    """What a lookup in place of a re-issue does: the name is dropped, another is created, and both land."""
    story = Story(1).claim("w-1").record(("create", "web-a"))
    sent_s = story.at_s
    story.dies().release().claim("w-2").finish(("create", "web-a"), state="queued")
    story.claim("w-2").record(("create", "web-b")).creates("web-b").creates("web-a", received_s=sent_s)
    findings = story.finish(("create", "web-b")).runs().shrink("web-b").check()
    assert kinds(findings) == ["over_creation"]


def test_the_bound_falls_once_the_owner_was_at_rest() -> None:
    story = Story(3).fill("web-a", "web-b", "web-c").scale(1).shrink("web-b", "web-c")
    story.claim().record(("create", "web-b")).creates("web-b").finish(("create", "web-b")).runs("web-b")
    assert kinds(story.shrink("web-b").check()) == ["over_creation"]


def test_a_pod_of_others_excuses_only_itself() -> None:
    story = Story(1).fill("web-a")
    story.stray("stray")
    story.claim().record(("create", "web-b")).creates("web-b").finish(("create", "web-b")).runs()
    assert kinds(story.shrink("web-b", "stray").check()) == ["over_creation"]


def test_a_pod_of_others_that_has_gone_excuses_nothing() -> None:
    story = Story(1).fill("web-a")
    story.stray("stray")
    story.goes("stray").claim().record(("create", "web-b")).creates("web-b").finish(("create", "web-b")).runs()
    assert kinds(story.shrink("web-b").check()) == ["over_creation"]


def test_a_strict_owner_with_a_pod_that_is_ending() -> None:
    story = Story(2, strict=True).fill("web-a", "web-b").becomes("web-a", deleting=True)
    story.claim().record(("create", "web-c")).creates("web-c").finish(("create", "web-c")).goes("web-a").runs()
    findings = story.turn().check()
    assert kinds(findings) == ["over_creation"]
    assert "(strict)" in findings.violations[0].text


def test_one_pod_fewer_than_was_wanted() -> None:
    story = Story(3).fill("web-a", "web-b", "web-c").scale(2)
    story.claim().record(("delete", "web-a"), ("delete", "web-b")).deletes("web-a").deletes("web-b")
    story.finish(("delete", "web-a"), ("delete", "web-b")).goes("web-a").goes("web-b")
    findings = story.fill("web-d").check()
    assert kinds(findings) == ["over_deletion"]
    assert "left 1 active pods; at least 2" in findings.violations[0].text


def test_a_second_victim_for_one_unit_of_excess() -> None:
    """The first delete is forgotten while it is under way, and another pod is ranked last by then."""
    story = Story(2).fill("web-a", "web-b").scale(1).claim("w-1").record(("delete", "web-a"))
    sent_s, victim = story.at_s, story.pods["web-a"]
    story.dies().release().claim("w-2").finish(("delete", "web-a"), state="queued")
    story.claim("w-2").record(("delete", "web-b")).deletes("web-b")
    story.pods["web-a"] = victim
    story.deletes("web-a", received_s=sent_s).finish(("delete", "web-b")).goes("web-a").goes("web-b")
    assert kinds(story.fill("web-c").check()) == ["over_deletion"]


def test_an_old_loss_excuses_no_delete() -> None:
    story = Story(3).fill("web-a", "web-b", "web-c")
    story.becomes("web-a", deleting=True).goes("web-a").wait(60.0).becomes("web-b", labels="x=y")  # never at rest
    story.claim().record(("delete", "web-b")).deletes("web-b").finish(("delete", "web-b")).goes("web-b")
    assert "over_deletion" in kinds(story.fill("web-d", "web-e").check())


def test_an_old_smaller_wish_excuses_no_delete() -> None:
    story = Story(3).fill("web-a", "web-b", "web-c").scale(1).scale(3).claim().finish().wait(60.0)
    story.claim().record(("delete", "web-b")).deletes("web-b").finish(("delete", "web-b")).goes("web-b")
    assert kinds(story.fill("web-d").check()) == ["over_deletion"]


def test_a_recent_smaller_wish_does() -> None:
    story = Story(3).fill("web-a", "web-b", "web-c").scale(2).claim().record(("delete", "web-a")).scale(3)
    story.deletes("web-a").finish(("delete", "web-a")).goes("web-a")
    assert kinds(story.fill("web-d").check()) == []


def test_a_delete_that_removes_at_once_counts_as_well() -> None:
    story = Story(2).fill("web-a", "web-b").claim().record(("delete", "web-a"))
    story.deletes("web-a", graceful=False).finish(("delete", "web-a"))
    assert kinds(story.fill("web-c").check()) == ["over_deletion"]


def test_a_pod_that_fails_just_before_our_delete_of_it_was_lost_to_others() -> None:
    story = Story(2, strict=True).fill("web-a", "web-b").becomes("web-a", phase="Failed")
    story.claim().record(("delete", "web-a")).deletes("web-a", graceful=False).finish(("delete", "web-a"))
    assert kinds(story.fill("web-a").check()) == []


def test_two_pods_of_one_name() -> None:
    story = Story(1).fill("web-a")
    twin = story.pods["web-a"]._replace(rv=story.rv + 1, uid="another", owner="", task="")
    story.rv += 1
    story.history.append(twin)
    story.requests.append(story.requests[0]._replace(rv=twin.rv, uid="another", ours=False))
    assert kinds(story.check()) == ["duplicate_name"]


def test_a_status_that_goes_back() -> None:
    story = Story(1).fill("web-a").scale(2).fill("web-b")
    story.owner(observed=1).turn()
    assert kinds(story.check()) == ["status_backwards"]


@pytest.mark.parametrize("wrong", ["pods", "status", "generation", "ready"])
def test_an_owner_that_never_comes_to_rest(wrong: str) -> None:
    story = Story(2).fill("web-a", "web-b")
    match wrong:
        case "pods":
            story.becomes("web-a", phase="Failed").claim().finish()
        case "status":
            story.owner(status_replicas=1)
        case "generation":
            story.scale(3).scale(2).owner(observed=2).claim().finish()
        case "ready":
            story.owner(status_ready=1)
    findings = story.wait(40.0).check(faults_ended_s=story.at_s - 35.0)
    assert kinds(findings) == ["stuck_key"]


def test_an_owner_that_comes_to_rest_too_late() -> None:
    story = Story(2).fill("web-a").wait(31.0)
    faults_ended_s = story.at_s - 31.0
    findings = story.fill("web-b").check(faults_ended_s=faults_ended_s)
    assert kinds(findings) == ["stuck_key"]
    assert "right only" in findings.violations[0].text


def test_pods_left_of_an_owner_that_is_gone() -> None:
    story = Story(1).fill("web-a").owner(gone=True)
    assert kinds(story.check()) == ["stuck_key"]


@pytest.mark.parametrize("strict", [False, True])
def test_a_failed_pod_hinders_no_rest(strict: bool) -> None:
    story = Story(2, strict=strict).fill("web-a", "web-b").becomes("web-a", phase="Failed").scale(1).turn()
    assert kinds(story.wait(40.0).check(faults_ended_s=story.at_s - 35.0)) == []


def test_an_orphan_is_nobodys() -> None:
    story = Story(1).fill("web-a").becomes("web-a", owner="", task="").owner(gone=True)
    assert kinds(story.check()) == []


def test_a_pod_without_a_request_is_a_gap() -> None:
    story = Story(1).fill("web-a")
    story.history.append(PodSeen(story.rv + 1, story.at_s, False, "shop", "other", "u"))
    assert kinds(story.check()) == ["gap"]


def test_a_request_whose_pod_was_never_seen_is_a_gap() -> None:
    story = Story(1).fill("web-a")
    story.asks("create", "other", 201, committed=True, rv=story.rv + 1, uid="u", ours=False)
    assert kinds(story.check()) == ["gap"]


def test_a_create_for_an_owner_that_was_never_seen_is_a_gap() -> None:
    story = Story(1).fill("web-a")
    story.history = [each for each in story.history if not hasattr(each, "generation")]
    assert any(UID in gap for gap in story.check().gaps)


RC = "replicationmanager:shop/web"


def test_the_rules_hold_for_replication_controllers() -> None:
    findings = Story(2, task=RC).fill("web-a", "web-b").scale(1).shrink("web-b").check()
    assert kinds(findings) == []
    counts = findings.by_kind["replicationmanager"]
    assert (counts["creates"], counts["deletes"]) == (2, 1)
    assert counts["rests"] > 0
    assert findings.by_kind["replicaset"]["creates"] == 0
    story = Story(2, task=RC).fill("web-a", "web-b").claim().record(("create", "web-c")).creates("web-c")
    assert kinds(story.finish(("create", "web-c")).runs("web-c").shrink("web-c").check()) == ["over_creation"]
    story = Story(2, task=RC).fill("web-a", "web-b").takes_one("web-a")
    assert kinds(story.fill("web-c").check()) == ["over_deletion"]
    assert kinds(Story(1, task=RC).fill("web-a").becomes("web-a", labels="x=y").check()) == ["lost_key"]


def beside(story: Story, name: str) -> Story:
    """A create of the second fleet."""
    pod = story.appears(name)
    return story.asks("create", name, 201, committed=True, rv=pod.rv, uid=pod.uid, ours=False, second=True)


def test_a_second_fleet_makes_more_of_an_owner_that_is_not_strict() -> None:
    story = Story(2).fill("web-a")
    story.facts = {"second_from_s": story.at_s, "second_to_s": story.at_s + 1.0}
    beside(story, "web-b").claim().record(("create", "web-c")).creates("web-c").finish(("create", "web-c")).runs()
    story.takes_one("web-b")
    assert kinds(story.turn().check()) == []


def test_what_a_second_fleet_made_excuses_nothing_later() -> None:
    story = Story(2).fill("web-a")
    story.facts = {"second_from_s": story.at_s, "second_to_s": story.at_s + 1.0}
    beside(story, "web-b").runs().turn().wait(10.0).turn()
    story.claim().record(("create", "web-c")).creates("web-c").finish(("create", "web-c")).runs()
    assert kinds(story.shrink("web-c").check()) == ["over_creation"]


def test_a_strict_owner_gets_what_a_second_fleet_was_asked_for_before_a_rest() -> None:
    story = Story(1, strict=True)
    story.facts = {"second_from_s": story.at_s, "second_to_s": story.at_s + 1.0}
    beside(story.scale(2).scale(1), "web-a").runs().turn()
    story = beside(story, "web-b").runs().wait(DRAIN_S + 2.0)
    assert kinds(story.shrink("web-b").check()) == []


@pytest.mark.parametrize("ours", [False, True])
def test_a_strict_owner_gets_no_more_of_any_number_of_fleets(ours: bool) -> None:
    story = Story(2, strict=True).fill("web-a", "web-b")
    story.facts = {"second_from_s": story.at_s, "second_to_s": story.at_s + 1.0}
    if ours:
        story.claim().record(("create", "web-c")).creates("web-c").finish(("create", "web-c"))
    else:
        beside(story, "web-c")
    story.runs("web-c").wait(DRAIN_S + 2.0)
    assert kinds(story.shrink("web-c").check()) == ["over_creation"]
