"""DaemonSets: a second pod on a node, and more nodes down through us than may be; and what is neither."""

from __future__ import annotations

from typing import Any

import pytest

from oarlock.chaos.judge.evidence.evidence import Claimed, Dirty
from oarlock.chaos.judge.evidence.sightings import NODE_QUEUE, NodeSeen, TaintSeen
from tests.chaos.daemon_story import TASK, DaemonStory
from tests.chaos.story import DRAIN_S, kinds

SURGING = {"limit": "0", "surge": "1"}


def rolled(story: DaemonStory, *nodes: str) -> DaemonStory:
    """Each of these nodes in its turn: the old pod goes, a new one comes and runs."""
    for node in nodes:
        old = next(name for name, pod in story.pods.items() if pod.target == node)
        story.takes(old).covers(node)
    return story


# -- all is well


def test_a_rolling_update_one_node_at_a_time() -> None:
    story = DaemonStory().covers().roll()
    findings = rolled(story, "n1", "n2", "n3", "n4").check()
    assert kinds(findings) == []
    had = findings.opportunities
    assert (had["rolling_deletes"], had["most_nodes_down"], had["rollouts"]) == (4, 1, 1)
    assert findings.by_kind["daemonset"]["creates"] == 8
    assert findings.by_kind["daemonset"]["deletes"] == 4
    assert findings.by_kind["daemonset"]["rests"] >= 2
    assert findings.by_kind[NODE_QUEUE]["changes_followed"] == 4


def test_as_many_nodes_as_may_be_down() -> None:
    story = DaemonStory(spec={"limit": "50%"}).covers().roll()
    story.takes("web-n1", "web-n2").covers("n1", "n2").takes("web-n3", "web-n4").covers("n3", "n4")
    findings = story.check()
    assert kinds(findings) == []
    assert findings.opportunities["most_nodes_down"] == 2


def test_old_pods_that_are_not_available_go_at_once() -> None:
    story = DaemonStory().covers().roll()
    story.becomes("web-n1", ready=False).becomes("web-n2", ready=False)
    assert (
        kinds(
            story.takes("web-n1", "web-n2")
            .covers("n1", "n2")
            .takes("web-n3")
            .covers("n3")
            .takes("web-n4")
            .covers("n4")
            .check()
        )
        == []
    )


def test_nodes_down_by_others_are_not_counted() -> None:
    story = DaemonStory().covers().roll().claim().record(("delete", "web-n1"))
    story.becomes("web-n2", deleting=True).goes("web-n2").becomes("web-n3", phase="Failed", ready=False)
    story.deletes("web-n1", graceful=False).finish(("delete", "web-n1")).takes("web-n3").covers("n1", "n2", "n3")
    assert kinds(rolled(story, "n4").check()) == []


def test_a_node_that_was_tainted_meanwhile_is_none_of_ours() -> None:
    story = DaemonStory().covers().roll().claim().record(("delete", "web-n1"))
    story.node("n1", taint="NoSchedule").deletes("web-n1", graceful=False).finish(("delete", "web-n1"))
    story.takes("web-n2").node("n1").covers("n1", "n2")
    assert kinds(rolled(story, "n3", "n4").check()) == []


def test_a_node_that_goes_is_counted_no_more() -> None:
    story = DaemonStory().covers().roll().takes("web-n1").node("n1", gone=True)
    assert kinds(rolled(story, "n2", "n3", "n4").check()) == []


def test_a_larger_limit_that_the_decision_had_read() -> None:
    story = DaemonStory(spec={"limit": "2"}).covers().roll().claim().record(("delete", "web-n1"), ("delete", "web-n2"))
    story.change(limit="1").deletes("web-n1", graceful=False).deletes("web-n2", graceful=False)
    story.finish(("delete", "web-n1"), ("delete", "web-n2")).covers("n1", "n2")
    assert kinds(rolled(story, "n3", "n4").check()) == []


def surged(story: DaemonStory, *nodes: str) -> DaemonStory:
    for node in nodes:
        story.claim().record(("create", f"web-{node}-new")).creates(f"web-{node}-new")
        story.finish(("create", f"web-{node}-new")).runs(f"web-{node}-new").takes(f"web-{node}")
    return story


def test_a_surging_update() -> None:
    story = DaemonStory(spec=SURGING).covers().roll()
    findings = surged(story, "n1", "n2", "n3", "n4").turn().check()
    assert kinds(findings) == []
    assert findings.opportunities["pods_beside_another"] == 4
    assert findings.opportunities["rolling_deletes"] == 0


def test_a_new_pod_that_others_take_just_before_the_old_one_goes() -> None:
    story = DaemonStory(spec=SURGING).covers().roll()
    story.claim().record(("create", "web-n1-new")).creates("web-n1-new").finish(("create", "web-n1-new"))
    story.runs("web-n1-new").claim().record(("delete", "web-n1"))
    story.becomes("web-n1-new", deleting=True).deletes("web-n1", graceful=False).finish(("delete", "web-n1"))
    story.goes("web-n1-new").covers("n1")
    assert kinds(surged(story, "n2", "n3", "n4").turn().check()) == []


def test_a_node_without_its_pod_after_a_taint_is_right() -> None:
    story = DaemonStory().covers().node("n1", taint="NoExecute").takes("web-n1").turn()
    assert kinds(story.wait(40.0).check(faults_ended_s=story.at_s - 35.0)) == []


def test_a_pod_on_a_node_that_takes_no_new_ones_may_stay() -> None:
    story = DaemonStory().covers().node("n1", taint="NoSchedule").turn()
    assert kinds(story.wait(40.0).check(faults_ended_s=story.at_s - 35.0)) == []


@pytest.mark.parametrize(
    ("limit", "found"),
    [
        pytest.param("25%", [], id="a share of no nodes is none"),
        pytest.param("1", ["stuck_key"], id="one may go"),
    ],
)
def test_old_pods_on_nodes_of_which_none_takes_new_ones(limit: str, found: list[str]) -> None:
    story = DaemonStory(spec={"limit": limit}).covers()
    for name in story.names:
        story.node(name, taint="NoSchedule")
    story.roll().turn()
    assert kinds(story.wait(40.0).check(faults_ended_s=story.at_s - 35.0)) == found


def test_a_pod_that_was_made_just_before_its_node_took_no_more_may_wait() -> None:
    story = DaemonStory().covers("n1", "n2", "n3").claim().record(("create", "web-n4")).creates("web-n4")
    story.finish(("create", "web-n4")).node("n4", taint="NoSchedule").turn()
    assert kinds(story.wait(40.0).check(faults_ended_s=story.at_s - 35.0)) == []
    story = DaemonStory().covers("n1", "n2", "n3").claim().record(("create", "web-n4")).creates("web-n4")
    story.finish(("create", "web-n4")).turn()
    assert kinds(story.wait(40.0).check(faults_ended_s=story.at_s - 35.0)) == ["stuck_key"]


@pytest.mark.parametrize(
    ("limit", "found"),
    [
        pytest.param("1", [], id="it is the one that may be unavailable"),
        pytest.param("2", ["stuck_key"], id="another may go"),
    ],
)
def test_old_pods_beside_one_that_waits_for_a_node_that_took_no_more(limit: str, found: list[str]) -> None:
    story = DaemonStory(spec={"limit": limit}).covers("n1", "n2", "n3").roll().claim().record(("create", "web-n4"))
    story.creates("web-n4").finish(("create", "web-n4")).node("n4", taint="NoSchedule").turn()
    assert kinds(story.wait(40.0).check(faults_ended_s=story.at_s - 35.0)) == found


def made_while_its_node_took_no_more(story: DaemonStory, **old: Any) -> list[str]:
    """The successor of n4's pod was on its way when n4 was tainted; the other nodes' pods are new."""
    story.roll()
    surged(story, "n1", "n2", "n3").claim().record(("create", "web-n4-new")).creates("web-n4-new")
    story.finish(("create", "web-n4-new")).node("n4", taint="NoSchedule").becomes("web-n4", **old).turn()
    return kinds(story.wait(40.0).check(faults_ended_s=story.at_s - 35.0))


def test_a_surging_sets_pod_stays_beside_a_successor_that_its_node_does_not_take() -> None:
    assert made_while_its_node_took_no_more(DaemonStory(spec=SURGING).covers()) == []
    assert made_while_its_node_took_no_more(DaemonStory(spec=SURGING).covers(), ready=False) == ["stuck_key"]


def test_a_killed_worker_and_its_successor_make_the_same_pod() -> None:
    story = DaemonStory(names=("n1",)).claim("w-1").record(("create", "web-n1")).creates("web-n1").dies().release()
    story.claim("w-2").exists_already("web-n1").finish(("create", "web-n1"), state="queued").runs().turn()
    findings = story.check()
    assert kinds(findings) == []
    assert findings.opportunities["daemon_already_exists"] == 1


# -- D1


def test_a_second_pod_on_a_node() -> None:
    story = DaemonStory().covers().claim().record(("create", "web-n2-x")).creates("web-n2-x")
    findings = story.finish(("create", "web-n2-x")).runs("web-n2-x").takes("web-n2-x").turn().check()
    assert kinds(findings) == ["duplicate_daemon"]
    (violation,) = findings.violations
    assert violation.task == TASK
    assert "made 2 pods on n2: beside it there is web-n2" in violation.text


def test_a_second_pod_beside_one_that_failed_or_is_not_bound_yet() -> None:
    for state in ({"phase": "Failed"}, {"phase": "Pending", "node": ""}):
        story = DaemonStory().covers().becomes("web-n2", ready=False, **state)
        story.claim().record(("create", "web-n2-x")).creates("web-n2-x").finish(("create", "web-n2-x"))
        assert "duplicate_daemon" in kinds(story.check()), state


def test_a_pod_beside_one_that_is_ending_is_no_second_one() -> None:
    story = DaemonStory().covers().becomes("web-n2", deleting=True)
    story.claim().record(("create", "web-n2-x")).creates("web-n2-x").finish(("create", "web-n2-x"))
    assert kinds(story.goes("web-n2").runs("web-n2-x").turn().check()) == []


def test_a_third_pod_while_it_surges() -> None:
    story = DaemonStory(spec=SURGING).covers().roll()
    story.claim().record(("create", "web-n1-a"), ("create", "web-n1-b")).creates("web-n1-a").creates("web-n1-b")
    story.finish(("create", "web-n1-a"), ("create", "web-n1-b"))
    findings = story.check()
    assert "duplicate_daemon" in kinds(findings)
    assert "made 3 pods" in next(each.text for each in findings.violations if each.kind == "duplicate_daemon")


def test_a_second_pod_long_after_it_surged() -> None:
    story = DaemonStory(spec=SURGING).covers().change(limit="1", surge="0").turn()
    story.claim().record(("create", "web-n1-a")).creates("web-n1-a").finish(("create", "web-n1-a"))
    assert "duplicate_daemon" not in kinds(story.check())
    story = DaemonStory(spec=SURGING).covers().change(limit="1", surge="0").turn().wait(2 * DRAIN_S + 1)
    story.claim().record(("create", "web-n1-a")).creates("web-n1-a").finish(("create", "web-n1-a"))
    assert "duplicate_daemon" in kinds(story.check())


def test_a_second_pod_of_a_second_fleet() -> None:
    story = DaemonStory().covers()
    story.facts = {"second_from_s": story.at_s, "second_to_s": story.at_s + 5}
    pod = story.appears("web-n2-x")
    story.asks("create", "web-n2-x", 201, committed=True, rv=pod.rv, uid=pod.uid, ours=False, second=True)
    findings = story.check()
    assert "duplicate_daemon" in kinds(findings)
    assert "unannounced_write" not in kinds(findings)
    assert findings.opportunities["second_fleet_creates"] == 1


# -- D2


def test_one_node_too_many_at_once() -> None:
    story = DaemonStory().covers().roll().takes("web-n1", "web-n2").covers("n1", "n2")
    findings = rolled(story, "n3", "n4").check()
    assert kinds(findings) == ["node_down"]
    (violation,) = findings.violations
    assert violation.task == TASK
    assert "took n2 down: 2 nodes are down through our own deletes (n1, n2), and 1 may be" in violation.text


def test_the_next_node_while_the_replacement_is_not_ready() -> None:
    story = DaemonStory().covers().roll().takes("web-n1")
    story.claim().record(("create", "web-n1")).creates("web-n1").finish(("create", "web-n1")).takes("web-n2")
    story.runs("web-n1").covers("n2")
    assert kinds(rolled(story, "n3", "n4").check()) == ["node_down"]


def test_a_replacement_that_others_killed_does_not_hide_it() -> None:
    story = DaemonStory().covers().roll().takes("web-n1")
    story.claim().record(("create", "web-n1")).creates("web-n1").finish(("create", "web-n1"))
    story.becomes("web-n1", deleting=True).goes("web-n1").takes("web-n2").covers("n1", "n2")
    assert kinds(rolled(story, "n3", "n4").check()) == ["node_down"]


def test_a_node_that_was_up_in_between_counts_no_more() -> None:
    story = DaemonStory().covers().roll().takes("web-n1").covers("n1")
    story.becomes("web-n1", deleting=True).goes("web-n1").takes("web-n2").covers("n1", "n2")
    assert kinds(rolled(story, "n3", "n4").check()) == []


def test_a_second_victim_of_a_forgotten_delete() -> None:
    """The first delete is forgotten while it is under way, and another node is chosen."""
    story = DaemonStory().covers().roll().claim("w-1").record(("delete", "web-n1"))
    sent_s = story.at_s
    story.dies().release().claim("w-2").finish(("delete", "web-n1"), state="queued")
    story.takes("web-n2").deletes("web-n1", graceful=False, received_s=sent_s).covers("n1", "n2")
    assert kinds(rolled(story, "n3", "n4").check()) == ["node_down"]


def test_a_set_that_surges_takes_no_node_down() -> None:
    story = DaemonStory(spec=SURGING).covers().roll().takes("web-n1").covers("n1")
    assert kinds(surged(story, "n2", "n3", "n4").turn().check()) == ["node_down"]


def test_the_old_pod_goes_before_the_new_one_is_ready() -> None:
    story = DaemonStory(spec=SURGING).covers().roll()
    story.claim().record(("create", "web-n1-new")).creates("web-n1-new").finish(("create", "web-n1-new"))
    story.takes("web-n1").runs("web-n1-new")
    assert kinds(surged(story, "n2", "n3", "n4").turn().check()) == ["node_down"]


def test_a_set_on_delete_is_left_alone() -> None:
    story = DaemonStory(spec={"strategy": "OnDelete", "limit": ""}).covers().roll().turn()
    assert kinds(story.check()) == []
    assert kinds(story.takes("web-n1").covers("n1").check()) == ["node_down"]


def test_an_old_larger_limit_excuses_nothing() -> None:
    story = DaemonStory(spec={"limit": "2"}).covers().roll().change(limit="1")
    story.takes("web-n1", "web-n2").covers("n1", "n2")
    assert kinds(rolled(story, "n3", "n4").check()) == ["node_down"]


def test_a_pod_that_is_ready_for_too_short_keeps_its_node_down() -> None:
    spec = {"limit": "1", "min_ready_s": 10}
    story = DaemonStory(spec=spec).covers().wait(20.0).roll().takes("web-n1").covers("n1").wait(5.0)
    story.takes("web-n2").covers("n2").wait(20.0)
    found = kinds(story.takes("web-n3").covers("n3").wait(20.0).takes("web-n4").covers("n4").wait(20.0).turn().check())
    assert found == ["node_down"]


def test_nothing_is_judged_beside_a_second_fleet_but_the_count_of_pods() -> None:
    story = DaemonStory().covers().roll()
    story.facts = {"second_from_s": story.at_s, "second_to_s": story.at_s + 0.5}
    story.takes("web-n1", "web-n2").covers("n1", "n2").wait(0.5 + DRAIN_S)
    assert kinds(rolled(story, "n3", "n4").check()) == []
    story = DaemonStory().covers().roll()
    story.facts = {"second_from_s": story.at_s, "second_to_s": story.at_s + 0.5}
    story.wait(1.0 + DRAIN_S).takes("web-n1", "web-n2").covers("n1", "n2")
    assert kinds(rolled(story, "n3", "n4").check()) == ["node_down"]


# -- at rest


@pytest.mark.parametrize("wrong", ["missing", "too many", "not ready", "version", "status", "generation", "revision"])
def test_a_daemon_set_that_never_comes_to_rest(wrong: str) -> None:
    story = DaemonStory().covers()
    match wrong:
        case "missing":
            story.becomes("web-n1", deleting=True).goes("web-n1").turn()
        case "too many":
            story.node("n1", taint="NoExecute").turn()
        case "not ready":
            story.becomes("web-n1", ready=False).turn()
        case "version":
            story.roll().turn()
        case "status":
            story.daemon_set(updated=3).turn().daemon_set(updated=3)
        case "generation":
            story.change().claim().finish()
        case "revision":
            story.change(digest="of no revision").turn()
    findings = story.wait(40.0).check(faults_ended_s=story.at_s - 35.0)
    assert kinds(findings) == ["stuck_key"]


def test_pods_left_of_a_daemon_set_that_is_gone() -> None:
    assert kinds(DaemonStory().covers().daemon_set(gone=True).check()) == ["stuck_key"]


def test_a_status_that_goes_back() -> None:
    story = DaemonStory().covers().change().turn().daemon_set(observed=1).turn()
    assert kinds(story.check()) == ["status_backwards"]


# -- keys


def test_a_change_of_a_node_that_nobody_read() -> None:
    story = DaemonStory().covers().node("n1", labels=(("a", "b"),))
    story.trace = [step for step in story.trace if getattr(step, "task", "") != f"{NODE_QUEUE}:n1"]
    findings = story.check()
    assert kinds(findings) == ["lost_key"]
    assert findings.violations[0].task == f"{NODE_QUEUE}:n1"


def test_what_was_there_before_the_recorders_is_no_change() -> None:
    story = DaemonStory().covers()
    story.history.append(NodeSeen(99, 990.0, False, "n0", "uid-n0", taints=(TaintSeen("k", "NoExecute"),)))
    assert kinds(story.check()) == []
    story.history[-1] = story.history[-1]._replace(rv=story.rv + 1, at_s=story.at_s)
    assert kinds(story.check()) == ["lost_key"]


def test_a_node_that_changed_while_its_key_was_worked_on() -> None:
    story = DaemonStory().covers()
    story.trace.insert(-1, Dirty(story.at_s, 1, TASK))
    assert kinds(story.check()) == ["lost_key"]


def test_a_pod_and_a_spec_that_nobody_read() -> None:
    story = DaemonStory().covers().becomes("web-n1", labels="x=y").change()
    text = " ".join(each.text for each in story.check().violations if each.kind == "lost_key")
    assert "pod web-n1 changed" in text
    assert "generation 2" in text


def test_two_holders_of_a_node_key() -> None:
    story = DaemonStory().covers()
    for holder in ("w-1", "w-2"):
        story.step(Claimed(story.at_s, 1, f"{NODE_QUEUE}:n1", holder, f"n-{holder}"))
    assert "overlap" in kinds(story.check())
