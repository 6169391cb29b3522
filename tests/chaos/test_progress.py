"""Progress while faults last: stories of owners that get on beside a refused name, and of owners that do not."""

from __future__ import annotations

from typing import Any

import pytest

from oarlock.chaos.judge.checker import Findings
from oarlock.chaos.judge.evidence.evidence import Blow, Lost
from tests.chaos.daemon_story import DaemonStory
from tests.chaos.rollout_story import RolloutStory
from tests.chaos.story import DRAIN_S, Story, kinds

LIMIT_S = 8.0
NAMED = "fail500BeforeCommit by name"
LONG_S = LIMIT_S + DRAIN_S + 1.0
TEN = tuple(f"web-{number}" for number in range(10))


def lasting(story: Story, **more: Any) -> Findings:
    """Judged as if the faults went on to the end."""
    story.facts["progress_s"] = LIMIT_S
    return story.check(faults_ended_s=story.at_s, **more)


def stalled(findings: Findings) -> bool:
    return "stalled_owner" in kinds(findings)


def told(findings: Findings) -> str:
    return next(each.text for each in findings.violations if each.kind == "stalled_owner")


def refused(story: Story, verb: str, name: str, **more: Any) -> Story:
    fields = {"asked_uid": story.pods[name].uid, "asked_rv": "1"} if verb == "delete" else {}
    return story.asks(verb, name, 500, committed=False, fault=NAMED, **fields, **more)


def one_create_refused(wanted: int = 10) -> Story:
    """The case of the acceptance suite: of ten pods nine come."""
    story = Story(wanted).claim().record(*(("create", name) for name in TEN))
    for name in TEN[:-1]:
        story.creates(name)
    refused(story, "create", TEN[-1])
    return story.finish(*(("create", name) for name in TEN[:-1]), state="delayed").runs()


def test_an_owner_that_is_frozen_by_one_refused_create() -> None:
    """10 -> 0, and 48 s later nine pods still run, the status still of the old generation."""
    findings = lasting(one_create_refused().scale(0).wait(48.0))
    assert stalled(findings)
    assert "its status is of generation 0, not 2" in told(findings)
    assert findings.opportunities["progress_checks"] == 1


def test_a_status_alone_is_no_progress() -> None:
    findings = lasting(one_create_refused().scale(0).claim().status().finish(state="delayed").wait(48.0))
    assert stalled(findings)
    assert "9 active pods, 0 wanted, and deletes of none are refused" in told(findings)


def test_an_owner_that_goes_on_beside_a_refused_create() -> None:
    story = one_create_refused().claim().status().finish(state="delayed").wait(LONG_S).scale(0)
    story.claim().record(*(("delete", name) for name in TEN[:-1]))
    for name in TEN[:-1]:
        story.deletes(name)
    story.status().finish(*(("delete", name) for name in TEN[:-1]), state="delayed")
    findings = lasting(story.wait(LONG_S))
    assert not stalled(findings)
    assert findings.opportunities["progress_checks"] == 2


@pytest.mark.parametrize(("deleted", "found"), [(8, True), (9, False)])
def test_of_ten_one_delete_is_refused(deleted: int, found: bool) -> None:
    """One pod too many is allowed, two are not."""
    story = Story(10).fill(*TEN).scale(0).claim().record(*(("delete", name) for name in TEN))
    refused(story, "delete", TEN[-1])
    for name in TEN[:deleted]:
        story.deletes(name)
    story.status().finish(*(("delete", name) for name in TEN[:deleted]), state="delayed")
    findings = lasting(story.wait(LIMIT_S + 1.0))
    assert stalled(findings) is found
    assert findings.opportunities["progress_checks_refused"] == 1


@pytest.mark.parametrize(("waited_s", "found"), [(LIMIT_S + 1.0, False), (LONG_S, True)])
def test_a_create_that_nobody_refuses_is_waited_for_for_d(waited_s: float, found: bool) -> None:
    story = Story(3).fill("web-a", "web-b", "web-c").scale(4).claim().status().finish(state="delayed")
    assert stalled(lasting(story.wait(waited_s))) is found


def test_a_refusal_long_ago_excuses_nothing() -> None:
    story = one_create_refused().claim().status().finish(state="delayed")
    assert stalled(lasting(story.wait(LIMIT_S + 2 * DRAIN_S + 1.0)))


def test_a_refused_write_that_took_effect_excuses_nothing() -> None:
    story = Story(2).fill("web-a", "web-b").scale(3).claim().status().finish(state="delayed")
    story.asks("create", "web-c", 500, committed=True, fault="fail500AfterCommit by name", rv=1)
    findings = lasting(story.wait(LONG_S))
    assert "stalled_owner" in kinds(findings)


@pytest.mark.parametrize("what", ["a pod lost", "scaled", "redis", "whole"])
def test_who_was_disturbed_a_moment_ago_is_given_time(what: str) -> None:
    story = Story(3).fill("web-a", "web-b", "web-c").wait(30.0)
    match what:
        case "a pod lost":
            story.goes("web-a")
        case "scaled":
            story.scale(5)
        case "redis":
            story.scale(5).step(Lost(story.at_s, "killed")).wait(60.0)
        case "whole":
            story.scale(5).blows.append(Blow(story.at_s, "blocked-redis", until_s=story.at_s + 60.0, whole=True))
            story.wait(60.0)
    assert not stalled(lasting(story.wait(LIMIT_S - 6.0)))


def test_a_pod_that_fails_beside_a_delete_of_another_owner_is_a_disturbance() -> None:
    """Revisions lie close together: whose delete it was is told by the pod."""
    story = Story(2).fill("web-a", "web-b").wait(30.0).becomes("web-a", phase="Failed")
    story.rv += 1
    story.asks("delete", "other", 200, committed=True, rv=story.rv, uid="uid-of-another", asked_uid="u", asked_rv="1")
    assert not stalled(lasting(story.wait(LIMIT_S - 6.0)))


def test_nothing_is_judged_unless_it_is_asked_for_nor_after_the_faults() -> None:
    story = one_create_refused().scale(0).wait(48.0)
    assert "stalled_owner" not in kinds(story.check())
    story = one_create_refused().scale(0)
    story.facts["progress_s"] = LIMIT_S
    assert "stalled_owner" not in kinds(story.check(faults_ended_s=story.at_s + 1.0))


@pytest.mark.parametrize(("covered", "found"), [(("n1", "n2", "n3"), False), (("n1", "n2"), True)])
def test_a_daemon_set_covers_its_other_nodes(covered: tuple[str, ...], found: bool) -> None:
    story = DaemonStory().claim().record(*(("create", f"web-{node}") for node in ("n1", "n2", "n3", "n4")))
    for node in covered:
        story.creates(f"web-{node}")
    refused(story, "create", "web-n4")
    story.finish(*(("create", f"web-{node}") for node in covered), state="delayed").runs().claim().status()
    story.finish(state="delayed")
    findings = lasting(story.wait(LONG_S))
    assert stalled(findings) is found


def test_a_deployment_whose_status_lags_behind() -> None:
    """A rollout that does not get on is not judged: it may wait for a pod that its ReplicaSet cannot make."""
    findings = lasting(RolloutStory().begins().with_set("1").wait(LONG_S))
    assert stalled(findings)
    assert "its status is of generation 1, not 2" in told(findings)
    assert not stalled(lasting(RolloutStory().begins().with_set("1").looks().wait(LONG_S)))


@pytest.mark.parametrize("strict", [False, True])
def test_a_finished_pod_whose_delete_is_refused(strict: bool) -> None:
    """A strict owner must delete it before it may make another; any other owner makes one beside it."""
    story = Story(2, strict=strict).fill("web-a", "web-b").becomes("web-a", phase="Failed", ready=False)
    refused(story.claim().record(("delete", "web-a")), "delete", "web-a").status().finish(state="delayed")
    assert stalled(lasting(story.wait(LONG_S))) is not strict


@pytest.mark.parametrize("waited_s", [LIMIT_S + 1.0, LONG_S])
def test_a_size_is_observed_once_no_write_may_land_beside_it(waited_s: float) -> None:
    findings = lasting(Story(1).fill("web-a").owner(generation=2).claim().finish().wait(waited_s))
    assert stalled(findings) is (waited_s == LONG_S)
