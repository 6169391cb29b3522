"""docs/take-over.md, played on a real server: upstream's controllers hand over to a fleet, and the fleet hands back.

The server is this file's own, for upstream's kube-controller-manager comes and goes on it.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from oarlock.sandbox.redis.embedded_redis import EmbeddedRedis
from oarlock.workers.ingest.upstream_detector import RECENT_MS
from tests.cluster.acceptance.stages import NODES, OTHERS, OURS, run_fleet, run_nodes, with_own_server
from tests.e2e.e2e_helpers import oarlock
from tests.e2e.e2e_kubectl import HASH, WAIT_S, Kubectl, Obj, daemonset, need_kubectl, node_of, template, until
from tests.realserver.server import RealServer

pytestmark = [
    pytest.mark.kubectl,
    with_own_server,
]

KINDS = {"rs": "web", "rc": "old", "ds": "agent"}
REPLICAS = 3
RICH: Obj = {
    "hostNetwork": False,
    "nodeSelector": {},
    "priority": 0,
    "securityContext": {"runAsUser": 65534, "fsGroup": 2000, "sysctls": []},
    "tolerations": [
        {"operator": "Exists", "effect": "NoSchedule"},
        {"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 9223372036854775807},
    ],
    "affinity": {
        "podAntiAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 1, "podAffinityTerm": {"topologyKey": "host", "labelSelector": {}}}
            ]
        }
    },
    "volumes": [
        {"name": "scratch", "emptyDir": {}},
        {"name": "limited", "emptyDir": {"medium": "Memory", "sizeLimit": "1.5Gi"}},
        {"name": "host", "hostPath": {"path": "/var/log"}},
        {"name": "info", "downwardAPI": {"items": [{"path": "l", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
    ],
    "initContainers": [
        {"name": "first", "image": "busybox", "command": ["sh", "-c", "echo '<&>' \u2028 \u00fc \\ \\b \" \t \b \f"]}
    ],
    "containers": [
        {
            "name": "c",
            "image": "nginx:1",
            "args": [],
            "env": [
                {"name": "EMPTY", "value": ""},
                {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
                {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1m"}}},
            ],
            "ports": [{"containerPort": 80}],
            "resources": {"limits": {"cpu": "0.5", "memory": "128Mi"}, "requests": {"cpu": "100m", "memory": "1e6"}},
            "livenessProbe": {"httpGet": {"path": "/?a=1&b=<2>", "port": 80}, "periodSeconds": 30},
            "lifecycle": {"preStop": {"exec": {"command": ["true"]}}},
            "securityContext": {"capabilities": {"drop": ["ALL"], "add": []}, "privileged": False},
            "volumeMounts": [{"name": "scratch", "mountPath": "/s"}],
        }
    ],
}
"""Much of what can be spelled in more than one way: text that Go escapes, empty maps and lists, quantities, numbers."""


@dataclass
class Place:
    """The server, and who works on it at the moment: upstream's controllers, a fleet, or none."""

    server: RealServer
    kubectl: Kubectl
    folder: Path

    @contextmanager
    def upstream(self, *controllers: str) -> Iterator[None]:
        running = self.server.run_controllers(*controllers)
        try:
            yield
        finally:
            running.kill()

    @contextmanager
    def fleet(self) -> Iterator[str]:
        """The URL of its Redis, for `oarlock queue`."""
        folder = Path(tempfile.mkdtemp(prefix="fleet-", dir=self.folder))
        with ExitStack() as ending, EmbeddedRedis(folder / "redis") as redis:
            for each in run_fleet(redis, self.server.kubeconfig, folder):
                ending.callback(each.kill)
            yield redis.url("admin")

    def look(self) -> Obj:
        """Everything that the change may not touch."""
        pods = {
            each["metadata"]["uid"]: (
                each["metadata"]["name"],
                each["metadata"].get("deletionTimestamp"),
                each["metadata"]["labels"],
                sum(one["restartCount"] for one in each["status"].get("containerStatuses") or ()),
            )
            for each in self.kubectl.items("pods")
        }
        revisions = {
            each["metadata"]["uid"]: (each["metadata"]["name"], each["revision"], json.dumps(each["data"]))
            for each in self.kubectl.items("controllerrevisions")
        }
        return {"pods": pods, "revisions": revisions}

    def wait_until_quiet(self) -> None:
        """As the runbook says: until no pod is so young that it speaks of upstream at work."""
        until(lambda: all(_age_ms(pod) > RECENT_MS for pod in self.kubectl.items("pods")), WAIT_S, "pods are older")

    def pods(self, name: str) -> list[Obj]:
        return [
            pod for pod in self.kubectl.items("pods", "-l", f"app={name}") if "deletionTimestamp" not in pod["metadata"]
        ]

    def settle(self) -> None:
        """Until whoever works has looked at every owner anew: their specs change, and nothing in what they ask for."""
        for kind, name in self.owners():
            changed = str(self.kubectl.json("get", kind, name)["metadata"]["generation"])
            self.kubectl.run("patch", kind, name, "-p", json.dumps({"spec": {"minReadySeconds": int(changed) % 2}}))
        until(self._settled, WAIT_S, "every owner has been looked at")

    def owners(self) -> list[tuple[str, str]]:
        return [(kind, each["metadata"]["name"]) for kind in KINDS for each in self.kubectl.items(kind)]

    def _settled(self) -> bool:
        return all(_at_rest(each) for kind in KINDS for each in self.kubectl.items(kind))


def _age_ms(pod: Obj) -> float:
    made = datetime.fromisoformat(pod["metadata"]["creationTimestamp"])
    return (datetime.now(UTC) - made).total_seconds() * 1000


def _of_deployment(replicaset: Obj) -> bool:
    return any(ref["kind"] == "Deployment" for ref in replicaset["metadata"].get("ownerReferences", ()))


def _is_observed(owner: Obj) -> bool:
    return bool(owner.get("status", {}).get("observedGeneration") == owner["metadata"]["generation"])


def _at_rest(owner: Obj) -> bool:
    status, spec = owner["status"], owner["spec"]
    if status.get("observedGeneration") != owner["metadata"]["generation"]:
        return False
    if owner["kind"] == "DaemonSet":
        counts = ("currentNumberScheduled", "updatedNumberScheduled", "numberAvailable")
        return [status.get(name, 0) for name in counts] == [status["desiredNumberScheduled"]] * 3
    return bool(status["replicas"] == status.get("availableReplicas", 0) == spec["replicas"])


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    need_kubectl()
    folder = tmp_path_factory.mktemp("take-over")
    with ExitStack() as ending:
        server = ending.enter_context(RealServer(folder / "server"))
        server.run_controllers(*OTHERS)
        ending.callback(run_nodes(server.kubeconfig, folder).end)
        yield Place(server, Kubectl(server.kubeconfig, folder).inside("take-over"), folder)


def replicas(kind: str, name: str) -> Obj:
    old = kind == "ReplicationController"
    return {
        "apiVersion": "v1" if old else "apps/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {
            "replicas": REPLICAS,
            "selector": {"app": name} if old else {"matchLabels": {"app": name}},
            "template": template(name),
        },
    }


def rolled(place: Place, name: str) -> None:
    """A DaemonSet with a rich template and two revisions."""
    place.kubectl.apply(
        daemonset(name, pod=RICH, updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "100%"}})
    )
    place.settle()
    place.kubectl.run("set", "image", f"ds/{name}", "c=nginx:2")
    place.settle()


def test_over_and_back(place: Place) -> None:
    """One story, for each part begins where the one before it ended."""
    kubectl = place.kubectl
    with place.upstream(*OURS):
        kubectl.apply(replicas("ReplicaSet", "web"), replicas("ReplicationController", "old"))
        rolled(place, "agent")
        before = place.look()
        assert len(before["pods"]) == 2 * REPLICAS + NODES
        assert len(before["revisions"]) == 2
        place.wait_until_quiet()
    with place.fleet() as redis_url:
        place.settle()
        until(lambda: _idle(redis_url), WAIT_S, "the fleet has nothing to do")
        assert place.look() == before

        cheap = place.pods("web")[-1]["metadata"]["name"]
        kubectl.run("annotate", "pod", cheap, "controller.kubernetes.io/pod-deletion-cost=-1")
        kubectl.run("scale", "rs/web", f"--replicas={REPLICAS - 1}")
        place.settle()
        assert cheap not in {pod["metadata"]["name"] for pod in place.pods("web")}
        lost = place.pods("old")[0]["metadata"]["uid"]
        kubectl.run("delete", "pod", place.pods("old")[0]["metadata"]["name"])
        until(lambda: len(place.pods("old")) == REPLICAS, WAIT_S, "the pod that upstream named was replaced")
        assert lost not in {pod["metadata"]["uid"] for pod in place.pods("old")}

        kubectl.run("set", "image", "ds/agent", "c=nginx:3")
        place.settle()
        pods = place.pods("agent")
        assert {pod["spec"]["containers"][0]["image"] for pod in pods} == {"nginx:3"}
        assert len({node_of(pod) for pod in pods}) == NODES
        kubectl.run("rollout", "undo", "ds/agent", "--to-revision=2")  # to one that upstream wrote
        place.settle()
        assert {pod["metadata"]["labels"][HASH] for pod in place.pods("agent")} == {_hash_of(before, "agent", 2)}

        rolled(place, "fresh")
        until(lambda: _idle(redis_url), WAIT_S, "the fleet has nothing to do")
        before = place.look()
        assert len(before["revisions"]) == 3 + 2
    with place.upstream(*OURS):
        place.settle()
        assert place.look() == before
        kubectl.run("rollout", "undo", "ds/fresh", "--to-revision=1")  # to one that the fleet wrote
        place.settle()
        assert len(place.look()["revisions"]) == 5
        assert {pod["spec"]["containers"][0]["image"] for pod in place.pods("fresh")} == {"nginx:1"}
        kubectl.run("scale", "rs/web", f"--replicas={REPLICAS + 1}")
        place.settle()


def test_a_deployment_over_and_back(place: Place) -> None:
    """Nobody rolls it because of the change; each side goes back to ReplicaSets that the other has made."""
    kubectl = place.kubectl
    made = replicas("Deployment", "shop")
    made["spec"]["template"]["spec"] = RICH

    def rolled_out() -> None:
        kubectl.run("rollout", "status", "deployment/shop", f"--timeout={WAIT_S:g}s")

    def looked_at(deadline_s: int) -> tuple[set[str], set[str]]:
        """Once whoever works has looked at it anew: the UIDs of its ReplicaSets and pods."""
        kubectl.run("patch", "deployment", "shop", "-p", json.dumps({"spec": {"progressDeadlineSeconds": deadline_s}}))
        until(lambda: _is_observed(kubectl.json("get", "deployment", "shop")), WAIT_S, "it has been looked at")
        rolled_out()
        replicasets = kubectl.items("rs", "-l", "app=shop")
        return {each["metadata"]["uid"] for each in replicasets}, {
            each["metadata"]["uid"] for each in place.pods("shop")
        }

    with place.upstream(*OURS):
        kubectl.apply(made)
        rolled_out()
        kubectl.run("set", "image", "deployment/shop", "c=nginx:2")
        before = looked_at(601)
        assert (len(before[0]), len(before[1])) == (2, REPLICAS)
        place.wait_until_quiet()
    with place.fleet() as redis_url:
        assert looked_at(602) == before
        kubectl.run("rollout", "undo", "deployment/shop")  # to one that upstream made
        assert looked_at(603)[0] == before[0]
        kubectl.run("set", "image", "deployment/shop", "c=nginx:3")
        before = looked_at(604)
        assert (len(before[0]), len(before[1])) == (3, REPLICAS)
        assert _epoch(redis_url)["phase"] == "OPEN"
    with place.upstream(*OURS):
        assert looked_at(605) == before
        kubectl.run("rollout", "undo", "deployment/shop", "--to-revision=2")
        assert looked_at(606)[0] == before[0]
        kubectl.run("rollout", "undo", "deployment/shop")  # to one that the fleet made
        assert looked_at(607)[0] == before[0]
        assert {pod["spec"]["containers"][0]["image"] for pod in place.pods("shop")} == {"nginx:3"}
    kubectl.run("delete", "deployment", "shop")
    until(lambda: not any(_of_deployment(each) for each in kubectl.items("rs")), WAIT_S, "its ReplicaSets have gone")


def test_paused_by_a_replicaset_that_upstream_makes(place: Place) -> None:
    """Deployments alone are still upstream's: the fleet, which has them too, sees the first ReplicaSet it makes."""
    kubectl = place.kubectl
    place.wait_until_quiet()

    def looked_at(name: str) -> None:
        kubectl.apply(replicas("Deployment", name))
        until(lambda: _is_observed(kubectl.json("get", "deployment", name)), WAIT_S, f"{name} has been looked at")

    with place.fleet() as redis_url, place.upstream("deployment"):
        until(lambda: _epoch(redis_url)["phase"] == "OPEN", WAIT_S, "nothing tells of a manager with nothing to do")
        for number in range(30):  # where the fleet is first, upstream has no ReplicaSet to create
            looked_at(f"both{number}")
            if _epoch(redis_url)["phase"] == "HELD":
                break
        paused = _epoch(redis_url)["paused"]
        assert paused.startswith("kube-controller-manager created ReplicaSet take-over/both"), paused
        assert " of Deployment both" in paused
    kubectl.run("delete", "deployment", "--all")
    until(lambda: not any(_of_deployment(each) for each in kubectl.items("rs")), WAIT_S, "its ReplicaSets have gone")


def test_paused_while_upstream_is_at_work(place: Place) -> None:
    """Upstream was forgotten: the fleet sees it by a pod, stops, and goes on when it is told to."""
    kubectl = place.kubectl
    with ExitStack() as ending:
        with place.upstream(*OURS):
            kubectl.apply(replicas("ReplicaSet", "both"))
            place.settle()
            place.wait_until_quiet()
            redis_url = ending.enter_context(place.fleet())
            assert _epoch(redis_url)["phase"] == "OPEN", "nothing tells of a manager that has nothing to do"
            for count in range(REPLICAS + 1, 30):  # where the fleet is first, upstream has no pod to create
                kubectl.run("scale", "rs/both", f"--replicas={count}")
                place.settle()
                if _epoch(redis_url)["phase"] == "HELD":
                    break
            told = _epoch(redis_url)
            assert told["phase"] == "HELD"
            assert told["paused"].startswith("kube-controller-manager created Pod take-over/both-")
            logs = [path.read_text() for path in place.folder.glob("fleet-*/ingestor-*.log")]
            assert any("fleet paused" in log and "--controllers=*,-replicaset," in log for log in logs)
            kubectl.run("scale", "rs/both", "--replicas=3")
            place.settle()
            kubectl.run("scale", "rs/both", "--replicas=6")
            place.settle()
            names = [pod["metadata"].get("generateName") for pod in place.pods("both")]
            assert names.count("both-") >= 3, "upstream alone was at work"
        kubectl.run("scale", "rs/both", "--replicas=8")
        done = oarlock("resume", "--redis", redis_url)
        assert "it was paused: kube-controller-manager created Pod" in done.stdout, done.stderr
        place.settle()
        assert len(place.pods("both")) == 8
        assert _epoch(redis_url)["phase"] == "OPEN"


def _epoch(redis_url: str) -> Obj:
    done = oarlock("epoch", "--redis", redis_url, "-o", "json")
    assert done.returncode == 0, done.stderr
    found: Obj = json.loads(done.stdout)
    return found


def _hash_of(looked: Obj, name: str, number: int) -> str:
    return next(found[0] for found in looked["revisions"].values() if found[1] == number).removeprefix(f"{name}-")


def _idle(redis_url: str) -> bool:
    done = oarlock("queue", "--redis", redis_url, "-o", "json")
    assert done.returncode == 0, done.stderr
    return not any(each["queued"] + each["in_work"] + each["delayed"] for each in json.loads(done.stdout))
