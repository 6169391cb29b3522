"""Deployments rolled from revision to revision and back, paused, stuck and scaled on the way, with kubectl.

Numbers in names: upstream: test/integration/deployment/deployment_test.go (23_7) and test/e2e/apps/deployment.go
(23_8), in the order in which they are counted there. How many pods there were is read from a watch, without a gap.
"""

from __future__ import annotations

import json
import random
import time

import pytest

from tests.cluster.acceptance.deployments import (
    DESIRED,
    TEMPLATE_HASH,
    condition,
    counts,
    deployment,
    extremes,
    images,
    replicasets,
    revision,
    rolled_out,
    rolling,
    sizes,
    states,
    status,
)
from tests.cluster.acceptance.following import following
from tests.e2e.e2e_kubectl import NEVER_READY, QUICKLY, Kubectl, Obj, template, until

pytestmark = [pytest.mark.kubectl, pytest.mark.timeout(400)]

ROLLBACK = "deprecated.deployment.rollback.to"
SLEEPY = template("web", "nginx:broken", annotations=NEVER_READY)


def patch(kubectl: Kubectl, body: Obj) -> str:
    return kubectl.run("patch", "deploy", "web", "--type=merge", "-p", json.dumps(body))


def set_image(kubectl: Kubectl, image: str) -> None:
    kubectl.run("set", "image", "deploy/web", f"c={image}")


def one_goes(kubectl: Kubectl, pod: Obj) -> bool:
    """Delete this pod; False where it is gone already."""
    return "deleted" in kubectl.run("delete", "pod", pod["metadata"]["name"], "--wait=false", "--ignore-not-found")


def revisions(kubectl: Kubectl) -> list[int]:
    return [revision(each) for each in replicasets(kubectl)]


def test_23_7_2_to_another_revision_back_and_over_in_the_middle(kubectl: Kubectl) -> None:
    """Five revisions of two templates and more; 12 pods, a quarter more and a quarter fewer at most."""
    kubectl.apply(deployment(replicas=12, minReadySeconds=1, **rolling("25%", "25%")))
    rolled_out(kubectl, 12)
    with following(kubectl) as followed:
        set_image(kubectl, "nginx:2")
        assert images(rolled_out(kubectl, 12)) == {"nginx:2"}
        assert "rolled back" in kubectl.run("rollout", "undo", "deploy/web")
        assert images(rolled_out(kubectl, 12)) == {"nginx:1"}
        assert revisions(kubectl) == [2, 3], "the first template is the newest revision, in its old ReplicaSet"
        set_image(kubectl, "nginx:3")
        until(lambda: (counts(kubectl) or [0, 0])[1] > 0, 20, "the first pods of it")
        set_image(kubectl, "nginx:4")
        assert images(rolled_out(kubectl, 12)) == {"nginx:4"}
        most, fewest = extremes(followed)
    assert most <= 12 + 3
    assert fewest >= 12 - 3
    assert (revisions(kubectl), sizes(kubectl)) == ([2, 3, 4, 5], [0, 0, 0, 12])
    assert revision(kubectl.json("get", "deploy", "web")) == 5


def test_never_fewer_than_asked_for(kubectl: Kubectl) -> None:
    kubectl.apply(deployment(replicas=4, **rolling(1, 0)))
    rolled_out(kubectl, 4)
    with following(kubectl) as followed:
        kubectl.run("rollout", "restart", "deploy/web")
        rolled_out(kubectl, 4)
        assert extremes(followed) == (5, 4)


def test_23_8_3_recreate_never_has_old_and_new_pods_at_once(kubectl: Kubectl) -> None:
    kubectl.apply(deployment(replicas=3, strategy={"type": "Recreate"}))
    rolled_out(kubectl, 3)
    with following(kubectl) as followed:
        set_image(kubectl, "nginx:2")
        assert images(rolled_out(kubectl, 3)) == {"nginx:2"}
        followed.catch_up()
        there = {pod["metadata"]["uid"]: pod for pod in followed.before}
        for moment in followed.moments:  # whatever is not gone runs, also what is on its way out
            there[moment.pod["metadata"]["uid"]] = moment.pod
            if moment.gone:
                del there[moment.pod["metadata"]["uid"]]
            assert len({pod["metadata"]["labels"][TEMPLATE_HASH] for pod in there.values()}) <= 1


def test_23_7_11_recreate_and_other_sizes(kubectl: Kubectl) -> None:
    kubectl.apply(deployment(replicas=2, strategy={"type": "Recreate"}))
    for count in (2, 0, 1):
        kubectl.run("scale", "deploy", "web", f"--replicas={count}")
        rolled_out(kubectl, count)
    patch(kubectl, {"spec": {"revisionHistoryLimit": 3}})
    until(lambda: status(kubectl), 15, "the generation is observed")
    assert revisions(kubectl) == [1]


def test_23_7_4_23_7_5_paused(kubectl: Kubectl) -> None:
    kubectl.apply(deployment(replicas=2, paused=True))
    until(lambda: condition(kubectl, "Progressing") == ("Unknown", "DeploymentPaused"), 15, "it is paused")
    assert replicasets(kubectl) == []
    kubectl.run("rollout", "resume", "deploy/web")
    rolled_out(kubectl, 2)
    kubectl.run("rollout", "pause", "deploy/web")
    set_image(kubectl, "nginx:2")
    until(lambda: counts(kubectl) == [2, 0, 2, 2], 15, "the other template is observed")
    kubectl.run("scale", "deploy", "web", "--replicas=5")
    until(lambda: counts(kubectl) == [5, 0, 5, 5], 30, "what is there is scaled all the same")
    assert (revisions(kubectl), sizes(kubectl)) == ([1], [5])
    assert "can't restart paused deployment" in kubectl.run("rollout", "restart", "deploy/web", code=1)
    kubectl.run("rollout", "resume", "deploy/web")
    assert images(rolled_out(kubectl, 5)) == {"nginx:2"}
    assert sizes(kubectl) == [0, 5]


def test_23_7_8_the_deadline_passes_and_a_good_template_completes_it(kubectl: Kubectl) -> None:
    kubectl.apply(deployment(replicas=2, progressDeadlineSeconds=3, **rolling(1, 0)))
    rolled_out(kubectl, 2)
    kubectl.run("patch", "deploy", "web", "-p", json.dumps({"spec": {"template": SLEEPY}}))
    late = ("False", "ProgressDeadlineExceeded")

    def stopped() -> bool:
        """Its pod may come after the deadline, which is progress."""
        return condition(kubectl, "Progressing") == late and counts(kubectl) == [3, 1, 2, 2]

    until(stopped, 30, "the deadline is exceeded, it has stopped, and serves on")
    assert "exceeded its progress deadline" in kubectl.run("rollout", "status", "deploy/web", code=1)
    assert (counts(kubectl), sizes(kubectl)) == ([3, 1, 2, 2], [2, 1])
    assert "rolled back" in kubectl.run("rollout", "undo", "deploy/web")
    assert images(rolled_out(kubectl, 2)) == {"nginx:1"}
    until(lambda: condition(kubectl, "Progressing") == ("True", "NewReplicaSetAvailable"), 15, "it is complete")


def test_23_8_8_scaled_in_the_middle_each_gets_its_share(kubectl: Kubectl) -> None:
    kubectl.apply(deployment(replicas=10, **rolling(3, 2)))
    rolled_out(kubectl, 10)
    kubectl.run("patch", "deploy", "web", "-p", json.dumps({"spec": {"template": SLEEPY}}))
    until(lambda: sizes(kubectl) == [8, 5] and counts(kubectl) == [13, 5, 8, 8], 40, "8 old ones and 5 new ones")
    kubectl.run("scale", "deploy", "web", "--replicas=30")
    until(lambda: sizes(kubectl) == [20, 13], 40, "20 and 13")
    assert {each["metadata"]["annotations"][DESIRED] for each in replicasets(kubectl)} == {"30"}
    kubectl.run("scale", "deploy", "web", "--replicas=5")
    until(lambda: sum(sizes(kubectl)) <= 8, 40, "5, and 3 more while it rolls")


def test_23_8_5_over_in_the_middle_of_a_first_rollout(kubectl: Kubectl) -> None:
    kubectl.apply(deployment(replicas=1, minReadySeconds=2, **rolling(1, 0)))
    rolled_out(kubectl, 1)
    set_image(kubectl, "nginx:2")
    until(lambda: sizes(kubectl) == [1, 1], 20, "one of each")
    set_image(kubectl, "nginx:3")
    assert images(rolled_out(kubectl, 1)) == {"nginx:3"}
    assert (revisions(kubectl), sizes(kubectl)) == ([1, 2, 3], [0, 0, 1])


@pytest.mark.parametrize("limit", [0, 1])
def test_23_8_4_old_ones_are_cleaned_up(kubectl: Kubectl, limit: int) -> None:
    kubectl.apply(deployment(replicas=1, revisionHistoryLimit=limit))
    for number in (1, 2, 3):
        set_image(kubectl, f"nginx:{number}")
        rolled_out(kubectl, 1)
    until(lambda: revisions(kubectl) == [3 - limit, 3][1 - limit :], 20, f"{limit} of the old ones")
    code = 1 if limit == 0 else 0
    assert ("no rollout history found" if code else "rolled back") in kubectl.run(
        "rollout", "undo", "deploy/web", code=code
    )


def test_status_history_and_undo(kubectl: Kubectl) -> None:
    made = deployment(replicas=2)
    for number in (1, 2, 3):
        made["metadata"]["annotations"] = {"kubernetes.io/change-cause": f"cause {number}"}
        made["spec"]["template"] = template("web", f"nginx:{number}", annotations=QUICKLY)
        kubectl.apply(made)
        assert "successfully rolled out" in kubectl.run("rollout", "status", "deploy/web", "--timeout=60s")
    shown = [line.split(maxsplit=1) for line in kubectl.run("rollout", "history", "deploy/web").splitlines() if line]
    assert shown[1:] == [["REVISION", "CHANGE-CAUSE"], *([f"{number}", f"cause {number}"] for number in (1, 2, 3))]
    assert "nginx:2" in kubectl.run("rollout", "history", "deploy/web", "--revision=2")
    kubectl.run("rollout", "undo", "deploy/web", "--to-revision=1")
    assert images(rolled_out(kubectl, 2)) == {"nginx:1"}
    assert revisions(kubectl) == [2, 3, 4]
    history = kubectl.run("rollout", "history", "deploy/web")
    assert [line.split(maxsplit=1) for line in history.splitlines() if line][-1] == ["4", "cause 1"]
    assert "unable to find specified revision 1" in kubectl.run(
        "rollout", "undo", "deploy/web", "--to-revision=1", code=1
    )


def test_23_7_7_asked_by_annotation_to_roll_back(kubectl: Kubectl) -> None:
    """As the extensions API asked: the controller puts the template back, and takes the annotation away."""
    kubectl.apply(deployment(replicas=1))
    rolled_out(kubectl, 1)
    set_image(kubectl, "nginx:2")
    rolled_out(kubectl, 1)
    patch(kubectl, {"metadata": {"annotations": {ROLLBACK: "1"}}})
    until(lambda: ROLLBACK not in kubectl.json("get", "deploy", "web")["metadata"]["annotations"], 15, "it is read")
    assert images(rolled_out(kubectl, 1)) == {"nginx:1"}
    assert revisions(kubectl) == [2, 3]
    patch(kubectl, {"metadata": {"annotations": {ROLLBACK: "7"}}})
    until(lambda: ROLLBACK not in kubectl.json("get", "deploy", "web")["metadata"]["annotations"], 15, "it is read")
    until(lambda: "DeploymentRollbackRevisionNotFound" in kubectl.run("get", "events"), 15, "there is no such one")
    assert revisions(kubectl) == [2, 3]


def test_23_8_6_random_operations_and_it_completes(kubectl: Kubectl) -> None:
    """Another template, back, another size, paused, resumed, a pod deleted: 20 of them, one right after the other."""
    dice = random.Random(20)
    kubectl.apply(deployment(replicas=5, revisionHistoryLimit=2, progressDeadlineSeconds=300, **rolling(2, 1)))
    template_number, size, paused = 1, 5, False
    for _ in range(20):
        what = dice.choice(("image", "annotation", "size", "pause", "pod"))
        if what == "image":
            template_number += 1
            set_image(kubectl, f"nginx:{template_number}")
        elif what == "annotation":
            patch(kubectl, {"metadata": {"annotations": {ROLLBACK: "0"}}})
        elif what == "size":
            size = dice.randint(3, 8)
            kubectl.run("scale", "deploy", "web", f"--replicas={size}")
        elif what == "pause":
            kubectl.run("rollout", "resume" if paused else "pause", "deploy/web")
            paused = not paused
        else:
            kubectl.run("delete", "pod", "-l", "app=web", "--wait=false", "--field-selector=spec.nodeName=node-1")
        time.sleep(dice.random())
    if paused:
        kubectl.run("rollout", "resume", "deploy/web")
    until(lambda: ROLLBACK not in kubectl.json("get", "deploy", "web")["metadata"]["annotations"], 30, "it is read")
    rolled_out(kubectl, size, limit_s=60)
    until(lambda: condition(kubectl, "Progressing") == ("True", "NewReplicaSetAvailable"), 15, "it is complete")
    until(lambda: len(replicasets(kubectl)) <= 3, 20, "two old ones are kept")
    templates = [json.dumps(each["spec"]["template"]["spec"], sort_keys=True) for each in replicasets(kubectl)]
    assert len(set(templates)) == len(templates), "one ReplicaSet a template"


def test_pods_that_go_while_it_rolls_come_back(kubectl: Kubectl) -> None:
    """The ReplicaSets see to that; the limits hold for what the rollout takes away."""
    kubectl.apply(deployment(replicas=6, minReadySeconds=1, **rolling(2, 1)))
    before = rolled_out(kubectl, 6)
    with following(kubectl) as followed:
        set_image(kubectl, "nginx:2")
        assert any(one_goes(kubectl, pod) for pod in before), (
            "the rollout may be faster with one of them, not with all six"
        )
        assert images(rolled_out(kubectl, 6)) == {"nginx:2"}
        followed.catch_up()
        assert max(map(len, states(followed))) <= 8
