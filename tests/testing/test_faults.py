"""Faults on demand: whom they befall, how often, and that they end."""

from __future__ import annotations

import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

import pytest

from oarlock.testing import Cluster, Refused
from tests.testing.manifests import workload

CONFIG = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}}


def request(cluster: Cluster, path: str, method: str = "GET", timeout_s: float = 10.0) -> Any:
    """By a client that knows nothing of the product: the opened answer."""
    headers = {"Authorization": f"Bearer {cluster.token}", "User-Agent": "stranger/1"}
    asked = urllib.request.Request(f"{cluster.url}/api/v1/{path}", method=method, headers=headers)
    return urllib.request.urlopen(asked, timeout=timeout_s)


def own(cluster: Cluster, rest: str) -> str:
    return f"namespaces/{cluster.namespace}/{rest}"


@pytest.mark.parametrize(
    ("what", "reason", "text"),
    [
        (403, "Forbidden", "cannot create"),
        (429, "TooManyRequests", "too many requests"),
        (500, "InternalError", "an injected fault"),
    ],
)
def test_a_write_is_refused_and_not_done(cluster: Cluster, what: int, reason: str, text: str) -> None:
    with cluster.fault(what, resource="configmaps") as fault, pytest.raises(Refused, match=text) as refused:
        cluster.create(CONFIG)
    assert (refused.value.code, refused.value.reason, fault.applied) == (what, reason, 1)
    assert cluster.list("configmaps") == []
    cluster.create(CONFIG)


@pytest.mark.parametrize("word", ["configmap", "cm", "ConfigMap"])
def test_a_resource_by_any_word_for_its_kind(cluster: Cluster, word: str) -> None:
    with cluster.fault(500, resource=word) as fault, pytest.raises(Refused):
        cluster.create(CONFIG)
    assert fault.applied == 1


def test_a_conflict_is_in_the_words_of_the_verb(cluster: Cluster) -> None:
    with cluster.fault(409, verb=("create", "patch"), name="one"):
        with pytest.raises(Refused, match='configmaps "one" already exists') as refused:
            cluster.create(CONFIG)
        assert refused.value.reason == "AlreadyExists"
        cluster.create({**CONFIG, "metadata": {"name": "two"}})
        cluster.patch("configmap/two", {"data": {"a": "b"}})
        with pytest.raises(Refused, match="the object has been modified") as refused:
            cluster.patch("configmap/one", {"data": {"a": "b"}})
        assert refused.value.reason == "Conflict"


def test_a_conflict_befalls_changes_where_no_verb_is_named(cluster: Cluster) -> None:
    with cluster.fault(409):
        cluster.create(CONFIG)
        with pytest.raises(Refused, match="409 Conflict"):
            cluster.patch("configmap/one", {"data": {"a": "b"}})


@pytest.mark.parametrize(("what", "code"), [("late 500", 500), ("no answer", 0)])
def test_a_write_is_done_whatever_is_answered(cluster: Cluster, what: str, code: int) -> None:
    with cluster.fault(what, verb="create"), pytest.raises(Refused) as refused:
        cluster.create(CONFIG)
    assert refused.value.code == code
    assert [each["metadata"]["name"] for each in cluster.list("configmaps")] == ["one"]


def test_so_many_times(cluster: Cluster) -> None:
    fault = cluster.fault(500, verb="get", resource="configmaps", times=2)
    cluster.create(CONFIG)
    for _ in range(2):
        with pytest.raises(Refused):
            cluster.get("configmap/one")
    cluster.get("configmap/one")
    assert fault.applied == 2


def test_it_ends_with_its_block_and_with_the_test(cluster: Cluster, cluster_of_session: Cluster) -> None:
    with cluster_of_session.fresh() as other:
        for end in (lambda fault: fault.end(), lambda _: other.clear_faults()):
            fault = other.fault(500, resource="configmaps")
            with pytest.raises(Refused):
                cluster.create(CONFIG)
            end(fault)
            cluster.create(CONFIG)
            cluster.delete("configmap/one")
        other.fault(500)
    cluster.create(CONFIG)


@pytest.mark.parametrize(
    ("by", "helper", "pods"),
    [("tests", False, True), ("controllers", True, False), ("anyone", False, False)],
)
def test_whom_it_befalls(cluster: Cluster, by: str, helper: bool, pods: bool) -> None:
    with cluster.fault(500, verb="create", resource="pods", by=by) as fault:
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "bare"}}
        pod["spec"] = {"containers": [{"name": "c", "image": "nginx"}]}
        if helper:
            cluster.create(pod)
        else:
            with pytest.raises(Refused):
                cluster.create(pod)
        cluster.create(workload("ReplicaSet", replicas=1))
        if pods:
            cluster.wait("replicaset/web")
        else:
            told = cluster.wait("events", lambda events: [each for each in events if each["reason"] == "FailedCreate"])
            assert all("an injected fault" in each["message"] for each in told)
            assert fault.applied >= 1
    cluster.wait("replicaset/web")


def test_a_slow_answer(cluster: Cluster) -> None:
    cluster.create(CONFIG)
    with cluster.fault("slow", verb="get", resource="configmaps", seconds=0.2):
        begun_s = time.monotonic()
        cluster.get("configmap/one")
        assert time.monotonic() - begun_s > 0.19, "libuv counts whole milliseconds, and may be one early"


class Watch:
    """What a stranger's watch of the namespace's ConfigMaps has told."""

    def __init__(self, cluster: Cluster, query: str = "") -> None:
        self.events: list[Any] = []
        self._answer = request(cluster, own(cluster, f"configmaps?watch=1{query}"))
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        for line in self._answer:
            self.events.append(json.loads(line))

    def ended(self, within_s: float) -> bool:
        self._thread.join(within_s)
        return not self._thread.is_alive()


def until(condition: Callable[[], Any], limit_s: float = 20.0) -> None:
    end_s = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < end_s
        time.sleep(0.005)


def test_a_slow_watch_says_nothing_and_then_everything(cluster: Cluster) -> None:
    watch = Watch(cluster)
    begun_s = time.monotonic()
    with cluster.fault("slow watch", resource="configmaps", seconds=0.4):
        cluster.create(CONFIG)
        until(lambda: watch.events)
    assert time.monotonic() - begun_s > 0.39
    assert watch.events[0]["object"]["metadata"]["name"] == "one"


def test_a_cut_history_ends_watches_and_makes_old_versions_gone(cluster: Cluster) -> None:
    rv = cluster.create(CONFIG)["metadata"]["resourceVersion"]
    running = Watch(cluster)
    until(lambda: running.events)
    cluster.patch("configmap/one", {"data": {"a": "b"}})
    cluster.fault(410, resource="configmaps")
    assert running.ended(20)
    old = Watch(cluster, f"&resourceVersion={rv}")
    assert old.ended(20)
    assert [(each["type"], each["object"]["code"]) for each in old.events] == [("ERROR", 410)]


def test_controllers_survive_a_cut_history(cluster: Cluster) -> None:
    cluster.create(workload(replicas=1))
    cluster.wait("deployment/web")
    cluster.fault(410)
    cluster.patch("deployment/web", {"spec": {"replicas": 3}})
    cluster.wait("deployment/web")
    cluster.wait("pods", count=3)


def test_a_stranger_is_told_to_come_again(cluster: Cluster) -> None:
    with cluster.fault(429, verb="list", by="tests"), pytest.raises(urllib.error.HTTPError) as refused:
        request(cluster, own(cluster, "configmaps"))
    assert (refused.value.code, refused.value.headers["Retry-After"]) == (429, "1")


@pytest.mark.parametrize(
    ("what", "options", "text"),
    [
        (418, {}, "no such fault: 418; there are 403, 409, 410, 429, 500, 'late 500'"),
        ("slow", {}, "fault 'slow': say how long, with seconds="),
        (500, {"seconds": 1}, "fault 500: it takes no seconds="),
        (500, {"verb": "post"}, "no request has the verb 'post'; there are get, list, watch, create, update, patch"),
        (500, {"resource": "configmapz"}, "there is no kind 'configmapz' on this server"),
        (500, {"by": "me"}, "by='me': give one of 'anyone', 'controllers', 'tests'"),
    ],
)
def test_a_fault_that_makes_no_sense(cluster: Cluster, what: int | str, options: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError) as refused:
        cluster.fault(what, **options)
    assert text in str(refused.value)
