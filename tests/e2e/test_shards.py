"""`oarlock up --shards 3`: three fleets side by side on one Redis; what befalls one is no concern of the others."""

from __future__ import annotations

import json
import os
import signal
import urllib.request
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from click.testing import CliRunner
from rq.worker import SimpleWorker

from oarlock.broker import epoch, keys
from oarlock.broker.looks.inspect import Inspector
from oarlock.cli import cli
from oarlock.sandbox.up.state_dir import Process
from oarlock.workers.process.shards import names, shard_of
from oarlock.workers.rq.queue import KeyQueue
from tests.e2e.e2e_helpers import RunningUp, until

NAMESPACES = [f"team-{i}" for i in range(12)]
WITH_AGENTS = [namespace for namespace in NAMESPACES if namespace in ("team-0", "team-1", "team-2", "team-7")]
NODES, REPLICAS = 3, 4
UNHURRIED = {"OARLOCK_LEASE_MS": "5000", "OARLOCK_RENEW_EVERY_MS": "1000", "OARLOCK_REQUEST_TIMEOUT_MS": "1000"}
"""Workers keep their leases, and so their processes, where the machine stands still for a moment."""


def owner(kind: str, namespace: str, name: str, **spec: Any) -> dict[str, Any]:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "example/c:1"}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {**spec, "selector": {"matchLabels": labels}, "template": template},
    }


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningUp]:
    """One ingestor and one worker a shard."""
    docs: list[Any] = []
    for namespace in NAMESPACES:
        docs.append({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        docs.append(owner("ReplicaSet", namespace, "web", replicas=REPLICAS))
    docs += [owner("DaemonSet", namespace, "agent") for namespace in WITH_AGENTS]
    folder = tmp_path_factory.mktemp("shards")
    file = folder / "objects.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": docs}))
    given = ("--shards", "3", "--workers", "3", "--ingestors", "1", "--nodes", str(NODES), "-f", str(file))
    running = RunningUp(folder / "state", *given, **UNHURRIED)
    yield running
    running.stop()


def call(up: RunningUp, method: str, path: str, body: Any = None) -> Any:
    """The API server's answer: what is true, whatever the caches say."""
    request = urllib.request.Request(
        up.state.read_up()["api_url"] + path,
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Content-Type": "application/merge-patch+json", "Authorization": f"Bearer {up.token()}"},
    )
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.loads(answer.read())


def pods(up: RunningUp, app: str) -> Counter[tuple[str, str]]:
    """(namespace, node) -> pods of the app that are ready and stay; of "web" the node is ""."""
    found: Counter[tuple[str, str]] = Counter()
    for pod in call(up, "GET", "/api/v1/pods")["items"]:
        meta = pod["metadata"]
        ready = {"type": "Ready", "status": "True"}.items()
        is_ready = any(ready <= each.items() for each in pod["status"].get("conditions", []))
        if meta["labels"]["app"] == app and is_ready and "deletionTimestamp" not in meta:
            found[meta["namespace"], "" if app == "web" else pod["spec"]["nodeName"]] += 1
    return found


def scale(up: RunningUp, namespace: str, replicas: int) -> None:
    call(up, "PATCH", f"/apis/apps/v1/namespaces/{namespace}/replicasets/web", {"spec": {"replicas": replicas}})


def workers(up: RunningUp) -> dict[str, Process]:
    """Shard -> its worker."""
    return {each.name.rsplit("-s", 1)[1][0]: each for each in up.processes("worker")}


def epochs(up: RunningUp) -> list[tuple[int, str]]:
    client = up.redis()
    return [(seen.epoch, seen.phase) for seen in (epoch.current(client, shard) for shard in names(3))]


def test_all_namespaces_converge_and_daemons_are_on_every_node(up: RunningUp) -> None:
    wanted = {(namespace, ""): REPLICAS for namespace in NAMESPACES}
    until(lambda: pods(up, "web") == wanted, 90, "all ReplicaSets have their pods", pause_s=0.2)
    agents = {(namespace, f"node-{node}"): 1 for namespace in WITH_AGENTS for node in range(NODES)}
    until(lambda: pods(up, "agent") == agents, 60, "an agent of each namespace on each node", pause_s=0.2)


def test_each_shard_keeps_its_own_objects_and_all_nodes(up: RunningUp) -> None:
    client = up.redis()
    for shard in names(3):
        inspector = Inspector(client, epoch.current(client, shard).epoch, shard)
        ours = {f"{namespace}/web" for namespace in NAMESPACES if shard_of(namespace, 3) == shard}
        assert dict(inspector.objects("replicasets")).keys() == ours
        assert ours, "every shard has something to do"
        assert dict(inspector.objects("nodes")).keys() == {f"node-{node}" for node in range(NODES)}


def ask(up: RunningUp, *arguments: str) -> Any:
    """As ``RunningUp.ask``, in this process: a command takes longer to start than to answer."""
    done = CliRunner().invoke(cli, [*arguments, "--state-dir", str(up.state.root), "-o", "json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_people_see_all_shards(up: RunningUp) -> None:
    assert {each["shard"] for each in ask(up, "queue")} == {"0", "1", "2"}
    assert [each["shard"] for each in ask(up, "epoch")] == ["0", "1", "2"]
    assert [each["name"] for each in ask(up, "get", "nodes")] == [f"node-{node}" for node in range(NODES)]
    assert len(ask(up, "get", "replicasets")) == len(NAMESPACES)
    assert all(each["is_open"] for each in ask(up, "status")["shards"])
    for namespace in NAMESPACES[:3]:
        told = ask(up, "explain", f"{namespace}/web")
        assert (told["shard"], told["object"]["replicas"]) == (shard_of(namespace, 3), REPLICAS)
    assert [each["shard"] for each in ask(up, "explain", "node-1")] == ["0", "1", "2"]
    for ask_for in (("locks",), ("expectations",), ("expectations", "team-0/web"), ("queue", "--keys")):
        assert isinstance(ask(up, *ask_for), list)
    said = CliRunner().invoke(cli, ["requeue", "node-1", "--state-dir", str(up.state.root)])
    assert [line.split(":")[0] for line in said.stdout.splitlines()] == ["shard 0", "shard 1", "shard 2"]
    said = CliRunner().invoke(cli, ["resume", "--state-dir", str(up.state.root)])
    assert said.stdout.splitlines() == [f"shard {shard}: it was not paused, phase OPEN" for shard in names(3)]
    said = CliRunner().invoke(cli, ["epoch", "--state-dir", str(up.state.root)])
    assert "SHARD" in said.stdout
    assert sorted(each.name for each in up.processes("ingestor")) == [f"ingestor-1-s{shard}" for shard in names(3)]


def test_rq_shows_one_queue_for_all_shards_and_the_shard_in_the_name_of_a_worker(
    up: RunningUp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OARLOCK_SHARDS", "3")
    client = up.redis()

    def by_name() -> dict[str, set[str]]:
        """Workers enter themselves with their first breath, not before."""
        found = {worker.name: set(worker.queue_names()) for worker in SimpleWorker.all(connection=client)}
        return found if {name.rsplit("-", 2)[1] for name in found} == {"s0", "s1", "s2"} else {}

    known = until(by_name, 20, "a worker of each shard")
    assert all("replicaset" in queues for queues in known.values())
    queue, here = KeyQueue("replicaset", client), keys.Keys(1, "2")
    until(lambda: queue.count == 0, 15, "all is done")
    client.xadd(here.stream("of-a-test"), {"key": "ns/x"})
    assert KeyQueue("of-a-test", client).count == 1
    client.unlink(here.stream("of-a-test"))


def test_a_worker_of_each_shard_is_killed(up: RunningUp) -> None:
    before = workers(up)
    assert before.keys() == {"0", "1", "2"}
    for namespace in NAMESPACES:
        scale(up, namespace, REPLICAS + 3)
    for process in before.values():
        os.kill(process.pid, signal.SIGKILL)
    wanted = {(namespace, ""): REPLICAS + 3 for namespace in NAMESPACES}
    until(lambda: pods(up, "web") == wanted, 90, "all are as scaled", pause_s=0.2)
    until(lambda: workers(up).keys() == before.keys(), 60, "each shard has a worker again")
    assert {each.pid for each in workers(up).values()}.isdisjoint(each.pid for each in before.values())


def test_the_loss_of_one_shards_keys_is_its_own_affair(up: RunningUp) -> None:
    client, before, at_work = up.redis(), epochs(up), workers(up)
    client.unlink(*client.scan_iter("oarlock:*{1}*", count=1000))
    there = next(namespace for namespace in NAMESPACES if shard_of(namespace, 3) == "1")
    elsewhere = next(namespace for namespace in NAMESPACES if shard_of(namespace, 3) == "0")
    scale(up, there, 1)
    scale(up, elsewhere, 2)
    until(lambda: pods(up, "web")[elsewhere, ""] == 2, 60, "shard 0 works on", pause_s=0.1)
    until(lambda: epochs(up)[1] == (before[1][0] + 1, "OPEN"), 90, "shard 1 has a new epoch")
    until(lambda: pods(up, "web")[there, ""] == 1, 60, "shard 1 works again", pause_s=0.1)
    assert [epochs(up)[shard] for shard in (0, 2)] == [before[shard] for shard in (0, 2)]
    now = workers(up)
    assert [now[shard].pid for shard in ("0", "2")] == [at_work[shard].pid for shard in ("0", "2")]
    assert now["1"].pid != at_work["1"].pid
