"""The inspection commands for DaemonSets, their revisions and nodes, against a real Redis with a planted state."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from oarlock.broker import epoch
from oarlock.broker.connection.client import connect
from oarlock.broker.expectations import BACK_OFF, SCALE
from oarlock.broker.redis_broker import RedisBroker
from oarlock.broker.values.claims import Batch, ClaimLimits
from oarlock.broker.values.turns import Entry
from oarlock.controllers.builtin import NODE_QUEUE
from oarlock.controllers.daemonset.model import DaemonSet, DaemonSetStatus
from oarlock.controllers.deployment import annotations
from oarlock.controllers.deployment.model import Deployment, DeploymentStatus
from oarlock.controllers.history.model import HASH_LABEL, ControllerRevision
from oarlock.controllers.objects.model import OwnerRef, Pod, ReplicaSet, ReplicaSetStatus, label_selector
from oarlock.controllers.registry import CONTROLLERS, WATCHED
from oarlock.controllers.scheduling.model import Node, Placement, Taint
from oarlock.sandbox.redis.embedded_redis import EmbeddedRedis
from oarlock.workers.turn.engine.turn_engine import load_spec
from tests.cli.cli_helpers import call, problems, stored

QUEUE = "daemonset"
REF = OwnerRef("apps/v1", "DaemonSet", "agent", "uid-ds", True)
AGENT = DaemonSet(
    *("ns", "agent", "uid-ds", 1, None, b'{"spec":{}}', "digest", Placement(node_selector={"disk": "ssd"})),
    max_unavailable=1,
    status=DaemonSetStatus(2, 1, 3, 1, 1, 1, 1, 1),
    created_ms=1,
)
NODES = (
    Node("n1", "uid-n1", {"disk": "ssd"}, (Taint("a", "NoSchedule", "b"), Taint("c", "NoExecute"))),
    Node("n2", "uid-n2", {"disk": "ssd"}),
    Node("web", "uid-web", {f"label-{number}": "x" for number in range(9)}),
)
WEB = ReplicaSet("default", "web", "uid-rs", 1, 0, None, b"{}", {})
MAILER = ReplicaSet("ns", "mailer", "uid-rc", 1, 6, None, b"{}", {})
REVISION = ControllerRevision("ns", "agent-abc", "uid-rev", {HASH_LABEL: "abc"}, (REF,), 4, "digest")
POD = Pod(
    "ns",
    "agent-p",
    phase="Pending",
    pinned_node="n2",
    labels={HASH_LABEL: "abc"},
    owner_refs=(REF,),
    uid="uid-pod",
)
SHOP = Deployment(
    *("ns", "shop", "uid-shop", 2, 3, label_selector({"app": "shop"}), b'{"spec":{}}', "new", {"app": "shop"}),
    max_surge=1,
    status=DeploymentStatus(4, 2, 3, 3, 1, None, 2),
    created_ms=1,
)


def replicaset(name: str, digest: str, replicas: int, available: int, observed: int, created_ms: int) -> ReplicaSet:
    """One of the Deployment's, in generation 2."""
    ref = OwnerRef("apps/v1", "Deployment", "shop", "uid-shop", True)
    return ReplicaSet(
        *("ns", name, f"uid-{name}", 2, replicas, label_selector({"app": "shop"}), b"{}", {"app": "shop"}),
        owner_refs=(ref,),
        status=ReplicaSetStatus(replicas, replicas, available, available, None, observed),
        created_ms=created_ms,
        labels={"app": "shop"},
        annotations={**annotations.sizes(SHOP), annotations.REVISION: str(created_ms)},
        template_digest=digest,
    )


OLD, NEW = replicaset("shop-old", "old", 2, 2, 1, 1), replicaset("shop-new", "new", 2, 1, 2, 2)
PLANTED = {
    "deployments": (SHOP,),
    "daemonsets": (AGENT,),
    "nodes": NODES,
    "controllerrevisions": (REVISION,),
    "pods": (POD,),
    "replicasets": (WEB, OLD, NEW),
    "replicationcontrollers": (MAILER,),
}


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedRedis]:
    """ns/agent is in work, with a create for n2 that has no answer, and a back-off of n1; node n1 is queued."""
    with EmbeddedRedis(tmp_path_factory.mktemp("redis")) as server:
        client = connect(server.url("admin"))
        epoch.bootstrap(client, 3)
        broker = RedisBroker(client, 3)
        for resource, objects in PLANTED.items():
            broker.stage(resource, "g1", [stored(WATCHED[resource], each) for each in objects])
            assert broker.commit_list(resource, "g1", "12").verdict == "OK"
        assert broker.open(list(PLANTED)) == ""
        broker.register("w-a", "s", [QUEUE])
        broker.add(QUEUE, ["ns/agent"])
        spec = load_spec(CONTROLLERS[QUEUE])
        batch = broker.claim("w-a", "nonce", [spec], ClaimLimits(lease_ms=600_000, drain_ms=1000, keys_max=1))
        assert isinstance(batch, Batch)
        at_ms = time.time_ns() // 1_000_000
        back_off = f"generation=1 delay_ms=900000 at_ms={at_ms}"
        entries = [Entry("create", "pods/agent-x", hint="node=n2"), Entry(BACK_OFF, "n1", hint=back_off)]
        broker.announce(batch.claims[0], "uid-ds", entries, lease_ms=600_000)
        broker.add(NODE_QUEUE, ["n1"])
        broker.register("w-b", "s", ["deployment"])
        broker.add("deployment", ["ns/shop"])
        spec = load_spec(CONTROLLERS["deployment"])
        batch = broker.claim("w-b", "other", [spec], ClaimLimits(lease_ms=600_000, drain_ms=1000, keys_max=1))
        assert isinstance(batch, Batch)
        entry = Entry(SCALE, "replicasets/shop-old", "uid-shop-old", "10", "low=1 high=2")
        broker.announce(batch.claims[0], "uid-shop", [entry], lease_ms=600_000)
        yield server
        client.close()


def ask(server: EmbeddedRedis, *arguments: str) -> Any:
    result = call(*arguments, "--redis", server.url("metrics"), "-o", "json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def table(server: EmbeddedRedis, *arguments: str) -> list[list[str]]:
    result = call(*arguments, "--redis", server.url("metrics"))
    assert result.exit_code == 0, result.stderr
    return [line.split() for line in result.stdout.splitlines()]


@pytest.mark.parametrize("kind", ["ds", "daemonset", "DaemonSets"])
def test_get_daemonsets(planted: EmbeddedRedis, kind: str) -> None:
    head, line = table(planted, "get", kind)
    columns = ["NAMESPACE", "NAME", "DESIRED", "CURRENT", "READY", "UP-TO-DATE", "AVAILABLE", "MISSCHEDULED"]
    assert head == [*columns, "NODE", "SELECTOR", "AGE", "RV"]
    assert line[:9] == ["ns", "agent", "2", "1", "1", "1", "1", "3", "disk=ssd"]


def test_get_nodes(planted: EmbeddedRedis) -> None:
    head, first, second, third = table(planted, "get", "no")
    assert head == ["NAME", "TAINTS", "LABELS", "RV"]
    assert first == ["n1", "a=b:NoSchedule,c:NoExecute", "disk=ssd", "10"]
    assert second == ["n2", "-", "disk=ssd", "10"]
    assert third[2].endswith("label-5=x,+3")
    assert len(ask(planted, "get", "nodes", "-n", "ns")) == 3, "nodes are in no namespace"
    assert ask(planted, "get", "node", "n1")["taints"][1] == {"key": "c", "effect": "NoExecute", "value": ""}
    result = call("get", "node", "ns/n1", "--redis", planted.url("metrics"))
    assert (result.exit_code, problems(result)) == (
        2,
        ["oarlock: 'ns/n1' is no name of a node: nodes have no namespace; write the bare name"],
    )


def test_get_the_other_kinds(planted: EmbeddedRedis) -> None:
    head, line = table(planted, "get", "controllerrevisions")
    assert head == ["NAMESPACE", "NAME", "CONTROLLER", "REVISION", "HASH", "AGE", "RV"]
    assert line[:5] == ["ns", "agent-abc", "DaemonSet/agent", "4", "abc"]
    assert table(planted, "get", "rc")[1][:3] == ["ns", "mailer", "6"]
    assert table(planted, "get", "pods")[1][4:6] == ["(n2)", "DaemonSet/agent"]


def test_expectations_show_hints_and_back_offs(planted: EmbeddedRedis) -> None:
    (row,) = ask(planted, "expectations", "ns/agent")
    back_off, create = row["entries"]
    assert (back_off["what"], create["what"], create["hint"]) == ("backoff n1", "create pods/agent-x", "node=n2")
    assert 800_000 < back_off["left_ms"] <= 900_000
    assert create["left_ms"] is None
    lines = [" ".join(words) for words in table(planted, "expectations")]
    assert "in all, generation 1" in lines[1]
    assert "node=n2" in lines[2]
    assert ask(planted, "expectations", "n1") == []


def test_explain_finds_the_queue_by_itself(planted: EmbeddedRedis) -> None:
    told = " ".join(ask(planted, "explain", "ns/agent")["sentences"])
    assert "DaemonSet ns/agent belongs on 1 of 3 nodes and has 1 pods in the cache" in told
    assert "Its present template is revision 4 (agent-abc); all its pods are of it." in told
    assert "1 create has no answer yet: agent-x for n2 (sent " in told
    assert "Should its pod on n1 fail again, that waits for another 14m" in told
    assert ask(planted, "explain", "mailer", "-n", "ns")["queue"] == "replicationmanager"


def test_get_deployments(planted: EmbeddedRedis) -> None:
    head, line = table(planted, "get", "deploy")
    assert head[2:9] == ["DESIRED", "CURRENT", "READY", "UP-TO-DATE", "AVAILABLE", "STRATEGY", "PAUSED"]
    assert line[:9] == ["ns", "shop", "3", "4", "3", "2", "3", "RollingUpdate", "no"]


def test_explain_a_rollout(planted: EmbeddedRedis) -> None:
    facts = ask(planted, "explain", "deployment/ns/shop")
    told = " ".join(facts["sentences"])
    assert "Its present template is ReplicaSet shop-new (revision 2), size 2: 2 created, 1 available." in told
    assert "Pods of older templates: shop-old (revision 1), size 2: 2 created, 2 available." in told
    assert "It waits: ReplicaSet shop-old is to observe its size." in told
    assert "1 change of a size has no answer yet: shop-old from 1 to 2 (sent " in told
    assert facts["rollout"]["old"][0]["size_write"] == {"low": 1, "high": 2, "open": True}
    assert facts["object"]["max_surge"] == 1
    below = " ".join(ask(planted, "explain", "rs/ns/shop-old")["sentences"])
    assert "Deployment ns/shop controls it and decides its size." in below


def test_explain_a_node(planted: EmbeddedRedis) -> None:
    facts = ask(planted, "explain", "n1")
    assert (facts["queue"], facts["key"], facts["state"]) == (NODE_QUEUE, "n1", "queued")
    assert "It is queued: it is the next one." in facts["sentences"]
    assert "Node n2 is to have pods of 1 DaemonSets and has pods of 1" in " ".join(
        ask(planted, "explain", "n2", "-c", NODE_QUEUE)["sentences"]
    )
    assert ask(planted, "explain", "web")["queue"] == "replicaset", "default/web comes before a node of that name"
    assert ask(planted, "explain", "web", "-c", NODE_QUEUE)["object"]["uid"] == "uid-web"


def test_queue_and_locks_of_every_queue(planted: EmbeddedRedis) -> None:
    assert [row["key"] for row in ask(planted, "queue", "-c", NODE_QUEUE, "--keys")] == ["n1"]
    assert [(row["queue"], row["key"]) for row in ask(planted, "locks", "-c", QUEUE)] == [(QUEUE, "ns/agent")]
    assert ask(planted, "locks", "-c", NODE_QUEUE) == []


def test_requeue_a_node(planted: EmbeddedRedis) -> None:
    admin = planted.url("admin")
    assert call("requeue", "n2", "--redis", admin).stdout == "n2: queued\n"
    assert call("requeue", "-c", NODE_QUEUE, "n2", "--redis", admin).stdout.endswith("it is queued already\n")
    unknown = call("requeue", "-c", NODE_QUEUE, "n9", "--redis", admin)
    assert unknown.exit_code == 2
    assert "n9: not among the cached nodes; see `oarlock get nodes`, or --force" in problems(unknown)[0]
    assert call("requeue", "ns/agent", "--redis", admin).stdout.startswith("ns/agent: ")
