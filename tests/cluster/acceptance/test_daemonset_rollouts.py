"""DaemonSets rolled from revision to revision and back, with kubectl.

Numbers in names: upstream: test/integration/daemonset/daemonset_test.go (26_4) and test/e2e/apps/daemon_set.go,
controller_revision.go (26_5).
"""

from __future__ import annotations

import itertools
import json
import subprocess
from collections import Counter
from collections.abc import Callable

import pytest

from tests.cluster.acceptance.stages import Stage, need_surge
from tests.e2e.e2e_kubectl import (
    HASH,
    NEVER_READY,
    NODES,
    WAIT_S,
    Kubectl,
    Obj,
    daemonset,
    hashes,
    node_of,
    rolling,
    uids,
    until,
)
from tests.e2e.e2e_states import on_own, pods_of, revisions, settled, status

pytestmark = [pytest.mark.kubectl]

FAST = rolling(maxUnavailable="100%")


def numbers(kubectl: Kubectl) -> list[int]:
    return [int(each["revision"]) for each in revisions(kubectl)]


def images(pods: list[Obj]) -> set[str]:
    return {pod["spec"]["containers"][0]["image"] for pod in pods}


def is_ready(pod: Obj) -> bool:
    return any(each["type"] == "Ready" and each["status"] == "True" for each in pod["status"].get("conditions") or ())


def watching(kubectl: Kubectl, change: Callable[[], object], look: Callable[[list[Obj]], None]) -> list[Obj]:
    """Look at the pods again and again from a change of the template until it has reached all nodes."""
    change()

    def done() -> bool:
        look(kubectl.items("pods", "-l", "app=agent"))
        found = kubectl.json("get", "ds", "agent")
        said = found["status"]
        counts = [said.get(name, 0) for name in ("updatedNumberScheduled", "numberAvailable", "observedGeneration")]
        return counts == [NODES, NODES, found["metadata"]["generation"]]

    until(done, 40, "all nodes have an available pod of the new revision")
    return pods_of(kubectl)


def test_26_5_6_rolling_update_one_node_after_the_other(kubectl: Kubectl) -> None:
    kubectl.apply(daemonset(updateStrategy=rolling(maxUnavailable=1)))
    before = settled(kubectl, NODES)
    down: Counter[int] = Counter()

    def look(pods: list[Obj]) -> None:
        up = {node_of(pod) for pod in pods if is_ready(pod) and not pod["metadata"].get("deletionTimestamp")}
        down[NODES - len(up)] += 1

    after = watching(kubectl, lambda: kubectl.run("set", "image", "ds/agent", "c=nginx:2"), look)
    assert max(down) <= 1, down
    assert images(after) == {"nginx:2"}
    assert not set(uids(before).values()) & set(uids(after).values())
    assert numbers(kubectl) == [1, 2]
    assert hashes(after) == {revisions(kubectl)[1]["metadata"]["labels"][HASH]} != hashes(before)


def test_26_5_8_surge_never_leaves_a_node_without(kubectl: Kubectl, cluster: Stage) -> None:
    """The part without failures: one pod a node and version, no node without a ready one, two versions at most."""
    need_surge(cluster)
    kubectl.apply(daemonset(updateStrategy=rolling(maxSurge="20%", maxUnavailable=0)))
    settled(kubectl, NODES)
    seen: Counter[str] = Counter()

    def look(pods: list[Obj]) -> None:
        there = [pod for pod in pods if not pod["metadata"].get("deletionTimestamp")]
        places = Counter((node_of(pod), pod["metadata"]["labels"][HASH]) for pod in there)
        assert set(places.values()) == {1}
        assert len(hashes(there)) <= 2
        assert len({node_of(pod) for pod in there if is_ready(pod)}) == NODES
        seen["surging"] = max(seen["surging"], len(there) - NODES)

    after = watching(kubectl, lambda: kubectl.run("set", "image", "ds/agent", "c=nginx:2"), look)
    assert images(after) == {"nginx:2"}
    assert seen["surging"] <= 1, "20 % of four nodes"


def test_26_5_5_ondelete_leaves_pods_alone(kubectl: Kubectl) -> None:
    kubectl.apply(daemonset(updateStrategy={"type": "OnDelete"}))
    before = settled(kubectl, NODES)
    kubectl.run("set", "image", "ds/agent", "c=nginx:2")
    until(lambda: status(kubectl, "observedGeneration") == 2, 15, "the change was looked at")
    until(lambda: status(kubectl, "updatedNumberScheduled") == 0, 15, "no pod is of the new revision")
    first, second = revisions(kubectl)
    assert first["metadata"]["labels"][HASH] != second["metadata"]["labels"][HASH]
    assert uids(pods_of(kubectl)) == uids(before)
    assert hashes(before) == {first["metadata"]["labels"][HASH]}
    kubectl.run("delete", "pod", before[0]["metadata"]["name"])
    until(lambda: status(kubectl, "updatedNumberScheduled") == 1, 15, "what is deleted comes anew")
    until(lambda: images(pods_of(kubectl)) == {"nginx:1", "nginx:2"}, 10, "from the new template")
    kubectl.run("patch", "ds", "agent", "--type=merge", "-p", json.dumps({"spec": {"updateStrategy": FAST}}))
    assert images(settled(kubectl, NODES)) == {"nginx:2"}


def test_26_5_7_undo_in_the_middle_restarts_no_pod_of_the_old_revision(kubectl: Kubectl) -> None:
    kubectl.apply(daemonset(updateStrategy=rolling(maxUnavailable=1)))
    before = settled(kubectl, NODES)
    body = {"spec": {"template": {"metadata": {"annotations": NEVER_READY}}}}
    kubectl.run("patch", "ds", "agent", "-p", json.dumps(body))
    until(lambda: status(kubectl, "updatedNumberScheduled") == 1, 20, "one pod that does not become ready")
    told = "1 out of 4 new pods have been updated"  # of kubectl, if it comes to say anything in its second
    until(lambda: told in kubectl.run("rollout", "status", "ds/agent", "--timeout=1s", code=1), 15, "it is told")
    stuck = pods_of(kubectl)
    assert "rolled back" in kubectl.run("rollout", "undo", "ds/agent")
    after = settled(kubectl, NODES)
    kept = {node for node, uid in uids(before).items() if uids(stuck).get(node) == uid}
    assert len(kept) == NODES - 1
    assert {node: uids(after)[node] for node in kept} == {node: uids(before)[node] for node in kept}
    assert hashes(after) == hashes(before)
    assert numbers(kubectl) == [2, 3], "the first revision is the newest now"


def test_status_history_undo_and_restart(kubectl: Kubectl) -> None:
    kubectl.apply(daemonset(updateStrategy=FAST))
    settled(kubectl, NODES)
    for image in ("nginx:2", "nginx:3"):
        kubectl.run("set", "image", "ds/agent", f"c={image}")
        kubectl.run("annotate", "ds", "agent", f"kubernetes.io/change-cause=to {image}", "--overwrite")
        told = kubectl.run("rollout", "status", "ds/agent", "--timeout=120s")
        assert "successfully rolled out" in told
    lines = [line.split()[0] for line in kubectl.run("rollout", "history", "ds/agent").splitlines()[2:] if line]
    assert lines == ["1", "2", "3"]
    assert "nginx:2" in kubectl.run("rollout", "history", "ds/agent", "--revision=2")
    kubectl.run("rollout", "undo", "ds/agent", "--to-revision=1")
    assert images(settled(kubectl, NODES)) == {"nginx:1"}
    assert numbers(kubectl) == [2, 3, 4]
    assert "unable to find specified revision" in kubectl.run("rollout", "undo", "ds/agent", "--to-revision=1", code=1)
    before = pods_of(kubectl)
    kubectl.run("rollout", "undo", "ds/agent", "--to-revision=4")  # kubectl may say that it skips it, or change nothing
    assert (numbers(kubectl), uids(settled(kubectl, NODES))) == ([2, 3, 4], uids(before))
    kubectl.run("rollout", "undo", "ds/agent")
    assert images(settled(kubectl, NODES)) == {"nginx:3"}
    before = pods_of(kubectl)
    kubectl.run("rollout", "restart", "ds/agent")
    after = settled(kubectl, NODES)
    assert not set(uids(before).values()) & set(uids(after).values())
    assert images(after) == {"nginx:3"}


def test_rollout_status_follows(kubectl: Kubectl) -> None:
    """Pods become available slowly: the rollout lasts until kubectl has come to follow it."""
    kubectl.apply(daemonset(updateStrategy=rolling(maxUnavailable=2), minReadySeconds=3))
    settled(kubectl, NODES)
    kubectl.run("set", "image", "ds/agent", "c=nginx:2")
    done = subprocess.run(
        kubectl.command("rollout", "status", "ds/agent"),
        capture_output=True,
        text=True,
        env=kubectl.environment,
        timeout=WAIT_S,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == 'daemon set "agent" successfully rolled out'
    assert "Waiting for daemon set" in done.stdout
    assert images(settled(kubectl, NODES)) == {"nginx:2"}


def test_old_revisions_beyond_the_limit_go(kubectl: Kubectl) -> None:
    kubectl.apply(daemonset(updateStrategy=FAST, revisionHistoryLimit=1))
    settled(kubectl, NODES)
    for image in ("nginx:2", "nginx:3"):
        kubectl.run("set", "image", "ds/agent", f"c={image}")
        settled(kubectl, NODES)
    until(lambda: numbers(kubectl) == [2, 3], 15, "the oldest revision is pruned")


def test_26_4_7_a_foreign_revision_of_that_name(kubectl: Kubectl, node: str) -> None:
    kubectl.apply(daemonset(pod=on_own(kubectl)))
    (pod,) = settled(kubectl, 1)
    (first,) = revisions(kubectl)
    name = first["metadata"]["name"]
    kubectl.run("delete", "ds", "agent", "--cascade=foreground")
    foreign = {
        **{"apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": {"name": name}, "revision": 1},
        "data": {"spec": {"template": {"$patch": "replace", "spec": {"containers": []}}}},
    }
    kubectl.apply(foreign)
    kubectl.apply(daemonset(pod=on_own(kubectl)))
    (other,) = settled(kubectl, 1)
    assert status(kubectl, "collisionCount") == 1
    assert hashes([other]) != hashes([pod])
    assert kubectl.json("get", "controllerrevision", name)["data"] == foreign["data"]


def test_26_4_8_a_second_revision_of_the_same_data(kubectl: Kubectl) -> None:
    """It wakes nobody, as upstream; with the next event of something else one of the two goes."""
    kubectl.apply(daemonset())
    before = settled(kubectl, NODES)
    (first,) = revisions(kubectl)
    copied = first["metadata"]
    twin = {
        **{"apiVersion": "apps/v1", "kind": "ControllerRevision", "data": first["data"], "revision": 7},
        "metadata": {
            "name": "agent-by-hand",
            "labels": {**copied["labels"], HASH: "by-hand"},
            "ownerReferences": copied["ownerReferences"],
        },
    }
    kubectl.apply(twin)
    limits = itertools.count(9)

    def carried() -> bool:
        """Perhaps the controller has heard of the twin by now."""
        kubectl.run("patch", "ds", "agent", "-p", json.dumps({"spec": {"revisionHistoryLimit": next(limits)}}))
        return hashes(pods_of(kubectl)) == {"by-hand"}

    until(carried, 20, "pods carry the hash of the one that is kept")
    until(lambda: [each["metadata"]["name"] for each in revisions(kubectl)] == ["agent-by-hand"], 20, "one revision")
    assert uids(settled(kubectl, NODES)) == uids(before), "no pod was restarted for it"


def test_26_5_11_the_life_of_revisions(kubectl: Kubectl, node: str) -> None:
    kubectl.apply(daemonset(pod=on_own(kubectl), updateStrategy=FAST))
    settled(kubectl, 1)
    (first,) = kubectl.items("controllerrevisions", "-l", "app=agent")
    name = first["metadata"]["name"]
    kubectl.run("label", "controllerrevision", name, "patched=yes")
    assert kubectl.json("get", "controllerrevision", name)["metadata"]["labels"]["patched"] == "yes"
    kubectl.run("delete", "controllerrevision", name)
    until(lambda: len(revisions(kubectl)) == 1, 15, "the present template has a revision again")
    again = revisions(kubectl)[0]
    assert (again["metadata"]["name"], again["metadata"]["uid"] != first["metadata"]["uid"]) == (name, True)
    loose = {
        **{"apiVersion": "apps/v1", "kind": "ControllerRevision", "data": first["data"], "revision": 3},
        "metadata": {"name": "loose", "labels": {"mine": "yes"}},
    }
    kubectl.run("create", "-f", "-", stdin=json.dumps(loose))  # apply leaves out what is null: it would be other data
    kubectl.run("replace", "-f", "-", stdin=json.dumps({**loose, "revision": 4}))
    assert kubectl.json("get", "controllerrevision", "loose")["revision"] == 4
    kubectl.run("delete", "controllerrevisions", "-l", "mine=yes")
    assert [each["metadata"]["name"] for each in kubectl.items("controllerrevisions")] == [name]
    kubectl.run("set", "image", "ds/agent", "c=nginx:2")
    settled(kubectl, 1)
    kubectl.run("delete", "controllerrevisions", "--all")
    until(lambda: len(revisions(kubectl)) == 1, 15, "only what is in force comes back")


def test_deleted_with_orphans_and_taken_over_by_the_next(kubectl: Kubectl) -> None:
    kubectl.apply(daemonset())
    before = settled(kubectl, NODES)
    kubectl.run("delete", "ds", "agent", "--cascade=orphan")
    assert uids(pods_of(kubectl)) == uids(before)
    assert not any(pod["metadata"].get("ownerReferences") for pod in pods_of(kubectl))
    kubectl.apply(daemonset())
    assert uids(settled(kubectl, NODES)) == uids(before)
    assert numbers(kubectl) == [1], "its revision was taken over, too"


def test_marks_that_json_may_escape_survive_a_rollback(kubectl: Kubectl) -> None:
    """A server compares the data of a revision byte by byte, and writes &, < and > as escapes wherever it patches."""
    command = ["sh", "-c", "a && b < c > d \u2028 \u00e9"]
    kubectl.apply(daemonset(updateStrategy=FAST, pod={"containers": [{"name": "c", "image": "i", "command": command}]}))
    settled(kubectl, NODES)
    kubectl.run("set", "image", "ds/agent", "c=nginx:2")
    settled(kubectl, NODES)
    kubectl.run("rollout", "undo", "ds/agent")
    after = settled(kubectl, NODES)
    assert {pod["spec"]["containers"][0]["image"] for pod in after} == {"i"}
    assert all(pod["spec"]["containers"][0]["command"] == command for pod in after)
    until(lambda: numbers(kubectl) == [2, 3], 15, "the first revision is the newest now")
