"""DaemonSets that surge: nodes that change sides while they do, and pods that fail meanwhile.

Numbers in names: upstream: test/integration/daemonset/daemonset_test.go (26_4) and test/e2e/apps/daemon_set.go (26_5).
"""

from __future__ import annotations

import asyncio
import random
import subprocess
import time
from collections import Counter, defaultdict
from datetime import datetime

import orjson
import pytest

from oarlock.cluster.access.config import load
from oarlock.cluster.client import Client, PatchType
from oarlock.cluster.resources import PODS
from tests.cluster.acceptance.following import Following, following
from tests.cluster.acceptance.stages import Stage, need_surge
from tests.e2e.e2e_kubectl import HASH, NEVER_READY, PATIENCE, Kubectl, Obj, daemonset, hashes, node_of, rolling, until
from tests.e2e.e2e_states import on_own, pods_of, settled

pytestmark = [pytest.mark.kubectl, pytest.mark.timeout(400)]

FINISHED = ("Failed", "Succeeded")


@pytest.fixture
def surging(cluster: Stage) -> Stage:
    need_surge(cluster)
    return cluster


def is_ready(pod: Obj) -> bool:
    return any(each["type"] == "Ready" and each["status"] == "True" for each in pod["status"].get("conditions") or ())


def make_ready(stage: Stage, pods: list[Obj]) -> None:
    """By the API itself: kubectl takes a tenth of a second for each."""
    condition = {"type": "Ready", "status": "True", "lastTransitionTime": "2020-01-01T00:00:00Z"}
    patch = orjson.dumps({"status": {"conditions": [condition]}})

    async def send() -> None:
        async with Client(load(stage.kubeconfig)) as client:
            for pod in pods:
                meta = pod["metadata"]
                answer = await client.patch(
                    PODS, meta["namespace"], meta["name"], patch, PatchType.STRATEGIC, subresource="status"
                )
                assert answer.ok or answer.code == 404, answer.message

    asyncio.run(send())


def test_26_4_12_tolerations_that_change(kubectl: Kubectl, surging: Stage) -> None:
    """Two nodes each with the taints y, z and common; surge 1. No pod is ready before the test says so."""
    zones = ("zone-y", "zone-z", "common")
    groups = {group: [f"{group}{number}-{kubectl.namespace}" for number in (1, 2)] for group in zones}
    for group, names in groups.items():
        surging.change_nodes("add", *names, "--label", f"own={kubectl.namespace}", "--taint", f"{group}=x:NoSchedule")

    def tolerating(*tolerated: str) -> Obj:
        tolerations = [{"key": each, "operator": "Exists"} for each in tolerated]
        made = daemonset(
            pod=on_own(kubectl, tolerations=tolerations), updateStrategy=rolling(maxSurge=1, maxUnavailable=0)
        )
        made["spec"]["template"]["metadata"]["annotations"] = NEVER_READY
        return made

    def running(count: int) -> bool:
        pods = pods_of(kubectl)
        assert len(pods) <= count
        return [each["status"]["phase"] for each in pods] == ["Running"] * count

    def let_all_become_ready(most: int) -> None:
        """Whatever comes, until nothing changes any more."""

        def done() -> bool:
            pods = pods_of(kubectl)
            assert len(pods) <= most
            waiting = [each for each in pods if each["status"]["phase"] == "Running" and not is_ready(each)]
            if waiting:
                make_ready(surging, waiting)
                return False
            found = kubectl.json("get", "ds", "agent")
            said, generation = found["status"], found["metadata"]["generation"]
            counts = [said.get(name, 0) for name in ("updatedNumberScheduled", "numberAvailable", "observedGeneration")]
            return counts == [len(pods), len(pods), generation] and len(pods) == said["desiredNumberScheduled"]

        until(done, 60, "every pod is new and available")

    def places() -> list[str]:
        return sorted(node_of(each) for each in pods_of(kubectl))

    try:
        kubectl.apply(tolerating("zone-y", "common"))
        until(lambda: running(4), 30, "a pod on each node with y or common")
        let_all_become_ready(4)
        assert places() == sorted(groups["zone-y"] + groups["common"])

        kubectl.apply(tolerating("zone-z", "common"))
        until(lambda: running(7), 30, "the four, two on nodes with z, and one beside an old one")
        let_all_become_ready(7)
        settled(kubectl, 4)
        assert places() == sorted(groups["zone-z"] + groups["common"])

        kubectl.apply(tolerating("zone-y", "zone-z", "common"))
        until(lambda: running(7), 30, "the four, two on nodes with y, and one beside an old one")
        let_all_become_ready(7)
        settled(kubectl, 6)

        kubectl.apply(tolerating())
        settled(kubectl, 0)
        until(lambda: not kubectl.items("pods"), 30, "no node may have one")
    finally:
        surging.change_nodes("remove", "-l", f"own={kubectl.namespace}")


# -- with failures ---------------------------------------------------------------------------------------------------

NODES, SURGE = 6, 2  # 20 %, rounded up
MIN_READY_S = 1
FAILURES = 3
TOGETHER_S = 60.0
"""How long an old and a new pod may stand side by side on a node that nothing happens to, on a quiet machine."""


def test_26_5_8_surge_with_failures(kubectl: Kubectl, surging: Stage) -> None:
    """While an update goes over six nodes, pods are deleted and fail at random."""
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    names = [f"s{number}-{kubectl.namespace}" for number in range(NODES)]
    surging.change_nodes("add", *names, "--label", f"own={kubectl.namespace}")
    excused: set[str] = set()

    def harm() -> None:
        pod = rng.choice(sorted(pods_of(kubectl), key=lambda each: str(each["metadata"]["name"])))
        excused.add(node_of(pod))
        name = pod["metadata"]["name"]
        if rng.random() < 0.5:
            kubectl.run("delete", "pod", name, "--wait=false", "--ignore-not-found")
        else:
            command = kubectl.command("annotate", "pod", name, "--overwrite", "oarlock.io/sim-fail=Injected")
            done = subprocess.run(command, capture_output=True, text=True, env=kubectl.environment, check=False)
            assert done.returncode == 0 or "NotFound" in done.stderr, done.stderr  # the update may have been faster

    try:
        strategy = rolling(maxSurge="20%", maxUnavailable=0)
        kubectl.apply(daemonset(pod=on_own(kubectl), minReadySeconds=MIN_READY_S, updateStrategy=strategy))
        settled(kubectl, NODES)
        with following(kubectl) as seen:
            kubectl.run("set", "image", "ds/agent", "c=nginx:2")
            for _ in range(FAILURES):
                harm()
                time.sleep(rng.uniform(0.0, 0.4))
            after = settled(kubectl, NODES, limit_s=60)
            seen.catch_up()
        assert {each["spec"]["containers"][0]["image"] for each in after} == {"nginx:2"}
        (new,) = hashes(after)
        assert check(seen, new, excused) >= NODES - FAILURES, "so many nodes were updated with nothing in the way"
    finally:
        surging.change_nodes("remove", "-l", f"own={kubectl.namespace}")


def check(seen: Following, new: str, excused: set[str]) -> int:
    """At every moment: one pod a node and revision, two revisions, at most two pods of a node on their way out; where
    nothing was done to it a node has a ready pod, and no more than SURGE of them wait for a new one.

    Returns how many nodes had an old and a new pod at once, with nothing done to either.
    """
    pods = {each["metadata"]["uid"]: each for each in seen.before}
    side_by_side: dict[str, float] = {}
    surged: set[str] = set()
    for moment in seen.moments:
        uid = moment.pod["metadata"]["uid"]
        is_new = uid not in pods
        pods[uid] = moment.pod
        if moment.gone:
            del pods[uid]
        staying, leaving = defaultdict[str, list[Obj]](list), Counter[str]()
        for each in pods.values():
            if each["metadata"].get("deletionTimestamp"):
                leaving[node_of(each)] += 1
            elif each["status"]["phase"] not in FINISHED:
                staying[node_of(each)].append(each)
        assert not leaving or max(leaving.values()) <= 2
        assert len(hashes([each for there in staying.values() for each in there])) <= 2
        for there in staying.values():
            assert len(there) == len(hashes(there)), "one of each revision"
        quiet = {node: there for node, there in staying.items() if node not in excused}
        assert all(any(map(is_ready, there)) for there in quiet.values())
        waiting = {node for node, there in quiet.items() if is_waiting(there, new, moment.at_s)}
        if is_new and node_of(moment.pod) in waiting:
            assert len(waiting) <= SURGE, waiting
        both = {node for node, there in quiet.items() if len(there) == 2}
        surged |= both
        side_by_side = {node: side_by_side.get(node, moment.at_s) for node in both}
        assert all(moment.at_s - since_s <= PATIENCE * TOGETHER_S for since_s in side_by_side.values())
    return len(surged)


def is_waiting(there: list[Obj], new: str, now_s: float) -> bool:
    """Whether a pod of the new revision is among these, not yet available. What is heard was decided on before."""
    for pod in there:
        if pod["metadata"]["labels"][HASH] == new:
            for each in pod["status"].get("conditions") or ():
                if each["type"] == "Ready" and each["status"] == "True":
                    since_s = datetime.fromisoformat(each["lastTransitionTime"]).timestamp()
                    return now_s < since_s + MIN_READY_S
            return True
    return False
