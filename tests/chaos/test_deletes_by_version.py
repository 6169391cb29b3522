"""No delete is sent that the owner version does not allow which that turn's claim had read."""

from __future__ import annotations

from oarlock.chaos.judge.checker import Findings
from tests.chaos.story import DRAIN_S, Story, kinds

ABC = ("web-a", "web-b", "web-c")


def shrunk_in_vain() -> Story:
    """3 -> 1; two deletes are announced and answered 500, and the turn ends with both pending."""
    story = Story(3).fill(*ABC).scale(1).claim().record(("delete", "web-b"), ("delete", "web-c"))
    for name in ("web-b", "web-c"):
        story.asks("delete", name, 500, committed=False, asked_uid=story.pods[name].uid, asked_rv="1")
    return story.finish(state="delayed")


def sent_again(story: Story, *names: str) -> Story:
    """By a turn that claims the key now and announces nothing anew."""
    story.claim("w-2")
    for name in names:
        story.deletes(name)
    story.finish(*(("delete", name) for name in names))
    for name in names:
        story.goes(name)
    return story


def deleted_too_much(findings: Findings) -> bool:
    return "over_deletion" in kinds(findings)


def test_obsolete_deletes_carried_out_hours_later() -> None:
    """The owner has asked for three again meanwhile: two healthy pods go that it wants."""
    story = sent_again(shrunk_in_vain().scale(3).wait(7_200.0), "web-b", "web-c")
    findings = story.fill("web-d", "web-e").check()
    assert deleted_too_much(findings)
    assert "at least 3 were wanted since revision" in next(
        each.text for each in findings.violations if each.kind == "over_deletion"
    )


def test_obsolete_deletes_announced_again_are_no_better() -> None:
    story = shrunk_in_vain().scale(3).wait(60.0).claim("w-2").record(("delete", "web-b"))
    story.deletes("web-b").finish(("delete", "web-b")).goes("web-b")
    assert deleted_too_much(story.fill("web-d").check())


def test_deletes_that_are_still_wanted_hours_later() -> None:
    story = sent_again(shrunk_in_vain().wait(7_200.0), "web-b", "web-c")
    assert not deleted_too_much(story.turn().check())


def test_the_wish_of_a_moment_ago_allows_it_if_the_claim_has_read_no_newer() -> None:
    story = shrunk_in_vain().wait(60.0).claim("w-2").scale(3).deletes("web-b").deletes("web-c")
    story.finish(("delete", "web-b"), ("delete", "web-c")).goes("web-b").goes("web-c")
    assert not deleted_too_much(story.fill("web-d", "web-e").check())


def test_the_bytes_of_the_turn_that_announced_it_may_come_within_d_of_its_end() -> None:
    """A frozen host lets go of what it had begun; whether it is one of its own bytes nobody can tell later."""
    for late_s, found in ((DRAIN_S - 1.0, False), (DRAIN_S + 1.0, True)):
        story = Story(3).fill(*ABC).scale(2).claim("w-1").record(("delete", "web-c")).release()
        story.scale(3).claim("w-2").wait(late_s).deletes("web-c").finish(("delete", "web-c")).goes("web-c")
        assert deleted_too_much(story.fill("web-d").check()) is found, late_s


def test_a_loss_the_claim_had_read_excuses_no_delete() -> None:
    """It knew of one pod fewer when it chose its victim."""
    for knew in (True, False):
        story = Story(3).fill(*ABC).scale(2)
        if not knew:
            story.claim()
        story.becomes("web-a", deleting=True).goes("web-a")
        if knew:
            story.claim()
        story.record(("delete", "web-b")).deletes("web-b").finish(("delete", "web-b")).goes("web-b")
        assert deleted_too_much(story.fill("web-d").check()) is knew


def test_without_a_trace_the_last_d_count() -> None:
    for since_s, found in ((DRAIN_S - 1.0, False), (DRAIN_S + 1.0, True)):
        story = Story(3, facts={"api_alone": True}).fill(*ABC).scale(2).scale(3).wait(since_s).deletes("web-c")
        story.goes("web-c").fill("web-d").trace.clear()
        findings = story.check()
        assert kinds(findings) == (["over_deletion"] if found else []), since_s


def test_a_rest_while_a_turn_is_under_way_forgets_no_loss_that_its_claim_had_not_read() -> None:
    """It adopts a pod and, two being too many then, deletes one. Meanwhile one fails, and for a moment all is right."""
    story = Story(2).fill("web-a", "web-b")
    before = story.check().opportunities["rests"]
    story.claim().becomes("web-a", phase="Failed", ready=False).stray("web-x").runs("web-x")
    assert story.check().opportunities["rests"] > before
    story.record(("delete", "web-b")).deletes("web-b").finish(("delete", "web-b")).goes("web-b")
    assert not deleted_too_much(story.fill("web-d").check())
