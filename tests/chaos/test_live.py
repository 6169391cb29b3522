"""The cluster as the journal shows it: when all has come to rest, and what the load may choose from."""

from __future__ import annotations

import pytest

from oarlock.chaos.load.live import Live
from tests.chaos.daemon_story import TASK, DaemonStory
from tests.chaos.rollout_story import TASK as ROLLOUT_TASK
from tests.chaos.rollout_story import RolloutStory
from tests.chaos.story import Story


def live(story: Story) -> Live:
    seen = Live()
    for each in sorted(story.history, key=lambda each: each.rv):
        seen.take(each)
    return seen


def test_all_is_at_rest() -> None:
    assert live(DaemonStory().covers()).unsettled() == []
    assert live(Story(2).fill("web-a", "web-b")).unsettled() == []
    assert live(RolloutStory().begins()).unsettled() == []


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ("missing", "0 pods on n1, where one belongs"),
        ("misplaced", "1 pods on n1, where none belongs"),
        ("no node", "a pod on n1, of which nothing is known"),
        ("old", "pod web-n1 is of version 0, not 1"),
        ("failed", "pod web-n1 on n1 is not ready"),
        ("unobserved", "status is of generation 1, not 2"),
        ("ready", "status says numberReady 3, and it is 4"),
        ("no revision", "0 revisions hold its template"),
    ],
)
def test_a_daemon_set_that_is_not(wrong: str, why: str) -> None:
    story = DaemonStory().covers()
    match wrong:
        case "missing":
            story.goes("web-n1")
        case "misplaced":
            story.node("n1", taint="NoExecute")
        case "no node":
            story.node("n1", gone=True)
        case "old":
            story.roll().status()
        case "failed":
            story.becomes("web-n1", phase="Failed", ready=False)
        case "unobserved":
            story.change()
        case "ready":
            story.daemon_set(ready=3)
        case "no revision":
            story.daemon_set(digest="another")
    assert live(story).unsettled() == [f"{TASK}: {why}"]


def test_a_deployment_that_is_not() -> None:
    seen = live(RolloutStory().begins().with_set("1").size("1", 1).looks())
    assert seen.unsettled()[-1] == f"{ROLLOUT_TASK}: its ReplicaSet asks for 1 pods, not 4"
    assert [each.task for each in seen.replicasets_of("deployment-uid")] == [
        "replicaset:shop/web-0",
        "replicaset:shop/web-1",
    ]


def test_pods_of_a_daemon_set_that_is_gone_have_no_owner() -> None:
    seen = live(DaemonStory(names=("n1",)).covers().daemon_set(gone=True))
    assert seen.daemon_sets == {}
    assert seen.unsettled() == [f"{TASK}: web-n1 has no owner any more"]


def test_a_namesake_made_after_it_is_not_taken_for_the_one_that_went() -> None:
    story = DaemonStory(names=("n1",))
    old = story.daemons
    story.daemon_set(uid="another")
    seen = live(story)
    seen.take(old._replace(gone=True))
    assert seen.daemon_sets[TASK].uid == "another"
