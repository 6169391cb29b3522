"""Deployments over the pods of all their ReplicaSets: each kind of violation is found, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from oarlock.chaos.judge.checker import Findings, check
from oarlock.chaos.judge.evidence.sightings import DeploymentSeen
from oarlock.chaos.judge.rollouts_at_rest import Limits, limits_of
from oarlock.chaos.judge.timeline import timeline
from tests.chaos.rollout_story import TASK, RolloutStory
from tests.chaos.story import DRAIN_S, kinds

ONLY_SURGE = {"surge": "1", "unavailable": "0"}
NO_SURGE = {"surge": "0", "unavailable": "1"}
RECREATE = {"strategy": "Recreate"}


def rolled(story: RolloutStory, *, to: str = "1", of: str = "0") -> RolloutStory:
    """The rest of a rollout, one pod after another; then all is at rest."""
    limits, replicas = limits_of(story.deployment), story.deployment.replicas
    while True:
        old, new = (
            [name.split("-")[2] for name, pod in story.pods.items() if pod.owner == f"set-{version}"]
            for version in (of, to)
        )
        if len(new) < replicas and len(old) + len(new) < limits.most:
            name = f"r{len(new)}"
            story.size(to, len(new) + 1).fills(to, name).up(to, name)
        elif old:
            story.size(of, len(old) - 1).drops(of, old[0])
        else:
            return story.looks()


def at_rest_for_long(story: RolloutStory) -> Findings:
    return story.wait(40.0).check(faults_ended_s=story.at_s - 35.0)


# -- clean stories


@pytest.mark.parametrize("spec", [ONLY_SURGE, NO_SURGE, {"surge": "1", "unavailable": "1"}])
def test_a_rollout_and_the_way_back(spec: dict[str, str]) -> None:
    story = rolled(RolloutStory(spec=spec).begins().with_set("1"))
    findings = rolled(story.roll("0"), to="0", of="1").check()
    assert kinds(findings) == []
    assert findings.opportunities["templates_come_back"] == 1


def test_what_a_clean_rollout_offers() -> None:
    findings = rolled(RolloutStory(spec=ONLY_SURGE).begins().with_set("1")).check()
    assert kinds(findings) == []
    had = findings.opportunities
    assert (had["deployment_rollouts"], had["templates_come_back"], had["size_writes"]) == (1, 0, 9)
    assert (had["creates_while_rolling"], had["deletes_of_available"], had["recreations"]) == (4, 4, 0)
    assert findings.by_kind["deployment"]["creates"] == 2
    assert findings.by_kind["deployment"]["rests"] >= 2


def test_pods_that_others_take_are_nobodys_fault() -> None:
    story = RolloutStory(spec=NO_SURGE).begins().with_set("1").size("0", 3)
    story.drops("0", "p0", lost=("p1", "p2"))
    story.fills("0", "a", "b").up("0", "a", "b").size("1", 1).fills("1", "a").up("1", "a")
    assert kinds(rolled(story).check()) == []


def test_a_pod_that_gets_unready_is_nobodys_fault() -> None:
    story = RolloutStory(spec=NO_SURGE).begins().with_set("1").size("0", 3)
    story.becomes("web-0-p1", ready=False).drops("0", "p0").up("0", "p1").size("1", 1).fills("1", "a").up("1", "a")
    assert kinds(rolled(story).check()) == []


def test_unready_pods_may_go_however_few_are_available() -> None:
    story = RolloutStory(spec=ONLY_SURGE).begins().with_set("1").size("1", 1).fills("1", "bad").roll("2").claim()
    story.makes("2").finish()
    story.size("1", 0).drops("1", "bad").size("2", 1).fills("2", "a").up("2", "a").size("0", 3).drops("0", "p0")
    for at, name in enumerate(("p1", "p2", "p3")):
        story.size("2", at + 2).fills("2", name).up("2", name).size("0", 2 - at).drops("0", name)
    assert kinds(story.looks().check()) == []


def test_an_adopted_pod_may_be_one_too_many() -> None:
    story = RolloutStory(spec=ONLY_SURGE).begins().with_set("1").size("1", 1)
    pod = story.appears("web-0-stray")
    story.asks("create", "web-0-stray", 201, committed=True, rv=pod.rv, uid=pod.uid, ours=False)
    story.runs("web-0-stray").fills("1", "a").up("1", "a").drops("0", "stray")
    assert kinds(rolled(story).check()) == []


def test_the_loosest_spec_since_the_last_rest_counts() -> None:
    story = RolloutStory().begins().change(replicas=8).size("0", 8)
    story.change(replicas=2).fills("0", "a", "b", "c", "d").up("0", "a", "b", "c", "d").size("0", 2)
    story.drops("0", "p0", "p1", "p2", "p3", "a", "b").looks()
    assert kinds(story.check()) == []


def test_recreated() -> None:
    story = RolloutStory(spec=RECREATE).begins().with_set("1").size("0", 0).drops("0", "p0", "p1", "p2", "p3")
    findings = story.size("1", 4).fills("1", "a", "b", "c", "d").up("1", "a", "b", "c", "d").looks().check()
    assert kinds(findings) == []
    assert findings.opportunities["recreations"] == 8


def test_a_finished_old_pod_holds_nothing_up_with_recreate() -> None:
    story = RolloutStory(1, spec=RECREATE).begins().with_set("1").becomes("web-0-p0", phase="Failed", ready=False)
    story.size("0", 0).size("1", 1).fills("1", "a").up("1", "a").looks()
    assert kinds(story.check()) == []


def test_another_strategy_on_the_way_is_no_recreation() -> None:
    story = RolloutStory(spec=RECREATE).begins().change(strategy="RollingUpdate", surge="1", unavailable="0")
    story.with_set("1").size("1", 1).change(strategy="Recreate").fills("1", "a").up("1", "a")
    assert kinds(rolled(story).check()) == []


# -- R1


def test_one_pod_too_many_over_both_templates() -> None:
    story = RolloutStory(spec=ONLY_SURGE).begins().with_set("1").size("1", 2).fills("1", "a", "b").up("1", "a", "b")
    story.size("0", 3).drops("0", "p0")
    findings = rolled(story).check()
    assert kinds(findings) == ["over_surge"]
    assert findings.violations[0].task == TASK
    assert "made 6 active pods; 5 may be" in findings.violations[0].text


def test_a_larger_size_long_ago_excuses_no_pod_too_many() -> None:
    story = RolloutStory(spec=ONLY_SURGE).begins().change(replicas=2).size("0", 2).drops("0", "p0", "p1").looks()
    story.with_set("1").size("1", 2).fills("1", "a", "b").up("1", "a", "b").size("0", 0).drops("0", "p2", "p3").looks()
    assert kinds(story.check()) == ["over_surge"]


def test_a_size_that_was_announced_before_a_rest_may_be_acted_on_after_it() -> None:
    story = RolloutStory(spec=ONLY_SURGE).begins().change(replicas=6).size("0", 6)
    story.requests[-1] = (late := story.requests[-1])._replace(rv=0, committed=False)
    story.change(replicas=4).set("0", replicas=4).looks()
    story.set("0", replicas=6).requests.append(late._replace(rv=story.rv, received_s=late.received_s))
    story.fills("0", "a", "b").up("0", "a", "b").size("0", 4).drops("0", "a", "b").looks()
    assert kinds(story.check()) == []


# -- R2


def test_one_available_pod_too_few() -> None:
    story = RolloutStory(spec=NO_SURGE).begins().with_set("1").size("0", 2).drops("0", "p0", "p1")
    story.size("1", 2).fills("1", "a", "b").up("1", "a", "b")
    findings = rolled(story).check()
    assert kinds(findings) == ["unavailable"]
    assert "left 2 available pods; at least 3 have to be" in findings.violations[0].text


def test_an_old_pod_that_goes_before_the_new_one_is_ready() -> None:
    story = RolloutStory(spec=ONLY_SURGE).begins().with_set("1").size("1", 1).fills("1", "a").size("0", 3)
    assert kinds(rolled(story.drops("0", "p0").up("1", "a")).check()) == ["unavailable"]


def test_a_pod_that_is_ready_for_too_short_is_not_available() -> None:
    story = RolloutStory(spec={**ONLY_SURGE, "min_ready_s": 10}).begins().wait(20.0).with_set("1").size("1", 1)
    story.fills("1", "a").up("1", "a").wait(5.0).size("0", 3).drops("0", "p0").wait(20.0).looks()
    for at, name in enumerate(("p1", "p2", "p3")):
        story.size("1", at + 2).fills("1", name).up("1", name).wait(20.0).size("0", 2 - at).drops("0", name).looks()
    assert kinds(story.looks().check()) == ["unavailable"]


def never_whole(**spec: Any) -> RolloutStory:
    """One of its pods has not become ready yet."""
    story = RolloutStory(spec={**ONLY_SURGE, **spec}).size("0", 4).fills("0", "p0", "p1", "p2", "p3")
    return story.up("0", "p1", "p2", "p3").wait(9.0).looks()


def ripening(story: RolloutStory, wait_s: float) -> RolloutStory:
    """A pod of an old template, chosen when it was ready for too short, which goes ``wait_s`` after that."""
    story.with_set("1").size("1", 1).fills("1", "a").with_set("2").up("1", "a").size("1", 0)
    owner, deployment = story.sets["1"], (story.task, story.uid)
    story.task, story.uid = owner.task, owner.uid
    story.claim("w-2").record(("delete", "web-1-a")).wait(wait_s).deletes("web-1-a", graceful=False)
    story.finish(("delete", "web-1-a"))
    story.task, story.uid = deployment
    return story


@pytest.mark.parametrize("wait_s", [0.1, 4.0])
def test_a_pod_that_becomes_available_while_it_goes_is_nobodys_fault(wait_s: float) -> None:
    story = ripening(never_whole(min_ready_s=2), wait_s).looks()
    assert "unavailable" not in kinds(story.check())


def test_a_size_that_takes_what_the_status_does_not_count_yet() -> None:
    story = never_whole().with_set("1").size("1", 1).fills("1", "a").with_set("2").up("1", "a").size("1", 0)
    story.drops("1", "a").up("0", "p0").looks()
    assert "unavailable" not in kinds(story.check())


def test_a_delete_that_the_size_does_not_ask_for() -> None:
    story = RolloutStory(spec=ONLY_SURGE).begins().drops("0", "p0").fills("0", "q").up("0", "q").looks()
    assert "unavailable" in kinds(story.check())


def test_losses_to_others_excuse_only_so_many() -> None:
    story = RolloutStory(spec=NO_SURGE).begins().with_set("1").size("0", 1).drops("0", "p0", "p1", "p3", lost=("p2",))
    story.size("1", 2).fills("1", "a", "b").up("1", "a", "b").fills("0", "q").up("0", "q")
    assert kinds(rolled(story).check()) == ["unavailable"]


def test_losses_before_the_last_rest_excuse_nothing() -> None:
    story = RolloutStory(spec=NO_SURGE).begins().ends("web-0-p0").fills("0", "q").up("0", "q").looks().with_set("1")
    story.size("0", 2).drops("0", "p1", "p2").size("1", 2).fills("1", "a", "b").up("1", "a", "b")
    assert kinds(rolled(story).check()) == ["unavailable"]


def test_fewer_replicas_on_the_way_take_pods_of_all_templates() -> None:
    story = RolloutStory(spec=NO_SURGE).begins().with_set("1").size("0", 3).drops("0", "p0").size("1", 1)
    story.fills("1", "bad").change(replicas=2).size("0", 1).drops("0", "p1", "p2").up("1", "bad")
    assert kinds(rolled(story).check()) == []


# -- R3


@pytest.mark.parametrize("state", [{}, {"deleting": True}, {"phase": "Pending", "ready": False}])
def test_a_new_pod_beside_an_old_one_with_recreate(state: dict[str, Any]) -> None:
    story = RolloutStory(spec=RECREATE).begins().with_set("1").size("0", 0).drops("0", "p1", "p2", "p3")
    story.becomes("web-0-p0", **state).size("1", 1).fills("1", "a").up("1", "a").ends("web-0-p0")
    findings = story.size("1", 4).fills("1", "b", "c", "d").up("1", "b", "c", "d").looks().check()
    assert kinds(findings) == ["recreate_overlap"]
    assert "web-1-a beside 1 pods of another template: web-0-p0" in findings.violations[0].text


# -- R4


def test_two_replicasets_with_one_template() -> None:
    story = RolloutStory(spec=ONLY_SURGE).begins().with_set("1").claim().makes("x", digest="digest-1").finish()
    findings = rolled(story).prunes("x").looks().check()
    assert kinds(findings) == ["twin_replicaset"]
    assert "web-x holds the same template as replicaset:shop/web-1" in findings.violations[0].text


def test_a_template_that_comes_back_after_its_replicaset_was_cleaned_up_is_no_twin() -> None:
    story = rolled(RolloutStory(spec=ONLY_SURGE).begins().with_set("1")).prunes("0").looks()
    story.roll("0").claim().makes("0").finish().size("0", 1).fills("0", "a").up("0", "a").size("1", 3)
    assert "twin_replicaset" not in kinds(story.drops("1", "r0").check())


# -- beside a second fleet


def test_beside_a_second_fleet_only_twins_are_judged_until_the_next_rest() -> None:
    def wrong(story: RolloutStory) -> RolloutStory:
        story.with_set("1").size("0", 2).drops("0", "p0", "p1").size("1", 4).fills("1", "a", "b", "c", "d")
        return story.up("1", "a", "b", "c", "d").size("0", 0).drops("0", "p2", "p3").looks()

    story = RolloutStory(spec=NO_SURGE).begins()
    story.facts = {"second_from_s": story.at_s, "second_to_s": story.at_s + 0.5}
    assert kinds(wrong(story).check()) == []
    story = RolloutStory(spec=NO_SURGE).begins()
    story.facts = {"second_from_s": story.at_s, "second_to_s": story.at_s + 0.5}
    assert kinds(wrong(story.wait(1.0 + DRAIN_S).change().looks()).check()) == ["over_surge", "unavailable"]
    story = RolloutStory(spec=NO_SURGE).begins()
    story.facts = {"second_from_s": story.at_s, "second_to_s": story.at_s + 0.5}
    story.with_set("1").claim().makes("x", digest="digest-1").finish()
    assert "twin_replicaset" in kinds(story.check())


# -- size writes


def test_a_size_that_no_record_named() -> None:
    story = RolloutStory().begins().change(replicas=5).size("0", 5)
    story.trace = [
        step for step in story.trace if getattr(step, "entries", ()) != (("scale replicasets/web-0", "set-0"),)
    ]
    findings = story.fills("0", "a").up("0", "a").looks().check()
    assert kinds(findings) == ["unannounced_write"]
    assert "scale of web-0" in findings.violations[0].text


@pytest.mark.parametrize("wanting", ["asked_uid", "asked_rv"])
def test_a_size_without_a_precondition(wanting: str) -> None:
    story = RolloutStory().begins().change(replicas=5).size("0", 5, **{wanting: ""})
    assert "unguarded_scale" in kinds(story.fills("0", "a").up("0", "a").looks().check())


def test_a_replicaset_deleted_without_a_precondition() -> None:
    story = rolled(RolloutStory(spec=ONLY_SURGE).begins().with_set("1")).prunes("0").unseen(asked_rv="")
    assert kinds(story.looks().check()) == ["unguarded_delete"]


def test_annotations_alone_are_not_announced() -> None:
    story = RolloutStory().begins().set("0")
    story._asks_set("patch", "0", story.rv)
    assert kinds(story.check()) == []


# -- at rest


@pytest.mark.parametrize(
    "wrong",
    ["size", "old size", "old pod", "not ready", "missing", "status", "generation", "paused", "history", "none"],
)
def test_a_deployment_that_never_comes_to_rest(wrong: str) -> None:
    story = rolled(RolloutStory(spec={**ONLY_SURGE, "history": 1}).begins().with_set("1"))
    match wrong:
        case "size":
            story.change(replicas=5).looks()
        case "old size":
            story.size("0", 1).fills("0", "a").up("0", "a").looks()
        case "old pod":
            story.fills("0", "a").up("0", "a").looks()
        case "not ready":
            story.becomes("web-1-r0", ready=False).looks()
        case "missing":
            story.ends("web-1-r0").looks()
        case "status":
            story.now(said=(4, 4, 4, 3, 1)).looks().now(said=(4, 4, 4, 3, 1))
        case "generation":
            story.change().claim().finish()
        case "paused":
            story.change(paused=True).looks()
        case "history":
            story.claim().makes("2").finish().looks()
        case "none":
            story.roll("2").looks()
    findings = at_rest_for_long(story)
    assert "stuck_key" in kinds(findings)
    assert TASK in {each.task for each in findings.violations if each.kind == "stuck_key"}


def test_a_deployment_at_rest_for_long() -> None:
    assert kinds(at_rest_for_long(rolled(RolloutStory(spec=ONLY_SURGE).begins().with_set("1")))) == []


def test_a_deployment_that_comes_to_rest_too_late() -> None:
    story = RolloutStory(spec=ONLY_SURGE).begins().with_set("1").looks().wait(31.0)
    faults_ended_s = story.at_s - 31.0
    findings = rolled(story).check(faults_ended_s=faults_ended_s)
    assert "right only" in next(each.text for each in findings.violations if each.task == TASK)


def test_replicasets_left_of_a_deployment_that_is_gone() -> None:
    findings = RolloutStory(0).now(gone=True).check()
    assert "1 ReplicaSets are left" in next(each.text for each in findings.violations if each.task == TASK)


def test_a_status_that_goes_back() -> None:
    story = RolloutStory().begins().change().looks().now(observed=1).looks()
    assert kinds(story.check()) == ["status_backwards"]


# -- keys


def test_a_replicaset_that_changed_and_nobody_read() -> None:
    story = RolloutStory().begins().set("0", status_ready=3)
    findings = story.check()
    assert "ReplicaSet web-0 changed" in next(each.text for each in findings.violations if each.kind == "lost_key")


def test_annotations_of_a_replicaset_concern_nobody() -> None:
    assert kinds(RolloutStory().begins().set("0").check()) == []


def test_a_timeline_of_a_deployment() -> None:
    story = RolloutStory(spec=NO_SURGE).begins().with_set("1").size("0", 2).drops("0", "p0", "p1")
    evidence = story.evidence()
    violation = next(each for each in check(evidence).violations if each.kind == "unavailable")
    text = "\n".join(timeline(evidence, violation))
    for word in ("owner version 1", "owner web-0 2 wanted", "pod web-0-p1", "scale replicasets/web-0", "delete pods"):
        assert word in text


# -- limits


@pytest.mark.parametrize(
    ("surge", "unavailable", "replicas", "limits"),
    [
        ("39%", "39%", 10, Limits(14, 7, False)),
        ("0%", "0%", 10, Limits(10, 9, False)),
        ("", "39%", 10, Limits(10, 7, False)),
        ("39%", "", 10, Limits(14, 10, False)),
        ("25%", "25%", 1, Limits(2, 1, False)),
        ("0%", "1%", 2, Limits(2, 1, False)),
        ("0", "9", 4, Limits(4, 0, False)),
        ("1", "0", 0, Limits(1, 0, False)),
    ],
)
def test_limits(surge: str, unavailable: str, replicas: int, limits: Limits) -> None:
    seen = DeploymentSeen(1, 1.0, False, TASK, "u", 1, replicas, surge=surge, unavailable=unavailable)
    assert limits_of(seen) == limits


def test_the_limits_of_a_recreation() -> None:
    assert limits_of(DeploymentSeen(1, 1.0, False, TASK, "u", 1, 3, strategy="Recreate")) == Limits(3, 0, True)
