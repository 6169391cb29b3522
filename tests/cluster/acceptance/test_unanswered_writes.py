"""Writes whose outcome nobody tells: 500 and nothing else, for one name or for all, sent or not. Owners go on with
everything else, make nothing twice and take nothing away that they want.

A middleman between fleet and server answers so; kubectl, which judges, asks the server itself.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator

import pytest

from tests.cluster.acceptance.following import Following, following
from tests.cluster.acceptance.middleman import SAID, Middleman, Rule
from tests.cluster.acceptance.replicas import RS, change_status, condition_of, pod_path, pods_of, ready, status, uids
from tests.cluster.acceptance.stages import BRISK, Stage, by_upstream, stage
from tests.e2e.e2e_kubectl import NODES, Kubectl, Obj, daemonset, node_of, rolling, until
from tests.e2e.e2e_kubectl import uids as uids_by_node
from tests.e2e.e2e_states import settled
from tests.e2e.e2e_states import status as ds_status

pytestmark = [pytest.mark.kubectl, pytest.mark.timeout(400)]

D_S = (int(BRISK["OARLOCK_LEASE_MS"]) + 2 * int(BRISK["OARLOCK_REQUEST_TIMEOUT_MS"]) + 1_000) / 1_000
"""So long after it was announced a write may still take effect."""
NOWHERE = {"nodeSelector": {"no": "where"}}
STRICT = {"oarlock.io/strict": "true"}
KINDS = pytest.mark.parametrize("annotations", [pytest.param({}, id="usual"), pytest.param(STRICT, id="strict")])


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """A stage of these tests' own."""
    if by_upstream() or os.environ.get("OARLOCK_TEST_KUBECONFIG"):
        pytest.skip("brings a fleet of its own, and the stage has controllers already")
    with stage(tmp_path_factory.mktemp("stage"), with_middleman=True) as made:
        yield made


@pytest.fixture(scope="module")
def everywhere(cluster: Stage, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    return Kubectl(cluster.kubeconfig, tmp_path_factory.mktemp("home"))


@pytest.fixture
def between(cluster: Stage) -> Middleman:
    assert cluster.middleman is not None
    return cluster.middleman


def owner(name: str, replicas: int, annotations: dict[str, str]) -> Obj:
    made = RS.make(name, replicas)
    made["metadata"]["annotations"] = annotations
    return made


def scale(kubectl: Kubectl, count: int, name: str = "web") -> None:
    kubectl.run("scale", "rs", name, f"--replicas={count}")


def counts(kubectl: Kubectl, name: str = "web") -> int | None:
    """Pods, by a status that speaks of the present generation."""
    return status(kubectl, RS, name).get("replicas")


def told(kubectl: Kubectl, reason: str, name: str) -> list[str]:
    """What events of the owner say."""
    found = kubectl.items("events", "--field-selector", f"involvedObject.name={name},reason={reason}")
    return [each["message"] for each in found]


def names(pods: list[Obj]) -> set[str]:
    return {pod["metadata"]["name"] for pod in pods}


def only(rule: Rule) -> str:
    """The one name it has met."""
    (name,) = rule.met
    return name


def most_at_once(heard: Following, name: str, *, ending: bool) -> int:
    """How many pods of the owner there were at most; `ending`: those on their way out count."""
    there: set[str] = set()
    most = 0
    for each in heard.moments:
        meta = each.pod["metadata"]
        if meta["labels"]["app"] != name:
            continue
        if each.gone or (meta.get("deletionTimestamp") and not ending):
            there.discard(meta["uid"])
        else:
            there.add(meta["uid"])
        most = max(most, len(there))
    return most


# -- pods by number --------------------------------------------------------------------------------------------------


@KINDS
def test_a_create_that_is_never_answered(kubectl: Kubectl, between: Middleman, annotations: dict[str, str]) -> None:
    """The others come at once. A usual owner takes another name in the end, a strict one stays one short."""
    with (
        following(kubectl) as heard,
        between.answering_500("POST", kubectl.namespace, lambda name, _: name.startswith("web-"), first=1) as rule,
        between.answering_500("POST", kubectl.namespace, lambda name, _: name.startswith("soon-"), first=1),
    ):
        kubectl.apply(owner("web", 4, annotations), owner("soon", 4, annotations))
        until(lambda: counts(kubectl) == counts(kubectl, "soon") == 3, 5, "all but one")
        failure = condition_of(kubectl, "ReplicaFailure")
        assert (failure["reason"], failure["message"]) == ("FailedCreate", SAID)
        until(lambda: any(SAID in each for each in told(kubectl, "FailedCreate", "web")), 5, "an event tells it")
        scale(kubectl, 1, "soon")
        until(lambda: counts(kubectl, "soon") == 1, 3, "scaled down beside the unknown")
        scale(kubectl, 0, "soon")
        until(lambda: counts(kubectl, "soon") == 0 and not pods_of(kubectl, "soon"), 3, "scaled to nothing beside it")
        if annotations:
            assert condition_of(kubectl, "ReplicaFailure")
        else:
            pods = ready(kubectl, RS, 4, limit_s=D_S + 10)
            assert only(rule) not in names(pods)
            assert rule.met[only(rule)] <= 6
            assert condition_of(kubectl, "ReplicaFailure")["message"] == SAID, "as long as the name is passed over"
        scale(kubectl, 0)
        until(lambda: counts(kubectl) == 0 and not pods_of(kubectl), 3, "nothing")
        until(lambda: not kubectl.items("pods"), 10, "nothing at all")
    assert [most_at_once(heard, name, ending=bool(annotations)) <= 4 for name in ("web", "soon")] == [True, True]


@KINDS
def test_a_delete_that_is_never_answered(kubectl: Kubectl, between: Middleman, annotations: dict[str, str]) -> None:
    kubectl.apply(owner("web", 4, annotations))
    ready(kubectl, RS, 4)
    with between.answering_500("DELETE", kubectl.namespace, first=1) as rule:
        scale(kubectl, 2)
        until(lambda: counts(kubectl) == 3, 3, "one of the two goes, of the other nobody knows")
        failure = condition_of(kubectl, "ReplicaFailure")
        assert (failure["reason"], SAID in failure["message"]) == ("FailedDelete", True)
        until(lambda: any(SAID in each for each in told(kubectl, "FailedDelete", "web")), 5, "an event tells it")
        scale(kubectl, 0)
        until(lambda: names(pods_of(kubectl)) == {only(rule)}, 3, "all but that one go")
        until(lambda: counts(kubectl) == 1, 3, "it is counted as long as it is there")
    until(lambda: counts(kubectl) == 0 and not pods_of(kubectl), D_S + 5, "it goes too")


def test_deletes_that_are_wanted_no_longer(kubectl: Kubectl, between: Middleman) -> None:
    """10 to 5 with every delete unanswered, and 10 again: nobody has to go, now or later. So for a DaemonSet whose
    nodes are taken from it for a moment.
    """
    kubectl.apply(owner("web", 10, {}), owner("strict", 10, STRICT), daemonset())
    before = [*ready(kubectl, RS, 10), *ready(kubectl, RS, 10, "strict"), *settled(kubectl, NODES)]
    with following(kubectl) as heard:
        with between.answering_500("DELETE", kubectl.namespace) as rule:
            kubectl.run("scale", "rs", "web", "strict", "--replicas=5")
            place_agents(kubectl, NOWHERE)
            until(lambda: len(rule.met) >= 5 + 5 + NODES, 5, "every delete was sent")
            kubectl.run("scale", "rs", "web", "strict", "--replicas=10")
            place_agents(kubectl, {"nodeSelector": None})
            asked = time.monotonic()
            until(lambda: counts(kubectl) == counts(kubectl, "strict") == 10, 5, "both were looked at")
            until(lambda: ds_status(kubectl, "observedGeneration") == 3, 5, "and the third")
            sent = dict(rule.met)
            until(lambda: time.monotonic() > asked + D_S + 3, D_S + 3, "no earlier request is under way any more")
            assert rule.met == sent, "none is sent again"
        after = [*ready(kubectl, RS, 10), *ready(kubectl, RS, 10, "strict"), *settled(kubectl, NODES)]
        time.sleep(2)
        heard.catch_up()
    assert uids(after) == uids(before)
    going = [each.pod["metadata"]["name"] for each in heard.moments if each.pod["metadata"].get("deletionTimestamp")]
    assert not going, going
    assert not condition_of(kubectl, "ReplicaFailure")


def place_agents(kubectl: Kubectl, spec: Obj) -> None:
    kubectl.run("patch", "ds", "agent", "-p", json.dumps({"spec": {"template": {"spec": spec}}}))


def test_writes_that_took_effect_and_are_answered_500(kubectl: Kubectl, between: Middleman) -> None:
    """The cache tells of each: nothing is made or taken away a second time."""
    with (
        between.answering_500("POST", kubectl.namespace, forwards=True) as made,
        between.answering_500("DELETE", kubectl.namespace, forwards=True) as ended,
    ):
        kubectl.apply(owner("web", 4, {}), owner("strict", 4, STRICT), daemonset())
        pods = [*ready(kubectl, RS, 4), *ready(kubectl, RS, 4, "strict"), *settled(kubectl, NODES)]
        assert names(pods) == set(made.met)
        kubectl.run("scale", "rs", "web", "strict", "--replicas=1")
        left = [*ready(kubectl, RS, 1), *ready(kubectl, RS, 1, "strict"), *settled(kubectl, NODES)]
        assert names(pods) - names(left) == set(ended.met)
    assert not condition_of(kubectl, "ReplicaFailure")


# -- pods by node ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "limits",
    [
        pytest.param({"maxUnavailable": 2}, id="usual"),
        pytest.param({"maxSurge": 2, "maxUnavailable": 0}, id="surging"),
    ],
)
def test_a_node_that_no_pod_comes_to(
    kubectl: Kubectl, cluster: Stage, between: Middleman, limits: dict[str, int]
) -> None:
    """The other nodes get theirs, get another for one that has failed, and the next revision."""
    need_surge(cluster, limits)
    refused, *others = cluster.nodes
    brief = daemonset("brief")
    with between.answering_500("POST", kubectl.namespace, lambda _, body: node_of(body) == refused) as rule:
        kubectl.apply(daemonset(updateStrategy=rolling(**limits)), brief)
        until(lambda: ds_status(kubectl, "numberReady") == ds_status(kubectl, "numberReady", "brief") == 3, 5, "others")
        until(lambda: any(SAID in each for each in told(kubectl, "FailedCreate", "agent")), 5, "an event tells it")
        kubectl.run("patch", "ds", "brief", "-p", json.dumps({"spec": {"template": {"spec": NOWHERE}}}))
        before = uids_by_node(pods_of(kubectl, "agent"))
        assert sorted(before) == others
        failed = next(each for each in pods_of(kubectl, "agent") if node_of(each) == others[1])
        change_status(kubectl, pod_path(kubectl, failed), lambda said: {**said, "phase": "Failed"})
        until(lambda: replaced(kubectl, others[1], failed), 5, "the failed pod of another node is replaced")
        until(lambda: not pods_of(kubectl, "brief"), 3, "a DaemonSet without nodes has no pods")
        with following(kubectl) as heard:
            kubectl.run("set", "image", "ds/agent", "c=nginx:2")
            until(lambda: is_updated_on(kubectl, 3), 15, "the others are of the new revision")
            heard.catch_up()
        assert fewest_ready(heard) >= min(NODES - limits["maxUnavailable"], len(others))
        assert {name.partition("-")[0] for name in rule.met} == {"agent", "brief"}
    settled(kubectl, NODES, limit_s=D_S + 10)


@pytest.mark.parametrize(
    ("method", "limits"),
    [
        pytest.param("DELETE", {"maxUnavailable": 2}, id="an old pod that does not go"),
        pytest.param(
            "POST", {"maxSurge": 2, "maxUnavailable": 0}, id="a new pod that does not come beside the old one"
        ),
    ],
)
def test_a_rollout_goes_on_on_the_other_nodes(
    kubectl: Kubectl, cluster: Stage, between: Middleman, method: str, limits: dict[str, int]
) -> None:
    need_surge(cluster, limits)
    kubectl.apply(daemonset(updateStrategy=rolling(**limits)))
    before = uids_by_node(settled(kubectl, NODES))
    with following(kubectl) as heard:
        with between.answering_500(method, kubectl.namespace, first=1) as rule:
            kubectl.run("set", "image", "ds/agent", "c=nginx:2")
            until(lambda: is_updated_on(kubectl, NODES - 1), 15, "all other nodes")
            until(lambda: len(of_before(kubectl, before)) == 1, 5, "and have lost their old ones, all but that node")
            assert only(rule)
        settled(kubectl, NODES, limit_s=D_S + 10)
        heard.catch_up()
    assert fewest_ready(heard) >= NODES - limits["maxUnavailable"]


def of_before(kubectl: Kubectl, before: dict[str, str]) -> set[str]:
    """UIDs of the pods of then that are there still."""
    return set(before.values()) & uids(pods_of(kubectl, "agent"))


def replaced(kubectl: Kubectl, node: str, old: Obj) -> bool:
    """Whether another pod is ready there."""
    found = [each for each in pods_of(kubectl, "agent") if node_of(each) == node]
    return bool(found) and old["metadata"]["uid"] not in uids(found) and is_ready(found[0])


def is_updated_on(kubectl: Kubectl, count: int) -> bool:
    """Whether so many nodes have a ready pod of the second revision."""
    images = [each["spec"]["containers"][0]["image"] for each in pods_of(kubectl, "agent") if is_ready(each)]
    return images.count("nginx:2") == count


def is_ready(pod: Obj) -> bool:
    conditions = pod["status"].get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def fewest_ready(heard: Following) -> int:
    """How many nodes had a ready pod that was not on its way out, when they were fewest."""
    pods = {each["metadata"]["uid"]: each for each in heard.before}
    fewest = NODES
    for moment in heard.moments:
        uid = moment.pod["metadata"]["uid"]
        if moment.gone:
            pods.pop(uid, None)
        else:
            pods[uid] = moment.pod
        up = [each for each in pods.values() if is_ready(each) and not each["metadata"].get("deletionTimestamp")]
        fewest = min(fewest, len({node_of(each) for each in up}))
    return fewest


def need_surge(cluster: Stage, limits: dict[str, int]) -> None:
    if "maxSurge" in limits and cluster.version < (1, 22):
        pytest.skip(f"a server {cluster.version[0]}.{cluster.version[1]} has no maxSurge for DaemonSets: 1.22 has")
